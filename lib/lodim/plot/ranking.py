"""Values by rank: the ends of many searches, and loadings of features."""

import numpy as np

from lodim.plot.axes import BESIDE, BLUE, GREY, colour, ensure_axes, tidy
from lodim.plot.legend import INK, mark
from lodim.report.phrases import brief

LONGEST = 36  # characters of a name


def ends_of_starts(kind, divergence, near, ax=None):
    """The divergence that each start ended in, in decreasing order, by kind of start."""
    ax = ensure_axes(ax, (7.0, 4.0))
    place = np.arange(1, len(divergence) + 1)
    for j, name in enumerate(dict.fromkeys(kind)):
        rows = np.array([k == name for k in kind])
        style = {"s": 42, "color": colour(j), "marker": mark(j), "edgecolor": "white"}
        label = str(name)
        ax.scatter(place[rows], divergence[rows], linewidths=0.5, label=label, zorder=3, **style)
    ax.axhline(divergence[0], color=BLUE, lw=0.8, ls="--", zorder=1)
    if near is not None:
        ax.axhspan(near, divergence[0], color=BLUE, alpha=0.08, lw=0, zorder=0)
        style = {"xytext": (-3, 3), "textcoords": "offset points", "fontsize": 8, "color": GREY}
        at = {"xy": (1.0, near), "xycoords": ax.get_yaxis_transform(), "ha": "right"}
        ax.annotate("within 5 % of the largest", **at, **style)
    ax.set_xlabel("start, the best first")
    ax.set_ylabel("divergence reached")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(**BESIDE)
    return tidy(ax)


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
