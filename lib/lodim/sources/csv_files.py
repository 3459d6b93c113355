"""CSV files, read as the command line reads one: a piece is a file.

The kinds of the columns are those of all rows of all files, so that a first pass reads everything.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.common import get_handle

from lodim.errors import DataError
from lodim.sources.files import CSV, FileState, reading, short_name
from lodim.sources.schemas import check_columns
from lodim.sources.source import PART, Chunk, Piece, Source
from lodim.sources.table_files import no_rows

MISSING = ("", "NA", "NaN", "nan")  # cells that are missing values
ENCODING = "utf-8-sig"


@dataclass(frozen=True)
class Dialect:
    """How the cells of a file are written: what is between them, and the sign before decimals."""

    sep: str = ","
    decimal: str = "."

    def options(self) -> dict[str, Any]:
        """What pandas' reader is told."""
        return {
            "sep": self.sep,
            "decimal": self.decimal,
            "keep_default_na": False,
            "encoding": ENCODING,
        }


@dataclass
class Kinds:
    """What was seen in a column: kinds of values, and whether some were missing."""

    seen: set[str] = field(default_factory=set)
    gaps: bool = False

    def add(self, values: "pd.Series[Any]") -> None:
        """Note the values of a chunk, as pandas has read them by themselves."""
        missing = bool(values.isna().any())
        self.gaps |= missing
        if missing and bool(values.isna().all()):
            return
        kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else "O"
        if kind == "O":
            kind = "b" if pd.api.types.infer_dtype(values, skipna=True) == "boolean" else "O"
        self.seen.add(kind)

    def dtype(self) -> Any:
        """What pandas makes of all chunks together."""
        if self.seen == {"b"}:
            return "boolean" if self.gaps else np.dtype(bool)
        if self.seen & {"O", "b"}:
            return str
        if len(self.seen) == 1 and not self.gaps and self.seen <= {"i", "u"}:
            return np.dtype(np.int64 if self.seen == {"i"} else np.uint64)
        return np.dtype(np.float64)


@dataclass(frozen=True)
class CsvFile(Piece):
    """A CSV file. dtypes : of the columns over all files, as pandas' reader takes them"""

    place: str
    n: int
    file: FileState
    dialect: Dialect
    dtypes: dict[str, Any]

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns."""
        position = 0
        dtypes = {name: self.dtypes[name] for name in names}
        for frame in _frames(self.file, self.dialect, dtypes):
            yield Chunk(frame[list(names)], position, self.place)
            position += len(frame)


def read_csv(files: Sequence[FileState], sep: str = ",", decimal: str = ".") -> Source:
    """A source of CSV files, which are read once for the kinds of their columns.

    Parameters
    ----------
    files : in the order of rows
    sep : between cells; a tab where a file's name says so
    decimal : the sign before decimals
    """
    kinds: dict[str, Kinds] = {}
    pieces: list[CsvFile] = []
    for file in files:
        tab = sep == "," and ".tsv" in file.name.lower()
        dialect = Dialect("\t" if tab else sep, decimal)
        names = _header(file, dialect)
        if pieces:
            check_columns(files[0].name, list(kinds), file.name, names)
        else:
            kinds = {name: Kinds() for name in names}
        n = _survey(file, dialect, names, kinds)
        pieces.append(CsvFile(short_name(file.name), n, file, dialect, {}))
    if not sum(piece.n for piece in pieces):
        raise DataError(no_rows(files))
    dtypes = {name: kind.dtype() for name, kind in kinds.items()}
    whole = tuple(replace(piece, dtypes=dtypes) for piece in pieces)
    return Source(tuple(kinds), whole, "pandas", tuple(files))


def _header(file: FileState, dialect: Dialect) -> list[str]:
    """Names of the columns, without a first one that has no name: row labels."""
    if not file.size:
        raise DataError(f"{file.name} is empty: it has 0 bytes")
    with reading(file, CSV):
        # The second row is read with the head: one cell more would be taken for a row label.
        options = {**dialect.options(), "header": None, "nrows": 2, "dtype": str}
        head = pd.read_csv(file.path, **options).iloc[0].fillna("").tolist()
    twice = [name for name in head if name and head.count(name) > 1]
    if twice:
        raise DataError(f"{file.name} has two columns called {twice[0]!r}; rename one")
    names = [name or f"Unnamed: {k}" for k, name in enumerate(head)]
    if names[0].startswith("Unnamed:"):
        names = names[1:]
    if not names:
        raise DataError(f"{file.name} has no column with a name")
    return names


def _frames(
    file: FileState, dialect: Dialect, dtypes: dict[str, Any] | None = None
) -> Iterator[pd.DataFrame]:
    """A file's rows in chunks: the columns of `dtypes`, or all, of the kinds that each chunk shows.

    Only where all are read does pandas' reader refuse a row that has too many cells.
    """
    some = {} if dtypes is None else {"usecols": list(dtypes), "dtype": dtypes}
    options = {**dialect.options(), **some, "low_memory": False}
    with reading(file, CSV):
        chunks = pd.read_csv(file.path, na_values=list(MISSING), chunksize=PART, **options)
        with chunks:
            yield from (frame for frame in chunks if len(frame))


def _survey(file: FileState, dialect: Dialect, names: list[str], kinds: dict[str, Kinds]) -> int:
    """Number of rows of a file; what its columns hold is noted."""
    n, suspicious = 0, False
    for frame in _frames(file, dialect):
        for name in names:
            kinds[name].add(frame[name])
        suspicious |= bool(frame[names[-1]].isna().any())
        n += len(frame)
    if suspicious:
        _check_lengths(file, dialect)
    return n


def _check_lengths(file: FileState, dialect: Dialect) -> None:
    """Raise where a row has fewer cells than the header; pandas takes them for missing values.

    Only the last column shows that a row may be short, and only where it has a missing value.
    """
    with (
        reading(file, CSV),
        get_handle(file.path, "r", encoding=ENCODING, compression="infer") as opened,
    ):
        rows = csv.reader(opened.handle, delimiter=dialect.sep)  # type: ignore[arg-type]
        width = len(next(row for row in rows if row))
        for row in rows:
            if len(row) < width and "".join(row).strip():
                raise DataError(
                    f"{file.name}, line {rows.line_num}: {len(row)} cells where the header has "
                    f"{width}; is the file cut off?"
                )
