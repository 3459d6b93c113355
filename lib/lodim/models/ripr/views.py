"""Views: sets of a few features, stored as rows of feature positions, padded with -1."""

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb

import numpy as np

from lodim.design.factors import Levels
from lodim.errors import ArgumentError
from lodim.models.ripr import ties


def count(p, min_dim, max_dim):
    return sum(comb(p, d) for d in range(min_dim, max_dim + 1))


def enumerate_views(p, min_dim=2, max_dim=2):
    """Return all sets of min_dim to max_dim of p features, one per row, padded with -1."""
    max_dim = min(max_dim, p)
    parts = []
    for d in range(min_dim, max_dim + 1):
        flat = np.fromiter((j for c in combinations(range(p), d) for j in c), np.int64)
        parts.append(pad(flat.reshape(-1, d), max_dim))
    return np.concatenate(parts)


def pad(views, width):
    out = np.full((len(views), width), -1, np.int64)
    out[:, : views.shape[1]] = views
    return out


def dims(views):
    """Return the number of features in each view (feature set)."""
    return (views >= 0).sum(axis=1)


def features(view):
    return view[view >= 0]


# Orders and copies -------------------------------------------------------------------------------


def by_content(X):
    """Return positions of the features in an order that depends only on their values in X."""
    total = _coarse(np.sort(np.nan_to_num(X), axis=1).sum(axis=1))
    keys = []
    for x in _coarse(X.T):
        order = np.lexsort((total, x))
        keys.append((x[order].tobytes(), total[order].tobytes()))
    return np.array(sorted(range(X.shape[1]), key=keys.__getitem__), np.int64)


def _coarse(x):
    """Return x rounded to 24 binary digits, so that the order of a sum makes no difference."""
    digits, power = np.frexp(x)
    return np.ldexp(np.round(digits * 2.0**24), power - 24) + 0.0


def rows_by_content(X, first=None):
    """Return the order of rows sorted by their values in X; `first`, if given, is the first key."""
    columns = X[:, by_content(X)].T[::-1]
    return np.lexsort(columns if first is None else (*columns, first))


def redundant(X, views):
    """Return whether each view contains a feature and a copy of it, (views,) bool."""
    same, random = np.arange(X.shape[1]), np.random.default_rng(0).random(len(X))
    total = np.einsum("if,i->f", np.nan_to_num(X), random)  # equal for copies, rarely otherwise
    for a, b in pairwise(np.argsort(total, kind="stable")):
        x, y = X[:, a], X[:, b]
        # Features that differ by less are copies.
        atol = 1e-8 * np.abs(np.nan_to_num(x)).max(initial=0.0)
        if np.isclose(total[a], total[b], rtol=0.0, atol=atol * len(X)) and np.allclose(
            x, y, rtol=0.0, atol=atol, equal_nan=True
        ):
            same[b] = same[a]
    same, out = np.append(same, -1), np.zeros(len(views), bool)  # the last pads views
    for a, b in combinations(range(views.shape[1]), 2):
        out |= (same[views[:, a]] == same[views[:, b]]) & (views[:, [a, b]] >= 0).all(axis=1)
    return out


def of_one_factor(views, axis_of):
    """Return whether each feature set has several columns, all of the same factor, (views,) bool.

    views : (views, dims) columns; axis_of : (p,) number that the columns of a factor share"""
    axis = axis_of[views]
    return ((axis == axis[:, :1]) | (views < 0)).all(axis=1) & (dims(views) > 1)


def varying(X):
    """Return which features of X (n, p) have two or more distinct values, (p,) bool."""
    return np.array([len(np.unique(x[~np.isnan(x)])) > 1 for x in X.T], bool)


# Screening ---------------------------------------------------------------------------------------


def most_views(n):
    """Return the number of views whose losses for n rows take at most 1 GiB of memory."""
    return max(1, 2**30 // (8 * n))


def row_blocks(L):
    """Divide the rows of a loss matrix L into blocks of at most 32 MiB; return slices of rows."""
    step = max(1, 2**22 // max(1, L.shape[1]))
    return [slice(start, start + step) for start in range(0, max(1, len(L)), step)]


def merit(L, weight=None):
    """Return how far losses of each view are below the mean of a row, averaged over rows, (views,).

    L : (rows, views) losses; those above the mean of their row, or infinite, count as that mean
    weight : (rows,) weights or None"""
    weight = np.ones(len(L)) if weight is None else weight
    total = np.zeros(L.shape[1])
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        size = np.maximum(finite.sum(axis=1), 1)
        mean = np.where(finite, L[rows], 0.0).sum(axis=1) / size
        fall = np.where(finite, np.maximum(mean[:, None] - L[rows], 0.0), 0.0)
        total += np.einsum("i,ij->j", weight[rows], fall)
    return total / weight.sum()


def screened_views(p, min_dim, max_dim, losses_of, max_views, weight=None):
    """Choose the sets of min_dim to max_dim of p features to compare; return all sets if possible.

    losses_of : function of sets that returns losses (rows, sets)
    max_views : largest number of sets
    Return the sets, and whether they are all."""
    max_dim = min(max_dim, p)
    if count(p, min_dim, max_dim) <= max_views:
        return enumerate_views(p, min_dim, max_dim), True
    if max_views < p:
        raise ArgumentError(f"max_views must be at least the number of features, {p}")
    kept, room, parents = [], max_views, None
    for d in range(max(1, min_dim - 1), max_dim + 1):
        if parents is None or count(p, d, d) <= room:
            views = enumerate_views(p, d, d)[:room]
        else:
            views = extensions(parents, p)[:room]
        if d < max_dim:
            merits = merit(losses_of(views), weight)
            parents = views[ties.descending(merits / (merits.max() or 1.0))]
        if d >= min_dim:
            kept.append(pad(views, max_dim))
            room -= len(views)
        if not room:
            break
    return np.concatenate(kept), False


def extensions(parents, p):
    """Return the sets (as rows) that add one of p features to a set in `parents` (sets, d)."""
    out = {}  # keeps the order of insertion
    for view in parents.tolist():
        for f in range(p):
            if f not in view:
                out[tuple(sorted([*view, f]))] = None
    return np.array(list(out))


# Axes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes on which feature sets measure distances: each is a numeric feature or a whole factor.

    of : (p,) number of each feature's axis; scaled : whether features have standard deviation 1"""

    of: np.ndarray
    scaled: bool

    @classmethod
    def from_design(cls, design, scaled):
        """Return the Axes of a design's features, `scaled` or not; a factor's columns share one."""
        same = np.diff(design.term_of, prepend=-1) == 0
        alone = np.array(
            [
                len(term) == 1 and isinstance(term[0], Levels) and term[0].matrix is None
                for term in design.terms
            ],
            bool,
        )
        return cls(np.cumsum(~(same & alone[design.term_of])) - 1, scaled)

    def category_distance(self, A, weight):
        """Return the squared distance of two different levels of each axis, (axes,); 0 for numbers.

        A : (rows, axes) level codes of factors, or numbers"""
        out = np.zeros(A.shape[1])
        for axis in factors(self.of):
            known = ~np.isnan(A[:, axis])
            mass = np.bincount(A[known, axis].astype(int) + 1, weight[known])
            apart = 1.0 - ((mass / max(mass.sum(), 1e-300)) ** 2).sum()
            # If scaled, two random rows have mean squared distance 2, as for a standardized number.
            # 1e-6: finite if the rows have one level.
            out[axis] = 2.0 / max(apart, 1e-6) if self.scaled else 1.0
        return out


def factors(axis_of):
    """Return which axes (data columns) are factors, as positions: those with several features.

    axis_of : (p,) number of the data column (axis) of each feature"""
    return np.flatnonzero(np.bincount(axis_of) > 1)


def axis_values(X, axis_of):
    """Convert rows X of a design matrix to one column per number or factor, (rows, axes).

    A factor becomes the code of its level, -1 for the level without a column, NaN if missing.
    axis_of : (p,) axis of each column of X"""
    out = X[:, np.flatnonzero(np.diff(axis_of, prepend=-1))]
    for axis in factors(axis_of):
        levels = X[:, axis_of == axis]
        code = np.where((levels > 0.0).any(axis=1), levels.argmax(axis=1), -1.0)
        out[:, axis] = np.where(np.isnan(levels).any(axis=1), np.nan, code)
    return out
