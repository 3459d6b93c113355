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
def _newton_direction(H, c, w, lam, groups, g0, g1, at, position):
    """Return the Newton step for s columns of w that minimizes a quadratic plus a group penalty.

    w : (K, A) coefficients of K linear predictors; the result (K s,) has s steps per row of w
    H : (K, K, A, A) Hessian of the quadratic; c : (K, A) minus its gradient at w
    groups, lam : the penalty is lam sum_g cost_g ||w_g|| over groups g0 to g1 - 1 of GroupArrays
    at : (s,) columns of w to change; position : for each column of w, its index in `at`, or -1"""
    start, member, cost = groups.start, groups.member, groups.cost
    K, s = w.shape[0], at.size
    M, rhs = np.empty((K * s, K * s)), np.empty(K * s)
    for k in range(K):
        for a in range(s):
            rhs[k * s + a] = c[k, at[a]]
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
def newton_steps(span, groups, H, c, w, lam, d, eps):
    """Minimize a group-penalized quadratic over the nonzero coefficients w (K, A), in place.

    span : (lo, hi, g0, g1): only the columns lo to hi - 1 of w and the groups g0 to g1 - 1 count
    groups : GroupArrays; lam : factor of their penalty sum_g cost_g ||w_g||; d : work array (K, A)
    H : (K, K, A, A) Hessian of the quadratic; c : (K, A) minus its gradient at w, updated
    eps : stop after a step that lowers the objective by at most eps and zeroes no group"""
    # The penalty is lam sum_g cost_g ||w_g||. Coefficients that would cross zero become zero.
    for _ in range(8):
        gain, crossed = _newton_step(span, groups, H, c, w, lam, d)
        if not crossed and gain <= eps:
            break


@njit(**INNER)
def _newton_step(span, groups, H, c, w, lam, d):
    """Make one Newton step on the nonzero coefficients w (K, A) of a quadratic plus group penalty.

    w is changed in place. Return by how much the objective falls, and whether a group became zero.
    span : (lo, hi, g0, g1): only the columns lo to hi - 1 of w and the groups g0 to g1 - 1 count
    groups : GroupArrays; lam : factor of their penalty sum_g cost_g ||w_g||; d : work array (K, A)
    H : (K, K, A, A) Hessian of the quadratic; c : (K, A) minus its gradient at w, updated"""
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
    step = _newton_direction(H, c, w, lam, groups, g0, g1, at, position)
    for k in range(K):
        for j in range(lo, hi):
            d[k, j] = step[k * s + position[j]] if position[j] >= 0 else 0.0
    crossings, nearest = _zero_crossings(w, d, groups, g0, g1)
    before, t = penalty(w, lam, groups, g0, g1), 1.0
    old_w, old_c = w[:, lo:hi].copy(), c[:, lo:hi].copy()
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
        gain = _move(H, c, w, lo, hi, d)
        gain += before - penalty(w, lam, groups, g0, g1)
        if gain >= -1e-15 * before:
            return gain, t >= nearest
        # Copies, since going back along a very long step would leave large rounding errors.
        w[:, lo:hi], c[:, lo:hi] = old_w, old_c
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
    """Return the share t of the step d at which each group crosses zero, and the smallest share.

    A group g crosses zero at the t < 1 with w_g'(w_g + t d_g) = 0; inf if there is none.
    w : (K, A) coefficients; d : (K, A) step; groups : GroupArrays, of which g0 to g1 - 1 count"""
    start, member = groups.start, groups.member
    out, nearest = np.full(g1 - g0, np.inf), np.inf
    for g in range(g0, g1):
        square, along = 0.0, 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
                along += w[k, member[i]] * d[k, member[i]]
        if square + along < 0.0:
            out[g - g0] = -square / along
            nearest = min(nearest, out[g - g0])
    return out, nearest


@njit(**INNER)
def _move(H, c, w, lo, hi, d):
    """Add step d to columns lo to hi - 1 of coefficients w (K, A); return the fall of a quadratic.

    H : (K, K, A, A) its Hessian; c : (K, A) minus its gradient at w, updated in these columns"""
    gain = 0.0
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * c[k, j]
    subtract_product(H, d, lo, hi, c, lo, hi)
    for k in range(w.shape[0]):
        for j in range(lo, hi):
            gain += 0.5 * d[k, j] * c[k, j]
            w[k, j] += d[k, j]
    return gain


@njit(**INNER)
def _minimize_block(b, groups, H, c, w, dual, lam, L, spaces, eps):
    """Minimize a group-penalized quadratic over block b of the coefficients w (K, A), in place.

    A block is a set of groups that share coefficients. Return the largest L |step|^2 of all steps.
    groups, lam : the penalty is lam sum_g cost_g ||w_g|| over the groups g of GroupArrays
    H : (K, K, A, A) Hessian of the quadratic; c : (K, A) minus its gradient at w, updated
    dual : (K, members) dual vectors of all groups, side by side, of norms up to lam cost_g; updated
    L : upper bound of H's eigenvalues in the block; eps : value of L |step|^2 at which to stop
    spaces : three work arrays, shaped like w"""
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
                u[k, j] = w[k, j] + t * c[k, j]
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
            subtract_product(H, d, lo, hi, c, lo, hi)
        largest = max(largest, L * length)
        if L * length <= eps:
            break
        if same_support and not one:
            newton_steps((lo, hi, g0, g1), groups, H, c, w, lam, d, eps)
    if largest > 0.0:
        for k in range(K):
            for j in range(lo, hi):
                d[k, j] = w[k, j] - old[k, j]
        for left, right in ((FIRST, lo), (hi, w.shape[1])):
            subtract_product(H, d, lo, hi, c, left, right)
    return largest


@njit(**FAST)
def minimize(groups, H, c, w, dual, lam, lipschitz, target, radius, max_sweeps):
    """Minimize a group-penalized quadratic over w (K, A), in place; return the number of sweeps.

    groups, lam : the penalty is lam sum_g cost_g ||w_g|| over the groups g of GroupArrays
    H : (K, K, A, A) Hessian of the quadratic; c : (K, A) minus its gradient at w, updated
    dual : (K, members) dual vectors of all groups, side by side, of norms up to lam cost_g; updated
    lipschitz : upper bound of H's eigenvalues in each block (set of groups that share coefficients)
    target : duality gap at which to stop; radius : bound of sum_g cost_g ||w_g|| at the minimum"""
    K, A = w.shape
    u, d, old = np.empty((K, A)), np.empty((K, A)), np.empty((K, A))
    eps, largest = 0.1 * target, 0.0 if groups.nested.all() else np.inf
    for sweep in range(max_sweeps):
        if groups.first.size > 2:
            newton_steps((FIRST, A, FIRST, groups.cost.size), groups, H, c, w, lam, d, target)
        if largest <= 1e4 * target:
            slack, over = duality_gap(w, c, dual, lam, groups, u, 0.1 * target / radius)
            if slack + over * radius <= target:
                return sweep
        largest = 0.0
        for b in range(groups.first.size - 1):
            spaces = u, d, old
            decrease = _minimize_block(b, groups, H, c, w, dual, lam, lipschitz[b], spaces, eps)
            largest = max(largest, decrease)
        if largest <= eps:
            eps *= 0.1
    return max_sweeps


@njit(**FAST)
def subtract_product(H, d, lo, hi, c, a, b):
    """Subtract H d from columns a to b - 1 of c, in place; only columns lo to hi - 1 of d count."""
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
