"""What an objective is, and the penalties that all models share."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

DAMPING = 0.01  # of the largest curvature, added to all: the sample hardly knows the flat ones


class Objective(Protocol):
    """q smooth functions of d parameters that share their passes over the data.

    Called with theta (q, d) and the indices `active` of the functions wanted, it returns value
    (q,) and gradient (q, d), filled in those rows. `l1` (d,) weighs absolute values that the solver
    adds by itself; `precision` is the relative error of a value; `scaled` says that the Hessian is
    near the identity, so that a gradient tells what is left to gain.
    """

    l1: np.ndarray
    precision: float
    scaled: bool

    def __call__(self, theta, active): ...


@dataclass(frozen=True)
class ElasticNet:
    """lambda sum_k share_k ((1 - l1_ratio) w_k^2 + l1_ratio |w_k|) over theta.

    ridge (d,) and l1 (d,) are the weights of theta_k^2 and |theta_k|.
    """

    ridge: np.ndarray
    l1: np.ndarray

    @classmethod
    def over(cls, share, lambda_, l1_ratio):
        """Penalize theta_k by its share (d,), zero where it is free."""
        return cls(lambda_ * (1.0 - l1_ratio) * share, lambda_ * l1_ratio * share)


@njit(cache=True, forceinline=True)
def pseudo_slope(theta, gradient, l1):
    """Derivative of f + l1 |theta| on the side that goes down; zero where neither does."""
    if theta > 0.0 or (theta == 0.0 and gradient + l1 < 0.0):
        return gradient + l1
    if theta < 0.0 or gradient - l1 > 0.0:
        return gradient - l1
    return 0.0


@njit(cache=True)
def add_ridge(active, theta, ridge, value, gradient):
    """Add sum_k ridge_k theta_k^2 and its gradient to the rows `active`, in place."""
    for c in active:
        for k in range(ridge.size):
            value[c] += ridge[k] * theta[c, k] * theta[c, k]
            gradient[c, k] += 2.0 * ridge[k] * theta[c, k]


class Preconditioned:
    """An objective in the coordinates u = L' theta in which its Hessian is near the identity.

    Parameters
    ----------
    objective : Objective without absolute values
    hessian : array (q, d, d)
        Positive semidefinite, near the Hessian of each function; with DAMPING it is L L'.
    """

    scaled = True

    def __init__(self, objective, hessian):
        self._objective = objective
        diagonal = np.arange(hessian.shape[1])
        largest = hessian[:, diagonal, diagonal].max(axis=1)
        damping = (DAMPING * largest)[:, None, None] * np.eye(diagonal.size)
        self._factor = np.linalg.cholesky(hessian + damping)
        self._inverse = np.linalg.inv(self._factor).transpose(0, 2, 1)
        self.l1, self.precision = objective.l1, objective.precision

    def to(self, theta):
        """u of theta, (q, d)."""
        return np.einsum("cji,cj->ci", self._factor, theta)

    def back(self, u):
        """theta of u, (q, d)."""
        return np.einsum("cij,cj->ci", self._inverse, u)

    def __call__(self, u, active):
        value, gradient = self._objective(self.back(u), active)
        return value, np.einsum("cij,ci->cj", self._inverse, gradient)
