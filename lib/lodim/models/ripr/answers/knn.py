"""Which view answers a query, and what it says: Fiterau (2014), Eq. 2.11 and Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from lodim.engine.blocks import for_blocks
from lodim.models.ripr import kernels, ties
from lodim.models.ripr.losses import (
    ClassGroups,
    by_base,
    default_k,
    sample_groups,
    single,
    sorted_by,
    uniform_references,
)
from lodim.models.ripr.views import features, rows_by_content

SLACK = 1e-6  # distances that differ by this share are equal


@dataclass(frozen=True)
class Answer:
    """What some views say of numbers.

    view : (q,) int, position of the view that answers; -1 where no view is complete
    value : (q,) number, NaN where none
    share : (q, views) weighted shares of neighbours that a view serves, NaN where not complete
    """

    view: np.ndarray
    value: np.ndarray
    share: np.ndarray


def class_ratios(
    Q, X, y, views, k=None, *, n_classes=None, balanced=False, counts=None, leave_out=False,
    threads=1,
):  # fmt: skip
    """log (nu_k(X of the class) / nu_k(X of the others))^|view|, (q, d*, K).

    Parameters
    ----------
    Q : array (q, p)
        Queries; X itself with `leave_out=True`, where no row is its own neighbour.
    X, y, views, k, n_classes, balanced, counts, threads
        As for `losses.class_losses`.
    """
    groups = ClassGroups.of(y, n_classes, balanced, counts)
    k = k or default_k(groups.counts.sum())
    inside = np.zeros((len(Q), len(groups.members)), np.int64)
    if leave_out:
        inside = groups.inside(np.arange(len(X)))
    return _log_ratios(Q, X, groups, inside, views, k, threads)


def cluster_ratios(Q, X, views, k=None, *, seed=0, counts=None, leave_out=False, threads=1):
    """log (nu_k(X) / nu_k(uniform sample))^|view|, (q, d*, 1); as for `losses.cluster_losses`."""
    rows = np.arange(len(X)) if counts is None else np.flatnonzero(counts)
    both = uniform_references(X, rows, seed)
    inside = np.zeros((len(Q), 2), np.int64)
    if leave_out:
        Q, inside[rows, 0] = both[: len(X)], 1
    groups = sample_groups(len(X), rows)
    return _log_ratios(Q, both, groups, inside, views, k or default_k(len(rows)), threads)


def _log_ratios(Q, references, groups, inside, views, k, threads):
    rows, refs = single(Q, references)
    starts = np.cumsum([0, *map(len, groups.members)])
    fixed = (rows, groups.own, groups.other, groups.prior, inside)

    def kernel(out, some, sizes, base):
        args = (out, some, sizes, *fixed, sorted_by(refs, groups.members, base), starts, k)
        for_blocks(kernels.label_ratios, len(some), *args, threads=threads)

    out = by_base(kernel, (len(Q), len(groups.own)), views, refs)
    return out.transpose(1, 0, 2)


def nearest_view(ratios):
    """The view with the smallest ratio of any label, Eq. 2.11: (q,), -1 where none is complete.

    ratios (q, views, labels); of views that are tied the first.
    """
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.least(smallest), -1)


def neighbours(Q, X, view, k, *, like=None, leave_out=False):
    """The k nearest rows in a view: distances and positions, (q, k) each.

    Rows without all features of the view are nobody's neighbours; queries without them, and places
    beyond the number of neighbours, have infinite distances and position -1. With `leave_out` Q is
    X, and no row is its own neighbour. Of rows tied at the k-th distance, as many as there is room
    for are taken evenly in the order of `like` (n,), such as their responses: they are represented
    as all of them would be, and the order of the rows in X has no say.
    """
    f = features(view)
    whole, known = (np.flatnonzero(~np.isnan(Z[:, f]).any(axis=1)) for Z in (Q, X))
    distance, position = np.full((len(Q), k), np.inf), np.full((len(Q), k), -1)
    d, at = _sorted(Q, X, f, k, whole, known, leave_out)
    tied, near = _rim(d, k)
    if len(tied):
        order = known[rows_by_content(X[known], None if like is None else like[known])]
        own = whole if leave_out else np.full(len(whole), -1)
        among = (Q[np.ix_(whole, f)], X[:, f], order, own)
        kernels.fill_ties(tied, near, *among, d[:, k - 1], SLACK, at[:, :k])
    width = min(k, d.shape[1])
    distance[whole, :width], position[whole, :width] = d[:, :width], at[:, :width]
    return distance, position


def votes(Q, X, view, k, values, *, leave_out=False):
    """Sums of values (n, m) over the k nearest rows in a view, (q, m); zeros where there are none.

    Rows tied at the k-th distance share the places that are left. Arguments as for `neighbours`.
    """
    f = features(view)
    whole, known = (np.flatnonzero(~np.isnan(Z[:, f]).any(axis=1)) for Z in (Q, X))
    d, at = _sorted(Q, X, f, k, whole, known, leave_out)
    tied, near = _rim(d, k)
    out, total = np.zeros((len(Q), values.shape[1])), np.zeros((len(whole), values.shape[1]))
    for place in at[:, :k].T:
        total += values[place]
    if len(tied):
        own = whole if leave_out else np.full(len(whole), -1)
        among = (Q[np.ix_(whole, f)], X[:, f], known, own)
        kernels.share_ties(tied, near, *among, d[:, k - 1], SLACK, values, at[:, :k], total)
    out[whole] = total
    return out


def _sorted(Q, X, f, k, whole, known, leave_out):
    """Distances and positions of the k + 1 nearest of the `known` rows, or of as many as there are,
    for queries that are `whole`.
    """
    wanted = min(k + 1 + leave_out, len(known))
    if not len(whole) or not wanted:
        return np.empty((len(whole), 0)), np.empty((len(whole), 0), np.int64)
    d, at = cKDTree(X[np.ix_(known, f)]).query(Q[np.ix_(whole, f)], np.arange(1, wanted + 1))
    at = known[at]
    if leave_out:
        keep = _without(at, whole)
        d, at = (z[keep].reshape(len(whole), wanted - 1) for z in (d, at))
    return d, at


def _rim(d, k):
    """Which queries have further rows at the k-th distance, and of all how many rows are nearer."""
    if d.shape[1] <= k:
        return np.empty(0, np.int64), np.zeros(len(d), np.int64)
    reach = d[:, k - 1 : k]
    tied = np.flatnonzero(d[:, k:] <= reach * (1.0 + SLACK))
    return tied, (d < reach * (1.0 - SLACK)).sum(axis=1)


def _without(at, rows):
    """Which places to keep: not the row itself, or the last where ties have pushed it out."""
    own = at == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return ~own


def number_answer(near, y, B, *, weight=None):
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
    Answer
    """
    weight = np.ones(len(y)) if weight is None else weight
    q = len(near[0][0]) if near else 0
    share, value = np.full((2, q, len(near)), np.nan)
    for j, (distance, at) in enumerate(near):
        w = weight[at] / np.maximum(distance, _floor(distance))
        total, mine = w.sum(axis=1), w * B[at, j]
        beside = y[at] - y[at[:, :1]]  # neighbours that agree are repeated to the last digit
        served, plain = mine.sum(axis=1), (w * beside).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share[:, j] = served / total
            own = (mine * beside).sum(axis=1) / served
            value[:, j] = y[at[:, 0]] + np.where(served > 0.0, own, plain / total)
    known = np.isfinite(share).any(axis=1)
    view = np.where(known, ties.least(-np.where(np.isnan(share), -1.0, share)), -1)
    picked = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return Answer(view, np.where(known, picked, np.nan), share)


def _floor(distance):
    """What distances (q, k) count as at least, (q, 1): a share of the farthest of a row."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
