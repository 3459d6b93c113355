"""A factor of a term: the numbers of a column, its levels, or an expression of columns.

A factor learns what it needs from the rows used (levels, knots, means), keeps that as plain
numbers, and makes the same columns of any later data.
"""

import ast
import functools
from dataclasses import dataclass, fields, replace

import numpy as np

from lodim import forms
from lodim.design import evaluate
from lodim.design.column_kernels import ALL
from lodim.design.columns import Column, as_float, as_levels, recode, take, used_levels
from lodim.design.evaluate import tree
from lodim.errors import DataError
from lodim.formula import language, patsy_terms
from lodim.formula.formula import quote
from lodim.formula.language import column_name, column_nodes, function_name

IDENTIFIER = 1000  # levels above which a column that seldom repeats one is taken for a row name


@dataclass(frozen=True)
class Numeric:
    """The numbers of one column, as they are."""

    name: str


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a column or of what stands in C().

    Two levels make one column of 0 and 1, for the second; more make one column each, not one fewer
    as least squares needs: a penalty then treats all levels alike, and no choice of a reference
    level changes the fit. Where a model asks for a reference level, the first has no column: its
    columns are those of the last levels. With a contrast, row i of ``matrix`` codes level i.

    ``name`` is a column's, or where ``called`` the code, such as ``C(x, Sum)``.
    """

    name: str
    called: bool
    levels: tuple
    labels: tuple[str, ...]
    matrix: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Expression:
    """A call, evaluated over columns; ``states`` are what its splines and means have learnt.

    Each state is (function, dict of numbers and arrays), in the order of evaluation.
    """

    name: str
    width: int
    states: tuple = ()


KINDS = (Numeric, Levels, Expression)


@functools.lru_cache(5000)
def columns_of(key):
    """Names of the columns that a factor key needs."""
    name, code = key
    return (name,) if code is None else tuple(column_name(n) for n in column_nodes(tree(code)))


def learn(key, table):
    """The factor of a key, learnt from a table."""
    name, code = key
    if code is None:
        column = table.columns[name]
        if column.kind == "number":
            return Numeric(name)
        levels = used_levels(column, table.rows)
        if len(levels) > IDENTIFIER and 2 * len(levels) > table.n:
            raise DataError(
                f"column {name!r} has {len(levels):,} levels in {table.n:,} rows, as a name of the "
                f"rows would; leave it out with '- {quote(name)}', or write C({quote(name)})"
            )
        return Levels(name, False, levels, _shown(levels))
    node = tree(code)
    if function_name(node.func) == "C":
        return _categorical(code, node, table)
    return Expression(code, *evaluate.learn(code, table))


def labels(factor):
    """Names of the columns that a factor makes."""
    if isinstance(factor, Levels):
        return tuple(f"{factor.name}[{label}]" for label in factor.labels)
    if isinstance(factor, Expression) and factor.width > 1:
        return tuple(f"{factor.name}[{j}]" for j in range(factor.width))
    return (factor.name,)


def width(factor):
    """How many columns a factor makes."""
    if isinstance(factor, Levels):
        return len(factor.labels)
    return factor.width if isinstance(factor, Expression) else 1


def letters(factor):
    """How long the name of one of its columns is, nearly."""
    shown = max(map(len, factor.labels), default=0) if isinstance(factor, Levels) else 0
    return shown + len(factor.name)


def least_width(key):
    """How many columns the factor of a key makes, as far as the formula says."""
    return 1 if key[1] is None else language.width(tree(key[1]))


def needs(factor):
    """Names of the columns of the data that a factor reads."""
    if isinstance(factor, Numeric):
        return (factor.name,)
    called = isinstance(factor, Expression) or factor.called
    return columns_of((None, factor.name) if called else (factor.name, None))


def prepare(factor, table):
    """The values that `column` reads: (n,) numbers, (n,) codes of levels, or (n, width) numbers."""
    if isinstance(factor, Numeric):
        return as_float(take(raw_numbers(factor, table), table.rows))
    if isinstance(factor, Expression):
        values = evaluate.evaluate(factor.name, tree(factor.name), table, factor.states)
        if values.shape[1] != factor.width:
            raise DataError(f"{factor.name} makes {values.shape[1]} columns, not {factor.width}")
        return values
    if not factor.called:
        return recode(table.columns[factor.name], factor.levels, table.rows)
    source, rows = _inner(factor.name, tree(factor.name).args[0], table)
    return recode(source, factor.levels, rows)


def column(factor, prepared, j):
    """Column j of a factor, (n,) float64."""
    if isinstance(factor, Numeric):
        return prepared
    if isinstance(factor, Expression):
        return prepared[:, j]
    if factor.matrix is not None:
        return factor.matrix[prepared, j]
    return (prepared == j + len(factor.levels) - len(factor.labels)).astype(float)


def against_reference(factor, reduced):
    """A factor with a column for each level but the first if `reduced`, else for every level."""
    if not isinstance(factor, Levels) or (reduced and factor.matrix is not None):
        return factor
    return replace(factor, labels=tuple(map(str, factor.levels))[int(reduced) :], matrix=None)


def _shown(levels):
    """Labels of the columns that levels make: the second of two, else each."""
    return tuple(str(level) for level in (levels[1:] if len(levels) == 2 else levels))


def raw_numbers(factor, table):
    """The numbers of a column in all rows of the data, in their own dtype."""
    source = table.columns[factor.name]
    if source.kind == "level":
        raise DataError(
            f"column {source.name!r} held numbers when the model was fitted and now holds "
            f"{source.levels[0]!r}"
        )
    return source.values


def _categorical(code, node, table):
    """C(x), C(x, contrast), C(x, levels=[...])."""
    keywords = {word.arg: word.value for word in node.keywords}
    contrast = node.args[1] if len(node.args) > 1 else keywords.get("contrast")
    source, rows = _inner(code, node.args[0], table)
    source = as_levels(source)
    levels = used_levels(source, rows)
    if "levels" in keywords:
        levels = tuple(ast.literal_eval(keywords["levels"]))
        if len(set(levels)) < len(levels):
            raise DataError(f"{code:.200}: levels= names one level twice")
        recode(source, levels, rows)
    if contrast is None:
        return Levels(code, True, levels, _shown(levels))
    matrix, suffixes = patsy_terms.contrast(code, contrast, levels)
    return Levels(code, True, levels, tuple(suffixes), matrix)


def _inner(code, node, table):
    """The column that stands in C(), and which of its rows are meant."""
    name = column_name(node)
    if name is not None:
        return table.columns[name], table.rows
    return Column(code, "number", evaluate.evaluate(code, node, table)[:, 0]), ALL


def to_state(factor):
    """A factor as a dict of plain values and arrays."""
    kind = KINDS.index(type(factor))
    state = {"kind": kind, **{f.name: getattr(factor, f.name) for f in fields(factor)}}
    for key in ("levels", "labels"):
        if key in state:
            state[key] = list(state[key])
    if "states" in state:
        state["states"] = [[name, dict(values)] for name, values in factor.states]
    return state


def from_state(state):
    """The factor that `to_state` has written; a ValueError where it could not have."""
    values = dict(state)
    forms.whole(most=len(KINDS) - 1)(values["kind"], "kind of factor", {})
    kind = KINDS[values.pop("kind")]
    for key in ("levels", "labels"):
        if key in values:
            values[key] = tuple(values[key])
    if "states" in values:
        values["states"] = tuple((name, dict(learnt)) for name, learnt in values["states"])
    factor = kind(**values)
    _check(factor)
    return factor


def _check(factor):
    """Raise a ValueError unless the parts of a factor fit each other."""
    forms.text(factor.name, "name of a factor", {})
    needs(factor)
    if isinstance(factor, Expression):
        forms.check(factor, {"width": forms.whole(least=1)}, factor.name)
        for name, learnt in factor.states:
            patsy_terms.check(name, learnt)
    if isinstance(factor, Levels):
        check_levels(factor.levels, factor.name, least=1)
        sizes = {"levels": len(factor.levels)}
        matrix = forms.optional(forms.real("levels", "labels"))
        known = {"called": forms.flags(), "matrix": matrix, "labels": forms.several("labels")}
        forms.check(factor, known, factor.name, **sizes)
        shown = tuple(map(str, factor.levels))
        if factor.matrix is None and factor.labels not in (shown, shown[1:]):
            raise ValueError(f"{factor.name} has labels {factor.labels}")
        if factor.called and function_name(tree(factor.name).func) != "C":
            raise ValueError(f"{factor.name} makes no levels")


def check_levels(levels, name, least):
    """Raise a ValueError unless levels are plain values, none twice, and so many at least."""
    forms.several(len(levels), forms.plain)(levels, f"levels of {name}", {})
    if any(isinstance(level, int) and not -(2**63) <= level < 2**63 for level in levels):
        raise ValueError(f"{name} has a level that is beyond the whole numbers of arrays")
    if len(set(levels)) < max(len(levels), least):
        raise ValueError(f"{name} has a level twice, or fewer than {least}")
