"""Information gain of a label, with the views as they are (Fiterau 2014, Sect. 3.3).

Once row z of a pool is known to be of class c, it may be among the nearest rows of its class, of
the rows that are not of another class, and of all: three distances of every other row change, by
one place at most. So what is expected of each label is found without a search.
"""

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import log_softmax

from lodim.models.ripr.answers import knn
from lodim.models.ripr.kernels import FLOOR, HALF
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.views import features


@dataclass(frozen=True, eq=False)
class NeighbourDistances:
    """Distances from m rows to their k-th and (k - 1)-th neighbour in r views.

    own, other : (2, m, r, K) to rows of a class, and of the other classes; see
        `_last_two`
    there : (m, r, K) how many rows of a class are at the very place of a row
    last : (m, r) to the k-th of all; vote : (m, r, K) weights of the classes among these, one each
        added; leaving : (m, r, K) what the k-th adds to them
    prior : (K,) added to log ratios
    """

    own: np.ndarray
    other: np.ndarray
    there: np.ndarray
    last: np.ndarray
    vote: np.ndarray
    leaving: np.ndarray
    prior: np.ndarray


def information_gains(e, X):
    """Expected fall of the entropy of all rows X (m, a) once the class of each is known, (m,).

    Rows without a view have no gain (NaN), and no entropy.
    """
    near = _neighbour_distances(e, X)
    now = (near.own[0], near.other[0], near.there, near.vote)
    entropy, p, view = _entropy(e, *now, near.prior)
    out = np.full(len(X), np.nan)
    before = entropy.sum()
    for i in np.flatnonzero(view >= 0):
        d = _distances(e, X, X[i])
        after = 0.0
        for c in range(e.n_classes):
            changed, *_ = _entropy(e, *_with_label(near, d, c), near.prior)
            after += p[i, c] * (changed.sum() - changed[i])
        out[i] = before - after
    return out


def _neighbour_distances(e, X):
    """NeighbourDistances of rows X (m, a)."""
    m, r, K = len(X), len(e), e.n_classes
    own, other = np.full((2, 2, m, r, K), np.inf)
    last, (there, vote, leaving) = np.full((m, r), np.inf), np.zeros((3, m, r, K))
    refs = e.references
    for j in range(r):
        for c in range(K):
            of_class = e.codes[refs] == c
            same, others = e.X[refs[of_class]], e.X[refs[~of_class]]
            own[:, :, j, c] = _last_two(X, same, e.views[j], e.k)
            other[:, :, j, c] = _last_two(X, others, e.views[j], e.k)
            there[:, j, c] = _rows_at_place(X, same, features(e.views[j]))
        vote[:, j] = e.votes(j, X)
        leaving[:, j] = vote[:, j] - (e.votes(j, X, e.k - 1) if e.k > 1 else 0.0)
        last[:, j] = e.nearest(j, X)[0][:, -1]
    known = np.bincount(e.codes[refs], minlength=K)
    prior = np.log(np.maximum(known - 1, 1) / np.maximum(known.sum() - known, 1)) * e.balanced
    return NeighbourDistances(own, other, there, last, 1.0 + vote, leaving, prior)


def _rows_at_place(X, references, f):
    """Return how many of some rows are at the place of each row in the features f, (m,)."""
    rows = np.concatenate([references, X])[:, f]
    _, place = np.unique(rows, axis=0, return_inverse=True)  # a missing value equals none
    count = np.bincount(place[: len(references)], minlength=place.max() + 1)
    return count[place[len(references) :]].astype(float)


def _last_two(X, references, view, k):
    """Return distances to the k-th and the (k - 1)-th nearest of some rows, (2, m).

    Of fewer than k the farthest counts as the k-th, and the other is minus infinity.
    """
    d, _ = nearest(X, references, view, max(k, 2))
    count = np.isfinite(d).sum(axis=1)
    rows = np.arange(len(X))
    last = np.where(count > 0, d[rows, np.maximum(np.minimum(count, k) - 1, 0)], np.inf)
    return np.stack([last, np.where(count >= k, d[rows, k - 2] if k > 1 else 0.0, -np.inf)])


def _with_label(distances, d, c):
    """Return distances, counts and votes once a row at distances d (m, r) is of class c."""
    z = distances
    own, other, there = z.own[0].copy(), z.other[0].copy(), z.there.copy()
    there[:, :, c] += d == 0.0
    others = np.arange(own.shape[2]) != c
    own[:, :, c] = _inserted(z.own[:, :, :, c], d)
    other[:, :, others] = _inserted(z.other[:, :, :, others], d[:, :, None])
    near = d < z.last
    vote = np.where(near[:, :, None], z.vote - z.leaving, z.vote)
    vote[:, :, c] += near
    return own, other, there, vote


def _inserted(last_two, d):
    """Return the k-th distance once rows at distances d are among the references."""
    last, before = last_two
    one = np.isinf(last) | np.isinf(d)
    farther = np.where(one, np.minimum(last, d), np.maximum(last, d))
    return np.where(np.isinf(before), farther, np.minimum(last, np.maximum(before, d)))


def _entropy(e, own, other, there, vote, prior):
    """Entropies (m,), probabilities (m, K) and views (m,), from distances, counts and votes."""
    dims = (e.views >= 0).sum(axis=1)[:, None]
    both = np.isfinite(own) & np.isfinite(other)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = dims * np.log(own / other).clip(log(FLOOR), -log(FLOOR))
    rest = there.sum(axis=2, keepdims=True) - there
    gap = np.where(np.minimum(own, other) > 0.0, gap, np.log((rest + HALF) / (there + HALF)))
    ratio = np.where(both, gap + prior, np.inf)
    view = knn.nearest_view(ratio)
    rows = np.arange(len(view))
    share = np.log(vote[rows, view] / vote[rows, view].sum(axis=1, keepdims=True))
    z = log_softmax(
        e.scale[1] * share - e.scale[0] * np.minimum(ratio[rows, view], knn.ABSENT), axis=1
    )
    p = np.exp(z)
    entropy = np.where(view >= 0, -(p * np.where(p > 0, z, 0.0)).sum(axis=1), 0.0)
    return entropy, p, view


def _distances(e, X, x):
    """Distances of rows X to one row x in each view, (m, r); infinite where one is not complete."""
    out = np.empty((len(X), len(e)))
    for j in range(len(e)):
        at = e.columns(j)
        d = np.sqrt(((X[:, at] - x[at]) ** 2).sum(axis=1))
        out[:, j] = np.where(np.isnan(d), np.inf, d)
    return out
