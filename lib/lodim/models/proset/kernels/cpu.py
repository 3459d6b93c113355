"""Fused kernels of proset: kernel sums over prototypes, and the objective's gradient.

Rows come in tiles of 64 (see `lodim.engine.tiles`). For one tile at a time the similarities with
all candidates are made by one small matrix product, used for the loss and for its gradient while
they are in cache, and forgotten: no candidates x rows matrix is ever held. Numbers of a tile have
the precision of X, sums over tiles are in float64; matrices are padded with zeros to multiples of
FOUR, so that the products need no remainder loops.

Functions of a tile are inlined by force: else the process that compiles a kernel may run another
compilation of them than one that loads the kernel from the cache, with other rounding.
"""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE

CLASSES, SQUARED, DENSITY = 0, 1, 2
FOUR = 4

REASSOCIATE = {"reassoc", "contract", "nsz"}
ROOT_TAU = math.sqrt(2.0 * math.pi)


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def multiply(V, T, Z):
    """Z = V T of (M, K) by (K, 64), T and Z flat; M and K are multiples of four.

    Sixteen products a step stay in registers; flat arrays with constant distances between rows let
    the compiler see that they do not overlap. V is given as V[::1], whose layout numba takes as
    unknown: one compilation serves a matrix and its transpose.
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


@njit(cache=True, error_model="numpy")
def scaled(x, v, rows, columns):
    """Points as the kernels take them, (J', D') padded: x[rows, columns] v, -1/2 norm^2, one.

    Beside a row's features times v, one, and minus half their squared norm, the product of both is
    the exponent of the similarity.
    """
    J, D = rows.size, columns.size
    V = np.zeros((-(-J // FOUR) * FOUR, -(-(D + 2) // FOUR) * FOUR), v.dtype)
    for j in range(J):
        norm = 0.0
        for k in range(D):
            z = v[k] * v.dtype.type(x[rows[j], columns[k]])
            V[j, k] = z
            norm += float(z) * float(z)
        V[j, D], V[j, D + 1] = -0.5 * norm, 1.0
    return V


@njit(cache=True, error_model="numpy", forceinline=True)
def similarities(tile, active, v, V, J, T, G):
    """G[j, i] = exp(-1/2 sum_d v_d^2 (x_id - x_jd)^2), (J', 64) flat: Eq. 2.3.

    tile (p, 64); active (D,) the features that enter; V `scaled` points, J of them; T is room for
    the tile times v, one, and minus half its norms.
    """
    zero, minus_half, D = tile.dtype.type(0), tile.dtype.type(-0.5), active.size
    half_norm = T[(D + 1) * TILE : (D + 2) * TILE]
    for i in range(TILE):
        T[D * TILE + i], half_norm[i] = 1.0, 0.0
    for k in range(D):
        row, scale = tile[active[k]], v[k]
        for i in range(TILE):
            t = scale * row[i]
            T[k * TILE + i] = t
            half_norm[i] += minus_half * t * t
    multiply(V[::1], T, G)
    for j in range(J):
        row = G[j * TILE : (j + 1) * TILE]
        for i in range(TILE):
            row[i] = exp_negative(min(zero, row[i]))


@njit(cache=True, error_model="numpy", inline="always")
def leave_out(own, G):
    """G_ij becomes zero where candidate j is row i itself: own (64,) is its position, or -1."""
    for i in range(TILE):
        if own[i] >= 0:
            G[own[i] * TILE + i] = 0.0


@njit(cache=True, error_model="numpy", forceinline=True)
def agreement(y, target, u, loss, h):
    """Estimates h_ij of the rows' responses by one prototype with this target, (64,).

    One where the classes agree; the target itself for squares; with u, a normal density of width
    1 / u: where u is None numba leaves out what densities need.
    """
    zero, one = h.dtype.type(0), h.dtype.type(1)
    if u is not None:
        half, height = h.dtype.type(0.5), u / h.dtype.type(ROOT_TAU)
        for i in range(TILE):
            d = u * (y[i] - target)
            h[i] = height * exp_negative(-half * d * d)
    elif loss == CLASSES:
        for i in range(TILE):
            h[i] = one if y[i] == target else zero
    else:
        for i in range(TILE):
            h[i] = target


@njit(cache=True, error_model="numpy", inline="always")
def slopes(y, weight, A, B, loss, alpha, beta):
    """Loss of a tile with estimates A / B; its derivatives by A, B go to alpha, beta (64,)."""
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
def add_impacts(G, first, stop, w, h, A, B):
    """A += w_j h G_j and B += w_j G_j, of points with the same target."""
    for j in range(first, stop):
        row, wj = G[j * TILE : (j + 1) * TILE], w[j]
        for i in range(TILE):
            g = wj * row[i]
            A[i] += h[i] * g
            B[i] += g


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def weight_slope(G, j, w, slope):
    """Derivative by w_j, slope being that by w_j G_j; G_j becomes C_j = w_j G_j slope."""
    row, s = G[j * TILE : (j + 1) * TILE], w - w
    for i in range(TILE):
        c = row[i] * slope[i]
        s += c
        row[i] = w * c
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def width_slope(G, j, y, target, u, h, alpha):
    """Derivative by u of the loss through prototype j, without its weight."""
    row, narrow, s = G[j * TILE : (j + 1) * TILE], h.dtype.type(1) / u, u - u
    for i in range(TILE):
        d = y[i] - target
        s += row[i] * alpha[i] * h[i] * (narrow - u * d * d)
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def feature_sum(T, Y, k, last):
    """sum_i (reach_i t_i^2 - 2 t_i Y_ki), reach being the last row of Y, t the k-th of T."""
    t, y = T[k * TILE : (k + 1) * TILE], Y[k * TILE : (k + 1) * TILE]
    reach, s = Y[last * TILE : (last + 1) * TILE], T[0] - T[0]
    for i in range(TILE):
        s += t[i] * (t[i] * reach[i] - (y[i] + y[i]))
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(
    lo, hi, partials, X, y, a, b, weight, own, step, active, v, V, w, target, runs, u, loss
):
    """Partial sums of the scoring rows' loss and its gradient, Eqs. 2.8 to 2.12.

    Row i has the estimate A / B, A = a_i + sum_j w_j h_ij G_ij and B = b_i + sum_j w_j G_ij, over
    the candidates but the one that it is itself, own_i (-1: none). X (n_tiles, p, 64); y, a, b,
    weight, own (n_tiles, 64), weight zero on padding; a block has `step` tiles. V `scaled`
    candidates, those with weights above zero first; w, target (J,); runs (R + 1,) where runs of
    equal targets begin, and J: no run has weights both zero and above. partials (n_blocks, 2 + D +
    J): the loss; its derivative by u; sum_ij C_ij v_d^2 (x_id^2 - 2 x_id x_jd) with C_ij = w_j
    times the derivative by w_j of row i; the derivatives by w.
    """
    kind = X.dtype
    D, J = active.size, w.size
    T, G = np.zeros(V.shape[1] * TILE, kind), np.zeros(V.shape[0] * TILE, kind)
    Y, h, slope = np.empty(V.shape[1] * TILE, kind), np.empty(TILE, kind), np.empty(TILE, kind)
    A, B = np.empty(TILE, kind), np.empty(TILE, kind)
    alpha, beta = np.empty(TILE, kind), np.empty(TILE, kind)
    live = 0
    for j in range(J):
        live += w[j] != 0
    used = -(-live // FOUR) * FOUR
    for block in range(lo, hi):
        out = partials[block]
        out[:] = 0.0
        for t in range(block * step, min((block + 1) * step, X.shape[0])):
            similarities(X[t], active, v, V, J, T, G)
            leave_out(own[t], G)
            for i in range(TILE):
                A[i], B[i] = a[t, i], b[t, i]
            for r in range(runs.size - 1):
                if runs[r] < live:
                    agreement(y[t], target[runs[r]], u, loss, h)
                    add_impacts(G, runs[r], runs[r + 1], w, h, A, B)
            out[0] += slopes(y[t], weight[t], A, B, loss, alpha, beta)
            for r in range(runs.size - 1):
                agreement(y[t], target[runs[r]], u, loss, h)
                for i in range(TILE):
                    slope[i] = alpha[i] * h[i] + beta[i]
                for j in range(runs[r], runs[r + 1]):
                    if u is not None and j < live:
                        out[1] += w[j] * width_slope(G, j, y[t], target[j], u, h, alpha)
                    out[2 + D + j] += weight_slope(G, j, w[j], slope)
            multiply(V[:used:1].T, G[: used * TILE], Y)
            for k in range(D):
                out[2 + k] += feature_sum(T, Y, k, D + 1)


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_sums(lo, hi, X, step, active, v, V, J, values, out):
    """out[t, q] += sum_j values_qj G_ij for the rows of tile t: every estimate is made of these.

    values (Q', J') with the weights in it, padded; out (n_tiles, Q, 64).
    """
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.zeros(V.shape[0] * TILE, kind)
    S = np.empty(values.shape[0] * TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, J, T, G)
        multiply(values[::1], G, S)
        for q in range(out.shape[1]):
            for i in range(TILE):
                out[t, q, i] += S[q * TILE + i]


@njit(cache=True, nogil=True, error_model="numpy")
def agreement_sums(lo, hi, X, step, y, active, v, V, w, target, u, loss, A, B):
    """A += sum_j w_j h_ij G_ij and B += sum_j w_j G_ij: what a batch brings to each row's estimate.

    A, B (n_tiles, 64).
    """
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    h = np.empty(TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, w.size, T, G)
        for j in range(w.size):
            agreement(y[t], target[j], u, loss, h)
            add_impacts(G, j, j + 1, w, h, A[t], B[t])


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_rows(lo, hi, X, step, active, v, V, w, out):
    """out[t, j] = w_j G_ij, the impact of each prototype on the rows of tile t."""
    kind = X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], active, v, V, w.size, T, G)
        for j in range(w.size):
            for i in range(TILE):
                out[t, j, i] = w[j] * G[j * TILE + i]


@njit(cache=True)
def square_sums(V, c, out):
    """out_k += sum_j c_j V_jk^2."""
    for j in range(c.size):
        if c[j] != 0.0:
            for k in range(out.size):
                z = float(V[j, k])
                out[k] += c[j] * z * z
