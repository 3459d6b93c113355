"""A linear projection of rows to k dimensions: directions, coordinates, choice of axes."""

import numpy as np

from lodim import forms
from lodim.engine.blocks import single_blas
from lodim.engine.tiles import unpack
from lodim.errors import DataError
from lodim.models.melm.density import N_CLASSES
from lodim.models.melm.rule import Rule
from lodim.models.melm.whitening import CONSTANT, center_by_class

TIE = 1e-6  # relative difference of loadings or class means that count as equal


LOG = {  # one entry per start of the search, the best first
    "start": forms.several("starts"),
    "divergence": forms.real("starts"),
    "n_iter": forms.whole("starts"),
    "converged": forms.flags("starts"),
}


@forms.record
class View:
    """Directions V (p, k) of a projection: a row's coordinates are x'V, with standardized x."""

    V: np.ndarray = forms.real("p", "k")
    # deviation, spread: standard deviations of the features, and of the coordinates
    deviation: np.ndarray = forms.real("p", least=0)
    # correlation of each feature with each coordinate
    correlation: np.ndarray = forms.real("p", "k", least=-2, most=2)
    spread: np.ndarray = forms.real("k", least=0)
    # log integrals of products of two class densities; without classes, minus the entropy
    potential: np.ndarray = forms.real(N_CLASSES, N_CLASSES)
    # overlap, size: bounds on the overlap of classes A < B; total weights of the classes
    overlap: np.ndarray = forms.real(N_CLASSES, N_CLASSES, least=0)
    size: np.ndarray = forms.real(N_CLASSES, least=forms.TINY)
    rank: int = forms.whole(most="p")  # number of directions in which rows vary within classes
    # whether class means differ in a direction in which no class varies
    separates: bool = forms.flags()
    total: float = forms.real(least=0)  # variance of all features together
    # number of sampled rows on which the projection was optimized; 0 for all rows
    drawn: int = forms.whole()
    # converged, rule: whether the search met its tolerance; Rule that classifies
    converged: bool = forms.flags()
    rule: Rule = forms.part(Rule)

    @property
    def k(self):
        return self.V.shape[1]

    def turned_to(self, other):
        """Return the directions V, rotated to be closest to the View `other` (Procrustes)."""
        covariance = self.correlation * self.deviation[:, None]  # of features and Z, over sd(Z)
        covariance *= (self.V * covariance).sum(axis=0)
        left, _, right = np.linalg.svd(covariance.T @ other.V)
        return self.V @ (left @ right)


def project(V, tiles, n):
    """Return coordinates V'x (n, k) for the first n rows x of tiles (blocks of 64 rows)."""
    with single_blas():
        Z = np.matmul(V.T, tiles)
    return np.ascontiguousarray(unpack(Z, n), np.float64)


def orient(V, X, code, weight):
    """Return directions V (p, k), rotated and scaled to the axes in which a projection is shown.

    Within classes, coordinates get unit covariance; class means differ most along the first axes.
    Raise DataError if each class is constant along a direction.
    X : (n, p) rows; code : (n,) classes"""
    Z, C = X @ V, int(code.max()) + 1
    share = np.bincount(code, weight, C) / weight.sum()
    residual, means = center_by_class(Z, code, weight)
    if (np.abs(residual).max(axis=0) <= CONSTANT * np.abs(Z).max(axis=0)).any():
        raise DataError(
            "the rows of each class are identical in the view, so densities have no width: use "
            "other features"
        )
    residual = residual * np.sqrt(weight / weight.sum())[:, None]
    values, vectors = np.linalg.eigh(residual.T @ residual)
    whiten = vectors / np.sqrt(np.maximum(values, 1e-300))
    means, residual = (means - share @ means) @ whiten, residual @ whiten
    covariances = [residual[code == c].T @ residual[code == c] / share[c] for c in range(C)]
    values, vectors = np.linalg.eigh((means.T * share) @ means)
    values, vectors = values[::-1], vectors[:, ::-1]
    # Eigenvalues below 1e-6 of the largest are zero: class means do not differ along these axes.
    n_mean_axes = int((values > 1e-6 * max(values[0], 1e-300)).sum())
    # Along the other axes, class covariances differ most from the average along the first.
    others = vectors[:, n_mean_axes:]
    unlike = [S - np.eye(len(S)) for S in covariances]
    spread = sum(s * D @ D for s, D in zip(share, unlike, strict=True))
    spread_axes = others @ np.linalg.eigh(others.T @ spread @ others)[1][:, ::-1]
    axes = np.hstack([vectors[:, :n_mean_axes], spread_axes])
    V, sides = V @ whiten @ axes, means @ axes
    decided = np.abs(sides[-1]) > TIE * np.abs(sides).max(axis=0)
    decided &= np.arange(V.shape[1]) < n_mean_axes
    sign = np.where(decided, np.sign(sides[-1]), upright(V, X @ V, weight / weight.sum()))
    return V * sign


def upright(V, Z, share):
    """Return signs (k,) that make the largest loading in each column of V (p, k) positive.

    share : (n,) row weights; in a tie, the coordinates Z (n, k) get a positive skewness"""
    up, down = V.max(axis=0), -V.min(axis=0)
    lean, tail = up - down, share @ (Z - share @ Z) ** 3
    tied = np.abs(lean) <= TIE * np.maximum(up, down)
    return np.where(np.where(tied, tail, lean) < 0.0, -1.0, 1.0)
