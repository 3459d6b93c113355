"""How well an ensemble does on its own rows."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.family import hits
from lodim.models.ripr.answers import clusters
from lodim.models.ripr.answers.answers import ask
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS


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
