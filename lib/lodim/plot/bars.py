"""Bars and marks by name: effects, shares, weights, loadings, and estimates with intervals."""

import numpy as np

from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.plot.legend import INK
from lodim.text import shorten

LONGEST_NAME = 36  # largest number of characters of a name next to a mark


def bars(names, values, xlabel, ax=None, spread=None, title=None):
    """Draw horizontal bars, first name on top; `spread` (n,) are lengths of faint bars behind."""
    (ax, y), rising = axes.listed(ax, names, 0.32, 1.2), np.asarray(values) >= 0
    if spread is not None:
        faint = {"color": axes.GREY, "alpha": 0.35, "height": 0.75}
        ax.barh(y, np.where(rising, 1.0, -1.0) * spread, label="mean |local coefficient|", **faint)
    color = np.where(rising, axes.BLUE, axes.RED)
    ax.barh(y, values, color=color, height=0.5, label="mean local coefficient")
    ax.axvline(0.0, color="black", lw=0.6)
    ax.set_xlabel(xlabel)
    if spread is not None:
        ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    if title:
        ax.set_title(title, fontsize=10)
    return axes.tidy(ax)


def shares(names, share, texts, ax=None):
    """Draw one bar per name, as long as its share, with a text at the end; first name on top."""
    ax, y = axes.listed(ax, names, 0.4, 1.0, least=2.0)
    ax.barh(y, share, color=axes.BLUE, height=0.55)
    style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
    for height, text, end in zip(y, texts, share, strict=True):
        ax.annotate(text, (end, height), **style)
    ax.set_xlim(0.0, 1.3 * np.max(share))
    ax.set_xlabel("share of the rows")
    return axes.tidy(ax)


def weights(names, v, xlabel, ax=None):
    """Draw weights v (B, n) of n features `names` in B prototype batches: a line per feature."""
    ax, y = axes.listed(ax, names, 0.32, 1.2)
    ax.hlines(y, 0.0, v.max(axis=0, initial=0.0), color=axes.GREY, lw=0.8, zorder=1)
    used = np.flatnonzero((v > 0).any(axis=1))
    for b in used:
        on, style = v[b] > 0, axes.class_style(b)
        if len(used) == 1:
            style["color"] = axes.BLUE
        style |= {"s": 46, "zorder": 2 + b, "alpha": 0.85, "edgecolor": "black", "lw": 0.5}
        ax.scatter(v[b][on], y[on], label=f"batch {b + 1}", **style)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(xlabel)
    if len(used) != 1:
        ax.legend(**axes.LEGEND_OUTSIDE)
    return axes.tidy(ax)


def lollipops(names, values, labels, xlabel, ax=None):
    """Draw values (m, k) of m `names`: a stick and mark per value, in the colours of k `labels`."""
    k = values.shape[1]
    ax, y = axes.listed(ax, shorten(names, LONGEST_NAME), 0.2 + 0.13 * k, 1.2)
    for j in range(k):
        height = y + 0.22 * (0.5 * (k - 1) - j)
        ax.hlines(height, 0.0, values[:, j], color=axes.colour(j), lw=1.4, alpha=0.6)
        style = axes.class_style(j) | {"s": 26, "zorder": 3}
        ax.scatter(values[:, j], height, label=labels[j], **style)
    ax.axvline(0.0, color=INK, lw=0.6)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.set_xlabel(xlabel)
    if k > 1:
        ax.legend(**axes.LEGEND_OUTSIDE)
    return axes.tidy(ax)


def forest(names, frame, xlabel, ax=None, *, top, level):
    """Draw the `top` estimates of largest size with their intervals, the largest on top.

    frame : with a row per estimate; names : labels of the rows; level : confidence level"""
    if frame.empty:
        raise ArgumentError("there is no estimate to draw")
    size = frame["estimate"].abs().to_numpy()
    at = np.argsort(-size, kind="stable")[:top]
    names, frame = [list(names)[k] for k in at], frame.iloc[at]
    ax, place = axes.listed(ax, shorten(names, axes.LONGEST), 0.28, 1.0, least=3.24)
    ax.plot(frame["estimate"], place, "o", color=axes.BLUE, ms=5)
    ax.axvline(0.0, color="black", lw=0.5)
    if frame["conf_low"].notna().any():
        ax.hlines(place, frame["conf_low"], frame["conf_high"], color=axes.BLUE, lw=1.5)
        xlabel += f", with {100.0 * level:g}% interval"
    ax.set_xlabel(xlabel + axes.count_line(len(at), len(size)))
    return axes.tidy(ax)
