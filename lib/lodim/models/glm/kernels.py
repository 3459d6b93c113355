"""Compiled sums over rows for glm: likelihood, gradient, information, leverages."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE

# No array is assigned to a part of another, as in `A[i] = row`: this compiles for seconds.
FAST = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
TILES = 16  # tiles per matrix product
CHUNK = TILES * TILE


def padded_length(X):
    """Return the number of rows of X (blocks of 64 rows), rounded up to a multiple of 1,024."""
    return -(-len(X) // TILES) * CHUNK


@njit(**FAST)
def scores(X, columns, coef, out):
    """Write coef (S, q) times `columns` of X to out (S, n); column -1 stands for the constant 1."""
    for t in range(len(X)):
        for s in range(len(coef)):
            score = out[s, t * TILE : (t + 1) * TILE]
            score[:] = 0.0
            for b in range(len(columns)):
                for i in range(TILE):
                    score[i] += coef[s, b] * (X[t, columns[b], i] if columns[b] >= 0 else 1.0)


@njit(**FAST)
def products(X, columns, T, live, slopes, curvatures, gradient, information):
    """Add derivatives of the rows' log-likelihoods to `gradient` and `information`.

    columns : (q,) columns of X in the model, -1 for a constant
    T : (q, r) matrix that combines them to z = T'x
    live : (n,) bool, False for rows that add nothing
    slopes : (S, n) derivatives by S linear predictors
    curvatures : (P, n) second derivatives by P pairs of these"""
    # A row adds slopes[s] z to gradient[s], and curvatures[k] zz' to information[k].
    x, Tt = np.empty((len(T), CHUNK)), np.ascontiguousarray(T.T)
    z = np.empty_like(x)
    for first in range(0, len(X), TILES):
        _fill(X, columns, live, first, x)
        np.dot(Tt, x, z)
        rows = slice(first * TILE, first * TILE + CHUNK)
        for s in range(len(slopes)):
            total = gradient[s]
            total += np.dot(z, slopes[s, rows])
        for k in range(len(curvatures)):
            np.multiply(z, curvatures[k, rows], x)
            total = information[k]
            total += np.dot(x, z.T)


@njit(**FAST)
def squared_lengths(X, columns, T, live, out):
    """Fill out (n,) with the squared lengths of the rows' combinations z = T'x.

    columns : (q,) columns of X in the model, -1 for a constant 1
    T : (q, r) matrix that combines them to z = T'x
    live : (n,) bool; blocks of 64 rows without a True get 0"""
    x, Tt = np.empty((len(T), CHUNK)), np.ascontiguousarray(T.T)
    for first in range(0, len(X), TILES):
        _fill(X, columns, live, first, x)
        z, length = np.dot(Tt, x), out[first * TILE : first * TILE + CHUNK]
        length[:] = 0.0
        for a in range(len(z)):
            length += z[a] ** 2


@njit(**FAST)
def group_sums(X, columns, T, live, slopes, group, out):
    """Add the gradients of the rows' log-likelihoods to `out`, summed by group.

    columns : (q,) columns of X in the model, -1 for a constant
    T : (q, r) matrix that combines them to z = T'x
    live : (n,) bool, False for rows that add nothing
    slopes : (S, n) derivatives by S linear predictors
    group : (n,) group number per row"""
    # Row i adds slopes[s, i] z to out[group[i], s].
    x, Tt = np.empty((len(T), CHUNK)), np.ascontiguousarray(T.T)
    for first in range(0, len(X), TILES):
        _fill(X, columns, live, first, x)
        z = np.ascontiguousarray(np.dot(Tt, x).T)
        for i in range(CHUNK):
            for s in range(len(slopes)):
                slope = slopes[s, first * TILE + i]
                if slope != 0.0:
                    own = out[group[first * TILE + i], s]
                    for a in range(len(own)):
                        own[a] += slope * z[i, a]


@njit(**FAST, forceinline=True)
def _fill(X, columns, live, first, x):
    """Copy columns of the 16 blocks of 64 rows X[first : first + 16] into x (q, 1024).

    columns : (q,) columns to copy, -1 for ones; live : (n,) bool, blocks without True get zeros"""
    x[:] = 0.0
    for t in range(first, min(first + TILES, len(X))):
        if live[t * TILE : (t + 1) * TILE].any():
            for b in range(len(columns)):
                row = x[b, (t - first) * TILE : (t - first + 1) * TILE]
                if columns[b] < 0:
                    row[:] = 1.0
                else:
                    for i in range(TILE):
                        row[i] = X[t, columns[b], i]
