"""What a page says and shows of a costnet fit."""

import numpy as np
import pandas as pd

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
    return [
        f"A {kind} model of {fit.design.response.name} with {counted(fit.df, 'feature')}, whose "
        f"measurement costs {significant(fit.cost)} in all. It explains "
        f"{100 * fit.dev_ratio:.1f} % of the deviance of the training rows.",
        "It is one of a list: for each price the best model that was found. The list below shows "
        "what a larger or a smaller budget would buy.",
    ]


def pictures(fit, data):
    """The list of models by price, and the coefficients of the chosen one."""
    prices = fit.prices().reset_index()
    prices = pd.DataFrame(
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
    y = HELD_OUT if prices[HELD_OUT].notna().any() else TRAINING
    tidy = fit.tidy()
    terms = tidy[tidy["chosen"].astype(bool) & (tidy["std_estimate"].fillna(0) != 0)]
    found = [
        Picture("Price list", "points", prices, "cost", y, color="model",
                hover=("features", "bought", "dropped", TRAINING),
                note="Share of the deviance that is explained, for what it costs to measure."),
    ]  # fmt: skip
    terms = pd.DataFrame(terms).rename(columns=LABELS)
    color = "class" if "class" in terms else ""
    if len(terms):
        found.append(
            Picture("Coefficients", "bars", terms.head(MOST_NAMES), "coefficient per SD",
                    "feature", color=color, hover=("coefficient",),
                    note="Per standard deviation (SD) of the feature."
                    + (f" The first {MOST_NAMES} of {len(terms)}." * (len(terms) > MOST_NAMES)))
        )  # fmt: skip
    return found
