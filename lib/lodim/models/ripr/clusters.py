"""Clusters in each view (feature set): k-means of the rows assigned to the view."""

from dataclasses import replace

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.ripr import ties
from lodim.models.ripr.views import rows_by_content


def fit_clusters(e, n_clusters, seed):
    """Cluster the rows assigned to each feature set by k-means; return the Ensemble with centres.

    e : Ensemble; n_clusters : clusters per feature set, None to choose by prediction strength"""
    D, centres, of = e.views.shape[1], [], []
    for j in range(len(e)):
        rows = np.flatnonzero((e.assigned_view == j) & (e.weight > 0))
        rows = rows[rows_by_content(e.X[rows])]  # starts depend on the order of rows
        X, weight = e.X[rows][:, e.columns(j)], e.weight[rows] / e.weight.max()
        unit = _unit(e, j)
        X = X / unit
        wanted = n_clusters or _n_clusters(X, weight, np.random.default_rng([seed, j, 1]))
        wanted = min(wanted, len(np.unique(X, axis=0)))
        each = kmeans(X, weight, wanted, np.random.default_rng([seed, j]))[0]
        each = unit * each[np.lexsort(each.T[::-1])]
        centres.append(np.pad(each, ((0, 0), (0, D - each.shape[1])), constant_values=np.nan))
        of += [j] * len(each)
    return replace(e, centres=np.concatenate(centres), centre_view=np.array(of, np.int64))


def assign_clusters(e, X, view):
    """Return each row's nearest cluster in its view (feature set), and the squared distance to it.

    e : Ensemble with centres; view : (rows,) view of each row of X; -1 (none) gives -1 and NaN"""
    out, squared = np.full(len(X), -1), np.full(len(X), np.nan)
    for j in range(len(e)):
        rows, own = np.flatnonzero(view == j), np.flatnonzero(e.centre_view == j)
        if len(rows):
            at = e.columns(j)
            unit = _unit(e, j)
            D = _squared(X[rows][:, at] / unit, e.centres[own][:, : len(at)] / unit)
            best = ties.argmin(D)
            out[rows], squared[rows] = own[best], unit**2 * D[np.arange(len(rows)), best]
    return out, squared


def cluster_names(e):
    """Return names of the clusters in an ensemble e: "2.1" is the first one in feature set 2."""
    number = [np.count_nonzero(e.centre_view[: q + 1] == j) for q, j in enumerate(e.centre_view)]
    return [f"{j + 1}.{c}" for j, c in zip(e.centre_view, number, strict=True)]


def _n_clusters(X, weight, rng):
    """Choose the number of clusters: the largest up to 8 with prediction strength 0.85 or more."""
    most = min(8, len(np.unique(X, axis=0)))
    strength = np.zeros((10, most + 1))
    for each in strength:
        rows = rng.permutation(len(X))[:2000]
        halves = np.array_split(rows, 2)
        for c in range(2, most + 1):
            each[c] = _agreement([(X[half], weight[half]) for half in halves], c, rng)
    strong = np.flatnonzero(strength.mean(axis=0) >= 0.85)  # its authors advise 0.8 to 0.9
    return int(max(strong, default=1))


def _agreement(halves, n_clusters, rng):
    """Return the mean prediction strength (Tibshirani & Walther 2005) of n_clusters clusters.

    halves : pairs (X, weight), one per half of the rows"""
    centres = [kmeans(X, weight, n_clusters, rng)[0] for X, weight in halves]
    least = []
    for (X, weight), own, other in zip(halves, centres, centres[::-1], strict=True):
        cell = n_clusters * ties.argmin(_squared(X, own)) + ties.argmin(_squared(X, other))
        size = np.bincount(cell, weight, n_clusters**2).reshape(n_clusters, n_clusters)
        itself = np.bincount(cell, weight**2, n_clusters**2).reshape(n_clusters, n_clusters)
        together = (size**2 - itself).sum(axis=1)
        pairs = size.sum(axis=1) ** 2 - itself.sum(axis=1)
        least.append((together / np.where(pairs > ties.EQUAL, pairs, np.inf)).min())
    return float(np.mean(least))


def _unit(e, j):
    """Return a power of 2 near the largest SD in view j of Ensemble e, to scale its features."""
    spread = np.sqrt(np.nanvar(e.X[e.weight > 0][:, e.columns(j)], axis=0).max())
    return 2.0 ** np.round(np.log2(spread)) if spread > 0 else 1.0


def _squared(X, centres):
    return ((X[:, None, :] - centres) ** 2).sum(axis=2)


# k-means -----------------------------------------------------------------------------------------


def kmeans(X, weight, n_clusters, rng):
    """Return centres (n_clusters, features) of the best of ten k-means, and the sum of squares."""
    draws = rng.random((10 if n_clusters > 1 else 1, n_clusters))
    rows = np.ascontiguousarray(X, np.float64)
    best, least = None, np.inf
    for u in draws:
        centres = initial_centres(rows, weight, u)
        within = lloyd(rows, weight, centres)
        if within < least * (1.0 - ties.EQUAL):
            best, least = centres, within
    return best, least


@njit(cache=True, nogil=True)
def initial_centres(X, weight, draws):
    """Return starting centres of k-means++, rows of X, one per uniform random number in `draws`."""
    n, d = X.shape
    centres, gap, mass = np.empty((draws.size, d)), np.full(n, np.inf), weight.copy()
    for c in range(draws.size):
        wanted, below, at = draws[c] * mass.sum(), 0.0, n - 1
        for i in range(n):
            below += mass[i]
            if below > wanted:
                at = i
                break
        centres[c] = X[at]
        for i in range(n):
            squared = 0.0
            for f in range(d):
                squared += (X[i, f] - centres[c, f]) ** 2
            gap[i] = min(gap[i], squared)
            mass[i] = weight[i] * gap[i]
        if mass.sum() == 0.0:
            mass[:] = weight
    return centres


@njit(cache=True, nogil=True)
def lloyd(X, weight, centres):
    """Move k-means centres (c, d) in place by Lloyd's algorithm; return the sum of squares."""
    n, d = X.shape
    k, least = len(centres), np.inf
    squared, total, mass = np.empty(k), np.empty((k, d)), np.empty(k)
    for _ in range(100):
        total[:], mass[:], within = 0.0, 0.0, 0.0
        for i in range(n):
            for c in range(k):
                squared[c] = 0.0
                for f in range(d):
                    squared[c] += (X[i, f] - centres[c, f]) ** 2
            own, reach = 0, squared.min() + ties.EQUAL
            while squared[own] > reach:
                own += 1
            within += weight[i] * squared[own]
            mass[own] += weight[i]
            total[own] += weight[i] * X[i]
        if within >= least * (1.0 - ties.EQUAL):
            break
        least = within
        for c in range(k):
            if mass[c] > 0.0:
                centres[c] = total[c] / mass[c]
    return least
