"""Fit prototypes in batches (sets), each to what the earlier ones left unexplained."""

from dataclasses import replace
from itertools import count

import numpy as np

from lodim import progress
from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.errors import DataError
from lodim.models.proset.cpu_kernels import CLASSES, DENSITY, SQUARED
from lodim.models.proset.objective import BatchObjective, penalize
from lodim.models.proset.prototypes import (
    Prototypes,
    join,
    link_scores,
    merge,
    null_sums,
    response_values,
    weighted_sums,
)
from lodim.models.proset.settings import PATIENCE
from lodim.models.proset.training import BatchState
from lodim.solve.lbfgs import SPACING, Steps, bounded, to_multiples

CORNER = 0.1  # size below which the L1 penalty is smoothed at first
LEAST_V = 1e-3  # smallest feature weight in the first minimization
ROUNDS = 10, 10, 10, 20, 30, 60, 100, 200  # evaluations per round of `_descend`


def fit_stages(batch, family, settings, eval_batch=None, previous=None):
    """Fit sets of prototypes one by one; yield (Prototypes, results, predictors) after each.

    batch : training rows; eval_batch : rows to predict, or None
    previous : (Prototypes, results) of a fit to these rows, to continue; or None
    results : dict of numbers; predictors : (n, K) linear predictors of `eval_batch`, or None
    The generator never ends; after an empty set, Prototypes and results are None."""
    state = BatchState(batch, family, settings)
    used, ended, base, sums = np.zeros(len(state.varies), bool), False, None, None
    if eval_batch is not None:
        base = eval_batch.offset_matrix(family.n_scores)
        sums = null_sums(state, base)
    for c in count(1):
        if ended:
            part, log = None, None
        elif previous is not None and c <= previous[0].n_batches:
            part = _previous_batch(previous[0], c, state)
            log = {name: by_batch[c - 1] for name, by_batch in previous[1].items()}
        else:
            part, log = _fit_batch(state, c, used)
        if part is not None:
            state.add(part)
            used |= part.v[0] > 0
            ended = len(part) == 0
            log["deviance"] = state.deviance()
            finite = np.isfinite([log["objective"], log["deviance"]]).all()
            log["converged"] = bool(log["converged"] and finite)
            if eval_batch is not None:
                X, n = eval_batch.X, eval_batch.n
                sums = sums + weighted_sums(part, response_values(part), X, n, state.threads)
        yield part, log, None if eval_batch is None else link_scores(state, sums, base)


def combine(parts):
    """Join `parts`, pairs (Prototypes, dict of results) per batch, into one; skip (None, None)."""
    fitted = [(part, log) for part, log in parts if part is not None]
    logs = [log for _, log in fitted]
    log = {name: np.array([entry[name] for entry in logs]) for name in logs[0]}
    return join([part for part, _ in fitted]), log


def _fit_batch(state, c, used):
    """Fit set c of prototypes, given the earlier sets; return Prototypes and a dict of results.

    state : BatchState, rows and estimates by earlier sets
    used : (p,) bool, features of earlier sets, which are preferred"""
    split = state.split(c)
    part, end = _fit_features(state, split, state.varies)
    # Further features must lower the loss significantly.
    if used.any() and (part.v[0, ~used] > 0).any():
        narrow = _fit_features(state, split, used)
        losses = [state.losses(*state.estimates_with(one)) for one in (narrow[0], part)]
        each = losses[0] - losses[1]
        gain = state.weight @ each
        error = np.sqrt(state.weight**2 @ (each - gain) ** 2)
        if gain <= state.settings.worth * error:
            part, end = narrow
    log = {"objective": end.value[0], "grad_norm": end.grad_norm[0], "n_iter": end.n_iter[0]}
    log |= {"n_eval": end.n_eval, "converged": end.converged[0]}
    log |= {"n_candidates": len(split.candidates), "n_scoring": len(split.scoring)}
    return part, log


def _fit_features(state, split, features):
    """Fit a set of prototypes; return Prototypes and the optimizer's result, a Minimum.

    state : BatchState, rows and estimates by earlier sets; features : (p,) bool, features to use
    split : Split, candidates and rows whose loss is minimized"""
    s, j = state.settings, split.candidates
    X, p, J = state.batch.X, len(features), len(split.candidates)
    x = tiles.rows(X, j)
    scoring = state.scoring_rows(split)
    penalty = penalize(p, J, s)
    objective = BatchObjective(scoring, x, state.y[j], state.loss, penalty, state.threads, s.engine)
    # Too long a step may overflow; the line search shortens it.
    most = s.max_iter
    with single_blas(), np.errstate(over="ignore"), progress.bar(most, "evaluations") as shown:
        theta, end = minimize(shown.counting(objective), state.loss, features, J, s)
    v, w, u = theta[:p], theta[p : p + J], theta[-1:]
    # Candidates of positive weight are prototypes; without feature weights there are none.
    live = np.flatnonzero(w * v.any())
    v = v * (len(live) > 0)  # an empty batch has no feature weights
    j, x = j[live], x[live].astype(np.float64)
    y, on = state.y[j], v > 0
    first, weight, of = merge(np.column_stack([x[:, on] * v[on], y]), w[live])
    rows, batch = state.batch.rows[j], np.ones(len(first), np.int64)
    points = np.arange(len(v)), x[first], y[first], weight, batch, rows[first], rows, of
    null = state.level, state.scale, state.loss, state.n_classes
    return Prototypes(*points, v[None], u, *null), end


def _previous_batch(prototypes, c, state):
    """Return batch c of `prototypes`, fitted before, with the values of all features.

    Raise DataError unless `state` (a BatchState) has the same rows and responses."""
    part = prototypes.single_batch(c)
    at = np.searchsorted(state.batch.rows, part.row)
    at = np.minimum(at, state.batch.n - 1)
    x = tiles.rows(state.batch.X, at).astype(np.float64)
    same = np.array_equal(state.batch.rows[at], part.row)
    if not (same and np.array_equal(x[:, part.features], part.x)):
        raise DataError(
            "batches can only be added with the training rows of the fit; data has other rows"
        )
    levels = [*state.level, state.scale], [*part.level, part.scale]
    near = [(state.y[at], part.y), levels]
    if not all(np.allclose(new, old, rtol=1e-8, atol=1e-8) for new, old in near):
        raise DataError("batches can only be added with the response of the fit; data has another")
    return part.with_all_features(x)


def minimize(objective, loss, features, J, settings):
    """Minimize the loss of a set of prototypes; return parameters (p + J + 1,) and a Minimum.

    Parameters are p feature weights, J candidates' weights, and the inverse SD of normal densities.
    objective : BatchObjective; loss : CLASSES, SQUARED or DENSITY, the kind of loss
    features : (p,) bool, features to use"""
    D, p = int(features.sum()), len(features)
    w_unit = np.sqrt(J) * (10.0 if loss == CLASSES else 1.0)
    unit = np.concatenate([np.ones(D), np.full(J, w_unit), [1.0]])
    enters = np.flatnonzero(np.concatenate([features, np.ones(J + 1, bool)]))
    l1 = settings.lambda_v * settings.l1_ratio_v

    def of_v(t, kept):
        theta = np.zeros(p + J + 1)
        theta[enters] = t * unit
        value, gradient = objective(theta, None if kept is None else kept[D:-1])
        return value, gradient[enters] * unit

    # At v = 0 all derivatives by v are zero, so the first minimization is over v^2.
    def of_square(t, kept):
        v = np.sqrt(t[:D] if kept is None else t[:D] * kept[:D])
        value, gradient = of_v(np.concatenate([v, t[D:]]), kept)
        size = np.hypot(v, CORNER)
        gradient[:D] = (gradient[:D] + l1 * (v / size - 1.0)) / np.maximum(2.0 * v, LEAST_V)
        return value + l1 * (size - CORNER - v).sum(), gradient

    start = 1.0 / unit
    start[:D] = (10.0 / max(1, D)) ** 2
    start[-1] = 3.0 if loss == DENSITY else 0.0
    lower = np.zeros(len(start))
    lower[:D], lower[-1] = LEAST_V**2, 1e-3 if loss == DENSITY else 0.0  # inverse width of normals
    stop = {"tol": settings.tol, "ftol": settings.ftol, "patience": PATIENCE, "spacing": SPACING}
    stop["precision"] = float(np.finfo(settings.precision).eps)
    rough = {"tol": 10.0 * settings.tol, "ftol": 100.0 * settings.ftol}
    first = _descend(of_square, start, lower, D, settings.max_iter, stop | rough)
    t = first.theta[0]
    t[:D] = np.where(t[:D] > lower[:D], np.sqrt(t[:D]), 0.0)
    left = max(1, settings.max_iter - first.n_eval)
    lower[:D] = 0.0
    end = _descend(of_v, t, lower, D, left, stop)
    theta = np.zeros(p + J + 1)
    theta[enters] = end.theta[0] * unit
    return theta, replace(end, n_eval=first.n_eval + end.n_eval, n_iter=first.n_iter + end.n_iter)


def _descend(function, t, lower, D, max_iter, stop):
    """Minimize `function` over parameters >= `lower`, from the start t; return a Minimum.

    function : function(t, kept), returns value and gradient
        kept : bool mask of the parameters that vary, None for all
    D : number of feature weights, which come first in t
    max_iter : most evaluations; stop : dict of optimizer tolerances"""
    t = np.maximum(to_multiples(t, stop["spacing"]), lower)
    (value, gradient), n_eval, n_iter, steps = function(t, None), 1, 0, Steps(len(t))
    # Most rounds vary only some parameters; the others are at their bounds.
    keep = (t > lower) | (gradient < 0.0)
    for k in count():
        keep[-1] = True
        kept = None if keep.all() else keep
        at, t = np.flatnonzero(keep), t.copy()

        def of_kept(z, t=t, at=at, kept=kept):
            t[at] = z
            value, gradient = function(t, kept)
            return value, gradient[at]

        most = max_iter - n_eval
        most = min(most, ROUNDS[k]) if k < len(ROUNDS) else most
        part, start = steps.of_some(at), (value, gradient[at])
        end = bounded(of_kept, t[at], lower[at], max_iter=most, start=start, steps=part, **stop)
        steps.update(at, part)
        t[at] = end.theta[0]
        n_eval, n_iter = n_eval + end.n_eval, n_iter + end.n_iter[0]
        if kept is None and (end.converged[0] or k >= len(ROUNDS)):
            break
        value, gradient = function(t, None)
        n_eval += 1
        missed = ~keep & (gradient < -stop["tol"])
        if n_eval >= max_iter or (end.converged[0] and not missed.any()):
            break
        keep = (keep if k >= len(ROUNDS) else (t > lower) | (gradient < 0.0)) | missed
        keep[:D] |= k == 0
    return replace(end, theta=t[None], n_eval=n_eval, n_iter=np.array([n_iter]))


# Penalties from which prototype sets are (nearly) the null model ---------------------------------


def largest_v(batch, family, settings):
    """Return a penalty lambda_v of feature weights at which the fit is nearly the null model.

    A weight of 0.3, at which similarities hardly vary, then costs as much as that model's loss."""
    state = BatchState(batch, family, settings)
    loss = state.weight @ state.losses(state.a, state.b)
    least = 0.3  # smaller feature weights make similarities nearly constant
    cost = 0.5 * (1.0 - settings.l1_ratio_v) * least**2 + settings.l1_ratio_v * least
    return float(max(loss / cost, 1e-8))


def largest_w(batch, family, settings):
    """Return a lambda_w (penalty of prototypes' weights) that keeps all weights at zero."""
    state = BatchState(batch, family, settings)
    bound = 1.0  # of the slope of the loss at zero weights, for classes and densities
    if state.loss == SQUARED:
        size = np.abs(state.y)
        bound = 2.0 * float(state.weight @ size) * float(size.max())
    return max(1.000001 * bound, 1e-8) / max(settings.l1_ratio_w, 0.01)
