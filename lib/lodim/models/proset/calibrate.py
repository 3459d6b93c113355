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
    i, honest = training.split(1).candidates, 1.0
    for c in range(1, prototypes.n_batches + 1):
        j = training.split(c).candidates
        before = training.weight[j] @ training.losses(training.a[j], training.b[j], j)
        training.add(prototypes.only(c), c)
        after = training.weight[j] @ training.losses(training.a[j], training.b[j], j)
        honest = after if c == 1 else honest * min(1.0, after / max(before, 1e-300))
    familiarity = _percentiles(training.b - 1.0, training.weight)
    none = np.empty(0)
    if training.loss == CLASSES:
        return Calibration(familiarity, none, none, 0.0)
    if training.loss == DENSITY:
        levels = _percentiles(_at_response(training, prototypes, i), training.weight[i])
        return Calibration(familiarity, levels, none, 1.0)
    return _errors(training, prototypes, i, honest, familiarity)


def _errors(training, prototypes, i, honest, familiarity):
    """Variance by prototypes, and how residuals are distributed around it.

    Later batches are fitted to rows that the first has left out, whose errors are then too small;
    `honest`, the loss of the first candidates, lowered as each later batch lowers that of its own,
    is too large, since later candidates were fitted to before. Halfway (in log) intervals cover.
    """
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
    levels = _percentiles(ratio / np.sqrt(weight @ ratio**2 or 1.0), weight)
    optimism = honest / max(training.weight[i] @ square[i], 1e-300)
    spread = float(weight @ ratio**2 or 1.0) * max(1.0, optimism) ** 0.5
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
