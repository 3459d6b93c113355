"""Parquet files: a piece is a run of row groups of one file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lodim.errors import DataError
from lodim.sources.categories import gather_levels, to_pandas
from lodim.sources.files import PARQUET, FileState, reading, short_name
from lodim.sources.schemas import arrow, cast_table, column_names, select_fields, unify_schemas
from lodim.sources.source import PART, Chunk, Piece, Source

BUFFER = 1 << 17  # bytes of a column that are read at once; without, all of a row group is


@dataclass(frozen=True)
class RowGroups(Piece):
    """Row groups of a Parquet file that follow each other.

    first, last : numbers of the row groups, from 0; schema : types over all files
    levels : categories over all files, of the columns that pandas wrote as such
    """

    place: str
    file: FileState
    first: int
    last: int
    n: int
    schema: Any
    levels: dict[str, Any]

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns."""
        schema, position = select_fields(self.schema, names), 0
        for table in self.tables(names):
            frame = to_pandas(cast_table(table, schema), self.levels)
            yield Chunk(frame, position, self.place)
            position += len(frame)

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows as pyarrow Tables of at most PART rows, with the types of the file."""
        pa = arrow()
        groups = list(range(self.first, self.last + 1))
        with reading(self.file, PARQUET), open_parquet(self.file) as file:
            batches = file.iter_batches(PART, row_groups=groups, columns=list(names))
            for batch in batches:
                yield pa.Table.from_batches([batch])


def open_parquet(file: FileState) -> Any:
    """An open Parquet file that reads a row group little by little."""
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(file.path, buffer_size=BUFFER)


def read_parquet(files: Sequence[FileState]) -> Source:
    """A source of Parquet files: their footers are read, and the levels of categories."""
    arrow()
    footers = [_footer(file) for file in files]
    schema = unify_schemas(
        (file.name, found) for file, (found, _) in zip(files, footers, strict=True)
    )
    pieces = tuple(
        RowGroups(_place(file, first, last), file, first, last, n, schema, {})
        for file, (_, counts) in zip(files, footers, strict=True)
        for first, last, n in _runs(counts)
    )
    if not sum(piece.n for piece in pieces):
        raise DataError(f"{_all(files)} no rows")
    levels = gather_levels(pieces, schema)
    pieces = tuple(replace(piece, levels=levels) for piece in pieces)
    return Source(column_names(schema), pieces, "pandas", tuple(files))


def _place(file: FileState, first: int, last: int) -> str:
    """File and row groups, numbered from 1."""
    groups = f"groups {first + 1} to {last + 1}" if last > first else f"group {first + 1}"
    return f"{short_name(file.name)}, row {groups}"


def _all(files: Sequence[FileState]) -> str:
    return f"{files[0].name} has" if len(files) == 1 else f"the {len(files)} files have"


def _footer(file: FileState) -> tuple[Any, list[int]]:
    """Schema of a Parquet file and the rows of its row groups."""
    with reading(file, PARQUET), open_parquet(file) as opened:
        footer = opened.metadata
        return opened.schema_arrow, [
            footer.row_group(k).num_rows for k in range(footer.num_row_groups)
        ]


def _runs(counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Row groups put together until they have PART rows: first, last, number of rows."""
    first, n = 0, 0
    for k, count in enumerate(counts):
        n += count
        if n >= PART or (k == len(counts) - 1 and n):
            yield first, k, n
            first, n = k + 1, 0
