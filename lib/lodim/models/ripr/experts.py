"""Experts: estimators handed in, one fitted to the rows that each view serves."""

import copy
import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS

RAREST = 1e-6  # probability that an estimator may give to a class


@dataclass(frozen=True)
class Constant:
    """What is said where all rows of a view are of one class."""

    value: float

    def predict(self, X):
        """The one value."""
        return np.full(len(X), self.value)


def fitted(e, learner):
    """The ensemble with an expert for each view."""
    return replace(e, experts=tuple(_fit(e, j, learner) for j in range(len(e))))


def _fit(e, j, learner):
    at, of = e.columns(j), (e.served == j) & (e.weight > 0)
    if e.task != CLUSTERS:
        of &= np.isfinite(e.y)
    X, y = e.X[of][:, at], e.y[of]
    if not len(X) or (e.task == CLASSES and len(np.unique(y)) == 1):
        return Constant(y[0] if len(X) else 0.0)
    expert = copy.deepcopy(learner)  # the estimator that was handed in stays as it is
    given = (X,) if e.task == CLUSTERS else (X, y.astype(int) if e.task == CLASSES else y)
    weight = e.weight[of]
    more = {}
    if (weight != weight[0]).any():
        if "sample_weight" not in inspect.signature(expert.fit).parameters:
            raise ArgumentError(f"weights are given, and {learner!r} cannot take them")
        more = {"sample_weight": weight}
    try:
        return expert.fit(*given, **more)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{type(learner).__name__} could not be fitted to the {len(X)} rows of a view: {error}"
        ) from error


def instead(e, answers, X):
    """Answers with what experts say; the views are still chosen by the neighbours."""
    said = np.full(answers.said.shape, np.nan)
    score = np.full_like(answers.score, np.nan)
    for j, expert in enumerate(e.experts):
        known = np.flatnonzero(np.isfinite(answers.loss[:, j]))
        if not len(known):
            continue
        at = X[known][:, e.columns(j)]
        said[known, j] = np.asarray(expert.predict(at), float)
        mine = known[answers.view[known] == j]
        if e.task == CLASSES:
            p = _probabilities(e, j, expert, X[mine][:, e.columns(j)])
            score[mine] = np.log(p[:, 1:] / p[:, :1]) if e.n_classes == 2 else np.log(p)
        elif score.shape[1]:
            score[mine, 0] = said[mine, j]
    return replace(answers, said=said, score=score)


def _probabilities(e, j, expert, X):
    """Probabilities of the classes, (m, K), none below RAREST.

    An estimator that has none is believed as far as it is right on its own rows, one of each class
    added.
    """
    p = np.zeros((len(X), e.n_classes))
    if not len(X):
        return p
    if hasattr(expert, "predict_proba"):
        p[:, np.asarray(expert.classes_, int)] = expert.predict_proba(X)
    else:
        p += (1.0 - _trust(e, j, expert)) / (e.n_classes - 1)
        p[np.arange(len(X)), np.asarray(expert.predict(X), int)] = _trust(e, j, expert)
    p = np.maximum(p, RAREST)
    return p / p.sum(axis=1, keepdims=True)


def _trust(e, j, expert):
    of = (e.served == j) & (e.weight > 0) & np.isfinite(e.y)
    hits = (
        (np.asarray(expert.predict(e.X[of][:, e.columns(j)])) == e.y[of]).sum() if of.any() else 0
    )
    return (hits + 1.0) / (of.sum() + e.n_classes)


def describe(learner: Any) -> str:
    """What a print says of an estimator."""
    return "k-NN" if learner is None else type(learner).__name__
