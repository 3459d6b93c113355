"""Estimation of ripr: find the feature sets (views) and build the fitted ensemble."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from lodim.errors import ArgumentError
from lodim.fitting.fit import ARRAY
from lodim.fitting.model import lambda_grid
from lodim.formula.formula import parse
from lodim.models.ripr.assigned_views import (
    ClassViews,
    ClusterViews,
    NumberViews,
    drop_unused_views,
)
from lodim.models.ripr.assignment.constrained import Constraints
from lodim.models.ripr.assignment.lambda_path import select_lambda
from lodim.models.ripr.assignment.recover import keep_largest
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import ViewSearch, most_neighbours
from lodim.models.ripr.clusters import fit_clusters
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS, null_score, task_of
from lodim.models.ripr.losses import ABSENT, ALPHA, N_SAMPLES, nearest_view, reference_volumes
from lodim.models.ripr.settings import ASSIGNMENT, VOTE, Settings
from lodim.models.ripr.views import Axes, axis_values
from lodim.models.ripr.vote import Voters, choose_views, smoothed_targets
from lodim.models.ripr.voting_views import VotingViews, calibrated

INITIAL_SCALE = (0.5, 0.5)


# Arguments of method="assignment", and their values if omitted
ASSIGNMENT_DEFAULTS = {"lambda_": None, "alpha": ALPHA, "balanced": False}
ASSIGNMENT_DEFAULTS |= {"constraints": None, "share": Settings.share}
ASSIGNMENT_DEFAULTS |= {"tolerance": Settings.tolerance, "smooth": Settings.smooth}


def checked(problem):
    """Check the settings of a Problem; return it with method, axes and constraints filled in.

    If omitted, the method becomes "assignment" when the data or another argument requires it."""
    s, order, most = problem.settings, problem.batch.order, most_neighbours(problem.batch)
    constraints = s.constraints
    if not isinstance(constraints, dict | Constraints | None):
        raise ArgumentError(f"constraints must be a dict, not {constraints!r:.80}")
    if s.k is not None and s.k > most:
        raise ArgumentError(
            f"k must be at most {most}, the number of other rows with a response and a positive "
            f"weight, not {s.k}"
        )
    given = [
        f"cannot be combined with {k}" for k, v in ASSIGNMENT_DEFAULTS.items() if getattr(s, k) != v
    ]
    if task_of(problem.family) == CLUSTERS:
        given.append("needs a response; use 'assignment'")
    if len(parse(problem.design.formula).responses) > 1:
        given.append("is for one response; use 'assignment'")
    if order is not None:
        given.append("cannot be combined with order")
    if s.method == VOTE and given:
        raise ArgumentError(f"method='vote' {given[0]}")
    if constraints is not None:
        if order is not None:
            raise ArgumentError("constraints= and order= cannot be combined: leave one of them out")
        if isinstance(constraints, dict):
            n = len(problem.batch.index)
            constraints = Constraints.from_dict(constraints, problem.design, n)
        # a fit keeps no arrays and no functions
        problem = replace(problem, arguments=problem.arguments | {"constraints": ARRAY})
    axes = Axes.from_design(problem.design, problem.standardize)
    how = {"method": ASSIGNMENT if given else s.method, "axes": axes, "constraints": constraints}
    return replace(problem, settings=replace(s, **how))


def largest_lambda(batch, family, settings):
    """Return the largest penalty worth trying: a larger one does not select fewer views."""
    search = ViewSearch.from_batch(batch, family, settings)
    L, lambda_, most = search.losses(), 1.0, 2.0**20
    fewest = len(search.recover(most, L).views)
    while len(search.recover(lambda_, L).views) > fewest and lambda_ < most:
        lambda_ *= 2.0
    return lambda_


def cv_grid(problem, n):
    """Return the grid of cv() as a dict, and None because no earlier fit can be reused.

    n : largest number of penalties; None among them leaves the choice to the fit"""
    lambda_ = problem.arguments["lambda_"]
    if lambda_ is not None or problem.settings.method == VOTE:
        return {"lambda_": [lambda_]}, None
    return {"lambda_": [*lambda_grid(problem, "lambda_", n).tolist(), None]}, None


# One response ------------------------------------------------------------------------------------


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit an Ensemble for each penalty in the settings; yield (Ensemble, log, predictions).

    Predictions are linear predictors of the rows of eval_batch, or None if it is omitted."""
    search = ViewSearch.from_batch(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    penalties = settings.lambda_ if several else (settings.lambda_,)
    L = search.losses() if several and any(v is not None for v in penalties) else None
    for lambda_ in penalties:
        if settings.method == VOTE and lambda_ is not None:
            raise ArgumentError("lambda_ needs method='assignment', not 'vote'")
        if settings.method != ASSIGNMENT and lambda_ is None:
            e, log = vote_ensemble(search)
        else:
            found = search.recover(lambda_, None if lambda_ is None else L)
            used = float("nan") if found.forward else found.lambda_
            e = build_ensemble(search, found.views, found.assignment.matrix(), found.k, used)
            log = search_log(found.assignment, search)
        scores = None
        if eval_batch is not None:
            scores = e.query(e.rows(eval_batch), search.threads).score
            scores = np.where(np.isnan(scores), null_score(e, family), scores)
        yield e, log, scores


def search_log(assignment, search):
    """Return a log (dict): objectives of `assignment`, numbers of views and rows in `search`."""
    return {
        "objective": assignment.objective,
        "converged": bool(assignment.converged),
        "compared": len(search.views),
        "possible": search.n_possible,
        "sampled": len(search.used),
    }


def vote_ensemble(search):
    """Fit feature sets that vote, to a ViewSearch's rows; return VotingViews and a search log."""
    s, y, weight, threads = search.settings, search.y, search.weight, search.threads
    A = axis_values(search.X, s.axes.of)
    refs = np.flatnonzero(np.isfinite(y) & (weight > 0) & ~np.isnan(A).all(axis=1))
    apart = s.axes.category_distance(A[weight > 0], weight[weight > 0])
    voters = Voters.from_rows(A[refs], apart, y[refs], weight[refs], search.n_classes)
    views, k, log = choose_views(voters, s, threads)
    common = _common_fields(search, A, views)
    e = VotingViews(
        **common,
        assignment=np.zeros((len(y), len(views))),
        k=k,
        axis_of=s.axes.of,
        factor=1.0,
        category_distance=apart[common["features"]],
    )
    return calibrated(e, threads), log


def build_ensemble(search, views, shares, k, lambda_):
    """Return the fitted Ensemble that predicts by the selected feature sets, `views`.

    search : ViewSearch, data and settings; k : number of neighbours; lambda_ : penalty, or NaN
    shares : (rows, views) share of each view in each row"""
    s, B = search.settings, np.zeros((len(search.y), len(views)))
    B[search.used] = shares
    common = _common_fields(search, search.X, views) | {"assignment": B, "k": int(k)}
    common |= {"axis_of": np.arange(search.X.shape[1]), "lambda_": float(lambda_)}
    power = 1.0 - s.alpha
    if search.task == CLASSES:
        e = ClassViews(**common, power=power, balanced=s.balanced, scale=np.array(INITIAL_SCALE))
        evidence = e.evidence(threads=search.threads)
        scale = calibrate(evidence, search.y, search.weight)
        return replace(e, assigned_view=nearest_view(evidence[0]), scale=scale)
    if search.task == NUMBERS:
        e = NumberViews(**common)
        return replace(e, assigned_view=e.query(threads=search.threads).view)
    e = ClusterViews(
        **common,
        power=power,
        seed=s.seed,
        n_samples=N_SAMPLES,
        volumes=reference_volumes(common["X"][search.weight > 0], common["views"]),
        centres=np.zeros((0, common["views"].shape[1])),
        centre_view=np.zeros(0, np.int64),
    )
    e = replace(e, assigned_view=e.query(threads=search.threads).view)
    return fit_clusters(drop_unused_views(e, search.threads), s.n_clusters, s.seed)


def _common_fields(search, X, views):
    """Return a dict of the fields that all kinds of Ensemble have, such as training rows and views.

    search : ViewSearch; X : (n, columns), features
    views : (views, dims), the columns in each view (feature set), padded with -1"""
    features, n = np.unique(views[views >= 0]), len(X)
    fields = {"features": features, "X": X[:, features], "y": search.y, "weight": search.weight}
    fields["views"] = np.where(views >= 0, np.searchsorted(features, views), -1)
    fields |= {"n_classes": search.n_classes, "n_scores": search.family.n_scores}
    return fields | {"assigned_view": np.full(n, -1)}


def calibrate(evidence, y, weight):
    """Fit factors t (2,), so that class probabilities are softmax(t[1] * vote - t[0] * ratio).

    evidence : (ratio, vote), each (rows, views, classes), as returned by `ClassViews.evidence`
    y, weight : (rows,) class codes, and weights"""
    ratio, vote = evidence
    view = nearest_view(ratio)
    known = np.flatnonzero((view >= 0) & np.isfinite(y) & (weight > 0))
    own = known, view[known]
    parts = np.array([-np.minimum(ratio[own], ABSENT), vote[own]])
    target = smoothed_targets(y[known].astype(int), parts.shape[2])
    weight = weight[known] / max(weight[known].sum(), 1e-300)

    def deviance(t):
        log_p = log_softmax(np.tensordot(t, parts, 1), axis=1)
        rest = weight[:, None] * (np.exp(log_p) - target)
        return -float((weight[:, None] * target * log_p).sum()), (parts * rest).sum(axis=(1, 2))

    bounds = [(0.0, 10.0)] * 2  # finite factors if all rows are predicted correctly
    return minimize(deviance, INITIAL_SCALE, jac=True, bounds=bounds, tol=1e-12).x


# Several responses (Fiterau 2014, Sect. 4.1) -----------------------------------------------------


def fit_shared(problems):
    """Fit one response per Problem, all with the same views; return a list of (Ensemble, log)."""
    searches = [ViewSearch.from_batch(p.batch, p.family, p.settings) for p in problems]
    losses = [each.losses() for each in searches]
    losses = [
        L / np.sqrt(each.recover(1.0, L).unit) for each, L in zip(searches, losses, strict=True)
    ]
    L, first, settings = np.concatenate(losses), searches[0], searches[0].settings
    weight = np.concatenate([search.weights for search in searches])
    lambda_, how = settings.lambda_, {"weight": weight, "threads": first.threads}

    def errors_of(pairs):
        parts = zip(searches, losses, strict=True)
        errors = [each.held_out_errors(own, each.views, pairs) for each, own in parts]
        return np.concatenate(errors, axis=1)

    if lambda_ is None:
        lambda_, assignment, _ = select_lambda(L, 1.0, settings, errors_of, **how)
    else:
        assignment = assign(L, lambda_, **how)
    columns, kept = keep_largest(L, assignment, settings, weight)
    shares = np.split(kept.matrix(), np.cumsum([len(own) for own in losses])[:-1])
    views = first.views[columns]
    return [
        (build_ensemble(each, views, part, each.k, lambda_), search_log(kept, each))
        for each, part in zip(searches, shares, strict=True)
    ]
