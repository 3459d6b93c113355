"""Parts of a family for covariances and tests: weights, score residuals, log-likelihood.

Dispersion phi is one, but estimated for gaussian and gamma (McCullagh & Nelder 1989,
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
    if family.name != "multinomial":
        return linear
    return np.concatenate([np.zeros_like(linear[:, :1]), linear], axis=1)


def working_weights(family, weight, mean):
    """Expected curvature of the negative log-likelihood times phi, by the score, (n,)."""
    return weight * (1.0 if family.name == "gamma" else variance(family, mean))


def curvatures(family, y, weight, mean, observed=False):
    """Curvature of the negative log-likelihood times phi by pairs of scores s >= t, (P, n).

    The expected one, or that at the responses seen. These differ for a gamma family only, whose
    link is not canonical: steps by the expected one then converge slowly.
    """
    if family.name == "gamma" and observed:
        return (weight * y / mean)[None]
    if family.name != "multinomial":
        return working_weights(family, weight, mean)[None]
    p, S = mean.T[1:], mean.shape[1] - 1
    return np.stack([weight * p[s] * ((s == t) - p[t]) for s in range(S) for t in range(s + 1)])


def information(family, X, weight, mean):
    """Expected information times phi of the coefficients, score by score, (S q, S q)."""
    curvature = curvatures(family, None, weight, mean)
    return joined_blocks(np.stack([(X.T * c) @ X for c in curvature]), mean.shape[1] - 1)


def joined_blocks(blocks, S):
    """The symmetric matrix (S q, S q) of the blocks (P, q, q) of pairs of scores s >= t."""
    q = blocks.shape[1]
    out = np.empty((S, q, S, q))
    for block, s, t in zip(blocks, *np.tril_indices(S), strict=True):
        out[s, :, t] = out[t, :, s] = block
    return out.reshape(S * q, S * q)


def slopes(family, y, weight, mean):
    """Slopes of the rows' log-likelihoods times phi by their scores, (n, S)."""
    if family.name == "multinomial":
        return (weight * (np.equal.outer(np.arange(1, mean.shape[1]), y) - mean.T[1:])).T
    residual = weight * (y - mean) / (mean if family.name == "gamma" else 1.0)
    return residual[:, None]


def pearson(family, y, mean):
    """Pearson residuals (y - mu) / sqrt(V(mu)), (n,)."""
    return (y - mean) / np.sqrt(np.maximum(variance(family, mean), 1e-300))


def saturated(y, trials):
    """Log-likelihood of shares y of successes in numbers of trials, each at its own share, (n,)."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))
