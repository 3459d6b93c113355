"""Fit a generalized linear model: aliased columns, coefficients, covariance, diagnostics.

statsmodels fits rows in memory; Newton's method fits more rows, range by range. The last steps to
the maximum and all inference are shared."""

import numpy as np

from lodim.engine.blocks import SPAN_ROWS, single_blas
from lodim.models.glm import inference, solvers
from lodim.models.glm.aliasing import independent
from lodim.models.glm.estimates import Estimates, design_matrix
from lodim.models.glm.newton import maximize
from lodim.models.glm.rows import Basis, Rows, Sums
from lodim.models.glm.separation import is_separated

MAX_MEMORY_ROWS = SPAN_ROWS  # more rows are processed span by span


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit the model and yield (Estimates, log, scores (n, K) of the rows of `eval_batch`) once.

    It is a generator because other models of lodim are fitted in several stages."""
    with single_blas():
        estimates, log = _fit(Rows(batch, family), settings)
        scores = None
        if eval_batch is not None:
            scores = estimates.scores_of(eval_batch, family)
            scores = scores + eval_batch.offset_matrix(family.n_scores)
        yield estimates, log, scores


def _fit(rows, settings):
    family = rows.family
    kind = inference.kind_of(settings, rows.n_clusters)
    inference.check_covariance(kind, family, rows.n_clusters)
    kept, combination = independent(R := rows.triangle())
    basis = Basis.from_triangle(R, kept)
    start = at_null = Sums.of_rows(rows, basis, np.outer(_level(rows), basis.R[:, 0]), True)
    X, n_before = None, 0
    if rows.batch.n <= MAX_MEMORY_ROWS:
        X, y, weight, offset = _in_memory(rows, kept)
        coef, n_before = solvers.maximize(family, X, y, weight, offset, settings.max_iter)
        if np.isfinite(coef).all():
            start = Sums.of_rows(rows, basis, (basis.R @ coef).T, True)
    found, converged, n_iter = maximize(rows, basis, start, at_null, settings.max_iter)
    coef = basis.T @ found.coef.T
    absent = np.count_nonzero(rows.sizes == 0.0) if family.name == "multinomial" else 0
    df, free = coef.size - absent * len(kept), None
    df_resid = rows.positive * (coef.shape[1] - absent) - df
    if family.shared_slopes:
        free = rows.free_directions(*found.coef.shape)
        df, df_resid = free.shape[1], max(rows.positive - free.shape[1], 0)
    log = inference.measures(rows, found, df_resid)
    log |= {"converged": converged, "n_iter": n_before + n_iter, "df": df}
    at_null, H = (_along(free, sums.matrix) for sums in (at_null, found))
    least = inference.flat(at_null)
    if X is not None and not is_separated(family, X, y, H, least, free):
        least = 0.0
    B, null = inference.bread(H, least)
    if free is not None:
        B, null = free @ B @ free.T, free @ null
    cov = inference.covariance(kind, rows, basis, found, B, log["dispersion"])
    rank = len(found.gradient) - null.shape[1]
    null = np.linalg.qr(basis.of_features(null))[0] if null.shape[1] else null
    estimates = Estimates(kept, combination, coef, _both_sides(basis, cov), null)
    log |= {"covariance": kind, "diagnostics": None}
    if not family.several_classes and settings.diagnostic_rows:
        more = max(rank, 1), log["dispersion"], settings.diagnostic_rows
        log["diagnostics"] = inference.diagnostics(rows, estimates, _both_sides(basis, B), *more)
    return estimates, log


def _in_memory(rows, kept):
    """Return columns (n, q), response, weights and offset (n, K) of the rows with positive weight.

    `kept` (q,) are the positions of the columns that are not aliased."""
    batch, at = rows.batch, rows.batch.positive_weight
    X, offset = design_matrix(batch)[at][:, kept], batch.offset_matrix(rows.family.n_scores)[at]
    return X, batch.y[at], batch.row_weights[at], offset


def _along(free, matrix):
    """Return a matrix (S q, S q) for coefficients of directions `free` (S q, r), (r, r)."""
    return matrix if free is None else free.T @ matrix @ free


def _level(rows):
    """Return the scores of the intercept-only model: one, or one per class except the first."""
    batch, family = rows.batch, rows.family
    level = family.null_intercept(batch.y, batch.weight, batch.offsets(family.n_scores))
    return level[1:] - level[0] if family.name == "multinomial" else level


def _both_sides(basis, cov):
    """Transform a covariance of coefficients of z to one of coefficients of x, if z = T'x.

    `basis` holds T, the matrix of nearly orthogonal columns z."""
    out = basis.of_features(basis.of_features(cov).T)
    return 0.5 * (out + out.T)
