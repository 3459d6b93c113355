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
from lodim.models.ripr.assignment.lambda_path import assignment_path, select_lambda
from lodim.models.ripr.assignment.recover import keep_largest
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import ViewSearch, most_neighbours
from lodim.models.ripr.clusters import fit_clusters
from lodim.models.ripr.ensemble import CLUSTERS, NUMBERS, null_score, task_of
from lodim.models.ripr.losses import ABSENT, ALPHA, N_SAMPLES, nearest_view, reference_volumes
from lodim.models.ripr.settings import ASSIGNMENT, MOST_DIM, VOTE, Settings
from lodim.models.ripr.views import Axes, axis_values
from lodim.models.ripr.vote import Voters, choose_views, smoothed_targets
from lodim.models.ripr.voting_views import VotingViews, calibrated

INITIAL_SCALE = (0.5, 0.5)


def checked(problem):
    """Check that the settings of a problem agree; return it with method and constraints set."""
    s = problem.settings
    if not isinstance(s.constraints, dict | Constraints | None):
        raise ArgumentError(f"constraints must be a dict, not {s.constraints!r:.80}")
    if s.k is not None and s.k > most_neighbours(problem.batch):
        raise ArgumentError(
            f"k must be at most {most_neighbours(problem.batch)}, the number of other rows with "
            f"a response and a positive weight, not {s.k}"
        )
    problem = _with_method(problem)
    s = problem.settings
    if s.constraints is None:
        return problem
    if problem.batch.order is not None:
        raise ArgumentError("constraints= and order= cannot be combined: leave one of them out")
    constraints = s.constraints
    if not isinstance(constraints, Constraints):
        constraints = Constraints.from_dict(constraints, problem.design, len(problem.batch.index))
    arguments = problem.arguments | {"constraints": ARRAY}  # a fit keeps no arrays and no functions
    return replace(problem, settings=replace(s, constraints=constraints), arguments=arguments)


# Arguments of method="assignment", and their values if omitted
ASSIGNMENT_DEFAULTS = {"lambda_": None, "alpha": ALPHA, "balanced": False}
ASSIGNMENT_DEFAULTS |= {"constraints": None, "share": Settings.share}
ASSIGNMENT_DEFAULTS |= {"tolerance": Settings.tolerance, "smooth": Settings.smooth}


def _with_method(problem):
    """Return a problem with `method` and `axes` set; raise if method="vote" is impossible.

    `method` becomes "assignment" if the response or an argument requires it, else is unchanged."""
    s = problem.settings
    reasons = [
        ("needs a response; use 'assignment'", task_of(problem.family) == CLUSTERS),
        ("is for one response; use 'assignment'", len(parse(problem.design.formula).responses) > 1),
        ("cannot be combined with order", problem.batch.order is not None),
    ]
    given = [
        f"cannot be combined with {k}" for k, v in ASSIGNMENT_DEFAULTS.items() if getattr(s, k) != v
    ]
    given += [words for words, applies in reasons if applies]
    if s.method == VOTE and given:
        raise ArgumentError(f"method='vote' {given[0]}")
    method = ASSIGNMENT if given else s.method
    axes = Axes.from_design(problem.design, problem.standardize)
    return replace(problem, settings=replace(s, method=method, axes=axes))


def largest_lambda(batch, family, settings):
    """Return the largest penalty worth trying: a larger one does not select fewer views."""
    search = ViewSearch.from_batch(batch, family, settings)
    L, lambda_, most = search.losses(), 1.0, 2.0**20
    fewest = len(search.recover(most, L).views)
    while len(search.recover(lambda_, L).views) > fewest and lambda_ < most:
        lambda_ *= 2.0
    return lambda_


def cv_grid(problem, n):
    """Return a dict with the values of lambda_ that cv() compares, and None: no fit to reuse.

    The values are n penalties and None (the model's choice), or the only value that is possible."""
    lambda_ = problem.arguments["lambda_"]
    if lambda_ is not None or problem.settings.method == VOTE:
        return {"lambda_": [lambda_]}, None
    return {"lambda_": [*lambda_grid(problem, "lambda_", n).tolist(), None]}, None


# One response ------------------------------------------------------------------------------------


def fit_stages(batch, family, settings, eval_batch=None):
    """Yield an Ensemble, its log, and its predictions for each penalty in the settings.

    Predictions are linear predictors of the rows of eval_batch; None if eval_batch is None."""
    search = ViewSearch.from_batch(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    penalties = settings.lambda_ if several else (settings.lambda_,)
    L = None
    if several and any(v is not None for v in penalties):
        L = search.losses()
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
    """Return the log of a search as a dict: objectives, convergence, numbers of views and rows."""
    return {
        "objective": assignment.objective,
        "converged": bool(assignment.converged),
        "compared": len(search.views),
        "possible": search.n_possible,
        "sampled": len(search.used),
    }


def vote_ensemble(search):
    """Fit an ensemble of feature sets that vote together; return it and the log of the search."""
    s, y, weight, threads = search.settings, search.y, search.weight, search.threads
    A = axis_values(search.X, s.axes.of)
    refs = np.flatnonzero(np.isfinite(y) & (weight > 0) & ~np.isnan(A).all(axis=1))
    apart = s.axes.category_distance(A[weight > 0], weight[weight > 0])
    voters = Voters.from_rows(A[refs], apart, y[refs], weight[refs], search.n_classes)
    bounds = {"min_dim": s.min_dim or 1, "max_dim": s.max_dim or MOST_DIM, "max_views": s.max_views}
    chosen = choose_views(voters, s.seed, k=s.k, n_views=s.n_views, threads=threads, **bounds)
    common = _common_fields(search, A, chosen.views)
    e = VotingViews(
        **common,
        assignment=np.zeros((len(y), len(chosen.views))),
        k=chosen.k,
        axis_of=s.axes.of,
        factor=1.0,
        category_distance=apart[common["features"]],
    )
    log = {"objective": chosen.losses, "converged": True, "compared": chosen.compared}
    log |= {"possible": chosen.possible, "sampled": chosen.sampled}
    return calibrated(e, threads), log


def build_ensemble(search, views, shares, k, lambda_):
    """Return the Ensemble of the selected feature sets `views`, fitted to a ViewSearch's rows.

    shares : (rows, views) share of each view in a row; k : neighbours; lambda_ : penalty, or NaN"""
    s, B = search.settings, np.zeros((len(search.y), len(views)))
    B[search.used] = shares
    common = _common_fields(search, search.X, views) | {"assignment": B, "k": int(k)}
    common |= {"axis_of": np.arange(search.X.shape[1]), "lambda_": float(lambda_)}
    if search.task == NUMBERS:
        return _assigned(NumberViews(**common), search)
    common["power"] = 1.0 - s.alpha
    if search.task == CLUSTERS:
        return _cluster_views(common, search)
    e = ClassViews(**common, balanced=s.balanced, scale=np.array(INITIAL_SCALE))
    e = _assigned(e, search)
    evidence = e.evidence(threads=search.threads)
    return replace(e, scale=calibrate(evidence, search.y, search.weight))


def _common_fields(search, X, views):
    """Return a dict of the fields that every Ensemble has.

    X : (n, columns), one per feature or axis; views : (views, dims) columns of X, padded by -1"""
    features, n = np.unique(views[views >= 0]), len(X)
    fields = {"features": features, "X": X[:, features], "y": search.y, "weight": search.weight}
    fields["views"] = np.where(views >= 0, np.searchsorted(features, views), -1)
    fields |= {"n_classes": search.n_classes, "n_scores": search.family.n_scores}
    return fields | {"assigned_view": np.full(n, -1)}


def _assigned(e, search):
    """Return Ensemble e with `assigned_view`, the view of each row in leave-one-out prediction."""
    return replace(e, assigned_view=e.query(threads=search.threads).view)


def _cluster_views(common, search):
    """Return ClusterViews fitted to the rows of `search`; common : dict of an Ensemble's fields."""
    views, settings = common["views"], search.settings
    e = ClusterViews(
        **common,
        seed=settings.seed,
        n_samples=N_SAMPLES,
        volumes=reference_volumes(common["X"][search.weight > 0], views),
        centres=np.zeros((0, views.shape[1])),
        centre_view=np.zeros(0, np.int64),
    )
    e = drop_unused_views(_assigned(e, search), search.threads)
    return fit_clusters(e, settings.n_clusters, settings.seed)


def calibrate(evidence, y, weight):
    """Return the factors t (2,) that calibrate class probabilities softmax(t[1] vote - t[0] ratio).

    evidence : (ratio, vote), log distance ratio and log vote share, each (rows, views, classes)"""
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
    """Fit each problem (one response) with views common to all; return (Ensemble, log) of each."""
    searches = [ViewSearch.from_batch(p.batch, p.family, p.settings) for p in problems]
    losses = [each.losses() for each in searches]
    alone = [each.recover(1.0, L) for each, L in zip(searches, losses, strict=True)]
    losses = [L / np.sqrt(r.unit) for L, r in zip(losses, alone, strict=True)]
    L, first, ks = np.concatenate(losses), searches[0], [r.k for r in alone]
    weight = np.concatenate([each.weight[each.used] for each in searches])
    lambda_ = first.settings.lambda_
    if lambda_ is None:
        lambda_, assignment = _select_shared(searches, losses, weight, ks)
    else:
        assignment = assign(L, lambda_, weight=weight, threads=first.threads)
    columns, kept = keep_largest(L, assignment, first.settings, weight)
    shares = np.split(kept.matrix(), np.cumsum([len(each) for each in losses])[:-1])
    views = first.views[columns]
    return [
        (build_ensemble(each, views, part, k, lambda_), search_log(kept, each))
        for each, part, k in zip(searches, shares, ks, strict=True)
    ]


def _select_shared(searches, losses, weight, ks):
    """Choose a penalty for all responses by leave-one-out error; return it and its Assignment.

    The Assignment has the rows of all responses, one response after the other, as has `weight`.
    searches, losses, ks : per response, a ViewSearch, losses (rows, views), number of neighbours"""
    s, threads = searches[0].settings, searches[0].threads
    grid, path = assignment_path(
        np.concatenate(losses), 1.0, s.share, weight=weight, threads=threads
    )
    J = np.unique(np.concatenate([a.selected(s.share) for a in path]))
    each = zip(searches, losses, ks, strict=True)
    by_response = [search.held_out_errors(L, k, search.views, J) for search, L, k in each]

    def errors_of(assignment, columns):
        return np.concatenate([of(assignment, columns) for of in by_response])

    chosen, _ = select_lambda(path, errors_of, s, weight)
    return float(grid[chosen]), path[chosen]
