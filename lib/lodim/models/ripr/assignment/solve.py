"""Assignment of rows to views: Algorithm 2.1.1 of Fiterau (2014), exactly and by majorization.

The algorithm alternates between B, the minimum of sum_i w_i ((L*_i - u_i)^2 + lambda delta'b_i)
over rows b_i >= 0 that sum to one, u_i = l_i'b_i, and delta_j = 1 - c_j / W, where c_j = sum_i w_i
B_ij is the mass of a view and W = sum_i w_i. As the penalty is the tangent of a concave function,
this minimizes

    F = sum_i w_i (u_i - L*_i)^2 + lambda (W - sum_j c_j^2 / (2 W))

by majorization: F never rises.

Given delta, rows separate: minimize (u - L*)^2 + lambda v over weights b of the views, (u, v) =
(l'b, delta'b). As b ranges over the simplex, (u, v) ranges over the convex hull of the points (l_j,
delta_j), and the objective grows with v and, beyond L* = min l, with u: the minimum is on the lower
left hull, at a vertex or within one edge. So at most two views share a row.

Rows in order of time (Sect. 4.2) have one view each, and switches of views a price:
sum_i w_i ((L*_i - L_(i, j_i))^2 + lambda delta_(j_i)) + switch w #{i : j_i != j_(i-1)} is minimized
by dynamic programming over the rows, in time n A; F plus the price of the switches never rises.
"""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.errors import DataError
from lodim.models.ripr import ties
from lodim.models.ripr.views import row_blocks

ROWS = 256  # of a block that a thread takes
TOLERANCE = 1e-8  # largest change of a penalty at convergence
FALL = 1e-12  # relative fall of F in a round below which it is at its end: steps may be slow
EQUAL_LOSS = 1e-6  # losses that differ by this share of the root of the penalty are equal


@dataclass(frozen=True)
class Assignment:
    """Which views serve which rows.

    views : (A,) int, columns of the loss matrix, increasing: those that serve any row
    first, second : (n,) int, positions in `views`; -1 for a row that no view can serve
    share : (n,) weight of `second` in the row; `first` has the rest
    mass : (A,) share of the rows' weight that each view serves, sums to one
    lambda_ : the penalty
    objective : F by round
    converged : bool
    """

    views: np.ndarray
    first: np.ndarray
    second: np.ndarray
    share: np.ndarray
    mass: np.ndarray
    lambda_: float
    objective: np.ndarray
    converged: bool

    def matrix(self):
        """B, (n, A); rows sum to one, or to zero if no view can serve them."""
        B = np.zeros((len(self.first), len(self.views)))
        rows = np.flatnonzero(self.first >= 0)
        B[rows, self.first[rows]] += 1.0 - self.share[rows]
        B[rows, self.second[rows]] += self.share[rows]
        return B

    def selected(self, least):
        """Return columns of the loss matrix of the views with more than a share of the mass."""
        return self.views[self.mass > least]


def _assignment(views, first, second, share, mass, lambda_, log, converged):
    """Return the Assignment of the views that have mass, from positions among all `views` (d*,)."""
    used = np.flatnonzero(mass > 0.0)
    place = np.append(np.searchsorted(used, np.arange(len(views))), -1)
    first, second, log = place[first], place[second], np.array(log)
    return Assignment(views[used], first, second, share, mass[used], float(lambda_), log, converged)


def with_log(own, search):
    """Return an assignment to the views that a search has kept, with the log of that search."""
    converged = search.converged and own.converged
    return replace(own, objective=search.objective, converged=converged)


# One row -----------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy", forceinline=True)
def next_vertex(row, delta, u, v):
    """Return the next vertex of the lower left hull after (u, v), or -1, and its slope."""
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
            after, slope = next_vertex(row, delta, row[at], delta[at])
            wanted = best + 0.5 * lambda_ * slope
            if after < 0 or wanted <= row[at]:
                first[i], second[i], share[i] = at, at, 0.0
                break
            if wanted < row[after]:
                first[i], second[i] = at, after
                share[i] = (wanted - row[at]) / (row[after] - row[at])
                break
            at = after


def solve_rows(L, delta, lambda_, threads=1):
    """Solution of the rows' problems with given penalties: first, second, share, (n,) each."""
    n = len(L)
    first, second, share = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)

    def kernel(lo, hi):
        rows = (lo * ROWS, min(n, hi * ROWS))
        assign_rows(*rows, L, delta, float(lambda_), first, second, share)

    for_blocks(kernel, -(-n // ROWS), threads=threads)
    return first, second, share


# All rows ----------------------------------------------------------------------------------------


def eligible_views(L, lambda_):
    """Columns of the views that can ever serve: those with the least loss of some row, increasing.

    At first all penalties are equal, and later those without mass have the largest one: a view that
    is no row's best never is on a hull. Of views equal relative to the penalty the first is
    taken.
    """
    if not L.shape[1]:
        return np.empty(0, np.int64)
    at = np.concatenate([ties.argmin(L[rows], _loss_tolerance(lambda_)) for rows in row_blocks(L)])
    return np.unique(at[np.isfinite(L[np.arange(len(L)), at])])


def _loss_tolerance(lambda_):
    """Return the tolerance within which losses are equal relative to a penalty."""
    return EQUAL_LOSS * np.sqrt(lambda_)


def _level_least(L, lambda_):
    """A copy of losses (n, A), row by row, in which those of a row that are its least are equal."""
    best = L.min(axis=1, keepdims=True, initial=np.inf)
    return np.ascontiguousarray(np.where(best + _loss_tolerance(lambda_) >= L, best, L))


def assign(L, lambda_, *, weight=None, mass=None, max_iter=500, tol=TOLERANCE, threads=1):
    """Algorithm 2.1.1.

    Parameters
    ----------
    L : array (n, d*)
        Losses, infinite where a view cannot serve a row.
    lambda_ : float
        Penalty, in units of the squared loss.
    weight : array (n,), optional
        Weights of the rows; ones.
    mass : array (d*,), optional
        Shares of the views to start from (a warm start); by default all views are penalized
        alike at first.
    max_iter, tol, threads
        Rounds at most; largest change of a penalty at convergence.

    Returns
    -------
    Assignment
    """
    weight = np.ones(len(L)) if weight is None else np.asarray(weight, np.float64)
    views = eligible_views(L, lambda_)
    active = _level_least(L[:, views], lambda_)
    served = np.isfinite(active).any(axis=1)
    best = np.where(served, active.min(axis=1, initial=np.inf), 0.0)
    weight = np.where(served, weight, 0.0)
    W = weight.sum()
    if not W > 0.0:
        raise DataError(
            "no view can tell any row: features are missing, or there are no rows to compare with "
            "(of a class, two are needed)"
        )
    delta = np.ones(len(views)) if mass is None else 1.0 - mass[views]
    log, converged = [], False
    for _ in range(max_iter):
        rows = solve_rows(active, delta, lambda_, threads)
        c = _masses(*rows, weight, len(views))
        log.append(_objective(active, best, *rows, weight, c, lambda_))
        change = np.abs(1.0 - c / W - delta).max()
        delta = 1.0 - c / W
        if change <= tol or (len(log) > 1 and log[-2] - log[-1] <= FALL * abs(log[-1])):
            converged = True
            break
    return _assignment(views, *rows, c / W, lambda_, log, converged)


def reassign(L, search, mass, weight=None):
    """Rows assigned anew among some views alone, with the penalties that a search ended with.

    Parameters
    ----------
    L : array (n, A)
        Losses of the views that remain.
    search : Assignment
    mass : array (A,)
        Their shares in it.
    weight : array (n,), optional

    Returns
    -------
    Assignment
        With the same lambda and log; `views` are the positions 0..A-1, and `mass` is new.
    """
    rows = solve_rows(_level_least(L, search.lambda_), 1.0 - mass, search.lambda_)
    c = _masses(*rows, np.ones(len(L)) if weight is None else weight, L.shape[1])
    first, second, share = rows
    new = {"first": first, "second": second, "share": share, "mass": c / c.sum()}
    return replace(search, views=np.arange(L.shape[1]), **new)


def _masses(first, second, share, weight, n_views):
    """Mass of each view, (n_views,)."""
    rows = first >= 0
    mass = np.bincount(first[rows], ((1.0 - share) * weight)[rows], n_views)
    return mass + np.bincount(second[rows], (share * weight)[rows], n_views)


def _objective(L, best, first, second, share, weight, c, lambda_):
    """Objective of the assignment: losses of the views chosen plus the penalty."""
    rows = np.flatnonzero(first >= 0)
    t = share[rows]
    u = (1.0 - t) * L[rows, first[rows]] + t * L[rows, second[rows]]
    W = weight.sum()
    gap = np.einsum("i,i,i", weight[rows], u - best[rows], u - best[rows])
    return float(gap + lambda_ * (W - np.einsum("j,j", c, c) / (2.0 * W)))


# Rows in order -----------------------------------------------------------------------------------


@njit(cache=True)
def cheapest_chain(price, switch):
    """Return views along the rows, (n,), of least price (n, A) plus `switch` for every change.

    A row whose prices are all infinite gets -1, and the view before it goes on after it.
    """
    n, A = price.shape
    came = np.empty((n, A), np.int64)
    total = np.zeros(A)
    for i in range(n):
        best = 0
        for j in range(A):
            if total[j] < total[best]:
                best = j
        least, free = total[best] + switch, True
        for j in range(A):
            free = free and price[i, j] == np.inf
        for j in range(A):
            came[i, j] = j
            if total[j] > least:
                came[i, j], total[j] = best, least
            if not free:
                total[j] += price[i, j]
    chain = np.empty(n, np.int64)
    j = np.argmin(total)
    for i in range(n - 1, -1, -1):
        chain[i] = -1 if price[i].min() == np.inf else j
        j = came[i, j]
    return chain


def assign_in_order(L, lambda_, switch, *, weight=None, max_iter=500):
    """Algorithm 2.1.1 with hard assignments and a penalty on switches.

    Parameters
    ----------
    L : array (n, d*)
        Losses of rows in order, infinite where a view cannot serve.
    lambda_, switch : float
        Penalty of views; price of a switch, as that of a row of mean weight. In units of the
        squared loss.
    weight : array (n,), optional
        Weights of the rows; ones.
    max_iter : int

    Returns
    -------
    Assignment
        share is zero throughout.
    """
    L = _level_least(L, lambda_)
    finite = np.isfinite(L)
    served = finite.any(axis=1)
    weight = np.where(served, 1.0 if weight is None else weight, 0.0)
    best = np.where(served, L.min(axis=1), 0.0)
    W, rows = weight.sum(), np.flatnonzero(served)
    switch = switch * W / np.count_nonzero(weight)
    squares = weight[:, None] * (np.where(finite, L, 0.0) - best[:, None]) ** 2
    gap = np.where(finite, squares, np.inf)
    delta, log, chain, converged = np.ones(L.shape[1]), [], None, False
    for _ in range(max_iter):
        before = chain
        chain = cheapest_chain(gap + lambda_ * weight[:, None] * delta, float(switch))
        mass = np.bincount(chain[rows], weight[rows], L.shape[1]) / W
        switches = np.count_nonzero(np.diff(chain[rows]))
        fit = gap[rows, chain[rows]].sum() + switch * switches
        log.append(fit + lambda_ * W * (1.0 - (mass * mass).sum() / 2.0))
        delta = 1.0 - mass
        if before is not None and (before == chain).all():
            converged = True
            break
    views, share = np.arange(L.shape[1]), np.zeros(len(L))
    return _assignment(views, chain, chain, share, mass, lambda_, log, converged)
