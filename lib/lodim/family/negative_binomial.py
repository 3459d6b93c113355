"""Counts that vary more than Poisson's: negative binomial with a log link."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln, polygamma, psi, xlogy

from lodim.engine.blocks import dot, sum_rows
from lodim.family.family import LARGEST_LOG, RAREST, LogLink

LEAST, MOST = 1e-6, 1e8  # of theta; beyond the latter the counts are Poisson's
STEPS = 100


def learned_theta(y, weight, mean=None):
    """Estimate theta of negative binomial counts y, whose variance is mu + mu^2 / theta.

    weight : (n,) with sum one; mean : (n,) means mu of the counts; None if all are equal"""
    mean = np.full(len(y), max(dot(weight, y), RAREST)) if mean is None else mean
    ratio = dot(weight, ((y - mean) ** 2 - mean) / np.maximum(mean, RAREST) ** 2)
    return float(np.clip(1.0 / ratio if ratio > 0.0 else MOST, 1e-2, 1e3))


@dataclass(frozen=True)
class NegativeBinomial(LogLink):
    """Family of counts with variance mu + mu^2 / theta."""

    theta: float
    name: str = "negative_binomial"
    loss: str = "negative binomial deviance"
    counts = True
    canonical = False
    learn = staticmethod(learned_theta)

    @property
    def parameter(self):
        return self.theta

    def fitted(self, y, mean, weight):
        """Return the family with the most likely theta for counts y with means `mean`, (n,)."""
        return NegativeBinomial(fitted_theta(y, mean, weight)[0])

    def variance(self, mean):
        return mean + mean**2 / self.theta

    def relative_slope(self, mean):
        return self.theta / (self.theta + mean)

    def curvature(self, y, mean):
        return mean * (1.0 + y / self.theta) * self.relative_slope(mean) ** 2

    def deviance(self, y, score):
        mean = self.mean(score)
        rest = (y + self.theta) * np.log1p((y - mean) / (mean + self.theta))
        fitted = y * np.minimum(score[:, 0], LARGEST_LOG)
        return np.maximum(2.0 * (xlogy(y, y) - fitted - rest), 0.0)

    def log_likelihood(self, y):
        """Return the log-likelihood of each count y if its mean is y itself, (n,)."""
        t = self.theta
        ways = gammaln(y + t) - gammaln(t) - gammaln(y + 1.0)
        return ways + xlogy(y, y) + t * np.log(t) - (y + t) * np.log(y + t)

    def distribution(self, y, mean):
        return betainc(self.theta, y + 1.0, self.theta / (self.theta + mean))

    def quantile(self, share, mean):
        from scipy import stats  # slow to import

        return stats.nbinom.ppf(share, self.theta, self.theta / (self.theta + mean))

    def null_intercept(self, y, weight, offset):
        level = np.log(max(dot(weight, y), RAREST))
        s = level - np.log(sum_rows(lambda i: dot(weight[i], np.exp(offset[i, 0])), len(y)))
        for _ in range(STEPS if offset.any() else 0):

            def sums(i, s=s):
                mean = self.mean(offset[i] + s)
                slope = (y[i] - mean) * self.relative_slope(mean)
                return np.array([dot(weight[i], slope), dot(weight[i], self.curvature(y[i], mean))])

            slope, curvature = sum_rows(sums, len(y))
            step = np.clip(slope / curvature, -1.0, 1.0)
            s += step
            if abs(step) < 1e-14 * (1.0 + abs(s)):
                break
        return np.array([s])


def fitted_theta(y, mean, weight):
    """Return the most likely theta of counts y (variance mean + mean^2 / theta), and its SE."""
    total, log_theta = weight.sum(), np.log(learned_theta(y, weight / weight.sum(), mean))
    for _ in range(STEPS):
        t = np.exp(log_theta)
        slope = psi(y + t) - psi(t) + np.log(t) + 1.0 - np.log(t + mean) - (y + t) / (mean + t)
        slope = weight @ slope
        of_counts = polygamma(1, t) - polygamma(1, y + t) - 1.0 / t
        curvature = weight @ (of_counts + 2.0 / (mean + t) - (y + t) / (mean + t) ** 2)
        bend = curvature * t**2 - slope * t  # by the logarithm of theta
        step = slope * t / bend if bend > 1e-10 * total else np.sign(slope)
        log_theta = np.clip(log_theta + np.clip(step, -1.0, 1.0), np.log(LEAST), np.log(MOST))
        if abs(step) < 1e-12 or log_theta == np.log(MOST):
            break
    return float(np.exp(log_theta)), float(1.0 / np.sqrt(max(curvature, 1e-300)))
