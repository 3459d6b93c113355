"""The rows of the classes as the objective takes them."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from lodim.engine import row_keys as keys
from lodim.engine import tiles
from lodim.models.melm.search.whitening import EMPIRICAL, estimated

LEAST = 256  # rows of a class that are kept where rows are thinned


@dataclass(frozen=True)
class Sample:
    """Rows in the coordinates searched, sorted by class.

    Z (r, n); weight (n,); start (C + 1,) first row of each class; size (C,) sums of weights; cov
    (C, r, r); order (n,) which row of the data is which; key (n,) see `keys`.
    """

    Z: np.ndarray
    weight: np.ndarray
    start: np.ndarray
    size: np.ndarray
    cov: np.ndarray
    order: np.ndarray
    key: np.ndarray

    @property
    def n_classes(self):
        """Number of classes."""
        return len(self.size)

    @cached_property
    def tiles(self):
        """The coordinates as tiles, (n_tiles, r, 64): each class begins with a new one."""
        return np.concatenate([tiles.pack(self.Z[:, lo:hi].T) for lo, hi in pairwise(self.start)])

    @classmethod
    def of(cls, X, code, weight, basis, covariance=EMPIRICAL):
        """From rows X (n, p) with classes code (n,) and weights (n,); those without weight go."""
        order = np.argsort(code, kind="stable")
        order = order[weight[order] > 0]
        C = int(code.max()) + 1
        start = np.searchsorted(code[order], np.arange(C + 1))
        white, cov = basis.into / basis.scale, []
        for c in range(C):
            rows = order[start[c] : start[c + 1]]
            own = estimated(X[rows], weight[rows], covariance, white)
            cov.append(own * np.outer(basis.scale, basis.scale))
        w = weight[order].astype(np.float64)
        size = np.add.reduceat(w, start[:-1])
        key = keys.keys(X[order], w, code[order], C)
        return cls(basis.coordinates(X[order]), w, start, size, np.stack(cov), order, key)

    def thinned(self, most, seed):
        """About `most` rows at random, as many of each class as it has a share, 256 if it has them.

        Covariances stay those of all rows.
        """
        if len(self.weight) <= most:
            return self
        rows, total = [], len(self.weight)
        for lo, hi in pairwise(self.start):
            wanted = max(LEAST, round(most * (hi - lo) / total))
            rows.append(lo + keys.drawn(self.key[lo:hi], wanted, seed))
        start = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
        rows = np.concatenate(rows)
        w = self.weight[rows]
        return replace(
            self, Z=np.ascontiguousarray(self.Z[:, rows]), weight=w, start=start,
            size=np.add.reduceat(w, start[:-1]), order=self.order[rows], key=self.key[rows],
        )  # fmt: skip


def bandwidths(size, k, gamma=1.0):
    """Silverman's rule in k dimensions, times gamma, of classes of sizes (C,): h^2."""
    return (gamma * (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * size ** (-1.0 / (k + 4.0))) ** 2
