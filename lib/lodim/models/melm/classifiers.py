"""What can classify in a view beside its densities: nearest neighbours, or an estimator given.

It learns from coordinates Z (n, k) with classes code (n,) and weights (n,), and gives the
logarithms of the classes' probabilities up to a constant, (n, C).
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from lodim.errors import ArgumentError

RAREST = 1e-12  # least probability that an estimator's class is given


def priors(size, kind):
    """Logarithms of the classes' prior probabilities, (C,)."""
    return np.log(size / size.sum()) if kind == "shares" else np.full(len(size), -np.log(len(size)))


def sample(code, most, seed):
    """Rows to keep, increasing: all, or `most` of them with the shares of the classes kept."""
    n = len(code)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(code[order], kind="stable")]
    return np.sort(order[np.linspace(0, n - 1, most).round().astype(int)])


@dataclass(frozen=True)
class Neighbours:
    """The classes of the nearest training rows.

    Z (m, k); code, weight (m,); n_neighbours; prior (C,) logarithms, which count as one row more
    """

    Z: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    n_neighbours: int
    prior: np.ndarray

    @classmethod
    def learn(cls, Z, code, weight, n_neighbours, prior):
        """From coordinates; by default the root of the number of rows are neighbours."""
        n = n_neighbours or max(1, round(len(Z) ** 0.5))
        return cls(Z, code, weight, min(n, len(Z)), prior)

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        m = len(self.Z)
        fits = self.Z.shape == (m, k) and self.code.shape == self.weight.shape == (m,)
        known = m and self.code.min() >= 0 and self.code.max() < n_classes
        if not (fits and known and self.prior.shape == (n_classes,)):
            raise ValueError("the neighbours do not fit the view")
        if not 1 <= self.n_neighbours <= m or not np.isfinite(self.Z).all():
            raise ValueError("the number of neighbours, or a coordinate, is not possible")

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        if not len(Z):
            return np.zeros((0, len(self.prior)))
        return self._scores(cKDTree(self.Z).query(Z, range(1, self.n_neighbours + 1))[1])

    def left_out(self):
        """Scores of the training rows, each without itself, (m, C)."""
        most = min(self.n_neighbours + 1, len(self.Z))
        near = cKDTree(self.Z).query(self.Z, range(1, most + 1))[1]
        own = near == np.arange(len(self.Z))[:, None]
        own[~own.any(axis=1), -1] = True  # of many equal rows it need not be among the nearest
        return self._scores(near[~own].reshape(len(self.Z), most - 1))

    def _scores(self, near):
        votes = np.empty((len(near), len(self.prior)))
        for c in range(len(self.prior)):
            votes[:, c] = (self.weight[near] * (self.code[near] == c)).sum(axis=1)
        return np.log(votes + np.exp(self.prior))


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
