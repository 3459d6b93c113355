"""Compiled minimization by L-BFGS for few rows: `solve.lbfgs` together with its passes.

With some hundred rows a pass takes microseconds, and Python between two passes ten times as long.
"""

import numpy as np

from lodim.engine.compiled import njit
from lodim.engine.tiles import TILE
from lodim.models.gbmap.kernels.cpu import add_loss_gradient
from lodim.solve.lbfgs import CONVERGED, OUTLOOK, RUNNING, advance
from lodim.solve.objective import solve_lower, solve_upper


@njit(cache=True, nogil=True, error_model="numpy")
def descend(
    X, y, f, weight, sign, beta, activation, loss, ridge, l1, precision, factor, scaled,
    unit, theta, max_iter, tol, ftol, memory,
):  # fmt: skip
    """Minimize q learners on one block of tiles by L-BFGS; return the fields of a Minimum.

    X, y, f, weight, sign, beta, activation and loss are as in `kernels.cpu.loss_gradient`; ridge,
    l1 (d,) and precision are those of the objective. factor (q, d, d), `scaled` and unit (d,) are
    as in `solve.objective`: theta and l1 are for the scaled parameters L'theta or theta / unit.
    """
    q, d = theta.shape
    b, softness = sign.astype(X.dtype), X.dtype.type(beta)
    z, score, slope_of_g = (
        np.empty(TILE, X.dtype),
        np.empty(TILE, X.dtype),
        np.empty(TILE, X.dtype),
    )
    loss_of_row, r = np.empty(TILE, X.dtype), np.empty(TILE, X.dtype)
    trial, at, sums = theta.copy(), np.zeros((q, d)), np.empty(1 + d)
    value, best = np.empty(q), np.full(q, np.inf)
    start, gradient = np.zeros((q, d)), np.zeros((q, d))
    slope, direction = np.zeros((q, d)), np.zeros((q, d))
    S, Y, alpha = np.zeros((q, memory, d)), np.zeros((q, memory, d)), np.zeros(memory)
    history = np.full((q, 2), -1)
    step, largest, promise = np.ones(q), np.full(q, np.inf), np.full(q, np.inf)
    n_iter, flat, status = np.zeros(q, np.int64), np.zeros(q, np.int64), np.full(q, RUNNING)
    falls, outlook = np.zeros((q, OUTLOOK)), np.full(q, np.inf)
    active, n_eval = np.arange(q), 0
    while active.size and n_eval < max_iter:
        for c in active:
            point = trial[c].copy()
            if scaled:
                solve_upper(factor[c], point)
            for k in range(d):
                point[k] *= unit[k]
            v = point.astype(X.dtype)
            sums[:] = 0.0
            for t in range(X.shape[0]):
                add_loss_gradient(
                    X[t], y[t], f[t], weight[t], v, b[c], softness, activation, loss,
                    z, score, slope_of_g, loss_of_row, r, sums,
                )  # fmt: skip
            value[c] = sums[0]
            for k in range(d):
                value[c] += ridge[k] * point[k] * point[k]
                at[c, k] = unit[k] * (sums[1 + k] + 2.0 * ridge[k] * point[k])
            if scaled:
                solve_lower(factor[c], at[c])
        n_eval += 1
        advance(
            active, value, at, l1, precision, scaled, tol, ftol, 0.0,
            trial, best, start, gradient, slope, direction, S, Y, alpha, history, step, largest,
            promise, flat, falls, outlook, n_iter, status,
        )  # fmt: skip
        active = np.flatnonzero(status == RUNNING)
    return start, best, largest, n_iter, status == CONVERGED, n_eval
