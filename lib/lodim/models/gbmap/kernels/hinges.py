"""Hinges that promise most, compiled: along directions in which the loss of some rows has a slope.

What is used once is inlined before it is compiled, which saves to compile it by itself; the rest
by force, as in `kernels.cpu`. Room to work in is made outside: each kind of allocation is a
function more to compile.
"""

import math

import numpy as np

from lodim.engine.compiled import inlined, njit

MIXTURES = 4  # random combinations of the rows among the directions, and as many principal Hessian
SWEEPS = 2  # subspace iterations towards the principal Hessian directions
KNOTS = 3  # where hinges bend: at -1, 0 and 1 standard deviations of their projection
ROUNDING = 1e-20  # share of a column's mean square, below which its variance is rounding
DEPENDENT = 1e-10  # share of its length below which what is new in a direction is rounding
VARIES = 1e-9  # share of the largest deviation, below which a projection is constant
TURNS = 30  # sweeps of Jacobi's method at most
REASSOCIATE = {"reassoc", "contract", "nsz"}
FAR = 2.0**50  # an angle beyond is known to no turn, and taken for zero
LARGE = 1.5 * 2.0**52  # added to a number and taken off again, rounds it to a whole one
PI_REST = 1.2246467991473532e-16  # of pi beyond its double
COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(10, -1, -1))
OPTIONS = {"cache": True, "fastmath": REASSOCIATE, "error_model": "numpy"}


@inlined(**OPTIONS)
def _dot(u, v):
    s = 0.0
    for i in range(u.size):
        s += u[i] * v[i]
    return s


@inlined(**OPTIONS)
def _add(out, a, u):
    """out += a u."""
    for i in range(u.size):
        out[i] += a * u[i]


@inlined(cache=True, fastmath=False, error_model="numpy")
def _cosine(x):
    """cos(x), without a branch: cos(k pi + r) = (-1)^k cos(r), Taylor's to r^20.

    Numbers are rounded by adding a large one, so that nothing may be reordered here: without a word
    on fastmath the caller's would be taken.
    """
    x = x if abs(x) < FAR else 0.0
    k = (x / math.pi + LARGE) - LARGE
    half = 0.5 * k
    odd = 2.0 * abs(half - ((half + LARGE) - LARGE))
    r = (x - k * math.pi) - k * PI_REST
    s, total = r * r, 0.0
    for c in COSINE:
        total = total * s + c
    return (1.0 - 2.0 * odd) * total


@njit(**OPTIONS, inline="always")
def _orthonormal(Q, k):
    """Make the first k rows of Q orthonormal, in place and in order; the number that remain."""
    kept = np.int64(0)  # a literal would compile the callers' callees twice
    for j in range(k):
        size, rest = 0.0, 0.0
        for step in range(2 * kept + 2):  # its length, twice its parts along the others, its length
            i = (step - 1) % kept if 0 < step <= 2 * kept else j
            along = _dot(Q[i], Q[j])
            if i < j:
                _add(Q[j], -along, Q[i])
            else:
                size, rest = rest, math.sqrt(along)
        if rest > DEPENDENT * size:
            for i in range(Q.shape[1]):
                Q[kept, i] = Q[j, i] / rest
            kept += 1
    return kept


@njit(**OPTIONS, inline="always")
def _eigenvectors(A, k):
    """Eigenvectors of the symmetric A[:k, :k], by Jacobi's method, as columns of A[k : 2 k]."""
    for i in range(k):
        for j in range(k):
            A[k + i, j] = 1.0 if i == j else 0.0
    for _ in range(TURNS):
        off, all_ = 0.0, 0.0
        for i in range(k):
            for j in range(k):
                all_ += A[i, j] * A[i, j]
                off += A[i, j] * A[i, j] if i != j else 0.0
        if off <= 1e-30 * all_:
            return
        for p in range(k - 1):
            for q in range(p + 1, k):
                if A[p, q] == 0.0:
                    continue
                half = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
                t = 1.0 / (abs(half) + math.sqrt(half * half + 1.0))
                t = t if half >= 0.0 else -t
                c = 1.0 / math.sqrt(t * t + 1.0)
                s = t * c
                for i in range(2 * k):
                    a, b = A[i, p], A[i, q]
                    A[i, p], A[i, q] = c * a - s * b, s * a + c * b
                for i in range(k):
                    a, b = A[p, i], A[q, i]
                    A[p, i], A[q, i] = c * a - s * b, s * a + c * b


@inlined(**OPTIONS)
def _project(X, Q, k, Z):
    """Fill the first k rows of Z with Q X, of directions Q (k, p) and columns X (p, n)."""
    for j in range(k):
        for i in range(Z.shape[1]):
            Z[j, i] = 0.0
        for c in range(X.shape[0]):
            _add(Z[j], Q[j, c], X[c])


@njit(**OPTIONS, inline="always")
def _combine(X, Z, k, Q):
    """The first k rows of Q = Z X'."""
    for j in range(k):
        for c in range(X.shape[0]):
            Q[j, c] = _dot(Z[j], X[c])


@njit(**OPTIONS, nogil=True)
def find_directions(X, slope, curvature, key, phase, speed, U, P, Q, A):
    """Fill U (2 f, p) with directions, f = 1 + MIXTURES; their number.

    The loss falls fastest along X slope, X (p, n); eigenvectors of X diag(slope) X' are where its
    slope bends (Li 1992), here by subspace iteration from that and from mixtures of rows, by their
    keys (n,) and phase, speed (MIXTURES,). U is zero; P (f, n), Q (f, p) and A (2 f, f) are room to
    work in.
    """
    first = Q.shape[0]
    for j in range(first):
        for i in range(slope.size):
            if j == 0:
                P[j, i] = slope[i]
            else:
                P[j, i] = curvature[i] * _cosine(key[i] * speed[j - 1] + phase[j - 1])
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
    for i in range(k):
        for j in range(k):
            bend = 0.0
            for r in range(slope.size):
                bend += slope[r] * P[i, r] * P[j, r]
            A[i, j] = bend
    _eigenvectors(A, k)
    for j in range(k):
        for i in range(k):
            _add(U[first + j], A[k + i, j], Q[i])
    return first + k


@njit(**OPTIONS, inline="always")
def _to_unit_variance(U, Z, k, curvature, deviation):
    """Scale directions U (k, p) and projections Z (k, n) so that these have unit variance.

    Constant ones go, unless all are; the number that remain. deviation (k,) is zero.
    """
    total = 0.0
    for i in range(curvature.size):
        total += curvature[i]
    largest, kept = 0.0, 0
    for j in range(k):
        for i in range(curvature.size):
            deviation[j] += curvature[i] * Z[j, i] * Z[j, i]
        deviation[j] = math.sqrt(deviation[j] / total)
        largest = max(largest, deviation[j])
    for j in range(k):
        if deviation[j] > VARIES * largest:
            for i in range(U.shape[1]):
                U[kept, i] = U[j, i] / deviation[j]
            for i in range(curvature.size):
                Z[kept, i] = Z[j, i] / deviation[j]
            kept += 1
    return kept if kept else k


@njit(**OPTIONS, inline="always")
def _hinge(z, side, knot, slope, curvature, level, total, ridge):
    """Newton step on the coefficient of h = max(side z - knot, 0): gain, step, mean of h.

    level is the mean slope in units of curvature: a constant beside h takes it.
    """
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
    # A column that does not vary but by rounding has no coefficient.
    c = fall / (spread + ridge) if spread > ROUNDING * square else 0.0
    return 0.5 * fall * c, c, centre


@njit(**OPTIONS, inline="always")
def _take(U, k, level, n_starts, gain, knots, steps, centres, theta, sign):
    """Fill theta, sign with the n_starts hinges of each sign that gain most; their number."""
    count = 0
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
def place_hinges(
    U, k, X, slope, curvature, ridge, hinges, n_starts, Z, deviation, gain, rest, theta, sign
):  # fmt: skip
    """Fill theta, sign with the best hinges along the first k of U and -U; their number.

    X (p, n), slope, curvature (n,) are of the rows that starts are drawn from; ridge the penalty of
    w_k^2. U is scaled. Room to work in, of this size at least: Z (k, n); deviation (k,) and rest
    (3, 2, 2 k), which are zero; gain (2, 2 k), of b = 1 and -1, which is -infinity.
    """
    _project(X, U, k, Z)
    k = _to_unit_variance(U, Z, k, curvature, deviation)
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
    return _take(U, k, level, n_starts, gain, knots, steps, centres, theta, sign)


class Room:
    """Arrays in which `find_directions` and `place_hinges` work, for up to `most` directions."""

    def __init__(self, most, p, n, n_starts):
        first = 1 + MIXTURES
        sizes = {
            "U": (most, p),
            "deviation": (most,),
            "rest": (3, 2, 2 * most),
        }
        ends = np.cumsum([0, *map(math.prod, sizes.values())]).tolist()
        self._zeros = np.zeros(ends[-1])
        for (name, size), lo, hi in zip(sizes.items(), ends[:-1], ends[1:], strict=True):
            setattr(self, name, self._zeros[lo:hi].reshape(size))
        self.Z, self.Q = np.empty((most, n)), np.empty((first, p))
        self.A = np.empty((2 * first, first))
        self.gain = np.empty((2, 2 * most))
        self.theta, self.sign = np.empty((2 * n_starts, 2 + p)), np.empty(2 * n_starts)

    def clear(self):
        """Make it as the kernels want it."""
        self._zeros.fill(0.0)
        self.gain.fill(-np.inf)


def draw_starts(X, slope, curvature, key, phase, speed, ridge, hinges, n_starts, room=None):
    """Starts (2 n_starts, 2 + p) and signs b of most promise, along directions of X (p, n).

    They stand in the room, which is made for one call if it is not given.
    """
    room = room or Room(2 + 2 * MIXTURES, *X.shape, n_starts)
    room.clear()
    work = room.U, room.Z, room.Q, room.A
    k = find_directions(X, slope, curvature, key, phase, speed, *work)
    return _along(k, X, slope, curvature, ridge, hinges, n_starts, room)


def starts_along(U, X, slope, curvature, ridge, n_starts):
    """The same along directions U (k, p)."""
    room = Room(len(U), *X.shape, n_starts)
    room.clear()
    room.U[:] = U
    return _along(len(U), X, slope, curvature, ridge, True, n_starts, room)


def _along(k, X, slope, curvature, ridge, hinges, n_starts, room):
    found = room.theta, room.sign
    work = room.Z, room.deviation, room.gain, room.rest, *found
    count = place_hinges(room.U, k, X, slope, curvature, ridge, hinges, n_starts, *work)
    return tuple(of_starts[:count] for of_starts in found)
