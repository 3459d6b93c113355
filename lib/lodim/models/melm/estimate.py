"""From rows to a view: the search for directions, and the rule in their coordinates."""

from dataclasses import replace

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads
from lodim.errors import ArgumentError, DataError
from lodim.models.melm.classify.density import even, left_out
from lodim.models.melm.classify.neighbours import Nearest
from lodim.models.melm.classify.rule import (
    JUDGED,
    balanced_accuracy,
    density_options,
    drawn,
    learn_rule,
)
from lodim.models.melm.search import whitening as basis
from lodim.models.melm.search.divergence import kernel_widths, overlaps
from lodim.models.melm.search.sample import Sample
from lodim.models.melm.search.search import Plan, find
from lodim.models.melm.view import View, moments, orient, project
from lodim.selection import folds as fold
from lodim.selection.cv import quick_splits

ROUNDING = 1e-20  # of the variance: what is less within classes is rounding
PARTS = 5  # of a single fold held out, each calibrated by the others


def fit_stages(batch, family, settings, eval_batch=None):
    """The one stage of melm: (View, log, link scores of the batch `eval_batch`).

    To be watched is to be a fold: one without a view has the scores of the null model.
    """
    if eval_batch is not None:
        yield None, None, fold_scores(batch, eval_batch, family, settings)
    yield *search(batch, settings, family), None


def fold_scores(train, test, family, settings):
    """Link scores of the rows of `test` by a view of the rows of `train`."""
    try:
        view, _ = search(train, settings, family)
    except DataError:
        null = family.null_score(train.y, train.weight, np.zeros((train.n, family.n_scores)))
        return np.repeat(null[:1], test.n, axis=0)
    return view.rule.scores(project(view.V, test.X, test.n), settings.threads or 1)


def combine(parts):
    """The only part."""
    return parts[0]


def count_classes(family):
    """Number of classes of a family; one without a response."""
    return {"none": 1, "binomial": 2}.get(family.name, family.n_scores)


def search(batch, settings, family):
    """The view in which classes diverge most, or of most or least entropy, and its rule; the log.

    In the log are the ends of all starts, the best first.
    """
    n_classes, i = count_classes(family), batch.positive_weight
    if n_classes == 1 and settings.gamma is not None:
        raise ArgumentError("gamma is for classes, and the formula has no response")
    X = np.asarray(tiles.rows(batch.X, i), np.float64)
    weight = np.ones(len(i)) if batch.weights is None else batch.weights[i]
    code = np.zeros(len(i), np.int64) if batch.y is None else batch.y[i].astype(np.int64)
    present, code = np.unique(code, return_inverse=True)
    if n_classes > 1 and len(present) < 2:
        raise DataError("a single class has rows that count")
    within = _checked_rank(X, code, weight, settings.k)
    found = find(X, code, weight, _plan(settings, len(present)))
    V = found.V if n_classes == 1 else orient(found.V, X, code, weight)
    Z = project(V, batch.X, batch.n)[i]
    view = _view(V, X, Z, weight, np.bincount(code, weight), found)
    if n_classes > 1:
        sample = Sample.of(X, code, weight, within, settings.covariance)
        width = kernel_widths(sample, within.of_directions(V), settings.gamma)
        view = replace(view, overlap=overlaps(Z, code, weight, width, view.potential))
    rule = learn_rule(settings, Z, code, weight, present, n_classes, family.n_scores)
    return replace(view, rule=rule), _log(found, settings.entropy == "min" and n_classes == 1)


def _checked_rank(X, code, weight, k):
    """The basis within classes; raises where a density has no width along one of k directions."""
    within = basis.learn(X, code, weight, whiten=False)
    share = weight / weight.sum()
    if (within.scale**2).sum() <= ROUNDING * (share @ (X - share @ X) ** 2).sum():
        raise DataError(
            "no feature varies within classes: each gives the class away, and a density of it has "
            "no width"
        )
    if within.rank < k:
        raise DataError(
            f"rows vary within classes in {within.rank} directions only, too few for k={k}"
        )
    return within


def _plan(settings, n_present):
    s = settings
    return Plan(
        k=s.k, gamma=s.gamma or 1.0, covariance=s.covariance, penalty=s.penalty and n_present > 1,
        average=s.divergence == "mean", smallest=s.entropy == "min", n_starts=s.n_starts,
        seed=s.seed, max_iter=s.max_iter, tol=s.tol, threads=s.threads or available_threads(),
        engine=s.engine,
    )  # fmt: skip


def _view(V, X, Z, weight, size, found):
    """The View of directions V, what is of its densities not known yet."""
    share = weight / weight.sum()
    deviation, correlation = moments(X, Z, share)
    # Potentials are of densities: they change with the unit of the coordinates.
    unit = np.linalg.slogdet(found.V.T @ V)[1]
    return View(
        V=V, deviation=deviation, correlation=correlation,
        spread=np.sqrt(share @ (Z - share @ Z) ** 2), potential=found.potential - unit,
        overlap=np.zeros_like(found.potential), size=size, rank=int(found.rank),
        separates=bool(found.separates), total=float((share @ (X - share @ X) ** 2).sum()),
        drawn=0 if found.rows == len(X) else int(found.rows), error=float(found.error),
        converged=found.settled, rule=None,
    )  # fmt: skip


def _log(found, smallest):
    """The ends of all starts, the best first."""
    order = np.argsort(found.divergences if smallest else -found.divergences, kind="stable")
    return {
        "start": [found.starts[j] for j in order], "divergence": found.divergences[order],
        "n_iter": found.n_iter[order], "converged": found.converged[order],
    }  # fmt: skip


def training(problem, view):
    """Deviance and balanced accuracy of training rows, of 10,000 at most.

    Each is left out of the densities, or of the neighbours, that it is judged by; not of an
    estimator of the user's.
    """
    rows, score = _left_out(problem, view)
    y = view.rule.present[rows.code].astype(float)
    weight = rows.share / rows.share.sum()
    return {
        "deviance": float(weight @ problem.family.deviance(y, score)),
        "balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _left_out(problem, view):
    """Rows, and their link scores (m, K)."""
    settings, rule, batch = problem.settings, view.rule, problem.batch
    threads, i = settings.threads or available_threads(), batch.positive_weight
    if isinstance(rule.other, Nearest):
        return rule.rows, rule.link(rule.other.left_out(rule.rows.Z))
    code = np.searchsorted(rule.present, batch.y[i].astype(np.int64))
    weight = np.ones(len(i)) if batch.weights is None else batch.weights[i]
    rows = drawn(project(view.V, batch.X, batch.n)[i], code, weight, JUDGED, settings.seed)
    if rule.other is not None:
        return rows, rule.scores(rows.Z, threads)
    options = density_options(settings)
    return rows, rule.link(left_out(rows, rule.background, rule.width, options, threads))


def held_out(problem, view):
    """The rule of a view calibrated on rows held out, and how well these are classified.

    Each fold is judged with the calibration of the others. They are not the folds that gamma was
    chosen on: there, luck has chosen as well.
    """
    family, other = problem.family, replace(problem.settings, seed=problem.settings.seed + 1)
    splits = quick_splits(replace(problem, settings=other))
    score = np.concatenate([fold_scores(*pair, family, problem.settings) for pair in splits])
    tests = [test for _, test in splits]
    y = np.concatenate([test.y for test in tests])
    weight = np.concatenate([np.ones(t.n) if t.weights is None else t.weights for t in tests])
    equal = problem.settings.prior == "equal"
    # What class shares are to be is the prior's to say: with equal ones rows of rare classes count.
    judged = even(y.astype(int), weight, equal)

    def calibrated(at):
        return view.rule.calibrated(family, y[at], judged[at], score[at])

    part, factor = _parts(tests, problem), np.empty((len(y), 1))
    for k in range(part.max() + 1):
        factor[part == k] = calibrated(part != k).sharpness
    weight = even(y.astype(int), weight, False)
    return calibrated(slice(None)), {
        "held_deviance": float(weight @ family.deviance(y, factor * score)),
        "held_balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _parts(tests, problem):
    """Part of each row held out: its fold, or of a single fold one of PARTS."""
    if len(tests) > 1:
        return np.repeat(np.arange(len(tests)), [test.n for test in tests])
    return fold.assign(tests[0], PARTS, problem.design.levels, problem.settings.seed)
