"""Response, weights and linear predictors of the training rows on the GPU during a fit."""

from dataclasses import dataclass
from typing import Any

from lodim.engine import tiles
from lodim.engine.cuda import upload, zeros
from lodim.models.gbmap import cuda_kernels


@dataclass(frozen=True)
class DeviceRows:
    """Training rows as GPU arrays, in blocks of 64 rows."""

    X: Any  # (n_tiles, p, 64) features
    # y, weight: (n_tiles, 64) class codes, or numbers in standard deviations; row weights
    y: Any
    weight: Any
    score: Any  # (n_tiles, K, 64) linear predictors, updated in place
    # work arrays for `margin` if there are several classes, or None
    problem: tuple | None

    @classmethod
    def from_host(cls, X, y, weight, score, several_classes):
        """Return DeviceRows of columns copied to the GPU, and of features X already there.

        score : (n_tiles, K, 64) linear predictors
        several_classes : whether there are three or more classes"""
        y, weight = (upload(tiles.pad(v, len(X))) for v in (y, weight))
        # Arrays for the responses and linear predictors to fit one class.
        problem = (zeros(y.shape), zeros(y.shape)) if several_classes else None
        return cls(X, y, weight, upload(score), problem)

    def margin(self, k, class_table):
        """Return responses and linear predictors (n_tiles, 64) for fitting a learner of class k.

        class_table : (2, K) response and mean threshold of each ordered class, or (2, 0)"""
        if self.problem is None:
            return self.y, self.score.reshape(*self.y.shape)
        cuda_kernels.margin(self.y, self.score, k, class_table, *self.problem)
        return self.problem

    def to_gpu(self, *columns):
        return tuple(upload(v.astype(float)) for v in columns)

    def add(self, learners):
        shape = learners.beta, learners.activation, False
        theta, sign, into = learners.theta, learners.sign, learners.target
        cuda_kernels.add_learners(self.X, theta, sign, *shape, into, self.score)

    def score_at(self, rows):
        return tiles.rows(self.score.copy_to_host(), rows)
