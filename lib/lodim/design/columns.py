"""What a column of the user's data holds: numbers, or levels; and where it is missing.

Reads pandas frames, mappings of arrays, and through narwhals (imported when needed) what else is a
frame. Nothing is written to; a column of numpy numbers is looked at in place.
"""

import datetime
import decimal
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lodim.design import dates, frames
from lodim.errors import DataError
from lodim.text import first_few, near_matches

READABLE = "a pandas or polars DataFrame, a pyarrow Table, or a dict of columns"


@dataclass(frozen=True)
class Frame:
    """The user's data as named columns of equal length.

    keys : what `fetch` takes to return a column, by name; repeated : names that two columns share
    kind : name of the package whose frame it is; "pandas" of mappings too
    """

    names: tuple[str, ...]
    index: pd.Index
    keys: dict
    repeated: frozenset
    fetch: object
    kind: str


@dataclass(frozen=True)
class Column:
    """One column of N rows.

    kind : 'number', 'level', 'date', or 'empty' if every value is missing and no kind can be told
    values : (N,) numbers of any real dtype, NaN where missing; days of dates; None for levels
    codes : (N,) integers, positions in `levels`, -1 where missing; None unless kind is 'level'
    levels : str, bool, int or float; in the order of the categories, else sorted
    whole : whether the numbers are whole by their type (kept where gaps made them floats)
    declared : whether the levels are those of a pandas Categorical, which need not have rows
    ordered : whether they are in an order that means something
    """

    name: str
    kind: str
    values: np.ndarray | None = None
    codes: np.ndarray | None = None
    levels: tuple = ()
    whole: bool = False
    declared: bool = False
    ordered: bool = False


def read_frame(data):
    """The columns of a pandas frame, a mapping, or what narwhals reads; a Frame as it is.

    A Series of pandas is one row, whose index are the names of the columns.

    Raises
    ------
    DataError
        `data` is none of these.
    MissingExtraError
        narwhals is needed and not installed.
    """
    if isinstance(data, Frame):
        return data
    data = frames.rows_of(data)
    if isinstance(data, pd.DataFrame):
        labels = list(data.columns)
        if all(type(label) is str for label in labels) and data.columns.is_unique:
            return _named_frame(labels, labels, data.index, data.__getitem__)
        return _named_frame(labels, range(len(labels)), data.index, lambda j: data.iloc[:, j])
    if isinstance(data, Mapping):
        return _mapping_frame(data)
    return _narwhals_frame(data)


def _named_frame(labels, keys, index, fetch, kind=frames.PANDAS):
    names = tuple(str(label) for label in labels)
    keys = dict(zip(names, keys, strict=True))
    repeated = set()
    if len(keys) < len(names):
        seen = set()
        repeated = {name for name in names if name in seen or seen.add(name)}
    return Frame(names, index, keys, frozenset(repeated), fetch, kind)


def _mapping_frame(data):
    columns, lengths = {}, {}
    for key, value in data.items():
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            raise DataError(f"column {str(key)!r} is one value; give a list or array of values")
        column = value if isinstance(value, pd.Series) else _as_series(key, value)
        columns[key], lengths[str(key)] = column, len(column)
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} {n}" for name, n in list(lengths.items())[:8])
        raise DataError(f"the columns differ in length: {counts}")
    n = next(iter(lengths.values()), 0)
    return _named_frame(columns, columns, _common_index(data, n), columns.__getitem__)


def _common_index(data, n):
    """The index that all Series of a mapping share, or 0..n-1 where there are none."""
    indexes = [(str(k), v.index) for k, v in data.items() if isinstance(v, pd.Series)]
    for name, index in indexes[1:]:
        if not index.equals(indexes[0][1]):
            raise DataError(
                f"columns {indexes[0][0]!r} and {name!r} have different row labels; "
                "align them first, for instance with pd.DataFrame(data)"
            )
    return indexes[0][1] if indexes else pd.RangeIndex(n)


def _as_series(key, value):
    if not isinstance(value, (np.ndarray, pd.api.extensions.ExtensionArray, pd.Index)):
        listed = not hasattr(value, "__array__")
        value = np.asarray(value, dtype=object if listed and len(value) else None)
    if value.ndim != 1:
        raise DataError(f"column {str(key)!r} has {value.ndim} dimensions; a column has one")
    # Objects stay objects: pandas would look through them for dates.
    return pd.Series(value, dtype=object if value.dtype == object else None, copy=False)


def _narwhals_frame(data):
    """A frame that only narwhals knows."""
    nw, frame = frames.read(data, READABLE)
    names, index = list(frame.columns), pd.RangeIndex(len(frame))
    kind = frame.implementation.value
    return _named_frame(names, names, index, lambda name: _narwhals_series(nw, frame[name]), kind)


def _narwhals_series(nw, column):
    """A narwhals column as a pandas one, in place where it is numbers without gaps."""
    dtype, name = column.dtype, column.name
    if column.null_count() == len(column):
        return pd.Series([None] * len(column), dtype=object)
    if dtype == nw.Decimal:
        column = column.cast(nw.Float64)
    elif dtype == nw.Boolean and column.null_count() == 0:
        return pd.Series(column.to_numpy(), copy=False)
    elif dtype == nw.Enum:
        levels = list(dtype.categories)
        return pd.Series(pd.Categorical(column.cast(nw.String).to_list(), categories=levels))
    elif dtype == nw.Categorical and _has_own_levels(column.to_native()):
        return column.to_native().unify_dictionaries().to_pandas()
    elif dtype in (nw.Categorical, nw.String, nw.Boolean, nw.Object):
        return pd.Series(column.to_list(), dtype=object)
    elif dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    elif dtype == nw.Datetime:
        column = column.dt.replace_time_zone(None)
    elif not dtype.is_numeric():
        raise DataError(_refusal(name, str(dtype)))
    return pd.Series(column.to_numpy(), copy=False)


def _has_own_levels(column):
    """Whether a native column is a dictionary of pyarrow that is in order, or not of text."""
    kind = getattr(column, "type", None)
    return hasattr(kind, "ordered") and (kind.ordered or "string" not in str(kind.value_type))


def read_column(frame, name):
    """One column of a frame.

    Raises
    ------
    DataError
        There is no such column, or two, or it holds what is neither numbers nor levels, or text
        that cannot be written.
    """
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
    """Raise unless a frame has one column of a name, and that can be written."""
    if name not in frame.keys:
        near = " or ".join(map(repr, near_matches(name, frame.names)))
        hint = f"did you mean {near}?" if near else f"it has {first_few(frame.names)}"
        raise DataError(f"there is no column {name!r} in the data; {hint}")
    if name in frame.repeated:
        raise DataError(f"two columns of the data are called {name!r}; rename one")
    _check_text(name, f"the column name {name!r}", "rename it")


def _check_text(text, what, cure):
    """Raise where a text has half of a surrogate pair, so that it is no Unicode."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{what} has half of a surrogate pair, {text[error.start]!r}, and cannot be written; "
            f"{cure}"
        ) from None


def to_column(series, name):
    """A pandas Series as a Column."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind in "fiu":
            return Column(name, "number", series.to_numpy(), whole=dtype.kind != "f")
        if dtype.kind == "b":
            return Column(name, "level", None, series.to_numpy().view(np.int8), (False, True))
        if dtype.kind == "M":
            return Column(name, "date", dates.to_days(series.to_numpy()))
        if dtype.kind in "mcV":
            raise DataError(_refusal(name, str(dtype)))
        return _object_column(series.to_numpy().astype(object), name)
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_column(series, name)
    if pd.api.types.is_bool_dtype(dtype):
        missing = series.isna().to_numpy()
        codes = series.fillna(False).to_numpy(dtype=bool).astype(np.int8)
        codes[missing] = -1
        return Column(name, "level", None, codes, (False, True))
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Column(name, "number", values, whole=pd.api.types.is_integer_dtype(dtype))
    if pd.api.types.is_string_dtype(dtype):
        codes, levels = pd.factorize(series.array, use_na_sentinel=True)
        return _sorted_column(name, codes, [str(level) for level in levels])
    if isinstance(dtype, pd.PeriodDtype):
        return to_column(series.dt.to_timestamp(), name)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
        clock = series.dt.tz_localize(None) if zone else series
        return Column(name, "date", dates.to_days(clock.to_numpy(dtype="datetime64[us]")))
    return _object_column(np.asarray(series.astype(object), dtype=object), name)


def _refusal(name, kind):
    """What to do with a column that is neither numbers nor levels."""
    low = kind.lower()
    if any(word in low for word in ("time", "duration")):
        advice = "make it a number, for instance of days or hours"
    elif "complex" in low:
        advice = "use its real and imaginary parts as two columns"
    else:
        advice = "make it numbers or text, or leave it out with '- name'"
    return f"column {name!r} holds {kind}, which is neither numbers nor categories; {advice}"


def _category_column(series, name):
    levels = tuple(_plain(level) for level in series.cat.categories)
    if len(set(levels)) < len(levels):
        raise DataError(f"two categories of column {name!r} are written the same")
    codes, ordered = series.cat.codes.to_numpy(), bool(series.cat.ordered)
    return Column(name, "level", None, codes, levels, declared=True, ordered=ordered)


def _plain(level):
    """A level as a Python value; what is not text, a bool or a number is shown as text."""
    if isinstance(level, np.generic):
        level = level.item()
    return level if isinstance(level, (str, bool, int, float)) else str(level)


def _sorted_column(name, codes, levels):
    """Levels in sorted order, the codes made to match."""
    order = sorted(range(len(levels)), key=levels.__getitem__)
    place = np.empty(len(levels) + 1, np.int64)
    place[order] = np.arange(len(levels))
    place[-1] = -1
    return Column(name, "level", None, place[codes], tuple(levels[i] for i in order))


def _object_column(array, name):
    """A column of Python objects: all numbers, all bools, or all text."""
    kind = pd.api.types.infer_dtype(array, skipna=True)
    if kind == "empty":
        return Column(name, "empty", np.full(len(array), np.nan))
    if kind in ("string", "boolean"):
        codes, levels = pd.factorize(array, use_na_sentinel=True)
        return _sorted_column(name, codes, list(map(bool if kind == "boolean" else str, levels)))
    missing = pd.isna(array)
    if kind in ("date", "datetime", "datetime64"):
        clock = [None if gone else _on_the_clock(v) for v, gone in zip(array, missing, strict=True)]
        return Column(name, "date", dates.to_days(np.array(clock, "datetime64[us]")))
    present = array[~missing]
    if kind not in ("integer", "floating", "mixed-integer-float", "decimal"):
        _check_numbers(present, name)
    values = np.full(len(array), np.nan)
    try:
        values[~missing] = present.astype(np.float64)
    except (OverflowError, ValueError, TypeError):
        raise DataError(f"column {name!r} holds a number too large for a computer's") from None
    return Column(name, "number", values, whole=kind == "integer")


def _on_the_clock(moment):
    """A date, or a time without its zone."""
    return moment.replace(tzinfo=None) if isinstance(moment, datetime.datetime) else moment


def _check_numbers(present, name):
    """Raise unless all are numbers, saying what is among them."""
    real = (numbers.Real, decimal.Decimal, np.number)
    others = [v for v in present if not isinstance(v, real) or isinstance(v, (bool, complex))]
    if not others:
        return
    example = others[0]
    moments = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if isinstance(example, moments):
        raise DataError(_refusal(name, f"dates or times ({example!s})"))
    if len(others) < len(present) and isinstance(example, (str, bool, np.bool_)):
        number = next(v for v in present if isinstance(v, real) and not isinstance(v, bool))
        raise DataError(
            f"column {name!r} mixes numbers such as {number} with {example!r}; "
            "make all of it numbers, or all of it text"
        )
    if any(isinstance(v, (str, bool)) for v in others):
        raise DataError(f"column {name!r} mixes text, true/false or other values; make it all text")
    raise DataError(_refusal(name, f"values of type {type(example).__name__} ({example!r:.40})"))


def as_float(values):
    """The column as float64: itself where it is, a copy otherwise."""
    return values if values.dtype == np.float64 else values.astype(np.float64)


def as_levels(column):
    """The column with each distinct number as a level; itself where it has levels."""
    if column.kind == "level":
        return column
    codes, values = pd.factorize(column.values, use_na_sentinel=True)
    kind = int if column.whole else float
    return _sorted_column(column.name, codes, [kind(v) for v in values])


def without_levels(column, known, forgiven=None):
    """The column with some values missing: those not `known` but `forgiven` (None: all others)."""
    if column.kind != "level":
        unknown = forgiven is None and ~np.isin(as_float(column.values), known)
        return replace(column, values=np.where(unknown, np.nan, as_float(column.values)))
    goes = [
        level not in known and (forgiven is None or level in forgiven) for level in column.levels
    ]
    if not any(goes):
        return column
    return replace(column, codes=np.where(np.array([*goes, True])[column.codes], -1, column.codes))


def cut(column, start, stop):
    """The column in the rows from start up to stop, a view."""
    held = {key: getattr(column, key) for key in ("values", "codes")}
    return replace(column, **{k: None if x is None else x[start:stop] for k, x in held.items()})


def concat(stretches):
    """One column of several stretches of rows, in order.

    Categories that are declared alike stay; otherwise levels are those of all stretches, sorted.

    Raises
    ------
    DataError
        Numbers in one stretch are text or categories in another.
    """
    if len(stretches) == 1:
        return stretches[0]
    kind = join_kinds([kind_of(column) for column in stretches])
    name = stretches[0].name
    if kind.kind != "level":
        values = [
            np.full(len(c.codes), np.nan) if c.values is None else c.values for c in stretches
        ]
        return Column(name, kind.kind, np.concatenate(values), whole=kind.whole)
    place = {level: i for i, level in enumerate(kind.levels)}
    codes = [_place_codes(column, kind.levels, place) for column in stretches]
    parts = {"levels": kind.levels, "declared": kind.declared, "ordered": kind.ordered}
    return Column(name, "level", None, np.concatenate(codes), **parts)


def _place_codes(column, levels, place):
    """Positions in `levels` of a column's values, -1 where one is missing, (n,) int32."""
    if column.kind == "empty":
        return np.full(len(column.values), -1, np.int32)
    if column.levels == levels:
        return column.codes.astype(np.int32)
    places = np.array([*(place[level] for level in column.levels), -1], np.int32)
    return places[column.codes]


def kind_of(column):
    """What a column holds, without its rows."""
    levels, whole, declared = column.levels, column.whole, column.declared
    return Column(column.name, column.kind, None, None, levels, whole, declared, column.ordered)


def join_kinds(kinds):
    """What columns of one name hold together, as a Column without rows."""
    held = [kind for kind in kinds if not is_open(kind)]
    if not held:
        return next((kind for kind in kinds if kind.kind == "level"), kinds[0])
    first = held[0]
    for kind in held:
        check_alike(first, kind)
    if first.kind == "number":
        return replace(first, whole=all(kind.whole for kind in kinds))
    if len({(kind.levels, kind.declared, kind.ordered) for kind in held}) == 1:
        return first
    if any(kind.ordered for kind in held):
        raise DataError(
            f"the ordered categories of column {first.name!r} are not the same in all parts of the "
            "data; give each the same categories"
        )
    levels = tuple(sorted({level for kind in held for level in kind.levels}))
    return Column(first.name, "level", levels=levels)


def is_open(column):
    """Whether every value is missing, so that other rows say what the column holds."""
    return column.kind == "empty" or (column.kind == "level" and not column.levels)


def sketch(column):
    """What a column holds, without its rows and most of its levels."""
    return Column(column.name, column.kind, levels=column.levels[:3])


def at(column, rows):
    """The column in some rows, a copy."""
    held = {key: getattr(column, key) for key in ("values", "codes")}
    return replace(column, **{k: None if x is None else x[rows].copy() for k, x in held.items()})


def check_alike(one, other, here="one part", there="another"):
    """Raise where a column holds numbers in one place and text or categories in another."""
    if is_open(one) or is_open(other) or _sort(one) == _sort(other):
        return

    def shown(column):
        return f"{column.kind}s" if column.kind != "level" else first_few(column.levels, 3)

    raise DataError(
        f"column {one.name!r} holds {shown(one)} in {here} and {shown(other)} in {there}; make "
        "all of it numbers, or all of it text"
    )


def _sort(column):
    """What can be joined: numbers, dates, or levels that are text, true and false, or numbers."""
    if column.kind != "level":
        return column.kind
    level = column.levels[0]
    return type(level) if isinstance(level, str | bool) else float


def take(x, rows):
    """The rows asked for; all of them, without a copy, where `rows` is empty (see `moments`)."""
    return x[rows] if rows.size else x


def used_levels(column, rows):
    """Levels that occur in these rows, in order."""
    codes = take(column.codes, rows)
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    return tuple(level for level, n in zip(column.levels, counts, strict=True) if n)


def recode(column, levels, rows, cure=""):
    """Positions in `levels` of the column's values, -1 where one is missing, (n,) int64.

    Raises
    ------
    DataError
        A value is not among `levels`.
    """
    if column.kind == "date":
        raise DataError(f"column {column.name!r} holds dates, and the model knows levels of it")
    column = as_levels(column)
    codes = take(column.codes, rows).astype(np.int64)
    if column.levels == levels:
        return codes
    known = {level: i for i, level in enumerate(levels)}
    place = np.array([*(known.get(level, -1) for level in column.levels), -1], np.int64)
    positions = place[codes]
    unknown = np.flatnonzero((positions < 0) & (codes >= 0))
    if len(unknown):
        raise_unknown_level(column.name, column.levels[codes[unknown[0]]], levels, cure)
    return positions


def raise_unknown_level(name, level, levels, cure=""):
    """Say that a level is none of those that are known."""
    raise DataError(
        f"column {name!r} has the level {level!r}, which is not among those the model knows: "
        f"{first_few([*levels])}{cure}"
    )
