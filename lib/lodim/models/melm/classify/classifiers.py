"""What can classify in a view beside its densities: nearest neighbours, or an estimator given.

It learns from coordinates Z (n, k) with classes code (n,) and weights (n,), and gives the
logarithms of the classes' probabilities up to a constant, (n, C).
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim import forms
from lodim.engine import row_keys as keys
from lodim.errors import ArgumentError
from lodim.models.melm.classify import neighbours
from lodim.models.melm.classify.neighbours import Neighbours

RAREST = 1e-12  # least probability that an estimator's class is given
FEWEST = 30  # rows of a class that are kept, if it has them


def sample(Z, code, weight, most, seed):
    """Rows to keep, increasing: all, or about `most` with the shares of the classes kept.

    Of rare classes more, for a density in the k dimensions of Z (n, k).
    """
    n, k = Z.shape
    if n <= most:
        return np.arange(n)
    key = keys.keys(Z, weight, code, int(code.max()) + 1)
    least, rows = max(FEWEST, k + 1), []
    for c in np.unique(code):
        own = np.flatnonzero(code == c)
        wanted = max(least, round(most * len(own) / n))
        rows.append(own[keys.drawn(key[own], wanted, seed)])
    return np.sort(np.concatenate(rows))


@dataclass(frozen=True)
class Nearest:
    """The votes of the nearest training rows.

    known : Neighbours; count of rows that vote; prior (C,), which counts as one vote more
    """

    known: Neighbours
    count: int
    prior: np.ndarray

    @classmethod
    def learn(cls, rows, count, equal):
        """From training Rows; `equal` gives all classes the same prior probability."""
        size = rows.size
        prior = np.full(len(size), 1.0 / len(size)) if equal else size / size.sum()
        count = int(min(count, max(1.0, rows.weight.sum())))
        return cls(neighbours.learn(rows, equal=equal), count, prior)

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        own = {
            "U": forms.real("m", k), "code": forms.whole("m", most=n_classes - 1),
            "weight": forms.real("m", least=forms.TINY),
            "vote": forms.real(n_classes, least=forms.TINY), "into": forms.real(k, k),
        }  # fmt: skip
        if not forms.check(self.known, own, "neighbours")["m"]:
            raise ValueError("there are no neighbours")
        known = {"count": forms.whole(least=1), "prior": forms.real(n_classes, least=0, most=1)}
        forms.check(self, known, "neighbours")

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        return self._scores(neighbours.nearest(self.known, Z, self.count))

    def left_out(self, Z):
        """Scores of the training rows themselves, (m, k), each without its own vote, (m, C)."""
        return self._scores(neighbours.others(self.known, Z, self.count))

    def _scores(self, near):
        votes, count = neighbours.votes(self.known, near, self.count)
        return np.log((votes + self.prior) / (count + 1.0))


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
        except (TypeError, ValueError) as error:
            wrong = f"cannot be fitted to {len(Z)} rows in the view"
            if arguments and "sample_weight" in str(error):
                wrong = "takes no weights"
            raise ArgumentError(f"the classifier {type(own).__name__} {wrong}: {error}") from error
        return cls(own, np.asarray(getattr(own, "classes_", np.arange(n_classes))), n_classes)

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        out = np.full((len(Z), self.n_classes), np.log(RAREST))
        if len(Z):
            share = np.asarray(self.estimator.predict_proba(Z), np.float64)
            out[:, self.classes.astype(int)] = np.log(np.clip(share, RAREST, 1.0))
        return out
