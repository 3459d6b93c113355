"""What the plot of stability selection shows."""

import numpy as np

from lodim.checks import whole
from lodim.plot.axes import BESIDE, BLUE, GREY, ensure_axes, of_all, tidy
from lodim.plot.lettering import literal
from lodim.text import shorten

LONGEST = 36  # characters of a term's name


@literal
def shares(stability, ax=None, top=30):
    """Share of the halves that select each term, those selected most often on top."""
    frame = stability.frame.head(whole("top", top))
    place, share = np.arange(len(frame))[::-1], frame["share"].to_numpy()
    ax = ensure_axes(ax, (7.0, max(2.5, 0.28 * len(frame) + 1.4)))
    stable = frame["stable"].to_numpy()
    for on, color, label in ((stable, BLUE, "stable"), (~stable, GREY, "not stable")):
        ax.hlines(place[on], 0.0, share[on], color=color, lw=1.4, alpha=0.7)
        ax.scatter(share[on], place[on], s=30, color=color, label=label, zorder=3, clip_on=False)
    ax.axvline(stability.cutoff, color="black", lw=0.8, ls="--")
    ax.set_yticks(place, shorten(frame["term"], LONGEST))
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-0.6, len(frame) - 0.4)
    ax.set_xlabel(
        f"share of {2 * stability.n} halves of the rows that select it"
        + of_all(len(frame), len(stability.frame))
    )
    ax.set_title(f"dashed: cutoff {stability.cutoff:g}", fontsize=9)
    ax.legend(**BESIDE)
    return tidy(ax)
