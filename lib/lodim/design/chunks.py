"""Data in parts of PART complete rows, in memory, read again in each pass, or on workers.

All that is learnt of data is summed within each part, and added in the order of the parts, by the
same functions wherever the data are: a frame in memory, files that are read part by part and the
workers of a Dask cluster give equal bits. The last part has what is left.
"""

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from lodim.design import columns
from lodim.design.column_kernels import ALL, read_only
from lodim.design.columns import Table, take
from lodim.design.frame import PANDAS, Frame, check_name, read_column, read_frame
from lodim.design.rows import RowInputs
from lodim.design.summaries import merge, summarize
from lodim.engine import dask_cluster, workers
from lodim.engine.blocks import THREADED, each
from lodim.engine.tiles import TILE
from lodim.errors import ArgumentError, DataError
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


def spans_of(rows, n):
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


def draw_positions(n, size, seed):
    """Increasing positions of `size` of n rows, at random by where they stand."""
    drawn = np.random.default_rng(seed).choice(n, size, replace=False, shuffle=False)
    return np.sort(drawn)


def summarize_part(_, table, request):
    """Summaries of the columns of a part, a list."""
    return summarize(table, request)


def merge_summaries(found, request):
    """Summaries of columns by name, from the lists of the parts in order."""
    return dict(zip(request.names, merge(found), strict=True))


def tiles_of(X, span):
    """The tiles of a part, a view."""
    return X[span.first // TILE : -(-(span.first + span.n) // TILE)]


def table_of_span(table, span, columns):
    """The table of a part, given its stretch of the columns."""
    here = slice(span.first, span.first + span.n)
    index, rows = table.index[span.start : span.stop], read_only(span.rows)
    given = table.weights_of(here)
    return replace(table, columns=columns, rows=rows, n=span.n, index=index, **given)


class Parts:
    """The parts of the complete rows of a table, which `map` works on."""

    table: Table
    in_one = False  # whether one part, which stays in memory, has all rows

    @property
    def n(self):
        """Number of complete rows."""
        return self.table.n

    @property
    def positive_weight(self):
        """(n,) bool, the rows whose weight is above zero; None where all are."""
        return self.table.positive_weight

    def summaries(self, request):
        """Summaries of columns by name."""
        work = partial(summarize_part, request=request)
        return merge_summaries(self.map(work, request.names), request)


@dataclass(frozen=True, eq=False)
class TableParts(Parts):
    """The parts of a table that is in memory."""

    table: Table

    @property
    def in_one(self):
        """Whether one part, which stays in memory, has all rows."""
        return self.n <= PART

    def gather(self, rows, names):
        """A table of the complete rows at some positions; None: of all."""
        return self.table if rows is None else self.table.take(rows)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in threads where it pays.

        Parameters
        ----------
        names : list of str
            Columns that the work reads.
        """
        table = self.table
        parts = spans_of(table.rows, table.n)
        if len(parts) == 1:
            return [work(parts[0], table)]
        # Where a part alone is worth threads, they share its columns.
        numbers = 0 if PART * len(names) >= THREADED else table.n * len(names)
        return each(lambda span: work(span, self._part(span, names)), parts, numbers)

    def _part(self, span, names):
        columns, stretch = self.table.columns, slice(span.start, span.stop)
        return table_of_span(self.table, span, {k: take(columns[k], stretch) for k in names})


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
    return Frame(tuple(read), labels, keys, frozenset(), read.__getitem__, PANDAS)


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
                    take(c[name], slice(max(span.start - start, 0), min(span.stop, stop) - start))
                    for start, stop, c in within
                ]
            )
            for name in names
        }


@dataclass(frozen=True, eq=False)
class ChunkStore:
    """The chunks of a source, and where its rows stand, so that any can be read; it can be pickled.

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
        frame = read_frame(chunk.frame)
        return {name: read_column(frame, name) for name in names}
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
    """The rows of a source at some of its n positions, as a Frame in memory."""
    source.check_unchanged()
    check_names(source, names)
    held, stop = {name: [] for name in names}, 0
    with closing(ahead(ChunkStore(source.select(names), (0,)).read(names))) as read_ahead:
        for start, stop, read in read_ahead:
            lo, hi = np.searchsorted(rows, [start, stop])
            for name, column in read.items():
                held[name].append(take(column, flags_of(rows[lo:hi] - start, stop - start)))
    source.check_unchanged()
    if stop != n:
        raise changed()
    held = {name: columns.concat(found) for name, found in held.items()}
    keys = dict.fromkeys(source.names) | {name: name for name in names}
    fetch = held.__getitem__
    return Frame(source.names, pd.Index(rows), keys, frozenset(), fetch, source.kind)


def check_names(source, names):
    """Raise unless the source has the columns that are named beside the formula."""
    header = Frame(
        source.names, (), {name: name for name in source.names}, frozenset(), None, PANDAS
    )
    for name in names:
        check_name(header, name)


def changed():
    return DataError("the data had another number of rows when they were read again")


@dataclass(frozen=True, eq=False)
class SourceParts(Parts):
    """The parts of a source's complete rows, read again in each pass.

    table : Table without columns; n_rows : rows of the source, complete or not
    known : dict of Summary by name from the first pass, or None
    """

    store: ChunkStore
    table: Table
    n_rows: int
    known: dict | None

    def summaries(self, request):
        """Summaries of columns by name."""
        return super().summaries(request) if self.known is None else self.known

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in one pass."""
        with closing(self.tables(list(names))) as tables:
            return [work(span, table) for span, table in tables]

    def tasks(self, work, names):
        """A call without arguments for each part, which can be pickled: together they are `map`."""
        return [
            partial(part_task, self.store, span, self._bare(span), work, list(names))
            for span in spans_of(self.table.rows, self.n)
        ]

    def _bare(self, span):
        """The table of a part without its columns, and with the labels that it needs alone."""
        table = table_of_span(self.table, span, {})
        starts = [run[0] for run in table.index.runs]
        lo, hi = bisect_right(starts, span.start) - 1, bisect_right(starts, span.stop - 1)
        return replace(table, index=replace(table.index, runs=table.index.runs[lo:hi]))

    def tables(self, names):
        """The parts as (span, table), in one pass over some columns."""
        spans = spans_of(self.table.rows, self.n)
        if not names:
            yield from ((span, table_of_span(self.table, span, {})) for span in spans)
            return
        self.store.source.check_unchanged()
        cutter = Cutter()
        with closing(ahead(self.store.read(names))) as read_ahead:
            for span in spans:
                while cutter.stop < span.stop:
                    cutter.put(*self._next(read_ahead))
                yield span, table_of_span(self.table, span, cutter.take(span, names))
            stop = max((stop for _, stop, _ in read_ahead), default=cutter.stop)
        self.store.source.check_unchanged()
        if stop != self.n_rows:
            raise changed()

    def _next(self, read_ahead):
        found = next(read_ahead, None)
        if found is None or found[1] > self.n_rows:
            raise changed()
        return found

    def gather(self, rows, names):
        """A table of the complete rows at some positions; None: of all."""
        picked = self.map(partial(_pick, rows=rows), names)
        table = self.table
        held = {k: columns.concat([part[k] for part in picked]) for k in names}
        picked_table = table.take(np.arange(self.n) if rows is None else rows)
        index = table.index[picked_table.rows]
        return replace(picked_table, columns=held, rows=read_only(ALL), index=index)


@dataclass(frozen=True, eq=False)
class PartReader:
    """Makes the batch of a part of a source, in any process: it can be pickled.

    design : Design
    store : ChunkStore
    stretches : (n_parts, 2) int64, positions of the first row of each part and after its last
    inputs : RowInputs of all N rows of the source, weights and offset alone
    """

    design: object
    store: ChunkStore
    stretches: np.ndarray
    inputs: RowInputs

    @classmethod
    def from_parts(cls, design, learnt, inputs):
        """For the SourceParts that a design has learnt from, and what was given of the rows."""
        spans = spans_of(learnt.table.rows, learnt.n)
        stretches = np.array([(span.start, span.stop) for span in spans])
        inputs = RowInputs(inputs.weights, inputs.offset).arrays()
        return cls(design, learnt.store, stretches, inputs)

    def __call__(self, k):
        """The Batch of part k: response, weights and offset as in that of all rows."""
        start, stop = self.stretches[k].tolist()
        design, inputs = self.design, self.inputs.stretch(start, stop)
        span = Span(k, 0, start, stop, ALL, stop - start)
        read = self.store.columns(design.columns_needed(inputs.names), span)
        frame = frame_of(read, pd.RangeIndex(start, stop))
        inputs, response = inputs.read(frame), design.response is not None
        return design.batch_of(frame, inputs, response, design.known_levels("error"), part=True)


def part_task(store, span, table, work, names):
    """What `work` makes of one part, for a pass whose parts are shared among processes.

    Parameters
    ----------
    store : ChunkStore
    span : Span
    table : Table
        Of the part, without columns; see `SourceParts.tasks`.
    work, names : as `SourceParts.map` takes them; the work can be pickled
    """
    return work(span, replace(table, columns=store.columns(names, span)))


def _pick(span, table, rows):
    """The columns of a part in those of its rows that are asked for."""
    if rows is None:
        at = np.arange(table.n)
    else:
        lo, hi = np.searchsorted(rows, [span.first, span.first + span.n])
        at = rows[lo:hi] - span.first
    wanted = flags_of(table.rows[at] if table.rows.size else at, span.stop - span.start)
    return {name: take(column, wanted) for name, column in table.columns.items()}


def flags_of(positions, n):
    """(n,) bool, True at some positions: `take` would read no positions as all."""
    flags = np.zeros(n, bool)
    flags[positions] = True
    return flags


def client_for(client, source, sample, scratch):
    """The client whose workers read a source, or None where it is read here, as where it is False.

    A Dask frame goes to the client of this process, if there is one.
    """
    if client is False:
        return None
    if client is None:
        stays = source is None or source.kind != "dask" or sample is not None or scratch is not None
        return None if stays else dask_cluster.own_client()
    if source is None:
        raise ArgumentError(
            "client= is for files or a Dask frame, which its workers read; data in memory are "
            "fitted here: leave client out"
        )
    if sample is not None:
        raise ArgumentError("sample= draws rows that are fitted here: leave client out, or sample")
    if scratch is not None:
        raise ArgumentError(
            'control={"scratch": ...} is for features that are held here, and those of client= are '
            "held by its workers: leave one of the two out"
        )
    return dask_cluster.checked_client(client)


@dataclass(frozen=True, eq=False)
class WorkerParts(SourceParts):
    """Parts of which the workers of a client work on one each."""

    client: object = None

    @classmethod
    def of_client(cls, read, client):
        """The parts of a source on the workers of a client; as they are where they are few."""
        if client is None or read.n <= PART:
            return read
        return cls(read.store, read.table, read.n_rows, read.known, client)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in one pass."""
        if not names:
            return super().map(work, names)
        spans = spans_of(self.table.rows, self.n)
        each = [(span, self._bare(span), work, list(names)) for span in spans]
        return dask_cluster.run_tasks(self.client, part_task, self.store, each)

    def tiles(self, design, given, inputs):
        """Tiles of all rows on the workers, their response, and the RowInputs that are there too.

        given : RowInputs by name, or of all rows of the source; inputs : of the complete rows
        """
        make = PartReader.from_parts(design, self, given)
        X = workers.read_parts(self.client, make, self.n, len(design.names), design.dtype)
        here = {name: values for name, (values, _) in X.beside.items()}
        kept = {k: here[k] for k in ("weights", "offset") if getattr(inputs, k) is not None}
        return X, here.get("y"), replace(inputs, **kept)
