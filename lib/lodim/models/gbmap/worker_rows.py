"""Response, weights and linear predictors of training rows on the workers of a cluster."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import dot
from lodim.family import losses
from lodim.family.family import beyond_null
from lodim.models.gbmap.cpu_kernels import forward


@dataclass
class WorkerRows:
    """Training rows on the workers of a cluster, in blocks of 64 rows.

    score (n_tiles, K, 64) are linear predictors; numeric y are in standard deviations."""

    family: Any
    loss: tuple
    X: Any
    y: Any
    weight: Any
    score: Any
    sample: np.ndarray

    @classmethod
    def from_batch(cls, batch, family, loss, null, scale, sample):
        """Return a batch's rows on workers, before any learner is fitted.

        null (K,) are the null model's linear predictors; `scale` divides numeric responses."""
        X, y, axes = batch.X, batch.X.column(batch.y), (family.n_scores, tiles.TILE)
        offset = X.column(batch.offset)
        if family.link == "identity":
            y = y.map(beyond_null, offset, null).map(_divided, scale)
            score = X.constant(0.0).map(_null_score, np.zeros(1), shape=axes)
        else:
            score = offset.map(_null_score, null, shape=axes)
        return cls(family, loss, X, y, _row_weights(batch), score, sample)

    def margin(self, k):
        """Return class k's response and linear predictor (0/1 and logit of several classes)."""
        to = {"shape": (tiles.TILE,), "dtype": self.X.dtype}
        y = self.y.map(_response, self.family.n_scores, k, self.X.dtype, **to)
        return y, self.score.map(_margin_score, k, self.X.dtype, **to)

    def problem(self, k):
        """Return response, linear predictor and weight of class k, each with the dtype of X."""
        return *self.margin(k), self.weight.astype(self.X.dtype)

    def slope(self, y, score, weight):
        """Return a response of 0, a linear predictor of 0 and weights s / 2, for each row.

        With these, the squared loss of X v has the gradient X' diag(s) X v, s the loss slopes."""
        half = score.map(_half_slope, y, weight, self.loss)
        zero = score.map(np.zeros_like)
        return zero, zero, half

    def add(self, learners):
        theta, sign, shape = learners.theta, learners.sign, (learners.beta, learners.activation)
        self.score = self.X.add(forward, self.score, theta, sign, *shape, False, learners.target)

    def sample_score(self):
        """Return the linear predictors (r, K) of the sampled rows."""
        return self.score.take(self.sample)

    def margin_spans(self, function, k, *args):
        """Return function(X, y, linear predictor, weight, *args) per range of rows, for class k."""
        K = self.family.n_scores
        return self.X.spans(_of_margin, self.y, self.score, self.weight, K, k, function, args)

    def deviance(self):
        """Return the weighted mean deviance of the rows, for responses divided by the scale."""
        return reduce(np.add, self.score.spans(_deviance, self.y, self.weight, self.family))


def _row_weights(batch):
    """Return row weights on the workers, with sum one."""
    if batch.weights is None:
        return batch.X.constant(1.0 / max(batch.n, 1))
    return batch.X.column(batch.weights).map(_divided, max(batch.weight_sum, 1e-300))


def _divided(v, by):
    return v / by


def _null_score(offset, null):
    return (offset[:, None] if offset.ndim == 2 else offset) + null[:, None]


def _response(y, n_scores, k, dtype):
    return (y if n_scores == 1 else y == k).astype(dtype)


def _margin_score(score, k, dtype):
    """Return the logit of class k against all others, or the only linear predictor, in tiles."""
    n_tiles = len(score)
    rows = tiles.unpack(score, n_tiles * tiles.TILE)
    score = rows[:, 0] if rows.shape[1] == 1 else margin_score(rows, k)
    return score.reshape(n_tiles, -1).astype(dtype)


def margin_score(score, k):
    """Return the logit (n,) of class k against all others, from predictors score (n, K > 1)."""
    others = score.copy()
    others[:, k] = -np.inf
    largest = others.max(axis=1)
    total = np.exp(others - largest[:, None]).sum(axis=1)
    return score[:, k] - largest - np.log(total)


def loss_slope(score, y, weight, loss):
    """Return the derivative of each row's weighted loss by its linear predictor, `score`."""
    columns = (v.astype(np.float64) for v in (y, score, weight))
    return losses.rows(loss, *columns)[1]


def _half_slope(score, y, weight, loss):
    return 0.5 * loss_slope(score, y, weight, loss).astype(score.dtype)


def _of_margin(rows, X, y, score, weight, n_scores, k, function, args):
    columns = _response(y, n_scores, k, float), _margin_score(score, k, float), weight
    return function(X, *(tiles.by_row(v, rows.stop - rows.start) for v in columns), *args)


def _deviance(rows, score, y, weight, family):
    score, y, weight = (tiles.by_row(v, rows.stop - rows.start) for v in (score, y, weight))
    return dot(weight, family.deviance(y, score))
