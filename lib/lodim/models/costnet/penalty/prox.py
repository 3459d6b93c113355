"""Kernels of the group penalty Omega(w) = sum_g cost_g ||w_g||: proximal maps and duality gaps."""

from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import ZERO, njit

FAST = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
INNER = FAST | {"inline": "always"}  # inlined into its callers, which saves a compilation
FIRST = ZERO  # first coefficient or group


class GroupArrays(NamedTuple):
    """Groups of penalized coefficients, as arrays for compiled functions.

    Groups that share coefficients form a block; inner groups come before outer ones."""

    at: np.ndarray  # (A,) index of each coefficient among all q coefficients of Groups
    block: np.ndarray  # (B + 1,) block b has the coefficients block[b] to block[b + 1] - 1
    first: np.ndarray  # (B + 1,) and the groups first[b] to first[b + 1] - 1
    nested: np.ndarray  # (B,) bool, whether a block's groups form a tree
    start: np.ndarray  # (G + 1,) group g has the coefficients member[start[g]:start[g + 1]]
    member: np.ndarray  # positions of the coefficients of all groups, group by group
    cost: np.ndarray  # (G,) weights in the penalty lam sum_g cost_g ||w_g||
    sign: np.ndarray  # (A,) required signs 1 or -1, or 0 without one
    owner: np.ndarray  # (A,) most expensive group of each coefficient, to bound the dual norm


@njit(**FAST)
def keep_signs(u, sign, lo, hi):
    """Set entries of u with a wrong sign to zero, in place, in columns lo to hi - 1.

    sign : (A,) required sign of each column, 1 or -1; 0 if both are allowed"""
    for k in range(u.shape[0]):
        for j in range(lo, hi):
            if sign[j] * u[k, j] < 0.0:
                u[k, j] = 0.0


@njit(**INNER)
def prox_tree(u, scale, groups, g0, g1):
    """Apply the proximal map of nested groups to coefficients u (K, A), in place.

    scale : factor of the group penalty
    groups : GroupArrays; only groups g0 to g1 - 1 count, inner groups first"""
    # Jenatton et al. 2011, Alg. 1
    start, member, cost = groups.start, groups.member, groups.cost
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
def prox_overlapping(u, dual, t, lam, groups, g0, g1, tol):
    """Apply the proximal map of overlapping groups to coefficients u (K, A), in place.

    dual : (K, members) dual vectors of the groups; starting values, updated
    t, lam : step length of the map, and factor of the penalty
    groups : GroupArrays; only groups g0 to g1 - 1 count
    tol : change of the dual vectors at which to stop"""
    K, start, member, cost = u.shape[0], groups.start, groups.member, groups.cost
    for g in range(g0, g1):
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                u[k, member[i]] -= t * dual[k, i]
    # The best dual vectors make u the proximal map of what it was.
    _dual_ascent(u, dual, t, lam, np.ones(g1 - g0, np.bool_), groups, g0, g1, tol)
    for g in range(g0, g1):  # a group whose dual vector is inside its ball is exactly zero
        square = 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                square += dual[k, i] ** 2
        if square < (lam * cost[g]) ** 2 * (1.0 - 1e-12):
            for i in range(start[g], start[g + 1]):
                for k in range(K):
                    u[k, member[i]] = 0.0


@njit(**FAST)
def _dual_ascent(u, dual, t, lam, active, groups, g0, g1, tol):
    """Choose the dual vectors of overlapping groups, in place, so that ||u|| is smallest.

    u : (K, A) constant minus t times the sum of the dual vectors; updated
    dual : (K, members) dual vectors, of norm up to lam * cost; updated
    lam : factor of the penalty
    active : (g1 - g0,) bool, groups whose dual vectors may change
    groups : GroupArrays; only groups g0 to g1 - 1 count
    tol : change of the dual vectors at which to stop"""
    start, member, cost = groups.start, groups.member, groups.cost
    K, i0, i1 = u.shape[0], start[g0], start[g1]
    old = dual[:, i0:i1].copy()
    age, last = 0, np.inf
    for _ in range(200):
        change = 0.0
        for g in range(g0, g1):
            if active[g - g0]:
                limit = lam * cost[g]  # of the norm
                moved = _update_dual(u, dual, t, limit, start[g], start[g + 1], member)
                change = max(change, moved)
        if change <= tol:
            return
        age, last = (age + 1 if change < last else 0), change
        ahead = age / (age + 3.0)
        for i in range(i0, i1):
            for k in range(K):
                carried = ahead * (dual[k, i] - old[k, i - i0])
                old[k, i - i0] = dual[k, i]
                dual[k, i] += carried
                u[k, member[i]] -= t * carried
    for g in range(g0, g1):
        if active[g - g0]:
            _update_dual(u, dual, t, lam * cost[g], start[g], start[g + 1], member)


@njit(**FAST)
def _update_dual(u, dual, t, limit, i0, i1, member):
    """Choose one group's dual vector, in place, so that ||u|| is smallest; return its change.

    u : (K, A) constant minus t times the sum of the dual vectors; updated
    dual : (K, members) dual vectors; the group's columns i0 to i1 - 1 are updated
    limit : largest norm of the dual vector
    member : (members,) column of u for each column of `dual`"""
    square = 0.0
    for i in range(i0, i1):
        for k in range(u.shape[0]):
            square += (u[k, member[i]] / t + dual[k, i]) ** 2
    part = limit / np.sqrt(square) if square > limit * limit else 1.0
    change = 0.0
    for i in range(i0, i1):
        for k in range(u.shape[0]):
            target = u[k, member[i]] / t + dual[k, i]
            new = part * target
            change = max(change, abs(new - dual[k, i]))
            u[k, member[i]] = t * (target - new)
            dual[k, i] = new
    return change


@njit(**FAST)
def penalty(w, lam, groups, g0, g1):
    """Return the penalty lam sum_g cost_g ||w_g|| of w (K, A), over groups g0 to g1 - 1."""
    total, start, member, cost = 0.0, groups.start, groups.member, groups.cost
    for g in range(g0, g1):
        square = 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
        total += cost[g] * np.sqrt(square)
    return lam * total


@njit(**FAST)
def duality_gap(w, slope, dual, lam, groups, u, tol):
    """Return two numbers, (slack, over), that bound how far the objective at w is from its minimum.

    The bound is slack + over * r, where r is penalty / lam at the minimum.
    slope : (K, A) negative gradient of the loss
    dual : (K, members) dual vectors of the groups; updated if groups overlap
    lam, groups : factor of the penalty; GroupArrays
    u : work array like w; becomes slope minus the sum of the dual vectors
    tol : precision of the dual vectors"""
    (K, A), G = w.shape, groups.cost.size
    first, nested, owner, cost = groups.first, groups.nested, groups.owner, groups.cost
    slack = penalty(w, lam, groups, FIRST, G)
    for k in range(K):
        for j in range(A):
            u[k, j] = slope[k, j]
            slack -= slope[k, j] * w[k, j]
    keep_signs(u, groups.sign, FIRST, A)
    for b in range(first.size - 1):
        g0, g1 = first[b], first[b + 1]
        if nested[b]:
            prox_tree(u, lam, groups, g0, g1)
        else:
            _dual_residual(w, dual, lam, groups, g0, g1, u, tol)
    # An upper bound of the dual norm: each coefficient counts only in its most expensive group.
    square = np.zeros(G)
    for k in range(K):
        for j in range(A):
            square[owner[j]] += u[k, j] ** 2
    over = 0.0
    for g in range(G):
        over = max(over, np.sqrt(square[g]) / cost[g])
    return slack, over


@njit(**INNER)
def _dual_residual(w, dual, lam, groups, g0, g1, u, tol):
    """Subtract the groups' dual vectors from u, in place, chosen so that ||u|| is smallest.

    dual, lam : (K, members) dual vectors, updated; factor of the penalty
    groups : GroupArrays; only groups g0 to g1 - 1 count
    u : (K, A) negative gradient of the loss at w; updated
    tol : precision of the dual vectors, relative to the smallest cost of a group"""
    start, member, cost = groups.start, groups.member, groups.cost
    K, zero, least = w.shape[0], np.empty(g1 - g0, np.bool_), np.inf
    for g in range(g0, g1):
        norm = penalty(w, 1.0, groups, g, g + 1) / cost[g]
        zero[g - g0] = norm == 0.0
        least = min(least, cost[g])
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                if norm > 0.0:
                    dual[k, i] = lam * cost[g] / norm * w[k, member[i]]
                u[k, member[i]] -= dual[k, i]
    _dual_ascent(u, dual, 1.0, lam, zero, groups, g0, g1, 0.1 * tol * least)
