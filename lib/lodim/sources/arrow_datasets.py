"""Datasets of pyarrow: a piece is a run of row groups of a fragment, or a fragment."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lodim.errors import DataError
from lodim.sources.categories import gather_levels
from lodim.sources.files import FileState, reading, short_name
from lodim.sources.parquet_files import BUFFER, as_written
from lodim.sources.schemas import arrow, check_names
from lodim.sources.source import PART, Chunk, Piece, Source
from lodim.sources.table_files import place_of, runs

AHEAD = 2  # batches that pyarrow reads before they are asked for


@dataclass(frozen=True)
class FragmentPiece(Piece):
    """A fragment of a dataset, or some of its row groups.

    n : number of rows; None where rows are filtered, or the file does not say
    file : None of a fragment in memory; schema : of the dataset
    filter : expression that rows must meet, or None
    levels : an Array of the dictionary type of each column of categories that `schema` has not
    """

    place: str
    n: int | None
    file: FileState | None
    fragment: Any
    schema: Any
    filter: Any
    levels: dict[str, Any]

    def read(self, names: Sequence[str]) -> Iterator[Chunk]:
        """Its rows in order, in chunks of these columns."""
        position = 0
        for table in self.tables(names):
            yield Chunk(_with_levels(table, self.levels), position, self.place)
            position += table.num_rows

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows as pyarrow Tables of at most PART rows, with the types of `schema`."""
        pa = arrow()
        with _reading(self.file):
            for batch in self._scanner(list(names)).to_batches():
                for start in range(0, batch.num_rows, PART):
                    yield pa.Table.from_batches([batch.slice(start, PART)])

    def _scanner(self, names: list[str]) -> Any:
        """What reads the columns, a Parquet file little by little."""
        import pyarrow.dataset as datasets

        how = {}
        if _is_parquet(self.fragment):
            how["fragment_scan_options"] = datasets.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False
            )
        return self.fragment.scanner(
            schema=self.schema, columns=names, filter=self.filter, batch_size=PART,
            batch_readahead=AHEAD, **how,
        )  # fmt: skip


@contextmanager
def _reading(file: FileState | None) -> Iterator[None]:
    """What goes wrong while a fragment is read, as a DataError that names its file."""
    if file is None:
        yield
        return
    with reading(file, "a file of the dataset"):
        yield


def read_dataset(dataset: Any) -> Source:
    """A source of a pyarrow Dataset: its fragments in their order, its filter, its partitions.

    Raises
    ------
    DataError
        Two columns share a name, a file cannot be read, or there is no row.
    """
    check_names("the Dataset", dataset.schema.names)
    rows = getattr(dataset, "_scan_options", {}).get("filter")
    if rows is not None:  # pyarrow gives the fragments of a dataset without a filter alone
        dataset = dataset.replace_schema(dataset.schema)
        dataset._scan_options = {}
    fragments = list(dataset.get_fragments())
    pieces = tuple(
        piece
        for k, fragment in enumerate(fragments)
        for piece in _pieces(fragment, f"fragment {k + 1}", dataset.schema, rows)
    )
    if not sum(1 if piece.n is None else piece.n for piece in pieces):
        raise DataError("the Dataset has no rows")
    pieces = _with_categories(pieces, _categories(fragments, dataset.schema))
    files = {piece.file: None for piece in pieces if piece.file}
    return Source(tuple(dataset.schema.names), pieces, "pyarrow", tuple(files))


def _pieces(fragment: Any, place: str, schema: Any, rows: Any) -> Iterator[FragmentPiece]:
    """The pieces of a fragment."""
    file = None
    if path := getattr(fragment, "path", None):
        local = type(fragment.filesystem).__name__ == "LocalFileSystem"
        file = FileState.of_name(path, None if local else fragment.filesystem)
        place = short_name(path)
    if not _is_parquet(fragment):
        yield FragmentPiece(place, None, file, fragment, schema, rows, {})
        return
    with _reading(file):
        groups = [(group.id, group.num_rows) for group in fragment.row_groups]
    for first, last, n in runs([count for _, count in groups]):
        some = fragment.subset(row_group_ids=[id for id, _ in groups[first : last + 1]])
        where = place_of(place, "row group", groups[first][0], groups[last][0])
        yield FragmentPiece(where, n if rows is None else None, file, some, schema, rows, {})


def _categories(fragments: Sequence[Any], schema: Any) -> Any:
    """Fields of the columns that all files have as categories where `schema` has their values.

    Parquet has no more of categories of numbers, flags and dates; see `as_written`.
    """
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


def _with_categories(pieces: tuple[Any, ...], categories: Any) -> tuple[Any, ...]:
    """The pieces with the levels of columns of categories over all of them."""
    if not categories.names:
        return pieces
    pa, found = arrow(), gather_levels(pieces, categories)
    levels = {}
    for field in categories:
        of_type = pa.array(found[field.name], field.type.value_type)
        codes = pa.array([], pa.int32())
        levels[field.name] = pa.DictionaryArray.from_arrays(
            codes, of_type, ordered=field.type.ordered
        )
    return tuple(replace(piece, levels=levels) for piece in pieces)


def _with_levels(table: Any, levels: dict[str, Any]) -> Any:
    """The table with columns of categories coded by their levels."""
    if not levels:
        return table
    import pyarrow.compute as compute

    for i, name in enumerate(table.column_names):
        if name in levels:
            known = levels[name]
            column = table[name].combine_chunks()
            coded = arrow().DictionaryArray.from_arrays(
                compute.index_in(column, known.dictionary),
                known.dictionary,
                ordered=known.type.ordered,
            )
            table = table.set_column(i, name, coded)
    return table


def _is_parquet(fragment: Any) -> bool:
    """Whether a fragment is a Parquet file."""
    return hasattr(type(fragment), "row_groups")
