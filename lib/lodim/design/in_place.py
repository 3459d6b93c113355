"""Features that a fit reads in the columns of the user's frame, without a copy of them."""

import numpy as np

from lodim.design import factors
from lodim.engine.blocks import SPAN_ROWS
from lodim.engine.column_tiles import ColumnTiles
from lodim.engine.tiles import TILE, count

MIN_BYTES = 2**26  # bytes of features from which memory counts more than the time of a pass
MAX_TILE_BYTES = 2**15  # bytes of a tile that is laid out in the nearest cache


def columns_in_place(terms, read, n, dtype):
    """The columns that are the features of n rows but for centre and scale; None: a copy it is.

    They are numbers of one real precision, no wider than features, and so many that a copy would
    take MIN_BYTES bytes, but no more columns than the nearest cache has room for in a tile.

    Parameters
    ----------
    terms : tuples of factors
    read : callable(name) -> columns.Column, of which all rows are of use and none is missing
    dtype : of the features
    """
    size = np.dtype(dtype).itemsize
    plain = all(len(term) == 1 and isinstance(term[0], factors.Numeric) for term in terms)
    many = n > SPAN_ROWS and count(n) * len(terms) * TILE * size >= MIN_BYTES
    if not (plain and terms and many):
        return None
    found = [read(term[0].name) for term in terms]
    values = [column.values for column in found if column.kind == "number"]
    known = values[0].dtype if len(values) == len(found) else None
    fits = known in (np.float32, np.float64) and known.itemsize <= size
    if not fits or len(values) * TILE * size > MAX_TILE_BYTES:
        return None
    lies = all(x.dtype == known and x.flags.c_contiguous and x.flags.aligned for x in values)
    return values if lies else None


def tiles_in_place(columns, mean, scale, flat, dtype):
    """ColumnTiles of columns, of which those that are `flat` (p,) are zero."""
    return ColumnTiles(columns, mean, np.where(flat, np.inf, scale), dtype)
