"""Penalties from which prototype sets are (nearly) the null model."""

import numpy as np

from lodim.models.proset.kernels.cpu import SQUARED
from lodim.models.proset.training import Training


def largest_v(batch, family, settings):
    """A feature weight of 0.3, below which kernels are nearly flat, costs the whole null loss."""
    training = Training(batch, family, settings)
    loss = training.weight @ training.losses(training.a, training.b)
    least = 0.3
    cost = 0.5 * (1.0 - settings.l1_ratio_v) * least**2 + settings.l1_ratio_v * least
    return float(max(loss / cost, 1e-8))


def largest_w(batch, family, settings):
    """The slope of the loss by a prototype's weight, at weights zero, is at most its L1 penalty.

    For classes the slope is at most sum_i weight_i (1 / p0 - 1) over the rows of one class, so
    below one; for squares at most 2 mean |y| max |y|. Under a ridge alone a share of 0.01 stands
    for its part.
    """
    training = Training(batch, family, settings)
    bound = 1.0
    if training.loss == SQUARED:
        size = np.abs(training.y)
        bound = 2.0 * float(training.weight @ size) * float(size.max())
    return max(1.000001 * bound, 1e-8) / max(settings.l1_ratio_w, 0.01)
