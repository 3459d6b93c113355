"""Learners of few rows and columns in compiled calls: their problem, Newton's method, scores.

Of some hundred rows a pass takes microseconds, and Python ten times that between two of them.
Starts are found, and scores added, by the calls that many rows use: a kernel within a kernel is
compiled twice. Room to work in is made outside: each kind of allocation is a function more.
"""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.models.gbmap.kernels.newton import (
    CONVERGED,
    LOG,
    N_EVAL,
    N_ITER,
    OBJECTIVE,
    newton,
)

SCREENING_FTOL = 1e-5  # relative fall of the loss at which starts can be compared
LEAST_GAIN = 1e-5  # share of the objective below which what a learner gains is nothing
TIED = 1e-9  # relative difference of two objectives that says nothing


@njit(cache=True, error_model="numpy", inline="always")
def _derivatives(at, own, rest, weight, loss, slope, bend):
    """Fill (s,) with slope and curvature of the loss of the rows at positions `at`."""
    total = 0.0
    for i in range(at.size):
        total += weight[at[i] // TILE, at[i] % TILE]
    for i in range(at.size):
        t, j = at[i] // TILE, at[i] % TILE
        y, f, w = own[t, j], rest[t, j], weight[t, j] / total
        _, slope[i] = losses.loss_slope(loss, y, f, w)
        bend[i] = max(losses.curvature(loss, y, f, w), loss[1] * w)


@njit(cache=True, nogil=True, error_model="numpy")
def take_margin(y, score, weight, target, loss, start_at, own, rest, slope, curvature):
    """Fill own, rest (n_tiles, 64): response and score of the one-score problem of a score.

    And slope, curvature (s,): of its loss in the rows at positions start_at. Returns the loss of a
    learner that adds nothing. y, weight (n_tiles, 64) and score (n_tiles, K, 64) are in float64.
    """
    n_scores, null = score.shape[1], 0.0
    for t in range(y.shape[0]):
        for i in range(TILE):
            response, f = y[t, i], score[t, target, i]
            if n_scores > 1:
                response, largest, total = 1.0 if response == target else 0.0, -np.inf, 0.0
                for j in range(n_scores):
                    if j != target:
                        largest = max(largest, score[t, j, i])
                for j in range(n_scores):
                    if j != target:
                        total += exp_negative(score[t, j, i] - largest)
                f = f - largest - math.log(total)
            own[t, i], rest[t, i] = response, f
            null += losses.loss_slope(loss, response, f, weight[t, i])[0]
    _derivatives(start_at, own, rest, weight, loss, slope, curvature)
    return null


def fit_learner(follow, own, rest, starts, sign, compare, null_value, ftol, learner):
    """Fill learner (2 + p,) of one score; its sign b, and how its fit ended, the columns of LOG.

    Starts (r, 2 + p) of both signs are followed until they can be compared, the best of each to its
    end, and the lower end is kept; where it gains nothing, the learner that adds nothing. Without
    `compare` all are followed to their ends. Starts are changed in place.

    follow is a `follower`, own, rest and null_value are as of `take_margin`, learner has been
    filled with the one that adds nothing for b = 1.
    """
    n_eval, n_iter, signs, null = 1.0, [0.0] * len(sign), sign.tolist(), learner[0]
    if compare:
        ends = follow(own, rest, starts, sign, max(ftol, SCREENING_FTOL), False)
        n_eval += max(end[N_EVAL] for end in ends)
        best = _best_of_each_sign(signs, ends)
        n_iter = [ends[m][N_ITER] for m in best]
        starts, sign, signs = starts[best], sign[best], [signs[m] for m in best]
    ends = follow(own, rest, starts, sign, ftol, True)
    n_eval += max(end[N_EVAL] for end in ends)
    lowest = _lowest(ends)
    if lowest > null_value:
        starts[:] = 0.0
        starts[:, 0] = null * sign
        ends = follow(own, rest, starts, sign, ftol, True)
        n_eval += max(end[N_EVAL] for end in ends)
        lowest = _lowest(ends)
    best = _choose(signs, ends, lowest)
    b, log = signs[best], ends[best]
    log[N_EVAL], log[N_ITER] = n_eval, n_iter[best] + log[N_ITER]
    least = max(ftol / min(max(lowest, 1e-6), 1.0), LEAST_GAIN)
    if null_value - lowest > least * null_value:
        learner[:] = starts[best]
    else:
        log[CONVERGED], learner[0] = 1.0, null * b
    return b, log


def follower(X, weight, beta, loss, ridge, precision, max_iter, tol):
    """`newton` on rows, with room to work in: (own, rest, theta, sign, ftol, of_one) -> ends."""
    d, dtype = 2 + X.shape[1], X.dtype
    weight = weight.astype(dtype, copy=False)
    problem = beta, loss, ridge, precision, max_iter, tol
    room = (
        np.empty((3, len(X), TILE), dtype), np.empty((3, TILE), dtype), np.empty(d, dtype),
        np.empty((3, d)), np.empty(d - 2), np.empty(1 + d), np.empty((2, d, d)),
    )  # fmt: skip

    def follow(own, rest, theta, sign, ftol, of_one):
        own, rest = own.astype(dtype, copy=False), rest.astype(dtype, copy=False)
        ends = np.empty((len(sign), len(LOG)))
        newton(X, own, rest, weight, sign, *problem, ftol, of_one, theta, ends, *room)
        return ends.tolist()

    return follow


def _best_of_each_sign(sign, ends):
    """Positions of the lowest of each sign, that of b = 1 first."""
    best = []
    for b in (1.0, -1.0):
        own = [m for m in range(len(sign)) if sign[m] == b]
        best += [min(own, key=lambda m: ends[m][OBJECTIVE])] if own else []
    return best


def _lowest(ends):
    return min(math.inf, *[end[OBJECTIVE] for end in ends])


def _choose(sign, ends, lowest):
    """The lowest of some ends; of tied ones one that has converged, and b = 1 if both have."""
    limit = lowest + TIED * abs(lowest)
    tied = [m for m, end in enumerate(ends) if end[OBJECTIVE] <= limit]
    converged = [m for m in tied if ends[m][CONVERGED] > 0.0]
    return max(converged or tied or range(len(ends)), key=sign.__getitem__)
