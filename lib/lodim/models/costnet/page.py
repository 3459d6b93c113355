"""Report page of a costnet fit."""

import numpy as np
import pandas as pd

from lodim.design.frame import in_pandas
from lodim.page.picture import MOST_NAMES, Picture
from lodim.report.numbers import significant
from lodim.text import counted

TRAINING, HELD_OUT = "% deviance explained", "% deviance explained, held out"
# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "level": "class",
    "estimate": "coefficient",
    "std_estimate": "coefficient per SD",
}


def words(fit):
    """The model in a few sentences."""
    kind = "linear" if fit.levels is None else "logistic"
    model = (
        f"A {kind} model of {fit.design.response.name} with {counted(fit.df, 'feature')}, whose "
        f"measurement costs {significant(fit.cost)} in all. It explains "
        f"{100 * fit.dev_ratio:.1f} % of the deviance of the training rows."
    )
    if fit.estimates.frontier is None:
        return [model, "It was fitted with one penalty, so there is no list of models by price."]
    return [
        model,
        "It is one of a list: for each price the best model that was found. The list below shows "
        "what a larger or a smaller budget would buy.",
    ]


def pictures(fit, data):
    """The list of models by price, if there is one, and the coefficients of the model."""
    found = [] if fit.estimates.frontier is None else [_frontier(fit)]
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["chosen"].astype(bool) & (tidy["std_estimate"].fillna(0) != 0)]
    terms = pd.DataFrame(terms).rename(columns=LABELS)
    color = "class" if "class" in terms else ""
    if len(terms):
        note = "Per standard deviation (SD) of the feature."
        note += f" The first {MOST_NAMES} of {len(terms)}." * (len(terms) > MOST_NAMES)
        x, style = "coefficient per SD", {"color": color, "hover": ("coefficient",), "note": note}
        found.append(Picture("Coefficients", "bars", terms.head(MOST_NAMES), x, "feature", **style))
    return found


def _frontier(fit):
    """The picture of the models by price."""
    prices = fit.prices().reset_index()
    frame = pd.DataFrame(
        {
            "cost": prices["cost"],
            TRAINING: 100.0 * prices["dev_ratio"],
            HELD_OUT: 100.0 * prices["dev_ratio_held_out"],
            "model": np.where(prices["chosen"], "this model", "other models"),
            "features": prices["df"],
            "bought": prices["new"].map(str),
            "dropped": prices["dropped"].map(str),
        }
    )
    y = HELD_OUT if frame[HELD_OUT].notna().any() else TRAINING
    note = "Share of the deviance that is explained, for what it costs to measure."
    hover = ("features", "bought", "dropped", TRAINING)
    return Picture("Frontier", "points", frame, "cost", y, color="model", hover=hover, note=note)
