"""Response, weights and offset of a batch's rows, also on the workers of a cluster."""

from dataclasses import replace

import numpy as np

from lodim.engine.blocks import on_host
from lodim.engine.tiles import TILE
from lodim.family import beyond_null


def rows_beside(batch, n_scores):
    """Return response (n,), weight (n,) of sum one, and offset (n, K) of the rows of a batch.

    If the features are on workers of a cluster, the workers compute these arrays from their data.
    """
    if on_host(batch.X):
        return _rows(batch, n_scores)
    return batch.once(rows_beside, lambda: _known_rows(batch, n_scores))


def batch_beyond_null(batch, family):
    """Return a batch with a numeric response less offset and null model, and the level (K,).

    The level is the null model's intercept. A batch of classes is returned unchanged."""
    if family.name != "gaussian":
        return batch, np.zeros(family.n_scores)
    offset = batch.offsets(1)
    level = family.null_intercept(batch.y, batch.weight, offset)
    y = beyond_null(batch.y, offset[:, 0], level)
    if not on_host(batch.X):
        X = batch.X
        X.know(y, X.column(batch.y).map(beyond_null, X.column(batch.offset), level))
    return replace(batch, y=y, offset=None), level


def _rows(batch, n_scores):
    return np.asarray(batch.y, np.float64), batch.weight, batch.offsets(n_scores)


def _known_rows(batch, n_scores):
    """Return the rows of a batch, after telling a cluster's workers where weight and offset are."""
    y, weight, offset = _rows(batch, n_scores)
    batch.X.know(weight, _weight_tiles(batch))
    batch.X.know(offset, _offset_tiles(batch, n_scores))
    return y, weight, offset


def _weight_tiles(batch):
    """Return the batch's row weights in blocks of 64 rows on the workers, (n_tiles, 64)."""
    X = batch.X
    if batch.weights is None:
        return X.constant(float(batch.weight[0]))
    return X.column(batch.weights).map(np.divide, max(batch.weight_sum, 1e-300))


def _offset_tiles(batch, n_scores):
    """Return the batch's offsets in blocks of 64 rows on the workers, (n_tiles, K, 64)."""
    return batch.X.column(batch.offset).map(_of_scores, n_scores, shape=(n_scores, TILE))


def _of_scores(offset, n_scores):
    """Return offsets (n_tiles, 64) or (n_tiles, K, 64), expanded to all K scores."""
    offset = offset[:, None] if offset.ndim == 2 else offset
    return np.zeros((len(offset), n_scores, TILE)) + offset
