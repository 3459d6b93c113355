"""Where the rows of a source stand: how messages name them, and how stretches of them are read."""

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.design import columns
from lodim.design.frames import PANDAS
from lodim.errors import DataError


@dataclass(frozen=True)
class RowPlace:
    """A row as messages name it."""

    row: int
    place: str

    def __repr__(self):
        return f"{self.row} of {self.place}"


@dataclass(frozen=True, eq=False)
class Labels:
    """The rows of a source, for messages: which row of which piece each is.

    runs : (position, first, place) of stretches of rows that follow each other in a piece: their
    first row among all rows, and in the piece
    rows : positions of the rows that are meant
    """

    runs: list
    rows: object

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if isinstance(i, slice | np.ndarray):
            rows = self.rows if isinstance(i, slice) else np.asarray(self.rows)
            return Labels(self.runs, rows[i])
        position = int(self.rows[i])
        start, first, place = self.runs[bisect_right(self.runs, position, key=lambda r: r[0]) - 1]
        return RowPlace(position - start + first, place)


def frame_of(read, labels):
    """Columns that have been read, by name, as a Frame."""
    keys = {name: name for name in read}
    return columns.Frame(tuple(read), labels, keys, frozenset(), read.__getitem__, PANDAS)


class Cutter:
    """Stretches of columns, put in and taken out in the order of rows."""

    def __init__(self, stop=0):
        self.held, self.stop = [], stop

    def put(self, start, stop, stretch):
        """Take the rows from start, where the last ones ended, up to stop."""
        self.stop = stop
        if stop > start:
            self.held.append((start, stop, stretch))

    def take(self, span, names):
        """The columns of a span; what lies before its end is forgotten."""
        within = [h for h in self.held if h[0] < span.stop and h[1] > span.start]
        self.held = [h for h in self.held if h[1] > span.stop]
        return {
            name: columns.concat(
                [
                    columns.cut(c[name], max(span.start - start, 0), min(span.stop, stop) - start)
                    for start, stop, c in within
                ]
            )
            for name in names
        }


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of a source stand, so that any of them can be read; it can be pickled.

    starts : (n_pieces + 1,) positions of the first rows of the pieces among all, and of the end
    """

    source: object
    starts: tuple[int, ...]

    def read(self, names, start=0):
        """(start, stop, columns by name) of chunks from that on which the row `start` is in."""
        first = bisect_right(self.starts, start) - 1
        at = self.starts[first]
        for piece in self.source.pieces[first:]:
            for chunk in piece.read(names):
                read = read_chunk(chunk, names)
                n = len(chunk.frame)
                yield at, at + n, read
                at += n

    def columns(self, names, span):
        """The columns of a span by name."""
        cutter = Cutter(self.starts[bisect_right(self.starts, span.start) - 1])
        with closing(self.read(names, span.start)) as chunks:
            for chunk in chunks:
                cutter.put(*chunk)
                if cutter.stop >= span.stop:
                    return cutter.take(span, names)
        raise changed()


def read_chunk(chunk, names):
    """The columns of a chunk by name; errors say where it is."""
    try:
        frame = columns.read_frame(chunk.frame)
        return {name: columns.read_column(frame, name) for name in names}
    except DataError as error:
        raise DataError(f"{chunk.place}: {error}") from None


def ahead(items):
    """The items of a generator, the next one made in a thread while the last one is used."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="lodim-read")
    take = copy_context().run  # a Dask client may be that of the caller's context
    try:
        waiting = pool.submit(take, next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(take, next, items, None)
            yield item
    finally:
        pool.submit(items.close)  # in that thread: after Ctrl-C it may be within `items` still
        pool.shutdown()


def count_rows(source, names):
    """Number of rows of a source, read where it is not known."""
    if source.n is not None:
        return source.n
    with closing(ahead(source.chunks(names[:1]))) as chunks:
        return sum(len(chunk.frame) for chunk in chunks)


def read_rows_at(source, names, rows, n):
    """The rows of a source at some of its n positions, as a columns.Frame in memory."""
    source.check_unchanged()
    check_names(source, names)
    held, stop = {name: [] for name in names}, 0
    with closing(ahead(Places(source.select(names), (0,)).read(names))) as read_ahead:
        for start, stop, read in read_ahead:
            lo, hi = np.searchsorted(rows, [start, stop])
            for name, column in read.items():
                held[name].append(columns.at(column, rows[lo:hi] - start))
    source.check_unchanged()
    if stop != n:
        raise changed()
    held = {name: columns.concat(found) for name, found in held.items()}
    keys = dict.fromkeys(source.names) | {name: name for name in names}
    fetch = held.__getitem__
    return columns.Frame(source.names, pd.Index(rows), keys, frozenset(), fetch, source.kind)


def check_names(source, names):
    """Raise unless the source has the columns that are named beside the formula."""
    header = columns.Frame(
        source.names, (), {name: name for name in source.names}, frozenset(), None, PANDAS
    )
    for name in names:
        columns.check_name(header, name)


def changed():
    return DataError("the data had another number of rows when they were read again")
