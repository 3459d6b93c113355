"""Sweep operator for least squares (Goodnight 1979): add or drop columns; fall of the deviance."""

from typing import NamedTuple

import numpy as np

from lodim.engine.compiled import ZERO, njit

ALIASED = 1e-11  # unexplained share of a column's variance below which it is aliased


class SweptModel(NamedTuple):
    """Least-squares model of K responses on some of q columns: X'X and X'y, swept by these."""

    gram: np.ndarray  # (q, q)
    target: np.ndarray  # (q, K)
    variance: np.ndarray  # (q,) diagonal of gram before all sweeps
    within: np.ndarray  # (q,) bool, columns of the model


class ColumnSets(NamedTuple):
    """Sets of columns; set s has the columns at[start[s]:start[s + 1]]."""

    start: np.ndarray
    at: np.ndarray


@njit(cache=True, error_model="numpy", inline="always")
def sweep(gram, target, k):
    """Add column k to a least-squares model, in place; or remove it if the model has it.

    gram, target : X'X (q, q) and X'y (q, K), after a sweep for each column in the model"""
    # Columns in the model have minus the inverse of X'X and their coefficients, the other columns
    # have products of residuals.
    q, K = target.shape
    pivot = gram[k, k]
    entering = 1.0 if pivot > 0.0 else -1.0
    row, own = gram[k].copy(), target[k].copy()
    for i in range(q):
        if i == k:
            continue
        share = row[i] / pivot
        for j in range(q):
            gram[i, j] -= share * row[j]
        for c in range(K):
            target[i, c] -= share * own[c]
    for i in range(q):
        gram[i, k] = gram[k, i] = entering * row[i] / pivot
    for c in range(K):
        target[k, c] = entering * own[c] / pivot
    gram[k, k] = -1.0 / pivot


@njit(cache=True, error_model="numpy")
def enter(gram, target, variance, on):
    """Add the columns `on` to a least-squares model, in place; return which entered, (q,) bool.

    gram, target : X'X (q, q) and X'y (q, K), after a sweep for each column in the model
    variance : (q,) diagonal of X'X before any sweep"""
    within = np.empty(gram.shape[0], np.bool_)
    within[:] = False
    for k in on:
        # A linear combination of columns in the model does not enter.
        if gram[k, k] > ALIASED * variance[k]:
            sweep(gram, target, k)
            within[k] = True
    return within


def rank(gram, on):
    """Return the rank of the columns `on`, given the products `gram` of all columns."""
    swept = gram[np.ix_(on, on)]
    variance, nothing = np.diag(swept).copy(), np.empty((len(on), 0))
    return int(enter(swept, nothing, variance, np.arange(len(on))).sum())


@njit(cache=True, error_model="numpy")
def gains(model, drops, adds, allowed, sign):
    """Return two (drops, adds) arrays: fall of the deviance, and rise of the number of columns.

    model, drops, adds : SweptModel, ColumnSets to drop, and ColumnSets to add
    allowed : (drops, adds) bool, exchanges to try; others have a fall of -inf
    sign : (q,) required signs of coefficients, 1, -1 or 0 for none"""
    n_out, n_in, K = drops.start.size - 1, adds.start.size - 1, model.target.shape[1]
    gram, target, variance, within = model
    gain, rank = np.full((n_out, n_in), -np.inf), np.zeros((n_out, n_in), np.int64)
    most = np.diff(drops.start).max() + np.diff(adds.start).max()
    at, M, v = np.empty(most, np.int64), np.empty((most, most)), np.empty((most, K))
    for a in range(n_out):
        going = ZERO
        for k in drops.at[drops.start[a] : drops.start[a + 1]]:
            if within[k]:
                at[going] = k
                going += 1
        for b in range(n_in):
            if not allowed[a, b]:
                continue
            size = going
            for k in adds.at[adds.start[b] : adds.start[b + 1]]:
                at[size] = k
                size += 1
            for i in range(size):
                for j in range(i + 1):
                    M[i, j] = gram[at[i], at[j]]
                for c in range(K):
                    v[i, c] = target[at[i], c]
            gain[a, b], rank[a, b] = _eliminate(M, v, variance, at, going, size, sign)
    return gain, rank


@njit(cache=True, error_model="numpy", inline="always")
def _eliminate(M, v, variance, at, n_dropped, size, sign):
    """Exchange columns of a least-squares model; return fall of the deviance and rise of the rank.

    M, v : X'X and X'y of these columns, swept as in the SweptModel; overwritten
    variance : (q,) diagonal of X'X before any sweep, for all q columns
    at : positions of `size` exchanged columns; the first n_dropped leave, the others enter
    sign : (q,) required signs, 1, -1 or 0 for none; a column with a wrong sign does not enter"""
    total, rank = 0.0, 0
    for k in range(size):
        pivot = M[k, k]
        # Neither a column with a wrong sign nor a collinear column enters.
        wrong_sign = sign[at[k]] * v[k, 0] < 0.0
        if k >= n_dropped and (wrong_sign or pivot <= ALIASED * variance[at[k]]):
            continue
        rank += -1 if k < n_dropped else 1
        for c in range(v.shape[1]):
            total += v[k, c] * v[k, c] / pivot
        for i in range(k + 1, size):
            share = M[i, k] / pivot
            for j in range(k + 1, i + 1):
                M[i, j] -= share * M[j, k]
            for c in range(v.shape[1]):
                v[i, c] -= share * v[k, c]
    return total, rank
