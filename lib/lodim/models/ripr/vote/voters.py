"""Votes of the nearest rows in the views, and their differences from the mean."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.models.ripr.kernels import FALLING
from lodim.models.ripr.neighbours import Neighbours

PRIOR_ROWS = 2.0  # of the shares of all rows (or of their mean), which join those of a vote


@dataclass(frozen=True, eq=False)
class Voters:
    """The rows that vote.

    A : (n, q) places on axes, NaN where missing
    category_distance : (q,), see `Axes.category_distance`
    target : (n, C) indicators of the classes, or the response less its mean in units of its spread
    weight : (n,) in units of their mean
    prior : (C,) mean of the target
    mean, spread : of a numeric response
    """

    A: np.ndarray
    category_distance: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    prior: np.ndarray
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of_classes(cls, A, category_distance, y, weight, n_classes):
        """Voters of classes y (n,), codes."""
        weight = weight / weight.mean()
        target = (y[:, None] == np.arange(n_classes)).astype(np.float64)
        prior = np.maximum(np.einsum("i,ic->c", weight, target) / weight.sum(), 1e-12)
        return cls(A, category_distance, target, weight, prior)

    @classmethod
    def of_numbers(cls, A, category_distance, y, weight):
        """Voters of numbers y (n,), in units of their standard deviation from their mean."""
        weight = weight / weight.mean()
        mean = weight @ y / weight.sum()
        spread = np.sqrt(weight @ (y - mean) ** 2 / weight.sum()) or 1.0
        target = ((y - mean) / spread)[:, None]
        return cls(A, category_distance, target, weight, np.zeros(1), float(mean), float(spread))

    def at(self, rows):
        """These rows alone, with the prior of all."""
        return replace(self, A=self.A[rows], target=self.target[rows], weight=self.weight[rows])

    @property
    def goal(self):
        """Targets with doubt: of classes `smoothed_targets`, which no sure answer attains."""
        if not self.classes:
            return self.target
        return smoothed_targets(self.target.argmax(axis=1), self.target.shape[1])

    @property
    def classes(self):
        """Whether the target are classes."""
        return self.target.shape[1] > 1

    def sums(self, views, k, Q=None, threads=1):
        """Sums (views, m, C + 1) of weighted targets, and of weights, over the k nearest rows.

        For rows Q (m, q), or for the voters, each left out.
        """
        values = self.weight[:, None] * np.column_stack([self.target, np.ones(len(self.A))])
        near = Neighbours.among(Q, self.A, self.category_distance)
        return near.sums(views, k, values, FALLING, threads)

    def evidence(self, sums):
        """Convert sums (..., C + 1) to differences from the prior, (..., C): log ratios or numbers.

        The prior joins as PRIOR_ROWS rows; zeros where nobody votes.
        """
        total = sums[..., -1:] + PRIOR_ROWS
        if not self.classes:
            return sums[..., :-1] / total
        return np.log((sums[..., :-1] / self.prior + PRIOR_ROWS) / total)


def smoothed_targets(code, n_classes):
    """Return targets (m, K): the row's class, less one row in n + 2 shared by the others."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out
