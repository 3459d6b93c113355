"""What covariances and tests need of a family: weights, score residuals, log-likelihood.

Dispersion phi is one but for gaussian and gamma, where it is estimated (McCullagh & Nelder 1989,
Sect. 2.2 and 8.3).
"""

import numpy as np
from scipy.special import gammaln, xlogy

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


def curvatures(family, y, weight, mean):
    """Curvature of the negative log-likelihood times phi at the responses seen, (n,).

    The expected one but for a gamma family, whose link is not canonical: steps by the expected one
    then converge slowly, and this one is above zero too. None for several classes.
    """
    if family.name == "gamma":
        return weight * y / mean
    return None if family.name == "multinomial" else working_weights(family, weight, mean)


def information(family, X, weight, mean, curvature=None):
    """Information times phi of the coefficients, score by score, (S q, S q).

    The expected one unless the `curvature` (n,) of a family of one score is given.
    """
    if family.name != "multinomial":
        c = working_weights(family, weight, mean) if curvature is None else curvature
        return X.T @ (c[:, None] * X)
    q, S = X.shape[1], mean.shape[1] - 1
    out = np.empty((S, q, S, q))
    for k in range(S):
        for j in range(k + 1):
            p = mean[:, k + 1] * ((k == j) - mean[:, j + 1])
            block = X.T @ ((weight * p)[:, None] * X)
            out[k, :, j, :] = block
            out[j, :, k, :] = block.T
    return out.reshape(S * q, S * q)


def slopes(family, y, weight, mean):
    """Slopes of the rows' log-likelihoods times phi by their scores, (n, S)."""
    if family.name == "multinomial":
        return weight[:, None] * (np.equal.outer(y, np.arange(mean.shape[1])) - mean)[:, 1:]
    residual = weight * (y - mean) / (mean if family.name == "gamma" else 1.0)
    return residual[:, None]


def pearson(family, y, mean):
    """Pearson residuals (y - mu) / sqrt(V(mu)), (n,)."""
    return (y - mean) / np.sqrt(np.maximum(variance(family, mean), 1e-300))


def saturated(y, trials):
    """Log-likelihood of shares y of successes in numbers of trials, each at its own share, (n,)."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))
