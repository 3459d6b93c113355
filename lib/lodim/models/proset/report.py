"""Printed listing, summary and report page of a ProsetFit."""

import numpy as np
import pandas as pd

from lodim.design.frame import in_pandas
from lodim.models.proset.settings import PATIENCE
from lodim.page import MOST_NAMES, Picture, not_drawn
from lodim.report import phrases
from lodim.report.tables import Report, Table, significant
from lodim.text import counted, first_names, join_words

MOST_FEATURES = 20  # rows of the features' table
HEAVIEST = 20  # heaviest prototypes whose share of the weight is reported
QUANTILES = (0, 5, 25, 50, 75, 95, 100)  # of familiarity, in percent


def listing(fit):
    """Return the lines and the Table that print(fit) shows, in the style of glmnet."""
    s, loss = fit.settings, f" (loss {fit.settings.loss})"
    chosen = f" ({join_words(fit.chosen)} chosen by cross-validation)" if fit.chosen else ""
    lines = [
        f"Family: {fit.family.name}{phrases.levels(fit, loss)}",
        f"{phrases.rows(fit)}, active: {fit.df}",
        f"Prototypes: {len(fit.estimates)}, lambda_v: {significant(s.lambda_v)}, "
        f"lambda_w: {significant(s.lambda_w)}{chosen}",
    ]
    lines += _heaviest_share(fit)
    if not fit.converged:
        lines.append("Warning: the optimizer did not converge in every batch; see summary()")
    frame = fit.batches().set_index("batch").rename_axis(None)
    active = [int((fit.estimates.v[:b] > 0).any(axis=0).sum()) for b in frame.index]
    columns = {"Df": active, "Prototypes": frame["n_prototypes"].cumsum()}
    table = pd.DataFrame(columns | {"%Dev": 100.0 * frame["dev_ratio"]}, index=frame.index)
    return lines, Table("", table, {"%Dev": ".2f"})


def summary(fit, full):
    familiarity = () if fit.calibration is None else (_familiarity(fit),)
    return Report(
        title="Prototype Set Results",
        header=_header(fit),
        tables=(_batches(fit), _features(fit, full), *familiarity),
        notes=_notes(fit),
        full=full,
    )


def _header(fit):
    s, d, g = fit.settings, fit.design, in_pandas(fit.glance)().iloc[0]
    rows = [
        ("Loss", "log-loss" if fit.levels is not None else s.loss),
        ("Batches", f"{len(fit.estimates.v)}{phrases.by_cross_validation(fit, 'n_batches')}"),
        ("Prototypes", str(len(fit.estimates))),
        ("Features", str(len(d.names))),
        ("Active features", str(fit.df)),
        ("Lambda v", f"{significant(s.lambda_v)}{phrases.by_cross_validation(fit, 'lambda_v')}"),
        ("Lambda w", f"{significant(s.lambda_w)}{phrases.by_cross_validation(fit, 'lambda_w')}"),
        ("L1 ratio v", significant(s.l1_ratio_v)),
        ("L1 ratio w", significant(s.l1_ratio_w)),
        ("Mean null deviance", significant(g["null_deviance"])),
        ("Mean deviance", significant(g["deviance"])),
    ]
    if fit.levels is not None:
        rows.append(("Log-loss", significant(g["deviance"] / 2.0)))
    return phrases.header(fit, *rows)


def _batches(fit):
    frame = fit.batches().set_index("batch").rename_axis(None)
    heads = {"Candidates": "n_candidates", "Scoring": "n_scoring", "Prototypes": "n_prototypes"}
    heads |= {"Features": "n_features", "Loss": "deviance", "Cum. %Dev": "dev_ratio"}
    heads |= {"Eval.": "n_eval"}
    table = frame[list(heads.values())].set_axis(list(heads), axis=1)
    table["Cum. %Dev"] *= 100.0
    loss = "mean squared error" if fit.levels is None else "mean -2 log-likelihood"
    notes = (
        f"Loss: {loss} of the training rows after the batch, no prototype votes for itself; "
        "Scoring: rows that the weights were fitted to.",
    )
    return Table("Batches", table, {"Cum. %Dev": ".2f"}, notes)


def _features(fit, full):
    active = _active(fit)
    shown = active if full else active.head(MOST_FEATURES)
    heads, sd = {"estimate": "Weight"}, fit.arguments["standardize"]
    heads |= {"std_estimate": "Per SD"} if sd else {}
    heads |= {"batches": "Batches"}
    table = shown.set_index("term").rename_axis(None)[list(heads)].rename(columns=heads)
    notes = [
        "Weight: inverse width of the kernel, per unit of the feature"
        f"{' and per standard deviation' * sd}, largest of the batches."
    ]
    if len(active) > len(shown):
        rest = counted(len(active) - len(shown), "more active feature")
        notes.append(f"Not shown: {rest}; see tidy().")
    used = {*active["term"]}
    rest = [name for name in fit.design.names if name not in used]
    if rest:
        notes.append(f"Not used (weight 0): {first_names(rest, 10)}.")
    formats = dict.fromkeys(table.columns.drop("Batches"), significant)
    return Table("Active features", table, formats, tuple(notes))


def _active(fit):
    frame = in_pandas(fit.tidy)()
    active = frame[frame["std_estimate"] > 0]
    return active.sort_values("std_estimate", ascending=False, kind="stable")


def _familiarity(fit):
    values = fit.calibration.familiarity[list(QUANTILES)]
    table = pd.DataFrame([values], columns=[f"{q}%" for q in QUANTILES], index=["Familiarity"])
    notes = (
        "Quantiles over the training rows of the total weight of all prototypes at a row; the "
        "null model has weight 1. A new row far below these values is unlike the training data "
        "in the active features. Other features have no influence.",
    )
    return Table("Familiarity", table, {c: significant for c in table}, notes)


def _notes(fit):
    log, s, n_batches = fit.log, fit.settings, fit.estimates.n_batches
    failed = (np.flatnonzero(~log["converged"]) + 1).tolist()
    ended = (
        "all batches converged"
        if not failed
        else f"NOT converged in batches {failed}: raise control={{'max_iter': ...}} or lambda_v"
    )
    notes = [
        f"Optimizer: projected L-BFGS, {ended}; {int(log['n_eval'].sum())} evaluations, "
        f"at most {int(log['n_iter'].max())} iterations in a batch, largest projected gradient "
        f"{significant(log['grad_norm'].max(), 2)}. Converged: no projected gradient above "
        f"{significant(s.tol)}, or {PATIENCE} steps in a row that lower the objective by at most "
        f"{significant(s.ftol)} of its size each."
    ]
    if s.n_batches > n_batches:
        words = f"Of {s.n_batches} batches asked for, batch {n_batches} is empty"
        notes.append(f"{words}: it would not lower the loss.")
    if not len(fit.estimates):
        words = "No prototype and no feature lowers the loss by more than its penalty"
        notes.append(f"{words}: the estimates are those of the null model.")
    notes += [f"{line}." for line in _heaviest_share(fit)]
    notes += phrases.choice(fit)
    notes += phrases.not_standardized(fit) + phrases.without_effect(fit.design)
    return tuple(notes)


def _heaviest_share(fit):
    w = np.sort(fit.estimates.w)[::-1]
    if len(w) <= 45:
        return []
    share = 100.0 * w[:HEAVIEST].sum() / w.sum()
    return [f"The {HEAVIEST} heaviest of {len(w)} prototypes have {share:.0f}% of the total weight"]


def words(fit):
    """Return a description of the model in a few sentences, as a list of paragraphs."""
    glance = in_pandas(fit.glance)().iloc[0]
    name = fit.design.response.name
    return [
        "The answer for a row is a weighted mean over "
        f"{counted(glance['n_prototypes'], 'prototype')}, which are training rows, and the "
        f"overall distribution of {name}: the nearer a prototype is in the "
        f"{counted(glance['df'], 'feature')} with a weight, the larger its weight (prototype "
        "sets).",
        f"The penalty lambda_v is {significant(fit.settings.lambda_v)}; the fit explains "
        f"{100 * fit.dev_ratio:.1f}% of the deviance of the training rows.",
    ]


def pictures(fit, data):
    """Return pictures of the feature weights, and of the prototypes in the two main features."""
    active = _active(fit)
    per = f"weight {phrases.per(fit)}"
    weights = active.rename(columns={"term": "feature", "estimate": "weight", "std_estimate": per})
    note = f"Weight {phrases.per(fit, 'standard deviation (SD)')} in the distance between rows."
    note += not_drawn(weights, MOST_NAMES)
    largest, style = weights.head(MOST_NAMES), {"note": note, "hover": ("weight",)}
    found = [Picture("Feature weights", "bars", largest, per, "feature", **style)]
    if len(active) < 2:
        return found if len(active) else []
    prototypes = fit.export()
    first, second = active["term"].iloc[:2]
    if {first, second} <= {*prototypes.columns}:
        note = "The prototypes, in the two features with the largest weights."
        style = {"color": "target", "hover": ("row", "batch", "members", "prototype_weight")}
        found.append(Picture("Prototypes", "points", prototypes, first, second, note, **style))
    return found
