"""The coordinates that are searched: the features whitened within classes, or rotated alone.

In whitened coordinates the problem is round, and every start is a rotation of every other; the
divergence is that of the features, as it does not change under affine maps (Observation 1).
Directions in which no class varies are dropped: no kernel has a width there.
"""

from dataclasses import dataclass

import numpy as np

NULL = 1e-10  # of the largest eigenvalue: variance below is rounding


@dataclass(frozen=True)
class Basis:
    """z = (x - mean) into, and V = into theta for a direction theta of z.

    mean (p,); into (p, r); scale (r,) the standard deviations of z within classes; separates says
    that class means differ in a direction that was dropped: there classes do not touch.
    """

    mean: np.ndarray
    into: np.ndarray
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
        return np.linalg.pinv(self.into) @ V


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
    total = weight.sum()
    mean = weight @ X / total
    rest, means = within(X, code, weight)
    rows = rest * np.sqrt(weight / total)[:, None]
    values, vectors = _principal(rows)
    keep = values > NULL * max(values.max(initial=0.0), 1e-300)
    values, vectors = values[keep], vectors[:, keep]
    apart = means - means.mean(axis=0)
    beyond = apart - apart @ vectors @ vectors.T
    separates = bool((beyond**2).sum() > 1e-8 * (values.sum() + (apart**2).sum()))
    scale = np.sqrt(values)
    if whiten:
        return Basis(mean, vectors / scale, np.ones_like(scale), separates)
    return Basis(mean, vectors, scale, separates)


def _principal(rows):
    """Eigenvalues and orthonormal eigenvectors of rows' rows, largest first."""
    n, p = rows.shape
    if p <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return values[::-1], vectors[:, ::-1]
    _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
    return singular**2, vectors.T
