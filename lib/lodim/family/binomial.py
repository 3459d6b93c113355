"""Two classes, or proportions of trials: the log-loss as a function of the logit."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, xlogy

from lodim.engine.blocks import dot
from lodim.engine.compiled import njit, scalar
from lodim.engine.scalar_math import like, softplus
from lodim.family.family import LEAST_PROBABILITY, RAREST, Family, beside_offset

LOGISTIC = 1, 0.05, 0.0, 0.0, 0.0  # format: see `losses`


@scalar
def loss_slope(y, f, weight):
    """Return the loss weight * (log(1 + exp(f)) - y f) and its derivative by f; y : from 0 to 1."""
    value, share = softplus(f)
    return weight * (value - y * f), weight * (share - y)


@scalar
def curvature(y, f, weight):
    """Return the second derivative of a row's weighted log-loss in the logit f."""
    _, share = softplus(-abs(f))
    return weight * share * (like(1.0, f) - share)


@dataclass(frozen=True)
class Binomial(Family):
    """Family of two classes, coded 0 and 1; the deviance is -2 log-likelihood."""

    name: str = "binomial"
    link: str = "logit"
    loss: str = "log-loss"
    n_scores: int = 1

    def kernel_loss(self, y, weight):
        return LOGISTIC

    def deviance(self, y, score):
        return _log_loss(np.asarray(y, np.float64), np.ascontiguousarray(score[:, 0], np.float64))

    def mean(self, score):
        """Return the probability of the second class, (n,), from the logits `score` (n, 1)."""
        return expit(score[:, 0])

    def variance(self, mean):
        return mean * (1.0 - mean)

    def most_deviance(self, y):
        """Return the limit of a held-out row's deviance, -2 log(1e-5) for any y, as in glmnet."""
        return -2.0 * np.log(LEAST_PROBABILITY)

    def null_intercept(self, y, weight, offset):
        share = np.clip(dot(weight, y), RAREST, 1.0 - RAREST)
        return beside_offset(self, y, weight, offset, np.array([logit(share)]))


@dataclass(frozen=True)
class Proportion(Binomial):
    """Family of success proportions, weighted by the number of trials; deviance per trial."""

    loss: str = "binomial deviance per trial"
    least, most = 0.0, 1.0

    def score(self, mean):
        return logit(np.clip(mean, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))[:, None]

    def deviance(self, y, score):
        least = 2.0 * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))  # minus the smallest deviance
        return np.maximum(super().deviance(y, score) + least, 0.0)


@njit(cache=True, error_model="numpy")
def _log_loss(y, f):
    """Return -2 log-likelihood of 0/1 responses y at logits f, (n,); faster than logaddexp."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = 2.0 * loss_slope(y[i], f[i], 1.0)[0]
    return out
