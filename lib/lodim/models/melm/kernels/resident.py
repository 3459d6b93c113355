"""The rows of the classes, on the GPU for as long as a search lasts."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.cuda import upload
from lodim.models.melm.kernels.cpu import closest, pair_sums
from lodim.models.melm.kernels.cuda import together


@dataclass(frozen=True)
class Resident:
    """What `cuda_kernels` take beside the projections: only these go in, only sums come out.

    X : DeviceTiles of `Sample.tiles`
    weight : device array (n_tiles, 64)
    owner : device array (n_tiles,), the class of a tile
    begin : device array (C + 1,), the first tile of each class
    """

    X: Any
    weight: Any
    owner: Any
    begin: Any

    @classmethod
    def of(cls, X, sample):
        """From the host's Sample and its tiles X on the GPU."""
        counts = [tiles.count(hi - lo) for lo, hi in pairwise(sample.start)]
        weight = np.concatenate(
            [
                tiles.pad(sample.weight[lo:hi], count)
                for (lo, hi), count in zip(pairwise(sample.start), counts, strict=True)
            ]
        )
        begin = np.concatenate([[0], np.cumsum(counts)])
        return cls(X, upload(weight), upload(np.repeat(np.arange(len(counts)), counts)),
                   upload(begin))  # fmt: skip

    def together(self, C, k):
        """How many problems run together."""
        return together(len(self.X), C, k)

    def pair_sums(self, V, root, shift, totals, forces):
        """Fill totals (q, C, C), and forces (q, C, k, C r) summed over rows by feature."""
        own = self.weight, self.owner, self.begin
        totals[:], forces[:] = self.X.run(pair_sums, *own, V, root, shift)

    def closest(self, V, root, shift):
        """Fill shift (q, C, C): half the least squared distance between two classes, A < B."""
        shift[:] = self.X.run(closest, self.weight, self.owner, self.begin, V, root)
