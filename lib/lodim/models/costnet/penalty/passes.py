"""Passes over the rows: scores, slopes and curvatures of a loss, and moments of columns."""

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import count_blocks, for_blocks, on_host, over_rows, sum_blocks
from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative, log1p_unit
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.family.huber import HUBER
from lodim.family.losses import tile_curvature, tile_loss_slope
from lodim.models.costnet.penalty.prox import FAST, INNER

SOFTMAX = -1, 0.0, 0.0, 0.0, 0.0  # loss of several classes; others are in `lodim.family.losses`
LEAST = 1e-300  # smallest probability or curvature
# With its own fastmath, this caller would change the families' functions for all their callers.
EXACT = FAST | {"fastmath": False}


def scores_after(X, columns, step, f, threads):
    """Return linear predictors f after coefficients of `columns` change by `step` (K, columns)."""
    if not on_host(X):
        return X.add(_add_scores, f, columns, step)
    f = f.copy()
    over_rows(_add_scores, X, columns, step, f, threads=threads)
    return f


def derivatives(X, y, weight, f, *, loss, columns, curvatures, step, threads):
    """Return half the weighted mean deviance, its bend, slope and moments, as one flat array.

    X, y, weight, f : rows in blocks of 64; f has their scores (linear predictors)
    loss : code and constants of the loss
    columns : C columns of X; -1 is the intercept
    curvatures : number J^2 of curvatures per row: 0, 1 (average) or K^2 (pairs of K scores)
    step : (K, C) change of the coefficients to make first, or None
    bend : sum over rows of squared slope / curvature
    slope : (K, C) negative gradient in the coefficients
    moments : (J, J, C, C) sums over rows of curvature times products of two columns"""
    if step is not None:
        f = scores_after(X, columns, step, f, threads)
    r, h = np.empty_like(f), np.empty((len(f), max(1, curvatures), TILE))
    found = [sum_blocks(_losses, f, (2,), y, weight, loss, r, h, threads=threads)]
    found.append(sum_blocks(_slopes, X, (f.shape[1], len(columns)), r, columns, threads=threads))
    if curvatures:
        found.append(_moments(X, columns, h, threads))
    return np.concatenate([part.ravel() for part in found])


def padded(values, n_tiles, spread=1.0):
    """Return values (n,) or (n, K), in units of `spread`, as n_tiles zero-padded 64-row blocks."""
    if values.ndim == 1:
        return tiles.pad(values if spread == 1.0 else values / spread, n_tiles)
    out = np.empty((n_tiles, values.shape[1], TILE))
    for k in range(values.shape[1]):
        out[:, k] = padded(values[:, k], n_tiles, spread)
    return out


@njit(**FAST)
def _add_scores(lo, hi, X, columns, step, f):
    # The intercept comes first, if present; the other columns are added four at a time.
    first = 1 if columns.size > 0 and columns[0] < 0 else 0
    fours = columns.size - (columns.size - first) % 4
    for t in range(lo * TILES_PER_BLOCK, min(hi * TILES_PER_BLOCK, X.shape[0])):
        for k in range(step.shape[0]):
            out, move = f[t, k], step[k]
            if first == 1:
                one = move[0]
                for i in range(TILE):
                    out[i] += one
            for a in range(first, fours, 4):
                x0, x1 = X[t, columns[a]], X[t, columns[a + 1]]
                x2, x3 = X[t, columns[a + 2]], X[t, columns[a + 3]]
                m0, m1, m2, m3 = move[a], move[a + 1], move[a + 2], move[a + 3]
                for i in range(TILE):
                    out[i] += m0 * x0[i] + m1 * x1[i] + (m2 * x2[i] + m3 * x3[i])
            for a in range(fours, columns.size):
                x, one = X[t, columns[a]], move[a]
                for i in range(TILE):
                    out[i] += one * x[i]


@njit(**INNER, forceinline=True)
def _any(values):
    for k in range(values.shape[0]):
        for i in range(TILE):
            if values[k, i] != 0.0:
                return True
    return False


@njit(**FAST)
def _slopes(lo, hi, partials, X, r, columns):
    for block in range(lo, hi):
        total = partials[block]
        total[:] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            if not _any(r[t]):  # held-out rows have weight zero
                continue
            for k in range(r.shape[1]):
                row = r[t, k]
                for a in range(columns.size):
                    part = 0.0
                    if columns[a] < 0:
                        for i in range(TILE):
                            part += row[i]
                    else:
                        x = X[t, columns[a]]
                        for i in range(TILE):
                            part += row[i] * x[i]
                    total[k, a] += part


@njit(**FAST)
def _losses(lo, hi, partials, f, y, weight, loss, r, h):
    values = np.empty(TILE)
    for block in range(lo, hi):
        total, bend = 0.0, 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, f.shape[0])):
            if loss[0] == SOFTMAX[0]:
                value, curve = _softmax(f[t], y[t], weight[t], r[t], h[t])
            elif loss[0] == LOGISTIC[0]:  # one exponential for the loss and both derivatives
                value, curve = _logistic(f[t, 0], y[t], weight[t], r[t, 0], h[t, 0])
            else:
                value, curve = _one_score(loss, f[t, 0], y[t], weight[t], values, r[t, 0], h[t, 0])
            total += value
            bend += curve
        partials[block, 0], partials[block, 1] = total, bend


@njit(**INNER, forceinline=True)
def _logistic(f, y, weight, r, h):
    total, bend = 0.0, 0.0
    for i in range(TILE):
        e = exp_negative(-abs(f[i]))
        far = e / (1.0 + e)
        p = far if f[i] < 0.0 else 1.0 - far
        r[i] = weight[i] * (y[i] - p)
        h[i] = weight[i] * far * (1.0 - far)
        total += weight[i] * (max(f[i], 0.0) + log1p_unit(e) - y[i] * f[i])
        bend += weight[i] * (e if (f[i] > 0.0) == (y[i] > 0.5) else 1.0 / max(e, LEAST))
    return total, bend


@njit(**EXACT, forceinline=True)
def _one_score(loss, f, y, weight, values, r, h):
    total, bend = 0.0, 0.0
    share = 0.5 if loss[0] in (SQUARED[0], HUBER) else 1.0  # others are half the deviance already
    tile_loss_slope(loss, y, f, weight, values, r)
    tile_curvature(loss, y, f, weight, h)
    for i in range(TILE):
        r[i] *= -share
        h[i] = share * max(h[i], loss[1] * weight[i])
        total += share * values[i]
        bend += r[i] * r[i] / max(h[i], LEAST)
    return total, bend


@njit(**INNER, forceinline=True)
def _softmax(f, y, weight, r, h):
    K, total, bend = f.shape[0], 0.0, 0.0
    p = np.empty(K)
    for i in range(TILE):
        largest, norm = f[0, i], 0.0
        for k in range(1, K):
            largest = max(largest, f[k, i])
        for k in range(K):
            p[k] = np.exp(f[k, i] - largest)
            norm += p[k]
        total += weight[i] * (largest + np.log(norm) - f[int(y[i]), i])
        own = max(p[int(y[i])] / norm, LEAST)
        bend += weight[i] * (1.0 - own) / own
        for k in range(K):
            p[k] /= norm
            r[k, i] = weight[i] * ((1.0 if k == int(y[i]) else 0.0) - p[k])
        if h.shape[0] == 1:  # the mean eigenvalue of the Hessian on scores that sum to zero
            h[0, i] = 0.0
            for k in range(K):
                h[0, i] += weight[i] * p[k] * (1.0 - p[k]) / (K - 1)
            continue
        for k in range(K):
            for m in range(K):
                h[k * K + m, i] = weight[i] * p[k] * ((1.0 if k == m else 0.0) - p[m])
    return total, bend


@njit(**FAST)
def _add_moments(lo, hi, partials, X, columns, h, bounds):
    J, C = partials.shape[1], columns.size
    x, hx = np.ones((C, TILE)), np.empty((C, TILE))
    for chunk in range(lo, hi):
        first = bounds[chunk] * TILES_PER_BLOCK
        for t in range(first, min(bounds[chunk + 1] * TILES_PER_BLOCK, X.shape[0])):
            if not _any(h[t]):
                continue
            for a in range(C):
                if columns[a] >= 0:
                    for i in range(TILE):
                        x[a, i] = X[t, columns[a], i]
            for k in range(J):
                for m in range(k + 1):
                    for a in range(C):
                        for i in range(TILE):
                            hx[a, i] = x[a, i] * h[t, k * J + m, i]
                    for first in range(0, C, 48):  # of a symmetric matrix half is enough
                        end = min(first + 48, C)
                        out = np.dot(hx[first:end], x[:end].T)
                        for a in range(first, end):
                            row, sums = out[a - first], partials[chunk, k, m, a]
                            for b in range(end):
                                sums[b] += row[b]
        for k in range(J):
            for m in range(k + 1):
                for a in range(C):
                    for b in range(a):
                        partials[chunk, k, m, b, a] = partials[chunk, k, m, a, b]
        for k in range(J):
            for m in range(k):
                for a in range(C):
                    for b in range(C):
                        partials[chunk, m, k, a, b] = partials[chunk, k, m, b, a]


def _moments(X, columns, h, threads):
    """Return sums over rows of products of two of C columns, (J, J, C, C), with weights h."""
    J = round(h.shape[1] ** 0.5)
    size = (h.shape[1] * len(columns) ** 2) or 1
    chunks = max(1, min(count_blocks(X), 2**25 // size))  # their sums take at most 256 MiB
    bounds = count_blocks(X) * np.arange(chunks + 1) // chunks
    partials = np.zeros((chunks, J, J, len(columns), len(columns)))
    for_blocks(_add_moments, chunks, partials, X, columns, h, bounds, threads=threads)
    return partials[0] if chunks == 1 else partials.sum(axis=0)
