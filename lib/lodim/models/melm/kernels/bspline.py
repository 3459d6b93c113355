"""Cubic B-splines that spread many rows over a grid, which replaces sums over all pairs of rows.

Rows are columns of Z (r, n), sorted by class. They are divided into T equal ranges ("stripes") that
run in parallel: stripe s holds rows [n s / T, n (s + 1) / T). The periodic grid has three axes, of
which those beyond the k dimensions have one node (grid point)."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.melm.kernels.cpu import REASSOCIATE

BLOCK = 512  # rows whose features are in cache
SUPPORT = 4  # nodes that a row touches along an axis


@njit(cache=True, nogil=True, fastmath=REASSOCIATE, error_model="numpy")
def project(lo, hi, stripes, Z, V, P, ends):
    """Fill P (k, n) with the projections V'Z of stripes lo to hi - 1, and ends with their ranges.

    A stripe is a fixed range of rows. ends (stripes, 2, k) holds their smallest and largest values.
    """
    n, k = P.shape[1], V.shape[1]
    for s in range(lo, hi):
        ends[s, 0], ends[s, 1] = np.inf, -np.inf
        for first in range(n * s // stripes, n * (s + 1) // stripes, BLOCK):
            stop = min(first + BLOCK, n * (s + 1) // stripes)
            for j in range(k):
                row = P[j, first:stop]
                row[:] = 0.0
                for d in range(V.shape[0]):
                    x, z = V[d, j], Z[d, first:stop]
                    for i in range(row.size):
                        row[i] += x * z[i]
                for i in range(row.size):
                    ends[s, 0, j] = min(ends[s, 0, j], row[i])
                    ends[s, 1, j] = max(ends[s, 1, j], row[i])


@njit(cache=True, error_model="numpy", forceinline=True)
def spline(x, nodes, at, value, slope):
    """Compute the cubic B-splines of the grid points near x on one axis, and derivatives at x.

    Fills `at` (numbers of the grid points), value and slope, and returns how many entries it fills.
    x is in steps of the grid, which has `nodes` points.
    """
    if nodes == 1:
        at[0], value[0], slope[0] = 0, 1.0, 0.0
        return 1
    cell = np.floor(x)
    t = x - cell
    base = int(cell) - 1
    for m in range(SUPPORT):
        at[m] = (base + m) % nodes
    s = 1.0 - t
    value[0], value[3] = s * s * s / 6.0, t * t * t / 6.0
    value[1] = (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0
    value[2] = (4.0 - 6.0 * s * s + 3.0 * s * s * s) / 6.0
    slope[0], slope[3] = -0.5 * s * s, 0.5 * t * t
    slope[1] = -2.0 * t + 1.5 * t * t
    slope[2] = 2.0 * s - 1.5 * s * s
    return SUPPORT


@njit(cache=True, error_model="numpy", forceinline=True)
def set_splines(P, i, low, step, shape, at, value, slope):
    """Fill grid points, cubic B-splines and derivatives at row i for the three axes of a grid.

    P (k, n) holds projections; low is the lowest grid point, step the distance between them."""
    for j in range(3):
        x = (P[j, i] - low[j]) / step if j < P.shape[0] else 0.0
        if spline(x, shape[j], at[j], value[j], slope[j]) == 1:
            for m in range(1, SUPPORT):
                at[j, m], value[j, m], slope[j, m] = 0, 0.0, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def scatter(lo, hi, stripes, P, w, start, low, step, grids):
    """Spread each row's weight over the grid points around it, grids (stripes, C, M0, M1, M2).

    Each stripe (fixed range of rows) and class has its own grid. P (k, n) holds projections, start
    the first row of each class."""
    n = P.shape[1]
    shape = np.array(grids.shape[2:])
    at = np.empty((3, SUPPORT), np.int64)
    value, slope = np.empty((3, SUPPORT)), np.empty((3, SUPPORT))
    for s in range(lo, hi):
        grids[s] = 0.0
        for c in range(start.size - 1):
            grid = grids[s, c]
            first, stop = max(start[c], n * s // stripes), min(start[c + 1], n * (s + 1) // stripes)
            for i in range(first, stop):
                set_splines(P, i, low, step, shape, at, value, slope)
                for a in range(SUPPORT if shape[0] > 1 else 1):
                    for b in range(SUPPORT if shape[1] > 1 else 1):
                        x = w[i] * value[0, a] * value[1, b]
                        line = grid[at[0, a], at[1, b]]
                        for d in range(SUPPORT if shape[2] > 1 else 1):
                            line[at[2, d]] += x * value[2, d]


@njit(cache=True, error_model="numpy", forceinline=True)
def field_slopes(field, shape, at, value, slope, out):
    """Fill out (3,) with the slopes along the axes of `field`, a function interpolated on a grid.

    at, value and slope are grid points, splines and their derivatives at one row."""
    out[:] = 0.0
    for a in range(SUPPORT if shape[0] > 1 else 1):
        for b in range(SUPPORT if shape[1] > 1 else 1):
            line, f, g = field[at[0, a], at[1, b]], 0.0, 0.0
            for c in range(SUPPORT if shape[2] > 1 else 1):
                f += value[2, c] * line[at[2, c]]
                g += slope[2, c] * line[at[2, c]]
            out[0] += slope[0, a] * value[1, b] * f
            out[1] += value[0, a] * slope[1, b] * f
            out[2] += value[0, a] * value[1, b] * g


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy", forceinline=True)
def add_products(Z, first, g, size, out):
    """Add Z[:, first:first + size] g' to out, in place; g (k, size) are gradients at these rows."""
    for d in range(Z.shape[0]):
        z = Z[d, first : first + size]
        for j in range(out.shape[1]):
            s, row = 0.0, g[j]
            for i in range(size):
                s += z[i] * row[i]
            out[d, j] += s


@njit(cache=True, nogil=True, error_model="numpy")
def gather(lo, hi, stripes, P, Z, w, start, low, step, fields, partials):
    """Fill partials (stripes, r, k) with sum_i w_i z_i g_i' over the rows z_i of each stripe.

    g_i (k,) is the gradient at the row of the function `fields` of its class, given on a grid. A
    stripe is a fixed range of rows.
    """
    k, n = P.shape
    shape = np.array(fields.shape[1:])
    at = np.empty((3, SUPPORT), np.int64)
    value, slope = np.empty((3, SUPPORT)), np.empty((3, SUPPORT))
    g, x = np.empty((k, BLOCK)), np.empty(3)
    for s in range(lo, hi):
        partials[s] = 0.0
        for c in range(start.size - 1):
            begin, end = max(start[c], n * s // stripes), min(start[c + 1], n * (s + 1) // stripes)
            for first in range(begin, end, BLOCK):
                size = min(BLOCK, end - first)
                for i in range(size):
                    set_splines(P, first + i, low, step, shape, at, value, slope)
                    field_slopes(fields[c], shape, at, value, slope, x)
                    for j in range(k):
                        g[j, i] = w[first + i] * x[j] / step
                add_products(Z, first, g, size, partials[s])


@njit(cache=True, nogil=True, error_model="numpy")
def interpolate(P, rows, low, step, field):
    """Return `field`, a function on a grid, interpolated at the rows with positions `rows`, (m,).

    P (k, n) holds the projections of all rows; low and step define the grid."""
    out = np.zeros(rows.size)
    shape = np.array(field.shape)
    at = np.empty((3, SUPPORT), np.int64)
    value, slope = np.empty((3, SUPPORT)), np.empty((3, SUPPORT))
    for e in range(rows.size):
        set_splines(P, rows[e], low, step, shape, at, value, slope)
        for a in range(SUPPORT if shape[0] > 1 else 1):
            for b in range(SUPPORT if shape[1] > 1 else 1):
                line, x = field[at[0, a], at[1, b]], value[0, a] * value[1, b]
                for c in range(SUPPORT if shape[2] > 1 else 1):
                    out[e] += x * value[2, c] * line[at[2, c]]
    return out
