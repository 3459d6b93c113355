"""Printed table and summary of a Comparison."""

import numpy as np
import pandas as pd

from lodim.comparison.candidates import PEERS, has_peers
from lodim.comparison.inference import LEVEL, TIE, tied
from lodim.diagnostics.findings import rows_in_words
from lodim.diagnostics.predictions import SHARE, dominant, why_dominant
from lodim.report import phrases
from lodim.report.numbers import significant
from lodim.report.tables import Report, Table, listing
from lodim.text import counted, first_names, join_words

SHOWN_REASONS = 2  # number of printed reasons why a model does not predict rows
LONG = 60  # largest number of characters of an argument in a printed call
# Columns of tidy() in the printed table, and their headings
SHOWN = {"deviance": "Loss", "deviance_se": "SE", "difference": "Diff."}
SHOWN |= {"difference_se": "SE(diff)", "accuracy": "Acc.", "auc": "AUC", "features": "Feat."}


def listing_of(comparison):
    """Return the text of print(comparison): the call, conclusions, and the table of models."""
    frame = comparison._frame
    shown = {old: new for old, new in SHOWN.items() if old in frame}
    table = frame[list(shown)].rename(columns=shown)
    if "Acc." not in table:
        is_gaussian = comparison._task.family.name == "gaussian"
        table.insert(4, "R2" if is_gaussian else "D2", frame["dev_ratio"])
    if frame["parts"].notna().any():
        parts = zip(map(_mean_count, frame["parts"]), frame["part"].fillna(""), strict=True)
        parts = [(n, noun[:-1] if n == "1" else noun) for n, noun in parts]
        table["Parts"] = [f"{n} {noun}" if noun else "" for n, noun in parts]
    if any(c.arguments.get("costs") is not None for c in comparison._candidates):
        table["Price"] = frame["price"]
    table.index = pd.Index(frame["model"])
    means = join_words([name for name in ("Feat.", "Parts", "Price") if name in table])
    notes = "SE: standard error; Diff.: loss minus the lowest loss", f"{means}: means over folds"
    losses = _loss_format(table["Loss"].min())
    digits = dict.fromkeys(("Loss", "SE", "Diff.", "SE(diff)"), losses)
    digits |= dict.fromkeys(("Acc.", "AUC", "R2", "D2"), ".3f")
    digits |= {"Feat.": _mean_count, "Parts": str, "Price": _mean_count}
    digits = {name: f for name, f in digits.items() if name in table}
    table = Table("", table.rename_axis(None), digits, ["; ".join(notes) + "."])
    task = comparison._task
    dropped = f" ({task.design.n_dropped} dropped)" if task.design.n_dropped else ""
    folds = f"held out in {task.n_folds} folds{_of_groups(task)}"
    first = f"Rows: {task.batch.n_positive}{dropped}, {folds}; loss: {_loss_name(task)}"
    rest = *conclusions(comparison), *_failures(comparison), *_remarks(comparison)
    return listing(comparison.call, [first, *rest], table)


def summary(comparison):
    """Return a Comparison's report: measures with standard errors, differences, sizes, times."""
    frame = comparison._frame.set_index("model").rename_axis(None)
    task = comparison._task
    measures = [name for name in ("deviance", "dev_ratio", "accuracy", "auc") if name in frame]
    columns = [c for name in measures for c in (name, f"{name}_se")]
    needs = frame[["features", "parts", "part", "price", "seconds"]].fillna({"part": ""})
    differences = frame[["difference", "difference_se", "p_value"]]
    counts = dict.fromkeys(("features", "parts", "price"), _mean_count) | {"seconds": _seconds}
    tables = (
        Table("Held-out losses and measures", frame[columns]),
        Table("Differences in deviance from the best", differences, {"p_value": _p_value}),
        Table("Size and time of the fits (means over the folds)", needs, counts),
    )
    header = (
        ("Response", phrases.modelled(task)),
        ("No. observations", str(task.batch.n_positive)),
        ("Family", task.family.label),
        ("Rows dropped (NA)", str(task.design.n_dropped)),
        ("Loss", _loss_name(task)),
        ("Folds", f"{task.n_folds}{_of_groups(task)}"),
        ("Call", comparison.call),
    )
    notes = (
        *conclusions(comparison),
        f"Variances are multiplied by {comparison._rows.inflation:.3g}, because folds share "
        "training rows (Nadeau and Bengio 2003). p: the model confidence set (Hansen, Lunde and "
        "Nason 2011), which compares all pairs at once.",
        *_failures(comparison),
        *_remarks(comparison),
    )
    return Report("Comparison of Models on Held-out Rows", header, tables, notes)


def conclusions(comparison):
    """Return a Comparison's results as sentences: the best model, and differences from it."""
    frame = comparison._frame.dropna(subset=["deviance"])
    best, *others = frame.to_dict("records")
    if not others:
        return [f"Only {best['model']} could be fitted."]
    share = f"{100 * (1 - LEVEL):.0f}%"
    first = f"{best['model']} has the lowest held-out loss. Differences from this model"
    first += f", with {share} intervals that hold for all pairs of models together:"
    digits = _loss_format(best["deviance"])
    texts = [first]
    for one in others:
        if tied(one["deviance"], best["deviance"]):
            texts.append(f"{one['model']}: equal (difference below {TIE:g} of the loss).")
            continue
        size, low, high = (format(one[k], digits) for k in ("difference", "conf_low", "conf_high"))
        verdict = "no significant difference" if one["p_value"] > LEVEL else "significantly worse"
        texts.append(f"{one['model']}: +{size} ({low} to {high}): {verdict}.")
    if any(one["p_value"] <= LEVEL and one["conf_low"] < 0.0 for one in others):
        why = "tests compare only the models that are not yet rejected, intervals all models"
        texts.append(f"A significantly worse model may have 0 in its interval: {why}.")
    return texts


def _loss_name(task):
    return "twice the log-loss" if task.family.loss == "log-loss" else task.family.loss


def _loss_format(value):
    if value > 0 and not 1e-5 <= value < 1e9:
        return ".3g"
    return f".{3 if value <= 0 else int(np.clip(2 - np.floor(np.log10(value)), 0, 9))}f"


def _of_groups(task):
    return "" if task.inputs.groups is None else " of whole groups"


def _failures(comparison):
    return [f"{label} was not fitted: {why}" for label, why in comparison.failed.items()]


def _remarks(comparison):
    found = []
    if any(c.kind == "null" for c in comparison._candidates) and not has_peers():
        found.append(f"without {join_words(PEERS)}: scikit-learn is not installed")
    for label, record in comparison._records.items():
        if record.unanswered:
            rows, why = counted(record.unanswered, "row"), first_names(record.why, SHOWN_REASONS)
            done = "these rows have the loss of the null model"
            found.append(f"{label} predicts {rows} as NaN; {done}: {why}")
        if record.not_converged:
            fits = counted(record.not_converged, "fit")
            found.append(f"{label}: {fits} of {comparison._task.n_folds} did not converge")
    for rows, labels in _dominant_rows(comparison).items():
        share = f"{100 * SHARE:.0f}% or more of the held-out loss{' each' * (len(rows) > 1)}"
        found.append(f"{join_words(labels)}: {rows_in_words(rows)} with {share}; check the values")
    return found


def _dominant_rows(comparison):
    """Return {tuple of labels of rows that each make 25% or more of the loss: models concerned}."""
    batch, levels = comparison._task.batch, comparison._task.levels
    frame, losses, found = comparison._frame, comparison.losses, {}
    for label, explained in zip(frame["model"], frame["dev_ratio"], strict=True):
        if label in losses and not why_dominant(batch.n, levels, explained):
            rows = losses.index[dominant(losses[label].to_numpy(), batch.weight)]
            found.setdefault(tuple(rows), []).append(label)
    return {rows: labels for rows, labels in found.items() if rows}


def _mean_count(value):
    if np.isnan(value):
        return ""
    return significant(value) if value == int(value) else f"{value:.{1 if value < 100 else 0}f}"


def _p_value(value):
    return "NaN" if np.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}"


def _seconds(value):
    return "NaN" if np.isnan(value) else f"{value:.{2 if value < 1 else 1}f}"


# The call, as a user would write it


def short(value):
    """Return the text of an argument as a user would type it; "..." for an array."""
    if isinstance(value, float):
        return f"{value:.6g}"
    plain = isinstance(value, str | int) and len(repr(value)) <= LONG
    return repr(value) if plain else "..."


def listed(models):
    """Return the models of a call as a user would type them; "..." if they are too long."""
    if isinstance(models, dict):
        text = "{" + ", ".join(f"{label!r}: ..." for label in models) + "}"
    else:
        names = [getattr(model, "__name__", model) for model in models]
        text = f"[{', '.join(map(str, names))}]"
    return text if len(text) <= LONG else "..."
