"""Rows in order of time: hard assignments that pay for every switch of views, Sect. 4.2.

Given penalties, sum_i w_i ((L*_i - L_(i, j_i))^2 + lambda delta_(j_i)) + switch w #{i : j_i !=
j_(i-1)} is minimized exactly by dynamic programming over the rows, in time n A; penalties and
assignment alternate as in Algorithm 2.1.1, so that F plus the price of the switches never rises.
"""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.ripr.assignment.solve import Assignment, levelled


@njit(cache=True)
def cheapest_chain(price, switch):
    """Views along the rows, (n,), of least price (n, A) plus `switch` for every change.

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

    Returns
    -------
    Assignment
        share is zero throughout.
    """
    L = levelled(L, lambda_)
    served = np.isfinite(L).any(axis=1)
    weight = np.where(served, 1.0 if weight is None else weight, 0.0)
    best = np.where(served, L.min(axis=1), 0.0)
    W, rows = weight.sum(), np.flatnonzero(served)
    switch = switch * W / np.count_nonzero(weight)
    known = np.where(np.isfinite(L), L, 0.0)
    gap = np.where(np.isfinite(L), weight[:, None] * (known - best[:, None]) ** 2, np.inf)
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
    used = np.flatnonzero(mass > 0.0)
    place = np.append(np.searchsorted(used, np.arange(L.shape[1])), -1)
    return Assignment(
        used, place[chain], place[chain], np.zeros(len(L)), mass[used], float(lambda_),
        np.array(log), converged,
    )  # fmt: skip
