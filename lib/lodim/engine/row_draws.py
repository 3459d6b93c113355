"""Random draws of rows that hang on what the rows hold, not on where they or their columns stand.

Each row draws a number of its own by a hash of its rounded values and of the seed: noise far below
the rounding changes none of them, and a row whose number changes takes no other row with it.
"""

import math

import numpy as np

from lodim.engine import tiles
from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE

STEPS = 1e4  # of rounding in a column's root mean square
SHIFT = 0.381966  # keeps round values, which repeat, away from the edges of the steps


@njit(cache=True)
def _mixed(z):
    """A hash of 64 bits (the finalizer of splitmix64, Steele, Lea and Flood 2014)."""
    z += np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, error_model="numpy")
def _add_hashes(X, n, out):
    """out_i += sum over the columns of the hash of the rounded value of row i."""
    for k in range(X.shape[1]):
        square = 0.0
        for t in range(X.shape[0]):
            for i in range(TILE):
                square += float(X[t, k, i]) * float(X[t, k, i])
        scale = STEPS / math.sqrt(square / n) if square > 0.0 else 0.0
        for row in range(n):
            step = math.floor(scale * X[row // TILE, k, row % TILE] + SHIFT)
            out[row] += _mixed(np.uint64(np.int64(step)))


def contents(X, n, *more):
    """Hash of what each row holds, (n,) uint64: n rows in tiles X, and further columns (n,).

    The order of the columns plays no part.
    """
    out = np.zeros(n, np.uint64)
    for part in (X, *(tiles.pack(column[:, None]) for column in more)):
        _add_hashes(part, n, out)
    return out


def shuffled(content, seed):
    """Positions of rows in a random order, (n,): seed is a sequence of whole numbers.

    Rows of equal content are told apart by their count alone, so that it does not matter which of
    them is which.
    """
    order = np.argsort(content, kind="stable")
    place = np.arange(len(content))
    new = np.append(True, np.diff(content[order]) > 0)[: len(content)]
    repeat = np.empty(len(content), np.uint64)
    repeat[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    salt = np.random.default_rng(seed).integers(2**63, dtype=np.uint64)
    return np.argsort(_mixed_all(content, repeat, salt), kind="stable")


@njit(cache=True)
def _mixed_all(content, repeat, salt):
    out = np.empty_like(content)
    for i in range(out.size):
        out[i] = _mixed(_mixed(content[i] + _mixed(repeat[i])) ^ salt)
    return out
