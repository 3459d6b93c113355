"""Answers to queries: which of the selected views serves a row, and what it says there.

The rows of an ensemble can be asked too, each without itself.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from lodim import forms
from lodim.family import hits
from lodim.models.ripr import ties
from lodim.models.ripr.answers import clusters, knn, local_learners
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
    return local_learners.instead(e, made, e.X if X is None else X) if e.experts else made


def nearest(e, j, X=None, k=None):
    """Distances and positions (m, k) of the k nearest known training rows in view j.

    Of the ensemble's own rows without X, each without itself. Rows that miss a feature of the view,
    and places beyond the last neighbour, have infinite distances and positions -1.
    """
    refs, own = e.references, X is None
    k = min(k or e.k, max(1, len(refs)))
    X, y = e.X if own else X, e.y[refs]
    distance, position = knn.neighbours(X, e.X[refs], e.views[j], k, like=y)
    if own:
        left_out = knn.neighbours(e.X[refs], e.X[refs], e.views[j], k, like=y, leave_out=True)
        distance[refs], position[refs] = left_out
    return distance, np.where(position >= 0, refs[position], -1)


def evidence(e, X=None, threads=1):
    """The Evidence of rows X (m, a), or of the ensemble's own, each without itself."""
    known = {"n_classes": e.n_classes, "balanced": e.balanced, "counts": e.weight > 0}
    ratio = knn.class_ratios(
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
        return knn.votes(X, e.X[refs], e.views[j], k, each)
    out = knn.votes(e.X, e.X[refs], e.views[j], k, each)
    out[refs] = knn.votes(e.X[refs], e.X[refs], e.views[j], k, each, leave_out=True)
    return out


def _classes(e, X, threads):
    """The view of the smallest ratio, Eq. 2.11; in it, the class of the largest score."""
    known = evidence(e, X, threads)
    least, scores = known.least, known.scores(e.scale)
    top = scores.max(axis=2, keepdims=True)
    scores = np.where(scores >= top - ties.EQUAL, top, scores)
    view = knn.nearest_view(known.ratio)
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
    found = knn.number_answer(near, y, e.B, **known)
    said = np.column_stack([
        knn.number_answer([pair], y, e.B[:, [j]], **known).value for j, pair in enumerate(near)
    ])  # fmt: skip
    loss = np.where(np.isnan(found.share), np.inf, 1.0 - found.share)
    return Answers(found.view, said, loss, found.value[:, None])


def _clusters(e, X, threads):
    """The view in which a row has many rows near, beside a uniform sample."""
    ratios = knn.cluster_ratios(
        e.X if X is None else X, e.X, e.views, e.k, seed=e.seed, counts=e.weight > 0,
        leave_out=X is None, threads=threads,
    )  # fmt: skip
    view = knn.nearest_view(ratios)
    said = np.full(ratios.shape[:2], np.nan)
    return Answers(view, said, np.exp(e.power * ratios[:, :, 0]), np.zeros((len(view), 0)))


# Unused views -------------------------------------------------------------------------------------


def serving(e, threads=1):
    """The ensemble of the views that serve a row; rows of the others go to those that serve them.

    Without a view its features may go, by which rows are told apart that have repeated values (see
    `sample`), and so the others are asked again.
    """
    while True:
        on = np.unique(e.served[(e.served >= 0) & (e.weight > 0)])
        if len(on) in (0, len(e)):
            return e
        e = _only(e, on)
        e = replace(e, served=ask(e, threads=threads).view)


def _only(e, on):
    """The ensemble of some of its views."""
    used = np.unique(e.views[on][e.views[on] >= 0])
    views = np.where(e.views[on] >= 0, np.searchsorted(used, e.views[on]), -1)
    B, total = e.B[:, on], e.B[:, on].sum(axis=1, keepdims=True)
    own = (e.served[:, None] == on) & (e.B.sum(axis=1, keepdims=True) > 0)
    B = np.where(total > 0, B / np.where(total > 0, total, 1.0), own)
    return replace(e, views=views, features=e.features[used], X=e.X[:, used], B=B)


# Calibration --------------------------------------------------------------------------------------


START = (0.5, 0.5)
MOST = 10.0  # of a factor, where every row is right
SWEEPS, HALVINGS = 30, 40


def calibration_factors(evidence, y, weight):
    """t (2,) >= 0 of least deviance of p = softmax(-t_0 ratio + t_1 vote), in chosen views.

    Of n rows of a class, one in n + 2 is taken to be of another, as Platt (1999) does: else rows
    that are all answered rightly would make every answer certain. The deviance is convex in t; each
    factor in turn is halved in on. START where no row has an answer.
    """
    parts, weight, code = _chosen(evidence, y, weight)
    target = targets(code, parts.shape[2])
    t = np.array(START)
    for _ in range(SWEEPS if len(code) else 0):
        before = t.copy()
        for a in (0, 1):
            t[a] = _root(parts, weight, target, t, a)
        if np.abs(t - before).max() < 1e-4:
            break
    return t


def targets(code, n_classes):
    """What a class is taken to be, (m, K): its own but for one row in n + 2, shared by the rest."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out


def _root(parts, weight, target, t, a):
    """The factor at which the slope of the deviance is zero, from 0 to MOST."""
    own = (target * parts[a]).sum(axis=1)

    def slope(value):
        z = value * parts[a] + t[1 - a] * parts[1 - a]
        return weight @ ((softmax(z, axis=1) * parts[a]).sum(axis=1) - own)

    low, high = 0.0, MOST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def _chosen(evidence, y, weight):
    """(2, m, K) evidence in the chosen views, and weights and classes of rows that have them."""
    least = evidence.least
    known = np.flatnonzero(np.isfinite(least).any(axis=1) & np.isfinite(y) & (weight > 0))
    view = ties.least(least[known]) if least.shape[1] else known
    parts = [-np.minimum(evidence.ratio[known, view], ABSENT), evidence.vote[known, view]]
    return np.array(parts), weight[known], y[known].astype(int)


# Errors of the training rows ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Record:
    """Results of the training rows, each judged without itself.

    But not by experts, which were fitted to it, nor in clusters, whose centres it has moved.

    share : (r,) of all rows, those that a view serves
    mass : (r,) of the rows of the assignment, what the view has in it
    error : (r,) of the rows that it serves: share wrong, mean squared error, or mean squared
        distance to the centre of the cluster; NaN where there are none
    n : rows; unlabelled : those without a response; blind : those without any complete view
    deviance, null_deviance : means over labelled rows, those without a view by the null model;
        of clusters, squared distances to their centres, and to the middle of a view's rows
    overall : error over the rows that a view serves
    """

    share: np.ndarray
    mass: np.ndarray
    error: np.ndarray
    n: int
    unlabelled: int
    blind: int
    deviance: float
    null_deviance: float
    overall: float

    def check(self, n, n_views):
        """Raise ValueError unless the fields fit each other, n rows and the views."""
        known = {
            "share": forms.real(n_views, least=0, most=1 + 1e-6),
            "mass": forms.real(n_views, least=0, most=1 + 1e-6),
            "error": forms.squares(n_views, nan=True), "n": forms.choice(n),
            "unlabelled": forms.whole(most=n), "blind": forms.whole(most=n),
            **dict.fromkeys(("deviance", "null_deviance", "overall"),
                            forms.squares(nan=True)),
        }  # fmt: skip
        forms.check(self, known, "record")


def record(e, family):
    """The record of an ensemble."""
    answers = ask(e)
    wrong = _wrong(e, answers)
    judged = (e.weight > 0) & np.isfinite(wrong)
    deviance, null = _deviances(e, family, answers, wrong)
    return Record(
        share=e.share, mass=e.mass,
        error=np.array([_mean(wrong, e.weight, judged & (answers.view == j))
                        for j in range(len(e))]),
        n=e.n, unlabelled=int(np.isnan(e.y).sum()) if e.task != CLUSTERS else 0,
        blind=int((answers.view < 0).sum()), deviance=deviance, null_deviance=null,
        overall=_mean(wrong, e.weight, judged),
    )  # fmt: skip


def _wrong(e, answers):
    """The error of each row in the view that a query sends it to, NaN where it is not known."""
    if e.task == CLUSTERS:
        return clusters.assigned(e, e.X, answers)[1]
    out, known = np.full(e.n, np.nan), np.flatnonzero((answers.view >= 0) & np.isfinite(e.y))
    if e.task == CLASSES:
        out[known] = 1.0 - hits(e.y[known], answers.score[known])
    else:
        out[known] = (answers.said[known, answers.view[known]] - e.y[known]) ** 2
    return out


def _deviances(e, family, answers, wrong):
    """Mean deviances of the model and of the null model."""
    if e.task == CLUSTERS:
        return _mean(wrong, e.weight, np.isfinite(wrong)), _scatter(e, answers.view)
    known = np.flatnonzero(np.isfinite(e.y) & (e.weight > 0))
    weight = e.weight[known] / e.weight[known].sum()
    null = family.null_score(e.y[known], weight, np.zeros((len(known), family.n_scores)))
    score = np.where(np.isnan(answers.score[known]), null, answers.score[known])
    return tuple(float(weight @ family.deviance(e.y[known], s)) for s in (score, null))


def _scatter(e, view):
    """Mean squared distance to the middle of the rows that each view serves."""
    total, mass = 0.0, 0.0
    for j in range(len(e)):
        of = (view == j) & (e.weight > 0)
        if of.any():
            X, w = e.X[of][:, e.columns(j)], e.weight[of]
            total += w @ ((X - w @ X / w.sum()) ** 2).sum(axis=1)
            mass += w.sum()
    return float(total / max(mass, 1e-300))


def _mean(x, weight, of):
    return float(weight[of] @ x[of] / weight[of].sum()) if of.any() else float("nan")
