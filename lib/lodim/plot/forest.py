"""Estimates by name, each with its interval."""

import numpy as np

from lodim.plot.axes import BLUE, LONGEST, ensure_axes, tidy
from lodim.text import shorten


def forest(names, values, low, high, xlabel, ax=None):
    """A point and a line from low to high for each name, the first on top."""
    ax = ensure_axes(ax, (7.0, 1.0 + 0.28 * max(len(names), 8)))
    place = np.arange(len(names))[::-1]
    ax.hlines(place, low, high, color=BLUE, lw=1.5)
    ax.plot(values, place, "o", color=BLUE, ms=5)
    ax.axvline(0.0, color="black", lw=0.5)
    ax.set_yticks(place, shorten(names, LONGEST))
    ax.set_xlabel(xlabel)
    return tidy(ax)
