"""Amounts, with a log link: gamma for positive ones, Tweedie if some are zero."""

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
