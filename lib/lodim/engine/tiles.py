"""Memory layout of X: tiles of 64 rows, stored by column within each tile, (n_tiles, p, 64)."""

import numpy as np

TILE = 64
TILES_PER_BLOCK = 64  # 4,096 rows, the unit of work and of summation


def count(n):
    """Return the number of tiles (blocks of 64 rows) that hold n rows."""
    return -(-n // TILE)


def empty(n, p, dtype):
    """Return an array of zeros (n_tiles, p, 64) for n rows in tiles of 64."""
    return np.zeros((count(n), p, TILE), dtype)


def pack(X, dtype=np.float64):
    """Return a matrix (n, p) in tiles of 64 rows: an array (n_tiles, p, 64), padded with zeros."""
    n, p = X.shape
    tiles = empty(n, p, dtype)
    whole = n // TILE
    tiles[:whole] = X[: whole * TILE].reshape(whole, TILE, p).transpose(0, 2, 1)
    if n > whole * TILE:
        tiles[whole, :, : n - whole * TILE] = X[whole * TILE :].T
    return tiles


def unpack(tiles, n):
    """Return the first n rows of tiles (n_tiles, p, 64) as a matrix (n, p)."""
    tiles = np.asarray(tiles)
    return tiles.transpose(0, 2, 1).reshape(len(tiles) * TILE, tiles.shape[1])[:n]


def by_row(tiles, n):
    """Convert tiles, (n_tiles, 64) or (n_tiles, K, 64), to values of n rows, (n,) or (n, K)."""
    return tiles.reshape(-1)[:n] if tiles.ndim == 2 else unpack(tiles, n)


def rows(tiles, i):
    """Return the rows at positions i (r,) of X, stored in tiles of 64 rows, as a matrix (r, p)."""
    if not isinstance(tiles, np.ndarray):
        return tiles.take(i)
    return tiles[i // TILE, :, i % TILE]


def of_rows(rows):
    """Return which tiles (a slice) hold the rows of a slice that starts at a multiple of 64."""
    return slice(rows.start // TILE, count(rows.stop))


def pad(v, n_tiles, dtype=np.float64):
    """Return values per row (n,) as an array (n_tiles, 64), with zeros after the last row."""
    out = np.zeros(n_tiles * TILE, dtype)
    out[: len(v)] = v
    return out.reshape(n_tiles, TILE)


def varies(tiles):
    """Return which columns of `tiles`, (n_tiles, p, 64), have a number other than 0, (p,) bool."""
    if not isinstance(tiles, np.ndarray):
        return tiles.varies()
    out, first = np.zeros(tiles.shape[1], bool), 0
    while first < len(tiles) and not out.all():
        rest, last = np.flatnonzero(~out), min(max(1, 2 * first), first + TILES_PER_BLOCK)
        out[rest] = tiles[first:last, rest].any(axis=(0, 2))
        first = last
    return out
