"""Amounts of which some are zero: Tweedie deviance with a log link."""

from dataclasses import dataclass

import numpy as np

from lodim.family.family import LARGEST_LOG
from lodim.family.power import PowerVariance


@dataclass(frozen=True)
class Tweedie(PowerVariance):
    """Family of amounts of which some are zero; variance proportional to mu^p, 1 < p < 2; log link.

    The deviance is 2 (y^(2-p) / ((1-p)(2-p)) - y mu^(1-p) / (1-p) + mu^(2-p) / (2-p))."""

    power: float
    name: str = "tweedie"
    loss: str = "Tweedie deviance"
    support = "amounts, 0 or more"
    dispersed = True
    canonical = False

    @property
    def label(self):
        return f"tweedie of power {self.power:g}"

    def saturated(self, y):
        p = self.power
        return y ** (2.0 - p) / ((2.0 - p) * (p - 1.0))

    def deviance(self, y, score):
        p, s = self.power, np.clip(score[:, 0], -LARGEST_LOG, LARGEST_LOG)
        fitted = np.exp((2.0 - p) * s) / (2.0 - p) + y * np.exp((1.0 - p) * s) / (p - 1.0)
        return np.maximum(2.0 * (fitted - self.saturated(y)), 0.0)
