"""Plots of points, surfaces and class regions in the plane, with their colours and marks."""

import textwrap
from dataclasses import dataclass

import numpy as np

from lodim.plot import axes
from lodim.plot.lettering import legend
from lodim.report.tables import significant

LARGEST = 260.0  # area of the largest circle in square points
VEIL = "#505050"
STAR = {"marker": "*", "color": "white", "edgecolor": "black", "zorder": 4}
HATCHED = {"facecolor": "white", "edgecolor": VEIL, "hatch": "///", "lw": 0.5}


@dataclass(frozen=True)
class Points:
    """Points xy (n, 2) to draw, with class codes or numbers `value` (n,) and areas `size` (n,)."""

    xy: np.ndarray
    value: np.ndarray  # NaN if unknown
    size: np.ndarray | None = None  # scaled when drawn; None: small and faint points

    @property
    def area(self):
        """Areas (n,) of the points in square typographic points."""
        return LARGEST * self.size / max(self.size.max(initial=0.0), 1e-300)


@dataclass(frozen=True)
class Key:
    """Key to colours (classes, or numbers from `low` to `high`) and areas (`size`) of points."""

    name: str
    labels: tuple | None
    low: float
    high: float
    size: str = ""

    @property
    def entries(self):
        return axes.class_labels(self.name, self.labels or (), axes.LONGEST)

    @classmethod
    def from_response(cls, name, labels, values, size=""):
        """Return the Key (meaning of colours) of a response: classes, or a scale over `values`.

        name : name of the response; labels : names of its classes, None for numbers
        size : what the area of a point shows, "" for nothing"""
        known = values[np.isfinite(values)]
        ends = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        return cls(name, labels, float(ends[0]), float(ends[1]), size)


def scatter_values(ax, xy, value, key, *, hollow=False, unknown=None, **style):
    """Draw points xy (n, d) in the colours of a Key; return the artist of numbers, or None.

    value : (n,) class codes or numbers
    hollow : whether numbers are white rings
    unknown : style of points with value NaN, or None
    style : arguments of ax.scatter; arrays have an entry per point"""
    known = np.isfinite(value)

    def put(rows, **further):
        each = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in style.items()}
        return ax.scatter(*xy[rows].T, **(each | further))

    if not known.all():
        put(~known, color=axes.GREY, **(unknown or {}))
    if key.labels is not None:
        for k in range(len(key.labels)):
            if (value == k).any():
                put(value == k, **axes.class_style(k))
        return None
    if not known.any() and len(known):
        return None
    if hollow:
        return put(known, color="none", edgecolor="white")
    return put(known, c=value[known], cmap=axes.SCALE, vmin=key.low, vmax=key.high)


def legend_mark(ax, label, **style):
    """Return a mark that stands in the legend only, with a label and a `style` of scatter()."""
    nowhere = [[], [], []] if hasattr(ax, "get_zlim") else [[], []]
    return ax.scatter(*nowhere, label=label, **style)


def class_marks(ax, key, **style):
    return [
        legend_mark(ax, text, **axes.class_style(k), **style) for k, text in enumerate(key.entries)
    ]


def plane(
    points, key, names, ax=None, *, faint=None, star=None, title=None, tags=None, square=False
):
    """Draw Points in a plane, in the colours of a Key; return the Axes.

    faint : further Points, small and pale, or None
    star : (label, position), or None
    tags : dict index of a point -> text, or None"""
    ax = axes.ensure_axes(ax, axes.SIZE)
    shades = None
    if faint is not None:
        shades = _scatter(ax, faint, key, 1, s=13, alpha=0.35, linewidths=0.0, edgecolor="none")
    area = points.area
    # Small circles are drawn on top of large ones, so that none is hidden.
    order = np.argsort(-area, kind="stable")
    sorted_points = Points(points.xy[order], points.value[order])
    widths = np.where(area[order] > 12, 0.7, 0.0)
    style = {"s": area[order], "linewidths": widths, "alpha": 0.9, "edgecolor": "black"}
    shades = _scatter(ax, sorted_points, key, 2, **style) or shades
    if star is not None:
        ax.scatter(*star[1], s=320, lw=1.4, **STAR)
    if square:
        ax.set_aspect("equal", adjustable="datalim")
    _tag(ax, points.xy, np.sqrt(area) / 2.0, tags or {})
    _finish(ax, names, title)
    if key.labels is None and shades is not None:
        ax.figure.colorbar(shades, ax=ax, label=key.name, pad=0.02)
    return _legend(ax, points, key, faint, star)


def surface(x, y, Z, key, names, ax=None, *, level=None, **over):
    """Draw values on a grid as a surface, in the colours of a Key; return the Axes.

    Z : (len(y), len(x)) values
    level : value of a contour line, or None
    over : further arguments of `_draw_over`"""
    ax = axes.ensure_axes(ax, axes.SIZE)
    share = (key.low, key.high) == (0.0, 1.0)
    shades = ax.contourf(x, y, Z, np.linspace(0.0, 1.0, 21) if share else 16, cmap=axes.SCALE)
    if level is not None and Z.min() < level < Z.max():
        line = ax.contour(x, y, Z, [level], colors="white", linewidths=1.6)
        ax.clabel(line, fmt=f"{level:g}", fontsize=8)
    ticks = np.linspace(0.0, 1.0, 6) if share else None
    ax.figure.colorbar(shades, ax=ax, label=key.name, pad=0.02, ticks=ticks)
    return _draw_over(ax, x, y, names, key, **over)


def classes(x, y, P, key, names, ax=None, **over):
    """Draw the most probable class on a grid, paler if less probable; return the Axes.

    P : (len(y), len(x), K) probabilities of the classes
    over : further arguments of `_draw_over`"""
    ax = axes.ensure_axes(ax, axes.SIZE)
    K = P.shape[2]
    certainty = (P.max(axis=2) - 1.0 / K) / (1.0 - 1.0 / K)
    picture = 1.0 - 0.75 * certainty[..., None] * (1.0 - axes.class_rgb(P.argmax(axis=2)))
    ax.pcolormesh(x, y, picture, shading="nearest", rasterized=True)
    return _draw_over(ax, x, y, names, key, **over)


def _scatter(ax, points, key, zorder, **style):
    style |= {"zorder": zorder, "unknown": {"zorder": zorder - 0.5}}
    return scatter_values(ax, points.xy, points.value, key, **style)


def _tag(ax, xy, radius, tags):
    """Write texts next to points xy (n, 2); radius : (n,) in 1/72 inch; tags : dict row -> text."""
    points = ax.figure.dpi / 72.0
    at = ax.transData.transform(xy)[list(tags)] / points
    size, texts = radius[list(tags)], list(tags.values())
    right = at[:, 0] >= at[:, 0].mean() if len(at) else np.zeros(0, bool)
    room = size + 10.0 + 6.0 * np.array([len(text) for text in texts])
    low, high = ax.transAxes.transform([(0.0, 0.0), (1.0, 0.0)])[:, 0] / points
    right = (right & (at[:, 0] + room <= high)) | (at[:, 0] - room < low)
    line = {"arrowstyle": "-", "lw": 0.5, "color": "black", "shrinkB": 0}
    style = {"textcoords": "offset points", "fontsize": 8, "va": "center", "arrowprops": line}
    for side, sign, ha in ((right, 1, "left"), (~right, -1, "right")):
        order = np.flatnonzero(side)[np.argsort(at[side, 1], kind="stable")]
        heights = axes.spread_labels(at[order, 1], 11.0)
        for k, height in zip(order, heights, strict=True):
            offset = (sign * (size[k] + 8), height - at[k, 1])
            ax.annotate(texts[k], xy[list(tags)[k]], xytext=offset, ha=ha, zorder=5, **style)


def _draw_over(ax, x, y, names, key, *, points=None, edge=None, star=None, title=None):
    """Add points, a region, a star and the legend to a surface; return the Axes.

    x, y : coordinates of the grid
    key : Key, the colours
    edge : (values on the grid, label) of the region of negative values, or None
    star : (label, position), or None"""
    if edge is not None:
        veil = ax.contourf(x, y, edge[0], [-np.inf, 0.0], colors="none", hatches=["///"])
        veil.set_edgecolor(VEIL)
        veil.set_linewidth(0.0)
    if points is not None and len(points.xy):
        style = {"s": 0.5 * points.area, "alpha": 0.9, "linewidths": 0.8, "edgecolor": "white"}
        _scatter(ax, points, key, 2, hollow=True, **style)
    if star is not None:
        ax.scatter(*star[1], s=260, lw=1.2, **STAR)
    _finish(ax, names, title)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    return _legend(ax, points, key, None, star, edge)


def _legend(ax, points, key, faint, star, edge=None):
    """Draw a legend of classes, sizes and marks; return the Axes.

    points, faint : Points, or None
    star : (label, position), or None
    edge : (values on the grid, label) of the region of negative values, or None"""
    entries = class_marks(ax, key, s=55, lw=0.8, edgecolor="black")
    if faint is not None:
        entries.append(legend_mark(ax, "rows of data", s=13, color=axes.GREY, lw=0, alpha=0.6))
    if star is not None:
        entries.append(legend_mark(ax, star[0], s=150, **STAR))
    if edge is not None:
        entries.append(ax.fill_between([], [], [], label=edge[1], **HATCHED))
    if points is not None and points.size is not None and len(points.size) and key.size:
        small = 0.5 if edge is not None else 1.0
        for share in (1.0, 0.25):
            text = f"{key.size} {significant(share * points.size.max(), 2)}"
            ring = {"s": small * share * LARGEST, "color": "none", "edgecolor": "black"}
            entries.append(legend_mark(ax, text, **ring))
    place = {"bbox_to_anchor": (1.01, 1.0), "labelspacing": 1.1}
    if key.labels is None:  # the colour scale is on the right
        place = {"bbox_to_anchor": (-0.02, -0.13), "ncols": 4}
    if entries:
        legend(ax, entries, loc="upper left", frameon=False, fontsize=8, **place)
    return ax


def _finish(ax, names, title):
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if title:
        ax.set_title("\n".join(textwrap.wrap(title, 62)), fontsize=9)
    axes.tidy(ax)
