"""Log kernel densities at points, from rows in tiles (blocks of 64 rows) with bounding boxes."""

from typing import NamedTuple

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.models.melm.cpu_kernels import INNER, REASSOCIATE, kernel, whiten

TILE = 64
STEP = 256  # rows per block
DIGITS = 45.0  # exp(-DIGITS) is negligible relative to one, even times a million


class ClassTiles(NamedTuple):
    """Rows of C classes in T tiles (blocks of 64 rows), for kernel densities in k dimensions."""

    root: np.ndarray  # (C, k, k) inverse Cholesky factor of each class's kernel covariance
    # U, w: (T, k, 64) rows, multiplied by the matrix `root` of their class; (T, 64) weights
    U: np.ndarray
    w: np.ndarray
    # low, high: (T, k) smallest and largest coordinates of the rows of each tile
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray  # class c has the tiles start[c] to start[c + 1] - 1


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
    """Return the log of the sum of w_i exp(-1/2 |u - U_i|^2) over the rows U_i of class c.

    Row `place` of `tile`, a block of 64 rows, is left out (-1: none). Blocks with a bounding box
    far from u are skipped. gaps and e are work arrays."""
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
    """Fill out[i, c] with the log of class c's summed kernels at points P[:, i].

    lo, hi, step : i runs from lo * step to hi * step - 1
    tile, place : for a training row i, its block of 64 rows in `classes` and its position there,
        which are left out; else -1"""
    root, start = classes.root, classes.start
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


def neighbours_first(u):
    """Return an order (n,) of rows u (n, k) in which blocks of 64 rows contain neighbours."""
    order, n = np.arange(len(u)), len(u)
    group = np.zeros(n, np.int64)
    for j in range(u.shape[1]):
        order = order[np.lexsort((u[order, j], group[order]))]
        strips = max(1.0, (n / TILE) ** (1.0 / u.shape[1]))
        size = max(TILE, int(n / strips ** (j + 1)))
        group[order] = np.arange(n) // size
    return order


def pack_tiles(u, w):
    """Return rows u (n, k) and weights w in T tiles of 64 rows: U, w, low, high.

    U, w : (T, k, 64) and (T, 64); low, high : (T, k), smallest and largest coordinates in a tile"""
    n, k = u.shape
    count = -(-n // TILE)
    filled = np.concatenate([u, np.repeat(u[-1:], count * TILE - n, axis=0)])
    U = filled.reshape(count, TILE, k)
    weights = np.concatenate([w, np.zeros(count * TILE - n)]).reshape(count, TILE)
    return np.ascontiguousarray(U.transpose(0, 2, 1)), weights, U.min(axis=1), U.max(axis=1)


def class_log_sums(P, classes, place=None, threads=1):
    """Return the log of each class's summed kernels, (m, C), at the columns of P (k, m).

    For a training row i, place[:, i] is its position (block of 64 rows, row) to leave out."""
    m = P.shape[1]
    place = np.full((2, m), -1) if place is None else place
    out = np.empty((m, len(classes.root)))
    for_blocks(log_sums, -(-m // STEP), STEP, P, classes, *place, out, threads=threads)
    return out
