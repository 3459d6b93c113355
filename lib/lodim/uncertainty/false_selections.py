"""Bounds on the number of false selections: Shah and Samworth (2013).

Selected is what a share tau or more of 2 B half-samples in B complementary pairs select. Bounded is
the expected number, among the stable features, of those whose chance to be selected in a
half-sample is at most theta = q / p, that of a feature drawn at random.
"""

import numpy as np

ROUNDING = 1e-9
FAR = 1e5  # beyond it the tails of r-concave distributions are flat


def worst_case(q, p, cutoff):
    """Without assumptions, Theorem 1: q^2 / (p (2 tau - 1))."""
    return q**2 / (p * (2.0 * cutoff - 1.0))


def unimodal(q, p, cutoff, n_pairs):
    """Where shares of pairs that select a feature twice are unimodal, Theorem 2; NaN beyond it."""
    theta, B = q / p, n_pairs
    least = min(0.5 + theta**2, 0.5 + 0.5 / B + 0.75 * theta**2)
    if theta > 3.0**-0.5 or cutoff <= least:
        return np.nan
    if cutoff <= 0.75:
        return q**2 / p / (2.0 * (2.0 * cutoff - 1.0 - 0.5 / B))
    return q**2 / p * 4.0 * (1.0 - cutoff + 0.5 / B) / (1.0 + 1.0 / B)


def r_concave(q, p, cutoff, n_pairs):
    """Where shares of pairs are -1/2-concave and those of halves -1/4-concave, Sect. 3.3, Eq. 8.

    NaN where that says nothing.
    """
    theta, B = q / p, n_pairs
    t = int(np.ceil(cutoff * 2.0 * B - ROUNDING))
    most = min(largest_tail(theta**2, t - B, B, 0.5), largest_tail(theta, t, 2 * B, 0.25))
    return p * most if most < 1.0 else np.nan


def largest_tail(mean, t, B, r):
    """The largest P(X >= t / B) of (-r)-concave distributions on 0, 1 / B, ..., 1 of a mean.

    It is that of a mixture of distributions on 0..k and 0..k + 1 whose probabilities are as
    (a + j)^(-1 / r); a is such that the mean is right (Appendix A.4).
    """
    from scipy.optimize import brentq, minimize_scalar

    eta, s = mean * B, -1.0 / r
    first = int(np.ceil(2.0 * eta)) + 1
    if t < first or first > B:
        return 1.0
    if eta == 0.0:
        return 0.0

    def excess(a, k):
        weight = (1.0 + np.arange(k + 1) / a) ** s
        return np.arange(k + 1) @ weight / weight.sum() - eta

    def tail(a, k):
        j = np.arange(k + 1)
        weight = (1.0 + j / a) ** s
        return 1.0 - (k + 1.0 - eta) * weight[:t].sum() / ((k + 1.0 - j) @ weight)

    ends = {first - 1: FAR}
    for k in range(first, B + 1):
        ends[k] = brentq(excess, 1e-8, ends[k - 1], args=(k,), xtol=1e-14)
    best = tail(ends[B], B)
    for k in range(max(first, t), B):
        low, high = ends[k + 1], ends[k]
        found = minimize_scalar(lambda a, k=k: -tail(a, k), bounds=(low, high), method="bounded")
        best = max(best, -found.fun, tail(low, k), tail(high, k))
    return float(min(1.0, best))
