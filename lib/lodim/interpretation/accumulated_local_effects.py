"""Accumulated local effects (Apley and Zhu 2020), computed from arrays."""

import numpy as np

BINS, PAIR_BINS = 40, 12  # number of intervals of a single feature, and of each feature of a pair


def edges_of(x, weight, bins):
    """Return edges of up to `bins` intervals of equal weight; a single edge if x is constant."""
    part = np.arange(bins + 1) / bins * (1.0 - 1e-12)
    weights = None if np.ptp(weight) == 0.0 else weight  # sums of equal weights would be rounded
    return np.unique(np.quantile(x, part, weights=weights, method="inverted_cdf"))


def bins_of(x, edges):
    """Return the interval (0, 1, ...) of `edges` for each x, (n,); an edge is in the lower one."""
    return np.clip(np.searchsorted(edges, x, side="left") - 1, 0, max(len(edges) - 2, 0))


def accumulate(difference, bin_of, weight, n_bins):
    """Return a feature's centred accumulated local effect at interval edges, (n_bins + 1, K).

    difference : (n, K) change of each row's predictions over its interval, or NaN
    bin_of : (n,) interval of each row, 0 to n_bins - 1"""
    # Eqs. 15 and 16 of Apley and Zhu (2020)
    total, mean = _means(difference, bin_of, weight, n_bins)
    effect = np.concatenate([np.zeros((1, difference.shape[1])), np.cumsum(mean, axis=0)])
    middle = 0.5 * (effect[1:] + effect[:-1])
    return effect - (total / max(total.sum(), 1e-300)) @ middle


def by_levels(up, down, code, weight, n_levels):
    """Return the centred accumulated local effect of ordered levels, (n_levels, K).

    up : (n, K) change of predictions to the next level, or NaN
    down : (n, K) change of predictions from the previous level, or NaN
    code : (n,) level of each row"""
    total = np.bincount(code, weight, n_levels)
    step = np.zeros((n_levels, up.shape[1]))
    for k in range(n_levels - 1):
        both = np.concatenate([up[code == k], down[code == k + 1]])
        of = np.concatenate([weight[code == k], weight[code == k + 1]])
        step[k + 1] = _means(both, np.zeros(len(both), int), of, 1)[1][0]
    effect = np.cumsum(step, axis=0)
    return effect - (total / total.sum()) @ effect


def second_order(difference, cell, weight, shape):
    """Return the centred accumulated local interaction of two features at grid points.

    difference : (n, K) second difference of predictions over each row's cell
    cell : (n, 2) each row's cell
    shape : numbers of cells; the result is (shape[0] + 1, shape[1] + 1, K)"""
    # Eqs. 17 to 20 of Apley and Zhu (2020)
    bins, K = shape[0] * shape[1], difference.shape[1]
    flat = cell[:, 0] * shape[1] + cell[:, 1]
    total, mean = _means(difference, flat, weight, bins)
    place = np.argwhere(np.ones(shape, bool)) / np.array(shape)
    empty, filled = np.flatnonzero(total == 0), np.flatnonzero(total > 0)
    for k in empty:
        mean[k] = mean[filled[((place[filled] - place[k]) ** 2).sum(axis=1).argmin()]]
    n = total.reshape(shape)
    effect = np.zeros((shape[0] + 1, shape[1] + 1, K))
    effect[1:, 1:] = mean.reshape(*shape, K).cumsum(axis=0).cumsum(axis=1)
    for axis in (0, 1):  # subtract the effects of single features
        own = np.diff(effect, axis=axis)
        across = np.moveaxis(0.5 * (_low(own, 1 - axis) + _high(own, 1 - axis)), axis, 0)
        of = np.moveaxis(n, axis, 0)
        change = (across * of[..., None]).sum(axis=1) / np.maximum(of.sum(axis=1), 1e-300)[:, None]
        first = np.concatenate([np.zeros((1, K)), np.cumsum(change, axis=0)])
        effect = effect - np.expand_dims(first, 1 - axis)
    corners = _low(_low(effect, 0), 1) + _low(_high(effect, 0), 1)
    corners = corners + _high(_low(effect, 0), 1) + _high(_high(effect, 0), 1)
    return effect - np.einsum("ab,abk->k", n, 0.25 * corners) / n.sum()


def order_of_levels(code, n_levels, others):
    """Return an order (n_levels,) of a feature's levels in which adjacent ones have similar rows.

    code : (n,) level of each row
    others : per other feature, (values (n,), number of levels or 0 if numeric)"""
    # Sect. 5 of Apley and Zhu (2020)
    distance = np.zeros((n_levels, n_levels))
    for values, size in others:
        known = np.isfinite(values)
        x = np.unique(values[known], return_inverse=True)[1]
        counts = np.zeros((n_levels, x.max(initial=-1) + 1))
        np.add.at(counts, (code[known], x), 1.0)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        shares = shares if size else np.cumsum(shares, axis=1)
        apart = np.abs(shares[:, None] - shares[None])
        distance += 0.5 * apart.sum(axis=2) if size else apart.max(axis=2, initial=0.0)
    centre = np.eye(n_levels) - 1.0 / n_levels
    first = np.linalg.eigh(-0.5 * centre @ distance**2 @ centre)[1][:, -1]
    first = np.round(first, 9)
    if (first @ (np.arange(n_levels) - 0.5 * (n_levels - 1))) < 0.0:
        first = -first
    return np.argsort(first, kind="stable")


def _means(values, group, weight, n):
    """Return each group's total weight (n,) and weighted mean (n, K) of `values` (rows, K).

    group : (rows,) 0 to n - 1. Rows with NaN are left out; a group without rows has means of 0."""
    known = np.isfinite(values).all(axis=1)
    weight = np.where(known, weight, 0.0)
    total = np.bincount(group, weight, n)
    sums = [np.bincount(group, weight * np.where(known, v, 0.0), n) for v in values.T]
    return total, np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, None]


def _low(values, axis):
    return np.take(values, range(values.shape[axis] - 1), axis)


def _high(values, axis):
    return np.take(values, range(1, values.shape[axis]), axis)
