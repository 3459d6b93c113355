"""Words that the reports of all models share."""

from lodim.formula.formula import ANSWERS
from lodim.report.numbers import significant
from lodim.text import counted, join_words

FILLS = 8  # columns with missing values that a note names


def levels(fit, numeric=""):
    """The probability or classes that are modelled, as text; `numeric` of a numeric response."""
    if fit.levels is None:
        return numeric
    if len(fit.levels) == 2:
        return f", probability of {fit.design.response.event(fit.levels[1])}"
    return f", {len(fit.levels)} classes"


def modelled(fit):
    """Return name of the response; with two classes P(response = second class)."""
    response = fit.design.response
    if fit.levels is None or len(fit.levels) > 2:
        return response.name
    return f"P({response.event(fit.levels[1])})"


def header(fit, *rows):
    """Return labels and texts of a summary's header: what all models have, around a model's own."""
    return (
        ("Response", modelled(fit)),
        ("No. observations", str(fit.n)),
        ("Model", fit.name),
        ("Rows dropped (NA)", str(fit.design.n_dropped)),
        ("Family", fit.family.name),
        *rows,
        ("Dev. ratio", f"{fit.dev_ratio:z.4f}"),
        ("Converged", "yes" if fit.converged else "NO"),
    )


HELD_OUT = "Dev. ratio (held out)"


def _held_out_ratio(fit):
    """Return share of the null deviance explained in held-out rows as text, None if unknown."""
    deviance = fit._held_out_deviance()
    return None if deviance is None else f"{fit._explained(deviance):z.4f}"


def held_out(fit):
    """Return a line with the share of the deviance explained in held-out rows, as a list."""
    ratio = _held_out_ratio(fit)
    return [] if ratio is None else [f"{HELD_OUT}: {ratio}"]


def with_held_out(fit, header):
    """The header with that share below the one of the training rows, and a note, as a list."""
    ratio = _held_out_ratio(fit)
    if ratio is None:
        return header, []
    rows = [(row, (HELD_OUT, ratio)) if row[0] == "Dev. ratio" else (row,) for row in header]
    text = f"{HELD_OUT} is of the rows that cross-validation held out"
    if fit.chosen:
        text += ", at the nearest settings that it tried. It chose the settings by these rows: the"
        text += " figure is slightly optimistic"
    return tuple(row for each in rows for row in each), [f"{text}."]


def term_labels(frame):
    """Return names of the rows of tidy(): the term, and the level in brackets for classes."""
    if "level" not in frame:
        return list(frame["term"])
    return [f"{t} ({k})" for t, k in zip(frame["term"], frame["level"], strict=True)]


def how(fit, name):
    """Return a remark where cross-validation has chosen a setting, else no text."""
    return " (by CV)" if name in fit.chosen else ""


def _groups(fit):
    """Return a note that folds hold out whole groups, where they do, else no text."""
    return "" if fit.arguments.get("groups") is None else ", folds of whole groups"


def rows(fit, detail=""):
    """Return a line with the numbers of rows and features; `detail` of the rows."""
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
    """How not to drop rows, as a list of one line where more than a tenth miss features alone."""
    d = fit.design
    if d.missing != "drop" or 10 * d.n_incomplete <= fit.n + d.n_dropped:
        return []
    return [f'missing="indicator" would keep the {d.n_incomplete} rows that miss features alone']


def filled(design):
    """Return a note on imputed values; empty if none was missing."""
    gaps = sorted((f for f in design.fills if f.n_missing), key=lambda f: -f.n_missing)
    if not gaps:
        return []
    of = [(f.name, counted(f.n_missing, "row"), _stand_in(f, design)) for f in gaps[:FILLS]]
    told = [f"{name} in {rows} ({instead})" for name, rows, instead in of]
    more = f"; and {len(gaps) - FILLS} more, see design.fills" if len(gaps) > FILLS else ""
    return [f"Missing values filled in: {', '.join(told)}{more}."]


def parameters(fit):
    """That a fit has as many parameters as rows, as a list of one note, empty if it has fewer."""
    count = fit._n_free
    if count is None or count < fit.n:
        return []
    return [
        f"The model has {count:,} parameters for {counted(fit.n, 'row')}: Dev. ratio is for these "
        "training rows, and new rows may be predicted much worse (lodim.cv)."
    ]


def wild(design):
    """Return features with wild values, as a list of one note, empty without any."""
    found = sorted(design.wild, key=lambda one: -one.n)
    if not found:
        return []
    told = [f"{one.feature} in {counted(one.n, 'row')} ({others(one)})" for one in found[:FILLS]]
    more = f"; and {len(found) - FILLS} more, see design.wild" if len(found) > FILLS else ""
    said = ", ".join(told) + more
    return [f"Values far outside all others are replaced by the middle of the others: {said}."]


def others(limits):
    """Return the farthest wild value of some design.Limits, and where the others are."""
    least, greatest = significant(limits.least), significant(limits.greatest)
    return f"{significant(limits.farthest)}; the others are from {least} to {greatest}"


def sampled(fit):
    """Return which rows were drawn, for the fit or for its splines, as a list of notes."""
    notes, size, learnt = [], fit.arguments.get("sample"), fit.design.n_sampled
    if size is not None:
        notes.append(
            f"Fitted to a random sample of at most {size:,} rows of the data (sample={size})."
        )
    if learnt:
        notes.append(
            "Knots of splines, and the constants of center(), scale() and standardize(), are "
            f"learned from {learnt:,} rows: random ones and those with extreme values."
        )
    return notes


def _stand_in(fill, design):
    if design.has_level_of_missing(fill.name):
        return "a level of its own"
    return (
        f"by the mean, {significant(fill.value)}"
        if isinstance(fill.value, float)
        else f"by {fill.value}"
    )


def choice(fit, detail=""):
    """How cross-validation chose, as a list of one note, empty where it chose nothing."""
    if fit.selection is None or not fit.chosen:
        return []
    points = fit.selection
    rule = ", averaged over similar ones" if "weight" in points else ""
    return [
        f"{join_words(fit.chosen)}: cross-validation over {counted(len(points), 'setting')}{detail}"
        f"{rule}; lowest held-out loss {significant(points['mean'].min())}{_groups(fit)}."
        f"{_at_end(fit)}{_by_draw(fit)}"
    ]


def at_smallest(fit):
    """Penalties whose least loss is at the smallest value that was tried: (name, value) of each.

    Of penalties alone, which are listed in decreasing order: at the largest a model is nearly the
    null one, and of other settings (such as the boosts of gbmap) the ends are those of what there
    is.
    """
    if fit.selection is None:
        return []
    points, found = fit.selection, []
    for name in fit._penalties:
        if name not in fit.chosen or name not in points or points[name].dtype.kind not in "fiu":
            continue
        values, best = points[name].dropna().to_numpy(), points[name][points["mean"].idxmin()]
        if len(values) > 1 and values[0] > values[-1] and best == values[-1]:
            found.append((name, float(best)))
    return found


def _at_end(fit):
    """That the least loss is where the values end that were tried, as text, empty if it is not."""
    return "".join(
        f" It is at the smallest {name} tried, {significant(value)}: "
        f"try smaller ones by ld.cv with a grid of {name}."
        for name, value in at_smallest(fit)
    )


def _by_draw(fit):
    """Describe the range of choices over sets of random folds: it shows how seeds differ."""
    draws = len(next(iter(fit.chosen.values())))
    if draws < 2:
        return ""
    ranges = join_words(f"{name} {_range(values)}" for name, values in fit.chosen.items())
    return f" Each of {draws} sets of random folds alone would choose {ranges}."


def _range(values):
    """Return the least and the greatest of some values, or the one that all are."""
    least, greatest = significant(min(values)), significant(max(values))
    return least if least == greatest else f"from {least} to {greatest}"


def without_effect(design):
    """Return the constant features and the columns that a dot left out, as a list of notes."""
    notes = []
    if design.constant:
        notes.append(f"Constant features, without effect: {', '.join(design.constant)}.")
    return notes + left_out(design)


def left_out(design):
    """Return the columns that a dot left out, as a list of notes."""
    added = [name for name in design.left_out if ANSWERS.match(name)]
    why = {
        "because augment() has added them": added,
        "because they name the rows": [name for name in design.left_out if name not in added],
    }
    return [f"Left out of '.', {what}: {', '.join(names)}." for what, names in why.items() if names]
