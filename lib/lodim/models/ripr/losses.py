"""Loss matrices: how well each view can tell each row, (n, d*).

Fiterau (2014), Sect. 2.1.2 and 2.2.2. Every row is judged by the others: a row never is its own
neighbour. A row without all features of a view has an infinite loss there, and is nobody's
neighbour there. Features should be on comparable scales; distances are in single precision, of
centred features.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels
from lodim.models.ripr.kernels import EQUAL, INVERSE
from lodim.models.ripr.neighbours import Neighbours, single_precision
from lodim.models.ripr.views import by_content, dims, features, row_blocks, rows_by_content

ALPHA = 0.99  # order of the divergence: the losses are powers 1 - ALPHA of ratios
STEPS = 1000.0  # between the ends of a feature, by which its values tell it from others
N_SAMPLES = 5  # that clusters are compared with
UNRELATED = 1e-6  # correlation: principal components of less are those of rounding
LEAST_VOLUME = 1e-8  # of the box along principal components; copies have none
SHIFT = 2.0**0.5 - 1.0  # of a step: no value that is a fraction lies where rounding would move it


def default_k(n):
    """Return number of neighbours: about the root of the number of rows."""
    return max(1, round(np.sqrt(n)))


def class_losses(X, y, views, k=None, *, alpha=ALPHA, balanced=False, threads=1):
    """Return losses of classification, Eq. 2.5.

    L_ij = (nu_k(own class without i) / nu_k(other classes))^(|view| (1 - alpha)), nu_k the distance
    to the k-th nearest neighbour in view j.

    Parameters
    ----------
    X : array (n, p)
        NaN where missing.
    y : array (n,) of int
        Classes 0..K-1; -1 where unlabelled: then the loss is the smallest over possible labels.
    views : array (d*, D) of int
        See `views.enumerate_views`.
    k : int, optional
        Neighbours; the root of the number of labelled rows by default. Fewer in small data.
    alpha : float
        Order of the divergence, near 1.
    balanced : bool
        Multiply ratios by (n_y - 1) / n_other, which Eq. 2.3 has and Eq. 2.5 drops: takes the
        shares of the classes out of the losses.
    threads : int

    Returns
    -------
    array (n, d*)
    """
    groups = ReferenceGroups.from_classes(y, balanced=balanced)
    k = k or default_k(np.count_nonzero(y >= 0))
    member = groups.membership(np.arange(len(y)))
    return ratio_losses(X, X, groups, y, member, views, k, 1.0 - alpha, threads)


@dataclass(frozen=True)
class ReferenceGroups:
    """Pairs of groups of reference rows whose distances are compared.

    members : for each group the positions of its references
    own, other : (pairs,) groups compared; pair c is class c against all others
    prior : (pairs,) added to log ratios
    counts : (n,) bool, rows that are references
    """

    members: list
    own: np.ndarray
    other: np.ndarray
    prior: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_classes(cls, y, n_classes=None, balanced=False, counts=None):
        """A pair of groups for each class: its rows, and the others. y may lack the last ones."""
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
        """Return one pair: rows of the data, and as many sampled points that follow all n rows."""
        members = [rows, n + np.arange(len(rows))]
        return cls(members, np.array([0]), np.array([1]), np.zeros(1), np.ones(n, bool))

    def membership(self, rows):
        """Return whether each of some rows is a reference of each group, (m, G) of int."""
        return np.column_stack([np.isin(rows, m) for m in self.members]).astype(np.int64)


def cluster_losses(X, views, k=None, *, alpha=ALPHA, seed=0, n_samples=N_SAMPLES, threads=1):
    """Losses of clustering, Sect. 2.2.2: how much denser a row's neighbourhood is than chance.

    L_ij = ((nu_k(rows without i) / nu_k(uniform sample))^|view| / v_j)^(1 - alpha); the sample has
    as many points as there are rows, uniform over the box that bounds them, and rows are spread
    where values repeat: see `uniform_references`. v_j is the volume that the box takes along the
    principal components of the view: see `reference_volumes`. Parameters as for `class_losses`;
    `seed` draws the samples, `n_samples` of them, of which the geometric mean of the losses is
    taken.

    Returns
    -------
    array (n, d*)
    """
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
    """Return losses of regression, Sect. 2.2.2: squared errors of inverse-distance k-NN, smoothed.

    Each row is predicted by the others; its loss is the mean of its own error and its neighbours',
    in units of the variance of y.

    Parameters
    ----------
    X, views, k, threads
        As for `class_losses`.
    y : array (n,)
        Finite.
    weight : array (n,), optional
        Weights of the rows, all positive, in predictions and means of errors; ones.

    Returns
    -------
    array (n, d*)
    """
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
    """Return losses of rows X (n, p) from ratios of distances to two groups of references, (n, d*).

    pair (n,) is the pair of groups that a row compares, -1 for the pair with the smallest ratio;
    member (n, G) says which groups have the row itself.
    """
    out = _log_ratios(X, references, groups, pair, member, views, k, 1, threads)[:, :, 0]
    out *= power
    return np.exp(out, out=out).T


def log_ratios(X, references, groups, member, views, k, threads=1):
    """Return log ratios of distances to all pairs of groups, (n, d*, pairs); see `ratio_losses`."""
    every, n_pairs = np.full(len(X), -1), len(groups.own)
    out = _log_ratios(X, references, groups, every, member, views, k, n_pairs, threads)
    return out.transpose(1, 0, 2)


def _log_ratios(X, references, groups, pair, member, views, k, n_columns, threads):
    """Return log ratios (d*, n, n_columns): of all pairs, or in one column the smallest."""
    among = np.unique(np.concatenate(groups.members))  # the others say nothing, not even the unit
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
    """Return out (d*, *shape) filled by fill(out, views, dims, base), base by base.

    The base is the feature of a view with most values: the better it sorts, the fewer references
    remain. It comes first in what the kernel sees; among equals order goes by values, so that
    permuted features have the same bits.
    """
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
    """Return rows of X (n, p), spread where values repeat, and below a point for each of `rows`.

    The points are uniform over the box of the rows. Where values repeat, as those of counts, of
    rounded numbers and of levels do, rows at equal places are infinitely dense for any sample.
    There a value stands for all that is nearer to it than to other values, and the rows that have
    it are spread over that: a feature of noise is as dense as the sample however few values it has.
    Nothing is drawn by the place of a row or of a column, so that permuted data has permuted
    results. draw : number of the sample, of several of a seed.

    Returns
    -------
    array (n + len(rows), p)
    """
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
    """Volume of the box along the principal components of views, in that along features, (d*,).

    Two features that repeat one measurement lie on a line, and are dense compared to one in the
    box of the features however evenly they lie on it. The reference of the gap statistic is
    therefore uniform over a box that is aligned with the principal components (Tibshirani, Walther
    and Hastie 2001, Sect. 3, b): as many points in a smaller volume are as much denser. It is
    never the larger box.
    """
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
    """Lower and upper ends (n,) of what each value stands for; the value itself where unique."""
    value, of, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(value) < 2:
        return x.copy(), x.copy()
    middle = 0.5 * (value[1:] + value[:-1])
    low = np.append(1.5 * value[0] - 0.5 * value[1], middle)
    high = np.append(middle, 1.5 * value[-1] - 0.5 * value[-2])
    low, high = (np.where(count > 1, end, value) for end in (low, high))
    return low[of], high[of]


def _generators(X, seed, draw):
    """Return a random generator for each feature, in the order of content, seeded by its values."""
    seen, out = {}, []
    for f in by_content(X):
        x = np.sort(X[~np.isnan(X[:, f]), f])
        span = (x[-1] - x[0] or 1.0) if len(x) else 1.0
        code = crc32(np.floor(STEPS * (x - x[:1]) / span + SHIFT).astype(np.int64).tobytes())
        seen[code] = seen.get(code, -1) + 1
        out.append(np.random.default_rng([seed, 7 + draw, code, seen[code]]))
    return out
