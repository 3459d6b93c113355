"""Training rows of a glm fit, sums over them, and a nearly orthogonal basis of their columns."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from lodim.engine.blocks import over_spans, row_spans, sum_rows
from lodim.family.thresholds import tied
from lodim.models.glm import passes
from lodim.models.glm.estimates import design_matrix

FAR = 1e-3  # unexplained share of a column whose square still has ten digits


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows of a fit; sums over them are computed in ranges of 65,536 rows."""

    batch: Any
    family: Any

    @cached_property
    def weights(self):
        """Weights (n,) of the rows, as given; ones by default."""
        given = self.batch.weights
        return np.broadcast_to(1.0, self.batch.n) if given is None else given

    @cached_property
    def positive(self):
        return int(np.count_nonzero(self.weights))

    @cached_property
    def sum_weights(self):
        return self.total(lambda y, weights: weights)

    @cached_property
    def sizes(self):
        """Total weight of the rows of each class, (K,)."""
        y, weights, K = self.batch.y, self.weights, 1 + self.family.n_linear
        return sum_rows(lambda i: np.bincount(y[i].astype(int), weights[i], K), len(y))

    @cached_property
    def n_clusters(self):
        """Number of clusters with a row of positive weight; None if there are no clusters."""
        clusters = self.batch.clusters
        if clusters is None:
            return None
        seen = np.zeros(int(clusters.max()) + 1, bool)
        for part in row_spans(len(clusters)):
            seen[clusters[part][self.weights[part] > 0.0].astype(np.int64)] = True
        return int(seen.sum())

    def free_directions(self, S, q):
        """Return a basis (S q, r) of possible changes of coefficients; None if all are possible.

        Some coefficients are fixed, or change together, if classes have no rows.
        S : number of linear predictors
        q : number of coefficients per linear predictor"""
        if S == 1:
            return None
        present = self.sizes > 0.0
        if not self.family.shared_slopes:  # unordered: one class is the reference
            # Coefficients of classes without rows are fixed.
            moved = np.isin(np.arange(1, S + 1), np.flatnonzero(present)[1:])
            return np.eye(S * q)[:, np.repeat(moved, q)]
        # Slopes are shared; thresholds with no rows between them change together.
        n_groups = present.sum() - 1
        if not n_groups:
            return np.zeros((S * q, 0))
        constants = np.zeros((S, q, n_groups))
        constants[np.arange(S), 0, tied(present)] = 1.0
        slopes = np.tile(np.eye(q)[:, 1:], (S, 1, 1))
        return np.concatenate([constants, slopes], axis=2).reshape(S * q, -1)

    def total(self, work):
        """Return the sum of the row values work(y, weights), without rows of weight 0."""
        y, weights = self.batch.y, self.weights

        def of_span(i):
            at = weights[i] > 0.0
            return float(work(y[i][at], weights[i][at]).sum())

        return sum_rows(of_span, len(y))

    def triangle(self):
        products = reduce(np.add, self.over_spans(passes.cross_products, self.weights))
        with suppress(np.linalg.LinAlgError):
            R = np.linalg.cholesky(products).T
            if (np.diag(R) > FAR * np.sqrt(np.diag(products))).all():
                return R
        return reduce(passes.joined, self.over_spans(passes.triangle, self.weights))

    def in_memory(self, kept):
        """Return design columns `kept`, response, weights and offset of rows of positive weight."""
        batch, at = self.batch, self.batch.positive_weight
        X, offset = design_matrix(batch)[at][:, kept], batch.offset_matrix(self.family.n_scores)[at]
        return X, batch.y[at], batch.row_weights[at], offset

    def over_spans(self, work, *arrays):
        """Yield the results of work(X, *arrays) for ranges of 65,536 rows, in order."""
        return over_spans(work, self.batch.X, self.batch.n, *arrays, threads=None)

    def at(self, basis, coef, work, *arrays, **options):
        """Yield the results of `work` for ranges of 65,536 rows, in order.

        basis : Basis of the coefficients
        coef : (S, q) coefficients in S linear predictors
        work : function of the module `passes`, such as `passes.sums`
        arrays : further arguments of `work` with an entry per row; options : its other arguments"""
        model = {"kept": basis.kept, "T": basis.T, "family": self.family, "coef": coef}
        rows = self.batch.y, self.weights, self.batch.offset, *arrays
        return self.over_spans(partial(work, **model, **options), *rows)


@dataclass(frozen=True, eq=False)
class Basis:
    """Nearly orthogonal combinations z = T'x of design columns x, used to fit a glm.

    kept : positions of x in the design; R : triangular factor of x = QR; T : inverse of R"""

    kept: np.ndarray
    R: np.ndarray

    @cached_property
    def T(self):
        return solve_triangular(self.R, np.eye(len(self.R)))

    def of_features(self, matrix):
        """Convert each column of `matrix` (S q, k) from coefficients of z = T'x to those of x."""
        q, k = len(self.T), matrix.shape[1]
        return np.einsum("ab,sbk->sak", self.T, matrix.reshape(-1, q, k)).reshape(-1, k)


@dataclass(frozen=True, eq=False)
class Sums:
    """Deviance, and gradient and information times dispersion, at coefficients of a Basis."""

    coef: np.ndarray  # (S, q)
    totals: np.ndarray  # (3,) as in `passes`: deviance, squared Pearson residuals, ...
    gradient: np.ndarray  # (S q,)
    matrix: np.ndarray  # (S q, S q) information

    @classmethod
    def of_rows(cls, rows, basis, coef, observed):
        """Compute deviance, gradient and information (Sums) of all Rows at given coefficients.

        basis : Basis of q columns; coef : (S, q) coefficients in S linear predictors
        observed : True for the observed information, False for the expected one"""
        found = reduce(np.add, rows.at(basis, coef, passes.sums, observed=observed))
        return cls(coef, *passes.parts(found, coef))

    @property
    def deviance(self):
        """Deviance of all rows; infinite if it overflows."""
        value = float(self.totals[0])
        return value if np.isfinite(value) else np.inf
