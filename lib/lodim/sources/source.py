"""Data that are not in memory: pieces in the order of rows, read in chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.sources.files import FileState

PART = 65_536  # the most rows of a chunk: 16 blocks of 4,096 rows


@dataclass(frozen=True)
class Chunk:
    """Some rows of a piece, at most PART, with the types that the columns have over all pieces.

    frame : DataFrame of pandas or polars, or Table of pyarrow
    first : position of its first row in the piece
    place : the piece it is from, for messages
    """

    frame: Any
    first: int
    place: str


class Piece:
    """A run of rows that can be read by itself, also by another process: it can be pickled.

    place : what it is, for messages: "part-3.parquet, row group 2"
    n : number of rows where it is known without reading, else None
    """

    place: str
    n: int | None

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns.

        Raises
        ------
        DataError
            It cannot be read, or has changed since; the message names the file.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Source:
    """Named columns that are read piece by piece; it can be pickled and holds no open file.

    names : columns, without an index that pandas has written beside them
    pieces : in the order of rows: that of the files, and of the row groups or partitions in them
    kind : package whose frames its predictions are: "pandas" of files, else that of the data
    files : the files as they were when the source was made; none of a lazy frame
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    kind: str
    files: tuple[FileState, ...] = ()

    @property
    def n(self) -> int | None:
        """Number of rows where it is known without reading."""
        counts = [piece.n for piece in self.pieces]
        return None if None in counts else sum(n for n in counts if n is not None)

    @property
    def paths(self) -> list[str]:
        """Of its files on this machine's disks."""
        return [file.path for file in self.files if file.filesystem is None]

    def select(self, names: Sequence[str]) -> "Source":
        """The source of some columns: its pieces need not read, nor carry, the others."""
        return replace(self, names=tuple(names))

    def chunks(self, names: Sequence[str]) -> Iterator[Chunk]:
        """All rows in order, in chunks of these columns."""
        for piece in self.select(names).pieces:
            yield from piece.read(names)

    def check_unchanged(self) -> None:
        """Raise a DataError that names the file where one is not what it was."""
        for file in self.files:
            file.check_unchanged()
