"""What covariances and tests need of a family: weights, score residuals, log-likelihood.

Dispersion phi is one but for gaussian and gamma, where it is estimated (McCullagh & Nelder 1989,
Sect. 2.2 and 8.3).
"""

import numpy as np
from scipy.special import gammaln, xlogy

from lodim.family import Proportion

DISPERSED = ("gaussian", "gamma")  # families whose dispersion is estimated: t and F, not z


def variance(family, mean):
    """Variance function V(mu), (n,)."""
    if family.name == "binomial":
        return mean * (1.0 - mean)
    return mean ** {"gaussian": 0, "poisson": 1, "gamma": 2}[family.name]


def all_scores(linear, family):
    """Scores (n, K) of what the coefficients give (n, S); the first of several classes has 0."""
    return np.insert(linear, 0, 0.0, axis=1) if family.name == "multinomial" else linear


def working_weights(family, weight, mean):
    """Expected curvature of the negative log-likelihood times phi, by the score, (n,)."""
    return weight * (1.0 if family.name == "gamma" else variance(family, mean))


def newton_weights(family, y, weight, mean):
    """Curvature of the negative log-likelihood times phi at the responses seen, (n,).

    The expected one but for a gamma family, whose link is not canonical: steps by the expected one
    then converge slowly, and this one is above zero too.
    """
    if family.name == "gamma":
        return weight * y / mean
    return working_weights(family, weight, mean)


def score_residuals(family, y, weight, mean):
    """Slope of the log-likelihood times phi, by the score of each row, (n,)."""
    return weight * (y - mean) / (mean if family.name == "gamma" else 1.0)


def pearson(family, y, mean):
    """Pearson residuals (y - mu) / sqrt(V(mu)), (n,)."""
    return (y - mean) / np.sqrt(np.maximum(variance(family, mean), 1e-300))


def saturated(y, trials):
    """Log-likelihood of shares y of successes in numbers of trials, each at its own share, (n,)."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))


def log_likelihood(family, y, weight, score):
    """Log-likelihood of all rows at their scores (n, K).

    As R's logLik: of a gaussian family at the dispersion that maximizes it, the mean squared
    residual; of a gamma family at the mean deviance.
    """
    n, mean = len(y), family.mean(score)
    if family.name in ("binomial", "multinomial"):
        most = saturated(y, weight).sum() if isinstance(family, Proportion) else 0.0
        return float(most) - 0.5 * float(weight @ family.deviance(y, score))
    if family.name == "poisson":
        return float(weight @ (xlogy(y, mean) - mean - gammaln(y + 1.0)))
    if family.name == "gaussian":
        spread = max(weight @ family.deviance(y, score) / n, 1e-300)
        return float(0.5 * np.log(weight).sum() - 0.5 * n * (np.log(2.0 * np.pi * spread) + 1.0))
    shape = weight.sum() / max(weight @ family.deviance(y, score), 1e-300)
    ratio = y / mean
    log_density = shape * (np.log(shape * ratio) - ratio) - np.log(y) - gammaln(shape)
    return float(weight @ log_density)
