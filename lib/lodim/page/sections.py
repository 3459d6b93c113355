"""Sections of a page for a fit of any model; all numbers come from predict, augment and tidy."""

import numpy as np
import pandas as pd

from lodim.classification import Z, reliability
from lodim.design.factors import needs
from lodim.design.frame import in_pandas
from lodim.errors import no_row_warnings
from lodim.page import Picture
from lodim.page.inputs import Repeated, grid
from lodim.report import phrases
from lodim.report.numbers import significant
from lodim.text import counted, join_words

BASE = 50  # number of rows over which an effect is averaged
MOST_EFFECTS = 20  # largest number of columns whose effects are computed
FLAT = 0.01  # effects below this share of the widest effect are not shown
MOST_POINTS = 1000  # largest number of rows of the data in a picture
MOST_HOVER = 12  # largest number of columns in a tooltip
BINS = 10


def thinned(frame, most):
    """Return at most `most` rows of a frame, evenly spaced from first to last."""
    at = np.unique(np.linspace(0, len(frame) - 1, min(most, len(frame))).astype(int))
    return frame.iloc[at]


def with_columns(rows, new):
    """Return `rows` with columns for its row labels and for `new`, and the names of these columns.

    new : dict name -> values. A name that is in use gets a blank at its end."""
    new = {"row": [str(label) for label in rows.index]} | new
    names = []
    for name in new:
        while name in rows.columns or name in names:
            name += " "
        names.append(name)
    values = (np.asarray(v) for v in new.values())
    return rows.assign(**dict(zip(names, values, strict=True))), names


def effects(fit, inputs, data):
    """Return pictures of partial dependence, strongest first, and names of weaker columns.

    inputs : list with an Input (name, range etc.) per column
    data : frame over whose rows predictions are averaged; None for one row of typical values"""
    typical = {column.name: [column.typical] for column in inputs}
    base = pd.DataFrame(typical) if data is None else thinned(data[list(typical)], BASE)
    found = {}  # column -> its values, and mean predictions (n, K) of the rows `base` at each
    repeated = Repeated(base)
    for column in _used_most(fit, inputs):
        values = grid(column)
        with no_row_warnings():
            answers = in_pandas(fit.predict)(repeated.at(column, values)).to_numpy()
        answers = answers.reshape(len(values), len(base), -1)
        known = ~np.isnan(answers)
        means = np.where(known, answers, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        found[column.name] = values if column.levels is None else [*map(str, values)], means
    widths = {name: np.ptp(means, axis=0).max() for name, (_, means) in found.items()}
    least = FLAT * max(widths.values(), default=0.0)
    some = [name for name, width in widths.items() if width > least]
    shown = sorted(some, key=lambda name: -widths[name])
    ends = [f(found[name][1]) for name in shown for f in (np.min, np.max)]
    scale = (min(ends), max(ends)) if ends else None
    named = {column.name: column for column in inputs}
    pictures = [_effect_picture(fit, named[name], *found[name], scale) for name in shown]
    return pictures, [name for name in found if name not in shown]


def _used_most(fit, inputs):
    """Return the MOST_EFFECTS inputs with the largest estimates per SD, in the given order."""
    if len(inputs) <= MOST_EFFECTS:
        return inputs
    frame, d = fit._of_tables(), fit.design
    per_sd = frame["term"].map(dict(zip(d.names, d.scale, strict=True)))
    sizes = frame.get("estimate_abs", frame["estimate"]).abs() * per_sd
    sizes = sizes.groupby(frame["term"]).max().reindex(d.names).fillna(0.0).to_numpy(copy=True)
    for view, share in zip(fit._selected_views(), frame["estimate"], strict=False):
        sizes[view] += share
    largest = {}
    for t, size in zip(d.term_of, sizes, strict=True):
        for name in {name for part in d.terms[t] for name in needs(part)}:
            largest[name] = max(size, largest.get(name, 0.0))
    order = np.argsort([-largest.get(one.name, np.inf) for one in inputs], kind="stable")
    return [inputs[k] for k in sorted(order[:MOST_EFFECTS])]


def _effect_picture(fit, column, values, means, scale):
    """Return the picture of a feature's effect: mean predictions (n, K) at n values of the feature.

    column : Input that describes the feature; scale : lower and upper end of the y axis"""
    x = column.name + ", days since 1970-01-01" * column.dates
    if len(values) == 2 and not isinstance(values[0], str):  # there are no values between the two
        values = [f"{value:g}" for value in values]
    several = means.shape[1] > 1
    y = "probability" if several else phrases.modelled(fit)
    x = f"{x} " if x in (y, "class") else x  # names of columns in a frame must differ
    frame = pd.DataFrame({x: np.repeat(np.array(values), means.shape[1]), y: means.ravel()})
    if several:
        frame["class"] = np.tile([str(level) for level in fit.levels], len(values))
    mark = "points" if isinstance(values[0], str) else "lines"
    rug, color = column.quantiles if mark == "lines" else (), "class" if several else ""
    return Picture(column.name, mark, frame, x, y, color=color, scale=scale, rug=rug)


def accuracy(fit, data):
    """Return a list with a picture of predicted and observed responses; [] if none is observed."""
    answers = fit.augment(data)
    response = fit.design.response.name
    several = fit.levels is not None and len(fit.levels) > 2
    known = answers.dropna(subset=[".class", ".loss"] if several else [".fitted", ".resid"])
    if known.empty:
        return []
    if fit.levels is None:
        known, shown = thinned(known, MOST_POINTS), [*data.columns][:MOST_HOVER]
        new = {"prediction": known[".fitted"], "residual": known[".resid"]}
        rows, (row, fitted, resid) = with_columns(known[shown], new)
        note = "Response minus prediction, against the prediction."
        style = {"hover": (row, *shown), "reference": 0.0}
        return [Picture("Residuals", "points", rows, fitted, resid, note, **style)]
    if several:
        names = {"observed": response, "predicted": ".class"}
        classes = {
            name: pd.Categorical(known[column].astype(object), fit.levels)
            for name, column in names.items()
        }
        texts = {k: v.rename_categories([*map(str, fit.levels)]) for k, v in classes.items()}
        counts = pd.DataFrame(texts).groupby([*texts], observed=False).size()
        title, frame = "Observed and predicted classes", counts.rename("rows").reset_index()
        return [Picture(title, "cells", frame, "predicted", "observed", color="rows")]
    probability, code, weight = fit._probabilities(data, None)
    groups = pd.DataFrame(reliability(probability[:, 1], code == 1, weight, BINS))
    note = f"Share of {response} = {fit.levels[1]} in {len(groups)} groups of rows."
    style = {"hover": ("rows",), "reference": "x"}
    return [Picture("Calibration", "points", groups, "predicted", "observed", note, **style)]


def figures(fit, data):
    """Return a text on how well the fit predicts the data, and on its held-out loss."""
    found = fit.evaluate(data).iloc[0]
    names = {"dev_ratio": "share of the deviance explained"}
    if fit.levels is None:
        names |= {"deviance": "mean deviance"}
    if fit.family.name == "gaussian":
        names = {"dev_ratio": "R²", "rmse": "RMSE"}
        found["rmse"] = np.sqrt(found["deviance"])
    names |= {"accuracy": "accuracy", "log_loss": "log-loss", "auc": "AUC"}
    known = [name for name in names if name in found and np.isfinite(found[name])]
    texts = [f"{names[name]} {significant(found[name], 3)}" for name in known]
    text = f"On {counted(int(found['n']), 'row')} of the data: {', '.join(texts)}."
    text += " If the model was fitted to these data, these figures are better than on new rows"
    text += ", by far if training rows vote for themselves (ripr, proset, melm)"
    text += ". ld.cv estimates the performance on new rows."
    deviance = fit._held_out_deviance()
    if deviance is None:
        return text
    share = significant(fit._explained(deviance), 3)
    text += f" Of rows that cross-validation held out, the fit explains {share} of the deviance"
    if fit.selection is not None:
        at = (fit.selection["mean"] - deviance).abs().argmin()
        error = Z * fit.selection["se"].iloc[at]
        low, high = (significant(fit._explained(deviance + e), 3) for e in (error, -error))
        text += f" (95% interval {low} to {high}, from the spread over folds)"
    if fit.chosen:
        text += f"; it chose {join_words([*fit.chosen])} on these rows"
        text += ", so the figure is slightly too high"
    return f"{text}."


def findings(fit, data):
    """Return problems that `fit.check` finds, and which checks were made and skipped, as texts."""
    found = fit.check(data)
    return [*([] if len(found) else ["No findings."]), *found.summary().notes]


def limits(fit):
    """Return texts on what a fit is for, and what it does not tell, for its page."""
    rows = f"The model is for rows from the same population as its {counted(fit.n, 'training row')}"
    if fit.design.n_dropped:
        rows += f"; {counted(fit.design.n_dropped, 'row')} with missing values were left out"
    is_quantile = fit.family.name == "quantile"
    kind = f"the {fit.family.label}" if is_quantile else "a mean or a probability"
    return [
        f"{rows}. If the data change (fit.check(new)), fit it again.",
        "Beyond the ranges of the columns it extrapolates. The sliders end where the data do.",
        "Curves and slopes show how the prediction changes with a column. They do not show what "
        "would happen if somebody changed this column: correlated columns share their effects.",
        f"A prediction on this page is {kind}. ld.conformal gives intervals for single responses.",
    ]


def choice(fit):
    """Return a list with a picture of held-out deviance per value of a chosen setting, or []."""
    if fit.selection is None:
        return []
    names = [name for name in fit.chosen if name in fit.selection]
    if len(names) != 1 or not pd.api.types.is_numeric_dtype(fit.selection[names[0]]):
        return []
    name = names[0].rstrip("_")
    new = {"mean": "held-out deviance", "se": "standard error", names[0]: name}
    frame = fit.selection.rename(columns=new)
    note = f"Mean deviance of held-out rows for each {name} that was tried."
    hover = ("standard error",)
    return [Picture("Choice", "lines", frame, name, "held-out deviance", note, hover=hover)]


def facts(fit):
    """Return a dict of labels and texts: numbers of rows and columns, classes, and the seed."""
    design, settings = fit.design, fit.settings
    n = in_pandas(fit.glance)()["n"].item()
    found = {"rows": f"{n:,}", "rows left out": f"{design.n_dropped:,}"}
    if design.n_incomplete and design.missing == "indicator":
        found["rows with missing values, filled in"] = f"{design.n_incomplete:,}"
    found["columns"] = f"{len(design.features):,}, as {len(design.names):,} features"
    if fit.levels is not None:
        found["classes"] = join_words([str(level) for level in fit.levels])
    if getattr(settings, "seed", None) is not None:
        found["seed"] = str(settings.seed)
    return found
