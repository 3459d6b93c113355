"""Estimates of glm, and the data of its diagnostic plots."""

from functools import partial

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.engine.blocks import rows_of_spans
from lodim.export.expression import ONE, ZERO, Constant, call, labelled, weighted
from lodim.models.glm.likelihood import all_scores
from lodim.models.glm.settings import COVARIANCES

ALONG = 1e-5  # part of a direction that lies along a null one
MADE = 1e-6  # what rounding leaves of a column that others make


def design_matrix(batch):
    """The constant and the features of the rows of a batch, (n, 1 + p)."""
    return with_constant(tiles.unpack(batch.X, batch.n))


def with_constant(X):
    """Return a constant and the features X (n, p), (n, 1 + p)."""
    return np.column_stack([np.ones(len(X)), X])


LOG = {  # sizes, likelihood, and how the fit ended
    "converged": forms.flags(),
    "n_iter": forms.whole(),
    "n": forms.whole(least=1),
    "df": forms.whole(),
    "df_resid": forms.whole(),
    "rows": forms.text(),
    "dispersion": forms.squares(nan=True),
    "deviance": forms.squares(),
    "log_likelihood": forms.squares(),
    "sum_weights": forms.real(nan=True),
    "covariance": forms.choice(*COVARIANCES),
    "n_clusters": forms.whole(),
    "whole": forms.flags(),
}


@forms.record
class Estimates:
    """Coefficients on centred and scaled features; the S scores of all classes but the first.

    kept : columns among the constant (0) and the p features that are not aliased
    combination : how each of the other columns is made of those
    cov : covariance of coef, score by score
    null : directions along which separated data know nothing
    """

    kept: np.ndarray = forms.ascending(forms.whole("q", most="p"), strictly=True)
    combination: np.ndarray = forms.real("q", "1 + p - q")
    coef: np.ndarray = forms.real("q", "max(K - 1, 1)")
    cov: np.ndarray = forms.real("max(K - 1, 1) * q", "max(K - 1, 1) * q", nan=True)
    null: np.ndarray = forms.real("max(K - 1, 1) * q", "k")

    def score(self, X, family):
        """Scores (n, K) of the rows of a design matrix, without an offset; see `design_matrix`.

        A product for each column, so that a row's score is the same in whatever data it stands.
        """
        linear = np.zeros((len(X), self.coef.shape[1]))
        for j, b in zip(self.kept, self.coef, strict=True):
            linear += X[:, j, None] * b
        return all_scores(linear, family)

    def scores_of(self, batch, family):
        """Scores (n, K) of the rows of a batch, without an offset, a span of rows at a time."""
        return rows_of_spans(partial(_scores, self, family), batch.X, batch.n)

    def standard_error(self, X):
        """Standard errors (n,) of the scores of a family that has one, of a design matrix.

        Infinite along directions that nothing is known of.
        """
        X = X[:, self.kept]
        variance = np.maximum(((X @ self.cov) * X).sum(axis=1), 0.0)
        along = np.abs(X @ self.null).max(axis=1, initial=0.0)
        size = np.abs(X).max(axis=1, initial=0.0)
        return np.where(along > ALONG * size, np.inf, np.sqrt(variance))

    def is_estimable(self, X):
        """Whether the columns left out are in each row what they were in the training rows, (n,).

        Else the row of the design matrix asks for a coefficient that could not be estimated.
        """
        left_out = np.setdiff1d(np.arange(X.shape[1]), self.kept)
        X, others = X[:, self.kept], X[:, left_out]
        made = X @ self.combination
        size = 1.0 + np.abs(made) + np.abs(X) @ np.abs(self.combination)
        return (np.abs(others - made) <= MADE * size).all(axis=1)

    def in_units_of_data(self, mean, scale):
        """Coefficients (q, S) per unit of the features, their covariance and standard errors.

        The covariance (S q, S q) is infinite where it exceeds double precision, as of a feature in
        units of 1e-160; the standard errors (q, S) are not, which are powers of two times those in
        other units.
        """
        T = self._to_units_of_data(mean, scale)
        q, S = self.coef.shape
        unit = np.tile(np.frexp(np.abs(T).max(axis=1))[1], S)
        whole = np.ldexp(np.kron(np.eye(S), T), -unit[:, None])
        cov = whole @ self.cov @ whole.T
        error = np.ldexp(np.sqrt(np.maximum(np.diag(cov), 0.0)), unit).reshape(S, q).T
        with np.errstate(over="ignore", under="ignore"):
            return T @ self.coef, np.ldexp(cov, unit[:, None] + unit), error

    def infinite(self, mean, scale):
        """Coefficients per unit of the features without a finite estimate, (q, S) bool."""
        q, S = self.coef.shape
        if not self.null.shape[1]:
            return np.zeros((q, S), bool)
        whole = np.kron(np.eye(S), self._to_units_of_data(mean, scale))
        along = np.abs(whole @ self.null).max(axis=1)
        return (along > ALONG * np.abs(whole).max(axis=1)).reshape(S, q).T

    def _to_units_of_data(self, mean, scale):
        """The matrix (q, q) that turns coefficients of a score into those per unit of the data."""
        features = self.kept[1:] - 1
        T = np.diag(np.append(1.0, 1.0 / scale[features]))
        T[0, 1:] = -mean[features] / scale[features]
        return T

    def _check_fields(self):
        """Raise a ValueError unless the intercept is estimated."""
        if not len(self.kept) or self.kept[0] != 0:
            raise ValueError("the estimates lack the intercept")


@forms.record
class Diagnostics:
    """Training rows, as the diagnostic plots show them.

    label : labels of the rows
    fitted : mean
    deviance, pearson : residuals over their standard deviation sqrt(phi (1 - h))
    leverage : h, diagonal of the hat matrix
    cook : Cook's distance
    """

    label: tuple = forms.several("r", forms.plain())
    fitted: np.ndarray = forms.unlimited("r", nan=True)
    deviance: np.ndarray = forms.unlimited("r", nan=True)
    pearson: np.ndarray = forms.unlimited("r", nan=True)
    leverage: np.ndarray = forms.unlimited("r", nan=True)
    cook: np.ndarray = forms.unlimited("r", nan=True)


def _scores(estimates, family, X):
    """Scores of all rows of tiles, what fills the last one among them."""
    return estimates.score(with_constant(tiles.unpack(X, len(X) * tiles.TILE)), family)


def score_nodes(estimates, family, features, offset):
    """Link scores of standardized features, a list of K nodes, and rows that are not estimable."""
    X = [ONE, *features]
    columns = [X[j] for j in estimates.kept]
    linear = [weighted(0.0, [*b, 1.0], [*columns, offset], "score") for b in estimates.coef.T]
    if family.name == "multinomial":
        linear.insert(0, offset)
    return linear, _not_estimable(estimates, X, columns)


def _not_estimable(estimates, X, columns):
    """Conditions of rows where a column left out is not what it was in the training rows."""
    left_out = np.setdiff1d(np.arange(len(X)), estimates.kept)
    found = []
    for j, made_of in zip(left_out, estimates.combination.T, strict=True):
        made = weighted(0.0, made_of, columns)
        if X[j] is ZERO and isinstance(made, Constant):
            continue
        sizes = [ONE if c is ONE else call("abs", c) for c in columns if c is not ZERO]
        weights = [abs(w) for w, c in zip(made_of, columns, strict=True) if c is not ZERO]
        size = weighted(1.0, [1.0, *weights], [call("abs", made), *sizes])
        gap = call("abs", call("sub", X[j], made))
        far = call("gt", gap, weighted(0.0, [MADE], [size]))
        found.append(labelled(far, "not estimable"))
    return found
