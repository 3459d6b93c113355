"""Counts and amounts with a log link, whose variance is a power of the mean: Poisson and gamma."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from lodim.engine.blocks import dot, sum_rows
from lodim.family.family import LARGEST_LOG, RAREST, Family


class LogLink(Family):
    """Methods of families with a log link."""

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def residual(self, y, score):
        return y - self.mean(score)


@dataclass(frozen=True)
class Poisson(LogLink):
    """Counts whose variance equals their mean; deviance 2 (y log(y / mu) - (y - mu))."""

    name: str = "poisson"
    link: str = "log"
    loss: str = "Poisson deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))

    def null_intercept(self, y, weight, offset):
        mean = max(dot(weight, y), RAREST)
        return np.array([np.log(mean) - _log_sum(lambda i: offset[i, 0], weight)])


@dataclass(frozen=True)
class Gamma(LogLink):
    """Positive numbers whose variance is proportional to the squared mean; log link.

    Deviance 2 ((y - mu) / mu - log(y / mu)).
    """

    name: str = "gamma"
    link: str = "log"
    loss: str = "gamma deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        log_ratio = np.log(y) - score[:, 0]
        return 2.0 * (np.expm1(np.minimum(log_ratio, LARGEST_LOG)) - log_ratio)

    def null_intercept(self, y, weight, offset):
        return np.array([_log_sum(lambda i: np.log(y[i]) - offset[i, 0], weight)])


def _log_sum(log, weight):
    """Return the log of the weighted sum over rows of exp(log(rows)), rows a slice."""
    return sum_rows(lambda i: logsumexp(log(i), b=weight[i]), len(weight), np.logaddexp)
