"""Axes, colours and marks of all plots, and the function that draws the plot of a given kind."""

from inspect import signature

import numpy as np

from lodim.checks import one_of, whole
from lodim.errors import ArgumentError
from lodim.plot.lettering import literal
from lodim.text import shorten

BLUE, RED, GREY = "#1f6fb4", "#c8442c", "#8a8a8a"
# Colours of Okabe and Ito, distinct for colour-blind readers; each has its own mark.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
SCALE = "viridis"
SIZE = (7.4, 5.0)
COUNTS = {"top", "most", "named", "batch", "k"}  # arguments of plots that are counts
LONGEST = 32  # largest number of characters of a name at the end of a line and in a legend
LEGEND_OUTSIDE = {"frameon": False, "fontsize": 8, "loc": "upper left"}
LEGEND_OUTSIDE |= {"bbox_to_anchor": (1.0, 1.0)}


def ensure_axes(ax, size=(7.0, 4.5)):
    """Return the given Axes, or new Axes on a figure of this size in inches if ax is None."""
    if ax is not None:
        return ax
    from matplotlib.pyplot import subplots

    return subplots(figsize=size, layout="constrained")[1]


def listed(ax, names, row_height, margin, least=2.5):
    """Prepare Axes with a row per name, the first on top; return them and y-positions (n,).

    New Axes (if ax is None) are row_height * n + margin inches high, but at least `least`."""
    ax = ensure_axes(ax, (7.0, max(least, row_height * len(names) + margin)))
    place = np.arange(len(names))[::-1]
    ax.set_yticks(place, names)
    return ax, place


def side_by_side(n, columns, size, solid=()):
    """Return n Axes, `columns` per row, on a new figure of `size` inches.

    solid : positions, from 0 to n - 1, of the Axes that are three-dimensional"""
    first = ensure_axes(None, size)
    figure, rows = first.figure, -(-n // columns)
    first.remove()
    styles = [{"projection": "3d"} if k in solid else {} for k in range(n)]
    fresh = [figure.add_subplot(rows, columns, k + 1, **style) for k, style in enumerate(styles)]
    return np.array(fresh, dtype=object)


def draw(kinds, kind, fit, ax, arguments):
    """Draw one kind of plot of a fit and return the Axes.

    kinds : dict kind -> function that draws it; arguments : dict of options of this function
    kind : kind of plot; by default the first whose function takes all `arguments`"""
    if kind is None:
        takers = (name for name in kinds if not _misfit(kinds[name], fit, ax, arguments))
        kind = next(takers, next(iter(kinds)))
    one_of("kind", kind, kinds)
    for name in COUNTS & arguments.keys():
        arguments = arguments | {name: whole(name, arguments[name], least=int(name != "named"))}
    for name in arguments.keys() - signature(kinds[kind]).parameters.keys():
        takers = [other for other in kinds if name in signature(kinds[other]).parameters]
        if takers:
            has = f"these kinds have it: {', '.join(takers)}"
            raise ArgumentError(f"plot of kind {kind!r} has no argument {name}; {has}")
    misfit = _misfit(kinds[kind], fit, ax, arguments)
    if misfit:
        raise ArgumentError(f"plot of kind {kind!r}: {misfit}")
    return literal(kinds[kind])(fit, ax, **arguments)


def _misfit(plot, fit, ax, arguments):
    """Return what is wrong with the arguments of a function that draws a plot; "" if nothing."""
    try:
        signature(plot).bind(fit, ax, **arguments)
    except TypeError as error:
        return str(error)
    return ""


def whole_ticks(ax):
    """Put ticks of the x axis only at whole numbers, even if just one fits."""
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def tidy(ax):
    """Hide the upper and the right line of the frame of matplotlib Axes, and return them."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def round_levels(most, n):
    """Return about n round values from -most to most or slightly beyond, with 0, for contours."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(n, symmetric=True).tick_values(-most, most)


def colour(k):
    return COLOURS[k % len(COLOURS)]


def mark(k):
    return MARKS[(k + k // len(COLOURS)) % len(MARKS)]


def class_style(k):
    """Return the colour and the mark of class k, 0, 1, ..., as arguments of ax.scatter()."""
    return {"color": colour(k), "marker": mark(k)}


def class_rgb(code):
    """Return red, green and blue, from 0 to 1, of the colours of class codes (...): (..., 3)."""
    shades = [[int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)] for colour in COLOURS]
    return np.array(shades)[code % len(COLOURS)]


def class_labels(name, labels, room):
    """Return texts "name = label", with name and labels cut to `room` characters each."""
    name = shorten([name], room)[0]
    return [f"{name} = {label}" for label in shorten(labels, room)]


def count_line(n, n_all):
    """Return a line for an axis label, such as "(the 5 largest of 9)"; "" if n equals n_all."""
    return f"\n(the {n} largest of {n_all})" if n < n_all else ""


def spread_labels(heights, gap):
    """Return increasing heights of labels, moved apart to gaps of at least `gap`."""
    groups = []  # [centre, size] of groups of labels that touch
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1:
            (c0, n0), (c1, n1) = groups[-2:]
            if c1 - c0 >= 0.5 * gap * (n0 + n1):
                break
            groups[-2:] = [[(c0 * n0 + c1 * n1) / (n0 + n1), n0 + n1]]
    return np.concatenate([[]] + [c + gap * (np.arange(n) - 0.5 * (n - 1)) for c, n in groups])
