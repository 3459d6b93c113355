"""Data that are not in memory, in ordered pieces (such as files) that are read in chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.sources.files import FileState

ROWS_PER_CHUNK = 65_536  # largest number of rows of a chunk: 16 blocks of 4,096 rows


@dataclass(frozen=True)
class Chunk:
    """At most 65,536 consecutive rows of the data, with the same column types in all chunks.

    first : position of the chunk's first row in its piece (such as a file)
    place : name of the piece, for messages
    """

    frame: Any
    first: int
    place: str


class Piece:
    """A run of rows that any process can read, such as a file or a part of it; can be pickled.

    place : name in messages, such as "part-3.parquet, row group 2"; n : number of rows if known
    """

    place: str
    n: int | None

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows in order, in chunks with the given columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class Source:
    """Data that are not in memory (files etc.): named columns, read in chunks; can be pickled.

    pieces : runs of rows, such as files, in order
    kind : package of the frames of predictions: "pandas" for files, else the package of the data
    files : states of the files when the source was created
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    kind: str
    files: tuple[FileState, ...] = ()

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
