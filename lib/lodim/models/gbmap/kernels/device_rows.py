"""Response, weights and linear predictors of the training rows on the GPU during a fit."""

from dataclasses import dataclass
from typing import Any

from lodim.engine import tiles
from lodim.engine.cuda import upload, zeros
from lodim.models.gbmap.kernels import cuda


@dataclass(frozen=True)
class DeviceRows:
    """Training rows on the GPU, in blocks of 64; numeric responses in standard deviations.

    X, y, weight : GPU arrays of features (n_tiles, p, 64), responses (n_tiles, 64), row weights
        (n_tiles, 64); classes are coded from 0
    score : GPU array (n_tiles, K, 64) of linear predictors, updated in place
    problem : two work arrays (n_tiles, 64) for y and logit of one class against the others; None
        for one linear predictor
    sample : GPU array of the positions of the sampled rows
    """

    X: Any
    y: Any
    weight: Any
    score: Any
    problem: tuple | None
    sample: Any

    @classmethod
    def from_host(cls, X, y, weight, score, sample):
        """Copy y, weight (n,), linear predictors (n_tiles, K, 64), sample positions to the GPU."""
        y, weight = (upload(tiles.pad(v, len(X))) for v in (y, weight))
        problem = (zeros(y.shape), zeros(y.shape)) if score.shape[1] > 1 else None
        sample = None if sample is None else upload(sample)
        return cls(X, y, weight, upload(score), problem, sample)

    def margin(self, k):
        """Return the response and linear predictor k, (n_tiles, 64) each, on the GPU.

        With several classes: response 0 or 1 and logit of class k against all other classes.
        """
        if self.problem is None:
            return self.y, self.score.reshape(*self.y.shape)
        cuda.margin(self.y, self.score, k, *self.problem)
        return self.problem

    def beside(self, *columns):
        """Copy host arrays (n_tiles, 64) to the GPU."""
        return tuple(upload(v.astype(float)) for v in columns)

    def add(self, learners):
        """Add the values of learners to the linear predictors, in place."""
        shape = learners.beta, learners.activation, False
        theta, sign, into = learners.theta, learners.sign, learners.target
        cuda.add_learners(self.X, theta, sign, *shape, into, self.score)

    def sample_score(self):
        """Return the linear predictors (r, K) of the sampled rows, on the host."""
        return cuda.take(self.score, self.sample)
