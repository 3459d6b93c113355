"""The columns that a fit reads, as inputs of a page: ranges, levels, typical values."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.design import columns, factors
from lodim.design.chunks import frame_of
from lodim.design.columns import as_float, as_levels
from lodim.design.frame import read_column, read_frame

QUANTILES = np.arange(0.05, 1.0, 0.05)  # shares of the quantiles that are shown for a number
GRID = 41  # number of values of a number at which effects are drawn
SPREAD = 2.0  # half-width of a range in standard deviations, if no data are given


@dataclass(frozen=True)
class Input:
    """A column of the data that a reader of a page can set, to get a prediction."""

    name: str
    typical: str | bool | int | float  # median of a number, or most frequent level
    levels: tuple | None = None  # of a category
    low: float = 0.0  # ends of a number's range: low, high
    high: float = 0.0
    whole: bool = False  # whether numbers are integers, or only 0 and 1
    dates: bool = False  # whether numbers are days since 1970-01-01
    quantiles: tuple[float, ...] = ()  # of a number with more than two distinct values


def columns_of(design):
    """Return names of columns that predictions need: the formula's right side, and the offset."""
    return list(dict.fromkeys([*design.features, *([design.offset] if design.offset else [])]))


def from_data(design, data):
    """Return a list with an Input (name, range, typical value) per column that predictions need."""
    known = {}  # column -> levels; () if a call such as C(np.floor(x)) makes them
    for part in itertools.chain.from_iterable(design.terms):
        if isinstance(part, factors.Levels) and not factors.is_computed_condition(part):
            name = factors.column_with_levels(part)
            for n in factors.needs(part):
                known.setdefault(n, () if name is None else part.levels)
    frame, found = read_frame(data), []
    for name in columns_of(design):
        column, levels = read_column(frame, name), known.get(name)
        is_date = column.kind == "date"
        if levels is not None or column.kind == "level":
            column = as_levels(column)
            counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
            frequent = dict(zip(column.levels, counts, strict=True))
            levels = levels or column.levels
            typical = max(levels, key=lambda v, n=frequent: n.get(v, 0))
            found.append(Input(name, typical, levels, dates=is_date))
            continue
        values = np.empty(0) if column.kind == "empty" else as_float(column.values)
        values = values[np.isfinite(values)]
        if not values.size:
            found.append(Input(name, np.nan))
            continue
        typical = float(np.median(values))
        whole = column.whole or bool(np.isin(values, (0.0, 1.0)).all())
        if whole:
            typical = float(round(typical))
        ends, several = (float(values.min()), float(values.max())), len(np.unique(values)) > 2
        cuts = tuple(np.quantile(values, QUANTILES).tolist()) if several else ()
        found.append(Input(name, typical, None, *ends, whole, is_date, cuts))
    return found


def from_design(design):
    """Return a list with an Input (name, range, typical value) per column that predictions need.

    Return None if there is an offset, or if a column occurs only in functions or products."""
    found = {}
    for k, t in enumerate(design.term_of):
        parts = design.terms[t]
        part = parts[0]
        if len(parts) > 1 or part.name in found:
            continue
        if isinstance(part, factors.Numeric):
            mean, spread = float(design.mean[k]), SPREAD * float(design.scale[k])
            found[part.name] = Input(part.name, mean, None, mean - spread, mean + spread)
        elif isinstance(part, factors.Levels) and not part.called:
            found[part.name] = Input(part.name, part.levels[0], part.levels)
    if design.offset_given or not found.keys() >= {*design.features}:
        return None
    return [found[name] for name in design.features]


def grid(column):
    """Return the values of an Input (column) at which effects are drawn: levels, or 41 numbers."""
    if column.levels is not None:
        return list(column.levels)
    if column.whole and column.high - column.low < GRID:
        return list(np.arange(column.low, column.high + 1.0))
    return list(np.linspace(column.low, column.high, GRID))


class Repeated:
    """Rows of a frame, which are read once and then repeated with other values of a column."""

    def __init__(self, rows):
        frame, self.n = read_frame(rows), len(rows)
        self.columns = {name: read_column(frame, name) for name in frame.names}
        self.held = {}  # number of repetitions -> columns

    def at(self, column, values):
        """Return a Frame with the rows once for each value, with the column set to this value."""
        times = len(values)
        if times not in self.held:
            rows = np.tile(np.arange(self.n), times)
            each = {name: columns.take(one, rows) for name, one in self.columns.items()}
            self.held = {times: each}
        kind = float if column.dates or column.levels is None else object
        new = np.repeat(np.array(values, dtype=kind), self.n)
        new = columns.to_moments(new) if column.dates else new
        new = read_column(read_frame({column.name: new}), column.name)
        return frame_of(self.held[times] | {column.name: new}, pd.RangeIndex(self.n * times))
