"""Files of tables in batches, Parquet and Arrow: a piece is a run of batches of one file."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.errors import DataError
from lodim.sources.categories import gather_levels, to_pandas
from lodim.sources.files import FileState, reading, short_name
from lodim.sources.schemas import arrow, cast_table, select_fields, unify_schemas
from lodim.sources.source import PART, Chunk, Piece, Source


@dataclass(frozen=True)
class TablePiece(Piece):
    """Batches of a file that follow each other: row groups, or record batches.

    first, last : numbers of the batches, from 0; schema : types over all files
    levels : categories over all files, by column
    """

    place: str
    n: int
    file: FileState
    first: int
    last: int
    schema: Any
    levels: dict[str, Any]

    @abstractmethod
    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows as pyarrow Tables of at most PART rows, with the types of the file."""

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns."""
        schema, position = select_fields(self.schema, names), 0
        with reading(self.file, "a table"):
            for table in self.tables(names):
                frame = to_pandas(cast_table(table, schema), self.levels)
                yield Chunk(frame, position, self.place)
                position += len(frame)


def read_tables(
    files: Sequence[FileState],
    outline: Callable[[FileState], tuple[Any, list[int]]],
    piece: type[TablePiece],
    batch: str,
) -> Source:
    """A source of files of tables.

    Parameters
    ----------
    files : in the order of rows
    outline : of a file, its pyarrow Schema and the rows of its batches
    piece : what reads some batches
    batch : what a batch is called: "row group"
    """
    arrow()
    outlines = list(map(outline, files))
    named = zip((file.name for file in files), (one for one, _ in outlines), strict=True)
    schema = unify_schemas(named)
    pieces = tuple(
        piece(place_of(file.name, batch, first, last), n, file, first, last, schema, {})
        for file, (_, counts) in zip(files, outlines, strict=True)
        for first, last, n in runs(counts)
    )
    if not pieces:
        raise DataError(no_rows(files))
    levels = gather_levels(pieces, schema)
    pieces = tuple(replace(one, levels=levels) for one in pieces)
    return Source(tuple(schema.names), pieces, "pandas", tuple(files))


def runs(counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Batches of so many rows, put together until they have PART rows: first, last, rows."""
    first, n = 0, 0
    for k, count in enumerate(counts):
        n += count
        if n >= PART or (k == len(counts) - 1 and n):
            yield first, k, n
            first, n = k + 1, 0


def place_of(name: str, batch: str, first: int, last: int) -> str:
    """File and batches, numbered from 1, for messages."""
    numbers = f"s {first + 1} to {last + 1}" if last > first else f" {first + 1}"
    return f"{short_name(name)}, {batch}{numbers}"


def no_rows(files: Sequence[FileState]) -> str:
    """Words for files without a row."""
    if len(files) == 1:
        return f"{files[0].name} has no rows"
    return f"none of the {len(files)} files has a row ({files[0].name} is the first)"
