"""Interface of an objective, and the penalties that all models share."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from lodim.engine.compiled import inlined, njit

DAMPING = 0.01  # of the largest curvature, added to all: the sample hardly knows the flat ones


class Objective(Protocol):
    """q smooth functions of d parameters that share their passes over the data.

    Called with theta (q, d) and the indices `active` of the functions wanted, it returns value
    (q,) and gradient (q, d), filled in those rows. `l1` (d,) weighs absolute values that the solver
    adds by itself; `precision` is the relative error of a value; `scaled` says that the Hessian is
    near the identity, so that a gradient tells what is left to gain.

    An objective of few rows, whose evaluations take less time than Python does between two of them,
    may bring `lbfgs` compiled with them: `compiled_loop(theta, max_iter, tol, ftol, memory)`, the
    fields of its Minimum, with `factor` in the coordinates of `Preconditioned`, with `unit` (d,) in
    those of `Rescaled`; else None.
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
        """Penalize theta_k by its share (d,), zero for a free parameter."""
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
        Positive semidefinite, near the Hessian of each function; damped it is L L'.
    damping : float
        Share of the largest curvature that is added to all.
    """

    scaled = True

    def __init__(self, objective, hessian, damping=DAMPING):
        self._objective = objective
        self._factor = _cholesky(hessian, damping)
        self.l1, self.precision = objective.l1, objective.precision
        compiled = getattr(objective, "compiled_loop", None)
        self.compiled_loop = compiled and partial(compiled, factor=self._factor)

    def to(self, theta):
        """u of theta, (q, d)."""
        return np.einsum("cji,cj->ci", self._factor, theta)

    def back(self, u):
        """theta of u, (q, d)."""
        return _solve(self._factor, u, True)

    def __call__(self, u, active):
        value, gradient = self._objective(self.back(u), active)
        return value, _solve(self._factor, gradient, False)


class Rescaled:
    """An objective in the coordinates u = theta / unit, each absolute value with its parameter.

    Where columns differ in scale no step suits all parameters, nor any damping of the curvature.

    Parameters
    ----------
    objective : Objective
    unit : array (d,)
        Above zero. Powers of two change no digit.
    """

    scaled = False

    def __init__(self, objective, unit):
        self._objective, self._unit = objective, unit
        self.l1, self.precision = objective.l1 * unit, objective.precision
        compiled = getattr(objective, "compiled_loop", None)
        self.compiled_loop = compiled and partial(compiled, unit=unit)

    def to(self, theta):
        """u of theta, (q, d)."""
        return theta / self._unit

    def back(self, u):
        """theta of u, (q, d)."""
        return u * self._unit

    def __call__(self, u, active):
        value, gradient = self._objective(self.back(u), active)
        return value, gradient * self._unit

    def hessian(self, u):
        """Return the objective's (approximate) Hessian of each function in u, (q, d, d)."""
        return self._objective.hessian(self.back(u)) * np.outer(self._unit, self._unit)


# Not LAPACK's: idle threads of BLAS spin for a while, and slow down those of the passes.
@njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _cholesky(H, damping):
    """L of L L' = H + damping max(diag H) I, for each of (q, d, d)."""
    L = np.zeros_like(H)
    for c in range(H.shape[0]):
        largest = 0.0
        for i in range(H.shape[1]):
            largest = max(largest, H[c, i, i])
        for i in range(H.shape[1]):
            for j in range(i + 1):
                rest = H[c, i, j]
                for k in range(j):
                    rest -= L[c, i, k] * L[c, j, k]
                if i > j:
                    L[c, i, j] = rest / L[c, j, j]
                else:
                    L[c, i, i] = np.sqrt(max(rest, 0.0) + damping * largest)
    return L


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def solve_lower(L, x):
    """L^-1 x of (d, d) and (d,), in place of x."""
    for i in range(x.size):
        rest = x[i]
        for k in range(i):
            rest -= L[i, k] * x[k]
        x[i] = rest / L[i, i]


@inlined(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def solve_upper(L, x):
    """L'^-1 x of (d, d) and (d,), in place of x."""
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= x[i] * L[i, k]


@njit(cache=True)
def _solve(L, v, transposed):
    """x of L x = v, or of L' x = v, for each of (q, d)."""
    x = v.copy()
    for c in range(len(x)):
        if transposed:
            solve_upper(L[c], x[c])
        else:
            solve_lower(L[c], x[c])
    return x
