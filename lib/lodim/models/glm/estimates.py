"""Estimates of glm, and residuals of training rows for its diagnostic plots."""

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.engine.blocks import rows_of_spans
from lodim.export.expression import ONE, ZERO, Constant, call, labelled, weighted
from lodim.models.glm.likelihood import all_scores
from lodim.models.glm.settings import COVARIANCES

ALONG = 1e-5  # share of a direction along null directions that makes it infinite
ALIAS_TOLERANCE = 1e-6  # relative rounding error of an aliased column


def design_matrix(batch):
    """Return the design matrix (n, 1 + p) of a batch of rows: a constant and p features."""
    return with_constant(tiles.unpack(batch.X, batch.n))


def with_constant(X):
    return np.column_stack([np.ones(len(X)), X])


LOG = {  # sizes, likelihood, and how the fit ended
    "converged": forms.flags(),
    "n_iter": forms.whole(),
    "n": forms.whole(least=1),
    "df": forms.whole(),
    "df_resid": forms.whole(),
    "rows": forms.text(),
    "theta_error": forms.squares(nan=True),
    "dispersion": forms.squares(nan=True),
    "deviance": forms.squares(),
    "log_likelihood": forms.squares(nan=True),
    "sum_weights": forms.real(nan=True),
    "covariance": forms.choice(*COVARIANCES),
    "n_clusters": forms.whole(),
    "whole": forms.flags(),
    "exact": forms.flags(),
}


@forms.record
class Estimates:
    """Coefficients of a glm fit and their covariance, for centred and scaled features.

    There are S linear predictors with q coefficients each."""

    # S is K - 1 for K > 2 classes, otherwise 1. Ordered classes have the same slopes in all.

    # columns of the design matrix that are not aliased; 0 is the constant
    kept: np.ndarray = forms.ascending(forms.whole("q", most="p"), strictly=True)
    combination: np.ndarray = forms.real("q", "1 + p - q")  # aliased columns from kept ones
    coef: np.ndarray = forms.real("q", "S")  # coefficients of the kept columns
    cov: np.ndarray = forms.real("S * q", "S * q", nan=True)
    null: np.ndarray = forms.real("S * q", "k")  # directions without a finite estimate

    def score(self, X, family):
        """Return the linear predictors (n, K) of rows of a design matrix, without an offset."""
        linear = np.zeros((len(X), self.coef.shape[1]))
        # One column after another, so that a row's result does not depend on other rows.
        for j, b in zip(self.kept, self.coef, strict=True):
            linear += X[:, j, None] * b
        return all_scores(linear, family)

    def scores_of(self, batch, family):
        """Return the linear predictors (n, K) of a batch of rows, with its offset."""

        def work(X):
            return self.score(with_constant(tiles.unpack(X, len(X) * tiles.TILE)), family)

        linear = rows_of_spans(work, batch.X, batch.n)
        return linear + batch.offset_matrix(family.n_scores)

    def standard_error(self, X):
        """Return standard errors of linear predictors of design rows X, inf if not estimable."""
        X = X[:, self.kept]
        variance = np.maximum(((X @ self.cov) * X).sum(axis=1), 0.0)
        along = np.abs(X @ self.null).max(axis=1, initial=0.0)
        size = np.abs(X).max(axis=1, initial=0.0)
        return np.where(along > ALONG * size, np.inf, np.sqrt(variance))

    def is_estimable(self, X):
        """Return which rows of a design matrix X have an estimable prediction, (n,) bool.

        In these rows, aliased columns are the same combinations of other columns as in training."""
        left_out = np.setdiff1d(np.arange(X.shape[1]), self.kept)
        X, others = X[:, self.kept], X[:, left_out]
        made = X @ self.combination
        size = 1.0 + np.abs(made) + np.abs(X) @ np.abs(self.combination)
        return (np.abs(others - made) <= ALIAS_TOLERANCE * size).all(axis=1)

    def in_units_of_data(self, mean, scale):
        """Convert coefficients, covariance, SEs for features (x - mean) / scale to those for x."""
        T = self._to_units_of_data(mean, scale)
        q, S = self.coef.shape
        unit = np.tile(np.frexp(np.abs(T).max(axis=1))[1], S)
        whole = np.ldexp(np.kron(np.eye(S), T), -unit[:, None])
        cov = whole @ self.cov @ whole.T
        error = np.ldexp(np.sqrt(np.maximum(np.diag(cov), 0.0)), unit).reshape(S, q).T
        with np.errstate(over="ignore", under="ignore"):
            return T @ self.coef, np.ldexp(cov, unit[:, None] + unit), error

    def infinite(self, mean, scale):
        """Return which coefficients for unscaled features x are infinite, (q, S) bool.

        mean, scale : (p,); the estimates are for features (x - mean) / scale"""
        q, S = self.coef.shape
        if not self.null.shape[1]:
            return np.zeros((q, S), bool)
        whole = np.kron(np.eye(S), self._to_units_of_data(mean, scale))
        along = np.abs(whole @ self.null).max(axis=1)
        return (along > ALONG * np.abs(whole).max(axis=1)).reshape(S, q).T

    def _to_units_of_data(self, mean, scale):
        """Return the matrix (q, q) from coefficients of (x - mean) / scale to those of x."""
        features = self.kept[1:] - 1
        T = np.diag(np.append(1.0, 1.0 / scale[features]))
        T[0, 1:] = -mean[features] / scale[features]
        return T

    def _check_fields(self):
        if not len(self.kept) or self.kept[0] != 0:
            raise ValueError("the estimates lack the intercept")


@forms.record
class Diagnostics:
    """Residuals and leverages of training rows, for the diagnostic plots."""

    label: tuple = forms.several("r", forms.plain())
    fitted: np.ndarray = forms.unlimited("r", nan=True)  # fitted mean
    deviance: np.ndarray = forms.unlimited("r", nan=True)  # divided by sqrt(phi (1 - h))
    pearson: np.ndarray = forms.unlimited("r", nan=True)  # divided by sqrt(phi (1 - h))
    leverage: np.ndarray = forms.unlimited("r", nan=True)  # h, diagonal of the hat matrix
    cook: np.ndarray = forms.unlimited("r", nan=True)  # Cook's distance


def score_nodes(estimates, family, features, offset):
    """Return two lists of expressions for export: linear predictors, and conditions.

    A row has no prediction if a condition is true.
    estimates : Estimates of the fit; features : list of expressions"""
    X = [ONE, *features]
    columns = [X[j] for j in estimates.kept]
    linear = [weighted(0.0, [*b, 1.0], [*columns, offset], "score") for b in estimates.coef.T]
    if family.name == "multinomial":
        linear.insert(0, offset)
    conditions, left_out = [], np.setdiff1d(np.arange(len(X)), estimates.kept)
    for j, made_of in zip(left_out, estimates.combination.T, strict=True):
        made = weighted(0.0, made_of, columns)
        if X[j] is ZERO and isinstance(made, Constant):
            continue
        sizes = [ONE if c is ONE else call("abs", c) for c in columns if c is not ZERO]
        weights = [abs(w) for w, c in zip(made_of, columns, strict=True) if c is not ZERO]
        size = weighted(1.0, [1.0, *weights], [call("abs", made), *sizes])
        gap = call("abs", call("sub", X[j], made))
        far = call("gt", gap, weighted(0.0, [ALIAS_TOLERANCE], [size]))
        conditions.append(labelled(far, "not estimable"))
    return linear, conditions
