"""Newton's method with step halving: the maximum where reweighted least squares overshoots.

statsmodels' iterations take whole steps, which may fall away from the maximum (Marschner 2011), and
stop by the size of a step, which says little where columns are nearly collinear. Here a step is
halved until the deviance does not rise, and the end is where the decrement, the fall that is left
to gain in the quadratic model, is nothing beside the deviance: the same in any units of columns.
"""

import numpy as np

from lodim.models.glm import covariance
from lodim.models.glm.likelihood import all_scores

DECREMENT = 1e-16  # of the deviance, left to gain
HALVINGS = 30


def refine(family, X, y, weight, offset, coef, max_iter):
    """Coefficients (q, S) at the maximum, whether it was reached, and the iterations taken."""
    best = _deviance(family, X, y, weight, offset, coef)
    start = _null(family, X, y, weight, offset)
    at_null = _deviance(family, X, y, weight, offset, start)
    if not best <= at_null:  # what cannot beat the null model has gone astray
        coef, best = start, at_null
    for n_iter in range(max_iter):
        step, decrement = _step(family, X, y, weight, offset, coef)
        if not decrement > DECREMENT * max(best, 1e-12 * at_null):
            return coef, True, n_iter
        for halving in range(HALVINGS):
            tried = coef + 0.5**halving * step
            deviance = _deviance(family, X, y, weight, offset, tried)
            if deviance <= best:
                break
        else:  # rounding hides what is left
            return coef, bool(decrement < 1e-8 * best), n_iter
        coef, best = tried, deviance
    return coef, False, max_iter


def _deviance(family, X, y, weight, offset, coef):
    if not np.isfinite(coef).all():
        return np.inf
    value = float(weight @ family.deviance(y, offset + all_scores(X @ coef, family)))
    return value if np.isfinite(value) else np.inf


def _null(family, X, y, weight, offset):
    """The coefficients of the model with an intercept alone, (q, S)."""
    score = family.null_score(y, weight / weight.sum(), offset) - offset
    level = score[0, 1:] - score[0, 0] if family.name == "multinomial" else score[0]
    coef = np.zeros((X.shape[1], len(level)))
    coef[0] = level
    return coef


def _step(family, X, y, weight, offset, coef):
    """A Newton step (q, S), and the decrement: twice the fall of the deviance that it promises."""
    score = offset + all_scores(X @ coef, family)
    residual = covariance.slopes(family, y, weight, family.mean(score))
    gradient = (X.T @ residual).T.ravel()
    step = covariance.newton_step(family, X, y, weight, family.mean(score), gradient)
    if not np.isfinite(step).all():
        return np.zeros_like(coef), 0.0
    return step.reshape(coef.T.shape).T, 2.0 * float(gradient @ step)
