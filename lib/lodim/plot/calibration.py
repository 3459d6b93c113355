"""Calibration: observed shares of classes against predicted probabilities, for any fit."""

import numpy as np

from lodim.checks import among, whole
from lodim.classification import reliability
from lodim.errors import ArgumentError, DataError
from lodim.plot.axes import (
    GREY,
    LEGEND_OUTSIDE,
    LONGEST,
    class_labels,
    colour,
    ensure_axes,
    mark,
    tidy,
)
from lodim.plot.lettering import legend
from lodim.text import shorten

BARS = 40  # number of bars of the histogram
BASE, HEIGHT = -0.22, 0.17  # position and height of the histogram


def calibration(fit, ax, *, data, level=None, bins=10, offset=None):
    """Draw observed shares against predicted probabilities, and a histogram of probabilities.

    level : the class to draw; default: the second of two classes, or all of several
    bins : number of groups of rows with similar probabilities"""
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
    name, labels = fit.design.response.name, shorten([*map(str, fit.levels)], LONGEST)
    event = class_labels(name, labels, LONGEST)[shown[0]] if len(shown) == 1 else "the class"
    ax = ensure_axes(ax, (6.0, 5.6))
    ax.axhline(0.0, color="black", lw=0.5)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, lw=0.8, ls="--", zorder=1)
    entries = []
    for k in shown:
        groups = reliability(probability[:, k], code == k, weight, bins)
        x, y = groups["predicted"], groups["observed"]
        ax.vlines(x, groups["low"], groups["high"], color=colour(k), lw=1.0, alpha=0.6)
        style = {"color": colour(k), "marker": mark(k), "ms": 5, "lw": 1.2, "label": labels[k]}
        entries += ax.plot(x, y, **style)
        size, edges = np.histogram(probability[:, k], BARS, (0.0, 1.0), weights=weight)
        bars = BASE + HEIGHT * size / size.max()
        ax.stairs(bars, edges, baseline=BASE, color=colour(k), fill=len(shown) == 1, alpha=0.6)
    if len(shown) > 1:
        legend(ax, entries, title=shorten([name], LONGEST)[0], **LEGEND_OUTSIDE)
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    ax.set_ylabel("observed share, with 95% interval")
    ax.set_xlabel(f"predicted probability of {event}, with histogram")
    return tidy(ax)
