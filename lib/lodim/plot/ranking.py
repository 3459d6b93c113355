"""Loadings of features by rank."""

import numpy as np

from lodim.plot.axes import BESIDE, colour, ensure_axes, tidy
from lodim.plot.legend import INK, mark
from lodim.report.phrases import brief

LONGEST = 36  # characters of a name


def lollipops(names, values, labels, xlabel, ax=None):
    """Values (m, k) of m features, a mark for each dimension, the first name on top."""
    k = values.shape[1]
    ax = ensure_axes(ax, (7.0, max(2.5, (0.2 + 0.13 * k) * len(names) + 1.2)))
    y = np.arange(len(names))[::-1]
    for j in range(k):
        height = y + 0.22 * (0.5 * (k - 1) - j)
        ax.hlines(height, 0.0, values[:, j], color=colour(j), lw=1.4, alpha=0.6)
        ax.scatter(
            values[:, j], height, s=26, color=colour(j), marker=mark(j), label=labels[j], zorder=3
        )
    ax.axvline(0.0, color=INK, lw=0.6)
    ax.set_yticks(y, brief(names, LONGEST))
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel(xlabel)
    if k > 1:
        ax.legend(**BESIDE)
    return tidy(ax)
