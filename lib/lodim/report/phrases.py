"""Words that the reports of all models share."""

from itertools import zip_longest

from lodim.report.numbers import significant


def levels(fit, numeric=""):
    """The probability or classes that are modelled, as text; `numeric` of a numeric response."""
    if fit.levels is None:
        return numeric
    if len(fit.levels) == 2:
        return f", probability of {fit.design.response.name} = {fit.levels[1]}"
    return f", {len(fit.levels)} classes"


def modelled(fit):
    """Name of the response, or of two classes P(response = second class)."""
    name = fit.design.response.name
    return name if fit.levels is None or len(fit.levels) > 2 else f"P({name} = {fit.levels[1]})"


def header(fit, *rows):
    """Labels and texts of a summary's header: what all models have, around a model's own."""
    ratio = fit.dev_ratio
    return (
        ("Response", modelled(fit)),
        ("No. observations", str(fit.n)),
        ("Model", fit.name),
        ("Rows dropped (NA)", str(fit.design.n_dropped)),
        ("Family", fit.family.name),
        *rows,
        ("Dev. ratio", f"{ratio:.4f}"),
        ("Converged", "yes" if fit.converged else "NO"),
    )


def how(fit, name):
    """A remark where cross-validation has chosen a setting, else no text."""
    return " (by CV)" if name in fit.chosen else ""


def rows(fit, detail=""):
    """A line with the numbers of rows and features; `detail` of the rows."""
    d = fit.design
    left_out = f" ({d.n_dropped} dropped for missing values)" if d.n_dropped else ""
    constant = f" ({len(d.constant)} constant)" if d.constant else ""
    answers = f" ({len(d.left_out)} of augment() left out)" if d.left_out else ""
    return f"Rows: {fit.n}{left_out}{detail}, features: {len(d.names)}{constant}{answers}"


def listed(names):
    """Names joined as in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def choice(fit, detail=""):
    """How cross-validation chose, as a list of one note, empty where it chose nothing."""
    if fit.selection is None or not fit.chosen:
        return []
    points = fit.selection
    rule = " (the centre of those that cannot be told apart)" if "weight" in points else ""
    return [
        f"{listed(fit.chosen)} by cross-validation over {len(points)} settings{detail}{rule}; "
        f"least mean held-out loss {significant(points['mean'].min())}.{_by_draw(fit)}"
    ]


def _by_draw(fit):
    """What each draw of the folds would have chosen alone, which shows how seeds differ."""
    choices = [
        listed(f"{name} {significant(v)}" for name, v in zip(fit.chosen, values, strict=True))
        for values in zip(*fit.chosen.values(), strict=True)
    ]
    return f" Each draw of the folds alone would choose {'; '.join(choices)}." if choices else ""


def without_effect(design):
    """The constant features and the columns that a dot left out, as a list of notes."""
    notes = []
    if design.constant:
        notes.append(f"Constant features without effect: {', '.join(design.constant)}.")
    if design.left_out:
        left_out = ", ".join(design.left_out)
        notes.append(f"Left out of '.', as answers that augment() has added: {left_out}.")
    return notes


def brief(names, room):
    """Names in at most `room` characters each, different where the names are."""
    names = list(map(str, names))
    out = [name if len(name) <= room else f"{name[: room - 3]}..." for name in names]
    for text in {t for t in out if out.count(t) > 1}:
        alike = [k for k, t in enumerate(out) if t == text]
        # What they begin with says nothing: from where they differ on.
        columns = enumerate(zip_longest(*(names[k] for k in alike)))
        apart = next((i for i, letters in columns if len(set(letters)) > 1), room)
        rest = min(room // 2, max(len(names[k]) - apart for k in alike))
        for k in alike:
            out[k] = f"{names[k][: room - 3 - rest]}...{names[k][apart : apart + rest]}"
    for text in {t for t in out if out.count(t) > 1}:
        for j, k in enumerate([k for k, t in enumerate(out) if t == text][1:], start=2):
            out[k] = f"{text[: room - 3 - len(str(j))]} ({j})"
    return out
