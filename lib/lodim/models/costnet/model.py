"""The public function costnet() and the model's declaration."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from lodim.design.terms import directions
from lodim.errors import warn_not_converged
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.fitting.registry import FITERAU
from lodim.models.costnet.estimate import fit_stages
from lodim.models.costnet.fit import CostnetFit
from lodim.models.costnet.frontier_models import Purchases, rounded
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.problem import batch_beyond_null
from lodim.models.costnet.penalty.solvers import lambda_max
from lodim.models.costnet.settings import OF_FRONTIER, OF_LAMBDAS, Settings, needs
from lodim.prices.build import make_network
from lodim.typing import (
    Data,
    DType,
    Family,
    HasColumns,
    Missing,
    NumberFamily,
    Offset,
    RowValues,
    Values,
)

SEARCH = "a search of models, which neither lambda_ nor a path over lambda_ has"
Rule: TypeAlias = Literal["group", "lasso", "greedy"]


def _largest_lambda(batch, family, s):
    """Return the smallest lambda_ at which all penalized coefficients are zero; s : Settings."""
    groups = Groups.from_network(s.network, s.dependents, batch.X.shape[1], s.monotone)
    rest, _ = batch_beyond_null(batch, family)
    # Slightly above, since rounding at the value itself gives coefficients of 1e-17.
    return (1.0 + 1e-12) * lambda_max(rest, family, groups, s.l1_ratio, s.threads)


class Costnet(Model):
    """The model costnet: its settings, and the steps from data to a fit."""

    name = "costnet"
    reference = FITERAU
    families = (*Model.families, "poisson", "gamma", "tweedie", "quantile", "huber")
    settings = Settings
    penalties: ClassVar = {"lambda_": Penalty(_largest_lambda, ratio=1e-4, needed=False)}
    requirements = (
        *((name, SEARCH, lambda p: p.settings.lambda_ is None) for name in OF_FRONTIER),
        *((name, "lambdas=None", lambda p: p.settings.lambdas is None) for name in OF_LAMBDAS),
    )
    shared_setting = "budget"
    streams = True
    on_workers = True
    options = (
        Option("--costs", "costs", str, "CSV file of two columns: name and price", "CSV", True),
        Option("--depends", "depends_on", str, "CSV file of columns parent and child", "CSV", True),
        Option(
            "--budget", "budget", float, "largest price of a model; default: by cross-validation"
        ),
        Option("--lambda", "lambda_", float, "fit only the penalized model with this lambda"),
    )
    plots = ("cost", "graph")
    fit_stages = staticmethod(fit_stages)
    needs = staticmethod(needs)

    def validate(self, problem):
        """Return the problem with its price graph, and with `monotone` as signs (p,)."""
        problem = super().validate(problem)
        s = problem.settings
        plain = {} if callable(s.costs) or s.costs is None else {"costs": dict(s.costs)}
        for name in ("depends_on", "alternatives"):
            if problem.arguments[name] is not None:
                plain[name] = {key: list(values) for key, values in getattr(s, name)}
        signs = s.monotone
        if isinstance(signs, dict):
            signs = directions(signs, problem.design, problem.family)
        network = make_network(problem.design, s, problem.batch.columns)
        settings = replace(s, network=network, monotone=signs)
        return replace(problem, settings=settings, arguments=problem.arguments | plain)

    def cv_grid(self, problem, n):
        """Return the values for cv() to compare, and the fit to all rows, (Estimates, log).

        The values are {"budget": prices}. If lambda_ is given, return {"lambda_": [it]} and None.
        problem : Problem (data and settings of a call); n : ignored"""
        if problem.settings.lambda_ is not None:
            return {"lambda_": [problem.settings.lambda_]}, None
        found = next(fit_stages(problem.batch, problem.family, problem.settings))[:2]
        prices = found[0].frontier.cost
        M, most = len(prices), min(len(prices), 60)
        at = {round(k * (M - 1) / max(1, most - 1)) for k in range(most)}
        return {"budget": [rounded(prices[k]) for k in sorted(at)]}, found

    def selects(self, settings):
        return True

    def assemble(self, problem, estimates, log, selection, for_path):
        # A budget chosen after the search did not limit the search.
        limited = problem.settings.budget is not None
        if not limited and problem.settings.lambda_ is None:
            problem, selection = _choose(problem, estimates.frontier, selection)
        batch, settings = problem.batch, problem.settings
        converged = estimates.path.converged
        if not converged.all():
            cure = "raise control={'max_iter': ...} or the smallest penalty"
            if settings.solver == "cvxpy":  # which stops at its own precision
                cure = "give control={'tol': 1e-5}, or solver='auto', which is more precise"
            warn_not_converged(
                f"costnet did not converge at {np.count_nonzero(~converged)} of {converged.size} "
                f"penalties: {cure}"
            )
        position, frontier = (False, 0), estimates.frontier  # of the only penalized model
        if frontier is not None:
            if limited:  # cross-validation may have searched beyond its chosen budget
                estimates = replace(estimates, frontier=frontier.within(settings.budget))
            position = True, frontier.index_within(settings.budget)
        paid = Purchases.from_path(estimates.path, settings.network)
        call, function = problem.call, getattr(settings.costs, "__name__", "")
        if function.isidentifier():
            call = call.replace("costs=...", f"costs={function}", 1)
        return CostnetFit(
            **problem.common(selection) | {"call": call},
            estimates=estimates,
            paid=paid,
            position=position,
            limit=settings.budget if limited else np.inf,
            total=_total_price(settings.network),
            n=batch.n_positive,
            lightest=float(batch.weight[batch.weight > 0.0].min()),
            null_deviance=problem.null_deviance(),
        )


MODEL = Costnet()


def _choose(problem, frontier, selection):
    """Choose the budget by held-out loss; return the new Problem, and a table of losses.

    problem : Problem (data and settings of a call)
    frontier : CostFrontier, the best model at each price
    selection : table of losses to return, or None to make it"""
    settings, draws = problem.settings, frontier.held_out.shape[1]
    priced = settings.costs is not None
    of_draws = [frontier.best(priced, draw) for draw in range(draws)] if draws > 1 else []
    mean, chosen = frontier.held_out.mean(axis=1), dict.fromkeys(problem.chosen, ())
    if selection is None:
        columns = {"budget": [*map(rounded, frontier.cost)], "mean": mean, "se": frontier.error}
        selection = pd.DataFrame(columns)
        chosen = {"budget": tuple(rounded(frontier.cost[k]) for k in of_draws)}
    budget = rounded(frontier.cost[frontier.best(priced)])
    settings = replace(settings, budget=budget)
    return replace(problem, settings=settings, chosen=chosen), selection


def _total_price(network):
    """Return the sum of a Network's prices; of alternatives, only the most expensive counts."""
    on = np.ones(len(network), bool)
    for series in np.unique(network.series[network.series >= 0]):
        serving = np.flatnonzero(network.series == series)
        base = network.base[serving]
        rivals = [network.needs[:, serving[base != one]].any(axis=1) for one in np.unique(base)]
        on = max((on & ~rival for rival in rivals), key=network.price)
    return rounded(network.price(on))


@fitted_by(MODEL)
def costnet(
    formula: str,
    data: Data,
    *,
    costs: Mapping[str, float] | pd.Series | HasColumns | Callable[..., Any] | None = None,
    depends_on: Any = None,
    alternatives: Mapping[str, Sequence[str]] | None = None,
    budget: float | None = None,
    family: Family | NumberFamily | None = None,
    power: float | None = None,
    quantile: float | None = None,
    monotone: dict[str, Literal["increasing", "decreasing"]] | None = None,
    lambda_: float | None = None,
    lambdas: float | Values | None = None,
    n_lambda: int = 100,
    lambda_min_ratio: float | None = None,
    l1_ratio: float = 1.0,
    relax: float | None = None,
    rules: Rule | Sequence[Rule] = ("group", "lasso", "greedy"),
    dependents: Literal["all", "direct"] = "all",
    solver: Literal["auto", "cvxpy"] = "auto",
    weights: RowValues | None = None,
    offset: Offset | None = None,
    missing: Missing = "indicator",
    groups: RowValues | None = None,
    standardize: bool = True,
    dtype: DType = "float64",
    seed: int = 0,
    threads: int | None = None,
    sample: int | None = None,
    client: Any = None,
    progress: bool | None = None,
    control: dict[str, Any] | None = None,
) -> CostnetFit:
    """Select features by cost over a dependency graph: the best linear model at every price.

    The cost of a model is the sum of the prices of its features, and of everything that they need
    (all ancestors in the graph of `depends_on`), each paid once. The fit is a frontier: at each
    cost, the model of lowest held-out loss that several search rules find.

    The main rule is a path over lambda (Eq. 5.1 of the thesis): for each price, it penalizes the
    group of all columns that need it. Without dependencies and with equal costs it is the lasso.
    The page "How costnet works" has the equation.

    Parameters
    ----------
    formula : str
        Such as "y ~ . + bs(age, df=4) + heart_rate:ward". Categories and splines are bought as a
        whole. Terms such as `I(x**2)` and `a:b` need their columns and cost nothing more, unless
        `costs` names them. Ordered categories are coded by thresholds; C(x) ignores the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    costs : dict, Series, frame of two columns, or function, optional
        Price of every column of the formula (0: free), of other purchases (a blood draw), and of
        terms that cost something to compute; without `costs` all columns cost 1. A function returns
        the joint price of a frozenset of names: 0 for the empty set, never lower with more names.
    depends_on : dict, Series, edge table or networkx.DiGraph, optional
        What each column needs: {"hr_slope": ["heart_rate"], "glucose": ["blood draw"]}, a Series
        of such lists, a table with columns parent and child (or from and to), or a graph with
        edges parent -> child.
    alternatives : dict, optional
        Interchangeable sources: with {"bp": ["bp_invasive", "bp_cuff"]}, whatever depends on "bp"
        needs one of the two: the one that is best for its price.
    budget : float, optional
        Largest cost of a model; inf is no limit. By default all models are searched, and
        `predict` uses the cheapest model within one standard error of the lowest held-out loss in
        cross-validation, or without `costs` the model with the lowest loss.
    family : str, optional
        "gaussian", "binomial" or "multinomial", by default depending on the response. With a log
        link: "poisson" for counts (offset: log exposure), "gamma" for positive amounts, "tweedie"
        with zeros. "quantile": a quantile of a number. "huber": a number with outliers.
    power, quantile : float, optional
        Power (1 to 2) of the mean in the variance of "tweedie"; quantile to predict, such as 0.9.
    monotone : dict, optional
        Columns with a monotone effect, such as {"age": "increasing", "income": "decreasing"}:
        numbers or ordered categories, each a term of its own and in no other; at most two classes.
    lambda_ : float, optional
        Fit only the group-penalized model of this lambda, without refit and frontier.
    lambdas : array, optional
        Penalties; by default `n_lambda` values from lambda_max to lambda_min_ratio * lambda_max.
    n_lambda : int, default=100
        Number of penalties.
    lambda_min_ratio : float, optional
        By default 1e-4, or 1e-2 with more features than rows.
    l1_ratio : float in (0, 1], default=1
        Share of the group penalty; the rest is ridge.
    relax : float in [0, 1], optional
        Position between penalized (0) and refitted (1) coefficients. By default 0, 0.5 or 1 by
        cross-validation, or 1 with another criterion. Models of "greedy" are always refitted.
    rules : str or sequence, default=("group", "lasso", "greedy")
        Search rules, whose models are compared at equal price: "group", the path above; "lasso",
        which charges each feature its full price; "greedy", forward selection with exchanges.
    dependents : {"all", "direct"}, default="all"
        Whether the group of a price has all columns that need it, or, as in the thesis, only
        those that need it directly.
    solver : {"auto", "cvxpy"}, default="auto"
        "cvxpy" solves the path in CVXPY, as a reference with the same solution.
    weights : column name, array (n,) or "balanced", optional
        Row weights; a row of weight 2 counts as two rows, so divide sampling weights by their mean.
        Weights whose sum is below the number of rows are scaled to it. "balanced" gives all K
        classes equal total weight.
    offset : column name or array (n,), optional
        Known part of the score (an array (n, K) for K classes).
    missing : {"indicator", "drop"}, default="indicator"
        "indicator": a missing number becomes the training mean, with an indicator column such as
        `age[missing]` (included in the price); a missing category is a level. "drop": the row is
        dropped, and predicted as NaN. Rows without response or weight are always dropped.
    groups : column name or array (n,), optional
        Rows with equal values are held out together in cross-validation.
    standardize : bool, default=True
        Scale features to unit standard deviation; they are always centred. If False, coefficients
        per standard deviation, such as `std_estimate`, are per unit of the feature.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored features.
    seed : int, default=0
        Seed of the folds.
    threads, sample : int, optional
        Number of threads, and of randomly drawn rows to fit; all by default.
    client : dask.distributed.Client, optional
        Dask cluster that holds the features of files or a Dask frame.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings `criterion`, `tol`, `max_iter`, `scratch`: see the page "How costnet works".

    Returns
    -------
    CostnetFit

    Raises
    ------
    FormulaError, DataError, ArgumentError

    See Also
    --------
    CostnetFit, cv

    Notes
    -----
    The frontier is selected by its fit to the response: its deviances are optimistic (the held-out
    ones slightly), and p-values would not be valid. `cv` repeats all steps in each fold.

    A saved fit holds no training row, but coefficients, prices, and means of features.

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning,
    ch. 5 and 6. PhD thesis, Carnegie Mellon University.

    Examples
    --------
    >>> import lodim as ld
    >>> df = ld.data("autompg")
    >>> prices = {"weight": 1, "horsepower": 5, "model_year": 2}
    >>> fit = ld.costnet("mpg ~ weight + horsepower + model_year", df, costs=prices, budget=4)
    >>> fit.cost, fit.inputs
    (3.0, ['weight', 'model_year'])
    """
