"""Which view answers a query, and what it says: Fiterau (2014), Eq. 2.11 and Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from lodim.engine import for_blocks
from lodim.models.ripr import kernels
from lodim.models.ripr.losses import (
    ClassGroups,
    by_base,
    default_k,
    sample_groups,
    single,
    sorted_by,
)
from lodim.models.ripr.sample import references
from lodim.models.ripr.views import features, rows_by_content

SLACK = 1e-9  # distances that differ by this share are equal


@dataclass(frozen=True)
class Answer:
    """What some views say of queries.

    view : (q,) int, position of the view that answers; -1 where no view is complete
    value : (q,) class (-1 where none) or number (NaN where none)
    ratios : (q, views, labels) log ratios, infinite where a view is not complete; of regression the
        (q, views) weighted shares of neighbours that a view serves, NaN where not complete
    """

    view: np.ndarray
    value: np.ndarray
    ratios: np.ndarray


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
    both = references(X, rows, seed)
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


def answer(ratios):
    """The (view, label) with the smallest ratio: Eq. 2.11. ratios (q, views, labels)."""
    q, n_views, K = ratios.shape
    flat = ratios.reshape(q, -1)
    best = flat.argmin(axis=1) if n_views else np.zeros(q, np.int64)
    known = np.isfinite(flat).any(axis=1)
    return Answer(np.where(known, best // K, -1), np.where(known, best % K, -1), ratios)


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
    if not len(whole) or not len(known):
        return distance, position
    wanted = min(k + 1 + leave_out, len(known))
    d, at = cKDTree(X[np.ix_(known, f)]).query(Q[np.ix_(whole, f)], np.arange(1, wanted + 1))
    at = known[at]
    if leave_out:
        keep = _without(at, whole)
        d, at = (z[keep].reshape(len(whole), wanted - 1) for z in (d, at))
    if d.shape[1] > k and (d[:, k] <= d[:, k - 1] * (1.0 + SLACK)).any():
        order = known[rows_by_content(X[known], None if like is None else like[known])]
        own = whole if leave_out else np.full(len(whole), -1)
        at = _with_ties(d, at, Q[np.ix_(whole, f)], X[:, f], own, order)
    width = min(k, d.shape[1])
    distance[whole, :width], position[whole, :width] = d[:, :width], at[:, :width]
    return distance, position


def _with_ties(d, at, Q, X, own, order):
    """Positions (q, k) in which those at the k-th distance represent all rows of X (n, f) there.

    d, at (q, k + 1) are distances and positions of the nearest.
    """
    reach, out = d[:, -2], at[:, :-1].copy()
    tied = np.flatnonzero(d[:, -1] <= reach * (1.0 + SLACK))
    near = (d < (reach * (1.0 - SLACK))[:, None]).sum(axis=1)
    kernels.fill_ties(tied, near, Q, X, order, own, reach, SLACK, out)
    return out


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
    view = np.where(known, np.where(np.isnan(share), -1.0, share).argmax(axis=1), -1)
    picked = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return Answer(view, np.where(known, picked, np.nan), share)


def _floor(distance):
    """What distances (q, k) count as at least, (q, 1): a share of the farthest of a row."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
