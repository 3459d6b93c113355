"""Data in chunks of 65,536 complete rows: in memory, read again per pass, or on Dask workers."""

from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from lodim.design import columns
from lodim.design.column_kernels import ALL_ROWS, read_only
from lodim.design.columns import Table, take
from lodim.design.frame import PANDAS, Frame, check_name, read_column, read_frame
from lodim.design.rows import RowInputs
from lodim.design.summaries import merge, summarize
from lodim.engine import dask_cluster, workers
from lodim.engine.blocks import THREADED, each
from lodim.engine.tiles import TILE
from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK


@dataclass(frozen=True, eq=False)
class Span:
    """Chunk of the data: rows `start` to `stop - 1`, of which `n` are complete.

    first : number of complete rows in earlier chunks
    rows : positions of the complete rows, counted from `start`; empty if all are complete"""

    first: int
    start: int
    stop: int
    rows: np.ndarray
    n: int


def spans_of(rows, n):
    """Return the Spans (chunks) of n complete rows at positions `rows`; empty `rows` mean all."""
    spans = []
    for first in range(0, n, ROWS_PER_CHUNK):
        last = min(first + ROWS_PER_CHUNK, n)
        whole = Span(first, first, last, ALL_ROWS, last - first)
        spans.append(span_of(rows[first:last], first) if rows.size else whole)
    return spans


def span_of(rows, first):
    """Return the chunk of the data from the first to the last of `rows`, as a Span.

    rows : (n,) ascending positions, in the data, of the chunk's complete rows
    first : number of complete rows in earlier chunks"""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    whole = stop - start == len(rows)
    return Span(first, start, stop, ALL_ROWS if whole else rows - start, len(rows))


def draw_positions(n, size, seed):
    """Return `size` random positions out of n, increasing; they depend only on n, size, seed."""
    drawn = np.random.default_rng(seed).choice(n, size, replace=False, shuffle=False)
    return np.sort(drawn)


def tiles_of(X, span):
    """Return the part of X (n_tiles, p, 64) that has the rows of one chunk, a Span."""
    return X[span.first // TILE : -(-(span.first + span.n) // TILE)]


def table_of_span(table, span, columns):
    """Return the part of a Table that lies in one chunk of rows (a Span), with new columns.

    columns : dict name -> Column of the chunk's rows"""
    weights = table.weights_at(slice(span.first, span.first + span.n))
    index, rows = table.index[span.start : span.stop], read_only(span.rows)
    return replace(table, columns=columns, rows=rows, n=span.n, index=index, weights=weights)


class Chunks:
    """The complete rows of a table in chunks of 65,536 rows, each processed by `map`."""

    table: Table
    in_one = False  # whether one chunk in memory has all rows

    @property
    def n(self):
        return self.table.n

    def summaries(self, request):
        """Return a dict name -> Summary (moments, levels etc.) of columns in a ColumnRequest."""
        return merge(self.map(lambda _, table: summarize(table, request), request.names))


@dataclass(frozen=True, eq=False)
class TableChunks(Chunks):
    """Complete rows of a table in memory, in chunks of 65,536."""

    table: Table

    @property
    def in_one(self):
        return self.n <= ROWS_PER_CHUNK

    def gather(self, rows, names):
        """Return `rows`, positions among complete rows (None: all), as a Table; ignore `names`."""
        return self.table if rows is None else self.table.take(rows)

    def map(self, work, names):
        """Return [work(Span, Table), ...], one per chunk; the Tables have the columns `names`."""
        table = self.table
        parts = spans_of(table.rows, table.n)
        if len(parts) == 1:
            return [work(parts[0], table)]
        # If one chunk is large enough to use threads itself, chunks are processed one by one.
        numbers = 0 if ROWS_PER_CHUNK * len(names) >= THREADED else table.n * len(names)

        def of_span(span):
            stretch = slice(span.start, span.stop)
            columns = {name: take(table.columns[name], stretch) for name in names}
            return work(span, table_of_span(table, span, columns))

        return each(of_span, parts, numbers)


class RowPlace(str):
    """Text such as "7 of a.csv": a row's number and its file, which messages show unquoted."""

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of rows in messages, such as "7 of a.csv".

    runs : (first position in the data, first number in the file, file) per range of rows
    rows : positions of the labelled rows in the data"""

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
        return RowPlace(f"{position - start + first} of {place}")


def frame_of(read, labels):
    keys = {name: name for name in read}
    return Frame(tuple(read), labels, keys, read.__getitem__, PANDAS)


class Cutter:
    """Buffer for rows, which come in ranges of any length (from files) and leave in chunks."""

    def __init__(self, stop=0):
        self.held, self.stop = [], stop

    def put(self, start, stop, read):
        """Append rows `start` to stop - 1 of the data; `read` : dict name -> Column of the rows."""
        self.stop = stop
        if stop > start:
            self.held.append((start, stop, read))

    def take(self, span, names):
        """Return columns `names` of a Span (chunk) as a dict; forget these and earlier rows."""
        within = [h for h in self.held if h[0] < span.stop and h[1] > span.start]
        self.held = [h for h in self.held if h[1] > span.stop]
        parts = []
        for start, stop, read in within:
            here = slice(max(span.start - start, 0), min(span.stop, stop) - start)
            parts.append({name: take(read[name], here) for name in names})
        return {name: columns.concat([part[name] for part in parts]) for name in names}


@dataclass(frozen=True, eq=False)
class ChunkStore:
    """Data not in memory; starts[i] is the position of the first row of piece i, such as a file."""

    source: object
    starts: tuple[int, ...]

    def read(self, names, start=0):
        """Read columns `names` in ranges of rows; yield (first row, end, dict name -> Column).

        start : position of a row; the piece (such as a file) that has it is read first"""
        first = bisect_right(self.starts, start) - 1
        at = self.starts[first]
        for piece in self.source.pieces[first:]:
            for chunk in piece.read(names):
                read = read_chunk(chunk, names)
                n = len(chunk.frame)
                yield at, at + n, read
                at += n

    def columns(self, names, span):
        """Return a dict name -> column of the rows from span.start to span.stop - 1."""
        cutter = Cutter(self.starts[bisect_right(self.starts, span.start) - 1])
        with closing(self.read(names, span.start)) as chunks:
            for chunk in chunks:
                cutter.put(*chunk)
                if cutter.stop >= span.stop:
                    return cutter.take(span, names)
        raise changed()


def read_chunk(chunk, names):
    """Return the named columns of a chunk (rows of a file) as a dict; errors name the file."""
    try:
        frame = read_frame(chunk.frame)
        return {name: read_column(frame, name) for name in names}
    except DataError as error:
        raise DataError(f"{chunk.place}: {error}") from None


def ahead(items):
    """Yield the items of an iterator, while a thread already computes the next item."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="lodim-read")
    take = copy_context().run  # the Dask client may be set in the caller's context
    try:
        waiting = pool.submit(take, next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(take, next, items, None)
            yield item
    finally:
        pool.submit(items.close)  # in that thread: after Ctrl-C it may still be inside `items`
        pool.shutdown()


def count_rows(source, names):
    """Return the number of rows of a Source; if unknown, count them by reading column names[0]."""
    if source.n is not None:
        return source.n
    with closing(ahead(source.chunks(names[:1]))) as chunks:
        return sum(len(chunk.frame) for chunk in chunks)


def read_rows_at(source, names, rows, n):
    """Read rows of a Source at positions `rows` out of n; return columns `names` as a Frame."""
    check_names(source, names)
    every = Table({}, ALL_ROWS, pd.RangeIndex(n), n)
    chunks = SourceChunks(ChunkStore(source.select(names), (0,)), every, n, None)
    held = chunks.gather(rows, names).columns
    keys = dict.fromkeys(source.names) | {name: name for name in names}
    return Frame(source.names, pd.Index(rows), keys, held.__getitem__, source.kind)


def check_names(source, names):
    header = frame_of(dict.fromkeys(source.names), ())
    for name in names:
        check_name(header, name)


def changed():
    what = "the number of rows must not change while the data are read"
    return DataError(f"{what}: it differed between two readings")


@dataclass(frozen=True, eq=False)
class SourceChunks(Chunks):
    """Complete rows of data that are not in memory, in chunks that each pass reads again."""

    store: ChunkStore
    table: Table
    n_rows: int
    known: dict | None

    def summaries(self, request):
        return super().summaries(request) if self.known is None else self.known

    def map(self, work, names):
        """Read the data chunk by chunk; return a list of work(span, table), one result per chunk.

        span is the chunk's position, a Span; table is a Table of its rows with columns `names`."""
        with closing(self.tables(list(names))) as tables:
            return [work(span, table) for span, table in tables]

    def tables(self, names):
        """Yield position (Span) and Table of each chunk of rows, with the named columns."""
        spans = spans_of(self.table.rows, self.n)
        if not names:
            yield from ((span, table_of_span(self.table, span, {})) for span in spans)
            return
        self.store.source.check_unchanged()
        cutter = Cutter()
        with closing(ahead(self.store.read(names))) as read_ahead:
            for span in spans:
                while cutter.stop < span.stop:
                    chunk = next(read_ahead, None)
                    if chunk is None or chunk[1] > self.n_rows:
                        raise changed()
                    cutter.put(*chunk)
                yield span, table_of_span(self.table, span, cutter.take(span, names))
            stop = max((stop for _, stop, _ in read_ahead), default=cutter.stop)
        self.store.source.check_unchanged()
        if stop != self.n_rows:
            raise changed()

    def gather(self, rows, names):
        """Return a Table with the columns `names` of some of the complete rows.

        rows : sorted positions among the complete rows; None for all"""

        def pick(span, table):
            at = np.arange(table.n)
            if rows is not None:
                first, stop = np.searchsorted(rows, [span.first, span.first + span.n])
                at = rows[first:stop] - span.first
            wanted = np.zeros(span.stop - span.start, bool)
            wanted[table.rows[at] if table.rows.size else at] = True
            return {name: take(column, wanted) for name, column in table.columns.items()}

        picked, table = self.map(pick, names), self.table
        held = {k: columns.concat([part[k] for part in picked]) for k in names}
        picked_table = table.take(np.arange(self.n) if rows is None else rows)
        index = table.index[picked_table.rows]
        return replace(picked_table, columns=held, rows=read_only(ALL_ROWS), index=index)


def batch_reader(design, chunks, inputs):
    """Return a function that reads chunk k of the rows as a Batch, here or on a Dask worker.

    design : Design, which converts rows to numbers
    chunks : SourceChunks, all chunks of the data
    inputs : RowInputs (weights, offset etc.) of all rows"""
    ranges = [(span.start, span.stop) for span in spans_of(chunks.table.rows, chunks.n)]
    inputs = RowInputs(inputs.weights, inputs.offset).arrays()
    return partial(_read_batch, design=design, store=chunks.store, ranges=ranges, inputs=inputs)


def _read_batch(k, design, store, ranges, inputs):
    start, stop = ranges[k]
    inputs, span = inputs.stretch(start, stop), Span(0, start, stop, ALL_ROWS, stop - start)
    read = store.columns(design.columns_needed(inputs.names), span)
    frame = frame_of(read, pd.RangeIndex(start, stop))
    inputs, response = inputs.read(frame), design.response is not None
    return design.batch_of(frame, inputs, response, design.known_levels("error"), part=True)


def bare_table(table, span):
    """Return the part of `table` in a Span, without columns: a Dask worker will read these."""
    table = table_of_span(table, span, {})
    starts = [run[0] for run in table.index.runs]
    lo, hi = bisect_right(starts, span.start) - 1, bisect_right(starts, span.stop - 1)
    return replace(table, index=replace(table.index, runs=table.index.runs[lo:hi]))


def part_task(store, span, table, work, names):
    """Read columns of a chunk on a Dask worker into its table; return work(span, table).

    store : ChunkStore, which reads the columns `names`
    span : Span, position of the chunk
    table : Table of the chunk, without columns"""
    return work(span, replace(table, columns=store.columns(names, span)))


@dataclass(frozen=True, eq=False)
class WorkerChunks(SourceChunks):
    """Complete rows of data not in memory, in chunks read by the workers of a Dask client."""

    client: object = None

    def map(self, work, names):
        """Let Dask workers read the chunks; return a list of work(span, table), one per chunk.

        work : gets the chunk's position (a Span), and a Table of its rows with columns `names`"""
        if not names:
            return super().map(work, names)
        spans = spans_of(self.table.rows, self.n)
        each = [(span, bare_table(self.table, span), work, list(names)) for span in spans]
        return dask_cluster.run_tasks(self.client, part_task, self.store, each)

    def tiles(self, design, all_inputs, inputs):
        """Compute X on Dask workers; return X as WorkerTiles, y (n,) or None, and RowInputs.

        design : Design, which converts rows to numbers
        all_inputs : RowInputs (weights, offset etc.) of all rows
        inputs : RowInputs of the complete rows"""
        make = batch_reader(design, self, all_inputs)
        X = workers.read_parts(self.client, make, self.n, len(design.names), design.dtype)
        # Arrays that workers hold already are not sent to them again.
        here = {name: values for name, (values, _) in X.beside.items()}
        kept = {k: here[k] for k in ("weights", "offset") if getattr(inputs, k) is not None}
        return X, here.get("y"), replace(inputs, **kept)
