"""Inference after a glm fit: measures of the fit, covariance of the estimates, diagnostics."""

import hashlib

import numpy as np
from scipy.special import gammaln, xlogy

from lodim.engine import tiles
from lodim.engine.blocks import row_spans
from lodim.errors import ArgumentError
from lodim.family import Proportion, has_classes
from lodim.forms import plain_label
from lodim.models.glm import passes
from lodim.models.glm.estimates import Diagnostics, with_constant
from lodim.models.glm.likelihood import all_scores, pearson, saturated, working_weights
from lodim.models.glm.passes import WHOLE

ROUNDING = 1e-15  # share of the largest information that is rounding
LARGEST = 2**20  # largest array of sums over clusters
EXACT = 1e-28  # share of squared residuals in squared responses that is rounding


def measures(rows, found, df_resid):
    """Return a dict of a fit's deviance, dispersion etc.

    rows : Rows of the fit; found : Sums at the estimates; df_resid : residual degrees of freedom"""
    batch, family = rows.batch, rows.family
    dispersion = 1.0
    if family.dispersed:
        dispersion = float(found.totals[1] / df_resid) if df_resid else np.nan
    if family.name == "huber":  # Huber's first covariance (Huber & Ronchetti 2009, Sect. 7.6)
        share = found.totals[2] / rows.sum_weights or np.nan
        dispersion *= ((1.0 + (1.0 / share - 1.0) * found.coef.size / rows.positive) / share) ** 2
    exact = False  # whether all residuals are rounding errors; for quantiles it is not known yet
    if family.dispersed and family.name != "quantile":
        size = rows.total(lambda y, w: w * y**2 / np.maximum(family.variance(y), 1e-300))
        exact = found.totals[1] <= EXACT * size
    return {
        "n": rows.positive,
        "df_resid": df_resid,
        "dispersion": dispersion,
        "exact": bool(exact),
        "deviance": float(found.totals[0]),
        "log_likelihood": log_likelihood(rows, float(found.totals[0])),
        "sum_weights": rows.sum_weights,
        "n_clusters": rows.n_clusters or 0,
        "whole": not family.counts or not rows.total(lambda y, w: y != np.round(y)),
        "rows": fingerprint(batch, family),
    }


def log_likelihood(rows, deviance):
    """Return the log-likelihood of all rows, given their deviance; NaN if the family has none."""
    family, n = rows.family, rows.positive
    if isinstance(family, Proportion):
        return rows.total(lambda y, w: saturated(y, w)) - 0.5 * deviance
    if has_classes(family):
        return -0.5 * deviance
    if family.name == "gaussian":
        spread = max(deviance / n, 1e-300)
        logs = rows.total(lambda y, w: np.log(w))
        return float(0.5 * logs - 0.5 * n * (np.log(2.0 * np.pi * spread) + 1.0))
    if family.name == "poisson":
        most = rows.total(lambda y, w: w * (xlogy(y, y) - y - gammaln(y + 1.0)))
        return most - 0.5 * deviance
    if family.name == "negative_binomial":
        return rows.total(lambda y, w: w * family.log_likelihood(y)) - 0.5 * deviance
    if family.name == "tweedie" or family.m_estimation:
        return np.nan
    total = rows.sum_weights
    shape = total / max(deviance, 1e-300)
    of_rows = rows.total(lambda y, w: w * np.log(y))
    ratios = 0.5 * deviance + total  # sum of w (y / mean - log(y / mean))
    return float(shape * (np.log(shape) * total - ratios) - of_rows - gammaln(shape) * total)


def bread(H, zero_limit):
    """Return the pseudo-inverse of the information H, and the directions without information.

    Along these directions, estimates are infinite (Geyer 2009).
    zero_limit : eigenvalues of H up to this size count as zero"""
    value, vector = np.linalg.eigh(H)
    known = value > max(zero_limit, ROUNDING * value.max(initial=0.0))
    return (vector[:, known] / value[known]) @ vector[:, known].T, vector[:, ~known]


def covariance(kind, rows, basis, found, B, dispersion):
    """Return the covariance matrix of the coefficients; NaN if there are too few rows.

    kind : "nonrobust", "HC0" to "HC3", or "cluster"
    rows : Rows of the fit; basis : Basis of the coefficients
    found : Sums at the estimated coefficients
    B : nonrobust covariance for a dispersion of 1"""
    # White (1980); MacKinnon (1985)
    if kind == "nonrobust":
        return dispersion * B
    n, q = rows.positive, len(basis.kept)
    if n <= q:
        return np.full(B.shape, np.nan)
    if kind == "cluster":
        n_codes, clusters = int(rows.batch.clusters.max()) + 1, rows.batch.clusters
        meat, at_once = np.zeros_like(B), max(1, max(LARGEST, n) // len(B))
        for first in range(0, n_codes, at_once):
            bounds = first, min(first + at_once, n_codes)
            summed = np.zeros((bounds[1] - first, len(B)))
            sums = rows.at(basis, found.coef, passes.cluster_sums, clusters, bounds=bounds)
            for codes, some in sums:
                summed[codes - first] += some
            half = summed @ B
            meat += half.T @ half
        return rows.n_clusters / (rows.n_clusters - 1.0) * (n - 1.0) / (n - q) * meat
    power = {"HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2}[kind]
    whole, *squares = sum(rows.at(basis, found.coef, passes.squares, B=B, power=power))
    if whole:
        return np.full(B.shape, np.nan)
    return (n / (n - q) if kind == "HC1" else 1.0) * (B @ np.reshape(squares, B.shape) @ B)


def fingerprint(batch, family):
    """Return a hash of a batch's response, weights and offset, by which `anova` compares rows."""
    content, offset = hashlib.sha256(), batch.offsets(family.n_scores)
    weights = np.broadcast_to(1.0, batch.n) if batch.weights is None else batch.weights
    for values in (batch.y, weights, offset):
        for part in row_spans(batch.n):
            some = values[part][weights[part] != 0.0] + 0.0  # -0.0 becomes 0.0
            content.update(np.ascontiguousarray(some).tobytes())
    return content.hexdigest()[:16]


def kind_of(settings, family, n_clusters):
    """Return the kind of covariance to compute; raise ArgumentError if it does not suit the fit.

    The default is "cluster" if there are clusters, else "nonrobust".
    n_clusters : number of clusters; None without clusters"""
    kind = settings.covariance or ("nonrobust" if n_clusters is None else "cluster")
    if family.several_classes and kind in ("HC2", "HC3"):
        what = "covariance must be 'HC0', 'HC1' or clusters= with more than two classes"
        raise ArgumentError(f"{what}, not {kind!r}, which needs leverages")
    if family.m_estimation and kind != "nonrobust":
        raise ArgumentError(
            f"covariance must be 'nonrobust' for family={family.name!r}, not {kind!r}: "
            "lodim.bootstrap, also with groups= for clusters, gives robust standard errors"
        )
    if kind == "cluster" and n_clusters is None:
        raise ArgumentError("covariance='cluster' needs clusters=, a column or an array")
    if kind != "cluster" and n_clusters is not None:
        what = f"clusters= needs covariance='cluster', not {kind!r}"
        raise ArgumentError(f"{what}: leave one of them out")
    if kind == "cluster" and n_clusters < 2:
        raise ArgumentError("clusters must have at least two values, not one")
    return kind


def diagnostics(rows, estimates, B, rank, dispersion, most):
    """Return the Diagnostics (residuals, leverages) of at most `most` training rows.

    B : nonrobust covariance for a dispersion of 1; rank : rank of the information matrix"""
    batch, family, kept = rows.batch, rows.family, estimates.kept
    at = batch.positive_weight
    if len(at) > most:  # a random sample, in order
        at = at[np.sort(np.random.default_rng(0).choice(len(at), most, replace=False))]
    X = with_constant(tiles.rows(batch.X, at))[:, kept]
    score = batch.offsets(family.n_scores)[at] + all_scores(X @ estimates.coef, family)
    y, weight, mean = batch.y[at], rows.weights[at], family.mean(score)
    h = np.clip(working_weights(family, weight, mean) * ((X @ B) * X).sum(axis=1), 0.0, 1.0)
    sd = np.sqrt(np.maximum(dispersion * (1.0 - h), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        deviance = np.sign(y - mean) * np.sqrt(weight * family.deviance(y, score)) / sd
        standardized = np.sqrt(weight) * pearson(family, y, mean) / sd
        cook = np.where(h < 1.0 - WHOLE, standardized**2 * h / (1.0 - h) / rank, np.nan)
    labels = tuple(plain_label(label) for label in batch.index[batch.rows[at]])
    return Diagnostics(labels, mean, deviance, standardized, h, cook)
