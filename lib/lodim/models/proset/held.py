"""Held-out rows: their scores by the prototypes so far."""

import numpy as np

from lodim.models.proset.kernels.cpu import CLASSES
from lodim.models.proset.prototypes import class_scores, one_hot, prior, sums


class HeldOut:
    """Running sums over the prototypes for the rows of a batch.

    q (n, K): unnormalized probabilities of Eq. 2.6; of a numeric response (1 + sum_j w_j G_j,
    sum_j w_j G_j y_j).
    """

    def __init__(self, batch, training):
        self._batch, self._training = batch, training
        base = batch.offset_matrix(training.family.n_scores)
        self._base = base
        if training.loss == CLASSES:
            self._q = prior(training.level, base, training.n_classes)
        else:
            self._q = np.column_stack([np.ones(batch.n), np.zeros(batch.n)])

    def add(self, part):
        """Add a batch of prototypes."""
        values = one_hot(part) if part.loss == CLASSES else moments(part)
        batch = self._batch
        self._q = self._q + sums(part, values, batch.X, batch.n, self._training.threads)

    def score(self):
        """Link scores, (n, n_scores)."""
        t = self._training
        if t.loss == CLASSES:
            return class_scores(self._q, t.family.n_scores)
        return self._base + t.level + t.scale * (self._q[:, 1:] / self._q[:, :1])


def moments(prototypes):
    """One and the target of each prototype, (M, 2)."""
    return np.column_stack([np.ones(len(prototypes)), prototypes.y])
