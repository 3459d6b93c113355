"""Spans of 16 blocks of rows: what is found of one span after another, in order.

Where rows are changes nothing: a span's own result is found from its own rows, in a fixed order,
and results are put together in the order of the spans.
"""

import numpy as np

from lodim.engine.blocks import on_host
from lodim.engine.tiles import TILE, TILES_PER_BLOCK

BLOCKS = 16
TILES = BLOCKS * TILES_PER_BLOCK
ROWS = TILES * TILE  # 65,536


def over_spans(work, X, *rows):
    """Yield work(X, *rows) of each span, in order.

    Parameters
    ----------
    work : callable
        A function of a module, or a `functools.partial` of one with arrays: it may run elsewhere.
    X : tiles (n_tiles, p, 64)
    *rows : arrays (n, ...), or None
        What belongs to the rows.
    """
    if not on_host(X):
        yield from X.map_spans(work, *rows)
        return
    for k in range(-(-len(X) // TILES)):
        part = slice(k * ROWS, (k + 1) * ROWS)
        own = (None if array is None else array[part] for array in rows)
        yield work(X[k * TILES : (k + 1) * TILES], *own)


def sum_spans(work, X, *rows):
    """Sum of work(X, *rows) over spans, in order; see `over_spans`."""
    total = None
    for found in over_spans(work, X, *rows):
        total = np.array(found) if total is None else total + found
    return total


def sum_rows(work, *rows):
    """Sum of the numbers work(*rows) of spans of arrays (n, ...), in order; None stays None."""
    total = 0.0
    for first in range(0, len(rows[0]), ROWS):
        part = slice(first, first + ROWS)
        total = total + work(*(None if array is None else array[part] for array in rows))
    return total
