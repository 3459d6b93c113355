"""Starts of a boost, found in the data, and the best of them for each sign.

Starts are hinges along directions in which the loss has a slope. They depend on the rows as a set
and on the columns by their values, not on where these stand, so that a boost and its neighbour
under other rounding start at the same place.
"""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import row_keys, tiles
from lodim.engine.blocks import over_rows, row_spans
from lodim.engine.workers import WorkerTiles
from lodim.family.losses import SQUARED
from lodim.models.gbmap.bounded import minimize_bounded
from lodim.models.gbmap.kernels import hinges as kernels
from lodim.models.gbmap.kernels.cpu import IDENTITY, forward
from lodim.models.gbmap.kernels.small_data import SCREENING_FTOL
from lodim.models.gbmap.objective import (
    BoostObjective,
    derivatives,
    null_learners,
    penalize,
    stage_objective,
)
from lodim.models.gbmap.worker_rows import loss_slope
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import ElasticNet, Rescaled

UNRESOLVED = 0.2  # share of d / n, by which the least loss of n rows lies below that of all rows
SPAN_FTOL, SPAN_ITER = 1e-6, 100  # of fits in a span, whose passes cost little
BITS, LEAST_EXPONENT = 12, -500  # of the largest weight, to which what fits begin with is rounded
KRYLOV = 8  # directions that Lanczos' method looks for, each at the price of a pass
EXHAUSTED = 1e-5  # share of its length below which what is new in a direction is rounding
ROWS_EACH = 128  # rows a feature from which a sample shows the directions of all rows


@dataclass(frozen=True)
class Start:
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
    """Run `lbfgs` in units of the columns if these are not standardized."""
    scaled = Rescaled(objective, state.unit)
    if state.settings.monotone is not None:
        how = {name: how[name] for name in ("max_iter", "tol", "ftol")}
        way = objective.sign, state.settings.monotone
        end = minimize_bounded(scaled, scaled.to(theta), *way, **how)
    else:
        end = lbfgs(scaled, scaled.to(theta), **how)
    return replace(end, theta=scaled.back(end.theta))


def rounded(theta, unit):
    """Return learners theta (r, 2 + p) of few digits, in units (2 + p,) of the parameters.

    Rounding differences in a starting point can lead L-BFGS to different minima; rounded to few
    digits, all but one in thousands are equal again.
    """
    u = theta / unit
    exponent = np.frexp(np.abs(u[:, 2:]).max(axis=1, initial=0.0))[1]
    grid = np.ldexp(1.0, np.maximum(exponent, LEAST_EXPONENT) - BITS)[:, None]
    return np.round(u / grid) * grid * unit


def start_by_sample(objective, penalty, state, k, rng, stop, near, near_sign):
    """Return starts followed as far as a sample of the rows, or all of few, can tell them apart.

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
        Stopping rules of the solver.
    near, near_sign : arrays (r, d), (r,)
        Learners of a neighbouring fit, which are starts too.
    """
    settings, exact = state.settings, state.exact
    if state.sample is not None:
        objective = stage_objective(state, state.sample_rows(k), penalty)
    n_starts = 1 if len(near) else settings.n_starts  # in addition to the neighbour's learner
    ridge = penalty.ridge[-1]
    theta, sign = draw_starts(*state.start_rows(k), ridge, settings.softplus, n_starts, rng)
    theta = np.concatenate([rounded(theta, state.unit), near])
    sign = np.concatenate([sign, near_sign])
    rows = objective(sign)
    ftol = SCREENING_FTOL if exact else UNRESOLVED * theta.shape[1] / rows.n
    end = minimize(rows, theta, state, **stop | {"ftol": max(stop["ftol"], ftol)})
    theta = rounded(end.theta, state.unit)
    return _best_of_each_sign(end, sign, theta, end.n_eval if exact else 0)


def start_in_span(objective, penalty, state, k, near, near_sign, other_sign):
    """The least objective with w in the span of a few directions, or None where it has no slope.

    The span is that of principal Hessian directions, of the neighbour's w, and of
    `other_sign`: theta (r, d) and b (r,) to which the other sign came in the boost before, or None.
    Rows projected on it are read at a fraction of a pass. They are all rows where a sample would
    show its own noise: a fit that begins in it is long in coming back.
    """
    settings, p = state.settings, state.X.shape[1]
    n_starts = 1 if len(near) else None
    if other_sign is not None:
        near, near_sign = (
            np.concatenate([near, other_sign[0]]),
            np.concatenate([near_sign, other_sign[1]]),
        )
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
    """Return the Start of the learners of least value, one a sign, among those of a Minimum."""
    groups = [np.flatnonzero(sign == b) for b in np.unique(sign)[::-1]]  # b = 1 first
    best = np.array([group[np.argmin(end.value[group])] for group in groups])
    return Start(sign[best], theta[best], end.value[best], n_eval)


def _slope_weighted_gram(state, X, y, score, weight):
    """Return the function v -> X' diag(slope) X v of the loss's slope in each row's score."""
    # Half the gradient of sum_i slope_i (v'x_i)^2: what the kernels know of lines and squares.
    if isinstance(score, WorkerTiles):
        columns = state.device.slope(y, score, weight)
    else:
        slope = np.empty_like(y)
        for lo in range(0, len(y), tiles.TILES_PER_BLOCK):
            own = slice(lo, lo + tiles.TILES_PER_BLOCK)
            slope[own] = loss_slope(score[own], y[own], weight[own], state.loss)
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
    """Return tiles of X V of the precision of X, on the host; on the workers if X is there."""
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
    by_row = derivatives(state.loss, y, score, weight)
    return place_hinges(U, Z, *by_row, ridge, n_starts or state.settings.n_starts)


# Starts in the data ------------------------------------------------------------------------------


def draw_starts(X, slope, curvature, key, ridge, hinges, n_starts, rng):
    """Return learners (2 n_starts, 2 + p) and their signs b, those of most promise for each sign.

    Along each direction u a hinge h = max(u'x - knot, 0), or the line u'x, is one column of a
    regression: a Newton step on its coefficient c, next to a constant, lowers the loss by
    fall^2 / (2 bend), and b is the sign of c.

    Parameters
    ----------
    X : array (n, p)
        Centred features of some rows.
    slope, curvature : arrays (n,)
        First and second derivative of the mean loss in the score of each row.
    key : array (n,)
        Of each row, by its content, as of `lodim.engine.row_keys`.
    ridge : float
        Penalty of w_k^2.
    hinges : bool
        Whether g bends; else lines are all there is.
    rng : Generator
        Mixes the rows, by their keys.
    """
    waves, X = row_keys.draw_waves(kernels.MIXTURES, rng), np.ascontiguousarray(X.T)
    return kernels.draw_starts(X, slope, curvature, key, *waves, float(ridge), hinges, n_starts)


def place_hinges(U, X, slope, curvature, ridge, n_starts):
    """Return the learners along the directions U (k, p) that `draw_starts` returns."""
    X = np.ascontiguousarray(X.T)
    return kernels.starts_along(U, X, slope, curvature, float(ridge), n_starts)


def krylov(product, first):
    """Principal Hessian directions by Lanczos' method: V (p, r) orthonormal, and V'HV (r, r).

    The columns span first, H first, ..., H^(r-1) first: where the loss falls fastest, and near the
    directions in which its slope bends most, either way (Li 1992). A product is a pass.

    Parameters
    ----------
    product : callable
        v (p,) -> X' diag(slope) X v, (p,).
    first : array (p,)
        X'slope, not zero.
    """
    basis, images = [first / np.linalg.norm(first)], []
    while True:
        images.append(product(basis[-1]))
        rest, V = images[-1], np.array(basis)
        for _ in range(2):
            rest = rest - V.T @ (V @ rest)
        size = np.linalg.norm(rest)
        if len(basis) == KRYLOV or size <= EXHAUSTED * np.linalg.norm(images[-1]):
            T = V @ np.array(images).T
            return V.T, 0.5 * (T + T.T)
        basis.append(rest / size)
