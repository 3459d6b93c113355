"""Log-likelihood derivatives, IRLS weights and Pearson residuals of rows, for each family."""

import numpy as np
from scipy.special import gammaln, xlogy

from lodim.family.thresholds import tails


def all_scores(linear, family):
    """Return linear predictors (n, K) of all classes; the first is 0 for unordered classes."""
    if family.name != "multinomial":
        return linear
    return np.concatenate([np.zeros_like(linear[:, :1]), linear], axis=1)


def working_weights(family, weight, mean):
    """Return the weights of the rows in iteratively reweighted least squares, given their means."""
    if family.canonical or family.link == "identity":
        return weight * family.variance(mean)
    return weight * mean * family.relative_slope(mean)


def curvatures(family, y, weight, mean, observed=False):
    """Return second derivatives (P, n) of the rows' negative log-likelihoods times the dispersion.

    The P pairs of linear predictors are (0, 0), (1, 0), (1, 1), (2, 0) and so on.
    mean : (n,) or (n, K) fitted means
    observed : False for expected derivatives"""
    if family.shared_slopes:  # always the observed derivatives
        u, above = _ordered_slopes(y, mean)
        S, u, bend = u.shape[1], u.T, (u * (1.0 - 2.0 * above)).T
        pairs = [(s, t) for s in range(S) for t in range(s + 1)]
        return np.stack([weight * (u[s] * u[t] - (s == t) * bend[s]) for s, t in pairs])
    if observed and not family.canonical:
        return (weight * family.curvature(y, mean))[None]
    if family.name != "multinomial":
        return working_weights(family, weight, mean)[None]
    p, S = mean.T[1:], mean.shape[1] - 1
    return np.stack([weight * p[s] * ((s == t) - p[t]) for s in range(S) for t in range(s + 1)])


def joined_blocks(blocks, S):
    """Return a symmetric matrix of S x S blocks; blocks : (P, q, q), its lower triangle by row."""
    q = blocks.shape[1]
    out = np.empty((S, q, S, q))
    for block, s, t in zip(blocks, *np.tril_indices(S), strict=True):
        out[s, :, t] = out[t, :, s] = block
    return out.reshape(S * q, S * q)


def slopes(family, y, weight, mean):
    """Return derivatives (n, S) of rows' log-likelihoods by linear predictors, times dispersion.

    mean : (n,) or (n, K) fitted means"""
    if family.shared_slopes:
        return weight[:, None] * _ordered_slopes(y, mean)[0]
    if family.name == "multinomial":
        return (weight * (np.equal.outer(np.arange(1, mean.shape[1]), y) - mean.T[1:])).T
    return (weight * family.bounded(y - mean) * family.relative_slope(mean))[:, None]


def _ordered_slopes(y, mean):
    """Return log-likelihood derivatives for ordered classes, and P(class above each threshold).

    Both are (n, K - 1); derivatives are by linear predictors. mean : (n, K) class probabilities"""
    below, above = tails(mean)
    code, boundary = y.astype(int), np.arange(1, mean.shape[1])
    side = np.equal.outer(code, boundary) * 1.0 - np.equal.outer(code, boundary - 1)
    own = np.maximum(mean[np.arange(len(y)), code], 1e-300)
    return side * below * above / own[:, None], above


def pearson(family, y, mean):
    """Return Pearson residuals (n,): (y - mean) / sqrt(variance of the family at this mean)."""
    return family.bounded(y - mean) / np.sqrt(np.maximum(family.variance(mean), 1e-300))


def saturated(y, trials):
    """Return the log-likelihood (n,) of proportions y of `trials` if each mean equals its y."""
    ways = gammaln(trials + 1.0) - gammaln(trials * y + 1.0) - gammaln(trials * (1.0 - y) + 1.0)
    return ways + trials * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))
