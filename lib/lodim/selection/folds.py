"""Folds: assignment of rows to sets that are held out together."""

import numpy as np

from lodim.checks import check_rectangular, whole
from lodim.design.batch import with_positive_weight
from lodim.engine import row_keys
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.errors import ArgumentError, DataError
from lodim.text import counted

BLOCK_ROWS = TILES_PER_BLOCK * TILE


def as_folds(folds):
    """Check and return `folds`: an integer of at least 2, or an array with each row's fold."""
    check_rectangular("folds", folds)
    if np.ndim(folds) == 1:
        return folds
    try:
        return whole("folds", folds, least=2)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; or an array with the fold of each row") from None


def assign(batch, folds, classes, seed):
    """Return each row's fold for cross-validation, from 0; -1 without a response or weight.

    folds : number of random folds, or (n,) the fold of each row
    classes : class names to balance, or None"""
    some = with_positive_weight(batch)
    if np.ndim(folds) == 1:
        if batch.groups is not None:
            raise ArgumentError("folds as an array and groups cannot be combined: give one of them")
        return _in_all_rows(batch, _user_folds(some, folds))
    _check_folds(some, folds)
    key, of_class = row_keys.of_batch(some, len(classes or ()))
    if some.units is not None:
        return _in_all_rows(batch, _whole_units(some, folds, key, of_class, seed))
    order = row_keys.shuffled(key, seed)
    if classes:
        # Missing classes come last.
        rank = np.append(np.argsort(np.argsort(of_class)), len(of_class))
        code = np.nan_to_num(some.y[order], nan=len(of_class)).astype(int)
        order = order[np.argsort(rank[code], kind="stable")]
    fold = np.empty(some.n, np.int64)
    fold[order] = np.arange(some.n) % folds
    return _in_all_rows(batch, fold)


def assign_by_position(batch, folds, seed):
    """Divide rows into folds that do not depend on the rows' content; return each row's fold, (n,).

    Rows without a response or with weight 0 get -1.
    folds : number of random folds, which only depend on row positions; or (n,) array"""
    # Conformal guarantees need folds that do not depend on the content of rows.
    if np.ndim(folds) == 1:
        return assign(batch, folds, None, seed)
    some = with_positive_weight(batch)
    _check_folds(some, folds)
    units = np.arange(some.n) if some.units is None else some.units
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    in_order = np.argsort(np.argsort(first))  # groups ordered by their first row, not by name
    of_unit = np.random.default_rng(seed).permutation(len(first)) % folds
    return _in_all_rows(batch, of_unit[in_order[unit]])


def _in_all_rows(batch, fold):
    """Return the fold of each row of a Batch; -1 for rows without a response or weight.

    fold : fold of each row with positive weight, in order"""
    out = np.full(batch.n, -1)
    out[batch.positive_weight] = fold
    return out if batch.y is None else np.where(np.isnan(batch.y), -1, out)


def assign_in_place(batch, folds, seed):
    """Divide data that do not fit into memory into folds; return each row's fold, (n,).

    If rows are held out in groups, raise ArgumentError.
    folds : number of folds, each of random blocks of consecutive rows; or the fold of each row"""
    if batch.units is not None:
        what = "clusters" if batch.groups is None else "groups"
        why = f"folds are blocks of {BLOCK_ROWS:,} rows"
        cure = f"Give folds= as an array that keeps {what} together, or sample=100_000"
        all_of = f"{what} cannot be held out as a whole with data from files"
        raise ArgumentError(f"{all_of}, as {why}. {cure}")
    if np.ndim(folds) == 1:
        return _user_folds(batch, folds)
    n_blocks = -(-batch.n // BLOCK_ROWS)
    if folds > n_blocks:
        most = f"{n_blocks}, the number of blocks of {BLOCK_ROWS:,} rows"
        raise ArgumentError(f"folds must be at most {most}, not {folds}")
    of_block = np.random.default_rng(seed).permutation(n_blocks) % folds
    return np.repeat(of_block.astype(np.int16), BLOCK_ROWS)[: batch.n]


def assign_draws(batch, folds, classes, seed, n):
    """Return n random divisions into folds, a list of arrays (n_rows,), balanced by `classes`."""
    seeds = [seed, *np.random.SeedSequence(seed).generate_state(n - 1, np.uint64)]
    return [assign(batch, folds, classes, int(one)) for one in seeds]


def _check_folds(batch, folds):
    n_units = count_units(batch)
    if folds <= n_units:
        return
    if batch.units is None:
        why = f"folds must be at most {n_units}, the number of complete rows with a positive weight"
        raise ArgumentError(f"{why}, not {folds}")
    what = "clusters" if batch.groups is None else "groups"
    if n_units < 2:
        all_rows = f"all rows with a positive weight are of one of the {what}"
        raise ArgumentError(f"{all_rows}, so none can be held out")
    most = f"{n_units}, the number of {what} with a positive weight"
    raise ArgumentError(f"folds must be at most {most}, not {folds}")


def check_units(batch, names):
    if count_units(batch) < 2:
        what = "row" if batch.units is None else "group"
        what = f"only one {what} has a positive weight"
        raise DataError(f"{what}, so none can be held out: give {names}")


def count_units(batch):
    """Return the number of groups (or clusters, or else rows) with positive weight."""
    if batch.units is None:
        return batch.n_positive
    return len(np.unique(batch.units[batch.positive_weight]))


def _whole_units(batch, folds, key, of_class, seed):
    """Divide rows into class-balanced folds that keep groups whole; return each row's fold.

    key : (n,) numbers that identify rows by their content
    of_class : (n_classes,) numbers that identify classes by their content"""
    names, code = np.unique(batch.units, return_inverse=True)
    size, C, main = np.bincount(code), len(of_class), np.zeros(len(names), np.int64)
    if C and batch.y is not None:  # main : the most frequent class of each group
        rank, known = np.argsort(np.argsort(of_class)), ~np.isnan(batch.y)
        cell = code[known] * C + rank[batch.y[known].astype(int)]
        main = np.bincount(cell, minlength=len(names) * C).reshape(-1, C).argmax(axis=1)
    of_unit = np.bincount(code, key) / size
    fold, filled = np.empty(len(names), np.int64), np.zeros((main.max() + 1, folds))
    for k in row_keys.shuffled(of_unit, seed):
        fold[k] = np.lexsort((filled.sum(axis=0), filled[main[k]]))[0]
        filled[main[k], fold[k]] += size[k]
    return fold[code]


def _user_folds(batch, folds):
    # NumPy would convert a missing name in a list to text.
    folds = np.asarray(folds, object if isinstance(folds, list | tuple) else None)
    if len(folds) != len(batch.index):
        found = f"it has {len(folds)}, the data has {counted(len(batch.index), 'row')}"
        raise ArgumentError(f"folds must have one entry per row: {found}")
    folds = folds[batch.rows]
    labelled = np.ones(batch.n, bool) if batch.y is None else ~np.isnan(batch.y)
    try:
        names = np.unique(folds[labelled])
        known = not any(name is None or name != name for name in folds.tolist())
    except TypeError:
        known = False
    if not known:
        raise ArgumentError("folds must have values of one type, none of them missing")
    if len(names) < 2:
        words = "at least two folds with rows of positive weight"
        raise ArgumentError(f"folds must have {words}, not one")
    # A fold without rows of positive weight is never held out; in training it has no effect.
    place = {name: k for k, name in enumerate(names.tolist())}
    return np.array([place.get(name, -1) for name in folds.tolist()], np.int64)
