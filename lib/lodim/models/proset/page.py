"""What a page says and shows of a proset fit."""

from lodim.design.frame import in_pandas
from lodim.page.picture import MOST_NAMES, Picture, not_drawn
from lodim.report.numbers import significant
from lodim.text import counted


def words(fit):
    """The model in a few sentences."""
    glance = in_pandas(fit.glance)().iloc[0]
    name = fit.design.response.name
    return [
        "The answer for a row is a weighted mean over "
        f"{counted(glance['n_prototypes'], 'prototype')}, which are training rows, and the overall "
        f"distribution of {name}: the nearer a prototype is in the "
        f"{counted(glance['df'], 'feature')} with a weight, the more it says (prototype sets).",
        f"The penalty lambda_v is {significant(fit.settings.lambda_v)}; the fit explains "
        f"{100 * fit.dev_ratio:.1f} % of the deviance of the training rows.",
    ]


def pictures(fit, data):
    """Weights of features, and the prototypes in the two that weigh most."""
    tidy = in_pandas(fit.tidy)()
    active = tidy[tidy["std_estimate"] > 0].sort_values(
        "std_estimate", ascending=False, kind="stable"
    )
    weights = active.rename(
        columns={"term": "feature", "estimate": "weight", "std_estimate": "weight per SD"}
    )
    note = "Per standard deviation (SD): what makes rows differ." + not_drawn(weights, MOST_NAMES)
    largest, style = weights.head(MOST_NAMES), {"note": note, "hover": ("weight",)}
    found = [Picture("Feature weights", "bars", largest, "weight per SD", "feature", **style)]
    if len(active) < 2:
        return found if len(active) else []
    prototypes = fit.export()
    first, second = active["term"].iloc[:2]
    if {first, second} <= {*prototypes.columns}:
        note = "The training rows that answer, in the two features that weigh most."
        style = {"color": "target", "hover": ("row", "batch", "members", "prototype_weight")}
        found.append(Picture("Prototypes", "points", prototypes, first, second, note, **style))
    return found
