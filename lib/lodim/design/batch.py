"""The complete rows of a frame as numbers, and their split into training and held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from lodim.design.rows import INPUTS
from lodim.engine import tiles
from lodim.engine.blocks import SPAN_ROWS, runs_of, sum_rows

FLAT = 1e-9  # relative standard deviation below which a column counts as constant


@dataclass(frozen=True, eq=False)
class Batch:
    """The complete rows of a data frame as numbers: features X, response y, weights and offset."""

    # (n_tiles, p, 64) features of n rows in blocks of 64, centred and scaled; zero after row n
    X: np.ndarray
    y: np.ndarray | None  # (n,) float64, or codes 0..K-1 of classes; None without a response
    # weights, offset: (n,), None if all are one; (n,), or (n, K) for K classes, or None
    weights: np.ndarray | None
    offset: np.ndarray | None
    # index, rows: labels of all rows of the frame; (n,) ascending positions of the complete ones
    index: pd.Index
    rows: np.ndarray
    order: np.ndarray | None = None
    clusters: np.ndarray | None = None
    groups: np.ndarray | None = None  # (n,) codes, or None; a group is held out together
    streamed: bool = False
    # (p,) standard deviations of the columns of X in training; None for new data
    size: np.ndarray | None = None
    columns: tuple[str, ...] = ()  # names of all columns of the training data; () for new data
    cache: dict = field(default_factory=dict, init=False, repr=False)

    def once(self, key, make):
        """Return make(), which is called only once per Batch and key: the result is cached."""
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    @property
    def n(self):
        return len(self.rows)

    @cached_property
    def weight(self):
        """Weights divided by their sum, (n,)."""
        if self.weights is None:
            return np.full(self.n, 1.0 / max(self.n, 1))
        return self.weights / max(self.weight_sum, 1e-300)

    @property
    def worker_weight(self):
        """Weights (n,) divided by their sum, as WorkerTiles (blocks of rows on Dask workers)."""
        if self.weights is None:
            return self.X.constant(1.0 / max(self.n, 1))
        return self.X.column(self.weights).map(np.divide, max(self.weight_sum, 1e-300))

    @property
    def weight_sum(self):
        if self.weights is None:
            return float(self.n)
        return float(sum_rows(lambda i: self.weights[i].sum(), self.n))

    @property
    def units(self):
        """Codes (n,) of groups, or else clusters, whose rows are held out together; or None."""
        return self.clusters if self.groups is None else self.groups

    @property
    def row_weights(self):
        """Weights as given, or ones, (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights

    @property
    def positive_weight(self):
        """Positions of the rows with positive weight."""
        return np.arange(self.n) if self.weights is None else np.flatnonzero(self.weights)

    @property
    def out_of_core(self):
        """Whether X must stay on disk: it has over 65,536 rows, and `streamed` is true."""
        return self.streamed and self.n > SPAN_ROWS

    @cached_property
    def runs(self):
        """Ranges (lo, hi) of block numbers (of 4,096 rows) with positive weight; None for all."""
        if self.weights is None or self.n <= SPAN_ROWS:
            return None
        starts = np.arange(0, self.n, tiles.TILE * tiles.TILES_PER_BLOCK)
        return runs_of(np.logical_or.reduceat(self.weights, starts))

    @property
    def n_positive(self):
        return self.n if self.weights is None else int(np.count_nonzero(self.weights))

    def offsets(self, n_scores):
        """Return the offset as a read-only view (n, n_scores), for n_scores linear predictors."""
        offset = np.zeros(()) if self.offset is None else self.offset
        # With one linear predictor, the offset may have shape (n,).
        return np.broadcast_to(offset[:, None] if offset.ndim == 1 else offset, (self.n, n_scores))

    def offset_matrix(self, n_scores):
        """Return the offset as a new array (n, n_scores), for n_scores linear predictors."""
        return np.zeros((self.n, n_scores)) + self.offsets(n_scores)


def split(batch, held_out, standardize):
    """Split a batch into training and held-out rows, both centred by the means of training rows.

    held_out : (n,) bool
    standardize : whether to divide by standard deviations of training rows"""
    return split_and_scaling(batch, held_out, standardize)[0]


def split_and_scaling(batch, held_out, standardize):
    """Split a batch, scaled by its training rows; return (training, held-out), mean and scale.

    held_out : (n,) bool
    standardize : whether scale (p,) has the standard deviations, not 1"""
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    X = tiles.unpack(batch.X, batch.n)
    mean, sd = _moments(X[train].astype(np.float64), batch.weight[train])
    flat = (mean != 0.0) & (sd <= FLAT * np.abs(mean))
    if flat.any():  # otherwise the rounded mean leaves rounding errors in the column
        counted = train[batch.weight[train] > 0.0]
        mean[flat] = np.fmax.reduce(X[counted][:, flat], axis=0)
    # A column that is constant in the training rows has scale one.
    varying, ones = np.where(sd > 1e-7, sd, 1.0), np.ones(len(sd))
    scale, size = (varying, ones) if standardize else (ones, varying)
    parts = (subset(batch, i, (X[i] - mean) / scale) for i in (train, test))
    return tuple(replace(part, size=size) for part in parts), mean, scale


def _moments(X, weight):
    """Return weighted means (p,) and standard deviations (p,) of columns, ignoring NaN."""
    missing = np.isnan(X)
    if not missing.any():
        weight = weight / max(weight.sum(), 1e-300)
        mean = weight @ X
        return mean, np.sqrt(weight @ (X - mean) ** 2)
    W = np.where(missing, 0.0, weight[:, None])
    W /= np.maximum(W.sum(axis=0), 1e-300)
    X = np.where(missing, 0.0, X)
    mean = (W * X).sum(axis=0)
    return mean, np.sqrt((W * (X - mean) ** 2).sum(axis=0))


class SplitsInPlace(Sequence):
    """Sequence of (training batch, held-out batch), one pair per fold.

    fold : (n,) number of the fold that holds out each row, -1 for none
    Each batch has all rows; rows of the other batch have weight zero."""

    def __init__(self, batch, fold):
        self.batch, self.fold, self._n = batch, fold, int(fold.max()) + 1

    def __len__(self):
        return self._n

    def __getitem__(self, k):
        if not 0 <= k < self._n:
            raise IndexError(k)
        given = 1.0 if self.batch.weights is None else self.batch.weights
        held_out = self.fold == k
        weights = np.where(held_out, 0.0, given), np.where(held_out, given, 0.0)
        return tuple(replace(self.batch, weights=w) for w in weights)


def with_positive_weight(batch):
    return batch if batch.n_positive == batch.n else subset(batch, batch.positive_weight)


def subset(batch, i, X=None):
    """Return a Batch of the rows at positions i (k,), with the features X (k, p) if given."""
    given = {name: getattr(batch, name) for name in ("y", *INPUTS)}
    return Batch(
        X=tiles.pack(tiles.rows(batch.X, i) if X is None else X, batch.X.dtype),
        index=batch.index,
        rows=batch.rows[i],
        size=batch.size,
        **{name: None if values is None else values[i] for name, values in given.items()},
    )
