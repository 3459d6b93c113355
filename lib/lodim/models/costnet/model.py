"""costnet(): the best model at every price, from a formula to a fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias

import pandas as pd

from lodim.fitting.citation import FITERAU
from lodim.fitting.fit_model import fitted_by
from lodim.fitting.model import Model, Option, Penalty
from lodim.models.costnet.assemble import assemble
from lodim.models.costnet.estimate import fit_stages
from lodim.models.costnet.fit import CostnetFit
from lodim.models.costnet.graph.build import make_network
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.path import lambda_max
from lodim.models.costnet.price_list import rounded
from lodim.models.costnet.settings import Settings, check_used, needs
from lodim.models.costnet.worker_rows import batch_beyond_null
from lodim.typing import Data, DType, Family, HasColumns, Missing, Offset, RowValues, Values

MOST_BUDGETS = 60  # prices tried by cross-validation
Rule: TypeAlias = Literal["group", "lasso", "greedy", "exact"]


def _largest_lambda(batch, family, s):
    """The least lambda_ at which nothing with a price is used."""
    groups = Groups.from_network(s.network, s.dependents, batch.X.shape[1])
    rest, _ = batch_beyond_null(batch, family)
    # A hair above: at the value itself rounding lets coefficients of 1e-17 in.
    return (1.0 + 1e-12) * lambda_max(rest, family, groups, s.l1_ratio, s.threads)


class Costnet(Model):
    """Cost-sensitive feature selection: the budget is chosen from the frontier."""

    name = "costnet"
    reference = FITERAU
    settings = Settings
    penalties: ClassVar = {"lambda_": Penalty(_largest_lambda, ratio=1e-4, needed=False)}
    shared_setting = "budget"
    streams = True
    on_workers = True
    options = (
        Option("--costs", "costs", str, "CSV file of two columns: name and price", "CSV", True),
        Option("--depends", "depends_on", str, "CSV file of columns parent and child", "CSV", True),
        Option("--budget", "budget", float, "what a model may cost; default: by cross-validation"),
        Option("--lambda", "lambda_", float, "fit the penalized model of this lambda alone"),
    )
    plots = ("cost", "graph")
    fit_stages = staticmethod(fit_stages)
    assemble = staticmethod(assemble)
    needs = staticmethod(needs)

    def validate(self, problem):
        """Raise if prices do not suit the design; the network of things goes into the settings."""
        return with_network(super().validate(problem))

    def cv_grid(self, problem, n):
        """Prices of the models for all rows, with these models; or the lambda_ given."""
        if problem.settings.lambda_ is not None:
            return {"lambda_": [problem.settings.lambda_]}, None
        found = next(fit_stages(problem.batch, problem.family, problem.settings))[:2]
        return {"budget": _prices(found[0].frontier)}, found

    def selects(self, settings):
        """Models are made of some of the features."""
        return True


MODEL = Costnet()


def with_network(problem):
    """The problem with the network of its design; prices and dependencies as plain dicts."""
    check_used(problem)
    s = problem.settings
    plain = {} if callable(s.costs) or s.costs is None else {"costs": dict(s.costs)}
    for name in ("depends_on", "alternatives"):
        if problem.arguments[name] is not None:
            plain[name] = {key: list(values) for key, values in getattr(s, name)}
    settings = replace(s, network=make_network(problem.design, s))
    return replace(problem, settings=settings, arguments=problem.arguments | plain)


def _prices(frontier):
    """The prices of a frontier, of many evenly chosen ones."""
    M = len(frontier)
    n = min(M, MOST_BUDGETS)
    at = {round(k * (M - 1) / max(1, n - 1)) for k in range(n)}
    return [rounded(frontier.cost[k]) for k in sorted(at)]


@fitted_by(MODEL)
def costnet(
    formula: str,
    data: Data,
    *,
    costs: Mapping[str, float] | pd.Series | HasColumns | Callable[..., Any] | None = None,
    depends_on: Any = None,
    alternatives: Mapping[str, Sequence[str]] | None = None,
    budget: float | None = None,
    family: Family | None = None,
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
    """Cost-sensitive feature selection over a dependency graph: the best model at every price.

    A linear model f(x) = offset + b0 + x'w whose features have prices. What is used is paid for
    with all that it needs, each thing once: the cost of a model is c(S) = sum of c_v over the used
    features and all their ancestors in the graph of `depends_on`. The fit is a frontier: at each
    cost the model of several rules, refitted or shrunken, that does best in held-out rows, from the
    cheapest to the best.

    The rules' common ground is a path over lambda (Eq. 5.1 of the thesis), as glmnet's:

        minimize 1/2 mean deviance + lambda (l1_ratio sum_v c_v ||w_Gv||_2
                                             + (1 - l1_ratio) / 2 ||w||_2^2)

    where G_v holds the columns of v and of all that depends on it: while c_v is not paid, all of
    them are zero. Without dependencies and with equal costs it is the lasso. Columns that are free,
    and need nothing that has a price, are not penalized: the ridge is on those of some G_v with
    c_v > 0 alone. Where all columns are free, all are penalized alike, as if each cost 1.

    Parameters
    ----------
    formula : str
        Such as "y ~ .", "outcome ~ . + bs(age, df=4) + heart_rate:ward". Categories and splines are
        bought as a whole. Terms made of columns (`I(x**2)`, `bs(x)`, `a:b`) depend on these by
        themselves and cost nothing more, unless `costs` names them. Categories in order (of pandas)
        have a column for each level but the first, 1 where it is reached; C(x) forgets the order.
    data : frame, path or other source
        pandas, polars or pyarrow table, dict of columns, file path or pattern, pyarrow Dataset,
        polars LazyFrame or Dask DataFrame.
    costs : dict, Series, frame of two columns, or function, optional
        The price of each column that the formula uses (0: free), of what is bought beside them (a
        blood draw, a monitor), and of terms that cost something to compute. All 1 by default. Names
        that the formula does not use may be there: `summary` tells them. A function takes a
        frozenset of names (of columns and things, not of terms made of them) and returns the price
        of having all of these: shared set-up costs, volume discounts. It is 0 for none, and must
        not fall as names are added.
    depends_on : dict, Series, edge table or networkx.DiGraph, optional
        What needs what: {"hr_slope": ["heart_rate"], "glucose": ["blood draw"]}, a Series of the
        same (a missing value needs nothing), a table with columns parent and child (or from and
        to), or a graph with edges parent -> child. What is needed is needed through chains too.
        Names are of the formula or have a price.
    alternatives : dict, optional
        Series of sources one of which suffices: {"bp": ["bp_invasive", "bp_cuff"]}; what depends
        on "bp" in `depends_on` needs either. A model has one source of each series, the one that
        serves best for its price.
    budget : float, optional
        The most that a model may cost: dearer ones are not searched, and `predict` uses the best
        that the budget pays for; inf is no limit. Default: all are searched, and cross-validation
        chooses the budget that `predict` uses: with `costs`, that of the cheapest model within one
        standard error of the least held-out loss; without, that of the least loss itself.
    family : {"gaussian", "binomial", "multinomial"}, optional
        Deviance (y - f)^2; -2 log-likelihood of two classes; of K classes, whose coefficients of a
        feature are one group. Default: by the response.
    lambda_ : float, optional
        Fit the group-penalized model of this lambda alone, not refitted, without a frontier:
        what says how a path or a list is made (`lambdas`, `n_lambda`, `lambda_min_ratio`, `rules`,
        `relax`, `criterion`) is refused beside it.
    lambdas : array, optional
        Penalties of the path. Default: `n_lambda` of them from lambda_max, where all that has a
        price is zero, down to lambda_min_ratio lambda_max; both are refused beside it.
    n_lambda : int
        Number of penalties.
    lambda_min_ratio : float, optional
        Default: 1e-4, and 1e-2 where there are more features than rows.
    l1_ratio : float
        Share of the group penalty, above 0 to 1; the rest is ridge. As glmnet's alpha if the
        response has two classes or a standard deviation s of 1; else l1_ratio=r is alpha =
        r / (r + (1 - r) s), as glmnet scales a numeric response before it adds the penalty.
    relax : float in [0, 1], optional
        How far selected models go from the penalty's coefficients (0) to those refitted without
        one (1), as 1 - gamma of glmnet's relaxed fits. Default: 0, .5 or 1 for each model of the
        list, by cross-validation; 1 where the criterion is another. Models of "greedy" and "exact"
        come without a penalty's coefficients and are always refitted.
    rules : str or sequence
        Where models come from; those of all are compared at equal price. "group": supports along
        the path above; "lasso": c_j |w_j|, c_j the price of the
        feature with all that it needs, as if nothing were shared, and of a free one that of the
        cheapest other, so that free ones are selected among too; "greedy": features added one at a
        time by the fall of the deviance, or by the fall per unit of cost, whichever ends better,
        then exchanged; and what is left of any rule's models without one thing, exchanged. "exact"
        (not among the default): the model of least deviance within `budget`, with proof: its bound
        is its own deviance. It looks at up to 15 features, or with a numeric response and a price
        for each at up to 60, which mixed-integer programming tells (CVXPY); models then compete by
        the deviance.
    dependents : {"all", "direct"}
        G_v holds all that depends on v, or, as the thesis has it, its children alone: then what is
        needed through a chain is paid more than once by the penalty (never in a model's cost).
    solver : {"auto", "cvxpy"}
        "cvxpy" states and solves the path in CVXPY, as a reference; "auto" solves it by proximal
        steps, with the same solution and a duality gap.
    weights : column name, array (n,) or "balanced", optional
        Row weights.
        "balanced" gives all K classes equal total weight: n / (K n_k) per row of class k.
    offset : column name or array (n,), optional
        A known part of the score (an array (n, K) for K classes).
    missing : {"indicator", "drop"}, default="indicator"
        Treatment of missing features. "indicator": a missing number becomes the training mean, with
        an indicator column such as `age[missing]` if training had missing values; a missing
        category is a level. "drop" drops the row, predicted as NaN. Rows without response or weight
        are always dropped. What says that a column is missing comes with it, at its price.
    groups : column name or array (n,), optional
        Rows with equal values are held out together in cross-validation.
    standardize : bool, default=True
        Scale features to unit standard deviation; they are always centred.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the stored features.
    seed : int, default=0
        Of the folds of the cross-validation.
    threads : int, optional
        Number of threads; all by default.
    sample : int, optional
        Fit only this many randomly drawn rows; all by default.
    client : dask.distributed.Client, optional
        Dask cluster that holds the features of files or a Dask frame.
    progress : bool, optional
        Show progress: True at once, False never, default after three seconds.
    control : dict, optional
        Settings of the algorithm, listed on the page "Algorithms and their constants": `criterion`,
        `tol`, `max_iter`, `scratch`.

    Returns
    -------
    CostnetFit

    Raises
    ------
    FormulaError, DataError
    ArgumentError
        Also where a price is missing, negative or of nothing that the formula uses; a name is
        unknown; or dependencies go in a circle.

    See Also
    --------
    CostnetFit, cv

    Notes
    -----
    The frontier is selected by looking at the response: its deviances are optimistic, held-out ones
    slightly, and its coefficients have no valid p-values. `cv` repeats the whole procedure in each
    fold. `print` names the rule that found each model, and in brackets the share of the refit if it
    is below 1. If classes are separated, predictions are useful but the size of coefficients is
    not.

    The page "Algorithms and their constants" tells how models compete, what differs from the
    thesis, and has all entries of `control`.

    A saved fit holds no training row, but coefficients, prices, and means of features.

    References
    ----------
    Fiterau, M. (2014). Discovering compact and informative structures through data partitioning,
    ch. 5 and 6. PhD thesis, Carnegie Mellon University.
    Jacob, Obozinski & Vert (2009). Group lasso with overlap and graph lasso.
    Jenatton, Mairal, Obozinski & Bach (2011). Proximal methods for hierarchical sparse coding.
    Iyer & Bilmes (2013). Submodular optimization with submodular cover and submodular knapsack
    constraints.

    Examples
    --------
    >>> import lodim as ld
    >>> df = ld.data("autompg")
    >>> prices = {"weight": 1, "horsepower": 5, "model_year": 2}
    >>> fit = ld.costnet("mpg ~ weight + horsepower + model_year", df, costs=prices, budget=4)
    >>> fit.cost, fit.inputs
    (3.0, ['weight', 'model_year'])
    """
