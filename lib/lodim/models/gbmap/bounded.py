"""Fit learners with monotone effects.

Since g is increasing, f is monotone in x_k if b_j w_jk has the same sign for all learners j. Given
b_j, each w_jk is therefore bounded by zero.
"""

from dataclasses import replace

import numpy as np

from lodim.solve.lbfgs import Minimum, bounded


def minimize_bounded(objective, theta, sign, way, **stop):
    """Minimize the loss of q learners, starting from theta (q, d), with required signs of effects.

    `way` (p,) is 1, -1 or 0 per feature: increasing, decreasing or free; `sign` (q,) is b.
    """
    ends = [
        _minimize_learner(objective, theta, c, np.r_[0, 0, b * np.asarray(way)], **stop)
        for c, b in enumerate(sign)
    ]
    fields = ("theta", "value", "grad_norm", "n_iter", "converged")
    joined = {name: np.concatenate([getattr(end, name) for end in ends]) for name in fields}
    return Minimum(**joined, n_eval=max(end.n_eval for end in ends))


def minimize_joint(objective, theta, sign, way, **stop):
    """Minimize the loss of all M learners together, with required signs of effects.

    theta (1, M (2 + p)) holds a, intercept and weights of each learner. `way` (p,) is 1, -1 or 0
    per feature: increasing, decreasing or free.
    """
    each = [np.r_[0, 0, b * np.asarray(way)] for b in sign]
    return _minimize_learner(objective, theta, 0, np.concatenate(each), **stop)


def _minimize_learner(objective, theta, c, way, **stop):
    flip, active, point = np.where(way == 0, 1.0, way), np.array([c]), theta.copy()

    def function(u):
        point[c] = u * flip
        value, gradient = objective(point, active)
        return value[c], gradient[c] * flip

    lower = np.where(way == 0, -np.inf, 0.0)
    end = bounded(function, theta[c] * flip, lower, **stop)
    return replace(end, theta=end.theta * flip)
