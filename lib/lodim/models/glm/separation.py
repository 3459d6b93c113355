"""Detect separation: data whose likelihood has no maximum (Albert & Anderson 1984)."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, kron, vstack

LARGEST = 20_000_000  # size of the largest linear program; beyond it, only the information is used


def is_separated(family, X, y, H, zero_limit, free=None):
    """Return whether the likelihood of rows X (n, q) has no maximum (Konis 2007, ch. 4).

    It has one if all eigenvalues of the information H exceed `zero_limit`. Coefficients move only
    in the directions free (S q, r), None for all; H is in coordinates along these."""
    if family.name in ("gaussian", "gamma"):  # no mean at the edge of its range fits a row
        return False
    if np.linalg.eigvalsh(H).min(initial=np.inf) > zero_limit:
        return False
    rising, level = _rows(family, X, y)
    if free is not None:
        rising, level = (csr_array(part @ free) for part in (rising, level))
    if rising.shape[0] * rising.shape[1] > LARGEST:
        return True
    none = level.shape[0] == 0
    found = linprog(
        -rising.sum(axis=0),
        A_ub=-rising,
        b_ub=np.zeros(rising.shape[0]),
        A_eq=None if none else level,
        b_eq=None if none else np.zeros(level.shape[0]),
        bounds=(-1.0, 1.0),
        method="highs",
    )
    return found.x is not None and -found.fun > 1e-6


def _rows(family, X, y):
    """Return sparse matrices A and B; separation means that A d >= 0, A d != 0 and B d = 0.

    d is some direction of the S q coefficients."""
    if family.name == "binomial":
        mixed = (y > 0.0) & (y < 1.0)  # proportions strictly between 0 and 1 fix the score
        return csr_array((2.0 * y - 1.0)[~mixed, None] * X[~mixed]), csr_array(X[mixed])
    if family.link == "log":  # a mean of zero fits a response of zero
        return csr_array(-X[y == 0]), csr_array(X[y > 0])
    S, part = family.n_linear, [csr_array(X[y == k]) for k in range(family.n_linear + 1)]
    blocks = [kron(csr_array(rise[None]), part[k], "csr") for k, rise in _rises(family)]
    return csr_array(vstack(blocks)), csr_array((0, X.shape[1] * S))


def _rises(family):
    """Return pairs: a class, and a direction (S,) of linear predictors that makes it likelier."""
    S = family.n_linear
    if family.shared_slopes:
        unit = np.eye(S)
        return [(s + 1, unit[s]) for s in range(S)] + [(s, -unit[s]) for s in range(S)]
    unit = np.eye(S + 1)[:, 1:]
    return [(k, unit[k] - unit[m]) for k in range(S + 1) for m in range(S + 1) if m != k]
