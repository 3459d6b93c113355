"""Calibrate a proset fit: percentiles of familiarity and of prediction errors."""

import numpy as np
from scipy.special import ndtr, ndtri

from lodim.models.proset import distribution
from lodim.models.proset.cpu_kernels import CLASSES, DENSITY
from lodim.models.proset.distribution import Calibration
from lodim.models.proset.estimate import combine, fit_stages
from lodim.models.proset.prototypes import response_values, weighted_sums
from lodim.models.proset.training import BatchState
from lodim.selection.folds import count_units
from lodim.selection.tuning import quick_splits

RARE = 1e-4  # smallest level of a response; more extreme levels are not reliable


def calibrate(problem, prototypes, widen=True):
    """Return a fit's Calibration: percentiles of familiarity, and of errors if y is numeric.

    Familiarity is a row's weighted sum of similarities with prototypes.
    widen : whether to multiply errors by the ratio of held-out to training error"""
    state = _state_with(problem, problem.batch, prototypes)
    familiarity = _percentiles(state.b - 1.0, state.weight)
    none = np.empty(0)
    if state.loss == CLASSES:
        return Calibration(familiarity, none, none, 0.0)
    growth = _growth(problem) if widen else 1.0
    if state.loss == DENSITY:
        z = growth * ndtri(_cdf_at_response(state, prototypes))
        return Calibration(familiarity, ndtr(_percentiles(z, state.weight)), none, 1.0)
    # A prototype's variance is the mean squared residual of its rows, the null model's that of all
    # rows. A row's variance is their mean, weighted by w_j times similarity, and 1.
    residual = state.y - state.a / state.b
    square = residual**2
    null = float(state.weight @ square)
    rows, w = state.prototype_rows(prototypes)
    size = np.maximum(np.bincount(prototypes.member_of, minlength=len(prototypes)), 1)
    each = np.bincount(prototypes.member_of, square[rows], len(prototypes)) / size
    X, n = state.batch.X, state.batch.n
    total = null + weighted_sums(prototypes, each[:, None], X, n, state.threads)[:, 0]
    self_part = np.bincount(rows, w * each[prototypes.member_of], n)
    # The residuals of a perfect fit are rounding errors, not variance.
    floor = 1e-12 + 1e-3 * null
    ratio = residual / np.sqrt(np.maximum((total - self_part) / state.b, floor))
    factor = float(state.weight @ ratio**2 or 1.0)
    levels = _percentiles(ratio / np.sqrt(factor), state.weight)
    factor *= growth**2
    each, null = factor * np.maximum(each, floor), factor * max(null, floor)
    return Calibration(familiarity, levels, each, null)


def _state_with(problem, batch, prototypes):
    state = BatchState(batch, problem.family, problem.settings)
    for c in range(1, prototypes.n_batches + 1):
        state.add(prototypes.single_batch(c))
    return state


def _growth(problem):
    """Refit without each part of the rows; return held-out error / training error, at least 1."""
    if count_units(problem.batch) < 2:
        return 1.0
    fitted = new = 0.0
    for train, held_out in quick_splits(problem):
        stages = fit_stages(train, problem.family, problem.settings)
        parts = [next(stages)[:2] for _ in range(problem.settings.n_batches)]
        prototypes, _ = combine(parts)
        state = _state_with(problem, train, prototypes)
        X, n = held_out.X, held_out.n
        y = (held_out.y - held_out.offset_matrix(1)[:, 0] - state.level) / state.scale
        if state.loss == DENSITY:  # errors are normal quantiles of the estimated P(Y <= y)
            errors = ndtri(_cdf_at_response(state, prototypes))
            F = distribution.cdf(prototypes, X, n, y, state.threads)
            new_errors = ndtri(np.clip(F, RARE, 1.0 - RARE))
        else:
            errors = state.y - state.a / state.b
            sums = weighted_sums(prototypes, response_values(prototypes), X, n, state.threads)
            new_errors = y - sums[:, 1] / (1.0 + sums[:, 0])
        fitted += n * (state.weight @ np.abs(errors))
        new += n * (held_out.weight @ np.abs(new_errors))
    return max(1.0, new / fitted) if fitted > 0 else 1.0


def _cdf_at_response(state, prototypes):
    """Return P(Y <= y_i) by `prototypes` at a BatchState's responses, (n,), with row i left out."""
    X, n = state.batch.X, state.batch.n
    F = distribution.cdf(prototypes, X, n, state.y, state.threads)
    rows, w = state.prototype_rows(prototypes)
    mass = np.bincount(rows, w, n)
    # At its own response, half of a prototype's normal distribution lies below.
    return np.clip((F * (state.b + mass) - 0.5 * mass) / state.b, RARE, 1.0 - RARE)


def _percentiles(values, weight):
    return np.quantile(values, np.arange(101) / 100, weights=weight, method="inverted_cdf")
