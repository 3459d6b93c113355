"""Printed listing, summary and report page of a RiprFit."""

import numpy as np
import pandas as pd

from lodim.design.factors import column_with_levels
from lodim.design.frame import in_pandas
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.settings import VOTE
from lodim.models.ripr.views import dims
from lodim.page import Picture
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.report import phrases
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Report, Table, significant
from lodim.text import counted, feature_columns, first_names, join_words

ERROR = {
    CLASSES: ("Error", "share wrong"),
    NUMBERS: ("MSE", "mean squared error"),
    CLUSTERS: (
        "Distortion",
        "mean squared distance to the centre of the cluster, in standard deviations",
    ),
}


def listing(fit):
    """Return what printing a fit shows: lines of text, and a table of the feature sets."""
    s, r = fit.settings, fit.record
    unlabelled = f", {r.unlabelled} of them unlabelled" if r.unlabelled else ""
    lines = [
        f"Family: {fit.family.name}{phrases.levels(fit)}",
        f"{phrases.rows(fit, unlabelled)}, used: {_used(fit)}{_factors(fit)}",
        f"Views: {len(fit.estimates)}, {_search_words(fit)}, k: {s.k}",
    ]
    if sampled(fit):
        lines.append(f"Views chosen on {sampled(fit)} rows; all rows vote")
    if _screened(fit):
        lines.append(f"Views compared: {compared(fit)}")
    if r.blind:
        null = ", predicted as the mean of all" if voting(fit) else ""
        lines.append(f"Rows with a missing feature in every view: {r.blind}{null}")
    if fit.estimates.task == CLUSTERS:
        each = np.bincount(fit.estimates.centre_view, minlength=len(fit.estimates))
        lines.append(f"Clusters in the views: {', '.join(map(str, each))} ({_number_from(fit)})")
    if not fit.converged:
        lines.append("Warning: the search for views did not converge; see summary()")
    note = "Distortion: of the training rows of the clusters."
    if fit.estimates.task != CLUSTERS:
        name = ERROR[fit.estimates.task][0]
        note = f"{name}: leave-one-out, in views chosen on these rows; for new rows see ld.cv."
    return lines, _views(fit, "", (note,))


def summary(fit, full):
    name, words = ERROR[fit.estimates.task]
    if not fit.arguments["standardize"]:
        words = words.removesuffix(", in standard deviations")
    if voting(fit):
        note = (
            f"%Rows: share of the {fit.n} training rows for whose prediction the view has most "
            f"weight, each row left out; {name}: {words} of these rows, by all views together; "
            "%Weight: mean share of the view in the evidence for the predictions."
        )
    else:
        blind = " (rows with a complete view)" if fit.record.blind else ""
        note = (
            f"%Rows: share of the {fit.n} training rows assigned to the view as queries, each row "
            f"left out; {name}: {words} of these rows; %Weight: share of the view in the "
            f"assignment of training rows{blind}."
        )
    tables = [_views(fit, "Views", notes=(note,))]
    if fit.estimates.task == CLUSTERS:
        frame = fit.clusters().set_index("cluster").rename_axis(None)
        own, centres = ["Rows", "Distortion"], frame.columns[4:]
        table = frame[["n", "distortion", *centres]]
        table = table.set_axis([*own, *feature_columns(centres, own)], axis=1)
        formats = dict.fromkeys(table.columns[1:], blank_if_missing)
        notes = ("Numbers are centres, in the features of the view.",)
        tables.append(Table("Clusters", table, formats, notes))
    title = "Informative Projection Results"
    return Report(title, _header(fit), tuple(tables), _notes(fit), full=full)


def _used(fit):
    return f"{fit.df} of {len(fit.axis_names)}" if _factors(fit) else str(fit.df)


def _factors(fit):
    return " (a factor is one)" if len(fit.axis_names) < len(fit.design.names) else ""


def voting(fit):
    return fit.estimates.method == VOTE


def sampled(fit):
    """Return text like "2000 of 9000": rows on which feature sets were chosen; empty if all."""
    n = int(fit.estimates.references.size)
    return f"{fit.log['sampled']} of {n}" if voting(fit) and fit.log["sampled"] < n else ""


def _header(fit):
    s, d, r = fit.settings, fit.design, fit.record
    judged = "training rows" if fit.estimates.task == CLUSTERS else "leave-one-out"
    size = dims(fit.estimates.views)
    low, high = size.min(), size.max()
    rows = [
        ("Response", "none" if d.response is None else phrases.modelled(fit)),
        ("No. observations", str(fit.n)),
        ("Model", "ripr"),
        ("Rows dropped (NA)", str(d.n_dropped)),
        ("Family", fit.family.name),
        ("Rows unlabelled", str(r.unlabelled)),
        ("Prediction", "sum of the views' votes" if voting(fit) else "by one view"),
        ("Rows without a view", str(r.blind)),
        ("Neighbours (k)", str(s.k)),
        ("Features", str(len(d.names))),
        (penalty_label({fit.estimates.task}), penalty(fit)),
        ("Features used", _used(fit)),
        ("Dimensions", str(high) if low == high else f"{low} to {high}"),
        ("Views", str(len(fit.estimates))),
        ("Order alpha", significant(s.alpha)),
        ("Views compared", compared(fit)),
        (f"{ERROR[fit.estimates.task][0]} ({judged})", significant(r.overall)),
        ("Dev. ratio", significant(fit.dev_ratio)),
        ("Converged", "yes" if fit.converged else "NO"),
    ]
    without = {"Order alpha"} if fit.estimates.task == NUMBERS else set()
    without |= {"Order alpha", penalty_label({fit.estimates.task})} if voting(fit) else set()
    return tuple(row for row in rows if row[0] not in without)


def penalty_label(tasks):
    """Return lambda's label with its unit; tasks : set of kinds of responses, such as NUMBERS."""
    unit = "unit" if len(tasks) > 1 else "var(L)" if tasks == {NUMBERS} else "(1 - alpha)^2"
    return f"Lambda / {unit}"


def penalty(fit):
    """Return the penalty lambda and how it was chosen, such as "0.5 (by CV)", or "none ..."."""
    lambda_ = fit.settings.lambda_
    return (
        "none: forward sel." if lambda_ is None else significant(lambda_) + _lambda_chosen_by(fit)
    )


def compared(fit):
    """Return text like "45 of 990", the number of feature sets compared; "45" if all were."""
    log = fit.log
    return f"{log['compared']} of {log['possible']}" if _screened(fit) else str(log["compared"])


def _screened(fit):
    return fit.log["compared"] < fit.log["possible"]


def _views(fit, title, notes=()):
    frame = in_pandas(fit.tidy)()
    name = ERROR[fit.estimates.task][0]
    table = view_features(fit)
    table["%Rows"] = 100.0 * frame["estimate"].to_numpy()
    table[name] = frame["error"].to_numpy()
    formats = {"%Rows": ".1f", name: blank_if_missing}
    if title:
        table["%Weight"] = 100.0 * frame["weight"].to_numpy()
        formats["%Weight"] = ".1f"
    return Table(title, table, formats, notes)


def view_features(fit):
    """Return a table with the features of each feature set in columns x, y and z."""
    names = fit.view_features
    most = max(map(len, names), default=0)
    columns = {"xyz"[a]: [n[a] if a < len(n) else "" for n in names] for a in range(most)}
    return pd.DataFrame(columns, index=range(1, len(names) + 1))


def _notes(fit):
    log, blind, task = fit.log, fit.record.blind, fit.estimates.task
    of_views, of_errors = [], list(phrases.choice(fit))
    if _screened(fit):
        of_views.append(
            f"{log['compared']} of {log['possible']} views were compared: those of d features "
            "that extend the best of d - 1 (max_views=)."
        )
    if blind and voting(fit):
        of_views.append(
            f"In {counted(blind, 'row')}, every view has a missing feature: the prediction is the "
            'mean of all training rows, and predict(type="view") gives None.'
        )
    elif blind:
        null = ", and as the null model's prediction in Dev. ratio" if task != CLUSTERS else ""
        of_views.append(
            f"In {counted(blind, 'row')}, every view has a missing feature: the prediction is "
            f"missing, and counts in %Rows{null}, not in {ERROR[task][0]}."
        )
    if task != CLUSTERS:
        what = "views" if fit.arguments["lambda_"] is not None else "views and their number"
        of_errors.append(
            f"The errors and Dev. ratio are for the rows that determined the {what}: new rows "
            "may have larger errors. ld.cv repeats the choice for each fold."
        )
    both = [*of_views, *of_errors] if voting(fit) else [*of_errors, *of_views]
    notes = [*_search_notes(fit), *both]
    if fit.arguments["constraints"] is not None:
        notes.append("Training rows are assigned under constraints by CVXPY.")
    if task == CLUSTERS:
        notes.append(f"Number of clusters in each view: {_number_from(fit)}.")
    return (*notes, *_feature_notes(fit), *phrases.without_effect(fit.design))


def _search_notes(fit):
    objective = fit.log["objective"]
    if not voting(fit):
        given, last = fit.settings.lambda_ is not None, significant(objective[-1])
        what = "Search" if given else "Views by forward selection; their assignment"
        ended = "converged" if fit.converged else "NOT converged"
        return [f"{what}: {len(objective)} rounds, {ended}; objective {last}."]
    loss = " to ".join(significant(z) for z in objective[[0, -1]])
    rows = f", on {sampled(fit)} random rows" if sampled(fit) else ""
    return [
        f"Prediction: the prior plus {significant(fit.estimates.factor)} times the evidence of the "
        "views, the votes of the k nearest rows in each.",
        f"Views by forward selection{rows}: the leave-one-out {voting_loss(fit)} falls from "
        f"{loss}. k is about the square root of the number of rows, or half or twice that if "
        "clearly better.",
    ]


def voting_loss(fit):
    """Return the name of the loss by which views that vote are selected."""
    return "log-loss" if fit.estimates.task == CLASSES else "squared error (in variances)"


def _feature_notes(fit):
    d, notes = fit.design, []
    flat = [d.names[f] for f in fit.log["flat"] if d.scale[f] != 1.0]
    if flat:
        notes.append(
            f"A few values determine the standard deviation of {join_words(flat)}, so distances "
            "hardly depend on the other values: use a logarithm or ranks."
        )
    if _factors(fit):
        notes.append(
            "Features is the number of columns; in a view, a factor with all its levels is one "
            "feature."
        )
    used = {name for names in fit.view_features for name in names}
    rest = [name for name in fit.axis_names if name not in used]
    if rest:
        notes.append(f"Features in no view: {first_names(rest, 12)}.")
    return notes


def _number_from(fit):
    return "given" if fit.settings.n_clusters else "by prediction strength"


def _lambda_chosen_by(fit):
    if fit.arguments["lambda_"] is None:
        return " (default)" if fit.estimates.task == CLUSTERS else " (by itself)"
    return phrases.by_cross_validation(fit, "lambda_")


def _search_words(fit):
    if voting(fit):
        return "which vote together, by forward selection"
    if fit.settings.lambda_ is None:
        return "by forward selection on leave-one-out errors"
    how = _lambda_chosen_by(fit)
    how = how.replace("(by CV)", "(chosen by cross-validation)")
    how = how.replace("(by itself)", "(chosen by the method)")
    return f"lambda: {significant(fit.settings.lambda_)}{how}"


def words(fit):
    views = fit.view_names
    n = len(views)
    number = "One view predicts" if n == 1 else f"{n} views predict"
    some = join_words(views[:3]) if len(views) <= 3 else f"{'; '.join(views[:3])} and others"
    return [
        f"{number} for all rows, by at most three features each (informative projections): {some}.",
        "In each view, the training rows nearest to a row predict its response.",
    ]


def pictures(fit, data):
    """Return charts for a report page: shares of feature sets, and rows of `data` in each set."""
    views = in_pandas(fit.tidy)().rename(
        columns={"term": "view", "weight": "mean weight", "estimate": "share of the rows"}
    )
    note = "Mean weight of each view in the predictions of the training rows."
    hover = ("share of the rows", "error")
    found = [Picture("Views", "bars", views, "mean weight", "view", note, hover=hover)]
    if data is None:
        return found
    rows, clusters = thinned(data, MOST_POINTS), fit.design.response is None
    new = {"cluster": fit.predict(rows)} if clusters else {}
    rows, (row, *color) = with_columns(rows, new)
    if not clusters:
        color = [name for name in [fit.design.response.name] if name in data]
    terms = zip(fit.design.names, fit.design.term_of, strict=True)
    parts = {name: fit.design.terms[t] for name, t in terms}
    # The data column of a feature that is a level of a category
    columns = {name: column_with_levels(one[0]) for name, one in parts.items() if len(one) == 1}
    for names in fit.view_features[:4]:
        two = [columns.get(name) or name for name in names[:2]]
        if len(two) == 2 and {*two} <= {*data.columns}:
            note = "The first two features of this view." if len(names) > 2 else ""
            title, frame, x = f"View: {', '.join(names)}", rows, rows[two[0]]
            if not pd.api.types.is_numeric_dtype(x):  # levels in their order
                key = None if isinstance(x.dtype, pd.CategoricalDtype) else lambda c: c.map(str)
                frame = rows.sort_values(two[0], kind="stable", key=key)
            style = {"color": "".join(color), "hover": (row, *data.columns[:MOST_HOVER])}
            found.append(Picture(title, "points", frame, *two, note, **style))
    return found
