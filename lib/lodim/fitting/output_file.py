"""Writing of rows to a Parquet, Arrow or CSV file, chunk by chunk."""

import contextlib
import os
from functools import partial
from pathlib import Path

import pandas as pd

from lodim.atomic_write import replacing
from lodim.design.frame import name_of, to_arrow
from lodim.errors import ArgumentError, DataError
from lodim.sources.schemas import arrow


@contextlib.contextmanager
def writing(path, other=None):
    """Open a file in a `with` block, which gets a function that appends a frame of rows.

    other : format, such as `CSV`, if the file's extension is unknown
    An error leaves an existing file unchanged. DataError if the file cannot be written."""
    # Row labels of pandas are written, except a RangeIndex.
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"output must be the path of a file, not {path!r:.80}")
    kind = KINDS.get(Path(path).suffix.lower(), other)
    if kind is None:
        raise ArgumentError(f"output must end in {', '.join(KINDS)}, not {os.fspath(path)!r}")
    try:
        with replacing(path) as file, kind(file) as append:
            yield append
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise DataError(f"{os.fspath(path)} cannot be written: {said}") from error


def check_apart(path, files):
    if any(_is_same(path, name) for name in files):
        raise ArgumentError(f"output must not be one of the input files: {os.fspath(path)}")


def _is_same(path, other):
    try:
        return os.path.samefile(path, other)
    except (OSError, TypeError, ValueError):  # a file is missing, or the argument is not a path
        return False


@contextlib.contextmanager
def _csv(file):
    first = True

    def append(frame):
        nonlocal first
        if not isinstance(frame, pd.DataFrame):  # integers with missing values stay integers
            frame = to_arrow(frame).to_pandas(types_mapper=pd.ArrowDtype)
        labelled = not isinstance(frame.index, pd.RangeIndex)
        _named(frame).to_csv(file, mode="wb", header=first, index=labelled)
        first = False

    yield append


@contextlib.contextmanager
def _tables(file, parquet=False):
    """Give a `with` block a function that appends frames to an open `file`, as Arrow or Parquet.

    Frames stay in memory while the type of a column is unknown, as all its values are None."""
    pa = arrow()
    if parquet:
        from pyarrow.parquet import ParquetWriter
    open_writer = ParquetWriter if parquet else pa.ipc.new_file
    waiting, opened, schema = [], None, None

    def flush():
        nonlocal opened, schema
        if opened is None:
            schema = pa.unify_schemas([table.schema for table in waiting])
            for j, field in enumerate(schema):  # codes of categories would differ between chunks
                if pa.types.is_dictionary(field.type):
                    schema = schema.set(j, field.with_type(field.type.value_type))
            opened = open_writer(file, schema)
        while waiting:
            opened.write_table(waiting.pop(0).cast(schema))

    def append(frame):
        try:
            waiting.append(_table(frame))
            known = schema or pa.unify_schemas([table.schema for table in waiting])
            if not any(pa.types.is_null(kind) for kind in known.types):
                flush()
        except pa.ArrowException as error:
            raise DataError(f"predictions cannot be written to a file: {error}") from error

    try:
        yield append
        if waiting:
            flush()
    finally:
        if opened is not None:
            opened.close()


CSV = _csv
KINDS = {".parquet": partial(_tables, parquet=True), ".csv": CSV}
KINDS |= {".arrow": _tables, ".feather": _tables}


def _table(frame):
    if not isinstance(frame, pd.DataFrame):
        return to_arrow(frame)
    labelled = not isinstance(frame.index, pd.RangeIndex)
    return arrow().Table.from_pandas(_named(frame), preserve_index=labelled)


def _named(frame):
    return frame.set_axis([name_of(label) for label in frame.columns], axis=1)
