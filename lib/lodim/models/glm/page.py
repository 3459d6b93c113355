"""What a page says and shows of a glm fit."""

from lodim.page.picture import MOST_NAMES, Picture


def words(fit):
    """The model in a few sentences."""
    return [
        f"A generalized linear model of {fit.design.response.name} ({fit.family.name}, "
        f"{fit.family.link} link) with {fit.df} coefficients, fitted without a penalty. It "
        f"explains {100 * fit.dev_ratio:.1f} % of the deviance.",
        "Intervals and tests hold if this model was chosen before the data were seen, and if its "
        "assumptions hold.",
    ]


def pictures(fit, data):
    """Coefficients with their confidence intervals."""
    tidy = fit.tidy()
    terms = tidy[tidy["term"] != "(Intercept)"].head(MOST_NAMES)
    if "level" in terms:
        terms = terms.assign(term=terms["term"] + " (" + terms["level"].astype(str) + ")")
    if terms.empty:
        return []
    return [
        Picture("Coefficients", "intervals", terms, "estimate", "term", low="conf_low",
                high="conf_high", hover=("std_error", "p_value"), note="With 95 % intervals."),
    ]  # fmt: skip
