"""Fits of few rows by Newton's method, compiled together with the loss."""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.family.ordinal import ORDERED
from lodim.models.gbmap.newton import NewtonArrays, NewtonResult, newton

SCREENING_FTOL = 1e-5  # relative tolerance of fits that are only compared
LEAST_GAIN = 1e-5  # smallest relative gain for which a learner is kept
TIED = 1e-9  # relative difference up to which two objectives are tied


@njit(cache=True, error_model="numpy", inline="always")
def _derivatives(at, responses, offsets, weight, loss, slope, curvature):
    """Fill slope, curvature (r,) with loss derivatives by the linear predictors of rows `at` (r,).

    responses, offsets (linear predictors), weight : arrays of all rows, in blocks of 64 rows"""
    total = 0.0
    for i in range(at.size):
        total += weight[at[i] // TILE, at[i] % TILE]
    for i in range(at.size):
        t, j = at[i] // TILE, at[i] % TILE
        y, f, w = responses[t, j], offsets[t, j], weight[t, j] / total
        _, slope[i] = losses.loss_slope(loss, y, f, w)
        curvature[i] = max(losses.curvature(loss, y, f, w), loss[1] * w)


@njit(cache=True, nogil=True, error_model="numpy")
def prepare_class(
    y, score, weight, target, table, loss, start_at, responses, offsets, slope, curvature
):
    """Fill arrays for the fit of a learner of class `target`; return the loss without the learner.

    y, score (linear predictors), weight : in blocks of 64 rows; loss : tuple as in `losses`
    responses : get y; for several unordered classes, 1 for class `target` and 0 for others
    offsets : get score; for several unordered classes, the logit of class `target`
    table : (2, K), for ordered classes: responses by class, and numbers to add to `offsets`
    start_at : positions of rows; slope, curvature : get derivatives of their losses at `offsets`"""
    n_scores, null = score.shape[1], 0.0
    for t in range(y.shape[0]):
        for i in range(TILE):
            response, f = y[t, i], score[t, target, i]
            if loss[0] == ORDERED:
                code = int(response)
                response, f = table[0, code], f + table[1, code]
            elif n_scores > 1:
                response, largest, total = 1.0 if response == target else 0.0, -np.inf, 0.0
                for j in range(n_scores):
                    if j != target:
                        largest = max(largest, score[t, j, i])
                for j in range(n_scores):
                    if j != target:
                        total += exp_negative(score[t, j, i] - largest)
                f = f - largest - math.log(total)
            responses[t, i], offsets[t, i] = response, f
            null += losses.loss_slope(loss, response, f, weight[t, i])[0]
    _derivatives(start_at, responses, offsets, weight, loss, slope, curvature)
    return null


def fit_learner(follow, responses, offsets, starts, sign, compare, null_value, ftol, learner):
    """Fit a learner from several starting points; return the sign and NewtonResult of the best fit.

    follow, responses, offsets : function that minimizes the loss (see `follower`), and its data
    starts, sign : (r, 2 + p) parameters and (r,) signs of r starting points
    compare : True for rough fits first, of which only the best of each sign is continued
    ftol : tolerance of the final fits; null_value : loss without a learner
    learner : (2 + p,), gets the parameters (of the zero function if the loss hardly falls)"""
    n_eval, n_iter, signs, null = 1.0, [0.0] * len(sign), sign.tolist(), learner[0]
    if compare:
        results = follow(responses, offsets, starts, sign, max(ftol, SCREENING_FTOL), False)
        n_eval += max(result.n_eval for result in results)
        best = _best_of_each_sign(signs, results)
        n_iter = [results[m].n_iter for m in best]
        starts, sign, signs = starts[best], sign[best], [signs[m] for m in best]
    results = follow(responses, offsets, starts, sign, ftol, True)
    n_eval += max(result.n_eval for result in results)
    lowest = _lowest(results)
    if lowest > null_value:
        starts[:] = 0.0
        starts[:, 0] = null * sign
        results = follow(responses, offsets, starts, sign, ftol, True)
        n_eval += max(result.n_eval for result in results)
        lowest = _lowest(results)
    best = _choose(signs, results)
    b, log = signs[best], results[best]
    log = log._replace(n_eval=n_eval, n_iter=n_iter[best] + log.n_iter)
    least = max(ftol / min(max(lowest, 1e-6), 1.0), LEAST_GAIN)
    if null_value - lowest > least * null_value:
        learner[:] = starts[best]
        return b, log
    learner[0] = null * b
    return b, log._replace(converged=1.0)


def follower(problem):
    """Return a function that fits learners to a Problem by `newton` and returns NewtonResults."""
    d, dtype = problem.ridge.size, problem.X.dtype
    of_rows = (
        np.empty((3, len(problem.X), TILE), dtype),
        np.empty((3, TILE), dtype),
        np.empty(d, dtype),
    )
    of_learner = np.empty((3, d)), np.empty(d - 2), np.empty(1 + d), np.empty((2, d, d))
    room = NewtonArrays(*of_rows, *of_learner)

    def follow(responses, offsets, theta, sign, ftol, of_one):
        responses, offsets = responses.astype(dtype, copy=False), offsets.astype(dtype, copy=False)
        results = np.empty((len(sign), len(NewtonResult._fields)))
        newton(problem, responses, offsets, theta, sign, ftol, of_one, results, room)
        return [NewtonResult(*result) for result in results.tolist()]

    return follow


def _best_of_each_sign(sign, results):
    """Return the positions of the lowest loss in `results` (NewtonResults), for sign 1, then -1."""
    groups = [[m for m in range(len(sign)) if sign[m] == b] for b in (1.0, -1.0)]
    return [_tied(group, results)[0] for group in groups if group]


def _lowest(results):
    return min(math.inf, *[result.objective for result in results])


def _tied(group, results):
    """Return the positions in `group` whose `results` tie for the lowest loss; all if it is NaN."""
    lowest = _lowest([results[m] for m in group])
    return [m for m in group if results[m].objective <= lowest + TIED * abs(lowest)] or group


def _choose(sign, results):
    """Return the position of the best of `results`, NewtonResults of learners with signs `sign`.

    Of results that tie for the lowest loss, prefer converged ones, then positive signs."""
    tied = _tied(range(len(results)), results)
    converged = [m for m in tied if results[m].converged > 0.0]
    return max(converged or tied, key=sign.__getitem__)
