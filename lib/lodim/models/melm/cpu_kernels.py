"""CPU kernels of melm: integrals of products of two class densities, and log densities."""

import math

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative
from lodim.engine.tiles import TILE

BLOCK = 64  # rows per block, whose partners stay in the cache
CHUNK = 512  # columns of a block
LANES = 16  # columns per vectorized loop step
DIGITS = 45.0  # exp(-DIGITS) is negligible relative to one, even times a million

REASSOCIATE = {"reassoc", "contract", "nsz"}
LOG_TAU = math.log(2.0 * math.pi)
# Inlined before types are inferred: this saves a compilation, and compiled code that is loaded from
# the cache rounds like new code.
INNER = {"cache": True, "error_model": "numpy", "forceinline": True, "inline": "always"}


@njit(**INNER, fastmath=REASSOCIATE)
def invert_root(S, root):
    """Fill root (k, k) with L^-1, where S = L L'; return log det S (NaN if S is not positive)."""
    k, log_det = S.shape[0], 0.0
    for i in range(k):
        for j in range(i + 1):
            remainder = S[i, j]
            for m in range(j):
                remainder -= root[i, m] * root[j, m]
            root[i, j] = math.sqrt(remainder) if i == j else remainder / root[j, j]
        for j in range(i + 1, k):
            root[i, j] = 0.0
        log_det += 2.0 * math.log(root[i, i])
    for j in range(k):
        root[j, j] = 1.0 / root[j, j]
        for i in range(j + 1, k):
            remainder = 0.0
            for m in range(j, i):
                remainder -= root[i, m] * root[m, j]
            root[i, j] = remainder / root[i, i]
    return log_det


@njit(cache=True, nogil=True, fastmath=REASSOCIATE, error_model="numpy")
def prepare(lo, hi, active, V, Z, cov, h2, results):
    """Project rows and compute kernel covariances, for the projections active[lo:hi].

    V : (Q, r, k) projections; Z : (r, n) rows
    cov : (C, r, r) class covariances; h2 : (C,) squared bandwidths
    results : arrays (P, spread, root, log_det) to fill
    P : projected rows; spread : class covariances times the projection
    root : per pair of classes A <= B, inverse Cholesky factor of summed kernel covariances
    log_det : log determinants of these sums"""
    P, spread, root, log_det = results
    r, k = V.shape[1:]
    C, S = h2.size, np.empty((k, k))
    form = np.empty((C, k, k))
    for q in range(lo, hi):
        v = V[active[q]]
        for j in range(k):
            row = P[q, j]
            row[:] = 0.0
            for d in range(r):
                x, z = v[d, j], Z[d]
                for i in range(z.size):
                    row[i] += x * z[i]
        for c in range(C):
            out = spread[q, c]
            for d in range(r):
                for j in range(k):
                    s = 0.0
                    for e in range(r):
                        s += cov[c, d, e] * v[e, j]
                    out[d, j] = s
            for i in range(k):
                for j in range(k):
                    s = 0.0
                    for d in range(r):
                        s += v[d, i] * out[d, j]
                    form[c, i, j] = s
        for a in range(C):
            for b in range(a, C):
                for i in range(k):
                    for j in range(k):
                        S[i, j] = h2[a] * form[a, i, j] + h2[b] * form[b, i, j]
                log_det[q, a, b] = invert_root(S, root[q, a, b])


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy", forceinline=True)
def whiten(P, first, size, root, U):
    """Fill U[:, :size] with root @ P[:, first : first + size]; root is lower triangular, (k, k)."""
    for j in range(root.shape[0]):
        for i in range(size):
            U[j, i] = root[j, 0] * P[0, first + i]
        for m in range(1, j + 1):
            for i in range(size):
                U[j, i] += root[j, m] * P[m, first + i]


@njit(cache=True, fastmath={"contract"}, error_model="numpy", forceinline=True)
def kernel(x):
    """Return exp(min(x, 0)) of a number x, compiled so that sums inside exp are not reordered."""
    return exp_negative(min(0.0, x))


@njit(**INNER, fastmath=REASSOCIATE)
def add_squares(x, U, e):
    for i in range(e.size):
        t = x - U[i]
        e[i] += t * t


@njit(**INNER, fastmath=REASSOCIATE)
def weigh_kernels(scale, w, shift, e):
    """Replace squared distances e (n,) by kernels scale w exp(shift - e / 2); return their sum."""
    total = 0.0
    for i in range(e.size):
        t = scale * w[i] * kernel(shift - 0.5 * e[i])
        e[i] = t
        total += t
    return total


@njit(**INNER, fastmath=REASSOCIATE)
def subtract_forces(x, U, e, T):
    """Subtract e_i (x - U_i) from T_i for each of n points, and return the sum of these terms.

    x : a coordinate of one point; U : (n,) this coordinate of the n points; e : (n,) kernels"""
    total = 0.0
    for i in range(e.size):
        t = e[i] * (x - U[i])
        total += t
        T[i] -= t
    return total


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy", forceinline=True)
def row_sums(u, scale, U, w, after, size, shift, e, T, R):
    """Sum weighted normal kernels over pairs of rows u[:, a] and U[:, i]; return the sum.

    scale, w : weights of the rows in u and in U
    after, size : pairs are those with after + a <= i < size
    shift : constant added to exponents; e : (columns of U,) work array
    T, R : (k, rows) sums of kernel * difference for each row in U and in u, updated"""
    k, total = len(u), 0.0
    for a in range(scale.size):
        first = max(0, after + a)
        if first >= size:
            break
        n = size - first
        stop = first + n + -n % LANES
        v = w[first:stop]
        psi = e[first:stop]
        psi[:] = 0.0
        for j in range(k):
            add_squares(u[j, a], U[j][first:stop], psi)
        total += weigh_kernels(scale[a], v, shift, psi)
        for j in range(k):
            R[j, a] += subtract_forces(u[j, a], U[j][first:stop], psi, T[j][first:stop])
    return total


@njit(**INNER)
def block_sums(P, w, root, span_a, span_b, same, shift, scratch, forces_a, forces_b):
    """Sum normal kernels over pairs of a row in range a and a row in range b; return the sum.

    P : (k, n) projected rows; w : (n,) weights; root : (k, k) whitening map
    span_a, span_b : (first, end) of each range
    same : whether both ranges start at the same row
    shift : constant added to exponents; scratch : work arrays
    forces_a, forces_b : (k, n) sums of kernel * difference, updated"""
    (a0, a1), (b0, b1), (u, U, v, e, T, R, scale) = span_a, span_b, scratch
    k, total, rows = root.shape[0], 0.0, a1 - a0
    whiten(P, a0, rows, root, u)
    R[:] = 0.0
    # Within a class, a row is both first and second row of a pair: i < j counts twice, i > j never.
    for a in range(rows):
        scale[a] = 2.0 * w[a0 + a] if same else w[a0 + a]
    for first in range(b0, b1, CHUNK):
        size = min(CHUNK, b1 - first)
        wide = size + LANES
        whiten(P, first, size, root, U)
        for i in range(size):
            v[i] = w[first + i]
        v[size:wide] = 0.0
        for j in range(k):
            U[j, size:wide] = U[j, 0]
        T[:] = 0.0
        after = a0 + 1 - first if same else -rows
        total += row_sums(u, scale[:rows], U, v, after, size, shift, e, T, R)
        for j in range(k):
            for i in range(size):
                forces_b[j, first + i] += T[j, i]
    for j in range(k):
        for a in range(rows):
            forces_a[j, a0 + a] += R[j, a]
    if same:
        for a in range(a0, a1):
            total += w[a] * w[a]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def pair_sums(lo, hi, stripes, P, w, start, root, shift, totals, forces):
    """Sum kernels over pairs of rows, and compute forces on rows, in tasks lo to hi - 1.

    The force of a class on a row x sums kernel * (x - z) over the rows z of the class.
    stripes : tasks per projection; start : first row of each class
    P : (Q, k, n) projected rows; w : (n,) weights
    root : (Q, C, C, k, k) whitening maps; shift : (Q, C, C), added to exponents
    totals : (tasks, C, C) sums to fill, for classes A <= B
    forces : (tasks, C, k, n) to fill"""
    k, C, wide = P.shape[1], start.size - 1, CHUNK + LANES
    u, R = np.empty((k, BLOCK)), np.empty((k, BLOCK))
    U, T = np.empty((k, wide)), np.empty((k, wide))
    scratch = u, U, np.empty(wide), np.empty(wide), T, R, np.empty(BLOCK)
    for unit in range(lo, hi):
        q, stripe = unit // stripes, unit % stripes
        forces[unit] = 0.0
        for a in range(C):
            for b in range(a, C):
                total, L = 0.0, root[q, a, b]
                out_a, out_b, c = forces[unit, b], forces[unit, a], shift[q, a, b]
                for a0 in range(start[a] + stripe * BLOCK, start[a + 1], stripes * BLOCK):
                    span_a = a0, min(a0 + BLOCK, start[a + 1])
                    span_b, same = (a0 if a == b else start[b], start[b + 1]), a == b
                    total += block_sums(P[q], w, L, span_a, span_b, same, c, scratch, out_a, out_b)
                totals[unit, a, b] = total


@njit(**INNER, fastmath=REASSOCIATE)
def add_forces(P, F, first, stop, factor, root, M, g):
    """Add P F' to M and factor * root' F to g, for the rows `first` to `stop` - 1 only.

    P : (k, n) projected rows; F : (k, n) forces on the rows, sums of kernel * difference
    M, g : (k, k) and (k, n) parts of a gradient, updated"""
    for j in range(M.shape[0]):
        for m in range(M.shape[0]):
            s, x = 0.0, factor * root[m, j]
            for i in range(first, stop):
                s += P[j, i] * F[m, i]
                g[j, i] += x * F[m, i]
            M[j, m] += s


@njit(cache=True, nogil=True, fastmath=REASSOCIATE, error_model="numpy")
def finish(lo, hi, active, stripes, rows, sums, potential, gradient):
    """Compute log integrals of products of two class densities, and their weighted sum's gradient.

    lo, hi : range of projections; stripes : tasks per projection
    rows : (Z, P, start, size, h2, share)
        Z, P : rows before and after projection; share : weights of the log integrals
        start, size, h2 : first row, total weight and squared bandwidth of each class
    sums : (spread, root, log_det, shift, totals, forces), as in `prepare` and `pair_sums`
    potential : (q, C, C) log integrals to fill
    gradient : (Q, r, k) derivatives to fill at the positions `active`"""
    Z, P, start, size, h2, share = rows
    spread, root, log_det, shift, totals, forces = sums
    C, (k, n) = size.size, P.shape[1:]
    g, M, N, inverse = np.empty((k, n)), np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    K = np.empty((C, k, k))
    for q in range(lo, hi):
        F = forces[q * stripes]
        for unit in range(q * stripes + 1, (q + 1) * stripes):
            for c in range(C):
                for j in range(k):
                    for i in range(n):
                        F[c, j, i] += forces[unit, c, j, i]
        g[:], K[:] = 0.0, 0.0
        for a in range(C):
            for b in range(a, C):
                L, total = root[q, a, b], 0.0
                for unit in range(q * stripes, (q + 1) * stripes):
                    total += totals[unit, a, b]
                unit = shift[q, a, b] + 0.5 * (log_det[q, a, b] + k * LOG_TAU)
                potential[q, a, b] = math.log(total) - unit - math.log(size[a] * size[b])
                M[:] = 0.0
                for turn in range(1 if a == b else 2):
                    own, other = (a, b) if turn == 0 else (b, a)
                    first, stop = start[own], start[own + 1]
                    add_forces(P[q], F[other], first, stop, -share[a, b] / total, L, M, g)
                for i in range(k):  # inverse = L'L, and N = M L
                    for j in range(k):
                        s, t = 0.0, 0.0
                        for m in range(k):
                            s += L[m, i] * L[m, j]
                            t += M[i, m] * L[m, j]
                        inverse[i, j], N[i, j] = s, t
                for i in range(k):
                    for j in range(k):
                        s = 0.0
                        for m in range(k):
                            s += inverse[i, m] * N[m, j]
                        x = share[a, b] * (s / total - inverse[i, j])
                        K[a, i, j] += h2[a] * x
                        K[b, i, j] += h2[b] * x
        for d in range(Z.shape[0]):
            z = Z[d]
            for j in range(k):
                s = 0.0
                for i in range(n):
                    s += z[i] * g[j, i]
                for c in range(C):
                    for m in range(k):
                        s += spread[q, c, d, m] * K[c, m, j]
                gradient[active[q], d, j] = s


# Log densities at points, from rows in tiles (blocks of 64 rows) with bounding boxes --------------


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy", forceinline=True)
def squares_of(u, U, e):
    """Fill e (64,) with the squared distances of a point u to the columns of U (k, 64)."""
    for i in range(TILE):
        e[i] = 0.0
    for j in range(u.size):
        x, row = u[j], U[j]
        for i in range(TILE):
            t = x - row[i]
            e[i] += t * t


@njit(**INNER, fastmath=REASSOCIATE)
def weigh(e, w, least):
    """Return the sum of w exp(-(e - least) / 2), for squared distances e, all at least `least`."""
    total = 0.0
    for i in range(TILE):
        total += w[i] * kernel(0.5 * (least - e[i]))
    return total


@njit(**INNER, fastmath=REASSOCIATE)
def gap(u, low, high):
    """Return the squared distance of a point u to the box with corners low and high; 0 inside."""
    s = 0.0
    for j in range(u.size):
        t = max(0.0, max(low[j] - u[j], u[j] - high[j]))
        s += t * t
    return s


@njit(**INNER, fastmath=REASSOCIATE)
def log_sum(u, classes, c, tile, place, gaps, e):
    """Return the log of the sum of class c's kernels at a point u (k,), in the coordinates of U.

    classes : (root, U, w, low, high, start), fields of Densities
    tile, place : block of the row to leave out, and its position there; -1 for none
    gaps, e : work arrays with an element per block of the class, and with 64"""
    _, U, w, low, high, start = classes
    first, stop = start[c], start[c + 1]
    nearest = first
    for t in range(first, stop):
        gaps[t - first] = gap(u, low[t], high[t])
        if gaps[t - first] < gaps[nearest - first]:
            nearest = t
    least = np.inf
    for turn in range(stop - first + 1):
        t = nearest if turn == 0 else first + turn - 1
        if gaps[t - first] < least:
            squares_of(u, U[t], e)
            for i in range(TILE):
                if w[t, i] > 0.0 and not (t == tile and i == place):
                    least = min(least, e[i])
    if least == np.inf:
        return -np.inf
    total = 0.0
    for t in range(first, stop):
        # Far away both are rounded, so their difference is not accurate.
        if gaps[t - first] * (1.0 - 1e-12) <= least + 2.0 * DIGITS:
            squares_of(u, U[t], e)
            if t == tile:
                e[place] = np.inf
            total += weigh(e, w[t], least)
    return np.log(total) - 0.5 * least


@njit(cache=True, nogil=True, fastmath=REASSOCIATE, error_model="numpy")
def log_sums(lo, hi, step, P, classes, tile, place, out):
    """Fill out[i, c] with the log of the sum of class c's kernels at the point P[:, i].

    lo, hi, step : range of points, lo * step to hi * step - 1; P : (k, m) points
    classes : (root, U, w, low, high, start), fields of Densities
    tile, place : (m,) block of the row to leave out, and its position there; -1 for none"""
    root, _, _, _, _, start = classes
    k, m = P.shape
    u, at, e = np.empty((k, 1)), np.empty(k), np.empty(TILE)
    most = 1
    for c in range(start.size - 1):
        most = max(most, start[c + 1] - start[c])
    gaps = np.empty(most)
    for i in range(lo * step, min(m, hi * step)):
        for c in range(start.size - 1):
            whiten(P, i, u.shape[1], root[c], u)
            for j in range(k):
                at[j] = u[j, 0]
            out[i, c] = log_sum(at, classes, c, tile[i], place[i], gaps, e)
