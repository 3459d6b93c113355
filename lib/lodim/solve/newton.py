"""Whole Newton steps, which bring the last digits of a minimum."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.engine.blocks import single_blas
from lodim.solve.lbfgs import Minimum


def polish(objective, end, max_iter=10):
    """The end of a minimization followed by whole Newton steps, until these promise but rounding.

    Where a quasi-Newton method ends depends on its way, in half of the digits; a few steps of
    Newton's, all by the Hessian at that end, bring the others. They stop where it is not positive
    definite, or where a step would raise the value or bring the gradient no nearer to zero.

    Parameters
    ----------
    objective : callable
        As of `newton`, with `precision`, the relative error of a value.
    end : Minimum
        Of one problem.
    max_iter : int
        Steps at most.

    Returns
    -------
    Minimum
    """
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
    """-(H + damping max(diag H) I)^-1 gradient; None where the matrix is not positive definite."""
    damped = H.copy()
    diagonal = np.arange(len(H))
    damped[diagonal, diagonal] += damping * max(H[diagonal, diagonal].max(), 1e-300)
    try:
        with single_blas():
            return -cho_solve(cho_factor(damped, overwrite_a=True, check_finite=False), gradient)
    except LinAlgError:
        return None
