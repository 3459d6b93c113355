"""What can classify in a view beside its densities: nearest neighbours, or an estimator given.

It learns from coordinates Z (n, k) with classes code (n,) and weights (n,), and gives the
logarithms of the classes' probabilities up to a constant, (n, C).
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.errors import ArgumentError
from lodim.models.melm import neighbours
from lodim.models.melm.neighbours import Neighbours

RAREST = 1e-12  # least probability that an estimator's class is given


def sample(code, most, seed):
    """Rows to keep, increasing: all, or `most` of them with the shares of the classes kept."""
    n = len(code)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(code[order], kind="stable")]
    return np.sort(order[np.linspace(0, n - 1, most).round().astype(int)])


@dataclass(frozen=True)
class Nearest:
    """The votes of the nearest training rows.

    known : Neighbours; count of them that vote; prior (C,), which counts as one vote more
    """

    known: Neighbours
    count: int
    prior: np.ndarray

    @classmethod
    def learn(cls, Z, code, weight, count, equal):
        """From coordinates (m, k); `equal` gives all classes the same prior probability."""
        size = np.bincount(code, weight)
        prior = np.full(len(size), 1.0 / len(size)) if equal else size / size.sum()
        known = neighbours.learn(Z, code, weight, equal=equal)
        return cls(known, int(min(count, len(Z))), prior)

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        own, m = self.known, len(self.known.U)
        shapes = own.U.shape == (m, k) and own.code.shape == own.weight.shape == (m,)
        if not (shapes and own.into.shape == (k, k) and self.prior.shape == (n_classes,)):
            raise ValueError("the neighbours do not fit the view")
        if not (m and own.code.dtype.kind == "i" and 1 <= self.count <= m):
            raise ValueError("the number of neighbours is not possible")
        if own.code.min() < 0 or own.code.max() != n_classes - 1 or not np.isfinite(own.U).all():
            raise ValueError("a neighbour has a place or a class that is not there")

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        if not len(Z):
            return np.zeros((0, len(self.prior)))
        return self._scores(neighbours.nearest(self.known, Z, self.count))

    def left_out(self, Z):
        """Scores of the training rows themselves, (m, k), each without its own vote, (m, C)."""
        return self._scores(neighbours.others(self.known, Z, self.count))

    def _scores(self, near):
        count = near.shape[1]
        share = neighbours.votes(self.known, near) if count else 0.0
        return np.log((count * share + self.prior) / (count + 1.0)) + np.zeros((len(near), 1))


@dataclass(frozen=True)
class Estimator:
    """An estimator with predict_proba, fitted to coordinates and codes."""

    estimator: Any
    classes: np.ndarray
    n_classes: int

    @classmethod
    def learn(cls, estimator, Z, code, weight, n_classes):
        """A copy of the estimator, fitted; weights are passed on where rows differ in them."""
        own = deepcopy(estimator)
        arguments = {}
        if (weight != weight[0]).any():
            arguments["sample_weight"] = weight
        try:
            own.fit(Z, code, **arguments)
        except TypeError as error:
            if not arguments:
                raise
            raise ArgumentError(
                f"the classifier {type(own).__name__} takes no weights: {error}"
            ) from error
        return cls(own, np.asarray(getattr(own, "classes_", np.arange(n_classes))), n_classes)

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        out = np.full((len(Z), self.n_classes), np.log(RAREST))
        if len(Z):
            share = np.asarray(self.estimator.predict_proba(Z), np.float64)
            out[:, self.classes.astype(int)] = np.log(np.clip(share, RAREST, 1.0))
        return out
