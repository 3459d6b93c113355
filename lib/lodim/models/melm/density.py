"""Kernel densities of the classes in a projection, and the choice of the kernels' width."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import forms
from lodim.engine.blocks import for_blocks
from lodim.engine.tiles import TILE, pad
from lodim.models.melm.cpu_kernels import LOG_TAU, log_sums
from lodim.models.melm.whitening import (
    SHRUNK,
    bandwidths,
    center_by_class,
    class_covariance,
    empirical,
)

N_CLASSES = "max(C, 1)"  # in a view without a response all rows are of one class
MIN_CELL_ROWS = 2**15  # rows of a class above which only means of cells are kept
FARTHEST = 1e120  # largest coordinate whose square does not overflow
CELL = 0.5  # side of a cell, in standard deviations of the kernel
SAME = 1e-6  # relative difference up to which losses are equal
STEP = 256  # points per block of a compiled loop
WIDTHS = 2.0 ** np.arange(2.0, -3.0, -1.0)  # tried, relative to Silverman's rule; ties: widest


@dataclass(frozen=True)
class DensityOptions:
    """Settings of the kernel densities of classes."""

    gamma: float = 1.0  # factor of Silverman's bandwidths
    covariance: str = SHRUNK  # kind of class covariance, "shrunk" or "ledoit-wolf"
    equal: bool = False  # True for equal class priors, False for the classes' shares


@forms.record
class Densities:
    """Kernel densities of the classes: a normal density around each row, in T blocks of 64 rows."""

    # U, w: coordinates of the rows, transformed by the class's `root`; weights, zero on padding
    U: np.ndarray = forms.real("T", "k", TILE)
    w: np.ndarray = forms.real("T", TILE, least=0)
    # low, high, start: smallest and largest coordinates of each tile; first tile of each class
    low: np.ndarray = forms.real("T", "k")
    high: np.ndarray = forms.real("T", "k")
    start: np.ndarray = forms.ascending(forms.whole(f"{N_CLASSES} + 1"), strictly=True)
    # for each class L^-1, where L L' is the covariance of its kernel
    root: np.ndarray = forms.real(N_CLASSES, "k", "k")
    # log of each class's constant factor: its density is exp(scale) times a sum of kernels
    scale: np.ndarray = forms.real(N_CLASSES)
    log_prior: np.ndarray = forms.real(N_CLASSES, most=0)

    def _check_fields(self):
        if self.start[0] != 0 or self.start[-1] != len(self.U):
            raise ValueError("the rows of the classes are not where the densities are")


def fit_densities(Z, code, weight, options, cells=True):
    """Fit a kernel density to each class; return Densities, and (block, position) of each row.

    block, position : (n,) block of 64 kernels that has the row's, and place in it; -1 for none
    Z : (n, k) coordinates; code : (n,) class codes; options : DensityOptions
    cells : whether large classes get a kernel per grid cell, not per row"""
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
        cov = class_covariance(Z[rows], weight[rows], options.covariance, white)
        if options.covariance == SHRUNK:  # the identity has the weight of k + 1 rows
            n = weight[rows].sum()
            cov = (n * cov + (k + 1.0) * np.eye(k)) / (n + k + 1.0)
        L = np.linalg.inv(np.linalg.cholesky(h2[c] * (root @ cov @ root.T)))
        u, w = Z[rows] @ L.T, weight[rows]
        if cells and len(rows) > MIN_CELL_ROWS:
            u, w = _cells(u, w)
            # Rows scatter around the mean of their cell, so the kernel is wider.
            wider = np.sqrt(1.0 + CELL**2 / 12.0)
            L, u, rows = L / wider, u / wider, None
        order, packed = pack_neighbours(u, w)
        if rows is not None:
            tile[rows[order]] = start[-1] + np.arange(len(rows)) // TILE
            position[rows[order]] = np.arange(len(rows)) % TILE
        tiles.append(packed)
        roots.append(L)
        scale.append(np.linalg.slogdet(L)[1] - 0.5 * k * LOG_TAU - np.log(size[c]))
        start.append(start[-1] + len(tiles[-1][0]))
    U, w, low, high = (np.concatenate(part) for part in zip(*tiles, strict=True))
    prior = np.full(C, 1.0 / C) if options.equal else size / size.sum()
    kernels = np.stack(roots), np.array(scale)
    return Densities(U, w, low, high, np.array(start), *kernels, np.log(prior)), (tile, position)


def _cells(u, w):
    """Group rows u (n, k) into small cells; return their means (m, k) and weights (m,)."""
    at = np.floor(u / CELL).astype(np.int64)
    at -= at.min(axis=0)
    key = np.ravel_multi_index(at.T, at.max(axis=0) + 1)
    _, cell = np.unique(key, return_inverse=True)
    total = np.bincount(cell, w)
    means = [np.bincount(cell, w * x) / total for x in u.T]
    return np.column_stack(means), total


def log_densities(densities, Z, threads=1, place=None):
    """Return log densities (m, C) at points Z (m, k); densities : Densities of C classes.

    place : (2, m) kernel that each point omits: its block of 64, and its position there; or None"""
    d, P = densities, np.ascontiguousarray(np.clip(Z, -FARTHEST, FARTHEST).T)
    classes = d.root, d.U, d.w, d.low, d.high, d.start
    place = np.full((2, len(Z)), -1) if place is None else place
    out = np.empty((len(Z), len(d.root)))
    for_blocks(log_sums, -(-len(Z) // STEP), STEP, P, classes, *place, out, threads=threads)
    return out + d.scale


def pack_neighbours(u, w):
    """Sort rows u (n, k) with weights w into T blocks of 64 neighbours; return (order, blocks).

    order : (n,) positions of the sorted rows; blocks : fields U, w, low and high of Densities"""
    n, k = u.shape
    order, group = np.arange(n), np.zeros(n, np.int64)
    strips = max(1.0, (n / TILE) ** (1.0 / k))
    for j in range(k):
        order = order[np.lexsort((u[order, j], group[order]))]
        group[order] = np.arange(n) // max(TILE, int(n / strips ** (j + 1)))
    U = np.pad(u[order], ((0, -n % TILE), (0, 0)), "edge").reshape(-1, TILE, k)
    weights = pad(w[order], len(U))
    tiles = np.ascontiguousarray(U.transpose(0, 2, 1)), weights, U.min(axis=1), U.max(axis=1)
    return order, tiles


# Width of the kernels ----------------------------------------------------------------------------


def evaluation_weights(code, weight, equal):
    """Return row weights with sum one; if `equal`, all classes in `code` (n,) have the same sum."""
    weight = weight / np.bincount(code, weight)[code] if equal else weight
    return weight / max(weight.sum(), 1e-300)


def leave_one_out_scores(rows, background, width, options, threads, fitted=None):
    """Return log prior + log density (m, C) of m training rows, each without its own kernel.

    rows : Rows; background : Background, wide densities to mix in; options : DensityOptions
    width : factor of kernel widths; fitted : result of `fit_densities` for these rows, or None"""
    fitted = fitted or fit_densities(rows.Z, rows.code, rows.weight, options, cells=False)
    (d, place), k = fitted, rows.Z.shape[1]
    spread = {name: getattr(d, name) / width for name in ("U", "low", "high", "root")}
    widened = replace(d, **spread, scale=d.scale - k * np.log(width))
    log_f = log_densities(widened, rows.Z, threads, place)
    if options.equal:
        # With the shares of classes as priors, that of the row's class is smaller by as much.
        of_class = np.arange(len(rows.Z)), rows.code
        others = 1.0 - rows.weight / np.bincount(rows.code, rows.weight)[rows.code]
        log_f[of_class] -= np.log(np.maximum(others, 1e-300))
    share = np.log(rows.size / rows.size.sum())
    return (d.log_prior if options.equal else share) + background.mixed(log_f, rows.Z)


def select_width(rows, background, options, threads):
    """Return the factor of kernel widths that has the lowest leave-one-out log-loss.

    rows : Rows; background : Background, wide densities to mix in; options : DensityOptions"""
    of_class = np.arange(len(rows.Z)), rows.code
    share, loss = evaluation_weights(rows.code, rows.share, options.equal), []
    widths = WIDTHS / options.gamma
    fitted = fit_densities(rows.Z, rows.code, rows.weight, options, cells=False)
    for width in widths:
        score = leave_one_out_scores(rows, background, width, options, threads, fitted)
        loss.append(share @ (np.logaddexp.reduce(score, axis=1) - score[of_class]))
    return lowest_between(widths, loss)


def lowest_between(values, loss):
    """Return the value of lowest `loss`, interpolated in the geometric sequence `values`."""
    loss = np.asarray(loss)
    at = int(np.flatnonzero(loss <= (1.0 + SAME) * loss.min())[0])
    if not 0 < at < len(loss) - 1:
        return float(values[at])
    before, after = loss[[at - 1, at + 1]] - loss[at]
    vertex = np.clip(0.5 * (before - after) / (before + after), -0.5, 0.5)
    return float(values[at] * (values[1] / values[0]) ** vertex)
