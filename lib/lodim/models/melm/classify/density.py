"""Kernel densities of the classes in a view, and the width of their kernels by leaving rows out."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from lodim import forms
from lodim.models.melm.kernels.cpu import LOG_TAU
from lodim.models.melm.kernels.kde import TILE, class_log_sums, neighbours_first, pack_tiles
from lodim.models.melm.search.sample import bandwidths
from lodim.models.melm.search.whitening import (
    SHRUNK,
    center_by_class,
    class_covariance,
    empirical,
)

N_CLASSES = "max(C, 1)"  # in a view without a response all rows are of one class
MANY = 2**15  # rows of a class from which they are kept as cells
FARTHEST = 1e120  # a coordinate whose square still is a number
CELL = 0.5  # side of a cell, in standard deviations of the kernel
SAME = 1e-6  # relative difference up to which losses are equal
WIDTHS = 2.0 ** np.arange(2.0, -3.0, -1.0)  # tried, in Silverman's; of equals the widest


@dataclass(frozen=True)
class DensityOptions:
    """Settings of densities.

    gamma : times Silverman's bandwidths
    covariance : kind, see `whitening`
    equal : whether classes have equal priors instead of their shares
    """

    gamma: float = 1.0
    covariance: str = SHRUNK
    equal: bool = False

    def widened(self, width):
        """Return the options with kernels `width` times as wide."""
        return replace(self, gamma=width * self.gamma)


@forms.record
class Densities:
    """Projected rows of the classes, as tiles of neighbours in the units of their kernels.

    w is zero on padding; low, high are the tiles' boxes; start has the tiles of each class; root
    L^-1 of its kernel's covariance L L'; scale the logarithm that is added to that of a sum of
    kernels.
    """

    U: np.ndarray = forms.real("T", "k", TILE)
    w: np.ndarray = forms.real("T", TILE, least=0)
    low: np.ndarray = forms.real("T", "k")
    high: np.ndarray = forms.real("T", "k")
    start: np.ndarray = forms.ascending(forms.whole(f"{N_CLASSES} + 1"), strictly=True)
    root: np.ndarray = forms.real(N_CLASSES, "k", "k")
    scale: np.ndarray = forms.real(N_CLASSES)
    log_prior: np.ndarray = forms.real(N_CLASSES, most=0)

    def _check_fields(self):
        """Raise a ValueError unless the tiles of the classes are all there are."""
        if self.start[0] != 0 or self.start[-1] != len(self.U):
            raise ValueError("the rows of the classes are not where the densities are")


def _widened(densities, width):
    """Return the Densities with kernels `width` times as wide, of rows that are no cells."""
    d, k = densities, densities.root.shape[1]
    spread = {name: getattr(d, name) / width for name in ("U", "low", "high", "root")}
    return replace(d, **spread, scale=d.scale - k * np.log(width))


def fit_densities(Z, code, weight, options, cells=True):
    """Densities of rows Z (n, k) of classes code (n,) and weights (n,), and where the rows are.

    `cells`: a class of many rows is kept as the mean points of small cells.

    Returns
    -------
    densities : Densities
    place : tuple of int arrays (n,)
        Tile of each row and its position there, -1 where rows share cells.
    """
    C, k = int(code.max()) + 1, Z.shape[1]
    size = np.bincount(code, weight, C)
    h2 = bandwidths(size, k, options.gamma)
    residual = center_by_class(Z, code, weight)[0]
    root = np.linalg.cholesky(empirical(residual, weight))
    white = np.linalg.inv(root).T
    tile, position = np.full((2, len(Z)), -1)
    tiles, roots, scale, start = [], [], [], [0]
    for c in range(C):
        rows = np.flatnonzero((code == c) & (weight > 0))
        cov = root @ _white_covariance(Z[rows], weight[rows], options.covariance, white) @ root.T
        L = np.linalg.inv(np.linalg.cholesky(h2[c] * cov))
        u, w = Z[rows] @ L.T, weight[rows]
        if cells and len(rows) > MANY:
            u, w = _cells(u, w)
            # Rows are spread about their cell's mean: the kernel is that much wider.
            wider = np.sqrt(1.0 + CELL**2 / 12.0)
            L, u, rows = L / wider, u / wider, None
        order = neighbours_first(u)
        if rows is not None:
            tile[rows[order]] = start[-1] + np.arange(len(rows)) // TILE
            position[rows[order]] = np.arange(len(rows)) % TILE
        tiles.append(pack_tiles(u[order], w[order]))
        roots.append(L)
        scale.append(np.linalg.slogdet(L)[1] - 0.5 * k * LOG_TAU - np.log(size[c]))
        start.append(start[-1] + len(tiles[-1][0]))
    U, w, low, high = (np.concatenate(part) for part in zip(*tiles, strict=True))
    prior = np.full(C, 1.0 / C) if options.equal else size / size.sum()
    kernels = np.stack(roots), np.array(scale)
    return Densities(U, w, low, high, np.array(start), *kernels, np.log(prior)), (tile, position)


def _white_covariance(Z, weight, kind, white):
    """Covariance (k, k) of the rows Z (n, k) of a class, that within all classes being one.

    For "shrunk" the latter counts as k + 1 rows more: of three rows the intensity of
    Ledoit and Wolf is a guess, and a class that seems flat in the view would have no width there.
    """
    cov = class_covariance(Z, weight, kind, white)
    if kind != SHRUNK:
        return cov
    n, k = weight.sum(), len(cov)
    return (n * cov + (k + 1.0) * np.eye(k)) / (n + k + 1.0)


def _cells(u, w):
    """Return mean points (m, k) and weights (m,) of the cells that are not empty."""
    at = np.floor(u / CELL).astype(np.int64)
    at -= at.min(axis=0)
    key = np.ravel_multi_index(at.T, at.max(axis=0) + 1)
    _, cell = np.unique(key, return_inverse=True)
    total = np.bincount(cell, w)
    means = [np.bincount(cell, w * x) / total for x in u.T]
    return np.column_stack(means), total


def log_densities(densities, Z, threads=1, place=None):
    """log f_c at each row of Z (m, k), (m, C); `place` of rows that are left out of their class."""
    d, P = densities, np.ascontiguousarray(np.clip(Z, -FARTHEST, FARTHEST).T)
    tiles = d.root, d.U, d.w, d.low, d.high, d.start
    return class_log_sums(P, *tiles, place, threads) + d.scale


# Width of the kernels ----------------------------------------------------------------------------


def evaluation_weights(code, weight, equal):
    """Weights (n,) that sum to one, by which rows judge a rule; `equal`: classes weigh the same."""
    weight = weight / np.bincount(code, weight)[code] if equal else weight
    return weight / max(weight.sum(), 1e-300)


def leave_one_out_scores(rows, background, width, options, threads, known=None):
    """Return scores (m, C) of training Rows by Bayes' rule, each left out of the densities.

    `width` multiplies the gamma of `options`. known : what `fit_densities` returns of these rows,
    without cells, if it has been called
    """
    known = known or fit_densities(rows.Z, rows.code, rows.weight, options, cells=False)
    densities, place = known
    log_f = log_densities(_widened(densities, width), rows.Z, threads, place)
    if options.equal:
        # With the shares of classes as priors, that of the row's class is smaller by as much.
        of_class = np.arange(len(rows.Z)), rows.code
        others = 1.0 - rows.weight / np.bincount(rows.code, rows.weight)[rows.code]
        log_f[of_class] -= np.log(np.maximum(others, 1e-300))
    share = np.log(rows.size / rows.size.sum())
    return (densities.log_prior if options.equal else share) + background.mixed(log_f, rows.Z)


def select_width(rows, background, options, threads):
    """The width of least log-loss, in that of `options`; of those that are equal the widest."""
    of_class = np.arange(len(rows.Z)), rows.code
    share, loss = evaluation_weights(rows.code, rows.share, options.equal), []
    widths = WIDTHS / options.gamma
    known = fit_densities(rows.Z, rows.code, rows.weight, options, cells=False)
    for width in widths:
        score = leave_one_out_scores(rows, background, width, options, threads, known)
        loss.append(-(share @ log_softmax(score, axis=1)[of_class]))
    return lowest_between(widths, loss)


def lowest_between(values, loss):
    """Where the loss is least of values in geometric progression; of equal ones the first.

    Between them by the parabola, in the logarithm, through the losses there and at both neighbours:
    so it does not jump where losses move a little.
    """
    loss = np.asarray(loss)
    at = int(np.flatnonzero(loss <= (1.0 + SAME) * loss.min())[0])
    if not 0 < at < len(loss) - 1:
        return float(values[at])
    before, after = loss[[at - 1, at + 1]] - loss[at]
    vertex = np.clip(0.5 * (before - after) / (before + after), -0.5, 0.5)
    return float(values[at] * (values[1] / values[0]) ** vertex)
