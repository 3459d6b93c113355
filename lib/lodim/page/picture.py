"""A picture as a record: a frame of numbers, and how its columns are drawn."""

from dataclasses import dataclass

import pandas as pd

MOST_NAMES = 30  # of the bars and intervals of a picture


def not_drawn(frame, most):
    """Return a sentence that says how many rows of a table, in order of size, a picture shows."""
    return f" The {most} largest of {len(frame)}." if len(frame) > most else ""


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a page.

    title, note : texts above it
    mark : 'bars' (a number for each name), 'points', 'lines' (in order of x, one for each colour),
        'intervals' (an estimate for each name, between `low` and `high`), 'cells' (a number, the
        `color`, for each pair of names)
    frame : a row for each thing that is drawn
    x, y : names of its columns
    color : name of a column, numbers or names; "" for none
    low, high : names of the columns with the ends of intervals
    hover : names of further columns that are shown at the pointer
    reference : a value of y at which a line is drawn; "x" is the line where y is x
    logarithmic : whether x is drawn so
    scale : ends of the axis of y, where pictures share it
    rug : values of x that stand as ticks at the bottom
    """

    title: str
    mark: str
    frame: pd.DataFrame
    x: str
    y: str
    note: str = ""
    color: str = ""
    low: str = ""
    high: str = ""
    hover: tuple[str, ...] = ()
    reference: float | str | None = None
    logarithmic: bool = False
    scale: tuple[float, float] | None = None
    rug: tuple[float, ...] = ()
