"""Kernels of the quadratic problem with a group penalty: blocks, and Newton steps.

H is (J, J, A, A): J = K where the scores are coupled, else 1 and the same for each. `c` is always
minus the gradient of the smooth part at w. Else as in `kernels`.
"""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.costnet.penalty.prox import (
    FAST,
    certificate,
    penalty,
    shrink,
    shrink_overlapping,
)

MOST_CURVED = 800  # numbers in a Newton step: more cost more than the sweeps that they spare
NEWTON_STEPS = 8
STEPS = 60  # proximal steps on a block per visit


@njit(**FAST)
def apply(H, d, lo, hi, c, a, b):
    """c[:, a:b] -= H d for a change d of the coefficients [lo, hi)."""
    coupled = H.shape[0] > 1
    for k in range(c.shape[0]):
        for j in range(lo, hi):
            step = d[k, j]
            if step == 0.0:
                continue
            if coupled:
                for m in range(c.shape[0]):
                    row, out = H[k, m, j], c[m]
                    for i in range(a, b):
                        out[i] -= step * row[i]
            else:
                row, out = H[0, 0, j], c[k]
                for i in range(a, b):
                    out[i] -= step * row[i]


@njit(**FAST)
def steepness(H, K, lo, hi):
    """Largest eigenvalue of H over the coefficients [lo, hi), slightly above."""
    coupled = H.shape[0] > 1
    if hi - lo == 1 and not coupled:
        return H[0, 0, lo, lo]
    rows = K if coupled else 1
    v, largest = np.ones((rows, hi)), 0.0
    for k in range(rows):
        for j in range(lo, hi):
            v[k, j] = 1.0 + 0.37 * ((j * 7 + k * 3) % 11)
    for _ in range(40):
        out = np.zeros((rows, hi))
        apply(H, v, lo, hi, out, lo, hi)
        norm, before = 0.0, 0.0
        for k in range(rows):
            for j in range(lo, hi):
                norm += out[k, j] ** 2
                before += v[k, j] ** 2
        if norm == 0.0:
            return 0.0
        last, largest = largest, np.sqrt(norm / before)
        v = out / np.sqrt(norm)
        if abs(largest - last) <= 1e-3 * largest:
            break
    return 1.05 * largest


@njit(**FAST)
def _factor(M):
    """Cholesky factor of M in its lower triangle; False where M is not positive definite."""
    for i in range(M.shape[0]):
        for j in range(i + 1):
            rest, row, other = M[i, j], M[i], M[j]
            for k in range(j):
                rest -= row[k] * other[k]
            if i > j:
                M[i, j] = rest / M[j, j]
            elif rest <= 1e-13 * M[i, i]:
                return False
            else:
                M[i, i] = np.sqrt(rest)
    return True


@njit(**FAST)
def _solve(L, x):
    """x of L L' x = x, in place."""
    d = x.size
    for i in range(d):
        rest = x[i]
        for k in range(i):
            rest -= L[i, k] * x[k]
        x[i] = rest / L[i, i]
    for i in range(d - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= x[i] * L[i, k]


@njit(**FAST)
def _curve(H, c, w, lam, g0, g1, start, member, cost, at, place):
    """Hessian and minus the gradient of the objective over the rows `at`, where it is smooth."""
    K, s = w.shape[0], at.size
    M, rhs = np.zeros((K * s, K * s)), np.empty(K * s)
    coupled = H.shape[0] > 1
    for k in range(K):
        for a in range(s):
            rhs[k * s + a] = c[k, at[a]]
            for m in range(k + 1):
                if coupled or m == k:
                    row = H[k, m, at[a]] if coupled else H[0, 0, at[a]]
                    for b in range(s):
                        M[k * s + a, m * s + b] = row[at[b]]
    for g in range(g0, g1):
        norm = penalty(w, 1.0, g, g + 1, start, member, cost) / cost[g]
        if norm == 0.0:
            continue
        bend = lam * cost[g] / norm
        alone = K == 1 and start[g + 1] - start[g] == 1
        for i in range(start[g], start[g + 1]):
            a = place[member[i]]
            if a < 0:
                continue
            for k in range(K):
                rhs[k * s + a] -= bend * w[k, member[i]]
                if alone:
                    continue
                M[k * s + a, k * s + a] += bend
                pull = bend / norm**2 * w[k, member[i]]
                for h in range(start[g], start[g + 1]):
                    b = place[member[h]]
                    if b >= 0:
                        for m in range(k + 1):
                            M[k * s + a, m * s + b] -= pull * w[m, member[h]]
    return M, rhs


@njit(**FAST)
def newton(lo, hi, g0, g1, H, c, w, lam, start, member, cost, d, fine):
    """Newton steps on the coefficients of [lo, hi) that are not zero, until one gains little.

    The objective is smooth there. Groups that would turn to the other side become zero, and the
    others go on at once. `c` follows over [lo, hi); `d` is room.
    """
    for _ in range(NEWTON_STEPS):
        gain, crossed = _newton(lo, hi, g0, g1, H, c, w, lam, start, member, cost, d)
        if not crossed and gain <= fine:
            break


@njit(**FAST)
def _newton(lo, hi, g0, g1, H, c, w, lam, start, member, cost, d):
    """One Newton step: what it lowers, and whether a coefficient became zero."""
    K = w.shape[0]
    place = np.full(hi, -1)
    s = 0
    for j in range(lo, hi):
        for k in range(K):
            if w[k, j] != 0.0 and place[j] < 0:
                place[j] = s
                s += 1
    if s == 0 or K * s > MOST_CURVED:
        return 0.0, False
    at = np.flatnonzero(place >= 0)
    M, step = _curve(H, c, w, lam, g0, g1, start, member, cost, at, place)
    largest = 0.0
    for i in range(K * s):
        largest = max(largest, M[i, i])
    for i in range(K * s):
        M[i, i] += 1e-11 * largest
    if not _factor(M):
        return 0.0, False
    _solve(M, step)
    for k in range(K):
        for j in range(lo, hi):
            d[k, j] = step[k * s + place[j]] if place[j] >= 0 else 0.0
    crossing, nearest = _crossing(w, d, g0, g1, start, member)
    before, t = penalty(w, lam, g0, g1, start, member, cost), 1.0
    for trial in range(4):
        for k in range(K):
            for a in range(s):
                d[k, at[a]] = t * step[k * s + a]
        for g in range(g0, g1):
            if crossing[g - g0] <= t * (1.0 + 1e-12):
                for i in range(start[g], start[g + 1]):
                    for k in range(K):
                        d[k, member[i]] = -w[k, member[i]]
        gain = _move(H, c, w, lo, hi, d)
        gain += before - penalty(w, lam, g0, g1, start, member, cost)
        if gain >= -1e-15 * before:
            return gain, t >= nearest
        for k in range(K):
            for j in range(lo, hi):
                w[k, j] -= d[k, j]
                d[k, j] *= -1.0
        apply(H, d, lo, hi, c, lo, hi)
        t = nearest if trial == 0 and nearest < 1.0 else 0.25 * t
    return 0.0, False


@njit(**FAST)
def _crossing(w, d, g0, g1, start, member):
    """The part of a step d after which each group turns away from w_g, and the least of them."""
    out = np.full(g1 - g0, np.inf)
    for g in range(g0, g1):
        square, along = 0.0, 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
                along += w[k, member[i]] * d[k, member[i]]
        if square + along < 0.0:
            out[g - g0] = -square / along
    return out, out.min()


@njit(**FAST)
def _move(H, c, w, lo, hi, d):
    """Move [lo, hi) by d; what it lowers the smooth part by."""
    gain = 0.0
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * c[k, j]
    apply(H, d, lo, hi, c, lo, hi)
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * c[k, j]
            w[k, j] += d[k, j]
    return gain


@njit(**FAST)
def _proximal(lo, hi, g0, g1, flat, H, c, w, xi, lam, steep, start, member, cost, u, d, fine):
    """One proximal gradient step on a block: its squared length, and whether the support held."""
    t, length, held = 1.0 / steep, 0.0, True
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            u[k, j] = w[k, j] + t * c[k, j]
    if flat:
        shrink(u, t * lam, g0, g1, start, member, cost)
    else:
        tol = 0.01 * np.sqrt(fine * steep)
        shrink_overlapping(u, xi, t, lam, g0, g1, start, member, cost, tol)
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            d[k, j] = u[k, j] - w[k, j]
            held &= (u[k, j] != 0.0) == (w[k, j] != 0.0)
            length += d[k, j] ** 2
            w[k, j] = u[k, j]
    if length > 0.0:
        apply(H, d, lo, hi, c, lo, hi)
    return length, held


@njit(**FAST)
def _visit(b, tree, H, c, w, xi, lam, steep, u, d, old, fine):
    """Minimize over one block given the others; the largest fall of a step."""
    block, first, nested, start, member, cost, _ = tree
    lo, hi, g0, g1 = block[b], block[b + 1], first[b], first[b + 1]
    flat, K = nested[b], w.shape[0]
    if steep <= 1e-14:
        return 0.0
    for k in range(K):
        for j in range(lo, hi):
            old[k, j] = w[k, j]
    one = K == 1 and hi - lo == 1
    largest = 0.0
    for _ in range(1 if one else STEPS):
        length, held = _proximal(
            lo, hi, g0, g1, flat, H, c, w, xi, lam, steep, start, member, cost, u, d, fine
        )
        largest = max(largest, steep * length)
        if steep * length <= fine:
            break
        if held and not one:
            newton(lo, hi, g0, g1, H, c, w, lam, start, member, cost, d, fine)
    if largest > 0.0:
        for k in range(K):
            for j in range(lo, hi):
                d[k, j] = w[k, j] - old[k, j]
        apply(H, d, lo, hi, c, 0, lo)
        apply(H, d, lo, hi, c, hi, w.shape[1])
    return largest


@njit(**FAST)
def solve(tree, H, c, w, xi, lam, steep, target, radius, max_sweeps):
    """Minimize c0'w-linear + w'Hw / 2 + lam Omega(w) from w, in place; sweeps made.

    Ends where the duality gap with Omega of the minimum bounded by `radius` is below `target`.
    """
    _, _, nested, start, member, cost, _ = tree
    K, A = w.shape
    u, d, old = np.zeros((K, A)), np.zeros((K, A)), np.zeros((K, A))
    fine = 0.1 * target
    for sweep in range(1, max_sweeps + 1):
        largest = 0.0
        for b in range(nested.size):
            fall = _visit(b, tree, H, c, w, xi, lam, steep[b], u, d, old, fine)
            largest = max(largest, fall)
        if largest <= 1e4 * target:
            slack, over = certificate(w, c, xi, lam, tree, u, 0.1 * target / radius)
            if slack + over * radius <= target:
                return sweep
        if largest <= fine:
            fine *= 0.1
        if nested.size > 1:
            newton(0, A, 0, cost.size, H, c, w, lam, start, member, cost, d, target)
    return max_sweeps


@njit(**FAST)
def enough(i, share, last):
    """Whether glmnet would end its path: nearly all is explained, or more of it hardly comes."""
    return share > 0.999 or (i >= 4 and share - last < 1e-5 * share)


@njit(**FAST)
def gaussian(tree, H, c0, w, xi, lams, ridges, null, target, max_sweeps, thrifty):
    """The path of a quadratic loss null - c0'w + w'Hw / 2: w, loss, gap and sweeps at each lam.

    w (1, A) and xi (1, members) are where it starts; `thrifty`: end where glmnet does. H keeps
    its last ridge on the diagonal.
    """
    block, _, nested, start, member, cost, _ = tree
    L, A = lams.size, w.shape[1]
    path, loss = np.zeros((L, 1, A)), np.zeros(L)
    gap, sweeps = np.zeros(L), np.zeros(L, np.int64)
    steep = np.empty(nested.size)
    for b in range(nested.size):
        steep[b] = steepness(H, 1, block[b], block[b + 1])
    u, c = np.empty((1, A)), np.empty((1, A))
    ridge, share = 0.0, 0.0
    for i in range(L):
        if i > 1:
            grow = (lams[i] - lams[i - 1]) / (lams[i - 1] - lams[i - 2])
            for j in range(A):
                ahead = w[0, j] + grow * (w[0, j] - path[i - 2, 0, j])
                if ahead * w[0, j] > 0.0 and path[i - 2, 0, j] != 0.0:
                    w[0, j] = ahead
        for j in range(A):
            H[0, 0, j, j] += ridges[i] - ridge
        steep += ridges[i] - ridge
        ridge = ridges[i]
        c[:] = c0
        apply(H, w, 0, A, c, 0, A)
        value = _value(c0, c, w, null) + penalty(w, lams[i], 0, cost.size, start, member, cost)
        fine = 0.1 * target * lams[i] / value
        ended = False
        if i == 0:  # where a path begins nothing may be used: a visit would only disturb xi
            slack, over = certificate(w, c, xi, lams[i], tree, u, fine)
            ended = slack + over * value / lams[i] <= target
        if not ended:
            reach = value / lams[i]
            sweeps[i] = solve(tree, H, c, w, xi, lams[i], steep, target, reach, max_sweeps)
        c[:] = c0
        apply(H, w, 0, A, c, 0, A)
        value = _value(c0, c, w, null) + penalty(w, lams[i], 0, cost.size, start, member, cost)
        slack, over = certificate(w, c, xi, lams[i], tree, u, fine)
        gap[i], path[i] = slack + over * value / lams[i], w
        loss[i] = _value(c0, c, w, null)
        for j in range(A):
            loss[i] -= 0.5 * ridge * w[0, j] ** 2
        last, share = share, 1.0 - loss[i] / null
        if thrifty and enough(i, share, last):
            return path[: i + 1], loss[: i + 1], gap[: i + 1], sweeps[: i + 1]
    return path, loss, gap, sweeps


@njit(**FAST)
def _value(c0, c, w, null):
    """null - c0'w + w'Hw / 2, where c = c0 - Hw."""
    value = null
    for j in range(w.shape[1]):
        value -= 0.5 * (c0[0, j] + c[0, j]) * w[0, j]
    return value
