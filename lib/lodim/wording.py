"""Words that the reports of all models share."""


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


def constant(design):
    """How many features are constant."""
    return f" ({len(design.constant)} constant)" if design.constant else ""


def how(fit, name):
    """Whether cross-validation has chosen a setting."""
    return " (by CV)" if name in fit.chosen else ""
