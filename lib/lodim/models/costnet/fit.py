"""CostnetFit: the fit that costnet() returns."""

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import pandas as pd

from lodim import forms
from lodim.design.frame import in_pandas
from lodim.errors import ArgumentError
from lodim.export.expression import weighted
from lodim.fitting import saved
from lodim.fitting.fit import Fit
from lodim.models.costnet import frontier_models, report
from lodim.models.costnet.frontier_models import Estimates, ListedModel, Purchases
from lodim.models.costnet.settings import OF_FRONTIER, OF_LAMBDAS, Settings
from lodim.prices.network import Network
from lodim.typing import Data, FilePath, NewLevels, Offset, Prediction

PlotKind: TypeAlias = Literal["cost", "path", "graph", "calibration"]
# A function of prices is not saved; the network has its prices.
PRICES = forms.Form(forms.modest().read, lambda costs: None if callable(costs) else costs)


class CostnetFit(Fit):
    """Frontier of the best models at each price, with the model that `predict` uses.

    Attributes
    ----------
    estimates : Estimates
        For standardized features: `path`, models with the group penalty; `frontier`, the best model
        at each price that any search rule finds.
    position : tuple of (bool, int)
        Whether the model in use is on the frontier, and its index there or on the path; see `at`.
    paid : Purchases
        Items that each model of the path needs, and their total price.
    limit, total : float
        Largest price searched, or inf; price of everything, with the most expensive alternatives.
    lightest : float
        Smallest positive row weight, where all weights sum to 1.
    n, null_deviance : number of rows with positive weight; mean deviance of the null model
    selection : DataFrame or None
        The cross-validation that chose the budget.

    See Also
    --------
    costnet, cv, path

    Examples
    --------
    >>> import lodim as ld
    >>> prices = {"weight": 1, "horsepower": 5, "model_year": 1}
    >>> fit = ld.costnet("mpg ~ weight + horsepower + model_year", ld.data("autompg"), costs=prices)
    >>> fit.position, fit.total
    ((True, 2), 7.0)
    """

    name = "costnet"
    _estimate_name = "coefficient"
    types = ("response", "link", "class", "prob", "cost")
    _without_offset = ("cost",)

    settings = saved.settings(
        Settings,
        costs=PRICES,
        network=forms.part(Network),
        monotone=forms.optional(forms.several("p", forms.choice(-1, 0, 1))),
    )
    estimates: Estimates = forms.part(Estimates)
    paid: Purchases = forms.part(Purchases)
    # Whether the model is on the frontier, and its index there or on the path
    position: tuple[bool, int] = forms.several(2, forms.plain())
    limit: float = forms.real(least=0, most=np.inf)
    total: float = forms.real(least=0)
    lightest: float = forms.real(least=0, most=1)
    n: int = forms.whole(least=1)
    null_deviance: float = forms.squares()

    def _check_fields(self):
        super()._check_fields()
        network, several = self.settings.network, len(self.settings.alternatives or ())
        if len(network) and network.series.max() >= several:
            raise ValueError(f"the network has more than {several} series of alternatives")
        listed, k = self.position
        forms.flags().read(listed, "position[0]", {})
        models = self.estimates.frontier.cost if listed else self.estimates.path.lambdas
        forms.whole(most=len(models) - 1).read(k, "position[1]", {})

    @cached_property
    def step(self) -> ListedModel:
        """Model (ListedModel) that predict() uses, from the frontier or from the penalized path."""
        listed, k = self.position
        if listed:
            return ListedModel.from_frontier(self.estimates.frontier, k)
        return ListedModel.from_path(self.estimates.path, k, self.paid)

    # The contract of Fit -----------------------------------------------------------------------

    @property
    def _reader(self):
        return self._restricted[0]

    @property
    def _biased_by(self):
        return "the penalty that it keeps a part of" if self.step.relax < 1.0 else None

    @cached_property
    def _restricted(self):
        return self.design.restrict(self.step.used)

    @property
    def _reader_columns(self):
        return self._restricted[1]

    def _selected_features(self):
        return self.step.used

    def _score(self, batch):
        score = self.step.score(self._restricted[1], batch.X, batch.n)
        return score + batch.offset_matrix(self.family.n_scores)

    def _expressions(self, features, offset):
        coefficients = zip(self.step.intercept, self.step.coef[self._restricted[1]].T, strict=True)
        columns = [*features, offset]
        return [weighted(b, [*coef, 1.0], columns, "score") for b, coef in coefficients], ()

    def predict(
        self,
        data: Data,
        type: Prediction | Literal["cost"] = "response",
        *,
        offset: Offset | None = None,
        new_levels: NewLevels = "error",
        threshold: float | None = None,
        output: FilePath | None = None,
    ) -> pd.Series | pd.DataFrame:
        """Return one prediction per row of `data`, in its order and with its index.

        Parameters
        ----------
        data : frame
            New data, with the columns of the terms that the model uses: see `inputs`.
        type : str
            "cost": price to be paid for the row; other types as in `Fit.predict`.
        offset, new_levels, threshold
            Known part of the linear predictor, array or column name; "error" or "missing" for
            levels not in training; probability from which the second of two classes is predicted.

        Returns
        -------
        Series or DataFrame
            NaN (None for classes) in rows where an input is missing.

        See Also
        --------
        at, evaluate, staged

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.costnet("mpg ~ weight + model_year", cars)
        >>> fit.at(budget=1).predict(cars[:2]).round(2).tolist()
        [19.42, 17.97]
        >>> fit.predict(cars[:2], "cost").tolist()
        [2.0, 2.0]
        """
        return self._predict_rows(data, type, offset, new_levels, threshold)

    def _predict(self, batch, type):
        if type == "cost":
            return np.full(batch.n, self.step.cost), "cost"
        return super()._predict(batch, type)

    def tidy(self) -> pd.DataFrame:
        """Return one row per frontier model and term (and class), the cheapest model first.

        step, cost, rule, lambda_ and chosen are as in `prices`. estimate is in link units per unit
        of the feature, std_estimate per standard deviation (NaN for the intercept).

        See Also
        --------
        coef, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.tidy().columns.tolist()
        ['step', 'cost', 'rule', 'lambda_', 'chosen', 'term', 'estimate', 'std_estimate']
        """
        return frontier_models.tidy(self)

    def glance(self) -> pd.DataFrame:
        """Return one row: family, n, p, budget, cost, df, lambda_, rule, deviances, convergence.

        df, rule and lambda_ are as in `prices`; budget is None for a penalized model. Deviances are
        means over (weighted) rows; gap is the largest duality gap of the penalized path.

        See Also
        --------
        tidy, prices, summary

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.glance()[["n", "p", "cost", "df"]]
             n  p  cost  df
        0  398  2   2.0   2
        """
        own = {"budget": self.settings.budget}
        own |= {name: getattr(self.step, name) for name in ("cost", "df", "lambda_", "rule")}
        return self._glance(own, {"gap": float(self.estimates.path.gap.max())})

    def _of_tables(self):
        return frontier_models.terms(self)

    _summary = report.summary
    _listing = report.listing
    _in_words = report.words
    _pictures = report.pictures

    def _plots(self):
        from lodim.models.costnet.plots import KINDS

        return KINDS

    def plot(self, kind: PlotKind | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw the fit and return the Axes.

        Parameters
        ----------
        kind : str, optional
            "cost", the default: deviance explained, in training and held-out rows, by price
            "path": penalized coefficients by log lambda, the largest ones with names
            "graph": items with a price, and the price from which each is bought
            "calibration": observed share of a class by its predicted probability
            An ArgumentError if a kind or an argument is unknown, or there is nothing to draw.
        ax : matplotlib Axes, optional
            New axes by default.
        **arguments
            log=True for a log scale; top=10, number of names; most=30, number of items;
            data, offset, bins=10 and level (default: the second class of two, or all classes)

        See Also
        --------
        prices, report, lodim.CV.plot

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> ax = fit.plot("cost")
        """
        return super().plot(kind, ax, **arguments)

    # Methods of costnet only --------------------------------------------------------------------

    def at(self, budget: float | None = None, lambda_: float | None = None) -> Self:
        """Return a copy of the fit that prints and predicts with another of its models.

        Parameters
        ----------
        budget : float, optional
            Select the best model of the frontier that costs at most this.
        lambda_ : float, optional
            Select the penalized model of this lambda (the nearest on the log scale), not refitted.

        Raises
        ------
        ArgumentError
            If none or both are given, there is no frontier, or the price was not searched.

        See Also
        --------
        prices, bought

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.at(budget=1).coef().round(4)
        term
        (Intercept)    46.3174
        weight         -0.0077
        model_year      0.0000
        Name: estimate, dtype: float64
        """
        if (budget is None) == (lambda_ is None):
            raise ArgumentError("give either a budget or lambda_")
        other = copy(self)
        for name in ("step", "_restricted"):
            other.__dict__.pop(name, None)
        if budget is not None:
            other.position = True, frontier_models.index_of_budget(self, budget)
            name, value = "budget", float(budget)
        else:
            other.position = False, frontier_models.index_of_lambda(self, lambda_)
            name, value = "lambda_", other.step.lambda_
        either = {"budget": None, "lambda_": None} | {name: value}
        other.settings = replace(self.settings, **either)
        other.arguments = self.arguments | either
        other.chosen = {}
        other.call = f"{self.call}.at({name}={value:g})"
        return other

    def staged(
        self,
        data: Data,
        type: Prediction | Literal["cost"] = "response",
        *,
        offset: Offset | None = None,
    ) -> dict[float, pd.Series | pd.DataFrame]:
        """Return the predictions of all models of the frontier, as a dict from cost to prediction.

        Parameters
        ----------
        data, type, offset
            As in `predict`.

        Returns
        -------
        dict
            The cheapest model first; an ArgumentError for a fit of a single lambda_ (no frontier).

        See Also
        --------
        predict, at

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.costnet("mpg ~ weight + model_year", cars)
        >>> sorted(fit.staged(cars[:2]))
        [0.0, 1.0, 2.0]
        """
        frontier_models.check_listed(self)
        costs = [model.cost for model in frontier_models.listed_models(self)]
        return {cost: in_pandas(self.at(cost).predict)(data, type, offset=offset) for cost in costs}

    def prices(self) -> pd.DataFrame:
        """Return the frontier: one row per model; each is better than all cheaper models.

        Columns: cost; df, the number of columns with a coefficient (a category can have several;
        a column counts once for all classes); deviance; dev_ratio; dev_ratio_held_out (NaN without
        cross-validation); rule that found the model; lambda_ (NaN unless the rule is "group");
        relax, the share of the unpenalized refit in the coefficients; new and dropped, purchases
        added and removed since the row above; chosen, whether predict() uses the model.

        See Also
        --------
        bought, at, path

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.prices()[["cost", "df", "dev_ratio"]].round(3)
              cost  df  dev_ratio
        step
        1      0.0   0      0.000
        2      1.0   1      0.692
        3      2.0   2      0.808
        """
        frontier_models.check_listed(self)
        return frontier_models.prices(self)

    def bought(self) -> pd.DataFrame:
        """Return the purchases of the model, including free ones, one per row.

        price; in_model: whether the model uses it directly; needed_by: names of the columns and
        purchases that need it. If the fit has `alternatives`, such as {"bp": ["bp_arm",
        "bp_wrist"]}, serves is "bp" for the one of these that the model uses, "" for other items.

        See Also
        --------
        prices, at

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.at(budget=2).bought()
                    price  in_model needed_by
        item
        weight        1.0      True
        model_year    1.0      True
        """
        return frontier_models.bought(self)

    def path(self) -> pd.DataFrame:
        """Return one row per penalty of the path: lambda_, df, cost, dev_ratio, gap, converged.

        These models have penalized coefficients, without a refit; the frontier has better ones.

        See Also
        --------
        prices, lodim.path

        Examples
        --------
        >>> import lodim as ld
        >>> fit = ld.costnet("mpg ~ weight + model_year", ld.data("autompg"))
        >>> fit.path().shape
        (56, 6)
        """
        return frontier_models.path(self)

    @property
    def cost(self) -> float:
        """Price of the model that predict() uses."""
        return self.step.cost

    @property
    def inputs(self) -> list[str]:
        """Names of the columns that new data need for the model that predict() uses."""
        return self._reader.features

    @property
    def _deviance(self):
        return self.step.deviance

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance for every penalty."""
        return bool(self.estimates.path.converged.all())

    @property
    def separated(self) -> bool:
        """Return whether the model separates the classes, so that coefficients are not estimable.

        True if a refitted model gives each training row's own class a probability above 1/2."""
        refitted = self.levels is not None and self.step.df > 0 and self.step.relax == 1.0
        # A row with a smaller probability alone has at least this deviance.
        return bool(refitted and self.step.deviance < 2.0 * np.log(2.0) * self.lightest)

    def _call_arguments(self, changes):
        arguments = super()._call_arguments(changes)
        for other, names in (("lambda_", OF_FRONTIER), ("lambdas", OF_LAMBDAS)):
            if arguments.get(other) is not None:
                parts = arguments, arguments["control"] or {}
                arguments, control = ({k: v for k, v in d.items() if k not in names} for d in parts)
                arguments["control"] = control
        return arguments | changes

    def _complexity(self):
        return {"features": self.df, "price": self.cost}

    @property
    def _n_free(self):
        return self.df + 1

    @property
    def df(self) -> int:
        """Number of columns with a coefficient in the model that predict() uses."""
        return self.step.df
