"""Families with a log link whose variance is a power of the mean, their loss, and Poisson."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, pdtr, xlogy

from lodim.engine.blocks import dot, sum_rows
from lodim.engine.compiled import scalar
from lodim.engine.scalar_math import exp_bounded, like
from lodim.family.family import RAREST, LogLink

POWER = 2  # code of the loss; its parameters are the power, and a constant that is subtracted


@scalar
def loss_slope(power, constant, y, f, weight):
    """Return a row's weighted loss and its derivative in f, the log of the predicted mean.

    power : power of the mean that the variance is proportional to
    constant : subtracted from the loss"""
    # The derivative is weight exp((1 - power) f) (exp(f) - y).
    up, down = like(2.0 - power, f), like(power - 1.0, f)
    high = like(1.0 / (2.0 - power) if power < 2.0 else 0.0, f)
    low = like(1.0 / (power - 1.0) if power > 1.0 else 0.0, f)
    line = like(1.0 if power == 2.0 else 0.0, f) - (y if power == 1.0 else like(0.0, f))
    mean, rest = exp_bounded(up * f), y * exp_bounded(-down * f)
    value = high * mean + low * rest + line * f - like(constant, f)
    return weight * value, weight * (mean - rest)


@scalar
def curvature(power, y, f, weight):
    """Return the second derivative of a row's weighted loss in f, the log of the predicted mean.

    power : power of the mean that the variance is proportional to"""
    up, down = like(2.0 - power, f), like(power - 1.0, f)
    return weight * (up * exp_bounded(up * f) + down * y * exp_bounded(-down * f))


class PowerVariance(LogLink):
    """Base class of families whose variance is proportional to mean ** power."""

    def variance(self, mean):
        return mean**self.power

    def relative_slope(self, mean):
        return 1.0 if self.canonical else mean ** (1.0 - self.power)

    def curvature(self, y, mean):
        """Return the second derivative of a row's loss in the score (log mean), at given means."""
        p = self.power
        return (p - 1.0) * y * mean ** (1.0 - p) + (2.0 - p) * mean ** (2.0 - p)

    def kernel_loss(self, y, weight):
        level = sum_rows(lambda i: dot(weight[i], y[i]), len(y))
        constant = sum_rows(lambda i: dot(weight[i], self.saturated(y[i])), len(y))
        flat = 0.05 * level ** (2.0 - self.power)  # share of the curvature at the mean response
        return POWER, float(flat), float(self.power), float(constant), 0.0

    def null_intercept(self, y, weight, offset):
        """Return the intercept (1,) of the intercept-only model, on the log scale."""
        p = self.power
        if p > 1.0:
            observed = _log_sum(lambda i: _log(y[i]) + (1.0 - p) * offset[i, 0], weight)
        else:
            observed = np.log(max(dot(weight, y), RAREST))
        expected = 0.0 if p == 2.0 else _log_sum(lambda i: (2.0 - p) * offset[i, 0], weight)
        return np.array([observed - expected])


@dataclass(frozen=True)
class Poisson(PowerVariance):
    """Family of counts with variance = mean mu; deviance 2 (y log(y / mu) - (y - mu)); log link."""

    name: str = "poisson"
    loss: str = "Poisson deviance"
    power: float = 1.0
    counts = True

    def saturated(self, y):
        return y - xlogy(y, y)

    def distribution(self, y, mean):
        """Return the probability of a count of at most y, given its mean."""
        return pdtr(y, mean)

    def quantile(self, share, mean):
        """Return the smallest count whose distribution function reaches `share`, given its mean."""
        from scipy import stats  # slow to import

        return stats.poisson.ppf(share, mean)

    def deviance(self, y, score):
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))


def _log(y):
    with np.errstate(divide="ignore"):
        return np.log(y)


def _log_sum(values, weight):
    """Return log(sum(weight * exp(v))) without overflow; values(i) returns v[i] for a slice i."""
    return sum_rows(lambda i: logsumexp(values(i), b=weight[i]), len(weight), np.logaddexp)
