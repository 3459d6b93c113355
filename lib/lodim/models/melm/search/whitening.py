"""The coordinates that are searched: the features whitened within classes, or rotated alone.

In whitened coordinates the problem is round, and every start is a rotation of every other; the
divergence is that of the features, as it does not change under affine maps (Observation 1).
Directions in which no class varies are dropped: no kernel has a width there. Which these are is
seen in features of unit variance within classes, so that it does not depend on their units.
"""

from dataclasses import dataclass

import numpy as np

NULL = 1e-13  # of the largest eigenvalue: variance below may be rounding, in float32 as well
CONSTANT = 1e-13  # of a feature's largest value: a deviation below is rounding
EMPIRICAL, LEDOIT_WOLF, POOLED = "empirical", "ledoit-wolf", "pooled"
COVARIANCES = (EMPIRICAL, LEDOIT_WOLF, POOLED)
FLOOR = 1e-4  # of the variance within classes: a class that is flatter is given this


@dataclass(frozen=True)
class Basis:
    """z = (x - mean) into, and V = into theta for a direction theta of z.

    mean (p,); into (p, r); back (r, p), its left inverse; scale (r,) the standard deviations of z
    within classes; separates says that class means differ, by more than classes vary, in the
    directions that were dropped: there classes do not touch.
    """

    mean: np.ndarray
    into: np.ndarray
    back: np.ndarray
    scale: np.ndarray
    separates: bool

    @property
    def rank(self):
        """Number of coordinates."""
        return self.into.shape[1]

    def coordinates(self, X):
        """Rows as columns, (n, p) -> (r, n)."""
        return np.ascontiguousarray(((X - self.mean) @ self.into).T)

    def directions(self, theta):
        """V (p, k) of theta (r, k)."""
        return self.into @ theta

    def of_directions(self, V):
        """theta (r, k) of V (p, k); what lies in dropped directions is lost."""
        return self.back @ V


def within(X, code, weight):
    """Rows less the mean of their class, and the means, (n, p), (C, p)."""
    C = code.max() + 1
    size = np.bincount(code, weight, C)
    sums = np.stack([weight[code == c] @ X[code == c] for c in range(C)])
    means = sums / size[:, None]
    return X - means[code], means


def learn(X, code, weight, whiten=True):
    """Basis from the pooled covariance within classes.

    Parameters
    ----------
    X : array (n, p)
    code : int array (n,)
        Classes 0, ..., C - 1, each with a row of positive weight.
    weight : array (n,)
    whiten : bool
        Whether z has unit variances within classes, or is X rotated.
    """
    share = weight / weight.sum()
    mean = share @ X
    rest, means = within(X, code, weight)
    unit = _units(X, rest, share)
    rows = rest / unit * np.sqrt(share)[:, None]
    values, vectors = _principal(rows)
    keep = values > NULL * max(values.max(initial=0.0), 1e-300)
    root, vectors = np.sqrt(values[keep]), vectors[:, keep]
    apart = (means - mean) / unit * np.sqrt(np.bincount(code, share))[:, None]
    separates = len(vectors) > len(root) and _separates(rows, apart, vectors)
    if whiten:
        into, back = vectors / root / unit[:, None], (vectors * root).T * unit
        return Basis(mean, into, back, np.ones_like(root), separates)
    # Of the square root, as variances in units far from each other would lose their digits.
    axes, scale, _ = np.linalg.svd(unit[:, None] * vectors * root, full_matrices=False)
    return Basis(mean, axes, axes.T, scale, separates)


def _units(X, rest, share):
    """Standard deviations within classes (p,); where that is nothing, the largest value."""
    deviation, largest = np.sqrt(share @ rest**2), np.abs(X).max(axis=0)
    deviation = np.where(deviation > CONSTANT * largest, deviation, largest)
    return np.where(deviation > 0.0, deviation, 1.0)


def _separates(rows, apart, vectors):
    """Whether class means differ by more than rows do beyond the directions that are kept."""
    left = rows - rows @ vectors @ vectors.T
    beyond = apart - apart @ vectors @ vectors.T
    rounding = NULL**2 * ((apart**2).sum() + (rows**2).sum())
    return bool((beyond**2).sum() > (left**2).sum() + rounding)


def _principal(rows):
    """Eigenvalues and orthonormal eigenvectors of rows' rows, largest first."""
    n, p = rows.shape
    if p <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return values[::-1], vectors[:, ::-1]
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    return singular**2, vectors.T


def empirical(X, weight):
    """Maximum-likelihood covariance, (n, p) -> (p, p)."""
    centred = X - weight @ X / weight.sum()
    return (centred.T * weight) @ centred / weight.sum()


def ledoit_wolf(X, weight):
    """(1 - s) cov + s (tr cov / p) I with the s of least expected squared error."""
    n, p = weight.sum(), X.shape[1]
    centred = X - weight @ X / n
    cov = (centred.T * weight) @ centred / n
    mean = np.trace(cov) / p
    distance = (cov**2).sum() - p * mean**2
    fourth = weight @ (centred**2).sum(axis=1) ** 2 / n
    error = min(distance, (fourth - (cov**2).sum()) / n)
    s = error / distance if error > 0.0 else 0.0
    return (1.0 - s) * cov + s * mean * np.eye(p)


def estimated(X, weight, kind, into):
    """Covariance of the rows X (n, p) of a class in white coordinates X into, (r, r).

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
