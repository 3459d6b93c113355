"""Evaluation of formula expressions over columns, by syntax tree instead of Python's `eval`."""

import ast
import functools
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.design import columns
from lodim.design.column_kernels import read_only
from lodim.errors import DataError, ExtrapolationWarning, FormulaError, LodimError, warn
from lodim.formula import language, patsy_terms

ARITHMETIC: dict[type, Callable] = {
    **{ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide},
    **{ast.FloorDiv: np.floor_divide, ast.Mod: np.mod, ast.Pow: np.power},
    **{ast.USub: np.negative, ast.UAdd: np.positive},
}
LOGIC = {ast.BitAnd: np.logical_and, ast.BitOr: np.logical_or}
COMPARISONS = {
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}

_OUTSIDE = {  # spline -> what it does outside the training range
    "bs": "extrapolates by its end polynomials, cr() would extrapolate linearly",
    "cr": "extrapolates linearly",
    "cc": "repeats this range as its cycle (set the cycle by lower_bound= and upper_bound=)",
}


@dataclass
class _Scope:
    """State of the evaluation of one expression: the table, and what calls such as bs(x) learn."""

    table: columns.Table
    code: str  # for messages
    states: list  # what the next calls learned; filled instead if `learning`
    learning: bool = False


@functools.lru_cache(5000)
def tree(code):
    """Return the syntax tree of an expression; raise FormulaError for code that formulas forbid."""
    try:
        node = language.read(code)
        if isinstance(node, ast.Call):
            language.check_call(node, outermost=True)
        elif language.column_name(node) is None:
            raise language.Refused(node, "not a call")
    except (language.Refused, SyntaxError) as error:
        raise FormulaError(f"{code!r:.80} cannot stand in a formula: {error}") from None
    return node


def learn(code, table):
    """Learn an expression from a Table; return (number of columns, states).

    code : text of the expression, such as "bs(x)"
    states : tuple of (function name, dict of knots etc.), one per call such as bs(x)"""
    scope = _Scope(table, code, [], learning=True)
    width = _matrix(tree(code), scope).shape[1]
    return width, tuple(scope.states)


def check_states(code, width, states):
    """Raise ValueError unless an expression with saved states makes `width` feature columns.

    code : text of the expression, such as "bs(x)"
    states : (function name, dict of knots etc.) for each call in `code` that learns from data"""
    left = list(states)
    with np.errstate(all="ignore"):
        found = _width(tree(code), left)
    if left or found != width:
        raise ValueError(f"{code} makes {found} columns with what it has learnt, not {width}")


def _width(node, states):
    """Return the number of columns of an expression; remove its entries from `states`.

    node : syntax tree of the expression
    states : list of (function name, dict of knots etc.), one per call such as bs(x)"""
    if language.column_name(node) is not None:
        return 1
    called = isinstance(node, ast.Call)
    parts = node.args[: language.count_data(node)] if called else ast.iter_child_nodes(node)
    widths = [_width(part, states) for part in parts if isinstance(part, ast.expr)]
    name = language.function_name(node.func) if called else None
    if name == "I":
        return widths[0]
    if name not in patsy_terms.TRANSFORMS:
        return 1
    known, state = states.pop(0)
    settings, words = _settings(node)
    inside = state["_all_knots"][0] if "_all_knots" in state else 0.0
    data = [np.full((1, w) if w > 1 else 1, inside) for w in widths]
    found = patsy_terms.apply(known, state, data, settings, words).size
    if known != name or (name in patsy_terms.MOMENTS and found != widths[0]):
        raise ValueError(f"{ast.unparse(node)} has learnt what {known}() of other columns learns")
    return found


def _settings(node):
    """Return constant arguments of a call (`node`), such as 4 in bs(x, 4), as a list and a dict."""
    settings = [ast.literal_eval(arg) for arg in node.args[language.count_data(node) :]]
    return settings, {w.arg: ast.literal_eval(w.value) for w in node.keywords}


def evaluate(code, node, table, states=()):
    """Return the values of an expression in all rows of a table, finite numbers (n, width).

    code, node : text and syntax tree of the expression
    states : tuple of (function name, dict of knots etc.), one per call such as bs(x)"""
    return _matrix(node, _Scope(table, code, list(states)))


def _matrix(node, scope):
    """Return a syntax tree's values (n, width) in a _Scope; raise DataError unless all finite."""
    try:
        with np.errstate(all="ignore"):
            value = _numbers(node, scope)
    except LodimError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise FormulaError(f"{scope.code}: {error}") from None
    except MemoryError:
        n = scope.table.n
        raise DataError(f"{scope.code}: there is not enough memory for {n:,} rows") from None
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2 or len(value) != scope.table.n:
        raise FormulaError(f"{scope.code} must have one value for each row")
    if not np.isfinite(value).all():
        _report(value, node, scope)
    return value


def _report(value, node, scope):
    table = scope.table
    i = int(np.flatnonzero(~np.isfinite(value).all(axis=1))[0])
    position = table.rows[i] if table.rows.size else i
    names = dict.fromkeys(language.column_name(n) for n in language.column_nodes(node))
    columns = ", ".join(f"{name} = {_at(table.complete(name), position)}" for name in names)
    invalid = value[i][~np.isfinite(value[i])][0]
    label = forms.plain_label(table.index[position])
    raise DataError(f"{scope.code} is {invalid} in row {label!r}, where {columns}")


def _at(source, position):
    if source.kind == "level":
        return repr(source.levels[source.codes[position]])
    return source.values[position].item()


def _value(node, scope):
    """Return the value of a syntax tree in a _Scope: an array (n,) or (n, k), or a constant."""
    name = language.column_name(node)
    if name is not None:
        column, rows = scope.table.complete(name), scope.table.rows
        if column.kind == "date":
            raise DataError(f"column {name!r} has dates: {columns.date_advice(name)}")
        if column.kind != "level":
            return read_only(columns.as_float(columns.take(column.values, rows)))
        codes = columns.take(column.codes, rows)
        if column.levels and all(isinstance(level, bool) for level in column.levels):
            return np.array(column.levels)[codes]
        return np.array([*column.levels, None], dtype=object)[codes]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call):
        return _call(node, scope)
    if isinstance(node, ast.Compare):
        return _compare(node, scope)
    parts = (node.operand,) if isinstance(node, ast.UnaryOp) else (node.left, node.right)
    kind = type(node.op)
    if kind is ast.Invert:
        return np.logical_not(_truth(parts[0], scope))
    if kind in LOGIC:
        return LOGIC[kind](*(_truth(part, scope) for part in parts))
    return ARITHMETIC[kind](*(_single(part, scope) for part in parts))


def _numbers(node, scope):
    """Return the value of a syntax tree in a _Scope as float64; raise DataError if it is text."""
    array = np.asarray(_value(node, scope))
    if array.dtype.kind in "OUS":
        name = language.column_name(node)
        what = f"column {name!r} holds" if name else f"{ast.unparse(node)} gives"
        raise DataError(f"{scope.code} needs numbers, but {what} text or categories")
    return array.astype(np.float64, copy=False)


def _single(node, scope):
    """Return a node's value in a _Scope, (n,) or number; raise FormulaError for several columns."""
    value = _numbers(node, scope)
    if value.ndim > 1:
        what = f"{scope.code}: {ast.unparse(node)} has several columns"
        raise FormulaError(f"{what}; write a product with ':', such as bs(x, df=4):z")
    return value


def _truth(node, scope):
    """Return a node's value in a _Scope, bool or (n,) bools; raise FormulaError for other types."""
    value = np.asarray(_value(node, scope))
    if value.dtype != bool:
        what = f"{scope.code}: & | ~ need comparisons, such as (x > 1) & (z < 2)"
        raise FormulaError(f"{what}; {ast.unparse(node)} is not a comparison")
    return value


def _compare(node, scope):
    """Return the value (n,) bool of chained comparisons (`node`) such as a < b < c in a _Scope."""
    result, left = True, np.asarray(_value(node.left, scope))
    sides = itertools.pairwise([node.left, *node.comparators])
    for op, (before, after) in zip(node.ops, sides, strict=True):
        right = np.asarray(_value(after, scope))
        texts = [value.dtype.kind in "OUS" for value in (left, right)]
        if any(texts) and not all(texts):
            what = ast.unparse(before if texts[0] else after)
            what = f"numbers cannot be compared with {what}, which is text or categories"
            raise DataError(f"{scope.code}: {what}")
        try:
            true = COMPARISONS[type(op)](left.astype(object) if any(texts) else left, right)
        except TypeError:
            what = "values without an order cannot be compared by < or >"
            raise DataError(f"{scope.code}: {what}") from None
        result, left = np.logical_and(result, np.asarray(true, bool)), right
    return result


def _call(node, scope):
    """Return the value of a call such as np.log(x), a syntax tree (`node`), in a _Scope."""
    name = language.function_name(node.func)
    if name == "I":
        return _value(node.args[0], scope)
    if name == "np.where":
        choices = (_single(arg, scope) for arg in node.args[1:])
        return np.where(_truth(node.args[0], scope), *choices)
    n_data = language.count_data(node)
    settings, words = _settings(node)
    if name in patsy_terms.TRANSFORMS:
        data = [_data(arg, scope) for arg in node.args[:n_data]]
        return _transform(name, data, settings, words, scope)
    if name in language.DATES:
        days = _days(language.column_name(node.args[0]), scope)
        return columns.date_part(name, days, *settings, **words)
    values = [_single(arg, scope) for arg in node.args[:n_data]]
    return getattr(np, name.removeprefix("np."))(*values, *settings, **words)


def _days(name, scope):
    """Return the _Scope's column `name`, dates or date texts, as days since 1970-01-01, (n,)."""
    source, rows = scope.table.complete(name), scope.table.rows
    if source.kind == "level":
        codes = columns.take(source.codes, rows)
        days, used = np.full(len(source.levels) + 1, np.nan), np.unique(codes[codes >= 0])
        for k in used:
            level = source.levels[k]
            found = columns.parse_date(level) if isinstance(level, str) else None
            if found is None:
                what = f"needs dates such as '2024-01-31', but column {name!r} has"
                raise DataError(f"{scope.code} {what} {level!r:.60}")
            days[k] = found
        return days[codes]
    if source.kind == "number" and scope.table.columns[name].kind == "number":
        raise DataError(f"{scope.code} needs dates, but column {name!r} has numbers")
    return columns.as_float(columns.take(source.values, rows))


def _data(node, scope):
    """Return the value in a _Scope of an argument such as x in bs(x): finite, (n,) or (n, k)."""
    value = _numbers(node, scope)
    if value.ndim == 0 or len(value) != scope.table.n:
        raise FormulaError(f"{scope.code}: {ast.unparse(node)} must have one value for each row")
    if not np.isfinite(value).all():
        _report(value.reshape(len(value), -1), node, scope)
    return value


def _transform(name, data, settings, words, scope):
    """Return the values of a call of the function `name`, such as bs(x) or scale(x).

    data : list of arrays, such as x
    settings, words : list of positional and dict of keyword arguments
    scope : _Scope, the table and the states (changed here)"""
    positive = scope.table.positive_weight
    if not (scope.learning or scope.states):
        raise FormulaError(f"{scope.code}: {name}() cannot be used here")
    try:
        if scope.learning:
            used = [scope.table.weighted(x) for x in data]
            state = patsy_terms.learn(name, used, settings, words)
            scope.states.append((name, state))
        else:
            _, state = scope.states.pop(0)
        if name in language.SPLINES:
            low, high = state["_all_knots"][[0, -1]]
            if positive is not None:  # rows of weight zero
                x = data[0].reshape(-1)
                data = [np.where(positive, x, np.clip(x, low, high))]
        values = patsy_terms.apply(name, state, data, settings, words)
    except NotImplementedError:
        raise DataError(
            f"{scope.code}: a value is outside lower_bound= and upper_bound= of bs(): set wider "
            "bounds, or no bounds, so that the spline extrapolates"
        ) from None
    except Exception as error:
        raise DataError(f"{scope.code}: {name}() cannot be computed: {error}") from None
    if name in language.SPLINES:
        below = data[0].min(initial=low) < low and words.get("lower_bound") is None
        if below or (data[0].max(initial=high) > high and words.get("upper_bound") is None):
            what = f"{scope.code}: some values are outside {low:.6g} to {high:.6g}"
            what = f"{what}, the range of the training rows; {name}() {_OUTSIDE[name]}"
            warn(what, ExtrapolationWarning)
    return values
