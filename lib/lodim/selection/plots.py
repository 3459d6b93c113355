"""Plots of a regularization path and of a cross-validation."""

import numpy as np
import pandas as pd

from lodim.checks import whole
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.plot.axes import GREY, LEGEND_OUTSIDE, RED, ensure_axes, tidy
from lodim.plot.lettering import literal
from lodim.plot.lines import against_log
from lodim.report.phrases import per
from lodim.report.tables import significant

FEW_PLACES = 12  # up to this many values of a setting, each value has a tick


@literal
def path(path, ax=None, top=10):
    """Draw estimates (per SD if known) of a Path against log lambda; name the `top` largest."""
    frame, top = in_pandas(path.tidy)(), whole("top", top)
    terms = list(path.fits[0].coef().index.names)
    standardized = "std_estimate" in frame
    values = "std_estimate" if standardized else "estimate"
    table = {"index": path.penalty, "columns": terms, "values": values}
    wide = frame.pivot_table(**table, sort=False, observed=True).sort_index().fillna(0.0)
    if wide.empty:
        raise ArgumentError("the path has no features to draw")
    above = ("Df", path.lambdas, [str(df) for df in in_pandas(path.glance)()["df"]])
    ylabel = path.fits[0]._estimate_name + f" {per(path.fits[0])}" * standardized
    return against_log(wide, path.penalty.rstrip("_"), ylabel, above, ax, top)


@literal
def cv_curve(cv, ax=None):
    """Draw the held-out losses of a CV, with standard errors, against the CV's first setting."""
    if not cv.grid:
        raise ArgumentError("this cv has only one point, so there is no curve to draw")
    ax = ensure_axes(ax)
    name, others = cv.grid[0], list(cv.grid[1:])
    frame = cv.frame.dropna(subset=[name])
    if len(frame) < len(cv.frame):
        _model_choice(ax, cv, name)
    numeric = pd.api.types.is_numeric_dtype(frame[name])
    penalty = name in cv.penalties and numeric and (frame[name] > 0).all()
    place = np.log(frame[name]) if penalty else frame[name] if numeric else frame[name].astype(str)
    if others:
        _several_series(ax, cv, frame, place, others, numeric)
    else:
        style = {"fmt": "o", "ms": 4, "lw": 0.8, "capsize": 2, "color": RED, "ecolor": GREY}
        ax.errorbar(place, frame["mean"], frame["se"], **style)
        if numeric and not penalty:
            ax.plot(place, frame["mean"], lw=0.8, alpha=0.6, color=RED)
    for row, style in ((cv.index_min, "--"), (cv.index_1se, ":")):
        if row in frame.index:
            ax.axvline(place[row], color="black", lw=0.8, ls=style)
    if numeric and not penalty and frame[name].nunique() <= FEW_PLACES:
        ax.set_xticks(sorted(frame[name].unique()))
    if penalty:
        ax.invert_xaxis()
        if not others and cv.stages in frame:
            top, step = ax.secondary_xaxis("top"), max(1, len(frame) // 10)
            counts = frame[cv.stages].to_numpy()[::step]
            top.set_xticks(place.to_numpy()[::step], list(map(str, counts)))
            top.set_xlabel(f"stages ({cv.stages})")
    ax.set_xlabel(f"log({name.rstrip('_')})" if penalty else name)
    ax.set_ylabel(f"held-out {cv.loss}")
    ax.set_title("dashed: lowest loss; dotted: simplest within one standard error", fontsize=9)
    return tidy(ax)


def _several_series(ax, cv, frame, place, others, numeric):
    """Draw held-out losses of a CV, in a colour per combination of values of settings `others`.

    frame, place : rows of cv.frame to draw, and Series of their positions on the x axis
    numeric : whether to connect the points by lines"""
    series = list(frame.groupby(others, sort=False))
    for k, (values, part) in enumerate(series):
        x, mean = place[part.index], part["mean"]
        if numeric:  # shifted, so that error bars do not hide each other
            places = np.unique(x)
            gap = np.diff(places).min() if len(places) > 1 else 0.0
            x = x + 0.2 * gap * (k - 0.5 * (len(series) - 1)) / len(series)
        label = ", ".join(f"{n}={significant(v)}" for n, v in zip(others, values, strict=True))
        bars = ax.errorbar(x, mean, part["se"], fmt="o", ms=4, lw=0.8, capsize=2, label=label)
        if numeric:
            ax.plot(x, mean, lw=0.8, alpha=0.6, color=bars[0].get_color())
            ringed = [row for row in (cv.index_min, cv.index_1se) if row in part.index]
            ax.scatter(x[ringed], mean[ringed], s=90, facecolor="none", edgecolor="black")
    ax.legend(**LEGEND_OUTSIDE)


def _model_choice(ax, cv, name):
    """Draw horizontal lines at the losses of grid points that leave setting `name` to the model."""
    styles = {cv.index_1se: ":", cv.index_min: "--"}
    frame = cv.frame[cv.frame[name].isna()]
    for row, mean, se in zip(frame.index, frame["mean"], frame["se"], strict=True):
        ax.axhspan(mean - se, mean + se, color=GREY, alpha=0.2, lw=0)
        label = f"{name.rstrip('_')} left to the model" if row == frame.index[0] else None
        color = "black" if row in styles else GREY
        ax.axhline(mean, color=color, lw=0.8, ls=styles.get(row, "-"), label=label)
    ax.legend(frameon=False, fontsize=8)
