"""Numbers with outliers among them: Huber's loss."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine.blocks import dot, sum_rows
from lodim.engine.compiled import scalar
from lodim.engine.scalar_math import like
from lodim.family.family import IdentityLink
from lodim.family.quantile import weighted_quantile

HUBER = 4  # the code of the loss; its parameter is the error from which it is linear
EFFICIENT = 1.345  # that error in standard deviations: 95% efficient for normal errors
LEAST = 1e-12  # smallest limit, relative to the range of the response; smaller ones are rounding
NORMAL = 1.482602218505602  # standard deviations of normal numbers per median absolute deviation


@scalar
def loss_slope(limit, y, f, weight):
    """Return a row's weighted Huber loss, and its derivative in the prediction f.

    limit : error beyond which the loss is linear; below, it is the squared error"""
    d, c = f - y, like(limit, f)
    near = min(max(d, -c), c)
    return weight * near * (d + d - near), weight * (near + near)


@scalar
def curvature(limit, y, f, weight):
    """Return the second derivative in f of a row's weighted Huber loss; 0 if |f - y| > limit."""
    return weight + weight if abs(f - y) <= like(limit, f) else weight * like(0.0, f)


def learned_limit(y, weight):
    """Return the error from which Huber's loss is linear: 1.345 robust standard deviations of y."""
    center = weighted_quantile(y, weight, 0.5)
    apart = np.abs(y - center)
    spread = NORMAL * weighted_quantile(apart, weight, 0.5) or dot(weight, apart)
    return EFFICIENT * spread


@dataclass(frozen=True)
class Huber(IdentityLink):
    """Family of numbers with outliers: the deviance is quadratic for small errors, then linear."""

    limit: float
    name: str = "huber"
    loss: str = "Huber's loss"
    dispersed = True
    canonical = False
    m_estimation = True
    learn = staticmethod(learned_limit)

    @property
    def parameter(self):
        """Return the residual at which the loss becomes linear. It is learned from data."""
        return self.limit

    def per(self, scale):
        return replace(self, limit=self.limit / scale)

    def fitted(self, y, mean, weight):
        """Return the family with a new limit: 1.345 robust SDs of the residuals y - mean."""
        apart, weight = np.abs(y - mean), weight / weight.sum()
        median = weighted_quantile(apart, weight, 0.5) - weighted_quantile(-apart, weight, 0.5)
        limit = 0.5 * EFFICIENT * NORMAL * median
        return Huber(limit) if limit > LEAST * np.ptp(y) else self

    def bounded(self, residual):
        return np.clip(residual, -self.limit, self.limit)

    def curvature(self, y, mean):
        """Return half the deviance's second derivative: 1 if |y - mean| <= limit, else 0."""
        return (np.abs(y - mean) <= self.limit) * 1.0

    def kernel_loss(self, y, weight):
        return HUBER, 0.05, self.limit, 0.0, 0.0

    def deviance(self, y, score):
        d = np.abs(y - score[:, 0])
        near = np.minimum(d, self.limit)
        return near * (2.0 * d - near)

    def most_deviance(self, y):
        return float(self.deviance(np.ptp(y)[None], np.zeros((1, 1)))[0]) or np.inf

    def null_intercept(self, y, weight, offset):
        rest = y - offset[:, 0]
        at, low, high = weighted_quantile(rest, weight, 0.5), rest.min(), rest.max()
        for _ in range(100):

            def sums(i, at=at):
                d = rest[i] - at
                inside = np.abs(d) <= self.limit
                pull = np.clip(d, -self.limit, self.limit)
                return np.array([dot(weight[i], pull), dot(weight[i], inside * 1.0)])

            pull, inside = sum_rows(sums, len(y))
            low, high = (at, high) if pull > 0.0 else (low, at)
            moved = at + pull / max(inside, 1e-300)
            moved = moved if low <= moved <= high else 0.5 * (low + high)
            step, at = moved - at, moved
            if abs(step) <= 1e-15 * (abs(at) + self.limit):
                break
        return np.array([at])
