"""Derivatives, weights and residuals of families, for covariances and tests.

The dispersion phi is estimated for gaussian and gamma; otherwise it is 1 (McCullagh & Nelder 1989,
Sect. 2.2 and 8.3).
"""

import numpy as np
from scipy.special import gammaln, xlogy

DISPERSED = ("gaussian", "gamma")  # families whose dispersion is estimated: t and F, not z


def variance(family, mean):
    """Return the variance function V(mu) of a family at the means, (n,)."""
    if family.name == "binomial":
        return mean * (1.0 - mean)
    return mean ** {"gaussian": 0, "poisson": 1, "gamma": 2}[family.name]


def all_scores(linear, family):
    """Return scores (n, K) from linear predictors (n, S); of several classes the first has 0."""
    if family.name != "multinomial":
        return linear
    return np.concatenate([np.zeros_like(linear[:, :1]), linear], axis=1)


def working_weights(family, weight, mean):
    """Return phi times the expected second derivative of each row's -log-likelihood, (n,).

    The derivative is with respect to the row's score.
    """
    return weight * (1.0 if family.name == "gamma" else variance(family, mean))


def curvatures(family, y, weight, mean, observed=False):
    """Return phi times second derivatives of each row's -log-likelihood, (P, n).

    The P pairs are pairs of scores s >= t. Derivatives are expected, or with `observed` at the
    actual responses. The two differ only for gamma, whose link is not canonical: Newton steps with
    the expected one then converge slowly.
    """
    if family.name == "gamma" and observed:
        return (weight * y / mean)[None]
    if family.name != "multinomial":
        return working_weights(family, weight, mean)[None]
    p, S = mean.T[1:], mean.shape[1] - 1
    return np.stack([weight * p[s] * ((s == t) - p[t]) for s in range(S) for t in range(s + 1)])


def information(family, X, weight, mean):
    """Return phi times the expected information of the coefficients, score by score, (S q, S q)."""
    curvature = curvatures(family, None, weight, mean)
    return joined_blocks(np.stack([(X.T * c) @ X for c in curvature]), mean.shape[1] - 1)


def joined_blocks(blocks, S):
    """Return the symmetric matrix (S q, S q) with blocks (P, q, q) of pairs of scores s >= t."""
    q = blocks.shape[1]
    out = np.empty((S, q, S, q))
    for block, s, t in zip(blocks, *np.tril_indices(S), strict=True):
        out[s, :, t] = out[t, :, s] = block
    return out.reshape(S * q, S * q)


def slopes(family, y, weight, mean):
    """Return phi times the derivatives of the rows' log-likelihoods by their scores, (n, S)."""
    if family.name == "multinomial":
        return (weight * (np.equal.outer(np.arange(1, mean.shape[1]), y) - mean.T[1:])).T
    residual = weight * (y - mean) / (mean if family.name == "gamma" else 1.0)
    return residual[:, None]


def pearson(family, y, mean):
    """Return the Pearson residuals (y - mu) / sqrt(V(mu)), (n,)."""
    return (y - mean) / np.sqrt(np.maximum(variance(family, mean), 1e-300))


def saturated(y, trials):
    """Return the log-likelihood (n,) of proportions y, each at its own observed proportion."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))
