"""Estimates: the views of one or of several responses, and the ensemble that answers in them."""

from dataclasses import replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.fitting.fit import ARRAY
from lodim.formula.formula import parse
from lodim.models.ripr.answers.answers import (
    INITIAL_SCALE,
    calibrate,
    drop_unused_views,
    evidence,
    query,
)
from lodim.models.ripr.answers.clusters import fit_clusters
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, NUMBERS, Ensemble, task_of
from lodim.models.ripr.answers.local_learners import check_kind, fit_local_learners
from lodim.models.ripr.assignment.constrained import Limits
from lodim.models.ripr.assignment.lambda_path import assignment_path, select_lambda
from lodim.models.ripr.assignment.recover import keep_largest
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import ViewSearch, most_neighbours
from lodim.models.ripr.losses import ALPHA, N_SAMPLES, reference_volumes
from lodim.models.ripr.settings import MOST_DIM, RATIO, VOTE, Settings
from lodim.models.ripr.vote.answers import calibrated
from lodim.models.ripr.vote.axes import Axes, places
from lodim.models.ripr.vote.neighbours import Voters
from lodim.models.ripr.vote.search import choose_views
from lodim.selection.path import lambda_grid

MOST_LAMBDA = 2.0**20  # beyond which nothing changes


def validate(problem):
    """The problem, if ripr can be asked for it; limits by the names of features."""
    s = problem.settings
    if len(parse(problem.design.formula).responses) < 2:
        refuse_unused_arguments([problem])
    if s.learner is not None:
        check_kind(s.learner, task_of(problem.family))
    if s.k is not None and s.k > most_neighbours(problem.batch):
        raise ArgumentError(
            f"k must be at most {most_neighbours(problem.batch)}, the other rows that count and "
            f"have a response, not {s.k}"
        )
    problem = _with_serve(problem)
    if s.limits is None:
        return problem
    if problem.batch.order is not None:
        raise ArgumentError("limits and order exclude each other")
    limits = s.limits
    if not isinstance(limits, Limits):
        limits = Limits.from_dict(limits, problem.design, len(problem.batch.index))
    arguments = problem.arguments | {"limits": ARRAY}  # a fit keeps no arrays and no functions
    return replace(problem, settings=replace(s, limits=limits), arguments=arguments)


RATIO_DEFAULTS = {  # arguments of serve="ratio", and their values where nothing is said
    "lambda_": None, "a": ALPHA, "balanced": False, "learner": None, "limits": None,
    "share": Settings.share, "tolerance": Settings.tolerance, "smooth": Settings.smooth,
}  # fmt: skip


def _with_serve(problem):
    """The problem with the axes of its views, where they may vote."""
    s, order = problem.settings, problem.batch.order is not None
    if s.serve == VOTE and task_of(problem.family) == CLUSTERS:
        raise ArgumentError("serve='vote' needs a response; without one ratios serve")
    if s.serve == VOTE and len(parse(problem.design.formula).responses) > 1:
        raise ArgumentError("serve='vote' is for one response; several share views by ratios")
    if s.serve == VOTE:
        _refuse_ratios([*_ratio_settings(s), *(["order"] if order else [])])
    if order or task_of(problem.family) == CLUSTERS:
        return problem
    return replace(
        problem, settings=replace(s, axes=Axes.from_design(problem.design, problem.standardize))
    )


def _ratio_settings(settings):
    """Names of the settings that only ratios have and that say something."""
    return [name for name, usual in RATIO_DEFAULTS.items() if getattr(settings, name) != usual]


def _refuse_ratios(names):
    """Raise where some settings say what only ratios have, and views are to vote."""
    if names:
        raise ArgumentError(f"{names[0]} is for serve='ratio', and serve is 'vote'")


def views_vote(settings, lambda_):
    """Whether views vote at a penalty: where nothing was asked for that only ratios have."""
    of_ratios = _ratio_settings(replace(settings, lambda_=lambda_))
    if settings.serve == VOTE:
        _refuse_ratios(of_ratios)
    return settings.axes is not None and settings.serve != RATIO and not of_ratios


def refuse_unused_arguments(problems):
    """Raise an ArgumentError for arguments that change nothing in any problem of one call."""
    s, tasks = problems[0].settings, {task_of(p.family) for p in problems}
    usual = {"n_clusters": None, "a": ALPHA, "balanced": False, "smooth": Settings.smooth}
    without_order = problems[0].batch.order is None
    k_means = "is of k-means, and a learner answers instead: leave one of them out"
    for unused, name, words in (
        (tasks != {CLUSTERS}, "n_clusters", "is for a formula without a response, such as '~ .'"),
        (s.learner is not None, "n_clusters", k_means),
        (tasks == {NUMBERS}, "a", "is for classes and clusters; this response is numeric"),
        (CLASSES not in tasks, "balanced", "is for a response with classes"),
        (without_order, "smooth", "is for rows in an order: give order="),
    ):
        if unused and getattr(s, name) != usual[name]:
            raise ArgumentError(f"{name} {words}")


def largest_lambda(batch, family, settings):
    """A penalty from which no larger one leaves fewer views, in units."""
    search = ViewSearch.from_batch(batch, family, settings)
    L, lambda_ = search.losses(), 1.0
    fewest = len(search.recover(MOST_LAMBDA, L).views)
    while len(search.recover(lambda_, L).views) > fewest and lambda_ < MOST_LAMBDA:
        lambda_ *= 2.0
    return lambda_


def cv_grid(problem, n):
    """The grid of cv(): penalties, and the method's own choice where none is given; and None."""
    lambda_ = problem.arguments["lambda_"]
    if lambda_ is not None or problem.settings.serve == VOTE:
        return {"lambda_": [lambda_]}, None
    return {"lambda_": [*lambda_grid(problem, "lambda_", n).tolist(), None]}, None


# One response ------------------------------------------------------------------------------------


def fit_stages(batch, family, settings, eval_batch=None):
    """Find views: yields (Ensemble, log, scores of the rows of `eval_batch`) for each penalty.

    Settings have one penalty, or an increasing tuple of them; None leaves the choice to `recover`,
    which has losses of its own then.
    """
    search = ViewSearch.from_batch(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    penalties = settings.lambda_ if several else (settings.lambda_,)
    L = search.losses() if several and any(v is not None for v in penalties) else None
    for lambda_ in penalties:
        if views_vote(settings, lambda_):
            e, log = vote_ensemble(search)
        else:
            e, log = _ratio_ensemble(search, lambda_, L)
        scores = None if eval_batch is None else held_out_scores(e, search, eval_batch)
        yield e, log, scores


def _ratio_ensemble(search, lambda_, L):
    """The Ensemble of views that ratios serve, at a penalty with losses L or of its own choice."""
    recovery = search.recover(lambda_, None if lambda_ is None else L)
    used = float("nan") if recovery.forward else recovery.lambda_
    e = build_ensemble(search, recovery.views, recovery.assignment.matrix(), recovery.k, used)
    return e, search_log(recovery.assignment, search)


def combine(parts):
    """The ensemble and the log of the only stage."""
    return parts[0]


def held_out_scores(e, search, eval_batch):
    """Link scores (m, K) of rows held out; of rows without a complete view, the null model's."""
    score, family = query(e, e.rows(eval_batch), search.threads).score, search.family
    known = np.flatnonzero(np.isfinite(search.y) & (search.weight > 0))
    weight = search.weight[known] / search.weight[known].sum()
    null = family.null_score(search.y[known], weight, np.zeros((len(known), family.n_scores)))
    return np.where(np.isnan(score), null[:1], score)


def search_log(assignment, search):
    """How the assignment ended, and how many views were compared, of how many that there are."""
    return {
        "objective": assignment.objective,
        "converged": bool(assignment.converged),
        "compared": len(search.views),
        "possible": search.n_possible,
        "sampled": len(search.used),
    }


def vote_ensemble(search):
    """The Ensemble of views that vote, and the log of their choice."""
    s, y, weight, threads = search.settings, search.y, search.weight, search.threads
    A = places(search.X, s.axes.of)
    refs = np.flatnonzero(np.isfinite(y) & (weight > 0) & ~np.isnan(A).all(axis=1))
    mismatch = s.axes.mismatch(A[weight > 0], weight[weight > 0])
    rows = A[refs], mismatch, y[refs], weight[refs]
    known = (search.n_classes,) if search.n_classes else ()
    voters = (Voters.of_classes if known else Voters.of_numbers)(*rows, *known)
    bounds = {"min_dim": s.min_dim or 1, "max_dim": s.max_dim or MOST_DIM, "max_views": s.max_views}
    chosen = choose_views(voters, s.seed, k=s.k, n_views=s.n_views, threads=threads, **bounds)
    axes = np.unique(chosen.views[chosen.views >= 0])
    e = Ensemble(
        task=search.task,
        features=axes,
        views=np.where(chosen.views >= 0, np.searchsorted(axes, chosen.views), -1),
        X=A[:, axes],
        y=y,
        weight=weight,
        B=np.zeros((len(y), len(chosen.views))),
        served=np.full(len(y), -1),
        n_classes=search.n_classes,
        n_scores=search.family.n_scores,
        k=chosen.k,
        power=1.0 - s.a,
        balanced=s.balanced,
        scale=np.array([1.0, 0.0]),
        seed=s.seed,
        n_samples=N_SAMPLES,
        volumes=np.ones(len(chosen.views)),
        centres=np.zeros((0, chosen.views.shape[1])),
        centre_view=np.zeros(0, np.int64),
        lambda_=float("nan"),
        serve=VOTE,
        axis_of=s.axes.of,
        mismatch=mismatch[axes],
    )
    log = {"objective": chosen.losses, "converged": True, "compared": chosen.compared}
    log |= {"possible": chosen.possible, "sampled": chosen.sampled}
    return calibrated(e, threads), log


def build_ensemble(search, views, shares, k, lambda_):
    """The Ensemble of some views: neighbours, local learners or clusters answer in them.

    shares (m, r) are those of the views in the rows used; lambda_ is NaN where no penalty found
    the views.
    """
    t, s = search, search.settings
    B = np.zeros((len(t.y), len(views)))
    B[t.used] = shares
    features, volumes = np.unique(views[views >= 0]), np.ones(len(views))
    if t.task == CLUSTERS:
        volumes = reference_volumes(t.X[t.weight > 0], views)
    e = Ensemble(
        task=t.task,
        features=features,
        views=np.where(views >= 0, np.searchsorted(features, views), -1),
        X=t.X[:, features],
        y=t.y,
        weight=t.weight,
        B=B,
        served=np.full(len(t.y), -1),
        n_classes=t.n_classes,
        n_scores=t.family.n_scores,
        k=int(k),
        power=1.0 - s.a,
        balanced=s.balanced,
        scale=np.array(INITIAL_SCALE),
        seed=s.seed,
        n_samples=N_SAMPLES,
        volumes=volumes,
        centres=np.zeros((0, views.shape[1])),
        centre_view=np.zeros(0, np.int64),
        lambda_=float(lambda_),
        serve=RATIO,
        axis_of=np.arange(t.X.shape[1]),
        mismatch=np.zeros(len(features)),
    )
    return _with_answers(replace(e, served=query(e, threads=t.threads).view), t, s)


def _with_answers(e, t, s):
    """The ensemble, with what answers in its views beside neighbours, and its calibration."""
    e = drop_unused_views(e, t.threads) if t.task == CLUSTERS else e
    if s.learner is not None:
        return fit_local_learners(e, s.learner)
    if t.task == CLUSTERS:
        return fit_clusters(e, s.n_clusters, s.seed)
    if t.task == NUMBERS:
        return e
    return replace(e, scale=calibrate(evidence(e, threads=t.threads), t.y, t.weight))


# Several responses (Fiterau 2014, Sect. 4.1) -----------------------------------------------------


def fit_shared(problems):
    """An (Ensemble, log) for each of several problems on the same rows, which share their views.

    Their loss matrices stand one below the other, each in its own unit, so that the mass of a view
    is that over the rows of all. Without a penalty, it is chosen by the errors of all, as that of
    one response is.
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
    """The penalty of the path that the errors of all responses choose, and its assignment."""
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
