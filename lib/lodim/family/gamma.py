"""Positive amounts: gamma deviance with a log link."""

from dataclasses import dataclass

import numpy as np

from lodim.family.family import LARGEST_LOG
from lodim.family.power import PowerVariance


@dataclass(frozen=True)
class Gamma(PowerVariance):
    """Family of positive numbers with variance proportional to the squared mean mu; log link.

    The deviance is 2 ((y - mu) / mu - log(y / mu))."""

    name: str = "gamma"
    loss: str = "gamma deviance"
    power: float = 2.0
    support = "numbers above 0"
    dispersed = True
    canonical = False

    @staticmethod
    def contains(y):
        return y > 0.0

    def saturated(self, y):
        return 1.0 + np.log(y)

    def deviance(self, y, score):
        log_ratio = np.log(y) - score[:, 0]
        return 2.0 * (np.expm1(np.minimum(log_ratio, LARGEST_LOG)) - log_ratio)
