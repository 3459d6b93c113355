"""costnet(): the best model at every price, from a formula to a fit."""

from dataclasses import replace
from typing import Any

from lodim import recipe as recipes
from lodim.models.costnet import penalized
from lodim.models.costnet.finish import finish, from_state
from lodim.models.costnet.fit import CostnetFit
from lodim.models.costnet.graph import network
from lodim.models.costnet.groups import groups
from lodim.models.costnet.grow import grow
from lodim.models.costnet.settings import Settings
from lodim.select import choose

__all__ = ["costnet", "from_state"]

MOST_BUDGETS = 60  # prices tried by cross-validation


def costnet(
    formula: str,
    data: Any,
    *,
    costs: Any = None,
    depends_on: Any = None,
    alternatives: Any = None,
    budget: float | None = None,
    family: str | None = None,
    lambda_: float | None = None,
    lambdas: Any = None,
    n_lambda: int = 100,
    lambda_min_ratio: float | None = None,
    l1_ratio: float = 1.0,
    relax: float = 1.0,
    rules: Any = ("group", "reweighted", "lasso", "greedy"),
    closure: str = "all",
    solver: str = "auto",
    weights: Any = None,
    offset: Any = None,
    standardize: bool = True,
    dtype: str = "float64",
    seed: int = 0,
    threads: int | None = None,
    control: dict[str, Any] | None = None,
) -> CostnetFit:
    """doc"""
    arguments = {k: v for k, v in locals().items() if k not in ("formula", "data")}
    problem = recipes.prepare(costnet, formula, data, arguments)
    if budget is not None or lambda_ is not None:
        return RECIPE.run(problem)
    estimates, log = collect([next(grow(problem.batch, problem.family, problem.settings))])
    problem, selection = choose(problem, {"budget": _prices(estimates.ladder)})
    return finish(problem, estimates, log, selection, light=False)


def ready(problem):
    """The problem with the network of its design; prices and dependencies as plain dicts."""
    s = problem.settings
    said = {} if callable(s.costs) or s.costs is None else {"costs": dict(s.costs)}
    for name in ("depends_on", "alternatives"):
        if problem.arguments[name] is not None:
            said[name] = {key: list(values) for key, values in getattr(s, name)}
    return replace(
        problem, settings=replace(s, network=network(problem.design, s)),
        arguments=problem.arguments | said,
    )  # fmt: skip


def collect(parts):
    """The one part of what `grow` yields."""
    return parts[0][:2]


def budgets(problem, n):
    """What cv() tries: the prices of the models of all rows; or the lambda_ that is given."""
    if problem.settings.lambda_ is not None:
        return {"lambda_": [problem.settings.lambda_]}
    estimates = next(grow(problem.batch, problem.family, problem.settings))[0]
    return {"budget": _prices(estimates.ladder)}


def _prices(ladder):
    """The prices of a price list, of many evenly chosen ones."""
    M = len(ladder.cost)
    at = (
        range(M)
        if M <= MOST_BUDGETS
        else {round(k * (M - 1) / (MOST_BUDGETS - 1)) for k in range(MOST_BUDGETS)}
    )
    return [float(ladder.cost[k]) for k in sorted(at)]


def _largest(batch, family, s):
    made = groups(s.network, s.closure, batch.X.shape[1])
    return penalized.lambda_max(batch, family, made, s.l1_ratio, s.threads)


RECIPE = recipes.Recipe(
    name="costnet",
    settings=Settings,
    grow=grow,
    collect=collect,
    finish=finish,
    penalties={"lambda_": recipes.Penalty(_largest, ratio=1e-4, needed=False)},
    stages=None,
    ready=ready,
    budget="budget",
    grid=budgets,
)
recipes.register(costnet, RECIPE)
