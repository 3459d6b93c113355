"""Votes of the nearest rows in feature sets, and the evidence that they give."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.models.ripr.kernels import FALLING
from lodim.models.ripr.neighbours import Neighbours

PRIOR_ROWS = 2.0  # rows with the prior shares (or mean) that are added to a vote


@dataclass(frozen=True, eq=False)
class Voters:
    """Training rows that vote: a row is predicted by the mean target of its nearest voters.

    A : (n, q) values on the axes (numbers or codes of a factor's levels), NaN if missing
    category_distance : (q,) squared distance of two levels of a factor, zero for a number
    target : (n, C) indicators of the classes, or the standardized response
    weight : (n,) relative to their mean
    prior : (C,) mean of the target
    mean, spread : mean and standard deviation of a numeric response"""

    A: np.ndarray
    category_distance: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    prior: np.ndarray
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of_classes(cls, A, category_distance, y, weight, n_classes):
        """Return the Voters (training rows that vote) for class codes y (n,)."""
        weight = weight / weight.mean()
        target = (y[:, None] == np.arange(n_classes)).astype(np.float64)
        prior = np.maximum(np.einsum("i,ic->c", weight, target) / weight.sum(), 1e-12)
        return cls(A, category_distance, target, weight, prior)

    @classmethod
    def of_numbers(cls, A, category_distance, y, weight):
        """Return the Voters (training rows that vote) for numbers y (n,), standardized."""
        weight = weight / weight.mean()
        mean = weight @ y / weight.sum()
        spread = np.sqrt(weight @ (y - mean) ** 2 / weight.sum()) or 1.0
        target = ((y - mean) / spread)[:, None]
        return cls(A, category_distance, target, weight, np.zeros(1), float(mean), float(spread))

    def at(self, rows):
        """Return the Voters at positions `rows`, with the mean target (prior) of all rows."""
        return replace(self, A=self.A[rows], target=self.target[rows], weight=self.weight[rows])

    @property
    def goal(self):
        """Targets of the loss: for classes smoothed, so that no target is exactly 0 or 1."""
        if not self.classes:
            return self.target
        return smoothed_targets(self.target.argmax(axis=1), self.target.shape[1])

    @property
    def classes(self):
        """Whether the targets are classes."""
        return self.target.shape[1] > 1

    def sums(self, views, k, Q=None, threads=1):
        """Return sums (views, m, C + 1) of weighted targets and of weights over k nearest rows.

        In each view (feature set), for rows Q (m, q); without Q for the voters, each left out."""
        values = self.weight[:, None] * np.column_stack([self.target, np.ones(len(self.A))])
        near = Neighbours.among(Q, self.A, self.category_distance)
        return near.sums(views, k, values, FALLING, threads)

    def evidence(self, sums):
        """Return the evidence (..., C) from sums (..., C + 1) of targets and weights of neighbours.

        It is the log ratio of the mean target to the prior, or their difference for numbers. The
        prior is added as two rows."""
        total = sums[..., -1:] + PRIOR_ROWS
        if not self.classes:
            return sums[..., :-1] / total
        return np.log((sums[..., :-1] / self.prior + PRIOR_ROWS) / total)


def smoothed_targets(code, n_classes):
    """Return targets (m, K): classes, with 1 / (n + 2) shared by the other classes.

    n is the number of rows of the class; targets of 0 and 1 would allow infinite scores."""
    doubt = 1.0 / (np.bincount(code, minlength=n_classes)[code] + 2.0)
    out = np.repeat((doubt / max(1, n_classes - 1))[:, None], n_classes, axis=1)
    out[np.arange(len(code)), code] = 1.0 - doubt
    return out
