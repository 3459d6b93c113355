"""The response, the row inputs (weights, offset, order, clusters, groups), and missing values."""

import ast
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from lodim import forms
from lodim.design import columns, factors
from lodim.design.column_kernels import ALL_ROWS, read_only
from lodim.design.expressions import tree
from lodim.design.frame import absent, check_text, read_column
from lodim.engine.blocks import each
from lodim.errors import DataError
from lodim.family import NUMERIC
from lodim.formula.language import column_name, function_name, is_condition, quote
from lodim.text import counted, first_few

BALANCED = "balanced"  # value of weights= that gives each class the same total weight
TO_ORDER = "make it an ordered category, such as pd.Categorical(values, categories=[...], "
TO_ORDER += "ordered=True), or numbers"
LARGEST = 1e70  # largest absolute response, weight or offset: losses use its fourth power


@forms.record
class Response:
    """The left side of a formula: its name, and its classes if it has any."""

    name: str = forms.text()
    # classes as the user wrote them; the second of two is the success. None for numbers
    levels: tuple | None = forms.optional(forms.several(None, forms.plain()))
    called: bool = forms.flags()  # whether `name` is an expression such as np.log(y), not a column

    @property
    def key(self):
        """The response as a pair: (column name, None), or (None, text) for an expression."""
        return (None, self.name) if self.called else (self.name, None)

    def event(self, level):
        """Return text for the event that the response is `level`, such as "quality >= 7"."""
        node = tree(self.name) if self.called else None
        if node is None or not is_condition(node):
            return f"{self.name} = {level}"
        inner = ast.unparse(node.args[0])
        return inner if level else f"not ({inner})"

    def _check_fields(self):
        factors.columns_of(self.key)
        if self.called and not isinstance(tree(self.name), ast.Call):
            raise ValueError(f"the response {self.name!r} is no call")
        if self.levels is not None:
            factors.check_levels(self.levels, self.name, least=2)

    def check_family(self, family):
        numeric = (True, False) if family == "binomial" else (family in NUMERIC,)
        if (self.levels is None) not in numeric:  # "binomial" also takes proportions of trials
            raise ValueError(f"the response has levels {self.levels!r:.40}, and is {family}")
        if family == "binomial" and len(self.levels or ()) > 2:
            raise ValueError(f"the response has {len(self.levels)} levels, not 2")
        if family == "ordinal":
            _check_order(self.name, self.levels, True)


@dataclass(frozen=True, eq=False)
class RowInputs:
    """Weights, offset, order, clusters and groups of the rows: column names, arrays, or None.

    After `read` they are float64 arrays: offset (n,), or (n, K) for K classes; others (n,)."""

    weights: Any = None
    offset: Any = None
    order: Any = None
    clusters: Any = None
    groups: Any = None

    @property
    def names(self):
        return [value for value in vars(self).values() if isinstance(value, str)]

    def check_names(self, names):
        """Raise DataError if an input is a column that is not among the data's columns `names`."""
        for what, value in vars(self).items():
            if isinstance(value, str) and value not in names:
                raise DataError(f"{what}: {absent(value, names)}")

    def map(self, work):
        """Return the row inputs (weights etc.), each one replaced by work(value, name)."""
        return RowInputs(**{k: None if v is None else work(v, k) for k, v in vars(self).items()})

    def read(self, frame):
        """Return the row inputs (weights, offset etc.) of a Frame's rows as float64 arrays."""
        read = self.map(partial(_read_input, frame))
        missing = () if read.groups is None else np.flatnonzero(np.isnan(read.groups))
        if len(missing):
            name = f"groups: column {self.groups!r}" if isinstance(self.groups, str) else "groups"
            what = f"{name} is missing in {len(missing)} of {len(read.groups)} rows, the first of"
            cure = "give each row a group (a group of its own if it belongs to no other)"
            row = forms.plain_label(frame.index[missing[0]])
            raise DataError(f"{what} them {row!r}: {cure}, or drop these rows")
        return read

    def arrays(self):
        """Return the row inputs (weights etc.) as arrays; column names and single numbers stay."""

        def as_array(value, what):
            if np.ndim(value) == 0:
                return value
            return np.asarray(value) if what in ("clusters", "groups") else _as_numbers(value, what)

        return self.map(as_array)

    def take(self, rows):
        """Return the row inputs (weights etc.) of the rows at positions `rows`, or of a slice."""
        rows = rows if isinstance(rows, slice) or len(rows) else slice(0)
        return self.map(lambda value, _: columns.take(value, rows))

    def stretch(self, start, stop):
        """Return the inputs of rows start to stop - 1; raise DataError if an array is too short."""
        for what, value in vars(self).items():
            if np.ndim(value) and len(value) < stop:
                raise DataError(f"{what} must have one value per row; it has only {len(value)}")
        return self.take(slice(start, stop))

    def complete(self, rows):
        """Return the row inputs at positions `rows`; weights that are all one become None."""
        inputs = self.take(rows)
        weights = inputs.weights
        if weights is None:
            return inputs
        if len(rows) and weights.min() < 0:
            raise DataError(f"weights must be 0 or more; the smallest is {weights.min():g}")
        if len(rows) and weights.max() == 0:
            raise DataError("weights must have at least one positive value; all are zero")
        return replace(inputs, weights=None) if (weights == 1).all() else inputs

    def check_classes(self, family, response):
        if self.offset is None:
            return
        if self.offset.ndim == 1:
            if family == "multinomial" and self.offset.any():
                words = f"a column for each of the {len(response.levels)} classes"
                raise DataError(f"an offset must have {words}: one column changes no probability")
            return
        has = counted(self.offset.shape[1], "column")
        if family != "multinomial":
            raise DataError(f"offset has {has}, but must have one for family {family!r}")
        if self.offset.shape[1] != len(response.levels):
            each = f"each of the {len(response.levels)} classes"
            raise DataError(f"offset must have a column for {each}, not {has}")


INPUTS = tuple(field.name for field in fields(RowInputs))


def _read_input(frame, value, what):
    """Return the row input `what`, such as "weights", as an array; value : column name or array."""
    if what in ("clusters", "groups"):
        return _codes(frame, value, what)
    if isinstance(value, str):
        column = read_column(frame, value)
        if column.kind == "level":
            raise DataError(f"{what}: column {value!r} must have numbers, not {column.levels[:3]}")
        if column.kind == "date" and what != "order":
            raise DataError(f"{what}: column {value!r} must have numbers, not dates")
        array = columns.as_float(column.values)
    else:
        array, n = _as_numbers(value, what), len(frame.index)
        if what == "offset" and array.ndim == 0:
            array = np.full(n, float(array))
        most = 2 if what == "offset" else 1
        if not 1 <= array.ndim <= most:
            wanted = "one value per row" + (", or per row and class" if what == "offset" else "")
            raise DataError(f"{what} must have {wanted}, not shape {array.shape}")
        if len(array) != n:
            has = f"{what} has {counted(len(array), 'value')}"
            raise DataError(f"{has}, but must have one per row, {n} in all")
        _check_row_labels(frame, value, what)
    if np.isinf(array).any():
        i = int(np.flatnonzero(np.isinf(array).reshape(len(array), -1).any(axis=1))[0])
        raise DataError(f"{what} is infinite in row {forms.plain_label(frame.index[i])!r}")
    _check_size(array, what)
    return array


def _codes(frame, values, input_name):
    """Convert `values` to codes 0, 1, ... for the rows, with NaN for missing values.

    values : array or column name; input_name : "groups" or "clusters", for errors"""
    if isinstance(values, str):
        column = read_column(frame, values)
        values = column.values
        if column.kind == "level":
            values = np.where(column.codes < 0, np.nan, column.codes)
    elif np.shape(values) != (len(frame.index),):
        n = counted(len(frame.index), "row")
        raise DataError(f"{input_name} has shape {np.shape(values)}, and the data has {n}")
    _check_row_labels(frame, values, input_name)
    codes = pd.factorize(pd.Series(values))[0]  # original dtype: no identifier is rounded
    return np.where(codes < 0, np.nan, codes)


def _check_size(values, what):
    largest = np.abs(values).max(initial=0.0, where=~np.isnan(values))
    if largest > LARGEST:
        why = f"{what} must be at most {LARGEST:g} in absolute value, not {largest:g}"
        raise DataError(f"{why}: divide it by a power of ten")


def _as_numbers(value, what):
    try:
        dtype = value.dtype if isinstance(value, pd.Series | pd.Index) else np.asarray(value).dtype
        if dtype.kind in "mM" and what != "order":  # NumPy would count their microseconds
            raise TypeError
        if isinstance(value, pd.Series | pd.DataFrame):
            return value.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        given = f"{type(value).__name__} {value!r:.80}".replace("\n", " ")
        words = "the name of a column or an array of numbers"
        raise DataError(f"{what} must be {words}, not the {given}") from None


def _check_row_labels(frame, value, what):
    if isinstance(value, (pd.Series, pd.DataFrame)) and not value.index.equals(frame.index):
        raise DataError(f"{what} must have the row labels of the data, in their order")


def read_complete(frame, features, answers, inputs, missing, *, learning=False, known=None):
    """Read columns of a Frame; return a Table of the usable rows, and what complete_rows() returns.

    features : columns of the features
    answers : columns of the response
    inputs : RowInputs (weights etc.) of all rows
    missing : "drop", "keep" or "indicator"
    learning : whether fewer than two rows are an error
    known : dict column -> (levels to keep, levels to set to missing)"""
    n, read = len(frame.index), {}
    for name in dict.fromkeys([*features, *answers]):
        read[name] = read_column(frame, name)
        if name in (known or ()):
            read[name] = columns.without_levels(read[name], *known[name])
    flags = flag_missing(read, answers, inputs, missing, frame.index)
    rows, *numbers = complete_rows(flags, inputs.weights, missing, learning)
    used = read_only(ALL_ROWS if len(rows) == n else rows)
    complete = frozenset(name for name in read if not flags.columns[name])
    table = columns.Table(
        read, used, frame.index, len(rows), missing=missing, complete_columns=complete
    )
    return table, rows, *numbers


@dataclass(frozen=True, eq=False)
class Flags:
    """Which rows have missing values, and how many miss each column and each required input."""

    gaps: np.ndarray  # (n,) bool, rows that miss a feature (or the response, if missing is 'keep')
    bad: np.ndarray  # (n,) bool, rows to drop: response, weight, offset or other input is missing
    columns: dict
    required: dict  # responses and row inputs, without which a row is dropped


def flag_missing(read, answers, inputs, missing, index):
    """Return Flags: which rows lack features, response, weights etc.

    read : dict name -> Column of the features and the response
    answers : names of the response's columns
    inputs : RowInputs (weights, offset etc.)
    missing : "keep" if the response may be missing
    index : labels of the rows, for errors"""
    n = len(index)
    gaps, bad = np.zeros(n, bool), np.zeros(n, bool)
    answers = () if missing == "keep" else answers

    def flag(name):
        return _flag(read[name], bad if name in answers else gaps, index)

    counts = dict(zip(read, each(flag, list(read), n * len(read)), strict=True))
    required = {name: counts[name] for name in answers}
    for what, array in vars(inputs).items():
        if array is not None:
            gone = np.isnan(array).reshape(n, array.size // n if n else 1).any(axis=1)
            bad |= gone
            required[what] = int(gone.sum())
    return Flags(gaps, bad, counts, required)


def complete_rows(flags, weights, missing, learning):
    """Choose the rows to use; return (positions, n_dropped, n_incomplete, lacking).

    flags : Flags, what each row lacks
    weights : (n,) or None; rows of weight 0 are not counted
    missing : "drop" if rows need all features
    learning : whether fewer than two rows are an error
    n_incomplete : number of rows that miss only features
    lacking : dict column or input -> number of missing values"""
    gaps, bad, drop = flags.gaps, flags.bad, missing == "drop"
    of_use = ~(bad | gaps) if drop else ~bad
    rows, out, incomplete = np.flatnonzero(of_use), ~of_use, gaps & ~bad
    if weights is not None:  # rows without a weight count, rows of weight zero do not
        out, incomplete = out & (weights != 0), incomplete & (weights > 0)
    n_dropped, n_incomplete = int(out.sum()), int(incomplete.sum())
    counts = flags.columns | flags.required if drop else flags.required
    lacking = {name: count for name, count in counts.items() if count and n_dropped}
    if not learning or len(rows) > 1:
        return rows, n_dropped, n_incomplete, lacking
    n, n_left = len(bad), len(rows)
    if n == n_left:
        has = "only one row; a model needs at least two" if n else "no rows"
        raise DataError(f"the data has {has}")
    worst = sorted(lacking.items(), key=lambda item: -item[1])[:5]
    counts = ", ".join(f"{name!r} in {count}" for name, count in worst)
    empty = [name for name, count in worst if count == n and name not in flags.required]
    cure = f"leave {first_few(empty)} out of the formula"
    cure = cure if empty else "missing='indicator' keeps rows with missing features"
    cure = f"; {cure}" if drop and n_incomplete else ""
    left = "only one row is left, and a model needs at least two" if n_left else "no rows are left"
    gone = f"{n - n_left} of {n} rows are dropped for missing values ({counts})"
    raise DataError(f"{left}: {gone}{cure}")


def _flag(column, bad, index):
    """Set `bad` (n,) to True in the rows where a Column is missing; return their number.

    Raise DataError if a number is infinite; index : labels of the rows, for the error"""
    if column.kind == "level":
        missing = column.codes < 0
        bad[missing] = True  # never write False: several threads mark the same rows
        return int(missing.sum())
    finite = np.isfinite(column.values)
    if finite.all():
        return 0
    missing = np.isnan(column.values)
    bad[missing] = True
    infinite = np.flatnonzero(~(finite | missing))
    if infinite.size:
        row = forms.plain_label(index[infinite[0]])
        what = f"column {column.name!r} must be finite; it is infinite in row {row!r}"
        raise DataError(f"{what}: correct it, or make it missing")
    return int(missing.sum())


def learn_response(response, family, table):
    """Return y of the training rows, a Response that can code new data, and the family.

    response : Response (left side of the formula) or None
    family : name of the family, None to infer it
    y : (n,) numbers or class codes, NaN if missing"""
    if response is None:
        return None, None, "none"
    n = table.n
    table, where = columns.rows_to_learn(table, factors.columns_of(response.key))
    source, rows = _column_of(response, table)
    if family is None and source.kind == "level":
        check_text(source, columns.used_levels(source, rows), table.n, answer=True)
    family = family or _infer_family(source, rows)
    if family in NUMERIC or (family == "binomial" and _are_proportions(source, rows, table)):
        y = _values(source, rows, family)
        used = table.weighted(y)
        if used.min() == used.max():
            what = f"the response {response.name!r} must vary"
            raise DataError(f"{what}; it is {used[0]:g} in every row")
        return columns.expand_rows(y, where, n), response, family
    in_order, source = source.kind == "number" or source.ordered, columns.as_levels(source)
    levels = columns.used_levels(source, rows)
    if family == "ordinal":
        _check_order(response.name, levels, in_order)
    y, name = columns.recode(source, levels, rows).astype(np.float64), response.name
    used = np.flatnonzero(np.bincount(table.weighted(y).astype(np.int64)))
    if len(used) < 2:
        one = levels[used[0]]
        raise DataError(f"the response {name!r} has one class only, {one!r}; two are needed")
    if family == "binomial" and len(levels) > 2:
        numbers = all(isinstance(level, int | float) for level in levels)
        text = name if response.called else quote(name)
        middle = f"I({text} > {levels[len(levels) // 2]:g})" if numbers else ""
        what = f"the response {name!r} has {len(levels)}: {first_few(levels)}"
        cure = "use family 'multinomial'" + f", or a condition such as {middle}" * numbers
        raise DataError(f"family 'binomial' needs two classes, but {what}; {cure}")
    response = Response(name, levels, response.called)
    return columns.expand_rows(y, where, n), response, family


def _check_order(name, levels, in_order):
    if len(levels or ()) < 3:
        has = f"the response {name!r} has {first_few(levels or ())}; use family 'binomial'"
        raise DataError(f"family 'ordinal' needs at least three classes in order, but {has}")
    if not in_order:
        has = f"{name!r} has the classes {first_few(levels, 3)} in no order"
        raise DataError(f"family 'ordinal' needs a response in order, but {has}: {TO_ORDER}")


def _are_proportions(source, rows, table):
    """Return whether a binomial response has proportions of trials, not classes.

    source : Column of the response
    rows : positions of the rows in the Column, empty for all
    table : Table of the rows, with the numbers of trials as weights"""
    if source.kind == "level":
        return False
    y = table.weighted(columns.take(source.values, rows))
    if not ((y >= 0) & (y <= 1)).all() or ((y == 0) | (y == 1)).all():
        return False
    if table.weights is None and len(np.unique(y)) > 2:
        what = f"the response {source.name!r} has proportions, such as {y[(y > 0) & (y < 1)][0]:g}"
        what += "; family 'binomial' needs the numbers of trials as weights= (glm only)"
        raise DataError(f"{what}, or one row per trial with a response of two classes")
    return table.weights is not None


def is_balanced(weights, names):
    """Return whether weights= is "balanced" (equal weight per class), not a column in `names`."""
    return isinstance(weights, str) and weights == BALANCED and BALANCED not in names


def class_weights(y, response, rows, size):
    """Return weights of all rows, (size,), with which each class has the same total weight.

    y : codes of the classes, NaN if unknown (weight 1)
    response : Response; DataError is raised if it is None or has no classes
    rows : position of each row of y among all rows"""
    if response is None or response.levels is None:
        name = "there is none" if response is None else f"{response.name!r} is numeric"
        raise DataError(f"weights='balanced' needs a response with classes, but {name}")
    known = ~np.isnan(y)
    codes, weights = y[known].astype(np.int64), np.ones(size)
    counts = np.bincount(codes, minlength=len(response.levels))
    weights[rows[known]] = len(codes) / (len(counts) * counts[codes])
    return weights


def code_response(response, table, family):
    """Return the response of a Table's rows, (n,) float64, with classes coded as in training."""
    n = table.n
    table, where = columns.known_rows(table, factors.columns_of(response.key))
    if not table.n:
        return np.full(n, np.nan)
    source, rows = _column_of(response, table)
    if response.levels is None:
        return columns.expand_rows(_values(source, rows, family), where, n)
    y = columns.recode(source, response.levels, rows).astype(np.float64)
    return columns.expand_rows(y, where, n)


def _column_of(response, table):
    """Return the response as a Column, and the positions in it, (n,), of a Table's rows.

    Positions are empty for 0, 1, 2 etc.; response : Response, a column or an expression"""
    if not response.called:
        source = table.columns[response.name]
        if source.kind == "date":
            cure = f"write days({quote(source.name)}) for numbers"
            raise DataError(f"the response {source.name!r} has dates: {cure}")
        return source, table.rows
    node = tree(response.name)
    inner = table.columns.get(column_name(node.args[0]))
    if function_name(node.func) == "I" and inner is not None and factors.holds_bools(inner):
        return inner, table.rows
    values = factors.prepare(factors.learn_expression(response.name, table), table)
    if values.shape[1] != 1:
        raise DataError(f"the response {response.name} has {values.shape[1]} columns, not one")
    return factors.as_column(response.name, node, values[:, 0]), ALL_ROWS


def _values(source, rows, family):
    if source.kind == "level":
        raise DataError(
            f"the response {source.name!r} has {first_few(source.levels, 3)}; family {family!r} "
            "needs numbers (for classes, use family 'binomial' or 'multinomial')"
        )
    y = columns.take(source.values, rows).astype(np.float64)
    _check_size(y, f"the response {source.name!r}")
    if family == "binomial" and y.size and not 0 <= y.min() <= y.max() <= 1:
        what = f"the response {source.name!r} must be proportions from 0 to 1, as in training"
        raise DataError(f"{what}, not {y.min():g} to {y.max():g}")
    if family in NUMERIC and not NUMERIC[family].contains(y).all():
        needs = f"family {family!r} needs {NUMERIC[family].support}"
        raise DataError(f"the response {source.name!r} has {y.min():g}; {needs}")
    return y


def _infer_family(source, rows):
    """Return the family, such as "binomial", that rows of a response (Column `source`) suggest."""
    if source.kind == "level":
        return "binomial" if len(columns.used_levels(source, rows)) <= 2 else "multinomial"
    values = columns.take(source.values, rows)
    for low in (0, -1):
        ones = values == 1
        if ((values == low) | ones).all() and 0 < ones.sum() < len(values):
            return "binomial"
    return "gaussian"


LARGEST_MEAN = 1e160  # largest mean in a file whose square is finite


@forms.record
class Fill:
    """Replacement of a column's missing values: mean, or most frequent level, in training.

    n_missing : number of training rows with positive weight in which the column is missing"""

    name: str = forms.text()
    value: str | bool | int | float = forms.plain()
    n_missing: int = forms.whole()

    def _check_fields(self):
        if isinstance(self.value, float) and not abs(self.value) <= LARGEST_MEAN:
            raise ValueError(f"mean of {self.name} is {self.value}")


def learn_fill(summary):
    column = summary.column
    if not summary.n_known:
        what = f"column {column.name!r} is missing in every row with a positive weight"
        raise DataError(f"{what}; leave it out with '- {quote(column.name)}'")
    # the level with the largest total weight; of equal ones the first
    if column.kind == "level":
        value = summary.levels[int(summary.mass.argmax())]
    else:
        value = float(summary.moments[1])
    return Fill(column.name, value, summary.n_gaps)


def filled(table, fills):
    """Return a Table with missing values replaced; fills : a Fill (replacement) per column."""
    gaps = [f for f in fills if f.name in table.columns and columns.has_gaps(table, f.name)]
    return replace(table, filled={f.name: _fill(table.columns[f.name], f.value) for f in gaps})


def _fill(column, value):
    """Return a column with missing values replaced by `value`, or unchanged if the types differ."""
    number = isinstance(value, float)
    if column.kind == "empty" and not number:
        column = columns.Column(column.name, "level", codes=np.full(len(column.values), -1))
    if number == (column.kind == "level"):
        return column
    if number:
        values = columns.as_float(column.values)
        kind = "number" if column.kind == "empty" else column.kind
        return replace(column, kind=kind, values=np.where(np.isnan(values), value, values))
    levels = column.levels if value in column.levels else (*column.levels, value)
    codes = np.where(column.codes < 0, levels.index(value), column.codes)
    return replace(column, codes=codes, levels=levels)


def indicators(terms, fills):
    """Return terms for missing values in training: each is 1 where its column is missing, else 0.

    terms : terms of the formula
    fills : Fill (replacement, number of missing values) per column"""
    coded = (term[0] for term in terms if len(term) == 1)
    # Levels that are a term of their own already code missing values.
    own = {factors.column_with_levels(part) for part in coded}
    gaps = [f.name for f in fills if f.n_missing and f.name not in own]
    return tuple((factors.Missing(name),) for name in gaps)
