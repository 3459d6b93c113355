"""Line plots: estimates against a penalty, values by round, calibration; names at line ends."""

import numpy as np

from lodim.checks import among, whole
from lodim.classification import reliability
from lodim.errors import ArgumentError, DataError
from lodim.plot import axes
from lodim.plot.lettering import legend
from lodim.text import shorten

BARS = 40  # number of bars of the histogram
BASE, HEIGHT = -0.22, 0.17  # position and height of the histogram


def against_log(wide, name, ylabel, above, ax=None, top=10):
    """Draw lines, such as coefficients, against log(penalty); return the Axes.

    wide : frame with a row per penalty and a column per line
    name : label of the penalty
    above : (label, penalties, texts) of the upper axis
    top : number of lines to label"""
    ax = axes.ensure_axes(ax)
    if not (wide.index > 0).all():
        raise ArgumentError("a penalty of 0 cannot be drawn on a log axis: leave it out of lambdas")
    x = np.log(wide.index.to_numpy())
    size = wide.iloc[0].abs().sort_values(ascending=False)
    named = list(size[size > 0].index[:top])
    ends = {}
    for column in wide.columns:
        if column in named:
            (line,) = ax.plot(x, wide[column], lw=1.5, alpha=1.0)
            ends[column] = (wide[column].iloc[0], line.get_color())
        else:
            ax.plot(x, wide[column], lw=0.7, alpha=0.5, color=axes.GREY)
    ax.axhline(0.0, color="black", lw=0.5)
    ax.invert_xaxis()
    ax.set_xlabel(f"log({name})")
    ax.set_ylabel(ylabel)
    name_ends(ax, x[0], ends)
    label, penalties, texts = above
    at = np.log(penalties)
    ticks = [t for t in ax.get_xticks() if at.min() <= t <= at.max()]
    shown = [texts[int(np.argmin(np.abs(at - t)))] for t in ticks]
    if len(set(shown)) > 1:
        top_axis = ax.secondary_xaxis("top")
        top_axis.set_xticks(ticks, shown)
        top_axis.set_xlabel(label)
    return ax


def name_ends(ax, x, ends):
    """Write names at the ends of lines, at position x; `ends` maps a name to (height, colour)."""
    low, high = ax.get_ylim()
    order = sorted(ends, key=lambda name: ends[name][0])
    heights = axes.spread_labels(np.array([ends[name][0] for name in order]), 0.045 * (high - low))
    labels = [name if isinstance(name, str) else " ".join(map(str, name)) for name in order]
    style = {"textcoords": ax.get_yaxis_transform(), "fontsize": 8, "va": "center"}
    style["arrowprops"] = {"arrowstyle": "-", "lw": 0.4, "color": axes.GREY}
    for name, label, height in zip(order, shorten(labels, axes.LONGEST), heights, strict=True):
        end, color = ends[name]
        ax.annotate(
            label, (x, end), xytext=(1.02, height), color=color, annotation_clip=False, **style
        )
    axes.tidy(ax)


def steps(values, first, names, ax=None):
    """Draw a line of `values` at `first`, first + 1, ...; `names` label the x and the y axis."""
    ax = axes.ensure_axes(ax)
    ax.plot(first + np.arange(len(values)), values, "o-", ms=3, color=axes.BLUE)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    axes.whole_ticks(ax)
    return axes.tidy(ax)


def calibration(fit, ax, *, data, level=None, bins=10, offset=None):
    """Draw observed shares of class `level` against predicted probabilities, in `bins` groups."""
    whole("bins", bins, least=2)
    if fit.levels is None:
        response = fit.design.response
        what = "has none" if response is None else f"has the numeric {response.name!r}"
        raise ArgumentError(f"a calibration curve needs a response with classes; the fit {what}")
    probability, code, weight = fit._probabilities(data, offset)
    if not len(code):
        raise DataError("data must have a row with a known class and no missing values")
    if level is not None:
        shown = [among("level", level, fit.levels)]
    else:
        shown = [1] if len(fit.levels) == 2 else range(len(fit.levels))
    name, labels = fit.design.response.name, shorten([*map(str, fit.levels)], axes.LONGEST)
    texts = axes.class_labels(name, labels, axes.LONGEST)
    event = texts[shown[0]] if len(shown) == 1 else "the class"
    ax = axes.ensure_axes(ax, (6.0, 5.6))
    ax.axhline(0.0, color="black", lw=0.5)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=axes.GREY, lw=0.8, ls="--", zorder=1)
    entries = []
    for k in shown:
        groups = reliability(probability[:, k], code == k, weight, bins)
        x, y = groups["predicted"], groups["observed"]
        ax.vlines(x, groups["low"], groups["high"], color=axes.colour(k), lw=1.0, alpha=0.6)
        style = axes.class_style(k) | {"ms": 5, "lw": 1.2, "label": labels[k]}
        entries += ax.plot(x, y, **style)
        size, edges = np.histogram(probability[:, k], BARS, (0.0, 1.0), weights=weight)
        bars = BASE + HEIGHT * size / size.max()
        ax.stairs(bars, edges, baseline=BASE, color=axes.colour(k), fill=len(shown) == 1, alpha=0.6)
    if len(shown) > 1:
        legend(ax, entries, title=shorten([name], axes.LONGEST)[0], **axes.LEGEND_OUTSIDE)
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    ax.set_ylabel("observed share, with 95% interval")
    ax.set_xlabel(f"predicted probability of {event}, with histogram")
    return axes.tidy(ax)
