"""Fitting: which columns can be estimated, coefficients, their covariance, diagnostics."""

from dataclasses import dataclass

import numpy as np

from lodim.engine import row_keys
from lodim.engine.blocks import SPAN_ROWS, single_blas
from lodim.family import has_classes
from lodim.models.glm import blockwise, covariance, solvers
from lodim.models.glm.aliasing import independent
from lodim.models.glm.estimates import Estimates, design_matrix
from lodim.models.glm.likelihood import (
    DISPERSED,
    all_scores,
    log_likelihood,
    pearson,
    working_weights,
)
from lodim.models.glm.measures import check_covariance, diagnostics, fingerprint, kind_of
from lodim.models.glm.separation import is_separated

MANY = SPAN_ROWS  # beyond which the rows are passed over block by block, wherever they are


@dataclass(frozen=True, eq=False)
class Rows:
    """The n rows of weight above zero.

    X : (n, 1 + p), the constant first; y, weight : (n,); offset : (n, K)
    clusters : (n,) codes, or None; batch_row : (n,) positions in the batch
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    clusters: np.ndarray | None
    batch_row: np.ndarray

    @classmethod
    def from_batch(cls, batch, family):
        at = batch.positive_weight
        return cls(
            X=design_matrix(batch)[at],
            y=batch.y[at],
            weight=batch.row_weights[at],
            offset=batch.offset_matrix(family.n_scores)[at],
            clusters=None if batch.clusters is None else batch.clusters[at],
            batch_row=at,
        )


def fit_stages(batch, family, settings, eval_batch=None):
    """Fit: yields (Estimates, log, scores (n, K) of rows held out)."""
    with single_blas():
        if batch.n > MANY:
            estimates, log = blockwise.fit(batch, family, settings)
        else:
            rows = Rows.from_batch(batch, family)
            estimates, log = _fit(rows, family, settings, batch)
        scores = None
        if eval_batch is not None:
            scores = estimates.scores_of(eval_batch, family)
            scores = scores + eval_batch.offset_matrix(family.n_scores)
        yield estimates, log, scores


def _fit(rows, family, settings, batch):
    kept, combination = independent(np.sqrt(rows.weight)[:, None] * rows.X)
    X, y, weight = rows.X[:, kept], rows.y, rows.weight
    coef, converged, n_iter = solvers.maximize(family, X, y, weight, rows.offset, settings.max_iter)
    score = rows.offset + all_scores(X @ coef, family)
    absent = family.n_scores - len(np.unique(y)) if family.name == "multinomial" else 0
    df = coef.size - absent * len(kept)
    log = _measures(family, rows, batch, score, len(X) * (coef.shape[1] - absent) - df)
    log |= {"converged": converged, "n_iter": n_iter, "df": df}
    cov, null, h, kind = _covariance(family, rows, X, score, log["dispersion"], settings)
    log |= {"covariance": kind, "diagnostics": None}
    if h is not None and settings.diagnostic_rows:
        at = _shown(batch, family, rows, settings.diagnostic_rows)
        rank = max(round(h.sum()), 1)  # the trace of the hat matrix
        of_rows = rows.batch_row[at], rows.weight[at], score[at], log["dispersion"], h[at]
        log["diagnostics"] = diagnostics(batch, family, *of_rows, rank)
    return Estimates(kept, combination, coef, cov, null), log


def _measures(family, rows, batch, score, df_resid):
    """What a fit says of the rows beside the estimates, a dict."""
    y, weight = rows.y, rows.weight
    return {
        "n": len(y),
        "df_resid": df_resid,
        "dispersion": _dispersion(family, rows, family.mean(score), df_resid),
        "deviance": float(weight @ family.deviance(y, score)),
        "log_likelihood": log_likelihood(family, y, weight, score),
        "sum_weights": float(weight.sum()),
        "whole": family.name != "poisson" or bool((y == np.round(y)).all()),
        "n_clusters": 0 if rows.clusters is None else len(np.unique(rows.clusters)),
        "rows": fingerprint(batch, family),
    }


def _covariance(family, rows, X, score, dispersion, settings):
    """Covariance (S q, S q), null directions (S q, k), leverages (n,) or None, and its kind."""
    y, weight, mean = rows.y, rows.weight, family.mean(score)
    kind = kind_of(settings, rows.clusters)
    n_clusters = None if rows.clusters is None else len(np.unique(rows.clusters))
    check_covariance(kind, family, n_clusters)
    flat = covariance.flat_information(family, X, y, weight, mean)
    separated = is_separated(family, X, y, weight, mean, flat)
    B, null = covariance.bread(family, X, weight, mean, flat if separated else None)
    h = None
    if family.name != "multinomial":
        h = covariance.leverage(X, B, working_weights(family, weight, mean))
    if kind == "nonrobust":
        return dispersion * B, null, h, kind
    slopes = covariance.slopes(family, y, weight, mean)
    return covariance.robust(kind, X, B, slopes, h, rows.clusters), null, h, kind


def _dispersion(family, rows, mean, df_resid):
    """Pearson's estimate of phi (McCullagh & Nelder 1989, Sect. 2.2.5); 1 where it is known."""
    if family.name not in DISPERSED:
        return 1.0
    squares = rows.weight @ pearson(family, rows.y, mean) ** 2
    return float(squares / df_resid) if df_resid else np.nan


def _shown(batch, family, rows, most):
    """Positions of the rows whose diagnostics are kept: all, or `most` drawn by their contents."""
    if len(rows.y) <= most:
        return np.arange(len(rows.y))
    key, _ = row_keys.of_batch(batch, 2 * has_classes(family))
    return np.sort(row_keys.drawn(key[rows.batch_row], most, 0))
