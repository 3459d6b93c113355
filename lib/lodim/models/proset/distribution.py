"""The distribution of a numeric response, in standard units: mean, variance, quantiles, density.

loss="squared": m(x) = sum_j w_j G_j y_j / B, B = 1 + sum_j w_j G_j (the null model's mean is zero);
variance sum_j w_j G_j e_j^2 / B plus the null model's, e_j the residual of prototype j in a model
without it; quantiles m + s q, q those of the candidates' residuals over their s.

loss="density": p(y | x) = (N(y; 0, 1) + sum_j w_j G_j N(y; y_j, 1 / u^2)) / B, a mixture of normals
with its own mean, variance and quantiles; their levels are those that the candidates' responses
have in their distributions.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from lodim import forms
from lodim.engine.tiles import TILE
from lodim.models.proset.kernels.cpu import DENSITY, ROOT_TAU
from lodim.models.proset.prototypes import impacts, response_values, weighted_sums

HALVINGS = 50  # by which distribution functions are inverted
LEAST = 2.0**-53  # quantiles below this level, and above one minus it, are equal
MOST_NORMALS = 2**18  # that are evaluated together where distribution functions are inverted
CHUNK = 64  # tiles of rows worked on at a time


@forms.record
class Calibration:
    """Percentiles over training rows, each without the prototype that it is itself.

    familiarity : of sum_j w_j G_j(x), Eq. 4.5
    levels : (101,) for numeric responses: with loss="squared", of residuals over their standard
        deviation; with loss="density", of the estimated distribution function at the response, its
        distance from the middle (as a normal quantile) widened as errors of new rows are. Empty
        for classes
    variance : (M,) with loss="squared", what each prototype says of the variance, in units of
        scale^2: the square of its own residual; else empty
    null_variance : the same of the null model
    """

    familiarity: np.ndarray = forms.real(101, least=0)
    levels: np.ndarray = forms.real("levels")
    variance: np.ndarray = forms.real("variances", least=0)
    null_variance: float = forms.real(least=0)


def mean_and_variance(prototypes, calibration, X, n, threads):
    """Return mean and variance of each row, (n,), (n,), in units of scale and scale^2."""
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
    """Return quantiles of each row at the levels (L,), (n, L), in units of scale."""
    calibrated = np.interp(levels, np.arange(101) / 100, calibration.levels)
    if prototypes.loss != DENSITY:
        mean, variance = mean_and_variance(prototypes, calibration, X, n, threads)
        return mean[:, None] + np.sqrt(variance)[:, None] * calibrated
    out = np.empty((n, len(calibrated)))
    step = max(1, MOST_NORMALS // max(1, len(prototypes)))
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        for k, p in enumerate(np.clip(calibrated, LEAST, 1.0 - LEAST)):
            for lo in range(0, len(W), step):
                part = slice(lo, lo + step)
                out[rows, k][part] = _inverse_cdf(prototypes, W[part], total[part], p)
    return out


def _inverse_cdf(prototypes, W, total, p):
    """Quantile of each row at level p, (r,), by bisection; W (r, M) and total (r,): `_mixtures`."""
    y, width = prototypes.y, _widths(prototypes)
    # A mixture's quantile lies among those of its normals. In arcsinh a wide normal does not
    # coarsen the steps of narrow ones.
    ends = np.arcsinh(np.append(y + width * ndtri(p), ndtri(p)))
    low, high = np.full(len(W), ends.min()), np.full(len(W), ends.max())
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        at = np.sinh(middle)
        under = ndtr(at) + np.einsum("ij,ij->i", W, ndtr((at[:, None] - y) / width)) < p * total
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.sinh(0.5 * (low + high))


def cdf(prototypes, X, n, y, threads):
    """Distribution function of each row at its y (n,), (n,)."""
    out = np.empty(n)
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        z = (y[rows, None] - prototypes.y) / _widths(prototypes)
        out[rows] = (ndtr(y[rows]) + np.einsum("ij,ij->i", W, ndtr(z))) / total
    return out


def density(prototypes, X, n, y, threads):
    """Density of each row at its y (n,), (n,)."""
    width, out = _widths(prototypes), np.empty(n)
    for rows, W, total in _mixtures(prototypes, X, n, threads):
        z = (y[rows, None] - prototypes.y) / width
        out[rows] = (
            _normal(y[rows]) + np.einsum("ij,ij->i", W, _normal(z) * (1.0 / width))
        ) / total
    return out


def _mixtures(prototypes, X, n, threads):
    """Slices of rows, the weights W (r, M) of their normals, and W's row sums with the null's."""
    for lo in range(0, len(X), CHUNK):
        rows = slice(lo * TILE, min(n, (lo + CHUNK) * TILE))
        W = impacts(prototypes, X[lo : lo + CHUNK], rows.stop - rows.start, threads)
        yield rows, W, 1.0 + W.sum(axis=1)


def _widths(prototypes):
    """Return standard deviation of each prototype's normal, (M,)."""
    return 1.0 / np.maximum(prototypes.u[prototypes.batch - 1], 1e-300)


def _normal(z):
    """Return standard normal density."""
    return np.exp(-0.5 * z * z) / ROOT_TAU
