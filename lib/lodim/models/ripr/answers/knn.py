"""Neighbours of a query in the views: Fiterau (2014), Eq. 2.11 and Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from lodim.models.ripr import kernels, ties
from lodim.models.ripr.losses import ReferenceGroups, default_k, log_ratios, uniform_references
from lodim.models.ripr.views import features, rows_by_content

SLACK = 1e-6  # distances that differ by this share are equal
ABSENT = 30.0  # log ratio of a class that has no row with all features of a view


def class_ratios(Q, X, y, views, k=None, *, leave_out=False, threads=1, **groups):
    """log (nu_k(X of the class) / nu_k(X of the others))^|view|, (q, d*, K).

    Parameters
    ----------
    Q : array (q, p)
        Queries; X itself with `leave_out=True`, where no row is its own neighbour.
    X, y, views, k, threads
        As for `losses.class_losses`.
    **groups
        n_classes (y may lack the last), and balanced and counts as for `losses.class_losses`.
    """
    groups = ReferenceGroups.from_classes(y, **groups)
    member = np.zeros((len(Q), len(groups.members)), np.int64)
    if leave_out:
        member = groups.membership(np.arange(len(X)))
    return log_ratios(Q, X, groups, member, views, k or default_k(groups.counts.sum()), threads)


def cluster_ratios(
    Q, X, views, volumes, k=None, *, seed=0, n_samples=1, counts=None, leave_out=False, threads=1
):
    """log of (nu_k(X) / nu_k(uniform sample))^|view| / volume, (q, d*, 1), a mean of samples.

    As for `losses.cluster_losses`; volumes (d*,) are its `reference_volumes`.
    """
    rows = np.arange(len(X)) if counts is None else np.flatnonzero(counts)
    member = np.zeros((len(Q), 2), np.int64)
    if leave_out:
        member[rows, 0] = 1
    groups, k = ReferenceGroups.from_sample(len(X), rows), k or default_k(len(rows))
    total = np.zeros((len(Q), len(views), 1))
    for draw in range(n_samples):
        references = uniform_references(X, rows, seed, draw)
        own = references[: len(X)] if leave_out else Q
        total += log_ratios(own, references, groups, member, views, k, threads)
    return total / n_samples - np.log(volumes)[:, None]


def nearest_view(ratios):
    """The view with the smallest ratio of any label, Eq. 2.11: (q,), -1 where none is complete.

    ratios (q, views, labels); of views that are tied the first.
    """
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.argmin(smallest), -1)


def neighbours(Q, X, view, k, *, like=None, leave_out=False):
    """The k nearest rows in a view: distances and positions, (q, k) each.

    Rows without all features of the view are nobody's neighbours; queries without them, and places
    beyond the number of neighbours, have infinite distances and position -1. With `leave_out` Q is
    X, and no row is its own neighbour. Of rows tied at the k-th distance, as many as there is room
    for are taken evenly in the order of `like` (n,), such as their responses: they are represented
    as all of them would be, and the order of the rows in X has no say.
    """
    s = _Nearest.of_queries(Q, X, view, k, leave_out)
    distance, position = np.full((len(Q), k), np.inf), np.full((len(Q), k), -1)
    if len(s.tied):
        order = s.known[rows_by_content(X[s.known], None if like is None else like[s.known])]
        kernels.fill_ties(*s.ties(order, k), s.position[:, :k])
    width = min(k, s.distance.shape[1])
    distance[s.queries, :width] = s.distance[:, :width]
    position[s.queries, :width] = s.position[:, :width]
    return distance, position


def votes(Q, X, view, k, values, *, leave_out=False):
    """Sums of values (n, m) over the k nearest rows in a view, (q, m); zeros where there are none.

    Rows tied at the k-th distance share the places that are left. Arguments as for `neighbours`.
    """
    s = _Nearest.of_queries(Q, X, view, k, leave_out)
    out, total = np.zeros((len(Q), values.shape[1])), np.zeros((len(s.queries), values.shape[1]))
    for place in s.position[:, :k].T:
        total += values[place]
    if len(s.tied):
        kernels.share_ties(*s.ties(s.known, k), values, s.position[:, :k], total)
    out[s.queries] = total
    return out


@dataclass(frozen=True, eq=False)
class _Nearest:
    """The nearest known rows of the queries that have all features of a view, q of them.

    queries, known : positions of these queries, and of the rows that have all features
    places, columns : (q, f) and (n, f) features of the queries and of all rows
    own : (q,) position of the query itself among the rows, -1 where it is none
    distance, position : (q, k + 1), or as many as there are
    tied : which queries have further rows at the k-th distance
    nearer : (q,) number of rows nearer than that
    """

    queries: np.ndarray
    known: np.ndarray
    places: np.ndarray
    columns: np.ndarray
    own: np.ndarray
    distance: np.ndarray
    position: np.ndarray
    tied: np.ndarray
    nearer: np.ndarray

    @classmethod
    def of_queries(cls, Q, X, view, k, leave_out):
        """The nearest rows of X (n, p) for queries Q."""
        f = features(view)
        queries, known = (np.flatnonzero(~np.isnan(Z[:, f]).any(axis=1)) for Z in (Q, X))
        own = queries if leave_out else np.full(len(queries), -1)
        places, columns = Q[np.ix_(queries, f)], X.take(f, axis=1)
        d, at = _sorted(places, columns, known, k + 1, own if leave_out else None)
        return cls(queries, known, places, columns, own, d, at, *_ties(d, k))

    def ties(self, order, k):
        """The first arguments of the kernels that treat ties, which take rows in an order."""
        rows = (self.tied, self.nearer, self.places, self.columns, order, self.own)
        return (*rows, self.distance[:, k - 1], SLACK)


def _sorted(places, columns, known, wanted, own):
    """Distances and positions of the nearest `known` rows, (q, wanted) or as many as there are.

    own (q,) are positions of the queries themselves, which are left out; None where they are none.
    """
    wanted = min(wanted + (own is not None), len(known))
    if not len(places) or not wanted:
        return np.empty((len(places), 0)), np.empty((len(places), 0), np.int64)
    d, at = cKDTree(columns[known]).query(places, np.arange(1, wanted + 1))
    at = known[at]
    if own is not None:
        itself = at == own[:, None]
        itself[~itself.any(axis=1), -1] = True  # where ties have pushed it out, the last goes
        d, at = (z[~itself].reshape(len(places), wanted - 1) for z in (d, at))
    return d, at


def _ties(d, k):
    """Which queries have further rows at the k-th distance, and of all how many rows are nearer."""
    if d.shape[1] <= k:
        return np.empty(0, np.int64), np.zeros(len(d), np.int64)
    reach = d[:, k - 1 : k]
    tied = np.flatnonzero(d[:, k:] <= reach * (1.0 + SLACK))
    return tied, (d < reach * (1.0 - SLACK)).sum(axis=1)


@dataclass(frozen=True)
class NumberAnswers:
    """What some views say of numbers.

    view : (q,) int, position of the view that answers; -1 where no view is complete
    value : (q,) number, NaN where none
    share : (q, views) weighted shares of neighbours that a view serves, NaN where not complete
    """

    view: np.ndarray
    value: np.ndarray
    share: np.ndarray


def number_answers(near, y, B, *, weight=None):
    """Regression: the view whose neighbours it serves most, and their weighted mean there.

    In each view the share (sum_i w_i B_ij) / (sum_i w_i) over the k nearest rows i, w_i one over
    the distance; the view with the largest (the thesis prints the smallest) answers, by the mean of
    y weighted by w_i B_ij: rows that other views serve say nothing of this one.

    Parameters
    ----------
    near : list of (distances, positions), each (q, k)
        `neighbours` in each view.
    y : array (n,)
        Finite.
    B : array (n, views)
        Assignment of the rows.
    weight : array (n,), optional
        Weights of the rows.

    Returns
    -------
    NumberAnswers
    """
    weight = np.ones(len(y)) if weight is None else weight
    q = len(near[0][0]) if near else 0
    share, value = np.full((2, q, len(near)), np.nan)
    for j, (distance, at) in enumerate(near):
        w = weight[at] / np.maximum(distance, _distance_floor(distance))
        total, w_served = w.sum(axis=1), w * B[at, j]
        beside = y[at] - y[at[:, :1]]  # neighbours that agree are repeated to the last digit
        served, plain = w_served.sum(axis=1), (w * beside).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share[:, j] = served / total
            mean = (w_served * beside).sum(axis=1) / served
            value[:, j] = y[at[:, 0]] + np.where(served > 0.0, mean, plain / total)
    known = np.isfinite(share).any(axis=1)
    view = np.where(known, ties.argmin(-np.where(np.isnan(share), -1.0, share)), -1)
    picked = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return NumberAnswers(view, np.where(known, picked, np.nan), share)


def _distance_floor(distance):
    """What distances (q, k) count as at least, (q, 1): a share of the farthest of a row."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
