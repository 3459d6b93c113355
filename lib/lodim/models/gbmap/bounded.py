"""Fit learners whose weights are bounded so that effects are monotone.

Since g is increasing, f is monotone in x_k at every row if b_j w_jk has the same sign for all j.
Given b_j, this is a bound of zero on each w_jk.
"""

from dataclasses import replace

import numpy as np

from lodim.solve.lbfgs import Minimum, bounded


def minimize_bounded(objective, theta, sign, way, **stop):
    """Minimize the objective of each of q learners so that its effects have the required signs.

    theta (q, d) are the starting parameters and sign (q,) the signs b. way (p,) is 1, -1 or 0 for
    each feature: increasing, decreasing or free. **stop are the solver's stopping rules.
    """
    ends = [
        _minimize_learner(objective, theta, c, np.r_[0, 0, b * np.asarray(way)], **stop)
        for c, b in enumerate(sign)
    ]
    fields = ("theta", "value", "grad_norm", "n_iter", "converged")
    joined = {name: np.concatenate([getattr(end, name) for end in ends]) for name in fields}
    return Minimum(**joined, n_eval=max(end.n_eval for end in ends))


def minimize_joint(objective, theta, sign, way, **stop):
    """Minimize the objective of all M learners together so that effects have the required signs.

    theta (1, M (2 + p)) holds a constant, an intercept and p weights per learner; sign (M,) holds
    the sign b of each. way (p,) is 1, -1 or 0 for each feature: increasing, decreasing or free.
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
