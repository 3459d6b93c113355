"""Sums of a glm's likelihood and derivatives over rows, for combinations z = T'x of columns x."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lodim.engine import tiles
from lodim.models.glm import kernels, likelihood
from lodim.models.glm.estimates import with_constant

CHUNK = 32 * tiles.TILE  # rows added to a triangle at a time
ROWS_AT_ONCE = 256 * tiles.TILE  # rows whose means and slopes are in memory at once
WHOLE = 1e-10  # tolerance of a leverage of one
N_TOTALS = 3  # deviance, squared Pearson residuals, weight of residuals up to Huber's limit


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Consecutive rows that are processed together, and the columns that the model uses."""

    X: Any  # features in blocks of 64 rows
    kept: np.ndarray  # (q,) columns of the design matrix that are used
    T: np.ndarray  # (q, r) matrix of nearly orthogonal columns z = T'x
    live: Any  # positions of the rows with positive weight; a slice if these are all rows
    # Arrays of the rows `live`; y, offset and groups are None if the sum does not need them.
    weights: np.ndarray
    y: Any = None
    offset: Any = None
    groups: Any = None  # index of each row's cluster

    @classmethod
    def of_span(cls, X, kept, T, *rows):
        """Divide rows into RowBlocks of at most 16,384 rows and yield them.

        kept : (q,) columns of the design in the model
        T : (q, q) matrix that combines them to z = T'x
        rows : weights, y, offset and groups; None for those not needed"""
        for start in range(0, len(rows[0]), ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, len(rows[0])))
            some = rows[0][part] > 0.0
            live = slice(len(some)) if some.all() else np.flatnonzero(some)
            # Broadcast arrays are copied: NumPy adds products of contiguous ones in another order.
            own = (None if a is None else np.ascontiguousarray(a[part][live]) for a in rows)
            yield cls(X[tiles.of_rows(part)], kept, T, live, *own)

    @property
    def basis(self):
        """Return the first arguments of the functions in `kernels`: X, columns, T and `live`."""
        mask = self.padded(self.weights[None])[0] > 0.0
        return np.asarray(self.X), self.kept - 1, np.ascontiguousarray(self.T), mask

    def padded(self, values):
        """Expand values (k, m) of the rows with positive weight to all rows, (k, N), by zeros."""
        shape = len(values), kernels.padded_length(self.X)
        if values.shape == shape:
            return np.ascontiguousarray(values)
        out = np.zeros(shape)
        out[:, self.live] = values
        return out

    def score(self, family, coef):
        """Return linear predictors with offset, (m, K), of the m rows with positive weight.

        coef : (S, q) coefficients of z = T'x; K is S, or for unordered classes S + 1"""
        out = np.empty((len(coef), kernels.padded_length(self.X)))
        kernels.scores(np.asarray(self.X), self.kept - 1, coef @ self.T.T, out)
        score = likelihood.all_scores(out[:, self.live].T, family)
        return score if self.offset is None else score + self.offset.reshape(len(score), -1)


def cross_products(X, weights):
    """Return the weighted cross products of the design columns, (1 + p, 1 + p); constant first."""
    q = 1 + X.shape[1]
    out = np.zeros((1, q, q))
    for part in RowBlock.of_span(X, np.arange(q), np.eye(q), weights):
        weight = part.padded(part.weights[None])
        kernels.products(*part.basis, weight[:0], weight, np.zeros((0, q)), out)
    return out[0]


def triangle(X, weights):
    """Return R of the QR decomposition of the design matrix, with rows times sqrt(weight)."""
    R = np.zeros((0, 1 + X.shape[1]))
    for start in range(0, len(weights), CHUNK):
        w = weights[start : start + CHUNK]
        some = X[tiles.of_rows(slice(start, start + len(w)))]
        at = np.flatnonzero(w)
        R = joined(R, np.sqrt(w[at])[:, None] * with_constant(tiles.unpack(some, len(w))[at]))
    return R


def joined(R, rows):
    return np.linalg.qr(np.concatenate([R, rows]), mode="r")


@np.errstate(all="ignore")
def sums(X, y, weights, offset, *, kept, T, family, coef, observed):
    """Sum a log-likelihood and its derivatives over rows; return all in one vector for `parts`.

    kept : (q,) design columns in the model
    T : (q, q) matrix that combines them to z = T'x
    coef : (S, q) coefficients of z per linear predictor
    observed : False for the expected information"""
    S, q = coef.shape
    totals, gradient, blocks = np.zeros(N_TOTALS), np.zeros((S, q)), _no_blocks(S, q)
    for part in RowBlock.of_span(X, kept, T, weights, y, offset):
        score, w = part.score(family, coef), part.weights
        mean = family.mean(score)
        totals[0] += w @ family.deviance(part.y, score)
        if family.dispersed:
            totals[1] += w @ likelihood.pearson(family, part.y, mean) ** 2
        if family.name == "huber":
            totals[2] += w @ family.curvature(part.y, mean)
        u = likelihood.slopes(family, part.y, w, mean)
        c = likelihood.curvatures(family, part.y, w, mean, observed)
        kernels.products(*part.basis, part.padded(u.T), part.padded(c), gradient, blocks)
    return np.concatenate([totals, gradient.ravel(), likelihood.joined_blocks(blocks, S).ravel()])


def parts(vector, coef):
    """Split a vector of `sums` into totals (3,), gradient (S q,) and information (S q, S q).

    totals : sums of deviance, squared Pearson residuals, and curvature of family huber
    coef : (S, q) coefficients given to `sums`"""
    size = coef.size
    totals, gradient = vector[:N_TOTALS], vector[N_TOTALS : N_TOTALS + size]
    return totals, gradient, vector[N_TOTALS + size :].reshape(size, size)


@np.errstate(all="ignore")
def squares(X, y, weights, offset, *, kept, T, family, coef, B, power):
    """Return the number of rows with leverage 1 and M of the covariance B M B, in one vector.

    kept : (q,) design columns in the model
    T : (q, q) matrix that combines them to z = T'x
    coef : (S, q) coefficients of z per linear predictor
    B : (S q, S q) nonrobust covariance for dispersion 1
    power : 0 for HC0 and HC1, 1 for HC2, 2 for HC3"""
    # M is Z' diag(u^2 / (1 - h)^power) Z for leverages h and derivatives u; the rows of Z are z.
    (S, q), whole = coef.shape, 0
    blocks, (value, vector) = _no_blocks(S, q), np.linalg.eigh(B)
    for part in RowBlock.of_span(X, kept, T, weights, y, offset):
        w, mean = part.weights, family.mean(part.score(family, coef))
        u = likelihood.slopes(family, part.y, w, mean).T
        if power:
            root = replace(part, T=T @ (vector * np.sqrt(np.maximum(value, 0.0))))
            length = np.empty(kernels.padded_length(part.X))
            kernels.squared_lengths(*root.basis, length)
            h = np.clip(likelihood.working_weights(family, w, mean) * length[part.live], 0.0, 1.0)
            whole += np.count_nonzero(h > 1.0 - WHOLE)
            u = u / (1.0 - h) ** (0.5 * power)
        pairs = part.padded(np.stack([u[k] * u[j] for k in range(S) for j in range(k + 1)]))
        kernels.products(*part.basis, pairs[:0], pairs, np.zeros((0, q)), blocks)
    return np.append(whole, likelihood.joined_blocks(blocks, S))


@np.errstate(all="ignore")
def cluster_sums(X, y, weights, offset, clusters, *, bounds, kept, T, family, coef):
    """Sum log-likelihood gradients by cluster; return the m clusters' codes and sums (m, S q).

    clusters : (n,) cluster code per row
    bounds : lowest code to return, and highest one + 1
    kept : (q,) design columns in the model
    T : (q, q) matrix that combines them to z = T'x
    coef : (S, q) coefficients of z per linear predictor"""
    known, group = np.unique(clusters.astype(np.int64), return_inverse=True)
    first, last = np.searchsorted(known, bounds)
    weights = np.where((first <= group) & (group < last), weights, 0.0)
    out = np.zeros((last - first, *coef.shape))
    for part in RowBlock.of_span(X, kept, T, weights, y, offset, group - first):
        mean = family.mean(part.score(family, coef))
        u = likelihood.slopes(family, part.y, part.weights, mean)
        own = part.padded(part.groups[None])[0].astype(np.int64)
        kernels.group_sums(*part.basis, part.padded(u.T), own, out)
    return known[first:last], out.reshape(-1, coef.size)


def _no_blocks(S, q):
    return np.zeros((S * (S + 1) // 2, q, q))
