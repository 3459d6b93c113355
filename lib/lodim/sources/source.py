"""Data that are not in memory: pieces in the order of rows, read in chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.sources.files import FileState

PART = 65_536  # the most rows of a chunk: 16 blocks of 4,096 rows


@dataclass(frozen=True)
class Chunk:
    """At most PART rows of a piece, with the types of the columns over all pieces.

    frame : DataFrame of pandas or polars, or Table of pyarrow
    first : position of its first row in the piece
    place : its piece, for messages
    """

    frame: Any
    first: int
    place: str


class Piece:
    """A picklable run of rows that any process can read by itself.

    place : its name in messages: "part-3.parquet, row group 2"
    n : number of rows if known without reading, else None
    """

    place: str
    n: int | None

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows in order, in chunks of these columns.

        Raises a DataError that names the file if it cannot be read or has changed.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Source:
    """Named columns that are read piece by piece; picklable, without open files.

    names : columns, without an index written by pandas
    pieces : in the order of rows: of the files, and of their row groups or partitions
    kind : package of the frames of predictions: "pandas" for files, else that of the data
    files : the files as they were when the source was made; none for a lazy frame
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    kind: str
    files: tuple[FileState, ...] = ()

    @property
    def n(self) -> int | None:
        """Number of rows if known without reading, else None."""
        counts = [piece.n for piece in self.pieces]
        return None if None in counts else sum(n for n in counts if n is not None)

    @property
    def paths(self) -> list[str]:
        """Paths of its files on this machine's disks."""
        return [file.path for file in self.files if file.filesystem is None]

    def select(self, names: Sequence[str]) -> "Source":
        """Return the source of some columns; its pieces neither read nor carry the others."""
        return replace(self, names=tuple(names))

    def chunks(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield all rows in order, in chunks of these columns."""
        for piece in self.select(names).pieces:
            yield from piece.read(names)

    def check_unchanged(self) -> None:
        """Raise a DataError that names the file if one has changed."""
        for file in self.files:
            file.check_unchanged()
