"""Rows written to a file, some at a time: Parquet, Arrow or CSV by the end of its name."""

import contextlib
import os
from pathlib import Path

import pandas as pd

from lodim.atomic_write import replacing
from lodim.design import frames
from lodim.errors import ArgumentError, DataError, MissingExtraError


@contextlib.contextmanager
def writing(path, other=None):
    """A function that appends a frame to a file, which is there, whole, once the block has ended.

    An existing file is replaced; after an error it is as it was. Frames are of pandas, polars or
    pyarrow, and have the same columns. Row labels of pandas, unless they count (a RangeIndex), are
    written too: in CSV as the first columns, in Parquet and Arrow as pandas reads them.

    other : what files of any other name are; without it there are none

    Raises
    ------
    ArgumentError
        The name ends in nothing that is known.
    DataError
        The file cannot be written.
    MissingExtraError
        pyarrow is needed and not installed.
    """
    kind = _kind(path, other)
    try:
        with replacing(path) as file, kind(file) as append:
            yield append
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or error
        raise DataError(f"{os.fspath(path)} cannot be written: {said}") from error


def check_apart(path, files):
    """Raise an ArgumentError where a path is one of the files that are read, by their names."""
    if any(_is_same(path, name) for name in files):
        raise ArgumentError(f"output is {os.fspath(path)}, a file that is read too: name another")


def _is_same(path, other):
    try:
        return os.path.samefile(path, other)
    except (OSError, TypeError, ValueError):  # one of them is not there, or no path
        return False


def _kind(path, other):
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"output is the path of a file, not {path!r:.80}")
    kind = KINDS.get(Path(path).suffix.lower(), other)
    if kind is None:
        raise ArgumentError(f"output ends in {', '.join(KINDS)}, and {os.fspath(path)!r} in none")
    return kind


@contextlib.contextmanager
def _csv(file):
    first = True

    def append(frame):
        nonlocal first
        if not isinstance(frame, pd.DataFrame):  # whole numbers beside gaps stay whole
            frame = frames.to_arrow(frame).to_pandas(types_mapper=pd.ArrowDtype)
        labelled = not isinstance(frame.index, pd.RangeIndex)
        _named(frame).to_csv(file, mode="wb", header=first, index=labelled)
        first = False

    yield append


@contextlib.contextmanager
def _parquet(file):
    from pyarrow.parquet import ParquetWriter

    with _tables(lambda schema: ParquetWriter(file, schema)) as append:
        yield append


@contextlib.contextmanager
def _arrow(file):
    from pyarrow.ipc import new_file

    with _tables(lambda schema: new_file(file, schema)) as append:
        yield append


def _of_pyarrow(kind):
    def checked(file):
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "to write Parquet and Arrow files, pyarrow is needed: pip install 'lodim[arrow]'"
            ) from None
        return kind(file)

    return checked


CSV = _csv
KINDS = {
    ".parquet": _of_pyarrow(_parquet),
    ".csv": CSV,
    ".arrow": _of_pyarrow(_arrow),
    ".feather": _of_pyarrow(_arrow),
}


@contextlib.contextmanager
def _tables(open_writer):
    """A function that appends frames as tables of pyarrow of one schema, that of the first ones.

    Tables wait as long as they have a column without any value, whose type nothing tells yet.
    """
    import pyarrow as pa

    waiting, opened, schema = [], None, None

    def flush():
        nonlocal opened, schema
        if opened is None:
            schema = _plain_types(pa.unify_schemas([table.schema for table in waiting]))
            opened = open_writer(schema)
        while waiting:
            opened.write_table(waiting.pop(0).cast(schema))

    def append(frame):
        try:
            waiting.append(_table(frame))
            known = schema or pa.unify_schemas([table.schema for table in waiting])
            if not any(pa.types.is_null(kind) for kind in known.types):
                flush()
        except pa.ArrowException as error:
            raise DataError(f"predictions have no type that files know: {error}") from error

    try:
        yield append
        if waiting:
            flush()
    finally:
        if opened is not None:
            opened.close()


def _plain_types(schema):
    """The schema with the values of categories, whose codes chunks do not share."""
    import pyarrow as pa

    for j, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            schema = schema.set(j, field.with_type(field.type.value_type))
    return schema


def _table(frame):
    if not isinstance(frame, pd.DataFrame):
        return frames.to_arrow(frame)
    import pyarrow as pa

    labelled = not isinstance(frame.index, pd.RangeIndex)
    return pa.Table.from_pandas(_named(frame), preserve_index=labelled)


def _named(frame):
    """The frame with a text as the name of each column."""
    return frame.set_axis([frames.name_of(label) for label in frame.columns], axis=1)
