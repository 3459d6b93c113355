"""X as blocks of 64 rows ("tiles") that are computed from the user's columns when read.

X would take most of a fit's memory, although the frame already holds the numbers. Computing tiles
takes 10% to 30% of the time of a pass.
"""

from typing import NamedTuple

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from lodim.engine.compiled import LINE, ask_for, inlined, njit
from lodim.engine.tiles import TILE, TILES_PER_BLOCK, count

AHEAD = 4  # prefetch distance in tiles, since columns are far apart in memory
_INLINED = {"forceinline": True, "error_model": "numpy", "fastmath": False}


class _View(NamedTuple):
    """A `ColumnTiles` object (X computed from columns when read) in a form that kernels accept.

    n : number of rows; place : (p,) memory addresses of the columns
    mean, scale : (p,) a feature is (column - mean) / scale; inverse : (p,) 1 / scale, or 0
    column, tile : empty arrays with the dtypes of the columns and of X
    """

    shape: tuple[int, int, int]
    n: int
    place: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    inverse: np.ndarray
    column: np.ndarray
    tile: np.ndarray


class ColumnTiles:
    """X, (n_tiles, p, 64) in tiles of 64 rows, computed as (column - mean) / scale when read.

    Slices of tiles have this class too; np.asarray gives a copy of X. Kernels take the attribute
    `view`.

    columns : list of p arrays (n,), all float64 or all float32, contiguous, without NaN
    mean, scale : (p,); an infinite scale makes a constant feature zero
    """

    def __init__(self, columns, mean, scale, dtype):
        self._columns, self._mean, self._scale = columns, mean, scale
        self.n, self.dtype = len(columns[0]), np.dtype(dtype)
        self.shape = count(self.n), len(columns), TILE

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, part):
        lo, hi, step = part.indices(len(self))
        if step != 1:
            raise ValueError(f"tiles of columns are taken in a row, not by steps of {step}")
        rows = slice(lo * TILE, max(lo, hi) * TILE)
        return ColumnTiles([x[rows] for x in self._columns], self._mean, self._scale, self.dtype)

    def __array__(self, dtype=None, copy=None):
        out = np.empty(self.shape, self.dtype)
        lay_out(self.view, out)
        return out if dtype is None else out.astype(dtype, copy=False)

    @property
    def size(self):
        """Number of values in all tiles."""
        return int(np.prod(self.shape))

    @property
    def nbytes(self):
        """Bytes that the tiles would take if they were stored in memory."""
        return self.size * self.dtype.itemsize

    @property
    def view(self):
        """Form of these tiles that kernels accept; valid only while this object exists."""
        place = np.array([x.ctypes.data for x in self._columns], np.int64)
        scaling = self._mean, self._scale, inverses(self._scale, self.dtype)
        kinds = np.empty(0, self._columns[0].dtype), np.empty(0, self.dtype)
        return _View(self.shape, self.n, place, *scaling, *kinds)

    def take(self, i):
        """Return the rows of features at positions i, (r,) -> (r, p)."""
        out = np.empty((len(i), self.shape[1]), self.dtype)
        ways = self._columns, self._mean, self._scale, inverses(self._scale, self.dtype)
        for k, (x, mean, scale, inverse) in enumerate(zip(*ways, strict=True)):
            apart = x[i].astype(np.float64) - mean
            out[:, k] = apart * inverse if inverse else apart / scale
        return out

    def varies(self):
        """Return which features are not zero in all rows, (p,) bool."""
        out = np.isinf(self._scale)
        constant = out.copy()
        for lo in range(0, len(self), TILES_PER_BLOCK):
            if out.all():
                break
            out |= np.asarray(self[lo : lo + TILES_PER_BLOCK]).any(axis=(0, 2))
        return out & ~constant


def inverses(scale, dtype):
    """Return factors 1 / scale (p,) that replace a division, or 0 if division is more exact.

    If features are rounded to single precision, multiplying is as exact, and twice as fast.
    """
    if np.dtype(dtype) == np.float64:
        return np.zeros(len(scale))
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.asarray(scale, np.float64)
    return np.where(np.isfinite(inverse), inverse, 0.0)


@inlined(cache=True, error_model="numpy", fastmath=False)
def standardize(x, mean, scale, inverse, out):
    """Write (x - mean) / scale to `out` for up to 64 rows; inverse : 1 / scale, or 0 to divide."""
    if inverse == 0.0:
        for j in range(x.size):
            out[j] = (x[j] - mean) / scale
    else:
        for j in range(x.size):
            out[j] = (x[j] - mean) * inverse


@intrinsic
def _pointer(typingctx, address):
    """Convert a memory address (int64) to a pointer."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


def room_for(X):
    """Return an array for `tile_at` to fill, with the dtype of X; for compiled code only."""
    raise NotImplementedError


def tile_at(X, t, room):
    """Return 64 rows of X, tile t, as (p, 64); `room` is filled if X is computed from columns."""
    raise NotImplementedError


@overload(room_for, jit_options=_INLINED)
def _room_for(X):
    if isinstance(X, types.Array):
        return lambda X: np.empty((0, 0), X.dtype)
    return lambda X: np.zeros((X.shape[1], TILE), X.tile.dtype)


@overload(tile_at, jit_options=_INLINED)
def _tile_at(X, t, room):
    if isinstance(X, types.Array):
        return lambda X, t, room: X[t]
    dtype = as_dtype(X[X.fields.index("column")].dtype).type
    step = TILE * np.dtype(dtype).itemsize

    def laid_out(X, t, room):
        rows = min(TILE, X.n - t * TILE)
        for k in range(room.shape[0]):
            x = carray(_pointer(X.place[k] + t * step), TILE, dtype)
            for line in range(AHEAD * step, (AHEAD + 1) * step, LINE):
                ask_for(x, line)
            standardize(x[:rows], X.mean[k], X.scale[k], X.inverse[k], room[k])
            for j in range(rows, TILE):
                room[k, j] = 0.0
        return room

    return laid_out


@njit(cache=True, nogil=True, error_model="numpy")
def lay_out(X, out):
    """Compute all tiles (64 rows each) of X from its columns; write them to `out`."""
    for t in range(out.shape[0]):
        tile_at(X, t, out[t])
