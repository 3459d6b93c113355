"""Loss matrices (n, d*): how well each of d* views (feature sets) predicts each of n rows.

Fiterau (2014), Sect. 2.1.2 and 2.2.2. No row is its own neighbour. If a row misses a feature of a
view, its loss there is infinite, and it is not a neighbour of other rows there."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels
from lodim.models.ripr.kernels import EQUAL, INVERSE
from lodim.models.ripr.neighbours import Neighbours, single_precision
from lodim.models.ripr.views import by_content, dims, features, row_blocks, rows_by_content

ALPHA = 0.99  # order of the divergence: the losses are powers 1 - ALPHA of ratios
STEPS = 1000.0  # resolution of a feature's values in its hash
N_SAMPLES = 5  # uniform samples that rows are compared with
UNRELATED = 1e-6  # smaller correlations are rounding errors
LEAST_VOLUME = 1e-8  # smallest volume of a box; that of copies is zero
SHIFT = 2.0**0.5 - 1.0  # share of a step; keeps simple fractions away from rounding boundaries


def default_k(n):
    """Return the default number of neighbours: about the square root of n."""
    return max(1, round(np.sqrt(n)))


def class_losses(X, y, views, k=None, *, alpha=ALPHA, balanced=False, threads=1):
    """Return the losses (n, d*) of n rows with classes y (n,) in d* views (feature sets).

    Eq. 2.5 of Fiterau (2014): L_ij = (nu_k(own class) / nu_k(other classes))^(|view j| (1 -
    alpha)), where nu_k is the distance from row i to its k-th neighbour in view j. A row with y =
    -1 has no label and gets the smallest loss over the labels. `balanced` removes class shares from
    the ratios (Eq. 2.3)."""
    groups = ReferenceGroups.from_classes(y, balanced=balanced)
    k = k or default_k(np.count_nonzero(y >= 0))
    member = groups.membership(np.arange(len(y)))
    return ratio_losses(X, X, groups, y, member, views, k, 1.0 - alpha, threads)


@dataclass(frozen=True)
class ReferenceGroups:
    """Pairs of groups of candidate neighbours; distances to the two groups are compared.

    members : positions of the rows of each group
    own, other : (pairs,) groups that are compared; pair c is class c against all others
    prior : (pairs,) added to log ratios of distances
    counts : (n,) bool, rows that are candidates"""

    members: list
    own: np.ndarray
    other: np.ndarray
    prior: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_classes(cls, y, n_classes=None, balanced=False, counts=None):
        """Return a pair of groups for each class: the rows of the class, and all other rows.

        `balanced` removes class shares from the ratios; counts (n,) says which rows are candidates.
        """
        counts = (y >= 0) & (True if counts is None else counts)
        K = int(n_classes or y.max() + 1)
        members = [np.flatnonzero(counts & (y == c)) for c in range(K)]
        others = [np.flatnonzero(counts & (y != c)) for c in range(K)]
        n_own = np.array([len(m) - 1 for m in members], float)
        n_other = np.array([len(m) for m in others], float)
        prior = np.log(np.maximum(n_own, 1.0) / np.maximum(n_other, 1.0)) * balanced
        if K == 2:
            return cls(members, np.array([0, 1]), np.array([1, 0]), prior, counts)
        return cls(members + others, np.arange(K), np.arange(K, 2 * K), prior, counts)

    @classmethod
    def from_sample(cls, n, rows):
        """Return one pair of groups: `rows` of n data rows, and the sampled points after them."""
        members = [rows, n + np.arange(len(rows))]
        return cls(members, np.array([0]), np.array([1]), np.zeros(1), np.ones(n, bool))

    def membership(self, rows):
        """Return which groups of candidate neighbours contain each of m rows, (m, G) of int."""
        return np.column_stack([np.isin(rows, m) for m in self.members]).astype(np.int64)


def cluster_losses(X, views, k=None, *, alpha=ALPHA, seed=0, n_samples=N_SAMPLES, threads=1):
    """Return the losses (n, d*) of clustering, low where rows are denser than a uniform sample.

    L_ij = ((nu_k(other rows) / nu_k(uniform sample))^|view j| / v_j)^(1 - alpha) for row i and view
    (feature set) j (Fiterau 2014, Sect. 2.2.2). nu_k is the distance to the k-th nearest row or
    point. v_j is the volume of the rows' box along principal components, relative to the box along
    the features. Losses are geometric means over `n_samples` samples."""
    rows, k = np.arange(len(X)), k or default_k(len(X))
    member = np.tile([1, 0], (len(X), 1))
    pair, groups = np.zeros(len(X), np.int64), ReferenceGroups.from_sample(len(X), rows)
    L = np.ones((len(X), len(views)))
    for draw in range(n_samples):
        references = uniform_references(X, rows, seed, draw)
        args = references[: len(X)], references, groups, pair, member, views, k
        L *= ratio_losses(*args, (1.0 - alpha) / n_samples, threads)
    return L / reference_volumes(X, views) ** (1.0 - alpha)


def regression_losses(X, y, views, k=None, *, weight=None, threads=1):
    """Return the losses (n, d*) of n rows with responses y (n,) in d* views (feature sets).

    Each row is predicted by the inverse-distance mean of its k neighbours in a view. Its loss is
    the mean squared error of the row and these neighbours, in units of the variance of y."""
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


def ratio_losses(X, references, groups, pair, member, views, k, power, threads=1):
    """Return losses (n, d*) of rows X (n, p): ratios of two distances, to a power.

    The distances are those to the k-th neighbour in two groups of rows (`groups`), for each of d*
    views (feature sets). pair (n,) is the pair of groups that a row compares; -1 is the pair with
    the smallest ratio. member (n, G) says which groups contain the row itself."""
    out = _log_ratios(X, references, groups, pair, member, views, k, 1, threads)[:, :, 0]
    out *= power
    return np.exp(out, out=out).T


def log_ratios(X, references, groups, member, views, k, threads=1):
    """Return log ratios of distances for all pairs of groups of rows, (n, d*, pairs).

    Each compares the distances from a row to the k-th neighbour in two groups, in a view (feature
    set). member (n, G) says which groups contain the row itself."""
    every, n_pairs = np.full(len(X), -1), len(groups.own)
    out = _log_ratios(X, references, groups, every, member, views, k, n_pairs, threads)
    return out.transpose(1, 0, 2)


def _log_ratios(X, references, groups, pair, member, views, k, n_columns, threads):
    """Return log ratios of distances (d*, n, n_columns): of all pairs of groups, or the smallest.

    pair (n,) is the pair of groups that a row compares, or -1 for all pairs."""
    among = np.unique(np.concatenate(groups.members))  # other rows do not count, nor for the unit
    rows, refs = single_precision(X, references[among])
    members = [np.searchsorted(among, m) for m in groups.members]
    starts = np.cumsum([0, *map(len, members)])
    pairs = (groups.own, groups.other, groups.prior)
    pair = np.asarray(pair, np.int64)

    def fill(out, some, sizes, base):
        order = [m[np.argsort(refs[base, m], kind="stable")] for m in members]
        sorted_refs = np.ascontiguousarray(refs[:, np.concatenate(order)])
        sides = (sorted_refs, starts, np.zeros(len(refs), np.float32))
        args = (out, some, sizes, rows, member, sides, pairs, k, pair)
        for_blocks(kernels.log_ratios, len(some), *args, threads=threads)

    return by_base(fill, (len(X), n_columns), views, refs)


def by_base(fill, shape, views, refs):
    """Return an array (d*, *shape), filled by fill(out, views, dims, base) for one base at a time.

    The base of a view (feature set) is its feature with most values; rows sorted by it leave the
    fewest candidates. Ties are ordered by values, so that permuted features give identical bits."""
    values = [np.sort(x) for x in refs]
    keys = [(-np.count_nonzero(np.diff(x)), x.tobytes()) for x in values]
    rank = np.empty(len(refs) + 1, np.int64)
    rank[[*sorted(range(len(refs)), key=keys.__getitem__), -1]] = np.arange(len(refs) + 1)
    order = np.argsort(rank[views], axis=1, kind="stable")
    turned = np.take_along_axis(views, order, axis=1)
    sizes, L = dims(views), np.empty((len(views), *shape))
    for base in np.unique(turned[:, 0]):
        some = np.flatnonzero(turned[:, 0] == base)
        out = np.empty((len(some), *shape))
        fill(out, turned[some], sizes[some], base)
        L[some] = out
    return L


# The uniform sample that clustering compares with ------------------------------------------------


def uniform_references(X, rows, seed, draw=0):
    """Return rows X with repeated values spread out, then a uniform point per sampled row.

    Points are uniform over the box of the rows. Repeated values would make rows infinitely dense
    relative to these points. So rows with a repeated value are spread over the interval of numbers
    nearest to it. The random numbers do not depend on the order of rows or columns."""
    spread, sample, order = X.copy(), np.empty((len(rows), X.shape[1])), None
    for f, draws in zip(by_content(X[rows]), _generators(X[rows], seed, draw), strict=True):
        known = rows[~np.isnan(X[rows, f])]
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
    """Return the volume of each view's box along principal components over that along features.

    The uniform sample for clustering fills the box along principal components, as in the gap
    statistic (Tibshirani, Walther and Hastie 2001). Otherwise two features that measure the same
    quantity would always look dense. The volume is at most one."""
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
        covariance[np.abs(covariance) < UNRELATED * np.outer(size, size)] = 0.0
        turned = np.einsum("if,fg->ig", Z, np.linalg.eigh(covariance)[1])
        volume = np.prod(np.ptp(turned, axis=0)) / np.prod(span / span.max())
        out[j] = np.clip(volume, LEAST_VOLUME, 1.0)
    return out


def value_cells(x):
    """Return the ends (n,), (n,) of the interval of numbers nearest to each value of x (n,).

    Both ends are the value itself if it is unique."""
    value, of, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) < 2:
        return x.copy(), x.copy()
    middle = 0.5 * (value[1:] + value[:-1])
    low = np.append(1.5 * value[0] - 0.5 * value[1], middle)
    high = np.append(middle, 1.5 * value[-1] - 0.5 * value[-2])
    low, high = (np.where(count > 1, end, value) for end in (low, high))
    return low[of], high[of]


def _generators(X, seed, draw):
    """Return a random generator per feature of X, seeded by its values, not by its position."""
    seen, out = {}, []
    for f in by_content(X):
        x = np.sort(X[~np.isnan(X[:, f]), f])
        span = (x[-1] - x[0] or 1.0) if len(x) else 1.0
        code = crc32(np.floor(STEPS * (x - x[:1]) / span + SHIFT).astype(np.int64).tobytes())
        seen[code] = seen.get(code, -1) + 1
        out.append(np.random.default_rng([seed, 7 + draw, code, seen[code]]))
    return out
