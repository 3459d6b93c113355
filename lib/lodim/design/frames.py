"""Frames other than pandas': read and written through narwhals, imported when needed.

What comes in goes out: what a public method of a fit returns is of the kind of the data it was
given, or of those that the fit was made from.
"""

import functools
import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError, DataError, MissingExtraError
from lodim.sources.files import is_path
from lodim.text import first_few
from lodim.typing import F

PANDAS = "pandas"
_READ = "read its rows into memory first, or some of them"
EAGER = (PANDAS, "polars", "pyarrow", "modin", "cudf")  # kinds of frames that can be read


def read(data, words):
    """A frame of narwhals over one that only narwhals knows, and the name of its kind.

    words : what is readable, for errors
    """
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    if is_path(data):
        path = os.fspath(data) if isinstance(data, str | os.PathLike) else data
        raise DataError(f"data is {words} here, not a path ({path!r:.300}): {_READ}")
    if kind.startswith(("dask.", "pyarrow._dataset.")):
        raise DataError(f"data is {words} here, not {kind}: {_READ}")
    if not hasattr(type(data), "columns"):
        raise DataError(f"data is {words}, not {kind}")
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtraError(
            f"to read {kind}, narwhals is needed: pip install 'lodim[polars]'"
        ) from None
    try:
        frame = nw.from_native(data, eager_only=True)
    except TypeError:
        lazy = "; collect it first" if "lazy" in kind.lower() else ""
        raise DataError(f"data is {words}, not {kind}{lazy}") from None
    return nw, frame


def kind_of(data):
    """The kind of some data as the name of its package; "pandas" of dicts, files, Dask's frames."""
    package = type(data).__module__.partition(".")[0]
    if package in ("polars", "pyarrow"):  # also what is lazy
        return package
    if isinstance(data, pd.DataFrame) or not hasattr(type(data), "columns"):
        return PANDAS
    try:
        import narwhals as nw

        return nw.from_native(data, eager_only=True).implementation.value
    except (ImportError, TypeError):
        return PANDAS


def with_column(data, name, values):
    """The data with a column more, without a copy of the others.

    Parameters
    ----------
    data : DataFrame of pandas, or of what narwhals reads
    name : str
    values : array or Categorical (n,)
    """
    if isinstance(data, pd.DataFrame):
        data = data.copy(deep=False)
        data[name] = values
        return data
    nw, frame = read(data, "a frame")
    series = nw.new_series(name, np.asarray(values), backend=frame.implementation)
    return frame.with_columns(series).to_native()


def convert(values, kind):
    """A Series or DataFrame of pandas as one of a kind; as it is where that is not installed.

    What is not of pandas is converted already: a class of the user's has called its base's method.

    Missing values are null. Rows lose their labels; columns of several levels are named by all of
    them, the last first: estimate[USA].
    """
    if kind == PANDAS or not isinstance(values, pd.Series | pd.DataFrame):
        return values
    try:
        import narwhals as nw

        if isinstance(values, pd.Series):
            series = nw.new_series(str(values.name), _plain(values), backend=kind)
            return _nulls(nw, series.to_frame())[str(values.name)].to_native()
        names = [name_of(label) for label in values.columns]
        columns = {name: _plain(values.iloc[:, j]) for j, name in enumerate(names)}
        return _nulls(nw, nw.from_dict(columns, backend=kind)).to_native()
    except ImportError:
        return values


def beside(data, new, kind):
    """The data with new columns (a DataFrame of pandas) in the place of those of their names."""
    if isinstance(data, pd.DataFrame):
        data = data.set_axis(new.index)  # the same rows, which chunks number from zero
        return pd.concat([data.drop(columns=new.columns, errors="ignore"), new], axis=1)
    import narwhals as nw

    columns = nw.from_native(convert(new, kind), eager_only=True)
    return nw.from_native(data, eager_only=True).with_columns(*columns.iter_columns()).to_native()


def take(data, rows):
    """The rows of a frame at some positions (k,), as a frame of its kind."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[rows]
    if isinstance(data, Mapping):
        return {
            name: values.iloc[rows] if isinstance(values, pd.Series) else np.asarray(values)[rows]
            for name, values in data.items()
        }
    import narwhals as nw

    return nw.from_native(data, eager_only=True)[rows].to_native()


def rows_of(data):
    """A Series of pandas as the frame of one row that it is; anything else as it is."""
    if not isinstance(data, pd.Series):
        return data
    if not any(isinstance(label, str) for label in data.index):
        raise DataError(
            "a pandas Series is one row, whose index are the names of the columns; the index of "
            f"this one is {first_few([*data.index]) or 'empty'}: for a column, give the frame"
        )
    return data.to_frame().T.infer_objects()


def one_row(data, row):
    """The row of a pandas frame at a position, as a frame; a Series is a frame of one row."""
    data = rows_of(data)
    is_position = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not (isinstance(data, pd.DataFrame) and is_position) or not -len(data) <= row < len(data):
        raise ArgumentError(f"data must be a pandas DataFrame with a row {row!r:.80}")
    return data.iloc[[row]]


def to_arrow(data):
    """A frame that narwhals reads as a Table of pyarrow."""
    import narwhals as nw

    return nw.from_native(data, eager_only=True).to_arrow()


def joined(parts, kind):
    """Frames below each other, as one of a kind."""
    if all(isinstance(part, pd.DataFrame) for part in parts):
        return pd.concat(parts, ignore_index=True)
    import narwhals as nw

    whole = nw.concat([nw.from_native(part, eager_only=True) for part in parts])
    return whole.to_pandas() if kind == PANDAS else whole.to_native()


def name_of(label):
    """A label of a column as a text; of several levels the last first: estimate[USA]."""
    if not isinstance(label, tuple):
        return str(label)
    *first, last = map(str, label)
    return str(last) + "".join(f"[{part}]" for part in reversed(first))


def _plain(series):
    """Values as an array of numbers or a list."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        return series.to_numpy()
    values = series.astype(object)
    return values.where(values.notna(), None).to_list()


def _nulls(nw, frame):
    """The frame with null for NaN."""
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    return frame.with_columns(nw.col(*floats).fill_nan(None)) if floats else frame


def as_given(method: F) -> F:
    """Decorate a method (fit, data, ...) -> frame of pandas: the frame is of the kind of `data`.

    Without `data` the kind is that of the frame that the fit was made from. lodim itself calls the
    method by `in_pandas`.
    """

    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        values = method(self, *arguments, **keywords)
        data = arguments[0] if arguments else keywords.get("data")
        if data is None:
            return convert(values, self._frame_kind)
        kind = kind_of(data)
        if method.__name__ == "augment" and kind != PANDAS and isinstance(values, pd.DataFrame):
            return beside(data, values, kind)
        return convert(values, kind)

    call.in_pandas = method  # type: ignore[attr-defined]
    return cast(F, call)


def in_pandas(method: F) -> F:
    """The method of an object as it is without `as_given`: its frame is of pandas."""
    bound: Any = method
    return cast(F, functools.partial(bound.in_pandas, bound.__self__))
