"""Some of the rows, drawn at random by where they stand: of a frame in memory, or of a source."""

from dataclasses import replace

import numpy as np
import pandas as pd

from lodim.design import columns, places
from lodim.design.parts import draw
from lodim.design.response import INPUTS
from lodim.errors import DataError


def draw_rows(data, source, names, beside, size, seed):
    """A frame of some of the rows, in their order, and what is given of these.

    Parameters
    ----------
    data : columns.Frame, or the source
    source : Source or None
    names : list of str
        The columns that are needed.
    beside : names of columns, or arrays of the length of the data, as `RowInputs.read` takes them
    size : int
        All rows are taken where there are no more.
    seed : int

    Returns
    -------
    Frame, beside
    """
    n = len(data.index) if source is None else places.count_rows(source, names)
    given = zip(beside, INPUTS, strict=True)
    rows = draw(n, size, seed) if size < n else np.arange(n)
    if source is None:
        frame = replace(
            data, index=data.index[rows], fetch=lambda key: _rows(data.fetch(key), rows)
        )
    else:
        frame = places.read_rows_at(source, names, rows, n)
    return frame, tuple(_cut(value, what, rows, n) for value, what in given)


def _rows(column, rows):
    """Some rows of a column as a frame holds it."""
    if isinstance(column, columns.Column):
        return columns.at(column, rows)
    return column.iloc[rows]


def _cut(value, what, rows, n):
    """Some rows of what is given of all n; names and single numbers as they are."""
    if value is None or isinstance(value, str) or np.ndim(value) == 0:
        return value
    if len(value) != n:
        raise DataError(f"{what} has {len(value)} values, and the data has {n} rows")
    return (
        value.iloc[rows] if isinstance(value, pd.Series | pd.DataFrame) else np.asarray(value)[rows]
    )
