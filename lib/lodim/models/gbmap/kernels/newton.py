"""Newton's method for learners of few rows and columns, compiled with its passes."""

import math

import numpy as np

from lodim.engine.compiled import inlined, njit
from lodim.models.gbmap.kernels.cpu import SOFTPLUS, add_hessian, add_loss_gradient
from lodim.solve.objective import solve_lower, solve_upper

CONVEX_UNTIL = 1e-3  # share of the value that a step gains, below which the whole Hessian is taken
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-10, 1e8
OBJECTIVE, GRAD_NORM, N_ITER, N_EVAL, CONVERGED = 0, 1, 2, 3, 4  # columns of what is said of ends
LOG = ("objective", "grad_norm", "n_iter", "n_eval", "converged")
ACCEPTED, POOR, GOOD = 0.1, 0.25, 0.7  # gain of a step, as share of what the model promises
EXPONENTIAL = 1.1, 1.4  # of a step down exp(-z) it is 2 (1 - 1 / e), and the step is one


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _factor(H, damping, L):
    """L of L L' = H + damping max(diag H) I, in L; whether there is one."""
    largest = 0.0
    d = H.shape[0]
    for i in range(d):
        largest = max(largest, abs(H[i, i]))
    shift = damping * max(largest, 1e-300)
    scale = 1.0
    for j in range(d):
        for i in range(j, d, 2):  # two rows at a time; beyond the last one that once more
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
def _promised(H, damping, slope, L, step):
    """Fill step with what solves (H + damping max(diag H) I) step = slope; what it promises.

    -1 where the matrix is not positive definite.
    """
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
def _straighten(H, slope, b, beta, at, convex):
    """Put c = a + b g(intercept) for the parameter a of a Hessian and gradient, in place.

    at is the intercept. H is that of a function of (a, intercept, w), its lower triangle.
    """
    e = math.exp(-abs(beta * at))
    share = 1.0 / (1.0 + e) if at > 0.0 else e / (1.0 + e)
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


@njit(cache=True, nogil=True, error_model="numpy")
def newton(
    X, y, f, weight, sign, beta, loss, ridge, precision, max_iter, tol, ftol, of_one, theta, ends,
    kept, tiles, v, vectors, column, sums, matrices,
):  # fmt: skip
    """Minimize learners theta (r, d) on one block of tiles by damped Newton steps, in place.

    As `solve.newton`: steps solve (H + mu max(diag H) I) step = -gradient; mu falls where the
    quadratic model holds and rises where it does not, or where the matrix is not positive definite
    (Nocedal & Wright 2006, Sects. 3.4 and 10.3). H is Gauss-Newton's and what is convex of the rest
    until a step gains less than a thousandth of the value, then the Hessian itself. A step that is
    rejected is followed by one of half its length at most.

    Steps are in c = a + b g(intercept), the score at the features' mean, instead of a: the floor of
    the valley in which a makes good what the intercept does is curved in a, and straight in c.
    A learner whose rows all lie beyond the bend is a line, and nears it as exp(-beta intercept):
    there Newton's steps of the intercept are 1 / beta, and one longer step does for all of them.

    X, y, f, weight, beta, loss as of `kernels.cpu.loss_gradient`, sign (r,) of the learners; ridge
    (d,) and precision of the objective. A learner ends where no gradient is above tol, where two
    steps in a row lower its value by no more than the share ftol (`of_one`: of a value below one,
    which near zero has no share that counts, by ftol itself), or where three steps in a row promise
    no more than rounding, or one that brings the gradient no nearer to zero either; max_iter bounds
    its passes, those for Hessians among them. ends (r, 5) are filled with the columns of LOG. The
    rest is room to work in: kept (3, n_tiles, 64), tiles (3, 64) and v (d,) of X's dtype, vectors
    (3, d), column (d - 2,), sums (1 + d,) and matrices (2, d, d).
    """
    d = ridge.size
    softness = X.dtype.type(beta)
    activation = np.int64(SOFTPLUS)  # as a literal it would have functions of its own
    score, slope, r, z, per_row, c = kept[0], kept[1], kept[2], tiles[0], tiles[1], tiles[2]
    downhill, step, trial, H, L = vectors[0], vectors[1], vectors[2], matrices[0], matrices[1]
    least, most = EXPONENTIAL
    for m in range(sign.size):
        b = X.dtype.type(sign[m])
        for k in range(d):
            trial[k] = theta[m, k]
        damping, convex, flat, idle, passes, n_iter = FIRST_DAMPING, True, 0, 0, 0, 0
        value, promised, started, moved = np.inf, 0.0, False, False
        largest, converged, enough, square, reach = np.inf, False, 0.0, 0.0, np.inf
        ratio, leaps, leapt = 0.0, True, False
        while True:
            for k in range(d):
                v[k] = trial[k]
                sums[1 + k] = 0.0
            sums[0] = 0.0
            for t in range(X.shape[0]):
                add_loss_gradient(
                    X[t], y[t], f[t], weight[t], v, b, softness, activation, loss,
                    z, score[t], slope[t], per_row, r[t], sums,
                )  # fmt: skip
            passes += 1
            new, steepest = sums[0], 0.0
            for k in range(d):
                new += ridge[k] * trial[k] * trial[k]
                sums[1 + k] += 2.0 * ridge[k] * trial[k]
                steepest = max(steepest, abs(sums[1 + k]))
            gain, rounding = value - new, 100.0 * precision * abs(value)
            nearer = promised <= rounding and abs(gain) <= rounding and steepest < 0.5 * largest
            if not started or gain > ACCEPTED * promised or nearer:
                share = min(max(abs(new), 1e-6), 1.0) if of_one else 1.0
                enough = ftol * abs(new) / share
                if started:
                    ratio = 0.0 if leapt else gain / promised
                    if not leapt and gain > GOOD * promised:
                        damping = max(0.1 * damping, LEAST_DAMPING)
                    elif not leapt and gain < POOR * promised:
                        damping *= 2.0
                    flat = flat + 1 if gain <= enough else 0
                    convex = convex and gain > CONVEX_UNTIL * abs(new)
                started, value, moved, reach = True, new, True, np.inf
                largest = steepest
                for k in range(d):
                    theta[m, k] = trial[k]
                    downhill[k] = sums[1 + k]
                if largest <= tol or flat == 2:
                    converged = True
                    break
            elif leapt:
                leaps = False
            else:
                damping, reach = 4.0 * damping, 0.25 * square
                if promised <= rounding:
                    converged = True
                    break
            if moved:
                for i in range(d):
                    for k in range(d):
                        H[i, k] = 0.0
                for t in range(X.shape[0]):
                    add_hessian(
                        X[t], y[t], weight[t], b, softness, activation, loss, convex,
                        score[t], slope[t], r[t], z, c, column, H,
                    )  # fmt: skip
                for k in range(d):
                    H[k, k] += 2.0 * ridge[k]
                _straighten(H, downhill, sign[m], beta, theta[m, 1], convex)
                passes, moved = passes + 1, False
            if passes >= max_iter:
                break
            while damping <= MOST_DAMPING:
                promised = _promised(H, damping, downhill, L, step)
                square = 0.0
                for k in range(d):
                    square += step[k] * step[k]
                if promised >= 0.0 and square <= reach:
                    break
                damping *= 4.0
            if damping > MOST_DAMPING:
                break
            n_iter += 1
            idle = idle + 1 if promised <= 10.0 * precision * abs(value) else 0
            if idle == 3:
                converged = True
                break
            leapt = False
            if leaps and abs(beta * step[1] + 1.0) < 0.1 and least < ratio < most:
                # Twice what is promised is left; a tenth of what is enough may stay.
                far = math.log(20.0 * promised / max(enough, rounding))
                if far > 1.0:
                    leapt = True
                    step[1] *= far
            for k in range(d):
                trial[k] = theta[m, k] - step[k]
            trial[0] += sign[m] * (_softplus(theta[m, 1], beta) - _softplus(trial[1], beta))
        ends[m, OBJECTIVE], ends[m, GRAD_NORM], ends[m, N_ITER] = value, largest, n_iter
        ends[m, N_EVAL], ends[m, CONVERGED] = passes, converged
