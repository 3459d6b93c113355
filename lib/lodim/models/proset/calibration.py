"""What rows look like that prototypes have not been fitted to: familiarity, and errors."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lodim.models.proset import distribution
from lodim.models.proset.kernels.cpu import CLASSES, DENSITY
from lodim.models.proset.prototypes import sums
from lodim.models.proset.training import Training

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
    training = Training(problem.batch, problem.family, problem.settings)
    splits = []
    for c in range(1, prototypes.n_batches + 1):
        splits.append(training.split(c))
        training.add(prototypes.only(c), c)
    familiarity = _percentiles(training.b - 1.0, training.weight)
    none = np.empty(0)
    if training.loss == CLASSES:
        return Calibration(familiarity, none, none, 0.0)
    i, weight = splits[0].candidates, splits[0].candidate_weight
    if training.loss == DENSITY:
        z = ndtri(_at_response(training, prototypes))
        levels = ndtr(_honest(splits, np.abs(z)) * _percentiles(z[i], weight))
        return Calibration(familiarity, levels, none, 1.0)
    each, null, ratio = _errors(training, prototypes, i, weight)
    spread = float(weight @ ratio[i] ** 2 or 1.0)
    levels = _percentiles(ratio[i] / np.sqrt(spread), weight)
    spread *= _honest(splits, np.abs(ratio)) ** 2
    return Calibration(familiarity, levels, spread * each, spread * null)


def _honest(splits, size):
    """By how much errors of the first candidates are too small for new rows: a factor.

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


def _errors(training, prototypes, i, weight):
    """Variance by prototypes and of the null model, and all residuals in units of its root."""
    square = (training.y - training.a / training.b) ** 2
    null = float(weight @ square[i])
    at = np.searchsorted(training.batch.rows, prototypes.member)
    size = np.maximum(np.bincount(prototypes.member_of, minlength=len(prototypes)), 1)
    each = np.bincount(prototypes.member_of, square[at], len(prototypes)) / size
    n = training.batch.n
    smooth = null + sums(prototypes, each[:, None], training.batch.X, n, training.threads)[:, 0]
    rows, own = training.own(prototypes)
    self_part = np.bincount(rows, own * each[prototypes.member_of], n)
    # What rounding leaves of a perfect fit is no variance.
    floor = 1e-12 + 1e-3 * null
    variance = np.maximum((smooth - self_part) / training.b, floor)
    ratio = (training.y - training.a / training.b) / np.sqrt(variance)
    return np.maximum(each, floor), max(null, floor), ratio


def _at_response(training, prototypes):
    """Distribution function of the rows at their responses, without their own prototypes."""
    X, n = training.batch.X, training.batch.n
    F = distribution.below(prototypes, X, n, training.y, training.threads)
    rows, own = training.own(prototypes)
    mass = np.bincount(rows, own, n)
    # At its own response a prototype's normal has one half of its mass below.
    return np.clip((F * (training.b + mass) - 0.5 * mass) / training.b, RARE, 1.0 - RARE)


def _percentiles(values, weight):
    return np.quantile(values, PERCENT, weights=weight, method="inverted_cdf")
