"""Phrases and notes that the reports of all models share."""

import numpy as np

from lodim.formula.formula import ANSWERS, quote
from lodim.report.numbers import significant
from lodim.text import counted, join_words

FILLS = 8  # largest number of columns that a note names


def levels(fit, numeric=""):
    """Return text on the classes, to follow "Family" in a summary; without classes, `numeric`."""
    if fit.levels is None:
        return numeric
    if len(fit.levels) == 2:
        return f", probability of {fit.design.response.event(fit.levels[1])}"
    return f", {len(fit.levels)} classes"


def modelled(fit):
    """Return the name of the modelled quantity: the response, or P(response = second class)."""
    response = fit.design.response
    if fit.levels is None or len(fit.levels) > 2:
        return response.name
    return f"P({response.event(fit.levels[1])})"


def scale(fit):
    """Return what a linear predictor is: the response, or such as "the logit of P(y = yes)"."""
    link, mean = fit.family.link, "the mean of " * (fit.levels is None)
    if link == "identity":
        return fit.design.response.name
    return "the score of the class" if link == "softmax" else f"the {link} of {mean}{modelled(fit)}"


def per(fit, sd="SD"):
    """Return "per SD", or "per unit" if the features of the fit are not standardized."""
    return f"per {sd}" if fit.arguments.get("standardize", True) else "per unit"


def not_standardized(fit):
    """Return a list of one note, that std_estimate is per unit; [] if features are standardized."""
    if fit.arguments["standardize"]:
        return []
    return ["Features are not standardized: std_estimate in tidy() is per unit of the feature."]


def monotone(fit):
    """Return a list with a line on which effects were required to be monotone; [] if none."""
    if not fit.settings.monotone:
        return []
    way = np.asarray(fit.settings.monotone)[np.unique(fit.design.term_of, return_index=True)[1]]
    parts = []
    for label, sign in (("increasing in", 1), ("decreasing in", -1)):
        names = [fit.design.term_names[k] for k in np.flatnonzero(way == sign)]
        parts += [f"{label} {', '.join(names)}"] if names else []
    return [f"At every row {'; '.join(parts)}"]


def header(fit, *rows):
    """Return (label, text) pairs for a summary's header, including a model's own `rows`."""
    return (
        ("Response", modelled(fit)),
        ("No. observations", str(fit.n)),
        ("Model", fit.name),
        ("Rows dropped (NA)", str(fit.design.n_dropped)),
        ("Family", fit.family.label),
        *rows,
        ("Dev. ratio", f"{fit.dev_ratio:z.4f}"),
        ("Converged", "yes" if fit.converged else "NO"),
    )


HELD_OUT = "Dev. ratio (held out)"


def _held_out_ratio(fit):
    """Return the explained share of the null deviance in held-out rows as text; None if unknown."""
    deviance = fit._held_out_deviance()
    return None if deviance is None else f"{fit._explained(deviance):z.4f}"


def held_out(fit):
    """Return a list with a line on the deviance explained in held-out rows; [] if unknown."""
    ratio = _held_out_ratio(fit)
    return [] if ratio is None else [f"{HELD_OUT}: {ratio}"]


def with_held_out(fit, header):
    """Return a summary's `header` with the deviance explained in held-out rows, and notes on it."""
    ratio = _held_out_ratio(fit)
    if ratio is None:
        return header, []
    rows = [(row, (HELD_OUT, ratio)) if row[0] == "Dev. ratio" else (row,) for row in header]
    text = f"{HELD_OUT} is for the rows that cross-validation held out"
    if fit.chosen:
        text += ", at the nearest settings that it tried. The settings were chosen on these "
        text += "rows, so the figure is slightly too high"
    return tuple(row for each in rows for row in each), [f"{text}."]


def term_labels(frame):
    """Return names of the rows of tidy(): the term and, for classes, the class in brackets."""
    if "level" not in frame:
        return list(frame["term"])
    return [f"{t} ({k})" for t, k in zip(frame["term"], frame["level"], strict=True)]


def by_cross_validation(fit, name):
    """Return " (by CV)" if cross-validation chose the named setting, else ""."""
    return " (by CV)" if name in fit.chosen else ""


def _groups(fit):
    return "" if fit.arguments.get("groups") is None else ", folds of whole groups"


def rows(fit, detail=""):
    """Return a line with the numbers of rows and features; `detail` follows the number of rows."""
    d = fit.design
    filled_in = d.n_incomplete if d.missing == "indicator" else 0
    counts = {"dropped": d.n_dropped, "filled in": filled_in}
    done = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    left_out = f" ({done} for missing values)" if done else ""
    constant = f" ({len(d.constant)} constant)" if d.constant else ""
    out = f" ({counted(len(d.left_out), 'column')} left out of '.')" if d.left_out else ""
    features = f"features: {len(d.names)}{constant}{out}"
    return f"Rows: {fit.n}{left_out}{detail}, {features}{_groups(fit)}"


def dropped(fit):
    """Return a list with a hint if over 10% of rows were dropped for missing features, else []."""
    d = fit.design
    if d.missing != "drop" or 10 * d.n_incomplete <= fit.n + d.n_dropped:
        return []
    some = f"the {d.n_incomplete} rows in which only features are missing"
    return [f'missing="indicator" would keep {some}']


def missing(design):
    """Return notes on rows dropped for missing values, and on imputed values, as a list."""
    notes = [f"Rows dropped for missing values: {lacking(design)}."] * bool(design.lacking)
    told, coded = [], design.with_level_of_missing
    for fill in sorted((f for f in design.fills if f.n_missing), key=lambda f: -f.n_missing):
        by = f"by {fill.value}"
        if fill.name in coded:
            by = "a level of its own"
        elif isinstance(fill.value, float):
            by = f"by the mean, {significant(fill.value)}"
        told.append(f"{fill.name} in {counted(fill.n_missing, 'row')} ({by})")
    return notes + ([f"Missing values filled in: {_first(told, 'fills')}."] if told else [])


def lacking(design):
    """Return a phrase: the number of training rows dropped for a missing value, per column."""
    counts = sorted(design.lacking.items(), key=lambda item: -item[1])
    return _first([f"{name} in {counted(n, 'row')}" for name, n in counts], "lacking")


def _first(texts, field):
    """Return the first few texts, joined; if there are more, point to `design.<field>` for all."""
    more = f"; and {len(texts) - FILLS} more, see design.{field}" if len(texts) > FILLS else ""
    return ", ".join(texts[:FILLS]) + more


def parameters(fit):
    """Return a list with a note if a fit has at least as many parameters as rows, else []."""
    count = fit._n_free
    if count is None or count < fit.n:
        return []
    return [
        f"The model has {count:,} parameters for {counted(fit.n, 'row')}: Dev. ratio is for "
        "these training rows; predictions for new rows may be much worse (see lodim.cv)."
    ]


def wild(design):
    """Return a list with a note on features with extreme outliers; [] without any."""
    found = sorted(design.wild, key=lambda one: -one.n)
    if not found:
        return []
    told = [f"{w.feature} in {counted(w.n, 'row')} ({limits_in_words(w)})" for w in found]
    done = "Values far outside all others are replaced by the middle of the other values"
    return [f"{done}: {_first(told, 'wild')}."]


def heavy_tails(design):
    """Return a list with a note on columns of which heavy tails are compressed; [] without any."""
    told = ", ".join(map(quote, design.compressed))
    return [f"Columns with heavy tails, compressed by np.arcsinh: {told}."] if told else []


def limits_in_words(limits):
    """Return `limits` as a phrase: a feature's farthest outlier and the range of other values."""
    least, greatest = significant(limits.least), significant(limits.greatest)
    return f"{significant(limits.farthest)}; the others are from {least} to {greatest}"


def sampled(fit):
    """Return a list of notes on random samples used for the fit or for its splines."""
    notes, size, learnt = [], fit.arguments.get("sample"), fit.design.n_sampled
    if size is not None:
        some = f"a random sample of at most {size:,} rows"
        notes.append(f"Fitted to {some} of the data (sample={size}).")
    if learnt:
        notes.append(
            "Knots of splines, and the constants of center(), scale() and standardize(), are "
            f"learned from {learnt:,} rows: random rows, and rows with extreme values."
        )
    return notes


def choice(fit, detail=""):
    """Return a list with a note on the settings that cross-validation chose; [] if none.

    detail : text to add to the note, after the number of settings that were tried"""
    if fit.selection is None or not fit.chosen:
        return []
    points = fit.selection
    rule = ", averaged over similar ones" if "weight" in points else ""
    text = ", at the smallest {0} tried, {1} (ld.cv with a grid of {0} tries smaller ones)"
    ends = "".join(text.format(name, significant(value)) for name, value in at_smallest(fit))
    n_draws, ranges, by_draw = len(next(iter(fit.chosen.values()))), [], ""
    if n_draws > 1:
        for name, values in fit.chosen.items():
            least, greatest = significant(min(values)), significant(max(values))
            ranges.append(f"{name} {least if least == greatest else f'from {least} to {greatest}'}")
        folds = f"Each of {n_draws} sets of random folds alone would choose"
        by_draw = f" {folds} {join_words(ranges)}."
    return [
        f"{join_words(fit.chosen)}: cross-validation over {counted(len(points), 'setting')}{detail}"
        f"{rule}; lowest held-out loss {significant(points['mean'].min())}{ends}"
        f"{_groups(fit)}.{by_draw}"
    ]


def at_smallest(fit):
    """Return (name, value) of each penalty whose smallest value tried has the lowest loss."""
    points, found = fit.selection, []
    for name in fit._penalties:
        if name not in fit.chosen or name not in points or points[name].dtype.kind not in "fiu":
            continue
        values, best = points[name].dropna().to_numpy(), points[name][points["mean"].idxmin()]
        if len(values) > 1 and values[0] > values[-1] and best == values[-1]:
            found.append((name, float(best)))
    return found


def without_effect(design):
    """Return a list of notes on constant features and on columns that "." in a formula excludes."""
    notes = []
    if design.constant:
        notes.append(f"Constant features, without effect: {', '.join(design.constant)}.")
    return notes + left_out(design)


def left_out(design):
    """Return a list of notes on columns that "." in a formula excludes."""
    added = [name for name in design.left_out if ANSWERS.match(name)]
    rest = [name for name in design.left_out if name not in added]
    why = {"because augment() has added them": added, "because they seem to be row names": rest}
    return [f"Left out of '.', {what}: {', '.join(names)}." for what, names in why.items() if names]
