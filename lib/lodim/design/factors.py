"""Factors are the parts of a term: a column of numbers or of levels, or an expression."""

import ast
import functools
import re
from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.design import columns, expressions
from lodim.design.column_kernels import ALL_ROWS
from lodim.design.expressions import tree
from lodim.design.frame import FEW_LEVELS, check_text
from lodim.errors import DataError
from lodim.formula import language, patsy_terms
from lodim.formula.formula import quote

TRUTH = (False, True)  # levels of a condition such as I(x > 0)
CURE = (
    "; to treat it as missing, replace it by NaN, or give new_levels='missing' (to predict(), "
    "augment() or evaluate() of a fit, or to an estimator of lodim.sklearn)"
)
IDENTIFIER = re.compile(
    r"(^|[\W_])(id|idx|index|key|no|nr|number|row|serial)$|^(id|row|unnamed)[\W_]|[a-z]I[Dd]$"
    r"|(^|[\W_])(case|customer|patient|person|record|row|sample|subject|user)(id|no|nr)?$"
)
UNIQUE = 0.9  # smallest share of distinct values of an identifier
NO_CURE = "; a new level of a computed value cannot count as missing: make it a column of the data"


@forms.record
class Numeric:
    """Part of a term that is a column of numbers, unchanged."""

    name: str = forms.text()


@forms.record
class Levels:
    """Coding of a column's levels, or of a call of C() or I(), as numeric features."""

    # Two levels make one 0/1 column; three or more make one column each, or, with
    # `reference_levels=True`, one for each level but the first.

    # name, called: name of the column; or, if `called` is true, text of a call such as C(x, Sum)
    name: str = forms.text()
    called: bool = forms.flags()
    levels: tuple = forms.several("levels", forms.plain())
    # names of the feature columns that the factor makes, often the levels
    labels: tuple[str, ...] = forms.several("labels")
    # contrasts, row i with the column values of level i; None for 0/1 columns
    matrix: np.ndarray | None = forms.optional(forms.real("levels", "labels"))
    # declared categories without training rows; in new rows they count as missing
    unseen: tuple = forms.several(None, forms.plain())
    # label of a last column, which marks missing values; or None
    missing: str | None = forms.optional(forms.text())
    # (n_levels,) frequency of each level in training, used for missing values; or None
    shares: np.ndarray | None = forms.optional(forms.real("levels", least=0, most=1))

    @classmethod
    def from_levels(cls, name, called, levels, labels, matrix=None):
        """Return Levels, the coding of a column's levels, without a feature for missing values.

        name : data column, or text of a call such as "C(x, Sum)"
        called : whether `name` is a call
        labels : tuple of the names of the features
        matrix : contrasts (level, feature), None for 0/1 features"""
        return cls(name, called, levels, labels, matrix, (), None, None)

    def _check_fields(self):
        columns_of((None if self.called else self.name, self.name if self.called else None))
        check_levels(self.levels, self.name, least=1)
        check_levels(self.unseen, self.name, least=0)
        shown = tuple(map(str, self.levels))
        if self.matrix is None and self.labels not in (shown, shown[1:]):
            raise ValueError(f"{self.name} has labels {self.labels}")
        if self.called and language.function_name(tree(self.name).func) not in ("C", "I"):
            raise ValueError(f"{self.name} makes no levels")


@forms.record
class Missing:
    """Part of a term (a factor): a column that is 1 where a data column is missing, else 0."""

    name: str = forms.text()


def _read_learnt(value, _where, _sizes):
    """Check `value`, the pair (function name, dict of knots etc.) of a call; return a copy."""
    name, learnt = value
    patsy_terms.check(name, learnt)
    return name, dict(learnt)


LEARNT = forms.Form(_read_learnt, list)


@forms.record
class Expression:
    """Factor of a formula that is a call such as bs(x), with its learned states.

    name : text of the call
    states : tuple of (function name, dict of knots etc.), one per call such as bs(x)"""

    name: str = forms.text()
    width: int = forms.whole(least=1)
    states: tuple = forms.several(None, LEARNT)

    def _check_fields(self):
        columns_of((None, self.name))
        expressions.check_states(self.name, self.width, self.states)


KINDS = (Numeric, Levels, Expression, Missing)


@functools.lru_cache(5000)
def columns_of(key):
    """Return the names of a factor's columns; key : (column, None) or (None, text of a call)."""
    name, code = key
    if code is None:
        return (name,)
    return tuple(language.column_name(node) for node in language.column_nodes(tree(code)))


def learn(key, summaries, table, missing, polynomials=False):
    """Learn to code a part of a term, such as a in a:b; return a Numeric, Levels or Expression.

    key : (column, None), or (None, text of a call such as "bs(x)")
    summaries : dict column or key -> Summary
    table : Table of the training rows
    missing : "drop", "keep" or "indicator"
    polynomials : whether to code ordered categories as polynomials"""
    name, code = key
    source = name if code is None else column_in(code)
    if code is not None and not is_category(code):
        called = language.function_name(tree(code).func)
        if called != "I" or source is None or not holds_bools(summaries[source].column):
            return learn_expression(code, table)
    if code is not None and language.is_condition(tree(code).args[0]):
        return _categorical(code, code, TRUTH)
    # A category of an expression has a Summary of its own.
    found = summaries[key if source is None else source]
    if found.column.kind == "date":
        name = found.column.name
        raise DataError(f"column {name!r} has dates: {columns.date_advice(name)}")
    if missing == "keep" and not found.n_known:
        columns.raise_unknown([found.column.name], found.n_missing == found.n)
    if code is None and found.column.kind == "number":
        return Numeric(name)
    levels = found.used_levels
    if code is not None:
        return _with_missing(_categorical(code, found.column.name, levels), found, missing)
    check_text(found.column, levels, found.n - found.n_missing * (missing == "keep"))
    if names_rows(found):
        cure = f"leave it out with '- {quote(name)}', or write C({quote(name)}) to use its levels"
        raise DataError(f"{row_names(found)}; {cure}")
    factor = Levels.from_levels(name, False, levels, _shown(levels))
    ordered = _in_order(factor, polynomials) if found.column.ordered else factor
    return _with_missing(ordered, found, missing)


def names_rows(summary):
    """Return whether a column, given its Summary, seems to name rows: most have their own level.

    The result is False for numbers, declared categories and columns of few levels."""
    column = summary.column
    if column.kind != "level" or column.declared or len(summary.levels) <= FEW_LEVELS:
        return False
    return 2 * np.count_nonzero(summary.counts == 1) > summary.counts.sum()


def row_names(summary):
    """Return a message that a column, described by its Summary, seems to have names of rows."""
    own, n = np.count_nonzero(summary.counts == 1), summary.counts.sum()
    why = f"{own:,} of {n:,} rows have a level that no other row has"
    return f"column {summary.column.name!r} seems to be row names: {why}"


def is_called_identifier(name):
    """Return whether a column has a name such as id, row_number or patientID."""
    return bool(IDENTIFIER.search(name) or IDENTIFIER.search(name.lower()))


def identifies(x):
    """Return whether the values x (n,), without NaN, are whole numbers that hardly ever repeat."""
    whole = len(x) > 0 and (x == np.rint(x)).all()
    return bool(whole and len(np.unique(x)) >= UNIQUE * len(x))


def learn_expression(code, table):
    """Return the Expression factor of `code`, such as "bs(x)", with knots learned from a Table."""
    if not remembers(code):
        return Expression(code, 1, ())
    known = columns.rows_to_learn(table, columns_of((None, code)))[0]
    return Expression(code, *expressions.learn(code, known))


def remembers(code):
    """Return whether the text `code` of a call uses a function that learns from rows: bs() etc."""
    return any(name in patsy_terms.TRANSFORMS for name in language.functions(tree(code)))


def is_category(code):
    """Return whether the call in the text `code` gives categories: C(), or I() of a condition."""
    node = tree(code)
    return language.function_name(node.func) == "C" or language.is_condition(node)


def holds_bools(column):
    return bool(column.levels) and all(isinstance(level, bool) for level in column.levels)


def column_in(code):
    """Return the column name x if the text `code` is C(x) or I(x), else None."""
    return language.column_name(tree(code).args[0])


def is_counted(code):
    """Return whether `code` is a call such as C(np.floor(x)), whose levels must be computed."""
    computed = is_category(code) and column_in(code) is None
    return computed and not language.is_condition(tree(code).args[0])


def is_computed_condition(factor):
    """Return whether a factor (part of a term) is a condition such as I(x > 0)."""
    called = isinstance(factor, Levels) and factor.called
    return called and language.is_condition(tree(factor.name).args[0])


def labels(factor):
    """Return the names of the columns that a factor (part of a term) makes."""
    if isinstance(factor, Levels):
        own = () if factor.missing is None else (factor.missing,)
        return tuple(f"{factor.name}[{label}]" for label in (*factor.labels, *own))
    if isinstance(factor, Missing):
        return (title(factor),)
    if isinstance(factor, Expression) and factor.width > 1:
        return tuple(f"{factor.name}[{j}]" for j in range(factor.width))
    return (factor.name,)


def title(factor):
    """Return a factor's name, as used in the names of terms."""
    return f"{factor.name}[missing]" if isinstance(factor, Missing) else factor.name


def width(factor):
    """Return the number of columns that a factor (part of a term) makes."""
    if isinstance(factor, Levels):
        return len(factor.labels) + (factor.missing is not None)
    return factor.width if isinstance(factor, Expression) else 1


def letters(factor):
    """Return about how many characters the longest name of a factor's columns has."""
    shown = max(map(len, factor.labels), default=0) if isinstance(factor, Levels) else 0
    return shown + len(factor.name)


def least_width(key):
    """Return the least number of features that a part of a term can make, whatever the data.

    key : (column, None), or (None, text of a call such as "bs(x, df=5)")"""
    return 1 if key[1] is None else language.width(tree(key[1]))


def needs(factor):
    """Return the names of the data columns that a factor (part of a term) reads."""
    if isinstance(factor, Numeric | Missing):
        return (factor.name,)
    called = isinstance(factor, Expression) or factor.called
    return columns_of((None, factor.name) if called else (factor.name, None))


def prepare(factor, table):
    """Return a factor's values in a Table: numbers (n,) or (n, width), or codes of levels (n,)."""
    if isinstance(factor, Numeric):
        return columns.as_float(columns.take(raw_numbers(factor, table), table.rows))
    if isinstance(factor, Missing):
        return columns.is_missing(table.columns[factor.name], table.rows).astype(float)
    if isinstance(factor, Expression):
        return expressions.evaluate(factor.name, tree(factor.name), table, factor.states)
    name = column_with_levels(factor)
    if name is not None:
        return columns.recode(table.columns[name], factor.levels, table.rows, CURE)
    node = tree(factor.name).args[0]
    values = expressions.evaluate(factor.name, node, table)[:, 0]
    return columns.recode(as_column(factor.name, node, values), factor.levels, ALL_ROWS, NO_CURE)


def column(factor, prepared, j):
    """Return column j (n,) of a factor; prepared : what prepare() returned for the rows."""
    if isinstance(factor, Numeric | Missing):
        return prepared
    if isinstance(factor, Expression):
        return prepared[:, j]
    if j == len(factor.labels):
        return (prepared < 0).astype(float)
    if factor.matrix is None:
        values = (prepared == level_of(factor, j)).astype(float)
    else:
        values = factor.matrix[prepared, j]
    if factor.matrix is not None or factor.shares is not None:
        values[prepared < 0] = of_missing(factor, j)
    return values


def level_of(factor, j):
    """Return the position of the level that the 0/1 column j of a Levels factor stands for."""
    return j + len(factor.levels) - len(factor.labels)


def of_missing(factor, j):
    """Return a factor's value in column j for a missing level: the training mean, or 0."""
    if factor.missing is not None or factor.shares is None:
        return 0.0
    if factor.matrix is None:
        return factor.shares[level_of(factor, j)]
    return factor.shares @ factor.matrix[:, j]


def against_reference(factor, reduced):
    """Return a factor with its levels as 0/1 columns, without the first level's if `reduced`."""
    if not isinstance(factor, Levels) or (reduced and factor.matrix is not None):
        return factor
    labels = tuple(map(str, factor.levels))
    varies = len(labels) > 1 or factor.missing is not None
    return replace(factor, labels=labels[reduced and varies :], matrix=None)


def _in_order(factor, polynomials):
    """Recode an ordered Levels factor so that its columns depend on the order; return the new one.

    polynomials : whether to use orthogonal polynomials instead of thresholds (">=medium")"""
    levels = factor.levels
    if len(levels) < 2:
        return factor
    if polynomials:
        matrix, suffixes = patsy_terms.contrast(factor.name, ast.Name("Poly"), levels)
        return replace(factor, labels=tuple(suffixes), matrix=matrix)
    labels = factor.labels if len(levels) == 2 else tuple(f">={level}" for level in levels[1:])
    return replace(factor, labels=labels, matrix=np.tri(len(levels), len(levels) - 1, -1))


def _shown(levels):
    return tuple(str(level) for level in (levels[1:] if len(levels) == 2 else levels))


def raw_numbers(factor, table):
    """Return a Numeric factor's column in all rows, as numbers with the dtype of the data."""
    source = table.complete(factor.name)
    shown = "dates" if source.kind == "date" else None
    if source.kind == "level":
        shown = repr(next((v for v in source.levels if not _is_number(v)), source.levels[0]))
    if shown:
        what = f"column {source.name!r} must have numbers, as in training"
        raise DataError(f"{what}; here it has {shown}")
    return source.values


def _is_number(value):
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _categorical(code, name, used):
    """Return the Levels factor of a call of C() or I() in a formula.

    code : text of the call
    name : name of the column in errors
    used : tuple of the levels that occur in the rows"""
    node = tree(code)
    keywords = {word.arg: word.value for word in node.keywords}
    contrast = node.args[1] if len(node.args) > 1 else keywords.get("contrast")
    levels = used
    if "levels" in keywords:
        levels = tuple(ast.literal_eval(keywords["levels"]))
        if len(set(levels)) < len(levels):
            raise DataError(f"{code:.200}: levels= must not have a level twice")
        for level in used:
            if level not in levels:
                columns.raise_unknown_level(name, level, levels)
    if contrast is None or len(levels) == 1:
        return Levels.from_levels(code, True, levels, _shown(levels))
    matrix, suffixes = patsy_terms.contrast(code, contrast, levels)
    return Levels.from_levels(code, True, levels, tuple(suffixes), matrix)


def _with_missing(factor, summary, missing):
    """Return a Levels factor with rules for missing values.

    summary : Summary (statistics) of the column in training rows
    missing : "drop", "keep" or "indicator", for features"""
    # Declared categories without training rows count as missing.
    declared = summary.levels if summary.column.declared else ()
    factor = replace(factor, unseen=tuple(v for v in declared if v not in factor.levels))
    if missing != "indicator":
        return factor
    # Missing values get a column of their own; without them in training, frequencies of levels.
    if summary.n_gaps:
        label = "missing"
        while label in factor.labels or label in map(str, factor.levels):
            label += "_"
        return replace(factor, missing=label)
    known = dict(zip(summary.levels, summary.mass.tolist(), strict=True))
    mass = np.array([known.get(level, 0.0) for level in factor.levels])
    return replace(factor, shares=mass / mass.sum())


def column_with_levels(factor):
    """Return the name of the data column whose levels a factor uses, or None."""
    if not isinstance(factor, Levels):
        return None
    return language.column_name(tree(factor.name).args[0]) if factor.called else factor.name


def read_as_numbers(parts):
    """Return the set of the data columns that factors (parts of terms) read as numbers."""
    number = [p for p in parts if isinstance(p, Numeric | Expression) or is_computed_condition(p)]
    return {name for part in number for name in needs(part)}


def as_column(name, node, values):
    """Return values (n,) as a Column, with levels False and True if `node` is a condition."""
    if language.is_condition(node):
        return columns.Column(name, "level", None, values.astype(np.int8), TRUTH)
    return columns.Column(name, "number", values)


def check_levels(levels, name, least):
    if any(isinstance(level, int) and not -(2**63) <= level < 2**63 for level in levels):
        raise ValueError(f"{name} has a level that is beyond the whole numbers of arrays")
    if len(set(levels)) < max(len(levels), least):
        raise ValueError(f"{name} has a level twice, or fewer than {least}")
