"""The scoring rows and candidates of a batch, on the GPU for as long as the batch is optimized."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.engine.cuda import upload
from lodim.models.proset.kernels.cpu import loss_gradient
from lodim.models.proset.kernels.cuda import width


@dataclass(frozen=True)
class Resident:
    """What `cuda_kernels.loss_gradient` takes: only the parameters go in, only sums come out.

    X : DeviceTiles
    rows : device array (n_tiles, 4, 64) of y, a, b and weight
    candidates : device array (p + 1, J) of features and target, candidates side by side
    points : device array (p + 2, width(J)), room for those features in use times v, w and target
    """

    X: Any
    rows: Any
    candidates: Any
    points: Any

    @classmethod
    def of(cls, X, scoring, x, target):
        """From the host's arrays: a Scoring with tiles X, x (J, p) and target (J,)."""
        rows = np.stack([scoring.y, scoring.a, scoring.b, scoring.weight], axis=1)
        room = np.zeros((x.shape[1] + 2, width(len(x))), X.dtype)
        return cls(X, upload(rows), upload(np.vstack([x.T, target])), upload(room))

    def sums(self, v, w, u, active, order, loss):
        """Loss of all scoring rows, and its derivatives by u, v (D,) and w (J,)."""
        return self.X.run(
            loss_gradient, self.rows, self.candidates, self.points, v, w, u, active, order, loss
        )
