"""Printed listing, summary and report page of a MelmFit."""

import numpy as np
import pandas as pd

from lodim.design.frame import in_pandas
from lodim.page import MOST_NAMES, Picture, not_drawn
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.report import phrases
from lodim.report.tables import Report, Table, significant
from lodim.text import counted, shorten

MOST_FEATURES = 20  # rows of the table of loadings
LABEL = 32  # most characters of a row's name
LEFT_OUT = ", each of which is left out of the densities that classify it"
BALANCE = (
    "Some classes are rare: class shares are the priors of predictions; control={'prior': "
    "'equal'} improves balanced accuracy"
)
SAME_END, SIMILAR_END = 1e-6, 0.05  # relative distance to the largest divergence


def listing(fit):
    """Return the lines and the table (largest loadings) that printing a fit shows."""
    classes = phrases.levels(fit, " (no response)")
    if len(fit.levels or ()) == 2:
        classes = f", {fit.design.response.name}: {fit.levels[0]} | {fit.levels[1]}"
    lines = [f"Family: {fit.family.name}{classes}", phrases.rows(fit)]
    if fit.levels is None:
        which = "First" if fit.settings.entropy == "max" else "Last"
        lines.append(
            f"{which} {fit.estimates.k} principal components, entropy: "
            f"{significant(fit.entropy)}, share of variance: {100.0 * fit.dev_ratio:.1f}%"
        )
    else:
        lines.append(
            f"Dimensions: {fit.estimates.k}, gamma: {significant(fit.settings.gamma)}"
            f"{' (chosen by cross-validation)' if fit.chosen else ''}, covariances: "
            f"{fit.settings.covariance}, "
            f"divergence: {significant(fit.divergence)}"
        )
        held = fit.measures.get("held_balanced_accuracy")
        held_out = "" if held is None else f"{held:.3f} (held out), "
        trained = f"{fit.measures['balanced_accuracy']:.3f} (training rows)"
        lines.append(f"Balanced accuracy: {held_out}{trained}")
        if _is_unbalanced(fit):
            lines.append(BALANCE)
    if not fit.converged:
        lines.append("Warning: the search did not converge; see summary()")
    table, n_left = _loadings(fit, 8)
    note = [f"{counted(n_left, 'smaller loading')}: see tidy()"] if n_left else []
    return lines, Table("Loadings per SD of the features", _shortened(table), {}, note)


def summary(fit, full):
    title, tables = "Principal Components Results", [_loading_table(fit, full)]
    if fit.levels is not None:
        title = "Maximum Entropy Linear Manifold Results"
        tables += [_pair_table(fit), _start_table(fit, full)]
    return Report(title, _header(fit), tuple(tables), _notes(fit), full)


def _header(fit):
    s, d, v = fit.settings, fit.design, fit.estimates
    rows = [
        ("Response", "none" if fit.levels is None else d.response.name),
        ("No. observations", str(fit.n)),
        ("Model", "melm"),
        ("Rows dropped (NA)", str(d.n_dropped)),
        ("Family", fit.family.name),
        ("Features", str(len(d.names))),
        ("Dimensions (k)", str(v.k)),
        ("Rank of the features", str(v.rank)),
    ]
    if fit.levels is None:
        rows.append(("Components", "first" if s.entropy == "max" else "last"))
        rows.append(("Entropy", significant(fit.entropy)))
        return (*rows, ("Share of variance", f"{fit.dev_ratio:.4f}"))
    (fitting, regularizing), factor, measures = fit.terms, s.shrinkage_factor, fit.measures
    shrunk = "" if factor == 1.0 else f", shrinkage factor {factor:.2g}"
    other = type(s.classifier).__name__
    rows += [
        ("Gamma", f"{significant(s.gamma)}{phrases.by_cross_validation(fit, 'gamma')}"),
        ("Covariances", f"{s.covariance}{shrunk}"),
        ("Divergence", significant(fit.divergence)),
        ("Fitting term", significant(fitting)),
        ("Regularizing term", significant(regularizing)),
        ("Classifier", "kernel densities" if s.has_builtin_classifier else other),
        ("Bal. accuracy, training", f"{measures['balanced_accuracy']:.4f}"),
        ("Log-loss, training", significant(0.5 * measures["deviance"])),
    ]
    if "held_deviance" in measures:
        rows.append(("Bal. accuracy, held out", f"{measures['held_balanced_accuracy']:.4f}"))
        rows.append(("Log-loss, held out", significant(0.5 * measures["held_deviance"])))
    converged = "yes" if fit.converged else "NO"
    return (*rows, ("Dev. ratio", f"{fit.dev_ratio:.4f}"), ("Converged", converged))


def _loadings(fit, most):
    loadings = in_pandas(fit.tidy)()["std_estimate"].to_numpy().reshape(fit.estimates.k, -1).T
    table = pd.DataFrame(loadings, index=list(fit.design.names), columns=fit.axes)
    size = np.sqrt((table**2).sum(axis=1).to_numpy())
    order = np.argsort(-size, kind="stable")[:most]
    return table.iloc[order], len(table) - len(order)


def _shortened(table):
    return table.set_axis(shorten(table.index, LABEL), axis=0)


def _loading_table(fit, full):
    shown, n_left = _loadings(fit, None if full else MOST_FEATURES)
    frame = in_pandas(fit.tidy)().set_index(["term", "dimension"])
    columns = {f"{axis}/SD": shown[axis].to_numpy() for axis in fit.axes}
    for axis in fit.axes:
        columns[f"r({axis})"] = [frame["correlation"][term, axis] for term in shown.index]
    table = pd.DataFrame(columns, index=shown.index)
    notes = [
        "/SD: change of a coordinate per standard deviation of the feature, largest first (per "
        "unit: tidy()); r: correlation of feature and coordinate over the training rows."
    ]
    if fit.levels is not None:
        notes.append("Coordinates are uncorrelated within classes, with unit variances.")
    if n_left:
        notes.append(f"Not shown: {counted(n_left, 'smaller loading')}; see tidy().")
    formats = {c: ".3f" if c.startswith("r(") else significant for c in table}
    return Table("Loadings", _shortened(table), formats, tuple(notes))


def _pair_table(fit):
    frame = fit.pairs()
    columns = {
        "divergence": "Div.",
        "fitting": "Fit",
        "regularizing": "Reg.",
        "overlap": "Overlap",
        "balanced_accuracy": "Bal. acc.",
    }
    longest = sum(sorted(len(str(level)) for level in fit.levels)[-2:])
    labels = shorten(fit.levels, (LABEL - 3) // 2 if longest + 3 > LABEL else LABEL)
    label = dict(zip(fit.levels, labels, strict=True))
    pairs = zip(frame["first"], frame["second"], strict=True)
    table = frame[list(columns)].rename(columns=columns)
    table.index = [f"{label[a]} | {label[b]}" for a, b in pairs]
    notes = (
        "Div.: divergence, Fit - Reg. Fit: fitting term (2 H2x, twice the cross entropy). Reg.: "
        "regularizing term (sum of both entropies). Overlap: upper bound of the integral of the "
        "smaller density (Theorem 3 within a box). Bal. acc.: lower bound of the balanced accuracy "
        "if the densities were the true ones.",
    )
    formats = {c: ".4f" for c in ("Overlap", "Bal. acc.")}
    return Table("Pairs of classes", table, formats, notes)


def _start_table(fit, full):
    frame = fit.starts()
    best = frame["divergence"].iloc[0]
    gap = (best - frame["divergence"]) / max(abs(best), 1e-300)
    columns = {"Start": frame["start"], "Divergence": frame["divergence"]}
    columns |= {"Below best %": 100.0 * gap, "Iter.": frame["n_iter"]}
    columns["Converged"] = np.where(frame["converged"], "yes", "no")
    table = pd.DataFrame(columns).head(len(frame) if full else 10)
    table.index = range(1, len(table) + 1)
    notes = [
        f"Of {len(frame)} starts {int((gap <= SAME_END).sum())} reached the largest divergence to "
        f"{SAME_END:g} of it, {int((gap <= SIMILAR_END).sum())} to 5%."
    ]
    if "gamma" in frame:
        notes.append(
            f"Starts are for gamma {frame['gamma'][0]:g}; the best view was followed to the "
            "gamma of the fit."
        )
    if len(frame) > len(table):
        notes.append(
            f"{len(frame) - len(table)} starts with a lower divergence are not shown; see starts()."
        )
    return Table("Starts of the search", table, {"Below best %": ".3f"}, tuple(notes))


def _notes(fit):
    if fit.levels is None:
        which = "largest" if fit.settings.entropy == "max" else "smallest"
        notes = [
            f"Among all orthonormal directions these have the {which} Renyi entropy of a normal "
            "density (Theorems 1 and 2)."
        ]
    else:
        notes = _class_notes(fit)
    return (*notes, *phrases.choice(fit), *phrases.without_effect(fit.design))


def _class_notes(fit):
    builtin = fit.settings.has_builtin_classifier
    notes = [_calibration(fit)] if builtin else []
    how = LEFT_OUT if builtin else ", as the classifier"
    notes.append(f"Training: the view was fitted to these rows{how}.{_held_out(fit)}")
    if fit.estimates.drawn:
        notes.append(f"The divergence is that of a random sample of {fit.estimates.drawn} rows.")
    if _is_unbalanced(fit):
        notes.append(f"{BALANCE}.")
    rows, flat = fit.estimates.rule.rows, []
    for k, level in enumerate(fit.levels):
        Z = rows.Z[rows.code == k]
        cov = np.cov(Z.T, bias=True).reshape(Z.shape[1], -1)
        if np.linalg.eigvalsh(cov)[0] < 0.01:  # of the variance within classes
            flat.append(str(level))
    if flat:
        notes.append(
            f"Classes with hardly any variance along a direction of the view: {', '.join(flat)}. "
            "Such a class has a large divergence from all others, even if new rows vary more; "
            "look for a feature that is constant in this class."
        )
    if fit.estimates.separates:
        notes.append(
            "Class means differ in directions without variance within classes: there are few rows "
            "for the features, or a feature is constant in every class. The view leaves these "
            "directions out, because densities have no width there."
        )
    return notes


def _held_out(fit):
    if "held_deviance" not in fit.measures:
        return ""
    text = " Held out: each row is classified by a view fitted to other rows"
    if fit.settings.has_builtin_classifier:
        text += ", its probabilities calibrated by further rows"
    if "gamma" in fit.chosen:
        return (
            f"{text}; gamma was chosen on the same rows, so new rows may be classified slightly "
            "worse."
        )
    return f"{text}; new rows are classified about as well."


def _calibration(fit):
    rule = fit.estimates.rule
    if "held_deviance" not in fit.measures:
        return "Probabilities are not calibrated."
    text = f"scores times {significant(rule.inverse_temperature, 3)}, by held-out rows."
    return (
        f"Calibration: kernels {significant(rule.width, 3)} times as wide as in the search, "
        f"chosen by leaving rows out; {text}"
    )


def _is_unbalanced(fit):
    size = fit.estimates.size
    shares = fit.settings.prior == "shares" and fit.settings.has_builtin_classifier
    return shares and size.min() < 0.5 * size.mean()


def words(fit):
    """Return a description of the model in a few sentences, as a list of paragraphs."""
    glance = in_pandas(fit.glance)().iloc[0]
    found = [
        f"The rows are seen in {glance['k']} directions, those in which the densities of the "
        f"classes of {fit.design.response.name} overlap least (maximum entropy linear manifold)."
        if fit.levels is not None
        else f"The rows are seen in {glance['k']} directions (maximum entropy linear manifold)."
    ]
    if "held_balanced_accuracy" in glance:
        found.append(
            f"Of the held-out rows, {100 * glance['held_balanced_accuracy']:.1f}% are classified "
            "correctly (mean over classes)."
        )
    return found


def pictures(fit, data):
    """Return pictures of the rows in the projection (if data are given) and of the loadings."""
    tidy = in_pandas(fit.tidy)()
    largest = tidy.groupby("term")["std_estimate"].agg(lambda w: w.abs().max())
    kept = largest.sort_values(ascending=False, kind="stable").index[:MOST_NAMES]
    named = tidy.rename(
        columns={"term": "feature", "estimate": "loading", "std_estimate": "loading per SD"}
    )
    axes = list(dict.fromkeys(tidy["dimension"]))
    note = "Change of the coordinate per standard deviation (SD) of the feature."
    note += not_drawn(largest, MOST_NAMES)
    found = []
    for axis in axes[:2]:
        rows = named[(tidy["dimension"] == axis) & tidy["term"].isin(kept)]
        style = {"note": note, "hover": ("loading", "correlation")}
        title, x = f"Loadings of {axis}", "loading per SD"
        found.append(Picture(title, "bars", rows, x, "feature", **style))
    if data is None or len(axes) < 2:
        return found
    rows = thinned(data, MOST_POINTS)
    seen = fit.predict(rows, "projection")
    new = {f"view {name}": seen[name] for name in seen.columns[:2]}
    frame, (row, x, y) = with_columns(rows, new)
    name = None if fit.levels is None else fit.design.response.name
    color = name if name in rows else ""
    hover = (row, *rows.columns[:MOST_HOVER])
    view = Picture("View", "points", frame, x, y, color=color, hover=hover)
    return [view, *found]
