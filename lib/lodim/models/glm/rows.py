"""The rows of a fit, a basis of their columns, and sums over them."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from lodim.engine.blocks import over_spans, row_spans, sum_rows
from lodim.models.glm import passes

FAR = 1e-3  # share of a column that the columns before it leave: its square keeps ten digits


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a batch as passes see them: spans of arrays, none of which is copied as a whole."""

    batch: Any
    family: Any

    @property
    def arrays(self):
        """Response, weights and offset of the rows; weights may be made for each span."""
        return self.batch.y, self.weights, self.batch.offset

    @cached_property
    def weights(self):
        """Weights (n,) as given; ones by default, which take no memory."""
        given = self.batch.weights
        return np.broadcast_to(1.0, self.batch.n) if given is None else given

    @cached_property
    def positive(self):
        """Number of rows of weight above zero."""
        return int(np.count_nonzero(self.weights))

    @cached_property
    def sum_weights(self):
        """Sum of the weights as given."""
        return self.total(lambda y, weights, offset: weights)

    @cached_property
    def sizes(self):
        """Sums of the weights of the classes (K,)."""
        y, weights, K = self.batch.y, self.weights, self.family.n_scores
        return sum_rows(lambda i: np.bincount(y[i].astype(int), weights[i], K), len(y))

    @cached_property
    def n_clusters(self):
        """Number of clusters of rows of weight above zero; None without."""
        clusters = self.batch.clusters
        if clusters is None:
            return None
        seen = np.zeros(self.n_codes, bool)
        for part in row_spans(len(clusters)):
            seen[clusters[part][self.weights[part] > 0.0].astype(np.int64)] = True
        return int(seen.sum())

    @property
    def n_codes(self):
        """One more than the largest code of a cluster."""
        return int(self.batch.clusters.max()) + 1

    def total(self, work):
        """Sum of work(y, weights, offset) over the rows of weight above zero, spans in order."""
        y, weights, offset = self.arrays

        def of_span(i):
            at = weights[i] > 0.0
            beside = None if offset is None else offset[i][at]
            return float(work(y[i][at], weights[i][at], beside).sum())

        return sum_rows(of_span, len(y))

    def triangle(self):
        """Return R of a QR decomposition of the weighted design matrix.

        It is the Cholesky factor of the cross products if every column is far enough from the
        columns before it: else these have too few digits.
        """
        products = reduce(np.add, self.over_spans(passes.cross_products, self.weights))
        with suppress(np.linalg.LinAlgError):
            R = np.linalg.cholesky(products).T
            if (np.diag(R) > FAR * np.sqrt(np.diag(products))).all():
                return R
        return reduce(passes.joined, self.over_spans(passes.triangle, self.weights))

    def over_spans(self, work, *arrays):
        """A list of what work(X, *arrays) finds of each span of rows, in order."""
        return over_spans(work, self.batch.X, self.batch.n, *arrays, threads=None)

    def drawn(self, most):
        """Increasing positions of `most` rows of weight above zero, at random, or of all."""
        at = self.batch.positive_weight
        if len(at) <= most:
            return at
        return at[np.sort(np.random.default_rng(0).choice(len(at), most, replace=False))]


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns z = T'x of the columns x of the design matrix that are kept; T = R^-1, (q, q)."""

    kept: np.ndarray
    R: np.ndarray
    T: np.ndarray

    @classmethod
    def from_triangle(cls, R, kept):
        """Build from the triangle of all columns and the columns that are not aliased."""
        R = np.linalg.qr(R[:, kept], mode="r")
        return cls(kept, R, solve_triangular(R, np.eye(len(R))))

    def of_features(self, matrix):
        """A matrix (S q, k) of coefficients of z as coefficients of x."""
        q, k = len(self.T), matrix.shape[1]
        return np.einsum("ab,sbk->sak", self.T, matrix.reshape(-1, q, k)).reshape(-1, k)


@dataclass(frozen=True, eq=False)
class Sums:
    """Result of a pass at coefficients coef (S, q) of z: totals, gradient, information."""

    coef: np.ndarray
    totals: np.ndarray
    gradient: np.ndarray
    matrix: np.ndarray

    @classmethod
    def of_rows(cls, rows, basis, coef, observed):
        """Sum over all Rows, with the observed or the expected information."""
        how = {"kept": basis.kept, "T": basis.T, "family": rows.family}
        work = partial(passes.sums, **how, coef=coef, observed=observed)
        found = reduce(np.add, rows.over_spans(work, *rows.arrays))
        return cls(coef, *passes.parts(found, coef))

    @property
    def deviance(self):
        """Deviance of all rows; infinite if it is not a number."""
        value = float(self.totals[0])
        return value if np.isfinite(value) else np.inf
