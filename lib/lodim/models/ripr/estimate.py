"""Finding the views of one or of several responses, and the ensemble that answers in them."""

from dataclasses import replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.fitting.fit import ARRAY
from lodim.formula.formula import parse
from lodim.models.ripr.answers import clusters, knn, local_learners
from lodim.models.ripr.answers.answers import START, ask, calibration_factors, evidence, serving
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, NUMBERS, Ensemble
from lodim.models.ripr.assignment import lambda_path
from lodim.models.ripr.assignment.constrained import Request
from lodim.models.ripr.assignment.recover import keep
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import Training, task_of
from lodim.models.ripr.losses import ALPHA
from lodim.models.ripr.settings import Settings
from lodim.selection.path import lambda_grid

MOST = 2.0**20  # penalty beyond which nothing changes


def fit_stages(batch, family, settings, eval_batch=None):
    """Find views: yields (Ensemble, log, scores of the rows of `eval_batch`) for each penalty.

    Settings have one penalty, or an increasing tuple of them; None leaves the choice to `recover`,
    which has losses of its own then.
    """
    t = Training.of(batch, family, settings)
    several = isinstance(settings.lambda_, tuple)
    L = t.losses() if several else None
    for lambda_ in settings.lambda_ if several else (settings.lambda_,):
        found = t.recover(lambda_, None if lambda_ is None else L)
        used = float("nan") if found.forward else found.lambda_
        e = answering(t, found.views, found.assignment.matrix(), found.k, used)
        yield (
            e,
            log_of(found.assignment, t),
            None if eval_batch is None else held_out(e, t, eval_batch),
        )


def combine(parts):
    """What the one stage has found."""
    return parts[0]


def check(problem):
    """The problem, if ripr can be asked for it; limits by the names of features."""
    s = problem.settings
    if len(parse(problem.design.formula).responses) < 2:
        check_effect([problem])
    if s.learner is not None:
        local_learners.check_kind(s.learner, task_of(problem.family))
    if s.limits is None:
        return problem
    if problem.batch.order is not None:
        raise ArgumentError("limits and order exclude each other")
    limits = Request.of(s.limits, problem.design, len(problem.batch.index))
    arguments = problem.arguments | {"limits": ARRAY}  # a fit keeps no arrays and no functions
    return replace(problem, settings=replace(s, limits=limits), arguments=arguments)


def check_effect(problems):
    """Refuse arguments that change nothing in any of the problems of one call."""
    s, tasks = problems[0].settings, {task_of(p.family) for p in problems}
    for idle, name, usual, words in (
        (tasks != {CLUSTERS}, "n_clusters", None,
         "is for a formula without a response, such as '~ .'"),
        (s.learner is not None, "n_clusters", None,
         "is of k-means, and a learner answers instead: leave one of them out"),
        (tasks == {NUMBERS}, "a", ALPHA, "is for classes and clusters; this response is numeric"),
        (CLASSES not in tasks, "balanced", False, "is for a response with classes"),
        (problems[0].batch.order is None, "smooth", Settings.smooth,
         "is for rows in an order: give order="),
    ):  # fmt: skip
        if idle and getattr(s, name) != usual:
            raise ArgumentError(f"{name} {words}")


def held_out(e, t, eval_batch):
    """Scores of rows that were held out; of rows without a complete view, the null model's."""
    score = ask(e, e.rows(eval_batch), t.threads).score
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


def tried(problem, n):
    """The grid of cv(): penalties, and the method's own choice where none is given."""
    given = problem.arguments["lambda_"]
    if given is not None:
        return {"lambda_": [given]}
    return {"lambda_": [*lambda_grid(problem, "lambda_", n).tolist(), None]}


def log_of(assignment, t):
    """How the assignment ended, and how many views were compared, of how many that there are."""
    return {
        "objective": assignment.objective, "converged": bool(assignment.converged),
        "compared": len(t.views), "possible": t.n_possible,
    }  # fmt: skip


def answering(t, views, part, k, lambda_):
    """The ensemble, with what answers in its views: neighbours, experts or clusters.

    part (m, r) are the shares of the views in the rows used; lambda_ is NaN where no penalty found
    the views.
    """
    s = t.settings
    B = np.zeros((len(t.y), len(views)))
    B[t.used] = part
    features = np.unique(views[views >= 0])
    own = np.where(views >= 0, np.searchsorted(features, views), -1)
    e = Ensemble(
        task=t.task, features=features, views=own, X=t.X[:, features], y=t.y, weight=t.weight, B=B,
        served=np.full(len(t.y), -1), n_classes=t.n_classes, n_scores=t.family.n_scores, k=int(k),
        power=1.0 - s.a, balanced=s.balanced, scale=np.array(START), seed=s.seed,
        centres=np.zeros((0, views.shape[1])), centre_view=np.zeros(0, np.int64),
        lambda_=float(lambda_),
    )  # fmt: skip
    e = replace(e, served=ask(e, threads=t.threads).view)
    e = serving(e, t.threads) if t.task == CLUSTERS else e
    if s.learner is not None:
        return local_learners.fitted(e, s.learner)
    if t.task == CLUSTERS:
        return clusters.clustered(e, s.n_clusters, s.seed)
    if t.task == NUMBERS:
        return e
    known = evidence(e, threads=t.threads)
    return replace(e, scale=calibration_factors(known, t.y, t.weight))


# Several responses --------------------------------------------------------------------------------


def shared(problems):
    """An (Ensemble, log) for each of several problems on the same rows.

    Their loss matrices stand one below the other, each in its own unit, so that the mass of a view
    is that over the rows of all. Without a penalty, it is chosen by the errors of all, as that of
    one response is.
    """
    trainings = [Training.of(p.batch, p.family, p.settings) for p in problems]
    losses = [t.losses() for t in trainings]
    alone = [t.recover(1.0, L) for t, L in zip(trainings, losses, strict=True)]
    losses = [L / np.sqrt(r.unit) for L, r in zip(losses, alone, strict=True)]
    L, first = np.concatenate(losses), trainings[0]
    weight = np.concatenate([t.weight[t.used] for t in trainings])
    lambda_ = first.settings.lambda_
    if lambda_ is None:
        lambda_, found = _chosen(trainings, losses, weight, [r.k for r in alone])
    else:
        found = assign(L, lambda_, weight=weight, threads=first.threads)
    columns, own = keep(L, found, first.control.least, weight, first.control.most)
    parts = np.split(own.matrix(), np.cumsum([len(each) for each in losses])[:-1])
    views = first.views[columns]
    return [
        (answering(t, views, part, r.k, lambda_), log_of(own, t))
        for t, part, r in zip(trainings, parts, alone, strict=True)
    ]


def _chosen(trainings, losses, weight, ks):
    """The penalty of the path that the errors of all responses choose, and its assignment."""
    c, threads = trainings[0].control, trainings[0].threads
    grid = np.array(c.grid)
    path = lambda_path.assignments(np.concatenate(losses), grid, weight=weight, threads=threads)
    J = np.unique(np.concatenate([a.selected(c.least) for a in path]))
    each = [_errors(t, L, k, J) for t, L, k in zip(trainings, losses, ks, strict=True)]
    found = lambda_path.choose(
        path, grid, lambda a, columns: np.concatenate([of(a, columns) for of in each]),
        weight=weight, least=c.least, tolerance=c.tolerance, most=c.most,
    )  # fmt: skip
    return float(grid[found.chosen]), path[found.chosen]


def _errors(t, L, k, J):
    """What `choose` asks for the errors of one response."""
    X, y, views, counts = t.X[t.used], t.target, t.views, t.weight[t.used] > 0
    if t.task == CLASSES:
        ratios = knn.class_ratios(
            X, X, y, views[J], k, n_classes=t.n_classes, balanced=t.settings.balanced,
            counts=counts, leave_out=True, threads=t.threads,
        )  # fmt: skip
        return lambda_path.class_errors(ratios, y, J)
    near = {j: knn.neighbours(X, X, views[j], k, like=y, leave_out=True) for j in J}
    return lambda_path.number_errors(near, y, L, t.weights)
