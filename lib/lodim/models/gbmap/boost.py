"""Boosting: fit weak learners one by one, each to what the earlier ones left unexplained."""

import math
from dataclasses import replace
from functools import partial, reduce
from itertools import count

import numpy as np

from lodim.checks import MAX_SIZE
from lodim.engine import row_keys, tiles
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
from lodim.models.gbmap.cpu_kernels import IDENTITY, SOFTPLUS, forward
from lodim.models.gbmap.hinges import MIXTURES, HingeArrays, draw_starts
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.newton import NewtonResult, Problem, polish, rounded
from lodim.models.gbmap.objective import (
    null_learners,
    penalize,
    precision_of,
    stage_objective,
)
from lodim.models.gbmap.settings import BLOCK, WIDE
from lodim.models.gbmap.small_data import (
    LEAST_GAIN,
    TIED,
    fit_learner,
    follower,
    prepare_class,
)
from lodim.models.gbmap.starts import minimize, start_by_sample, start_in_subspace
from lodim.models.gbmap.training import BoostState
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import DAMPING, Preconditioned, Rescaled

ROUNDS, SETTLED = 100, 1e-9  # of learners and boundaries in turn; change that ends them
LEAST_RESOLVED = 1e-6  # smallest gain of ten further steps that counts, for a loss of one
KINDS = {"n_iter": int, "n_eval": int, "converged": bool, "objective": float, "grad_norm": float}


def fit_stages(batch, family, settings, eval_batch=None, warm_start=None):
    """Fit weak learners step by step; yield (learners, log, predictors) per step, without end.

    Each step adds one learner per class, the better of both signs (Eq. 3 of Patron et al. 2024).
    log : dict of optimizer results; predictors : (n, K), linear, of rows `eval_batch`; or None
    warm_start : learners of another fit as additional starting points, or None"""
    state, threads = BoostState.from_batch(batch, family, settings), settings.n_threads
    eval_score = None if eval_batch is None else eval_batch.offset_matrix(family.n_scores)
    rng = np.random.default_rng(0)  # not `seed`: starts depend only on the data
    small_data = _SmallData(state) if state.small_data else None
    rejected, shift = [None] * family.n_functions, np.zeros_like(state.shift)

    def fit(stage, warm_start):
        if small_data is not None:
            return _fit_small_data(state, small_data, stage, rng, warm_start)
        return _fit_in_turn(state, stage, rng, warm_start, rejected, batch.X)

    for stage in count(1):
        if family.shared_slopes:
            learners, log = _fit_ordered(state, partial(fit, stage), warm_start, batch.X)
        else:
            learners, log = fit(stage, warm_start)
        if stage == 1:  # the training score contains the null model
            learners.theta[:, 0] += state.intercept
        learners.shift[:], shift = state.shift - shift, state.shift.copy()
        if eval_batch is None:
            log["deviance"] = np.full(family.n_functions, state.deviance())
        else:
            eval_score = with_learners(eval_score, learners, eval_batch, threads)
        yield learners, log, eval_score


def _fit_ordered(state, fit, warm_start, X):
    """Fit a learner for ordered classes and their thresholds alternately; return (learners, log).

    fit : function that returns (learners, log), given `warm_start` or other starting learners
    state : BoostState; X : original features, without a rotation"""
    learners, log = fit(warm_start)
    for _ in range(ROUNDS):
        change = state.move_boundaries() if learners.w.any() else np.zeros(1)
        if state.settings.softplus or np.abs(change).max() <= SETTLED:
            break
        state.add(learners.negative(), X)
        learners, log = fit(learners)
    return learners, log


def with_learners(score, learners, batch, threads):
    """Return `score`, linear predictors (n, K) of a batch's rows, plus the values of `learners`."""
    if not on_host(batch.X):
        return score + rows_of_spans(partial(_scores, learners), batch.X, batch.n)
    score = score.copy()
    for lo, hi in batch.runs or [(0, len(batch.X))]:
        X = batch.X[TILES_PER_BLOCK * lo : TILES_PER_BLOCK * hi]
        rows = slice(BLOCK * lo, min(batch.n, BLOCK * hi))
        score[rows] += learners.score(X, rows.stop - rows.start, threads)
    return score


def _scores(learners, X):
    return learners.score(X, len(X) * tiles.TILE, available_threads())


def combine(parts):
    """Join pairs (learners, log) of all steps; after step 1, drop softplus learners with w = 0."""
    learners, logs = zip(*parts, strict=True)
    every = WeakLearners.concatenate(learners)
    keep = every.w.any(axis=1) | (every.stage == 1) | (every.activation == IDENTITY)
    log = {name: np.concatenate([log[name] for log in logs])[keep] for name in logs[0]}
    return every.select(keep), log


class _SmallData:
    """Data, settings and work arrays that all boosting steps share if there are few rows."""

    def __init__(self, state):
        self.state, settings, stop = state, state.settings, _limits(state)
        y, weight = (tiles.pad(v, len(state.X)) for v in (state.y, state.weight))
        start_at, start_X = state.starts.at, np.ascontiguousarray(state.starts.X.T)
        self.ridge = penalize(settings, state.X.shape[1], state.p).ridge
        self.beta, self.ftol = float(settings.beta), float(stop["ftol"])
        precision, limits = precision_of(state.X.dtype), (stop["max_iter"], float(stop["tol"]))
        rows = state.X, weight.astype(state.X.dtype)
        shape = self.beta, state.loss, self.ridge, state.unit
        self.follow = follower(Problem(*rows, *shape, precision, *limits))
        self.margin = np.empty(y.shape), np.empty(y.shape)
        slopes = np.empty(start_at.size), np.empty(start_at.size)
        self.rows = y, state.score, weight
        self.start_rows = start_X, *slopes
        self.way = state.loss, start_at, *self.margin, *slopes
        self.room = HingeArrays.of_size(2 + 2 * MIXTURES, *start_X.shape, settings.n_starts)
        self.target = np.arange(state.family.n_functions)
        self.turn = np.argsort(state.starts.class_order)

    def starts(self, k, waves, n_starts):
        """Return n_starts starting learners of class k per sign, their signs, and the current loss.

        waves : (n, MIXTURES) random weights; weighted sums of rows are tried as directions"""
        null_value = prepare_class(*self.rows, k, self.state.class_table(), *self.way)
        shape = self.ridge[-1], True, n_starts, self.room
        return *draw_starts(*self.start_rows, waves, *shape), null_value


def _fit_small_data(state, small_data, stage, rng, warm_start):
    """Run boosting step number `stage` by Newton's method, for few rows; return (learners, log).

    small_data : _SmallData; warm_start : learners as additional starting points, or None"""
    order, n_starts = state.starts.class_order, state.settings.n_starts
    waves = [row_keys.waves(state.starts.key, MIXTURES, rng) for _ in order]
    theta, sign = np.zeros((len(order), small_data.ridge.size)), np.empty(len(order))
    theta[:, 0] = -math.log(2.0) / small_data.beta
    logs = []
    for i, k in enumerate(order.tolist()):
        warm = () if warm_start is None else _warm_starts(warm_start, stage, k, state)
        is_new = not warm or len(warm[0]) == 0
        *found, null_value = small_data.starts(k, waves[i], n_starts if is_new else 1)
        found[0] = rounded(found[0], state.unit)
        if not is_new:
            found = [np.concatenate(pair) for pair in zip(found, warm, strict=True)]
        compare = n_starts > 1 if is_new else True
        rest = compare, null_value, small_data.ftol, theta[i]
        sign[i], log = fit_learner(small_data.follow, *small_data.margin, *found, *rest)
        theta[i] = rounded(theta[i : i + 1], state.unit, state.settings.bits)
        learner = theta[i : i + 1], sign[i : i + 1], small_data.beta, SOFTPLUS, False
        forward(0, 1, state.X, *learner, small_data.target[k : k + 1], state.score)
        logs.append(log)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    columns = zip(*[logs[i] for i in small_data.turn], strict=True)
    log = {
        name: np.array(v, KINDS[name])
        for name, v in zip(NewtonResult._fields, columns, strict=True)
    }
    log["newton"] = np.ones(len(order), bool)
    return _learners(
        state, theta[small_data.turn], sign[small_data.turn], small_data.target, stage
    ), log


def _fit_in_turn(state, stage, rng, warm_start, rejected, X):
    """Run boosting step number `stage` by L-BFGS, class by class; return (learners, log).

    Per class, learners of both signs are fitted and the better is kept. X : features, not rotated
    warm_start : learners as additional starting points, or None; log : dict of optimizer results
    rejected : per class, (theta, sign) of the one not kept in the last step, or None; updated"""
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
    """Fit class k's learner of step `stage` for both signs; return (better one, log, worse one).

    The better one is WeakLearners, log a dict of optimizer results, the worse one (theta, sign).
    warm_start, rejected : more starting points: WeakLearners, and the last step's worse one"""
    penalty = penalize(state.settings, state.X.shape[1], state.p)
    objective = stage_objective(state, state.rows(k), penalty)
    warm = _warm_starts(warm_start, stage, k, state)
    stop = _limits(state)
    start = (
        start_in_subspace(objective, penalty, state, k, *warm, rejected)
        if state.in_subspace
        else None
    )
    start = start or start_by_sample(objective, penalty, state, k, rng, stop, *warm)
    theta, sign, entry, rejected = _minimize(objective, penalty, state, k, start, stop)
    if state.rotation is not None:
        theta = state.rotation.expand(theta)
    return _learners(state, theta, np.array([sign]), np.array([k]), stage), entry, rejected


def _learners(state, theta, sign, target, stage):
    shape = *state.settings.shape, state.scale, state.family.n_functions
    shift = np.zeros((len(sign), state.shift.size))
    return WeakLearners(theta, sign, target, np.full(len(sign), stage), *shape, shift)


def _warm_starts(warm_start, stage, k, state):
    """Return (theta, sign) of those learners in `warm_start` that have this `stage` and class k."""
    if warm_start is None:
        return np.zeros((0, 2 + state.X.shape[1])), np.zeros(0)
    warm = warm_start.select((warm_start.stage == stage) & (warm_start.target == k))
    theta = warm.theta if state.rotation is None else state.rotation.project(warm.theta)
    theta[:, 0] -= state.intercept[k] if stage == 1 else 0.0
    return theta, warm.sign


def _limits(state):
    settings = state.settings
    return {"max_iter": settings.max_iter} | settings.tolerances(
        state.exact, _preconditioned(state)
    )


def _preconditioned(state):
    """Return whether L-BFGS is preconditioned by a Hessian, which pays only for few parameters."""
    settings = state.settings
    if settings.monotone is not None:
        return False
    # A Hessian of the row sample pays for at most 512 parameters.
    most = WIDE if settings.low_precision else 512
    return settings.l1_ratio == 0.0 and 2 + state.X.shape[1] <= most


def _minimize(objective, penalty, state, k, start, stop):
    """Fit class k's learner for signs 1 and -1; return the better theta, its sign and log.

    Also return the worse (theta, sign). The better has value 0 if neither lowers the loss.
    objective : function from signs to the loss of learners of these signs; penalty : ElasticNet
    start : Start of the search; stop : dict of the optimizer's limits, changed in place"""
    settings, sign = state.settings, start.sign
    stop |= _tolerances(state, k, start, stop)
    end = _refine(
        objective(sign),
        _preconditioner_loss(objective, penalty, state, k, sign),
        start.theta,
        stop,
        state,
    )
    null = null_learners(sign, start.theta.shape[1], settings)
    null_value = start.null_value
    if null_value is None:
        null_value = objective(sign)(null, np.arange(1))[0][0]
    if end.value.min() > null_value:
        end = minimize(objective(sign), null, state, **stop)
    lowest = end.value.min()
    tied = end.value <= lowest + TIED * abs(lowest)
    best = int(np.argmax(tied & (end.converged | ~end.converged[tied].any())))  # b = 1 if both do
    gains = null_value - lowest > max(stop["ftol"], LEAST_GAIN * settings.softplus) * null_value
    rejected = np.delete(end.theta, best, axis=0), np.delete(sign, best)
    fields = ("theta", "value", "grad_norm", "n_iter", "converged")
    end = replace(end, **{name: getattr(end, name)[[best]] for name in fields})
    end = _without_rounding_errors(
        end, _preconditioner_loss(objective, penalty, state, k, sign[[best]]), state
    )
    entry = {
        "objective": end.value[0],
        "grad_norm": end.grad_norm[0],
        "n_iter": end.n_iter[0],
        "converged": end.converged[0] or not gains,
        "n_eval": start.n_eval + end.n_eval + (start.null_value is None),
        "newton": False,
    } | {name: stop[name] for name in ("resolution",) if name in stop}
    return end.theta if gains else null[[best]], sign[best], entry, rejected


def _tolerances(state, k, start, stop):
    """Return a dict of tolerances for class k's learner, to replace those in `stop`.

    With few rows: `ftol`, relative to the loss at `start` (a Start). With many rows: `resolution`,
    the smallest gain by ten further steps that counts, from the standard error of the loss."""
    value, best = start.value.min(), start.value.argmin()
    if not state.settings.stop_at_noise(state.exact):
        # The tolerance is relative to a loss of at least 1e-6: rounding limits smaller losses.
        return {"ftol": stop["ftol"] / min(max(value, 1e-6), 1.0)}
    learner = _learners(state, start.theta[[best]], start.sign[[best]], np.array([k]), 1)
    error = state.standard_error(k, learner)
    # A gain of a quarter of the standard error by ten further steps does not matter.
    resolution = max(0.25 * error, LEAST_RESOLVED * max(1.0, value))
    return {"tol": 0.0, "ftol": 0.0, "resolution": resolution}


def _preconditioner_loss(objective, penalty, state, k, sign):
    """Return the loss whose Hessian preconditions L-BFGS; None if L-BFGS is not preconditioned.

    It is the loss of sampled rows with `penalty`, an ElasticNet; objective(sign) without a sample.
    objective : function from signs to the loss of all rows; sign : signs of class k's learners"""
    if not _preconditioned(state):
        return None
    if state.sample is None:
        return objective(sign)
    # With many features, eight rows per parameter suffice.
    most = 8 * (2 + state.X.shape[1]) if state.in_subspace else len(state.sample)
    return stage_objective(state, state.sample_rows(k, most), penalty)(sign)


def _refine(objective, preconditioner, theta, stop, state):
    """Minimize the loss `objective` of all rows by L-BFGS from theta; return a Minimum.

    preconditioner : loss whose Hessian preconditions, or None; stop : dict of limits of `lbfgs`"""
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


def _without_rounding_errors(end, preconditioner, state):
    """Return `end`, a Minimum, with rounded parameters if rows are few and learners are smooth.

    preconditioner : loss for Newton steps before the rounding; None to omit these steps"""
    settings = state.settings
    if not (state.exact and settings.softplus):
        return end
    if settings.tol is None and settings.ftol is None and preconditioner is not None:
        end = polish(preconditioner, end)
    return replace(end, theta=rounded(end.theta, state.unit, settings.bits))


def _descent_bounds(state, k):
    """Return upper bounds (p,) of how much class k's loss falls per unit of each feature's weight.

    A bound is sum_i |s_i x_ij| for softplus learners and sum_i s_i x_ij for linear ones, where s_i
    is the derivative of row i's weighted loss by the row's linear predictor."""
    shape = state.loss, state.settings.softplus
    if state.on_workers:
        spans = state.device.margin_spans(_descent_bounds_of_span, k, state.shift, BLOCK, *shape)
        return reduce(np.add, spans)
    # Several spans are processed block by block, so that copies stay small.
    step = BLOCK if len(state.y) > SPAN_ROWS else SPAN_ROWS

    def part(rows):
        own = state.X[tiles.of_rows(rows)]
        return _descent_bounds_of_span(
            own, *state.margin(k, rows), state.weight[rows], step, *shape
        )

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
