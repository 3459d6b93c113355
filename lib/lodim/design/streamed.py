"""A design learnt from data that are not in memory, part by part.

The first pass over a source finds the complete rows, keeps what stands beside the features, and
sums up what is known of each column; later passes go through the same parts again. What is computed
of a part is what `TableParts` computes of the same rows in memory, by the same functions.
"""

import tempfile
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from lodim.design import columns, parts
from lodim.design import facts as known_facts
from lodim.design.column_kernels import ALL, read_only, weight_unit
from lodim.design.frames import PANDAS
from lodim.design.response import INPUTS, Flags, RowInputs, complete_rows, flag_missing
from lodim.design.rows import Rows
from lodim.design.scratch import fits_memory, tiles_in
from lodim.design.table import Table
from lodim.engine import tiles
from lodim.errors import DataError

MANY_PARTS = 64  # whose facts are merged before the next ones come


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
    kinds = _join_kinds(scans)
    beside = {k: columns.concat([scan.beside[k] for scan in scans]) for k in scans[0].beside}
    return Scan(starts[-1], runs, flags, beside, kinds)


def _add(counts):
    """Sums of dicts that have the same keys."""
    return {key: sum(count[key] for count in counts) for key in counts[0]}


def _join_kinds(scans):
    kinds = {}
    for scan in scans:
        for name, (kind, place) in scan.kinds.items():
            if name not in kinds or columns.is_open(kinds[name][0]):
                kinds[name] = kind, place
            else:
                columns.check_alike(kinds[name][0], kind, kinds[name][1], place)
    return kinds


def scan(chunk, wanted, answers, beside, missing):
    """A first look at a chunk: its Scan, and its columns by name.

    Parameters
    ----------
    chunk : sources.Chunk
    wanted : facts.Wanted
    answers : list of str, columns of the response
    beside : names of columns, or arrays of the chunk's length, as `RowInputs.read` takes them
    missing : str
    """
    named = [name for name in beside if isinstance(name, str)]
    read = read_chunk(chunk, list(dict.fromkeys([*wanted.names, *answers, *named])))
    n, runs = len(chunk.frame), [(0, chunk.first, chunk.place)]
    frame = frame_of(read, Labels(runs, range(n)))
    inputs = RowInputs.read(frame, *beside)
    used = {name: read[name] for name in dict.fromkeys([*wanted.names, *answers])}
    flags = flag_missing(used, answers, inputs, missing, frame.index)
    kept = {name: read[name] for name in dict.fromkeys([*answers, *named])}
    kinds = {name: (columns.sketch(column), chunk.place) for name, column in read.items()}
    return Scan(n, runs, flags, kept, kinds), read


def frame_of(read, labels):
    """Columns that have been read, by name, as a Frame."""
    keys = {name: name for name in read}
    return columns.Frame(tuple(read), labels, keys, frozenset(), read.__getitem__, PANDAS)


class _Cutter:
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


def read(source, wanted, answers, beside, missing):
    """The rows of a source, by its first pass; as `rows.read_rows` reads those of a frame."""
    given = [_as_array(value, what) for value, what in zip(beside, INPUTS, strict=True)]
    named = [name for name in given if isinstance(name, str)]
    needed = list(dict.fromkeys([*wanted.names, *answers, *named]))
    _check_names(source, needed)
    first = _FirstPass(wanted, answers, given, missing)
    source.check_unchanged()
    source = source.select(needed)
    with closing(ahead(first.scan(source, needed))) as scans:
        for found, read_columns in scans:
            first.add(found, read_columns)
    source.check_unchanged()
    return first.rows(source, beside)


class _FirstPass:
    """Scans of chunks, and facts of the parts that are whole already."""

    def __init__(self, wanted, answers, beside, missing):
        self.wanted, self.answers, self.beside, self.missing = wanted, answers, beside, missing
        self.scans, self.facts, self.cutter = [], [], _Cutter()
        self.n, self.n_levels, self.starts = 0, 0, [0]
        self.open = np.empty(0, np.int64)  # complete rows of no part yet

    def scan(self, source, names):
        """(Scan, columns) of each chunk of a source that has rows."""
        start = 0
        for piece in source.pieces:
            for chunk in piece.read(names):
                n = len(chunk.frame)
                if n:
                    pairs = zip(self.beside, INPUTS, strict=True)
                    here = [_part_of(value, what, start, start + n) for value, what in pairs]
                    yield scan(chunk, self.wanted, self.answers, here, self.missing)
                start += n
            self.starts.append(start)

    def add(self, found, read):
        """Take the next chunk."""
        weights = self._weights(read, found.n)
        stretch = {name: read[name] for name in self.wanted.names}
        self.cutter.put(self.n, self.n + found.n, stretch | {None: weights})
        rows = complete_rows(found.flags, None, self.missing, learning=False)[0]
        self.open = np.r_[self.open, self.n + rows]
        self.n += found.n
        self.scans.append(found)
        while len(self.open) >= parts.PART:
            self._learn(parts.PART)

    def _weights(self, read, n):
        """The weights of a chunk as a Column, ones where there are none."""
        weights = self.beside[0]
        if isinstance(weights, str):
            return read[weights]
        values = np.ones(n) if weights is None else weights[self.n : self.n + n]
        return columns.Column("weights", "number", values)

    def _learn(self, size):
        """Learn the facts of the next part, of so many complete rows."""
        rows, self.open = self.open[:size], self.open[size:]
        span = parts.span_of(rows, 0, 0)
        held = self.cutter.take(span, [*self.wanted.names, None])
        weights = columns.take(columns.as_float(held.pop(None).values), span.rows)
        positive = None if (weights > 0).all() else weights > 0
        table = Table(held, read_only(span.rows), None, span.n, positive, self.missing, weights)
        self.facts.append(known_facts.learn(table, self.wanted))
        self.n_levels += sum(len(found.levels) for found in self.facts[-1])
        if self.n_levels > known_facts.MOST_LEVELS or len(self.facts) > MANY_PARTS:
            merged = parts.merge_facts(self.facts, self.wanted)
            self.facts = [[merged[name] for name in self.wanted.names]]
            self.n_levels = 0

    def rows(self, source, beside):
        """What was found of all rows."""
        if not self.n:
            raise DataError("the data has no rows")
        if len(self.open):
            self._learn(len(self.open))
        found = join_scans(self.scans)
        labels = Labels(found.runs, range(found.n))
        return _rows_of(found, self, source, labels, beside)


def _rows_of(found, first, source, labels, beside):
    frame = frame_of(found.beside, labels)
    inputs = RowInputs.read(frame, *(_of_order(value, found.n) for value in beside))
    flags = found.flags
    rows, n_incomplete = complete_rows(flags, inputs.weights, first.missing, learning=True)
    inputs = inputs.at(rows)
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
    known = parts.merge_facts(first.facts, first.wanted) if table.weight_unit == 1.0 else None
    places = Places(source, tuple(first.starts))
    stretches = SourceParts(places, replace(table, columns={}), found.n, known)
    return Rows(inputs, table, stretches, rows, pd.RangeIndex(found.n), n_incomplete)


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
        cutter = _Cutter(self.starts[bisect_right(self.starts, span.start) - 1])
        with closing(self.read(names, span.start)) as chunks:
            for chunk in chunks:
                cutter.put(*chunk)
                if cutter.stop >= span.stop:
                    return cutter.take(span, names)
        raise _changed()


@dataclass(frozen=True, eq=False)
class SourceParts:
    """The parts of a source's complete rows, read anew in each pass.

    table : Table without columns; n_rows : rows of the source, complete or not
    known : dict of Facts by name from the first pass, or None
    """

    places: Places
    table: Table
    n_rows: int
    known: dict | None

    @property
    def n(self):
        """Number of complete rows."""
        return self.table.n

    in_one = False

    @property
    def positive_weight(self):
        """(n,) bool, the rows whose weight is above zero; None where all are."""
        return self.table.positive_weight

    def facts(self, wanted):
        """Facts of columns by name."""
        if self.known is not None:
            return self.known
        work = partial(parts.learn_facts, wanted=wanted)
        return parts.merge_facts(self.map(work, wanted.names), wanted)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in one pass."""
        with closing(self.tables(list(names))) as tables:
            return [work(span, table) for span, table in tables]

    def tasks(self, work, names):
        """A call without arguments for each part, which can be pickled: together they are `map`."""
        return [
            partial(part_task, span, self.places, self._bare(span), work, list(names))
            for span in parts.spans(self.table.rows, self.n)
        ]

    def _bare(self, span):
        """The table of a part without its columns, and with the labels that it needs alone."""
        table = parts.of_rows(self.table, span, {})
        starts = [run[0] for run in table.index.runs]
        lo, hi = bisect_right(starts, span.start) - 1, bisect_right(starts, span.stop - 1)
        return replace(table, index=replace(table.index, runs=table.index.runs[lo:hi]))

    def tables(self, names):
        """The parts as (span, table), in one pass over some columns."""
        spans = parts.spans(self.table.rows, self.n)
        if not names:
            yield from ((span, parts.of_rows(self.table, span, {})) for span in spans)
            return
        self.places.source.check_unchanged()
        cutter = _Cutter()
        with closing(ahead(self.places.read(names))) as read_ahead:
            for span in spans:
                while cutter.stop < span.stop:
                    cutter.put(*self._next(read_ahead))
                yield span, parts.of_rows(self.table, span, cutter.take(span, names))
            stop = max((stop for _, stop, _ in read_ahead), default=cutter.stop)
        self.places.source.check_unchanged()
        if stop != self.n_rows:
            raise _changed()

    def _next(self, read_ahead):
        found = next(read_ahead, None)
        if found is None or found[1] > self.n_rows:
            raise _changed()
        return found

    def gather(self, rows, names):
        """A table of the complete rows at some positions; None: of all."""
        picked = self.map(partial(_pick, rows=rows), names)
        table = self.table
        held = {k: columns.concat([part[k] for part in picked]) for k in names}
        rows = np.arange(self.n) if rows is None else rows
        given = {key: getattr(table, key) for key in ("weights", "positive_weight")}
        given = {key: None if x is None else x[rows] for key, x in given.items()}
        places = table.rows[rows] if table.rows.size else rows
        index = table.index[places]
        return replace(table, columns=held, rows=read_only(ALL), n=len(rows), index=index, **given)


@dataclass(frozen=True, eq=False)
class PartReader:
    """Makes the batch of a part of a source, in any process: it can be pickled.

    design : Design
    places : Places
    stretches : (n_parts, 2) int64, positions of the first row of each part and after its last
    weights, offset : names of columns, or arrays of all N rows of the source, or None
    """

    design: object
    places: Places
    stretches: np.ndarray
    weights: object
    offset: object

    @classmethod
    def from_parts(cls, design, learnt, weights, offset):
        """For the SourceParts that a design has learnt from, and what was given of the rows."""
        spans = parts.spans(learnt.table.rows, learnt.n)
        stretches = np.array([(span.start, span.stop) for span in spans])
        weights, offset = _as_array(weights, "weights"), _as_array(offset, "offset")
        return cls(design, learnt.places, stretches, weights, offset)

    def __call__(self, k):
        """The Batch of part k: response, weights and offset as in that of all rows."""
        start, stop = self.stretches[k].tolist()
        weights = _part_of(self.weights, "weights", start, stop)
        offset = _part_of(self.offset, "offset", start, stop)
        design, named = self.design, [v for v in (weights, offset) if isinstance(v, str)]
        span = parts.Span(k, 0, start, stop, ALL, stop - start)
        read = self.places.columns(design.columns_needed(named), span)
        frame = frame_of(read, pd.RangeIndex(start, stop))
        inputs, response = RowInputs.read(frame, weights, offset), design.response is not None
        return design.batch_of(frame, inputs, response, design.known_levels("error"), part=True)


def part_task(span, places, table, work, names):
    """What `work` makes of one part, for a pass whose parts are shared among processes.

    Parameters
    ----------
    span : parts.Span
    places : Places
    table : Table
        Of the part, without columns; see `SourceParts.tasks`.
    work, names : as `SourceParts.map` takes them; the work can be pickled
    """
    return work(span, replace(table, columns=places.columns(names, span)))


def _pick(span, table, rows):
    """The columns of a part in those of its rows that are wanted."""
    if rows is None:
        here = table.rows if table.rows.size else slice(None)
    else:
        lo, hi = np.searchsorted(rows, [span.first, span.first + span.n])
        here = rows[lo:hi] - span.first
        here = table.rows[here] if table.rows.size else here
    return {name: columns.at(column, here) for name, column in table.columns.items()}


def read_chunk(chunk, names):
    """The columns of a chunk by name; errors say where it is."""
    try:
        frame = columns.read_frame(chunk.frame)
        return {name: columns.read_column(frame, name) for name in names}
    except DataError as error:
        raise DataError(f"{chunk.place}: {error}") from None


def count_rows(source, names):
    """Number of rows of a source, read where it is not known."""
    if source.n is not None:
        return source.n
    with closing(ahead(source.chunks(names[:1]))) as chunks:
        return sum(len(chunk.frame) for chunk in chunks)


def read_rows_at(source, names, rows, n):
    """The rows of a source at some of its n positions, as a columns.Frame in memory."""
    source.check_unchanged()
    _check_names(source, names)
    held, stop = {name: [] for name in names}, 0
    with closing(ahead(Places(source.select(names), (0,)).read(names))) as read_ahead:
        for start, stop, read in read_ahead:
            lo, hi = np.searchsorted(rows, [start, stop])
            for name, column in read.items():
                held[name].append(columns.at(column, rows[lo:hi] - start))
    source.check_unchanged()
    if stop != n:
        raise _changed()
    held = {name: columns.concat(found) for name, found in held.items()}
    keys = dict.fromkeys(source.names) | {name: name for name in names}
    fetch = held.__getitem__
    return columns.Frame(source.names, pd.Index(rows), keys, frozenset(), fetch, source.kind)


def ahead(items):
    """The items of a generator, the next one made in a thread while the last one is used."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="lodim-read")
    try:
        waiting = pool.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        items.close()


def _changed():
    return DataError("the data had another number of rows when they were read again")


def _check_names(source, names):
    """Raise unless the source has the columns that are named beside the formula."""
    header = columns.Frame(
        source.names, (), {name: name for name in source.names}, frozenset(), None, PANDAS
    )
    for name in names:
        columns.check_name(header, name)


def _as_array(value, what):
    """A name as it is, values of rows as an array that can be cut."""
    if value is None or isinstance(value, str) or np.ndim(value) == 0:
        return value
    if what in ("clusters", "groups"):
        return np.asarray(value)
    try:
        if isinstance(value, pd.Series | pd.DataFrame):
            return value.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} is the name of a column or an array of numbers") from None


def _part_of(value, what, start, stop):
    """The rows from start to stop of what is given of all rows; names and numbers as they are."""
    if not isinstance(value, np.ndarray):
        return value
    if len(value) < stop:
        raise DataError(f"{what} has {len(value)} values, and the data has more rows")
    return value[start:stop]


def _of_order(value, n):
    """What is given of n rows, without row labels where these are 0, 1, ..., n - 1."""
    if isinstance(value, pd.Series | pd.DataFrame) and value.index.equals(pd.RangeIndex(n)):
        return value.to_numpy()
    return value


def tiles_for(is_source, n, p, dtype, folder):
    """Room for tiles (n_tiles, p, 64): in memory, or in a scratch file.

    Parameters
    ----------
    is_source : bool
        Whether the data are not in memory: tiles that take over half of it go to a scratch file.
    folder : str or None
        Where a scratch file is made in any case.
    """
    if folder is not None:
        return tiles_in(folder, n, p, dtype)
    if is_source and not fits_memory(n, p, dtype):
        return tiles_in(tempfile.gettempdir(), n, p, dtype)
    try:
        return tiles.empty(n, p, dtype)
    except MemoryError:
        size = n * p * np.dtype(dtype).itemsize / 1e9
        what = f"{n:,} rows x {p:,} features, {size:,.1f} GB, do not fit into the memory"
        raise DataError(what) from None
