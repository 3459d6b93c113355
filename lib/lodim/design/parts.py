"""Parts of the rows, in which all that is learnt of data is summed, wherever the data are.

A part has PART complete rows, the last one what is left. Sums are made within each part, and added
in the order of the parts: a frame in memory and files that are read part by part give equal bits.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lodim.design import summaries
from lodim.design.column_kernels import ALL, read_only
from lodim.design.columns import cut
from lodim.engine.blocks import THREADED, each
from lodim.engine.tiles import TILE
from lodim.sources.source import PART


@dataclass(frozen=True, eq=False)
class Span:
    """The rows that part k is made of.

    k : number of the part; first : position of its first complete row among all of them
    start, stop : the stretch of the data's rows that it lies in
    rows : (n,) int64, positions of its rows in the stretch; empty where it is all of it
    n : number of its rows
    """

    k: int
    first: int
    start: int
    stop: int
    rows: np.ndarray
    n: int


def spans(rows, n):
    """The parts of n complete rows at some positions; `rows` empty: at 0, 1, ..., n - 1."""
    return [
        _span(rows, k, first, min(first + PART, n)) for k, first in enumerate(range(0, n, PART))
    ]


def _span(rows, k, first, last):
    if not rows.size:
        return Span(k, first, first, last, ALL, last - first)
    return span_of(rows[first:last], k, first)


def span_of(rows, k, first):
    """The part of the complete rows at some positions."""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    whole = stop - start == len(rows)
    return Span(k, first, start, stop, ALL if whole else rows - start, len(rows))


def draw(n, size, seed):
    """Increasing positions of `size` of n rows, at random by where they stand."""
    drawn = np.random.default_rng(seed).choice(n, size, replace=False, shuffle=False)
    return np.sort(drawn)


def learn_facts(_, table, wanted):
    """Facts of the columns of a part, a list."""
    return summaries.summarize(table, wanted)


def merge_facts(found, wanted):
    """Facts of columns by name, from the lists of the parts in order."""
    merged = summaries.merge(list(zip(*found, strict=True)))
    return dict(zip(wanted.names, merged, strict=True))


def tiles_of(X, span):
    """The tiles of a part, a view."""
    return X[span.first // TILE : -(-(span.first + span.n) // TILE)]


def of_rows(table, span, columns):
    """The table of a part, given its stretch of the columns."""
    here = slice(span.first, span.first + span.n)
    given = {key: getattr(table, key) for key in ("weights", "positive_weight")}
    given = {key: None if x is None else x[here] for key, x in given.items()}
    index = table.index[span.start : span.stop]
    return replace(
        table, columns=columns, rows=read_only(span.rows), n=span.n, index=index, **given
    )


@dataclass(frozen=True, eq=False)
class TableParts:
    """The parts of a table that is in memory."""

    table: object

    @property
    def n(self):
        """Number of complete rows."""
        return self.table.n

    @property
    def in_one(self):
        """Whether one part, which stays in memory, has all rows."""
        return self.n <= PART

    @property
    def positive_weight(self):
        """(n,) bool, the rows whose weight is above zero; None where all are."""
        return self.table.positive_weight

    def facts(self, wanted):
        """Facts of columns by name."""
        return merge_facts(self.map(partial(learn_facts, wanted=wanted), wanted.names), wanted)

    def gather(self, rows, names):
        """A table of the complete rows at some positions; None: of all."""
        table = self.table
        if rows is None:
            return table
        given = {key: getattr(table, key) for key in ("weights", "positive_weight")}
        given = {key: None if x is None else x[rows] for key, x in given.items()}
        used = table.rows[rows] if table.rows.size else rows
        return replace(table, rows=read_only(used), n=len(rows), **given)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in threads where it pays.

        Parameters
        ----------
        names : list of str
            Columns that the work reads.
        """
        table = self.table
        parts = spans(table.rows, table.n)
        if len(parts) == 1:
            return [work(parts[0], table)]
        # Where a part alone is worth threads, they share its columns.
        numbers = 0 if PART * len(names) >= THREADED else table.n * len(names)
        return each(lambda span: work(span, self._part(span, names)), parts, numbers)

    def _part(self, span, names):
        columns = self.table.columns
        return of_rows(self.table, span, {k: cut(columns[k], span.start, span.stop) for k in names})
