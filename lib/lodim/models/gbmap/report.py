"""Printed listing, summary and report page of a GbmapFit."""

import numpy as np
import pandas as pd

from lodim.design.frame import in_pandas
from lodim.family.thresholds import threshold_names
from lodim.models.gbmap.settings import most_learners
from lodim.page import MOST_NAMES, Picture, not_drawn
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.report import phrases
from lodim.report.tables import Report, Table, significant
from lodim.text import counted, first_names, ranges

MOST_FEATURES = 20  # rows of the effects' table
MOST_THRESHOLDS = 8  # in print(fit); summary() has all


def listing(fit):
    """Return the lines and the table that print(fit) shows, in the style of glmnet."""
    s, titles = fit.settings, {"m": "boosts", "lambda_": "lambda"}
    words = " and ".join(title for name, title in titles.items() if name in fit.chosen)
    chosen = f" ({words} chosen by cross-validation)" if words else ""
    lines = [
        f"Family: {fit.family.label} ({fit.family.link} link){phrases.levels(fit)}",
        phrases.rows(fit),
        f"Boosts: {s.m}, lambda: {significant(s.lambda_)}{chosen}, {_activation(s)}",
        *_refitted(fit),
        *phrases.monotone(fit),
        *_thresholds(fit, MOST_THRESHOLDS),
    ]
    if not fit.converged:
        where = "in every boost" if fit.refit_log is None else "in the joint fit"
        lines.append(f"Warning: the optimizer did not converge {where}; see summary()")
    learners = fit.learners().groupby("boost", sort=True)
    df = pd.Series((fit.estimates.w != 0).sum(axis=1)).groupby(fit.estimates.stage).sum().cumsum()
    table = pd.DataFrame({"Df": df, "%Dev": 100.0 * learners["dev_ratio"].last()})
    if fit.refit_log is not None:
        table.loc["refit"] = fit.df, 100.0 * fit.dev_ratio
        table["Df"] = table["Df"].astype(int)
    return lines, Table("", table.rename_axis(None), {"%Dev": ".2f"})


def summary(fit, full):
    s, d, g = fit.settings, fit.design, in_pandas(fit.glance)().iloc[0]
    header = phrases.header(
        fit,
        ("Features", str(len(d.names))),
        ("Link", fit.family.link),
        ("Nonzero weights", str(fit.df)),
        ("Boosts (m)", f"{s.m}{phrases.by_cross_validation(fit, 'm')}"),
        ("Lambda", f"{significant(s.lambda_)}{phrases.by_cross_validation(fit, 'lambda_')}"),
        ("Activation", _activation(s)),
        ("Joint fit", _joint(fit)),
        ("L1 ratio", significant(s.l1_ratio)),
        ("Mean null deviance", significant(g["null_deviance"])),
        ("Mean deviance", significant(g["deviance"])),
    )
    known = not np.isnan(fit.effects.mean).all()
    tables = (_learners(fit), _effects(fit, full)) if known else (_learners(fit),)
    title = "Gradient Boosting Mapping Results"
    return Report(title=title, header=header, tables=tables, notes=_notes(fit), full=full)


def _learners(fit):
    columns = {"level": "Level", "a": "a", "b": "b", "norm": "|w|", "active": "Active %"}
    columns |= {"deviance": "Loss", "dev_ratio": "Cum. %Dev", "n_iter": "Iter."}
    table = fit.learners().set_index("boost").rename_axis(None)
    table["dev_ratio"] *= 100.0
    table["active"] *= 100.0
    table = table[[c for c in columns if c in table]].rename(columns=columns)
    formats = {"b": "+d", "Active %": ".1f", "Cum. %Dev": ".2f"}
    note = (
        f"f_j(x) = a + b g(w'x); |w| {phrases.per(fit, 'standard deviation')} of the features, in "
        f"units of {phrases.scale(fit)}; Active: share of rows with w'x > 0; Loss: "
        f"{loss_name(fit)}, after "
        f"the boost{'' if fit.refit_log is None else ', before the joint fit'}."
    )
    return Table("Weak learners", table, formats, (note,))


def _joint(fit):
    """Say whether the learners were fitted jointly, and whether cross-validation decided it."""
    if fit.refit_log is not None:
        return "yes" if np.isnan(fit.refit_log["gain"]) else "yes (by CV)"
    p = len(fit.design.names) - len(fit.design.constant)
    m = fit.arguments["m"] or most_learners(fit.n, p, fit.family.n_functions)
    given = any(fit.arguments[name] is not None for name in ("refit", *fit.chosen))
    return "no (by CV)" if fit.chosen and not given and fit.settings.refittable and m else "no"


def _refitted(fit):
    if fit.refit_log is None:
        return []
    gain = fit.refit_log["gain"]
    known = "" if np.isnan(gain) else f"; held-out deviance {100 * gain:.1f}% below that of boosts"
    return [f"All learners optimized together{known}"]


def _thresholds(fit, most):
    if not fit.family.shared_slopes:
        return []
    values = -fit.estimates.shift.sum(axis=0)
    named = zip(threshold_names(fit.levels), values, strict=True)
    texts = [f"{name} {significant(v)}" for name, v in named]
    return [f"Thresholds of f: {first_names(texts, most)}"]


def _effects(fit, full):
    columns = {"estimate": "Mean", "estimate_abs": "Mean |.|"}
    sd = fit.arguments["standardize"]
    columns |= {"std_estimate": "Per SD", "std_estimate_abs": "|.| per SD"} if sd else {}
    frame = in_pandas(fit.tidy)()
    order = frame["std_estimate_abs"].sort_values(ascending=False, kind="stable").index
    shown = frame.loc[order if full else order[:MOST_FEATURES]]
    table = (
        shown[list(columns)].rename(columns=columns).set_axis(phrases.term_labels(shown), axis=0)
    )
    notes = [
        "Local coefficients (the gradient of f) averaged over the training rows: per unit of the "
        f"feature{', and per standard deviation' * sd}, largest first; |.| averages their size. "
        "If Mean |.| is well above |Mean|, the effect changes sign, or exists only for some rows. "
        "For a 0/1 feature this is a slope, not the change from 0 to 1."
    ]
    if len(frame) > len(shown):
        rest = counted(len(frame) - len(shown), "smaller effect")
        notes.append(f"Not shown: {rest}; see tidy().")
    return Table("Effects of features", table, dict.fromkeys(table, significant), tuple(notes))


def loss_name(fit):
    """Return the name of the mean deviance of the fit's family, such as "mean squared error"."""
    if fit.levels is not None:
        return "mean -2 log-likelihood"
    return "mean squared error" if fit.family.name == "gaussian" else f"mean {fit.family.loss}"


def _notes(fit):
    log, learners, s = fit.log, fit.learners(), fit.settings
    failed = _boosts(fit, ~learners["converged"])
    method, ended = "Newton's method" if log["newton"].all() else "L-BFGS", "all boosts converged"
    if "resolution" in log:
        ended += (
            ", as ten further steps would lower the objective by at most "
            f"{significant(log['resolution'].max(), 2)} (a quarter of the standard error of the "
            "mean loss, or 1e-6)"
        )
    if fit.refit_log is not None:
        ended = "all boosts ended"
    elif failed:
        ended = f"NOT converged in boosts {failed}: raise control={{'max_iter': ...}} or lambda_"
    notes = [
        f"Optimizer: {method}, {ended}; "
        f"{int(log['n_eval'].sum())} passes over the data, "
        f"at most {int(log['n_iter'].max())} iterations in a boost, largest gradient "
        f"{significant(log['grad_norm'].max(), 2)}."
    ]
    for line in _refitted(fit):
        end = fit.refit_log
        notes.append(
            f"{line}; L-BFGS, {'converged' if end['converged'] else 'NOT converged'} in "
            f"{end['n_eval']} evaluations, largest gradient {significant(end['grad_norm'], 2)}."
        )
    notes += [
        f"{line}: all weights b w have the sign that this needs." for line in phrases.monotone(fit)
    ]
    notes += [
        f"{line}; a higher f makes higher classes of {fit.design.response.name} more probable."
        for line in _thresholds(fit, len(fit.levels or ()))
    ]
    tried = ""
    if "lambda_" in fit.chosen:
        values = fit.selection["lambda_"]
        tried = f", lambda_ from {significant(values.max())} to {significant(values.min())}"
    if not any(fit.chosen.values()):
        tried += ", on one set of folds (another set may choose differently)"
    notes += phrases.choice(fit, tried)
    if "m" in fit.chosen and s.m > 0.75 * s.max_stages:
        notes.append(
            f"m is near {s.max_stages}, the largest number of boosts that was tried: more may be "
            f"better, control={{'max_stages': {2 * s.max_stages}}}."
        )
    if len(fit.design.names) > fit.n and s.l1_ratio == 0.0:
        notes.append(
            "There are more features than rows: with l1_ratio=0.5, for example, most weights "
            "are zero."
        )
    left_out = s.m * fit.family.n_functions - len(fit.estimates)
    if left_out:
        notes.append(f"Learners dropped, because they add nothing: {left_out}.")
    notes += phrases.not_standardized(fit) + phrases.without_effect(fit.design)
    active = learners["active"]
    linear = _boosts(fit, (active < 1e-9) | (active > 1.0 - 1e-9))
    if linear:
        notes.append(
            f"Active in all rows or none (linear or constant on the data): boosts {linear}."
        )
    return tuple(notes)


def _boosts(fit, some):
    learners = fit.learners()[some]
    if "level" not in learners:
        return ranges(learners["boost"])
    of_levels = {level: learners.loc[learners["level"] == level, "boost"] for level in fit.levels}
    return "; ".join(f"{ranges(of)} ({level})" for level, of in of_levels.items() if len(of))


def _activation(s):
    return f"softplus (beta {significant(s.beta)})" if s.softplus else "identity"


# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "level": "class",
    "estimate": "mean slope",
    "estimate_abs": "mean absolute slope",
    "std_estimate": "mean slope per SD",
    "std_estimate_abs": "mean absolute slope per SD",
}


def words(fit):
    """Return a description of the model in a few sentences, as a list of paragraphs."""
    m, per = len(fit.learners()), phrases.per(fit, "standard deviation")
    return [
        f"The score of {fit.design.response.name} is a sum of {counted(m, 'learner')}, each a "
        "plane with one bend, fitted one after the other (gradient boosting mapping). It "
        f"explains {100 * fit.dev_ratio:.1f}% of the deviance of the training rows.",
        f"The penalty lambda is {significant(fit.settings.lambda_)}: a larger one flattens the "
        "planes. Near any row the model is linear, so that each feature has a slope there; the "
        f"bars below show its mean size over the training rows, {per}.",
    ]


def pictures(fit, data):
    """Return pictures of mean effects and, given data, of rows in the first two embedding axes."""
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["std_estimate_abs"] > 0]
    terms = terms.sort_values("std_estimate_abs", ascending=False, kind="stable")
    labels = {name: text.replace("per SD", phrases.per(fit)) for name, text in LABELS.items()}
    terms = terms.rename(columns=labels)
    size = labels["std_estimate_abs"]
    color = "class" if "class" in terms else ""
    per = phrases.per(fit, "standard deviation (SD)")
    note = f"Mean absolute slope of the score, {per} of a feature."
    note += not_drawn(terms, MOST_NAMES)
    style = {"color": color, "hover": [*labels.values()][2:5]}
    found = [
        Picture("Mean effects", "bars", terms.head(MOST_NAMES), size, "feature", note, **style)
    ]
    if data is None or (fit.levels is not None and len(fit.levels) > 2) or fit.settings.m < 2:
        return found
    rows = thinned(data, MOST_POINTS)
    embedded = fit.predict(rows, "embedding")
    if embedded.shape[1] < 2:  # learners that add nothing are left out
        return found
    new = {f"embedding {name}": embedded[name] for name in embedded.columns[:2]}
    frame, (row, x, y, fitted) = with_columns(rows, new | {"fitted": fit.predict(rows)})
    note = (
        "Rows that are near each other here are similar in the features that matter for the "
        "response."
    )
    style = {"color": fitted, "hover": (row, *rows.columns[:MOST_HOVER])}
    return [*found, Picture("Embedding", "points", frame, x, y, note, **style)]
