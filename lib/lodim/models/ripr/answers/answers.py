"""Answers to queries: which of the selected views serves a row, and what it says there.

The rows of an ensemble can be queried too, each without itself.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from lodim import forms
from lodim.family import hits
from lodim.models.ripr import ties
from lodim.models.ripr.answers import clusters, knn, local_learners
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, MOST_SHARE
from lodim.models.ripr.settings import VOTE
from lodim.models.ripr.vote import answers as vote
from lodim.models.ripr.vote.neighbours import smoothed_targets

ABSENT = 30.0  # log ratio of a class that has no row with all features of a view


@dataclass(frozen=True, eq=False)
class Answers:
    """What r views say of m rows.

    view : (m,) the view that serves each row, -1 where none is complete
    value : (m, r) what each view says: a class code, a number, or NaN
    loss : (m, r) how well it can tell, the lower the better; infinite where it is not complete. Of
        numbers: one less the share that it has in the row's neighbours; of views that vote: one
        less the share that it has in what speaks for the answer
    score : (m, K) link scores in the view that serves the row, NaN where none does; of views that
        vote those of all, without any those of the null model
    code : (m,) class that is answered, -1 without; None of other tasks
    """

    view: np.ndarray
    value: np.ndarray
    loss: np.ndarray
    score: np.ndarray
    code: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for the classes by row and view, (m, r, K).

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


def query(e, X=None, threads=1):
    """Answers for rows X (m, a), the features of the ensemble; for its own rows without X."""
    if X is not None and not len(X):
        empty, none = np.zeros((0, len(e))), np.zeros(0, np.int64)
        return Answers(none, empty, empty, np.zeros((0, e.n_scores)), none)
    if e.serve == VOTE:
        return _query_votes(e, X, threads)
    by_task = {CLASSES: _query_classes, CLUSTERS: _query_clusters}
    answers = by_task.get(e.task, _query_numbers)(e, X, threads)
    if not e.local_learners:
        return answers
    return local_learners.learner_answers(e, answers, e.X if X is None else X)


def nearest(e, j, X=None, k=None):
    """Distances and positions (m, k) of the k nearest known training rows in view j.

    Of the ensemble's own rows without X, each without itself. Rows that miss a feature of the view,
    and places beyond the last neighbour, have infinite distances and positions -1.
    """
    refs, itself = e.references, X is None
    k = min(k or e.k, max(1, len(refs)))
    if e.serve == VOTE:
        return vote.nearest(e, j, X, k)
    X, y = e.X if itself else X, e.y[refs]
    distance, position = knn.neighbours(X, e.X[refs], e.views[j], k, like=y)
    if itself:
        left_out = knn.neighbours(e.X[refs], e.X[refs], e.views[j], k, like=y, leave_out=True)
        distance[refs], position[refs] = left_out
    return distance, np.where(position >= 0, refs[position], -1)


def evidence(e, X=None, threads=1):
    """The Evidence of rows X (m, a), or of the ensemble's own, each without itself."""
    how = {"n_classes": e.n_classes, "balanced": e.balanced, "counts": e.weight > 0}
    how |= {"leave_out": X is None, "threads": threads}
    ratio = knn.class_ratios(e.X if X is None else X, e.X, e.codes, e.views, e.k, **how)
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
    k, refs, view = k or e.k, e.references, e.views[j]
    weight = e.weight[refs] / max(e.weight[refs].mean(), 1e-300)
    values = weight[:, None] * (e.codes[refs][:, None] == np.arange(e.n_classes))
    if X is not None:
        return knn.votes(X, e.X[refs], view, k, values)
    out = knn.votes(e.X, e.X[refs], view, k, values)
    out[refs] = knn.votes(e.X[refs], e.X[refs], view, k, values, leave_out=True)
    return out


def _query_classes(e, X, threads):
    """Answers of the view with the smallest ratio, Eq. 2.11, by the class of the largest score."""
    known = evidence(e, X, threads)
    least, scores = known.least, known.scores(e.scale)
    top = scores.max(axis=2, keepdims=True)
    scores = np.where(scores >= top - ties.EQUAL, top, scores)
    view = knn.nearest_view(known.ratio)
    value = np.full(least.shape, np.nan)
    at = np.isfinite(least)
    value[at] = e.preferred[ties.argmin(-scores[at][:, e.preferred])]
    z = np.full((len(scores), e.n_classes), np.nan)
    z[view >= 0] = scores[view >= 0, view[view >= 0]]
    score = z[:, 1:] - z[:, :1] if e.n_scores == 1 else z
    code = _at_view(value, view)
    code = np.where(np.isnan(code), -1, code).astype(np.int64)
    return Answers(view, value, np.exp(e.power * least), score, code)


def _at_view(value, view):
    """Values (m,) of value (m, r) in the view that serves each row, NaN without one."""
    if not value.shape[1]:
        return np.full(len(view), np.nan)
    own = np.take_along_axis(value, np.maximum(view, 0)[:, None], axis=1)[:, 0]
    return np.where(view >= 0, own, np.nan)


def _query_votes(e, X, threads):
    """Answers by the sum of what all views say; that which says most for the answer serves."""
    voters = vote.voters_of(e)
    evidence = vote.evidence_of(e, voters, X, threads)
    known = vote.complete(e, e.X if X is None else X)
    share = vote.shares(e, voters, evidence, known)
    view = np.where(known.any(axis=1), ties.argmin(-share), -1)
    loss = np.where(known, 1.0 - share, np.inf)
    code = vote.codes(e, voters, evidence) if voters.classes else None
    says = vote.says(e, voters, evidence, known)
    return Answers(view, says, loss, vote.scores(e, voters, evidence), code)


def _query_numbers(e, X, threads):
    """Answers by the view that serves most of a row's neighbours."""
    near = [nearest(e, j, X) for j in range(len(e))]
    y = np.where(np.isfinite(e.y), e.y, 0.0)  # of rows that are nobody's neighbours
    best = knn.number_answers(near, y, e.B, weight=e.weight)
    alone = [
        knn.number_answers([pair], y, e.B[:, [j]], weight=e.weight).value
        for j, pair in enumerate(near)
    ]
    loss = np.where(np.isnan(best.share), np.inf, 1.0 - best.share)
    return Answers(best.view, np.column_stack(alone), loss, best.value[:, None])


def _query_clusters(e, X, threads):
    """Answers by the view in which a row has many rows near, beside a uniform sample."""
    how = {"seed": e.seed, "n_samples": e.n_samples, "counts": e.weight > 0}
    how |= {"leave_out": X is None, "threads": threads}
    ratios = knn.cluster_ratios(e.X if X is None else X, e.X, e.views, e.volumes, e.k, **how)
    view = knn.nearest_view(ratios)
    value = np.full(ratios.shape[:2], np.nan)
    return Answers(view, value, np.exp(e.power * ratios[:, :, 0]), np.zeros((len(view), 0)))


# Unused views ------------------------------------------------------------------------------------


def drop_unused_views(e, threads=1):
    """The ensemble of the views that serve a row; there are no clusters in the others.

    Without a view its features may go, by which rows are told apart that have repeated values (see
    `losses.uniform_references`), and so the remaining views are queried again.
    """
    while True:
        on = np.unique(e.served[(e.served >= 0) & (e.weight > 0)])
        if len(on) in (0, len(e)):
            return e
        e = _subset(e, on)
        e = replace(e, served=query(e, threads=threads).view)


def _subset(e, on):
    """The ensemble of some of its views."""
    used = np.unique(e.views[on][e.views[on] >= 0])
    views = np.where(e.views[on] >= 0, np.searchsorted(used, e.views[on]), -1)
    B, total = e.B[:, on], e.B[:, on].sum(axis=1, keepdims=True)
    by_query = (e.served[:, None] == on) & (e.B.sum(axis=1, keepdims=True) > 0)
    B = np.where(total > 0, B / np.where(total > 0, total, 1.0), by_query)
    return replace(
        e, views=views, features=e.features[used], X=e.X[:, used], B=B, volumes=e.volumes[on]
    )


# From evidence to probabilities ------------------------------------------------------------------


INITIAL_SCALE = (0.5, 0.5)
MOST_SCALE = 10.0  # of a factor, where every row is right
SWEEPS, HALVINGS = 30, 40


def calibrate(evidence, y, weight):
    """Factors t (2,) >= 0 of least deviance of p = softmax(-t_0 ratio + t_1 vote), in chosen views.

    Of n rows of a class, one in n + 2 is taken to be of another, as Platt (1999) does: else rows
    that are all answered rightly would make every answer certain. The deviance is convex in t; the
    factors are found in turn by bisection. INITIAL_SCALE where no row has an answer.
    """
    parts, weight, code = _evidence_in_chosen_view(evidence, y, weight)
    target = smoothed_targets(code, parts.shape[2])
    t = np.array(INITIAL_SCALE)
    for _ in range(SWEEPS if len(code) else 0):
        before = t.copy()
        for a in (0, 1):
            t[a] = _minimum(parts, weight, target, t, a)
        if np.abs(t - before).max() < 1e-4:
            break
    return t


def _minimum(parts, weight, target, t, a):
    """The factor a at which the slope of the deviance is zero, from 0 to MOST_SCALE."""
    observed = (target * parts[a]).sum(axis=1)

    def slope(value):
        z = value * parts[a] + t[1 - a] * parts[1 - a]
        return weight @ ((softmax(z, axis=1) * parts[a]).sum(axis=1) - observed)

    low, high = 0.0, MOST_SCALE
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def _evidence_in_chosen_view(evidence, y, weight):
    """Evidence (2, m, K) of rows that have a view and a class, with their weights and classes."""
    least = evidence.least
    known = np.flatnonzero(np.isfinite(least).any(axis=1) & np.isfinite(y) & (weight > 0))
    view = ties.argmin(least[known]) if least.shape[1] else known
    parts = [-np.minimum(evidence.ratio[known, view], ABSENT), evidence.vote[known, view]]
    return np.array(parts), weight[known], y[known].astype(int)


# Results of the training rows --------------------------------------------------------------------


@forms.record
class Record:
    """Results of the training rows, each judged without itself.

    But not by local learners, which were fitted to it, nor in clusters, whose centres it has moved.

    share : of all rows, those that a view serves
    mass : of the rows of the assignment, what the view has in it
    error : of the rows that it serves: share wrong, mean squared error, or mean squared
        distance to the centre of the cluster; NaN where there are none
    n : rows of weight above zero; unlabelled : those without a response; blind : those without any
        complete view
    deviance, null_deviance : means over labelled rows, those without a view by the null model;
        of clusters, squared distances to their centres, and to the middle of a view's rows
    overall : error over the rows that a view serves
    """

    share: np.ndarray = forms.real("r", least=0, most=MOST_SHARE)
    mass: np.ndarray = forms.real("r", least=0, most=MOST_SHARE)
    error: np.ndarray = forms.squares("r", nan=True)
    n: int = forms.whole(least=1, most="n")
    unlabelled: int = forms.whole()
    blind: int = forms.whole()
    deviance: float = forms.squares(nan=True)
    null_deviance: float = forms.squares(nan=True)
    overall: float = forms.squares(nan=True)

    def _check_fields(self):
        """Raise a ValueError unless some rows are of all."""
        if max(self.unlabelled, self.blind) > self.n:
            raise ValueError(f"the record is of {self.n} rows, and more are without an answer")


def record(e, family):
    """The Record of an ensemble."""
    answers = query(e)
    error = _errors(e, answers)
    counted = e.weight > 0
    judged = counted & np.isfinite(error)
    deviance, null_deviance = _deviances(e, family, answers, error)
    by_view = [_mean(error, e.weight, judged & (answers.view == j)) for j in range(len(e))]
    return Record(
        share=e.share,
        mass=e.mass,
        error=np.array(by_view),
        n=int(counted.sum()),
        unlabelled=int(np.isnan(e.y[counted]).sum()) if e.task != CLUSTERS else 0,
        blind=int((answers.view[counted] < 0).sum()),
        deviance=deviance,
        null_deviance=null_deviance,
        overall=_mean(error, e.weight, judged),
    )


def _errors(e, answers):
    """The error of each row in the view that a query sends it to, (n,), NaN where not known."""
    if e.task == CLUSTERS:
        return clusters.assign_clusters(e, e.X, answers)[1]
    out, known = np.full(e.n, np.nan), np.flatnonzero((answers.view >= 0) & np.isfinite(e.y))
    if e.task == CLASSES:
        out[known] = 1.0 - hits(e.y[known], answers.score[known])
    else:
        out[known] = (answers.score[known, 0] - e.y[known]) ** 2
    return out


def _deviances(e, family, answers, error):
    """Mean deviances of the model and of the null model."""
    if e.task == CLUSTERS:
        return _mean(error, e.weight, np.isfinite(error)), _scatter(e, answers.view)
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
