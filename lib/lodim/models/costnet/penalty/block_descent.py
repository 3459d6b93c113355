"""Kernels that minimize a quadratic plus a group penalty: block descent and Newton steps."""

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.costnet.penalty.prox import (
    FAST,
    FIRST,
    INNER,
    duality_gap,
    keep_signs,
    penalty,
    prox_overlapping,
    prox_tree,
)


@njit(**INNER)
def _newton_direction(H, slope, w, lam, groups, g0, g1, at, position):
    """Return a Newton step for columns `at` of w, as a vector: the steps of one row, then the next.

    H, slope : (K, K, A, A) Hessian and (K, A) negative gradient of a quadratic loss at w
    lam : factor of the penalty
    groups : GroupArrays; only groups g0 to g1 - 1 count
    position : index in `at` of each column of w, or -1"""
    start, member, cost = groups.start, groups.member, groups.cost
    K, s = w.shape[0], at.size
    M, rhs = np.empty((K * s, K * s)), np.empty(K * s)
    for k in range(K):
        for a in range(s):
            rhs[k * s + a] = slope[k, at[a]]
            for m in range(K):
                row = H[k, m, at[a]]
                for b in range(s):
                    M[k * s + a, m * s + b] = row[at[b]]
    for g in range(g0, g1):
        norm = penalty(w, 1.0, groups, g, g + 1) / cost[g]
        if norm == 0.0:
            continue
        curvature = lam * cost[g] / norm
        alone = K == 1 and start[g + 1] - start[g] == 1
        for i in range(start[g], start[g + 1]):
            a = position[member[i]]
            if a < 0:
                continue
            for k in range(K):
                rhs[k * s + a] -= curvature * w[k, member[i]]
                if alone:
                    continue
                M[k * s + a, k * s + a] += curvature
                cross = curvature / norm**2 * w[k, member[i]]
                for h in range(start[g], start[g + 1]):
                    b = position[member[h]]
                    if b >= 0:
                        for m in range(K):
                            M[k * s + a, m * s + b] -= cross * w[m, member[h]]
    largest = 0.0
    for i in range(rhs.size):
        largest = max(largest, M[i, i])
    if largest == 0.0:
        return np.zeros(rhs.size)
    for i in range(rhs.size):
        M[i, i] += 1e-11 * largest  # makes M regular
    return np.linalg.solve(M, rhs)


@njit(**FAST)
def newton_steps(span, groups, H, slope, w, lam, d, eps):
    """Minimize a quadratic loss plus a group penalty over the nonzero entries of w, in place.

    span : (lo, hi, g0, g1); only columns lo to hi - 1 and groups g0 to g1 - 1 count
    groups : GroupArrays
    H, slope : (K, K, A, A) Hessian and (K, A) negative gradient; slope is updated
    lam : factor of the penalty
    d : work array like w
    eps : decrease of the objective at which to stop"""
    # The penalty is lam sum_g cost_g ||w_g||. Coefficients that would cross zero become zero.
    for _ in range(8):
        gain, crossed = _newton_step(span, groups, H, slope, w, lam, d)
        if not crossed and gain <= eps:
            break


@njit(**INNER)
def _newton_step(span, groups, H, slope, w, lam, d):
    """Make one Newton step on the nonzero entries of w, in place.

    Return (decrease of the objective, whether a group became zero).
    span : (lo, hi, g0, g1); only columns lo to hi - 1 and groups g0 to g1 - 1 count
    groups : GroupArrays
    H, slope : (K, K, A, A) Hessian and (K, A) negative gradient; slope is updated
    lam : factor of the penalty
    d : work array like w"""
    lo, hi, g0, g1 = span
    K, start, member = w.shape[0], groups.start, groups.member
    position = np.full(hi, -1)
    s = 0
    for j in range(lo, hi):
        for k in range(K):
            if w[k, j] != 0.0 and position[j] < 0:
                position[j] = s
                s += 1
    if s == 0:
        return 0.0, False
    at = np.empty(s, np.int64)
    for j in range(lo, hi):
        if position[j] >= 0:
            at[position[j]] = j
    step = _newton_direction(H, slope, w, lam, groups, g0, g1, at, position)
    for k in range(K):
        for j in range(lo, hi):
            d[k, j] = step[k * s + position[j]] if position[j] >= 0 else 0.0
    crossings, nearest = _zero_crossings(w, d, groups, g0, g1)
    before, t = penalty(w, lam, groups, g0, g1), 1.0
    old_w, old_slope = w[:, lo:hi].copy(), slope[:, lo:hi].copy()
    for trial in range(4):
        for k in range(K):
            for a in range(s):
                d[k, at[a]] = t * step[k * s + a]
        for g in range(g0, g1):
            if crossings[g - g0] <= t * (1.0 + 1e-12):
                for i in range(start[g], start[g + 1]):
                    for k in range(K):
                        d[k, member[i]] = -w[k, member[i]]
        stop_at_zero(w, d, groups.sign, lo, hi)
        gain = _move(H, slope, w, lo, hi, d)
        gain += before - penalty(w, lam, groups, g0, g1)
        if gain >= -1e-15 * before:
            return gain, t >= nearest
        # Copies, since going back along a very long step would leave large rounding errors.
        w[:, lo:hi], slope[:, lo:hi] = old_w, old_slope
        t = nearest if trial == 0 and nearest < 1.0 else 0.25 * t
    return 0.0, False


@njit(**INNER)
def stop_at_zero(w, d, sign, lo, hi):
    """Shorten steps d in columns lo to hi - 1, in place, so that w + d has the signs `sign`."""
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            if sign[j] * (w[k, j] + d[k, j]) < 0.0:
                d[k, j] = -w[k, j]


@njit(**INNER)
def _zero_crossings(w, d, groups, g0, g1):
    """Return the share of step d at which each group crosses zero, and the smallest share.

    A group crosses zero if its coefficients w + share d become orthogonal to w; inf if they do not.
    groups : GroupArrays; only groups g0 to g1 - 1 count"""
    start, member = groups.start, groups.member
    out, nearest = np.full(g1 - g0, np.inf), np.inf
    for g in range(g0, g1):
        square, along = 0.0, 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
                along += w[k, member[i]] * d[k, member[i]]
        if square + along < 0.0:  # w_g'(w_g + t d_g) is zero at a share t < 1
            out[g - g0] = -square / along
            nearest = min(nearest, out[g - g0])
    return out, nearest


@njit(**INNER)
def _move(H, slope, w, lo, hi, d):
    """Add step d to columns lo to hi - 1 of w, in place; return the decrease of a quadratic loss.

    slope : (K, A) negative gradient of the loss; updated in these columns"""
    gain = 0.0
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * slope[k, j]
    subtract_product(H, d, lo, hi, slope, lo, hi)
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * slope[k, j]
            w[k, j] += d[k, j]
    return gain


@njit(**INNER)
def _minimize_block(b, groups, H, slope, w, dual, lam, L, spaces, eps):
    """Minimize a quadratic loss plus a group penalty over block b of w, in place.

    Return the largest squared step, times L.
    groups : GroupArrays
    H, slope : (K, K, A, A) Hessian and (K, A) negative gradient; slope is updated
    dual : (K, members) dual vectors of the groups; updated
    lam : factor of the penalty
    L : upper bound of the eigenvalues of H in the block
    spaces : three work arrays like w
    eps : squared step, times L, at which to stop"""
    u, d, old = spaces
    K, lo, hi = w.shape[0], groups.block[b], groups.block[b + 1]
    g0, g1 = groups.first[b], groups.first[b + 1]
    if L <= 1e-14:
        return 0.0
    for k in range(K):
        for j in range(lo, hi):
            old[k, j] = w[k, j]
    one = K == 1 and hi - lo == 1  # then one step is exact
    t, largest = 1.0 / L, 0.0
    for _ in range(1 if one else 60):
        length, same_support = 0.0, True
        for k in range(K):
            for j in range(lo, hi):
                u[k, j] = w[k, j] + t * slope[k, j]
        keep_signs(u, groups.sign, lo, hi)
        if groups.nested[b]:
            prox_tree(u, t * lam, groups, g0, g1)
        else:
            prox_overlapping(u, dual, t, lam, groups, g0, g1, 0.01 * np.sqrt(eps * L))
        for k in range(K):
            for j in range(lo, hi):
                d[k, j] = u[k, j] - w[k, j]
                same_support &= (u[k, j] != 0.0) == (w[k, j] != 0.0)
                length += d[k, j] ** 2
                w[k, j] = u[k, j]
        if length > 0.0:
            subtract_product(H, d, lo, hi, slope, lo, hi)
        largest = max(largest, L * length)
        if L * length <= eps:
            break
        if same_support and not one:
            newton_steps((lo, hi, g0, g1), groups, H, slope, w, lam, d, eps)
    if largest > 0.0:
        for k in range(K):
            for j in range(lo, hi):
                d[k, j] = w[k, j] - old[k, j]
        for left, right in ((FIRST, lo), (hi, w.shape[1])):
            subtract_product(H, d, lo, hi, slope, left, right)
    return largest


@njit(**FAST)
def minimize(groups, H, slope, w, dual, lam, lipschitz, target, radius, max_sweeps):
    """Minimize a quadratic loss plus a group penalty over w, in place; return the sweeps made.

    groups : GroupArrays
    H, slope : (K, K, A, A) Hessian and (K, A) negative gradient; slope is updated
    w : (K, A) coefficients, a row per score (linear predictor)
    dual : (K, members) dual vectors of the groups; updated
    lam : factor of the penalty
    lipschitz : upper bound of the eigenvalues of H per block (groups that share coefficients)
    target : duality gap at which to stop
    radius : upper bound of penalty / lam at the minimum"""
    K, A = w.shape
    u, d, old = np.empty((K, A)), np.empty((K, A)), np.empty((K, A))
    eps, largest = 0.1 * target, 0.0 if groups.nested.all() else np.inf
    for sweep in range(max_sweeps):
        if groups.first.size > 2:
            newton_steps((FIRST, A, FIRST, groups.cost.size), groups, H, slope, w, lam, d, target)
        if largest <= 1e4 * target:
            slack, over = duality_gap(w, slope, dual, lam, groups, u, 0.1 * target / radius)
            if slack + over * radius <= target:
                return sweep
        largest = 0.0
        for b in range(groups.first.size - 1):
            spaces = u, d, old
            decrease = _minimize_block(b, groups, H, slope, w, dual, lam, lipschitz[b], spaces, eps)
            largest = max(largest, decrease)
        if largest <= eps:
            eps *= 0.1
    return max_sweeps


@njit(**FAST)
def subtract_product(H, d, lo, hi, c, a, b):
    """Subtract H d from columns a to b - 1 of c, in place, with only columns lo to hi - 1 of d."""
    for k in range(c.shape[0]):
        for j in range(lo, hi):
            step = d[k, j]
            if step == 0.0:
                continue
            for m in range(c.shape[0]):
                row, out = H[k, m, j], c[m]
                for i in range(a, b):
                    out[i] -= step * row[i]


@njit(**FAST)
def largest_eigenvalue(H, lo, hi):
    """Return an upper bound of the largest eigenvalue of H in coefficients lo to hi - 1."""
    rows = H.shape[0]
    if hi - lo == 1 and rows == 1:
        return H[0, 0, lo, lo]
    v, out, largest = np.empty((rows, hi)), np.empty((rows, hi)), 0.0
    for k in range(rows):
        for j in range(lo, hi):
            v[k, j] = 1.0 + 0.37 * ((j * 7 + k * 3) % 11)
    for _ in range(40):
        out[:] = 0.0
        subtract_product(H, v, lo, hi, out, lo, hi)
        norm, before = 0.0, 0.0
        for k in range(rows):
            for j in range(lo, hi):
                norm += out[k, j] ** 2
                before += v[k, j] ** 2
        if norm == 0.0:
            return 0.0
        last, largest = largest, np.sqrt(norm / before)
        root = np.sqrt(norm)
        for k in range(rows):
            for j in range(lo, hi):
                v[k, j] = out[k, j] / root
        if abs(largest - last) <= 1e-3 * largest:
            break
    return 1.05 * largest
