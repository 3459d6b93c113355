"""Estimation: find the views (sets of features) of one or several responses; build the ensemble."""

from dataclasses import replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.fitting.fit import ARRAY
from lodim.fitting.model import lambda_grid
from lodim.formula.formula import parse
from lodim.models.ripr.answers.assigned_views import (
    ClassViews,
    ClusterViews,
    NumberViews,
    drop_unused_views,
)
from lodim.models.ripr.answers.calibration import INITIAL_SCALE, calibrate
from lodim.models.ripr.answers.clusters import fit_clusters
from lodim.models.ripr.answers.local_learners import check_kind, fit_local_learners
from lodim.models.ripr.assignment.constrained import Constraints
from lodim.models.ripr.assignment.lambda_path import assignment_path, select_lambda
from lodim.models.ripr.assignment.recover import keep_largest
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import ViewSearch, most_neighbours
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS, task_of
from lodim.models.ripr.losses import ALPHA, N_SAMPLES, reference_volumes
from lodim.models.ripr.settings import ASSIGNMENT, MOST_DIM, VOTE, Settings
from lodim.models.ripr.views import Axes, places
from lodim.models.ripr.vote.search import choose_views
from lodim.models.ripr.vote.voters import Voters
from lodim.models.ripr.vote.voting_views import VotingViews, calibrated

MOST_LAMBDA = 2.0**20  # largest penalty that is tried


def checked(problem):
    """Return the fitting problem with method and constraints resolved; raise if these do not fit.

    The method is "vote" (all views, sets of features, predict together) or "assignment" (one view
    predicts each row)."""
    s = problem.settings
    if len(parse(problem.design.formula).responses) < 2:
        refuse_unused_arguments([problem])
    if s.learner is not None:
        check_kind(s.learner, task_of(problem.family))
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
ASSIGNMENT_DEFAULTS = {"lambda_": None, "alpha": ALPHA, "balanced": False, "learner": None}
ASSIGNMENT_DEFAULTS |= {"constraints": None, "share": Settings.share}
ASSIGNMENT_DEFAULTS |= {"tolerance": Settings.tolerance, "smooth": Settings.smooth}


def _with_method(problem):
    """Return the fitting problem with its method, "vote" or "assignment".

    With "vote" all views (sets of features) predict a row together, otherwise one view. The method
    is None if it depends on the penalty."""
    s, axes = problem.settings, None
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
    if method != ASSIGNMENT:
        axes = Axes.from_design(problem.design, problem.standardize)
    return replace(problem, settings=replace(s, method=method, axes=axes))


def refuse_unused_arguments(problems):
    """Raise an ArgumentError for an argument without effect on any of the fitting problems.

    There is one problem per response of the call."""
    s, tasks = problems[0].settings, {task_of(p.family) for p in problems}
    usual = {"n_clusters": None, "alpha": ALPHA, "balanced": False, "smooth": Settings.smooth}
    without_order = problems[0].batch.order is None
    k_means = "is for k-means and cannot be combined with learner=: leave one of them out"
    for unused, name, words in (
        (tasks != {CLUSTERS}, "n_clusters", "needs a formula without a response, such as '~ .'"),
        (s.learner is not None, "n_clusters", k_means),
        (tasks == {NUMBERS}, "alpha", "needs classes or clusters; this response is numeric"),
        (CLASSES not in tasks, "balanced", "needs a response with classes"),
        (without_order, "smooth", "needs order=, a column of times"),
    ):
        if unused and getattr(s, name) != usual[name]:
            raise ArgumentError(f"{name} {words}")


def largest_lambda(batch, family, settings):
    """Return a penalty, in units, beyond which larger ones leave no fewer views (feature sets)."""
    search = ViewSearch.from_batch(batch, family, settings)
    L, lambda_ = search.losses(), 1.0
    fewest = len(search.recover(MOST_LAMBDA, L).views)
    while len(search.recover(lambda_, L).views) > fewest and lambda_ < MOST_LAMBDA:
        lambda_ *= 2.0
    return lambda_


def cv_grid(problem, n):
    """Return the penalties that cv() compares, and None.

    By default they include the choice of the method itself, without a given penalty."""
    lambda_ = problem.arguments["lambda_"]
    if lambda_ is not None or problem.settings.method == VOTE:
        return {"lambda_": [lambda_]}, None
    return {"lambda_": [*lambda_grid(problem, "lambda_", n).tolist(), None]}, None


# One response ------------------------------------------------------------------------------------


def fit_stages(batch, family, settings, eval_batch=None):
    """Find views (sets of features); yield (Ensemble, log, held-out scores) for each penalty.

    The scores are those of the rows of `eval_batch`. Settings have one penalty, or an increasing
    tuple of penalties; with None, the search chooses the penalty and computes its own losses.
    """
    search = ViewSearch.from_batch(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    penalties = settings.lambda_ if several else (settings.lambda_,)
    L = search.losses() if several and any(v is not None for v in penalties) else None
    for lambda_ in penalties:
        if _views_vote(settings, lambda_):
            e, log = vote_ensemble(search)
        else:
            e, log = assignment_ensemble(search, lambda_, L)
        scores = None if eval_batch is None else held_out_scores(e, search, eval_batch)
        yield e, log, scores


def _views_vote(settings, lambda_):
    """Return whether all views (sets of features) vote together, or one view predicts each row.

    If the settings leave it open, views vote unless a penalty lambda_ is given."""
    if settings.method == VOTE and lambda_ is not None:
        raise ArgumentError("lambda_ needs method='assignment', not 'vote'")
    return settings.method != ASSIGNMENT and lambda_ is None


def assignment_ensemble(search, lambda_, L):
    """Return the Ensemble in which one view (set of features) predicts each row, and its log.

    lambda_ : penalty; None to choose it. L : losses (n, d*) of the rows in the views, or None"""
    recovery = search.recover(lambda_, None if lambda_ is None else L)
    used = float("nan") if recovery.forward else recovery.lambda_
    e = build_ensemble(search, recovery.views, recovery.assignment.matrix(), recovery.k, used)
    return e, search_log(recovery.assignment, search)


def held_out_scores(e, search, eval_batch):
    """Return link scores (m, K) of the held-out rows of `eval_batch` by an ensemble e.

    The ensemble has views (sets of features) and training rows. Rows that miss a feature of every
    view get the scores of the null model."""
    score, family = e.query(e.rows(eval_batch), search.threads).score, search.family
    known = np.flatnonzero(np.isfinite(search.y) & (search.weight > 0))
    weight = search.weight[known] / search.weight[known].sum()
    null = family.null_score(search.y[known], weight, np.zeros((len(known), family.n_scores)))
    return np.where(np.isnan(score), null[:1], score)


def search_log(assignment, search):
    """Return the log of a search as a dict: objective, convergence, numbers of views.

    The numbers are those of compared and of possible views (sets of features)."""
    return {
        "objective": assignment.objective,
        "converged": bool(assignment.converged),
        "compared": len(search.views),
        "possible": search.n_possible,
        "sampled": len(search.used),
    }


def vote_ensemble(search):
    """Return the Ensemble of views (sets of features) that vote together, and the search's log."""
    s, y, weight, threads = search.settings, search.y, search.weight, search.threads
    A = places(search.X, s.axes.of)
    refs = np.flatnonzero(np.isfinite(y) & (weight > 0) & ~np.isnan(A).all(axis=1))
    apart = s.axes.category_distance(A[weight > 0], weight[weight > 0])
    rows = A[refs], apart, y[refs], weight[refs]
    known = (search.n_classes,) if search.n_classes else ()
    voters = (Voters.of_classes if known else Voters.of_numbers)(*rows, *known)
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
    """Return the Ensemble of some views (sets of features), one of which predicts each row.

    It has neighbours, local learners (a user's estimator per view) or clusters to predict. shares
    (m, r) are the shares of the views in the m rows of the search; lambda_ is NaN if no penalty
    found the views.
    """
    t, s = search, search.settings
    B = np.zeros((len(t.y), len(views)))
    B[t.used] = shares
    common = _common_fields(t, t.X, views) | {"assignment": B, "k": int(k)}
    common |= {"axis_of": np.arange(t.X.shape[1]), "lambda_": float(lambda_)}
    return _ENSEMBLES[t.task](common, t, s)


def _common_fields(search, X, views):
    """Return the fields that all kinds of ensembles have, as a dict.

    views (r, D) are sets of columns of X (n, q)."""
    features, n = np.unique(views[views >= 0]), len(X)
    fields = {"features": features, "X": X[:, features], "y": search.y, "weight": search.weight}
    fields["views"] = np.where(views >= 0, np.searchsorted(features, views), -1)
    fields |= {"n_classes": search.n_classes, "n_scores": search.family.n_scores}
    return fields | {"assigned_view": np.full(n, -1)}


def _assigned(e, t):
    """Return the ensemble e with `assigned_view` filled in: the view that predicts each row.

    A view is a set of features. A row is not its own neighbour. t is the number of threads."""
    return replace(e, assigned_view=e.query(threads=t.threads).view)


def _class_views(common, t, s):
    """Return the ensemble of views (sets of features) for a response of classes.

    It is calibrated to give probabilities, or has local learners (a user's estimator per view)."""
    own = {"power": 1.0 - s.alpha, "balanced": s.balanced, "scale": np.array(INITIAL_SCALE)}
    e = _assigned(ClassViews(**common, **own), t)
    if s.learner is not None:
        return fit_local_learners(e, s.learner)
    return replace(e, scale=calibrate(e.evidence(threads=t.threads), t.y, t.weight))


def _number_views(common, t, s):
    """Return the ensemble of views (sets of features) for a numeric response."""
    e = _assigned(NumberViews(**common), t)
    return e if s.learner is None else fit_local_learners(e, s.learner)


def _cluster_views(common, t, s):
    """Return the ensemble of views (sets of features) without a response, with clusters in each."""
    views = common["views"]
    e = ClusterViews(
        **common,
        power=1.0 - s.alpha,
        seed=s.seed,
        n_samples=N_SAMPLES,
        volumes=reference_volumes(common["X"][t.weight > 0], views),
        centres=np.zeros((0, views.shape[1])),
        centre_view=np.zeros(0, np.int64),
    )
    e = drop_unused_views(_assigned(e, t), t.threads)
    return (
        fit_clusters(e, s.n_clusters, s.seed)
        if s.learner is None
        else fit_local_learners(e, s.learner)
    )


_ENSEMBLES = {CLASSES: _class_views, NUMBERS: _number_views, CLUSTERS: _cluster_views}


# Several responses (Fiterau 2014, Sect. 4.1) -----------------------------------------------------


def fit_shared(problems):
    """Return (Ensemble, log) for each of several responses on the same rows, with shared views.

    A view is a set of features. The responses' loss matrices (rows by views) are stacked, each in
    its own unit, so that a view's share covers the rows of all responses. If no penalty is given,
    it is chosen by the errors of all responses.
    """
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
    columns, kept = keep_largest(L, assignment, first.control, weight)
    shares = np.split(kept.matrix(), np.cumsum([len(each) for each in losses])[:-1])
    views = first.views[columns]
    return [
        (build_ensemble(each, views, part, k, lambda_), search_log(kept, each))
        for each, part, k in zip(searches, shares, ks, strict=True)
    ]


def _select_shared(searches, losses, weight, ks):
    """Return the penalty chosen by all responses' errors, and its assignment of rows to views.

    A view is a set of features.

    searches, losses, ks : search, loss matrix (rows by views) and number of neighbours per response
    weight : weights of the stacked rows of all responses"""
    c, threads = searches[0].control, searches[0].threads
    grid, path = assignment_path(
        np.concatenate(losses), 1.0, c.least, weight=weight, threads=threads
    )
    J = np.unique(np.concatenate([a.selected(c.least) for a in path]))
    each = zip(searches, losses, ks, strict=True)
    by_response = [search.data.held_out_errors(L, k, J) for search, L, k in each]

    def errors_of(assignment, columns):
        return np.concatenate([of(assignment, columns) for of in by_response])

    chosen = select_lambda(grid, path, errors_of, c, weight).chosen
    return float(grid[chosen]), path[chosen]
