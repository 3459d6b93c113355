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
    """Yield work(X, *rows) of each span of tiles, in order.

    Parameters
    ----------
    work : callable
        A function of a module, or a `functools.partial` of one with arrays: it may run elsewhere.
    X : tiles (n_tiles, p, 64)
    *rows : arrays (n_tiles, ..., 64)
        What belongs to the rows; may have no numbers, (n_tiles, 0, 64).
    """
    if not on_host(X):
        yield from X.map_spans(work, *rows)
        return
    for first in range(0, len(X), TILES):
        part = slice(first, first + TILES)
        yield work(X[part], *(array[part] for array in rows))


def sum_spans(work, X, *rows):
    """Sum of work(X, *rows) over spans, in order; see `over_spans`."""
    total = None
    for found in over_spans(work, X, *rows):
        total = np.array(found) if total is None else total + found
    return total
