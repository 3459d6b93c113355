"""Clusters in the views (sets of features): k-means of the rows assigned to each view."""

from dataclasses import replace

import numpy as np

from lodim.engine.compiled import njit
from lodim.models.ripr import ties
from lodim.models.ripr.views import rows_by_content

MOST_CLUSTERS = 8  # most clusters per view if their number is not given
STRONG = 0.85  # prediction strength of real clusters; its authors advise 0.8 to 0.9
HALVES = 10  # random divisions of the rows into halves
SAMPLE = 2000  # most rows of both halves together
STARTS, ROUNDS = 10, 100  # starts and most rounds of k-means


def fit_clusters(e, n_clusters, seed):
    """Return the ensemble e (views and training rows) with cluster centres per view, by k-means.

    A view is a set of features. If `n_clusters` is None, prediction strength (agreement of k-means
    fits to random halves of the rows) chooses the number of clusters of each view.
    """
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


def assign_clusters(e, X, answers):
    """Assign rows X (m, a) to clusters in their views (the sets of features that predict them).

    A row's cluster is that of the nearest centre, or the one that the view's local learner (a
    user's estimator) predicts. `answers` has the view of each row.

    Returns
    -------
    positions : array (m,)
        Cluster of each row; -1 without a view.
    distances : array (m,)
        Squared distance to its centre; NaN without a view.
    """
    out, squared = np.full(len(X), -1), np.full(len(X), np.nan)
    for j in range(len(e)):
        rows, own = np.flatnonzero(answers.view == j), np.flatnonzero(e.centre_view == j)
        if e.local_learners:
            rows = rows[np.isfinite(answers.value[rows, j])]
        if len(rows):
            at = e.columns(j)
            unit = _unit(e, j)
            D = _squared(X[rows][:, at] / unit, e.centres[own][:, : len(at)] / unit)
            best = answers.value[rows, j].astype(int) if e.local_learners else ties.argmin(D)
            out[rows], squared[rows] = own[best], unit**2 * D[np.arange(len(rows)), best]
    return out, squared


def cluster_names(e):
    """Return the clusters' names, such as "2.1" for the first one of the second view (feature set).

    e is the ensemble: views, training rows and cluster centres."""
    number = [np.count_nonzero(e.centre_view[: q + 1] == j) for q, j in enumerate(e.centre_view)]
    return [f"{j + 1}.{c}" for j, c in zip(e.centre_view, number, strict=True)]


def _n_clusters(X, weight, rng):
    """Return the largest number of clusters of rows X (n, d) with sufficient prediction strength.

    Prediction strength (Tibshirani and Walther 2005): k-means is fitted to two random halves of the
    rows, and the rows of one half are assigned by the centres of the other. The strength is the
    share of pairs of rows in a cluster of their own half that stay together; the weakest cluster
    counts. Strengths are averaged over both halves and several divisions. One cluster has a
    strength of one.
    """
    most = min(MOST_CLUSTERS, len(np.unique(X, axis=0)))
    strength = np.zeros((HALVES, most + 1))
    for each in strength:
        rows = rng.permutation(len(X))[:SAMPLE]
        halves = np.array_split(rows, 2)
        for c in range(2, most + 1):
            each[c] = _agreement([(X[half], weight[half]) for half in halves], c, rng)
    strong = np.flatnonzero(strength.mean(axis=0) >= STRONG)
    return int(max(strong, default=1))


def _agreement(halves, n_clusters, rng):
    """Return the mean prediction strength of clusters of two halves of the rows.

    It is the share of pairs of rows in a cluster that k-means of the other half keeps together, for
    the weakest cluster. `halves` holds rows (n, d) and weights (n,) of each half. A cluster with a
    single row has no pairs and strength zero.
    """
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
    """Return a unit of length in view j (a set of features), to decide which distances are tied.

    It is the power of two nearest to the spread of the view's features: 1 for standardized
    features. Scaling by a power of two is exact.
    """
    spread = np.sqrt(np.nanvar(e.X[e.weight > 0][:, e.columns(j)], axis=0).max())
    return 2.0 ** np.round(np.log2(spread)) if spread > 0 else 1.0


def _squared(X, centres):
    """Return the squared distances of n rows X to c cluster centres, (n, c)."""
    return ((X[:, None, :] - centres) ** 2).sum(axis=2)


# k-means -----------------------------------------------------------------------------------------


def kmeans(X, weight, n_clusters, rng):
    """Return cluster centres (c, d) with the lowest weighted sum of squares, and that sum.

    They are the best of several starts. Starts are far apart (k-means++) and followed by Lloyd's
    rounds. If a row is equally near to two centres, up to rounding, it belongs to the first.
    """
    draws = rng.random((STARTS if n_clusters > 1 else 1, n_clusters))
    rows = np.ascontiguousarray(X, np.float64)
    best, least = None, np.inf
    for u in draws:
        centres = start_apart(rows, weight, u)
        within = lloyd(rows, weight, centres)
        if within < least * (1.0 - ties.EQUAL):
            best, least = centres, within
    return best, least


@njit(cache=True, nogil=True)
def start_apart(X, weight, draws):
    """Return rows of X (n, d) as starting centres (c, d), from uniform random numbers draws (c,).

    A row is chosen with probability proportional to its weight times its squared distance to the
    nearest earlier centre; proportional to its weight if all distances are zero.
    """
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
            for i in range(n):
                mass[i] = weight[i]
    return centres


@njit(cache=True, nogil=True)
def lloyd(X, weight, centres):
    """Move the centres (c, d) by Lloyd's rounds until they settle, in place.

    Returns the weighted sum of squares of the rows X (n, d).
    """
    n, d = X.shape
    k, least = len(centres), np.inf
    squared, total, mass = np.empty(k), np.empty((k, d)), np.empty(k)
    for _ in range(ROUNDS):
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
