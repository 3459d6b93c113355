"""Arrow files, which Feather's are: a piece is a run of record batches of one file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lodim.sources.files import ARROW, FileState, reading
from lodim.sources.schemas import arrow
from lodim.sources.source import PART, Source
from lodim.sources.table_files import TablePiece, read_tables


class RecordBatches(TablePiece):
    """Record batches of an Arrow file that follow each other."""

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows as pyarrow Tables of at most PART rows, with the types of the file."""
        pa = arrow()
        with reading(self.file, ARROW):
            with _opened(self.file) as file:
                fields = [file.schema.get_field_index(name) for name in names]
            with _opened(self.file, fields) as file:
                for k in range(self.first, self.last + 1):
                    batch = file.get_batch(k)
                    for start in range(0, batch.num_rows, PART):
                        yield pa.Table.from_batches([batch.slice(start, PART)])


@contextmanager
def _opened(file: FileState, fields: Sequence[int] | None = None) -> Iterator[Any]:
    """An open Arrow file, mapped into memory, that reads some of its fields."""
    pa = arrow()
    options = pa.ipc.IpcReadOptions(included_fields=None if fields is None else list(fields))
    with (
        pa.memory_map(file.path) as mapped,
        pa.ipc.open_file(mapped, options=options) as opened,
    ):
        yield opened


def read_arrow(files: Sequence[FileState]) -> Source:
    """A source of Arrow files: their footers are read, and the columns that are categories."""
    return read_tables(files, _outline, RecordBatches, "record batch")


def _outline(file: FileState) -> tuple[Any, list[int]]:
    """Schema of an Arrow file and the rows of its record batches."""
    with reading(file, ARROW):
        with _opened(file) as opened:
            schema = opened.schema
        with _opened(file, [0]) as opened:  # what is not of the first column is not read
            counts = [opened.get_batch(k).num_rows for k in range(opened.num_record_batches)]
    return schema, counts
