"""Plot of the differences in held-out deviance between compared models."""

import numpy as np

from lodim.design.frame import in_pandas
from lodim.plot.axes import BLUE, GREY, listed, tidy
from lodim.plot.legend import INK
from lodim.plot.lettering import literal
from lodim.report.numbers import significant
from lodim.text import shorten

FAR = 2.0  # multiple of the interval ends; larger differences are written, not drawn
LONGEST = 36  # largest number of characters of a label


@literal
def differences(comparison, ax=None):
    """Draw differences in held-out deviance from the best model; very large ones as numbers."""
    frame = in_pandas(comparison.tidy)().dropna(subset=["deviance"])
    ax, y = listed(ax, shorten(frame["model"], LONGEST), 0.42, 1.3, least=2.2)
    center, high = frame["difference"].to_numpy(), frame["conf_high"].to_numpy()
    half, near = high - center, np.ones(len(center), bool)  # near: drawn to scale
    for k in range((len(center) + 1) // 2, len(center)):
        if center[k] > FAR * high[:k].max():
            near[k:] = False
            break
    apart = ~frame["model"].isin(comparison.not_significantly_worse).to_numpy()
    kinds = (~apart, BLUE, "no significant difference"), (apart, GREY, "significantly worse")
    for on, color, label in kinds:
        at = on & near
        style = {"fmt": "o", "ms": 6, "lw": 1.2, "capsize": 3, "color": color}
        if at.any():
            ax.errorbar(center[at], y[at], xerr=half[at], label=label, **style)
    ax.axvline(0.0, color=INK, lw=0.6)
    ax.set_xlim(right=1.08 * max(high[near].max(), 1e-12))
    right = ax.get_xlim()[1]
    for k in np.flatnonzero(~near):
        text = f"+{significant(center[k], 3)}"
        color = GREY if apart[k] else BLUE
        style = {"ha": "right", "va": "center", "fontsize": 8, "color": color}
        place = {"xytext": (-8, 0), "textcoords": "offset points"}
        ax.annotate(text, (right, y[k]), **place, **style)
        ax.plot(right, y[k], marker=">", color=color, ms=6, clip_on=False)

    ax.set_ylim(-0.6, len(frame) - 0.4)
    ax.set_xlabel("held-out deviance minus that of the best model, 95% intervals for all pairs")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return tidy(ax)
