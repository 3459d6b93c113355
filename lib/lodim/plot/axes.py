"""Axes, colours and marks of all plots, and how a kind of plot is called by its name."""

from inspect import signature

import numpy as np

from lodim.checks import one_of, whole
from lodim.errors import ArgumentError
from lodim.plot.lettering import literal
from lodim.text import shorten

BLUE, RED, GREY = "#1f6fb4", "#c8442c", "#8a8a8a"
# Okabe and Ito's colours, distinct for colour-blind readers, each with its own mark.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
SCALE = "viridis"
SIZE = (7.4, 5.0)
COUNTS = {"top", "most", "named", "batch", "k"}  # arguments of plots that count
LONGEST = 32  # characters of a name at the end of a line, and in a legend
BESIDE = {"frameon": False, "fontsize": 8, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}


def ensure_axes(ax, size=(7.0, 4.5)):
    """Return the Axes themselves, or fresh ones on a figure of a size in inches."""
    if ax is not None:
        return ax
    from matplotlib.pyplot import subplots

    return subplots(figsize=size, layout="constrained")[1]


def draw(kinds, kind, fit, ax, arguments):
    """Draw a kind of plot of a fit and return the Axes.

    By default it is the first of `kinds` that takes the arguments.
    """
    if kind is None:
        takers = (name for name in kinds if _takes(kinds[name], fit, ax, arguments))
        kind = next(takers, next(iter(kinds)))
    one_of("kind", kind, kinds)
    for name in COUNTS & arguments.keys():
        arguments = arguments | {name: whole(name, arguments[name], least=int(name != "named"))}
    for name in arguments.keys() - signature(kinds[kind]).parameters.keys():
        takers = [other for other in kinds if name in signature(kinds[other]).parameters]
        if takers:
            raise ArgumentError(
                f"plot of kind {kind!r} takes no {name}; kinds that do: {', '.join(takers)}"
            )
    try:
        signature(kinds[kind]).bind(fit, ax, **arguments)
    except TypeError as error:
        raise ArgumentError(f"plot of kind {kind!r}: {error}") from None
    return literal(kinds[kind])(fit, ax, **arguments)


def _takes(plot, fit, ax, arguments):
    """Return whether a kind of plot can be called with these arguments."""
    try:
        signature(plot).bind(fit, ax, **arguments)
    except TypeError:
        return False
    return True


def tidy(ax):
    """Hide the frame above and on the right, and return the Axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def round_levels(most, n):
    """Some n round values from -most to most or just beyond, with 0 among them, for contours."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(n, symmetric=True).tick_values(-most, most)


def colour(k):
    """Return colour of class or series k; the first again after the last."""
    return COLOURS[k % len(COLOURS)]


def mark(k):
    """Mark of class or series k: with each round of the colours another one goes with a colour."""
    return MARKS[(k + k // len(COLOURS)) % len(MARKS)]


def rgb(colour):
    """Red, green and blue of a colour in hex, each from 0 to 1."""
    return [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]


def class_labels(name, labels, room):
    """Texts such as "species = setosa", a name and each label in at most `room` characters."""
    name = shorten([name], room)[0]
    return [f"{name} = {label}" for label in shorten(labels, room)]


def of_all(n, n_all):
    """A second line of an axis label that says how many of all features are drawn, if not all."""
    return f"\n(the {n} largest of {n_all})" if n < n_all else ""


def spread_labels(heights, gap):
    """Move increasing heights apart to at least `gap`, keeping the centres of groups."""
    groups = []  # centre and size of runs of labels that touch
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1:
            (c0, n0), (c1, n1) = groups[-2:]
            if c1 - c0 >= 0.5 * gap * (n0 + n1):
                break
            groups[-2:] = [[(c0 * n0 + c1 * n1) / (n0 + n1), n0 + n1]]
    return np.concatenate([[]] + [c + gap * (np.arange(n) - 0.5 * (n - 1)) for c, n in groups])
