"""Plots of effects."""

import numpy as np

from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.plot.bars import forest
from lodim.plot.lettering import literal
from lodim.text import shorten

COLUMNS = 3  # panels side by side
LETTERS = 14  # largest number of characters of a level's name
SHADES = 22  # number of colours of a surface
TURNED = 24  # total number of characters above which names of levels are rotated


@literal
def panels(effects, ax=None, *, top):
    """Draw the `top` terms of Effects with the widest curves, one per panel; equal y axes."""
    every = list(dict.fromkeys(effects.ranges()["term"]))
    terms = every[:top]
    across = min(COLUMNS, len(terms))
    size = 3.3 * across + 0.6, 2.7 * -(-len(terms) // across) + 0.3
    drawn = axes.side_by_side(len(terms), across, size)
    for k, (one, term) in enumerate(zip(drawn, terms, strict=True)):
        _draw(effects, one, term, explain=k == across - 1, label=k % across == 0)
    if len(terms) < len(every):
        drawn[0].figure.supxlabel(axes.count_line(len(terms), len(every)).strip(), fontsize=8)
    flat = [one for one, term in zip(drawn, terms, strict=True) if not _is_pair(effects, term)]
    if len(flat) > 1:
        low, high = (np.array([one.get_ylim() for one in flat])[:, i] for i in (0, 1))
        for one in flat:
            one.set_ylim(low.min(), high.max())
    return drawn


@literal
def curve(effects, ax=None, *, term):
    ax = axes.ensure_axes(ax)
    _draw(effects, ax, term, explain=True, label=True)
    return ax


@literal
def points(effects, ax=None, *, term, top):
    """Draw the `top` largest average slopes or importances of Effects (of one term, if given)."""
    frame = effects.frame
    frame = frame if term is None else frame[frame["term"] == term]
    of_number = frame["value"] == "per unit"
    per_sd = np.where(of_number, frame["term"].map(effects.spreads), 1.0)
    ends = ["estimate", "conf_low", "conf_high"]
    frame = frame.assign(**{name: frame[name] * per_sd for name in ends})
    names = frame["term"]
    if effects.kind == "slope":
        names = names.where(frame["value"] == "per unit", names + ": " + frame["value"].astype(str))
    for key in ("class", "group"):
        names = names + " (" + frame[key].astype(str) + ")" if key in frame else names
    xlabel = "increase of the mean deviance"
    if effects.kind == "slope":
        xlabel = f"mean change of {effects._scale}, by numbers per SD"
    return forest(names, frame, xlabel, ax, top=top, level=effects.level)


def _is_pair(effects, term):
    return "value_2" in effects.frame and _part(effects, term)["value_2"].notna().any()


def _part(effects, term):
    return effects.frame[effects.frame["term"] == term]


def _draw(effects, ax, term, *, explain, label):
    """Draw the effect of one term; explain, label : whether to add a legend and a y label."""
    part = _part(effects, term)
    if _is_pair(effects, term):
        _surface(effects, ax, part, term)
        return
    rug = effects.rugs[term]
    keys = [name for name in ("group", "class") if name in part]
    series = list(part.groupby(keys, sort=False)) if keys else [((), part)]
    labels = [", ".join(map(str, names)) for names, _ in series]
    if isinstance(rug, dict):
        _levels(ax, [one for _, one in series], rug, labels)
    else:
        for k, ((_, frame), text) in enumerate(zip(series, labels, strict=True)):
            x = frame["value"].to_numpy(float)
            ax.plot(x, frame["estimate"], color=axes.colour(k), lw=1.5, label=text)
            if frame["conf_low"].notna().any():
                band = {"color": axes.colour(k), "alpha": 0.2, "lw": 0}
                ax.fill_between(x, frame["conf_low"], frame["conf_high"], **band)
        style = {"transform": ax.get_xaxis_transform(), "color": axes.GREY, "lw": 0.5, "alpha": 0.6}
        ax.vlines(np.unique(rug), 0.0, 0.03, **style)
    if effects.kind == "ale":
        ax.axhline(0.0, color="black", lw=0.5, zorder=0)
    ax.set_xlabel(shorten([term], axes.LONGEST)[0])
    if label:
        kind = "effect on" if effects.kind == "ale" else "mean of"
        ax.set_ylabel(f"{kind} {effects._scale}")
    if keys and explain:
        ax.legend(**axes.LEGEND_OUTSIDE)
    axes.tidy(ax)


def _levels(ax, frames, shares, labels):
    """Draw effects of levels as points with confidence intervals.

    frames : per entry of the legend, a frame with a row per level
    labels : entries of the legend
    shares : dict level -> share of rows, the size of the point"""
    names = list(dict.fromkeys(value for frame in frames for value in frame["value"]))
    for k, (frame, label) in enumerate(zip(frames, labels, strict=True)):
        place = np.array([names.index(value) for value in frame["value"]])
        place = place + 0.16 * (k - 0.5 * (len(frames) - 1))
        size = 12.0 + 90.0 * np.sqrt([shares[value] for value in frame["value"]])
        if frame["conf_low"].notna().any():
            ax.vlines(place, frame["conf_low"], frame["conf_high"], color=axes.colour(k), lw=1.5)
        ax.scatter(place, frame["estimate"], s=size, color=axes.colour(k), label=label, zorder=3)
    turned = sum(len(str(name)) for name in names) > TURNED
    style = {"rotation": 30, "ha": "right"} if turned else {}
    ax.set_xticks(range(len(names)), shorten(names, LETTERS), fontsize=8, **style)
    ax.set_xlim(-0.6, len(names) - 0.4)


def _surface(effects, ax, part, term):
    for key in ("group", "class"):
        if key in part and part[key].nunique() > 1:
            what = f"the plot of a pair needs one {key}, not {part[key].nunique()}"
            raise ArgumentError(f"{what}: draw the frame of tidy() yourself")
    wide = part.pivot(index="value_2", columns="value", values="estimate")
    most = np.nanmax(np.abs(wide.to_numpy())) or 1.0
    style = {"cmap": "RdBu_r", "levels": axes.round_levels(most, SHADES)}
    x, y = wide.columns.to_numpy(float), wide.index.to_numpy(float)
    drawn = ax.contourf(x, y, np.ma.masked_invalid(wide.to_numpy()), **style)
    ax.figure.colorbar(drawn, ax=ax, label=f"effect on {effects._scale}")
    names = effects.rugs
    first, second = next((a, b) for a in names for b in names if f"{a}:{b}" == term)
    ax.set_xlabel(shorten([first], axes.LONGEST)[0])
    ax.set_ylabel(shorten([second], axes.LONGEST)[0])
