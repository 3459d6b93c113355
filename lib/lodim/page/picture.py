"""A picture as a record: a frame of numbers, and how its columns are drawn."""

from dataclasses import dataclass

import pandas as pd

MOST_NAMES = 30  # largest number of bars or intervals in a picture


def not_drawn(frame, most):
    """Return a sentence on how many rows of a table a picture shows; "" if it shows all.

    most : largest number of rows that are shown"""
    return f" The {most} largest of {len(frame)}." if len(frame) > most else ""


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a page.

    title, note : texts above the picture
    mark : 'bars' (one number per name), 'points', 'lines' (in order of x, one line per colour),
        'intervals' (an estimate per name, between `low` and `high`), 'cells' (a number, the
        `color`, per pair of names)
    frame : one row per drawn mark
    x, y : names of the columns on the axes
    color : name of a column of numbers or names; "" for none
    low, high : names of the columns with the ends of intervals
    hover : names of additional columns in the tooltip
    reference : value of y at which a line is drawn; "x" means the line where y equals x
    logarithmic : whether the x axis is logarithmic
    scale : ends of the y axis, if pictures share them
    rug : values of x that are drawn as tick marks at the bottom
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
