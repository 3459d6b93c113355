"""Views (sets of one to three features) side by side: rows that a view predicts are solid."""

import textwrap
from dataclasses import dataclass, replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.plot import axes as axes_of
from lodim.plot.axes import GREY, colour, tidy
from lodim.plot.lettering import legend
from lodim.plot.points import STAR, class_marks, legend_mark, scatter_values
from lodim.text import shorten

SIDE = 3.7  # width and height of a panel in inches
LONG = 24  # largest number of characters of a name on an axis
SHORT = 12  # largest number of characters of a level's name
TICKS = 5  # largest number of ticks of an axis in three dimensions
BAR = 1.0  # width of a colour scale to the right of the panels, in inches
LETTERS = 48  # largest number of characters of all block names of a panel
TICKS_BELOW = 24  # largest number of level names below all blocks of a panel
FEW_VALUES = 12  # features with at most this many distinct values get random jitter


@dataclass(frozen=True)
class View:
    """One panel of a plot: rows in a view (a set of one to three features)."""

    x: np.ndarray  # (n, d) features in original units
    names: tuple[str, ...]
    served: np.ndarray  # (n,) bool, rows that are predicted by this view
    title: str
    levels: tuple[tuple[str, ...], ...]  # per feature the names of codes 0, 1, ...; () for numbers
    star: np.ndarray | None = None  # (d,) position of a queried row
    chosen: bool = False  # whether the view predicts the queried row
    near: np.ndarray | None = None  # positions of the queried row's neighbours among the rows
    blocks: tuple[str, ...] = ()  # levels of a third feature, each with a section of the x axis


def side_by_side(views, value, key, axes=None, *, star=None):
    """Draw rows in several feature sets side by side, in the colours of a Key; return the Axes.

    views : list of View, one per panel
    value : (n,) class codes or numbers
    star : name of the marked row, or None"""
    views = [_flatten(view) for view in views]
    axes, fresh = _places(views, axes, BAR if key.labels is None else 0.0)
    shades = None
    for view, ax in zip(views, axes, strict=True):
        if view.x.shape[1] == 1:
            _strip(ax, view, value, key)
        else:
            shades = _cloud(ax, view, value, key) or shades
        _name(ax, view, key)
    _explain(axes, key, shades, star, views, fresh)
    return axes


def _flatten(view):
    """Return a View in which, of three features, two with few values are combined on the x axis."""
    texts = (tuple(f"{value:.4g}" for value in _few_values(x)) for x in view.x.T)
    named = (levels or few for levels, few in zip(view.levels, texts, strict=True))
    discrete = {j: names for j, names in enumerate(named) if names}
    if view.x.shape[1] < 3 or len(discrete) < 2:
        return view
    block, inner = sorted(discrete, key=lambda j: len(discrete[j]))[:2]
    (up,) = {0, 1, 2} - {block, inner}
    rows = view.x if view.star is None else np.vstack([view.x, view.star])
    codes = {j: _codes(rows[:, j], view, j) for j in (block, inner)}
    across = codes[block] * (len(discrete[inner]) + 1) + codes[inner]
    plane, n = np.column_stack([across, rows[:, up]]), len(view.x)
    return replace(
        view,
        x=plane[:n],
        star=None if view.star is None else plane[n],
        names=(f"{view.names[inner]}, in blocks by {view.names[block]}", view.names[up]),
        levels=(discrete[inner], view.levels[up]),
        blocks=discrete[block],
    )


def _few_values(x):
    values = np.unique(x[np.isfinite(x)])
    return values if 1 < len(values) <= FEW_VALUES else values[:0]


def _codes(x, view, j):
    """Convert values x of feature j of a View to codes 0, 1, ..., for features with few values.

    Levels are codes already. A number becomes the position of its value among the sorted values."""
    if view.levels[j]:
        return x
    values = _few_values(view.x[:, j])
    return np.round(np.interp(x, values, np.arange(len(values))))


def _places(views, axes, bar_width):
    """Return Axes for a list of Views, one for each, and whether they are new.

    axes : Axes to use, or None to make new ones
    bar_width : room for a colour bar at the side of new Axes, in inches"""
    if axes is not None:
        axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(axes) != len(views):
            raise ArgumentError(f"ax must be {len(views)} Axes, one per view, not {len(axes)}")
        for view, ax in zip(views, axes, strict=True):
            if (view.x.shape[1] == 3) != hasattr(ax, "get_zlim"):
                names = ", ".join(view.names)
                d = max(2, view.x.shape[1])
                raise ArgumentError(f"the view of {names} needs Axes of {d} dimensions")
        return axes, False
    columns = min(len(views), 2 if len(views) in (2, 4) else 3)
    rows = -(-len(views) // columns)
    size = (SIDE * columns + bar_width + (1.6 if len(views) == 1 else 0.4), SIDE * rows + 0.4)
    solid = [k for k, view in enumerate(views) if view.x.shape[1] == 3]
    return axes_of.side_by_side(len(views), columns, size, solid), True


def _cloud(ax, view, value, key):
    """Draw a View's rows in 2 or 3 dimensions; return an artist for the colour bar, or None.

    value : (n,) class codes or numbers, shown in the colours of `key`, a Key"""
    x, shades = _spread(view), None
    known = np.isfinite(x).all(axis=1)
    solid = {"depthshade": False} if x.shape[1] == 3 else {}
    size = 26.0 if len(x) <= 400 else 16.0 if len(x) <= 1500 else 9.0
    faint = {"s": 0.4 * size, "alpha": 0.22, "linewidths": 0.0, "zorder": 1}
    clear = {"s": size, "alpha": 0.9, "linewidths": 0.35, "edgecolors": "white", "zorder": 2}
    for rows, style in ((known & ~view.served, faint), (known & view.served, clear)):
        if rows.any():  # drawing nothing would change the limits of 3d Axes
            style = style | solid
            shades = scatter_values(ax, x[rows], value[rows], key, **style) or shades
    if view.star is not None and np.isfinite(view.star).all():
        if view.near is not None:  # rings at the neighbours of the queried row
            ring = {"s": 60, "linewidths": 0.9, "zorder": 3} | solid
            ax.scatter(*x[view.near].T, facecolors="none", edgecolors="black", **ring)
        large = {"s": 300, "linewidths": 1.4} if view.chosen else {"s": 110, "linewidths": 0.9}
        ax.scatter(*view.star[:, None], **(STAR | large), **solid)
    return shades


def _spread(view):
    """Return the points (n, d) to draw for a view; features with few values get jitter."""
    x, rng = np.array(view.x, float), np.random.default_rng(0)
    for j, column in enumerate(x.T):
        values = _few_values(column)
        if view.levels[j] or len(values):
            step = 1.0 if view.levels[j] else np.diff(values).min()
            column += 0.35 * step * rng.uniform(-0.5, 0.5, len(column))
    return x


def _strip(ax, view, value, key):
    """Draw a View of one feature: against a numeric response, or as a density per class.

    value : (n,) response, numbers or class codes; key : Key, its colours"""
    x = view.x[:, 0]
    if key.labels is None:
        x, names = np.column_stack([x, value]), (*view.names, key.name)
        both = View(x, names, view.served, "", (*view.levels, ()))
        _cloud(ax, both, value, key)
        _line(ax, view)
        return
    rng = np.random.default_rng(0)
    grid = np.linspace(np.nanmin(x), np.nanmax(x), 200)
    K = len(key.labels)
    places = [K - 1 - k for k in range(K)]
    for k, place in enumerate(places):
        member = (value == k) & np.isfinite(x)
        at = np.column_stack([x, place - 0.05 - 0.3 * rng.random(len(x))])
        for served, size, alpha in ((False, 7, 0.2), (True, 13, 0.85)):
            rows = member & (view.served == served)
            scatter_values(ax, at[rows], value[rows], key, s=size, alpha=alpha, linewidths=0)
        height = _density(x[member & view.served], grid)
        if height is not None:
            top = place + 0.55 * height
            ax.fill_between(grid, place, top, color=colour(k), alpha=0.3, lw=0)
            ax.plot(grid, top, color=colour(k), lw=1.2)
    _line(ax, view)
    ax.set_yticks(places, [str(label) for label in key.labels])
    ax.set_ylim(-0.45, K - 0.3)


def _line(ax, view):
    if view.star is None or not np.isfinite(view.star).all():
        return
    ax.axvline(view.star[0], color="black", lw=1.4 if view.chosen else 0.7, zorder=3)
    style = STAR | {"s": 220 if view.chosen else 90, "linewidths": 1.0, "clip_on": False}
    ax.scatter(view.star[0], 0.97, transform=ax.get_xaxis_transform(), **style)


def _density(x, grid):
    """Return the normal kernel density of x on `grid`, scaled to maximum 1; None for constant x."""
    if len(x) < 2 or x.std() == 0:
        return None
    quartiles = np.subtract(*np.quantile(x, [0.75, 0.25])) / 1.34
    width = 0.9 * min(x.std(), quartiles or x.std()) * len(x) ** -0.2
    height = np.exp(-0.5 * ((grid[:, None] - x) / width) ** 2).sum(axis=1)
    return height / height.max()


def _name(ax, view, key):
    d = view.x.shape[1]
    room = 2 * LONG if view.blocks else LONG
    names = [n if len(n) <= room else n[: room - 1] + "…" for n in view.names]
    ax.set_xlabel(names[0])
    if d == 1 and key.labels is None:
        ax.set_ylabel(key.name)
    if d > 1:
        ax.set_ylabel(names[1])
    for j, (which, levels) in enumerate(zip("xyz"[:d], view.levels, strict=True)):
        if levels and not (view.blocks and which == "x"):
            at = np.arange(0, len(levels), -(-len(levels) // FEW_VALUES))
            texts = [
                levels[k] if len(levels[k]) <= SHORT else levels[k][: SHORT - 1] + "…" for k in at
            ]
            turned = {"rotation": 30, "ha": "right"} if which == "x" else {}
            getattr(ax, f"set_{which}ticks")(at, texts, fontsize=7, **turned)
        values = _few_values(view.x[:, j])
        if d < 3 and 0 < len(values) <= TICKS and not levels:
            getattr(ax, f"set_{which}ticks")(values)
    if view.blocks:
        _name_blocks(ax, view)
    if d == 3:
        ax.set_zlabel(names[2], labelpad=18 if view.levels[2] else 4)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.label.set_size(8)
        ax.tick_params(labelsize=7)
        ax.patch.set_visible(False)  # it would hide the axis name of the previous panel
        for which, levels in zip("xyz", view.levels, strict=True):
            if not levels:
                ax.locator_params(which, nbins=TICKS)
        ax.set_box_aspect(None, zoom=0.8)  # otherwise labels would overlap the next panel
    else:
        tidy(ax)
    head, *rest = view.title.split("\n")
    lines = [*textwrap.wrap(head, 40), *rest]
    ax.set_title("\n".join(lines), fontsize=9, fontweight="bold" if view.chosen else "normal")


def _name_blocks(ax, view):
    """Label an x axis that combines two features: levels of one below, of the other above."""
    levels, blocks = shorten(view.levels[0], SHORT), len(view.blocks)
    width = len(levels) + 1
    step = -(-len(levels) * blocks // TICKS_BELOW)
    at = [(width * b + k, levels[k]) for b in range(blocks) for k in range(0, len(levels), step)]
    turned = {"rotation": 90} if sum(len(name) for _, name in at) > LETTERS // 2 else {}
    ax.set_xticks([place for place, _ in at], [name for _, name in at], fontsize=7, **turned)
    ax.set_xlim(-1.0, width * blocks - 1.0)
    for b in range(1, blocks):
        ax.axvline(width * b - 1.0, color=GREY, lw=0.6)
    top = ax.secondary_xaxis("top")
    middle = width * np.arange(blocks) + 0.5 * (len(levels) - 1)
    top.set_xticks(middle, shorten(view.blocks, max(3, LETTERS // blocks)), fontsize=7)
    top.tick_params(length=0)
    top.spines["top"].set_visible(False)


def _explain(axes, key, shades, star, views, fresh):
    """Draw the legend of all panels, and a colour scale for numbers.

    key : Key, the colours
    shades : artist with the colour scale; None to find it in the panels
    star : name of the marked row, or None
    fresh : whether the figure is new, with room below"""
    first = axes[-1]
    flat = next((ax for ax in axes if not hasattr(ax, "get_zlim")), None)
    entries = class_marks(first, key, s=40)
    entries.append(legend_mark(first, "row with most weight in the view", s=30, color="black"))
    faint = {"s": 12, "color": "black", "alpha": 0.25, "linewidths": 0}
    entries.append(legend_mark(first, "other row", **faint))
    if star is not None:
        entries.append(legend_mark(first, star, s=130, **STAR))
        if any(view.near is not None for view in views):
            ring = {"s": 50, "facecolors": "none", "edgecolors": "black"}
            entries.append(legend_mark(first, "its neighbours", **ring))
    figure = first.figure
    if shades is None and key.labels is None and flat is not None:
        shades = next((c for ax in axes for c in ax.collections if c.get_array() is not None), None)
    if shades is not None:
        pad = 0.08 if any(hasattr(ax, "get_zlim") for ax in axes) else 0.02  # room for an axis name
        figure.colorbar(shades, ax=list(axes), label=key.name, pad=pad, shrink=0.85)
    style = {"frameon": False, "fontsize": 8}
    if fresh:
        most = max(2, int(figure.get_size_inches()[0] / 1.75))
        place = {"loc": "outside lower center", "ncols": min(len(entries), most)}
        legend(figure, entries, **place, **style)
    else:
        legend(first, entries, **style)
