"""Clusters: k-means in each view, of the rows that it serves."""

from dataclasses import replace

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.views import rows_by_content

STARTS, ROUNDS = 10, 100
MOST = 8  # clusters of a view that are tried where their number is open


def clustered(e, n_clusters, seed):
    """The ensemble with centres in each view; without a number, the one of each view that has the
    largest Calinski-Harabasz index.
    """
    D, centres, of = e.views.shape[1], [], []
    for j in range(len(e)):
        rows = np.flatnonzero((e.served == j) & (e.weight > 0))
        rows = rows[rows_by_content(e.X[rows])]  # starts are drawn by place
        X, weight = e.X[rows][:, e.columns(j)], e.weight[rows]
        rng = np.random.default_rng([seed, j])
        found = _best(X, weight, n_clusters, rng)
        found = found[np.lexsort(found.T[::-1])]
        centres.append(np.pad(found, ((0, 0), (0, D - found.shape[1])), constant_values=np.nan))
        of += [j] * len(found)
    return replace(e, centres=np.concatenate(centres), centre_view=np.array(of, np.int64))


def assigned(e, X, answers):
    """Cluster of each row X (m, a) in the view that serves it: (m,) positions, -1 without one; and
    squared distances to its centre, NaN there.

    The cluster of the nearest centre, or the one that the view's expert says.
    """
    out, far = np.full(len(X), -1), np.full(len(X), np.nan)
    for j in range(len(e)):
        rows, mine = np.flatnonzero(answers.view == j), np.flatnonzero(e.centre_view == j)
        if e.experts:
            rows = rows[np.isfinite(answers.said[rows, j])]
        if len(rows):
            at = e.columns(j)
            D = _squared(X[rows][:, at], e.centres[mine][:, : len(at)])
            best = answers.said[rows, j].astype(int) if e.experts else ties.least(D)
            out[rows], far[rows] = mine[best], D[np.arange(len(rows)), best]
    return out, far


def names(e):
    """Of clusters: the number of the view and, after a point, that of the cluster in it."""
    seen = np.zeros(len(e), int)
    out = []
    for j in e.centre_view:
        seen[j] += 1
        out.append(f"{j + 1}.{seen[j]}")
    return out


def _best(X, weight, n_clusters, rng):
    places = len(np.unique(X, axis=0))
    if n_clusters is not None:
        return kmeans(X, weight, min(n_clusters, places), rng)[0]
    tried = [kmeans(X, weight, c, rng) for c in range(2, min(MOST, places - 1) + 1)]
    if not tried:
        return kmeans(X, weight, 1, rng)[0]
    total = kmeans(X, weight, 1, rng)[1]
    index = [
        (total - within) / (len(c) - 1) / max(within / (len(X) - len(c)), 1e-300)
        for c, within in tried
    ]
    return tried[int(ties.least(-np.array(index) / (max(index) or 1.0)))][0]


def kmeans(X, weight, n_clusters, rng):
    """Centres (c, d) of the least weighted sum of squares of several starts, and that sum."""
    best, least = None, np.inf
    for _ in range(STARTS if n_clusters > 1 else 1):
        centres, within = _lloyd(X, weight, _spread_out(X, weight, n_clusters, rng))
        if within < least * (1.0 - ties.EQUAL):
            best, least = centres, within
    return best, least


def _spread_out(X, weight, n_clusters, rng):
    """Starts far from each other (k-means++)."""
    centres = X[[rng.choice(len(X), p=weight / weight.sum())]]
    while len(centres) < n_clusters:
        far = weight * _squared(X, centres).min(axis=1)
        chance = far / far.sum() if far.sum() > 0 else weight / weight.sum()
        centres = np.concatenate([centres, X[[rng.choice(len(X), p=chance)]]])
    return centres


def _lloyd(X, weight, centres):
    within = np.inf
    for _ in range(ROUNDS):
        D = _squared(X, centres)
        of = ties.least(D)
        now = float(weight @ D[np.arange(len(X)), of])
        if now >= within * (1.0 - ties.EQUAL):
            break
        within = now
        mass = np.bincount(of, weight, len(centres))
        moved = np.array([np.bincount(of, weight * x, len(centres)) for x in X.T]).T
        centres = np.where(mass[:, None] > 0, moved / np.maximum(mass, 1e-300)[:, None], centres)
    return centres, within


def _squared(X, centres):
    return ((X[:, None, :] - centres) ** 2).sum(axis=2)
