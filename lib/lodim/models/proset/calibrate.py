"""What rows look like that prototypes have not been fitted to: familiarity, and errors."""

from dataclasses import dataclass

import numpy as np

from lodim import tiles
from lodim.models.proset import distribution
from lodim.models.proset.kernels import CLASSES, DENSITY
from lodim.models.proset.prototypes import sums
from lodim.models.proset.training import Training

PERCENT = np.arange(101) / 100


@dataclass(frozen=True)
class Calibration:
    """Percentiles over training rows, each without the prototype that it is itself.

    familiarity : (101,) of sum_j w_j G_j(x), Eq. 4.5
    levels : (101,) for numeric responses, of the candidates, whose responses no weight was fitted
        to: loss="squared", residuals over their standard deviation; loss="density", the estimated
        distribution function at the response. Empty for classes
    variance : (M,) with loss="squared", what each prototype says of the variance, in units of
        scale^2: the square of its own residual; else empty
    null_variance : the same of the null model
    """

    familiarity: np.ndarray
    levels: np.ndarray
    variance: np.ndarray
    null_variance: float


def calibrate(problem, prototypes):
    """The Calibration of a fit on its own rows; batches are drawn again as they were for it."""
    training = Training(problem.batch, problem.family, problem.settings)
    drawn = np.zeros(training.batch.n, bool)
    for c in range(1, prototypes.n_batches + 1):
        drawn[training.split(c).candidates] = True
        part = prototypes.only(c)
        training.add(part)
    familiarity = _percentiles(training.b - 1.0, training.weight)
    none, i = np.empty(0), np.flatnonzero(drawn)
    if training.loss == CLASSES:
        return Calibration(familiarity, none, none, 0.0)
    if training.loss == DENSITY:
        levels = _percentiles(_at_response(training, prototypes, i), training.weight[i])
        return Calibration(familiarity, levels, none, 1.0)
    return _errors(training, prototypes, i, familiarity)


def _errors(training, prototypes, i, familiarity):
    """Variance by prototypes, and how residuals are distributed around it."""
    square = (training.y - training.a / training.b) ** 2
    weight = training.weight[i] / training.weight[i].sum()
    null = float(weight @ square[i])
    at = np.searchsorted(training.batch.rows, prototypes.member)
    size = np.maximum(np.bincount(prototypes.member_of, minlength=len(prototypes)), 1)
    each = np.bincount(prototypes.member_of, square[at], len(prototypes)) / size
    X = tiles.pack(tiles.rows(training.batch.X, i))
    smooth = null + sums(prototypes, each[:, None], X, len(i), training.threads)[:, 0]
    rows, own = training.own(prototypes)
    self_part = np.bincount(rows, own * each[prototypes.member_of], training.batch.n)[i]
    # What rounding leaves of a perfect fit is no variance.
    floor = 1e-12 + 1e-3 * null
    variance = np.maximum((smooth - self_part) / training.b[i], floor)
    ratio = (training.y - training.a / training.b)[i] / np.sqrt(variance)
    spread = float(weight @ ratio**2) or 1.0
    levels = _percentiles(ratio / np.sqrt(spread), weight)
    return Calibration(
        familiarity, levels, spread * np.maximum(each, floor), spread * max(null, floor)
    )


def _at_response(training, prototypes, i):
    """Distribution function of the rows i at their responses, without their own prototypes."""
    X = tiles.pack(tiles.rows(training.batch.X, i))
    F = distribution.below(prototypes, X, len(i), training.y[i], training.threads)
    rows, own = training.own(prototypes)
    mass = np.bincount(rows, own, training.batch.n)[i]
    # At its own response a prototype's normal has one half of its mass below.
    return np.clip((F * (training.b[i] + mass) - 0.5 * mass) / training.b[i], 0.0, 1.0)


def _percentiles(values, weight):
    return np.quantile(values, PERCENT, weights=weight, method="inverted_cdf")
