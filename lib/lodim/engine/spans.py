"""Passes over spans of 65,536 rows: what is found of one span after another, in order.

Where rows are changes nothing: a span's own result is found from its own rows, in a fixed order,
and results are put together in the order of the spans.
"""

from functools import reduce

import numpy as np

from lodim.engine.blocks import each, on_host, row_spans
from lodim.engine.tiles import TILE, of_rows


def over_spans(work, X, n, *rows, threads=1):
    """Yield work(X, *rows) of each span of n rows, in order.

    Parameters
    ----------
    work : callable
        A function of a module, or a `functools.partial` of one with arrays: it may run elsewhere.
    X : tiles (n_tiles, p, 64)
    *rows : arrays (n, ...), or None
        What belongs to the rows.
    threads : int or None
        That find spans side by side, of X in memory; None: all. With one, a span is found when the
        one before it has been taken.
    """

    def of_span(part):
        own = (None if array is None else array[part] for array in rows)
        return work(X[of_rows(part)], *own)

    if not on_host(X):
        yield from X.map_spans(work, *rows)
    elif threads == 1:
        yield from map(of_span, row_spans(n))
    else:
        yield from each(of_span, row_spans(n), X.size, threads)


def sum_spans(work, X, n, *rows):
    """Sum of work(X, *rows) over spans, in order; see `over_spans`."""
    return reduce(np.add, over_spans(work, X, n, *rows))


def rows_of_spans(work, X, n, *rows):
    """What work(X, *rows) finds of each of n rows, (n, ...), span after span; see `over_spans`.

    Of the rows that fill a span's last tile, what it finds is left out.
    """
    found = zip(row_spans(n), over_spans(work, X, n, *rows), strict=True)
    return np.concatenate([own[: part.stop - part.start] for part, own in found])


def over_tiles(work, X, *arrays):
    """Yield work(X, *arrays) of each span, in order, of arrays that are tiles (n_tiles, ..., 64).

    `work` as of `over_spans`.
    """
    if not on_host(X):
        yield from X.map_tiles(work, *arrays)
        return
    for part in row_spans(len(X) * TILE):
        own = of_rows(part)
        yield work(X[own], *(array[own] for array in arrays))


def each_tile(work, tiles, *args):
    """work(tiles, *args), of tiles that go through `work` one by one: where they are."""
    return work(tiles, *args) if on_host(tiles) else tiles.map(work, *args)


def sum_tiles(work, X, *arrays):
    """Sum of work(X, *arrays) over spans, in order; see `over_tiles`."""
    return reduce(np.add, over_tiles(work, X, *arrays))
