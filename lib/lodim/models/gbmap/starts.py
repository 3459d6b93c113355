"""Starts of a boost, found in the data: hinges along directions in which the loss has a slope.

They depend on the rows as a set and on the columns by their values, not on where these stand, so
that a boost and its neighbour under other rounding start at the same place.
"""

import numpy as np

from lodim.engine import row_keys
from lodim.models.gbmap.kernels import starts as kernels
from lodim.models.gbmap.kernels.few_rows import FLAT

KRYLOV = 8  # directions that Lanczos' method looks for, each at the price of a pass
EXHAUSTED = 1e-5  # share of its length below which what is new in a direction is rounding


def draw_starts(X, slope, curvature, key, ridge, hinges, n_starts, rng):
    """Learners (2 n_starts, 2 + p) and their signs b, those of most promise for each sign.

    Along each direction u a hinge h = max(u'x - knot, 0), or the line u'x, is one column of a
    regression: a Newton step on its coefficient c, beside a constant, lowers the loss by
    fall^2 / (2 bend), and b is the sign of c.

    Parameters
    ----------
    X : array (n, p)
        Centred features of some rows.
    slope, curvature : arrays (n,)
        First and second derivative of the mean loss in the score of each row.
    key : array (n,)
        Of each row, by its content, as of `lodim.engine.row_keys`.
    ridge : float
        Penalty of w_k^2.
    hinges : bool
        Whether g bends; else lines are all there is.
    rng : Generator
        Mixes the rows, by their keys.
    """
    waves, X = row_keys.draw_waves(kernels.MIXTURES, rng), np.ascontiguousarray(X.T)
    return kernels.draw_starts(X, slope, curvature, key, *waves, float(ridge), hinges, n_starts)


def place_hinges(U, X, slope, curvature, ridge, n_starts):
    """The learners along the directions U (k, p) that `draw_starts` returns."""
    X = np.ascontiguousarray(X.T)
    return kernels.starts_along(U, X, slope, curvature, float(ridge), n_starts)


def derivatives(y, score, weight, squared):
    """Slope and curvature of each row's weighted loss in its score, (n,) each."""
    if squared:
        return 2.0 * weight * (score - y), 2.0 * weight
    p = 1.0 / (1.0 + np.exp(-np.clip(score, -500.0, 500.0)))
    return weight * (p - y), weight * np.maximum(p * (1.0 - p), FLAT)


def krylov(product, first):
    """Principal Hessian directions by Lanczos' method: V (p, r) orthonormal, and V'HV (r, r).

    The columns span first, H first, ..., H^(r-1) first: where the loss falls fastest, and near the
    directions in which its slope bends most, either way (Li 1992). A product is a pass.

    Parameters
    ----------
    product : callable
        v (p,) -> X' diag(slope) X v, (p,).
    first : array (p,)
        X'slope, not zero.
    """
    basis, images = [first / np.linalg.norm(first)], []
    while True:
        images.append(product(basis[-1]))
        rest, V = images[-1], np.array(basis)
        for _ in range(2):
            rest = rest - V.T @ (V @ rest)
        size = np.linalg.norm(rest)
        if len(basis) == KRYLOV or size <= EXHAUSTED * np.linalg.norm(images[-1]):
            T = V @ np.array(images).T
            return V.T, 0.5 * (T + T.T)
        basis.append(rest / size)
