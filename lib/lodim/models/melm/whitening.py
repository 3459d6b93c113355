"""Coordinates in which features have unit covariance within classes; class covariances."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from lodim.engine import row_keys, tiles

NULL = 1e-13  # relative to the largest eigenvalue: smaller variance is rounding
CONSTANT = 1e-13  # relative to a feature's largest value: smaller deviations are rounding
SHRUNK, LEDOIT_WOLF = "shrunk", "ledoit-wolf"
COVARIANCES = (SHRUNK, LEDOIT_WOLF)
FLOOR = 1e-4  # smallest eigenvalue of a class, relative to the variance within classes


@dataclass(frozen=True)
class Basis:
    """Linear map of p features to r coordinates (x - mean) A of unit covariance within classes."""

    mean: np.ndarray
    # into, back: (p, r) matrix A, and its left inverse (r, p). Directions theta (r, k) of
    # coordinates are directions V = into @ theta of features; theta = back @ V.
    into: np.ndarray
    back: np.ndarray
    # kept, added: shrinking replaces the covariance S of coordinates in classes by kept S + added
    kept: float
    added: np.ndarray
    n_varying: int  # number of directions in which rows vary within classes
    separates: bool  # whether class means differ in the dropped directions

    @classmethod
    def from_rows(cls, X, code, weight, shrinkage_factor=0.0):
        """Make the Basis of rows X (n, p), from their pooled covariance within classes.

        code : (n,) classes; shrinkage_factor : if positive, the covariance is shrunk towards its
            diagonal, and directions in which only class means differ are kept"""
        share = weight / weight.sum()
        mean = share @ X
        residual, means = center_by_class(X, code, weight)
        # Units are SDs within classes; a constant feature gets max |x|.
        deviation, largest = np.sqrt(share @ residual**2), np.abs(X).max(axis=0)
        varies = deviation > CONSTANT * largest
        unit = np.where(varies, deviation, largest)
        unit = np.where(unit > 0.0, unit, 1.0)
        rows = residual / unit * np.sqrt(share)[:, None]
        values, vectors = _eigen_of_rows(rows)
        keep = values > NULL * max(values.max(initial=0.0), 1e-300)
        values, vectors = values[keep], vectors[:, keep]
        between = (means - mean) / unit * np.sqrt(np.bincount(code, share))[:, None]
        kept, target, n_varying = 1.0, 0.0, len(values)
        if shrinkage_factor and varies.any():
            fourth = share @ ((residual[:, varies] / unit[varies]) ** 2).sum(axis=1) ** 2
            p = int(varies.sum())
            variance, square = values.sum() / p, (values**2).sum()
            s = _intensity(variance, square, fourth, weight.sum(), p)
            s = shrinkage_factor * s / (1.0 - s + shrinkage_factor * s)
            kept, target = 1.0 - s, s * variance
        if target:  # add directions in which only class means differ
            rest = np.where(varies, between, 0.0)
            rest = rest - rest @ vectors @ vectors.T
            _, size, more = np.linalg.svd(rest, full_matrices=False)
            more = more[size**2 > NULL * max(values[0], (between**2).sum())]
            vectors, values = np.hstack([vectors, more.T]), np.append(values, np.zeros(len(more)))
        separates = len(vectors) > len(values) and _separates(rows, between, vectors)
        root = np.sqrt(kept * values + target)
        white = vectors / root
        into, back = white / unit[:, None], (vectors * root).T * unit
        return cls(mean, into, back, kept, target * white.T @ white, n_varying, separates)

    @property
    def rank(self):
        return self.into.shape[1]


def center_by_class(X, code, weight):
    """Return the rows (n, p) minus the mean of their class `code`, and the class means (C, p)."""
    C = code.max() + 1
    size = np.bincount(code, weight, C)
    sums = np.stack([weight[code == c] @ X[code == c] for c in range(C)])
    means = sums / size[:, None]
    return X - means[code], means


def _separates(rows, between, vectors):
    """Return whether class means differ in directions other than the columns of `vectors` (p, m).

    rows : (n, p) rows minus class means, times square roots of weights
    between : (C, p) class means minus overall mean, times square roots of weights"""
    row_rest = rows - rows @ vectors @ vectors.T
    mean_rest = between - between @ vectors @ vectors.T
    rounding = NULL**2 * ((between**2).sum() + (rows**2).sum())
    return bool((mean_rest**2).sum() > (row_rest**2).sum() + rounding)


def _eigen_of_rows(rows):
    """Return eigenvalues (m,) and eigenvectors (p, m) of A'A for rows A (n, p), largest first."""
    n, p = rows.shape
    if p <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return values[::-1], vectors[:, ::-1]
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    return singular**2, vectors.T


def empirical(X, weight):
    """Return the maximum-likelihood covariance (p, p) of rows X (n, p)."""
    centred = X - weight @ X / weight.sum()
    return (centred.T * weight) @ centred / weight.sum()


def ledoit_wolf(X, weight, kept=1.0, added=0.0):
    """Return a covariance C shrunk by Ledoit and Wolf, (1 - s) C + s (tr C / p) I.

    C is `kept` times the covariance of the rows X (n, p), plus `added`. X alone determines s."""
    n, p = weight.sum(), X.shape[1]
    centred = X - weight @ X / n
    cov = (centred.T * weight) @ centred / n
    fourth = weight @ (centred**2).sum(axis=1) ** 2 / n
    s = _intensity(np.trace(cov) / p, (cov**2).sum(), fourth, n, p)
    cov = kept * cov + added
    return (1.0 - s) * cov + s * np.trace(cov) / p * np.eye(p)


def _intensity(mean, square, fourth, n, p):
    """Return Ledoit and Wolf's shrinkage intensity, from 0 to 1, for a covariance matrix.

    mean : mean variance; square : sum of squared covariances; n, p : numbers of rows, features
    fourth : mean fourth power of the lengths of centred rows"""
    distance = square - p * mean**2
    error = min(distance, (fourth - square) / n)
    return error / distance if error > 0.0 else 0.0


def class_covariance(X, weight, kind, into, kept=1.0, added=0.0):
    """Return a class's shrunk covariance (r, r) of coordinates X @ into.

    X : (n, p) rows; weight : (n,) row weights; into : (p, r) map to coordinates
    kind : "ledoit-wolf" to shrink the covariance of X, "shrunk" to shrink that of coordinates
    kept, added : for "shrunk", the matrix to shrink is kept * covariance + added"""
    if kind == LEDOIT_WOLF:
        cov = into.T @ ledoit_wolf(X, weight) @ into
    else:
        # From white rows: with nearly collinear features, X has no accurate covariance.
        cov = ledoit_wolf(X @ into, weight, kept, added)
    with suppress(np.linalg.LinAlgError):  # ten times faster than eigenvalues
        np.linalg.cholesky(cov - FLOOR * np.eye(len(cov)))
        return cov
    values, vectors = np.linalg.eigh(cov)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


# Rows in the coordinates -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Rows in the coordinates of a Basis, sorted by class."""

    # Z, weight: (r, n) coordinates and (n,) weights
    Z: np.ndarray
    weight: np.ndarray
    start: np.ndarray  # (C + 1,) first row of each class
    cov: np.ndarray  # (C, r, r) covariances of the classes
    key: np.ndarray  # (n,) number computed from each row's content, for random draws

    @property
    def n_classes(self):
        return len(self.start) - 1

    @cached_property
    def size(self):
        """Total weights of the classes, (C,)."""
        return np.add.reduceat(self.weight, self.start[:-1])

    @property
    def share(self):
        return self.size / self.size.sum()

    @cached_property
    def moments(self):
        """Means (C, r) and empirical covariances (C, r, r) of the classes."""
        mean, cov = [], []
        for (lo, hi), size in zip(pairwise(self.start), self.size, strict=True):
            z, w = self.Z[:, lo:hi], self.weight[lo:hi] / size
            mean.append(z @ w)
            centred = z - mean[-1][:, None]
            cov.append((centred * w) @ centred.T)
        return np.stack(mean), np.stack(cov)

    def covariances(self):
        """Return covariances (r, r) within classes and of class means; all rows have their sum."""
        (mean, cov), share = self.moments, self.share
        centred = mean - share @ mean
        return np.einsum("c,cij->ij", share, cov), (centred.T * share) @ centred

    @cached_property
    def tiles(self):
        """Coordinates in blocks of 64 rows, (n_tiles, r, 64); each class starts a new block."""
        return np.concatenate([tiles.pack(self.Z[:, lo:hi].T) for lo, hi in pairwise(self.start)])

    @classmethod
    def from_rows(cls, X, code, weight, basis, covariance=SHRUNK):
        """Return rows X (n, p) of positive weight as a Sample, in the r coordinates of a Basis.

        code : (n,) classes; covariance : "shrunk" if classes' covariances are shrunk in these
            coordinates, "ledoit-wolf" if in the features"""
        order = np.argsort(code, kind="stable")
        order = order[weight[order] > 0]
        C = int(code.max()) + 1
        start = np.searchsorted(code[order], np.arange(C + 1))
        cov, into = [], (basis.into, basis.kept, basis.added)
        for c in range(C):
            rows = order[start[c] : start[c + 1]]
            cov.append(class_covariance(X[rows], weight[rows], covariance, *into))
        w = weight[order].astype(np.float64)
        key = row_keys.keys(X[order], w, code[order], C)
        Z = np.ascontiguousarray(((X[order] - basis.mean) @ basis.into).T)
        return cls(Z, w, start, np.stack(cov), key)

    def thinned(self, n_rows, seed):
        """Return a random sample of about `n_rows` rows, with at least 256 per class."""
        if len(self.weight) <= n_rows:
            return self
        code = np.repeat(np.arange(self.n_classes), np.diff(self.start))
        rows = draw_by_class(self.key, code, n_rows, 256, seed)
        start = np.searchsorted(code[rows], np.arange(self.n_classes + 1))
        Z, w, key = np.ascontiguousarray(self.Z[:, rows]), self.weight[rows], self.key[rows]
        return replace(self, Z=Z, weight=w, start=start, key=key)


def draw_by_class(key, code, n_rows, least, seed):
    """Draw about `n_rows` random rows, at least `least` per class; return positions by class.

    code : (n,) classes; key : (n,) numbers that depend only on the content of each row"""
    # The key makes the result independent of the order of rows.
    rows = []
    for c in np.unique(code):
        of_class = np.flatnonzero(code == c)
        count = max(least, round(n_rows * len(of_class) / len(code)))
        rows.append(of_class[row_keys.drawn(key[of_class], count, seed)])
    return np.concatenate(rows)


def bandwidths(size, k, gamma=1.0):
    """Return squares (C,) of gamma times Silverman's bandwidths for class sizes in k dimensions."""
    return (gamma * (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * size ** (-1.0 / (k + 4.0))) ** 2
