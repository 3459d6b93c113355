"""Kernels of the group penalty Omega(w) = sum_g cost_g ||w_g||: proximal maps and duality gaps."""

from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import ZERO, njit

FAST = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
INNER = FAST | {"inline": "always"}  # inlined into its callers, which saves a compilation
FIRST = ZERO  # first coefficient or group


class GroupArrays(NamedTuple):
    """Groups of penalized coefficients, as arrays for compiled functions.

    A block is a set of groups that share coefficients; a group comes after all that it contains.
    block b : coefficients block[b] to block[b + 1] - 1; groups first[b] to first[b + 1] - 1
    group g : coefficients member[start[g]:start[g + 1]]; weight cost[g]"""

    at: np.ndarray  # (A,) index of each coefficient among all q coefficients of Groups
    block: np.ndarray  # (B + 1,) start of each block's coefficients
    first: np.ndarray  # (B + 1,) start of each block's groups
    nested: np.ndarray  # (B,) bool, whether a block's groups form a tree
    start: np.ndarray  # (G + 1,)
    member: np.ndarray  # positions of the coefficients of all groups
    cost: np.ndarray  # (G,) weights of the groups
    sign: np.ndarray  # (A,) required signs 1 or -1, or 0 without one
    owner: np.ndarray  # (A,) most expensive group of each coefficient, to bound the dual norm


@njit(**FAST)
def keep_signs(u, sign, lo, hi):
    """Set entries of u (K, A) with a wrong sign to zero, in place, in columns lo to hi - 1.

    sign : (A,) required sign of each column's entries, 1 or -1; 0 if both are allowed"""
    for k in range(u.shape[0]):
        for j in range(lo, hi):
            if sign[j] * u[k, j] < 0.0:
                u[k, j] = 0.0


@njit(**INNER)
def prox_tree(u, scale, groups, g0, g1):
    """Apply the proximal map of scale * sum_g cost_g ||u_g|| to coefficients u (K, A), in place.

    groups : GroupArrays; the sum is over groups g0 to g1 - 1, nested and sorted inner first"""
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
    """Apply the proximal map of t lam sum_g cost_g ||u_g|| to coefficients u (K, A), in place.

    groups : GroupArrays; the sum is over groups g0 to g1 - 1, which may overlap
    t : step length; lam : factor of the group penalty; tol : precision of the dual vectors
    dual : (K, members) dual vectors of all groups, side by side, as starting values; updated"""
    K, start, member, cost = u.shape[0], groups.start, groups.member, groups.cost
    for g in range(g0, g1):
        for i in range(start[g], start[g + 1]):
            for k in range(K):
                u[k, member[i]] -= t * dual[k, i]
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
def _dual_ascent(u, dual, t, lam, on, groups, g0, g1, tol):
    """Compute the proximal map of overlapping groups by optimizing their dual vectors, in place.

    u : (K, A) = x - t * (sum of the dual vectors); becomes the proximal map of a fixed x
    dual : (K, members) dual vectors of all groups, side by side, of norms up to lam cost_g; updated
    on : (g1 - g0,) bool, which of the groups g0 to g1 - 1 of GroupArrays can change dual vectors
    t : step length of the proximal map; lam : factor of the group penalty
    tol : largest change of the dual vectors' entries at which to stop"""
    start, member, cost = groups.start, groups.member, groups.cost
    K, i0, i1 = u.shape[0], start[g0], start[g1]
    old = dual[:, i0:i1].copy()
    age, last = 0, np.inf
    for _ in range(200):
        change = 0.0
        for g in range(g0, g1):
            if on[g - g0]:
                limit = lam * cost[g]
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
        if on[g - g0]:
            _update_dual(u, dual, t, lam * cost[g], start[g], start[g + 1], member)


@njit(**FAST)
def _update_dual(u, dual, t, limit, i0, i1, member):
    """Minimize ||u|| over one group's dual vector v, ||v|| <= limit; return v's largest change.

    u : (K, A) = x - t * (sum of all dual vectors), where x is fixed; updated
    dual : (K, members) dual vectors of all groups, side by side; v is dual[:, i0:i1]; updated
    t : step length of the proximal map; member[i0:i1] : columns of u that the group has"""
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
    """Return lam sum_g cost_g ||w_g|| for w (K, A), over groups g0 to g1 - 1 of GroupArrays."""
    total, start, member, cost = 0.0, groups.start, groups.member, groups.cost
    for g in range(g0, g1):
        square = 0.0
        for i in range(start[g], start[g + 1]):
            for k in range(w.shape[0]):
                square += w[k, member[i]] ** 2
        total += cost[g] * np.sqrt(square)
    return lam * total


@njit(**FAST)
def duality_gap(w, c, dual, lam, groups, u, tol):
    """Return s and d such that objective(w) - objective(w*) <= s + d Omega(w*), with w* optimal.

    The objective is loss(w) + lam Omega(w), and Omega(w) = sum_g cost_g ||w_g|| over GroupArrays.
    w : (K, A) coefficients; c : (K, A) negative gradient of the loss at w
    dual : (K, members) dual vectors of overlapping groups, updated to precision `tol`
    u : work array (K, A), which gets c minus the sum of the groups' dual vectors"""
    (K, A), G = w.shape, groups.cost.size
    first, nested, owner, cost = groups.first, groups.nested, groups.owner, groups.cost
    slack = penalty(w, lam, groups, FIRST, G)
    for k in range(K):
        for j in range(A):
            u[k, j] = c[k, j]
            slack -= c[k, j] * w[k, j]
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
    """Subtract a subgradient of lam sum_g cost_g ||w_g|| from u, in place, so that ||u|| is least.

    groups : GroupArrays; the sum is over groups g0 to g1 - 1
    w : (K, A) coefficients; u : (K, A) negative gradient of the loss at w, changed
    dual : (K, members) each group's part of the subgradient, side by side; updated
    tol : precision of these parts, relative to the smallest cost_g"""
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
