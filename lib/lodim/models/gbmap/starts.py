"""Starts of a boost, found in the data: hinges along directions in which the loss has a slope.

They depend on the rows as a set and on the columns by their values, not on where these stand, so
that a boost and its neighbour under other rounding start at the same place.
"""

import numpy as np

from lodim.engine import row_keys as keys
from lodim.engine.blocks import single_blas

MIXTURES = 4  # random combinations of the rows among the directions, and as many principal Hessian
SWEEPS = 2  # subspace iterations towards the principal Hessian directions
KNOTS = -1.0, 0.0, 1.0  # where hinges bend, in standard deviations of their projection
FLAT_COLUMN = 1e-20  # share of a column's mean square, of which it is rounding
FLAT = 0.05  # least curvature of the log-loss that a step counts on, as share of the weight


def draw_starts(X, slope, curvature, key, ridge, bends, n_starts, rng):
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
    bends : bool
        Whether g does; else lines are all there is.
    rng : Generator
        Mixes the rows, by their keys.
    """
    with single_blas():
        U = _directions(X, slope, curvature, key, rng)
        U = np.concatenate([U, -U])
        Z = X @ U.T
        knots = [np.full(len(U), knot) for knot in KNOTS if bends] + [Z.min(axis=0)]
        steps = [_newton(np.maximum(Z - knot, 0.0), slope, curvature, U, ridge) for knot in knots]
    gain, c, centre = (np.array(part) for part in zip(*steps, strict=True))
    theta, sign = [], []
    for b in 1.0, -1.0:
        mine = np.where(b * c > 0, gain, -1.0)
        best = mine.argmax(axis=0)
        for k in np.argsort(-mine.max(axis=0), kind="stable")[:n_starts]:
            j = best[k]
            size = abs(c[j, k]) if mine[j, k] >= 0 else 0.0
            a = -slope.sum() / curvature.sum() - b * size * centre[j, k]
            theta.append(np.concatenate([[a, -size * knots[j][k]], size * U[k]]))
            sign.append(b)
    return np.array(theta), np.array(sign)


def derivatives(y, score, weight, squared):
    """Slope and curvature of each row's weighted loss in its score, (n,) each."""
    if squared:
        return 2.0 * weight * (score - y), 2.0 * weight
    share = 1.0 / (1.0 + np.exp(-np.clip(score, -500.0, 500.0)))
    return weight * (share - y), weight * np.maximum(share * (1.0 - share), FLAT)


def _newton(h, slope, curvature, U, ridge):
    """What a step on the coefficients of columns h (n, k) gains, the step, and means of h."""
    total = curvature.sum()
    centre = curvature @ h / total
    fall = -((slope - curvature * (slope.sum() / total)) @ h)
    spread = curvature @ (h - centre) ** 2
    bend = spread + 2.0 * ridge * np.einsum("kp,kp->k", U, U)
    # A column that does not vary but by rounding has no coefficient.
    flat = spread <= FLAT_COLUMN * (curvature @ h**2)
    c = np.divide(fall, bend, out=np.zeros_like(fall), where=~flat)
    return 0.5 * fall * c, c, centre


def _directions(X, slope, curvature, key, rng):
    """Directions (k, p) of unit variance: slope, principal Hessian ones, mixtures of rows.

    The loss falls fastest along X'slope; eigenvectors of X' diag(slope) X are where its slope bends
    (Li 1992), here by subspace iteration from the others.
    """
    mixtures = (curvature[:, None] * keys.waves(key, MIXTURES, rng)).T @ X
    own = np.concatenate([(slope @ X)[None], mixtures])
    basis = np.linalg.qr(own.T)[0]
    for _ in range(SWEEPS):
        basis = np.linalg.qr(X.T @ (slope[:, None] * (X @ basis)))[0]
    inside = X @ basis
    vectors = np.linalg.eigh(inside.T @ (slope[:, None] * inside))[1]
    U = np.concatenate([own, (basis @ vectors).T])
    sd = np.sqrt(curvature @ (X @ U.T) ** 2 / curvature.sum())
    known = sd > 1e-9 * sd.max()
    return U[known] / sd[known, None] if known.any() else U
