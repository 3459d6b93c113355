"""The model that a fit of costnet is at: that of a budget, or of a lambda_ of its path."""

from copy import copy
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.models.costnet import price_list
from lodim.models.costnet.price_list import ListedModel
from lodim.models.costnet.search.candidates import affordable
from lodim.typing import Data, Offset, Prediction

if TYPE_CHECKING:
    from lodim.models.costnet.fit import CostnetFit


def at(self: Any, budget: float | None = None, lambda_: float | None = None) -> "CostnetFit":
    """The fit with another of its models: all that it says and predicts is of that one.

    Parameters
    ----------
    budget : float, optional
        The best model of the price list that costs at most this.
    lambda_ : float, optional
        The penalized model of this lambda (the nearest fitted in log), not refitted.

    Returns
    -------
    CostnetFit

    Raises
    ------
    ArgumentError
        None or both are given, the fit has no price list, the budget is above what was
        searched, or the model of lambda_ costs more than that.

    See Also
    --------
    prices, bought

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> prices = {"weight": 1, "horsepower": 5, "model_year": 1}
    >>> fit = ld.costnet("mpg ~ weight + horsepower + model_year", cars, costs=prices)
    >>> fit.at(budget=1).coef().round(4)
    term
    (Intercept)            46.3174
    weight                 -0.0077
    horsepower              0.0000
    model_year              0.0000
    horsepower[missing]     0.0000
    Name: estimate, dtype: float64
    """
    if (budget is None) == (lambda_ is None):
        raise ArgumentError("give either a budget or lambda_")
    other = copy(self)
    for name in ("step", "_restricted"):
        other.__dict__.pop(name, None)
    if budget is not None:
        other.position, name, value = _of_budget(self, budget), "budget", float(budget)
    else:
        other.position, name = _of_lambda(self, lambda_), "lambda_"
        value = other.step.lambda_
    either = {"budget": None, "lambda_": None} | {name: value}
    other.settings = replace(self.settings, **either)
    other.arguments = self.arguments | either
    other.chosen = {}
    other.call = f"{self.call}.at({name}={value:g})"
    return other


def staged(
    self: Any,
    data: Data,
    type: Prediction | Literal["cost"] = "response",
    *,
    offset: Offset | None = None,
) -> dict[float, pd.Series | pd.DataFrame]:
    """Predictions of all models of the price list.

    Parameters
    ----------
    data, type, offset
        As in `predict`.

    Returns
    -------
    dict
        Cost to prediction, the cheapest model first.

    Raises
    ------
    ArgumentError
        The fit is of one lambda_ and has no price list.

    See Also
    --------
    predict, at

    Examples
    --------
    >>> import lodim as ld
    >>> cars = ld.data("autompg")
    >>> prices = {"weight": 1, "horsepower": 5, "model_year": 1}
    >>> fit = ld.costnet("mpg ~ weight + horsepower + model_year", cars, costs=prices)
    >>> sorted(fit.staged(cars[:2]))
    [0.0, 1.0, 2.0]
    """
    need_list(self)
    costs = [model.cost for model in price_list.listed_models(self)]
    return {cost: self._at(cost, None).predict(data, type, offset=offset) for cost in costs}


def at_either(self, budget, lambda_):
    """The fit at a budget or lambda_; itself if neither is given."""
    return self if budget is None and lambda_ is None else self.at(budget, lambda_)


def need_list(self):
    """Raise where there is no price list."""
    if self.estimates.frontier is None:
        raise ArgumentError("this fit is of one lambda_ and has no price list")


def _of_budget(self, budget):
    """The position of the best model that costs at most a budget."""
    if not _is_number(budget) or not budget >= 0:
        raise ArgumentError(f"a budget is a number, 0 or more, not {budget!r}")
    need_list(self)
    if not affordable(budget, self.limit):
        raise ArgumentError(
            f"models were searched up to a price of {self.limit:g}: for {budget:g}, fit anew "
            "with this budget, or without one"
        )
    return True, self.estimates.frontier.index_within(float(budget))


def _of_lambda(self, lambda_):
    """The position of the penalized model nearest to a lambda_."""
    if not _is_number(lambda_) or not 0 <= lambda_ < np.inf:
        raise ArgumentError(f"lambda_ must be a number, 0 or more, not {lambda_!r}")
    path = self.estimates.path
    logs = np.log(np.maximum(path.lambdas, 1e-300))
    k = int(np.argmin(np.abs(logs - np.log(max(float(lambda_), 1e-300)))))
    step = ListedModel.from_path(path, k, self.paid)
    if not affordable(step.cost, self.limit):
        raise ArgumentError(
            f"the penalized model of lambda {step.lambda_:.4g} costs {step.cost:g}, more than "
            f"the budget of {self.limit:g}: give a larger lambda_, or fit without a budget"
        )
    return False, k


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool)
