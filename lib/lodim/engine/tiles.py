"""Memory layout of X: tiles of 64 rows, stored by column within each tile.

A tile is a (p, 64) block. A kernel reads it column by column for z = Xw and again for X'r, both
with unit stride over rows, so that both loops vectorize and the second read is from cache. Rows
beyond n in the last tile are zero.
"""

import numpy as np

TILE = 64
TILES_PER_BLOCK = 64  # 4,096 rows, the unit of work and of summation


def count(n):
    """Return the number of tiles that hold n rows."""
    return -(-n // TILE)


def empty(n, p, dtype):
    """Return tiles of zeros (n_tiles, p, 64) for n rows."""
    return np.zeros((count(n), p, TILE), dtype)


def pack(X, dtype=np.float64):
    """Return the tiles of a matrix, (n, p) -> (n_tiles, p, 64)."""
    n, p = X.shape
    tiles = empty(n, p, dtype)
    whole = n // TILE
    tiles[:whole] = X[: whole * TILE].reshape(whole, TILE, p).transpose(0, 2, 1)
    if n > whole * TILE:
        tiles[whole, :, : n - whole * TILE] = X[whole * TILE :].T
    return tiles


def unpack(tiles, n):
    """Return the matrix of the first n rows, (n_tiles, p, 64) -> (n, p)."""
    tiles = np.asarray(tiles)
    return tiles.transpose(0, 2, 1).reshape(len(tiles) * TILE, tiles.shape[1])[:n]


def by_row(tiles, n):
    """Return values of the first n rows, (n_tiles, 64) -> (n,) or (n_tiles, K, 64) -> (n, K)."""
    return tiles.reshape(-1)[:n] if tiles.ndim == 2 else unpack(tiles, n)


def rows(tiles, i):
    """Return the rows at positions i of tiles X, (r,) -> (r, p); tiles may be of any class."""
    if not isinstance(tiles, np.ndarray):
        return tiles.take(i)
    return tiles[i // TILE, :, i % TILE]


def of_rows(rows):
    """Return the slice of tiles for a slice of rows that starts at a tile."""
    return slice(rows.start // TILE, count(rows.stop))


def pad(v, n_tiles, dtype=np.float64):
    """Return an array per row as tiles, with zeros beyond its end: (n,) -> (n_tiles, 64)."""
    out = np.zeros(n_tiles * TILE, dtype)
    out[: len(v)] = v
    return out.reshape(n_tiles, TILE)


def varies(tiles):
    """Return which columns are not zero in all rows, (p,) bool; stops early if all vary."""
    if not isinstance(tiles, np.ndarray):
        return tiles.varies()
    out, first = np.zeros(tiles.shape[1], bool), 0
    while first < len(tiles) and not out.all():
        rest, last = np.flatnonzero(~out), min(max(1, 2 * first), first + TILES_PER_BLOCK)
        out[rest] = tiles[first:last, rest].any(axis=(0, 2))
        first = last
    return out
