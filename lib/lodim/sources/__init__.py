"""Data that are not in memory, such as files: ordered pieces that are read in chunks."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.sources.files import CSV, FileState, find_files, is_path, kind_of_files

ROWS_PER_CHUNK = 65_536  # largest number of rows of a chunk: 16 blocks of 4,096 rows


@dataclass(frozen=True)
class Chunk:
    """At most 65,536 consecutive rows, with the same column types in all chunks of the data."""

    frame: Any
    first: int  # position of the chunk's first row in its piece (such as a file)
    place: str  # name of the piece, for messages


class Piece:
    """Consecutive rows of a data source, such as a file; can be pickled, and read in any process.

    place : name in messages, such as "a.parquet, row group 2"; n : number of rows, or None"""

    place: str
    n: int | None

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows in order, in chunks with the given columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class Source:
    """Data that are not in memory (files etc.): named columns, read in chunks; can be pickled."""

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    # package of the frames of predictions: "pandas" for files, else the package of the data
    kind: str
    files: tuple[FileState, ...] = ()  # states of the files when the source was created

    @property
    def n(self) -> int | None:
        """Number of rows of the data if known without reading, else None."""
        counts = [piece.n for piece in self.pieces]
        return None if None in counts else sum(n for n in counts if n is not None)

    @property
    def paths(self) -> list[str]:
        """Paths of the data files that are on local disks."""
        return [file.path for file in self.files if file.filesystem is None]

    def select(self, names: Sequence[str]) -> "Source":
        """Return the source restricted to some columns; the other columns are not read."""
        return replace(self, names=tuple(names))

    def chunks(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield all rows in order, in chunks with the given columns."""
        for piece in self.select(names).pieces:
            yield from piece.read(names)

    def check_unchanged(self) -> None:
        """Raise DataError, which names the file, if a file has changed since it was opened."""
        for file in self.files:
            file.check_unchanged()


def read_source(data: Any, check: Callable[[list[str]], Any] | None = None) -> Source | None:
    """Return a Source that reads data in chunks; None for data in memory.

    data : path, pattern, folder, list of these, pyarrow Dataset, LazyFrame, Dask frame or Source
    check : function that raises errors about the column names of CSV files"""
    if isinstance(data, Source):
        return data
    if is_path(data):
        files = find_files(data)
        kind = kind_of_files(files)
        if kind == CSV:
            from lodim.sources.csv_files import read_csv

            return read_csv(files, check)
        from lodim.sources.arrow_tables import read_tables

        return read_tables(files, kind)
    if _is(data, "pyarrow.dataset", "Dataset"):
        from lodim.sources.arrow_tables import read_dataset

        return read_dataset(data)
    if _is(data, "polars", "LazyFrame"):
        from lodim.sources.lazy_frames import read_lazy

        return read_lazy(data)
    if _is(data, "dask.dataframe", "DataFrame"):
        from lodim.sources.dask_frames import read_dask

        return read_dask(data)
    return None


def _is(data: object, module: str, name: str) -> bool:
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(data, found)
