"""Rows of the classes, as the objective of the search takes them."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from lodim.engine import row_keys, tiles
from lodim.models.melm.search.whitening import SHRUNK, class_covariance

MIN_CLASS_ROWS = 256  # smallest number of rows of a class in a sample


@dataclass(frozen=True)
class Sample:
    """Rows in the coordinates of the search (features of unit covariance within classes).

    Z, weight : (r, n) coordinates, sorted by class, and (n,) weights
    start : (C + 1,) first row of each class
    size, cov : (C,) total weights and (C, r, r) covariances of the classes
    key : (n,) number of each row, computed from its content"""

    Z: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    size: np.ndarray
    cov: np.ndarray
    key: np.ndarray

    @property
    def n_classes(self):
        """Number of classes."""
        return len(self.size)

    @cached_property
    def tiles(self):
        """Coordinates in blocks of 64 rows, (n_tiles, r, 64); each class starts a new block."""
        return np.concatenate([tiles.pack(self.Z[:, lo:hi].T) for lo, hi in pairwise(self.start)])

    @classmethod
    def from_rows(cls, X, code, weight, basis, covariance=SHRUNK):
        """Return the Sample of rows X (n, p) with classes code (n,) and positive weights (n,)."""
        order = np.argsort(code, kind="stable")
        order = order[weight[order] > 0]
        C = int(code.max()) + 1
        start = np.searchsorted(code[order], np.arange(C + 1))
        white, cov = basis.into / basis.scale, []
        for c in range(C):
            rows = order[start[c] : start[c + 1]]
            white_cov = class_covariance(
                X[rows], weight[rows], covariance, white, basis.kept, basis.added
            )
            cov.append(white_cov * np.outer(basis.scale, basis.scale))
        w = weight[order].astype(np.float64)
        size = np.add.reduceat(w, start[:-1])
        key = row_keys.keys(X[order], w, code[order], C)
        return cls(basis.coordinates(X[order]), w, start, size, np.stack(cov), key)

    def thinned(self, n_rows, seed):
        """Return a random sample of about `n_rows` rows, with at least 256 rows of each class.

        Covariances remain those of all rows."""
        if len(self.weight) <= n_rows:
            return self
        rows, total = [], len(self.weight)
        for lo, hi in pairwise(self.start):
            count = max(MIN_CLASS_ROWS, round(n_rows * (hi - lo) / total))
            rows.append(lo + row_keys.drawn(self.key[lo:hi], count, seed))
        start = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        rows = np.concatenate(rows)
        Z, w, key = np.ascontiguousarray(self.Z[:, rows]), self.weight[rows], self.key[rows]
        size = np.add.reduceat(w, start[:-1])
        return replace(self, Z=Z, weight=w, start=start, size=size, key=key)


def bandwidths(size, k, gamma=1.0):
    """Return squared bandwidths (C,): gamma times Silverman's rule in k dimensions, per class."""
    return (gamma * (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * size ** (-1.0 / (k + 4.0))) ** 2
