"""Compiled Newton's method for fits to few rows and columns, and polishing of L-BFGS results."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.engine.compiled import inlined, njit
from lodim.engine.tiles import TILE
from lodim.models.gbmap.cpu_kernels import (
    SOFTPLUS,
    Form,
    TileRows,
    add_hessian,
    add_loss_gradient,
)
from lodim.solve.objective import solve_lower, solve_upper

MOST_DAMPING = 1e8  # beyond it, no step lowers the loss
FEW_BITS = 12  # of steps and starting points; see `rounded`
FLAT = 1e-6  # share of the largest curvature; directions with less are flat


class Problem(NamedTuple):
    """Data, loss and penalty of the learners that `newton` fits, and limits of the search."""

    # X, weight: features and row weights in blocks of 64 rows
    X: np.ndarray
    weight: np.ndarray
    beta: float  # sharpness of the softplus
    loss: tuple
    ridge: np.ndarray  # (d,) penalties of squared parameters
    unit: np.ndarray  # (d,) sizes of the parameters' units, powers of two
    precision: float  # relative rounding error
    max_iter: int
    tol: float  # largest slope at which the search stops


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _factor(H, damping, L):
    """Fill L with the Cholesky factor of H + damping max(diag H) I; return False if it has none."""
    largest = 0.0
    d = H.shape[0]
    for i in range(d):
        largest = max(largest, abs(H[i, i]))
    shift = damping * max(largest, 1e-300)
    scale = 1.0
    for j in range(d):
        for i in range(j, d, 2):  # two rows at a time; an odd last row is computed twice
            m = min(i + 1, d - 1)
            s, t = H[i, j], H[m, j]
            for k in range(j):
                known = L[j, k]
                s -= L[i, k] * known
                t -= L[m, k] * known
            if i == j:
                s += shift
                if not s > 1e-14 * largest:
                    return False
                scale = 1.0 / math.sqrt(s)
            L[m, j], L[i, j] = t * scale, s * scale
    return True


@njit(cache=True, error_model="numpy", inline="always")
def _newton_step(H, damping, slope, L, step):
    """Solve (H + damping max(diag H) I) step = slope; return the predicted decrease of the loss.

    Return -1 if the matrix is not positive definite. L : work array; step : gets the solution"""
    if not _factor(H, damping, L):
        return -1.0
    for k in range(step.size):
        step[k] = slope[k]
    solve_lower(L, step)
    promised = 0.0
    for k in range(step.size):
        promised += 0.5 * step[k] * step[k]
    solve_upper(L, step)
    return promised


@njit(cache=True, error_model="numpy", inline="always")
def _change_parameters(H, slope, b, beta, intercept, convex):
    """Convert a loss's derivatives by parameters (a, intercept, w) to those by (c, intercept, w).

    a, c : constant that the learner adds, and the learner's value at x = 0
    H, slope : Hessian (lower triangle) and gradient, changed in place
    b, beta : sign of the learner, and sharpness of the softplus
    convex : whether to omit a negative second derivative of the softplus"""
    # c = a + b softplus(intercept)
    e = math.exp(-abs(beta * intercept))
    share = 1.0 / (1.0 + e) if intercept > 0.0 else e / (1.0 + e)
    t = b * share
    bend = -beta * t * (1.0 - share) * slope[0]
    H[1, 1] += t * (t * H[0, 0] - 2.0 * H[1, 0]) + (max(bend, 0.0) if convex else bend)
    H[1, 0] -= t * H[0, 0]
    for i in range(2, slope.size):
        H[i, 1] -= t * H[i, 0]
    slope[1] -= t * slope[0]


@njit(cache=True, error_model="numpy", inline="always")
def _softplus(z, beta):
    return max(z, 0.0) + math.log1p(math.exp(-abs(beta * z))) / beta


@njit(cache=True, error_model="numpy", inline="always")
def _set_trial(theta, step, b, beta, unit, exact, trial):
    """Write a learner's parameters after a Newton step to `trial`, rounded unless `exact`.

    theta : parameters (constant, intercept, weights) before the step
    step : decrease of (value of the learner at x = 0, intercept, weights)
    b, beta : sign of the learner, and sharpness of the softplus
    unit : units of the parameters, powers of two"""
    # Parameters are rounded to multiples of about 2^-12 of the length of the step.
    longest = 1e-150
    for k in range(2, theta.size):
        longest = max(longest, abs(step[k]) / unit[k])
    for k in range(theta.size - 1, -1, -1):  # `a` last: it depends on the rounded intercept
        trial[k] = theta[k] - step[k]
        if k == 0:
            trial[0] += b * (_softplus(theta[1], beta) - _softplus(trial[1], beta))
        if not exact:
            size = max(longest, abs(step[k]) / unit[k])
            spacing = math.ldexp(unit[k], math.frexp(size)[1] - FEW_BITS)
            trial[k] = spacing * np.rint(trial[k] / spacing)


def rounded(theta, unit, bits=FEW_BITS):
    """Return the parameters theta (r, d) of r learners, rounded to few binary digits.

    unit : (d,) units of the parameters, powers of two
    bits : number of digits that a learner's largest weight keeps"""
    # Learners whose weights are all zero stay unchanged.
    u = theta / unit
    exponent = np.frexp(np.abs(u[:, 2:]).max(axis=1, initial=0.0))[1]
    grid = np.ldexp(1.0, np.maximum(exponent, -500) - bits)[:, None]
    return np.where(u[:, 2:].any(axis=1)[:, None], np.rint(u / grid) * grid * unit, theta)


@njit(cache=True, error_model="numpy", inline="always")
def _tile_rows(kept, tiles, t):
    return TileRows(tiles[0], kept[0, t], kept[1, t], tiles[1], kept[2, t], tiles[2])


@njit(cache=True, nogil=True, error_model="numpy")
def newton(problem, responses, scores, theta, sign, ftol, absolute):
    """Minimize the losses of r learners on few rows by Newton steps; change theta in place.

    Return (r, 5): loss, largest derivative, iterations, passes over rows, 1 if converged.
    responses, scores : (n_tiles, 64) responses, and linear predictors without the learner
    theta, sign : (r, 2 + p) rows (constant, intercept, weights), and (r,) signs
    ftol : relative decrease of the loss that ends a search
    absolute : whether ftol is absolute for losses from 1e-6 to 1"""
    # Damped steps as in Nocedal & Wright (2006), Sects. 3.4 and 10.3.
    X, weight, beta, ridge = problem.X, problem.weight, problem.beta, problem.ridge
    unit, precision, tol = problem.unit, problem.precision, problem.tol
    # A literal activation would compile the called functions again.
    form, d = Form(X.dtype.type(beta), np.int64(SOFTPLUS), problem.loss), ridge.size
    y, f, results = responses.astype(X.dtype), scores.astype(X.dtype), np.empty((sign.size, 5))
    v, sums, column = np.empty(d, X.dtype), np.empty(1 + d), np.empty(d - 2)
    downhill, step, trial = np.empty(d), np.empty(d), np.empty(d)
    H, L = np.empty((d, d)), np.empty((d, d))
    # Of all rows: linear predictor, derivatives g' and by z; of one block: the other work arrays.
    kept, work = np.empty((3, *y.shape), X.dtype), np.empty((3, TILE), X.dtype)
    for m in range(sign.size):
        b = X.dtype.type(sign[m])
        for k in range(d):
            trial[k] = theta[m, k]
        damping, convex, last, flat, passes, n_iter = 1e-3, True, False, 0, 0, 0
        value, promised, started, moved = np.inf, 0.0, False, False
        largest, converged, enough, square, reach = np.inf, False, 0.0, 0.0, np.inf
        ratio, leaps, leapt = 0.0, True, False
        while True:
            for k in range(d):
                v[k] = trial[k]
                sums[1 + k] = 0.0
            sums[0] = 0.0
            for t in range(X.shape[0]):
                rows = _tile_rows(kept, work, t)
                add_loss_gradient(X[t], y[t], f[t], weight[t], v, b, form, rows, sums)
            passes += 1
            new, steepest = sums[0], 0.0
            for k in range(d):
                new += ridge[k] * trial[k] * trial[k]
                sums[1 + k] += 2.0 * ridge[k] * trial[k]
                steepest = max(steepest, abs(sums[1 + k]))
                new += 0.0 * sums[1 + k]  # NaN if a derivative is not finite
            if not np.isfinite(new) and (last or not started):
                break
            gain = value - new
            if not started or last or gain > 0.1 * promised:
                share = min(max(abs(new), 1e-6), 1.0) if absolute else 1.0
                enough = ftol * abs(new) / share
                if started:
                    ratio = 0.0 if leapt else gain / promised
                    if not leapt and gain > 0.7 * promised:
                        damping = max(0.1 * damping, 1e-10)
                    elif not leapt and gain < 0.25 * promised:
                        damping *= 2.0
                    flat = flat + 1 if gain <= enough else 0
                    convex = convex and gain > 1e-3 * abs(new)  # else H is the full Hessian
                started, value, moved, reach = True, new, True, np.inf
                largest = steepest
                for k in range(d):
                    theta[m, k] = trial[k]
                    downhill[k] = sums[1 + k]
                if last or largest <= tol or flat == 2:
                    converged = True
                    break
            elif leapt:
                leaps = False
            else:
                damping, reach = 4.0 * damping, 0.25 * square
            if moved:
                for i in range(d):
                    for k in range(d):
                        H[i, k] = 0.0
                for t in range(X.shape[0]):
                    rows = _tile_rows(kept, work, t)
                    add_hessian(X[t], y[t], weight[t], b, form, convex, rows, column, H)
                for k in range(d):
                    H[k, k] += 2.0 * ridge[k]
                _change_parameters(H, downhill, sign[m], beta, theta[m, 1], convex)
                passes, moved = passes + 1, False
            if passes >= problem.max_iter:
                break
            while damping <= MOST_DAMPING:
                promised = _newton_step(H, damping, downhill, L, step)
                square = 0.0
                for k in range(d):
                    square += step[k] * step[k]
                if promised >= 0.0 and square <= reach:
                    break
                damping *= 4.0
            if damping > MOST_DAMPING:
                break
            n_iter += 1
            rounding = 100.0 * precision * abs(value)
            last = promised <= 0.1 * rounding  # its gain is a rounding error, and does not judge it
            leapt = False
            if leaps and abs(beta * step[1] + 1.0) < 0.1 and 1.1 < ratio < 1.4:
                # Along exp(-z) the ratio is 2 (1 - 1 / e), and all steps are equal. About twice the
                # predicted decrease remains; a tenth of the tolerance may remain.
                far = math.log(20.0 * promised / max(enough, rounding))
                if far > 1.0:
                    leapt = True
                    step[1] *= far
            _set_trial(theta[m], step, sign[m], beta, unit, last, trial)
        results[m, 0], results[m, 1], results[m, 2] = value, largest, n_iter
        results[m, 3], results[m, 4] = passes, converged
    return results


def polish(objective, end):
    """Refine one learner's Minimum `end` by Newton steps, up to rounding errors; return a new one.

    objective : BoostObjective of this learner"""
    theta, one = end.theta, np.arange(1)
    value, gradient = objective(theta, one)
    n_iter, n_eval, promised = 0, end.n_eval + 2, np.inf
    rounding = objective.precision * abs(value[0])
    try:
        H = objective.hessian(theta, convex=False)[0]
        damping = FLAT * H.diagonal().max()
        factor = cho_factor(H + damping * np.eye(len(H)), check_finite=False)
    except LinAlgError:
        return end
    while n_iter < 10 and promised > rounding:
        step = -cho_solve(factor, gradient[0])
        promised = -0.5 * gradient[0] @ step
        new, slope = objective(theta + step, one)
        n_eval += 1
        nearer = np.abs(slope).max() < np.abs(gradient).max()
        if not (nearer and new[0] <= value[0] + 100.0 * rounding):
            break
        theta, value, gradient, n_iter = theta + step, new, slope, n_iter + 1
    results = {"theta": theta, "value": value, "grad_norm": np.abs(gradient).max(axis=1)}
    return replace(end, **results, n_iter=end.n_iter + n_iter, n_eval=n_eval)
