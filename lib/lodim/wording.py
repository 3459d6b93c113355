"""Words that the reports of all models share."""

from lodim.digits import significant


def levels(fit, numeric=""):
    """What is modelled of a response with levels; `numeric` of one without."""
    if fit.levels is None:
        return numeric
    if len(fit.levels) == 2:
        return f", probability of {fit.design.response.name} = {fit.levels[1]}"
    return f", {len(fit.levels)} classes"


def modelled(fit):
    """The response, and of two classes the one whose probability is modelled."""
    name = fit.design.response.name
    return name if fit.levels is None or len(fit.levels) > 2 else f"P({name} = {fit.levels[1]})"


def how(fit, name):
    """Whether cross-validation has chosen a setting."""
    return " (by CV)" if name in fit.chosen else ""


def rows(fit, detail=""):
    """How many rows and features there are; `detail` of the rows."""
    d = fit.design
    left_out = f" ({d.n_dropped} dropped for missing values)" if d.n_dropped else ""
    constant = f" ({len(d.constant)} constant)" if d.constant else ""
    return f"Rows: {fit.n}{left_out}{detail}, features: {len(d.names)}{constant}"


def listed(names):
    """Names as a sentence has them: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def choice(fit, detail=""):
    """How cross-validation chose, as a list of one note; of none where it chose nothing."""
    if fit.selection is None or not fit.chosen:
        return []
    return [
        f"{listed(fit.chosen)} by cross-validation over {len(fit.selection)} settings{detail}; "
        f"least mean held-out loss {significant(fit.selection['mean'].min())}."
    ]


def without_effect(design):
    """The constant features, as a list of one note; of none where all vary."""
    if not design.constant:
        return []
    return [f"Constant features without effect: {', '.join(design.constant)}."]
