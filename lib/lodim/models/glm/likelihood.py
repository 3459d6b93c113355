"""Derivatives, weights and residuals of families, for covariances and tests.

The dispersion phi is 1 unless the family says that it is estimated (McCullagh & Nelder 1989,
Sect. 2.2 and 8.3).
"""

import numpy as np
from scipy.special import gammaln, xlogy


def all_scores(linear, family):
    """Return scores (n, K) from linear predictors (n, S); of several classes the first has 0."""
    if family.name != "multinomial":
        return linear
    return np.concatenate([np.zeros_like(linear[:, :1]), linear], axis=1)


def working_weights(family, weight, mean):
    """Return phi times the expected second derivative of each row's -log-likelihood, (n,).

    The derivative is with respect to the row's score.
    """
    if family.canonical:
        return weight * family.variance(mean)
    return weight * mean * family.relative_slope(mean)


def curvatures(family, y, weight, mean, observed=False):
    """Return phi times second derivatives of each row's -log-likelihood, (P, n).

    The P pairs are pairs of scores s >= t. Derivatives are expected values, or with `observed`
    derivatives at the actual responses, which differ if the link is not canonical: Newton steps
    with expected derivatives then converge slowly.
    """
    if observed and not family.canonical:
        return (weight * family.curvature(y, mean))[None]
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
    return (weight * (y - mean) * family.relative_slope(mean))[:, None]


def pearson(family, y, mean):
    """Return the Pearson residuals (y - mu) / sqrt(V(mu)), (n,)."""
    return (y - mean) / np.sqrt(np.maximum(family.variance(mean), 1e-300))


def saturated(y, trials):
    """Return the log-likelihood (n,) of proportions y, each at its own observed proportion."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))
