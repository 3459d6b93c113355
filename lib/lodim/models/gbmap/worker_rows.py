"""Response, weights and linear predictors of training rows on the workers of a cluster."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import dot
from lodim.family import losses
from lodim.family.family import beyond_null
from lodim.family.thresholds import threshold_sums
from lodim.models.gbmap.cpu_kernels import forward


@dataclass
class WorkerRows:
    """Training rows on the workers of a cluster, in blocks of 64 rows."""

    family: Any
    loss: tuple
    X: Any
    y: Any  # class codes, or numbers in standard deviations
    weight: Any
    score: Any  # (n_tiles, K, 64) linear predictors, K = 1 for ordered classes

    @classmethod
    def from_batch(cls, batch, family, loss, null, scale):
        """Make WorkerRows of a batch on the workers of a cluster, before any learner is fitted.

        loss : tuple that defines the loss; null : (K,) intercepts; scale : divisor of numeric y"""
        X, y, axes = batch.X, batch.X.column(batch.y), (family.n_functions, tiles.TILE)
        offset = X.column(batch.offset)
        if family.link == "identity":
            y = y.map(beyond_null, offset, null).map(np.divide, scale)
            score = X.constant(0.0).map(_null_score, np.zeros(1), shape=axes)
        else:
            score = offset.map(_null_score, null, shape=axes)
        return cls(family, loss, X, y, batch.worker_weight, score)

    def problem(self, k, shift):
        """Return response, linear predictor and weight of the rows to fit a learner of class k.

        For unordered classes, the response is 1 in class k, else 0.
        shift : (K - 1,) thresholds of ordered classes, otherwise empty"""
        to = {"shape": (tiles.TILE,), "dtype": self.X.dtype}
        columns = [
            self.score.map(_margin_tiles, self.y, self.family, k, shift, i, self.X.dtype, **to)
            for i in range(2)
        ]
        return *columns, self.weight.astype(self.X.dtype)

    def gram_problem(self, y, score, weight):
        """Return the responses, predictors and weights of a least-squares problem, on the workers.

        The problem's gradient at v is X' diag(s) X v, where s are loss derivatives by `score`."""
        half = score.map(_half_slope, y, weight, self.loss)
        zero = score.map(np.zeros_like)
        return zero, zero, half

    def add(self, learners):
        theta, sign, shape = learners.theta, learners.sign, (learners.beta, learners.activation)
        self.score = self.X.add(forward, self.score, theta, sign, *shape, False, learners.target)

    def score_at(self, rows):
        return self.score.take(rows)

    def margin_spans(self, function, k, shift, *args):
        """Call `function` on the workers, once per range of rows; return the list of results.

        function : called as function(X, responses, linear predictors, weights, *args)
        k : class of the learner to fit, on which responses and linear predictors depend
        shift : (K - 1,) thresholds of ordered classes, otherwise empty"""
        columns = self.y, self.score, self.weight
        return self.X.spans(_of_margin, *columns, self.family, k, shift, function, args)

    def deviance(self, shift):
        """Return the mean deviance at the present predictors; shift : class thresholds, or empty"""
        return reduce(np.add, self.score.spans(_deviance, self.y, self.weight, self.family, shift))

    def threshold_sums(self, boundaries):
        """Return the loss, slope and curvature at each threshold in `boundaries`, (K - 1, 3)."""
        rest = self.y, self.weight, boundaries
        return reduce(np.add, self.score.spans(_threshold_sums, *rest))


def _null_score(offset, null):
    return (offset[:, None] if offset.ndim == 2 else offset) + null[:, None]


def margin(family, y, score, k, shift):
    """Return responses and linear predictors for fitting a learner of class k, (n,) each.

    score : (n, K) linear predictors of the classes
    shift : (K - 1,) thresholds of ordered classes, otherwise empty"""
    if family.shared_slopes:
        response, middle = family.class_table(shift)[:, y.astype(int)]
        return response, score[:, 0] + middle
    if family.n_scores == 1:
        return y, score[:, 0]
    others = score.copy()  # the predictor becomes the logit of class k
    others[:, k] = -np.inf
    largest = others.max(axis=1)
    total = np.exp(others - largest[:, None]).sum(axis=1)
    return (y == k).astype(float), score[:, k] - largest - np.log(total)


def deviance(family, y, score, weight, shift):
    """Return the weighted sum of the rows' deviances.

    score : (n, K) linear predictors without thresholds
    shift : (K - 1,) thresholds of ordered classes, otherwise empty"""
    return dot(weight, family.deviance(y, score + shift if shift.size else score))


def _margin_tiles(score, y, family, k, shift, i, dtype):
    rows = tiles.unpack(score, len(score) * tiles.TILE)
    return margin(family, y.reshape(-1), rows, k, shift)[i].reshape(y.shape).astype(dtype)


def loss_slope(score, y, weight, loss):
    """Return the derivative of each row's weighted loss by its linear predictor, `score`."""
    columns = (v.astype(np.float64) for v in (y, score, weight))
    return losses.rows(loss, *columns)[1]


def _half_slope(score, y, weight, loss):
    return 0.5 * loss_slope(score, y, weight, loss).astype(score.dtype)


def _by_row(rows, *columns):
    return (tiles.by_row(v, rows.stop - rows.start) for v in columns)


def _of_margin(rows, X, y, score, weight, family, k, shift, function, args):
    y, score, weight = _by_row(rows, y, score, weight)
    return function(X, *margin(family, y, score, k, shift), weight, *args)


def _deviance(rows, score, y, weight, family, shift):
    y, score, weight = _by_row(rows, y, score, weight)
    return deviance(family, y, score, weight, shift)


def _threshold_sums(rows, score, y, weight, boundaries):
    y, score, weight = _by_row(rows, y, score, weight)
    return threshold_sums(y, score[:, 0], weight, boundaries)
