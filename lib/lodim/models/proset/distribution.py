"""Distribution of a numeric response, in standard units: mean, variance, quantiles, density.

loss="squared": the mean is m(x) = sum_j w_j G_j y_j / B with B = 1 + sum_j w_j G_j (the null
model's mean is zero). The variance is sum_j w_j G_j e_j^2 / B plus the null model's variance, where
e_j is the residual of prototype j in a model without it. Quantiles are m + s q, where q are the
quantiles of the candidates' residuals divided by their s.

loss="density": p(y | x) = (N(y; 0, 1) + sum_j w_j G_j N(y; y_j, 1 / u^2)) / B, a mixture of normals
with its own mean, variance and quantiles. The levels of quantiles are calibrated by the levels that
the candidates' responses have in their distributions.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from lodim import forms
from lodim.engine.tiles import TILE
from lodim.models.proset.kernels.cpu import DENSITY, ROOT_TAU
from lodim.models.proset.prototypes import impacts, response_values, weighted_sums

HALVINGS = 50  # steps of bisection to invert distribution functions
MIN_LEVEL = 2.0**-53  # smallest level of a quantile; 1 minus it is the largest
MOST_NORMALS = 2**18  # normals evaluated together to invert distribution functions
CHUNK = 64  # tiles of rows per step


@forms.record
class Calibration:
    """Percentiles over training rows, each row without its own prototype (weighted training row).

    familiarity : percentiles of sum_j w_j G_j(x), Eq. 4.5: how near a row is to the prototypes
    levels : (101,) for numeric responses. loss="squared": percentiles of residuals divided by their
        standard deviation. loss="density": percentiles of the estimated distribution function at
        the response, whose distance from the median (as a normal quantile) is widened to that of
        new rows. Empty for classes
    variance : (M,) for loss="squared", the squared residual of each of M prototypes, in units of
        scale^2 (variance of the response); otherwise empty
    null_variance : variance of the null model, in units of scale^2
    """

    familiarity: np.ndarray = forms.real(101, least=0)
    levels: np.ndarray = forms.real("levels")
    variance: np.ndarray = forms.real("variances", least=0)
    null_variance: float = forms.real(least=0)


def mean_and_variance(prototypes, calibration, X, n, threads):
    """Return mean (n,) and variance (n,) of each row's response, in units of scale and scale^2.

    scale is the response's standard deviation; X holds the n rows as tiles (blocks of 64 rows).
    """
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
    """Return the quantiles of each row's response at levels (L,), (n, L), in units of scale.

    scale is the response's standard deviation; X holds the n rows as tiles (blocks of 64 rows).
    """
    calibrated = np.interp(levels, np.arange(101) / 100, calibration.levels)
    if prototypes.loss != DENSITY:
        mean, variance = mean_and_variance(prototypes, calibration, X, n, threads)
        return mean[:, None] + np.sqrt(variance)[:, None] * calibrated
    out = np.empty((n, len(calibrated)))
    step = max(1, MOST_NORMALS // max(1, len(prototypes)))
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        for k, p in enumerate(np.clip(calibrated, MIN_LEVEL, 1.0 - MIN_LEVEL)):
            for lo in range(0, len(W), step):
                part = slice(lo, lo + step)
                out[rows, k][part] = _inverse_cdf(prototypes, W[part], total[part], p)
    return out


def _inverse_cdf(prototypes, W, total, p):
    """Return the quantile of each row at level p, (r,), by bisection.

    A row's distribution is a mixture of one normal density per prototype (weighted training row)
    and the null model's. W (r, M) are the weights of the M prototypes and total (r,) is 1 plus
    their sum.
    """
    y, width = prototypes.y, _widths(prototypes)
    # A mixture's quantile lies between the quantiles of its normals. Bisection in arcsinh keeps
    # steps fine for narrow normals although others are wide.
    ends = np.arcsinh(np.append(y + width * ndtri(p), ndtri(p)))
    low, high = np.full(len(W), ends.min()), np.full(len(W), ends.max())
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        at = np.sinh(middle)
        under = ndtr(at) + np.einsum("ij,ij->i", W, ndtr((at[:, None] - y) / width)) < p * total
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.sinh(0.5 * (low + high))


def cdf(prototypes, X, n, y, threads):
    """Return the estimated distribution function of each row at its response y (n,), (n,).

    Only for loss="density"; X holds the n rows as tiles (blocks of 64 rows).
    """
    out = np.empty(n)
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        z = (y[rows, None] - prototypes.y) / _widths(prototypes)
        out[rows] = (ndtr(y[rows]) + np.einsum("ij,ij->i", W, ndtr(z))) / total
    return out


def density(prototypes, X, n, y, threads):
    """Return the estimated density of each row at its response y (n,), (n,).

    Only for loss="density"; X holds the n rows as tiles (blocks of 64 rows).
    """
    width, out = _widths(prototypes), np.empty(n)
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        z = (y[rows, None] - prototypes.y) / width
        out[rows] = (
            _normal(y[rows]) + np.einsum("ij,ij->i", W, _normal(z) * (1.0 / width))
        ) / total
    return out


def _mixtures(prototypes, X, n, threads):
    """Yield slices of rows, and for each the mixture that describes its rows' responses.

    A mixture has the weights W (r, M) of the normal densities of M prototypes (weighted training
    rows) for r rows, and 1 plus the row sums of W.
    """
    for lo in range(0, len(X), CHUNK):
        rows = slice(lo * TILE, min(n, (lo + CHUNK) * TILE))
        W = impacts(prototypes, X[lo : lo + CHUNK], rows.stop - rows.start, threads)
        yield rows, W, 1.0 + W.sum(axis=1)


def _widths(prototypes):
    """Return the SD of the normal density around each prototype's target, (M,).

    Prototypes are M weighted training rows.
    """
    return 1.0 / np.maximum(prototypes.u[prototypes.batch - 1], 1e-300)


def _normal(z):
    """Return the standard normal density at z."""
    return np.exp(-0.5 * z * z) / ROOT_TAU
