"""Distribution of a numeric response, in standard units: mean, variance, quantiles, density."""

import numpy as np
from scipy.special import ndtr, ndtri

from lodim import forms
from lodim.engine.tiles import TILE
from lodim.models.proset.cpu_kernels import DENSITY, ROOT_TAU
from lodim.models.proset.prototypes import impacts, response_values, weighted_sums

# Prototype j has weight w_j, response y_j and similarity G_j with the row. B = 1 + sum_j w_j G_j.
#
# With loss="squared", the mean is m = sum_j w_j G_j y_j / B and the variance is s^2 = (e_0^2 +
# sum_j w_j G_j e_j^2) / B. Here e_0^2 is the mean squared residual of all rows, and e_j^2 that of
# the rows merged in prototype j. A quantile is m + s q, where q is the quantile of residual / s
# over the training rows.
#
# With loss="density", the density is (N(y; 0, 1) + sum_j w_j G_j N(y; y_j, 1 / u^2)) / B, a mixture
# of normal densities with inverse width u. Quantile levels are calibrated on the training rows.

CHUNK = 64  # tiles of rows per step


@forms.record
class Calibration:
    """Percentiles of training rows' leave-one-out errors and familiarity (total similarity)."""

    familiarity: np.ndarray = forms.real(101, least=0)  # of sum_j w_j G_j(x), Eq. 4.5
    # loss="squared": percentiles of residuals / SD. loss="density": percentiles of the distribution
    # function at the response, widened to those of new rows. Empty for classes.
    levels: np.ndarray = forms.real("levels")
    # loss="squared": (M,), mean squared residuals of M prototypes; otherwise empty.
    variance: np.ndarray = forms.real("variances", least=0)
    null_variance: float = forms.real(least=0)  # e_0^2, mean over all training rows


def mean_and_variance(prototypes, calibration, X, n, threads):
    """Return mean and variance (n,) of the standardized response for the n rows of X (tiles).

    It is standardized by the null model's mean and SD.
    prototypes, calibration : Prototypes and Calibration of the fit"""
    density = prototypes.loss == DENSITY
    second = prototypes.y**2 + _widths(prototypes) ** 2 if density else calibration.variance
    values = np.column_stack([response_values(prototypes), second])
    sums = weighted_sums(prototypes, values, X, n, threads)
    total = 1.0 + sums[:, 0]
    mean = sums[:, 1] / total
    if density:
        return mean, np.maximum((1.0 + sums[:, 2]) / total - mean**2, 0.0)
    return mean, (calibration.null_variance + sums[:, 2]) / total


def quantiles(prototypes, calibration, X, n, levels, threads):
    """Return quantiles (n, len(levels)) of the standardized response for n rows.

    prototypes : Prototypes of the fit; X : (blocks, p, 64) features of the rows, padded
    calibration : Calibration, which corrects `levels` by the errors of training rows"""
    calibrated = np.interp(levels, np.arange(101) / 100, calibration.levels)
    if prototypes.loss != DENSITY:
        mean, variance = mean_and_variance(prototypes, calibration, X, n, threads)
        return mean[:, None] + np.sqrt(variance)[:, None] * calibrated
    out = np.empty((n, len(calibrated)))
    step = max(1, 2**18 // max(1, len(prototypes)))  # rows whose normals fit in the cache
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        for k, p in enumerate(np.clip(calibrated, 2.0**-53, 1.0 - 2.0**-53)):  # never 0 or 1
            for lo in range(0, len(W), step):
                part = slice(lo, lo + step)
                out[rows, k][part] = _inverse_cdf(prototypes, W[part], total[part], p)
    return out


def _inverse_cdf(prototypes, W, total, p):
    """Return the quantiles (r,) at level p of r mixtures of normals, one per row of W.

    W : (r, M) weights of the prototypes' normals; total : (r,) their sum + 1 for the null model"""
    y, width = prototypes.y, _widths(prototypes)
    # A mixture's quantile lies between the quantiles of its normals. Bisection in arcsinh keeps
    # steps fine for narrow normals although others are wide.
    ends = np.arcsinh(np.append(y + width * ndtri(p), ndtri(p)))
    low, high = np.full(len(W), ends.min()), np.full(len(W), ends.max())
    for _ in range(50):
        middle = 0.5 * (low + high)
        at = np.sinh(middle)
        under = ndtr(at) + np.einsum("ij,ij->i", W, ndtr((at[:, None] - y) / width)) < p * total
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.sinh(0.5 * (low + high))


def cdf(prototypes, X, n, y, threads):
    """Return the distribution function (n,) by Prototypes at standardized y (n,) of n rows of X."""
    return _mixed(prototypes, X, n, y, threads, lambda z, width: ndtr(z))


def density(prototypes, X, n, y, threads):
    """Return the density (n,) by Prototypes at standardized y (n,) of n rows of X."""

    def normal(z, width):
        return np.exp(-0.5 * z * z) / ROOT_TAU * (1.0 / width)

    return _mixed(prototypes, X, n, y, threads, normal)


def _mixed(prototypes, X, n, y, threads, normal):
    """Return a density or distribution function (n,) at y of n mixtures of normals, one per row.

    prototypes : Prototypes of the fit; X : (blocks, p, 64) features of the n rows, padded
    y : (n,) standardized responses
    normal : density or distribution function of one normal, given (y - mean) / SD and SD"""
    width, out = _widths(prototypes), np.empty(n)
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        values = normal((y[rows, None] - prototypes.y) / width, width)
        out[rows] = (normal(y[rows], 1.0) + np.einsum("ij,ij->i", W, values)) / total
    return out


def _mixtures(prototypes, X, n, threads):
    """Yield mixtures of normals for blocks of r of the n rows of X: (slice of rows, W, total).

    W : (r, M) weights of the prototypes' normals; total : (r,) their sum, plus 1 for N(0, 1)"""
    for lo in range(0, len(X), CHUNK):
        rows = slice(lo * TILE, min(n, (lo + CHUNK) * TILE))
        W = impacts(prototypes, X[lo : lo + CHUNK], rows.stop - rows.start, threads)
        yield rows, W, 1.0 + W.sum(axis=1)


def _widths(prototypes):
    return 1.0 / np.maximum(prototypes.u[prototypes.batch - 1], 1e-300)
