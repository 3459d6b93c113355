"""Fits of few rows by Newton's method, compiled together with the loss."""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.family.ordinal import ORDERED
from lodim.models.gbmap.newton import newton
from lodim.models.gbmap.objective import (
    LEAST_GAIN,
    SCREENING_FTOL,
    best_of_each_sign,
    best_position,
    lowest,
)


@njit(cache=True, nogil=True, error_model="numpy")
def prepare_class(y, score, weight, target, table, loss, start_at):
    """Prepare the fit of a learner of class `target`.

    Return responses, linear predictors, first and second loss derivatives, and the total loss.
    score : (n_tiles, K, 64) linear predictors of the classes
    table : (2, K) response and mean threshold of each ordered class, or (2, 0)
    start_at : rows whose derivatives are returned"""
    # Unordered classes: `target` has response 1, others 0, and f becomes its logit.
    responses, offsets = np.empty(y.shape), np.empty(y.shape)
    n_scores, null, total = score.shape[1], 0.0, 0.0
    for t in range(y.shape[0]):
        for i in range(TILE):
            response, f = y[t, i], score[t, target, i]
            if loss[0] == ORDERED:
                code = int(response)
                response, f = table[0, code], f + table[1, code]
            elif n_scores > 1:
                response, largest, others = 1.0 if response == target else 0.0, -np.inf, 0.0
                for j in range(n_scores):
                    if j != target:
                        largest = max(largest, score[t, j, i])
                for j in range(n_scores):
                    if j != target:
                        others += exp_negative(score[t, j, i] - largest)
                f = f - largest - math.log(others)
            responses[t, i], offsets[t, i] = response, f
            null += losses.loss_slope(loss, response, f, weight[t, i])[0]
    slope, curvature = np.empty(start_at.size), np.empty(start_at.size)
    for i in range(start_at.size):
        total += weight[start_at[i] // TILE, start_at[i] % TILE]
    for i in range(start_at.size):
        t, j = start_at[i] // TILE, start_at[i] % TILE
        response, f, w = responses[t, j], offsets[t, j], weight[t, j] / total
        _, slope[i] = losses.loss_slope(loss, response, f, w)
        curvature[i] = max(losses.curvature(loss, response, f, w), loss[1] * w)
    return responses, offsets, slope, curvature, null


def fit_learner(problem, rows, null_value, theta, sign, ftol):
    """Fit a learner from r starting points; return the best (parameters, sign, results).

    Results are loss, largest derivative, iterations, passes over rows, 1 if converged.
    rows : responses and linear predictors, (n_tiles, 64) each
    null_value : loss without the learner
    theta : (r, d) starting parameters, changed in place
    ftol : relative decrease of the loss that ends a search"""
    n_iter, n_eval = np.zeros(len(sign)), 1.0
    if len(sign) > 2:  # rough fits first, of which only the best of each sign is continued
        rough = newton(problem, *rows, theta, sign, max(ftol, SCREENING_FTOL), False)
        best = best_of_each_sign(rough[:, 0], sign)
        n_iter, n_eval = rough[best, 2], n_eval + rough[:, 3].max()
        theta, sign = theta[best], sign[best]
    null = np.zeros_like(theta)
    null[:, 0] = -sign * math.log(2.0) / problem.beta
    ends = newton(problem, *rows, theta, sign, ftol, True)
    n_eval += ends[:, 3].max()
    if lowest(ends[:, 0]) > null_value:
        theta = null.copy()
        ends = newton(problem, *rows, theta, sign, ftol, True)
        n_eval += ends[:, 3].max()
    best, least = best_position(ends[:, 0], ends[:, 4] > 0.0), lowest(ends[:, 0])
    end = ends[best]
    end[2:4] = n_iter[best] + end[2], n_eval
    if null_value - least > max(ftol / min(max(least, 1e-6), 1.0), LEAST_GAIN) * null_value:
        return theta[best], sign[best], end
    # Without a relevant gain, the learner predicts 0.
    end[4] = math.isfinite(null_value - least)
    return null[best], sign[best], end
