"""Answers to queries: which of the selected views serves a row, and what it says there.

The rows of an ensemble can be asked too, each without itself.
"""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.answers import knn as query
from lodim.models.ripr.answers import local_learners as experts
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS

ABSENT = 30.0  # log ratio of a class that has no row with all features of a view


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


def ask(e, X=None, threads=1):
    """Answers for rows X (m, a), the features of the ensemble; for its own rows without X."""
    if X is not None and not len(X):
        empty = np.zeros((0, len(e)))
        return Answers(np.zeros(0, np.int64), empty, empty, np.zeros((0, e.n_scores)))
    made = {CLASSES: _classes, CLUSTERS: _clusters}.get(e.task, _numbers)(e, X, threads)
    return experts.instead(e, made, e.X if X is None else X) if e.experts else made


def nearest(e, j, X=None, k=None):
    """Distances and positions (m, k) of the k nearest known training rows in view j.

    Of the ensemble's own rows without X, each without itself. Rows that miss a feature of the view,
    and places beyond the last neighbour, have infinite distances and positions -1.
    """
    refs, own = e.references, X is None
    k = min(k or e.k, max(1, len(refs)))
    X, y = e.X if own else X, e.y[refs]
    distance, position = query.neighbours(X, e.X[refs], e.views[j], k, like=y)
    if own:
        left_out = query.neighbours(e.X[refs], e.X[refs], e.views[j], k, like=y, leave_out=True)
        distance[refs], position[refs] = left_out
    return distance, np.where(position >= 0, refs[position], -1)


def evidence(e, X=None, threads=1):
    """The Evidence of rows X (m, a), or of the ensemble's own, each without itself."""
    known = {"n_classes": e.n_classes, "balanced": e.balanced, "counts": e.weight > 0}
    ratio = query.class_ratios(
        e.X if X is None else X, e.X, e.codes, e.views, e.k, leave_out=X is None, threads=threads,
        **known,
    )  # fmt: skip
    vote = np.empty(ratio.shape)
    for j in range(len(e)):
        weights = 1.0 + votes(e, j, X)
        vote[:, j] = np.log(weights / weights.sum(axis=1, keepdims=True))
    return Evidence(ratio, vote)


def votes(e, j, X=None, k=None):
    """Weights of the classes among the k nearest rows in view j, in units of their mean, (m, K).

    Of the ensemble's own rows without X, each without itself. Rows that are tied at the k-th
    distance share the places that are left.
    """
    k, refs = k or e.k, e.references
    weight = e.weight[refs] / max(e.weight[refs].mean(), 1e-300)
    each = weight[:, None] * (e.codes[refs][:, None] == np.arange(e.n_classes))
    if X is not None:
        return query.votes(X, e.X[refs], e.views[j], k, each)
    out = query.votes(e.X, e.X[refs], e.views[j], k, each)
    out[refs] = query.votes(e.X[refs], e.X[refs], e.views[j], k, each, leave_out=True)
    return out


def _classes(e, X, threads):
    """The view of the smallest ratio, Eq. 2.11; in it, the class of the largest score."""
    known = evidence(e, X, threads)
    least, scores = known.least, known.scores(e.scale)
    top = scores.max(axis=2, keepdims=True)
    scores = np.where(scores >= top - ties.EQUAL, top, scores)
    view = query.nearest_view(known.ratio)
    said = np.full(least.shape, np.nan)
    at = np.isfinite(least)
    said[at] = e.preferred[ties.least(-scores[at][:, e.preferred])]
    z = np.full((len(scores), e.n_classes), np.nan)
    z[view >= 0] = scores[view >= 0, view[view >= 0]]
    score = z[:, 1:] - z[:, :1] if e.n_scores == 1 else z
    return Answers(view, said, np.exp(e.power * least), score)


def _numbers(e, X, threads):
    """The view that serves most of a row's neighbours."""
    near = [nearest(e, j, X) for j in range(len(e))]
    known = {"weight": e.weight}
    y = np.where(np.isfinite(e.y), e.y, 0.0)  # of rows that are nobody's neighbours
    found = query.number_answer(near, y, e.B, **known)
    said = np.column_stack([
        query.number_answer([pair], y, e.B[:, [j]], **known).value for j, pair in enumerate(near)
    ])  # fmt: skip
    loss = np.where(np.isnan(found.share), np.inf, 1.0 - found.share)
    return Answers(found.view, said, loss, found.value[:, None])


def _clusters(e, X, threads):
    """The view in which a row has many rows near, beside a uniform sample."""
    ratios = query.cluster_ratios(
        e.X if X is None else X, e.X, e.views, e.k, seed=e.seed, counts=e.weight > 0,
        leave_out=X is None, threads=threads,
    )  # fmt: skip
    view = query.nearest_view(ratios)
    said = np.full(ratios.shape[:2], np.nan)
    return Answers(view, said, np.exp(e.power * ratios[:, :, 0]), np.zeros((len(view), 0)))
