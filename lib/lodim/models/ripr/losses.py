"""Loss matrices: how well each view (feature set) predicts each row (Fiterau 2014, Ch. 2)."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels, ties
from lodim.models.ripr.kernels import EQUAL, INVERSE
from lodim.models.ripr.neighbours import Neighbours, single_precision
from lodim.models.ripr.views import by_content, dims, features, row_blocks, rows_by_content

ALPHA = 0.99  # order of the divergence: the losses are powers 1 - ALPHA of ratios
ABSENT = 30.0  # log ratio of a class without complete rows in a view
N_SAMPLES = 5  # uniform samples that rows are compared with
LEAST_VOLUME = 1e-8  # smallest volume of a box; that of copies is zero


def default_k(n):
    return max(1, round(np.sqrt(n)))


def class_losses(X, y, views, k=None, *, alpha=ALPHA, balanced=False, threads=1):
    """Return losses (rows, views), small if the nearest rows in a view have the row's class.

    views : (views, dims) positions of features
    alpha : order of the divergence; a loss is a distance ratio to the power 1 - alpha
    balanced : whether to correct for class sizes"""
    # Fiterau (2014), Eq. 2.5; Eq. 2.3 if `balanced`.
    groups = ReferenceGroups.from_classes(y, balanced=balanced)
    # A row without a class (-1) gets its smallest loss over the classes.
    ratios = log_ratios(X, X, groups, views, k, leave_out=True, threads=threads, pair=y)[:, :, 0]
    ratios *= 1.0 - alpha
    return np.exp(ratios, out=ratios)


@dataclass(frozen=True)
class ReferenceGroups:
    """Groups of rows, such as classes, and pairs of groups whose distances to a row are compared.

    members : positions of each group's rows
    own, other : (pairs,) the two groups of each pair
    prior : (pairs,) constant added to the log distance ratio own / other
    n_known : number of rows in groups"""

    members: list
    own: np.ndarray
    other: np.ndarray
    prior: np.ndarray
    n_known: int

    @classmethod
    def from_classes(cls, y, n_classes=None, balanced=False, eligible=None):
        """Group rows by class, to compare distances to each class with those to all other classes.

        y : (n,) class codes, -1 for none
        balanced : whether to correct for class sizes
        eligible : (n,) bool, rows that can be neighbours; by default all rows with a class"""
        eligible = (y >= 0) & (True if eligible is None else eligible)
        K, n_known = int(n_classes or y.max() + 1), np.count_nonzero(eligible)
        members = [np.flatnonzero(eligible & (y == c)) for c in range(K)]
        others = [np.flatnonzero(eligible & (y != c)) for c in range(K)]
        n_own = np.array([len(m) - 1 for m in members], float)
        n_other = np.array([len(m) for m in others], float)
        prior = np.log(np.maximum(n_own, 1.0) / np.maximum(n_other, 1.0)) * balanced
        if K == 2:
            return cls(members, np.array([0, 1]), np.array([1, 0]), prior, n_known)
        return cls(members + others, np.arange(K), np.arange(K, 2 * K), prior, n_known)


def cluster_losses(X, views, k=None, *, alpha=ALPHA, seed=0, n_samples=N_SAMPLES, threads=1):
    """Return losses (rows, views), small for rows in dense regions of a view (feature set).

    alpha : order of the divergence; a loss is a distance ratio to the power 1 - alpha
    n_samples : number of random samples to compare the rows with"""
    # Fiterau (2014), Ch. 2.2.2: the geometric mean over samples, with d features, of
    # ((nu / nu_random)^d / volume)^(1 - alpha).
    volumes, how = reference_volumes(X, views), {"seed": seed, "n_samples": n_samples}
    ratios = cluster_ratios(None, X, views, volumes, k, threads=threads, **how)
    return np.exp((1.0 - alpha) * ratios[:, :, 0])


def regression_losses(X, y, views, k=None, *, weight=None, threads=1):
    """Return losses (rows, views): errors of nearest-neighbour prediction around each row.

    k : number of neighbours, by default sqrt(rows)"""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    k = k or default_k(len(y))
    z = (y - y.mean()) / (y.std() or 1.0)
    L, near = np.empty((len(y), len(views))), Neighbours.among(None, X)
    for some in row_blocks(np.empty((len(views), 2 * len(y)))):
        own = weight[:, None] * np.column_stack([np.ones(len(y)), z])
        total, mean = near.sums(views[some], k, own, INVERSE, threads).transpose(2, 0, 1)
        known = total > 0.0
        error = np.where(known, z - mean / np.where(known, total, 1.0), 0.0) ** 2
        # The loss is the mean of a row's own squared error and those of its neighbours.
        own = weight[:, None] * np.stack([np.ones(error.shape), error], axis=2)
        total, mean = (near.sums(views[some], k, own, EQUAL, threads) + own).transpose(2, 0, 1)
        L[:, some] = np.where(known, mean / total, np.inf).T
    return L


def log_ratios(X, references, groups, views, k=None, *, leave_out=False, threads=1, pair=None):
    """Return log ratios (rows, views, pairs) of the distances from rows X to two groups of rows.

    groups : ReferenceGroups of rows in `references`
    views : (views, dims) positions of features, padded with -1
    k : which nearest row of a group to use, by default the square root of the number of rows
    leave_out : True if `references` begin with the rows X, to leave each out
    pair : (rows,) the one pair to compute, -1 for the smallest ratio; None for all pairs"""
    n_columns, pair = (len(groups.own), np.full(len(X), -1)) if pair is None else (1, pair)
    among = np.unique(np.concatenate(groups.members))  # other rows do not count, nor for the unit
    rows, refs = single_precision(X, references[among])
    members = [np.searchsorted(among, m) for m in groups.members]
    starts = np.cumsum([0, *map(len, members)])
    at = np.arange(len(X)) if leave_out else np.full(len(X), -1)
    member = np.column_stack([np.isin(at, m) for m in groups.members]).astype(np.int64)
    pairs = (groups.own, groups.other, groups.prior)
    args = (rows, member, pairs, k or default_k(groups.n_known), np.asarray(pair, np.int64))
    # In each view, features are sorted from most to fewest distinct values.
    values = [np.sort(x) for x in refs]
    keys = [(-np.count_nonzero(np.diff(x)), x.tobytes()) for x in values]
    rank = np.empty(len(refs) + 1, np.int64)  # the last is for the padding of views
    rank[[*sorted(range(len(refs)), key=keys.__getitem__), -1]] = np.arange(len(refs) + 1)
    order = np.argsort(rank[views], axis=1, kind="stable")
    turned, sizes = np.take_along_axis(views, order, axis=1), dims(views)
    L = np.empty((len(views), len(X), n_columns))
    for base in np.unique(turned[:, 0]):  # references are sorted by the first feature of views
        order = [m[np.argsort(refs[base, m], kind="stable")] for m in members]
        sorted_refs = np.ascontiguousarray(refs[:, np.concatenate(order)])
        sides = (sorted_refs, starts, np.zeros(len(refs), np.float32))
        some = np.flatnonzero(turned[:, 0] == base)
        out = np.empty((len(some), *L.shape[1:]))
        views_and_sides = (turned[some], sizes[some], sides)
        for_blocks(kernels.log_ratios, len(some), out, *views_and_sides, *args, threads=threads)
        L[some] = out
    return L.transpose(1, 0, 2)


# The uniform sample that clustering compares with ------------------------------------------------


def uniform_references(X, rows, seed, draw=0):
    """Return X, followed by uniform random points in its range, to compare the two densities.

    In `rows` of X, repeated values are moved apart at random.
    rows : positions in X of the rows to compare; as many random points follow
    draw : number of the random sample"""
    spread, sample, order, seen = X.copy(), np.empty((len(rows), X.shape[1])), None, {}
    for f in by_content(X[rows]):
        known = rows[~np.isnan(X[rows, f])]
        x = np.sort(X[known, f])
        span = (x[-1] - x[0] or 1.0) if len(x) else 1.0
        # The seed depends on the values of the feature, rounded to 0.1% of their range. An
        # irrational shift keeps simple fractions away from the limits between whole numbers.
        whole = np.floor(1000.0 * (x - x[:1]) / span + (2.0**0.5 - 1.0))
        code = crc32(whole.astype(np.int64).tobytes())
        seen[code] = seen.get(code, -1) + 1
        draws = np.random.default_rng([seed, 7 + draw, code, seen[code]])
        low, high = value_cells(X[known, f])
        ends = (low.min(), high.max()) if len(known) else (0.0, 0.0)
        sample[:, f] = draws.uniform(*ends, len(rows))
        if (low < high).any():
            order = rows_by_content(X[rows]) if order is None else order
            place = np.full(len(X), np.nan)
            place[rows[order]] = draws.random(len(rows))
            spread[known, f] = low + (high - low) * place[known]
    return np.concatenate([spread, sample])


def reference_volumes(X, views):
    """Return the relative volume of rows X in each feature set, (views,); below 1 if correlated.

    It is the volume of a box along principal components, relative to a box along features."""
    # Tibshirani, Walther and Hastie (2001).
    out = np.ones(len(views))
    for j, view in enumerate(views):
        Z = X[:, features(view)]
        Z = Z[~np.isnan(Z).any(axis=1)]
        span = np.ptp(Z, axis=0) if len(Z) else np.zeros(1)
        if Z.shape[1] < 2 or not span.all():
            continue
        Z = (Z - Z.mean(axis=0)) / span.max()
        covariance = np.einsum("if,ig->fg", Z, Z)
        size = np.sqrt(np.diag(covariance))
        covariance[np.abs(covariance) < 1e-6 * np.outer(size, size)] = 0.0  # rounding errors
        turned = np.einsum("if,fg->ig", Z, np.linalg.eigh(covariance)[1])
        volume = np.prod(np.ptp(turned, axis=0)) / np.prod(span / span.max())
        out[j] = np.clip(volume, LEAST_VOLUME, 1.0)
    return out


def value_cells(x):
    """Return the range (low, high), (n,) each, in which each value of x may be moved to break ties.

    Repeated values may move halfway to the next smaller and larger value, others not at all."""
    value, of, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) < 2:
        return x.copy(), x.copy()
    middle = 0.5 * (value[1:] + value[:-1])
    low = np.append(1.5 * value[0] - 0.5 * value[1], middle)
    high = np.append(middle, 1.5 * value[-1] - 0.5 * value[-2])
    low, high = (np.where(count > 1, end, value) for end in (low, high))
    return low[of], high[of]


# Predictions by neighbours: Eq. 2.11 and Sect. 2.2.2 of Fiterau (2014) --------------------------


def class_ratios(Q, X, y, views, k=None, *, threads=1, **groups):
    """Return log distance ratios, (rows of Q, views, classes), small if the class is near.

    Q : rows to compare with the classes, or None for the rows X, each without itself
    y : class codes of the rows X
    views : (views, dims) positions of features
    groups : n_classes, balanced and eligible, as in ReferenceGroups.from_classes"""
    groups, rows = ReferenceGroups.from_classes(y, **groups), X if Q is None else Q
    return log_ratios(rows, X, groups, views, k, leave_out=Q is None, threads=threads)


def cluster_ratios(Q, X, views, volumes, k=None, *, seed=0, n_samples=1, eligible=None, threads=1):
    """Return log distance ratios (rows of Q, views, 1), small where rows X are dense.

    A ratio compares distances to the k-th nearest of rows X and of uniform random points.
    Q : rows around which to measure, or None for the rows X, each without itself
    volumes : (views,) relative volume of rows X in each view (feature set)
    n_samples : number of samples of random points
    eligible : (rows of X,) bool, rows that can be neighbours"""
    rows = np.arange(len(X)) if eligible is None else np.flatnonzero(eligible)
    members = [rows, len(X) + np.arange(len(rows))]  # and as many random points
    groups = ReferenceGroups(members, np.array([0]), np.array([1]), np.zeros(1), len(rows))
    how, total = {"leave_out": Q is None, "threads": threads}, 0.0
    for draw in range(n_samples):
        references = uniform_references(X, rows, seed, draw)
        own = references[: len(X)] if Q is None else Q
        total = total + log_ratios(own, references, groups, views, k, **how)
    return total / n_samples - np.log(volumes)[:, None]


def nearest_view(ratios):
    """Return each row's view (feature set) in which a class has the smallest ratio, (rows,), or -1.

    ratios : (rows, views, classes), small if the class is near; infinite if a feature is missing"""
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.argmin(smallest), -1)


def number_answers(near, y, B, weight=None):
    """Predict each row in the view (feature set) to which most of its neighbours belong.

    near : per view, (distances, positions) of the nearest training rows, (rows, k) each
    y, weight : (training rows,) responses, and weights or None
    B : (training rows, views) share of each view in the training row
    Return the view or -1, the prediction, and mean shares of the neighbours (rows, views)."""
    weight = np.ones(len(y)) if weight is None else weight
    q = len(near[0][0]) if near else 0
    share, value = np.full((2, q, len(near)), np.nan)
    for j, (distance, at) in enumerate(near):
        farthest = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0)
        floor = np.where(farthest > 0.0, kernels.FLOOR * farthest, 1.0)  # 1 / distance is finite
        w = weight[at] / np.maximum(distance, floor[:, None])
        total, w_served = w.sum(axis=1), w * B[at, j]
        beside = y[at] - y[at[:, :1]]  # exact if all neighbours have equal y
        served, plain = w_served.sum(axis=1), (w * beside).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share[:, j] = served / total
            mean = (w_served * beside).sum(axis=1) / served
            value[:, j] = y[at[:, 0]] + np.where(served > 0.0, mean, plain / total)
    known = np.isfinite(share).any(axis=1)
    view = np.where(known, ties.argmin(-np.where(np.isnan(share), -1.0, share)), -1)
    picked = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return view, np.where(known, picked, np.nan), share
