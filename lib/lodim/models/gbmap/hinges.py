"""Compiled search for starting points: hinges max(u'x - knot, 0) that lower the loss most."""

import math

import numpy as np

from lodim.engine.compiled import inlined, njit

SWEEPS = 2  # subspace iterations towards the principal Hessian directions
KNOTS = 3  # where hinges bend: at -1, 0 and 1 standard deviations of their projection
REASSOCIATE = {"reassoc", "contract", "nsz"}
OPTIONS = {"cache": True, "fastmath": REASSOCIATE, "error_model": "numpy"}


@inlined(**OPTIONS)
def _dot(u, v):
    s = 0.0
    for i in range(u.size):
        s += u[i] * v[i]
    return s


@inlined(**OPTIONS)
def _add(out, a, u):
    for i in range(u.size):
        out[i] += a * u[i]


@njit(**OPTIONS, inline="always")
def _orthonormal(Q, k):
    """Make the first k rows of Q orthonormal, in place; return their rank, at most k."""
    kept = np.int64(0)  # a literal would compile the callers' callees twice
    for j in range(k):
        size, rest = 0.0, 0.0
        for step in range(2 * kept + 2):  # length, projections on the others (twice), length
            i = (step - 1) % kept if 0 < step <= 2 * kept else j
            along = _dot(Q[i], Q[j])
            if i < j:
                _add(Q[j], -along, Q[i])
            else:
                size, rest = rest, math.sqrt(along)
        if rest > 1e-10 * size:  # a shorter rest is rounding
            for i in range(Q.shape[1]):
                Q[kept, i] = Q[j, i] / rest
            kept += 1
    return kept


@inlined(**OPTIONS)
def _project(X, Q, k, Z):
    """Compute Z[:k] = Q X for k directions Q (k, p) and data X (p, n)."""
    for j in range(k):
        for i in range(Z.shape[1]):
            Z[j, i] = 0.0
        for c in range(X.shape[0]):
            _add(Z[j], Q[j, c], X[c])


@njit(**OPTIONS, nogil=True)
def find_directions(X, slope, curvature, waves):
    """Return directions u (k, p) along which to search for hinges max(u'x - knot, 0).

    X : (p, n) features
    slope, curvature : (n,) first and second derivatives of the rows' losses
    waves : (n, r) random numbers"""
    # The loss gradient, r random sums of rows, and principal Hessian directions (Li 1992) are
    # orthogonalized to at most 2 (1 + r) directions.
    first = 1 + waves.shape[1]
    U, Q = np.zeros((2 * first, X.shape[0])), np.empty((first, X.shape[0]))
    P, k = np.empty((first, slope.size)), first
    for j in range(first):
        for i in range(slope.size):
            if j == 0:
                P[j, i] = slope[i]
            else:
                P[j, i] = curvature[i] * waves[i, j - 1]
    for sweep in range(SWEEPS + 1):
        for j in range(k):
            for c in range(X.shape[0]):
                Q[j, c] = _dot(P[j], X[c])
        if sweep == 0:
            for j in range(k):
                for i in range(U.shape[1]):
                    U[j, i] = Q[j, i]
        k = _orthonormal(Q, k)
        _project(X, Q, k, P)
        if sweep < SWEEPS:
            for j in range(k):
                for i in range(slope.size):
                    P[j, i] *= slope[i]
    A = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            bend = 0.0
            for r in range(slope.size):
                bend += slope[r] * P[i, r] * P[j, r]
            A[i, j] = bend
    vectors = np.linalg.eigh(A)[1]
    for j in range(k):
        for i in range(k):
            _add(U[first + j], vectors[i, j], Q[i])
    return U[: first + k]


@njit(**OPTIONS, inline="always")
def _to_unit_variance(U, Z, curvature):
    """Scale directions U (k, p) to unit variance of the rows, in place; return how many are kept.

    Directions without variance are dropped, unless all are such; kept ones come first.
    Z : (k, n) projections of the rows on U, scaled in place
    curvature : (n,) weights of the rows"""
    deviation, total = np.zeros(len(U)), 0.0
    for i in range(curvature.size):
        total += curvature[i]
    largest, kept = 0.0, 0
    for j in range(len(U)):
        for i in range(curvature.size):
            deviation[j] += curvature[i] * Z[j, i] * Z[j, i]
        deviation[j] = math.sqrt(deviation[j] / total)
        largest = max(largest, deviation[j])
    for j in range(len(U)):
        if deviation[j] > 1e-9 * largest:  # else the projection is constant
            for i in range(U.shape[1]):
                U[kept, i] = U[j, i] / deviation[j]
            for i in range(curvature.size):
                Z[kept, i] = Z[j, i] / deviation[j]
            kept += 1
    return kept if kept else len(U)


@njit(**OPTIONS, inline="always")
def _hinge(z, side, knot, slope, curvature, level, total, ridge):
    """Return (decrease of the loss, coefficient, mean) of a hinge max(side z - knot, 0).

    z, side : (n,) projections of the rows, and 1 or -1
    slope, curvature : (n,) first and second derivatives of the losses
    level, total : sum(slope) / sum(curvature), and sum(curvature)
    ridge : second derivative of the penalty"""
    # One Newton step for the hinge and a constant; the mean is weighted by `curvature`.
    centre, square, fall, spread = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        h = max(side * z[i] - knot, 0.0)
        centre += curvature[i] * h
        square += curvature[i] * h * h
        fall -= (slope[i] - curvature[i] * level) * h
    centre /= total
    for i in range(z.size):
        apart = max(side * z[i] - knot, 0.0) - centre
        spread += curvature[i] * apart * apart
    # A column that varies only by rounding gets no coefficient.
    c = fall / (spread + ridge) if spread > 1e-20 * square else 0.0
    return 0.5 * fall * c, c, centre


@njit(**OPTIONS, nogil=True)
def place_hinges(U, X, slope, curvature, ridge, hinges, n_starts):
    """Return the learners that lower the loss most: rows (constant, intercept, w), and signs.

    A learner is constant + sign max(intercept + w'x, 0); w is a multiple of a row of U.
    U : (k, p) directions, scaled in place; X : (p, n) features
    slope, curvature : (n,) first and second derivatives of the losses
    ridge : penalty per squared weight
    hinges : whether learners bend; otherwise they are linear
    n_starts : largest number of learners per sign"""
    Z = np.empty((len(U), slope.size))
    _project(X, U, len(U), Z)
    k = _to_unit_variance(U, Z, curvature)
    # The best hinge per sign, direction and side: its gain (decrease of the loss), knot, etc.
    gain, (knots, steps, centres) = np.full((2, 2 * k), -np.inf), np.empty((3, 2, 2 * k))
    total, level = 0.0, 0.0
    for i in range(slope.size):
        total += curvature[i]
        level += slope[i]
    level /= total
    for j in range(2 * k):
        side, z = 1.0 if j < k else -1.0, Z[j % k]
        least = np.inf
        for i in range(slope.size):
            least = min(least, side * z[i])
        bent = 2.0 * ridge * _dot(U[j % k], U[j % k])
        for at in range(0 if hinges else KNOTS, KNOTS + 1):
            knot = at - 1.0 if at < KNOTS else least
            g, c, centre = _hinge(z, side, knot, slope, curvature, level, total, bent)
            for b in range(2):
                right = c > 0.0 if b == 0 else c < 0.0
                signed = g if right else -1.0
                if signed > gain[b, j]:
                    gain[b, j], knots[b, j], steps[b, j], centres[b, j] = signed, knot, c, centre
    each = min(n_starts, 2 * k)
    theta, sign = np.empty((2 * each, 2 + len(X))), np.empty(2 * each)
    for count in range(2 * each):
        b, j = count // each, 0
        for other in range(1, 2 * k):
            if gain[b, other] > gain[b, j]:
                j = other
        size = abs(steps[b, j]) if gain[b, j] >= 0.0 else 0.0
        sign[count] = 1.0 - 2.0 * b
        theta[count, 0] = -level - sign[count] * size * centres[b, j]  # the mean output is -level
        theta[count, 1] = -size * knots[b, j]
        side = 1.0 if j < k else -1.0
        for i in range(U.shape[1]):
            theta[count, 2 + i] = side * size * U[j % k, i]
        gain[b, j] = -np.inf
    return theta, sign
