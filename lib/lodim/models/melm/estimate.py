"""From rows to a view: search of directions, rule in their coordinates, and its calibration."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError, DataError
from lodim.models.melm.classify.density import evaluation_weights, leave_one_out_scores
from lodim.models.melm.classify.rule import (
    JUDGED,
    Rows,
    balanced_accuracy,
    density_options,
    fit_rule,
    losses_by_temperature,
)
from lodim.models.melm.search.divergence import kernel_widths, overlaps
from lodim.models.melm.search.sample import Sample
from lodim.models.melm.search.search import Plan, search_gammas, steps
from lodim.models.melm.search.whitening import CONSTANT, SHRUNK, Basis, center_by_class
from lodim.models.melm.settings import validate
from lodim.models.melm.view import View, correlations, orient, project
from lodim.selection import folds
from lodim.selection.tuning import FOLDS, QUICK_ROWS, count_draws, quick_splits

ROUNDING = 1e-20  # of the variance: what is less within classes is rounding
ROUNDED = 1e-12  # relative, of a sum of weights
PARTS = 5  # of a single fold held out, each calibrated by the others
MOST_OPEN = 2  # dimensions where k is open
MOST_DRAWS = 12  # of the folds
HELD_ROWS = 3000  # that all draws together hold out, beyond the first
ALONE, FEW_CLASSES = 250, 5  # rows and classes up to which each row is held out by itself
FEW_STARTS = 3  # of a search at most where rows are held out: there are many of these
QUICK = {"rough": 1e-2, "refined": 1, "ftol": 1e-5}  # of these searches: what is left tells nothing
CLOSE = {"rough": 1e-7, "refined": 1, "ftol": 1e-7}  # of those that begin next to their end


def fit_stages(batch, family, settings, eval_batch=None):
    """The one stage of melm: (View, log, None); a stage for each gamma where rows are scored.

    Rows to score, those of `eval_batch`, are held out: of a stage their link scores are third.
    """
    if eval_batch is None:
        yield *fit_view(batch, settings, family), None
        return
    for score in fold_scores(batch, eval_batch, family, settings, settings.gamma):
        yield None, None, score


def fold_scores(train, test, family, settings, gammas, first_gamma=None, warm_start=None):
    """Link scores (n, K) of the rows of `test` by views of the rows of `train`, one a gamma.

    Where no view can be fitted they are the null model's. first_gamma, warm_start : see
    `search_gammas`
    """
    try:
        views = _quick_views(train, family, settings, gammas, first_gamma, warm_start)
    except DataError:
        null = family.null_score(train.y, train.weight, np.zeros((train.n, family.n_scores)))
        return [np.repeat(null[:1], test.n, axis=0)] * len(gammas)
    threads = settings.threads or 1
    return [view.rule.scores(project(view.V, test.X, test.n), threads) for view in views]


def _quick_views(batch, family, settings, gammas, first_gamma, warm_start):
    """Return the View of each gamma, of quick searches."""
    rows = ClassRows.from_batch(batch, settings, count_classes(family))
    plan = replace(_plan(settings, len(rows.present)), **(QUICK if warm_start is None else CLOSE))
    starts = first_gamma, warm_start, rows.within
    found = search_gammas(rows.X, rows.code, rows.weight, plan, gammas, *starts)
    return [
        _view_of_rows(found[gamma], batch, rows, replace(settings, gamma=gamma), family)[0]
        for gamma in gammas
    ]


def reweigh(problem, fit):
    """The View of rows under other weights, and its log: searched and calibrated as `fit` is."""
    first_gamma = float(fit.log["gamma"][0]) if "gamma" in fit.log else None
    view, log = fit_view(problem.batch, problem.settings, problem.family, first_gamma)
    if count_classes(problem.family) > 1:
        rule = replace(view.rule, inverse_temperature=fit.estimates.rule.inverse_temperature)
        view = replace(view, rule=rule)
    return view, log


def count_classes(family):
    """Return number of classes of a family; one without a response."""
    return {"none": 1, "binomial": 2}.get(family.name, family.n_scores)


def with_dimensions(problem):
    """Return the checked problem, its weights as counts of rows.

    Where k is open it is 2, or 1 where rows vary in one direction only.
    """
    problem = replace(problem, batch=_counted(problem.batch))
    if problem.settings.k is not None:
        return validate(problem)
    k = MOST_OPEN
    if problem.family.name != "gaussian":  # which is refused
        code, weight, i = _rows(problem.batch)
        X = np.asarray(tiles.rows(problem.batch.X, i), np.float64)
        code = np.unique(code, return_inverse=True)[1]
        k = min(k, max(1, Basis.from_rows(X, code, weight).n_varying))
    return validate(replace(problem, settings=replace(problem.settings, k=k)))


def _counted(batch):
    """The batch with weights that count rows: shares, which sum to less than that, are scaled."""
    if batch.weights is None or batch.weight_sum >= batch.n_positive * (1.0 - ROUNDED):
        return batch
    return replace(batch, weights=batch.weights / batch.weight_sum * batch.n_positive)


@dataclass(frozen=True)
class ClassRows:
    """Rows of positive weight: features X (m, p), class codes (m,), weights (m,).

    position (m,) in the batch; codes are 0, ..., C - 1, of the classes `present` (C,);
    within : the Basis within classes
    """

    X: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    position: np.ndarray
    present: np.ndarray
    within: Basis

    @classmethod
    def from_batch(cls, batch, settings, n_classes):
        """Build from a batch; raise if its rows have a single class, or vary too little."""
        code, weight, i = _rows(batch)
        X = np.asarray(tiles.rows(batch.X, i), np.float64)
        present, code = np.unique(code, return_inverse=True)
        if n_classes > 1 and len(present) < 2:
            raise DataError("a single class has rows that count")
        return cls(X, code, weight, i, present, _checked_basis(X, code, weight, settings))


def fit_view(batch, settings, family, first_gamma=None):
    """The View in which classes diverge most, or of most or least entropy, with its rule; the log.

    In the log are the ends of all starts, the best first. If a `first_gamma` is given, that one is
    searched from all starts, and the view is followed from there; the log then names it.
    """
    n_classes = count_classes(family)
    if n_classes == 1 and settings.gamma is not None:
        raise ArgumentError("gamma is for classes, and the formula has no response")
    rows = ClassRows.from_batch(batch, settings, n_classes)
    plan = _plan(settings, len(rows.present))
    gammas = steps(first_gamma, plan.gamma) if first_gamma else (plan.gamma,)
    starts = first_gamma, None, rows.within
    found = search_gammas(rows.X, rows.code, rows.weight, plan, gammas, *starts)
    manifold = found[plan.gamma]
    view, Z = _view_of_rows(manifold, batch, rows, settings, family)
    if n_classes > 1:
        sample = Sample.from_rows(rows.X, rows.code, rows.weight, rows.within, settings.covariance)
        width = kernel_widths(sample, rows.within.of_directions(view.V), settings.gamma)
        overlap = overlaps(Z, rows.code, rows.weight, width, view.potential)
        view = replace(view, overlap=overlap)
    log = _log(found[first_gamma or plan.gamma], settings.entropy == "min" and n_classes == 1)
    if first_gamma:
        log["gamma"] = np.full(len(log["start"]), first_gamma)
    return view, log


def _view_of_rows(manifold, batch, rows, settings, family):
    """The View of a Manifold, without bounds on overlaps, and coordinates (m, k) of its rows."""
    n_classes, (code, weight) = count_classes(family), (rows.code, rows.weight)
    if n_classes > 1:
        _check_spread(rows.X @ manifold.V, code, weight)
    V = manifold.V if n_classes == 1 else orient(manifold.V, rows.X, code, weight)
    Z = project(V, batch.X, batch.n)[rows.position]
    view = _view(V, rows.X, Z, weight, np.bincount(code, weight), manifold)
    rule = fit_rule(settings, Z, code, weight, rows.present, n_classes, family.n_scores)
    return replace(view, rule=rule), Z


def _check_spread(Z, code, weight):
    """Raise if coordinates Z (m, k) do not vary within classes, as in a fold of few rows."""
    residual = center_by_class(Z, code, weight)[0]
    if (np.abs(residual).max(axis=0) <= CONSTANT * np.abs(Z).max(axis=0)).any():
        raise DataError(
            "the rows of each class are at one place in the view: no density has a width"
        )


def _rows(batch):
    """Return class codes, weights and positions (m,) of the rows of positive weight."""
    i = batch.positive_weight
    weight = batch.row_weights[i]
    code = np.zeros(len(i), np.int64) if batch.y is None else batch.y[i].astype(np.int64)
    return code, weight, i


def _checked_basis(X, code, weight, settings):
    """The Basis within classes; raises where a density has no width along one of k directions."""
    shrunk = settings.covariance == SHRUNK and code.any()
    factor = settings.shrinkage_factor if shrunk else 0.0
    with single_blas():
        within = Basis.from_rows(X, code, weight, shrinkage_factor=factor)
    share, residual = weight / weight.sum(), center_by_class(X, code, weight)[0]
    if (share @ residual**2).sum() <= ROUNDING * (share @ (X - share @ X) ** 2).sum():
        raise DataError(
            "no feature varies within classes: each gives the class away, and a density of it has "
            "no width"
        )
    varying, k = within.n_varying, settings.k
    if varying < k:
        raise DataError(f"rows vary within classes in {varying} directions only, too few for k={k}")
    return within


def _plan(settings, n_present):
    """Return the Plan of the search that settings ask for."""
    s, same = settings, ("k", "covariance", "shrinkage_factor", "n_starts", "seed")
    same += ("max_iter", "tol", "engine")
    return Plan(
        gamma=s.gamma if isinstance(s.gamma, float | int) else 1.0,
        penalty=s.penalty and n_present > 1,
        average=s.divergence == "mean",
        smallest=s.entropy == "min",
        threads=s.n_threads,
        **{name: getattr(s, name) for name in same},
    )


def _view(V, X, Z, weight, size, manifold):
    """Return the View of directions V, its overlaps and its rule not known yet."""
    share = weight / weight.sum()
    deviation, correlation = correlations(X, Z, share)
    # Potentials are of densities: they change with the unit of the coordinates.
    unit = np.linalg.slogdet(manifold.V.T @ V)[1]
    return View(
        V=V,
        deviation=deviation,
        correlation=correlation,
        spread=np.sqrt(share @ (Z - share @ Z) ** 2),
        potential=manifold.potential - unit,
        overlap=np.zeros_like(manifold.potential),
        size=size,
        rank=int(manifold.rank),
        separates=bool(manifold.separates),
        total=float((share @ (X - share @ X) ** 2).sum()),
        drawn=0 if manifold.rows == len(X) else int(manifold.rows),
        error=float(manifold.error),
        converged=manifold.settled,
        rule=None,
    )


def _log(manifold, smallest):
    """Return the ends of all starts, the best first: arrays (n_starts,) by name."""
    value = manifold.divergences
    order = np.argsort(value if smallest else -value, kind="stable")
    log = {"start": [manifold.starts[j] for j in order], "divergence": value[order]}
    return log | {"n_iter": manifold.n_iter[order], "converged": manifold.converged[order]}


def most_draws(batch):
    """How often folds are drawn: more often where rows are few, and a draw says little."""
    return min(MOST_DRAWS, max(1, HELD_ROWS // max(len(batch.positive_weight), 1)))


def for_folds(problem):
    """Return the problem with a cheaper search, for folds that choose or calibrate."""
    few = min(problem.settings.n_starts, FEW_STARTS)
    return replace(problem, settings=replace(problem.settings, n_starts=few))


# How well the rule classifies --------------------------------------------------------------------


def training_measures(problem, view):
    """Return deviance and balanced accuracy of training rows, of 10,000 at most.

    Each is left out of the densities that it is judged by; not of an estimator of the user's.
    """
    rows, score = _leave_one_out(problem, view)
    y = view.rule.present[rows.code].astype(float)
    weight = rows.share / rows.share.sum()
    return {
        "deviance": float(weight @ problem.family.deviance(y, score)),
        "balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _leave_one_out(problem, view):
    """Return rows, and their link scores (m, K)."""
    settings, rule, batch = problem.settings, view.rule, problem.batch
    code, weight, i = _rows(batch)
    Z = project(view.V, batch.X, batch.n)[i]
    rows = Rows.draw(Z, np.searchsorted(rule.present, code), weight, JUDGED, settings.seed)
    if rule.other is not None:
        return rows, rule.scores(rows.Z, settings.n_threads)
    arguments = rule.background, rule.width, density_options(settings), settings.n_threads
    return rows, rule.link(leave_one_out_scores(rows, *arguments))


def calibrate(problem, view, log):
    """Return the rule of a view calibrated on rows held out, and measures of these rows.

    The log says whether the view was followed from another gamma: then it is in the folds as well.
    Each fold is judged with the calibration of the others of its draw. They are not the folds that
    gamma was chosen on: there, luck has chosen as well.
    """
    problem = for_folds(problem)
    settings, family = problem.settings, problem.family
    others = replace(settings, seed=settings.seed + 1)
    splits, draws, starts = _calibration_splits(replace(problem, settings=others), view, log)
    how = family, settings, (settings.gamma,)
    score = np.concatenate([fold_scores(*pair, *how, **starts)[0] for pair in splits])
    tests = [test for _, test in splits]
    y = np.concatenate([test.y for test in tests])
    weight = np.concatenate([test.row_weights for test in tests])
    # What class shares are to be is the prior's to say: with equal ones rows of rare classes count.
    judged = evaluation_weights(y.astype(int), weight, settings.prior == "equal")
    loss = losses_by_temperature(family, y, judged, score)
    part, draw = _parts(tests, problem, draws)
    factor = _factors_of_others(view.rule, loss, part, draw)
    weight = evaluation_weights(y.astype(int), weight, False)
    return view.rule.calibrated(loss), {
        "held_deviance": float(weight @ family.deviance(y, factor * score)),
        "held_balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _calibration_splits(problem, view, log):
    """Pairs of batches [(Batch, Batch)], how often their folds are drawn, and where searches begin.

    Few rows (or groups) are held out one by one, so that no draw moves the answer; the search for
    the view of the others then begins at that of all.
    """
    batch, few_classes = problem.batch, count_classes(problem.family) <= FEW_CLASSES
    units, few_rows = folds.count_units(batch), len(batch.positive_weight) <= QUICK_ROWS
    if few_classes and few_rows and FOLDS < units <= ALONE:
        return quick_splits(problem, 1, units), 1, {"warm_start": view.V}
    draws = count_draws(batch, most_draws(batch))
    first_gamma = log["gamma"][0] if "gamma" in log else None
    return quick_splits(problem, draws), draws, {"first_gamma": first_gamma}


def _factors_of_others(rule, loss, part, draw):
    """Inverse temperature (n, 1) for each row, of the rows in other parts of the same draw."""
    total, own = (
        np.zeros((draw.max() + 1, loss.shape[1])),
        np.zeros((part.max() + 1, loss.shape[1])),
    )
    np.add.at(total, draw, loss)
    np.add.at(own, part, loss)
    of_part = np.zeros(len(own), np.int64)
    of_part[part] = draw
    others = np.maximum(total[of_part] - own, 0.0)
    factors = [rule.calibrated(loss[None]).inverse_temperature for loss in others]
    return np.array(factors)[part, None]


def _parts(tests, problem, draws):
    """Part (n,) of each row held out, its fold or of a single fold one of PARTS; and its draw."""
    if len(tests) > 1:
        part = np.repeat(np.arange(len(tests)), [test.n for test in tests])
        return part, part * draws // len(tests)
    rows, seed = tests[0], problem.settings.seed
    if folds.count_units(rows) < PARTS:
        rows = replace(rows, groups=None)
    part = folds.assign(rows, PARTS, problem.design.levels, seed)
    return part, np.zeros_like(part)
