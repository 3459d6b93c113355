"""Parquet files: a piece is a run of row groups of one file."""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from lodim.sources.files import PARQUET, FileState, reading
from lodim.sources.schemas import arrow
from lodim.sources.source import PART, Source
from lodim.sources.table_files import TablePiece, read_tables

BUFFER = 1 << 16  # bytes of a column that are read at once; without, all of a row group is


class RowGroups(TablePiece):
    """Row groups of a Parquet file that follow each other."""

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows as pyarrow Tables of at most PART rows, with the types of the file."""
        pa = arrow()
        groups = list(range(self.first, self.last + 1))
        with reading(self.file, PARQUET), open_parquet(self.file) as file:
            for batch in file.iter_batches(PART, row_groups=groups, columns=list(names)):
                yield pa.Table.from_batches([batch])


def open_parquet(file: FileState) -> Any:
    """An open Parquet file that reads a row group little by little."""
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(file.path, buffer_size=BUFFER, pre_buffer=False)


def read_parquet(files: Sequence[FileState]) -> Source:
    """A source of Parquet files: their footers are read, and the columns that are categories."""
    return read_tables(files, _outline, RowGroups, "row group")


def _outline(file: FileState) -> tuple[Any, list[int]]:
    """Schema of a Parquet file and the rows of its row groups."""
    with reading(file, PARQUET), open_parquet(file) as opened:
        footer = opened.metadata
        counts = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
        return as_written(opened.schema_arrow, footer.metadata or {}), counts


def as_written(schema: Any, notes: dict[bytes, bytes]) -> Any:
    """The schema with the categories that were written, of numbers too.

    Parquet has the values of categories, and pyarrow makes categories of texts alone again; the
    types that were written are among the notes of a file.
    """
    pa = arrow()
    if b"ARROW:schema" not in notes:
        return schema
    written = pa.ipc.read_schema(pa.py_buffer(b64decode(notes[b"ARROW:schema"])))
    for i, (now, then) in enumerate(zip(schema, written, strict=True)):
        if pa.types.is_dictionary(then.type) and then.type.value_type == now.type:
            levels = pa.dictionary(pa.int32(), now.type, then.type.ordered)
            schema = schema.set(i, now.with_type(levels))
    return schema
