"""Growing a fit: the path of the group penalty, then the price list of all rules."""

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError
from lodim.models.costnet.penalty import path as penalized
from lodim.models.costnet.penalty.groups import groups
from lodim.models.costnet.price_list import Estimates
from lodim.models.costnet.search import bounds, rows, rules
from lodim.models.costnet.search import frontier as ladder
from lodim.models.costnet.search.candidates import Market, complete
from lodim.models.costnet.search.criterion import Criterion
from lodim.models.costnet.search.moves import Search
from lodim.models.costnet.search.refit import Refits
from lodim.models.costnet.search.rows import Training


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit all: yields (estimates, log, scores (n, K) of rows held out) for each budget.

    Of several budgets, ascending, one search with the largest serves all.
    """
    network, p = settings.network, batch.X.shape[1]
    priced = groups(network, settings.closure, p)
    path = _path(settings)
    trace = path(batch, family, priced, _lambdas(settings))
    log = {name: getattr(trace, name) for name in ("n_iter", "gap", "converged")}
    if settings.lambda_ is not None:
        scores = None if eval_batch is None else _scores(eval_batch, family, trace, 0)
        yield Estimates(trace, None, None), log, scores
        return
    with single_blas():
        made = _price_list(batch, family, settings, priced, trace, path, eval_batch is None)
    estimates = Estimates(trace, *made)
    several = isinstance(settings.budget, tuple)
    for budget in settings.budget if several else [settings.budget]:
        limit = np.inf if budget is None else budget
        rung = made[0].at(limit)
        yield (
            estimates,
            log,
            None if eval_batch is None else _scores(eval_batch, family, made[0], rung),
        )


def combine(parts):
    """The last of several parts, whose estimates serve all budgets."""
    return parts[-1]


def _path(settings):
    """The solver of a penalized path, with all that settings say."""
    if settings.solver == "cvxpy":
        from lodim.models.costnet.penalty import reference as solver  # loads CVXPY
    else:
        solver = penalized

    def path(batch, family, priced, lambdas=None):
        return solver.path(
            batch, family, priced, lambdas, l1_ratio=settings.l1_ratio,
            n_lambda=settings.n_lambda, lambda_min_ratio=settings.lambda_min_ratio,
            tol=settings.tol, max_iter=settings.max_iter, threads=settings.threads,
        )  # fmt: skip

    return path


def _lambdas(settings):
    if settings.lambda_ is not None:
        return np.array([settings.lambda_])
    return None if settings.lambdas is None else np.asarray(settings.lambdas)


def _price_list(batch, family, settings, priced, trace, path, bounded):
    """The ladder of all rules, and that of the weighted lasso alone."""
    network = complete(settings.network, batch.X.shape[1])
    limits = [] if settings.budget is None else [float(b) for b in np.atleast_1d(settings.budget)]
    exact = "exact" in settings.rules
    if exact and not limits:
        raise ArgumentError("rules='exact' needs budget=, the price up to which it finds the best")
    # The optimum is one of the deviance.
    criterion = "deviance" if exact else settings.criterion
    search = look(batch, family, network, max(limits, default=np.inf), criterion, trace)
    found = _candidates(search, batch, family, settings, priced, trace, path, limits)
    # Of equal models the first is named: the proven one.
    order = sorted(settings.rules, key=lambda rule: rule != "exact")
    asked = [c for rule in order for c in found[rule]]
    if "greedy" in settings.rules:
        asked += rules.shortened(search, asked)
    lists = asked, found["lasso"]
    chosen = [ladder.rungs(search, candidates, settings.relax) for candidates in lists]
    lower = bounds.bounds(search, [c.state.price for c in chosen[0]]) if bounded else np.zeros_like
    if exact:
        lower = bounds.proven(lower, limits, [c.state.deviance for c in found["exact"]])
    return tuple(
        ladder.build(search, settings.network, rungs, settings.relax, lower) for rungs in chosen
    )


def _candidates(search, batch, family, settings, priced, trace, path, limits):
    """What each of the rules asked for finds, and the weighted lasso in any case."""
    found = {}
    if "group" in settings.rules or "reweighted" in settings.rules:
        found["group"] = rules.supports(search, trace, "group")
    if "reweighted" in settings.rules:
        found["reweighted"] = rules.reweighting(search, batch, family, priced, found["group"], path)
    penalty = rules.lasso_groups(settings.network, batch.X.shape[1])
    found["lasso"] = rules.supports(search, path(batch, family, penalty), "lasso")
    if "greedy" in settings.rules:
        found["greedy"] = rules.grown(search)
        if search.market.network.set_cost is not None:
            found["greedy"] += rules.bounded(search, found["greedy"], limits)
    if "exact" in settings.rules:
        found["exact"] = rules.optima(search, limits)
    return found


def look(batch, family, network, budget, criterion, trace=None):
    """The Search that the rules of a ladder share."""
    keep = rows.keep(batch, family, network, trace)
    market = Market.of(network, budget, keep)
    training = Training.of(batch, family, market.columns)
    sample = training.sample()
    refits = final = Refits.of(sample)
    if sample is not training:
        final = Refits.of(training)
    made = Criterion.of(criterion, sample, refits.null.deviance, batch.X.shape[1])
    return Search(market, refits, final, made, budget)


def _scores(eval_batch, family, models, k):
    """Scores (n, K) of the rows of a batch by the model k of a trace or a ladder."""
    on = np.flatnonzero(models.coef[k].any(axis=1))
    return Training.of(eval_batch, family).link(models.intercept[k], on, models.coef[k][on])
