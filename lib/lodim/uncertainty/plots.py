"""Plots of bootstrap, stability selection and conformal prediction."""

import numpy as np

from lodim.checks import one_of, whole
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.plot.axes import BLUE, GREY, LEGEND_OUTSIDE, RED, count_line, ensure_axes, listed, tidy
from lodim.plot.bars import forest
from lodim.plot.lettering import literal
from lodim.report.phrases import per, term_labels
from lodim.text import shorten


@literal
def draw_bootstrap(boot, ax=None, *, top, level):
    """Draw the `top` largest estimates of a Bootstrap, per SD of the feature, with intervals."""
    frame, xlabel = in_pandas(boot.tidy)(level=level), "statistic"
    if boot.default:
        design = boot.fit.design
        per_sd = frame["term"].map(dict(zip(design.names, design.scale, strict=True)))
        # The intercept is not an effect and has another scale; views of ripr have no unit.
        named = bool(per_sd.notna().any())
        frame, per_sd = (v[per_sd.notna()] if named else v for v in (frame, per_sd))
        xlabel = boot.fit._estimate_name + f" {per(boot.fit)}" * named
        for name in ("estimate", "conf_low", "conf_high") if named else ():
            frame[name] *= per_sd
    frame = frame[np.isfinite(frame["conf_low"]) & np.isfinite(frame["estimate"])]
    names = term_labels(frame)
    if "dimension" in frame:
        names = [f"{d}: {t}" for d, t in zip(frame["dimension"], names, strict=True)]
    return forest(names, frame, xlabel, ax, top=top, level=level)


LONGEST_TERM = 36  # largest number of characters of a term's name


@literal
def draw_stability(stability, ax=None, top=30):
    """Draw the share of half-samples that select each term of a Stability, largest on top."""
    frame = stability.frame.head(whole("top", top))
    ax, place = listed(ax, shorten(frame["term"], LONGEST_TERM), 0.28, 1.4)
    share, stable = frame["share"].to_numpy(), frame["stable"].to_numpy()
    for on, color, label in ((stable, BLUE, "stable"), (~stable, GREY, "not stable")):
        ax.hlines(place[on], 0.0, share[on], color=color, lw=1.4, alpha=0.7)
        ax.scatter(share[on], place[on], s=30, color=color, label=label, zorder=3, clip_on=False)
    ax.axvline(stability.cutoff, color="black", lw=0.8, ls="--")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-0.6, len(frame) - 0.4)
    xlabel = f"share of {2 * stability.n} halves of the rows that select it"
    ax.set_xlabel(xlabel + count_line(len(frame), len(stability.frame)))
    ax.set_title(f"dashed: cutoff {stability.cutoff:g}", fontsize=9)
    ax.legend(**LEGEND_OUTSIDE)
    return tidy(ax)


MAX_INTERVALS = 200  # largest number of intervals drawn
LONGEST_GROUP = 28  # largest number of characters of a group's name


def draw_conformal(conformal, kind=None, ax=None, **arguments):
    """Draw prediction intervals (or sizes of sets of classes) or coverage; return the Axes.

    kind : "intervals", also for classes, or "coverage"; None means "intervals"
    arguments : `data`, new rows with the response, and options such as `level`"""
    kinds = {"intervals": sets if conformal.says.of_classes else intervals, "coverage": coverage}
    if kind is not None:
        one_of("kind", kind, kinds)
    if arguments.get("data") is None:
        raise ArgumentError("plot() needs new rows with known responses: plot(data=new)")
    return axes.draw(kinds, kind, conformal, ax, {"data": None} | arguments)


def intervals(conformal, ax=None, *, data, level=None, top=MAX_INTERVALS):
    """Draw Conformal intervals and responses of at most `top` rows of data against predictions."""
    frame, y = conformal._with_responses(data, level)
    if not len(y):
        raise ArgumentError("data must have a row without missing values to draw")
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
    ax.set_xlabel(f"prediction of {shorten([name], LONGEST_GROUP)[0]}")
    ax.set_ylabel(shorten([name], LONGEST_GROUP)[0])
    rows = f"{out.sum()} of the {len(y)} rows in the plot"
    ax.set_title(f"level {shown:g}; {rows} are not covered", fontsize=9)
    ax.legend(**LEGEND_OUTSIDE)
    return tidy(ax)


def sets(conformal, ax=None, *, data, level=None):
    """Draw a bar per class: shares of rows by size of their set, hatched if without their class."""
    frame, y = conformal._with_responses(data, level)
    levels = list(conformal.fit.levels)
    inside = frame[levels].to_numpy(bool)
    size, covered = inside.sum(axis=1), inside[np.arange(len(y)), y.astype(int)]
    (ax, place), left = listed(ax, shorten(levels, LONGEST_GROUP), 0.5, 1.4), np.zeros(len(levels))
    rows = np.maximum(np.bincount(y.astype(int), minlength=len(levels)), 1)
    for n in range(size.max() + 1):
        for right, hatch in ((True, None), (False, "////")):
            part = np.bincount(y[(size == n) & (covered == right)].astype(int), minlength=len(rows))
            if not part.any():
                continue
            colour = axes.colour(n)
            shade = {"facecolor": "none", "edgecolor": colour, "hatch": hatch, "lw": 0.8}
            if right:
                shade = {"color": colour, "alpha": 0.85}
            words = "no class" if n == 0 else f"{n} class{'es' * (n > 1)}"
            label = words if right or n == 0 else f"{words}, not its own"
            ax.barh(place, part / rows, left=left, height=0.6, label=label, **shade)
            left = left + part / rows
    ax.set_xlabel("share of the rows of the class, by the size of their set")
    ax.set_xlim(0.0, 1.0)
    ax.set_title(f"level {conformal._checked(level):g}: {covered.mean():.3f} covered", fontsize=9)
    ax.legend(**LEGEND_OUTSIDE)
    return tidy(ax)


def coverage(conformal, ax=None, *, data, by=None, level=None):
    """Draw the coverage of a Conformal in groups of rows, with 95% intervals.

    data : new rows with the response
    by : column or array that defines the groups
    level : coverage of the intervals or sets; None for that of `conformal`"""
    if by is None:
        raise ArgumentError("kind 'coverage' needs by, a column or an array: plot(..., by='sex')")
    frame = conformal.coverage(data, by, level=level)
    named = zip(shorten(frame.iloc[:, 0], LONGEST_GROUP), frame["n"], strict=True)
    ax, place = listed(ax, [f"{name} ({n})" for name, n in named], 0.36, 1.4)
    ax.axvline(conformal._checked(level), color="black", lw=0.8, ls="--")
    ax.hlines(place, frame["conf_low"], frame["conf_high"], color=GREY, lw=1.6)
    ax.scatter(frame["coverage"], place, s=26, color=BLUE, zorder=3)

    ax.set_ylim(-0.6, len(frame) - 0.4)
    ax.set_ylabel(shorten([frame.columns[0]], LONGEST_GROUP)[0])
    ax.set_xlabel("coverage, with 95% interval")
    ax.set_title("dashed: the level; in brackets the number of rows", fontsize=9)
    return tidy(ax)
