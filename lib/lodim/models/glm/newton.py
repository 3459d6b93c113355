"""Newton's method with step halving, for likelihoods on which full steps overshoot."""

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from lodim.models.glm.rows import Sums

DECREMENT = 1e-16  # negligible decrement, relative to the deviance
UNMOVED = 1e-26  # relative decrement of a step that changes no digit
HALVINGS = 30


def maximize(rows, basis, start, at_null, max_iter):
    """Maximize the likelihood; return the last Sums, whether it converged, and the step count.

    It starts at the Sums `start` or `at_null` (the intercept-only model), whichever has the lower
    deviance. It ends one step after the predicted decrease is negligible."""
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
            if reached := decrement < 1e-12 * best:  # the rest is below rounding error
                break
        else:
            reached = decrement < 1e-8 * best
            break
    moved = reached and decrement > UNMOVED * best
    if reached:
        found = replace(found, coef=found.coef + step)
    if moved or not rows.family.canonical:  # the expected information is not the observed one
        found = Sums.of_rows(rows, basis, found.coef, observed=False)
    return found, bool(reached), n_iter


def _step(rows, found):
    """Return a Newton step from the Sums `found`, and twice the predicted fall of deviance."""
    S, q = found.coef.shape
    free = rows.free_directions(S, q)
    if free is None:
        step = _solve(found.matrix, found.gradient)
    else:
        step = free @ _solve(free.T @ found.matrix @ free, free.T @ found.gradient)
    if not np.isfinite(step).all():
        return np.zeros((S, q)), 0.0
    return step.reshape(S, q), 2.0 * float(found.gradient @ step)


def _solve(H, gradient):
    """Return H^-1 times `gradient`; H is scaled to a unit diagonal for accuracy."""
    if not len(H):
        return gradient
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1.0 / np.sqrt(np.diag(H))
        scaled = H * np.outer(scale, scale)
    try:
        factor = cho_factor(scaled)
        return scale * cho_solve(factor, scale * gradient)
    except (LinAlgError, ValueError):
        return np.linalg.lstsq(H, gradient, rcond=None)[0]
