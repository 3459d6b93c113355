"""The perspective relaxation of least squares on a support, and its cuts."""

from dataclasses import dataclass

import numpy as np

SAFE = 1.0 - 1e-9  # of the diagonal that is split off, against rounding


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The mean square of a model as a convex function of shares z in [0, 1] of its columns.

    With gram = rest + diag(split), rest positive semidefinite, and the target b,

        F(z) = min over w of null + w'rest w + sum_j split_j w_j^2 / z_j - 2 b'w

    is convex, and the deviance of the support's own least squares where z is 0 or 1 (Günlük and
    Linderoth 2010). A split near the variance that a column has beside all others makes it tight.

    rest : (q, q); split : (q,); target : (q,); null : deviance without a column
    """

    rest: np.ndarray
    split: np.ndarray
    target: np.ndarray
    null: float

    @classmethod
    def of(cls, gram, target, null):
        """The relaxation of columns with a Gram matrix (q, q) and target (q,), centred."""
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 1e-12 * values[-1:].max(initial=0.0))
        split = 1.0 / np.maximum(((vectors / values) * vectors).sum(axis=1), 1e-300)
        root = np.sqrt(split)
        least = np.linalg.eigvalsh(gram / np.outer(root, root))[:1].max(initial=0.0)
        split = split * max(least * SAFE - 1e-12, 0.0)
        return cls(gram - np.diag(split), split, target, float(null))

    @property
    def vacuous(self):
        """Whether collinear columns leave nothing to split off."""
        return not len(self.split) or self.split.min() <= 1e-10 * np.diag(self.rest).max()

    def solve(self, z):
        """The coefficients w at shares z, (q,)."""
        root = np.sqrt(z)
        inner = self.rest * np.outer(root, root)
        inner[np.diag_indices_from(inner)] += self.split
        return root * np.linalg.solve(inner, root * self.target)

    def cut(self, w):
        """(c, h (q,)) with F(z) >= c - h'z for all z, whatever w (q,) is; best that of a near z."""
        slope = self.rest @ w - self.target
        return self.null - w @ self.rest @ w, slope**2 / self.split
