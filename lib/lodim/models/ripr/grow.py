"""Finding the views of one or of several responses, and the ensemble that answers in them."""

from dataclasses import replace

import numpy as np

from lodim import tiles
from lodim.errors import ArgumentError
from lodim.fit import ARRAY
from lodim.models.ripr import calibrate, clusters, experts
from lodim.models.ripr.answers import ask, evidence
from lodim.models.ripr.ensemble import CLUSTERS, NUMBERS, Ensemble
from lodim.models.ripr.idle import serving
from lodim.models.ripr.limits import Request
from lodim.models.ripr.training import Training

MOST = 2.0**20  # penalty beyond which nothing changes


def grow(batch, family, settings, watch=None):
    """Find views: yields (Ensemble, log, scores of the rows of `watch`) for each penalty.

    Settings have one penalty, or an increasing tuple of them.
    """
    t = Training.of(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    L = t.losses() if several else None
    for lambda_ in settings.lambda_ if several else (settings.lambda_,):
        found = t.recover(lambda_, L)
        e = answering(t, found.views, found.assignment.matrix(), found.k, found.lambda_)
        yield e, log_of(found.assignment), None if watch is None else held_out(e, t, watch)


def collect(parts):
    """What the one stage has found."""
    return parts[0]


def check(problem):
    """The problem, if ripr can be asked for it; limits by the names of features."""
    s = problem.settings
    if s.n_clusters is not None and problem.family.name != "none":
        raise ArgumentError("n_clusters is for a formula without a response, such as '~ .'")
    if s.limits is None:
        return problem
    if problem.batch.order is not None:
        raise ArgumentError("limits and order exclude each other")
    limits = Request.of(s.limits, problem.design.names, len(problem.batch.index))
    arguments = problem.arguments | {"limits": ARRAY}  # a fit keeps no arrays and no functions
    return replace(problem, settings=replace(s, limits=limits), arguments=arguments)


def held_out(e, t, watch):
    """Scores of rows that were held out; of rows without a complete view, the null model's."""
    X = tiles.unpack(watch.X, watch.n).astype(np.float64)
    score = ask(e, X[:, e.features], t.threads).score
    known = np.flatnonzero(np.isfinite(t.y) & (t.weight > 0))
    weight = t.weight[known] / t.weight[known].sum()
    null = t.family.null_score(t.y[known], weight, np.zeros((len(known), t.family.n_scores)))
    return np.where(np.isnan(score), null[:1], score)


def largest(batch, family, settings):
    """A penalty from which no larger one leaves fewer views, in units."""
    t = Training.of(batch, family, settings)
    L, lambda_ = t.losses(), 1.0
    fewest = len(t.recover(MOST, L).views)
    while len(t.recover(lambda_, L).views) > fewest and lambda_ < MOST:
        lambda_ *= 2.0
    return lambda_


def log_of(assignment):
    return {"objective": assignment.objective, "converged": bool(assignment.converged)}


def answering(t, views, part, k, lambda_):
    """The ensemble, with what answers in its views: neighbours, experts or clusters.

    part (m, r) are the shares of the views in the rows used.
    """
    s = t.settings
    B = np.zeros((len(t.y), len(views)))
    B[t.used] = part
    features = np.unique(views[views >= 0])
    own = np.where(views >= 0, np.searchsorted(features, views), -1)
    e = Ensemble(
        task=t.task, features=features, views=own, X=t.X[:, features], y=t.y, weight=t.weight, B=B,
        served=np.full(len(t.y), -1), n_classes=t.n_classes, k=int(k), power=1.0 - s.a,
        balanced=s.balanced, scale=np.array(calibrate.START), seed=s.seed,
        centres=np.zeros((0, views.shape[1])), centre_view=np.zeros(0, np.int64),
        lambda_=float(lambda_),
    )  # fmt: skip
    e = replace(e, served=ask(e, threads=t.threads).view)
    e = serving(e, t.threads) if t.task == CLUSTERS else e
    if s.learner is not None:
        return experts.fitted(e, s.learner)
    if t.task == CLUSTERS:
        return clusters.clustered(e, s.n_clusters, s.seed)
    if t.task == NUMBERS:
        return e
    known = evidence(e, threads=t.threads)
    return replace(e, scale=calibrate.factors(known, t.y, t.weight))
