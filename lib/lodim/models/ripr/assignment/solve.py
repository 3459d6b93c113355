"""Assignment of rows to views (feature sets): Algorithm 2.1.1 of Fiterau (2014), solved exactly."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.errors import DataError
from lodim.models.ripr import ties
from lodim.models.ripr.views import row_blocks


@dataclass(frozen=True)
class Assignment:
    """Assignment of rows to views (feature sets), at most two views per row."""

    views: np.ndarray  # increasing columns of the loss matrix to which rows are assigned
    # first, second: positions in `views`; -1 for a row with only infinite losses
    first: np.ndarray
    second: np.ndarray
    # share, mass: weight of `second` in the row; each view's share of the rows' weight
    share: np.ndarray
    mass: np.ndarray
    lambda_: float
    objective: np.ndarray  # squared excess losses plus penalty, after each round of the algorithm
    converged: bool

    def matrix(self):
        """Return the share of each view in each row as a matrix (rows, views); rows sum to one."""
        B = np.zeros((len(self.first), len(self.views)))
        rows = np.flatnonzero(self.first >= 0)
        B[rows, self.first[rows]] += 1.0 - self.share[rows]
        B[rows, self.second[rows]] += self.share[rows]
        return B

    def selected(self, least):
        """Return the columns (views) whose share of the rows exceeds `least`."""
        return self.views[self.mass > least]

    def without_empty_views(self):
        """Return the same Assignment, without the views (feature sets) that have no rows."""
        used = np.flatnonzero(self.mass > 0.0)
        place = np.append(np.searchsorted(used, np.arange(len(self.views))), -1)
        own = {"first": place[self.first], "second": place[self.second], "mass": self.mass[used]}
        return replace(self, views=self.views[used], **own)


def with_log(final, search):
    """Return the assignment `final` with the `objective` (its value per round) of `search`.

    search : Assignment or Mixture that `final` refits; the result has converged if both have"""
    converged = search.converged and final.converged
    return replace(final, objective=search.objective, converged=converged)


# One row -----------------------------------------------------------------------------------------


@njit(cache=True, error_model="numpy", inline="always")
def next_vertex(row, delta, u, v):
    """Find the next vertex of the lower convex hull of points (loss, penalty), one per view.

    row, delta : (views,) losses in one row, and penalties
    u, v : loss and penalty of the previous vertex
    Return the view at the next vertex, or -1, and the fall of penalty per rise of loss."""
    at, slope = -1, 0.0
    for j in range(row.size):
        if delta[j] < v and row[j] < np.inf:
            s = (v - delta[j]) / (row[j] - u) if row[j] > u else np.inf
            if s > slope or (s == slope and at >= 0 and row[j] > row[at]):
                at, slope = j, s
    return at, slope


@njit(cache=True, nogil=True, error_model="numpy")
def assign_rows(lo, hi, L, delta, lambda_, first, second, share):
    """Choose one or two views (feature sets) of low loss and penalty for rows lo to hi - 1.

    L : (rows, views) losses; delta : (views,) penalties in units of lambda_
    first, second : views to fill in, equal if one is best, -1 if no loss is finite
    share : share of `second` to fill in; `first` has the rest"""
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
            # Minimizes (mean loss - best)^2 + lambda_ * mean penalty, with the shares as weights.
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
    """Choose one or two views (feature sets) of low loss and penalty for each row.

    L, delta : (rows, views) losses, and (views,) penalties in units of lambda_
    Return both views, equal if one is best, and the share of the second, (rows,) each."""
    n = len(L)
    first, second, share = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)

    def kernel(lo, hi):
        rows = 256 * lo, min(n, 256 * hi)
        assign_rows(*rows, L, delta, float(lambda_), first, second, share)

    for_blocks(kernel, -(-n // 256), threads=threads)
    return first, second, share


# All rows ----------------------------------------------------------------------------------------


def eligible_views(L, lambda_):
    """Return the columns of L (positions of views, feature sets) that are smallest in some row.

    L : (rows, views) losses; if several are equally small, only the first counts
    lambda_ : penalty, here only for ties: losses within 1e-6 sqrt(lambda_) count as equal"""
    if not L.shape[1]:
        return np.empty(0, np.int64)
    at = np.concatenate([ties.argmin(L[rows], _loss_tolerance(lambda_)) for rows in row_blocks(L)])
    return np.unique(at[np.isfinite(L[np.arange(len(L)), at])])


def _loss_tolerance(lambda_):
    return 1e-6 * np.sqrt(lambda_)


def _equalize_ties(L, lambda_):
    """Lower losses within 1e-6 sqrt(lambda_) of a row's minimum to the minimum; return a copy."""
    best = L.min(axis=1, keepdims=True, initial=np.inf)
    return np.ascontiguousarray(np.where(best + _loss_tolerance(lambda_) >= L, best, L))


def assign(L, lambda_, *, weight=None, threads=1):
    """Assign rows to views (feature sets) by Algorithm 2.1.1 of Fiterau (2014); return Assignment.

    L : (rows, views) losses; a row's penalty is lambda_ * (1 - its view's share of the rows)"""
    weight = np.ones(len(L)) if weight is None else np.asarray(weight, np.float64)
    views = eligible_views(L, lambda_)
    active = _equalize_ties(L[:, views], lambda_)
    served = np.isfinite(active).any(axis=1)
    best = np.where(served, active.min(axis=1, initial=np.inf), 0.0)
    weight = np.where(served, weight, 0.0)
    rows, W = np.flatnonzero(served), weight.sum()
    if not W > 0.0:
        raise DataError(
            "no view can predict any row: all features are missing, or a class has fewer than "
            "two rows"
        )
    delta, log, converged = np.ones(len(views)), [], False
    for _ in range(500):
        found = solve_rows(active, delta, lambda_, threads)
        c = _masses(*found, weight, len(views))
        # Squared excesses of mean losses u, and penalties lambda_ (W - sum_j c_j^2 / (2 W))
        first, second, t = (of_row[rows] for of_row in found)
        u = (1.0 - t) * active[rows, first] + t * active[rows, second]
        gap = np.einsum("i,i,i", weight[rows], u - best[rows], u - best[rows])
        log.append(float(gap + lambda_ * (W - np.einsum("j,j", c, c) / (2.0 * W))))
        change = np.abs(1.0 - c / W - delta).max()
        delta = 1.0 - c / W
        if change <= 1e-8 or (len(log) > 1 and log[-2] - log[-1] <= 1e-12 * abs(log[-1])):
            converged = True
            break
    whole = Assignment(views, *found, c / W, float(lambda_), np.array(log), converged)
    return whole.without_empty_views()


def reassign(L, search, mass, weight=None):
    """Assign rows to given views (feature sets) with earlier penalties; return an Assignment.

    L : (rows, views) losses; search : Assignment that an earlier search returned
    mass : (views,) earlier shares of the rows, from which the penalties are computed"""
    rows = solve_rows(_equalize_ties(L, search.lambda_), 1.0 - mass, search.lambda_)
    c = _masses(*rows, np.ones(len(L)) if weight is None else weight, L.shape[1])
    first, second, share = rows
    new = {"first": first, "second": second, "share": share, "mass": c / c.sum()}
    return replace(search, views=np.arange(L.shape[1]), **new)


def _masses(first, second, share, weight, n_views):
    """Return the total weight of the rows assigned to each view (feature set), (n_views,).

    first, second : (rows,) the two views of each row, or -1; share : (rows,) share of `second`"""
    rows = first >= 0
    mass = np.bincount(first[rows], ((1.0 - share) * weight)[rows], n_views)
    return mass + np.bincount(second[rows], (share * weight)[rows], n_views)


# Rows in order -----------------------------------------------------------------------------------


@njit(cache=True)
def cheapest_chain(price, switch):
    """Choose a view (feature set) for each row in order of time, with few changes.

    price : (rows, views) cost of each view in each row; switch : cost of a change of view
    Return the views (rows,), -1 if all prices of a row are infinite."""
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


def assign_in_order(L, lambda_, switch, *, weight=None):
    """Assign each row to one view (feature set), with few changes; return the Assignment.

    L : (rows, views) losses, in order of time
    switch : cost of a change of view"""
    L = _equalize_ties(L, lambda_)
    finite = np.isfinite(L)
    served = finite.any(axis=1)
    weight = np.where(served, 1.0 if weight is None else weight, 0.0)
    best = np.where(served, L.min(axis=1), 0.0)
    W, rows = weight.sum(), np.flatnonzero(served)
    switch = switch * W / np.count_nonzero(weight)
    squares = weight[:, None] * (np.where(finite, L, 0.0) - best[:, None]) ** 2
    gap = np.where(finite, squares, np.inf)
    delta, log, chain, converged = np.ones(L.shape[1]), [], None, False
    for _ in range(500):
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
    views = np.arange(L.shape[1])
    found = chain, chain, np.zeros(len(L))
    whole = Assignment(views, *found, mass, float(lambda_), np.array(log), converged)
    return whole.without_empty_views()
