"""Objective of a boost: Eq. 3 of Patron et al. (2024) for several weak learners at once."""

from functools import partial

import numpy as np

from lodim.engine.blocks import count_blocks, for_blocks, on_host, sum_blocks
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.models.gbmap.cpu_kernels import Form, hessian, loss_gradient
from lodim.models.gbmap.small_data import Scale, descend
from lodim.solve.objective import ElasticNet, add_ridge

NO_FACTOR = np.empty((0, 0, 0))  # for parameters that are not scaled
SHARED = 2**16  # size of X from which one thread per learner pays


class BoostObjective:
    """Penalized mean loss of q new learners (Eq. 3 of Patron et al. 2024), as a function of theta.

    theta has rows (a, intercept, w), sign (q,) the factors b, for learners a + b g(intercept +
    w'x). Arrays are in blocks of 64 rows; score is the sum of earlier learners. `runs` lists ranges
    (lo, hi) of blocks in use, None for all."""

    scaled = False

    def __init__(self, X, y, score, weight, sign, form, penalty, threads, runs=None):
        self._X, self._columns = X, (y, score, weight)
        self.sign, self._form = sign, form
        self._how = {"threads": threads, "runs": runs}
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = precision_of(X.dtype)
        few_rows = on_host(X) and count_blocks(X) == 1
        self.compiled_loop = self._descend if few_rows else None

    def __call__(self, theta, active):
        q, d = theta.shape
        rest = *self._columns, theta, active, self.sign, self._form
        sums = sum_blocks(loss_gradient, self._X, (q, 1 + d), *rest, **self._how)
        value, gradient = sums[:, 0].copy(), sums[:, 1:].copy()
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def null_value(self, theta):
        """Return the loss of a learner theta (1, d) whose weights are zero; reads no features."""
        if not on_host(self._X):
            return self(theta, np.arange(1))[0][0]
        without = np.empty((len(self._X), 0, TILE), self._X.dtype)
        rest = *self._columns, theta[:, :2].copy(), np.arange(1), self.sign, self._form
        return sum_blocks(loss_gradient, without, (1, 3), *rest, **self._how)[0, 0]

    def _descend(self, theta, max_iter, tol, ftol, memory, factor=None, unit=None):
        """Minimize from theta (q, d) by compiled L-BFGS, for few rows; return minima.

        `factor` are Cholesky factors of Hessians (or None), unit (d,) sizes of parameters."""
        scaled, unit = factor is not None, np.ones(theta.shape[1]) if unit is None else unit
        problem, limits = (self._X, *self._columns), (max_iter, tol, ftol, memory)
        penalty = (self._ridge, self.l1), self.precision

        def follow(i):
            scale = Scale(unit, factor[i] if scaled else NO_FACTOR, scaled)
            shape = self.sign[i], self._form, *penalty, scale
            return descend(*problem, *shape, theta[i], limits)

        *fields, n_eval = zip(*self._shared(follow, len(theta)), strict=True)
        return *map(np.concatenate, fields), max(n_eval)

    def hessian(self, theta, convex=True):
        """Return Hessians (q, d, d), or semidefinite approximations if `convex`; X not on a GPU."""
        q, d = theta.shape

        def lower(i):
            rest = *self._columns, theta[i], self.sign[i], self._form, convex
            return sum_blocks(hessian, self._X, (len(theta[i]), d, d), *rest, **self._how)

        one_block = count_blocks(self._X) == 1
        H = np.concatenate(self._shared(lower, q)) if one_block else lower(slice(q))
        H = np.tril(H) + np.tril(H, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H

    def _shared(self, work, q):
        """Call work(slice) for slices of the q learners in threads; return the results in order."""
        threads, parts = self._how["threads"] if self._X.size >= SHARED else 1, {}

        def part(lo, hi):
            parts[lo] = work(slice(lo, hi))

        for_blocks(part, q, threads=threads)
        return [parts[lo] for lo in sorted(parts)]


class OneLearner:
    """Objective of a single learner, as a function of its parameters (d,)."""

    def __init__(self, objective):
        self._objective, self.precision = objective, objective.precision

    def __call__(self, theta):
        value, gradient = self._objective(theta[None], np.arange(1))
        return value[0], gradient[0]

    def hessian(self, theta, convex):
        """Return the Hessian (d, d) at theta (d,), or a similar semidefinite matrix if `convex`."""
        return self._objective.hessian(theta[None], convex)[0]


def precision_of(dtype):
    """Return the relative rounding error of a loss that is computed from features of a dtype."""
    return 4.0 * float(np.finfo(dtype).eps)


def penalize(settings, width, p):
    """Return the penalty on (a, intercept, w), per penalized parameter; p features vary."""
    penalized = np.ones(2 + width)
    # With the identity, `a` replaces the intercept of w, which is then not penalized.
    penalized[:2] = 0.0, settings.penalize_intercept and settings.softplus
    n_penalized = p + settings.penalize_intercept
    return ElasticNet.over(penalized / n_penalized, settings.lambda_, settings.l1_ratio)


def stage_objective(state, rows, penalty):
    """Return a function that makes a BoostObjective on `rows` from learners' signs (q,)."""
    form, threads = Form(*state.settings.shape, state.loss), state.settings.n_threads
    how = {"threads": threads, "runs": state.runs if rows[0] is state.X else None}
    return partial(BoostObjective, *rows, form=form, penalty=penalty, **how)


def null_learners(sign, d, settings):
    """Return parameters (q, d) of learners with signs `sign` (q,) that predict 0 for all rows."""
    theta = np.zeros((len(sign), d))
    if settings.softplus:
        theta[:, 0] = -sign * np.log(2.0) / settings.beta
    return theta


def derivatives(loss, y, score, weight):
    """Return first and (positive) second derivatives of losses by the linear predictor `score`."""
    _, slope, curvature = losses.rows(loss, y, score, weight)
    return slope, np.maximum(curvature, loss[1] * weight)
