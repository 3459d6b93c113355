"""The columns that a fit reads, as a reader may set them: their ranges, levels, typical values."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.design import factors
from lodim.design.columns import as_float, read_column, read_frame

SPREAD = 2.0  # standard deviations around the mean, where no data say how far a column goes


@dataclass(frozen=True)
class Input:
    """A column of the data.

    levels : those of a category, else None; low, high : ends of the range of a number; typical :
    median of a number, most frequent level; whole : whether a number is whole by its type
    """

    name: str
    typical: str | bool | int | float
    levels: tuple | None = None
    low: float = 0.0
    high: float = 0.0
    whole: bool = False


def from_data(design, data):
    """An Input for each column of the right side, as it is in some data."""
    frame = read_frame(data)
    return [_from_column(read_column(frame, name)) for name in design.features]


def _from_column(column):
    if column.kind == "level":
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
        return Input(column.name, column.levels[int(counts.argmax())], column.levels)
    values = as_float(column.values) if column.kind == "number" else np.array([np.nan])
    known = values[~np.isnan(values)]
    if not known.size:
        return Input(column.name, np.nan)
    typical = float(np.median(known))
    if column.whole:
        typical = float(round(typical))
    return Input(column.name, typical, None, float(known.min()), float(known.max()), column.whole)


def from_design(design):
    """An Input for each column of the right side, as far as the design knows it, else None.

    A number goes from its mean SPREAD standard deviations to either side; the first level of a
    category is its typical one.
    """
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
    return [found[n] for n in design.features] if found.keys() >= {*design.features} else None


def grid(column, n=41):
    """Values of an Input to look at: its levels, or n from one end to the other."""
    if column.levels is not None:
        return list(column.levels)
    if column.whole and column.high - column.low < n:
        return list(np.arange(column.low, column.high + 1.0))
    return list(np.linspace(column.low, column.high, n))


def rows_at(base, column, values):
    """The rows of a frame repeated for each value, with that in a column; len(values) blocks."""
    repeated = pd.concat([base] * len(values), ignore_index=True)
    level = column.levels is not None
    new = pd.Series(np.repeat(np.array(values, dtype=object if level else float), len(base)))
    return repeated.assign(**{column.name: new})
