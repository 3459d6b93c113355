"""Boosting: fit weak learners one by one, each to what the earlier ones left unexplained."""

from dataclasses import replace
from functools import reduce
from itertools import count

import numpy as np

from lodim.checks import MAX_SIZE
from lodim.engine import tiles
from lodim.engine.blocks import (
    SPAN_ROWS,
    available_threads,
    on_host,
    rows_of_spans,
    single_blas,
    sum_rows,
)
from lodim.engine.tiles import TILES_PER_BLOCK
from lodim.family import losses
from lodim.models.gbmap.cpu_kernels import IDENTITY, forward
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.newton import Problem, polish, rounded
from lodim.models.gbmap.objective import (
    LEAST_GAIN,
    best_position,
    lowest,
    null_learners,
    penalize,
    precision_of,
    stage_objective,
)
from lodim.models.gbmap.settings import BLOCK, WIDE
from lodim.models.gbmap.small_data import fit_learner, prepare_class
from lodim.models.gbmap.starts import draw_starts, minimize, start_by_sample, start_in_subspace
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import DAMPING, Preconditioned, Rescaled

ROUNDS, SETTLED = 100, 1e-9  # of learners and boundaries in turn; change that ends them
LEAST_RESOLVED = 1e-6  # smallest gain of ten further steps that counts, for a loss of one
# Columns of the results of `newton`, and their types in the log.
KINDS = {"objective": float, "grad_norm": float, "n_iter": int, "n_eval": int, "converged": bool}


def fit_stages(batch, family, settings, eval_batch=None, warm_start=None):
    """Fit weak learners by boosting; yield those of each step, without end.

    Each step yields (WeakLearners, dict of optimizer results, linear predictors of `eval_batch`).
    eval_batch : other rows to predict, or None
    warm_start : WeakLearners of another fit to start from, or None"""
    # Each step adds one learner per class, the better of both signs (Eq. 3 of Patron et al. 2024).
    state, threads = BoostState.from_batch(batch, family, settings), settings.n_threads
    eval_score = None if eval_batch is None else eval_batch.offset_matrix(family.n_scores)
    rng = np.random.default_rng(0)  # not `seed`: starts depend only on the data
    problem = _newton_problem(state) if state.small_data else None
    rejected, shift = [None] * family.n_functions, np.zeros_like(state.shift)

    def fit(stage, warm_start):
        if problem is not None:
            return _fit_small_data(state, problem, stage, rng, warm_start)
        return _fit_in_turn(state, stage, rng, warm_start, rejected, batch.X)

    for stage in count(1):
        learners, log = fit(stage, warm_start)
        if family.shared_slopes:  # fit the learner and the thresholds of ordered classes in turn
            for _ in range(ROUNDS):
                change = state.move_boundaries() if learners.w.any() else np.zeros(1)
                if settings.softplus or np.abs(change).max() <= SETTLED:
                    break
                state.add(learners.negative(), batch.X)
                learners, log = fit(stage, learners)
        if stage == 1:  # the training score contains the null model
            learners.theta[:, 0] += state.intercept
        learners.shift[:], shift = state.shift - shift, state.shift.copy()
        if eval_batch is None:
            log["deviance"] = np.full(family.n_functions, state.deviance())
        else:
            eval_score = with_learners(eval_score, learners, eval_batch, threads)
        yield learners, log, eval_score


def with_learners(score, learners, batch, threads):
    """Return `score`, linear predictors (n, K) of a batch's rows, plus the values of `learners`."""
    if not on_host(batch.X):

        def work(X):
            return learners.score(X, len(X) * tiles.TILE, available_threads())

        return score + rows_of_spans(work, batch.X, batch.n)
    score = score.copy()
    for lo, hi in batch.runs or [(0, len(batch.X))]:
        X = batch.X[TILES_PER_BLOCK * lo : TILES_PER_BLOCK * hi]
        rows = slice(BLOCK * lo, min(batch.n, BLOCK * hi))
        score[rows] += learners.score(X, rows.stop - rows.start, threads)
    return score


def combine(parts):
    """Join the learners and the result dicts of boosting steps; return (learners, result dict).

    Constant softplus learners are dropped, except those of step 1.
    parts : pairs (learners, result dict), one per step"""
    learners, logs = zip(*parts, strict=True)
    every = WeakLearners.concatenate(learners)
    keep = every.w.any(axis=1) | (every.stage == 1) | (every.activation == IDENTITY)
    log = {name: np.concatenate([log[name] for log in logs])[keep] for name in logs[0]}
    return every.select(keep), log


def _newton_problem(state):
    """Return a Problem for `newton`: rows and loss of a BoostState, penalty, limits of search."""
    settings, dtype, stop = state.settings, state.X.dtype, _limits(state)
    ridge = penalize(settings, state.X.shape[1], state.p).ridge
    shape = float(settings.beta), state.loss, ridge, state.unit
    limits = precision_of(dtype), stop["max_iter"], float(stop["tol"])
    return Problem(state.X, tiles.pad(state.weight, len(state.X), dtype), *shape, *limits)


def _fit_small_data(state, problem, stage, rng, warm_start):
    """Fit a learner per class to few rows by Newton's method; return (learners, optimizer results).

    state : BoostState, to which the learners are added; stage : boosting step, from 1
    warm_start : WeakLearners of another fit to start from, or None"""
    settings, starts, target = state.settings, state.starts, np.arange(state.family.n_functions)
    y, weight = (tiles.pad(v, len(state.X)) for v in (state.y, state.weight))
    theta, sign = np.empty((len(target), problem.ridge.size)), np.empty(len(target))
    ends, ftol = np.empty((len(target), len(KINDS))), float(_limits(state)["ftol"])
    for k in starts.class_order.tolist():
        rows = y, state.score, weight, k, state.class_table(), state.loss, starts.at
        *own, slope, curvature, null_value = prepare_class(*rows)
        warm_theta, warm_sign = _warm_starts(warm_start, stage, k, state)
        how = problem.ridge[-1], True, 1 if len(warm_theta) else settings.n_starts, rng
        start, signs = draw_starts(starts.X, slope, curvature, starts.key, *how)
        start = np.concatenate([rounded(start, state.unit), warm_theta])
        signs = np.concatenate([signs, warm_sign])
        end, sign[k], ends[k] = fit_learner(problem, own, null_value, start, signs, ftol)
        theta[k] = rounded(end[None], state.unit, settings.bits)
        learner = theta[k : k + 1], sign[k : k + 1], *settings.shape, False, target[k : k + 1]
        forward(0, 1, state.X, *learner, state.score)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    log = {name: v.astype(kind) for (name, kind), v in zip(KINDS.items(), ends.T, strict=True)}
    log["newton"] = np.ones(len(target), bool)
    return _learners(state, theta, sign, target, stage), log


def _fit_in_turn(state, stage, rng, warm_start, rejected, X):
    """Fit a learner per class, one class after another; return (learners, optimizer results).

    state : BoostState, to which the learners are added; stage : boosting step, from 1
    warm_start : WeakLearners of another fit to start from, or None
    rejected : per class, (parameters, sign) of the last step's other learner, or None; updated
    X : features before any rotation"""
    learners, logs = [None] * state.family.n_functions, [{}] * state.family.n_functions
    with single_blas():
        for k in state.starts.class_order:
            learners[k], logs[k], rejected[k] = _fit_learner(
                state, stage, k, rng, warm_start, rejected[k]
            )
            state.add(learners[k], X)
    log = {name: np.array([entry[name] for entry in logs]) for name in logs[0]}
    return WeakLearners.concatenate(learners), log


def _fit_learner(state, stage, k, rng, warm_start, rejected):
    """Fit a learner of class k with each sign; return (learner, optimizer results, rejected one).

    The learner with the lower loss is a WeakLearners, the rejected one is (parameters, sign).
    state : BoostState; stage : boosting step, from 1
    warm_start : WeakLearners of another fit to start from, or None
    rejected : the rejected learner of the last step, or None"""
    penalty = penalize(state.settings, state.X.shape[1], state.p)
    objective = stage_objective(state, state.rows(k), penalty)
    warm, stop, start = _warm_starts(warm_start, stage, k, state), _limits(state), None
    if state.in_subspace:
        start = start_in_subspace(objective, penalty, state, k, *warm, rejected)
    start = start or start_by_sample(objective, penalty, state, k, rng, stop, *warm)
    value, best = start.value.min(), start.value.argmin()
    is_given = state.settings.tol is not None or state.settings.ftol is not None
    if state.exact or is_given or not state.settings.smooth:
        # The tolerance is relative to a loss of at least 1e-6: rounding limits smaller losses.
        stop["ftol"] /= min(max(value, 1e-6), 1.0)
    else:
        learner = _learners(state, start.theta[[best]], start.sign[[best]], np.array([k]), 1)
        # A gain of a quarter of the standard error by ten further steps does not matter.
        least = max(0.25 * state.standard_error(k, learner), LEAST_RESOLVED * max(1.0, value))
        stop |= {"tol": 0.0, "ftol": 0.0, "resolution": least}
    curved = objective if _preconditioned(state) else None
    if curved is not None and state.sample is not None:
        # With many features, eight rows per parameter suffice.
        most = 8 * (2 + state.X.shape[1]) if state.in_subspace else len(state.sample)
        curved = stage_objective(state, state.sample_rows(k, most), penalty)
    theta, sign, entry, rejected = _minimize(objective, curved, state, start, stop)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    return _learners(state, theta, sign, np.array([k]), stage), entry, rejected


def _learners(state, theta, sign, target, stage):
    shape = *state.settings.shape, state.scale, state.family.n_functions
    shift = np.zeros((len(sign), state.shift.size))
    return WeakLearners(theta, sign, target, np.full(len(sign), stage), *shape, shift)


def _warm_starts(warm_start, stage, k, state):
    """Return parameters and signs of learners of another fit to start from.

    Parameters are rows (constant, intercept, weights) for the features of `state`, a BoostState.
    warm_start : WeakLearners of the other fit, or None for no learners
    stage, k : boosting step, from 1, and class of the learners to return"""
    if warm_start is None:
        return np.zeros((0, 2 + state.X.shape[1])), np.zeros(0)
    warm = warm_start.select((warm_start.stage == stage) & (warm_start.target == k))
    theta = warm.theta if state.rotation is None else state.rotation.project(warm.theta)
    theta[:, 0] -= state.intercept[k] if stage == 1 else 0.0
    return theta, warm.sign


def _limits(state):
    """Return a dict of the optimizer's limits: max_iter, tol, ftol of a BoostState, or defaults."""
    settings = state.settings
    tol, ftol = (1e-8, 1e-12 if _preconditioned(state) else 1e-8) if state.exact else (1e-5, 1e-6)
    if not settings.softplus:  # estimates of linear models must be accurate
        tol, ftol = 1e-8, 1e-13
    return {
        "max_iter": settings.max_iter,
        "tol": tol if settings.tol is None else float(settings.tol),
        "ftol": ftol if settings.ftol is None else float(settings.ftol),
    }


def _preconditioned(state):
    """Return whether L-BFGS uses a Hessian for a BoostState, which pays only for few parameters."""
    settings = state.settings
    # A Hessian of the row sample pays for at most 512 parameters.
    most = WIDE if settings.low_precision else 512
    few = 2 + state.X.shape[1] <= most
    return few and settings.l1_ratio == 0.0 and settings.monotone is None


def _minimize(objective, curved, state, start, stop):
    """Fit a learner with each sign; return the better one, optimizer results and the other one.

    The result is (parameters, sign, results dict, (parameters, sign) of the other learner).
    objective : function that returns the BoostObjective for an array of signs
    curved : the same, with Hessians that speed up the search; or None
    state : BoostState; start : Start; stop : dict of limits of the optimizer"""
    settings, sign, null_value = state.settings, start.sign, start.null_value
    preconditioner = None if curved is None else curved(sign)
    end = _refine(objective(sign), preconditioner, start.theta, stop, state)
    null = null_learners(sign, start.theta.shape[1], settings)
    if null_value is None:
        null_value = objective(sign)(null, np.arange(1))[0][0]
    if lowest(end.value) > null_value:
        end = minimize(objective(sign), null, state, **stop)
    best = best_position(end.value, end.converged)  # b = 1 if both tie
    least = max(stop["ftol"], LEAST_GAIN * settings.softplus)
    gains = null_value - lowest(end.value) > least * null_value
    rejected = np.delete(end.theta, best, axis=0), np.delete(sign, best)
    fields = ("theta", "value", "grad_norm", "n_iter", "converged")
    end = replace(end, **{name: getattr(end, name)[[best]] for name in fields})
    if state.exact and settings.softplus:
        if settings.tol is None and settings.ftol is None and curved is not None:
            end = polish(curved(sign[[best]]), end)
        end = replace(end, theta=rounded(end.theta, state.unit, settings.bits))
    entry = {
        "objective": end.value[0],
        "grad_norm": end.grad_norm[0],
        "n_iter": end.n_iter[0],
        "converged": end.converged[0] or (not gains and np.isfinite(null_value - end.value[0])),
        "n_eval": start.n_eval + end.n_eval + (start.null_value is None),
        "newton": False,
    } | {name: stop[name] for name in ("resolution",) if name in stop}
    # Without a relevant gain, the learner predicts 0.
    return end.theta if gains else null[[best]], sign[[best]], entry, rejected


def _refine(objective, preconditioner, theta, stop, state):
    """Minimize the losses of q learners over all rows by L-BFGS; return a Minimum.

    preconditioner : BoostObjective whose Hessians speed up the search, or None
    theta : (q, d) starting parameters
    stop : dict of limits of the optimizer; state : BoostState"""
    exact = state.exact
    way, damping = {"best_only": not exact}, DAMPING
    if state.in_subspace:  # the Hessian is that of few rows
        way, damping = way | {"memory": 30}, 0.1  # damping: share of the largest curvature
    if preconditioner is None:
        return minimize(objective, theta, state, **stop, **way)
    most = 40 if exact else stop["max_iter"]  # evaluations with the same Hessian
    n_iter, n_eval, left = 0, 0, stop["max_iter"]
    objective, preconditioner = (Rescaled(f, state.unit) for f in (objective, preconditioner))
    u = objective.to(theta)
    while True:
        scaled = Preconditioned(objective, preconditioner.hessian(u), damping)
        limits = stop | {"max_iter": min(left, most)}
        end = lbfgs(scaled, scaled.to(u), **limits, **way)
        u, n_iter = scaled.back(end.theta), n_iter + end.n_iter
        n_eval, left = n_eval + end.n_eval, left - end.n_eval
        if left <= 0 or not exact or end.converged.all():
            return replace(end, theta=objective.back(u), n_iter=n_iter, n_eval=n_eval)


def _descent_bounds(state, k):
    """Return upper limits (p,) of how fast the weights of a new learner change the loss of class k.

    For linear learners, return the derivatives of that loss by the weights instead.
    state : BoostState, before the new learner"""
    # A bound is sum_i |s_i x_ij| for softplus learners and sum_i s_i x_ij for linear ones, where
    # s_i is the derivative of row i's weighted loss by the row's linear predictor.
    shape = state.loss, state.settings.softplus
    if state.on_workers:
        spans = state.device.margin_spans(_descent_bounds_of_span, k, state.shift, BLOCK, *shape)
        return reduce(np.add, spans)
    # Several spans are processed block by block, so that copies stay small.
    step = BLOCK if len(state.y) > SPAN_ROWS else SPAN_ROWS

    def part(rows):
        columns = *state.margin(k, rows), state.weight[rows]
        return _descent_bounds_of_span(state.X[tiles.of_rows(rows)], *columns, step, *shape)

    return sum_rows(part, len(state.y))


def _descent_bounds_of_span(X, y, base, weight, step, loss, softplus):
    _, slope, _ = losses.rows(loss, y, base, weight)

    def of_block(rows):
        part = X[tiles.of_rows(rows)]
        r = tiles.pad(slope[rows], len(part))
        if softplus:
            part, r = np.abs(part), np.abs(r)
        return np.einsum("tpi,ti->p", part, r, optimize=True)

    return sum(of_block(slice(lo, min(len(y), lo + step))) for lo in range(0, len(y), step))


def lambda_max(batch, family, settings):
    """Return a penalty so large that the fit is (nearly) the intercept-only model."""
    state = BoostState.from_batch(batch, family, replace(settings, engine="cpu"))
    p = state.p + settings.penalize_intercept
    largest, squares = 0.0, 0.0
    for k in range(family.n_functions):
        with single_blas():
            bound = _descent_bounds(state, k)
        largest = max(largest, np.abs(bound).max(initial=0.0))
        squares = max(squares, bound @ bound)
    if settings.l1_ratio >= 0.01:
        # Slightly above the bound, so that a path begins with zero weights despite rounding.
        return float(np.clip(1.000001 * largest * p / settings.l1_ratio, 1e-8, MAX_SIZE))
    loss = state.deviance() / state.scale**state.family.degree
    gain = 0.01 / (settings.m or 1)
    return float(np.clip(p * squares / (4.0 * gain * max(loss, 1e-12)), 1e-8, MAX_SIZE))
