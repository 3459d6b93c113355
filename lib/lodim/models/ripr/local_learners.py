"""Local learners: a user's estimator, fitted to the rows assigned to each feature set."""

import copy
import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS

RAREST = 1e-6  # smallest probability of a class by an estimator
KINDS = {  # scikit-learn's types of estimators, by task
    CLASSES: ("classifier",),
    NUMBERS: ("regressor",),
    CLUSTERS: ("clusterer", "density_estimator"),
}
RESPONSES = {CLASSES: "has classes", NUMBERS: "is numeric", CLUSTERS: "is none"}


@dataclass(frozen=True)
class ConstantLearner:
    """Learner that predicts one value, for a feature set with rows of one class only."""

    value: float

    def predict(self, X):
        return np.full(len(X), self.value)


@dataclass(frozen=True)
class ClusterLearner:
    """User's clustering estimator, whose `labels` of clusters, sorted, become 0, 1, ...."""

    estimator: Any
    labels: np.ndarray

    def predict(self, X):
        """Return the numbers of clusters (m,); NaN for a label that no training row has."""
        label = np.asarray(self.estimator.predict(X))
        at = np.minimum(np.searchsorted(self.labels, label), len(self.labels) - 1)
        return np.where(self.labels[at] == label, at, np.nan)


def check_kind(learner, task):
    """Raise an ArgumentError if the estimator's type does not suit the task."""
    kind = getattr(learner, "_estimator_type", None)
    if kind is None and hasattr(learner, "__sklearn_tags__"):
        kind = learner.__sklearn_tags__().estimator_type
    if kind is not None and kind not in KINDS[task]:
        raise ArgumentError(
            f"learner must be a {KINDS[task][0]}, as the response {RESPONSES[task]}; {learner!r} "
            f"is a {kind}"
        )


def fit_local_learners(e, learner):
    """Return the ensemble e (feature sets, training rows) with an estimator per feature set."""
    e = replace(e, local_learners=tuple(_fit(e, j, learner) for j in range(len(e))))
    return _with_centres(e) if e.task == CLUSTERS else e


def _with_centres(e):
    """Return the ensemble e with the centre (mean) of each cluster of the user's estimators."""
    centres, of = [], []
    for j, local in enumerate(e.local_learners):
        at, rows = e.columns(j), _rows(e, j)
        label = local.predict(e.X[rows][:, at])
        for q in np.unique(label):
            own = rows[label == q]
            mean = np.average(e.X[own][:, at], axis=0, weights=e.weight[own])
            centres.append(np.pad(mean, (0, e.views.shape[1] - len(at)), constant_values=np.nan))
            of.append(j)
    centres = np.array(centres).reshape(-1, e.views.shape[1])
    return replace(e, centres=centres, centre_view=np.array(of, np.int64))


def _rows(e, j):
    """Return positions of the rows of feature set j with positive weight and known response."""
    of = (e.assigned_view == j) & (e.weight > 0)
    return np.flatnonzero(of if e.task == CLUSTERS else of & np.isfinite(e.y))


def _fit(e, j, learner):
    """Return a copy of the user's estimator, fitted to rows and features of feature set j."""
    at, of = e.columns(j), _rows(e, j)
    X, y = e.X[of][:, at], e.y[of]
    if not len(X) or (e.task == CLASSES and len(np.unique(y)) == 1):
        return ConstantLearner(y[0] if len(X) else np.nan if e.task == CLUSTERS else 0.0)
    local = copy.deepcopy(learner)  # the user's estimator is not changed
    rows = (X,) if e.task == CLUSTERS else (X, y.astype(int) if e.task == CLASSES else y)
    weight = e.weight[of]
    more = {}
    if (weight != weight[0]).any():
        if "sample_weight" not in inspect.signature(local.fit).parameters:
            raise ArgumentError(
                f"weights= needs a learner that accepts sample_weight; {learner!r} does not"
            )
        more = {"sample_weight": weight}
    try:
        local = local.fit(*rows, **more)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{type(learner).__name__} could not be fitted to the {len(X)} rows of a view: {error}"
        ) from error
    if e.task != CLUSTERS:
        return local
    return ClusterLearner(local, np.unique(np.asarray(local.predict(X))))


def learner_answers(e, answers, X):
    """Return predictions (Answers) for rows X (m, a) by the user's estimators of the feature sets.

    `answers` are the predictions by neighbours, which still choose the feature set of each row."""
    value = np.full(answers.value.shape, np.nan)
    score = np.full_like(answers.score, np.nan)
    for j, local in enumerate(e.local_learners):
        known = np.flatnonzero(np.isfinite(answers.loss[:, j]))
        if not len(known):
            continue
        at = X[known][:, e.columns(j)]
        serves = answers.view[known] == j
        if e.task == CLASSES:
            p = _probabilities(e, j, local, at)
            value[known, j] = p.argmax(axis=1)
            p = p[serves]
            score[known[serves]] = np.log(p[:, 1:] / p[:, :1]) if e.n_scores == 1 else np.log(p)
            continue
        value[known, j] = np.asarray(local.predict(at), float)
        if score.shape[1]:
            score[known[serves], 0] = value[known[serves], j]
    at = np.take_along_axis(value, np.maximum(answers.view, 0)[:, None], axis=1)[:, 0]
    code = np.where((answers.view >= 0) & np.isfinite(at), at, -1.0).astype(np.int64)
    return replace(answers, value=value, score=score, code=code)


def _probabilities(e, j, estimator, X):
    """Return class probabilities (m, K) of rows X by the user's estimator of feature set j.

    They are at least 1e-6. Without predict_proba, the predicted class gets the accuracy on the
    estimator's training rows."""
    p = np.zeros((len(X), e.n_classes))
    if hasattr(estimator, "predict_proba"):
        p[:, np.asarray(estimator.classes_, int)] = estimator.predict_proba(X)
    else:
        right = _share_right(e, j, estimator)
        p += (1.0 - right) / (e.n_classes - 1)
        p[np.arange(len(X)), _codes(e, estimator, X)] = right
    p = np.maximum(p, RAREST)
    return p / p.sum(axis=1, keepdims=True)


def _share_right(e, j, estimator):
    """Return the accuracy on its training rows of the estimator of feature set j.

    It is (right + 1) / (rows + number of classes), so that it is neither 0 nor 1."""
    of = _rows(e, j)
    hits = (_codes(e, estimator, e.X[of][:, e.columns(j)]) == e.y[of]).sum() if len(of) else 0
    return (hits + 1.0) / (len(of) + e.n_classes)


def _codes(e, estimator, X):
    """Return the class codes that a user's fitted estimator predicts for rows X, (m,)."""
    code = np.asarray(estimator.predict(X))
    wrong = code[~np.isin(code, np.arange(e.n_classes))]
    if len(wrong):
        raise ArgumentError(
            f"learner must predict classes as codes 0 to {e.n_classes - 1}, not {wrong[0]!s}"
        )
    return code.astype(int)


def describe(learner: Any) -> str:
    """Return the name of a user's estimator for printed reports."""
    return "k-NN" if learner is None else type(learner).__name__
