"""Views that several responses share (Fiterau 2014, Sect. 4.1)."""

import numpy as np

from lodim.models.ripr.answers import knn as query
from lodim.models.ripr.answers.ensemble import CLASSES
from lodim.models.ripr.assignment import lambda_path as choose
from lodim.models.ripr.assignment.recover import keep
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.assignment.view_search import Training
from lodim.models.ripr.estimate import answering, log_of


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
    path = choose.assignments(np.concatenate(losses), grid, weight=weight, threads=threads)
    J = np.unique(np.concatenate([a.selected(c.least) for a in path]))
    each = [_errors(t, L, k, J) for t, L, k in zip(trainings, losses, ks, strict=True)]
    found = choose.choose(
        path, grid, lambda a, columns: np.concatenate([of(a, columns) for of in each]),
        weight=weight, least=c.least, tolerance=c.tolerance, most=c.most,
    )  # fmt: skip
    return float(grid[found.chosen]), path[found.chosen]


def _errors(t, L, k, J):
    """What `choose` asks for the errors of one response."""
    X, y, views, counts = t.X[t.used], t.target, t.views, t.weight[t.used] > 0
    if t.task == CLASSES:
        ratios = query.class_ratios(
            X, X, y, views[J], k, n_classes=t.n_classes, balanced=t.settings.balanced,
            counts=counts, leave_out=True, threads=t.threads,
        )  # fmt: skip
        return choose.class_errors(ratios, y, J)
    near = {j: query.neighbours(X, X, views[j], k, like=y, leave_out=True) for j in J}
    return choose.number_errors(near, y, L, t.weights)
