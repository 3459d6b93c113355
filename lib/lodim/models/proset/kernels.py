"""Fused kernels of proset: kernel sums over prototypes, and the objective's gradient.

Rows come in tiles of 64 (see `lodim.tiles`). For one tile at a time the similarities with all
candidates are made by one small matrix product, used for the loss and for its gradient while they
are in cache, and forgotten: no candidates x rows matrix is ever held. Numbers of a tile have the
precision of X, sums over tiles are in float64; matrices are padded with zeros to multiples of
FOUR, so that the products need no remainder loops.

Functions of a tile are inlined by force: else the process that compiles a kernel may run another
compilation of them than one that loads the kernel from the cache, with other rounding.
"""

import math

import numpy as np
from numba import njit

from lodim.rowmath import exp_negative
from lodim.tiles import TILE

CLASSES, SQUARED, DENSITY = 0, 1, 2
FOUR = 4

REASSOCIATE = {"reassoc", "contract", "nsz"}
ROOT_TAU = math.sqrt(2.0 * math.pi)


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def multiply(V, T, Z):
    """Z = V T of (M, K) by (K, 64), T and Z flat; M and K are multiples of four.

    Sixteen products a step stay in registers; flat arrays with constant distances between rows let
    the compiler see that they do not overlap.
    """
    M, K = V.shape
    zero = V.dtype.type(0)
    m = 0
    while m < M:
        z = m * TILE
        for i in range(FOUR * TILE):
            Z[z + i] = zero
        k = 0
        while k < K:
            t = k * TILE
            a0, a1, a2, a3 = V[m, k], V[m, k + 1], V[m, k + 2], V[m, k + 3]
            b0, b1, b2, b3 = V[m + 1, k], V[m + 1, k + 1], V[m + 1, k + 2], V[m + 1, k + 3]
            c0, c1, c2, c3 = V[m + 2, k], V[m + 2, k + 1], V[m + 2, k + 2], V[m + 2, k + 3]
            d0, d1, d2, d3 = V[m + 3, k], V[m + 3, k + 1], V[m + 3, k + 2], V[m + 3, k + 3]
            for i in range(TILE):
                t0, t1 = T[t + i], T[t + TILE + i]
                t2, t3 = T[t + 2 * TILE + i], T[t + 3 * TILE + i]
                Z[z + i] += a0 * t0 + a1 * t1 + a2 * t2 + a3 * t3
                Z[z + TILE + i] += b0 * t0 + b1 * t1 + b2 * t2 + b3 * t3
                Z[z + 2 * TILE + i] += c0 * t0 + c1 * t1 + c2 * t2 + c3 * t3
                Z[z + 3 * TILE + i] += d0 * t0 + d1 * t1 + d2 * t2 + d3 * t3
            k += FOUR
        m += FOUR


@njit(cache=True, error_model="numpy", forceinline=True)
def similarities(tile, active, v, V, half, T, own, G):
    """G[j, i] = exp(-1/2 sum_d v_d^2 (x_id - x_jd)^2), (J, 64) flat: Eq. 2.3.

    tile (p, 64); active (D,) the features that enter; V (J, D') prototypes times v, padded; half
    (J,) half their squared norms; T and own are room for the tile times v and its half norms.
    """
    zero, one_half = tile.dtype.type(0), tile.dtype.type(0.5)
    for i in range(TILE):
        own[i] = zero
    for k in range(active.size):
        row, scale = tile[active[k]], v[k]
        for i in range(TILE):
            t = scale * row[i]
            T[k * TILE + i] = t
            own[i] += one_half * t * t
    multiply(V, T, G)
    for j in range(half.size):
        z, norm = j * TILE, half[j]
        for i in range(TILE):
            G[z + i] = exp_negative(min(zero, G[z + i] - norm - own[i]))


@njit(cache=True, error_model="numpy", forceinline=True)
def agreement(y, target, u, loss, h):
    """What a prototype of this target says about each row's response: h_ij, (64,).

    One where the classes agree; the target itself for squares; a normal density of width 1 / u.
    """
    zero, one = h.dtype.type(0), h.dtype.type(1)
    if loss == CLASSES:
        for i in range(TILE):
            h[i] = one if y[i] == target else zero
    elif loss == SQUARED:
        for i in range(TILE):
            h[i] = target
    else:
        half, height = h.dtype.type(0.5), u / h.dtype.type(ROOT_TAU)
        for i in range(TILE):
            d = u * (y[i] - target)
            h[i] = height * exp_negative(-half * d * d)


@njit(cache=True, error_model="numpy", forceinline=True)
def slopes(y, weight, A, B, loss, alpha, beta):
    """Loss of a tile; its derivatives by A and B, where the estimate is A / B, replace them."""
    value = 0.0
    for i in range(TILE):
        a, b, weight_i = float(A[i]), float(B[i]), float(weight[i])
        if weight_i == 0.0:
            alpha[i] = beta[i] = 0.0
        elif loss == SQUARED:
            r = a / b - y[i]
            value += weight_i * r * r
            alpha[i] = 2.0 * weight_i * r / b
            beta[i] = -2.0 * weight_i * r * a / (b * b)
        else:
            value += weight_i * (math.log(b) - math.log(a))
            alpha[i] = -weight_i / a
            beta[i] = weight_i / b
    return value


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def add_impact(G, j, w, h, A, B):
    """A += w h G_j, B += w G_j."""
    row = G[j * TILE : (j + 1) * TILE]
    for i in range(TILE):
        g = w * row[i]
        A[i] += h[i] * g
        B[i] += g


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def spread(G, j, w, h, alpha, beta):
    """Derivative by w_j; G_j becomes C_j = w_j G_j (alpha h + beta)."""
    row, s = G[j * TILE : (j + 1) * TILE], w - w
    for i in range(TILE):
        c = row[i] * (alpha[i] * h[i] + beta[i])
        s += c
        row[i] = w * c
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def width_slope(G, j, y, target, u, h, alpha):
    """Derivative by u of the part of one prototype, without its weight."""
    row, narrow, s = G[j * TILE : (j + 1) * TILE], h.dtype.type(1) / u, u - u
    for i in range(TILE):
        d = y[i] - target
        s += row[i] * alpha[i] * h[i] * (narrow - u * d * d)
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def feature_sum(x, Y, k, last):
    """sum_i (reach_i x_i^2 - 2 x_i Y_ki), reach being the last row of Y."""
    y, reach, s = Y[k * TILE : (k + 1) * TILE], Y[last * TILE : (last + 1) * TILE], x[0] - x[0]
    for i in range(TILE):
        s += x[i] * (x[i] * reach[i] - (y[i] + y[i]))
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(
    lo, hi, partials, X, y, a, b, weight, step, active, v, V, half, columns, w, target, u, loss
):  # fmt: skip
    """Partial sums of the scoring rows' loss and its gradient, Eqs. 2.8 to 2.12.

    Row i has the estimate A / B, A = a_i + sum_j w_j h_ij G_ij and B = b_i + sum_j w_j G_ij. X
    (n_tiles, p, 64); y, a, b, weight (n_tiles, 64), weight zero on padding; a block has `step`
    tiles. Candidates come with weights above zero first: V (J', D') and half (J,) hold all of
    them, columns (D'', L') those L as columns, not
    times v, and a row of ones; w, target (J,). partials (n_blocks, 2 +
    D + J): the loss; its derivative by u; sum_ij C_ij (x_id^2 - 2 x_id x_jd) with C_ij = w_j times
    the derivative by w_j of row i; the derivatives by w.
    """
    kind = X.dtype
    D, J = active.size, half.size
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    Y = np.empty(columns.shape[0] * TILE, kind)
    own, h = np.empty(TILE, kind), np.empty(TILE, kind)
    A, B = np.empty(TILE, kind), np.empty(TILE, kind)
    alpha, beta = np.empty(TILE, kind), np.empty(TILE, kind)
    live = np.count_nonzero(w)
    for block in range(lo, hi):
        out = partials[block]
        out[:] = 0.0
        for t in range(block * step, min((block + 1) * step, X.shape[0])):
            similarities(X[t], active, v, V, half, T, own, G)
            A[:], B[:] = a[t], b[t]
            for j in range(live):
                agreement(y[t], target[j], u, loss, h)
                add_impact(G, j, w[j], h, A, B)
            out[0] += slopes(y[t], weight[t], A, B, loss, alpha, beta)
            for j in range(J):
                agreement(y[t], target[j], u, loss, h)
                if loss == DENSITY and j < live:
                    out[1] += w[j] * width_slope(G, j, y[t], target[j], u, h, alpha)
                out[2 + D + j] += spread(G, j, w[j], h, alpha, beta)
            multiply(columns, G[: columns.shape[1] * TILE], Y)
            for k in range(D):
                out[2 + k] += feature_sum(X[t, active[k]], Y, k, D)


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_sums(lo, hi, X, step, active, v, V, half, values, out):
    """out[t, q] += sum_j values_qj G_ij for the rows of tile t: every estimate is made of these.

    values (Q', J') with the weights in it, padded; out (n_tiles, Q, 64).
    """
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.zeros(V.shape[0] * TILE, kind)
    own, S = np.empty(TILE, kind), np.empty(values.shape[0] * TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, half, T, own, G)
        multiply(values, G, S)
        for q in range(out.shape[1]):
            for i in range(TILE):
                out[t, q, i] += S[q * TILE + i]


@njit(cache=True, nogil=True, error_model="numpy")
def agreement_sums(lo, hi, X, y, step, active, v, V, half, w, target, u, loss, A, B):
    """A += sum_j w_j h_ij G_ij and B += sum_j w_j G_ij: what a batch brings to each row's estimate.

    A, B (n_tiles, 64).
    """
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    own, h = np.empty(TILE, kind), np.empty(TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, half, T, own, G)
        for j in range(half.size):
            agreement(y[t], target[j], u, loss, h)
            add_impact(G, j, w[j], h, A[t], B[t])


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_rows(lo, hi, X, step, active, v, V, half, w, out):
    """out[t, j] = w_j G_ij, the impact of each prototype on the rows of tile t."""
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    own = np.empty(TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, half, T, own, G)
        for j in range(half.size):
            for i in range(TILE):
                out[t, j, i] = w[j] * G[j * TILE + i]
