"""From rows to a view: the search for directions, and the rule in their coordinates."""

from dataclasses import replace

import numpy as np

from lodim import tiles
from lodim.engine import available_threads
from lodim.errors import DataError
from lodim.models.melm import density
from lodim.models.melm.classifiers import Estimator, Neighbours, priors, sample
from lodim.models.melm.manifold import Plan, find
from lodim.models.melm.rule import Background, Rows, Rule
from lodim.models.melm.view import View, moments, orient, project


def grow(batch, family, settings, watch=None):
    """The one stage of melm: (View, log, link scores of the batch `watch`)."""
    view, log = search(batch, settings, max(1, len_classes(family)))
    score = None
    if watch is not None:
        score = view.rule.scores(project(view.V, watch.X, watch.n))
    yield view, log, score


def collect(parts):
    """The only part."""
    return parts[0]


def len_classes(family):
    """Number of classes of a family, 0 without a response."""
    return {"none": 0, "binomial": 2}.get(family.name, family.n_scores)


def search(batch, settings, n_classes):
    """The view in which classes diverge most, or of most or least entropy, and its rule; the log.

    In the log are the ends of all starts, the best first.
    """
    i = batch.counted
    X = np.asarray(tiles.rows(batch.X, i), np.float64)
    weight = np.ones(len(i)) if batch.weights is None else batch.weights[i]
    code = np.zeros(len(i), np.int64) if batch.y is None else batch.y[i].astype(np.int64)
    present, code = np.unique(code, return_inverse=True)
    found = find(X, code, weight, _plan(settings, len(present)))
    if found.rank < settings.k:
        raise DataError(
            f"rows vary within classes in {found.rank} directions only, too few for k={settings.k}"
        )
    V = found.V if n_classes == 1 else orient(found.V, X, code, weight)
    view = _view(batch, V, X, weight, np.bincount(code, weight), found)
    Z = project(V, batch.X, batch.n)[i]
    rule = learn_rule(settings, Z, code, weight, present, n_classes)
    return replace(view, rule=rule), _log(found, settings.entropy == "min" and n_classes == 1)


def _plan(settings, n_present):
    s = settings
    return Plan(
        k=s.k, gamma=s.gamma or 1.0, covariance=s.covariance, penalty=s.penalty and n_present > 1,
        average=s.divergence == "mean", smallest=s.entropy == "min", n_starts=s.n_starts,
        seed=s.seed, max_iter=s.max_iter, tol=s.tol, threads=s.threads or available_threads(),
    )  # fmt: skip


def _view(batch, V, X, weight, size, found):
    """The View of directions V, its rule not learnt yet."""
    Z, share = project(V, batch.X, batch.n)[batch.counted], weight / weight.sum()
    deviation, correlation = moments(X, Z, share)
    # Potentials are of densities: they change with the unit of the coordinates.
    unit = np.linalg.slogdet(found.V.T @ V)[1]
    return View(
        V=V, deviation=deviation, correlation=correlation,
        spread=np.sqrt(share @ (Z - share @ Z) ** 2), low=Z.min(axis=0), high=Z.max(axis=0),
        potential=found.potential - unit, size=size, rank=int(found.rank),
        separates=bool(found.separates), total=float((share @ (X - share @ X) ** 2).sum()),
        rule=None,
    )  # fmt: skip


def _log(found, smallest):
    """The ends of all starts, the best first."""
    order = np.argsort(found.divergences if smallest else -found.divergences, kind="stable")
    return {
        "start": [found.starts[j] for j in order], "divergence": found.divergences[order],
        "n_iter": found.n_iter[order], "converged": found.converged[order],
    }  # fmt: skip


def learn_rule(settings, Z, code, weight, present, n_classes):
    """The rule that classifies in the coordinates Z (n, k)."""
    keep = sample(code, settings.reference_rows, settings.seed)
    rows = Rows(Z[keep], code[keep], weight[keep])
    made = density.learn(Z, code, weight, **density_options(settings))
    return Rule(
        rows, made, Background.learn(Z, weight), _other(settings, rows, Z, code, weight), 1.0,
        present, n_classes,
    )  # fmt: skip


def _other(settings, rows, Z, code, weight):
    """What classifies instead of the densities."""
    size = np.bincount(code, weight)
    if settings.classifier == "knn":
        prior = priors(size, settings.prior)
        return Neighbours.learn(rows.Z, rows.code, rows.weight, settings.n_neighbours, prior)
    if settings.own_classifier:
        return None
    return Estimator.learn(settings.classifier, Z, code, weight, len(size))


def density_options(settings):
    """What `density` is to be told."""
    return {
        "gamma": settings.gamma or 1.0, "covariance": settings.covariance,
        "equal": settings.prior == "equal",
    }  # fmt: skip
