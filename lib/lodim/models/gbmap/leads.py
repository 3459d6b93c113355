"""Where the fit of a boost to all rows begins: the learner of most promise for each sign."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import over_rows, row_spans
from lodim.engine.workers import WorkerTiles
from lodim.models.gbmap.kernels.cpu import IDENTITY, SQUARED, forward
from lodim.models.gbmap.kernels.few_rows import SCREENING_FTOL
from lodim.models.gbmap.objective import (
    BoostObjective,
    null_learners,
    penalize,
    stage_objective,
)
from lodim.models.gbmap.starts import derivatives, draw_starts, krylov, place_hinges
from lodim.models.gbmap.worker_rows import loss_slope
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import ElasticNet, Rescaled

UNRESOLVED = 0.2  # share of d / n, by which the least loss of n rows lies below that of all rows
SPAN_FTOL, SPAN_ITER = 1e-6, 100  # of fits in a span, whose passes cost little
BITS, LEAST_EXPONENT = 12, -500  # of the largest weight, to which what fits begin with is rounded
ROWS_EACH = 128  # rows a feature from which a sample shows the directions of all rows


@dataclass(frozen=True)
class Lead:
    """The learner of most promise for each sign b.

    sign (q,), theta (q, d), value (q,) of the objective on the rows that chose it; n_eval passes
    over all rows so far; null_value of the objective of all rows without a learner, or None.
    """

    sign: np.ndarray
    theta: np.ndarray
    value: np.ndarray
    n_eval: int
    null_value: float | None = None


def minimize(objective, theta, state, **how):
    """`lbfgs` in units of the columns, where these are not standardized."""
    scaled = Rescaled(objective, state.unit)
    end = lbfgs(scaled, scaled.to(theta), **how)
    return replace(end, theta=scaled.back(end.theta))


def rounded(theta, unit):
    """Learners theta (r, 2 + p) of few digits, in units (2 + p,) of the parameters.

    L-BFGS takes starts that rounding has set apart further apart with each step; to few digits they
    are, but for one in thousands, the same again.
    """
    u = theta / unit
    exponent = np.frexp(np.abs(u[:, 2:]).max(axis=1, initial=0.0))[1]
    grid = np.ldexp(1.0, np.maximum(exponent, LEAST_EXPONENT) - BITS)[:, None]
    return np.round(u / grid) * grid * unit


def lead_by_sample(objective, penalty, state, k, rng, stop, near, near_sign):
    """Starts followed as far as a sample of the rows, or all of few, can tell them apart.

    Parameters
    ----------
    objective : callable
        The stage's objective on all rows, as `stage_objective` gives it.
    penalty : ElasticNet
    state : BoostState
    k : int
        The score.
    rng : Generator
    stop : dict
        Of the solver.
    near, near_sign : arrays (r, d), (r,)
        Learners of a neighbouring fit, which are starts too.
    """
    settings, exact = state.settings, state.exact
    if state.sample is not None:
        objective = stage_objective(state, state.sample_rows(k), penalty)
    n_starts = 1 if len(near) else settings.n_starts  # beside the neighbour's learner
    ridge = penalty.ridge[-1]
    theta, sign = draw_starts(*state.start_rows(k), ridge, settings.softplus, n_starts, rng)
    theta = np.concatenate([rounded(theta, state.unit), near])
    sign = np.concatenate([sign, near_sign])
    rows = objective(sign)
    ftol = SCREENING_FTOL if exact else UNRESOLVED * theta.shape[1] / rows.n
    end = minimize(rows, theta, state, **stop | {"ftol": max(stop["ftol"], ftol)})
    theta = rounded(end.theta, state.unit)
    return _best_of_each_sign(end, sign, theta, end.n_eval if exact else 0)


def lead_in_span(objective, penalty, state, k, near, near_sign, loser):
    """The least objective with w in the span of a few directions, or None where it has no slope.

    The span is that of principal Hessian directions, of the neighbour's w, and of the `loser`'s:
    theta (r, d) and b (r,) that the boost before left for another sign, or None. Rows projected on
    it are read at a fraction of a pass. They are all rows where a sample would show its own noise:
    a fit that begins in it is long in coming back.
    """
    settings, p = state.settings, state.X.shape[1]
    n_starts = 1 if len(near) else None
    if loser is not None:
        near, near_sign = np.concatenate([near, loser[0]]), np.concatenate([near_sign, loser[1]])
    on_sample = p * ROWS_EACH <= len(state.sample)
    X, y, score, weight = state.sample_rows(k) if on_sample else state.host_rows(k)
    if on_sample:
        objective = stage_objective(state, (X, y, score, weight), penalty)
    null = null_learners(np.ones(1), 2 + p, settings)
    value, gradient = objective(np.ones(1))(null, np.arange(1))
    if not gradient[0, 2:].any():
        return None
    V, T = krylov(_slope_weighted_gram(state, X, y, score, weight), gradient[0, 2:])
    U = np.concatenate([np.eye(len(T))[:1], np.linalg.eigh(T)[1].T])
    V = _extended(V, near[:, 2:])
    U = np.pad(U, ((0, 0), (0, V.shape[1] - len(T))))
    Z = _projected(X, V, settings.n_threads)
    sampled = tiles.unpack(Z, len(state.sample)) if on_sample else tiles.rows(Z, state.sample)
    at = sampled.astype(np.float64), U
    theta, sign = _starts(state, k, *at, penalty.ridge[-1], n_starts)
    theta = np.concatenate([theta, np.hstack([near[:, :2], near[:, 2:] @ V])])
    sign = np.concatenate([sign, near_sign])
    within = penalize(settings, V.shape[1], state.p)
    rows = stage_objective(state, (Z, y, score, weight), within)
    end = lbfgs(rows(sign), theta, max_iter=SPAN_ITER, tol=0.0, ftol=SPAN_FTOL)
    theta = np.hstack([end.theta[:, :2], end.theta[:, 2:] @ V.T])
    if on_sample:
        return _best_of_each_sign(end, sign, theta, 0)
    n_eval = 2 + len(T) + -(-end.n_eval * V.shape[1] // p)
    return replace(_best_of_each_sign(end, sign, theta, n_eval), null_value=float(value[0]))


def _best_of_each_sign(end, sign, theta, n_eval):
    """The Lead of the learners of least value, one a sign, among those of a Minimum."""
    groups = [np.flatnonzero(sign == b) for b in np.unique(sign)[::-1]]  # b = 1 first
    best = np.array([group[np.argmin(end.value[group])] for group in groups])
    return Lead(sign[best], theta[best], end.value[best], n_eval)


def _slope_weighted_gram(state, X, y, score, weight):
    """The function v -> X' diag(slope) X v of the loss's slope in each row's score."""
    # Half the gradient of sum_i slope_i (v'x_i)^2: what the kernels know of lines and squares.
    if isinstance(score, WorkerTiles):
        columns = state.device.slope(y, score, weight)
    else:
        slope, squared = np.empty_like(y), state.family.name == "gaussian"
        for lo in range(0, len(y), tiles.TILES_PER_BLOCK):
            own = slice(lo, lo + tiles.TILES_PER_BLOCK)
            slope[own] = loss_slope(score[own], y[own], weight[own], squared)
        zero = np.zeros_like(slope)
        columns = state.beside(X, zero, zero, 0.5 * slope)
    line = 1.0, IDENTITY, SQUARED
    free = ElasticNet(*np.zeros((2, 2 + X.shape[1])))
    form = BoostObjective(X, *columns, np.ones(1), line, free, state.settings.n_threads)
    return lambda v: form(np.concatenate([[0.0, 0.0], v])[None], np.arange(1))[1][0, 2:]


def _extended(V, w):
    """V (p, r) and what the rows of w (k, p) add to its span, orthonormal."""
    for direction in w:
        size = np.linalg.norm(direction)
        for _ in range(2):
            direction = direction - V @ (V.T @ direction)
        if np.linalg.norm(direction) > 1e-6 * size:
            V = np.column_stack([V, direction / np.linalg.norm(direction)])
    return V


def _projected(X, V, threads):
    """Tiles of X V of the precision of X, on the host; on the workers if X is there."""
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


def _starts(state, k, Z, U, ridge, n_starts):
    """Hinges along directions U (k, r) of sampled rows Z (n, r)."""
    y, score, weight = state.sample_margin(k)
    by_row = derivatives(y, score, weight, state.family.name == "gaussian")
    return place_hinges(U, Z, *by_row, ridge, n_starts or state.settings.n_starts)
