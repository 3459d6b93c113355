"""Learners of few rows and columns in compiled calls: their problem, Newton's method, scores.

Of some hundred rows a pass takes microseconds, and Python ten times that between two of them.
Starts are found by the call that many rows use: a kernel within a kernel is compiled twice.
"""

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE
from lodim.models.gbmap.kernels.cpu import SOFTPLUS, SQUARED, evaluate_learner, loss_slope, tile_sum
from lodim.models.gbmap.kernels.newton import newton

SCREENING_FTOL = 1e-5  # relative fall of the loss at which starts can be compared
FLAT = 0.05  # least curvature of the log-loss that a step counts on, as share of the weight
LEAST_GAIN = 1e-5  # share of the objective below which what a learner gains is nothing
TIED = 1e-9  # relative difference of two objectives that says nothing
OBJECTIVE, GRAD_NORM, N_ITER, N_EVAL, CONVERGED = 0, 1, 2, 3, 4  # columns of what is said of ends
LOG = ("objective", "grad_norm", "n_iter", "n_eval", "converged")
STARTS, LEADS, NULLS = 0, 1, 2  # what is followed


@njit(cache=True, error_model="numpy", inline="always")
def _margin(y, score, k, own, rest):
    """Fill tiles with response and score of the one-score problem of class k of K."""
    for t in range(score.shape[0]):
        if score.shape[1] == 1:
            for i in range(TILE):
                own[t, i], rest[t, i] = y[t, i], score[t, 0, i]
            continue
        for i in range(TILE):
            largest = -np.inf
            for j in range(score.shape[1]):
                if j != k:
                    largest = max(largest, score[t, j, i])
            total = 0.0
            for j in range(score.shape[1]):
                if j != k:
                    total += exp_negative(score[t, j, i] - largest)
            own[t, i] = 1.0 if y[t, i] == k else 0.0
            rest[t, i] = score[t, k, i] - largest - np.log(total)


@njit(cache=True, error_model="numpy", inline="always")
def _derivatives(at, own, rest, weight, loss, slope, curvature):
    """Fill (s,) with slope and curvature of the loss of the rows at positions `at`."""
    total = 0.0
    for i in range(at.size):
        total += weight[at[i] // TILE, at[i] % TILE]
    for i in range(at.size):
        t, j = at[i] // TILE, at[i] % TILE
        w, y, f = weight[t, j] / total, own[t, j], rest[t, j]
        if loss == SQUARED:
            slope[i], curvature[i] = 2.0 * w * (f - y), 2.0 * w
        else:
            e = np.exp(-abs(f))
            p = 1.0 / (1.0 + e) if f > 0.0 else e / (1.0 + e)
            slope[i], curvature[i] = w * (p - y), w * max(p * (1.0 - p), FLAT)


@njit(cache=True, error_model="numpy", inline="always")
def _null_value(y, f, weight, loss, value, r):
    """The objective of a learner that adds nothing."""
    total = 0.0
    for t in range(y.shape[0]):
        loss_slope(y[t], f[t], weight[t], loss, value, r)
        total += tile_sum(value)
    return total


@njit(cache=True, error_model="numpy", inline="always")
def _add_learner(X, theta, b, beta, target, z, g, slope, score):
    """Add a learner to the scores of its class."""
    v, none = theta.astype(X.dtype), np.zeros(TILE, X.dtype)
    v[0] = 0.0
    for t in range(X.shape[0]):
        one = X.dtype.type(b)
        evaluate_learner(X[t], none, v, one, X.dtype.type(beta), SOFTPLUS, z, g, slope)
        for i in range(TILE):
            score[t, target, i] += theta[0] + g[i]


@njit(cache=True, error_model="numpy", inline="always")
def _best_of_each_sign(theta, sign, value, count):
    """Put the lowest learner of each sign first, that of b = 1 before; their number."""
    best = np.full(2, -1)
    for m in range(count):
        b = 0 if sign[m] > 0.0 else 1
        if best[b] < 0 or value[m] < value[best[b]]:
            best[b] = m
    first, second = best[0], best[1]
    if first < 0:
        first, second = second, first
    one, two = theta[first].copy(), theta[max(second, 0)].copy()
    b_one, b_two = sign[first], sign[max(second, 0)]
    for i in range(one.size):
        theta[0, i], theta[1, i] = one[i], two[i]
    sign[0], sign[1] = b_one, b_two
    return 2 if second >= 0 else 1


@njit(cache=True, error_model="numpy", inline="always")
def _choose(sign, value, ends, count):
    """The lowest of some ends; of tied ones one that has converged, and b = 1 if both have."""
    lowest, any_converged, chosen = np.inf, False, -1
    for m in range(count):
        lowest = min(lowest, value[m])
    limit = lowest + TIED * abs(lowest)
    for m in range(count):
        any_converged = any_converged or (value[m] <= limit and ends[m, CONVERGED] > 0.0)
    for m in range(count):
        fits = value[m] <= limit and (ends[m, CONVERGED] > 0.0 or not any_converged)
        if fits and (chosen < 0 or sign[m] > sign[chosen]):
            chosen = m
    return chosen


@njit(cache=True, nogil=True, error_model="numpy")
def take_margin(y, score, weight, target, loss, start_at, own, rest, slope, curvature):
    """Fill own, rest (n_tiles, 64): response and score of the one-score problem of a score.

    And slope, curvature (s,): of its loss in the rows at positions start_at. y, weight (n_tiles,
    64) and score (n_tiles, K, 64) are in float64.
    """
    _margin(y, score, target, own, rest)
    _derivatives(start_at, own, rest, weight, loss, slope, curvature)


@njit(cache=True, nogil=True, error_model="numpy")
def fit_learner(
    X, own, rest, weight, score, target, starts, start_sign, compare, learner, log,
    ridge, beta, loss, precision, max_iter, tol, ftol,
):  # fmt: skip
    """Fill learner (2 + p,) of one score, and log (5,) of how its fit ended; its sign b.

    Starts (r, 2 + p) of both signs are followed until they can be compared, the best of each to its
    end, and the lower end is kept; where it gains nothing, the learner that adds nothing. Without
    `compare` all are followed to their ends. The score has the learner when this returns.

    X (n_tiles, p, 64), one block of it; own, rest as of `take_margin`; ridge (2 + p,).
    """
    d, count = ridge.size, len(starts)
    most = max(2, count)
    theta, sign = np.empty((most, d)), np.empty(most)
    value, ends = np.empty(most), np.empty((most, 5))
    for m in range(count):
        sign[m] = start_sign[m]
        for i in range(d):
            theta[m, i] = starts[m, i]
    per_row, r, z = np.empty(TILE, X.dtype), np.empty(TILE, X.dtype), np.empty(TILE, X.dtype)
    w = weight.astype(X.dtype)
    null = np.log(2.0) / beta
    yx, fx = own.astype(X.dtype), rest.astype(X.dtype)
    null_value, n_eval, lowest = _null_value(yx, fx, w, loss, per_row, r), 1, np.inf
    what = STARTS if compare else LEADS
    while True:
        passes, lowest = 0, np.inf
        for m in range(count):
            of_starts = what == STARTS
            value[m], largest, n_iter, converged, n = newton(
                X, yx, fx, w, sign[m], beta, loss, ridge, precision, max_iter, tol,
                max(ftol, SCREENING_FTOL) if of_starts else ftol, not of_starts,
                theta[m],
            )  # fmt: skip
            ends[m, GRAD_NORM], ends[m, N_ITER], ends[m, CONVERGED] = largest, n_iter, converged
            lowest, passes = min(lowest, value[m]), max(passes, n)
        n_eval += passes
        if what == STARTS:
            count, what = _best_of_each_sign(theta, sign, value, count), LEADS
        elif what == LEADS and lowest > null_value:
            what = NULLS
            for m in range(count):
                for i in range(d):
                    theta[m, i] = 0.0
                theta[m, 0] = -sign[m] * null
        else:
            break
    best = _choose(sign, value, ends, count)
    least = max(ftol / min(max(lowest, 1e-6), 1.0), LEAST_GAIN)
    gains = null_value - lowest > least * null_value
    log[OBJECTIVE], log[N_EVAL] = value[best], n_eval
    log[GRAD_NORM], log[N_ITER] = ends[best, GRAD_NORM], ends[best, N_ITER]
    log[CONVERGED] = ends[best, CONVERGED] if gains else 1.0
    for i in range(d):
        learner[i] = theta[best, i] if gains else 0.0
    if not gains:
        learner[0] = -sign[best] * null
    _add_learner(X, learner, sign[best], beta, target, z, per_row, r, score)
    return sign[best]
