"""Objective of a boost: Eq. 3 of Patron et al. (2024) for several weak learners at once."""

from functools import partial, reduce

import numpy as np

from lodim.engine.blocks import count_blocks, for_blocks, on_host, sum_blocks
from lodim.family import losses
from lodim.models.gbmap.cpu_kernels import Form, hessian, loss_gradient
from lodim.solve.objective import ElasticNet, add_ridge

SHARED = 2**16  # size of X in one block of rows from which one thread per learner pays
SCREENING_FTOL = 1e-5  # relative tolerance of fits that are only compared
LEAST_GAIN = 1e-5  # smallest relative gain for which a learner is kept
TIED = 1e-9  # relative difference up to which two objectives are tied


class BoostObjective:
    """Penalized mean losses of q new learners as a function of their parameters.

    sign : (q,) signs of the learners
    score : linear predictors without them, like X, y and weight in blocks of 64 rows
    runs : list of ranges (lo, hi) of blocks of 4,096 rows to use; None for all"""

    # Eq. 3 of Patron et al. (2024)

    scaled = False

    def __init__(self, X, y, score, weight, sign, form, penalty, threads, runs=None):
        self._X, self._columns = X, (y, score, weight)
        self.sign, self._form = sign, form
        self._how = {"threads": threads, "runs": runs}
        self._shared = on_host(X) and count_blocks(X) == 1 and X.size >= SHARED
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = precision_of(X.dtype)

    def __call__(self, theta, active):
        q, d = theta.shape

        def sums_of(i):
            rest = *self._columns, theta, active[i], self.sign, self._form
            return sum_blocks(loss_gradient, self._X, (q, 1 + d), *rest, **self._how)

        sums = reduce(np.add, self._in_slices(sums_of, len(active)))
        value, gradient = sums[:, 0].copy(), sums[:, 1:].copy()
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def hessian(self, theta, convex=True):
        """Return Hessians (q, d, d) of the learners' losses at theta (q, d), for X in main memory.

        convex : whether to leave out terms that could make a Hessian indefinite"""
        q, d = theta.shape

        def lower(i):
            rest = *self._columns, theta[i], self.sign[i], self._form, convex
            return sum_blocks(hessian, self._X, (len(theta[i]), d, d), *rest, **self._how)

        H = np.concatenate(self._in_slices(lower, q))
        H = np.tril(H) + np.tril(H, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H

    def _in_slices(self, work, q):
        """Call work(slice) for slices of the q learners' positions; return the list of results.

        There is one slice, or if X is large, one per thread."""
        if not self._shared:
            return [work(slice(q))]
        parts = {}

        def part(lo, hi):
            parts[lo] = work(slice(lo, hi))

        for_blocks(part, q, threads=self._how["threads"])
        return [parts[lo] for lo in sorted(parts)]


def precision_of(dtype):
    """Return the relative rounding error of a loss that is computed from features of a dtype."""
    return 4.0 * float(np.finfo(dtype).eps)


def penalize(settings, width, p):
    """Return the penalty of a learner's parameters (a, intercept, weights), as an ElasticNet.

    width : number of weights; p : number of features that vary, by which the penalty is divided"""
    penalized = np.ones(2 + width)
    # With the identity, `a` replaces the intercept of w, which is then not penalized.
    penalized[:2] = 0.0, settings.penalize_intercept and settings.softplus
    n_penalized = p + settings.penalize_intercept
    return ElasticNet.over(penalized / n_penalized, settings.lambda_, settings.l1_ratio)


def stage_objective(state, rows, penalty):
    """Return a function that, given signs (q,) of learners, returns their BoostObjective (losses).

    state : BoostState, which has the settings; penalty : ElasticNet
    rows : X, response, linear predictor and weight, in blocks of 64 rows"""
    form, threads = Form(*state.settings.shape, state.loss), state.settings.n_threads
    how = {"threads": threads, "runs": state.runs if rows[0] is state.X else None}
    return partial(BoostObjective, *rows, form=form, penalty=penalty, **how)


def null_learners(sign, d, settings):
    """Return parameters of learners that predict 0, (q, d) rows (a, 0, ..., 0); sign : (q,)."""
    theta = np.zeros((len(sign), d))
    if settings.softplus:
        theta[:, 0] = -sign * np.log(2.0) / settings.beta
    return theta


def derivatives(loss, y, score, weight):
    """Return first and second derivatives (n,) of the rows' losses by their linear predictors.

    Second derivatives are raised to a positive lower bound; score : (n,) linear predictors"""
    _, slope, curvature = losses.rows(loss, y, score, weight)
    return slope, np.maximum(curvature, loss[1] * weight)


def lowest(value):
    """Return the lowest of the losses `value`, (q,), apart from NaN; infinity if all are NaN."""
    return np.fmin.reduce(value, initial=np.inf)


def best_position(value, converged):
    """Return the first position of the lowest loss in `value`, (q,), up to rounding errors.

    Of losses that tie, those of fits that `converged`, (q,) bool, are preferred."""
    least = lowest(value)
    tied = value <= least + TIED * abs(least)
    return int(np.argmax(tied & (converged | ~converged[tied].any())))


def best_of_each_sign(value, sign):
    """Return positions of the lowest of the losses `value` (q,) where `sign` (q,) is 1, and -1."""
    groups = [np.flatnonzero(sign == b) for b in (1.0, -1.0)]
    return [g[best_position(value[g], np.ones(len(g), bool))] for g in groups if len(g)]
