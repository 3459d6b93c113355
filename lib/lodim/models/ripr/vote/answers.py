"""Answers of an ensemble whose views vote: scores, and what each view adds to them."""

from dataclasses import replace

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.vote.neighbours import Voters
from lodim.models.ripr.vote.search import factors


def voters_of(e):
    """The Voters of an ensemble: its rows that count and have a response."""
    refs = e.references
    A, y, weight = e.X[refs], e.y[refs], e.weight[refs]
    if e.n_classes:
        return Voters.of_classes(A, e.mismatch, y.astype(np.int64), weight, e.n_classes)
    return Voters.of_numbers(A, e.mismatch, y, weight)


def evidence_of(e, voters, X=None, threads=1):
    """What each view says of rows X (m, a) beside the prior, (r, m, C).

    Of the ensemble's own rows without X, each without itself.
    """
    if X is not None:
        return voters.evidence(voters.sums(e.views, e.k, X, threads))
    refs = e.references
    out = np.zeros((len(e), e.n, voters.target.shape[1]))
    out[:, refs] = voters.evidence(voters.sums(e.views, e.k, threads=threads))
    rest = np.setdiff1d(np.arange(e.n), refs)
    if len(rest):
        out[:, rest] = voters.evidence(voters.sums(e.views, e.k, e.X[rest], threads))
    return out


def calibrated(e, threads=1):
    """The ensemble with the factor of rows left out, and the shares of views in their answers."""
    voters = voters_of(e)
    evidence, known = evidence_of(e, voters, threads=threads), complete(e, e.X)
    total = evidence[:, e.references].sum(axis=0)
    t, _ = factors(voters, np.zeros_like(total), total[None], threads)
    e = replace(e, scale=np.array([t[0], 0.0]))
    share = shares(e, voters, evidence, known)
    served = np.where(known.any(axis=1), ties.argmin(-share), -1)
    return replace(e, B=share, served=served)


def complete(e, X):
    """Which rows X (m, a) have all features of each view, (m, r)."""
    return np.column_stack([~np.isnan(X[:, e.columns(j)]).any(axis=1) for j in range(len(e))])


def scores(e, voters, evidence):
    """Link scores (m, K) of the sum of all views; rows without a view have those of the prior."""
    total = e.scale[0] * evidence.sum(axis=0)
    if not voters.classes:
        return voters.mean + voters.spread * total
    z = np.log(voters.prior) + total
    return z[:, 1:] - z[:, :1] if e.n_scores == 1 else z


def shares(e, voters, evidence, known):
    """Share (m, r) that each view has in what speaks for the answer; zeros without a view."""
    if voters.classes:
        code = codes(e, voters, evidence)
        own = np.take_along_axis(evidence, code[None, :, None], axis=2)[:, :, 0]
        for_it = (own - evidence.mean(axis=2)).T
    else:
        for_it = (evidence[:, :, 0] * np.sign(evidence[:, :, 0].sum(axis=0))).T
    for_it = np.where(known, np.maximum(for_it, 0.0), 0.0)
    for_it = np.where((for_it.max(axis=1, initial=0.0) > ties.EQUAL)[:, None], for_it, known)
    total = for_it.sum(axis=1, keepdims=True)
    return for_it / np.where(total > 0.0, total, 1.0)


def codes(e, voters, evidence):
    """The most probable class of each row, (m,)."""
    return best_class(e, np.log(voters.prior) + e.scale[0] * evidence.sum(axis=0))


def best_class(e, z):
    """The class of the largest score (m,) of z (m, K); of equal ones that of more rows."""
    return e.preferred[ties.argmin(-z[:, e.preferred])]


def says(e, voters, evidence, known):
    """What each view says by itself, (m, r): the most probable class, or a number; else NaN."""
    if voters.classes:
        each = [best_class(e, np.log(voters.prior) + own) for own in evidence]
    else:
        each = [voters.mean + voters.spread * own[:, 0] for own in evidence]
    value = np.array(each, np.float64).reshape(len(e), len(known)).T
    return np.where(known, value, np.nan)


def nearest(e, j, X, k):
    """Distances and positions (m, k) of the k voters that are nearest to rows X (m, a) in view j.

    Places without a row, and rows that miss a feature, have infinite distances and positions -1.
    """
    refs, k = e.references, min(k, len(e.references))
    distance, position = np.empty((len(X), k)), np.empty((len(X), k), np.int64)
    for i, x in enumerate(X):
        gap = distances(e, j, x, e.X[refs])
        position[i] = np.argsort(gap, kind="stable")[:k]
        distance[i] = gap[position[i]]
    return distance, np.where(np.isfinite(distance), refs[position], -1)


def distances(e, j, x, X):
    """Distances (m,) of rows X (m, a) to one x (a,) in view j; infinite where one is missing."""
    at = e.columns(j)
    gap = X[:, at] - x[at]
    square = np.where(e.mismatch[at] > 0.0, e.mismatch[at] * (gap != 0.0), gap**2)
    return np.sqrt(np.where(np.isnan(gap), np.inf, square).sum(axis=1))
