"""Plots of a GbmapFit."""

import numpy as np

from lodim.checks import positive
from lodim.classification import auc
from lodim.design.frame import in_pandas, one_row
from lodim.errors import ArgumentError
from lodim.models.gbmap.embedding import NEIGHBOURS
from lodim.models.gbmap.report import loss_name
from lodim.plot import points
from lodim.plot.axes import BLUE, GREY, RED, SIZE, count_line, ensure_axes, tidy, whole_ticks
from lodim.plot.bars import bars
from lodim.plot.lettering import legend
from lodim.report import phrases
from lodim.report.tables import significant


def loss(fit, ax):
    """Draw the training loss after each boost, with a line at the loss of a joint fit."""
    deviance, null = fit.learners().groupby("boost")["deviance"].last(), fit._null_deviance or 1.0
    ax = ensure_axes(ax)
    ax.plot(deviance.index, deviance, "o-", ms=3, color=BLUE)
    ax.set_xlabel("boost")
    ax.set_ylabel(loss_name(fit))
    whole_ticks(ax)
    ax.spines["top"].set_visible(False)
    to_share, to_loss = (lambda d: 100.0 * (1.0 - d / null)), (lambda e: null * (1.0 - e / 100.0))
    right = ax.secondary_yaxis("right", functions=(to_share, to_loss))
    right.set_ylabel("% deviance explained")
    if fit.refit_log is not None:
        ax.axhline(fit.refit_log["deviance"], ls="--", lw=1, color=GREY, label="joint fit")
        ax.legend(frameon=False, fontsize=8)
    return ax


def effects(fit, ax, *, top=15):
    """Draw the mean slope of the `top` most important features, per standard deviation."""
    every = in_pandas(fit.tidy)()
    frame = every.loc[every["std_estimate_abs"].sort_values(ascending=False).index[:top]]
    xlabel = f"effect on {phrases.scale(fit)}\n{phrases.per(fit)} of the feature"
    xlabel += count_line(len(frame), len(every))
    names, spread = phrases.term_labels(frame), frame["std_estimate_abs"]
    return bars(names, frame["std_estimate"], xlabel, ax, spread=spread)


def local(fit, ax, *, data, row=0, top=15):
    """Draw the `top` steepest slopes at row number `row` of data, per standard deviation."""
    one = one_row(data, row)
    gradient = in_pandas(fit.predict)(one, "local", **fit._zero_offset()).iloc[0]
    gradient = gradient * np.tile(fit.design.scale, fit.family.n_functions)
    if gradient.isna().any():
        raise ArgumentError(f"row {row} has missing values: it cannot be explained")
    n_all = len(gradient)
    gradient = gradient.loc[gradient.abs().sort_values(ascending=False).index[:top]]
    names = [n if isinstance(n, str) else f"{n[1]} ({n[0]})" for n in gradient.index]
    # If the offset was an array, `data` lacks it: the prediction is shown without it.
    unknown = fit.design.offset_given and fit.design.offset is None
    type, response = "response" if fit.levels is None else "class", fit.design.response
    predicted = in_pandas(fit.predict)(one, type, **(fit._zero_offset() if unknown else {})).iloc[0]
    shown = response.event(f"{predicted:.4g}" if fit.levels is None else predicted)
    title = f"row {one.index[0]}: predicted {shown}" + " without its offset" * unknown
    xlabel = f"local effect on {phrases.scale(fit)}\n{phrases.per(fit)} of the feature"
    xlabel += count_line(len(gradient), n_all)
    return bars(names, gradient.to_numpy(), xlabel, ax, title=title)


def embedding(fit, ax, *, data=None):
    """Draw the rows by two principal components of the learners' values, coloured by response."""
    if data is None:
        reference = fit._reference_rows()
        E, y = reference.embedding, reference.y
    else:
        batch = fit.design.rows_to_show(data, needs_response=True, **fit._zero_offset())
        if batch.n == 0:
            raise ArgumentError("no complete row to draw")
        E, y = fit._embed(batch), batch.y
    U, s, _ = np.linalg.svd(E - E.mean(axis=0), full_matrices=False)
    xy = np.zeros((len(E), 2))
    xy[:, : min(2, len(s))] = (U * s)[:, :2]
    share = np.r_[s**2 / max((s**2).sum(), 1e-300), 0.0, 0.0]
    names = [f"PC {k + 1} of the embedding ({100 * share[k]:.0f}%)" for k in (0, 1)]
    name = fit.design.response.name
    if data is None and fit.levels is None and fit.design.offset_given:
        name += " at an offset of zero"
    key = points.Key.from_response(name, fit.levels, y)
    ax = ensure_axes(ax, SIZE)
    shades = points.scatter_values(ax, xy, y, key, s=12, alpha=0.8, lw=0)
    if fit.levels is None:
        ax.figure.colorbar(shades, ax=ax, label=key.name)
    else:
        legend(ax, points.class_marks(ax, key, s=12, lw=0), frameon=False, fontsize=8)
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    return tidy(ax)


def drift(fit, ax, *, data, offset=None, threshold=None, limit=None, k=NEIGHBOURS):
    """Draw the drift indicator against the loss of the rows of `data`, with an ROC curve.

    threshold : value of the indicator to mark, by default `drift_threshold()`
    limit : loss above which a row counts as bad, by default the 95% quantile"""
    rows = fit.design.rows_to_show(data, offset=offset, needs_response=True).rows
    frame = in_pandas(fit.augment)(data, offset=offset).assign(drift=fit.drift(data, k)).iloc[rows]
    if frame.empty:
        raise ArgumentError("no complete row to draw")
    values, losses = frame["drift"].to_numpy(), frame[".loss"].to_numpy()
    if threshold is None and fit.calibration is not None and k == NEIGHBOURS:
        threshold = fit.drift_threshold()
    elif threshold is not None:
        threshold = positive("threshold", threshold)
    limit = float(np.quantile(losses, 0.95)) if limit is None else positive("limit", limit)
    return _drift_against_loss(values, losses, threshold, limit, ax)


# Shapes ------------------------------------------------------------------------------------------


def _drift_against_loss(indicator, loss, threshold, limit, ax):
    """Draw drift indicator against loss, lines at `threshold` and `limit`, and an ROC curve."""
    ax = ensure_axes(ax, (6.5, 5.0))
    x, y = (np.maximum(v, 1e-12 * max(v.max(), 1e-300)) for v in (indicator, loss))
    bad = loss > limit
    for rows, color, label in ((~bad, BLUE, "small loss"), (bad, RED, "large loss")):
        ax.scatter(x[rows], y[rows], s=10, alpha=0.6, lw=0, color=color, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left=np.quantile(x, 0.01))
    ax.set_ylim(bottom=np.quantile(y, 0.01))
    ax.axhline(limit, color=GREY, lw=0.8, ls="--")
    if threshold is not None:
        ax.axvline(threshold, color="black", lw=0.8, ls="--", label="threshold")
    ax.set_xlabel("drift indicator |f(x) - f_kNN(x)|")
    ax.set_ylabel("loss")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    if 0 < bad.sum() < len(bad):
        order = np.argsort(-indicator, kind="stable")
        hit, last = bad[order], np.r_[np.diff(indicator[order]) != 0.0, True]
        true, false = np.cumsum(hit)[last], np.cumsum(~hit)[last]
        inset = ax.inset_axes([0.07, 0.07, 0.27, 0.27])
        inset.plot(np.r_[0.0, false / false[-1]], np.r_[0.0, true / true[-1]], color="black", lw=1)
        inset.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=":")
        inset.set_xticks([0, 1])
        inset.set_yticks([0, 1])
        inset.tick_params(labelsize=7)
        area = auc(bad, indicator, np.ones(len(bad)))
        inset.set_title(f"ROC, AUC {significant(area, 2)}", fontsize=8)
    return tidy(ax)


KINDS = {plot.__name__: plot for plot in (loss, effects, embedding, local, drift)}
