"""Kernels of the rim: reference rows that are tied at the k-th distance from a query.

They share the places that those nearer leave; which of them are taken is not left to the order of
the rows.
"""

import math

import numpy as np

from lodim.engine.compiled import njit


@njit(cache=True)
def at_reach(q, X, order, own, reach, slack, tied):
    """How many rows of X (n, f) differ from a distance from q (f,) by the share `slack` at most.

    They are put in tied, in some order of positions; own is the position of the query itself.
    """
    low, high, count = reach * (1.0 - slack), reach * (1.0 + slack), 0
    for j in order:
        square = 0.0
        for f in range(X.shape[1]):
            square += (q[f] - X[j, f]) ** 2
        if j != own and low <= math.sqrt(square) <= high:
            tied[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True)
def fill(rows, near, Q, X, order, own, reach, slack, position):
    """Fill the places of some queries in `position` (q, k), from near[i] on, with rows at reach.

    As many as there is room for are taken, evenly in some order of positions (m,).
    """
    tied = np.empty(len(order), np.int64)
    for i in rows:
        count = at_reach(Q[i], X, order, own[i], reach[i], slack, tied)
        places = position.shape[1] - near[i]
        for t in range(places):
            position[i, near[i] + t] = tied[(2 * t + 1) * count // (2 * places)]


@njit(cache=True, nogil=True)
def share(rows, near, Q, X, order, own, reach, slack, values, position, total):
    """Sums of values (n, m) over the neighbours of some queries, in total (q, m).

    The first near[i] are in `position` (q, k); the other places have the mean of all at reach.
    """
    tied = np.empty(len(order), np.int64)
    for i in rows:
        count = at_reach(Q[i], X, order, own[i], reach[i], slack, tied)
        total[i] = 0.0
        for t in range(count):
            total[i] += values[tied[t]]
        total[i] *= (position.shape[1] - near[i]) / count
        for t in range(near[i]):
            total[i] += values[position[i, t]]
