"""Maximum likelihood of many rows, by sums over blocks: the rows are passed over, never copied.

A QR decomposition of all rows, block by block, says which columns are aliased, and gives a basis
in which Newton's method has no ill-conditioned sums: the result has the digits that least squares
by QR decompositions has (Golub & Van Loan 2013, Sect. 5.3).
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.special import gammaln, xlogy

from lodim.engine import tiles
from lodim.engine.blocks import over_spans, row_spans, sum_rows, sum_spans
from lodim.family import Proportion
from lodim.models.glm import passes
from lodim.models.glm.aliasing import independent
from lodim.models.glm.estimates import Estimates, with_constant
from lodim.models.glm.likelihood import DISPERSED, all_scores, saturated, working_weights
from lodim.models.glm.measures import check_covariance, diagnostics, fingerprint, kind_of
from lodim.models.glm.scoring import DECREMENT, HALVINGS

FLAT = 1e-10  # share of the null model's information up to which there is none
LARGEST = 2**20  # numbers in sums over clusters that are held at once, where there are few rows


@dataclass(frozen=True, eq=False)
class ManyRows:
    """Rows of a batch as passes see them: spans of arrays, none of which is copied as a whole."""

    batch: Any
    family: Any

    @property
    def arrays(self):
        """Response, weights and offset of the rows; weights may be made for each span."""
        return self.batch.y, self.weights, self.batch.offset

    @cached_property
    def weights(self):
        """(n,) as given; ones, which take no memory, where none are."""
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
        """R (1 + p, 1 + p) of a QR decomposition of the weighted design matrix."""
        work = partial(passes.triangle, columns=np.arange(-1, self.batch.X.shape[1]))
        found = over_spans(work, self.batch.X, self.batch.n, self.weights)
        R = next(found)
        for other in found:
            R = passes.joined((R, other))
        return R

    def drawn(self, most):
        """Increasing positions of `most` rows of weight above zero, at random, or of all."""
        rng, count = np.random.default_rng(0), min(most, self.positive)
        at = np.sort(rng.choice(self.positive, count, replace=False, shuffle=False))
        if self.batch.weights is None:
            return at
        out, before = [], 0
        for part in row_spans(self.batch.n):
            here = part.start + np.flatnonzero(self.weights[part])
            low, high = np.searchsorted(at, (before, before + len(here)))
            out.append(here[at[low:high] - before])
            before += len(here)
        return np.concatenate(out)


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns z = T'x of the columns x of the design matrix that are kept; T = R^-1, (q, q)."""

    kept: np.ndarray
    R: np.ndarray
    T: np.ndarray

    @classmethod
    def from_triangle(cls, R, kept):
        """Of the triangle of all columns, and those that are not aliased."""
        R = np.linalg.qr(R[:, kept], mode="r")
        return cls(kept, R, solve_triangular(R, np.eye(len(R))))

    def of_features(self, matrix):
        """A matrix (S q, k) of coefficients of z as coefficients of x."""
        q, k = len(self.T), matrix.shape[1]
        return np.einsum("ab,sbk->sak", self.T, matrix.reshape(-1, q, k)).reshape(-1, k)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a pass finds at coefficients coef (S, q) of z: totals, gradient, information."""

    coef: np.ndarray
    totals: np.ndarray
    gradient: np.ndarray
    matrix: np.ndarray

    @property
    def deviance(self):
        """Deviance of all rows; infinite where it is no number."""
        value = float(self.totals[0])
        return value if np.isfinite(value) else np.inf


def fit(batch, family, settings):
    """(Estimates, log) as `estimate.fit_stages` yields them."""
    rows = ManyRows(batch, family)
    kind = kind_of(settings, rows.n_clusters)
    check_covariance(kind, family, rows.n_clusters)
    R = rows.triangle()
    kept, combination = independent(R)
    basis = Basis.from_triangle(R, kept)
    at_null = _sums(rows, basis, np.outer(_level(rows), basis.R[:, 0]), passes.OBSERVED)
    found, converged, n_iter = _maximize(rows, basis, at_null, settings.max_iter)
    coef = basis.T @ found.coef.T
    absent = np.count_nonzero(rows.sizes == 0.0) if family.name == "multinomial" else 0
    df = coef.size - absent * len(kept)
    df_resid = rows.positive * (coef.shape[1] - absent) - df
    log = _measures(rows, found, df_resid) | {"converged": converged, "n_iter": n_iter, "df": df}
    log["n_clusters"] = rows.n_clusters or 0
    B, null = _bread(family, found.matrix, at_null.matrix)
    cov = log["dispersion"] * B if kind == "nonrobust" else _robust(kind, rows, basis, found, B)
    log |= {"covariance": kind, "diagnostics": None}
    whole = _both_sides(basis, B)
    if family.name != "multinomial" and settings.diagnostic_rows:
        rank = len(found.gradient) - null.shape[1]
        log["diagnostics"] = _diagnostics(rows, kept, coef, whole, rank, log, settings)
    null = np.linalg.qr(basis.of_features(null))[0] if null.shape[1] else null
    return Estimates(kept, combination, coef, _both_sides(basis, cov), null), log


def _both_sides(basis, cov):
    """A covariance (S q, S q) of coefficients of z as that of those of x; symmetric."""
    out = basis.of_features(basis.of_features(cov).T)
    return 0.5 * (out + out.T)


def _sums(rows, basis, coef, kind, B=None, power=0.0):
    work = partial(
        passes.sums,
        columns=basis.kept - 1,
        T=basis.T,
        code=passes.CODES[rows.family.name],
        kind=kind,
        coef=np.ascontiguousarray(coef),
        B=B,
        power=power,
    )
    found = sum_spans(work, rows.batch.X, rows.batch.n, *rows.arrays)
    return Sums(coef, *passes.parts(found, coef))


def _level(rows):
    """Scores (S,) of the model with an intercept alone."""
    batch, family = rows.batch, rows.family
    level = family.null_intercept(batch.y, batch.weight, batch.offsets(family.n_scores))
    return level[1:] - level[0] if family.name == "multinomial" else level


def _maximize(rows, basis, at_null, max_iter):
    """Sums at the maximum, with the expected information, whether it was reached, and the steps.

    As `scoring.refine`; where the decrement is nothing one more step is taken, for the digits.
    """
    found, at_null = at_null, at_null.deviance
    step, reached, n_iter = 0.0, False, 0
    while n_iter < max_iter and not reached:
        step, decrement = _step(rows, found)
        best = max(found.deviance, 1e-12 * at_null)
        if reached := not decrement > DECREMENT * best:
            break
        for halving in range(HALVINGS):
            tried = _sums(rows, basis, found.coef + 0.5**halving * step, passes.OBSERVED)
            if tried.deviance <= found.deviance:
                found, n_iter = tried, n_iter + 1
                break
            if reached := decrement < 1e-12 * best:  # rounding hides what is left
                break
        else:
            reached = decrement < 1e-8 * best
            break
    coef = found.coef + step if reached else found.coef
    return _sums(rows, basis, coef, passes.EXPECTED), bool(reached), n_iter


def _step(rows, found):
    """A Newton step (S, q), and the decrement: twice the fall of the deviance that it promises."""
    S, q = found.coef.shape
    moved = np.ones(S, bool)
    if rows.family.name == "multinomial":  # of the classes that are there, but one
        moved = np.isin(np.arange(1, S + 1), np.flatnonzero(rows.sizes)[1:])
    at = np.flatnonzero(np.repeat(moved, q))
    step = np.zeros(S * q)
    if len(at):
        step[at] = _solve(found.matrix[np.ix_(at, at)], found.gradient[at])
    if not np.isfinite(step).all():
        return np.zeros((S, q)), 0.0
    return step.reshape(S, q), 2.0 * float(found.gradient @ step)


def _solve(H, gradient):
    """H^-1 times a gradient, of a matrix whose diagonal is made one first."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1.0 / np.sqrt(np.diag(H))
    try:
        factor = cho_factor(H * np.outer(scale, scale))
        return scale * cho_solve(factor, scale * gradient)
    except (LinAlgError, ValueError):
        return np.linalg.lstsq(H, gradient, rcond=None)[0]


def _measures(rows, found, df_resid):
    """What a fit says of the rows beside the estimates, a dict."""
    batch, family = rows.batch, rows.family
    dispersion = 1.0
    if family.name in DISPERSED:
        dispersion = float(found.totals[1] / df_resid) if df_resid else np.nan
    return {
        "n": rows.positive,
        "df_resid": df_resid,
        "dispersion": dispersion,
        "deviance": float(found.totals[0]),
        "log_likelihood": _log_likelihood(rows, float(found.totals[0])),
        "sum_weights": rows.sum_weights,
        "whole": family.name != "poisson" or not rows.total(lambda y, w, offset: y != np.round(y)),
        "rows": fingerprint(batch, family),
    }


def _log_likelihood(rows, deviance):
    """Log-likelihood of all rows, as `likelihood.log_likelihood`, by the deviance."""
    family, n = rows.family, rows.positive
    if isinstance(family, Proportion):
        return rows.total(lambda y, w, offset: saturated(y, w)) - 0.5 * deviance
    if family.name in ("binomial", "multinomial"):
        return -0.5 * deviance
    if family.name == "gaussian":
        spread = max(deviance / n, 1e-300)
        logs = rows.total(lambda y, w, offset: np.log(w))
        return float(0.5 * logs - 0.5 * n * (np.log(2.0 * np.pi * spread) + 1.0))
    if family.name == "poisson":
        most = rows.total(lambda y, w, offset: w * (xlogy(y, y) - y - gammaln(y + 1.0)))
        return most - 0.5 * deviance
    total = rows.sum_weights
    shape = total / max(deviance, 1e-300)
    of_rows = rows.total(lambda y, w, offset: w * np.log(y))
    ratios = 0.5 * deviance + total  # of w (y / mean - log(y / mean))
    return float(shape * (np.log(shape) * total - ratios) - of_rows - gammaln(shape) * total)


def _bread(family, H, at_null):
    """Inverse information (S q, S q), and directions (S q, k) of which separated data know nothing.

    Where rows are few a linear program tells whether data are separated; here information does,
    which there vanishes beside that of the null model.
    """
    value, vector = np.linalg.eigh(H)
    if family.name in ("gaussian", "gamma"):
        known = value > 0.0
        return (vector[:, known] / value[known]) @ vector[:, known].T, vector[:, :0]
    known = value > FLAT * np.linalg.eigvalsh(at_null).max(initial=0.0)
    return (vector[:, known] / value[known]) @ vector[:, known].T, vector[:, ~known]


def _robust(kind, rows, basis, found, B):
    """Robust covariance of the coefficients of z, as `covariance.robust`."""
    n, q = rows.positive, len(basis.kept)
    if n <= q:
        return np.full(B.shape, np.nan)
    if kind == "cluster":
        return _of_clusters(rows, basis, found, B, n, q)
    power = {"HC0": 0.0, "HC1": 0.0, "HC2": 1.0, "HC3": 2.0}[kind]
    squares = _sums(rows, basis, found.coef, passes.SQUARES, B if power else None, power)
    if squares.totals[2]:
        return np.full(B.shape, np.nan)
    return (n / (n - q) if kind == "HC1" else 1.0) * (B @ squares.matrix @ B)


def _of_clusters(rows, basis, found, B, n, q):
    """Covariance robust to dependence within clusters, of which so many at once as memory has."""
    G, count = rows.n_clusters, rows.n_codes
    most = max(1, max(LARGEST, n) // len(B))
    meat = np.zeros_like(B)
    for first in range(0, count, most):
        last = min(first + most, count)
        work = partial(
            passes.cluster_sums,
            bounds=(first, last),
            columns=basis.kept - 1,
            T=basis.T,
            code=passes.CODES[rows.family.name],
            coef=np.ascontiguousarray(found.coef),
        )
        summed = np.zeros((last - first, len(B)))
        arrays = *rows.arrays, rows.batch.clusters
        for known, some in over_spans(work, rows.batch.X, rows.batch.n, *arrays):
            summed[known - first] += some
        half = summed @ B
        meat += half.T @ half
    return G / (G - 1.0) * (n - 1.0) / (n - q) * meat


def _diagnostics(rows, kept, coef, B, rank, log, settings):
    """The Diagnostics of some rows."""
    batch, family = rows.batch, rows.family
    at = rows.drawn(settings.diagnostic_rows)
    X = with_constant(tiles.rows(batch.X, at))[:, kept]
    offset = 0.0
    if batch.offset is not None:
        offset = batch.offset[at] if batch.offset.ndim == 2 else batch.offset[at, None]
    score = offset + all_scores(X @ coef, family)
    weight = np.ones(len(at)) if batch.weights is None else batch.weights[at]
    curvature = working_weights(family, weight, family.mean(score))
    h = np.clip(curvature * ((X @ B) * X).sum(axis=1), 0.0, 1.0)
    return diagnostics(batch, family, at, weight, score, log["dispersion"], h, rank)
