"""Points and surfaces in the plane, for plots of models that are made of rows."""

import textwrap
from dataclasses import dataclass

import numpy as np

from lodim.plot.axes import BLUE, GREY, LONGEST, _apart, _axes, _tidy
from lodim.plot.lettering import legend
from lodim.report.phrases import brief
from lodim.report.tables import significant

# Okabe and Ito's colours, which colour-blind readers tell apart, each with a mark of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
SCALE = "viridis"
LARGEST = 260.0  # area of the largest circle, in points^2
VEIL = "#505050"
SIZE = (7.4, 5.0)


@dataclass(frozen=True)
class Points:
    """Points xy (n, 2) with a class code or number each (n,), NaN where it is not known.

    size : (n,) areas, the largest of which is drawn at LARGEST; None: small and faint
    """

    xy: np.ndarray
    value: np.ndarray
    size: np.ndarray | None = None


@dataclass(frozen=True)
class Key:
    """How values are coloured: by class where there are `labels`, else on a scale from low to high.

    name : of the response; size : what the areas of points say
    """

    name: str
    labels: tuple | None
    low: float
    high: float
    size: str = ""

    @property
    def entries(self):
        """A text for each class."""
        name = brief([self.name], LONGEST)[0]
        return [f"{name} = {label}" for label in brief(self.labels or (), LONGEST)]

    @classmethod
    def of(cls, name, labels, values, size=""):
        """The key that shows all values."""
        known = values[np.isfinite(values)]
        ends = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        return cls(name, labels, float(ends[0]), float(ends[1]), size)


def plane(
    points, key, names, ax=None, *, faint=None, star=None, title=None, tags=None, square=False
):
    """Draw points over faint ones, with a star at one place; returns the Axes.

    names : of the two axes; star : (label, (2,) place); tags : texts by position of their points;
    square : whether a unit is as long on both axes
    """
    ax = _axes(ax, SIZE)
    shades = None
    if faint is not None:
        shades = _scatter(ax, faint, key, s=13, alpha=0.35, lw=0, zorder=1)
    area = _areas(points.size)
    # Small circles lie on large ones, none is hidden.
    order = np.argsort(-area, kind="stable")
    big = Points(points.xy[order], points.value[order])
    style = {"alpha": 0.9, "edgecolor": "black", "lw": np.where(area[order] > 12, 0.7, 0.0)}
    shades = _scatter(ax, big, key, s=area[order], zorder=2, **style) or shades
    if star is not None:
        ax.scatter(*star[1], marker="*", s=320, color="white", edgecolor="black", lw=1.4, zorder=4)
    if square:
        ax.set_aspect("equal", adjustable="datalim")
    _tag(ax, points.xy, np.sqrt(area) / 2.0, tags or {})
    _finish(ax, names, title)
    if key.labels is None and shades is not None:
        ax.figure.colorbar(shades, ax=ax, label=key.name, pad=0.02)
    return _legend(ax, points, key, faint, star)


def surface(x, y, Z, key, names, ax=None, *, points=None, level=None, edge=None, star=None,
            title=None):  # fmt: skip
    """Draw Z (len(y), len(x)) as shades with contour lines, and prototypes on it.

    key.low and key.high are the ends of the scale; level : a value whose contour is drawn thick;
    edge : (len(y), len(x)), below zero where the surface is hatched, and what that means
    """
    ax = _axes(ax, SIZE)
    share = (key.low, key.high) == (0.0, 1.0)
    shades = ax.contourf(x, y, Z, np.linspace(0.0, 1.0, 21) if share else 16, cmap=SCALE)
    if level is not None and Z.min() < level < Z.max():
        line = ax.contour(x, y, Z, [level], colors="white", linewidths=1.6)
        ax.clabel(line, fmt=f"{level:g}", fontsize=8)
    ticks = np.linspace(0.0, 1.0, 6) if share else None
    ax.figure.colorbar(shades, ax=ax, label=key.name, pad=0.02, ticks=ticks)
    return _over(ax, x, y, names, points, edge, star, title, key)


def classes(x, y, P, key, names, ax=None, *, points=None, edge=None, star=None, title=None):
    """Draw the most probable class at each place, the paler the less probable; P (y, x, K)."""
    ax = _axes(ax, SIZE)
    K = P.shape[2]
    sure = (P.max(axis=2) - 1.0 / K) / (1.0 - 1.0 / K)
    rgb = np.array([_rgb(COLOURS[k % len(COLOURS)]) for k in range(K)])[P.argmax(axis=2)]
    picture = 1.0 - 0.75 * sure[..., None] * (1.0 - rgb)
    ax.pcolormesh(x, y, picture, shading="nearest", rasterized=True)
    return _over(ax, x, y, names, points, edge, star, title, key)


def weights(names, v, ax=None, xlabel="feature weight per SD"):
    """Weights v (B, n) of features by batch: a line from zero and a mark for each batch."""
    ax = _axes(ax, (7.0, max(2.5, 0.32 * len(names) + 1.2)))
    y = np.arange(len(names))[::-1]
    ax.hlines(y, 0.0, v.max(axis=0, initial=0.0), color=GREY, lw=0.8, zorder=1)
    one = (v > 0).any(axis=1).sum() == 1
    for b, row in enumerate(v):
        on = row > 0
        if not on.any():
            continue
        ax.scatter(row[on], y[on], s=46, marker=MARKS[b % len(MARKS)], zorder=2 + b,
                   color=BLUE if one else COLOURS[b % len(COLOURS)], alpha=0.85,
                   edgecolor="black", lw=0.5, label=f"batch {b + 1}")  # fmt: skip
    ax.set_yticks(y, names)
    ax.set_xlim(left=0.0)
    ax.set_xlabel(xlabel)
    if not one:
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _tidy(ax)


def _tag(ax, xy, radius, tags):
    """Texts beside points, away from the middle of them all, moved apart where they would meet."""
    points = ax.figure.dpi / 72.0
    at = ax.transData.transform(xy)[list(tags)] / points
    size, texts = radius[list(tags)], list(tags.values())
    right = at[:, 0] >= at[:, 0].mean() if len(at) else np.zeros(0, bool)
    room = size + 10.0 + 6.0 * np.array([len(text) for text in texts])
    low, high = ax.transAxes.transform([(0.0, 0.0), (1.0, 0.0)])[:, 0] / points
    right = (right & (at[:, 0] + room <= high)) | (at[:, 0] - room < low)
    for side in (right, ~right):
        order = np.flatnonzero(side)[np.argsort(at[side, 1], kind="stable")]
        heights = _apart(at[order, 1], 11.0)
        sign, where = (1, "left") if side is right else (-1, "right")
        for k, height in zip(order, heights, strict=True):
            ax.annotate(
                texts[k], xy[list(tags)[k]], xytext=(sign * (size[k] + 8), height - at[k, 1]),
                textcoords="offset points", fontsize=8, zorder=5, va="center", ha=where,
                arrowprops={"arrowstyle": "-", "lw": 0.5, "color": "black", "shrinkB": 0},
            )  # fmt: skip


def _over(ax, x, y, names, points, edge, star, title, key):
    """What lies on a surface."""
    if edge is not None:
        veil = ax.contourf(x, y, edge[0], [-np.inf, 0.0], colors="none", hatches=["///"])
        veil.set_edgecolor(VEIL)
        veil.set_linewidth(0.0)
    if points is not None and len(points.xy):
        area = 0.5 * _areas(points.size)
        _scatter(ax, points, key, s=area, alpha=0.9, lw=0.8, edgecolor="white", zorder=2,
                 inside=True)  # fmt: skip
    if star is not None:
        ax.scatter(*star[1], marker="*", s=260, color="white", edgecolor="black", lw=1.2, zorder=4)
    _finish(ax, names, title)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
    return _legend(ax, points, key, None, star, edge)


def _areas(size):
    if size is None:
        return np.zeros(0)
    return LARGEST * size / max(size.max(initial=0.0), 1e-300)


def _scatter(ax, points, key, *, s, lw, inside=False, **style):
    """Points by class or on the scale; those of unknown value are grey. Returns the scale's."""
    known = np.isfinite(points.value)
    s, lw = (np.broadcast_to(z, len(points.xy)) for z in (s, lw))

    def put(of, **more):
        return ax.scatter(*points.xy[of].T, s=s[of], linewidths=lw[of], **(style | more))

    if not known.all():
        put(~known, color=GREY, zorder=style["zorder"] - 0.5)
    if key.labels is not None:
        for k in range(len(key.labels)):
            mark = {"color": COLOURS[k % len(COLOURS)], "marker": MARKS[k % len(MARKS)]}
            put(known & (points.value == k), **({"edgecolor": "none"} | style | mark))
        return None
    if inside:
        return put(known, color="none", edgecolor="white")
    return put(known, c=points.value[known], cmap=SCALE, vmin=key.low, vmax=key.high)


def _legend(ax, points, key, faint, star, edge=None):
    """The legend, outside on the right, where it hides nothing."""
    entries = []
    for k, label in enumerate(key.entries):
        style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKS[k % len(MARKS)]}
        entries.append(_mark(ax, label, s=55, lw=0.8, edgecolor="black", **style))
    if faint is not None:
        entries.append(_mark(ax, "rows of data", s=13, color=GREY, lw=0, alpha=0.6))
    if star is not None:
        entries.append(_mark(ax, star[0], s=150, marker="*", color="white", edgecolor="black"))
    if edge is not None:
        style = {"facecolor": "white", "edgecolor": VEIL, "hatch": "///", "lw": 0.5}
        entries.append(ax.fill_between([], [], [], label=edge[1], **style))
    if points is not None and points.size is not None and len(points.size) and key.size:
        top = points.size.max()
        small = 0.5 if edge is not None else 1.0
        for share in (1.0, 0.25):
            style = {"s": small * share * LARGEST, "color": "none", "edgecolor": "black"}
            entries.append(_mark(ax, f"{key.size} {significant(share * top, 2)}", **style))
    if entries and key.labels is None:  # the scale is on the right
        place = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.13), "ncols": 4}
        legend(ax, entries, frameon=False, fontsize=8, **place)
    elif entries:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "labelspacing": 1.1}
        legend(ax, entries, frameon=False, fontsize=8, **place)
    return ax


def _mark(ax, label, **style):
    return ax.scatter([], [], label=label, **style)


def _finish(ax, names, title):
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    if title:
        ax.set_title("\n".join(textwrap.wrap(title, 62)), fontsize=9)
    _tidy(ax)


def _rgb(colour):
    return [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
