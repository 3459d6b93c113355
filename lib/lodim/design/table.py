"""Columns that terms are evaluated on, and which of their rows are known."""

from dataclasses import dataclass, field, replace

import numpy as np

from lodim.design.column_kernels import ALL, read_only
from lodim.design.columns import as_float, take
from lodim.errors import DataError


@dataclass
class Table:
    """Columns to evaluate on: `rows` of each, all where empty; `index` labels the data's rows.

    ``positive_weight`` (n,) bool masks the rows that may teach (weight above zero); None means all.
    ``weights`` (n,) are those of the rows, None where they are one, in `learn` alone;
    ``weight_unit`` is what they are divided by before they are summed.
    ``missing`` says what is done where a feature is missing (see `Design`), and ``filled`` holds
    the columns whose gaps are filled, for what needs a value in each row. ``complete_columns`` are
    names of columns that miss nothing.
    """

    columns: dict
    rows: np.ndarray
    index: object
    n: int
    positive_weight: np.ndarray | None = None
    missing: str = "drop"
    weights: np.ndarray | None = None
    filled: dict = field(default_factory=dict)
    complete_columns: frozenset = frozenset()
    weight_unit: float = 1.0

    def complete(self, name):
        """A column, its gaps filled where they are."""
        return self.filled.get(name) or self.columns[name]


def known_rows(table, names):
    """The part of a table where none of some columns is missing, and where its rows stand.

    Returns
    -------
    Table, where
        Positions among the table's rows, (n_known,) int64; empty where all are known, as they
        always are unless the table keeps rows with missing values.
    """
    if table.missing != "keep" or not table.n:
        return table, ALL
    bad = np.zeros(table.n, bool)
    for name in names:
        bad |= is_missing(table.columns[name], table.rows)
    if not bad.any():
        return table, ALL
    where = np.flatnonzero(~bad)
    rows = where if not table.rows.size else table.rows[where]
    positive_weight = None if table.positive_weight is None else table.positive_weight[where]
    return replace(
        table, rows=read_only(rows), n=len(where), positive_weight=positive_weight
    ), where


def rows_to_learn(table, names):
    """As `known_rows`, where something is to be learnt: a DataError if no known row counts."""
    part, where = known_rows(table, names)
    if part.n and (part.positive_weight is None or part.positive_weight.any()):
        return part, where
    gone = [name for name in names if is_missing(table.columns[name], table.rows).all()]
    raise_unknown(gone[:1] or names, bool(gone))


def raise_unknown(names, everywhere):
    """Say that nothing can be learnt of columns: missing `everywhere`, or in all that counts."""
    if everywhere:
        raise DataError(f"column {names[0]!r} is missing in every row")
    raise DataError(f"no row that counts has {' and '.join(map(repr, names))}")


def expand_rows(values, where, n):
    """Values of the known rows among n, NaN elsewhere; as they are where all are known."""
    if where is ALL:
        return values
    full = np.full(n, np.nan)
    full[where] = values
    return full


def has_gaps(table, name):
    """Whether a column is missing in some of the table's rows."""
    if name in table.complete_columns:
        return False
    return bool(is_missing(table.columns[name], table.rows).any())


def is_missing(column, rows):
    """Where a column is missing, (n,) bool."""
    if column.kind == "level":
        return take(column.codes, rows) < 0
    if column.values.dtype.kind in "iu":
        return np.zeros(len(rows) or len(column.values), bool)
    return np.isnan(as_float(take(column.values, rows)))
