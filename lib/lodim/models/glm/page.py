"""What a page says and shows of a glm fit."""

from lodim.design.frame import in_pandas
from lodim.page.picture import MOST_NAMES, Picture

# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "estimate": "coefficient",
    "conf_low": "lower end",
    "conf_high": "upper end",
    "std_error": "standard error",
    "p_value": "p-value",
}


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
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["term"] != "(Intercept)"]
    note = "With 95 % intervals."
    if len(terms) > MOST_NAMES:
        note += f" The first {MOST_NAMES} of {len(terms)}."
    terms = terms.head(MOST_NAMES)
    if "level" in terms:
        terms = terms.assign(term=terms["term"] + " (" + terms["level"].astype(str) + ")")
    if terms.empty:
        return []
    style = {"low": "lower end", "high": "upper end", "hover": ("standard error", "p-value")}
    frame = terms.rename(columns=LABELS)
    return [Picture("Coefficients", "intervals", frame, "coefficient", "feature", note, **style)]
