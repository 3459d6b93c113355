"""Counts and amounts with a log link, whose variance is a power of the mean.

The power is 1 for Poisson counts and 2 for gamma amounts. The loss is half the deviance.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from lodim.engine.blocks import dot, sum_rows
from lodim.engine.compiled import scalar
from lodim.engine.scalar_math import exp_bounded, like
from lodim.family.family import LARGEST_LOG, RAREST, Family

POWER = 2  # code of the loss; its parameters are the power, and a constant that is subtracted


@scalar
def loss_slope(power, constant, y, f, weight):
    """Return the weighted loss at the log mean f, and its derivative exp((1-p) f) (exp(f) - y)."""
    up, down = like(2.0 - power, f), like(power - 1.0, f)
    high = like(1.0 / (2.0 - power) if power < 2.0 else 0.0, f)
    low = like(1.0 / (power - 1.0) if power > 1.0 else 0.0, f)
    line = like(1.0 if power == 2.0 else 0.0, f) - (y if power == 1.0 else like(0.0, f))
    mean, rest = exp_bounded(up * f), y * exp_bounded(-down * f)
    value = high * mean + low * rest + line * f - like(constant, f)
    return weight * value, weight * (mean - rest)


@scalar
def curvature(power, y, f, weight):
    """Return the weighted second derivative of the loss with respect to f."""
    up, down = like(2.0 - power, f), like(power - 1.0, f)
    return weight * (up * exp_bounded(up * f) + down * y * exp_bounded(-down * f))


class LogLink(Family):
    """Base class of families with a log link; the variance is proportional to mean ** power."""

    link: str = "log"

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def residual(self, y, score):
        return y - self.mean(score)

    def spread(self, mean):
        """Return the standard deviation of responses up to a factor, given their means."""
        return mean ** (0.5 * self.power)

    def kernel_loss(self, y, weight):
        level = sum_rows(lambda i: dot(weight[i], y[i]), len(y))
        constant = sum_rows(lambda i: dot(weight[i], self.saturated(y[i])), len(y))
        flat = 0.05 * level ** (2.0 - self.power)  # share of the curvature at the mean response
        return POWER, float(flat), float(self.power), float(constant), 0.0

    def most_deviance(self, y):
        """Return the deviance of the smallest response if the largest one is predicted."""
        least = y[y > 0.0].min(initial=np.inf) if self.power > 1.0 else y.min()
        most = y.max()
        return float(self.deviance(np.array([min(least, most)]), np.log([[most]]))[0]) or np.inf

    def null_intercept(self, y, weight, offset):
        """Return the root s (1,) of sum w exp((1-p)(o+s)) (y - exp(o+s)) = 0, o the offset."""
        p = self.power
        if p > 1.0:
            observed = _log_sum(lambda i: _log(y[i]) + (1.0 - p) * offset[i, 0], weight)
        else:
            observed = np.log(max(dot(weight, y), RAREST))
        expected = 0.0 if p == 2.0 else _log_sum(lambda i: (2.0 - p) * offset[i, 0], weight)
        return np.array([observed - expected])


@dataclass(frozen=True)
class Poisson(LogLink):
    """Family of counts with variance = mean; deviance 2 (y log(y / mu) - (y - mu))."""

    name: str = "poisson"
    loss: str = "Poisson deviance"
    power: float = 1.0
    support: str = "counts, 0 or more"

    def saturated(self, y):
        return y - xlogy(y, y)

    def deviance(self, y, score):
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))


@dataclass(frozen=True)
class Gamma(LogLink):
    """Family of positive numbers with variance proportional to the squared mean; log link.

    The deviance is 2 ((y - mu) / mu - log(y / mu)).
    """

    name: str = "gamma"
    loss: str = "gamma deviance"
    power: float = 2.0
    support: str = "numbers above 0"

    def saturated(self, y):
        return 1.0 + np.log(y)

    def deviance(self, y, score):
        log_ratio = np.log(y) - score[:, 0]
        return 2.0 * (np.expm1(np.minimum(log_ratio, LARGEST_LOG)) - log_ratio)


def _log(y):
    with np.errstate(divide="ignore"):
        return np.log(y)


def _log_sum(log, weight):
    """Return log(sum of weight * exp(log(i))) over all rows; i is a slice of rows."""
    return sum_rows(lambda i: logsumexp(log(i), b=weight[i]), len(weight), np.logaddexp)
