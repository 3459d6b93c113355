"""Training rows of costnet: losses, slopes and second moments, by passes over the rows."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from lodim.engine.blocks import on_host, sum_tiles
from lodim.engine.tiles import TILE
from lodim.family import losses
from lodim.models.costnet.penalty import passes


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to which models are fitted, with the response divided by a unit, `spread`."""

    X: np.ndarray  # in blocks of 64 rows
    given: tuple  # y (n,), weight (n,) of sum one, offset (n, K), in units of the data
    family: Any
    threads: int
    spread: float

    @cached_property
    def null(self):
        """Intercepts of the null model, (K,), in units of the data."""
        return self.family.null_intercept(*self.given)

    @cached_property
    def absent(self):
        """Whether classes have no rows, (K,) bool; they keep the null model's intercept."""
        return self.family.absent(*self.given[:2])

    @cached_property
    def loss(self):
        """Loss of the response in units of `spread`: (code, least curvature, further constants)."""
        # Entry 1 is a lower limit for the curvature in Newton steps, if the loss has linear parts.
        if self.family.n_scores > 1:
            return passes.SOFTMAX
        y, weight, offset = self.given
        loss = self.family.per(self.spread).kernel_loss(y / self.spread, weight)
        if not self.family.m_estimation:
            return loss[0], 0.0, *loss[2:]
        score = (offset[:, 0] + self.null) / self.spread
        value, slope, _ = losses.rows(loss, y / self.spread, score, np.ones(len(y)))
        unit = float(weight @ slope**2) / max(2.0 * float(weight @ value), 1e-300)
        return loss[0], loss[1] * unit, *loss[2:]

    @cached_property
    def y(self):
        return self._tiles(self.given[0], self.spread)

    @cached_property
    def weight(self):
        return self._tiles(self.given[1])

    @property
    def offset(self):
        """Offset / `spread` (unit of the response), a new array (n_tiles, K, 64): 64-row blocks."""
        return self._tiles(self.given[2], self.spread)

    def _tiles(self, values, spread=1.0):
        """Return values (n,) or (n, K) / spread as blocks, (n_tiles, 64) or (n_tiles, K, 64)."""
        if on_host(self.X):
            return passes.padded(values, len(self.X), spread)
        there = self.X.column(values)
        return there if spread == 1.0 else there.map(np.divide, spread)

    @property
    def n_scores(self):
        return self.given[2].shape[1]

    def derivatives(self, f, columns, curvatures=0, step=None, least=None):
        """Return (loss, slope, moments, bend) at scores f (linear predictors) in 64-row blocks.

        columns : C columns of X; -1 is the intercept
        curvatures : number J^2 of curvatures per row: 0, 1 (average) or K^2 (pairs of K scores)
        step : (K, C) change of the coefficients to make first, or None
        least : smallest curvature of a row of weight one; None for the loss's own
        loss : half the weighted mean deviance
        slope : (K, C) negative gradient in the coefficients
        moments : (J, J, C, C) sums over rows of curvature times products of two columns
        bend : sum over rows of squared slope / curvature"""
        loss = self.loss if least is None else (self.loss[0], least, *self.loss[2:])
        known = {"loss": loss, "columns": columns, "curvatures": curvatures}
        known["step"] = None if step is None else np.ascontiguousarray(step)
        work = partial(passes.derivatives, **known, threads=self.threads)
        found = sum_tiles(work, self.X, self.y, self.weight, f)
        K, C, J = self.n_scores, len(columns), round(curvatures**0.5)
        gradient, G = found[2 : 2 + K * C].reshape(K, C), found[2 + K * C :].reshape(J, J, C, C)
        freeze_absent(gradient, self.absent)
        if J == K and self.absent.any():  # as if the others were all, with the same probabilities
            G[self.absent] = G[:, self.absent] = 0.0
            each = np.arange(K)
            G[each, each] -= G.sum(axis=1)
        return float(found[0]), gradient, G, float(found[1])

    def scores_after(self, f, columns, step):
        return passes.scores_after(self.X, columns, np.ascontiguousarray(step), f, self.threads)


def next_least(least, size):
    """Return the smallest curvature that rows may have in the next Newton step.

    least : the smallest curvature in the last step
    size : share of the last step that was taken"""
    # Large curvatures damp the step.
    return least * (0.2 if size == 1.0 else 1.0 / size)


def freeze_absent(slopes, absent):
    """Zero rows of `absent` classes in slopes (K, C), in place; centre the others per column."""
    # Absent classes keep their coefficients.
    if absent.any():
        slopes[absent] = 0.0
        slopes[~absent] -= slopes[~absent].mean(axis=0)


def response_weights_offset(batch, n_scores):
    """Return response (n,), weights (n,) of sum one, and offset (n, n_scores) of a batch."""
    rows = np.asarray(batch.y, np.float64), batch.weight, batch.offsets(n_scores)
    if on_host(batch.X):
        return rows

    def send_to_workers():
        X, (_, weight, offset) = batch.X, rows
        X.know(weight, batch.worker_weight)
        X.know(offset, X.column(batch.offset).map(_of_scores, n_scores, shape=(n_scores, TILE)))
        return rows

    return batch.once(response_weights_offset, send_to_workers)


def _of_scores(offset, n_scores):
    offset = offset[:, None] if offset.ndim == 2 else offset
    return np.zeros((len(offset), n_scores, TILE)) + offset
