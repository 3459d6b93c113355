"""L1 and ridge penalties, and changes of coordinates of an objective, for several models."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.engine.compiled import inlined, njit

DAMPING = 0.01  # share of the largest curvature, added to all


@dataclass(frozen=True)
class ElasticNet:
    """Elastic net penalty, sum over k of ridge_k w_k^2 + l1_k |w_k|, of parameters w (d,)."""

    ridge: np.ndarray
    l1: np.ndarray

    @classmethod
    def over(cls, share, lambda_, l1_ratio):
        """Return an elastic net penalty with a different weight for each parameter.

        share : (d,) factor of the penalty for each parameter
        lambda_ : strength of the penalty; l1_ratio : share of its L1 part, 0 to 1"""
        # lambda_ sum_k share_k ((1 - l1_ratio) w_k^2 + l1_ratio |w_k|)
        return cls(lambda_ * (1.0 - l1_ratio) * share, lambda_ * l1_ratio * share)


@njit(cache=True, forceinline=True)
def pseudo_slope(theta, gradient, l1):
    """Return the subgradient of f + l1 |theta| nearest to 0; `gradient` is the derivative of f."""
    if theta > 0.0 or (theta == 0.0 and gradient + l1 < 0.0):
        return gradient + l1
    if theta < 0.0 or gradient - l1 > 0.0:
        return gradient - l1
    return 0.0


@njit(cache=True)
def add_ridge(active, theta, ridge, value, gradient):
    """Add sum_k ridge_k theta_ck^2 to value[c], its derivatives to gradient[c], c in `active`."""
    for c in active:
        for k in range(ridge.size):
            value[c] += ridge[k] * theta[c, k] * theta[c, k]
            gradient[c, k] += 2.0 * ridge[k] * theta[c, k]


class Preconditioned:
    """Objective in transformed parameters, for which Hessians are near the identity.

    hessian : (q, d, d) approximate Hessians of the q functions
    damping : share of the largest curvature that is added to the diagonals"""

    # The new parameters are L' theta, where L L' is the damped Hessian.

    scaled = True

    def __init__(self, objective, hessian, damping=DAMPING):
        self._objective = objective
        largest = hessian.diagonal(axis1=1, axis2=2).max(axis=1)
        damped = hessian + damping * largest[:, None, None] * np.eye(hessian.shape[1])
        with single_blas():
            self._factor = np.linalg.cholesky(damped)
        self.l1, self.precision = objective.l1, objective.precision

    def to(self, theta):
        return np.einsum("cji,cj->ci", self._factor, theta)

    def back(self, u):
        return _solve(self._factor, u, True)

    def __call__(self, u, active):
        value, gradient = self._objective(self.back(u), active)
        return value, _solve(self._factor, gradient, False)


class Rescaled:
    """Objective in parameters u = theta / unit (d,), so that one step length suits all of them."""

    scaled = False

    def __init__(self, objective, unit):
        self._objective, self._unit = objective, unit
        self.l1, self.precision = objective.l1 * unit, objective.precision

    def to(self, theta):
        return theta / self._unit

    def back(self, u):
        return u * self._unit

    def __call__(self, u, active):
        value, gradient = self._objective(self.back(u), active)
        return value, gradient * self._unit

    def hessian(self, u):
        return self._objective.hessian(self.back(u)) * np.outer(self._unit, self._unit)


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def solve_lower(L, x):
    """Replace x (d,) by L^-1 x, with L (d, d) lower triangular."""
    for i in range(x.size):
        rest = x[i]
        for k in range(i):
            rest -= L[i, k] * x[k]
        x[i] = rest / L[i, i]


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def solve_upper(L, x):
    """Replace x (d,) by L'^-1 x, with L (d, d) lower triangular."""
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= x[i] * L[i, k]


@njit(cache=True)
def _solve(L, v, transposed):
    """Solve L x = v, or L' x = v if `transposed`, for q lower triangular matrices L (q, d, d)."""
    x = v.copy()
    for c in range(len(x)):
        if transposed:
            solve_upper(L[c], x[c])
        else:
            solve_lower(L[c], x[c])
    return x
