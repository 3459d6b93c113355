"""The estimate of a row taken apart into what the null model and each prototype bring, Eq. 2.4."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import tiles
from lodim.models.proset.kernels.cpu import CLASSES
from lodim.models.proset.prototypes import one_hot, prior, sums


@dataclass(frozen=True)
class Mixture:
    """shift + (prior + sum_j W_j targets_j) / (1 + sum_j W_j), W_j = w_j G_j(x), for n rows.

    Classes: the prior is p0, a target one where a prototype is of the class. Numbers: the shift is
    the null model's mean (with each row's offset), a target the distance from it.

    shift, prior : (n, K); targets : (M, K)
    """

    shift: np.ndarray
    prior: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, prototypes, base):
        """The mixture of rows with an offset, base (n, n_scores)."""
        if prototypes.loss == CLASSES:
            p0 = prior(prototypes.level, base, prototypes.n_classes)
            return cls(np.zeros_like(p0), p0, one_hot(prototypes))
        shift = prototypes.level + base
        return cls(shift, np.zeros_like(shift), prototypes.scale * prototypes.y[:, None])

    def estimate(self, total, mass):
        """Estimates (n, K) from sum_j W_j targets_j (n, K) and sum_j W_j (n,)."""
        return self.shift + (self.prior + total) / (1.0 + mass)[:, None]


def sums_at(prototypes, x, threads):
    """sum_j W_j targets_j and sum_j W_j at points x (n, A) of the active features alone."""
    targets = Mixture.of(prototypes, np.zeros((1, len(prototypes.level)))).targets
    narrow = replace(prototypes, features=np.arange(x.shape[1]))
    values = np.column_stack([targets, np.ones(len(prototypes))])
    S = sums(narrow, values, tiles.pack(x), len(x), threads)
    return S[:, :-1], S[:, -1]
