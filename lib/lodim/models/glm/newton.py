"""Newton's method with step halving: the maximum where reweighted least squares overshoots.

statsmodels' iterations take whole steps, which may fall away from the maximum (Marschner 2011), and
stop by the size of a step, which says little where columns are nearly collinear. Here a step is
halved until the deviance does not rise, and the end is where the decrement, the fall that is left
to gain in the quadratic model, is negligible relative to the deviance, in any units of columns.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.models.glm.rows import Sums

DECREMENT = 1e-16  # of the deviance, left to gain
UNMOVED = 1e-26  # of the deviance: a last step that changes no digit of the sums
HALVINGS = 30


def maximize(rows, basis, start, at_null, max_iter):
    """Sums at the maximum, with the expected information, whether it was reached, and the steps.

    Start at the Sums `start`, or at `at_null` if these are lower. Once the decrement is negligible,
    take one more step for the last digits.
    """
    found = start if start.deviance <= at_null.deviance else at_null
    step, reached, n_iter = 0.0, False, 0
    while n_iter < max_iter and not reached:
        step, decrement = _step(rows, found)
        best = max(found.deviance, 1e-12 * at_null.deviance)
        if reached := not decrement > DECREMENT * best:
            break
        for halving in range(HALVINGS):
            tried = Sums.of_rows(rows, basis, found.coef + 0.5**halving * step, observed=True)
            if tried.deviance <= found.deviance:
                found, n_iter = tried, n_iter + 1
                break
            if reached := decrement < 1e-12 * best:  # rounding hides what is left
                break
        else:
            reached = decrement < 1e-8 * best
            break
    moved = reached and decrement > UNMOVED * best
    if reached:
        found = replace(found, coef=found.coef + step)
    if moved or rows.family.name == "gamma":  # its expected information is not the observed one
        found = Sums.of_rows(rows, basis, found.coef, observed=False)
    return found, bool(reached), n_iter


def _step(rows, found):
    """A Newton step (S, q), and the decrement: twice the fall of the deviance that it promises."""
    S, q = found.coef.shape
    moved = np.ones(S, bool)
    if rows.family.name == "multinomial":  # of the classes that are there, but one
        moved = np.isin(np.arange(1, S + 1), np.flatnonzero(rows.sizes)[1:])
    at = np.flatnonzero(np.repeat(moved, q))
    step = np.zeros(S * q)
    if len(at):
        step[at] = _solve(found.matrix[np.ix_(at, at)], found.gradient[at])
    if not np.isfinite(step).all():
        return np.zeros((S, q)), 0.0
    return step.reshape(S, q), 2.0 * float(found.gradient @ step)


def _solve(H, gradient):
    """H^-1 times a gradient, of a matrix whose diagonal is made one first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1.0 / np.sqrt(np.diag(H))
        scaled = H * np.outer(scale, scale)
    try:
        factor = cho_factor(scaled)
        return scale * cho_solve(factor, scale * gradient)
    except (LinAlgError, ValueError):
        return np.linalg.lstsq(H, gradient, rcond=None)[0]
