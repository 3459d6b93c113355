"""Starts of a boost, found in the data: hinges along directions in which the loss has a slope.

They depend on the rows as a set and on the columns by their values, not on where these stand, so
that a boost and its neighbour under other rounding start at the same place.
"""

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr

from lodim.engine import row_keys
from lodim.engine.blocks import single_blas

MIXTURES = 4  # random combinations of the rows among the directions, and as many principal Hessian
SWEEPS = 2  # subspace iterations towards the principal Hessian directions
KRYLOV = 8  # directions that Lanczos' method looks for, each at the price of a pass
EXHAUSTED = 1e-5  # share of its length below which what is new in a direction is rounding
KNOTS = -1.0, 0.0, 1.0  # where hinges bend, in standard deviations of their projection
ROUNDING = 1e-20  # share of a column's mean square, below which its variance is rounding
FLAT = 0.05  # least curvature of the log-loss that a step counts on, as share of the weight


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
    with single_blas():
        U = _directions(X, slope, curvature, key, rng)
    return place_hinges(X, U, slope, curvature, ridge, hinges, n_starts)


def place_hinges(X, U, slope, curvature, ridge, hinges, n_starts):
    """The learners along the directions U (k, p) that `draw_starts` returns."""
    with single_blas():
        U = np.concatenate([U, -U])
        Z = X @ U.T
        knots = np.array([np.full(len(U), knot) for knot in KNOTS if hinges] + [Z.min(axis=0)])
        hinge = np.maximum(Z - knots[:, None, :], 0.0)
        gain, c, centre = _newton(hinge, slope, curvature, U, ridge)
    theta, sign = [], []
    for b in 1.0, -1.0:
        signed_gain = np.where(b * c > 0, gain, -1.0)
        best = signed_gain.argmax(axis=0)
        for k in np.argsort(-signed_gain.max(axis=0), kind="stable")[:n_starts]:
            j = best[k]
            size = abs(c[j, k]) if signed_gain[j, k] >= 0 else 0.0
            a = -slope.sum() / curvature.sum() - b * size * centre[j, k]
            theta.append(np.concatenate([[a, -size * knots[j][k]], size * U[k]]))
            sign.append(b)
    return np.array(theta), np.array(sign)


def derivatives(y, score, weight, squared):
    """Slope and curvature of each row's weighted loss in its score, (n,) each."""
    if squared:
        return 2.0 * weight * (score - y), 2.0 * weight
    p = 1.0 / (1.0 + np.exp(-np.clip(score, -500.0, 500.0)))
    return weight * (p - y), weight * np.maximum(p * (1.0 - p), FLAT)


def _newton(h, slope, curvature, U, ridge):
    """Newton steps on the coefficients of columns h (m, n, k): gains, steps, means of h, (m, k)."""
    total = curvature.sum()
    centre = curvature @ h / total
    fall = -((slope - curvature * (slope.sum() / total)) @ h)
    variance = curvature @ (h - centre[:, None, :]) ** 2
    bend = variance + 2.0 * ridge * np.einsum("kp,kp->k", U, U)
    # A column that does not vary but by rounding has no coefficient.
    constant = variance <= ROUNDING * (curvature @ h**2)
    c = np.divide(fall, bend, out=np.zeros_like(fall), where=~constant)
    return 0.5 * fall * c, c, centre


def _directions(X, slope, curvature, key, rng):
    """Directions (k, p) of unit variance: slope, principal Hessian ones, mixtures of rows.

    The loss falls fastest along X'slope; eigenvectors of X' diag(slope) X are where its slope bends
    (Li 1992), here by subspace iteration from the others.
    """
    mixtures = (curvature[:, None] * row_keys.waves(key, MIXTURES, rng)).T @ X
    initial = np.concatenate([(slope @ X)[None], mixtures])
    basis = _orthonormal(initial.T)
    for _ in range(SWEEPS):
        basis = _orthonormal(X.T @ (slope[:, None] * (X @ basis)))
    projected = X @ basis
    vectors = np.linalg.eigh(projected.T @ (slope[:, None] * projected))[1]
    return to_unit_variance(np.concatenate([initial, (basis @ vectors).T]), X, curvature)


def to_unit_variance(U, X, curvature):
    """Directions (k, p) scaled so that rows X (n, p) have unit variance along them."""
    sd = np.sqrt(curvature @ (X @ U.T) ** 2 / curvature.sum())
    varies = sd > 1e-9 * sd.max()
    return U[varies] / sd[varies, None] if varies.any() else U


def _orthonormal(A):
    """Orthonormal columns (p, min(p, k)) that span those of A (p, k); half of NumPy's time."""
    if not A.size:  # of no feature: LAPACK would print that an argument is wrong
        return A[:, :0]
    qr, tau, *_ = dgeqrf(A)
    return dorgqr(qr[:, : len(tau)], tau, overwrite_a=True)[0]


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
