"""Passes over many rows: sums over blocks, in a basis in which columns are nearly orthogonal.

Of columns x of a row, the constant (-1) first, a pass sees z = T'x, where T is the inverse of the
triangle R of a QR decomposition of all rows: sums of products z z' then lose no digits, which those
of x do where columns are nearly collinear (Golub & Van Loan 2013, Sect. 5.3).
"""

import math

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads, for_blocks, sum_blocks
from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative, log1p_unit
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.family import LARGEST_LOG

FAST = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
CODES = {"gaussian": 0, "binomial": 1, "poisson": 2, "gamma": 3, "multinomial": 4}
GAUSSIAN, BINOMIAL, POISSON, GAMMA, MULTINOMIAL = range(5)
OBSERVED, EXPECTED, SQUARES = range(3)  # curvatures, or squares of slopes
WHOLE = 1e-10  # what a leverage of one may lack
CHUNK = 8 * TILE  # rows that join a triangle at once
N_TOTALS = 3  # deviance, squares of Pearson residuals, rows of leverage one


def triangle(X, weights, columns):
    """R (q, q) of a QR decomposition of sqrt(weight) times some columns, of the rows of a span.

    columns : (q,) int, -1 the constant; weights : (n,), or None where all are one
    """
    n_blocks, q = -(-len(X) // TILES_PER_BLOCK), len(columns)
    blocks, weight = np.zeros((n_blocks, q, q)), tiles.pad(weights, len(X))
    threads = available_threads()
    for_blocks(_triangles, n_blocks, blocks, X, weight, columns, threads=threads)
    return joined(blocks)


def joined(triangles):
    """R (q, q) of the rows of several triangles (k, q, q), one below another, in order."""
    R = np.array(triangles[0])
    for other in triangles[1:]:
        _add_rows(R, np.ascontiguousarray(other.T), np.empty(len(R)))
    return R


def sums(X, y, weights, offset, *, columns, T, code, kind, coef, B=None, power=0.0):
    """Sums over the rows of a span, (3 + S q + (S q)^2,).

    Parameters
    ----------
    y, weights : (n,); offset : (n,), (n, K) or None
    columns : (q,) int, -1 the constant; T : (q, q)
    code : of the family, in CODES
    kind : OBSERVED, EXPECTED or SQUARES
    coef : (S, q) of z
    B, power : (q, q), inverse of the expected information, and 1 or 2: squares of slopes are
        divided by (1 - h)^power, with h the leverages

    Returns
    -------
    deviance, squares of Pearson residuals, number of rows of leverage one; gradient of the
    log-likelihood times phi (S, q); information, or squares of slopes (S, q, S, q)
    """
    shape = (N_TOTALS + coef.size + coef.size**2,)
    B = np.zeros((0, 0)) if B is None else B
    args = *_padded(len(X), y, weights, offset), columns, T, code, kind, coef, B, power
    return sum_blocks(_sums, X, shape, *args, threads=available_threads())


def _padded(n_tiles, y, weights, offset):
    """Response and weight (n_tiles, 64) and offset (n_tiles, K, 64) of a span; K = 0 of none."""
    columns = () if offset is None else offset.reshape(len(y), -1).T
    out = np.zeros((n_tiles, len(columns), TILE))
    for k, column in enumerate(columns):
        out[:, k] = tiles.pad(column, n_tiles)
    return tiles.pad(y, n_tiles), tiles.pad(weights, n_tiles), out


def parts(found, coef):
    """What `sums` returns: totals (3,), gradient (S q,), matrix (S q, S q)."""
    size = coef.size
    totals, gradient = found[:N_TOTALS], found[N_TOTALS : N_TOTALS + size]
    return totals, gradient, found[N_TOTALS + size :].reshape(size, size)


def cluster_sums(X, y, weights, offset, clusters, *, bounds, columns, T, code, coef):
    """Clusters (g,) of the rows of a span that are within bounds, and sums of u z', (g, S q).

    clusters : (n,) codes; bounds : the first cluster, and the one after the last
    """
    known, own = np.unique(clusters.astype(np.int64), return_inverse=True)
    first, last = np.searchsorted(known, bounds)
    out = np.zeros((last - first, *coef.shape))
    if len(out):
        own = tiles.pad(own.ravel() - first, len(X), np.int64)
        args = _padded(len(X), y, weights, offset)
        _cluster_sums(X, *args, own, columns, T, code, EXPECTED, coef, out)
    return known[first:last], out.reshape(last - first, coef.size)


@njit(**FAST)
def _triangles(lo, hi, out, X, weight, columns):
    q, per_chunk = columns.size, CHUNK // TILE
    C, scratch = np.empty((q, CHUNK)), np.empty(q)
    for block in range(lo, hi):
        first, last = block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])
        for start in range(first, last, per_chunk):
            C[:] = 0.0
            anything = False
            for t in range(start, min(start + per_chunk, last)):
                at = (t - start) * TILE
                for i in range(TILE):
                    anything |= weight[t, i] > 0.0
                    root = math.sqrt(weight[t, i])
                    for a in range(q):
                        x = np.float64(X[t, columns[a], i]) if columns[a] >= 0 else 1.0
                        C[a, at + i] = root * x
            if anything:
                _add_rows(out[block], C, scratch)


@njit(**FAST, forceinline=True)
def _add_rows(R, C, scratch):
    """Householder: rows C (q, r) go into the triangle R (q, q), whose diagonal stays >= 0."""
    q, r = C.shape
    for j in range(q):
        square, head = 0.0, R[j, j]
        for i in range(r):
            square += C[j, i] * C[j, i]
        if square == 0.0:
            continue
        norm = math.sqrt(head * head + square)
        first = -square / (head + norm)  # head - norm, without cancellation
        scale = 2.0 / (first * first + square)
        for k in range(j + 1, q):
            s = first * R[j, k]
            for i in range(r):
                s += C[j, i] * C[k, i]
            scratch[k] = s * scale
        R[j, j] = norm
        for k in range(j + 1, q):
            s = scratch[k]
            R[j, k] -= s * first
            for i in range(r):
                C[k, i] -= s * C[j, i]


@njit(**FAST)
def _sums(lo, hi, partials, X, y, weight, offset, columns, T, code, kind, coef, B, power):
    S, q = coef.shape
    z, f = np.empty((q, TILE)), np.empty((S, TILE))
    u, c = np.empty((S, TILE)), np.empty((S, S, TILE))
    cz, H = np.empty(TILE), np.empty((S, q, S, q))
    for block in range(lo, hi):
        partial = partials[block]
        partial[:] = 0.0
        H[:] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            if not weight[t].any():
                continue
            _scores(X[t], offset[t], columns, T, coef, z, f)
            _slopes(y[t], weight[t], offset[t], code, kind, f, u, c, partial)
            if kind == SQUARES:
                _squares(z, B, power, u, c, partial)
            for s in range(S):
                for a in range(q):
                    total = 0.0
                    for i in range(TILE):
                        total += u[s, i] * z[a, i]
                    partial[N_TOTALS + s * q + a] += total
                for m in range(s + 1):
                    for a in range(q):
                        for i in range(TILE):
                            cz[i] = c[s, m, i] * z[a, i]
                        for b in range(a + 1):
                            total = 0.0
                            for i in range(TILE):
                                total += cz[i] * z[b, i]
                            H[s, a, m, b] += total
        at = N_TOTALS + S * q
        for s in range(S):  # blocks are symmetric, and so is the whole
            for a in range(q):
                for m in range(S):
                    for b in range(q):
                        one, two = max(s, m), min(s, m)
                        partial[at] = H[one, max(a, b), two, min(a, b)]
                        at += 1


@njit(**FAST)
def _cluster_sums(X, y, weight, offset, own, columns, T, code, kind, coef, out):
    S, q = coef.shape
    z, f = np.empty((q, TILE)), np.empty((S, TILE))
    u, c, unused = np.empty((S, TILE)), np.empty((S, S, TILE)), np.zeros(N_TOTALS)
    for t in range(X.shape[0]):
        if not weight[t].any():
            continue
        _scores(X[t], offset[t], columns, T, coef, z, f)
        _slopes(y[t], weight[t], offset[t], code, kind, f, u, c, unused)
        for i in range(TILE):
            if weight[t, i] > 0.0 and 0 <= own[t, i] < out.shape[0]:
                for s in range(S):
                    for a in range(q):
                        out[own[t, i], s, a] += u[s, i] * z[a, i]


@njit(**FAST, forceinline=True)
def _scores(X, offset, columns, T, coef, z, f):
    """z = T'x (q, 64) of the rows of a tile, and their scores f (S, 64), without an offset."""
    S, q = coef.shape
    z[:] = 0.0
    for b in range(q):
        if columns[b] < 0:
            for a in range(b, q):
                for i in range(TILE):
                    z[a, i] += T[b, a]
        else:
            x = X[columns[b]]
            for a in range(b, q):
                share = T[b, a]
                for i in range(TILE):
                    z[a, i] += share * x[i]
    f[:] = 0.0
    for s in range(S):
        for a in range(q):
            for i in range(TILE):
                f[s, i] += coef[s, a] * z[a, i]


@njit(**FAST, forceinline=True)
def _slopes(y, weight, offset, code, kind, f, u, c, totals):
    """Slopes u (S, 64) of log-likelihoods times phi, and curvatures c (S, S, 64) with s >= m."""
    if code == MULTINOMIAL:
        _of_classes(y, weight, offset, f, u, c, totals)
        return
    for i in range(TILE):
        w = weight[i]
        if w == 0.0:
            u[0, i] = c[0, 0, i] = 0.0
            continue
        score = f[0, i] + (offset[0, i] if offset.shape[0] else 0.0)
        if code == GAUSSIAN:
            deviance, pearson, slope, curve = _gaussian(y[i], score)
        elif code == BINOMIAL:
            deviance, pearson, slope, curve = _binomial(y[i], score)
        elif code == POISSON:
            deviance, pearson, slope, curve = _poisson(y[i], score)
        else:
            deviance, pearson, slope, curve = _gamma(y[i], score, kind == OBSERVED)
        totals[0] += w * deviance
        totals[1] += w * pearson
        u[0, i], c[0, 0, i] = w * slope, w * curve


@njit(**FAST, forceinline=True)
def _gaussian(y, f):
    return (y - f) ** 2, (y - f) ** 2, y - f, 1.0


@njit(**FAST, forceinline=True)
def _binomial(y, f):
    e = exp_negative(-abs(f))
    far = e / (1.0 + e)
    p, q = (far, 1.0 - far) if f < 0.0 else (1.0 - far, far)
    deviance = 2.0 * (max(f, 0.0) + log1p_unit(e) - y * f)
    if 0.0 < y < 1.0:  # a share of trials
        deviance += 2.0 * (y * math.log(y) + (1.0 - y) * math.log(1.0 - y))
        return max(deviance, 0.0), 0.0, y - p, p * q
    return deviance, 0.0, (q if y > 0.5 else -p), p * q


@njit(**FAST, forceinline=True)
def _poisson(y, f):
    mean = math.exp(min(f, LARGEST_LOG))
    level = y * math.log(y) if y > 0.0 else 0.0
    return 2.0 * (level - y * f - (y - mean)), 0.0, y - mean, mean


@njit(**FAST, forceinline=True)
def _gamma(y, f, observed):
    log_ratio = math.log(y) - f
    rest = math.expm1(min(log_ratio, LARGEST_LOG))
    return 2.0 * (rest - log_ratio), rest * rest, rest, (1.0 + rest if observed else 1.0)


@njit(**FAST, forceinline=True)
def _of_classes(y, weight, offset, f, u, c, totals):
    S = f.shape[0]
    p, score = np.empty(S + 1), np.empty(S + 1)
    for i in range(TILE):
        w, own = weight[i], int(y[i])
        if w == 0.0:
            for s in range(S):
                u[s, i] = 0.0
                for m in range(s + 1):
                    c[s, m, i] = 0.0
            continue
        largest, norm = -np.inf, 0.0
        for k in range(S + 1):
            score[k] = (f[k - 1, i] if k else 0.0) + (offset[k, i] if offset.shape[0] else 0.0)
            largest = max(largest, score[k])
        for k in range(S + 1):
            p[k] = math.exp(score[k] - largest)
            norm += p[k]
        totals[0] += 2.0 * w * (math.log(norm) + largest - score[own])
        for k in range(S + 1):
            p[k] /= norm
        for s in range(S):
            others = 0.0
            for k in range(S + 1):
                others += p[k] if k != s + 1 else 0.0
            u[s, i] = w * (others if own == s + 1 else -p[s + 1])
            for m in range(s):
                c[s, m, i] = -w * p[s + 1] * p[m + 1]
            c[s, s, i] = w * p[s + 1] * others


@njit(**FAST, forceinline=True)
def _squares(z, B, power, u, c, totals):
    """Products of slopes (S, S, 64) in the place of curvatures, divided by (1 - h)^power."""
    S, q = u.shape[0], B.shape[0]
    for i in range(TILE):
        h = 0.0
        for a in range(q):
            part = 0.0
            for b in range(q):
                part += B[a, b] * z[b, i]
            h += z[a, i] * part
        h = min(max(c[0, 0, i] * h, 0.0), 1.0)
        share = 1.0
        if q:
            totals[2] += 1.0 if h > 1.0 - WHOLE else 0.0
            share = 1.0 / (1.0 - h) ** power
        for s in range(S):
            for m in range(s + 1):
                c[s, m, i] = share * u[s, i] * u[m, i]
