"""The objective of one boost: loss of the score so far plus one weak learner, and its penalty."""

import numpy as np

from lodim.engine.blocks import sum_blocks
from lodim.models.gbmap.kernels.cpu import curvature, loss_gradient
from lodim.solve.objective import add_ridge


class Stage:
    """Eq. 3 of Patron et al. (2024) for q weak learners that share each pass over X.

    Parameters
    ----------
    X : tiles (n_tiles, p, 64)
    y, score, weight : tiles (n_tiles, 64)
        Response, score of the earlier learners and offset, weights that sum to one.
    sign : array (q,)
        b of each learner.
    shape : (beta, activation, loss)
        Softness of the softplus and the codes of `kernels`.
    penalty : ElasticNet over theta = (a, intercept of w, w)
    """

    scaled = False

    def __init__(self, X, y, score, weight, sign, shape, penalty, threads):
        self._data = X, y, score, weight
        self._sign, self._shape, self._threads = sign, shape, threads
        self.n = weight.size
        self._ridge, self.l1 = penalty.ridge, penalty.l1
        self.precision = 4.0 * float(np.finfo(X.dtype).eps)

    def __call__(self, theta, active):
        X, y, score, weight = self._data
        q, d = theta.shape
        sums = sum_blocks(
            loss_gradient, X, (q, 1 + d), y, score, weight, theta, active, self._sign,
            *self._shape, threads=self._threads,
        )  # fmt: skip
        value, gradient = np.ascontiguousarray(sums[:, 0]), sums[:, 1:]
        add_ridge(active, theta, self._ridge, value, gradient)
        return value, gradient

    def hessian(self, theta):
        """A positive semidefinite matrix near each learner's Hessian, (q, d, d); X on the host."""
        X, y, score, weight = self._data
        q, d = theta.shape
        lower = sum_blocks(
            curvature, X, (q, d, d), y, score, weight, theta, self._sign, *self._shape,
            threads=self._threads,
        )  # fmt: skip
        H = np.tril(lower) + np.tril(lower, -1).transpose(0, 2, 1)
        diagonal = np.arange(d)
        H[:, diagonal, diagonal] += 2.0 * self._ridge
        return H
