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
    """Return a matrix that `similarities` multiplies by data rows to get log similarities.

    Its first J rows belong to the J points; the others are padding.
    x : (n, p) features; v : (D,) feature weights
    rows : (J,) positions of the points in x; columns : (D,) positions of the features"""
    # V[j] is (z, -|z|^2 / 2, 1, 0, ...). Its product with (t, 1, -|t|^2 / 2, 0, ...) is the log
    # similarity with a data row; z and t are weighted features of point j and the row.
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
    """Fill G with the similarities of 64 rows to the points (Eq. 2.3 of Ruf 2022).

    tile : (p, 64) features of the rows; points : Points
    G : flat, 64 similarities per point; T : flat, filled with weighted features of the rows"""
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

    u : inverse SD of normal densities
    loss : kind of prediction, CLASSES for P(y), DENSITY for a density at y, SQUARED for a mean"""
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

    y, weight : (64,) responses and row weights; alpha, beta : (64,) derivatives by A and B
    loss : CLASSES, SQUARED or DENSITY, the kind of loss"""
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

    G : flat, 64 similarities per prototype; w : (J,) weights of prototypes
    h : (64,) prediction for each row; A, B : (64,), changed in place"""
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
    slope : (64,) derivative of each row's loss by w * similarity"""
    row, s = G[j * TILE : (j + 1) * TILE], w - w
    for i in range(TILE):
        c = row[i] * slope[i]
        s += c
        row[i] = w * c
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def width_slope(G, j, y, target, u, h, alpha):
    """Return prototype j's part of the derivative of the loss by u, divided by j's weight.

    G : flat, 64 similarities per prototype; y : (64,) responses of the rows
    target : response of prototype j; u : inverse SD of normal densities
    h : (64,) j's density at y; alpha : (64,) derivatives of the loss by numerators of estimates"""
    row, narrow, s = G[j * TILE : (j + 1) * TILE], h.dtype.type(1) / u, u - u
    for i in range(TILE):
        d = y[i] - target
        s += row[i] * alpha[i] * h[i] * (narrow - u * d * d)
    return s


@njit(cache=True, fastmath=REASSOCIATE, forceinline=True)
def feature_sum(T, Y, k, last):
    """Return a part of -v dL/dv, where v is the weight of feature k and L the loss of 64 rows.

    T : flat, 64 weighted values per feature
    Y : flat, per feature and row the sum of slope * weighted feature over points
    last : position in Y, counted like k, of each row's sum of slopes"""
    # The derivative sums C_ij (t_ik - z_jk)^2 over rows i and points j, with weighted features t, z
    # and slopes C. Here are two of the three terms of the square; `square_sums` adds the last.
    t, y = T[k * TILE : (k + 1) * TILE], Y[k * TILE : (k + 1) * TILE]
    reach, s = Y[last * TILE : (last + 1) * TILE], T[0] - T[0]
    for i in range(TILE):
        s += t[i] * (t[i] * reach[i] - (y[i] + y[i]))
    return s


@njit(cache=True, nogil=True, error_model="numpy")
def loss_gradient(lo, hi, partials, scoring, step, points, runs, u, loss):
    """Write the loss of the scoring rows (Ruf 2022, Eq. 2.8) and its derivatives to `partials`.

    lo, hi : range of rows of `partials` to fill; step : blocks of 64 rows summed in each
    scoring : ScoringRows; points : Points, the J candidates, positive weights first
    runs : first candidate of each run of equal response and sign of weight, then J
    u : inverse SD of normal densities; loss : CLASSES, SQUARED or DENSITY
    partials : (parts, 2 + D + J) loss, derivative by u, results of `feature_sum` per feature,
        derivatives by the weights"""
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

    lo, hi, step : range of blocks of 64 rows, lo * step to hi * step - 1; X : (blocks, p, 64)
    points : Points, the J prototypes; values : (Q, J), padded with zeros to multiples of four
    out : (blocks, Q, 64), updated"""
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

    lo, hi, step : range of blocks of 64 rows, lo * step to hi * step - 1; X : (blocks, D, 64)
    y : (blocks, 64) responses; A, B : (blocks, 64) sums, updated
    u : inverse SD of normal densities; loss : CLASSES, SQUARED or DENSITY"""
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
