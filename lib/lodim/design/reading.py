"""The complete rows of data: of a frame in memory, of a source in one pass, or of a sample."""

from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from lodim.checks import MOST_ROWS, whole
from lodim.design import chunks, columns, summaries
from lodim.design.chunks import (
    ChunkStore,
    Cutter,
    Labels,
    SourceParts,
    TableParts,
    ahead,
    check_names,
    client_for,
    count_rows,
    draw_positions,
    frame_of,
    merge_summaries,
    read_chunk,
    read_rows_at,
    span_of,
)
from lodim.design.column_kernels import ALL, read_only, weight_unit
from lodim.design.columns import Table
from lodim.design.rows import (
    Flags,
    RowInputs,
    complete_rows,
    flag_missing,
    read_complete,
)
from lodim.errors import DataError


@dataclass(frozen=True)
class Reading:
    """How rows are read, and where their features are held.

    sample : number of rows that are drawn, at random by where they stand and `seed`; None: all
    scratch : folder of the file that holds the features. Without it they are in memory, or where
        the data are not and half of what is free is too little, in the temporary folder
    client : of Dask, whose workers read the data and hold the features. Without it that of this
        process, of a Dask frame; False: none
    in_place : whether X may be ColumnTiles, of columns of the data that are not copied; they are
        where `columns_in_place` says so
    """

    sample: int | None = None
    seed: int = 0
    scratch: str | None = None
    client: Any = None
    in_place: bool = False

    def client_for(self, source):
        """The client whose workers read a source, or None where it is read here."""
        return client_for(self.client, source, self.sample, self.scratch)

    def reader(self, data, source, request, answers, inputs, missing):
        """A function that reads the rows of a Frame or a source, and the inputs to call it with.

        These are `inputs`, or where a sample is asked for those of the rows drawn.
        """
        if self.sample is not None:
            whole("sample", self.sample, most=MOST_ROWS)
            needed = list(dict.fromkeys([*request.names, *answers, *inputs.names]))
            data, inputs = draw_sample(data, source, needed, inputs, self.sample, self.seed)
            source = None
        read = read_frame_rows if source is None else read_source_rows
        return lambda given: read(data, request, answers, given, missing), inputs


@dataclass(frozen=True, eq=False)
class Rows:
    """What is known of the rows of some data before anything is learnt of their features.

    inputs : of the complete rows; table : their answers, at least; parts : all of their columns
    rows : (n,) int64, positions of the complete rows in `index`, the labels of all N rows
    n_dropped, n_incomplete : as in a Design
    streamed : whether the parts are read again in each pass
    """

    inputs: RowInputs
    table: Table
    parts: object
    rows: np.ndarray
    index: pd.Index
    n_dropped: int
    n_incomplete: int
    streamed: bool = False


def read_frame_rows(frame, request, answers, inputs, missing):
    """The rows of a frame in memory.

    Parameters
    ----------
    frame : Frame
    request : ColumnRequest
    answers : list of str, columns of the response
    inputs : RowInputs
    missing : as `Design.learn` takes it
    """
    inputs = inputs.read(frame)
    read = read_complete(frame, list(request.names), answers, inputs, missing, learning=True)
    table, rows, *numbers = read
    inputs = inputs.complete(rows)
    table.positive_weight, table.weights = inputs.positive_weight, inputs.weights
    table.weight_unit = weight_unit(inputs.weights)
    return Rows(inputs, table, TableParts(table), rows, frame.index, *numbers)


MANY_PARTS = 64  # whose summaries are merged before the next ones come


@dataclass(frozen=True, eq=False)
class Scan:
    """What a first look at some rows says of them; scans of rows that follow each other are joined.

    n : number of rows; runs : as those of Labels, counted from the first of them
    flags : where something is missing
    beside : Columns of the response and of inputs that are named
    kinds : of each column, a Column without rows, and where it was seen
    """

    n: int
    runs: list
    flags: Flags
    beside: dict
    kinds: dict


def join_scans(scans):
    """One Scan of several that follow each other."""
    starts = np.cumsum([0, *(scan.n for scan in scans)]).tolist()
    runs = [
        (at + start, first, place)
        for at, scan in zip(starts, scans, strict=False)
        for start, first, place in scan.runs
    ]
    flags = Flags(
        *(np.concatenate([getattr(scan.flags, key) for scan in scans]) for key in ("gaps", "bad")),
        *(_add([getattr(scan.flags, key) for scan in scans]) for key in ("columns", "inputs")),
    )
    kinds = reduce(join_kinds, (scan.kinds for scan in scans))
    beside = {k: columns.concat([scan.beside[k] for scan in scans]) for k in scans[0].beside}
    return Scan(starts[-1], runs, flags, beside, kinds)


def _add(counts):
    """Sums of dicts that have the same keys."""
    return {key: sum(count[key] for count in counts) for key in counts[0]}


def join_kinds(kinds, more):
    """What columns hold, given what they hold in the rows that follow; an error names both places.

    Parameters
    ----------
    kinds, more : dict of (Column without rows, place) by name, as in a Scan
    """
    joined = dict(kinds)
    for name, (kind, place) in more.items():
        if name not in kinds or columns.is_open(kinds[name][0]):
            joined[name] = kind, place
        else:
            columns.check_alike(kinds[name][0], kind, kinds[name][1], place)
    return joined


def scan(chunk, request, answers, inputs, missing):
    """A first look at a chunk: its Scan, and its columns by name.

    Parameters
    ----------
    chunk : sources.Chunk
    request : ColumnRequest
    answers : list of str, columns of the response
    inputs : RowInputs of the chunk
    missing : str
    """
    read = read_chunk(chunk, list(dict.fromkeys([*request.names, *answers, *inputs.names])))
    n, runs = len(chunk.frame), [(0, chunk.first, chunk.place)]
    frame = frame_of(read, Labels(runs, range(n)))
    beside_names = dict.fromkeys([*answers, *inputs.names])
    inputs = inputs.read(frame)
    used = {name: read[name] for name in dict.fromkeys([*request.names, *answers])}
    flags = flag_missing(used, answers, inputs, missing, frame.index)
    # Copies: a view would hold all columns of its chunk.
    kept = {name: columns.take(read[name], np.arange(n)) for name in beside_names}
    kinds = {name: (columns.sketch(column), chunk.place) for name, column in read.items()}
    return Scan(n, runs, flags, kept, kinds), read


def read_source_rows(source, request, answers, inputs, missing):
    """The rows of a source, by its first pass; as `read_frame_rows` reads those of a frame."""
    needed = list(dict.fromkeys([*request.names, *answers, *inputs.names]))
    check_names(source, needed)
    first = _FirstPass(request, answers, inputs.arrays(), missing)
    source.check_unchanged()
    source = source.select(needed)
    with closing(ahead(first.scan(source, needed))) as scans:
        for found, read_columns in scans:
            first.add(found, read_columns)
    source.check_unchanged()
    return first.rows(source, inputs)


class _FirstPass:
    """Scans of chunks, and summaries of the parts that are whole already."""

    def __init__(self, request, answers, inputs, missing):
        self.request, self.answers, self.inputs, self.missing = request, answers, inputs, missing
        self.scans, self.summaries, self.cutter, self.kinds = [], [], Cutter(), {}
        self.n, self.n_levels, self.starts = 0, 0, [0]
        self.open = np.empty(0, np.int64)  # complete rows of no part yet

    def scan(self, source, names):
        """(Scan, columns) of each chunk of a source that has rows."""
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
        """Take the next chunk."""
        self.kinds = join_kinds(self.kinds, found.kinds)
        weights = self._weights(read, found.n)
        stretch = {name: read[name] for name in self.request.names}
        self.cutter.put(self.n, self.n + found.n, stretch | {None: weights})
        rows = complete_rows(found.flags, None, self.missing, learning=False)[0]
        self.open = np.r_[self.open, self.n + rows]
        self.n += found.n
        self.scans.append(found)
        while len(self.open) >= chunks.PART:
            self._learn(chunks.PART)

    def _weights(self, read, n):
        """The weights of a chunk as a Column, ones where there are none."""
        weights = self.inputs.weights
        if isinstance(weights, str):
            return read[weights]
        values = np.ones(n) if weights is None else weights[self.n : self.n + n]
        return columns.Column("weights", "number", values)

    def _learn(self, size):
        """Learn the summaries of the next part, of so many complete rows."""
        rows, self.open = self.open[:size], self.open[size:]
        span = span_of(rows, 0, 0)
        held = self.cutter.take(span, [*self.request.names, None])
        weights = columns.take(columns.as_float(held.pop(None).values), span.rows)
        positive = None if (weights > 0).all() else weights > 0
        table = Table(held, read_only(span.rows), None, span.n, positive, self.missing, weights)
        self.summaries.append(summaries.summarize(table, self.request))
        self.n_levels += sum(len(found.levels) for found in self.summaries[-1])
        if self.n_levels > summaries.MOST_LEVELS or len(self.summaries) > MANY_PARTS:
            merged = merge_summaries(self.summaries, self.request)
            self.summaries = [[merged[name] for name in self.request.names]]
            self.n_levels = 0

    def rows(self, source, inputs):
        """What was found of all rows."""
        if not self.n:
            raise DataError("the data has no rows")
        if len(self.open):
            self._learn(len(self.open))
        found = join_scans(self.scans)
        labels = Labels(found.runs, range(found.n))
        return _rows_of(found, self, source, labels, inputs)


def _rows_of(found, first, source, labels, inputs):
    frame = frame_of(found.beside, labels)
    inputs = inputs.map(lambda value, _: _without_labels(value, found.n)).read(frame)
    flags = found.flags
    rows, *numbers = complete_rows(flags, inputs.weights, first.missing, learning=True)
    inputs = inputs.complete(rows)
    complete = frozenset(name for name, count in flags.columns.items() if not count)
    table = Table(
        found.beside,
        read_only(ALL if len(rows) == found.n else rows),
        labels,
        len(rows),
        inputs.positive_weight,
        first.missing,
        inputs.weights,
        complete_columns=complete,
        weight_unit=weight_unit(inputs.weights),
    )
    known = merge_summaries(first.summaries, first.request) if table.weight_unit == 1.0 else None
    store = ChunkStore(source, tuple(first.starts))
    stretches = SourceParts(store, replace(table, columns={}), found.n, known)
    return Rows(inputs, table, stretches, rows, pd.RangeIndex(found.n), *numbers, True)


def _without_labels(value, n):
    """What is given of n rows, without row labels where these are 0, 1, ..., n - 1."""
    if isinstance(value, pd.Series | pd.DataFrame) and value.index.equals(pd.RangeIndex(n)):
        return value.to_numpy()
    return value


def draw_sample(data, source, names, inputs, size, seed):
    """A frame of some of the rows, in their order, and what is given of these.

    Parameters
    ----------
    data : Frame, or the source
    source : Source or None
    names : list of str
        The columns that are needed.
    inputs : RowInputs of all rows
    size : int
        All rows are taken where there are no more.
    seed : int

    Returns
    -------
    Frame, RowInputs
    """
    n = len(data.index) if source is None else count_rows(source, names)
    rows = draw_positions(n, size, seed) if size < n else np.arange(n)
    if source is None:
        frame = replace(
            data, index=data.index[rows], fetch=lambda key: columns.take(data.fetch(key), rows)
        )
    else:
        frame = read_rows_at(source, names, rows, n)
    for what, value in vars(inputs).items():
        if np.ndim(value) and len(value) != n:
            raise DataError(f"{what} has {len(value)} values, and the data has {n} rows")
    return frame, inputs.take(rows)
