"""Estimation of costnet: the penalized path, then the frontier (best models by price)."""

from dataclasses import replace
from functools import partial

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import on_host, single_blas
from lodim.family import has_classes
from lodim.models.costnet.frontier_models import Estimates
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.problem import batch_beyond_null
from lodim.models.costnet.penalty.solvers import penalty_path
from lodim.models.costnet.search import rules
from lodim.models.costnet.search.candidates import with_free_columns
from lodim.models.costnet.search.frontier import CostFrontier, select_frontier
from lodim.models.costnet.search.held_out import (
    STEP,
    HeldOut,
    RuleResults,
    models_to_compare,
    select_held_out,
)
from lodim.models.costnet.search.moves import Search
from lodim.models.costnet.search.rows import SearchData
from lodim.models.costnet.search.rules import forward_selection
from lodim.selection.folds import check_units, count_units
from lodim.selection.tuning import count_draws, fold_splits

LARGE = 200_000  # rows x columns x classes from which several classes use fewer folds and rules


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit costnet models; yield (Estimates, {}, scores) for each budget in the settings.

    scores : (n, K) linear predictors of the rows `eval_batch`, or None without such rows"""
    # Without a budget, held-out losses choose the model. With a given lambda_, there is no
    # frontier.
    batch, level = batch_beyond_null(batch, family)
    p, monotone = batch.X.shape[1], settings.monotone
    groups = Groups.from_network(settings.network, settings.dependents, p, monotone)
    lambdas = settings.lambdas if settings.lambda_ is None else [settings.lambda_]
    path = _path_solver(settings)(batch, family, groups, lambdas)
    if settings.lambda_ is not None:
        models, chosen = _raised(path, level), [0]
        estimates = Estimates(models, None)
    else:
        with single_blas():
            draws = count_draws(batch) if eval_batch is None else 1
            models = _raised(_frontier(batch, family, settings, path, draws), level)
        estimates, priced = Estimates(_raised(path, level), models), settings.costs is not None
        budgets = _budgets(settings)
        chosen = [models.best(priced) if b is None else models.index_within(b) for b in budgets]
    for k in chosen:
        scores = None if eval_batch is None else _scores(eval_batch, family, models, k)
        yield estimates, {}, scores


def _raised(models, level):
    return replace(models, intercept=models.intercept + level)


def _budgets(settings):
    several = isinstance(settings.budget, tuple)
    return settings.budget if several else (settings.budget,)


def _path_solver(settings):
    """Return the function (batch, family, groups, lambdas=None) that fits a PenaltyPath."""
    names = ("l1_ratio", "n_lambda", "lambda_min_ratio", "tol", "max_iter", "threads")
    options = {name: getattr(settings, name) for name in names}
    if settings.solver == "cvxpy":
        from lodim.models.costnet.penalty.reference import ConicSolver

        options["make_solver"] = ConicSolver
    return partial(penalty_path, **options)


def _frontier(batch, family, settings, path, draws):
    """Return the CostFrontier: at each price, the best model that a rule in `settings` proposes.

    path : PenaltyPath of the group penalty
    draws : number of random divisions into folds"""
    large = family.n_scores > 1 and batch.n * batch.X.shape[1] * family.n_scores > LARGE
    if large and settings.criterion == "cv" and set(settings.rules) > {"lasso"}:
        settings = replace(settings, rules=tuple(r for r in settings.rules if r != "lasso"))
    results, by_cv = _rule_results(batch, family, settings, path), settings.criterion == "cv"
    search, network, models = results.search, settings.network, results.listed
    if None in _budgets(settings):
        check_units(batch, "budget")
    elif not by_cv or count_units(batch) < 2:
        return CostFrontier.from_candidates(search, network, models)
    if by_cv:
        models = models_to_compare(results, settings.relax)
    # Folds only depend on the number of classes.
    levels = range(max(2, family.n_scores)) if has_classes(family) else ()
    draws = 1 if large else draws
    # Folds keep the units of all rows, so that penalties are comparable.
    splits = fold_splits(batch, levels, settings.seed, standardize=False, draws=draws)
    known = {rule: path.lambdas[::STEP] for rule, path in results.paths.items()}
    fold_results = (_rule_results(train, family, settings, lambdas=known) for train, _ in splits)
    held_out = HeldOut.from_folds(models, fold_results, [test for _, test in splits], family, draws)
    at = select_held_out(search, models, held_out) if by_cv else range(len(models))
    error = np.array([held_out.error(v) for v in at])
    models = [models[v] for v in at]
    return CostFrontier.from_candidates(search, network, models, held_out.draws[at], error)


def _rule_results(batch, family, settings, path=None, lambdas=None):
    """Search for models by the rules in the settings; return RuleResults.

    path : PenaltyPath of the group penalty, or None to fit it
    lambdas : dict of penalties by rule, or None to choose them"""
    p, known, monotone = batch.X.shape[1], lambdas or {}, settings.monotone
    solve = partial(_path_solver(settings), batch, family)
    group = Groups.from_network(settings.network, settings.dependents, p, monotone)
    lasso = rules.lasso_groups(settings.network, p, monotone)
    names = ("feature", "cost", "start", "member")
    same = all(np.array_equal(getattr(group, name), getattr(lasso, name)) for name in names)
    of_group = known.get("group", known.get("lasso") if same else None)
    paths = {"group": path or solve(group, of_group)}
    if "lasso" in settings.rules and not same:
        paths["lasso"] = solve(lasso, known.get("lasso"))
    network = with_free_columns(settings.network, p)
    budget = max((float(b) for b in _budgets(settings) if b is not None), default=np.inf)
    how = settings.criterion, paths["group"], settings.threads, monotone
    search = Search(batch, family, network, budget, *how)
    asked = {
        rule: rules.canonicalize_duplicates(paths.get(rule, paths["group"]), search)
        for rule in ("group", "lasso")
        if rule in settings.rules and (rule in paths or "group" not in settings.rules)
    }
    candidate_models = []
    for rule, path in asked.items():
        candidate_models += rules.path_supports(search, path, rule)
    if "greedy" in settings.rules:
        candidate_models += forward_selection(search)
    by_deviance = settings.criterion != "cv" or count_units(batch) < 2
    relax = 1.0 if settings.relax is None else settings.relax
    listed = select_frontier(search, candidate_models, relax, by_deviance)
    return RuleResults(search, asked, listed)


def _scores(eval_batch, family, models, k):
    """Return linear predictors (n, K) of a Batch by model k of a PenaltyPath or CostFrontier."""
    on = np.flatnonzero(models.coef[k].any(axis=1))
    data = SearchData.from_batch(eval_batch, family)
    step = np.vstack([models.intercept[k], models.coef[k][on]]).T
    scores = data.scores_after(data.scores, np.append(-1, on), step)
    return tiles.unpack(scores if on_host(data.X) else scores.gather(), eval_batch.n)
