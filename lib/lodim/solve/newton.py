"""Newton's method with damped steps, for one smooth function of at most some thousand parameters.

It needs few steps where a quasi-Newton method needs thousands, so that of a function that is not
convex it ends in the same minimum from starts that differ by rounding.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.engine.blocks import single_blas
from lodim.solve.lbfgs import Minimum

CONVEX_UNTIL = 1e-3  # share of the value that a step gains, below which the whole Hessian is taken
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-10, 1e8
ACCEPTED, POOR, GOOD = 0.1, 0.25, 0.7  # gain of a step, as share of what the model promises
PATIENCE = 3  # steps in a row that gain nothing
SMALLEST_VALUE = 1e-6  # a share of less says nothing


def newton(objective, theta, *, max_iter=500, tol=1e-8, ftol=1e-7):
    """Minimize one smooth function by Newton's method with Levenberg's damping.

    Steps solve (H + mu max(diag H) I) step = -gradient; mu falls where the quadratic model holds
    and rises where it does not, or where the matrix is not positive definite (Nocedal & Wright
    2006, Sects. 3.4 and 10.3). H is a positive semidefinite matrix near the Hessian until a step
    gains less than a thousandth of the value, then the Hessian itself.

    Parameters
    ----------
    objective : callable
        theta (d,) -> value, gradient (d,); `objective.hessian(theta, convex)` is a matrix (d, d).
    theta : array (d,)
        Start.
    max_iter : int
        Steps tried at most.
    tol, ftol : float
        Stop where the largest absolute gradient is at most `tol`, or three steps in a row lower the
        value by at most `ftol` of its size each. Else it has not converged.

    Returns
    -------
    Minimum
        Of one problem; n_eval counts evaluations of the function and of its Hessian.
    """
    value, gradient = objective(theta)
    damping, convex, flat, n_iter, n_eval = FIRST_DAMPING, True, 0, 0, 1
    while np.abs(gradient).max() > tol and flat < PATIENCE and n_iter < max_iter:
        H, accepted = objective.hessian(theta, convex), None
        n_eval += 1
        while accepted is None and n_iter < max_iter and damping <= MOST_DAMPING:
            n_iter += 1
            step = _damped_step(H, gradient, damping)
            if step is not None:
                promised = -gradient @ step - 0.5 * step @ (H @ step)
                new, slope = objective(theta + step)
                n_eval += 1
                share = (value - new) / max(promised, 1e-300)
                accepted = share if share > ACCEPTED else None
            if accepted is None:
                damping *= 4.0
        if accepted is None:
            break
        if accepted > GOOD:
            damping = max(damping / 3.0, LEAST_DAMPING)
        elif accepted < POOR:
            damping *= 2.0
        gain, size = value - new, max(abs(new), SMALLEST_VALUE)
        theta, value, gradient = theta + step, new, slope
        flat = flat + 1 if gain <= ftol * size else 0
        convex = convex and gain > CONVEX_UNTIL * size
    largest = np.abs(gradient).max()
    converged = largest <= tol or flat >= PATIENCE
    ends = (np.array([v]) for v in (value, largest, n_iter, converged))
    return Minimum(theta[None], *ends, n_eval)


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
