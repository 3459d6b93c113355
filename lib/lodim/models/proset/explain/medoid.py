"""A typical row to compare others with: Algorithm 4.2 of Ruf (2022)."""

import numpy as np
from scipy.stats import rankdata

DIGITS = 12  # to which two mean distances are taken for equal


def reference_point(x, estimate, tie):
    """Position of the row that is most central in features and in estimates together.

    Rows are ranked by mean absolute distance to all others, once among features and once among
    estimates; Borda's rule adds the ranks.

    Parameters
    ----------
    x : (n, A) standardized features; estimate : (n, K)
    tie : (n,)
        Of rows with equal points the one with the largest is taken, then the first.
    """
    points = _points(x) + _points(estimate)
    best = np.flatnonzero(points == points.max())
    return int(best[np.argmax(tie[best])])


def entropy(p):
    """Entropy of each row of probabilities, (n, K) -> (n,)."""
    return -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)


def mean_distances(x):
    """sum_d mean_i |x_d - x_id| of each row, (n,): by sorting, without a pair at a time."""
    n = len(x)
    out = np.zeros(n)
    for column in x.T:
        order = np.argsort(column, kind="stable")
        ordered = column[order] - column[order[0]]
        below = np.cumsum(ordered) - ordered
        k = np.arange(n)
        total = k * ordered - below + (below[-1] + ordered[-1] - below - ordered)
        total -= (n - 1 - k) * ordered
        # Equal values have equal distances, to the bit.
        first = np.searchsorted(ordered, ordered, side="left")
        out[order] += total[first] / n
    return out


def _points(x):
    """Borda's points: one for each row that is farther out, half a one for each just as far."""
    distance = mean_distances(x)
    size = max(distance.max(initial=0.0), 1e-300)
    return len(x) - rankdata(np.round(distance / size, DIGITS))
