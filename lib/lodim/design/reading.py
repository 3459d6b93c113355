"""Reading of complete rows from a frame in memory, from a source in one pass, or by a sample."""

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import MOST_ROWS, whole
from lodim.design import chunks, columns, summaries
from lodim.design.column_kernels import ALL_ROWS, read_only, weight_unit
from lodim.design.frame import Frame
from lodim.design.rows import Flags, RowInputs, complete_rows, flag_missing, read_complete
from lodim.engine import dask_cluster
from lodim.errors import ArgumentError, DataError
from lodim.text import counted


@dataclass(frozen=True)
class Reading:
    """Settings: how rows are read, and where the matrix X of features is held."""

    sample: int | None = None  # number of rows drawn at random with `seed`; None means all rows
    seed: int = 0
    # folder of a file that holds X; default: memory, or a temporary file for large files
    scratch: str | None = None
    # Dask client that reads and holds X, or False; Dask frames default to the active one
    client: Any = None

    def client_for(self, data):
        """Return the checked Dask client that reads `data`; None if this process reads them."""
        if self.client is False:
            return None
        if self.client is None:
            goes = data.kind == "dask" and self.sample is None and self.scratch is None
            return dask_cluster.own_client() if goes else None
        if isinstance(data, Frame):
            what = "client= needs files or a Dask frame, which the workers read"
            raise ArgumentError(f"{what}; these data are in memory: leave client= out")
        if self.sample is not None:
            raise ArgumentError("sample= and client= cannot be combined: leave one of them out")
        if self.scratch is not None:
            raise ArgumentError(
                'control={"scratch": ...} and client= cannot be combined, as the workers keep the '
                "features: leave one of them out"
            )
        return dask_cluster.checked_client(self.client)

    def draw(self, data, names, inputs):
        """Draw `self.sample` random rows (all if None); return the rows and their RowInputs.

        data : Frame (in memory) or Source (read in chunks); a sample is a Frame
        names : columns to read
        inputs : RowInputs (weights, offset etc.) of all rows"""
        inputs.check_names(data.names)
        if self.sample is None:
            return data, inputs
        size, in_memory = whole("sample", self.sample, most=MOST_ROWS), isinstance(data, Frame)
        names = list(dict.fromkeys([*names, *inputs.names]))
        n = len(data.index) if in_memory else chunks.count_rows(data, names)
        if not n:
            raise DataError("the data has no rows")
        rows = chunks.draw_positions(n, size, self.seed) if size < n else np.arange(n)
        if in_memory:
            fetch, index = data.fetch, data.index[rows]
            data = replace(data, index=index, fetch=lambda k: columns.take(fetch(k), rows))
        else:
            data = chunks.read_rows_at(data, names, rows, n)
        for what, value in vars(inputs).items():
            if np.ndim(value) and len(value) != n:
                found = f"it has {counted(len(value), 'value')}, the data has {counted(n, 'row')}"
                raise DataError(f"{what} must have one value per row; {found}")
        return data, inputs.take(rows)


@dataclass(frozen=True, eq=False)
class Rows:
    """The n complete rows of the data, with RowInputs and columns, but without the matrix X."""

    inputs: RowInputs
    # table, parts: Table in memory with at least the response; Chunks with all columns
    table: columns.Table
    parts: object
    # (n,) positions of the complete rows among all rows; index : labels of all rows
    rows: np.ndarray
    index: pd.Index
    # n_dropped, n_incomplete: rows of positive weight that were dropped, or miss only features
    n_dropped: int
    n_incomplete: int
    lacking: dict  # number of rows that miss each column or input for which rows were dropped
    # whether the data are not in memory, so that each pass reads the chunks again
    streamed: bool = False


def read_rows(data, request, answers, inputs, missing):
    """Return the complete rows of a Frame or Source as Rows.

    request : ColumnRequest, the features' columns
    answers : names of the response's columns
    inputs : RowInputs (weights, offset etc.)
    missing : "drop", "keep" or "indicator", for features"""
    if not isinstance(data, Frame):
        return read_source_rows(data, request, answers, inputs, missing)
    inputs = inputs.read(data)
    read = read_complete(data, list(request.names), answers, inputs, missing, learning=True)
    table, rows, *numbers = read
    inputs = inputs.complete(rows)
    table.weights, table.weight_unit = inputs.weights, weight_unit(inputs.weights)
    return Rows(inputs, table, chunks.TableChunks(table), rows, data.index, *numbers)


MANY_PARTS = 64  # number of chunk summaries that are merged together


@dataclass(frozen=True, eq=False)
class Scan:
    """Results of the first reading of a chunk of n rows: missing values, response, weights etc."""

    n: int
    first: int  # position of the first row in its piece of the data, such as a file
    place: str  # name of the piece, for messages
    flags: Flags
    # dict of Columns: the response, and row inputs (weights and the like) given by name
    beside: dict


def _add(counts):
    return {key: sum(count[key] for count in counts) for key in counts[0]}


def scan(chunk, request, answers, inputs, missing):
    """Read a chunk; return a Scan (its missing values, response etc.) and a dict name -> Column.

    request : ColumnRequest, the features' columns
    answers : names of the response's columns
    inputs : RowInputs (weights, offset etc.)
    missing : "drop", "keep" or "indicator", for features"""
    read = chunks.read_chunk(chunk, list(dict.fromkeys([*request.names, *answers, *inputs.names])))
    n, first, place = len(chunk.frame), chunk.first, chunk.place
    frame = chunks.frame_of(read, chunks.Labels([(0, first, place)], range(n)))
    beside_names = dict.fromkeys([*answers, *inputs.names])
    inputs = inputs.read(frame)
    used = {name: read[name] for name in dict.fromkeys([*request.names, *answers])}
    flags = flag_missing(used, answers, inputs, missing, frame.index)
    # Copies, since a view would keep all columns of its chunk in memory.
    kept = {name: columns.take(read[name], np.arange(n)) for name in beside_names}
    return Scan(n, first, place, flags, kept), read


def read_source_rows(source, request, answers, inputs, missing):
    """Read a Source (data not in memory) once; return its complete rows as Rows, without features.

    request : ColumnRequest, the features' columns
    answers : names of the response's columns
    inputs : RowInputs (weights, offset etc.)
    missing : "drop", "keep" or "indicator", for features"""
    needed = list(dict.fromkeys([*request.names, *answers, *inputs.names]))
    chunks.check_names(source, needed)
    first = _FirstPass(request, answers, inputs.arrays(), missing)
    source.check_unchanged()
    source = source.select(needed)
    with closing(chunks.ahead(first.scan(source, needed))) as scans:
        for found, read_columns in scans:
            first.add(found, read_columns)
    source.check_unchanged()
    return first.rows(source, inputs)


class _FirstPass:
    """Results of the first reading of data not in memory: missing values and column summaries."""

    def __init__(self, request, answers, inputs, missing):
        self.request, self.answers, self.inputs, self.missing = request, answers, inputs, missing
        self.scans, self.runs, self.summaries, self.cutter = [], [], [], chunks.Cutter()
        self.n, self.n_levels, self.starts = 0, 0, [0]
        self.open = np.empty(0, np.int64)  # positions of complete rows that are not summarized yet

    def scan(self, source, names):
        """Read a source; yield per chunk a Scan (missing values etc.) and a dict of its columns."""
        start = 0
        for piece in source.pieces:
            for chunk in piece.read(names):
                n = len(chunk.frame)
                if n:
                    inputs = self.inputs.stretch(start, start + n)
                    yield scan(chunk, self.request, self.answers, inputs, self.missing)
                start += n
            self.starts.append(start)

    def add(self, found, read):
        """Add a chunk: `found`, its Scan (missing values etc.), and `read`, dict name -> Column."""
        start, stop, weights = self.n, self.n + found.n, self.inputs.weights
        stretch = {name: read[name] for name in self.request.names}
        if isinstance(weights, str):
            stretch[None] = read[weights]
        else:
            values = np.ones(found.n) if weights is None else weights[start:stop]
            stretch[None] = columns.Column("weights", "number", values)
        self.cutter.put(start, stop, stretch)
        rows = complete_rows(found.flags, None, self.missing, learning=False)[0]
        self.open = np.r_[self.open, start + rows]
        self.n = stop
        self.runs.append((start, found.first, found.place))
        self.scans.append(found)
        while len(self.open) >= chunks.ROWS_PER_CHUNK:
            self._learn(chunks.ROWS_PER_CHUNK)

    def _learn(self, size):
        """Summarize the columns of the next `size` complete rows."""
        rows, self.open = self.open[:size], self.open[size:]
        span = chunks.span_of(rows, 0)
        held = self.cutter.take(span, [*self.request.names, None])
        weights = columns.take(columns.as_float(held.pop(None).values), span.rows)
        table = columns.Table(held, read_only(span.rows), None, span.n, self.missing, weights)
        self.summaries.append(summaries.summarize(table, self.request))
        self.n_levels += sum(len(found.levels) for found in self.summaries[-1].values())
        if self.n_levels > summaries.MOST_LEVELS or len(self.summaries) > MANY_PARTS:
            self.summaries, self.n_levels = [summaries.merge(self.summaries)], 0

    def rows(self, source, inputs):
        """Return the complete rows of all added chunks as Rows (response, weights etc.).

        source : Source of the chunks; inputs : RowInputs (weights, offset etc.) of all rows"""
        if not self.n:
            raise DataError("the data has no rows")
        if len(self.open):
            self._learn(len(self.open))
        n, scans = self.n, self.scans
        flags = [one.flags for one in scans]
        flags = Flags(
            np.concatenate([one.gaps for one in flags]),
            np.concatenate([one.bad for one in flags]),
            _add([one.columns for one in flags]),
            _add([one.required for one in flags]),
        )
        beside = {k: columns.concat([one.beside[k] for one in scans]) for k in scans[0].beside}
        labels = chunks.Labels(self.runs, range(n))
        inputs = inputs.map(lambda value, _: _without_labels(value, n))
        inputs = inputs.read(chunks.frame_of(beside, labels))
        rows, *numbers = complete_rows(flags, inputs.weights, self.missing, learning=True)
        inputs = inputs.complete(rows)
        table = columns.Table(
            beside,
            read_only(ALL_ROWS if len(rows) == n else rows),
            labels,
            len(rows),
            self.missing,
            inputs.weights,
            complete_columns=frozenset(name for name, n in flags.columns.items() if not n),
            weight_unit=weight_unit(inputs.weights),
        )
        known = summaries.merge(self.summaries) if table.weight_unit == 1.0 else None
        store = chunks.ChunkStore(source, tuple(self.starts))
        chunks_read = chunks.SourceChunks(store, replace(table, columns={}), n, known)
        return Rows(inputs, table, chunks_read, rows, pd.RangeIndex(n), *numbers, True)


def _without_labels(value, n):
    if isinstance(value, pd.Series | pd.DataFrame) and value.index.equals(pd.RangeIndex(n)):
        return value.to_numpy()
    return value
