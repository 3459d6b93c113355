"""What a page says and shows of a costnet fit."""

import pandas as pd

from lodim.page.picture import MOST_NAMES, Picture
from lodim.report.numbers import significant
from lodim.text import counted


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
    prices = prices.assign(new=prices["new"].map(str), chosen=prices["chosen"].map(str))
    y = "dev_ratio_held_out" if "dev_ratio_held_out" in prices else "dev_ratio"
    tidy = fit.tidy()
    terms = tidy[tidy["chosen"].astype(bool) & (tidy["std_estimate"].fillna(0) != 0)]
    found = [
        Picture("Price list", "points", prices, "cost", y, color="chosen",
                hover=("step", "df", "new", "dropped", "dev_ratio"),
                note="Share of the deviance that is explained, for what it costs to measure."),
    ]  # fmt: skip
    color = "level" if "level" in terms else ""
    if len(terms):
        found.append(
            Picture("Coefficients", "bars", pd.DataFrame(terms).head(MOST_NAMES), "std_estimate",
                    "term", color=color, hover=("estimate",), note="Per standard deviation.")
        )  # fmt: skip
    return found
