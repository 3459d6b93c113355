"""CSV files as data that are read in chunks."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.common import get_handle

from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, Chunk, Piece, Source
from lodim.sources.files import CSV, PACKED, FileState, no_rows, reading, short_name
from lodim.sources.schemas import check_columns, check_names

MISSING = ("", "NA", "NaN", "nan")  # cells read as missing values
ENCODING = "utf-8-sig"
Cut = tuple[int, int, int | None, int | None]  # first row, number of rows, first byte, end byte
BLOCK = 1 << 20  # number of bytes searched at once for line ends


@dataclass(frozen=True)
class Dialect:
    sep: str = ","
    decimal: str = "."

    def options(self) -> dict[str, Any]:
        """Return the separator and decimal sign as arguments of pandas' CSV reader."""
        return vars(self) | {"encoding": ENCODING, "keep_default_na": False}


@dataclass
class Kinds:
    """Kinds of values seen in a column (letters of NumPy dtypes), and whether some are missing."""

    seen: set[str] = field(default_factory=set)
    gaps: bool = False

    def add(self, values: "pd.Series[Any]") -> None:
        missing = bool(values.isna().any())
        self.gaps |= missing
        if missing and bool(values.isna().all()):
            return
        kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else "O"
        if kind == "O":
            kind = "b" if pd.api.types.infer_dtype(values, skipna=True) == "boolean" else "O"
        self.seen.add(kind)

    def dtype(self) -> Any:
        """Return the dtype that pandas would give the column if all chunks were read at once."""
        if self.seen == {"b"}:
            return "boolean" if self.gaps else np.dtype(bool)
        if self.seen & {"O", "b"}:
            return str
        if len(self.seen) == 1 and not self.gaps and self.seen <= {"i", "u"}:
            return np.dtype(np.int64 if self.seen == {"i"} else np.uint64)
        return np.dtype(np.float64)


@dataclass(frozen=True)
class Rows(Piece):
    """Rows of a CSV file between the bytes `start` and `stop`; all rows if these are None.

    names : all column names of the file; dtypes : dict column -> dtype, the same in all files"""

    place: str
    n: int
    file: FileState
    dialect: Dialect
    names: list[str]
    start: int | None
    stop: int | None
    dtypes: dict[str, Any]

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        position = 0
        dtypes = {name: self.dtypes[name] for name in names}
        for frame in _frames(self.file, self.dialect, self._text(), dtypes):
            yield Chunk(frame[list(names)], position, self.place)
            position += len(frame)
        if position != self.n:
            raise DataError(f"{self.place} has {position} rows, but had {self.n} before")

    def _text(self) -> dict[str, Any]:
        """Return a dict of arguments of pandas' CSV reader: the path or the bytes of these rows."""
        if self.start is None or self.stop is None:
            return {"filepath_or_buffer": self.file.path}
        with reading(self.file, CSV), open(self.file.path, "rb") as opened:
            opened.seek(self.start)
            text = opened.read(self.stop - self.start)
        return {"filepath_or_buffer": BytesIO(text), "header": None, "names": self.names}


def read_csv(files: Sequence[FileState], check: Callable[[list[str]], Any] | None) -> Source:
    """Read CSV files once, after `check` of their column names; return a Source of them."""
    kinds: dict[str, Kinds] = {}
    pieces: list[Rows] = []
    for file in files:
        dialect = dialect_of(file)
        every, names = header(file, dialect)
        if kinds:
            check_columns(files[0].name, list(kinds), file.name, names)
        elif check is not None:
            check(names)
        kinds = kinds or {name: Kinds() for name in names}
        n, suspicious = 0, False
        for frame in _frames(file, dialect, {"filepath_or_buffer": file.path}):
            for name in names:
                kinds[name].add(frame[name])
            suspicious |= bool(frame[names[-1]].isna().any())
            n += len(frame)
        if suspicious:
            _check_lengths(file, dialect)
        for first, count, start, stop in _cuts(file, n):
            place = short_name(file.name)
            if count < n:
                place = f"{place}, rows {first + 1} to {first + count}"
            pieces.append(Rows(place, count, file, dialect, every, start, stop, {}))
    if not sum(piece.n for piece in pieces):
        raise DataError(no_rows(files))
    dtypes = {name: kind.dtype() for name, kind in kinds.items()}
    whole = tuple(replace(piece, dtypes=dtypes) for piece in pieces)
    return Source(tuple(kinds), whole, "pandas", tuple(files))


def _cuts(file: FileState, n: int) -> list[Cut]:
    """Return a list with the Cut (rows and bytes) of each chunk of a file of n rows.

    A file with a quote is a single chunk, since a line end may be inside a cell."""
    whole: list[Cut] = [(0, n, None, None)]
    if n <= ROWS_PER_CHUNK or file.name.lower().endswith(PACKED):
        return whole
    starts, lines, at, last = [], -1, 0, b""
    with reading(file, CSV), open(file.path, "rb") as opened:
        while block := opened.read(BLOCK):
            if b'"' in block:
                return whole
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            # Line end number `lines + 1 + i` of the file is followed by data row lines + 1 + i.
            first = -(-(lines + 1) // ROWS_PER_CHUNK) * ROWS_PER_CHUNK - (lines + 1)
            starts += (at + ends[first::ROWS_PER_CHUNK] + 1).tolist()
            lines, at, last = lines + len(ends), at + len(block), block[-1:]
    if lines + (last != b"\n") != n:
        return whole
    starts = [start for start in starts if start < at]
    firsts, stops = range(0, n, ROWS_PER_CHUNK), [*starts[1:], at]
    bounds = zip(firsts, starts, stops, strict=True)
    return [(first, min(ROWS_PER_CHUNK, n - first), *ends) for first, *ends in bounds]


def dialect_of(file: FileState, sep: str = ",", decimal: str = ".") -> Dialect:
    """Return the Dialect of a CSV file; in *.tsv files, tabs replace commas as separator."""
    return Dialect("\t" if sep == "," and ".tsv" in file.name.lower() else sep, decimal)


def header(file: FileState, dialect: Dialect) -> tuple[list[str], list[str]]:
    """Return all column names of a CSV file, and the same without an unnamed first column."""
    if not file.size:
        raise DataError(f"{file.name} is empty: it has 0 bytes")
    with reading(file, CSV), _text(file.path) as text:
        lines = text.start(1000).splitlines()[:2]
        for mark in ";\t|":
            if sum(mark in line for line in lines) == 2 and dialect.sep not in lines[0]:
                raise DataError(
                    f"{file.name} has {mark!r} between its columns, not {dialect.sep!r}: read it "
                    f"by pandas.read_csv(file, sep={mark!r}) and give lodim the frame "
                    f"(--sep {mark!r} on the command line)"
                )
        # The second row is read too: pandas takes an additional cell in it for a row label.
        options = {**dialect.options(), "header": None, "nrows": 2, "dtype": str}
        head = pd.read_csv(text, **options).iloc[0].fillna("").tolist()
    check_names(file.name, [name for name in head if name])
    names = [name or f"Unnamed: {k}" for k, name in enumerate(head)]
    features = names[1:] if names[0].startswith("Unnamed:") else names
    if not features:
        raise DataError(f"{file.name} has no column with a name")
    return names, features


def _frames(
    file: FileState, dialect: Dialect, text: dict[str, Any], dtypes: dict[str, Any] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of a CSV file, or of a part, as DataFrames.

    text : arguments of pandas.read_csv that name the text and its columns
    dtypes : dict column -> dtype of the columns to read; None for all columns"""
    some = {} if dtypes is None else {"usecols": list(dtypes), "dtype": dtypes}
    options = {**dialect.options(), **text, **some, "low_memory": False}
    with reading(file, CSV), _text(options.pop("filepath_or_buffer")) as opened:
        chunks = pd.read_csv(opened, na_values=list(MISSING), chunksize=ROWS_PER_CHUNK, **options)
        with chunks:
            yield from (frame for frame in chunks if len(frame))


class _Text:
    """Text file for pandas' reader that records whether reading failed."""

    def __init__(self, handle: Any) -> None:
        self.handle, self.unreadable = handle, False
        self.begin = ""  # characters that the next call of read() returns

    def start(self, size: int) -> str:
        """Return the first `size` characters, which the next call of read() returns again."""
        self.begin = self.read(size)
        return self.begin

    def read(self, size: int = -1) -> str:
        if self.begin:
            begin, self.begin = self.begin, ""
            return begin
        try:
            return self.handle.read(size)  # type: ignore[no-any-return]
        except Exception:
            self.unreadable = True
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self.handle)


@contextmanager
def _text(source: Any) -> Iterator[Any]:
    """Open a `source`, path or bytes, as text in which Ctrl-C raises KeyboardInterrupt."""
    with get_handle(source, "r", encoding=ENCODING, compression="infer") as opened:
        text = _Text(opened.handle)
        try:
            yield text
        except pd.errors.ParserError as error:
            if "Calling read" in str(error) and not text.unreadable:
                raise KeyboardInterrupt from None
            raise


def _check_lengths(file: FileState, dialect: Dialect) -> None:
    """Raise DataError if a row has fewer cells than the header; pandas would add missing values."""
    handle = partial(get_handle, file.path, "r", encoding=ENCODING, compression="infer")
    with reading(file, CSV), handle() as opened:
        rows = csv.reader(opened.handle, delimiter=dialect.sep)  # type: ignore[arg-type]
        width = len(next(row for row in rows if row))
        for row in rows:
            if len(row) < width and "".join(row).strip():
                what = f"{file.name}, line {rows.line_num}: {len(row)} cells"
                raise DataError(f"{what}, but the header has {width}; is the file incomplete?")
