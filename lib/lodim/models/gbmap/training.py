"""Training rows during boosting: responses, weights, linear predictors, samples of rows."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from lodim.engine import row_keys, tiles
from lodim.engine.blocks import dot, on_host, place, row_spans, sum_rows
from lodim.family import losses
from lodim.family.family import beyond_null, class_shares
from lodim.family.thresholds import best_thresholds, threshold_sums
from lodim.models.gbmap.settings import WIDE, Settings
from lodim.models.gbmap.worker_rows import WorkerRows, deviance, margin

START_ROWS = 2048  # most rows from which starts are drawn
SAMPLE = 16_384  # rows of the sample, drawn if there are over four times as many


@dataclass(frozen=True)
class Rotation:
    """Orthonormal basis V (p, r) of the space that rows span, and X V in blocks of 64 rows."""

    basis: np.ndarray
    X: np.ndarray

    @classmethod
    def from_batch(cls, batch):
        """Return the Rotation of a batch to principal axes of its rows, computed once per batch."""

        def rotation():
            X = tiles.unpack(batch.X, batch.n).astype(np.float64)
            values, U = np.linalg.eigh(X @ X.T)
            keep = values > 1e-12 * max(values[-1], 1e-300)
            basis = X.T @ (U[:, keep] / np.sqrt(values[keep]))
            return cls(basis, tiles.pack(X @ basis, batch.X.dtype))

        return batch.once(cls, rotation)

    def project(self, theta):
        """Convert the weights in theta[:, 2:] from original to rotated features."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis])

    def expand(self, theta):
        """Convert the weights in theta[:, 2:] from rotated to original features."""
        return np.hstack([theta[:, :2], theta[:, 2:] @ self.basis.T])


@dataclass(frozen=True, eq=False)
class StartRows:
    """Rows from which starting learners are computed, the same rows for all penalties."""

    at: np.ndarray  # positions of the rows in `tiles`
    key: np.ndarray  # a number per row that depends only on the row's content
    class_order: np.ndarray  # (K,), order in which classes are fitted, whatever their names
    tiles: np.ndarray  # blocks of 64 rows of the sample, or of all rows without a sample

    @classmethod
    def from_batch(cls, batch, X, sample, sample_X, family, seed):
        """Choose rows of positive weight from which starting learners are computed.

        X : features of all rows, perhaps rotated
        sample, sample_X : positions and features of the rows to choose from; None for all"""

        def choose():
            rows = np.arange(batch.n) if sample is None else sample
            at = np.flatnonzero(batch.weight[rows])
            if sample is not None:
                at = at[:: -(-len(at) // START_ROWS)]
            rows, order, K = rows[at], np.arange(1), family.n_scores
            own, weight = tiles.rows(batch.X, rows).astype(np.float64), batch.weight[rows]
            key = row_keys.keys(own, weight)
            if family.n_functions > 1:
                code = batch.y[rows].astype(int)
                total = np.bincount(code, weight * row_keys.keys(own, weight, code, K), K)
                order = np.argsort(total / np.maximum(np.bincount(code, weight, K), 1e-300))
            if sample is None and len(at) > START_ROWS:
                drawn = row_keys.drawn(key, START_ROWS, 0)
                at, key = at[drawn], key[drawn]
            return cls(at, key, order, X if sample is None else sample_X)

        return batch.once((cls, seed, family.n_scores, X is batch.X), choose)

    @cached_property
    def X(self):
        """Features of the rows, (p, n)."""
        return np.ascontiguousarray(tiles.rows(self.tiles, self.at).T, np.float64)


@dataclass(frozen=True)
class BoostState:
    """Training rows of gbmap; numeric responses and linear predictors are divided by `scale`."""

    family: Any
    settings: Settings
    loss: tuple
    X: Any  # tiles of the (rotated) features: in memory, on a GPU or on workers of a cluster
    y: np.ndarray  # (n,), class code, or response minus offset and null model
    weight: np.ndarray  # (n,)
    # linear predictors (n_tiles, K, 64), K = 1 for ordered classes; None if `device` has them
    score: np.ndarray | None
    intercept: np.ndarray  # (K,), null model's linear predictors; [0] for ordered classes
    shift: np.ndarray  # (S,), boundaries of ordered classes, changed in place; otherwise (0,)
    scale: float  # standard deviation of a numeric response minus its offset, otherwise 1
    p: int  # number of features that vary
    sample: np.ndarray | None  # positions of the sampled rows; None if all are used
    sample_X: np.ndarray | None  # tiles of the sampled rows' features, in memory
    starts: StartRows
    rotation: Rotation | None  # how X was made from wide data; None otherwise
    device: Any  # DeviceRows or WorkerRows if rows are on a GPU or workers, else None
    unit: np.ndarray  # (2 + p,), sizes by which parameters are divided; powers of four: exact
    runs: list | None = None  # ranges (lo, hi) of blocks of rows in use; None for all

    @classmethod
    def from_batch(cls, batch, family, settings):
        """Return the state of a batch of training rows before any learner is fitted."""
        weight, base = batch.weight, batch.offsets(family.n_scores)
        null, y, scale = family.null_intercept(batch.y, weight, base), batch.y, 1.0
        if family.link == "identity":
            y = beyond_null(y, base[:, 0], null)
            scale = _scale(y, weight)
            y /= scale
            family = family.per(scale)
        shift = null if family.shared_slopes else np.zeros(0)
        null = np.zeros(1) if family.shared_slopes else null
        loss = family.kernel_loss(y, weight)
        X, rotation = batch.X, None
        p = max(1, int(tiles.varies(X).sum()))
        if p > batch.n and settings.l1_ratio == 0.0 and settings.monotone is None:
            rotation = Rotation.from_batch(batch)
            X = rotation.X
        sample, sample_X = _draw_sample(batch, X, settings)
        starts = StartRows.from_batch(batch, X, sample, sample_X, family, settings.seed)
        host, X, score, device = X, place(X, settings.engine), None, None
        if not on_host(host):
            device = WorkerRows.from_batch(batch, family, loss, null, scale)
        else:
            score = _null_scores(base[:, : family.n_functions], null, family)
            if not on_host(X):
                from lodim.models.gbmap.device_rows import DeviceRows  # loads CUDA

                if sample is None:
                    sample, sample_X = np.arange(batch.n), host
                device = DeviceRows.from_host(X, y, weight, score, family.several_classes)
        rows = X, y, weight, score, null / scale, shift, scale, p, sample, sample_X, starts
        is_known = rotation is None and batch.size is not None
        # Powers of four near 1 / SD are exact; squares must not overflow.
        exponent = 0.5 * np.log2(batch.size) if is_known else np.zeros(X.shape[1])
        unit = np.r_[1.0, 1.0, 0.25 ** np.clip(np.round(exponent), -50, 50)]
        return cls(family, settings, loss, *rows, rotation, device, unit, batch.runs)

    @property
    def on_workers(self):
        return isinstance(self.device, WorkerRows)

    @property
    def exact(self):
        """Whether rows are so few that starting learners use all, and fits run to convergence."""
        return self.sample is None or len(self.sample) == len(self.y)

    @property
    def small_data(self):
        """Whether rows and columns are few enough for the compiled Newton's method for learners."""
        few = self.X.shape[1] < WIDE and len(self.X) <= tiles.TILES_PER_BLOCK
        return self.settings.smooth and few and self.sample is None and on_host(self.X)

    @property
    def in_subspace(self):
        """Whether to search starting learners in a subspace, since rows and features are many."""
        return self.settings.smooth and not self.exact and self.X.shape[1] >= WIDE

    def rows(self, k, to_host=False):
        """Return X, response, linear predictor and weight for a learner of class k, in blocks.

        to_host : whether to copy all but X to main memory if they are on a GPU"""
        if self.on_workers:
            return self.X, *self.device.problem(k, self.shift)
        if self.device is not None:
            columns = self.device.margin(k, self.class_table())
            if not to_host:
                return self.X, *columns, self.device.weight
            y, score = (v.copy_to_host().reshape(-1) for v in columns)
            return _as_tiles(self.X, y, score, self.weight)
        y, score, weight = np.zeros((3, len(self.X), tiles.TILE), self.X.dtype)
        for i in row_spans(len(self.y)):
            own, columns = tiles.of_rows(i), (*self.margin(k, i), self.weight[i])
            for out, v in zip((y[own], score[own], weight[own]), columns, strict=True):
                out[:] = tiles.pad(v, len(out), out.dtype)
        return self.X, y, score, weight

    def joint_rows(self):
        """Return X, response, K linear predictors and weight, in blocks, on the device of X."""
        if self.family.shared_slopes:
            X, y, score, weight = self.rows(0)
            axes = (1, tiles.TILE)
            if self.on_workers:
                return X, y, score.map(np.expand_dims, 1, shape=axes), weight
            return X, y, score.reshape(len(X), *axes), weight
        if self.on_workers:
            columns = self.device.y, self.device.score, self.device.weight
            return self.X, *(v.astype(self.X.dtype) for v in columns)
        if self.device is not None:
            return self.X, self.device.y, self.device.score, self.device.weight
        y, weight = (tiles.pad(v, len(self.X), self.X.dtype) for v in (self.y, self.weight))
        return self.X, y, self.score.astype(self.X.dtype), weight

    def class_table(self):
        """Return the response and mean threshold of each ordered class, (2, K).

        Other families have an empty array, (2, 0). The response codes the class in the loss."""
        # The mean of a class's one or two thresholds is added to its linear predictors.
        if self.family.shared_slopes:
            return self.family.class_table(self.shift)
        return np.empty((2, 0))

    def sample_rows(self, k, most=SAMPLE):
        """Return X, response, predictor, weight of at most `most` sampled rows, to fit class k."""
        columns, step = self.sample_margin(k), -(-len(self.sample) // most)
        if step == 1:
            return _as_tiles(self.sample_X, *columns)
        at = np.arange(0, len(self.sample), step)
        y, score, weight = (v[at] for v in columns)
        X = tiles.pack(tiles.rows(self.sample_X, at), self.sample_X.dtype)
        return _as_tiles(X, y, score, weight / weight.sum())

    def standard_error(self, k, learners):
        """Return the standard error of the mean loss for class k with these WeakLearners added."""
        y, score, weight = self.sample_margin(k)
        X = self.X if self.sample is None else self.sample_X
        score = score + learners.embedding(X, len(y)).sum(axis=1) / self.scale
        loss = losses.rows(self.loss, y, score, np.ones(len(y)))[0] - self.family.saturated(y)
        variance = dot(weight, (loss - dot(weight, loss)) ** 2)
        return np.sqrt(variance * dot(self.weight, self.weight))

    def margin(self, k, rows):
        """Return response and linear predictor of a slice of rows, to fit class k's learner."""
        score = tiles.unpack(self.score[tiles.of_rows(rows)], rows.stop - rows.start)
        return margin(self.family, self.y[rows], score, k, self.shift)

    def sample_margin(self, k):
        """Return response, linear predictor of class k and weight of the sampled (or all) rows."""
        i = self.sample
        if i is None:
            return *self.margin(k, slice(0, len(self.y))), self.weight
        score = tiles.rows(self.score, i) if self.device is None else self.device.score_at(i)
        columns = margin(self.family, self.y[i], score, k, self.shift)
        return *columns, self.weight[i] / self.weight[i].sum()

    def add(self, learner, X):
        """Add a learner to the linear predictors, in place; X holds the original features."""
        if self.device is None:
            how = {"threads": self.settings.n_threads, "runs": self.runs}
            learner.add_to(self.score, X, learner.target, **how)
            return
        if self.rotation is not None:
            learner = replace(learner, theta=self.rotation.project(learner.theta))
        self.device.add(learner)

    def move_boundaries(self):
        """Optimize the thresholds `shift` between ordered classes in place; return the changes."""
        if self.on_workers:
            sums = self.device.threshold_sums
        else:
            score = self._host_score().reshape(-1)[: len(self.y)]
            sums = partial(threshold_sums, self.y, score, self.weight)
        shares = class_shares(self.y, self.weight, self.family.n_scores + 1)
        before = self.shift.copy()
        self.shift[:] = best_thresholds(sums, shares, before)
        return self.shift - before

    def _host_score(self):
        return self.score if self.device is None else self.device.score.copy_to_host()

    def deviance(self):
        """Return the weighted mean deviance of the rows, in units of the original response."""
        unit = self.scale**self.family.degree
        if self.on_workers:
            return unit * float(self.device.deviance(self.shift))
        score = self._host_score()

        def part(i):
            own = tiles.unpack(score[tiles.of_rows(i)], i.stop - i.start)
            return deviance(self.family, self.y[i], own, self.weight[i], self.shift)

        return unit * float(sum_rows(part, len(self.y)))


def _as_tiles(X, *columns):
    return X, *(tiles.pad(v, len(X), X.dtype) for v in columns)


def _draw_sample(batch, X, settings):
    """Return positions of randomly sampled rows and their X; None, None if rows are few."""
    if batch.n <= 4 * SAMPLE:
        return None, None
    size = min(SAMPLE, batch.n_positive)
    sample = row_keys.sample_of(batch, size, settings.seed, settings.n_threads)
    return sample, tiles.pack(tiles.rows(X, sample), X.dtype)


def _scale(centred, weight):
    """Return the standard deviation of `centred` (n,), which has mean zero; 1 if it is zero."""
    variance = sum_rows(lambda i: dot(weight[i], centred[i] ** 2), len(centred))
    return float(np.sqrt(variance)) if variance > 0 else 1.0


def _null_scores(offset, null, family):
    """Return linear predictors before boosting, (n_tiles, K, 64): offset (n, K) + null (K,).

    null : intercepts. With an identity link, return 0: y is then the response minus these sums."""
    n, K = offset.shape
    score = tiles.empty(n, K, np.float64)
    if family.link != "identity":
        for i in row_spans(n):
            score[tiles.of_rows(i)] = tiles.pack(offset[i] + null)
    return score
