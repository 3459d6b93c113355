"""Answers to queries: which of the selected views serves a row, and what it says there.

Fiterau (2014), Eq. 2.11 for classes, the neighbours' views for numbers (Sect. 2.2.2). The rows of
an ensemble can be asked too, each without itself.
"""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import experts
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS

FLOOR = 1e-4  # distances below count as this one
ABSENT = 30.0  # log ratio of a class that has no row with all features of a view
ENTRIES = 2**22  # of a block of distances


@dataclass(frozen=True, eq=False)
class Answers:
    """What the views say of m rows.

    view : (m,) the view that serves each row, -1 where none is complete
    said : (m, r) what each view says: a class code, a number, or NaN
    loss : (m, r) how well it can tell, the lower the better; infinite where it is not complete. Of
        numbers: one less the share that it has in the row's neighbours
    score : (m, K) link scores in the view that serves the row, NaN where none does
    """

    view: np.ndarray
    said: np.ndarray
    loss: np.ndarray
    score: np.ndarray


def ask(e, X=None):
    """Answers for rows X (m, a), the features of the ensemble; for its own rows without X."""
    made = {CLASSES: _classes, CLUSTERS: _clusters}.get(e.task, _numbers)(e, X)
    return experts.instead(e, made, e.X if X is None else X) if e.experts else made


def nearest(e, j, X, k, own=False):
    """Positions (m, k') and distances of the k nearest known training rows in view j.

    `own` : X are the ensemble's rows, which are not their own neighbours. Rows X that miss a
    feature of the view have -1 and infinite distances.
    """
    at, refs = e.columns(j), _references(e, j)
    k = min(k, len(refs) - own)
    where, far = np.full((len(X), max(k, 0)), -1), np.full((len(X), max(k, 0)), np.inf)
    if k < 1:
        return where, far
    for rows, D in _distances(X[:, at], e.X[refs][:, at]):
        if own:
            D[rows[:, None] == refs] = np.inf
        first = np.argpartition(D, k - 1, axis=1)[:, :k]
        d = np.take_along_axis(D, first, axis=1)
        order = np.lexsort((first, d), axis=1)
        where[rows] = refs[np.take_along_axis(first, order, axis=1)]
        far[rows] = np.take_along_axis(d, order, axis=1)
    return where, far


@dataclass(frozen=True, eq=False)
class Evidence:
    """For the classes, of every row and view, (m, r, K).

    ratio : dim log(nu_k(own class) / nu_k(other classes)), infinite where a view is not complete or
        has nothing to compare with
    vote : log of the share that the class has among the k nearest rows, one of each class added
    """

    ratio: np.ndarray
    vote: np.ndarray

    @property
    def least(self):
        """(m, r) smallest ratio of the classes."""
        return self.ratio.min(axis=2, initial=np.inf)

    def scores(self, scale):
        """(m, r, K) log probabilities but for their sum."""
        return scale[1] * self.vote - scale[0] * np.minimum(self.ratio, ABSENT)


def evidence(e, X=None):
    """The Evidence of rows X (m, a), or of the ensemble's own, each without itself."""
    own, X = X is None, e.X if X is None else X
    shape = (len(X), len(e), e.n_classes)
    ratio, vote = np.full(shape, np.inf), np.full(shape, -np.log(e.n_classes))
    for j in range(len(e)):
        at, refs = e.columns(j), _references(e, j)
        codes, weight = e.y[refs].astype(int), e.weight[refs]
        weight = weight / weight.mean() if len(weight) else weight
        for rows, D in _distances(X[:, at], e.X[refs][:, at]):
            if own:
                D[rows[:, None] == refs] = np.inf
            vote[rows, j] = _votes(D, codes, weight, e.k, e.n_classes)
            for c in range(e.n_classes):
                near, far = (_kth(D[:, of], e.k) for of in (codes == c, codes != c))
                both = np.isfinite(near) & np.isfinite(far)
                log = len(at) * np.log(near[both] / far[both])
                ratio[rows[both], j, c] = log + e.prior[c]
    return Evidence(ratio, vote)


def _votes(D, codes, weight, k, K):
    """Log shares of the classes among the k nearest, (m, K)."""
    if not D.shape[1]:
        return np.full((len(D), K), -np.log(K))
    k = min(k, D.shape[1])
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    weight = np.where(np.isfinite(np.take_along_axis(D, near, axis=1)), weight[near], 0.0)
    votes = 1.0 + np.array([(weight * (codes[near] == c)).sum(axis=1) for c in range(K)]).T
    return np.log(votes / votes.sum(axis=1, keepdims=True))


def _classes(e, X):
    """The view of the smallest ratio, Eq. 2.11; in it, the class of the largest score."""
    known = evidence(e, X)
    least = known.least
    view, scores = _first(least), known.scores(e.scale)
    said = np.full(least.shape, np.nan)
    at = np.isfinite(least)
    said[at] = scores[at].argmax(axis=1)
    z = np.full((len(scores), e.n_classes), np.nan)
    z[view >= 0] = scores[view >= 0, view[view >= 0]]
    score = z[:, 1:] - z[:, :1] if e.n_classes == 2 else z
    return Answers(view, said, np.exp(e.power * least), score)


def _numbers(e, X):
    """The view with the largest weighted assignment among the row's neighbours in it."""
    own, X = X is None, e.X if X is None else X
    said, loss = np.full((len(X), len(e)), np.nan), np.full((len(X), len(e)), np.inf)
    for j in range(len(e)):
        where, far = nearest(e, j, X, e.k, own)
        known = (where >= 0).all(axis=1) if where.shape[1] else np.zeros(len(X), bool)
        w = 1.0 / np.maximum(far[known], FLOOR)
        w /= w.sum(axis=1, keepdims=True)
        said[known, j] = (w * e.y[where[known]]).sum(axis=1)
        loss[known, j] = 1.0 - (w * e.B[where[known], j]).sum(axis=1)
    view = _first(loss)
    score = np.full((len(X), 1), np.nan)
    score[view >= 0, 0] = said[view >= 0, view[view >= 0]]
    return Answers(view, said, loss, score)


def _clusters(e, X):
    """The view in which a row has many rows near, beside a uniform sample."""
    own, X = X is None, e.X if X is None else X
    loss = np.full((len(X), len(e)), np.inf)
    for j in range(len(e)):
        at, refs = e.columns(j), _references(e, j)
        for rows, D in _distances(X[:, at], e.X[refs][:, at]):
            if own:
                D[rows[:, None] == refs] = np.inf
            loss[rows, j] = _kth(D, e.k)
        for rows, D in _distances(X[:, at], e.uniform[:, at]):
            loss[rows, j] = (loss[rows, j] / _kth(D, e.k)) ** (len(at) * e.power)
    said = np.full(loss.shape, np.nan)
    return Answers(_first(loss), said, loss, np.zeros((len(X), 0)))


def _first(loss):
    """Position of the smallest in each row, -1 where all are infinite."""
    if not loss.shape[1]:
        return np.full(len(loss), -1)
    return np.where(np.isfinite(loss).any(axis=1), loss.argmin(axis=1), -1)


def _references(e, j):
    """Training rows that have all features of view j, count, and are labelled."""
    known = (e.weight > 0) & np.isfinite(e.X[:, e.columns(j)]).all(axis=1)
    return np.flatnonzero(known if e.task == CLUSTERS else known & np.isfinite(e.y))


def _distances(X, references):
    """(positions, distances) of the rows of X that have all features, block by block."""
    complete = np.flatnonzero(np.isfinite(X).all(axis=1))
    step = max(1, ENTRIES // max(1, len(references)))
    for start in range(0, len(complete), step):
        rows = complete[start : start + step]
        D = np.zeros((len(rows), len(references)))
        for x, r in zip(X[rows].T, references.T, strict=True):
            D += (x[:, None] - r) ** 2
        yield rows, np.sqrt(D)


def _kth(D, k):
    """k-th smallest of each row, of fewer finite ones the largest, and FLOOR at least."""
    if not D.shape[1]:
        return np.full(len(D), np.inf)
    at = min(k, D.shape[1]) - 1
    out = np.partition(D, at, axis=1)[:, at]
    few = np.isinf(out)
    if few.any():
        most = np.where(np.isfinite(D[few]), D[few], -np.inf).max(axis=1)
        out[few] = np.where(most < 0, np.inf, most)
    return np.maximum(out, FLOOR)
