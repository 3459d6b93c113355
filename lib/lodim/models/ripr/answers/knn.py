"""Predictions by neighbours in views (sets of features): Fiterau (2014), Eq. 2.11, Sect. 2.2.2."""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import kernels, ties
from lodim.models.ripr.losses import ReferenceGroups, default_k, log_ratios, uniform_references

ABSENT = 30.0  # log ratio of a class without complete rows in a view


def class_ratios(Q, X, y, views, k=None, *, leave_out=False, threads=1, **groups):
    """Return log ratios of distances, (q, d*, K), for q query rows, d* views and K classes.

    A view is a set of features. For each class the ratio is (nu_k(rows of the class) / nu_k(rows of
    other classes))^|view|, where nu_k is the distance to the k-th nearest row and |view| the number
    of features. A small ratio speaks for the class.

    Parameters
    ----------
    Q : array (q, p)
        Query rows; X itself with `leave_out=True`, where no row is its own neighbour.
    X, y : array (n, p), array (n,)
        Training rows, and their class codes 0..K-1, -1 if unlabelled.
    views : array (d*, D)
        Positions of the features of each view, padded with -1.
    k, threads
        Number of neighbours (by default the square root of the number of labelled rows), and of
        threads.
    **groups
        n_classes (y may lack the last classes), balanced (whether class shares are removed), and
        counts (n,), which of the training rows can be neighbours.
    """
    groups = ReferenceGroups.from_classes(y, **groups)
    member = np.zeros((len(Q), len(groups.members)), np.int64)
    if leave_out:
        member = groups.membership(np.arange(len(X)))
    return log_ratios(Q, X, groups, member, views, k or default_k(groups.counts.sum()), threads)


def cluster_ratios(
    Q, X, views, volumes, k=None, *, seed=0, n_samples=1, counts=None, leave_out=False, threads=1
):
    """Return log ratios of distances, (q, d*, 1): to rows and to uniform points, for each view.

    For q query rows Q and d* views (sets of features), the ratio is (nu_k(X) / nu_k(uniform
    sample))^|view| / volume, averaged over samples. nu_k is the distance to the k-th nearest row or
    point, |view| the number of features, and `volumes` (d*,) the volume of each view's box along
    principal components. A small ratio means that rows are dense around the query row.
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
    """Return each row's view (set of features) of smallest ratio over all labels, (q,); -1 if none.

    ratios (q, views, labels) are log ratios of distances for q rows (Eq. 2.11 of Fiterau 2014). Of
    tied views the first is returned. A row has no view if it misses a feature in every view.
    """
    if not ratios.size:
        return np.full(len(ratios), -1)
    smallest = ratios.min(axis=2)
    return np.where(np.isfinite(smallest).any(axis=1), ties.argmin(smallest), -1)


@dataclass(frozen=True)
class NumberAnswers:
    """Predictions of numbers for q rows by views (sets of features).

    view : (q,) int, position of the view that predicts; -1 if no view is complete
    value : (q,) predicted number, NaN without a view
    share : (q, views) weighted share of the row's neighbours that are assigned to the view; NaN if
        the row misses a feature of it
    """

    view: np.ndarray
    value: np.ndarray
    share: np.ndarray


def number_answers(near, y, B, *, weight=None):
    """Predict numbers in the view to which most of a row's neighbours belong, by a weighted mean.

    A view is a set of features. The share of view j is (sum_i w_i B_ij) / (sum_i w_i) over the k
    nearest rows i, where w_i is one over the distance and B_ij the share of row i that is assigned
    to view j. The view with the largest share predicts (the thesis prints the smallest), by the
    mean of y weighted by w_i B_ij: rows of other views have no influence.

    Parameters
    ----------
    near : list of (distances, positions), each (q, k)
        Nearest training rows of each query row, one pair for each view.
    y : array (n,)
        Responses, all finite.
    B : array (n, views)
        Assignment of the training rows to views.
    weight : array (n,), optional
        Row weights.

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
    """Return the lower limit of each row's distances, (q, 1), which keeps 1 / distance finite.

    It is a share of the row's largest distance."""
    reach = np.where(np.isfinite(distance), distance, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return np.where(reach > 0.0, kernels.FLOOR * reach, 1.0)
