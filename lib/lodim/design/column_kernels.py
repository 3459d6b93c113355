"""Compiled loops over one column; an empty array `rows` of positions means all rows."""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE

BLOCK = 512
ALL_ROWS = np.empty(0, np.int64)
NO_WEIGHTS = np.empty(0)
NO_ROWS = 0.0, 0.0, 0.0, math.inf, -math.inf  # result of `moments` without rows
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}


def read_only(x):
    """Return x as a read-only contiguous array, so that numba need not compile kernels again."""
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view


def weight_unit(weights):
    """Return a number by which to divide weights (n,) so that their sums of squares are finite."""
    if weights is None or not len(weights) or 1e-100 < weights.max() < 1e100:
        return 1.0
    return float(weights.max())


def as_real(values):
    return read_only(values.astype(np.float64, copy=False))


def kernel_weights(weights, unit=1.0):
    """Return weights (n,) divided by `unit`; an empty array for None, i.e. weights of one."""
    if weights is None:
        return read_only(NO_WEIGHTS)
    return read_only(weights if unit == 1.0 else weights / unit)


@njit(**_OPTIONS)
def moments(x, rows, weights):
    """Return the sum of weights, mean, sum of squared deviations, minimum and maximum of x[rows].

    rows : positions, or empty for all of x; weights : one per row, or empty if all are 1"""
    n = rows.size if rows.size else x.size
    total, mean, spread = 0.0, 0.0, 0.0
    least, greatest = np.inf, -np.inf
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        block_total, block_sum = 0.0, 0.0
        for j in range(start, start + size):
            value = x[rows[j]] if rows.size else x[j]
            weight = weights[j] if weights.size else 1.0
            if weight > 0.0:
                least = min(least, value)
                greatest = max(greatest, value)
                block_total += weight
                block_sum += weight * value
        if block_total == 0.0:
            continue
        center = block_sum / block_total
        block_spread = 0.0
        for j in range(start, start + size):
            apart = (x[rows[j]] if rows.size else x[j]) - center
            block_spread += (weights[j] if weights.size else 1.0) * (apart * apart)
        delta = center - mean
        total += block_total
        mean += delta * (block_total / total)
        spread += block_spread + delta * delta * ((total - block_total) * (block_total / total))
    return total, mean, spread, least, greatest


def merge_moments(parts):
    """Merge the moments of several ranges of rows; return those of all these rows, (..., 5).

    parts : (..., 5) per range: weight sum, mean, sum of squared deviations, min and max"""
    parts = iter(parts)
    total, mean, spread, least, greatest = np.moveaxis(np.asarray(next(parts)), -1, 0)
    for part in parts:
        part_total, part_mean, part_spread, *ends = np.moveaxis(np.asarray(part), -1, 0)
        both = total + part_total
        share = np.divide(part_total, both, out=np.zeros_like(both), where=both > 0.0)
        delta = np.where(total > 0.0, part_mean - mean, 0.0)
        apart = np.where(part_total > 0.0, delta * delta * (total * share), 0.0)
        mean = np.where(total > 0.0, mean + delta * share, part_mean)
        spread = spread + part_spread + apart
        least, greatest = np.minimum(least, ends[0]), np.maximum(greatest, ends[1])
        total = both
    return np.stack([total, mean, spread, least, greatest], axis=-1)


def inverses(scale, dtype):
    """Return factors (p,) that standardize features: 1 / scale, or 0 to divide by `scale`.

    dtype : type of the features"""
    if np.dtype(dtype) == np.float64:
        return np.zeros(len(scale))
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.asarray(scale, np.float64)
    return np.where(np.isfinite(inverse), inverse, 0.0)


@njit(**_OPTIONS)
def pack(x, rows, mean, scale, inverse, tiles, k, size):
    """Standardize feature k of all rows, with values x; write it to `tiles` (n_tiles, p, 64).

    rows : position in x per row, empty for 0, 1, 2 etc.
    inverse : 1 / scale, or 0 to divide by scale
    size : output (64,), in entry j the largest |value - mean| of rows j, j + 64 etc."""
    for j in range(TILE):
        size[j] = 0.0
    n = rows.size if rows.size else x.size
    for tile in range(tiles.shape[0]):
        start, out = tile * TILE, tiles[tile, k]
        if not rows.size:
            part = x[start : min(n, start + TILE)]
            for j in range(part.size):
                size[j] = max(size[j], abs(part[j] - mean))
            if inverse == 0.0:
                for j in range(part.size):
                    out[j] = (part[j] - mean) / scale
            else:
                for j in range(part.size):
                    out[j] = (part[j] - mean) * inverse
            continue
        for j in range(min(TILE, n - start)):
            value = x[rows[start + j]] - mean
            size[j] = max(size[j], abs(value))
            out[j] = value / scale if inverse == 0.0 else value * inverse
