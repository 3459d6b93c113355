"""Plots of a GlmFit."""

import numpy as np
from scipy import stats

from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.plot import axes
from lodim.plot.bars import forest
from lodim.report.phrases import term_labels
from lodim.text import shorten

CONTOURS = (0.5, 1.0)  # Cook's distances whose lines are drawn, as in R


def coefficients(fit, ax, *, top=20, level=0.95):
    """Draw the `top` largest estimates per standard deviation, with confidence intervals."""
    frame = in_pandas(fit.tidy)(level)
    scale = dict(zip(fit.design.names, fit.design.scale, strict=True))
    frame = frame[frame["term"].isin(scale) & frame["estimate"].notna()]
    if frame.empty:
        raise ArgumentError("the model has only an intercept, so there is no coefficient to draw")
    for name in ("estimate", "conf_low", "conf_high"):
        frame[name] *= frame["term"].map(scale)
    return forest(term_labels(frame), frame, "coefficient per SD", ax, top=top, level=level)


def residuals(fit, ax, *, named=3):
    """Draw deviance residuals against fitted values; label the `named` largest ones."""
    rows = _kept(fit)
    ax = _points(ax, rows.fitted, rows.deviance, "fitted value", "deviance residual")
    ax.axhline(0.0, color="black", lw=0.5)
    return _name(ax, rows, rows.fitted, rows.deviance, np.abs(rows.deviance), named)


def qq(fit, ax, *, named=3):
    """Draw a normal quantile plot of the deviance residuals; label the `named` largest ones."""
    rows = _kept(fit)
    order = np.argsort(rows.deviance, kind="stable")
    quantile = np.empty(len(order))
    quantile[order] = stats.norm.ppf((np.arange(len(order)) + 0.5) / len(order))
    xlabel = "quantile of the normal distribution"
    ax = _points(ax, quantile, rows.deviance, xlabel, "deviance residual")
    ax.axline((0.0, 0.0), slope=1.0, color="black", lw=0.5)
    return _name(ax, rows, quantile, rows.deviance, np.abs(rows.deviance), named)


def leverage(fit, ax, *, named=3):
    """Draw Pearson residuals against leverages; label the `named` largest Cook's distances."""
    rows = _kept(fit)
    ax = _points(ax, rows.leverage, rows.pearson, "leverage", "Pearson residual")
    ax.axhline(0.0, color="black", lw=0.5)
    most, (low, high) = np.nanmax(rows.leverage, initial=1e-9), ax.get_ylim()
    h = np.linspace(1e-3, 1.0, 1000)[:-1] * min(1.05 * most, 0.999)
    for distance in CONTOURS:
        edge = np.sqrt(distance * fit.df * (1.0 - h) / h)
        if edge[-1] < max(high, -low):
            for sign in (1.0, -1.0):
                ax.plot(h, sign * edge, color=axes.RED, lw=0.8, ls="--")
            ax.annotate(f"{distance:g}", (h[-1], edge[-1]), color=axes.RED, fontsize=8)
            ax.set_xlabel("leverage (dashed: Cook's distance)")
    ax.set_ylim(low, high)
    return _name(ax, rows, rows.leverage, rows.pearson, rows.cook, named)


def _kept(fit):
    if fit.diagnostics is None:
        raise ArgumentError(
            "this fit stores no residuals: it has more than two classes, family 'quantile' or "
            "'huber', or control={'diagnostic_rows': 0}"
        )
    return fit.diagnostics


def _points(ax, x, y, xlabel, residual):
    ax = axes.ensure_axes(ax)
    ax.plot(x, y, "o", color=axes.BLUE, ms=3.5, alpha=0.6, mew=0)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(f"standardized {residual}")
    return ax


def _name(ax, rows, x, y, size, named):
    """Write labels without overlap next to the points (x, y) of largest `size`.

    rows : Diagnostics, with the label of each point; named : number of points to label"""
    size = np.where(np.isfinite(size) & np.isfinite(y), size, -1.0)
    largest = np.argsort(-size, kind="stable")[:named]
    largest = largest[np.argsort(y[largest], kind="stable")]
    low, high = ax.get_ylim()
    heights = axes.spread_labels(y[largest], 0.04 * (high - low))
    shown = shorten([str(rows.label[k]) for k in largest], axes.LONGEST)
    for k, height, label in zip(largest, heights, shown, strict=True):
        style = {"xytext": (4, 0), "textcoords": "offset points", "fontsize": 8, "va": "center"}
        ax.annotate(label, (x[k], height), **style)
    return axes.tidy(ax)


KINDS = {"coefficients": coefficients, "residuals": residuals, "qq": qq, "leverage": leverage}
