"""Fused kernels of gbmap: one read of X gives the loss and its gradient for several weak learners.

Each kernel works on the blocks [lo, hi) of TILES_PER_BLOCK tiles and writes one partial sum a
block; `lodim.engine` shares the blocks among threads and adds the partials in block order.
"""

import numpy as np
from numba import njit

from lodim.rowmath import exp_negative, log1p_unit
from lodim.tiles import TILE, TILES_PER_BLOCK

SOFTPLUS, IDENTITY = 0, 1
SQUARED, LOGISTIC = 0, 1

REASSOCIATE = {"reassoc", "contract", "nsz"}


@njit(cache=True, fastmath=REASSOCIATE)
def project(tile, v, z):
    """z += tile' v, (p, 64), (p,) -> (64,)."""
    p = tile.shape[0]
    k = 0
    while k + 4 <= p:
        v0, v1, v2, v3 = v[k], v[k + 1], v[k + 2], v[k + 3]
        for i in range(TILE):
            z[i] += (
                v0 * tile[k, i] + v1 * tile[k + 1, i] + v2 * tile[k + 2, i] + v3 * tile[k + 3, i]
            )
        k += 4
    while k < p:
        v0 = v[k]
        for i in range(TILE):
            z[i] += v0 * tile[k, i]
        k += 1


@njit(cache=True, fastmath=REASSOCIATE)
def gather(tile, r, out):
    """out += tile r, (p, 64), (64,) -> (p,)."""
    for k in range(tile.shape[0]):
        s = 0.0
        for i in range(TILE):
            s += tile[k, i] * r[i]
        out[k] += s


@njit(cache=True, error_model="numpy")
def activate(z, beta, activation, g, slope):
    """Activation g(z) and its derivative: softplus log(1 + exp(beta z)) / beta, or the identity."""
    if activation == IDENTITY:
        for i in range(TILE):
            g[i] = z[i]
            slope[i] = 1.0
        return
    for i in range(TILE):
        e = exp_negative(-abs(beta * z[i]))
        g[i] = max(z[i], 0.0) + log1p_unit(e) / beta
        share = 1.0 / (1.0 + e)
        slope[i] = share if z[i] > 0.0 else 1.0 - share


@njit(cache=True, fastmath=REASSOCIATE)
def total(v):
    """Sum of 64 numbers; its own function because only here may additions be reordered."""
    s = 0.0
    for i in range(TILE):
        s += v[i]
    return s


@njit(cache=True, error_model="numpy")
def residual(y, f, weight, loss, value, r):
    """Weighted loss of each row of a tile and its derivative in the score f."""
    if loss == SQUARED:
        for i in range(TILE):
            d = f[i] - y[i]
            r[i] = 2.0 * weight[i] * d
            value[i] = weight[i] * d * d
        return
    for i in range(TILE):
        e = exp_negative(-abs(f[i]))
        share = 1.0 / (1.0 + e)
        r[i] = weight[i] * ((share if f[i] > 0.0 else 1.0 - share) - y[i])
        value[i] = weight[i] * (max(f[i], 0.0) + log1p_unit(e) - y[i] * f[i])


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(
    lo, hi, partials, X, y, f, weight, theta, active, sign, beta, activation, loss
):  # fmt: skip
    """Partial sums of the loss and its gradient, for the learners `active` of q at once.

    X (n_tiles, p, 64); y, f, weight (n_tiles, 64), weight zero on padding; theta (q, 2 + p) holds
    (a, intercept of w, w) of each learner, sign (q,) its b; partials (n_blocks, q, 3 + p).
    """
    z, score, slope = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    value, r = np.empty(TILE), np.empty(TILE)
    for block in range(lo, hi):
        out = partials[block]
        out[:] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            for c in active:
                z[:] = theta[c, 1]
                project(X[t], theta[c, 2:], z)
                activate(z, beta, activation, score, slope)
                for i in range(TILE):
                    score[i] = f[t, i] + theta[c, 0] + sign[c] * score[i]
                residual(y[t], score, weight[t], loss, value, r)
                out[c, 0] += total(value)
                out[c, 1] += total(r)
                for i in range(TILE):
                    r[i] *= sign[c] * slope[i]
                out[c, 2] += total(r)
                gather(X[t], r, out[c, 3:])


@njit(cache=True, nogil=True, error_model="numpy")
def forward(lo, hi, X, theta, sign, beta, activation, derivative, into, out):
    """Add a_j + b_j g(w_j'x~) (Eq. 2), or its derivative b_j g'(w_j'x~), to row into[j] of out.

    out (n_tiles, width, 64); into = 0..M-1 keeps the learners apart, into = the score that each
    learner adds to sums them.
    """
    g, slope, z = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    for t in range(lo * TILES_PER_BLOCK, min(hi * TILES_PER_BLOCK, X.shape[0])):
        for j in range(theta.shape[0]):
            z[:] = theta[j, 1]
            project(X[t], theta[j, 2:], z)
            activate(z, beta, activation, g, slope)
            row = out[t, into[j]]
            if derivative:
                for i in range(TILE):
                    row[i] += sign[j] * slope[i]
            else:
                for i in range(TILE):
                    row[i] += theta[j, 0] + sign[j] * g[i]
