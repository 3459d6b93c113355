"""What each kind of plot of a GbmapFit shows; `lodim.plot.axes` draws."""

import numpy as np

from lodim.checks import positive
from lodim.errors import ArgumentError
from lodim.models.gbmap.embedding import NEIGHBOURS
from lodim.models.gbmap.report import labels, loss_name
from lodim.plot import axes


def draw(fit, kind, ax, **arguments):
    """Draw a kind of plot on ax and return the Axes."""
    kinds = {plot.__name__: plot for plot in (loss, effects, local, embedding, drift)}
    return axes.draw(kinds, kind, fit, ax, arguments)


def loss(fit, ax):
    """Training loss by boost."""
    last = fit.learners().groupby("boost").last()
    deviance, explained = last["deviance"].to_numpy(), 100 * last["dev_ratio"].to_numpy()
    return axes.loss_by_stage(last.index.to_numpy(), deviance, explained, loss_name(fit), ax)


def effects(fit, ax, *, top=15):
    """Mean local coefficient of each feature per standard deviation, largest first."""
    frame = fit.tidy()
    frame = frame.loc[frame["std_estimate_abs"].sort_values(ascending=False).index[:top]]
    xlabel, spread = f"effect on {_response(fit)} per SD of the feature", frame["std_estimate_abs"]
    return axes.bars(labels(frame), frame["std_estimate"], xlabel, ax, spread=spread)


def local(fit, ax, *, data, row=0, top=15):
    """Local explanation of one row of `data` (by position): grad f(x) per standard deviation."""
    one = axes.one_row(data, row)
    gradient = fit.predict(one, "local", **fit._zero_offset()).iloc[0]
    gradient = gradient * np.tile(fit.design.scale, fit.family.n_scores)
    if gradient.isna().any():
        raise ArgumentError(f"row {row} has missing values: it cannot be explained")
    gradient = gradient.loc[gradient.abs().sort_values(ascending=False).index[:top]]
    names = [n if isinstance(n, str) else " ".join(map(str, n)) for n in gradient.index]
    # An offset that was an array is not in `data`: the prediction is then shown without it.
    unknown = fit.design.offset_given and fit.design.offset is None
    type = "response" if fit.levels is None else "class"
    predicted = fit.predict(one, type, **(fit._zero_offset() if unknown else {})).iloc[0]
    shown = predicted if isinstance(predicted, str) else f"{predicted:.4g}"
    title = f"row {one.index[0]}: predicted {fit.design.response.name} = {shown}"
    title += " less its offset" * unknown
    xlabel = f"local effect on {_response(fit)} per SD of the feature"
    return axes.bars(names, gradient.to_numpy(), xlabel, ax, title=title)


def embedding(fit, ax, *, data=None):
    """First two principal components of the embedding, coloured by the response.

    Of the training rows that the fit keeps, or of `data` with known responses.
    """
    if data is None:
        reference = fit._reference_rows()
        E, y = reference.embedding, reference.y
    else:
        batch = fit._apply(data, response=True)
        if batch.n == 0:
            raise ArgumentError("no complete row to draw")
        E, y = fit._embed(batch), batch.y
    U, s, _ = np.linalg.svd(E - E.mean(axis=0), full_matrices=False)
    xy = np.zeros((len(E), 2))
    xy[:, : min(2, len(s))] = (U * s)[:, :2]
    share = np.r_[s**2 / max((s**2).sum(), 1e-300), 0.0, 0.0]
    names = [f"PC {k + 1} of the embedding ({100 * share[k]:.0f} %)" for k in (0, 1)]
    return axes.scatter(xy, y, fit.levels, fit.design.response.name, ax, names)


def drift(fit, ax, *, data, offset=None, threshold=None, limit=None, k=NEIGHBOURS):
    """Drift indicator against the loss on `data` with known responses, and ROC.

    `limit`: loss above which a row counts as badly predicted; by default the 95 % quantile of the
    losses of `data`. `threshold`: of the indicator; by default the fit's own, where it has one.
    """
    frame = fit.augment(data, offset=offset).assign(drift=fit.drift(data, k))
    frame = frame.dropna(subset=[".loss", "drift"])
    if frame.empty:
        raise ArgumentError("no complete row to draw")
    values, losses = frame["drift"].to_numpy(), frame[".loss"].to_numpy()
    if threshold is None and fit.calibration is not None and k == NEIGHBOURS:
        threshold = fit.drift_threshold()
    elif threshold is not None:
        threshold = positive("threshold", threshold)
    limit = float(np.quantile(losses, 0.95)) if limit is None else positive("limit", limit)
    return axes.drift(values, losses, threshold, limit, ax)


def _response(fit):
    return fit.design.response.name if fit.levels is None else f"the {fit.family.link}"
