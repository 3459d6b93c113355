"""Shapes of plots: lines, bars, points, each drawn on Axes, on fresh ones if none are given."""

from inspect import signature

import numpy as np
import pandas as pd

from lodim.checks import one_of, whole
from lodim.errors import ArgumentError
from lodim.plot.lettering import legend, literal
from lodim.report.phrases import brief
from lodim.report.tables import significant

BLUE, RED, GREY = "#1f6fb4", "#c8442c", "#8a8a8a"
# Okabe and Ito's colours, which colour-blind readers tell apart, each with a mark of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
SCALE = "viridis"
SIZE = (7.4, 5.0)
COUNTS = {"top", "most", "named", "batch", "k"}  # arguments of plots that count
LONGEST = 32  # characters of a name at the end of a line, and in a legend
BESIDE = {"frameon": False, "fontsize": 8, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}


def ensure_axes(ax, size=(7.0, 4.5)):
    """The Axes themselves, or fresh ones on a figure of a size in inches."""
    if ax is not None:
        return ax
    from matplotlib.pyplot import subplots

    return subplots(figsize=size, layout="constrained")[1]


def draw(kinds, kind, fit, ax, arguments):
    """Draw a kind of plot of a fit, the first of `kinds` by default, and return the Axes."""
    kind = next(iter(kinds)) if kind is None else kind
    one_of("kind", kind, kinds)
    for name in COUNTS & arguments.keys():
        arguments = arguments | {name: whole(name, arguments[name], least=int(name != "named"))}
    try:
        signature(kinds[kind]).bind(fit, ax, **arguments)
    except TypeError as error:
        raise ArgumentError(f"plot of kind {kind!r}: {error}") from None
    return literal(kinds[kind])(fit, ax, **arguments)


def one_row(data, row):
    """The row of a frame at a position, as a frame."""
    is_position = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not (isinstance(data, pd.DataFrame) and is_position) or not -len(data) <= row < len(data):
        raise ArgumentError(f"data must be a pandas DataFrame with a row {row!r:.80}")
    return data.iloc[[row]]


def tidy(ax):
    """Hide the frame above and on the right, and return the Axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def colour(k):
    """Colour of class or series k; the first again after the last."""
    return COLOURS[k % len(COLOURS)]


def rgb(colour):
    """Red, green and blue of a colour in hex, each from 0 to 1."""
    return [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]


def class_labels(name, labels, room):
    """Texts such as "species = setosa", a name and each label in at most `room` characters."""
    name = brief([name], room)[0]
    return [f"{name} = {label}" for label in brief(labels, room)]


# Lines -----------------------------------------------------------------------------------------


def against_log(wide, name, ylabel, above, ax=None, top=10):
    """Lines against the log of a penalty, the `top` largest named at the end of the smallest.

    wide : frame with a row a penalty, increasing, and a column a line
    above : label of the top axis, penalties, and a text for each
    """
    ax = ensure_axes(ax)
    if not (wide.index > 0).all():
        raise ArgumentError("a penalty of 0 has no place on a log axis; leave it out of lambdas")
    x = np.log(wide.index.to_numpy())
    size = wide.iloc[0].abs().sort_values(ascending=False)
    named = list(size[size > 0].index[:top])
    ends = {}
    for column in wide.columns:
        if column in named:
            (line,) = ax.plot(x, wide[column], lw=1.5, alpha=1.0)
            ends[column] = (wide[column].iloc[0], line.get_color())
        else:
            ax.plot(x, wide[column], lw=0.7, alpha=0.5, color=GREY)
    ax.axhline(0.0, color="black", lw=0.5)
    ax.invert_xaxis()
    ax.set_xlabel(f"log({name})")
    ax.set_ylabel(ylabel)
    name_ends(ax, x[0], ends)
    _axis_above(ax, above[0], np.log(above[1]), above[2])
    return ax


def name_ends(ax, x, ends):
    """Names of lines beside their ends at x, moved apart; ends : name -> (height, colour)."""
    low, high = ax.get_ylim()
    order = sorted(ends, key=lambda name: ends[name][0])
    heights = spread_labels(np.array([ends[name][0] for name in order]), 0.045 * (high - low))
    labels = [name if isinstance(name, str) else " ".join(map(str, name)) for name in order]
    style = {"textcoords": ax.get_yaxis_transform(), "fontsize": 8, "va": "center"}
    style |= {"arrowprops": {"arrowstyle": "-", "lw": 0.4, "color": GREY}, "annotation_clip": False}
    for name, label, height in zip(order, brief(labels, LONGEST), heights, strict=True):
        end, color = ends[name]
        ax.annotate(label, (x, end), xytext=(1.02, height), color=color, **style)
    tidy(ax)


def spread_labels(heights, gap):
    """Increasing heights moved apart to at least `gap`, groups centred where they were."""
    groups = []  # centre and size of runs of labels that touch
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1:
            (c0, n0), (c1, n1) = groups[-2:]
            if c1 - c0 >= 0.5 * gap * (n0 + n1):
                break
            groups[-2:] = [[(c0 * n0 + c1 * n1) / (n0 + n1), n0 + n1]]
    return np.concatenate([[]] + [c + gap * (np.arange(n) - 0.5 * (n - 1)) for c, n in groups])


def _axis_above(ax, label, x, texts):
    """An axis on top with the texts of the places x that are nearest to the ticks below."""
    top = ax.secondary_xaxis("top")
    ticks = [t for t in ax.get_xticks() if x.min() <= t <= x.max()]
    top.set_xticks(ticks, [texts[int(np.argmin(np.abs(x - t)))] for t in ticks])
    top.set_xlabel(label)


def loss_by_stage(stages, loss, share, ylabel, ax=None):
    """Training loss after each boost, with the share of deviance explained on the right."""
    ax = ensure_axes(ax)
    ax.plot(stages, loss, "o-", ms=3, color=BLUE)
    ax.set_xlabel("boost")
    ax.set_ylabel(ylabel)
    right = ax.secondary_yaxis("right", functions=_linear(loss[0], share[0], loss[-1], share[-1]))
    right.set_ylabel("% deviance explained")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines["top"].set_visible(False)
    return ax


def _linear(x0, y0, x1, y1):
    """The map through two points, and its inverse; the identity where they coincide."""
    if x0 == x1 or y0 == y1:
        return (lambda x: x), (lambda y: y)
    slope = (y1 - y0) / (x1 - x0)
    return (lambda x: y0 + slope * (x - x0)), (lambda y: x0 + (y - y0) / slope)


def rounds(values, name, ax=None):
    """A value after each round."""
    ax = ensure_axes(ax)
    ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=3, color=BLUE)
    ax.set_xlabel("round")
    ax.set_ylabel(name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return tidy(ax)


# Bars ------------------------------------------------------------------------------------------


def bars(names, values, xlabel, ax=None, spread=None, title=None):
    """Horizontal bars, the first name on top; `spread` draws a faint wider bar behind each."""
    ax = ensure_axes(ax, (7.0, max(2.5, 0.32 * len(names) + 1.2)))
    y, rising = np.arange(len(names))[::-1], np.asarray(values) >= 0
    if spread is not None:
        faint = {"color": GREY, "alpha": 0.35, "height": 0.75}
        ax.barh(y, np.where(rising, 1.0, -1.0) * spread, label="mean |local coefficient|", **faint)
    color = np.where(rising, BLUE, RED)
    ax.barh(y, values, color=color, height=0.5, label="mean local coefficient")
    ax.set_yticks(y, names)
    ax.axvline(0.0, color="black", lw=0.6)
    ax.set_xlabel(xlabel)
    if spread is not None:
        ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    if title:
        ax.set_title(title, fontsize=10)
    return tidy(ax)


def shares(names, share, texts, ax=None):
    """A bar of its share for each name, the first on top, with a text at the end."""
    ax = ensure_axes(ax, (7.0, max(2.0, 0.4 * len(names) + 1.0)))
    y = np.arange(len(names))[::-1]
    ax.barh(y, share, color=BLUE, height=0.55)
    style = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
    for height, text, end in zip(y, texts, share, strict=True):
        ax.annotate(text, (end, height), **style)
    ax.set_yticks(y, names)
    ax.set_xlim(0.0, 1.3 * np.max(share))
    ax.set_xlabel("share of the rows")
    return tidy(ax)


# Points ----------------------------------------------------------------------------------------


def scatter(xy, colour, labels, name, ax=None, axis_names=("PC 1", "PC 2")):
    """Points in the plane coloured by a number, or by class where `labels` are given."""
    ax = ensure_axes(ax, (6.2, 5.0))
    if labels is None:
        points = ax.scatter(*xy.T, c=colour, s=12, cmap=SCALE, alpha=0.8, lw=0)
        ax.figure.colorbar(points, ax=ax, label=name)
    else:
        entries = [
            ax.scatter(*xy[colour == k].T, s=12, alpha=0.7, lw=0, label=label)
            for k, label in enumerate(brief(labels, LONGEST))
        ]
        legend(ax, entries, title=brief([name], LONGEST)[0], frameon=False, fontsize=8)
    ax.set_xlabel(axis_names[0])
    ax.set_ylabel(axis_names[1])
    return tidy(ax)


def drift(indicator, loss, threshold, limit, ax=None):
    """Drift indicator against loss, both log, with the ROC curve of large losses inset.

    `limit` is the loss above which a row counts as badly predicted.
    """
    ax = ensure_axes(ax, (6.5, 5.0))
    x, y = (np.maximum(v, 1e-12 * max(v.max(), 1e-300)) for v in (indicator, loss))
    bad = loss > limit
    for rows, color, label in ((~bad, BLUE, "small loss"), (bad, RED, "large loss")):
        ax.scatter(x[rows], y[rows], s=10, alpha=0.6, lw=0, color=color, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left=np.quantile(x, 0.01))
    ax.set_ylim(bottom=np.quantile(y, 0.01))
    ax.axhline(limit, color=GREY, lw=0.8, ls="--")
    if threshold is not None:
        ax.axvline(threshold, color="black", lw=0.8, ls="--", label="threshold")
    ax.set_xlabel("drift indicator |f(x) - f_kNN(x)|")
    ax.set_ylabel("loss")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    if 0 < bad.sum() < len(bad):
        _roc_inset(ax, indicator, bad)
    return tidy(ax)


def _roc_inset(ax, indicator, bad):
    inset = ax.inset_axes([0.07, 0.07, 0.27, 0.27])
    inset.plot(*roc(indicator, bad), color="black", lw=1)
    inset.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=":")
    inset.set_xticks([0, 1])
    inset.set_yticks([0, 1])
    inset.tick_params(labelsize=7)
    inset.set_title(f"ROC, AUC {significant(auc(indicator, bad), 2)}", fontsize=8)


def roc(score, positive):
    """False and true positive rates of all thresholds, from the strictest."""
    order = np.argsort(-score, kind="stable")
    score, hit = score[order], positive[order]
    last = np.r_[np.flatnonzero(np.diff(score)), len(score) - 1]
    true, false = np.cumsum(hit)[last], np.cumsum(~hit)[last]
    return np.r_[0.0, false / false[-1]], np.r_[0.0, true / true[-1]]


def auc(score, positive):
    """Area under the ROC curve."""
    false_rate, true_rate = roc(np.asarray(score), np.asarray(positive, bool))
    return float(np.trapezoid(true_rate, false_rate))
