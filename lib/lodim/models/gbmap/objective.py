"""The objective of a boost: Eq. 3 of Patron et al. (2024) for several weak learners at once."""

from functools import partial

import numpy as np

from lodim.engine.blocks import count_blocks, for_blocks, on_host, sum_blocks
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.models.gbmap.kernels.cpu import hessian, loss_gradient
from lodim.models.gbmap.kernels.descent import descend
from lodim.solve.objective import ElasticNet, add_ridge

NO_FACTOR = np.empty((0, 0, 0))  # of coordinates that are not scaled
SHARED = 2**16  # numbers in a block of X from which a thread for each learner pays


class BoostObjective:
    """Eq. 3 of Patron et al. (2024) for q weak learners that share each pass over X.

    Parameters
    ----------
    X : tiles (n_tiles, p, 64)
    y, score, weight : tiles (n_tiles, 64)
        Response, score of the earlier learners and offset, weights that sum to one.
    sign : array (q,)
        b of each learner.
    shape : (beta, activation, loss)
        Softness of the softplus, its code in `kernels.cpu`, and the loss as of `family.losses`.
    penalty : ElasticNet over theta = (a, intercept of w, w)
    runs : of blocks of rows that count, where others do not
    """

    scaled = False

    def __init__(self, X, y, score, weight, sign, shape, penalty, threads, runs=None):
        self._X, self._columns = X, (y, score, weight)
        self.sign, self._shape = sign, shape
        self._how = {"threads": threads, "runs": runs}
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = precision_of(X.dtype)
        few_rows = on_host(X) and count_blocks(X) == 1
        self.compiled_loop = self._descend if few_rows else None

    def __call__(self, theta, active):
        q, d = theta.shape
        rest = *self._columns, theta, active, self.sign, *self._shape
        sums = sum_blocks(loss_gradient, self._X, (q, 1 + d), *rest, **self._how)
        value, gradient = sums[:, 0].copy(), sums[:, 1:].copy()
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def null_value(self, theta):
        """The value of a learner theta (1, d) with w = 0; where X is on the host it is not read."""
        if not on_host(self._X):
            return self(theta, np.arange(1))[0][0]
        without = np.empty((len(self._X), 0, TILE), self._X.dtype)
        rest = *self._columns, theta[:, :2].copy(), np.arange(1), self.sign, *self._shape
        return sum_blocks(loss_gradient, without, (1, 3), *rest, **self._how)[0, 0]

    def _descend(self, theta, max_iter, tol, ftol, memory, factor=None, unit=None):
        """`lbfgs` with passes over one block of rows, compiled."""
        scaled, unit = factor is not None, np.ones(theta.shape[1]) if unit is None else unit
        penalty = self._ridge, self.l1 * unit, self.precision
        limits = max_iter, tol, ftol, memory

        def follow(i):
            options = factor[i] if scaled else NO_FACTOR, scaled, unit, theta[i], *limits
            return descend(self._X, *self._columns, self.sign[i], *self._shape, *penalty, *options)

        *fields, n_eval = zip(*self._shared(follow, len(theta)), strict=True)
        return *map(np.concatenate, fields), max(n_eval)

    def hessian(self, theta, convex=True):
        """Each learner's Hessian, (q, d, d); X on the host.

        convex: a positive semidefinite matrix near it.
        """
        q, d = theta.shape

        def lower(i):
            rest = *self._columns, theta[i], self.sign[i], *self._shape, convex
            return sum_blocks(hessian, self._X, (len(theta[i]), d, d), *rest, **self._how)

        one_block = count_blocks(self._X) == 1
        H = np.concatenate(self._shared(lower, q)) if one_block else lower(slice(q))
        H = np.tril(H) + np.tril(H, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H

    def _shared(self, work, q):
        """What work(slice) makes of slices of q learners of one block, shared among threads."""
        threads, parts = self._how["threads"] if self._X.size >= SHARED else 1, {}

        def part(lo, hi):
            parts[lo] = work(slice(lo, hi))

        for_blocks(part, q, threads=threads)
        return [parts[lo] for lo in sorted(parts)]


class OneLearner:
    """The objective of one learner as a function of its theta (d,) alone."""

    def __init__(self, objective):
        self._objective, self.precision = objective, objective.precision

    def __call__(self, theta):
        value, gradient = self._objective(theta[None], np.arange(1))
        return value[0], gradient[0]

    def hessian(self, theta, convex):
        """Its Hessian (d, d)."""
        return self._objective.hessian(theta[None], convex)[0]


def precision_of(dtype):
    """Relative error of a loss of rows in a precision."""
    return 4.0 * float(np.finfo(dtype).eps)


def penalize(settings, width, p):
    """The penalty of a learner's theta = (a, intercept of w, w), w (width,), p of them varying."""
    penalized = np.ones(2 + width)
    # With the identity `a` takes over the intercept of w at no cost: its penalty is but a kink.
    penalized[:2] = 0.0, settings.penalize_intercept and settings.softplus
    n_penalized = p + settings.penalize_intercept
    return ElasticNet.over(penalized / n_penalized, settings.lambda_, settings.l1_ratio)


def stage_objective(state, rows, penalty):
    """The stage's objective on some rows as a function of the signs b."""
    shape, threads = (*state.settings.shape, state.loss), state.settings.n_threads
    how = {"threads": threads, "runs": state.runs if rows[0] is state.X else None}
    return partial(BoostObjective, *rows, shape=shape, penalty=penalty, **how)


def null_learners(sign, d, settings):
    """Learners with w = 0 whose a undoes b g(0), (q, d)."""
    theta = np.zeros((len(sign), d))
    if settings.softplus:
        theta[:, 0] = -sign * np.log(2.0) / settings.beta
    return theta


def derivatives(loss, y, score, weight):
    """Slope of each row's weighted loss in its score, and the curvature that a step counts on."""
    _, slope, curvature = losses.rows(loss, y, score, weight)
    return slope, np.maximum(curvature, loss[1] * weight)
