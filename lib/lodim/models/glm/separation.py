"""Separation: coefficients without a finite maximum likelihood estimate (Albert & Anderson 1984).

Scores that can grow without end along a direction while no row's likelihood falls, and some row's
rises, exist where a linear program has a solution above zero (Konis 2007, ch. 4).
"""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

EXTREME = 1e-7  # a fitted probability or mean beyond which separation is looked for
LARGEST = 50_000_000  # numbers in the linear program; beyond it, extreme fits alone tell


def separated(family, X, y, mean, converged):
    """Which coefficients have no finite estimate, (q, S) bool."""
    S = max(family.n_scores - 1, 1)
    nowhere = np.zeros((X.shape[1], S), bool)
    if family.name in ("gaussian", "gamma") or (converged and not _extreme(family, y, mean)):
        return nowhere
    above, level = _rows(family, X, y)
    if above.shape[0] * X.shape[1] > LARGEST:
        return nowhere
    found = linprog(
        -above.sum(axis=0),
        A_ub=-above,
        b_ub=np.zeros(above.shape[0]),
        A_eq=level if level.shape[0] else None,
        b_eq=np.zeros(level.shape[0]) if level.shape[0] else None,
        bounds=(-1.0, 1.0),
        method="highs",
    )
    if found.x is None or not -found.fun > 1e-6:
        return nowhere
    return np.abs(found.x.reshape(S, X.shape[1]).T) > 1e-6


def _extreme(family, y, mean):
    """Whether a fitted value is at the edge of what a response can be."""
    least = mean.min(initial=1.0)
    return least < EXTREME or (family.name == "binomial" and mean.max(initial=0.0) > 1 - EXTREME)


def _rows(family, X, y):
    """Matrices (rows, S q) whose products with a direction may not fall, or must not change."""
    none = csr_array((0, X.shape[1]))
    if family.name == "binomial":
        return csr_array((2.0 * y - 1.0)[:, None] * X), none
    if family.name == "poisson":  # a mean of zero fits a count of zero
        return csr_array(-X[y == 0]), csr_array(X[y > 0])
    blocks = []
    for k in range(family.n_scores):
        own = csr_array(X[y == k])
        empty = csr_array(own.shape)
        for other in range(family.n_scores):
            if other != k:
                sign = {k: own, other: -own}
                blocks.append(hstack([sign.get(s, empty) for s in range(1, family.n_scores)]))
    return csr_array(vstack(blocks)), csr_array((0, X.shape[1] * (family.n_scores - 1)))
