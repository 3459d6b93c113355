"""What the plots of conformal intervals and sets show."""

import numpy as np

from lodim.checks import one_of, whole
from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.plot.axes import BESIDE, BLUE, GREY, RED, ensure_axes, tidy
from lodim.text import shorten

MOST = 200  # intervals that are drawn
LONGEST = 28  # characters of a group's name


def draw(conformal, kind=None, ax=None, **arguments):
    """A kind of plot by its name; see `Conformal.plot`."""
    kinds = {"intervals": sets if conformal.says.of_classes else intervals, "coverage": coverage}
    if kind is not None:
        one_of("kind", kind, kinds)
    if arguments.get("data") is None:
        raise ArgumentError("plot() needs data, new rows with known responses: plot(data=new)")
    return axes.draw(kinds, kind, conformal, ax, {"data": None} | arguments)


def intervals(conformal, ax=None, *, data, level=None, top=MOST):
    """Responses and intervals against the prediction, some rows evenly along it."""
    frame, y = conformal._beside(data, level)
    if not len(y):
        raise ArgumentError("data has no complete row to draw")
    order = np.argsort(frame["fit"].to_numpy(), kind="stable")
    at = order[np.unique(np.linspace(0, len(y) - 1, whole("top", top)).astype(int))]
    fit, low, high = (frame[name].to_numpy()[at] for name in ("fit", "lower", "upper"))
    y = y[at]
    out = (y < low) | (y > high)
    ax = ensure_axes(ax)
    ends = np.where(np.isfinite(low), low, y.min()), np.where(np.isfinite(high), high, y.max())
    ax.vlines(fit, *ends, color=GREY, lw=1.0, alpha=0.5, label="interval")
    ax.plot(fit, fit, color="black", lw=0.8)
    style = {"s": 14, "lw": 0, "zorder": 3}
    ax.scatter(fit[~out], y[~out], color=BLUE, label="covered", **style)
    ax.scatter(fit[out], y[out], color=RED, marker="s", label="not covered", **style)
    name, shown = conformal.fit.design.response.name, conformal._checked(level)
    ax.set_xlabel(f"prediction of {shorten([name], LONGEST)[0]}")
    ax.set_ylabel(shorten([name], LONGEST)[0])
    ax.set_title(f"level {shown:g}; {out.sum()} of {len(y)} rows drawn are not covered", fontsize=9)
    ax.legend(**BESIDE)
    return tidy(ax)


def sets(conformal, ax=None, *, data, level=None):
    """Share of the rows of each class by the size of their set, those without it hatched."""
    frame, y = conformal._beside(data, level)
    levels = list(conformal.fit.levels)
    inside = frame[levels].to_numpy(bool)
    size, covered = inside.sum(axis=1), inside[np.arange(len(y)), y.astype(int)]
    ax = ensure_axes(ax, (7.0, max(2.5, 0.5 * len(levels) + 1.4)))
    place, left = np.arange(len(levels))[::-1], np.zeros(len(levels))
    rows = np.maximum(np.bincount(y.astype(int), minlength=len(levels)), 1)
    for n in range(size.max() + 1):
        for right, hatch in ((True, None), (False, "////")):
            part = np.bincount(y[(size == n) & (covered == right)].astype(int), minlength=len(rows))
            if not part.any():
                continue
            shade = {"color": axes.colour(n), "alpha": 0.85} if right else {
                "facecolor": "none", "edgecolor": axes.colour(n), "hatch": hatch, "lw": 0.8,
            }  # fmt: skip
            words = "no class" if n == 0 else f"{n} class{'es' * (n > 1)}"
            label = words if right or n == 0 else f"{words}, not its own"
            ax.barh(place, part / rows, left=left, height=0.6, label=label, **shade)
            left = left + part / rows
    ax.set_yticks(place, shorten(levels, LONGEST))
    ax.set_xlabel("share of the rows of the class, by the size of their set")
    ax.set_xlim(0.0, 1.0)
    ax.set_title(f"level {conformal._checked(level):g}: {covered.mean():.3f} covered", fontsize=9)
    ax.legend(**BESIDE)
    return tidy(ax)


def coverage(conformal, ax=None, *, data, by=None, level=None):
    """Coverage of groups of rows, with its error, beside the level."""
    if by is None:
        raise ArgumentError("kind 'coverage' needs by, a column or an array: plot(..., by='sex')")
    frame = conformal.coverage(data, by, level=level)
    place = np.arange(len(frame))[::-1]
    ax = ensure_axes(ax, (7.0, max(2.5, 0.36 * len(frame) + 1.4)))
    ax.axvline(conformal._checked(level), color="black", lw=0.8, ls="--")
    ax.hlines(place, frame["conf_low"], frame["conf_high"], color=GREY, lw=1.6)
    ax.scatter(frame["coverage"], place, s=26, color=BLUE, zorder=3)
    named = zip(shorten(frame.iloc[:, 0], LONGEST), frame["n"], strict=True)
    ax.set_yticks(place, [f"{name} ({n})" for name, n in named])
    ax.set_ylim(-0.6, len(frame) - 0.4)
    ax.set_ylabel(shorten([frame.columns[0]], LONGEST)[0])
    ax.set_xlabel("coverage, with 95 % interval")
    ax.set_title("dashed: the level; in brackets the number of rows", fontsize=9)
    return tidy(ax)
