"""Nearest rows in a view (feature set): sums over them, and their positions."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels
from lodim.models.ripr.views import features, rows_by_content
from lodim.progress import steps

MAX_DIGITS = 46  # binary digits of the largest value; keeps squares below kernels.FAR


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows to predict (`rows`), and rows among which their neighbours are sought (`refs`)."""

    # rows, refs: transposed, (features, rows)
    rows: np.ndarray
    refs: np.ndarray
    # apart, distinct: squared distance of two levels, and number of distinct values, per feature;
    # zero for a number or a factor
    apart: np.ndarray
    distinct: np.ndarray
    order: np.ndarray  # (features, refs) order that sorts each feature
    own: np.ndarray  # (rows,) position of each query row among the refs, or -1; it is left out

    @classmethod
    def among(cls, Q, X, category_distance=None, own=None):
        """Prepare a search for the nearest rows of X to each row of Q.

        Q : rows, or None to use X, each row without itself
        category_distance : (features,) squared distance of two levels; 0 (the default) for numbers
        own : position of each row of Q in X, to leave it out; -1 (the default) if new"""
        far = np.zeros(X.shape[1]) if category_distance is None else category_distance
        scale = np.where(far > 0.0, 2.0 * np.sqrt(far), 1.0)  # so that no two levels are close
        refs = X * scale
        rows = refs if Q is None else Q * scale
        if own is None:
            own = np.arange(len(X)) if Q is None else np.full(len(Q), -1)
        apart = np.ldexp(far, -2 * unit_digits(refs)).astype(np.float32)
        rows, refs = single_precision(rows, refs)
        distinct = np.array([len(np.unique(x)) for x in refs]) * (far == 0.0)
        order = np.argsort(refs, axis=1, kind="stable")
        return cls(rows, refs, apart, distinct, order, own)

    def sums(self, views, k, values, weighting, threads=1):
        """Sum `values` over each row's k nearest rows in each view (feature set): (views, rows, C).

        values : (n, C) or (views, n, C), of the n rows that may be neighbours
        weighting : 0 for equal weights, 1 for weights falling with distance, 2 for 1 / distance"""
        out = np.empty((len(views), self.rows.shape[1], values.shape[-1]))
        for j in steps(range(len(views)), len(views), "neighbours in views"):
            args, order = self.sorted_for(views[j], k)
            own = values[order] if values.ndim == 2 else values[j, order]
            args = (*args, own, weighting)
            for_blocks(kernels.neighbour_sums, len(out[j]), out[j], *args, threads=threads)
        return out

    def sorted_for(self, view, k):
        """Sort the rows that may be neighbours, for compiled searches; return (args, order).

        view : positions of features, padded with -1
        args : arguments X, rows, own and k of `kernels.nearest_rows`
        order : original position of each sorted row"""
        at = np.array(sorted(features(view), key=lambda f: (-self.distinct[f], f)), np.int64)
        order = self.order[at[0]]
        place = np.append(np.argsort(order), -1)  # the last is for rows that are not among the refs
        rows = kernels.ViewRows(np.ascontiguousarray(self.refs[:, order]), at, len(at), self.apart)
        return (self.rows, rows, place[self.own], k), order


def nearest(Q, X, view, k, category_distance=None, *, like=None, own=None):
    """Find the k nearest rows of X to each row of Q in a view (feature set).

    Q : rows, or None to use X, each row without itself
    category_distance : (features,) squared distance of two levels; 0 (the default) for numbers
    like : (rows of X,) values such as responses, to choose evenly among ties
    own : position of each row of Q in X, to leave it out; -1 (the default) if new
    Return distances and positions, (rows, k); inf and -1 if there are fewer rows."""
    among = Neighbours.among(Q, X, category_distance, own)
    args, order = among.sorted_for(view, k)
    rank = np.empty(len(order), np.int64)
    rank[rows_by_content(among.refs.T, like)] = np.arange(len(order))
    at = np.empty((among.rows.shape[1], k), np.int64)
    kernels.nearest_rows(0, len(at), at, *args, rank[order])
    at = np.where(at >= 0, order[at], -1)
    total = np.zeros(at.shape)
    for f in features(view):
        gap = X[at, f] - (X if Q is None else Q)[:, f, None]
        apart = 0.0 if category_distance is None else category_distance[f]
        total += apart * (gap != 0.0) if apart > 0.0 else gap**2
    distance = np.where(at >= 0, np.sqrt(total), np.inf)
    order = np.argsort(distance, axis=1, kind="stable")
    return np.take_along_axis(distance, order, axis=1), np.take_along_axis(at, order, axis=1)


# Single precision --------------------------------------------------------------------------------


def single_precision(X, references):
    """Convert X and references to float32, transposed (features, rows); MISSING replaces NaN.

    Features are centred and divided by one common power of two, so that squares stay finite."""
    centre, digits = _centres(references), unit_digits(references)
    most = 4.0 * 2.0**MAX_DIGITS

    def scaled(Z):
        z = np.clip(np.ldexp(Z - centre, -digits), -most, most).T.astype(np.float32, order="C")
        return np.nan_to_num(z, nan=kernels.MISSING, copy=False)

    return scaled(X), scaled(references)


def unit_digits(references):
    """Return the integer d with 2**d near a typical deviation of `references` from medians."""
    size = np.abs(references - _centres(references))
    typical = [np.median(z[z > 0]) for z in size.T if (z > 0).any()]
    if not typical:
        return 0
    least = np.log2(np.nanmax(size)) - MAX_DIGITS
    return int(np.ceil(max(np.log2(np.median(typical)), least)))


def _centres(X):
    known = [x[~np.isnan(x)] for x in X.T]
    return np.array([np.median(x) if x.size else 0.0 for x in known])
