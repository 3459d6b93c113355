"""Predictions by neighbours in feature sets: Fiterau (2014), Eq. 2.11, Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import kernels, ties
from lodim.models.ripr.losses import ReferenceGroups, default_k, log_ratios, uniform_references

ABSENT = 30.0  # log ratio of a class without complete rows in a view


def class_ratios(Q, X, y, views, k=None, *, leave_out=False, threads=1, **groups):
    """Return log ratios of distances (q, d*, K), for query rows Q, d* views and K classes.

    The ratio of a class in a view (feature set) is (nu_k(rows of the class) / nu_k(other
    rows))^dim, where nu_k is the distance to the k-th nearest of the training rows X (n, p) with
    classes y (n,). A small ratio speaks for the class. With `leave_out`, Q is X and each row is
    left out. `groups` are the other arguments of ReferenceGroups.from_classes."""
    groups = ReferenceGroups.from_classes(y, **groups)
    member = np.zeros((len(Q), len(groups.members)), np.int64)
    if leave_out:
        member = groups.membership(np.arange(len(X)))
    return log_ratios(Q, X, groups, member, views, k or default_k(groups.counts.sum()), threads)


def cluster_ratios(
    Q, X, views, volumes, k=None, *, seed=0, n_samples=1, counts=None, leave_out=False, threads=1
):
    """Return log ratios of distances (q, d*, 1), small where rows X are dense around a row of Q.

    The ratio in a view (feature set) is (nu_k(X) / nu_k(uniform sample))^dim / volume, averaged
    over samples, where nu_k is the distance to the k-th nearest row or point. With `leave_out`, Q
    is X."""
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
    """Return the view (feature set) of smallest log ratio over all classes for each row, (q,).

    It is -1 if a row misses a feature in every view. Of tied views the first is returned."""
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.argmin(smallest), -1)


@dataclass(frozen=True)
class NumberAnswers:
    """Predictions of numbers for q rows by views (feature sets).

    view : (q,) position of the view that predicts; -1 if none
    value : (q,) predicted number, NaN without a view
    share : (q, views) weighted share of the row's neighbours that are assigned to the view"""

    view: np.ndarray
    value: np.ndarray
    share: np.ndarray


def number_answers(near, y, B, *, weight=None):
    """Predict numbers in the view (feature set) to which most of a row's neighbours belong.

    The share of view j is (sum_i w_i B_ij) / (sum_i w_i) over the k nearest rows i, where w_i is
    one over the distance and B (n, views) assigns the rows. The view with the largest share
    predicts, by the mean of y weighted by w_i B_ij. `near` has (distances, positions), each (q, k),
    per view."""
    weight = np.ones(len(y)) if weight is None else weight
    q = len(near[0][0]) if near else 0
    share, value = np.full((2, q, len(near)), np.nan)
    for j, (distance, at) in enumerate(near):
        w = weight[at] / np.maximum(distance, _distance_floor(distance))
        total, w_served = w.sum(axis=1), w * B[at, j]
        beside = y[at] - y[at[:, :1]]  # exact if all neighbours have equal y
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
    """Return the lower limit of each row's distances, (q, 1), which keeps 1 / distance finite."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
