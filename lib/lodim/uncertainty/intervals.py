"""Confidence limits from replicates of a weighted bootstrap, computed from arrays."""

import numpy as np
from scipy.special import ndtr, ndtri

KINDS = "percentile", "bca"
STEEPEST = 0.25  # largest absolute acceleration for which the formula is monotone
NOISE = 0.65  # sqrt(n / R^3) times this is the standard error of an acceleration
MOST_NOISE = 0.02  # standard error above which an acceleration is set to zero
CHUNK = 2**22  # largest number of values of a product at a time


def percentile(replicates, level):
    """Return limits (2, q) that contain the share `level` of replicates (R, q), ignoring NaN."""
    return _quantiles(replicates, np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])[:, None])


def bca(replicates, estimate, acceleration, level):
    """Return bias-corrected and accelerated limits (2, q) of replicates (R, q) (Efron 1987).

    Eq. 2.3 is for resampled rows. Exponential weights are more skewed (third moment 2 instead of
    1), so z0 is shifted by a, and a percentile z by a (z^2 - 1), where a is the acceleration."""
    known = np.maximum(np.isfinite(replicates).sum(axis=0), 1)
    below = (replicates < estimate).sum(axis=0) + 0.5 * (replicates == estimate).sum(axis=0)
    a = np.clip(acceleration, -STEEPEST, STEEPEST)
    z0 = ndtri(np.clip(below / known, 0.5 / known, 1.0 - 0.5 / known)) - a
    z = ndtri(np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level]))[:, None]
    z = z0 + (z0 + z) / np.maximum(1.0 - a * (z0 + z), 0.1)
    return _quantiles(replicates, ndtr(z - a * (z**2 - 1.0)))


def accelerations(replicates, weights):
    """Return the acceleration (q,) of each statistic: 1/6 of the skewness of the rows' influence.

    Influence is the covariance of weight and statistic over R replicates (Efron 2014, Sect. 4). Too
    uncertain accelerations are zero. weights : function k -> weights (n,) of replicate k"""
    R, q = replicates.shape
    n = len(weights(0))
    if NOISE * np.sqrt(n / R**3) > MOST_NOISE:
        return np.zeros(q)
    apart = np.nan_to_num(replicates - _mean(replicates))
    spread = np.sqrt((apart**2).sum(axis=0) / np.maximum(np.isfinite(replicates).sum(axis=0), 1))
    third = np.empty(q)
    for lo in range(0, q, max(1, CHUNK // n)):
        part = slice(lo, lo + max(1, CHUNK // n))
        influence = np.zeros((n, len(third[part])))
        for k in range(R):
            influence += np.outer(weights(k) - 1.0, apart[k, part] / R)
        third[part] = (influence**3).sum(axis=0)
    return np.divide(third, 6.0 * spread**3, out=np.zeros(q), where=spread > 0.0)


def standard_errors(replicates):
    """Return the standard deviations (q,) of bootstrap replicates (R, q), ignoring NaN."""
    apart = replicates - _mean(replicates)
    known = np.isfinite(replicates).sum(axis=0)
    square = np.nan_to_num(apart**2).sum(axis=0) / np.maximum(known - 1, 1)
    return np.where(known > 1, np.sqrt(square), np.nan)


def biases(replicates, estimate):
    """Return the means of bootstrap replicates (R, q) minus the estimates (q,)."""
    return _mean(replicates) - estimate


def _mean(replicates):
    known = np.isfinite(replicates)
    return np.where(known, replicates, 0.0).sum(axis=0) / np.where(
        known.any(axis=0), known.sum(axis=0), np.nan
    )


def _quantiles(replicates, shares):
    """Return quantiles (m, q) of the columns of replicates (R, q), ignoring NaN.

    shares : (m, 1), or (m, q) with different shares per column"""
    shares = np.broadcast_to(shares, (len(shares), replicates.shape[1]))
    out = np.full(shares.shape, np.nan)
    for j, column in enumerate(replicates.T):
        column = column[np.isfinite(column)]
        if column.size:
            out[:, j] = np.quantile(column, shares[:, j], method="weibull")
    return out
