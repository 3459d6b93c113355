"""What a page says and shows of a costnet fit."""

import pandas as pd

from lodim.page.picture import MOST_NAMES, Picture
from lodim.report.numbers import significant
from lodim.text import counted


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
    """The list of models by price, where there is one, and the coefficients of the model."""
    found = [] if fit.estimates.frontier is None else [_price_list(fit)]
    tidy = fit.tidy()
    terms = tidy[tidy["chosen"].astype(bool) & (tidy["std_estimate"].fillna(0) != 0)]
    color = "level" if "level" in terms else ""
    if len(terms):
        found.append(
            Picture("Coefficients", "bars", pd.DataFrame(terms).head(MOST_NAMES), "std_estimate",
                    "term", color=color, hover=("estimate",), note="Per standard deviation.")
        )  # fmt: skip
    return found


def _price_list(fit):
    """The picture of the models by price."""
    prices = fit.prices().reset_index()
    prices = prices.assign(new=prices["new"].map(str), chosen=prices["chosen"].map(str))
    y = "dev_ratio_held_out" if "dev_ratio_held_out" in prices else "dev_ratio"
    note = "Share of the deviance that is explained, for what it costs to measure."
    hover = ("step", "df", "new", "dropped", "dev_ratio")
    return Picture(
        "Price list", "points", prices, "cost", y, color="chosen", hover=hover, note=note
    )
