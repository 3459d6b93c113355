"""A column of the user's data: numbers, dates (in days since 1970-01-01) or levels."""

import datetime
import decimal
import numbers
import re
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from lodim import forms
from lodim.design.column_kernels import ALL_ROWS, read_only
from lodim.errors import DataError
from lodim.formula.formula import quote
from lodim.text import first_few

ISO_DATE = re.compile(
    r"\s*(?P<day>\d{4}-\d{2}-\d{2})([T ](?P<time>\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?))?"
    r"\s*(Z|[+-]\d{2}:?\d{2})?\s*"
)
THURSDAY = 3  # weekday of 1970-01-01; Monday is 0


def to_days(moments):
    """Convert datetime64 values `moments` to days since 1970-01-01, float64; NaN if missing."""
    missing = np.isnat(moments)
    moments = np.where(missing, np.datetime64(0, "D"), moments).astype("datetime64[us]")
    day = moments.astype("datetime64[D]")
    whole = day.astype(np.int64).astype(float)
    days = whole + (moments - day) / np.timedelta64(1, "D")
    days = np.minimum(days, np.nextafter(whole + 1.0, whole))  # stay within the day
    return np.where(missing, np.nan, days)


def to_moments(days):
    """Return datetime64 values of days since 1970-01-01, to a microsecond; NaT for NaN."""
    missing = np.isnan(days)
    micros = np.round(np.where(missing, 0.0, days) * 86_400e6).astype(np.int64)
    return np.where(missing, np.datetime64("NaT"), micros.astype("datetime64[us]"))


def parse_date(text):
    """Return days since 1970-01-01 of a text such as "2024-01-31 12:30"; None if it is no date."""
    found = ISO_DATE.fullmatch(text)
    if not found:
        return None
    time = (found["time"] or "00:00").replace(",", ".")
    try:
        return to_days(np.array([f"{found['day']}T{time}"], "datetime64[us]"))[0]
    except ValueError:  # for example 30 February
        return None


def date_part(name, days, origin="1970-01-01"):
    """Convert `days` since 1970 to `name`: "year", "month", "weekday", or "days" since `origin`."""
    if name == "days":
        return days - np.datetime64(origin, "D").astype(np.int64)
    day = np.floor(days)
    if name == "weekday":
        return np.mod(day + THURSDAY, 7.0)
    date = np.where(np.isnan(day), 0.0, day).astype(np.int64).astype("datetime64[D]")
    months = date.astype("datetime64[M]").astype(np.int64)
    part = months // 12 + 1970 if name == "year" else months % 12 + 1
    return np.where(np.isnan(day), np.nan, part.astype(float))


def date_advice(name):
    """Return a phrase for messages: how to use a column of dates in a formula."""
    name = quote(name)
    return (
        f"write days({name}), year({name}), month({name}) or weekday({name}) for a number, such as "
        f"in '. - {name} + days({name})', or leave it out with '- {name}'"
    )


@dataclass(frozen=True)
class Column:
    """A column of N rows, never modified: numbers, dates or levels."""

    name: str
    kind: str  # 'number', 'level', 'date', or 'empty' if every value is missing
    # (N,) numbers, or days since 1970 for dates; NaN if missing; None for levels
    values: np.ndarray | None = None
    # (N,) positions in `levels`, or -1 if missing; None unless kind is 'level'
    codes: np.ndarray | None = None
    levels: tuple = ()
    whole: bool = False  # whether the values are integers, even if missing values made them floats
    # whether the user declared the levels, some of which may then have no rows
    declared: bool = False
    ordered: bool = False


def to_column(series, name):
    if str(series.dtype).startswith("dictionary"):
        series = from_dictionary(series.array.__arrow_array__())
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = tuple(map(forms.plain_label, series.cat.categories))
        if len(set(levels)) < len(levels):
            raise DataError(f"two categories of column {name!r} have the same text: rename one")
        codes, ordered = series.cat.codes.to_numpy(), bool(series.cat.ordered)
        return Column(name, "level", None, codes, levels, declared=True, ordered=ordered)
    if pd.api.types.is_bool_dtype(dtype):
        missing = series.isna().to_numpy()
        codes = series.fillna(False).to_numpy(dtype=bool).astype(np.int8)
        codes[missing] = -1
        return Column(name, "level", None, codes, (False, True))
    if isinstance(dtype, np.dtype):
        if dtype.kind in "fiu":
            return Column(name, "number", series.to_numpy(), whole=dtype.kind != "f")
        if dtype.kind == "M":
            return Column(name, "date", to_days(series.to_numpy()))
        if dtype.kind in "mcV":
            raise DataError(refusal(name, str(dtype)))
        return _object_column(series.to_numpy().astype(object), name)
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
        return Column(name, "date", to_days(clock.astype("datetime64[us]").to_numpy()))
    return _object_column(np.asarray(series.astype(object), dtype=object), name)


def from_dictionary(values):
    """Return a dictionary column of pyarrow as a categorical Series, in the dictionary's order."""
    try:
        return values.unify_dictionaries().to_pandas()
    except ValueError:  # a dictionary contains nulls or repeats a value
        levels = pd.concat([part.dictionary.to_pandas() for part in values.chunks]).dropna()
        plain = values.cast(values.type.value_type).to_pandas()
        return pd.Series(pd.Categorical(plain, levels.unique(), ordered=values.type.ordered))


def refusal(name, kind):
    """Return an error message for a column that holds `kind`, neither numbers nor categories."""
    low = kind.lower()
    if any(word in low for word in ("time", "duration")):
        advice = "make it a number, for instance of days or hours"
    elif "complex" in low:
        advice = "use its real and imaginary parts as two columns"
    else:
        advice = f"make it numbers or text, or leave it out with '- {quote(name)}'"
    return f"column {name!r} has {kind}, which is neither numbers nor categories: {advice}"


def _sorted_column(name, codes, levels):
    order = sorted(range(len(levels)), key=levels.__getitem__)
    place = np.empty(len(levels) + 1, np.int64)
    place[order] = np.arange(len(levels))
    place[-1] = -1
    return Column(name, "level", None, place[codes], tuple(levels[i] for i in order))


def _object_column(array, name):
    """Return a Column from an object array with values of one kind: numbers, bools, dates, text."""
    kind = pd.api.types.infer_dtype(array, skipna=True)
    if kind == "empty":
        return Column(name, "empty", np.full(len(array), np.nan))
    if kind in ("string", "boolean"):
        codes, levels = pd.factorize(array, use_na_sentinel=True)
        return _sorted_column(name, codes, list(map(bool if kind == "boolean" else str, levels)))
    missing = pd.isna(array)
    if kind in ("date", "datetime", "datetime64"):
        clock = [None if gone else _on_the_clock(v) for v, gone in zip(array, missing, strict=True)]
        return Column(name, "date", to_days(np.array(clock, "datetime64[us]")))
    present = array[~missing]
    if kind not in ("integer", "floating", "mixed-integer-float", "decimal"):
        _check_numbers(present, name)
    values = np.full(len(array), np.nan)
    try:
        values[~missing] = present.astype(np.float64)
    except (OverflowError, ValueError, TypeError):
        what = f"column {name!r} has a number too large for float64"
        raise DataError(f"{what}: correct it, or make it missing") from None
    return Column(name, "number", values, whole=kind == "integer")


def _on_the_clock(moment):
    return moment.replace(tzinfo=None) if isinstance(moment, datetime.datetime) else moment


def _check_numbers(present, name):
    real = (numbers.Real, decimal.Decimal, np.number)
    others = [v for v in present if not isinstance(v, real) or isinstance(v, (bool, complex))]
    if not others:
        return
    example = others[0]
    moments = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
    if isinstance(example, moments):
        raise DataError(refusal(name, f"dates or times ({example!s})"))
    if len(others) < len(present) and isinstance(example, (str, bool, np.bool_)):
        number = next(v for v in present if isinstance(v, real) and not isinstance(v, bool))
        what = f"column {name!r} mixes numbers such as {number} with {example!r}"
        raise DataError(f"{what}; make all of it numbers, or all of it text")
    if any(isinstance(v, (str, bool)) for v in others):
        raise DataError(f"column {name!r} mixes text, true/false or other values; make it all text")
    raise DataError(refusal(name, f"values of type {type(example).__name__} ({example!r:.40})"))


def as_float(values):
    return values if values.dtype == np.float64 else values.astype(np.float64)


def as_levels(column):
    """Return the column with each distinct number as a level; levels stay unchanged."""
    if column.kind == "level":
        return column
    codes, values = pd.factorize(column.values, use_na_sentinel=True)
    kind = int if column.whole else float
    return _sorted_column(column.name, codes, [kind(v) for v in values])


def without_levels(column, kept, removed=None):
    """Return a column with some levels set to missing.

    kept : levels that stay
    removed : levels to set to missing; None means all that are not kept"""
    if column.kind != "level":
        unknown = removed is None and ~np.isin(as_float(column.values), kept)
        return replace(column, values=np.where(unknown, np.nan, as_float(column.values)))
    goes = [v not in kept and (removed is None or v in removed) for v in column.levels]
    if not any(goes):
        return column
    return replace(column, codes=np.where(np.array([*goes, True])[column.codes], -1, column.codes))


def concat(chunks):
    """Join the Columns of consecutive chunks of rows; raise DataError if their kinds differ."""
    if len(chunks) == 1:
        return chunks[0]
    kind = join_kinds([kind_of(column) for column in chunks])
    if kind.kind != "level":
        values = [np.full(len(c.codes), np.nan) if c.values is None else c.values for c in chunks]
        return replace(kind, values=np.concatenate(values))
    known = {level: i for i, level in enumerate(kind.levels)}
    codes = [recode(c, kind.levels, ALL_ROWS, known=known).astype(np.int32) for c in chunks]
    return replace(kind, codes=np.concatenate(codes))


def kind_of(column):
    return replace(column, values=None, codes=None)


def join_kinds(kinds):
    """Combine the types of a column's chunks; return a Column without rows, with all levels.

    kinds : Column without rows for each chunk; raise DataError if these contradict each other"""
    # Columns with only missing values may be of any kind.
    held = [kind for kind in kinds if kind.levels or kind.kind not in ("empty", "level")]
    if not held:
        return next((kind for kind in kinds if kind.kind == "level"), kinds[0])
    first = held[0]
    for kind in held:
        if _shared_kind(kind) != _shared_kind(first):
            here, there = (
                f"{one.kind}s" if one.kind != "level" else first_few(one.levels, 3)
                for one in (first, kind)
            )
            what = f"{here} in one part of the data and {there} in another"
            cure = "make all of it numbers, or all of it text"
            raise DataError(f"column {first.name!r} holds {what}; {cure}")
    if first.kind == "number":
        return replace(first, whole=all(kind.whole for kind in kinds))
    if len({(kind.levels, kind.declared, kind.ordered) for kind in held}) == 1:
        return first
    if any(kind.ordered for kind in held):
        what = f"the ordered categories of column {first.name!r} are not the same in all parts"
        raise DataError(f"{what} of the data; give each the same categories")
    levels = tuple(sorted({level for kind in held for level in kind.levels}))
    return Column(first.name, "level", levels=levels)


def _shared_kind(column):
    """Return what a column's chunks must share: its kind, or for categories the type of levels."""
    if column.kind != "level":
        return column.kind
    level = column.levels[0]
    return type(level) if isinstance(level, str | bool) else float


def take(values, rows):
    """Return rows of an array, Column or frame (all for empty `rows`); return scalars unchanged."""
    if isinstance(rows, np.ndarray) and not rows.size:
        return values
    if isinstance(values, Column):
        return replace(values, values=take(values.values, rows), codes=take(values.codes, rows))
    if isinstance(values, pd.Series | pd.DataFrame):
        return values.iloc[rows]
    return values if values is None or np.ndim(values) == 0 else np.asarray(values)[rows]


def used_levels(column, rows):
    """Return the levels that occur in the given rows of a column, in the order of its levels."""
    codes = take(column.codes, rows)
    counts = np.bincount(codes[codes >= 0], minlength=len(column.levels))
    return tuple(level for level, n in zip(column.levels, counts, strict=True) if n)


def recode(column, levels, rows, cure="", known=None):
    """Return the position of each row's value in `levels`, or -1 if missing.

    rows : positions of the rows in the Column, empty for all
    cure : advice at the end of the error about an unknown level
    known : dict level -> position in `levels`, or None to compute it"""
    if column.kind == "date":
        what = f"column {column.name!r} must have levels, as in training"
        raise DataError(f"{what}; here it has dates")
    column = as_levels(column)
    codes = take(column.codes, rows).astype(np.int64)
    if column.levels == levels:
        return codes
    known = known or {level: i for i, level in enumerate(levels)}
    place = np.array([*(known.get(level, -1) for level in column.levels), -1], np.int64)
    positions = place[codes]
    unknown = np.flatnonzero((positions < 0) & (codes >= 0))
    if len(unknown):
        raise_unknown_level(column.name, column.levels[codes[unknown[0]]], levels, cure)
    return positions


def raise_unknown_level(name, level, levels, cure=""):
    what = f"column {name!r} has the level {level!r}, which is not a level of the training rows"
    raise DataError(f"{what}: {first_few([*levels])}{cure}")


@dataclass
class Table:
    """Columns of the data, with the positions and weights of the complete rows."""

    columns: dict
    rows: np.ndarray  # (n,) positions of the complete rows, empty for all
    index: object
    n: int
    missing: str = "drop"
    weights: np.ndarray | None = None
    filled: dict = field(default_factory=dict)  # dict name -> Column with missing values replaced
    complete_columns: frozenset = frozenset()
    weight_unit: float = 1.0  # number by which weights are divided so that their sums are finite

    def complete(self, name):
        """Return a column with its missing values imputed; unchanged if it has none."""
        return self.filled.get(name) or self.columns[name]

    def take(self, at):
        """Return a Table with some of the rows, at positions among the complete rows."""
        rows = read_only(self.rows[at] if self.rows.size else at)
        return replace(self, rows=rows, n=len(at), weights=self.weights_at(at))

    @cached_property
    def positive_weight(self):
        """Which rows have positive weight, (n,) bool; None if all have."""
        positive = None if self.weights is None else self.weights > 0
        return None if positive is None or positive.all() else positive

    @property
    def n_positive(self):
        return self.n if self.positive_weight is None else int(self.positive_weight.sum())

    def weighted(self, values):
        """Return `values`, (n,) or (n, k), of only those rows that have positive weight."""
        return values if self.positive_weight is None else values[self.positive_weight]

    def weights_at(self, at):
        return None if self.weights is None else self.weights[at]


def known_rows(table, names):
    """Return the rows with values in all `names`, (Table, positions); empty positions mean all."""
    if table.missing != "keep" or not table.n:
        return table, ALL_ROWS
    bad = np.zeros(table.n, bool)
    for name in names:
        bad |= is_missing(table.columns[name], table.rows)
    if not bad.any():
        return table, ALL_ROWS
    where = np.flatnonzero(~bad)
    return table.take(where), where


def rows_to_learn(table, names):
    """Return a Table of the rows with values in all columns `names`, and their positions.

    Empty positions mean all rows. Raise DataError if no such row has positive weight."""
    part, where = known_rows(table, names)
    if part.n_positive:
        return part, where
    gone = [name for name in names if is_missing(table.columns[name], table.rows).all()]
    raise_unknown(gone[:1] or names, bool(gone))


def raise_unknown(names, everywhere):
    """Raise DataError: no row of positive weight has values in all the columns `names`.

    everywhere : whether names[0] is missing in every row, for the message"""
    if everywhere:
        raise DataError(f"column {names[0]!r} is missing in every row: leave it out of the formula")
    named = " and ".join(map(repr, names))
    raise DataError(f"no row with a positive weight has known values of {named}")


def expand_rows(values, where, n):
    """Return values (n,) of all n rows: `values` in the rows at positions `where`, else NaN."""
    if where is ALL_ROWS:
        return values
    full = np.full(n, np.nan)
    full[where] = values
    return full


def has_gaps(table, name):
    if name in table.complete_columns:
        return False
    return bool(is_missing(table.columns[name], table.rows).any())


def is_missing(column, rows):
    """Return whether a column's values are missing in the given rows, (n,) bool."""
    if column.kind == "level":
        return take(column.codes, rows) < 0
    if column.values.dtype.kind in "iu":
        return np.zeros(len(rows) or len(column.values), bool)
    return np.isnan(as_float(take(column.values, rows)))
