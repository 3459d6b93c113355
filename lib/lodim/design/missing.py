"""What stands where a column is missing: the training mean, or a level of its own."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.design import factors
from lodim.design.column_kernels import NO_WEIGHTS, moments, read_only
from lodim.design.columns import Column, as_float, take
from lodim.design.table import is_missing
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
    """The Fill of each column, in order.

    Raises
    ------
    DataError
        A column is missing in every row that counts.
    """
    weights = np.ones(table.n) if table.weights is None else table.weights
    return tuple(_learn(table.columns[name], table.rows, weights) for name in names)


def _learn(column, rows, weights):
    missing = is_missing(column, rows) & (weights > 0)
    known = ~missing & (weights > 0)
    if not known.any():
        raise DataError(
            f"column {column.name!r} is missing in every row; leave it out with "
            f"'- {quote(column.name)}'"
        )
    if column.kind == "level":
        counts = np.bincount(take(column.codes, rows)[known], weights[known])
        return Fill(column.name, column.levels[int(counts.argmax())], int(missing.sum()))
    at = np.flatnonzero(known)
    at = at if not rows.size else rows[at]
    some = weights[known] / weights.max()
    even = NO_WEIGHTS if some.min() == 1.0 else some
    mean = moments(read_only(as_float(column.values)), read_only(at), read_only(even))[0]
    return Fill(column.name, float(mean), int(missing.sum()))


def filled(table, fills):
    """The table with the gaps of its columns filled."""
    gaps = {f.name: _fill(table.columns[f.name], f.value) for f in fills if _has_gap(table, f.name)}
    return replace(table, filled=gaps)


def _has_gap(table, name):
    column = table.columns[name]
    number = column.kind == "number" and column.values.dtype.kind in "iu"
    return not number and bool(is_missing(column, table.rows).any())


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
