"""Plots of learning curves."""

import numpy as np

from lodim.plot.axes import GREY, colour, ensure_axes, tidy
from lodim.plot.lettering import literal
from lodim.plot.lines import name_ends


@literal
def learning(frame, ax=None, *, measure):
    """Draw each run's mean measure in LearningCurves.tidy() by labelled rows, with SE bands."""
    ax = ensure_axes(ax)
    ends = {}
    for k, (name, part) in enumerate(frame.groupby("run", sort=False)):
        x, mean, se = (part[c].to_numpy() for c in ("n_labelled", "mean", "se"))
        ax.plot(x, mean, "o-", ms=3, lw=1.5, color=colour(k))
        if np.isfinite(se).all():
            ax.fill_between(x, mean - se, mean + se, color=colour(k), alpha=0.15, lw=0)
        ends[name] = (mean[-1], colour(k))
    ax.set_xlabel("labelled rows")
    ax.set_ylabel(f"{measure.replace('_', '-')} on the test rows")
    ax.xaxis.get_major_locator().set_params(integer=True)
    name_ends(ax, x[-1], ends)
    return tidy(ax)


@literal
def winloss(frame, ax=None, *, of, runs):
    """Draw -log10 p of run `of` against each other run, from wins(of); negative if it is worse."""
    ax = ensure_axes(ax)
    ends, x = {}, frame.index.to_numpy()
    for name in frame:
        color = colour(runs.index(name))
        ax.plot(x, frame[name], "o-", ms=3, lw=1.5, color=color)
        ends[f"against {name}"] = (frame[name].iloc[-1], color)
    limit = -np.log10(0.05)
    top = 1.1 * max(2.0 * limit, np.abs(frame.to_numpy()).max())
    ax.axhspan(-limit, limit, color=GREY, alpha=0.12, lw=0)
    ax.axhline(0.0, color="black", lw=0.6)
    style = {"transform": ax.transAxes, "fontsize": 9, "color": GREY}
    for side, word, va in ((1, "wins", "top"), (-1, "loses", "bottom")):
        ax.axhline(side * limit, color="black", lw=0.8, ls="--")
        ax.text(0.01, 0.5 + 0.47 * side, f"{of} {word}", va=va, **style)
    ax.set_ylim(-top, top)
    ax.set_xlabel("labelled rows")
    ax.set_ylabel("−log₁₀ p, with the sign of the difference")
    ax.set_title(
        "dashed: p = 0.05; between the lines the difference is not significant", fontsize=9
    )
    name_ends(ax, x[-1], ends)
    return tidy(ax)
