"""Estimation: the path of the group penalty, then the price list of all rules."""

from functools import partial

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.path import penalty_path
from lodim.models.costnet.price_list import Estimates
from lodim.models.costnet.search import bounds, rules
from lodim.models.costnet.search.candidates import SearchSpace, with_free_columns
from lodim.models.costnet.search.criterion import Criterion
from lodim.models.costnet.search.exact import optimum
from lodim.models.costnet.search.frontier import CostFrontier, select_frontier
from lodim.models.costnet.search.moves import Proposal, Search
from lodim.models.costnet.search.refit import Refits
from lodim.models.costnet.search.rows import SearchData, screened_nodes


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit all: yields (estimates, log, scores (n, K) of rows held out) for each budget.

    Of several budgets, ascending, one search with the largest serves all.
    """
    groups = Groups.from_network(settings.network, settings.closure, batch.X.shape[1])
    path_of = _path_solver(settings)
    path = path_of(batch, family, groups, _lambdas(settings))
    log = {name: getattr(path, name) for name in ("n_iter", "gap", "converged")}
    if settings.lambda_ is not None:
        scores = None if eval_batch is None else _scores(eval_batch, family, path, 0)
        yield Estimates(path, None, None), log, scores
        return
    with single_blas():
        frontiers = _frontiers(
            batch, family, settings, groups, path, path_of, bounded=eval_batch is None
        )
    estimates, frontier = Estimates(path, *frontiers), frontiers[0]
    several = isinstance(settings.budget, tuple)
    for budget in settings.budget if several else [settings.budget]:
        k = frontier.index_within(np.inf if budget is None else budget)
        scores = None if eval_batch is None else _scores(eval_batch, family, frontier, k)
        yield estimates, log, scores


def combine(parts):
    """(estimates, log) of the last budget, whose estimates serve all."""
    return parts[-1]


def _path_solver(settings):
    """The function (batch, family, groups, lambdas=None) -> PenaltyPath that settings ask for."""
    names = ("l1_ratio", "n_lambda", "lambda_min_ratio", "tol", "max_iter", "threads")
    options = {name: getattr(settings, name) for name in names}
    if settings.solver == "cvxpy":
        from lodim.models.costnet.penalty.reference import ConicSolver

        options["make_solver"] = ConicSolver
    return partial(penalty_path, **options)


def _lambdas(settings):
    """Penalties that are given, (L,), or None."""
    if settings.lambda_ is not None:
        return np.array([settings.lambda_])
    return None if settings.lambdas is None else np.asarray(settings.lambdas)


def _frontiers(batch, family, settings, groups, path, path_of, bounded):
    """The CostFrontier of all rules, and that of the weighted lasso alone."""
    network = with_free_columns(settings.network, batch.X.shape[1])
    limits = [] if settings.budget is None else [float(b) for b in np.atleast_1d(settings.budget)]
    exact = "exact" in settings.rules
    if exact and not limits:
        raise ArgumentError("rules='exact' needs budget=, the price up to which it finds the best")
    # The optimum is one of the deviance.
    criterion = "deviance" if exact else settings.criterion
    search = make_search(batch, family, network, max(limits, default=np.inf), criterion, path)
    by_rule = _proposals(search, batch, family, settings, groups, path, path_of, limits)
    # Of equal models the first is named: the proven one.
    order = sorted(settings.rules, key=lambda rule: rule != "exact")
    proposals = [proposal for rule in order for proposal in by_rule[rule]]
    if "greedy" in settings.rules:
        proposals += rules.backward_proposals(search, proposals)
    selected = [
        select_frontier(search, some, settings.relax) for some in (proposals, by_rule["lasso"])
    ]
    lower = np.zeros_like
    if bounded:
        lower = bounds.lower_bounds(search, [c.state.price for c in selected[0]])
    if exact:
        optima = [c.state.deviance for c in by_rule["exact"]]
        lower = bounds.raised_bounds(lower, limits, optima)
    return tuple(
        CostFrontier.from_proposals(search, settings.network, some, settings.relax, lower)
        for some in selected
    )


def _proposals(search, batch, family, settings, groups, path, path_of, limits):
    """Proposals of each of the rules of a fit, and of the weighted lasso in any case."""
    out, asked = {}, settings.rules
    if "group" in asked or "reweighted" in asked:
        out["group"] = rules.path_supports(search, path, "group")
    if "reweighted" in asked:
        out["reweighted"] = rules.reweighted_supports(
            search, batch, family, groups, out["group"], path_of
        )
    lasso = rules.lasso_groups(settings.network, batch.X.shape[1])
    out["lasso"] = rules.path_supports(search, path_of(batch, family, lasso), "lasso")
    if "greedy" in asked:
        out["greedy"] = rules.forward_proposals(search)
        if search.space.network.set_cost is not None:
            out["greedy"] += rules.modular_proposals(search, out["greedy"], limits)
    if "exact" in asked:
        out["exact"] = [Proposal(optimum(search, budget), "exact") for budget in limits]
    return out


def make_search(batch, family, network, budget, criterion, path=None):
    """The Search that the rules share; nodes that `path` uses are kept of a wide problem."""
    space = SearchSpace.from_network(network, budget, screened_nodes(batch, family, network, path))
    data = SearchData.from_batch(batch, family, space.columns)
    sample = data.sample()
    refits = final = Refits.from_data(sample)
    if sample is not data:
        final = Refits.from_data(data)
    criterion = Criterion.from_data(criterion, sample, refits.null.deviance, batch.X.shape[1])
    return Search(space, refits, final, criterion, budget)


def _scores(eval_batch, family, models, k):
    """Scores (n, K) of the rows of a batch by model k of a PenaltyPath or CostFrontier."""
    on = np.flatnonzero(models.coef[k].any(axis=1))
    data = SearchData.from_batch(eval_batch, family)
    return data.scores(models.intercept[k], on, models.coef[k][on])
