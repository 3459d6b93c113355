"""What glm estimates, and what its diagnostic plots show."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.engine import tiles


@dataclass(frozen=True, eq=False)
class Estimates:
    """Coefficients on centred and scaled features; the scores of all classes but the first.

    kept : (q,) int, columns among the constant (0) and the p features that are not aliased
    combination : (q, 1 + p - q), how each of the other columns is made of those
    coef : (q, S)
    cov : (S q, S q), covariance of coef, score by score
    infinite : (q, S) bool, coefficients without a finite estimate
    """

    kept: np.ndarray
    combination: np.ndarray
    coef: np.ndarray
    cov: np.ndarray
    infinite: np.ndarray

    def columns(self, batch):
        """The columns that have coefficients, (n, q), of the rows of a batch."""
        X = np.column_stack([np.ones(batch.n), tiles.unpack(batch.X, batch.n)])
        return X[:, self.kept]

    def linear(self, X, family):
        """Scores (n, K) of columns (n, q), without an offset; the first of several classes has 0.

        A product for each column, so that a row's score is the same in whatever data it stands.
        """
        scores = np.zeros((len(X), self.coef.shape[1]))
        for x, b in zip(X.T, self.coef, strict=True):
            scores += x[:, None] * b
        return np.insert(scores, 0, 0.0, axis=1) if family.name == "multinomial" else scores

    def standard_error(self, X):
        """Standard errors (n,) of the scores of a family that has one, of columns (n, q)."""
        return np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", X, self.cov, X, optimize=True), 0.0))

    def in_units_of_data(self, mean, scale):
        """Coefficients (q, S) and their covariance per unit of the features, (S q, S q)."""
        q, S = self.coef.shape
        T = np.eye(q)
        features = self.kept[1:] - 1
        T[np.arange(1, q), np.arange(1, q)] = 1.0 / scale[features]
        T[0, 1:] = -mean[features] / scale[features]
        whole = np.kron(np.eye(S), T)
        return T @ self.coef, whole @ self.cov @ whole.T

    def check(self, p, n_scores):
        """Raise a ValueError unless the parts fit each other, p features and n_scores scores."""
        S = max(n_scores - 1, 1)
        q = len(self.kept)
        forms.check(
            self,
            {
                "kept": forms.ascending(forms.whole(q, most=p), strictly=True),
                "combination": forms.real(q, 1 + p - q),
                "coef": forms.real(q, S),
                "cov": forms.real(S * q, S * q, nan=True),
                "infinite": forms.flags(q, S),
            },
            "estimates",
        )
        if not q or self.kept[0] != 0:
            raise ValueError("the estimates lack the intercept")


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Training rows, as the diagnostic plots show them; all (r,).

    label : labels of the rows
    fitted : mean
    deviance, pearson : residuals over their standard deviation sqrt(phi (1 - h))
    leverage : h, diagonal of the hat matrix
    cook : Cook's distance
    """

    label: list
    fitted: np.ndarray
    deviance: np.ndarray
    pearson: np.ndarray
    leverage: np.ndarray
    cook: np.ndarray
