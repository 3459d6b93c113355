"""HTML report pages; a `Picture` describes a chart: a table, and the columns that it shows."""

from dataclasses import dataclass

import pandas as pd

MOST_NAMES = 30  # largest number of bars or intervals in a picture


def not_drawn(frame, most):
    """Return a sentence that only the `most` largest rows of a table are drawn; "" if all are."""
    return f" The {most} largest of {len(frame)}." if len(frame) > most else ""


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a page: a frame of numbers, and how a browser draws its columns."""

    title: str
    mark: str  # "bars", "points", "lines", "intervals" or "cells"
    frame: pd.DataFrame  # one row per drawn mark
    x: str  # columns on the axes: x, y
    y: str
    note: str = ""  # text above the picture
    color: str = ""  # column of numbers or names
    low: str = ""  # columns with the ends of intervals: low, high
    high: str = ""
    hover: tuple[str, ...] = ()  # further columns in the tooltip
    reference: float | str | None = None  # y of a line; "x": the line y = x
    logarithmic: bool = False  # whether the x axis is
    scale: tuple[float, float] | None = None  # ends of the y axis, if pictures share them
    rug: tuple[float, ...] = ()  # x of tick marks at the bottom
