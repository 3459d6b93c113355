"""The map of a batch: its prototypes in the plane, Eqs. 4.1-4.4 of Ruf (2022)."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class BatchMap:
    """Doubly weighted principal components of the prototypes of one batch.

    v : (A,) feature weights, by which features are scaled (Eq. 4.1)
    centre : (A,) mean of the scaled prototypes, weighted by w (Eq. 4.2)
    axes : (A, R) directions U in decreasing order of variance, R their rank (Eq. 4.4)
    share : (R,) of the weighted variance
    """

    v: np.ndarray
    centre: np.ndarray
    axes: np.ndarray
    share: np.ndarray

    def __call__(self, x):
        """Coordinates of points x (n, A) on the first two directions, (n, 2); zero on a missing."""
        out = np.zeros((len(x), 2))
        at = (x * self.v - self.centre) @ self.axes[:, :2]
        out[:, : at.shape[1]] = at
        return out


def batch_map(x, w, v):
    """The BatchMap of prototypes x (J, A) with weights w (J,) and feature weights v (A,)."""
    Z = x * v
    centre = w @ Z / w.sum()
    # The eigenvectors of Z' W Z are the right singular vectors of W^(1/2) Z: half the digits lost.
    s, U = np.linalg.svd(np.sqrt(w)[:, None] * (Z - centre), full_matrices=False)[1:]
    rank = int((s > 1e-10 * max(s.max(initial=0.0), 1e-300)).sum())
    axes = U[:rank].T
    # A direction and its opposite are one: the largest entry is positive.
    largest = np.abs(axes).argmax(axis=0) if rank else np.zeros(0, int)
    axes = axes * np.where(axes[largest, np.arange(rank)] < 0, -1.0, 1.0)
    return BatchMap(v, centre, axes, s[:rank] ** 2 / max((s**2).sum(), 1e-300))
