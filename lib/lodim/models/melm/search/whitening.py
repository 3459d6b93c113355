"""Coordinates of the search: features whitened within classes, or rotated; covariances of classes.

In whitened coordinates the problem is round, and every start is a rotation of every other; the
divergence is that of the features, as it does not change under affine maps (Observation 1).
Directions in which no class varies are dropped: no kernel has a width there. Which these are is
decided in features of unit variance within classes, so that it does not depend on their units.

Covariances are empirical, or shrunk by the rule of Ledoit & Wolf (2004). "ledoit-wolf" shrinks in
the coordinates of the features, towards a multiple of the identity: the authors' default. "pooled"
shrinks in coordinates that are white within classes, towards a multiple of the pooled covariance:
like the empirical one it is equivariant under affine maps, and unlike it does not follow a class
into directions in which it happens to be flat. A weight counts rows: weight two is two rows.
"""

from dataclasses import dataclass

import numpy as np

NULL = 1e-13  # of the largest eigenvalue: variance below may be rounding, in float32 as well
CONSTANT = 1e-13  # of a feature's largest value: a deviation below is rounding
EMPIRICAL, LEDOIT_WOLF, POOLED = "empirical", "ledoit-wolf", "pooled"
COVARIANCES = (EMPIRICAL, LEDOIT_WOLF, POOLED)
FLOOR = 1e-4  # of the variance within classes: smaller eigenvalues of a class are raised to it


@dataclass(frozen=True)
class Basis:
    """Coordinates z = (x - mean) into of the search; a direction theta of z is V = into theta of x.

    mean (p,); into (p, r); back (r, p), its left inverse; scale (r,) the standard deviations of z
    within classes; separates: class means differ, by more than classes vary, in the directions
    that were dropped, so that classes do not touch there.
    """

    mean: np.ndarray
    into: np.ndarray
    back: np.ndarray
    scale: np.ndarray
    separates: bool

    @classmethod
    def from_rows(cls, X, code, weight, whiten=True):
        """Basis of rows X (n, p), from the pooled covariance within classes.

        Parameters
        ----------
        X : array (n, p)
        code : int array (n,)
            Classes 0, ..., C - 1, each with a row of positive weight.
        weight : array (n,)
        whiten : bool
            True: z has unit variances within classes; False: X is rotated alone.
        """
        share = weight / weight.sum()
        mean = share @ X
        residual, means = center_by_class(X, code, weight)
        unit = _units(X, residual, share)
        rows = residual / unit * np.sqrt(share)[:, None]
        values, vectors = _eigen_of_rows(rows)
        keep = values > NULL * max(values.max(initial=0.0), 1e-300)
        root, vectors = np.sqrt(values[keep]), vectors[:, keep]
        between = (means - mean) / unit * np.sqrt(np.bincount(code, share))[:, None]
        separates = len(vectors) > len(root) and _separates(rows, between, vectors)
        if whiten:
            into, back = vectors / root / unit[:, None], (vectors * root).T * unit
            return cls(mean, into, back, np.ones_like(root), separates)
        # Of the square root, as variances in units far from each other would lose their digits.
        axes, scale, _ = np.linalg.svd(unit[:, None] * vectors * root, full_matrices=False)
        return cls(mean, axes, axes.T, scale, separates)

    @property
    def rank(self):
        """Number of coordinates."""
        return self.into.shape[1]

    def coordinates(self, X):
        """Coordinates (r, n) of rows X (n, p)."""
        return np.ascontiguousarray(((X - self.mean) @ self.into).T)

    def directions(self, theta):
        """V (p, k) of theta (r, k)."""
        return self.into @ theta

    def of_directions(self, V):
        """theta (r, k) of V (p, k), without the part of V in dropped directions."""
        return self.back @ V


def center_by_class(X, code, weight):
    """Rows less the mean of their class (n, p), and the means (C, p)."""
    C = code.max() + 1
    size = np.bincount(code, weight, C)
    sums = np.stack([weight[code == c] @ X[code == c] for c in range(C)])
    means = sums / size[:, None]
    return X - means[code], means


def _units(X, residual, share):
    """Standard deviations within classes (p,); where these are zero, the largest absolute value."""
    deviation, largest = np.sqrt(share @ residual**2), np.abs(X).max(axis=0)
    deviation = np.where(deviation > CONSTANT * largest, deviation, largest)
    return np.where(deviation > 0.0, deviation, 1.0)


def _separates(rows, between, vectors):
    """Whether class means differ by more than rows do beyond the directions that are kept."""
    row_rest = rows - rows @ vectors @ vectors.T
    mean_rest = between - between @ vectors @ vectors.T
    rounding = NULL**2 * ((between**2).sum() + (rows**2).sum())
    return bool((mean_rest**2).sum() > (row_rest**2).sum() + rounding)


def _eigen_of_rows(rows):
    """Eigenvalues (m,) and orthonormal eigenvectors (p, m) of rows' rows, largest first."""
    n, p = rows.shape
    if p <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return values[::-1], vectors[:, ::-1]
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    return singular**2, vectors.T


def empirical(X, weight):
    """Maximum-likelihood covariance (p, p) of rows X (n, p)."""
    centred = X - weight @ X / weight.sum()
    return (centred.T * weight) @ centred / weight.sum()


def ledoit_wolf(X, weight):
    """(1 - s) cov + s (tr cov / p) I with the s of least expected squared error, (p, p)."""
    n, p = weight.sum(), X.shape[1]
    centred = X - weight @ X / n
    cov = (centred.T * weight) @ centred / n
    mean = np.trace(cov) / p
    distance = (cov**2).sum() - p * mean**2
    fourth = weight @ (centred**2).sum(axis=1) ** 2 / n
    error = min(distance, (fourth - (cov**2).sum()) / n)
    s = error / distance if error > 0.0 else 0.0
    return (1.0 - s) * cov + s * mean * np.eye(p)


def class_covariance(X, weight, kind, into):
    """Covariance (r, r) of the rows X (n, p) of a class in white coordinates X into.

    Eigenvalues below FLOOR are raised to it: a direction in which one class is constant would have
    an infinite divergence.
    """
    if kind == LEDOIT_WOLF:
        cov = into.T @ ledoit_wolf(X, weight) @ into
    else:
        # Of white rows: where features almost depend on each other theirs has lost its digits.
        cov = (ledoit_wolf if kind == POOLED else empirical)(X @ into, weight)
    values, vectors = np.linalg.eigh(cov)
    if values[0] >= FLOOR:
        return cov
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T
