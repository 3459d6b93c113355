"""The exact solution of one row of the assignment problem: a walk along a hull.

Given penalties delta, rows separate: minimize (u - L*)^2 + lambda v over weights b of the views,
(u, v) = (l'b, delta'b). As b ranges over the simplex, (u, v) ranges over the convex hull of the
points (l_j, delta_j), and the objective grows with v and, beyond L* = min l, with u: the minimum is
on the lower left hull, at a vertex or within one edge. So at most two views share a row.
"""

import numpy as np

from lodim.engine.compiled import njit


@njit(cache=True, error_model="numpy", forceinline=True)
def steepest(row, delta, u, v):
    """The next vertex of the lower left hull after (u, v), -1 where there is none; its slope."""
    at, slope = -1, 0.0
    for j in range(row.size):
        if delta[j] < v and row[j] < np.inf:
            s = (v - delta[j]) / (row[j] - u) if row[j] > u else np.inf
            if s > slope or (s == slope and at >= 0 and row[j] > row[at]):
                at, slope = j, s
    return at, slope


@njit(cache=True, nogil=True, error_model="numpy")
def assign_rows(lo, hi, L, delta, lambda_, first, second, share):
    """Views of rows [lo, hi): first with weight 1 - share, second with weight share.

    L (n, A) losses, infinite where a view cannot serve; delta (A,). first is -1 for a row that no
    view can serve; second is first where one view serves alone. Ties go to the smaller delta, then
    to the earlier view.
    """
    for i in range(lo, hi):
        row, at = L[i], -1
        for j in range(row.size):
            if row[j] < np.inf and (
                at < 0 or row[j] < row[at] or (row[j] == row[at] and delta[j] < delta[at])
            ):
                at = j
        first[i], second[i], share[i] = at, at, 0.0
        if at < 0:
            continue
        best = row[at]
        while True:
            further, slope = steepest(row, delta, row[at], delta[at])
            wanted = best + 0.5 * lambda_ * slope
            if further < 0 or wanted <= row[at]:
                first[i], second[i], share[i] = at, at, 0.0
                break
            if wanted < row[further]:
                first[i], second[i] = at, further
                share[i] = (wanted - row[at]) / (row[further] - row[at])
                break
            at = further
