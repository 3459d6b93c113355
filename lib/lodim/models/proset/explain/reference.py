"""The typical training row of a fit, to compare other rows with."""

from dataclasses import dataclass

import numpy as np

from lodim.engine import tiles
from lodim.models.proset.explain.medoid import entropy, reference_point
from lodim.models.proset.kernels.cpu import CLASSES
from lodim.models.proset.mixture import Mixture, sums_at

MOST_ROWS = 20_000  # of the training data that are looked at


@dataclass(frozen=True)
class Typical:
    """The reference point of Algorithm 4.2: x (A,) standardized active features, and its label."""

    x: np.ndarray
    label: object

    @classmethod
    def of(cls, batch, prototypes, seed, threads):
        """That of the rows of a batch with a weight above zero."""
        rows = batch.positive_weight
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))
        x = tiles.rows(batch.X, rows)[:, prototypes.features].astype(np.float64)
        i = central(prototypes, x, threads)
        return cls(x[i], batch.index[batch.rows[rows[i]]])


def central(prototypes, x, threads):
    """Position of the reference point among rows x (n, A)."""
    base = np.zeros((len(x), len(prototypes.level)))
    estimate = Mixture.of(prototypes, base).estimate(*sums_at(prototypes, x, threads))
    tie = entropy(estimate) if prototypes.loss == CLASSES else np.zeros(len(x))
    return reference_point(x, estimate, tie)
