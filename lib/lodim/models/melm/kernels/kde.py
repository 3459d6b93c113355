"""Kernel densities at points, in logarithms, over tiles of rows with their boxes.

A tile too far from the point to leave a digit in the sum is passed over, so that the work follows
the rows near by, and a point far from all still has a finite logarithm, that of the nearest row.
"""

import numpy as np

from lodim.engine.blocks import for_blocks
from lodim.engine.compiled import njit
from lodim.models.melm.kernels.cpu import INNER, LOG_TAU, REASSOCIATE, kernel, whiten

TILE = 64
STEP = 256  # rows of a block
DIGITS = 45.0  # exp(-DIGITS) is negligible relative to one, even a million times


@njit(cache=True, fastmath=REASSOCIATE, error_model="numpy", forceinline=True)
def squares_of(u, U, e):
    """e = |u - U|^2 for each column of a tile."""
    for i in range(TILE):
        e[i] = 0.0
    for j in range(u.size):
        x, row = u[j], U[j]
        for i in range(TILE):
            t = x - row[i]
            e[i] += t * t


@njit(**INNER, fastmath=REASSOCIATE)
def weigh(e, w, least):
    """Sum of w exp(-(e - least) / 2)."""
    total = 0.0
    for i in range(TILE):
        total += w[i] * kernel(0.5 * (least - e[i]))
    return total


@njit(**INNER, fastmath=REASSOCIATE)
def gap(u, low, high):
    """Squared distance of a point to a box."""
    s = 0.0
    for j in range(u.size):
        t = max(0.0, max(low[j] - u[j], u[j] - high[j]))
        s += t * t
    return s


@njit(**INNER, fastmath=REASSOCIATE)
def log_sum(u, U, w, low, high, first, stop, tile, place, gaps, e):
    """log sum_i w_i exp(-1/2 |u - U_i|^2) over tiles [first, stop), without row `place` of `tile`.

    The nearest row is found first: its distance is what the logarithm is measured from.
    """
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
        # Far away both are rounded, and their difference may be lost.
        if gaps[t - first] * (1.0 - 1e-12) <= least + 2.0 * DIGITS:
            squares_of(u, U[t], e)
            if t == tile:
                e[place] = np.inf
            total += weigh(e, w[t], least)
    return np.log(total) - 0.5 * least


@njit(cache=True, nogil=True, fastmath=REASSOCIATE, error_model="numpy")
def log_sums(lo, hi, step, P, root, U, w, low, high, start, tile, place, out):
    """out[i, c] = log of the kernels of class c summed at row i, for blocks of `step` rows.

    P (k, m) projections; root (C, k, k) L^-1 of each class' kernel; U (T, k, 64), w (T, 64), low
    and high (T, k) tiles of all classes, those of class c in [start[c], start[c + 1]). tile, place
    (m,): the row itself among them, left out; -1 if it is absent.
    """
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
            out[i, c] = log_sum(
                at, U, w, low, high, start[c], start[c + 1], tile[i], place[i], gaps, e
            )


def neighbours_first(u):
    """Order (n,) in which rows of a tile lie together: strips across each dimension in turn."""
    order, n = np.arange(len(u)), len(u)
    group = np.zeros(n, np.int64)
    for j in range(u.shape[1]):
        order = order[np.lexsort((u[order, j], group[order]))]
        strips = max(1.0, (n / TILE) ** (1.0 / u.shape[1]))
        size = max(TILE, int(n / strips ** (j + 1)))
        group[order] = np.arange(n) // size
    return order


def pack_tiles(u, w):
    """Tiles of rows u (n, k): U (T, k, 64), w (T, 64), and boxes low, high (T, k).

    The last row fills the last tile up.
    """
    n, k = u.shape
    count = -(-n // TILE)
    filled = np.concatenate([u, np.repeat(u[-1:], count * TILE - n, axis=0)])
    U = filled.reshape(count, TILE, k)
    weights = np.concatenate([w, np.zeros(count * TILE - n)]).reshape(count, TILE)
    return np.ascontiguousarray(U.transpose(0, 2, 1)), weights, U.min(axis=1), U.max(axis=1)


def class_log_sums(P, root, U, w, low, high, start, place=None, threads=1):
    """Logarithms (m, C) of the kernels of each class summed at the columns of P (k, m).

    `place` (2, m): tile and position of the point itself, which is left out of its class.
    """
    m = P.shape[1]
    place = np.full((2, m), -1) if place is None else place
    out = np.empty((m, len(root)))
    tiles = root, U, w, low, high, start
    for_blocks(log_sums, -(-m // STEP), STEP, P, *tiles, *place, out, threads=threads)
    return out


def exact_sums(P, Q, w, S, threads=1):
    """sum_q w_q N(p - q; 0, S) over the columns q of Q (k, n), at each column p of P (k, m)."""
    L = np.linalg.inv(np.linalg.cholesky(S))
    u = (L @ Q).T
    order = neighbours_first(u)
    tiles = pack_tiles(u[order], w[order])
    start, P = np.array([0, len(tiles[0])]), np.ascontiguousarray(P)
    out = class_log_sums(P, L[None], *tiles, start, threads=threads)
    return np.exp(out[:, 0] + np.linalg.slogdet(L)[1] - 0.5 * len(S) * LOG_TAU)
