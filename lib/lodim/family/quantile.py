"""A quantile of numbers: the check loss, with its kink smoothed for fitting."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import dot, sum_rows
from lodim.engine.compiled import scalar
from lodim.engine.scalar_math import like
from lodim.family.binomial import curvature as logistic_curvature
from lodim.family.binomial import loss_slope as logistic
from lodim.family.family import IdentityLink

CHECK = 3  # code of the loss; its parameters are the quantile, the smoothing width and a constant
WIDTH = 0.1  # of the rounding, as a share of the check loss of the null model


@scalar
def loss_slope(quantile, width, constant, y, f, weight):
    """Return a row's weighted quantile loss, smoothed at its kink, and its derivative by f.

    quantile : probability; width : scale of the smoothing; constant : number to subtract"""
    # The loss is q (y - f) + h log(1 + exp((f - y) / h)) - constant, for quantile q and width h.
    h = like(width, f)
    value, slope = logistic(like(quantile, f), (f - y) / h, weight)
    return h * value - weight * like(constant, f), slope


@scalar
def curvature(width, y, f, weight):
    """Return the second derivative in f of a row's weighted check loss, smoothed over a `width`."""
    h = like(width, f)
    return logistic_curvature(y, (f - y) / h, weight) / h


def weighted_quantile(x, weight, share):
    """Return the smallest x whose cumulative weight reaches `share`; the weights sum to one."""
    order = np.argsort(x, kind="stable")
    order = order[weight[order] > 0.0]
    total = np.cumsum(weight[order])
    at = np.searchsorted(total, share * total[-1] * (1.0 - 1e-12))
    return float(x[order[min(at, len(order) - 1)]])


@dataclass(frozen=True)
class Quantile(IdentityLink):
    """Family of a numeric response y; the prediction f is its quantile q.

    The deviance is 2 max(q (y - f), (q - 1) (y - f)); for the median that is the absolute error."""

    quantile: float
    name: str = "quantile"
    loss: str = "twice the check loss"
    degree = 1
    dispersed = True
    m_estimation = True

    @property
    def label(self):
        return f"quantile {self.quantile:g}"

    def kernel_loss(self, y, weight):
        null = self.null_intercept(y, weight, np.zeros((len(y), 1)))[0]
        check = 0.5 * sum_rows(lambda i: dot(weight[i], self._twice(y[i] - null)), len(y))
        h = WIDTH * check if check > 0.0 else 1.0
        smoothed = np.log1p(np.exp(-np.abs(y - null) / h))
        excess = sum_rows(lambda i: dot(weight[i], smoothed[i]), len(y))
        return CHECK, 0.05, self.quantile, h, h * excess

    def bounded(self, residual):
        """Return the check loss's derivatives (n,) by residuals; zero for residuals of zero."""
        return self.quantile * (residual > 0.0) - (1.0 - self.quantile) * (residual < 0.0)

    def _twice(self, rest):
        return 2.0 * np.maximum(self.quantile * rest, (self.quantile - 1.0) * rest)

    def deviance(self, y, score):
        return self._twice(y - score[:, 0])

    def most_deviance(self, y):
        return float(self._twice(np.ptp(y) * np.array([1.0, -1.0])).max()) or np.inf

    def null_intercept(self, y, weight, offset):
        return np.array([weighted_quantile(y - offset[:, 0], weight, self.quantile)])
