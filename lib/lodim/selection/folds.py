"""Folds: which rows are held out together."""

import numpy as np

from lodim.engine import row_keys
from lodim.errors import ArgumentError


def assign(batch, folds, classes, seed):
    """Fold of each row of a batch, (n,) of 0..K-1, or -1 where the response is missing.

    A draw depends on the rows as a set: their order, that of the columns and the names of classes
    make no difference to it.

    Parameters
    ----------
    batch : Batch
    folds : int or array (N,)
        Number of folds, drawn at random and balanced within classes, of whole clusters where the
        model has them; or the fold of every row of the data: rows of a value are held out together.
    classes : sequence or None
        Classes of the response.
    seed : int
    """
    fold = _assign(batch, folds, classes, seed)
    return fold if batch.y is None else np.where(np.isnan(batch.y), -1, fold)


def assign_draws(batch, folds, classes, seed, n):
    """Folds of n independent draws, n arrays (n_rows,); see `assign`."""
    seeds = [seed, *np.random.SeedSequence(seed).generate_state(n - 1, np.uint64)]
    return [assign(batch, folds, classes, int(one)) for one in seeds]


def _assign(batch, folds, classes, seed):
    if np.ndim(folds) == 1:
        return _user_folds(batch, folds)
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise ArgumentError(f"folds must be a whole number from 2 or an array, not {folds!r}")
    counted = len(batch.positive_weight)
    if folds > counted:
        raise ArgumentError(f"folds={folds} is more than the {counted} complete rows that count")
    key, of_class = row_keys.of_batch(batch, len(classes or ()))
    if batch.clusters is not None:
        return _whole_clusters(batch.clusters, key, folds, seed)
    order = row_keys.shuffled(key, seed)
    if classes:
        rank = np.append(np.argsort(np.argsort(of_class)), len(of_class))  # missing ones come last
        code = np.nan_to_num(batch.y[order], nan=len(of_class)).astype(int)
        order = order[np.argsort(rank[code], kind="stable")]
    if batch.weights is not None:
        # Rows of weight zero are dealt last, so that each fold has rows that count.
        order = order[np.argsort(batch.weights[order] == 0, kind="stable")]
    fold = np.empty(batch.n, np.int64)
    fold[order] = np.arange(batch.n) % folds
    return fold


def _whole_clusters(clusters, key, folds, seed):
    """Fold of each row, (n,), of whole clusters, each in the fold that is the smallest so far."""
    names, code = np.unique(clusters, return_inverse=True)
    if folds > len(names):
        raise ArgumentError(f"folds={folds} is more than the {len(names)} clusters")
    size = np.bincount(code)
    of_cluster = np.bincount(code, key) / size
    fold, filled = np.empty(len(names), np.int64), np.zeros(folds)
    for k in row_keys.shuffled(of_cluster, seed):
        fold[k] = filled.argmin()
        filled[fold[k]] += size[k]
    return fold[code]


def _user_folds(batch, folds):
    folds = np.asarray(folds)
    if len(folds) != len(batch.index):
        raise ArgumentError(
            f"folds has {len(folds)} entries, the data {len(batch.index)} rows: one for each row"
        )
    folds = folds[batch.rows]
    try:
        names, fold = np.unique(folds, return_inverse=True)
    except TypeError:
        raise ArgumentError("folds has values of several kinds, or missing ones") from None
    if len(names) < 2:
        raise ArgumentError("folds names a single fold; at least two are needed")
    for k, name in enumerate(names):
        if not np.isin(batch.positive_weight, np.flatnonzero(fold != k)).any():
            raise ArgumentError(f"without fold {name!r} no row has a weight above zero")
    return fold
