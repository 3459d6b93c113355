"""What a RiprFit prints."""

import pandas as pd

from lodim import wording
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.experts import describe
from lodim.report import Report, Table, significant

MOST_NAMES = 12  # features in no view that are named
ERROR = {
    CLASSES: ("Error", "share wrong"),
    NUMBERS: ("MSE", "mean squared error"),
    CLUSTERS: ("Distortion", "mean squared distance to the centre of the cluster, in standard "
                             "deviations"),
}  # fmt: skip


def listing(fit):
    """Lines and table of the short print."""
    s, r = fit.settings, fit.record
    unlabelled = f", {r.unlabelled} of them unlabelled" if r.unlabelled else ""
    lines = [
        f"Family: {fit.family.name}{wording.levels(fit)}",
        f"{wording.rows(fit, unlabelled)}, used: {fit.df}",
        f"Views: {len(fit.estimates)}, k: {s.k}, lambda: {significant(s.lambda_)}"
        f"{_chosen(fit)}, learner: {_learner(fit)}",
    ]
    if r.blind:
        lines.append(f"Without any complete view: {r.blind} rows")
    if not fit.converged:
        lines.append("Warning: the search for views did not converge; see summary()")
    return lines, _views(fit, "")


def summary(fit):
    """Header, views, clusters, and how the search ended."""
    clusters = (_clusters(fit),) if len(fit.estimates.centres) else ()
    return Report(
        title="Informative Projection Results",
        header=_header(fit),
        tables=(_views(fit, "Views", notes=(_legend(fit),)), *clusters),
        notes=_notes(fit),
    )


def _header(fit):
    s, d, r = fit.settings, fit.design, fit.record
    rows = [
        ("Response", "none" if d.response is None else wording.modelled(fit)),
        ("No. observations", str(fit.n)),
        ("Model", "ripr"),
        ("Rows dropped (NA)", str(d.n_dropped)),
        ("Family", fit.family.name),
        ("Rows unlabelled", str(r.unlabelled)),
        ("Learner", _learner(fit)),
        ("Rows without a view", str(r.blind)),
        ("Neighbours (k)", str(s.k)),
        ("Features", str(len(d.names))),
        ("Lambda / (1 - a)^2", f"{significant(s.lambda_)}{_how(fit)}"),
        ("Features used", str(fit.df)),
        ("Dimensions", _dimensions(fit)),
        ("Views", str(len(fit.estimates))),
        ("Order a", significant(s.a)),
        (f"{ERROR[fit.estimates.task][0]} (leave-one-out)", significant(r.overall)),
        ("Dev. ratio", significant(fit.dev_ratio)),
        ("Converged", "yes" if fit.converged else "NO"),
    ]
    return tuple(rows)


def _views(fit, title, notes=()):
    frame = fit.tidy()
    name = ERROR[fit.estimates.task][0]
    table = axes(fit).assign(
        **{"%Rows": 100.0 * frame["estimate"].to_numpy(), name: frame["error"].to_numpy()}
    )
    formats = {"%Rows": ".1f", name: _blank}
    if title:
        table["%Mass"] = 100.0 * frame["mass"].to_numpy()
        formats["%Mass"] = ".1f"
    return Table(title, table, formats, notes)


def axes(fit):
    """The features of each view, a column for each axis of its picture; numbered from 1."""
    names = fit.view_features
    most = max(map(len, names), default=0)
    columns = {"xyz"[a]: [n[a] if a < len(n) else "" for n in names] for a in range(most)}
    return pd.DataFrame(columns, index=range(1, len(names) + 1))


def _legend(fit):
    name, words = ERROR[fit.estimates.task]
    return (
        "%Rows: training rows that queries send to the view, each row without itself; "
        f"{name}: theirs, {words}; %Mass: of the view in the assignment that it was found by."
    )


def _clusters(fit):
    frame = fit.clusters().set_index("cluster").rename_axis(None)
    features = list(frame.columns[4:])
    table = pd.DataFrame({"Rows": frame["n"], "Distortion": frame["distortion"]})
    for name in features:
        table[name] = frame[name]
    formats = dict.fromkeys(table.columns[1:], _blank)
    return Table("Clusters", table, formats, ("Centres, in the features of their view.",))


def _notes(fit):
    log, s = fit.log, fit.settings
    ended = "converged" if fit.converged else "NOT converged"
    notes = [
        f"Search: {len(log['objective'])} rounds, {ended}; objective "
        f"{significant(log['objective'][-1])}."
    ]
    notes += wording.choice(fit)
    if fit.record.blind:
        notes.append(f"{fit.record.blind} rows have all features of no view: they get no answer.")
    if fit.arguments.get("limits") is not None:
        notes.append("Training rows are assigned within limits, by CVXPY.")
    if s.learner is not None:
        notes.append("Views answer by the learner, fitted to the rows that each serves; its own "
                     "training rows are among those of the error.")  # fmt: skip
    flat = [fit.design.names[f] for f in log["flat"] if fit.design.scale[f] != 1.0]
    if flat:
        notes.append(
            f"A few values set the standard deviation of {wording.listed(flat)}: distances hardly "
            "see the others; a logarithm or ranks would help."
        )
    used = {name for names in fit.view_features for name in names}
    rest = [name for name in fit.design.names if name not in used]
    if rest:
        more = f" and {len(rest) - MOST_NAMES} more" if len(rest) > MOST_NAMES else ""
        notes.append(f"In no view: {', '.join(rest[:MOST_NAMES])}{more}.")
    notes += wording.without_effect(fit.design)
    return tuple(notes)


def _dimensions(fit):
    dims = fit.tidy()["dim"]
    low, high = dims.min(), dims.max()
    return str(high) if low == high else f"{low} to {high}"


def _learner(fit):
    if fit.settings.learner is None and fit.estimates.task == CLUSTERS:
        return "k-means"
    return describe(fit.settings.learner)


def _how(fit):
    if "lambda_" in fit.chosen:
        return " (by CV)"
    return " (by itself)" if fit.arguments.get("lambda_") is None else ""


def _chosen(fit):
    return {" (by CV)": " (chosen by cross-validation)", " (by itself)": " (chosen by the method)"
            }.get(_how(fit), "")  # fmt: skip


def _blank(value):
    return "" if pd.isna(value) else significant(value)
