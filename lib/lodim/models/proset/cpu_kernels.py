"""Compiled CPU loops of proset: sums over prototypes, and the loss with its gradient."""

import math
from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE

CLASSES, SQUARED, DENSITY = 0, 1, 2
FOUR = 4  # `multiply` computes four rows and columns at once: matrices are padded to that

# Functions for one tile of 64 rows are always inlined: otherwise rounding could differ between a
# fresh compilation and code from the cache. Sums over tiles are in float64.
REASSOCIATE = {"reassoc", "contract", "nsz"}
ROOT_TAU = math.sqrt(2.0 * math.pi)


class Points(NamedTuple):
    """J candidates or prototypes, described by the D features with positive weight."""

    active: np.ndarray  # (D,) positions of the features
    v: np.ndarray  # (D,) feature weights
    V: np.ndarray  # matrix from `similarity_matrix`, from which similarities with rows are computed
    w: np.ndarray  # (J,) weights of the points
    target: np.ndarray  # (J,) class codes or numeric responses


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def multiply(V, T, Z):
    """Compute the matrix product Z (M, 64) = V (M, K) T (K, 64) in place; T and Z are flat."""
    # Flat T and Z show the compiler that their rows do not overlap. Callers write V[::1], which
    # hides the memory layout of V: one compilation then also suits transposed matrices.
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
def similarity_matrix(x, v, rows, columns):
    """Return a matrix V such that V q are the log similarities of J points with a data row.

    V[j] is (z, -|z|^2 / 2, 1, 0, ...), with z = v * x[rows[j], columns] for D feature weights v.
    q is (t, 1, -|t|^2 / 2, 0, ...), with t = v * s[columns] for a data row of features s.
    x : (n, p) features; rows : (J,) positions of points; columns : (D,) positions of features"""
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
def similarities(tile, points, T, G):
    """Fill G with similarities exp(-1/2 sum_d v_d^2 (x_id - x_jd)^2), row i to point j (Eq. 2.3).

    tile : (p, 64) features of the rows; points : Points, with features and feature weights v
    G : flat, 64 values per point; T : filled with weighted features of the rows"""
    active, v, V, w, _ = points
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
    for j in range(w.size):
        row = G[j * TILE : (j + 1) * TILE]
        for i in range(TILE):
            row[i] = exp_negative(min(zero, row[i]))


@njit(cache=True, error_model="numpy", inline="always")
def leave_out(own, G):
    """Set the similarities in G of 64 rows with themselves to zero.

    G : flat, 64 similarities per candidate; own : (64,) candidate that is the same row, or -1"""
    for i in range(TILE):
        if own[i] >= 0:
            G[own[i] * TILE + i] = 0.0


@njit(cache=True, error_model="numpy", forceinline=True)
def agreement(y, target, u, loss, h):
    """Fill h (64,) with what a prototype of response `target` predicts for 64 rows' responses y.

    loss : CLASSES, the probability of y, 1 or 0; DENSITY, a normal density at y with mean `target`
        and SD 1 / u; SQUARED, the mean, `target`. Estimates average h over prototypes."""
    zero, one = h.dtype.type(0), h.dtype.type(1)
    if loss == DENSITY:
        half, height = h.dtype.type(0.5), u / h.dtype.type(ROOT_TAU)
        for i in range(TILE):
            d = u * (y[i] - target)
            h[i] = height * exp_negative(-half * d * d)
    elif loss == CLASSES:
        for i in range(TILE):
            h[i] = one if y[i] == target else zero
    else:
        h[:] = target


@njit(cache=True, error_model="numpy", inline="always")
def slopes(y, weight, A, B, loss, alpha, beta):
    """Return the loss of estimates A / B of 64 rows; fill alpha and beta with its derivatives.

    alpha, beta : (64,) derivatives of the loss by A and B
    loss : SQUARED for means of the response y, else A / B is the probability or density of y"""
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
    """Add prototypes `first` to `stop` - 1, of equal predictions, to estimates A / B of 64 rows.

    An estimate is a weighted mean of predictions h_i, with weights w_j G_ij over prototypes j.
    B[i] grows by the sum of these weights, A[i] by h_i times this sum.
    w : (J,) weights of prototypes; G : flat, 64 similarities G_ij of the rows per prototype
    h : (64,) prediction for each row, the same by all these prototypes"""
    for j in range(first, stop):
        row, wj = G[j * TILE : (j + 1) * TILE], w[j]
        for i in range(TILE):
            g = wj * row[i]
            A[i] += h[i] * g
            B[i] += g


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def weight_slope(G, j, w, slope):
    """Return the derivative of the loss of 64 rows by the weight w of candidate j.

    G : flat, 64 similarities per candidate; those of j are replaced by w * similarity * slope
    slope : (64,) derivative of each row's loss by w * similarity to j"""
    row, s = G[j * TILE : (j + 1) * TILE], w - w
    for i in range(TILE):
        c = row[i] * slope[i]
        s += c
        row[i] = w * c
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def width_slope(G, j, y, target, u, h, alpha):
    """Return prototype j's part of the derivative of 64 rows' loss by u, divided by j's weight.

    Prototype j predicts a normal density of the response, with mean `target` and SD 1 / u. A row's
    estimate A / B is a weighted mean of such densities at its response y.
    h : (64,) density of j at y; alpha : (64,) derivatives of row losses by A
    G : flat, 64 similarities to the rows per prototype; y : (64,) responses"""
    row, narrow, s = G[j * TILE : (j + 1) * TILE], h.dtype.type(1) / u, u - u
    for i in range(TILE):
        d = y[i] - target
        s += row[i] * alpha[i] * h[i] * (narrow - u * d * d)
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def feature_sum(T, Y, k, last):
    """Return a part of the loss derivative by feature weight v_k, over 64 rows i and all points j.

    It is sum_ij C_ij (t_ik^2 - 2 t_ik z_jk); sum_ij C_ij z_jk^2 is added later. The total is -v_k
    times the derivative. Here t and z are weighted features of rows and points, and C_ij is w_j
    times the derivative of row i's loss by weight w_j.
    T : flat, 64 numbers t_ik per feature k
    Y : flat, 64 sums sum_j C_ij z_jk per feature k; at feature `last`, sum_j C_ij instead"""
    t, y = T[k * TILE : (k + 1) * TILE], Y[k * TILE : (k + 1) * TILE]
    reach, s = Y[last * TILE : (last + 1) * TILE], T[0] - T[0]
    for i in range(TILE):
        s += t[i] * (t[i] * reach[i] - (y[i] + y[i]))
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(lo, hi, partials, scoring, step, points, runs, u, loss):
    """Write the loss of the scoring rows and its gradient (Ruf 2022, Eqs. 2.8-2.12) to `partials`.

    Candidate j has weight w_j, similarity G_ij to row i (0 if it is row i), which depends on the
    feature weights v_d, and prediction h_ij: P(y_i), a density at y_i, or a mean. The estimate
    of row i is A_i / B_i, with A_i = a_i + sum_j w_j h_ij G_ij and B_i = b_i + sum_j w_j G_ij.
    scoring : ScoringRows (rows whose loss counts), with a_i and b_i by prototypes fitted before
    points : Points, the J candidates, positive weights first
    runs : first position of each run of candidates of equal response and sign of weight; then J
    u : inverse SD of normal densities h_ij; loss : kind of h_ij, CLASSES, DENSITY or SQUARED
    partials[k] : sums over blocks k * step to (k + 1) * step - 1 of 64 rows, for lo <= k < hi:
        the loss; its derivative by u; for each feature d, sum_ij C_ij v_d^2 (x_id^2 - 2 x_id x_jd),
        where C_ij is w_j times the derivative of row i's loss by w_j; J derivatives by w_j"""
    X, y, weight, own = scoring.X, scoring.y, scoring.weight, scoring.own
    _, _, V, w, target = points
    kind = X.dtype
    D, J = points.active.size, w.size
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
            similarities(X[t], points, T, G)
            leave_out(own[t], G)
            for i in range(TILE):
                A[i], B[i] = scoring.a[t, i], scoring.b[t, i]
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
                    if loss == DENSITY and j < live:
                        out[1] += w[j] * width_slope(G, j, y[t], target[j], u, h, alpha)
                    out[2 + D + j] += weight_slope(G, j, w[j], slope)
            multiply(V[:used:1].T, G[: used * TILE], Y)
            for k in range(D):
                out[2 + k] += feature_sum(T, Y, k, D + 1)


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_sums(lo, hi, X, step, points, values, out):
    """Add up values of prototypes, weighted by their similarities with each row, into `out`.

    out[t, q, i] grows by sum_j values[q, j] G_ij, with similarity G_ij of row i of block t to
    prototype j. X : (blocks, p, 64), blocks lo * step to hi * step - 1 are processed
    points : Points, the J prototypes; values : (Q, J), padded with zeros to multiples of four"""
    V, kind = points.V, X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.zeros(V.shape[0] * TILE, kind)
    S = np.empty(values.shape[0] * TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], points, T, G)
        multiply(values[::1], G, S)
        for q in range(out.shape[1]):
            for i in range(TILE):
                out[t, q, i] += S[q * TILE + i]


@njit(cache=True, nogil=True, error_model="numpy")
def agreement_sums(lo, hi, X, step, y, points, u, loss, A, B):
    """Add the prototypes `points` to numerators A and denominators B of the rows' estimates A / B.

    B_i grows by sum_j w_j G_ij, A_i by sum_j w_j h_ij G_ij, with weight w_j and similarity G_ij.
    The prediction h_ij is P(y_i) for CLASSES, N(y_i; y_j, 1 / u^2) for DENSITY, y_j for SQUARED.
    X : (blocks, D, 64); y, A, B : (blocks, 64); blocks lo * step to hi * step - 1 are processed"""
    V, w, kind = points.V, points.w, X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    h = np.empty(TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], points, T, G)
        for j in range(w.size):
            agreement(y[t], points.target[j], u, loss, h)
            add_impacts(G, j, j + 1, w, h, A[t], B[t])


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_rows(lo, hi, X, step, points, out):
    """Fill out[t, j, i] with weight times similarity of prototype j in `points`, row i of block t.

    X : (blocks, p, 64) features, of which blocks lo * step to hi * step - 1 are processed"""
    V, w, kind = points.V, points.w, X.dtype
    T, G = np.zeros(V.shape[1] * TILE, kind), np.empty(V.shape[0] * TILE, kind)
    for t in range(lo * step, min(hi * step, X.shape[0])):
        similarities(X[t], points, T, G)
        for j in range(w.size):
            for i in range(TILE):
                out[t, j, i] = w[j] * G[j * TILE + i]


@njit(cache=True)
def square_sums(V, c, out):
    """Add sum_j c_j V_jk^2 to out[k], for points with weighted features V_jk and factors c_j."""
    for j in range(c.size):
        if c[j] != 0.0:
            for k in range(out.size):
                z = float(V[j, k])
                out[k] += c[j] * z * z
