"""Fewer coordinates for wide data: the rows of n x p features span at most n directions."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from lodim.engine import tiles


@dataclass(frozen=True)
class Rotation:
    """An orthonormal basis V (p, r) of the span of the rows of X, and X V as tiles.

    A ridge never leaves that span, and |V u| = |u|: learners fitted to X V are those of X, at the
    price of r columns.
    """

    basis: np.ndarray
    X: np.ndarray

    def shorten(self, theta):
        """(a, intercept, w) -> (a, intercept, V'w), row by row."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis])

    def lengthen(self, theta):
        """(a, intercept, u) -> (a, intercept, V u), row by row."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis.T])


_ROTATIONS: WeakKeyDictionary = WeakKeyDictionary()  # a batch is fitted for many penalties


def rotation_of(batch):
    """The rotation of a batch, from the eigenvectors of X X'; made once for each batch."""
    rotation = _ROTATIONS.get(batch)
    if rotation is None:
        rows = tiles.unpack(batch.X, batch.n).astype(np.float64)
        values, U = np.linalg.eigh(rows @ rows.T)
        keep = values > 1e-12 * max(values[-1], 1e-300)
        basis = rows.T @ (U[:, keep] / np.sqrt(values[keep]))
        rotation = Rotation(basis, tiles.pack(rows @ basis, batch.X.dtype))
        _ROTATIONS[batch] = rotation
    return rotation
