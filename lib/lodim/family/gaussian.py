"""Numbers with constant variance: squared error."""

from dataclasses import dataclass

import numpy as np

from lodim.engine.blocks import dot, sum_rows
from lodim.engine.compiled import scalar
from lodim.family.family import IdentityLink

SQUARED = 0, 0.0, 0.0, 0.0, 0.0  # format: see `losses`


@scalar
def loss_slope(y, f, weight):
    """Return the weighted loss (y - f)^2 of a row, and its derivative in the prediction f."""
    d = f - y
    return weight * d * d, weight * (d + d)


@scalar
def curvature(y, f, weight):
    """Return the second derivative of a row's weighted squared error in the prediction f."""
    return weight + weight


@dataclass(frozen=True)
class Gaussian(IdentityLink):
    """Family of numbers with constant variance; the deviance is (y - f)^2."""

    name: str = "gaussian"
    loss: str = "squared error"
    n_scores: int = 1
    dispersed = True

    def kernel_loss(self, y, weight):
        return SQUARED

    def deviance(self, y, score):
        return (y - score[:, 0]) ** 2

    def most_deviance(self, y):
        """Return the largest deviance that counts for a held-out row, (max(y) - min(y))^2."""
        return np.ptp(y) ** 2 or np.inf

    def null_intercept(self, y, weight, offset):
        return np.array([sum_rows(lambda i: dot(weight[i], y[i] - offset[i, 0]), len(y))])
