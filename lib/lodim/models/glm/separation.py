"""Detect separation: data whose likelihood has no maximum (Albert & Anderson 1984).

If coefficients can grow without limit while no row's likelihood falls and some row's rises, a
linear program has a positive solution (Konis 2007, ch. 4)."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

LARGEST = 20_000_000  # size of the largest linear program; beyond it, only the information is used


def is_separated(family, X, y, H, flat, free=None):
    """Return whether the likelihood of the rows X (n, q) has no maximum, so estimates are infinite.

    H is the information at the estimates; data are separated only if an eigenvalue is at most
    `flat`. `free` (S q, r) are the directions of coefficients to which H belongs; None means all.
    """
    if family.name in ("gaussian", "gamma"):  # no mean at the edge of its range fits a row
        return False
    if np.linalg.eigvalsh(H).min(initial=np.inf) > flat:
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
    """Return sparse matrices A and B that define separation.

    Data are separated if some d (S q,) has B d = 0, A d >= 0 and a positive element of A d. d has q
    coefficients for each of S linear predictors."""
    if family.name == "binomial":
        mixed = (y > 0.0) & (y < 1.0)  # proportions strictly between 0 and 1 fix the score
        return csr_array((2.0 * y - 1.0)[~mixed, None] * X[~mixed]), csr_array(X[mixed])
    if family.link == "log":  # a mean of zero fits a response of zero
        return csr_array(-X[y == 0]), csr_array(X[y > 0])
    if family.name == "ordinal":
        return _rows_of_boundaries(family, X, y)
    blocks = []
    for k in range(family.n_scores):
        own = csr_array(X[y == k])
        empty = csr_array(own.shape)
        for other in range(family.n_scores):
            if other != k:
                sign = {k: own, other: -own}
                blocks.append(hstack([sign.get(s, empty) for s in range(1, family.n_scores)]))
    return csr_array(vstack(blocks)), csr_array((0, X.shape[1] * (family.n_scores - 1)))


def _rows_of_boundaries(family, X, y):
    """Return the matrices of `_rows` for ordered classes.

    The likelihood of a class rises with the linear predictor of its lower boundary, and falls with
    that of its upper boundary."""
    S, blocks = family.n_scores, []
    for k in range(S + 1):
        own = csr_array(X[y == k])
        for s, sign in ((k - 1, 1.0), (k, -1.0)):
            if 0 <= s < S:
                empty = csr_array(own.shape)
                blocks.append(hstack([sign * own if t == s else empty for t in range(S)]))
    return csr_array(vstack(blocks)), csr_array((0, X.shape[1] * S))
