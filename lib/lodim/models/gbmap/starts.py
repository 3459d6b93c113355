"""Starting points of a boost: reproducible hinges max(u'x - knot, 0) that lower the loss most."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import row_keys, tiles
from lodim.engine.blocks import on_host, over_rows, row_spans
from lodim.engine.workers import WorkerTiles
from lodim.family.losses import SQUARED
from lodim.models.gbmap.cpu_kernels import IDENTITY, Form, forward
from lodim.models.gbmap.hinges import find_directions, place_hinges
from lodim.models.gbmap.newton import rounded
from lodim.models.gbmap.objective import (
    SCREENING_FTOL,
    BoostObjective,
    best_of_each_sign,
    derivatives,
    null_learners,
    penalize,
    stage_objective,
)
from lodim.models.gbmap.worker_rows import loss_slope
from lodim.solve.lbfgs import SPACING, Minimum, bounded, lbfgs
from lodim.solve.objective import ElasticNet, Rescaled

MIXTURES = 4  # random sums of rows among the directions to search


@dataclass(frozen=True)
class Start:
    """Starting points of the optimizer: the best learner of each sign (factor 1 or -1)."""

    # sign, theta, value: (q,) signs; (q, d) parameters; (q,) losses, possibly on sampled rows
    sign: np.ndarray
    theta: np.ndarray
    value: np.ndarray
    n_eval: int  # number of passes over all rows
    null_value: float | None = None  # loss of all rows without the learner, None if unknown


def minimize(objective, theta, state, **options):
    """Minimize `objective` by L-BFGS from each row of theta (q, d); return a Minimum.

    theta : starting parameters; a row has those of one learner, or of several
    options : limits of the optimizer; state : BoostState"""
    scaled = Rescaled(objective, np.tile(state.unit, theta.shape[1] // state.unit.size))
    if state.settings.monotone is None:
        end = lbfgs(scaled, scaled.to(theta), **options)
        return replace(end, theta=scaled.back(end.theta))
    # Required signs of all parameters, 0 for any sign.
    signs = [np.r_[0, 0, b * np.asarray(state.settings.monotone)] for b in objective.sign]
    signs, start = np.concatenate(signs).reshape(theta.shape), scaled.to(theta)
    limits = {k: options[k] for k in ("max_iter", "tol", "ftol", "spacing") if k in options}
    ends = [_minimize_row(scaled, start, c, sign, **limits) for c, sign in enumerate(signs)]
    fields = ("theta", "value", "grad_norm", "n_iter", "converged")
    joined = {name: np.concatenate([getattr(end, name) for end in ends]) for name in fields}
    joined["theta"] = scaled.back(joined["theta"])
    return Minimum(**joined, n_eval=max(end.n_eval for end in ends))


def _minimize_row(objective, theta, c, sign, **limits):
    flip, active, point = np.where(sign == 0, 1.0, sign), np.array([c]), theta.copy()

    def function(u):
        point[c] = u * flip
        value, gradient = objective(point, active)
        return value[c], gradient[c] * flip

    end = bounded(function, theta[c] * flip, np.where(sign == 0, -np.inf, 0.0), **limits)
    return replace(end, theta=end.theta * flip)


def start_by_sample(objective, penalty, state, k, rng, stop, warm_theta, warm_sign):
    """Return a Start for class k: the best learner of each sign on the sampled rows.

    objective : function that returns the BoostObjective for an array of signs
    penalty : ElasticNet; state : BoostState; stop : dict of limits of the optimizer
    warm_theta, warm_sign : parameters and signs of another fit's learners to start from"""
    settings, exact = state.settings, state.exact
    if state.sample is not None:
        objective = stage_objective(state, state.sample_rows(k), penalty)
    n_starts = 1 if len(warm_theta) else settings.n_starts  # in addition to the neighbour's learner
    starts = state.starts
    y, score, weight = (v[starts.at] for v in state.sample_margin(k))
    by_row = derivatives(state.loss, y, score, weight / weight.sum())
    how = starts.key, penalty.ridge[-1], settings.softplus, n_starts, rng
    theta, sign = draw_starts(starts.X, *by_row, *how)
    theta = np.concatenate([rounded(theta, state.unit), warm_theta])
    sign = np.concatenate([sign, warm_sign])
    rows = objective(sign)
    # The minimum on n sampled rows is too low by about d / n; a fifth of that need not be resolved.
    ftol = SCREENING_FTOL if exact else 0.2 * theta.shape[1] / rows.n
    stop = stop | {"ftol": max(stop["ftol"], ftol), "spacing": SPACING}
    end = minimize(rows, theta, state, **stop)
    theta = rounded(end.theta, state.unit)
    return _start(end, sign, theta, end.n_eval if exact else 0)


def start_in_subspace(objective, penalty, state, k, warm_theta, warm_sign, rejected):
    """Return a Start for class k, found in a space of few directions; None if no weight matters.

    objective : function that returns the BoostObjective for an array of signs
    penalty : ElasticNet; state : BoostState
    warm_theta, warm_sign : parameters and signs of another fit's learners to start from
    rejected : (parameters, sign) of the last step's other learner, or None"""
    # Weights combine principal Hessian directions and weights of the given learners.
    settings, p = state.settings, state.X.shape[1]
    n_starts = 1 if len(warm_theta) else settings.n_starts
    if rejected is not None:
        warm_theta = np.concatenate([warm_theta, rejected[0]])
        warm_sign = np.concatenate([warm_sign, rejected[1]])
    on_sample = p * 128 <= len(state.sample)  # 128 rows per feature show the directions
    X, y, score, weight = state.sample_rows(k) if on_sample else state.rows(k, to_host=True)
    if on_sample:
        objective = stage_objective(state, (X, y, score, weight), penalty)
    null = null_learners(np.ones(1), 2 + p, settings)
    value, gradient = objective(np.ones(1))(null, np.arange(1))
    if not gradient[0, 2:].any():
        return None
    V, T = krylov(_slope_weighted_gram(state, X, y, score, weight), gradient[0, 2:])
    V = _extended(V, warm_theta[:, 2:])
    U = np.zeros((1 + len(T), V.shape[1]))  # in C order, for which `place_hinges` is compiled
    U[0, 0], U[1:, : len(T)] = 1.0, np.linalg.eigh(T)[1].T
    Z = _projected(X, V, settings.n_threads)
    sampled = tiles.unpack(Z, len(state.sample)) if on_sample else tiles.rows(Z, state.sample)
    sampled = np.ascontiguousarray(sampled.T, np.float64)
    by_row = derivatives(state.loss, *state.sample_margin(k))
    theta, sign = place_hinges(U, sampled, *by_row, penalty.ridge[-1], True, n_starts)
    theta = np.concatenate([theta, np.hstack([warm_theta[:, :2], warm_theta[:, 2:] @ V])])
    sign = np.concatenate([sign, warm_sign])
    within = penalize(settings, V.shape[1], state.p)
    rows = stage_objective(state, (Z, y, score, weight), within)
    end = lbfgs(rows(sign), theta, max_iter=100, tol=0.0, ftol=1e-6)  # passes are cheap in a span
    theta = rounded(np.hstack([end.theta[:, :2], end.theta[:, 2:] @ V.T]), state.unit)
    if on_sample:
        return _start(end, sign, theta, 0)
    n_eval = 2 + len(T) + -(-end.n_eval * V.shape[1] // p)
    return replace(_start(end, sign, theta, n_eval), null_value=float(value[0]))


def _start(minimum, sign, theta, n_eval):
    """Return a Start with two of q learners: those of lowest loss with sign 1 and with sign -1.

    minimum : Minimum with the losses; sign : (q,); theta : (q, d); n_eval : passes so far"""
    best = best_of_each_sign(minimum.value, sign)
    return Start(sign[best], theta[best], minimum.value[best], n_eval)


def _slope_weighted_gram(state, X, y, score, weight):
    """Return the function v -> X' diag(s) X v, where s are loss derivatives by `score`."""
    # Half the gradient of sum_i slope_i (v'x_i)^2, computed by the kernels for squared loss.
    if isinstance(score, WorkerTiles):
        columns = state.device.gram_problem(y, score, weight)
    else:
        slope = np.empty_like(y)
        for lo in range(0, len(y), tiles.TILES_PER_BLOCK):
            own = slice(lo, lo + tiles.TILES_PER_BLOCK)
            slope[own] = loss_slope(score[own], y[own], weight[own], state.loss)
        zero = np.zeros_like(slope)
        columns = zero, zero, 0.5 * slope
        if not on_host(X):
            columns = state.device.to_gpu(*columns)
    line = Form(1.0, IDENTITY, SQUARED)
    free = ElasticNet(*np.zeros((2, 2 + X.shape[1])))
    form = BoostObjective(X, *columns, np.ones(1), line, free, state.settings.n_threads)
    return lambda v: form(np.concatenate([[0.0, 0.0], v])[None], np.arange(1))[1][0, 2:]


def _extended(V, w):
    for direction in w:
        size = np.linalg.norm(direction)
        for _ in range(2):
            direction = direction - V @ (V.T @ direction)
        if np.linalg.norm(direction) > 1e-6 * size:
            V = np.column_stack([V, direction / np.linalg.norm(direction)])
    return V


def _projected(X, V, threads):
    """Return the projections X V of all rows on directions V (p, r), in blocks of 64 rows."""
    r = V.shape[1]
    theta = np.hstack([np.zeros((r, 2)), V.T])
    rest = theta, np.ones(r), 1.0, IDENTITY, False, np.arange(r)
    if isinstance(X, WorkerTiles):
        return X.add(forward, (r, tiles.TILE), *rest).astype(X.dtype)
    out = np.empty((len(X), r, tiles.TILE), X.dtype)
    for i in map(tiles.of_rows, row_spans(len(X) * tiles.TILE)):
        part = np.zeros((len(X[i]), r, tiles.TILE))
        over_rows(forward, X[i], *rest, part, threads=threads)
        out[i] = part
    return out


# Starts in the data ------------------------------------------------------------------------------


def draw_starts(X, slope, curvature, key, ridge, hinges, n_starts, rng):
    """Return the learners that lower the loss most: rows (constant, intercept, weights), and signs.

    X : (p, n) centred features
    slope, curvature : (n,) first and second derivatives of the losses
    key : (n,) numbers that depend only on a row's values; ridge : penalty per squared weight
    hinges : whether learners bend; otherwise they are linear
    n_starts : largest number of learners per sign"""
    waves = row_keys.waves(key, MIXTURES, rng)
    U = find_directions(X, slope, curvature, waves)
    return place_hinges(U, X, slope, curvature, ridge, hinges, n_starts)


def krylov(product, first):
    """Return an orthonormal basis V (p, r) of principal Hessian directions (Li 1992), and V'HV.

    product : function v -> H v, where H = X' diag(loss derivatives) X
    first : (p,) gradient of the loss, the first direction"""
    basis, images = [first / np.linalg.norm(first)], []
    while True:
        images.append(product(basis[-1]))
        rest, V = images[-1], np.array(basis)
        for _ in range(2):
            rest = rest - V.T @ (V @ rest)
        size = np.linalg.norm(rest)
        # Each direction takes a pass, and shorter new parts are rounding errors.
        if len(basis) == 8 or size <= 1e-5 * np.linalg.norm(images[-1]):
            T = V @ np.array(images).T
            return V.T, 0.5 * (T + T.T)
        basis.append(rest / size)
