"""Newton steps after a quasi-Newton minimization, for full precision."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.engine.blocks import single_blas
from lodim.solve.lbfgs import Minimum


def polish(objective, end, max_iter=10):
    """Refine the Minimum `end` of one problem by Newton steps, until gains are rounding errors."""
    theta = end.theta[0]
    value, gradient = objective(theta)
    n_iter, n_eval, promised = 0, 2, np.inf
    rounding, H = objective.precision * abs(value), objective.hessian(theta, False)
    while n_iter < max_iter and promised > rounding:
        step = _damped_step(H, gradient, 0.0)
        if step is None:
            break
        promised = -0.5 * gradient @ step
        new, slope = objective(theta + step)
        n_eval += 1
        nearer = np.abs(slope).max() < np.abs(gradient).max()
        if not (nearer and new <= value + 100.0 * rounding):
            break
        theta, value, gradient, n_iter = theta + step, new, slope, n_iter + 1
    largest = np.array([np.abs(gradient).max()])
    ends = np.array([value]), largest, end.n_iter + n_iter, end.converged
    return Minimum(theta[None], *ends, end.n_eval + n_eval)


def _damped_step(H, gradient, damping):
    """Return the damped Newton step; None if H + damping max(diag H) I is not positive definite."""
    damped = H.copy()
    diagonal = np.arange(len(H))
    damped[diagonal, diagonal] += damping * max(H[diagonal, diagonal].max(), 1e-300)
    try:
        with single_blas():
            return -cho_solve(cho_factor(damped, overwrite_a=True, check_finite=False), gradient)
    except LinAlgError:
        return None
