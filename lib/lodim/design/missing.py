"""What stands where a column is missing: the training mean, or a level of its own."""

from dataclasses import replace

import numpy as np

from lodim import forms
from lodim.design import factors
from lodim.design.columns import Column, as_float
from lodim.design.table import has_gaps
from lodim.errors import DataError
from lodim.formula.formula import quote

LARGEST = 1e160  # of a mean in a file: no larger number has a square


@forms.record
class Fill:
    """What stands for the missing values of a column.

    value : weighted mean of the training rows; of a category its most frequent level, which stands
        inside of functions alone: elsewhere a missing one is a level of its own
    n_missing : number of training rows of positive weight where it is missing
    """

    name: str = forms.text()
    value: str | bool | int | float = forms.plain()
    n_missing: int = forms.whole()

    def _check_fields(self):
        """Raise a ValueError unless a mean has a square."""
        if isinstance(self.value, float) and not abs(self.value) <= LARGEST:
            raise ValueError(f"mean of {self.name} is {self.value}")


def learn_fills(facts):
    """The Fill of each column, in the order of their facts.

    Raises
    ------
    DataError
        A column is missing in every row that counts.
    """
    return tuple(_learn(found) for found in facts)


def _learn(facts):
    column = facts.column
    if not facts.n_known:
        raise DataError(
            f"column {column.name!r} is missing in every row that counts; leave it out with "
            f"'- {quote(column.name)}'"
        )
    # Of levels the one of the most weight, the first of several.
    value = facts.levels[int(facts.mass.argmax())] if column.kind == "level" else facts.moments[1]
    return Fill(column.name, value if column.kind == "level" else float(value), facts.n_gaps)


def filled(table, fills):
    """The table with the gaps of its columns filled."""
    gaps = [f for f in fills if f.name in table.columns and has_gaps(table, f.name)]
    columns = {f.name: _fill(table.columns[f.name], f.value) for f in gaps}
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
        kind = "number" if column.kind == "empty" else column.kind
        return replace(column, kind=kind, values=np.where(np.isnan(values), value, values))
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
