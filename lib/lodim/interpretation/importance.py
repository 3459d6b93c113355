"""Permutation importance: what a model loses where a feature says nothing."""

import numpy as np

from lodim.engine import row_keys

REPEATS = 5  # permutations of each feature


def losses(fit, rows):
    """Deviance (n,) of each row, NaN where the response or the answer is missing."""
    batch = rows.batch(fit._reader, response=True)
    known, score = fit._answered(batch)
    full = np.full(rows.n, np.nan)
    full[known.rows] = fit.family.deviance(known.y, score)
    return full


def increases(fit, rows, feature, orders, base):
    """What the loss of each row increases by (repeats, n) where a feature's values change rows.

    orders : (repeats, n) permutations of the rows; base : (n,) losses as the rows are
    """
    return np.array(
        [losses(fit, rows.with_values(feature, feature.values[at])) - base for at in orders]
    )


def mean_and_error(increase, weight):
    """Mean of increases (repeats, n), and its standard error over rows and permutations."""
    known = np.isfinite(increase).all(axis=0) & (weight > 0.0)
    increase, share = increase[:, known], weight[known] / weight[known].sum()
    each = increase @ share
    of_rows = increase.mean(axis=0)
    variance = share**2 @ (of_rows - share @ of_rows) ** 2
    return each.mean(), np.sqrt(variance + each.var(ddof=1) / len(each))


def permutations(fit, rows, seed):
    """Permutations (repeats, n) of rows, which depend on what the rows hold, not on their order."""
    batch = rows.batch(fit._reader, response=True)
    key = np.full(rows.n, np.inf)
    key[batch.rows] = row_keys.of_batch(batch, 0)[0]
    order = np.argsort(key, kind="stable")
    orders = np.empty((REPEATS, rows.n), np.int64)
    for one, child in zip(orders, np.random.SeedSequence(seed).spawn(REPEATS), strict=True):
        one[order] = order[np.random.default_rng(child).permutation(rows.n)]
    return orders
