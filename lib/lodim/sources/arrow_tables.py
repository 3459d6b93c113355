"""Parquet and Arrow (Feather) files, and datasets of them, as data that are read in chunks."""

from abc import abstractmethod
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from lodim.errors import DataError, DataWarning, warn
from lodim.sources import ROWS_PER_CHUNK, Chunk, Piece, Source
from lodim.sources.files import ARROW, PARQUET, FileState, no_rows, reading, short_name
from lodim.sources.schemas import (
    arrow,
    cast_table,
    check_names,
    in_order,
    select_fields,
    unify_schemas,
)


def gather_levels(pieces: Sequence[Any], schema: Any) -> dict[str, Any]:
    """Find the levels of categories in all `pieces` of data; return a dict column -> levels.

    Levels are in the order of the files' categories, or sorted if a file has no order.
    schema : types of the columns"""
    is_dictionary = arrow().types.is_dictionary
    names = [field.name for field in schema if is_dictionary(field.type)]
    levels: dict[str, dict[Any, None]] = {name: {} for name in names}
    without_order = set()
    tables = (table for piece in pieces for table in piece.tables(names)) if names else ()
    for table in tables:
        for name in names:
            for array in table[name].chunks:
                coded, known = is_dictionary(array.type), in_order(table.schema.field(name))
                values = (array.dictionary if coded else array.unique()).drop_null()
                levels[name].update(dict.fromkeys(values.to_pandas()))
                without_order |= set() if known or not len(values) else {name}
    for name in sorted(without_order):
        if schema.field(name).type.ordered:
            what = f"the categories of {name!r} are numbers, whose order Parquet does not keep"
            cure = "use an Arrow file or categories of text to keep another order"
            warn(f"{what}: they are used in the order of their values; {cure}", DataWarning)
    for name in without_order:
        levels[name] = dict.fromkeys(sorted(levels[name]))
    return {name: list(found) for name, found in levels.items()}


@dataclass(frozen=True)
class TablePiece(Piece):
    """Batches `first` to `last` of a file; `levels` has each column's categories over all files."""

    place: str
    n: int
    file: FileState
    first: int
    last: int
    schema: Any
    levels: dict[str, Any]

    @staticmethod
    @abstractmethod
    def outline(file: FileState) -> tuple[Any, list[int]]:
        """Return the schema of a file, and the number of rows of each batch."""

    @abstractmethod
    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as pyarrow Tables of at most 65,536 rows, with the types of the file."""

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        schema, position = select_fields(self.schema, names), 0
        with reading(self.file, "a table"):
            for table in self.tables(names):
                table = cast_table(table, schema)
                frame = table.to_pandas(split_blocks=True, self_destruct=True)
                for name in self.levels.keys() & set(frame.columns):
                    frame[name] = frame[name].cat.set_categories(self.levels[name])
                yield Chunk(frame, position, self.place)
                position += len(frame)


def read_tables(files: Sequence[FileState], kind: str) -> Source:
    """Return a Source (data read in chunks) of files of one kind: Parquet or Arrow."""
    arrow()
    piece, batch = (RowGroups, "row group") if kind == PARQUET else (RecordBatches, "record batch")
    outlines = list(map(piece.outline, files))
    schema = unify_schemas([(f.name, one) for f, (one, _) in zip(files, outlines, strict=True)])
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
    """Group batches of `counts` rows to about 65,536 rows; yield (first, last, number of rows)."""
    first, n = 0, 0
    for k, count in enumerate(counts):
        n += count
        if n >= ROWS_PER_CHUNK or (k == len(counts) - 1 and n):
            yield first, k, n
            first, n = k + 1, 0


def place_of(name: str, batch: str, first: int, last: int) -> str:
    """Return text such as "a.parquet, row groups 2 to 4" for batch="row group", first=1, last=3."""
    numbers = f"s {first + 1} to {last + 1}" if last > first else f" {first + 1}"
    return f"{short_name(name)}, {batch}{numbers}"


BUFFER = 1 << 16  # bytes of a column that are read at once, instead of a whole row group


def _tables(batch: Any) -> Iterator[Any]:
    for start in range(0, batch.num_rows, ROWS_PER_CHUNK):
        yield arrow().Table.from_batches([batch.slice(start, ROWS_PER_CHUNK)])


class RowGroups(TablePiece):
    @staticmethod
    def outline(file: FileState) -> tuple[Any, list[int]]:
        with reading(file, PARQUET), open_parquet(file) as opened:
            footer = opened.metadata
            counts = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
            return as_written(opened.schema_arrow, footer.metadata or {}), counts

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        groups = list(range(self.first, self.last + 1))
        with reading(self.file, PARQUET), open_parquet(self.file) as file:
            for batch in file.iter_batches(ROWS_PER_CHUNK, row_groups=groups, columns=list(names)):
                yield from _tables(batch)


def open_parquet(file: FileState) -> Any:
    """Return an open Parquet file whose row groups are read in small batches."""
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(file.path, buffer_size=BUFFER, pre_buffer=False)


def as_written(schema: Any, notes: dict[bytes, bytes]) -> Any:
    """Return a Parquet schema with the categorical types that its metadata `notes` declare."""
    pa = arrow()
    if b"ARROW:schema" not in notes:
        return schema
    written = pa.ipc.read_schema(pa.py_buffer(b64decode(notes[b"ARROW:schema"])))
    for i, (now, then) in enumerate(zip(schema, written, strict=True)):
        if pa.types.is_dictionary(then.type) and then.type.value_type == now.type:
            levels = pa.dictionary(pa.int32(), now.type, then.type.ordered)
            schema = schema.set(i, now.with_type(levels))
    return schema


class RecordBatches(TablePiece):
    @staticmethod
    def outline(file: FileState) -> tuple[Any, list[int]]:
        with reading(file, ARROW):
            with _opened(file) as opened:
                schema = opened.schema
            with _opened(file, [0]) as opened:  # only the first column is read
                counts = [opened.get_batch(k).num_rows for k in range(opened.num_record_batches)]
        return schema, counts

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        with reading(self.file, ARROW):
            with _opened(self.file) as file:
                fields = [file.schema.get_field_index(name) for name in names]
            with _opened(self.file, fields) as file:
                for k in range(self.first, self.last + 1):
                    yield from _tables(file.get_batch(k))


@contextmanager
def _opened(file: FileState, fields: Sequence[int] | None = None) -> Iterator[Any]:
    pa = arrow()
    options = pa.ipc.IpcReadOptions(included_fields=None if fields is None else list(fields))
    with pa.memory_map(file.path) as mapped, pa.ipc.open_file(mapped, options=options) as opened:
        yield opened


AHEAD = 2  # number of batches that pyarrow reads ahead


@dataclass(frozen=True)
class FragmentPiece(Piece):
    """A fragment of a pyarrow dataset (usually one file), or some of its row groups."""

    place: str
    n: int | None
    file: FileState | None
    fragment: Any
    schema: Any
    filter: Any  # expression that selects rows, or None
    # dict column -> DictionaryArray with its levels, for categories stored as plain values
    levels: dict[str, Any]

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        import pyarrow.compute as compute

        position = 0
        for table in self.tables(names):
            for i, name in enumerate(table.column_names):
                if name in self.levels:
                    known, ordered = self.levels[name].dictionary, self.levels[name].type.ordered
                    codes = compute.index_in(table[name].combine_chunks(), known)
                    coded = arrow().DictionaryArray.from_arrays(codes, known, ordered=ordered)
                    table = table.set_column(i, name, coded)
            yield Chunk(table, position, self.place)
            position += table.num_rows

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as pyarrow Tables of at most 65,536 rows, with the types of `schema`."""
        from pyarrow.dataset import ParquetFragmentScanOptions

        how: dict[str, Any] = {"schema": self.schema, "columns": list(names), "filter": self.filter}
        how |= {"batch_size": ROWS_PER_CHUNK, "batch_readahead": AHEAD}
        if _is_parquet(self.fragment):  # read it in small batches
            buffered = {"use_buffered_stream": True, "buffer_size": BUFFER, "pre_buffer": False}
            how["fragment_scan_options"] = ParquetFragmentScanOptions(**buffered)
        with _reading_fragment(self.file):
            for batch in self.fragment.scanner(**how).to_batches():
                yield from _tables(batch)


def _reading_fragment(file: FileState | None) -> Any:
    """Return a context that turns errors into a DataError that names the fragment's file."""
    return nullcontext() if file is None else reading(file, "a file of the dataset")


def read_dataset(dataset: Any) -> Source:
    """Return a Source (data read in chunks) of a pyarrow Dataset, with filter and partitions."""
    check_names("the Dataset", dataset.schema.names)
    rows = getattr(dataset, "_scan_options", {}).get("filter")
    if rows is not None:  # pyarrow lists fragments only for a dataset without a filter
        dataset = dataset.replace_schema(dataset.schema)
        dataset._scan_options = {}
    fragments = list(dataset.get_fragments())
    pieces: list[FragmentPiece] = []
    for k, fragment in enumerate(fragments):
        pieces += _pieces(fragment, f"fragment {k + 1}", dataset.schema, rows)
    if not sum(1 if piece.n is None else piece.n for piece in pieces):
        raise DataError("the Dataset has no rows")
    pa, categories, levels = arrow(), _categories(fragments, dataset.schema), {}
    for name, found in gather_levels(pieces, categories).items():
        kind = categories.field(name).type
        known, no_codes = pa.array(found, kind.value_type), pa.array([], pa.int32())
        levels[name] = pa.DictionaryArray.from_arrays(no_codes, known, ordered=kind.ordered)
    coded = tuple(replace(piece, levels=levels) for piece in pieces)
    files = {piece.file: None for piece in coded if piece.file}
    return Source(tuple(dataset.schema.names), coded, "pyarrow", tuple(files))


def _pieces(fragment: Any, place: str, schema: Any, rows: Any) -> Iterator[FragmentPiece]:
    """Divide a part of a dataset, such as a file, into pieces; yield them.

    place : name of the part, for messages
    schema : column types
    rows : filter expression, or None"""
    file = None
    if path := getattr(fragment, "path", None):
        local = type(fragment.filesystem).__name__ == "LocalFileSystem"
        file = FileState.of_name(path, None if local else fragment.filesystem)
        place = short_name(path)
    if not _is_parquet(fragment):
        yield FragmentPiece(place, None, file, fragment, schema, rows, {})
        return
    with _reading_fragment(file):
        groups = [(group.id, group.num_rows) for group in fragment.row_groups]
    for first, last, n in runs([count for _, count in groups]):
        some = fragment.subset(row_group_ids=[id for id, _ in groups[first : last + 1]])
        where = place_of(place, "row group", groups[first][0], groups[last][0])
        yield FragmentPiece(where, n if rows is None else None, file, some, schema, rows, {})


def _categories(fragments: Sequence[Any], schema: Any) -> Any:
    """Return a pyarrow schema of the columns with the same categorical type in all fragments.

    fragments : parts of a dataset; the result is empty if one of them is not Parquet
    schema : types of the dataset's columns"""
    pa, in_files = arrow(), []
    for fragment in fragments:
        if not _is_parquet(fragment):
            return pa.schema([])
        now = fragment.physical_schema
        written = as_written(now, fragment.metadata.metadata or {})
        in_files.append({(f.name, f.type) for f in written if f.type != now.field(f.name).type})
    kinds = dict(set.intersection(*in_files)) if in_files else {}
    kept = [n for n in schema.names if n in kinds and schema.field(n).type == kinds[n].value_type]
    return pa.schema([(name, kinds[name]) for name in kept])


def _is_parquet(fragment: Any) -> bool:
    return hasattr(type(fragment), "row_groups")
