"""Nearest rows in a view (feature set): sums over them, and their positions.

Rows that miss a feature of the view have no neighbours and are not neighbours of others. Rows tied
at the k-th distance share the remaining places, so the order of rows has no effect."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels
from lodim.models.ripr.views import features, rows_by_content, spread_codes
from lodim.progress import steps

MAX_DIGITS = 46  # binary digits of the largest value; keeps squares below kernels.FAR


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Query rows Q (m, p), and the rows X (n, p) among which neighbours are sought.

    rows, refs : (p, m) and (p, n), Q and X transposed, in single precision
    apart : (p,) squared distance of two levels of a factor, zero for a number
    distinct : (p,) number of values, zero for a factor
    order : (p, n), order that sorts each feature of X
    leave_out : whether Q is X, and no row is its own neighbour"""

    rows: np.ndarray
    refs: np.ndarray
    apart: np.ndarray
    distinct: np.ndarray
    order: np.ndarray
    leave_out: bool

    @classmethod
    def among(cls, Q, X, category_distance=None):
        """Return the Neighbours of rows Q among rows X; of the rows X themselves if Q is None.

        category_distance : (p,) squared distance of two levels of a factor, 0 for a number"""
        far = np.zeros(X.shape[1]) if category_distance is None else category_distance
        refs = spread_codes(X, far)
        rows = refs if Q is None else spread_codes(Q, far)
        apart = np.ldexp(far, -2 * unit_digits(refs)).astype(np.float32)
        rows, refs = single_precision(rows, refs)
        distinct = np.array([len(np.unique(x)) for x in refs]) * (far == 0.0)
        order = np.argsort(refs, axis=1, kind="stable")
        return cls(rows, refs, apart, distinct, order, Q is None)

    def sums(self, views, k, values, weighting, threads=1):
        """Return sums (views, m, C) of C values over the k nearest rows in each view (feature set).

        values are (n, C), or (views, n, C) if they differ by view. Neighbours have equal weights
        (weighting 0), weights that fall with the distance (1), or one over the distance (2)."""
        out = np.empty((len(views), self.rows.shape[1], values.shape[-1]))
        for j in steps(range(len(views)), len(views), "neighbours in views"):
            args, order = self._sorted(views[j], k)
            own = values[order] if values.ndim == 2 else values[j, order]
            args = (*args, own, weighting)
            for_blocks(kernels.neighbour_sums, len(out[j]), out[j], *args, threads=threads)
        return out

    def positions(self, view, k, *, like=None, threads=1):
        """Return positions (m, k) of the k nearest rows in a view (feature set); -1 for none.

        If too many rows are tied at the k-th distance, they are sorted by `like` (n,), such as the
        responses, and evenly spaced ones are taken. So they represent all tied rows."""
        args, order = self._sorted(view, k)
        rank = np.empty(len(order), np.int64)
        rank[rows_by_content(self.refs.T, like)] = np.arange(len(order))
        out = np.empty((self.rows.shape[1], k), np.int64)
        args = (*args, rank[order])
        for_blocks(kernels.nearest_rows, len(out), out, *args, threads=threads)
        return np.where(out >= 0, order[out], -1)

    def _sorted(self, view, k):
        """Return the arguments of the compiled search in a view, and the order of the rows X in it.

        Rows are sorted by the feature with most distinct values, which leaves the fewest to
        compare."""
        at = np.array(sorted(features(view), key=lambda f: (-self.distinct[f], f)), np.int64)
        order, own = self.order[at[0]], np.full(self.rows.shape[1], -1)
        if self.leave_out:
            own[order] = np.arange(len(order))
        args = (self.rows, np.ascontiguousarray(self.refs[:, order]), at, len(at), self.apart)
        return (*args, own, k), order


def nearest(Q, X, view, k, category_distance=None, *, like=None, threads=1):
    """Return distances and positions (m, k) of the k rows of X nearest to rows Q (m, p) in a view.

    A view is a feature set. If Q is None, the rows X are queried, without themselves. Missing
    neighbours have infinite distance and position -1.
    category_distance : (p,) squared distance of two levels of a factor, 0 for a number
    like : (n,) values by which tied rows are sorted, such as responses"""
    among = Neighbours.among(Q, X, category_distance)
    at = among.positions(view, k, like=like, threads=threads)
    distance = distances(X if Q is None else Q, X, at, view, category_distance)
    order = np.argsort(distance, axis=1, kind="stable")
    return np.take_along_axis(distance, order, axis=1), np.take_along_axis(at, order, axis=1)


def distances(Q, X, position, view, category_distance=None):
    """Return distances (m, k) in a view (feature set) from rows Q to the rows of X at `position`.

    Infinite at position -1. category_distance (p,) is the squared distance of two levels of a
    factor, 0 for a number."""
    total = np.zeros(position.shape)
    for f in features(view):
        gap = X[position, f] - Q[:, f, None]
        apart = 0.0 if category_distance is None else category_distance[f]
        total += apart * (gap != 0.0) if apart > 0.0 else gap**2
    return np.where(position >= 0, np.sqrt(total), np.inf)


# Single precision --------------------------------------------------------------------------------


def single_precision(X, references):
    """Return X and the reference rows in single precision and transposed, (p, n) and (p, m).

    Features are centred and divided by the same power of two, so that squares neither overflow nor
    underflow. NaN becomes a large number."""
    centre, digits = _centres(references), unit_digits(references)
    most = 4.0 * 2.0**MAX_DIGITS

    def scaled(Z):
        z = np.clip(np.ldexp(Z - centre, -digits), -most, most).T.astype(np.float32, order="C")
        return np.nan_to_num(z, nan=kernels.MISSING, copy=False)

    return scaled(X), scaled(references)


def unit_digits(references):
    """Return the exponent e of the power 2^e by which all features are divided.

    The power is near the typical distance of a value in the rows `references` (n, p) from the
    feature's median, but at least 2^-46 times the largest distance."""
    size = np.abs(references - _centres(references))
    typical = [np.median(z[z > 0]) for z in size.T if (z > 0).any()]
    if not typical:
        return 0
    least = np.log2(np.nanmax(size)) - MAX_DIGITS
    return int(np.ceil(max(np.log2(np.median(typical)), least)))


def _centres(X):
    known = [x[~np.isnan(x)] for x in X.T]
    return np.array([np.median(x) if x.size else 0.0 for x in known])
