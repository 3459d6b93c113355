"""Fit melm: search the projection, fit the classifier in it, calibrate its probabilities."""

from dataclasses import dataclass, fields, replace

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.errors import ArgumentError, DataError
from lodim.models.melm.density import evaluation_weights, leave_one_out_scores
from lodim.models.melm.divergence import overlaps
from lodim.models.melm.rule import (
    JUDGED,
    Rows,
    balanced_accuracy,
    density_options,
    fit_rule,
    losses_by_temperature,
)
from lodim.models.melm.search import Plan, make_basis, search_gammas, steps
from lodim.models.melm.view import View, orient, project
from lodim.models.melm.whitening import Basis, Sample, bandwidths, center_by_class
from lodim.selection import folds
from lodim.selection.tuning import FOLDS, QUICK_ROWS, count_draws, quick_splits

N_CALIBRATION_PARTS = 5  # parts of a single held-out fold, each calibrated by the others
MOST_DRAWS = 6  # most random divisions into folds
ALONE, FEW_CLASSES = 250, 5  # rows and classes up to which rows are held out singly
QUICK = {"rough": 1e-2, "refined": 1, "ftol": 1e-5}  # tolerances of searches in folds
CLOSE = {"rough": 1e-7, "refined": 1, "ftol": 1e-7}  # the same, starting close to the optimum


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit a projection and its classifier; yield (View, dict of search results, None) once.

    With `eval_batch`, yield (None, None, its linear predictors (n, K)) per kernel width instead."""
    if eval_batch is None:
        yield *fit_view(batch, settings, family), None
    else:
        for score in fold_scores(batch, eval_batch, family, settings):
            yield None, None, score


def fold_scores(train, test, family, settings, first_gamma=None, warm_start=None):
    """Fit to the rows `train`; return linear predictors (n, K) of `test`, a list by kernel width.

    first_gamma : kernel width of the first search; None to choose one of settings.gamma
    warm_start : projection (p, k) at which the first search starts; None for many starts"""
    gammas = settings.gamma if isinstance(settings.gamma, tuple) else (settings.gamma,)
    try:
        rows = ClassRows.from_batch(train, settings, count_classes(family))
        tolerances = QUICK if warm_start is None else CLOSE
        found = rows.search(settings, gammas, first_gamma, warm_start, **tolerances)
        each = [(found[gamma].V, replace(settings, gamma=gamma)) for gamma in gammas]
        fits = [_classifier(V, train, rows, own, family) for V, own in each]
    except DataError:
        null = family.null_score(train.y, train.weight, np.zeros((train.n, family.n_scores)))
        return [np.repeat(null[:1], test.n, axis=0)] * len(gammas)
    threads = settings.threads or 1
    return [rule.scores(project(V, test.X, test.n), threads) for V, _, rule in fits]


def reweigh(problem, fit):
    """Fit the data in `problem`, calibrated like `fit`; return a View and a dict of results."""
    first_gamma = float(fit.log["gamma"][0]) if "gamma" in fit.log else None
    view, log = fit_view(problem.batch, problem.settings, problem.family, first_gamma)
    if count_classes(problem.family) > 1:
        rule = replace(view.rule, inverse_temperature=fit.estimates.rule.inverse_temperature)
        view = replace(view, rule=rule)
    return view, log


def count_classes(family):
    """Return the number of classes of a family; 1 without a response."""
    return {"none": 1, "binomial": 2}.get(family.name, family.n_scores)


def validate(problem):
    """Check data and settings; return the problem with k, 2 by default (1 for collinear rows)."""
    batch, k, design = problem.batch, problem.settings.k, problem.design
    if problem.arguments["offset"] is not None:
        raise ArgumentError("melm cannot use an offset: leave offset= out")
    if problem.family.name == "gaussian":
        raise DataError(
            f"melm needs a response with classes, but {design.response.name!r} is numeric: give "
            "family='multinomial' if its values are classes"
        )
    # Weights that sum to less than the number of rows (up to rounding errors) are scaled up.
    if batch.weights is not None and batch.weight_sum < batch.n_positive * (1.0 - 1e-12):
        batch = replace(batch, weights=batch.weights / batch.weight_sum * batch.n_positive)
    code, weight, i = _rows(batch)
    if k is None:
        X = np.asarray(tiles.rows(batch.X, i), np.float64)
        of_present = np.unique(code, return_inverse=True)[1]
        k = min(2, max(1, Basis.from_rows(X, of_present, weight).n_varying))
    if problem.family.name != "none":
        counts = np.bincount(code, minlength=len(design.response.levels))
        least = int(counts.argmin())
        if counts[least] < k + 1:
            raise DataError(
                f"class {design.response.levels[least]!r} must have at least {k + 1} rows with a "
                f"positive weight for k={k}, not {counts[least]}: leave the class out, or merge it "
                "with another"
            )
    varying = len(design.names) - len(design.constant)
    if varying < k:
        raise DataError(
            f"k must be at most the number of features that vary, {varying}, not {k}: give "
            f"k={max(1, varying)}"
            if varying
            else "at least one feature must vary; all are constant"
        )
    return replace(problem, batch=batch, settings=replace(problem.settings, k=k))


@dataclass(frozen=True)
class ClassRows:
    """Rows of positive weight: features X (m, p), class codes (m,), weights (m,)."""

    X: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    position: np.ndarray  # (m,) positions among all rows of the batch
    present: np.ndarray  # (C,) classes with rows; `code` numbers them 0, ..., C - 1
    within: Basis  # coordinates in which rows have unit covariance within classes

    @classmethod
    def from_batch(cls, batch, settings, n_classes):
        """Return a Batch's ClassRows; raise DataError if they are of one class, or hardly vary.

        n_classes : number of classes of the response; 1 without a response"""
        code, weight, i = _rows(batch)
        X = np.asarray(tiles.rows(batch.X, i), np.float64)
        present, code = np.unique(code, return_inverse=True)
        if n_classes > 1 and len(present) < 2:
            raise DataError("rows with a positive weight must be of at least two classes, not one")
        with single_blas():
            within = make_basis(X, code, weight, settings)
        share, residual = weight / weight.sum(), center_by_class(X, code, weight)[0]
        # Less than 1e-20 of the variance within classes is a rounding error.
        if (share @ residual**2).sum() <= 1e-20 * (share @ (X - share @ X) ** 2).sum():
            raise DataError(
                "features must vary within classes; here each feature determines the class "
                "exactly: use other features"
            )
        if within.n_varying < settings.k:
            raise DataError(
                f"k must be at most {within.n_varying}, the number of directions with variation "
                f"within classes, not {settings.k}"
            )
        return cls(X, code, weight, i, present, within)

    def search(self, settings, gammas, first_gamma=None, warm_start=None, **tolerances):
        """Search for the best projection per kernel width in `gammas`; return {gamma: Manifold}.

        settings : Settings of the fit
        first_gamma : kernel width to search first; None to choose one of `gammas`
        warm_start : (p, k) projection to start from; None for many starts
        tolerances : fields of the search's Plan, such as ftol"""
        own = {f.name: getattr(settings, f.name) for f in fields(Plan) if hasattr(settings, f.name)}
        plan, starts = Plan(**own | tolerances), (first_gamma, warm_start, self.within)
        return search_gammas(self.X, self.code, self.weight, plan, gammas, *starts)


def fit_view(batch, settings, family, first_gamma=None):
    """Find the projection in which classes overlap least; return a View and a dict of results.

    Without a response, the View shows principal components.
    first_gamma : kernel width of the first search; None for settings.gamma"""
    n_classes = count_classes(family)
    rows = ClassRows.from_batch(batch, settings, n_classes)
    gamma = settings.gamma or 1.0  # without effect if there is only one class
    gammas = steps(first_gamma, gamma) if first_gamma else (gamma,)
    found = rows.search(settings, gammas, first_gamma)
    manifold, first = found[gamma], found[first_gamma or gamma]
    fitted = _classifier(manifold.V, batch, rows, settings, family)
    order = np.argsort(-first.divergences, kind="stable")
    log = {"start": [first.starts[j] for j in order], "divergence": first.divergences[order]}
    log |= {"n_iter": first.n_iter[order], "converged": first.converged[order]}
    if first_gamma:
        log["gamma"] = np.full(len(order), first_gamma)
    return _view(*fitted, rows, manifold, settings), log


def _classifier(V, batch, rows, settings, family):
    """Fit a classifier to rows projected by V (p, k); return (V, Z, Rule).

    V is returned on the axes that users see; Z : (m, k) coordinates of `rows` on these axes
    rows : ClassRows, the m rows of `batch` with positive weight"""
    n_classes, (code, weight) = count_classes(family), (rows.code, rows.weight)
    if n_classes > 1:
        V = orient(V, rows.X, code, weight)
    Z = project(V, batch.X, batch.n)[rows.position]
    rule = fit_rule(settings, Z, code, weight, rows.present, n_classes, family.n_scores)
    return V, Z, rule


def _rows(batch):
    """Return class codes, weights and positions (m,) of the rows with positive weight."""
    i = batch.positive_weight
    weight = batch.row_weights[i]
    code = np.zeros(len(i), np.int64) if batch.y is None else batch.y[i].astype(np.int64)
    return code, weight, i


def _view(V, Z, rule, rows, manifold, settings):
    """Make the View of a projection V (p, k).

    Z : (m, k) coordinates of `rows`, which are ClassRows; rule : Rule, the classifier
    manifold : Manifold that the search returned; settings : Settings of the fit"""
    code, weight, share = rows.code, rows.weight, rows.weight / rows.weight.sum()
    X, centred = rows.X - share @ rows.X, Z - share @ Z
    deviation, spread = np.sqrt(share @ X**2), np.sqrt(share @ centred**2)
    both, cross = np.outer(deviation, spread), (X * share[:, None]).T @ centred
    vary = both > 1e-12 * both.max(initial=1e-300)
    correlation = np.divide(cross, both, out=np.zeros_like(cross), where=vary)
    # Potentials of densities depend on the units of the coordinates.
    potential = manifold.potential - np.linalg.slogdet(manifold.V.T @ V)[1]
    overlap = np.zeros_like(potential)
    if rule.n_classes > 1:
        sample = Sample.from_rows(rows.X, code, weight, rows.within, settings.covariance)
        theta = rows.within.back @ V
        form = np.einsum("rj,crs,sj->cj", theta, sample.cov, theta, optimize=True)
        width = np.sqrt(bandwidths(sample.size, V.shape[1], settings.gamma)[:, None] * form)
        overlap = overlaps(Z, code, weight, width, potential)
    return View(
        V=V,
        deviation=deviation,
        correlation=correlation,
        spread=spread,
        potential=potential,
        overlap=overlap,
        size=np.bincount(code, weight),
        rank=int(manifold.rank),
        separates=bool(manifold.separates),
        total=float((share @ X**2).sum()),
        drawn=0 if manifold.rows == len(X) else int(manifold.rows),
        converged=bool(manifold.converged[manifold.divergences.argmax()]),
        rule=rule,
    )


def most_draws(batch):
    """Return the largest number of repetitions of a cross-validation: more for fewer rows."""
    # Together, the repetitions hold out up to 1,500 rows.
    return min(MOST_DRAWS, max(1, 1500 // max(len(batch.positive_weight), 1)))


def for_folds(problem):
    """Return the problem with fewer starts of the search, for cross-validation."""
    few = replace(problem.settings, n_starts=min(problem.settings.n_starts, 3))
    return replace(problem, settings=few)


# How well the rule classifies --------------------------------------------------------------------


def training_measures(problem, view):
    """Return a dict of deviance and balanced accuracy of a View in up to 10,000 training rows."""
    settings, rule, batch = problem.settings, view.rule, problem.batch
    code, weight, i = _rows(batch)
    Z = project(view.V, batch.X, batch.n)[i]
    rows = Rows.draw(Z, np.searchsorted(rule.present, code), weight, JUDGED, settings.seed)
    if rule.other is not None:
        score = rule.scores(rows.Z, settings.n_threads)
    else:
        arguments = rule.background, rule.width, density_options(settings), settings.n_threads
        score = rule.link(leave_one_out_scores(rows, *arguments))
    y, weight = rule.present[rows.code].astype(float), rows.share / rows.share.sum()
    return {
        "deviance": float(weight @ problem.family.deviance(y, score)),
        "balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def calibrate(problem, view, log):
    """Calibrate the class probabilities of a View on held-out rows; return a Rule and a dict.

    The dict has the deviance and balanced accuracy of held-out rows.
    problem : data and settings; log : dict of results of the search"""
    problem = for_folds(problem)
    settings, family = problem.settings, problem.family
    y, weight, score, part, draw = _held_out(problem, view, log)
    # With equal priors, rows of rare classes have more weight.
    judged = evaluation_weights(y.astype(int), weight, settings.prior == "equal")
    loss = losses_by_temperature(family, y, judged, score)
    # For the deviance, each fold is calibrated by the other folds of its cross-validation.
    total, own = (np.zeros((at.max() + 1, loss.shape[1])) for at in (draw, part))
    np.add.at(total, draw, loss)
    np.add.at(own, part, loss)
    of_part = np.zeros(len(own), np.int64)
    of_part[part] = draw
    others = np.maximum(total[of_part] - own, 0.0)
    factors = [view.rule.calibrated(one[None]).inverse_temperature for one in others]
    calibrated = np.array(factors)[part, None] * score
    weight = evaluation_weights(y.astype(int), weight, False)
    return view.rule.calibrated(loss), {
        "held_deviance": float(weight @ family.deviance(y, calibrated)),
        "held_balanced_accuracy": balanced_accuracy(y, weight, score),
    }


def _held_out(problem, view, log):
    """Predict each row by fits without it; return (y, weight, linear predictor (n, K), fold, draw).

    fold : (n,) number of each row's fold; draw : (n,) number of the random division into folds
    problem : data and settings; log : dict of results of the search for `view`, a View"""
    batch, settings = problem.batch, problem.settings
    units, few_classes = folds.count_units(batch), count_classes(problem.family) <= FEW_CLASSES
    # Few rows are held out singly, in searches that start at the projection of `view`.
    if few_classes and len(batch.positive_weight) <= QUICK_ROWS and FOLDS < units <= ALONE:
        n_folds, draws, starts = units, 1, {"warm_start": view.V}
    else:
        n_folds, draws = FOLDS, count_draws(batch, most_draws(batch))
        starts = {"first_gamma": log["gamma"][0] if "gamma" in log else None}
    others = replace(problem, settings=replace(settings, seed=settings.seed + 1))
    splits = quick_splits(others, draws, n_folds)
    how = problem.family, settings
    score = np.concatenate([fold_scores(*pair, *how, **starts)[0] for pair in splits])
    tests = [test for _, test in splits]
    y = np.concatenate([test.y for test in tests])
    weight = np.concatenate([test.row_weights for test in tests])
    if len(tests) > 1:
        part = np.repeat(np.arange(len(tests)), [test.n for test in tests])
        return y, weight, score, part, part * draws // len(tests)
    rows = tests[0]
    if folds.count_units(rows) < N_CALIBRATION_PARTS:
        rows = replace(rows, groups=None)
    part = folds.assign(rows, N_CALIBRATION_PARTS, problem.design.levels, settings.seed)
    return y, weight, score, part, np.zeros_like(part)
