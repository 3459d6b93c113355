"""The distribution of a numeric response, in standard units: mean, variance, quantiles, density.

loss="squared": m(x) = sum_j w_j G_j y_j / B, B = 1 + sum_j w_j G_j (the null model's mean is zero);
variance sum_j w_j G_j e_j^2 / B beside the null model's, e_j the residual of prototype j in a model
without it; quantiles m + s q, q those of the candidates' residuals over their s.

loss="density": p(y | x) = (N(y; 0, 1) + sum_j w_j G_j N(y; y_j, 1 / u^2)) / B, a mixture of normals
with its own mean, variance and quantiles; their levels are those that the candidates' responses
have in their distributions.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from lodim.engine.tiles import TILE
from lodim.models.proset.kernels.cpu import DENSITY, ROOT_TAU
from lodim.models.proset.prototypes import impacts, moments, sums

HALVINGS = 50  # by which distribution functions are inverted
LEAST = 2.0**-53  # level below which, and above one less which, quantiles are not told apart
MOST = 2**18  # normals looked at together where distribution functions are inverted
CHUNK = 64  # tiles of rows worked on at a time


def mean_and_variance(prototypes, calibration, X, n, threads):
    """(n,), (n,) in units of scale and scale^2."""
    second = prototypes.y**2 + _width(prototypes) ** 2
    if prototypes.loss != DENSITY:
        second = calibration.variance
    S = sums(prototypes, np.column_stack([moments(prototypes), second]), X, n, threads)
    B = 1.0 + S[:, 0]
    mean = S[:, 1] / B
    if prototypes.loss != DENSITY:
        return mean, (calibration.null_variance + S[:, 2]) / B
    return mean, np.maximum((1.0 + S[:, 2]) / B - mean**2, 0.0)


def quantiles(prototypes, calibration, X, n, levels, threads):
    """Quantiles of each row, (n, L)."""
    honest = np.interp(levels, np.arange(101) / 100, calibration.levels)
    if prototypes.loss != DENSITY:
        mean, variance = mean_and_variance(prototypes, calibration, X, n, threads)
        return mean[:, None] + np.sqrt(variance)[:, None] * honest
    out = np.empty((n, len(honest)))
    for rows, W, B in _mixtures(prototypes, X, n, threads):
        for k, p in enumerate(np.clip(honest, LEAST, 1.0 - LEAST)):
            out[rows, k] = _inverted(prototypes, W, B, p)
    return out


def _inverted(prototypes, W, B, p):
    """Where each row's distribution function is p, (r,), by bisection; W (r, M), B (r,)."""
    out, step = np.empty(len(W)), max(1, MOST // max(1, len(prototypes)))
    for lo in range(0, len(W), step):
        part = slice(lo, lo + step)
        out[part] = _bisected(prototypes, W[part], B[part], p)
    return out


def _bisected(prototypes, W, B, p):
    y, width = prototypes.y, _width(prototypes)
    # A mixture's quantile lies among those of its normals. In arcsinh a wide normal does not
    # coarsen the steps beside narrow ones.
    ends = np.arcsinh(np.append(y + width * ndtri(p), ndtri(p)))
    low, high = np.full(len(W), ends.min()), np.full(len(W), ends.max())
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        at = np.sinh(middle)
        under = ndtr(at) + np.einsum("ij,ij->i", W, ndtr((at[:, None] - y) / width)) < p * B
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.sinh(0.5 * (low + high))


def below(prototypes, X, n, y, threads):
    """Distribution function of each row at its y (n,)."""
    return _at(prototypes, X, n, y, ndtr, threads)


def density(prototypes, X, n, y, threads):
    """Density of each row at its y (n,)."""
    return _at(prototypes, X, n, y, _normal, threads)


def _at(prototypes, X, n, y, function, threads):
    width, out = _width(prototypes), np.empty(n)
    power = 1.0 / width if function is _normal else np.ones(len(width))
    for rows, W, B in _mixtures(prototypes, X, n, threads):
        z = (y[rows, None] - prototypes.y) / width
        out[rows] = (function(y[rows]) + np.einsum("ij,ij->i", W, function(z) * power)) / B
    return out


def _mixtures(prototypes, X, n, threads):
    """Slices of rows, the weights of their normals and what these add up to with the null's."""
    for lo in range(0, len(X), CHUNK):
        rows = slice(lo * TILE, min(n, (lo + CHUNK) * TILE))
        W = impacts(prototypes, X[lo : lo + CHUNK], rows.stop - rows.start, threads)
        yield rows, W, 1.0 + W.sum(axis=1)


def _width(prototypes):
    """Standard deviation of each prototype's normal; zero where the loss has none."""
    u = prototypes.u[prototypes.batch - 1]
    return 1.0 / np.maximum(u, 1e-300) if prototypes.loss == DENSITY else np.zeros(len(prototypes))


def _normal(z):
    return np.exp(-0.5 * z * z) / ROOT_TAU
