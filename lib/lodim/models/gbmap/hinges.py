"""Compiled search for starting points: hinges max(u'x - knot, 0) that lower the loss most."""

import math
from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import inlined, njit

MIXTURES = 4  # random combinations of rows; there are as many principal Hessian directions
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


@njit(**OPTIONS, inline="always")
def _combine(X, Z, k, Q):
    """Fill Q[:k] with weighted sums of rows, Z X'; Z (k, n) : weights, X (p, n) : the rows."""
    for j in range(k):
        for c in range(X.shape[0]):
            Q[j, c] = _dot(Z[j], X[c])


@njit(**OPTIONS, nogil=True)
def find_directions(X, slope, curvature, waves, U, P, Q):
    """Fill rows of U with directions along which to search for hinges; return how many there are.

    The directions are the gradient of the loss, random sums of rows, and approximate principal
    Hessian directions (Li 1992).
    X : (p, n) features; slope, curvature : (n,) loss derivatives; P, Q : work arrays
    waves : (n, sums) random numbers; row i has weight curvature_i waves_ij in random sum j"""
    first = Q.shape[0]
    for j in range(first):
        for i in range(slope.size):
            if j == 0:
                P[j, i] = slope[i]
            else:
                P[j, i] = curvature[i] * waves[i, j - 1]
    k = first
    for sweep in range(SWEEPS + 1):
        _combine(X, P, k, Q)
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
    return first + k


@njit(**OPTIONS, inline="always")
def _to_unit_variance(k, curvature, room):
    """Scale k directions so that the rows' projections have variance 1; return how many are kept.

    Directions with constant projections are dropped, unless all are constant.
    room : HingeArrays, whose U (directions) and Z (projections) change; curvature : row weights"""
    U, Z, deviation, total = room.U, room.Z, room.deviation, 0.0
    for i in range(curvature.size):
        total += curvature[i]
    largest, kept = 0.0, 0
    for j in range(k):
        for i in range(curvature.size):
            deviation[j] += curvature[i] * Z[j, i] * Z[j, i]
        deviation[j] = math.sqrt(deviation[j] / total)
        largest = max(largest, deviation[j])
    for j in range(k):
        if deviation[j] > 1e-9 * largest:  # else the projection is constant
            for i in range(U.shape[1]):
                U[kept, i] = U[j, i] / deviation[j]
            for i in range(curvature.size):
                Z[kept, i] = Z[j, i] / deviation[j]
            kept += 1
    return kept if kept else k


@njit(**OPTIONS, inline="always")
def _hinge(z, side, knot, slope, curvature, level, total, ridge):
    """Fit c h + constant, where c is the coefficient of the hinge h = max(side z - knot, 0).

    A Newton step lowers loss + ridge c^2 / 2; return this decrease, c, and the mean of h.
    z : (n,) projections of rows; side : 1 or -1; slope, curvature : (n,) loss derivatives
    total : sum(curvature); level : sum(slope) / total"""
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


@njit(**OPTIONS, inline="always")
def _pick_best(k, level, n_starts, room):
    """Choose up to n_starts hinges per sign of the learner as starting values; return their number.

    Hinges point along the k directions in room.U or against them; those with the largest room.gain
    (decrease of the loss) are chosen. Their parameters are written to room.theta, the signs to
    room.sign. level : each learner's constant is set so that its mean output is -level"""
    U, gain, theta, sign = room.U, room.gain, room.theta, room.sign
    (knots, steps, centres), count = (room.rest[0], room.rest[1], room.rest[2]), 0
    for b in range(2):
        for _ in range(min(n_starts, 2 * k)):
            j = 0
            for other in range(1, 2 * k):
                if gain[b, other] > gain[b, j]:
                    j = other
            size = abs(steps[b, j]) if gain[b, j] >= 0.0 else 0.0
            sign[count] = 1.0 - 2.0 * b
            theta[count, 0] = -level - sign[count] * size * centres[b, j]
            theta[count, 1] = -size * knots[b, j]
            side = 1.0 if j < k else -1.0
            for i in range(U.shape[1]):
                theta[count, 2 + i] = side * size * U[j % k, i]
            gain[b, j] = -np.inf
            count += 1
    return count


@njit(**OPTIONS, nogil=True)
def place_hinges(k, X, slope, curvature, ridge, hinges, n_starts, room):
    """Find the hinges max(u'x - knot, 0) along k directions u that lower the loss most.

    Write at most n_starts learners per sign to room.theta and room.sign; return their number.
    room : HingeArrays; the directions are the first k rows of room.U, and are scaled in place
    X, slope, curvature, ridge, hinges : as in `draw_starts`"""
    U, Z, gain, rest = room.U, room.Z, room.gain, room.rest
    _project(X, U, k, Z)
    k = _to_unit_variance(k, curvature, room)
    knots, steps, centres = rest[0], rest[1], rest[2]
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
    return _pick_best(k, level, n_starts, room)


class HingeArrays(NamedTuple):
    """Work arrays of the search for starting hinges in n rows of p features, and its results."""

    U: np.ndarray  # (most, p) directions
    deviation: np.ndarray  # (most,) SDs of the rows' projections
    # (2, 2 most) decrease of the loss by the best hinge per sign, direction and side; and (3, ...)
    gain: np.ndarray
    rest: np.ndarray  # its bend, coefficient and mean
    Z: np.ndarray  # (most, n) projections of the rows
    Q: np.ndarray  # (1 + MIXTURES, p) orthonormal directions
    theta: np.ndarray  # (2 n_starts, 2 + p) results, and their signs
    sign: np.ndarray

    @classmethod
    def of_size(cls, most, p, n, n_starts):
        """Return arrays for n rows, p features, `most` directions and n_starts results per sign."""
        hinges, results = ((2, 2 * most), (3, 2, 2 * most)), ((2 * n_starts, 2 + p), 2 * n_starts)
        shapes = (most, p), most, *hinges, (most, n), (1 + MIXTURES, p), *results
        return cls(*map(np.empty, shapes))

    def clear(self):
        for array, value in zip(self, (0.0, 0.0, -np.inf, 0.0), strict=False):
            array.fill(value)


def draw_starts(X, slope, curvature, waves, ridge, hinges, n_starts, room=None):
    """Return the best starting learners, (q, 2 + p) with q <= 2 n_starts, and their signs (q,).

    X : (p, n); slope, curvature : (n,) loss derivatives; ridge : penalty of squared weights
    waves : (n, MIXTURES) random numbers, for random sums of rows as directions of the learners
    hinges : False for linear learners; room : HingeArrays to work in, or None"""
    room = room or HingeArrays.of_size(2 + 2 * MIXTURES, *X.shape, n_starts)
    room.clear()
    k = find_directions(X, slope, curvature, waves, room.U, room.Z, room.Q)
    return _along(k, X, slope, curvature, ridge, hinges, n_starts, room)


def starts_along(U, X, slope, curvature, ridge, n_starts):
    """Return the n_starts best starting learners per sign along directions U (k, p), and the signs.

    Learners are rows (constant, intercept, p weights). Other arguments: as in `draw_starts`."""
    room = HingeArrays.of_size(len(U), *X.shape, n_starts)
    room.clear()
    room.U[:] = U
    return _along(len(U), X, slope, curvature, ridge, True, n_starts, room)


def _along(k, X, slope, curvature, ridge, hinges, n_starts, room):
    count = place_hinges(k, X, slope, curvature, ridge, hinges, n_starts, room)
    return room.theta[:count], room.sign[:count]
