"""Passes over spans of 65,536 rows: what is found of one span after another, in order.

Where rows are changes nothing: a span's own result is found from its own rows, in a fixed order,
and results are put together in the order of the spans.
"""

from functools import reduce

import numpy as np

from lodim.engine.blocks import on_host, row_spans
from lodim.engine.tiles import of_rows


def over_spans(work, X, n, *rows):
    """Yield work(X, *rows) of each span of n rows, in order.

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
    for part in row_spans(n):
        own = (None if array is None else array[part] for array in rows)
        yield work(X[of_rows(part)], *own)


def sum_spans(work, X, n, *rows):
    """Sum of work(X, *rows) over spans, in order; see `over_spans`."""
    return reduce(np.add, over_spans(work, X, n, *rows))
