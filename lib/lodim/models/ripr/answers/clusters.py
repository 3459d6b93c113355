"""Clusters: k-means in each view, of the rows that it serves."""

from dataclasses import replace

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.views import rows_by_content

STARTS, ROUNDS = 10, 100
MOST_CLUSTERS = 8  # of a view that are tried where their number is open


def fit_clusters(e, n_clusters, seed):
    """The ensemble with centres in each view.

    Without a number, as many in each as have the largest Calinski-Harabasz index.
    """
    D, centres, of = e.views.shape[1], [], []
    for j in range(len(e)):
        rows = np.flatnonzero((e.served == j) & (e.weight > 0))
        rows = rows[rows_by_content(e.X[rows])]  # starts are drawn by place
        X, weight = e.X[rows][:, e.columns(j)], e.weight[rows]
        rng = np.random.default_rng([seed, j])
        each = _best_centres(X, weight, n_clusters, rng)
        each = each[np.lexsort(each.T[::-1])]
        centres.append(np.pad(each, ((0, 0), (0, D - each.shape[1])), constant_values=np.nan))
        of += [j] * len(each)
    return replace(e, centres=np.concatenate(centres), centre_view=np.array(of, np.int64))


def assign_clusters(e, X, answers):
    """Clusters of rows X (m, a) in the views that serve them, and squared distances to the centres.

    The cluster of the nearest centre, or the one that the view's local learner says.

    Returns
    -------
    positions : array (m,)
        -1 without a view.
    distances : array (m,)
        NaN without a view.
    """
    out, squared = np.full(len(X), -1), np.full(len(X), np.nan)
    for j in range(len(e)):
        rows, own = np.flatnonzero(answers.view == j), np.flatnonzero(e.centre_view == j)
        if e.local_learners:
            rows = rows[np.isfinite(answers.value[rows, j])]
        if len(rows):
            at = e.columns(j)
            D = _squared(X[rows][:, at], e.centres[own][:, : len(at)])
            best = answers.value[rows, j].astype(int) if e.local_learners else ties.argmin(D)
            out[rows], squared[rows] = own[best], D[np.arange(len(rows)), best]
    return out, squared


def cluster_names(e):
    """Names of the clusters, such as "2.1" for the first of the second view."""
    number = [np.count_nonzero(e.centre_view[: q + 1] == j) for q, j in enumerate(e.centre_view)]
    return [f"{j + 1}.{c}" for j, c in zip(e.centre_view, number, strict=True)]


def _best_centres(X, weight, n_clusters, rng):
    """Centres (c, d) of k-means, of as many clusters as are asked for or fit best."""
    places = len(np.unique(X, axis=0))
    if n_clusters is not None:
        return kmeans(X, weight, min(n_clusters, places), rng)[0]
    tried = [kmeans(X, weight, c, rng) for c in range(2, min(MOST_CLUSTERS, places - 1) + 1)]
    if not tried:
        return kmeans(X, weight, 1, rng)[0]
    total = kmeans(X, weight, 1, rng)[1]
    index = [
        (total - within) / (len(c) - 1) / max(within / (len(X) - len(c)), 1e-300)
        for c, within in tried
    ]
    return tried[int(ties.argmin(-np.array(index) / (max(index) or 1.0)))][0]


def kmeans(X, weight, n_clusters, rng):
    """Centres (c, d) of the least weighted sum of squares of several starts, and that sum."""
    best, least = None, np.inf
    for _ in range(STARTS if n_clusters > 1 else 1):
        centres, within = _lloyd(X, weight, _starts(X, weight, n_clusters, rng))
        if within < least * (1.0 - ties.EQUAL):
            best, least = centres, within
    return best, least


def _starts(X, weight, n_clusters, rng):
    """Starts far from each other (k-means++), (c, d)."""
    centres = X[[rng.choice(len(X), p=weight / weight.sum())]]
    while len(centres) < n_clusters:
        mass = weight * _squared(X, centres).min(axis=1)
        chance = mass / mass.sum() if mass.sum() > 0 else weight / weight.sum()
        centres = np.concatenate([centres, X[[rng.choice(len(X), p=chance)]]])
    return centres


def _lloyd(X, weight, centres):
    """Centres (c, d) that Lloyd's rounds end at, and the weighted sum of squares."""
    within = np.inf
    for _ in range(ROUNDS):
        D = _squared(X, centres)
        of = ties.argmin(D)
        new = float(weight @ D[np.arange(len(X)), of])
        if new >= within * (1.0 - ties.EQUAL):
            break
        within = new
        mass = np.bincount(of, weight, len(centres))
        moved = np.array([np.bincount(of, weight * x, len(centres)) for x in X.T]).T
        centres = np.where(mass[:, None] > 0, moved / np.maximum(mass, 1e-300)[:, None], centres)
    return centres, within


def _squared(X, centres):
    """Squared distances to the centres, (n, c)."""
    return ((X[:, None, :] - centres) ** 2).sum(axis=2)
