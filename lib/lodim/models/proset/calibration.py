"""Familiarity and errors of rows that the prototypes have not been fitted to."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lodim.models.proset import distribution
from lodim.models.proset.kernels.cpu import CLASSES, DENSITY
from lodim.models.proset.prototypes import weighted_sums
from lodim.models.proset.training import BatchState

PERCENT = np.arange(101) / 100
RARE = 1e-4  # level of a response below which it is not known how far out it is


@dataclass(frozen=True)
class Calibration:
    """Percentiles over training rows, each without the prototype that it is itself.

    familiarity : (101,) of sum_j w_j G_j(x), Eq. 4.5
    levels : (101,) for numeric responses, of the first batch's candidates, to whose responses its
        weights were not fitted: with loss="squared", of residuals over their standard deviation;
        with loss="density", of the estimated distribution function at the response. Empty for
        classes
    variance : (M,) with loss="squared", what each prototype says of the variance, in units of
        scale^2: the square of its own residual; else empty
    null_variance : the same of the null model
    """

    familiarity: np.ndarray
    levels: np.ndarray
    variance: np.ndarray
    null_variance: float


def calibrate(problem, prototypes):
    """The Calibration of a fit on its own rows; candidates are drawn again as they were for it."""
    state = BatchState(problem.batch, problem.family, problem.settings)
    splits = []
    for c in range(1, prototypes.n_batches + 1):
        splits.append(state.split(c))
        state.add(prototypes.single_batch(c), c)
    familiarity = _percentiles(state.b - 1.0, state.weight)
    none = np.empty(0)
    if state.loss == CLASSES:
        return Calibration(familiarity, none, none, 0.0)
    i, weight = splits[0].candidates, splits[0].candidate_weight
    if state.loss == DENSITY:
        z = ndtri(_cdf_at_response(state, prototypes))
        levels = ndtr(_shrinkage(splits, np.abs(z)) * _percentiles(z[i], weight))
        return Calibration(familiarity, levels, none, 1.0)
    each, null, ratio = _variances(state, prototypes, i, weight)
    factor = float(weight @ ratio[i] ** 2 or 1.0)
    levels = _percentiles(ratio[i] / np.sqrt(factor), weight)
    factor *= _shrinkage(splits, np.abs(ratio)) ** 2
    return Calibration(familiarity, levels, factor * each, factor * null)


def _shrinkage(splits, size):
    """Factor by which errors of the first candidates, of `size` (n,), are too small for new rows.

    They are new to the first batch alone. What each later batch has taken off the rows that it was
    fitted to is what they lack beside its own candidates. (Sizes; squares would listen to the
    farthest rows alone, and blow up the middle.)
    """
    first = splits[0]
    mean = first.candidate_weight @ size[first.candidates]
    lack = 0.0
    for split in splits[1:]:
        share = len(split.scoring) / (len(split.scoring) + len(split.candidates))
        new = split.candidate_weight @ size[split.candidates]
        lack += share * (new - split.scoring_weight @ size[split.scoring])
    return max(1.0, 1.0 + lack / mean) if mean > 0 else 1.0


def _variances(state, prototypes, i, weight):
    """Variance by prototype (M,), that of the null model, and residuals (n,) over their sd.

    i, weight : the first batch's candidates, from which the null model's variance is taken
    """
    residual = state.y - state.a / state.b
    square = residual**2
    null = float(weight @ square[i])
    at = np.searchsorted(state.batch.rows, prototypes.member)
    size = np.maximum(np.bincount(prototypes.member_of, minlength=len(prototypes)), 1)
    each = np.bincount(prototypes.member_of, square[at], len(prototypes)) / size
    X, n = state.batch.X, state.batch.n
    total = null + weighted_sums(prototypes, each[:, None], X, n, state.threads)[:, 0]
    rows, w = state.prototype_rows(prototypes)
    self_part = np.bincount(rows, w * each[prototypes.member_of], n)
    # What rounding leaves of a perfect fit is no variance.
    floor = 1e-12 + 1e-3 * null
    variance = np.maximum((total - self_part) / state.b, floor)
    return np.maximum(each, floor), max(null, floor), residual / np.sqrt(variance)


def _cdf_at_response(state, prototypes):
    """Distribution function of each row at its response, without its own prototype, (n,)."""
    X, n = state.batch.X, state.batch.n
    F = distribution.cdf(prototypes, X, n, state.y, state.threads)
    rows, w = state.prototype_rows(prototypes)
    mass = np.bincount(rows, w, n)
    # At its own response a prototype's normal has one half of its mass below.
    return np.clip((F * (state.b + mass) - 0.5 * mass) / state.b, RARE, 1.0 - RARE)


def _percentiles(values, weight):
    """Weighted percentiles from 0 to 100, (101,)."""
    return np.quantile(values, PERCENT, weights=weight, method="inverted_cdf")
