"""What stands where a column is missing: the training mean, or a level of its own."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.design import factors
from lodim.design.column_kernels import kernel_weights, moments, read_only
from lodim.design.columns import Column, as_float, take
from lodim.design.table import has_gaps, is_missing
from lodim.engine.blocks import each
from lodim.errors import DataError
from lodim.formula.formula import quote

LARGEST = 1e160  # of a mean in a file: no larger number has a square


@dataclass(frozen=True)
class Fill:
    """What stands for the missing values of a column.

    value : weighted mean of the training rows; of a category its most frequent level, which stands
        inside of functions alone: elsewhere a missing one is a level of its own
    n_missing : number of training rows of positive weight where it is missing
    """

    name: str
    value: str | bool | int | float
    n_missing: int

    def check(self):
        """Raise a ValueError unless the parts have their forms."""
        forms.check(self, {"name": forms.text, "n_missing": forms.whole(), "value": forms.plain})
        if isinstance(self.value, float):
            forms.real(least=-LARGEST, most=LARGEST)(self.value, f"mean of {self.name}", {})


def learn_fills(names, table):
    """The Fill of each column, in order; the table keeps the moments of numbers without gaps.

    Raises
    ------
    DataError
        A column is missing in every row that counts.
    """
    return tuple(each(lambda name: _learn(table, name), names, table.n * len(names)))


def _learn(table, name):
    column, rows, weights = table.columns[name], table.rows, table.weights
    if column.kind == "number" and not has_gaps(table, name):
        # Some row counts: weights that are all zero are refused.
        values = read_only(as_float(column.values))
        table.moments[name] = moments(values, rows, kernel_weights(weights))
        return Fill(name, float(table.moments[name][0]), 0)
    missing = is_missing(column, rows)
    counts = np.ones(len(missing), bool) if weights is None else weights > 0
    known = counts & ~missing
    if not known.any():
        raise DataError(
            f"column {column.name!r} is missing in every row that counts; leave it out with "
            f"'- {quote(column.name)}'"
        )
    if column.kind == "level":
        value = _most_frequent(column, rows, weights, known)
    else:
        value = _mean(column, rows, weights, known)
    return Fill(column.name, value, int((missing & counts).sum()))


def _most_frequent(column, rows, weights, known):
    """The level of the most weight among the known rows, the first of several."""
    mass = np.bincount(take(column.codes, rows)[known], None if weights is None else weights[known])
    return column.levels[int(mass.argmax())]


def _mean(column, rows, weights, known):
    """The weighted mean of the known rows."""
    mass = kernel_weights(None if weights is None else weights[known])
    values = read_only(as_float(column.values))
    return float(moments(values, read_only(_positions(rows, known)), mass)[0])


def _positions(rows, known):
    """Positions of the known rows, (n_known,) int64."""
    return rows[known] if rows.size else np.flatnonzero(known)


def filled(table, fills):
    """The table with the gaps of its columns filled."""
    gaps = {f.name for f in fills if has_gaps(table, f.name)}
    columns = {f.name: _fill(table.columns[f.name], f.value) for f in fills if f.name in gaps}
    return replace(table, filled=columns)


def _fill(column, value):
    """A column with a value where it is missing; as it is where that is of another kind."""
    number = isinstance(value, float)
    if column.kind == "level":
        if number:
            return column
        levels = column.levels if value in column.levels else (*column.levels, value)
        codes = np.where(column.codes < 0, levels.index(value), column.codes)
        return replace(column, codes=codes, levels=levels)
    if number:
        values = as_float(column.values)
        return replace(column, kind="number", values=np.where(np.isnan(values), value, values))
    if column.kind == "empty":
        return Column(
            column.name, "level", codes=np.zeros(len(column.values), int), levels=(value,)
        )
    return column


def indicators(terms, fills):
    """A term for each column that training had gaps in, unless a term has a level for them."""
    coded = (term[0] for term in terms if len(term) == 1)
    own = {factors.column_with_levels(part) for part in coded}
    gaps = [f.name for f in fills if f.n_missing and f.name not in own]
    return tuple((factors.Missing(name),) for name in gaps)
