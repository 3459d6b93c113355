"""Kernels of the group penalty: proximal maps, dual vectors, and what they certify.

Coefficients are (K, A), a row a score; c is minus the gradient of the smooth part. A forest of
groups is passed as `tree` = (block, first, nested, start, member, cost, bearer), see `layout`.
"""

import numpy as np

from lodim.engine.compiled import njit

FAST = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
DUAL_PASSES = 200


@njit(**FAST)
def shrink(u, scale, g0, g1, start, member, cost):
    """Proximal map of scale sum cost_g ||u_g|| over the nested groups [g0, g1), in place.

    Exact in one pass from the leaves up (Jenatton et al. 2011, Algorithm 1).
    """
    for g in range(g0, g1):
        square = 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(u.shape[0]):
                square += u[k, member[i]] ** 2
        limit = scale * cost[g]
        rest = 1.0 - limit / np.sqrt(square) if square > limit * limit else 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(u.shape[0]):
                u[k, member[i]] *= rest


@njit(**FAST)
def shrink_overlapping(u, xi, t, lam, g0, g1, start, member, cost, tol):
    """Proximal map of t lam sum cost_g ||u_g|| over groups that overlap, in place.

    Block ascent in the dual, u = argument - t sum of xi_g, ||xi_g|| <= lam cost_g; `xi` (K,
    members) is where it starts and where it ends.
    """
    K = u.shape[0]
    for g in range(g0, g1):
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                u[k, member[i]] -= t * xi[k, i]
    _ascend(u, xi, t, lam, np.ones(g1 - g0, np.bool_), g0, g1, start, member, cost, tol)
    for g in range(g0, g1):  # what the dual only tends to: a group within its ball is zero
        if _inside(xi, lam * cost[g], start[g], start[g + 1]):
            for i in range(start[g], start[g + 1]):
                for k in range(K):
                    u[k, member[i]] = 0.0


@njit(**FAST)
def _ascend(u, xi, t, lam, on, g0, g1, start, member, cost, tol):
    """Block ascent over the dual vectors of the groups `on`, with momentum, until they rest.

    A pass leaves every vector within its ball, also from where momentum has carried them.
    """
    K, i0, i1 = u.shape[0], start[g0], start[g1]
    old = xi[:, i0:i1].copy()
    age, last = 0, np.inf
    for _ in range(DUAL_PASSES):
        change = 0.0
        for g in range(g0, g1):
            if on[g - g0]:
                limit = lam * cost[g]
                change = max(change, _project(u, xi, t, limit, start[g], start[g + 1], member))
        if change <= tol:
            return
        age, last = (age + 1 if change < last else 0), change
        ahead = age / (age + 3.0)
        for i in range(i0, i1):
            for k in range(K):
                carried = ahead * (xi[k, i] - old[k, i - i0])
                old[k, i - i0] = xi[k, i]
                xi[k, i] += carried
                u[k, member[i]] -= t * carried
    for g in range(g0, g1):
        if on[g - g0]:
            _project(u, xi, t, lam * cost[g], start[g], start[g + 1], member)


@njit(**FAST)
def _inside(xi, limit, i0, i1):
    """Whether a group's dual vector is off the border of its ball."""
    square = 0.0
    for i in range(i0, i1):
        for k in range(xi.shape[0]):
            square += xi[k, i] ** 2
    return square < limit * limit * (1.0 - 1e-12)


@njit(**FAST)
def _project(u, xi, t, limit, i0, i1, member):
    """One group's dual vector as it should be given the others; the largest change over t."""
    square = 0.0
    for i in range(i0, i1):
        for k in range(u.shape[0]):
            square += (u[k, member[i]] / t + xi[k, i]) ** 2
    part = limit / np.sqrt(square) if square > limit * limit else 1.0
    change = 0.0
    for i in range(i0, i1):
        for k in range(u.shape[0]):
            target = u[k, member[i]] / t + xi[k, i]
            new = part * target
            change = max(change, abs(new - xi[k, i]))
            u[k, member[i]] = t * (target - new)
            xi[k, i] = new
    return change


@njit(**FAST)
def penalty(w, lam, g0, g1, start, member, cost):
    """lam sum cost_g ||w_g|| over the groups [g0, g1)."""
    total = 0.0
    for g in range(g0, g1):
        square = 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
        total += cost[g] * np.sqrt(square)
    return lam * total


@njit(**FAST)
def certificate(w, c, xi, lam, tree, u, tol):
    """lam Omega(w) - c'w, and the polar norm of what no dual vector within lam takes of c.

    For every v, c'v <= lam Omega(v) + polar Omega(v). `tol` is how small polar need be.
    """
    _, first, nested, start, member, cost, bearer = tree
    K, A = w.shape
    slack = penalty(w, lam, 0, cost.size, start, member, cost)
    for k in range(K):
        for j in range(A):
            u[k, j] = c[k, j]
            slack -= c[k, j] * w[k, j]
    for b in range(nested.size):
        if nested[b]:
            shrink(u, lam, first[b], first[b + 1], start, member, cost)
        else:
            _rest(w, xi, lam, first[b], first[b + 1], start, member, cost, u, bearer, tol)
    return slack, polar(u, 0, A, cost, bearer)


@njit(**FAST)
def polar(u, lo, hi, cost, bearer):
    """A bound of the polar norm of u: each of its numbers borne by its dearest group."""
    square = np.zeros(cost.size)
    for k in range(u.shape[0]):
        for j in range(lo, hi):
            square[bearer[j]] += u[k, j] ** 2
    largest = 0.0
    for g in range(cost.size):
        largest = max(largest, np.sqrt(square[g]) / cost[g])
    return largest


@njit(**FAST)
def dual_norm(tree, c):
    """The least lam at which the proximal map of lam Omega takes all of c, and dual vectors of it.

    lam <- c'w / Omega(w), w the proximal map at lam, rises to it in few steps (Dinkelbach 1967).
    """
    block, first, nested, start, member, cost, bearer = tree
    K = c.shape[0]
    u, xi, largest = np.zeros_like(c), np.zeros((K, member.size)), 0.0
    for b in range(nested.size):
        g0, g1, lam = first[b], first[b + 1], 0.0
        for _ in range(100):
            u[:, block[b] : block[b + 1]] = c[:, block[b] : block[b + 1]]
            if nested[b]:
                shrink(u, lam, g0, g1, start, member, cost)
            else:
                shrink_overlapping(u, xi, 1.0, lam, g0, g1, start, member, cost, 1e-13 * lam)
            along, norms = 0.0, penalty(u, 1.0, g0, g1, start, member, cost)
            for k in range(K):
                for j in range(block[b], block[b + 1]):
                    along += c[k, j] * u[k, j]
            if norms == 0.0 or along <= lam * (1.0 + 1e-14) * norms:
                break
            lam = along / norms
        largest = max(largest, lam * (1.0 + 1e-12))
        if not nested[b]:  # the ascent has not quite ended: what it leaves is borne by one group
            u[:] = c
            for g in range(g0, g1):
                for i in range(start[g], start[g + 1]):
                    for k in range(K):
                        u[k, member[i]] -= xi[k, i]
            largest = max(largest, lam + polar(u, block[b], block[b + 1], cost, bearer))
            for g in range(g0, g1):
                for i in range(start[g], start[g + 1]):
                    if bearer[member[i]] == g:
                        for k in range(K):
                            xi[k, i] += u[k, member[i]]
    return largest, xi


@njit(**FAST)
def _rest(w, xi, lam, g0, g1, start, member, cost, u, bearer, tol):
    """Leave of u what the groups' dual vectors cannot take: known where w_g is not zero."""
    K = w.shape[0]
    zero = np.empty(g1 - g0, np.bool_)
    least = np.inf
    for g in range(g0, g1):
        norm = penalty(w, 1.0, g, g + 1, start, member, cost) / cost[g]
        zero[g - g0] = norm == 0.0
        least = min(least, cost[g])
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                if norm > 0.0:
                    xi[k, i] = lam * cost[g] / norm * w[k, member[i]]
                u[k, member[i]] -= xi[k, i]
    _ascend(u, xi, 1.0, lam, zero, g0, g1, start, member, cost, 0.1 * tol * least)
