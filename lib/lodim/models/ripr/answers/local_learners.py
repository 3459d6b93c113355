"""Experts: estimators handed in, one fitted to the rows that each view serves."""

import copy
import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.ripr.answers.ensemble import CLASSES, CLUSTERS, NUMBERS

RAREST = 1e-6  # probability that an estimator may give to a class
KINDS = {  # as scikit-learn calls estimators, by task
    CLASSES: ("classifier",), NUMBERS: ("regressor",), CLUSTERS: ("clusterer", "density_estimator"),
}  # fmt: skip
RESPONSES = {CLASSES: "has classes", NUMBERS: "is numeric", CLUSTERS: "is none"}


@dataclass(frozen=True)
class Constant:
    """What is said where all rows of a view are of one class."""

    value: float

    def predict(self, X):
        """The one value."""
        return np.full(len(X), self.value)


@dataclass(frozen=True)
class Grouping:
    """Clusters of an estimator, numbered from 0 in the order of the labels of its own rows."""

    expert: Any
    labels: np.ndarray

    def predict(self, X):
        """Numbers of clusters, NaN for one that the estimator's own rows do not have."""
        label = np.asarray(self.expert.predict(X))
        at = np.minimum(np.searchsorted(self.labels, label), len(self.labels) - 1)
        return np.where(self.labels[at] == label, at, np.nan)


def check_kind(learner, task):
    """Refuse an estimator that says it is for something else; many say nothing."""
    kind = getattr(learner, "_estimator_type", None)
    if kind is None and hasattr(learner, "__sklearn_tags__"):
        kind = learner.__sklearn_tags__().estimator_type
    if kind is not None and kind not in KINDS[task]:
        raise ArgumentError(
            f"learner must be a {KINDS[task][0]}, as the response {RESPONSES[task]}; {learner!r} "
            f"is a {kind}"
        )


def fitted(e, learner):
    """The ensemble with an expert for each view, and of clusters their centres."""
    e = replace(e, experts=tuple(_fit(e, j, learner) for j in range(len(e))))
    return _centred(e) if e.task == CLUSTERS else e


def _centred(e):
    """The ensemble with the means of the rows of each cluster."""
    centres, of = [], []
    for j, expert in enumerate(e.experts):
        at, rows = e.columns(j), _rows(e, j)
        label = expert.predict(e.X[rows][:, at])
        for q in np.unique(label):
            mine = rows[label == q]
            mean = np.average(e.X[mine][:, at], axis=0, weights=e.weight[mine])
            centres.append(np.pad(mean, (0, e.views.shape[1] - len(at)), constant_values=np.nan))
            of.append(j)
    centres = np.array(centres).reshape(-1, e.views.shape[1])
    return replace(e, centres=centres, centre_view=np.array(of, np.int64))


def _rows(e, j):
    """Positions of the rows that count and that view j serves, of responses those with one."""
    of = (e.served == j) & (e.weight > 0)
    return np.flatnonzero(of if e.task == CLUSTERS else of & np.isfinite(e.y))


def _fit(e, j, learner):
    at, of = e.columns(j), _rows(e, j)
    X, y = e.X[of][:, at], e.y[of]
    if not len(X) or (e.task == CLASSES and len(np.unique(y)) == 1):
        return Constant(y[0] if len(X) else np.nan if e.task == CLUSTERS else 0.0)
    expert = copy.deepcopy(learner)  # the estimator that was handed in stays as it is
    given = (X,) if e.task == CLUSTERS else (X, y.astype(int) if e.task == CLASSES else y)
    weight = e.weight[of]
    more = {}
    if (weight != weight[0]).any():
        if "sample_weight" not in inspect.signature(expert.fit).parameters:
            raise ArgumentError(f"weights are given, and {learner!r} cannot take them")
        more = {"sample_weight": weight}
    try:
        expert = expert.fit(*given, **more)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{type(learner).__name__} could not be fitted to the {len(X)} rows of a view: {error}"
        ) from error
    if e.task != CLUSTERS:
        return expert
    return Grouping(expert, np.unique(np.asarray(expert.predict(X))))


def instead(e, answers, X):
    """Answers with what experts say; the views are still chosen by the neighbours."""
    said = np.full(answers.said.shape, np.nan)
    score = np.full_like(answers.score, np.nan)
    for j, expert in enumerate(e.experts):
        known = np.flatnonzero(np.isfinite(answers.loss[:, j]))
        if not len(known):
            continue
        at = X[known][:, e.columns(j)]
        mine = answers.view[known] == j
        if e.task == CLASSES:
            p = _probabilities(e, j, expert, at)
            said[known, j] = p.argmax(axis=1)
            p = p[mine]
            score[known[mine]] = np.log(p[:, 1:] / p[:, :1]) if e.n_scores == 1 else np.log(p)
            continue
        said[known, j] = np.asarray(expert.predict(at), float)
        if score.shape[1]:
            score[known[mine], 0] = said[known[mine], j]
    return replace(answers, said=said, score=score)


def _probabilities(e, j, expert, X):
    """Probabilities of the classes, (m, K), none below RAREST.

    An estimator that has none is believed as far as it is right on its own rows, one of each class
    added.
    """
    p = np.zeros((len(X), e.n_classes))
    if hasattr(expert, "predict_proba"):
        p[:, np.asarray(expert.classes_, int)] = expert.predict_proba(X)
    else:
        trust = _trust(e, j, expert)
        p += (1.0 - trust) / (e.n_classes - 1)
        p[np.arange(len(X)), _codes(e, expert, X)] = trust
    p = np.maximum(p, RAREST)
    return p / p.sum(axis=1, keepdims=True)


def _trust(e, j, expert):
    of = _rows(e, j)
    hits = (_codes(e, expert, e.X[of][:, e.columns(j)]) == e.y[of]).sum() if len(of) else 0
    return (hits + 1.0) / (len(of) + e.n_classes)


def _codes(e, expert, X):
    """Codes of the classes that an estimator says."""
    said = np.asarray(expert.predict(X))
    wrong = said[~np.isin(said, np.arange(e.n_classes))]
    if len(wrong):
        raise ArgumentError(
            f"learner must say classes, as codes 0 to {e.n_classes - 1}; it has said {wrong[0]!s}"
        )
    return said.astype(int)


def describe(learner: Any) -> str:
    """What a print says of an estimator."""
    return "k-NN" if learner is None else type(learner).__name__
