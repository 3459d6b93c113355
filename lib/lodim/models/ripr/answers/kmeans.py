"""k-means of weighted rows, of several starts."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.ripr.ties import EQUAL

STARTS, ROUNDS = 10, 100


def kmeans(X, weight, n_clusters, rng):
    """Centres (c, d) of the least weighted sum of squares of several starts, and that sum.

    Starts lie far from each other (k-means++), and Lloyd's rounds follow. A row that is as near to
    two centres, but for rounding, belongs to the first.
    """
    draws = rng.random((STARTS if n_clusters > 1 else 1, n_clusters))
    rows = np.ascontiguousarray(X, np.float64)
    best, least = None, np.inf
    for u in draws:
        centres = start_apart(rows, weight, u)
        within = lloyd(rows, weight, centres)
        if within < least * (1.0 - EQUAL):
            best, least = centres, within
    return best, least


@njit(cache=True, nogil=True)
def start_apart(X, weight, draws):
    """Rows of X (n, d) as centres (c, d), by uniform draws (c,).

    Each is drawn with a chance in proportion to its weight and its squared distance to the nearest
    of those before it; by its weight alone where all are at such places.
    """
    n, d = X.shape
    centres, gap, mass = np.empty((draws.size, d)), np.full(n, np.inf), weight.copy()
    for c in range(draws.size):
        wanted, below, at = draws[c] * mass.sum(), 0.0, n - 1
        for i in range(n):
            below += mass[i]
            if below > wanted:
                at = i
                break
        centres[c] = X[at]
        for i in range(n):
            squared = 0.0
            for f in range(d):
                squared += (X[i, f] - centres[c, f]) ** 2
            gap[i] = min(gap[i], squared)
            mass[i] = weight[i] * gap[i]
        if mass.sum() == 0.0:
            for i in range(n):
                mass[i] = weight[i]
    return centres


@njit(cache=True, nogil=True)
def lloyd(X, weight, centres):
    """Move centres (c, d) until they settle; returns the weighted sum of squares, (n, d) rows."""
    n, d = X.shape
    k, least = len(centres), np.inf
    squared, total, mass = np.empty(k), np.empty((k, d)), np.empty(k)
    for _ in range(ROUNDS):
        total[:], mass[:], within = 0.0, 0.0, 0.0
        for i in range(n):
            for c in range(k):
                squared[c] = 0.0
                for f in range(d):
                    squared[c] += (X[i, f] - centres[c, f]) ** 2
            own, reach = 0, squared.min() + EQUAL
            while squared[own] > reach:
                own += 1
            within += weight[i] * squared[own]
            mass[own] += weight[i]
            total[own] += weight[i] * X[i]
        if within >= least * (1.0 - EQUAL):
            break
        least = within
        for c in range(k):
            if mass[c] > 0.0:
                centres[c] = total[c] / mass[c]
    return least
