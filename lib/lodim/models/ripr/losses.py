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

    A view is a set of d features. A loss is (a / b)^(d (1 - alpha)), with the distances a and b
    to the k-th nearest row of the row's class and of others; balanced : correct for class sizes
    A row without a class (y = -1) has its smallest loss over the classes."""
    # Fiterau (2014), Eq. 2.5; Eq. 2.3 if `balanced`.
    groups = ReferenceGroups.from_classes(y, balanced=balanced)
    ratios = log_ratios(X, X, groups, views, k, leave_out=True, threads=threads, pair=y)[:, :, 0]
    ratios *= 1.0 - alpha
    return np.exp(ratios, out=ratios)


@dataclass(frozen=True)
class ReferenceGroups:
    """Groups of rows, such as classes, and pairs of groups whose distances to a row are compared.

    own, other : (pairs,) numbers of two groups, whose distances to a row form a ratio own / other
    prior : (pairs,) constant that is added to the log ratio, for example to correct for group sizes
    members : list of the positions of each group's rows
    n_known : number of rows, whose square root is the default number of neighbours"""

    members: list
    own: np.ndarray
    other: np.ndarray
    prior: np.ndarray
    n_known: int

    @classmethod
    def from_classes(cls, y, n_classes=None, balanced=False, eligible=None):
        """Group rows by class, to compare distances to each class with those to all other classes.

        y : (n,) class codes, -1 for none; n_classes : by default max(y) + 1
        balanced : whether log ratios of distances are corrected for group sizes
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

    A loss is (a / b)^(d (1 - alpha)) up to a factor per view of d features, with the distances a to
    the k-th nearest row and b to the k-th nearest of as many uniform random points.
    n_samples : number of samples of random points; the logs of their losses are averaged"""
    # Fiterau (2014), Ch. 2.2.2: the geometric mean over samples, with d features, of
    # ((nu / nu_random)^d / volume)^(1 - alpha).
    volumes, how = reference_volumes(X, views), {"seed": seed, "n_samples": n_samples}
    ratios = cluster_ratios(None, X, views, volumes, k, threads=threads, **how)
    return np.exp((1.0 - alpha) * ratios[:, :, 0])


def regression_losses(X, y, views, k=None, *, weight=None, threads=1):
    """Return losses (rows, views): errors of nearest-neighbour prediction around each row.

    In a view (feature set), each row's y is predicted by its k neighbours, sqrt(rows) by default.
    The loss of a row is the mean of its own squared error and those of its k neighbours."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    k = k or default_k(len(y))
    z = (y - y.mean()) / (y.std() or 1.0)
    L, near = np.empty((len(y), len(views))), Neighbours.among(None, X)
    for some in row_blocks(np.empty((len(views), 2 * len(y)))):
        own = weight[:, None] * np.column_stack([np.ones(len(y)), z])
        total, mean = near.sums(views[some], k, own, INVERSE, threads).transpose(2, 0, 1)
        known = total > 0.0
        error = np.where(known, z - mean / np.where(known, total, 1.0), 0.0) ** 2
        own = weight[:, None] * np.stack([np.ones(error.shape), error], axis=2)
        total, mean = (near.sums(views[some], k, own, EQUAL, threads) + own).transpose(2, 0, 1)
        L[:, some] = np.where(known, mean / total, np.inf).T
    return L


def log_ratios(X, references, groups, views, k=None, *, leave_out=False, threads=1, pair=None):
    """Return log ratios (rows, views, pairs) of the distances from rows X to two groups of rows.

    A ratio is d log(a / b) + constant in a view of d features, with the distances a and b to the
    k-th nearest row of each group. By default k is the square root of the number of rows.
    groups : ReferenceGroups: rows of `references` in each group, pairs of groups and constants
    views : (views, dims) positions of features, padded with -1
    leave_out : True if `references` begin with the rows X; no row is then its own neighbour
    pair : (rows,) the one pair to compute for each row, -1 for the pair of smallest ratio; the
        result is then (rows, views, 1). None for all pairs"""
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
    """Return X, followed by as many uniform random points as `rows`, to compare their densities.

    rows : positions in X of the rows to compare; the points are drawn in the bounding box of these
    Values that occur repeatedly in `rows` are moved at random. draw : number of the sample"""
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

    It is the volume of the rows' box along principal components, divided by one along features."""
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
    """Return limits (low, high), (n,) each, between which each value of x may be moved at random.

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
    """Return log ratios of distances, (rows of Q, views, classes), small if the class is near.

    In a view of d features, a ratio is d * log(a / b), with the distances a to the k-th nearest row
    in X of the class, and b to that of other classes. y : class codes of the rows in X
    Q : None to use X, each row without itself; views : (views, dims) positions of features
    groups : n_classes; balanced (corrects for class sizes); eligible (bool, possible neighbours)"""
    groups, rows = ReferenceGroups.from_classes(y, **groups), X if Q is None else Q
    return log_ratios(rows, X, groups, views, k, leave_out=Q is None, threads=threads)


def cluster_ratios(Q, X, views, volumes, k=None, *, seed=0, n_samples=1, eligible=None, threads=1):
    """Return log ratios (rows of Q, views, 1), small where rows X are denser than random points.

    In a view of d features, it is d * log(a / b) - log(volume), with the distances a to the k-th
    nearest row of X and b to the k-th nearest random point. It is a mean over n_samples samples.
    volumes : (views,) relative volume of rows X in each view, below 1 if its features correlate
    Q : None to use X, each row without itself; eligible : (rows of X,) bool, possible neighbours"""
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
    y : (training rows,) responses; weight : (training rows,) weights or None
    B : (training rows, views) to what share each training row belongs to each view
    Return (view, value, share). `view` is the view of each row, -1 if none. `value` is the mean of
    y over the neighbours in this view, with weights B * weight / distance. `share` (rows, views) is
    the mean of B over the neighbours in each view, with weights weight / distance."""
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
