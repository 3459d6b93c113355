"""Neighbours of a query in the views: Fiterau (2014), Eq. 2.11 and Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import kernels, ties
from lodim.models.ripr.losses import ReferenceGroups, default_k, log_ratios, uniform_references

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
    """Return the view with the smallest ratio of any label, Eq. 2.11: (q,), -1 if none is complete.

    ratios (q, views, labels); of views that are tied the first.
    """
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.argmin(smallest), -1)


@dataclass(frozen=True)
class NumberAnswers:
    """Predictions of some views for numbers.

    view : (q,) int, position of the view that answers; -1 where no view is complete
    value : (q,) number, NaN if none
    share : (q, views) weighted shares of neighbours that a view serves, NaN if incomplete
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
        `neighbours.nearest` in each view.
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
    """Return the lower limit of distances (q, k), (q, 1): a share of a row's largest."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
