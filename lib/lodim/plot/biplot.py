"""Plots of rows in one to three dimensions: points, densities, boundaries, loadings as arrows."""

from dataclasses import dataclass

import numpy as np

from lodim.errors import ArgumentError
from lodim.plot.axes import GREY, SIZE, class_rgb, class_style, colour, ensure_axes, tidy
from lodim.plot.legend import INK, MAX_CONTOURS, NAME_LENGTH, NARROW, key, write
from lodim.text import counted, shorten

TAIL, FENCE = 0.01, 0.35  # shares of rows, and distance, that define outliers
MANY_CLASSES, SHORT_NAME = 14, 9  # with more classes, names in the plot are this short
CROWDED = 0.12  # largest share of the Axes that names of classes may cover
ROUNDS = 200  # largest number of times that overlapping names are moved apart
REACH = 0.62  # length of the longest arrow, as a share of the distance to the frame
ARROW = {"arrowstyle": "-|>", "color": INK, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}


@dataclass(frozen=True)
class Rows:
    """Rows to draw: coordinates xy (n, k), and class codes (n,), NaN if unknown."""

    xy: np.ndarray
    code: np.ndarray

    def of_class(self, k):
        return self.xy[self.code == k]


@dataclass(frozen=True)
class Arrows:
    """Loadings (m, k) of features to draw as arrows, their names, and what they represent."""

    names: list
    to: np.ndarray
    what: str


def frame(xy, ratio=None):
    """Return the lower and upper limits (2, k) of axes that show rows xy (n, k), except outliers.

    ratio : width over height of a plane, to which limits are widened; None for no change"""
    inner = np.quantile(xy, [TAIL, 1.0 - TAIL], axis=0)
    fence = FENCE * (inner[1] - inner[0])
    low = np.maximum(xy.min(axis=0), inner[0] - fence)
    high = np.minimum(xy.max(axis=0), inner[1] + fence)
    least = 1e-9 + 1e-6 * np.abs(xy).max(initial=0.0)
    half, middle = 0.56 * np.maximum(high - low, least), 0.5 * (low + high)
    if ratio is not None:
        half = np.maximum(half, [half[1] * ratio, half[0] / ratio])
    return np.stack([middle - half, middle + half])


def aspect(ax):
    """Return width divided by height of Axes, after leaving room for a legend."""
    box = ax.get_window_extent()
    return 0.82 * box.width / box.height


@dataclass(frozen=True)
class Ground:
    """Background of a plane plot: densities and decision scores of C classes on a grid x, y."""

    x: np.ndarray
    y: np.ndarray
    density: np.ndarray  # (l, m, C) density of each class
    levels: np.ndarray  # (C, 2) density at its contours
    score: np.ndarray | None  # (l, m, C); the class with the largest score is predicted
    least: float  # total density below which a region is empty


def plane(rows, legend, names, ax=None, *, ends, ground=None, arrows=None):
    """Draw rows in a plane; return the Axes.

    names : labels of the axes
    ends : (2, 2) lower and upper limits of the axes
    ground : Ground, densities of classes, or None
    arrows : Arrows, loadings of features, or None"""
    ax = ensure_axes(ax, SIZE)
    decided = ground is not None and ground.score is not None
    if decided:
        _chosen(ax, ground)
    peaks = [] if ground is None else _contours(ax, ground, legend)
    _points(ax, rows, legend)
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlim(ends[:, 0])
    ax.set_ylim(ends[:, 1])
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    out = int(((rows.xy < ends[0]) | (rows.xy > ends[1])).any(axis=1).sum())
    if out:
        at = {"xy": (1.0, 0.0), "xycoords": "axes fraction", "xytext": (-4, 4)}
        style = {"textcoords": "offset points", "fontsize": 7, "color": GREY, "ha": "right"}
        ax.annotate(f"{counted(out, 'row')} outside the plot", **at, **style)
    key(ax, legend, decided, ground is not None, arrows)
    features, tips, origin = [], np.zeros((0, 2)), np.zeros(2)
    if arrows is not None and len(arrows.names):
        features = shorten(arrows.names, NAME_LENGTH)
        if not ((ends[0] < origin) & (origin < ends[1])).all():
            origin = ends.mean(axis=0)
        tips = origin + stretch(arrows.to, origin, ends) * arrows.to
        style = {"zorder": 6, "annotation_clip": False, "arrowprops": ARROW | {"mutation_scale": 9}}
        for tip in tips:
            ax.annotate("", tip, origin, **style)
    _write_names(ax, features, tips, origin, peaks)
    return tidy(ax)


def _size(n):
    area, alpha = np.clip(4500.0 / max(n, 1), 3.0, 22.0), np.clip(900.0 / max(n, 1), 0.3, 0.8)
    return float(area), float(alpha)


def _points(ax, rows, legend):
    """Draw rows in random order, so that no class hides another; rows of unknown class are grey."""
    area, alpha = _size(len(rows.xy))
    known = np.isfinite(rows.code)
    style = {"s": area, "alpha": alpha, "linewidths": 0, "zorder": 3}
    style["rasterized"] = len(known) > 3000
    if not known.all():
        ax.scatter(*rows.xy[~known].T, color=GREY, **style)
    if not known.any():
        return
    order = np.random.default_rng(0).permutation(np.flatnonzero(known))
    for part in np.array_split(order, 1 if len(order) < 50 else 8):
        for k in range(len(legend.entries)):
            members = part[rows.code[part] == k]
            ax.scatter(*rows.xy[members].T, **class_style(k), **style)


def _chosen(ax, ground):
    """Draw a Ground's regions by predicted class (white: few data) and the borders of regions."""
    x, y, score = ground.x, ground.y, ground.score
    known = ground.density.sum(axis=2) > ground.least
    picture = 1.0 - 0.11 * known[..., None] * (1.0 - class_rgb(score.argmax(axis=2)))
    ax.pcolormesh(x, y, picture, shading="nearest", rasterized=True, zorder=0)
    for k in range(score.shape[2] - (score.shape[2] == 2)):
        rest = np.delete(score, k, axis=2).max(axis=2)
        lead = np.clip(score[..., k] - rest, -1.0, 1.0)
        if lead.min() < 0.0 < lead.max():
            ax.contour(x, y, lead, [0.0], colors=GREY, linewidths=0.6, linestyles=":", zorder=2)
            inside = np.ma.masked_where(~known, lead)
            if inside.count() and inside.min() < 0.0 < inside.max():
                ax.contour(x, y, inside, [0.0], colors=INK, linewidths=1.2, zorder=4)


def _contours(ax, ground, legend):
    """Draw contours of the class densities of a Ground; return where to write the names of classes.

    legend : Legend, names of the classes
    Return a list of (name, position of the peak, colour), empty if there are few classes."""
    peaks, C = [], ground.density.shape[2]
    room = NARROW if C <= MANY_CLASSES else SHORT_NAME
    named = shorten(legend.labels, room) if C > MAX_CONTOURS else ()
    for k in range(C):
        Z, levels = ground.density[..., k], np.unique(ground.levels[k])
        levels = levels[(levels > Z.min()) & (levels < Z.max())][-1 if C > MAX_CONTOURS else 0 :]
        if len(levels):
            line = {"colors": colour(k), "alpha": 0.9, "linewidths": [0.8, 1.5][-len(levels) :]}
            ax.contour(ground.x, ground.y, Z, levels, zorder=2, **line)
            shade = {"colors": [colour(k)] * len(levels), "alpha": 0.10, "zorder": 1}
            ax.contourf(ground.x, ground.y, Z, [*levels, np.inf], **shade)
        if C > MAX_CONTOURS:
            i, j = np.unravel_index(Z.argmax(), Z.shape)
            peaks.append((named[k], (ground.x[j], ground.y[i]), colour(k)))
    return peaks


def stretch(to, origin, ends):
    """Return the factor by which arrows are multiplied, so that they stay inside a plot's frame.

    to : (m, 2) arrows from `origin` (2,); ends : (2, 2) lower and upper limits of the axes"""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(to > 0.0, (ends[1] - origin) / to, (ends[0] - origin) / to)
    room = np.where(to == 0.0, np.inf, room).min(axis=1)
    return REACH * float(room.min()) if np.isfinite(room).any() else 1.0


def _write_names(ax, names, tips, origin, peaks):
    """Write feature names at arrow tips, and class names if there is room, without overlap.

    tips : (m, 2) ends of the arrows, which start at `origin` (2,)
    peaks : list of (class, position, colour)"""
    n_arrows = len(names)
    if not n_arrows + len(peaks):
        return
    ax.figure.draw_without_rendering()  # determines the positions of Axes
    scale = 72.0 / ax.figure.dpi
    places = np.vstack([tips, np.reshape([place for _, place, _ in peaks], (-1, 2))])
    at = ax.transData.transform(places) * scale
    away = at - ax.transData.transform(origin[None]) * scale
    away /= np.maximum(np.linalg.norm(away, axis=1), 1e-9)[:, None]
    away[n_arrows:] = 0.0
    styles = [{"fontsize": 8, "color": INK, "zorder": 7} for _ in names]
    styles += [{"fontsize": 9, "weight": "bold", "color": c, "zorder": 8} for *_, c in peaks]
    names = [*names, *(name for name, *_ in peaks)]
    letter = [(0.35 if "weight" in style else 0.3) * style["fontsize"] for style in styles]
    half = [[w * len(name) + 2.0, 6.0] for w, name in zip(letter, names, strict=True)]
    half = np.array(half)
    low, high = (np.array(ax.bbox.extents[i : i + 2]) * scale for i in (0, 2))
    if 4.0 * half[n_arrows:].prod(axis=1).sum() > CROWDED * np.prod(high - low):
        # Names of classes would hide the points; the legend shows them.
        names, places, at = names[:n_arrows], places[:n_arrows], at[:n_arrows]
        away, half, styles = away[:n_arrows], half[:n_arrows], styles[:n_arrows]
    inside = (np.minimum(low + half, high - half), np.maximum(low + half, high - half))
    place = np.clip(apart(np.clip(at + away * (half + 3.0), *inside), half), *inside)
    halo = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
    written = {"textcoords": "offset points", "annotation_clip": False}
    written |= {"ha": "center", "va": "center", "bbox": halo}
    for name, tip, offset, style in zip(names, places, place - at, styles, strict=True):
        ax.annotate(name, tip, xytext=offset, **written, **style)


def apart(place, half):
    """Move m rectangles of centres `place` and half sizes `half`, (m, 2), apart; return centres."""
    place = place.copy()
    for _ in range(ROUNDS):
        moved = False
        for i in range(len(place)):
            for j in range(i):
                gap = place[i] - place[j]
                over = half[i] + half[j] - np.abs(gap)
                if (over > 0.0).all():
                    axis = int(over[1] <= over[0])
                    push = 0.5 * over[axis] + 0.1
                    side = 1.0 if gap[axis] >= 0.0 else -1.0
                    place[i, axis] += side * push
                    place[j, axis] -= side * push
                    moved = True
        if not moved:
            break
    return place


def line(rows, legend, name, ax, *, x, density, best, arrows=None):
    """Draw rows as ticks on an axis, with densities of classes above; return the Axes.

    x : (m,) positions on the axis
    density : (m, C) densities of the C classes
    best : (m,) codes of the predicted classes, or None
    arrows : Arrows, loadings of features, or None"""
    top, entries = float(np.nanmax(density)), []
    for k, label in enumerate(legend.entries):
        ax.fill_between(x, density[:, k], color=colour(k), alpha=0.18, lw=0)
        entries += ax.plot(x, density[:, k], color=colour(k), lw=1.6, label=label)
        x_k = rows.of_class(k)[:, 0] if legend.labels is not None else rows.xy[:, 0]
        height = np.full(len(x_k), -0.03 * top * (k + 1))
        style = {"color": colour(k), "ms": 7, "rasterized": len(x_k) > 3000}
        ax.plot(x_k, height, "|", alpha=min(1.0, 150.0 / max(len(x_k), 1) + 0.15), **style)
    unknown = rows.xy[np.isnan(rows.code), 0]
    floor = -0.03 * top * (len(legend.entries) + 1)
    ax.plot(unknown, np.full(len(unknown), floor), "|", color=GREY, ms=7)
    if best is not None:
        _thresholds(ax, x, best)
    ax.axhline(0.0, color=INK, lw=0.6)
    ax.set_xlim(x[0], x[-1])
    if arrows is not None and len(arrows.names):  # loadings below the densities
        to, middle = arrows.to[:, 0], 0.0 if x[0] < 0.0 < x[-1] else 0.5 * (x[0] + x[-1])
        room = REACH * min(middle - x[0], x[-1] - middle) / max(np.abs(to).max(), 1e-300)
        style = {"textcoords": "offset points", "fontsize": 8, "color": INK, "va": "center"}
        props = ARROW | {"mutation_scale": 8}
        for text, length in zip(shorten(arrows.names, NAME_LENGTH), to * room, strict=True):
            floor -= 0.062 * top
            ha, gap = ("left", 4) if length >= 0.0 else ("right", -4)
            tip = (middle + length, floor)
            ax.annotate("", tip, (middle, floor), zorder=6, arrowprops=props)
            ax.annotate(text, tip, xytext=(gap, 0), ha=ha, **style)
    ax.set_ylim(floor - 0.04 * top, 1.04 * top)
    ax.set_yticks([t for t in ax.get_yticks() if 0.0 <= t <= 1.04 * top])
    ax.set_xlabel(name)
    ax.set_ylabel("density", y=0.5 * (1.0 + (0.04 * top - floor) / (1.08 * top - floor)))
    write(ax, entries, legend)
    return tidy(ax)


def _thresholds(ax, x, best):
    """Draw lines where the predicted class changes, labelled with the value of x if there is room.

    x : increasing positions; best : code of the class predicted at each, -1 for none"""
    changes = (np.diff(best) != 0) & (best[1:] >= 0) & (best[:-1] >= 0)
    places, last = 0.5 * (x[1:] + x[:-1])[changes], -np.inf
    style = {"fontsize": 8, "ha": "center", "va": "bottom", "color": INK}
    for place in places:
        ax.axvline(place, color=INK, lw=1.0, ls="--")
        if place - last > 0.07 * (x[-1] - x[0]):
            ax.annotate(f"{place:.3g}", (place, 1.0), xycoords=ax.get_xaxis_transform(), **style)
            last = place


def space(rows, legend, names, ax, *, arrows):
    """Draw Rows and Arrows in three dimensions, on axes called `names`; ax : 3D Axes or None."""
    if ax is not None and ax.name != "3d":
        raise ArgumentError(
            "three dimensions need Axes with projection='3d', such as plt.subplots(subplot_kw="
            "{'projection': '3d'})[1]; or give two of them, dimensions=(1, 2)"
        )
    if ax is None:
        ax = ensure_axes(None, (7.4, 6.0))
        figure, place = ax.figure, ax.get_subplotspec()
        ax.remove()
        ax = figure.add_subplot(place, projection="3d")
    ends = frame(rows.xy)
    area, alpha = _size(len(rows.xy))
    for k in range(-1, len(legend.entries)):
        of = np.isnan(rows.code) if k < 0 else rows.code == k
        if of.any():
            style = {"color": GREY} if k < 0 else class_style(k)
            ax.scatter(*rows.xy[of].T, s=area, alpha=alpha, linewidths=0, **style)
    if arrows is not None and len(arrows.names):
        origin = np.where((ends[0] < 0.0) & (ends[1] > 0.0), 0.0, ends.mean(axis=0))
        tips = origin + stretch(arrows.to, origin, ends) * arrows.to
        for name, tip in zip(shorten(arrows.names, NAME_LENGTH), tips, strict=True):
            ax.plot(*np.stack([origin, tip]).T, color=INK, lw=1.0)
            ax.text(*(origin + 1.08 * (tip - origin)), name, fontsize=8, color=INK, zorder=10)
    for axis, name in zip("xyz", names, strict=True):
        getattr(ax, f"set_{axis}label")(name)
    ax.set(xlim=ends[:, 0], ylim=ends[:, 1], zlim=ends[:, 2])
    key(ax, legend, False, False, arrows, inside=True)
    return ax
