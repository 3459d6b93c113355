"""Compiled loops of gbmap for the CPU: one pass over X gives all learners' losses and gradients."""

from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import LINE, inlined, njit, prefetch, scalar
from lodim.engine.scalar_math import like, softplus
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.family.losses import tile_curvature, tile_loss_slope
from lodim.family.multinomial import loss_shares

# Functions of one tile are always inlined: otherwise results could be rounded differently after
# compilation than when loaded from the cache.
# A learner is a + b g(intercept + w'x), with constant a, sign b, activation g and weights w.
SOFTPLUS, IDENTITY = 0, 1


class Form(NamedTuple):
    """Constants of a fit for compiled loops: sharpness of the softplus, activation code, loss."""

    beta: float
    activation: int
    loss: tuple


class TileRows(NamedTuple):
    """Work arrays (64,) in which kernels keep what they compute for 64 rows and one learner."""

    # z, score: intercept + w'x of a learner; linear predictor
    z: np.ndarray
    score: np.ndarray
    slope: np.ndarray  # derivative g' of the activation
    # value, r, c: loss of each row; first and second derivative by the linear predictor
    value: np.ndarray
    r: np.ndarray
    c: np.ndarray


PREFETCH_BYTES = 2**15  # largest size of a tile, in bytes, for which the nearest cache holds two
REASSOCIATE = {"reassoc", "contract", "nsz"}


@njit(cache=True, error_model="numpy", inline="always")
def tile_rows(like):
    """Return new work arrays for 64 rows, with the dtype of the array `like`."""
    room = np.empty((6, TILE), like.dtype)
    return TileRows(room[0], room[1], room[2], room[3], room[4], room[5])


@inlined(cache=True, fastmath=REASSOCIATE)
def project(tile, v, z):
    """Add v'x to z (64,) for 64 rows, in place; tile (p, 64) are their features, v (p,) weights."""
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


@inlined(cache=True, fastmath=REASSOCIATE)
def project_ahead(tile, v, z, ahead):
    """Add v'x to z as `project` does for a tile; if `ahead`, prefetch the next 64 rows."""
    p, step = tile.shape[0], TILE * tile.itemsize
    near = ahead and p * step <= PREFETCH_BYTES
    width = 4 if near else max(p, 1)
    for k in range(0, p, width):
        stop = min(k + width, p)
        if near:
            for line in range((p + k) * step, (p + stop) * step, LINE):
                prefetch(tile, line)
        project(tile[k:stop], v[k:stop], z)


@inlined(cache=True, fastmath=REASSOCIATE)
def back_project(tile, r, out):
    """Add the sum of r_i x_i over 64 rows to out (p,), in place; tile (p, 64) are the rows x_i."""
    p = tile.shape[0]
    zero = r.dtype.type(0)
    k = 0
    while k + 4 <= p:
        s0, s1, s2, s3 = zero, zero, zero, zero
        for i in range(TILE):
            s0 += tile[k, i] * r[i]
            s1 += tile[k + 1, i] * r[i]
            s2 += tile[k + 2, i] * r[i]
            s3 += tile[k + 3, i] * r[i]
        out[k] += s0
        out[k + 1] += s1
        out[k + 2] += s2
        out[k + 3] += s3
        k += 4
    while k < p:
        s0 = zero
        for i in range(TILE):
            s0 += tile[k, i] * r[i]
        out[k] += s0
        k += 1


@inlined(cache=True, fastmath=REASSOCIATE)
def tile_sum(v):
    """Return the sum of the 64 numbers v; the compiler may add them in any order."""
    s = v.dtype.type(0)
    for i in range(TILE):
        s += v[i]
    return s


@scalar
def activate(z, beta, activation):
    """Return g(z) and g'(z) of the activation g: softplus of sharpness beta, or identity."""
    if activation == IDENTITY:
        return z, like(1.0, z)
    g, slope = softplus(beta * z)
    return g * (like(1.0, z) / beta), slope


@njit(cache=True, error_model="numpy", inline="always")
def add_learner(f, v, b, form, rows):
    """Write linear predictors of 64 rows with one more learner to `rows.score`.

    f : (64,) linear predictors without the learner
    v, b, form : parameters (constant, intercept, weights w), sign and Form of the learner
    rows : TileRows with `z`, the values intercept + w'x; `slope` is written too"""
    for i in range(TILE):
        g, rows.slope[i] = activate(rows.z[i], form.beta, form.activation)
        rows.score[i] = f[i] + v[0] + b * g


@njit(cache=True, error_model="numpy", inline="always")
def add_loss_gradient(tile, y, f, weight, v, b, form, rows, out):
    """Add the loss of 64 rows with one more learner, and its gradient, to out (3 + p,).

    f : (64,) linear predictors without the learner; form : Form, constants of activation and loss
    v, b : parameters (constant, intercept, weights w) and sign of the learner
    rows : TileRows, work arrays"""
    rows.z[:] = v[1]
    project(tile, v[2:], rows.z)
    add_projected(tile, y, f, weight, v, b, form, rows, out)


@inlined(cache=True, error_model="numpy", fastmath=REASSOCIATE)
def add_projected(tile, y, f, weight, v, b, form, rows, out):
    """Do the same as `add_loss_gradient`, with the values intercept + w'x already in `rows.z`."""
    slope, value, r = rows.slope, rows.value, rows.r
    add_learner(f, v, b, form, rows)
    tile_loss_slope(form.loss, y, rows.score, weight, value, r)
    zero = r.dtype.type(0)
    loss, by_score, by_z = zero, zero, zero
    for i in range(TILE):
        loss += value[i]
        by_score += r[i]
        r[i] *= b * slope[i]
        by_z += r[i]
    out[0] += loss
    out[1] += by_score
    out[2] += by_z
    back_project(tile, r, out[3:])


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(lo, hi, partials, X, y, f, weight, theta, active, sign, form):
    """Compute losses and gradients of q learners, for blocks lo to hi - 1 of 4,096 rows.

    partials : (n_blocks, q, 3 + p) losses and gradients
    f : linear predictors without the learners
    theta, sign : (q, 2 + p) rows (constant, intercept, weights), and (q,) signs
    active, form : positions of the learners to compute, and Form of the fit"""
    dtype = X.dtype
    v, b = theta.astype(dtype), sign.astype(dtype)
    rows, form = tile_rows(X), Form(dtype.type(form.beta), form.activation, form.loss)
    for block in range(lo, hi):
        out = partials[block]
        out[:] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            tile = X[t]
            for c in active:
                rows.z[:] = v[c, 1]
                project_ahead(tile, v[c, 2:], rows.z, c == active[0])
                add_projected(tile, y[t], f[t], weight[t], v[c], b[c], form, rows, out[c])


@inlined(cache=True, fastmath=REASSOCIATE)
def add_gram(tile, c, scaled, out):
    """Add sum_i c_i x_i x_i' over 64 rows to out[2:, 2:], lower triangle.

    tile : (p, 64), with columns x_i; c : (64,) weights; scaled : (64,) work array"""
    p = tile.shape[0]
    zero = c.dtype.type(0)
    for k in range(p):
        for i in range(TILE):
            scaled[i] = tile[k, i] * c[i]
        j = 0
        while j + 4 <= k + 1:
            s0, s1, s2, s3 = zero, zero, zero, zero
            for i in range(TILE):
                s0 += scaled[i] * tile[j, i]
                s1 += scaled[i] * tile[j + 1, i]
                s2 += scaled[i] * tile[j + 2, i]
                s3 += scaled[i] * tile[j + 3, i]
            out[2 + k, 2 + j] += s0
            out[2 + k, 3 + j] += s1
            out[2 + k, 4 + j] += s2
            out[2 + k, 5 + j] += s3
            j += 4
        while j <= k:
            s0 = zero
            for i in range(TILE):
                s0 += scaled[i] * tile[j, i]
            out[2 + k, 2 + j] += s0
            j += 1


@njit(cache=True, error_model="numpy", inline="always")
def add_hessian(tile, y, weight, b, form, convex, rows, column, H):
    """Add the Hessian of 64 rows' loss, by a learner's parameters, to the lower triangle of H.

    b, form, convex : sign, Form, and whether to omit the activation's negative second derivatives
    rows : TileRows with `score`, `slope`, and `r`, derivatives of the losses by w'x
    column : (p,) work array"""
    slope, r, z, c, beta = rows.slope, rows.r, rows.z, rows.c, form.beta
    one, zero = slope.dtype.type(1), slope.dtype.type(0)
    tile_curvature(form.loss, y, rows.score, weight, c)
    H[0, 0] += tile_sum(c)
    for i in range(TILE):
        z[i] = c[i] * b * slope[i]
        bend = beta * r[i] * (one - slope[i])
        c[i] = c[i] * slope[i] * slope[i]
        if form.activation == SOFTPLUS:
            c[i] += max(bend, zero) if convex else bend
    H[1, 0] += tile_sum(z)
    H[1, 1] += tile_sum(c)
    for j in range(2):
        column[:] = 0.0
        back_project(tile, z if j == 0 else c, column)
        for k in range(column.size):
            H[2 + k, j] += column[k]
    add_gram(tile, c, z, H)


@njit(cache=True, nogil=True, error_model="numpy")
def hessian(lo, hi, partials, X, y, f, weight, theta, sign, form, convex):
    """Compute Hessians of the losses of q learners, for blocks lo to hi - 1 of 4,096 rows.

    partials : (n_blocks, q, 2 + p, 2 + p) lower triangles
    f : linear predictors without the learners
    theta, sign : (q, 2 + p) rows (constant, intercept, weights), and (q,) signs
    form, convex : Form, and whether to omit the activation's negative second derivatives"""
    v, b, column = theta.astype(X.dtype), sign.astype(X.dtype), np.empty(X.shape[1])
    rows, form = tile_rows(X), Form(X.dtype.type(form.beta), form.activation, form.loss)
    r = rows.r
    for block in range(lo, hi):
        partials[block] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            for q in range(theta.shape[0]):
                rows.z[:] = v[q, 1]
                project(X[t], v[q, 2:], rows.z)
                add_learner(f[t], v[q], b[q], form, rows)
                tile_loss_slope(form.loss, y[t], rows.score, weight[t], rows.value, r)
                for i in range(TILE):
                    r[i] *= b[q] * rows.slope[i]
                add_hessian(
                    X[t], y[t], weight[t], b[q], form, convex, rows, column, partials[block, q]
                )


@njit(cache=True, nogil=True, error_model="numpy")
def forward(lo, hi, X, theta, sign, beta, activation, derivative, into, out):
    """Add values of M learners to out (n_tiles, width, 64), for blocks lo to hi - 1 of 4,096 rows.

    theta, sign : (M, 2 + p) rows (constant, intercept, weights), and (M,) signs
    beta, activation : fields of Form
    derivative, into : whether to add derivatives, and (M,) column of `out` for each learner"""
    dtype = X.dtype
    v, sharpness = theta.astype(dtype), dtype.type(beta)
    z = np.empty(TILE, dtype)
    for t in range(lo * TILES_PER_BLOCK, min(hi * TILES_PER_BLOCK, X.shape[0])):
        tile = X[t]
        for j in range(theta.shape[0]):
            z[:] = v[j, 1]
            project_ahead(tile, v[j, 2:], z, j == 0)
            row = out[t, into[j]]
            for i in range(TILE):
                g, slope = activate(z[i], sharpness, activation)
                row[i] += sign[j] * slope if derivative else theta[j, 0] + sign[j] * g


@njit(cache=True, nogil=True, error_model="numpy")
def joint_gradient(lo, hi, partials, X, y, offset, weight, theta, sign, target, beta, loss):
    """Compute loss and gradient of a model of M learners, for blocks lo to hi - 1 of 4,096 rows.

    partials : sums of loss and loss^2 in [block, 0, :2], gradients in [block, :, 2:]
    offset : (n_tiles, K, 64) linear predictors without the learners
    theta, sign : (M, 2 + p) rows (constant, intercept, weights), and (M,) signs
    target : class of each learner; beta, loss : fields of Form"""
    dtype = X.dtype
    v, b, sharpness = theta.astype(dtype), sign.astype(dtype), dtype.type(beta)
    M, K = len(theta), offset.shape[1]
    z, slope = np.empty(TILE, dtype), np.empty((M, TILE), dtype)
    score, r, p = np.empty((K, TILE), dtype), np.empty((K, TILE), dtype), np.empty(K, dtype)
    value, back = np.empty(TILE, dtype), np.empty(TILE, dtype)
    for block in range(lo, hi):
        out = partials[block]
        out[:] = 0.0
        for t in range(block * TILES_PER_BLOCK, min((block + 1) * TILES_PER_BLOCK, X.shape[0])):
            tile = X[t]
            for k in range(K):
                for i in range(TILE):
                    score[k, i] = offset[t, k, i]
            for j in range(M):
                z[:] = v[j, 1]
                project(tile, v[j, 2:], z)
                own = score[target[j]]
                for i in range(TILE):
                    g, slope[j, i] = activate(z[i], sharpness, SOFTPLUS)
                    own[i] += v[j, 0] + b[j] * g
            if K == 1:
                tile_loss_slope(loss, y[t], score[0], weight[t], value, r[0])
            else:
                for i in range(TILE):
                    value[i] = weight[t, i] * loss_shares(y[t, i], score[:, i], p)
                    for k in range(K):
                        r[k, i] = weight[t, i] * (p[k] - (y[t, i] == k))
            out[0, 0] += tile_sum(value)
            for i in range(TILE):
                value[i] *= value[i]
            out[0, 1] += tile_sum(value)
            for j in range(M):
                own = r[target[j]]
                out[j, 2] += tile_sum(own)
                for i in range(TILE):
                    back[i] = b[j] * slope[j, i] * own[i]
                out[j, 3] += tile_sum(back)
                back_project(tile, back, out[j, 4:])
