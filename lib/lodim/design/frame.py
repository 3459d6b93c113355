"""The user's table as named columns, and results of a fit as a table of the user's kind."""

import functools
import inspect
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from lodim.design import columns
from lodim.design.columns import Column, refusal, to_column
from lodim.errors import ArgumentError, DataError, DataWarning, MissingExtraError, warn
from lodim.formula.formula import quote
from lodim.sources.files import is_path
from lodim.sources.schemas import in_order
from lodim.text import first_few, suggestion
from lodim.typing import F

PANDAS = "pandas"
_READ = "read its rows into memory first, or some of them"
EAGER = (PANDAS, "polars", "pyarrow", "modin", "cudf")  # readable kinds of frames


def read_narwhals(data, allowed):
    """Return the narwhals module, and `data` as its DataFrame; errors call valid data `allowed`."""
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    if is_path(data):
        path = os.fspath(data) if isinstance(data, str | os.PathLike) else data
        raise DataError(f"data must be {allowed} here, not a path ({path!r:.300}): {_READ}")
    if kind.startswith(("dask.", "pyarrow._dataset.")):
        raise DataError(f"data must be {allowed} here, not {kind}: {_READ}")
    if not hasattr(type(data), "columns"):
        raise DataError(f"data must be {allowed}, not {kind}")
    try:
        import narwhals as nw
    except ImportError:
        cure = "pip install 'lodim[polars]'"
        raise MissingExtraError(f"narwhals is needed to read {kind}: {cure}") from None
    try:
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        names = Counter(getattr(data, "column_names", data.columns))
        twice = max(names, key=names.__getitem__)
        raise DataError(f"two columns of the data are called {twice!r}; rename one") from None
    except TypeError:
        lazy = isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame)
        lazy = "; collect it first (a DuckDB relation with .df())" if lazy else ""
        raise DataError(f"data must be {allowed}, not {kind}{lazy}") from None
    return nw, frame


def frame_kind(data):
    """Return the package of a data frame, such as "polars"; "pandas" for dicts and files."""
    package = type(data).__module__.partition(".")[0]
    if package in ("polars", "pyarrow"):  # also lazy frames
        return package
    if isinstance(data, pd.DataFrame) or not hasattr(type(data), "columns"):
        return PANDAS
    try:
        return _narwhals(data).implementation.value
    except (ImportError, TypeError):
        return PANDAS


def _narwhals(data):
    import narwhals as nw

    return nw.from_native(data, eager_only=True)


def with_column(data, name, values):
    """Return the data with a column `values` (n,) added, without copying the other columns."""
    if isinstance(data, pd.DataFrame):
        data = data.copy(deep=False)
        data[name] = values
        return data
    nw, frame = read_narwhals(data, "a frame")
    series = nw.new_series(name, np.asarray(values), backend=frame.implementation)
    return frame.with_columns(series).to_native()


def convert(values, kind):
    """Convert a pandas object to the package `kind`, such as polars, without index; keep others."""
    if kind == PANDAS or not isinstance(values, pd.Series | pd.DataFrame):
        return values
    try:
        import narwhals as nw

        single = isinstance(values, pd.Series)
        table = values.to_frame(str(values.name)) if single else values
        names = [name_of(label) for label in table.columns]
        columns = {name: _plain(table.iloc[:, j]) for j, name in enumerate(names)}
        frame = nw.from_dict(columns, backend=kind)
        floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
        frame = frame.with_columns(nw.col(*floats).fill_nan(None)) if floats else frame
        return (frame[names[0]] if single else frame).to_native()
    except ImportError:
        return values


def with_columns(data, new, kind):
    """Return data as a frame of the package `kind`, with the columns of a pandas frame `new`."""
    if isinstance(data, pd.DataFrame):
        data = data.set_axis(new.index)  # the rows are the same, but chunks number them from zero
        return pd.concat([data.drop(columns=new.columns, errors="ignore"), new], axis=1)
    columns = _narwhals(convert(new, kind)).iter_columns()
    return _narwhals(data).with_columns(*columns).to_native()


def take_rows(data, rows):
    """Return the rows of a frame at positions (k,), as a frame of the same kind."""
    if isinstance(data, pd.DataFrame):
        return data.iloc[rows]
    if isinstance(data, Mapping):
        taken = {k: _as_series(k, v).iloc[rows] for k, v in data.items()}
        return {k: v if isinstance(data[k], pd.Series) else v.array for k, v in taken.items()}
    return _narwhals(data)[rows].to_native()


def rows_of(data):
    """Return a pandas Series (one row) as a frame of one row; return other objects unchanged."""
    if not isinstance(data, pd.Series):
        return data
    if not any(isinstance(label, str) for label in data.index):
        raise DataError(
            "a pandas Series must be one row, with the names of the columns as its index, not "
            f"{first_few([*data.index]) or 'an empty one'}: for a column, give a data frame"
        )
    return data.to_frame().T.infer_objects()


def dict_as_frame(data):
    """Return a dict of columns as a pandas DataFrame; return other objects unchanged."""
    if not isinstance(data, Mapping):
        return data
    frame = read_frame(data)
    columns = {name: frame.fetch(key).array for name, key in frame.keys.items()}
    return pd.DataFrame(columns, index=frame.index).infer_objects()


def one_row(data, row):
    """Return the row at a position of a frame (or Series, one row) as a pandas frame."""
    data = dict_as_frame(rows_of(data))
    n = len(read_frame(data).index)
    is_position = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not is_position or not -n <= row < n:
        raise ArgumentError(f"data must be a frame with a row {row!r:.80}; it has {n} rows")
    row = int(row) % n
    one = take_rows(data, [row])
    return one if isinstance(one, pd.DataFrame) else _narwhals(one).to_pandas().set_axis([row])


def to_arrow(data):
    """Return a pyarrow Table from a frame that narwhals can read."""
    return _narwhals(data).to_arrow()


def join_frames(parts, kind):
    """Join the frames `parts` by rows to a frame of the package `kind`, such as "polars"."""
    if all(isinstance(part, pd.DataFrame) for part in parts):
        return pd.concat(parts, ignore_index=True)
    import narwhals as nw

    whole = nw.concat(list(map(_narwhals, parts)))
    return whole.to_pandas() if kind == PANDAS else whole.to_native()


def name_of(label):
    """Return a column label as text; a tuple such as ("USA", "estimate") becomes estimate[USA]."""
    if not isinstance(label, tuple):
        return str(label)
    *first, last = map(str, label)
    return str(last) + "".join(f"[{part}]" for part in reversed(first))


def _plain(series):
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        return series.to_numpy()
    values = series.astype(object)
    return values.where(values.notna(), None).to_list()


def as_given(method: F) -> F:
    """Make a method return frames like `data` or the training data, instead of pandas objects."""

    takes_data = "data" in inspect.signature(method).parameters

    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        values = method(self, *arguments, **keywords)
        data = arguments[0] if takes_data and arguments else keywords.get("data")
        if data is None:
            return convert(values, self._frame_kind)
        kind = frame_kind(data)
        if method.__name__ == "augment" and kind != PANDAS and isinstance(values, pd.DataFrame):
            return with_columns(data, values, kind)
        return convert(values, kind)

    call.in_pandas = method  # type: ignore[attr-defined]
    return cast(F, call)


def in_pandas(method: F) -> F:
    """Return a bound method without its decorator `as_given`: it then returns pandas objects."""
    bound: Any = method
    return cast(F, functools.partial(bound.in_pandas, bound.__self__))


READABLE = "a pandas or polars DataFrame, a pyarrow Table, or a dict of columns"


@dataclass(frozen=True)
class Frame:
    """Data as named columns; fetch(keys[name]) reads the column `name` when it is needed."""

    names: tuple[str, ...]
    index: pd.Index
    keys: dict  # argument of `fetch` for each column name
    fetch: object  # function that reads a column
    kind: str  # package of the user's frame, such as "polars"

    @functools.cached_property
    def repeated(self):
        """Names that several columns have."""
        return {name for name, count in Counter(self.names).items() if count > 1}


def read_frame(data):
    """Return data as a Frame of named columns: a data frame, a dict, or a Series (one row)."""
    if isinstance(data, Frame):
        return data
    data = rows_of(data)
    if isinstance(data, pd.DataFrame):
        labels = list(data.columns)
        if all(type(label) is str for label in labels) and data.columns.is_unique:
            return _named_frame(labels, labels, data.index, data.__getitem__)
        return _named_frame(labels, range(len(labels)), data.index, lambda j: data.iloc[:, j])
    if isinstance(data, Mapping):
        read = {key: _as_series(key, value) for key, value in data.items()}
        lengths = {str(key): len(column) for key, column in read.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:8])
            raise DataError(f"all columns must have the same length; they have {counts}")
        # Row labels are those of the Series in the mapping, or numbers from 0.
        indexes = [(str(k), v.index) for k, v in data.items() if isinstance(v, pd.Series)]
        for name, index in indexes[1:]:
            if not index.equals(indexes[0][1]):
                what = f"columns {indexes[0][0]!r} and {name!r} have different row labels"
                raise DataError(f"{what}; align them first, for instance with pd.DataFrame(data)")
        index = indexes[0][1] if indexes else pd.RangeIndex(next(iter(lengths.values()), 0))
        return _named_frame(read, read, index, read.__getitem__)
    nw, frame = read_narwhals(data, READABLE)
    names, index = list(frame.columns), pd.RangeIndex(len(frame))
    kind = frame.implementation.value
    return _named_frame(names, names, index, lambda name: _narwhals_series(nw, frame, name), kind)


def _named_frame(labels, keys, index, fetch, kind=PANDAS):
    names = tuple(str(label) for label in labels)
    return Frame(names, index, dict(zip(names, keys, strict=True)), fetch, kind)


def _as_series(key, value):
    """Return `value`, entry `key` of a mapping, as a Series; raise DataError unless it is 1-D."""
    if isinstance(value, pd.Series):
        return value
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        what = f"column {str(key)!r} must be a list or array of values, such as [{value!r:.80}]"
        raise DataError(f"{what}, not one value")
    if not isinstance(value, (np.ndarray, pd.api.extensions.ExtensionArray, pd.Index)):
        listed = not hasattr(value, "__array__")
        value = np.asarray(value, dtype=object if listed and len(value) else None)
    if value.ndim != 1:
        raise DataError(f"column {str(key)!r} has {value.ndim} dimensions; it must have one")
    # Keep the dtype object: pandas would otherwise search the values for dates.
    return pd.Series(value, dtype=object if value.dtype == object else None, copy=False)


def _narwhals_series(nw, frame, name):
    """Return a column of a frame of narwhals (nw) as a Series; non-null numbers are not copied."""
    column, native = frame[name], frame.to_native()
    dtype = column.dtype
    if column.null_count() == len(column):
        return pd.Series([None] * len(column), dtype=object)
    if dtype == nw.Decimal:
        column = column.cast(nw.String).cast(nw.Float64)  # nearest float64, unlike a direct cast
    elif dtype == nw.Boolean and column.null_count() == 0:
        return pd.Series(column.to_numpy(), copy=False)
    elif dtype == nw.Enum:
        levels = list(dtype.categories)
        return pd.Series(pd.Categorical(column.cast(nw.String).to_list(), levels, ordered=True))
    elif frame.implementation.is_pyarrow() and in_order(native.schema.field(name)):
        return columns.from_dictionary(native[name])
    elif dtype == nw.Categorical:
        return pd.Series(pd.Categorical(column.to_list()))
    elif dtype in (nw.String, nw.Boolean, nw.Object):
        return pd.Series(column.to_list(), dtype=object)
    elif dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    elif dtype == nw.Datetime:
        column = column.dt.replace_time_zone(None)
    elif not dtype.is_numeric():
        raise DataError(refusal(name, str(dtype)))
    return pd.Series(column.to_numpy(), copy=False)


def read_column(frame, name):
    """Return a column of a Frame as numbers, days or coded levels; else raise DataError."""
    check_name(frame, name)
    column = frame.fetch(frame.keys[name])
    if isinstance(column, Column):
        return column
    column = to_column(column, name)
    for level in column.levels or ():
        if isinstance(level, str):
            _check_text(level, f"{level!r:.60} of column {name!r}", "replace it")
    return column


def check_name(frame, name):
    """Raise DataError unless exactly one column of a frame has this name, in valid Unicode."""
    if name not in frame.keys:
        raise DataError(absent(name, frame.names))
    if name in frame.repeated:
        raise DataError(f"two columns of the data are called {name!r}; rename one")
    _check_text(name, f"the column name {name!r}", "rename it")


def absent(name, names):
    """Return an error message for a column that is not among the data's columns `names`."""
    hint = suggestion(name, names)
    if re.search(r"[(*/+^]", name) and set(names) & set(re.findall(r"\w+", name)):
        hint += " (make a computed value a column first: data['new'] = ...)"
    return f"there is no column {name!r} in the data; {hint}"


def _check_text(text, what, cure):
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        why = f"{what} has half of a surrogate pair, {text[error.start]!r}, which cannot be saved"
        raise DataError(f"{why}; {cure}") from None


NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")
AMOUNT = re.compile(
    r"\s*[+-]?\s*[$€£¥]?\s*[+-]?(\d{1,3}([,' \u00a0’]\d{3})+|\d+)?([.,]\d+)?\s*[%$€£¥]?\s*"
)
THOUSANDS = re.compile(r"[^,\d]*[1-9]\d{0,2}(,\d{3})+(?!\d|,)[^,]*")
MARKS = {"", "?", "-", "--", ".", "..", "*", "#n/a", "n/a", "na", "n.a.", "nan", "nil", "none"}
MARKS |= {"null", "missing", "unknown"}
FEW_LEVELS = 20  # columns of up to this many numeric texts may be codes of a category
SOME_LEVELS = 10  # columns of up to this many levels are always categories


def check_text(column, levels, n, answer=False):
    """Raise DataError, or warn, if a text column seems to hold numbers, dates or typing errors.

    levels : distinct values of the Column; n : number of its values
    answer : whether the column is the response"""
    # It warns in unclear cases.
    if column.declared or not all(isinstance(level, str) for level in levels):
        return
    what = f"the response {column.name!r}" if answer else f"column {column.name!r}"
    _check_dates(what, column.name, levels, answer)
    if 2 * len(levels) <= n:  # not names of rows
        _warn_alike(what, column.name, levels, answer)
    others = [level for level in levels if not _is_number(level)]
    if _are_many(levels, others):
        return
    but = f" except {first_few(others)}" if others else ""
    what = f"{what} was read as text: it has {len(levels):,} levels in {n:,} rows, all numbers{but}"
    fractions = sum("." in level or "," in level for level in levels)
    many = len(levels) > SOME_LEVELS and 2 * len(levels) > n
    if many or (len(levels) > FEW_LEVELS and 2 * fractions > len(levels)):
        raise DataError(f"{what}; {_cure(column.name, levels, answer)}")
    marked = any(other.strip().lower() in MARKS for other in others)
    if marked or len(levels) > FEW_LEVELS:
        warn(f"{what}. If numbers are meant, {_cure(column.name, levels, answer)}", DataWarning)


def _warn_alike(subject, name, levels, answer):
    """Warn about levels of a text column that differ only in case or in spaces.

    subject : words for the column in the warning, such as "the response 'y'"
    answer : whether the column is the response"""
    plain = [level.strip().lower() for level in levels]
    if len(set(plain)) < len(plain):
        counts = Counter(plain)
        pairs = sorted(zip(plain, levels, strict=True))
        alike = first_few([level for text, level in pairs if counts[text] > 1])
        what = f"{subject} has levels that differ only in case or spaces: {alike}"
        cure = f"write df[{name!r}].str.strip().str.lower() to join them"
        warn(f"{what}; {cure}, or {_category(name, answer)} to keep them apart", DataWarning)


def _are_many(levels, others):
    """Return whether `others`, levels other than numbers (or dates), are too many to be typos."""
    return len(levels) - len(others) < 2 or len(others) > max(2, len(levels) // 10)


def _is_number(level):
    digits = any(c.isdigit() for c in level)
    return digits and bool(NUMBER.fullmatch(level) or AMOUNT.fullmatch(level))


def _check_dates(subject, name, levels, answer):
    """Raise DataError if nearly all texts of a column are dates.

    subject : words for the column in the error, such as "the response 'y'"
    levels : distinct texts of the column; answer : whether it is the response"""
    others = [level for level in levels if not columns.ISO_DATE.fullmatch(level)]
    if len(levels) <= SOME_LEVELS or _are_many(levels, others):
        return
    example = next(level for level in levels if level not in others)
    but = f", all except {first_few(others)}" if others else ""
    what = f"{subject} has dates as text, such as {example!r}{but}"
    make = f"pd.to_datetime(df[{name!r}], errors='coerce') makes other values missing; "
    cure = f"write days({quote(name)}) for a number" if answer else columns.date_advice(name)
    levels_cure = f"for levels write {_category(name, answer)}"
    raise DataError(f"{what}; {make * bool(others)}{cure}; {levels_cure}")


def _cure(name, levels, answer):
    """Return advice for an error or warning: how to convert a text column to numbers.

    levels : distinct texts of the column; answer : whether it is the response"""
    texts = [level for level in levels if _is_number(level)]
    commas = [level for level in texts if "," in level]
    decimal = not all(THOUSANDS.fullmatch(level) for level in commas)
    others = {c for level in texts for c in level.strip() if c in "$€£¥%'’\u00a0 "}
    marks = "".join(sorted(others | {","} if commas and not decimal else others))
    pattern = f"[{marks}]"
    cleaned = f"df[{name!r}]" + f".str.replace({pattern!r}, '', regex=True)" * bool(marks)
    cleaned += ".str.replace(',', '.')" * decimal
    cure = f"make it numbers: pd.to_numeric({cleaned}, errors='coerce') makes other values missing"
    if decimal and not marks:
        cure = "read it with decimal=',' (--decimal , on the command line)"
    return f"{cure}; for levels write {_category(name, answer)}"


def _category(name, answer):
    """Return advice to a user: code that makes a column (the response, if `answer`) categorical."""
    return f"df[{name!r}].astype('category')" if answer else f"C({quote(name)}) in the formula"
