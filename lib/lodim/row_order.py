"""Order of rows and of classes by their values: the same wherever rows, columns or names stand."""

import numpy as np


def row_keys(batch, classes):
    """A number for each row, (n,), and one for each class, that the values alone decide.

    Neither the order of rows or columns nor the names or codes of classes matter, and values that
    differ by rounding have keys that do. Columns are weighed by their third moments with all
    others. Rows with equal keys are copies of each other, but in designs of great symmetry.

    Parameters
    ----------
    batch : Batch
        Missing features and responses count as zero, which is the mean of a feature.
    classes : int
        Number of classes, 0 of a numeric response or none.
    """
    X = batch.X if np.isfinite(batch.X).all() else np.nan_to_num(batch.X)
    size = _rows(batch, np.einsum("tpi,tpi->ti", X, X))
    moment = np.einsum("tpi,ti->p", X, _tiles(X, batch.weight * (size - size.mean())))
    key = _standard(size) + _standard(_rows(batch, np.einsum("tpi,p->ti", X, moment)))
    for known in (batch.weights, batch.offset):
        if known is not None:
            key += _standard(known.reshape(batch.n, -1).sum(axis=1))
    if batch.y is None:
        return key, np.zeros(0)
    if not classes:
        return key + _standard(np.nan_to_num(batch.y)), np.zeros(0)
    code = np.nan_to_num(batch.y, nan=classes).astype(int)
    of = np.bincount(code, minlength=classes + 1)
    means = np.bincount(code, key, classes + 1) / np.maximum(of, 1)
    return key + _standard(means[code]), means[:classes]


def _rows(batch, v):
    """The rows of tiles (n_tiles, 64), (n,)."""
    return v.reshape(-1)[: batch.n].astype(np.float64)


def _tiles(X, v):
    """(n,) as tiles beside X."""
    out = np.zeros(len(X) * X.shape[2])
    out[: len(v)] = v
    return out.reshape(len(X), X.shape[2])


def _standard(v):
    """v in standard deviations from its mean; zero where it does not vary but for rounding."""
    spread = v.std()
    return (v - v.mean()) / spread if spread > 1e-9 * np.abs(v).max() else np.zeros(len(v))
