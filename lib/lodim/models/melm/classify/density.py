"""The classifier of a projection: kernel densities of the classes, and Bayes' rule."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from lodim.engine.blocks import for_blocks
from lodim.models.melm.kernels.cpu import LOG_TAU
from lodim.models.melm.kernels.kde import STEP, TILE, log_sums, neighbours_first, tiled
from lodim.models.melm.search.sample import bandwidths
from lodim.models.melm.search.whitening import EMPIRICAL, empirical, estimated, within

MANY = 2**15  # rows of a class from which they are kept as cells
FARTHEST = 1e120  # a coordinate whose square still is a number
CELL = 0.5  # side of a cell, in standard deviations of the kernel
SAME = 1e-6  # of a loss: what is as near is no worse
WIDTHS = 2.0 ** np.arange(2.0, -2.25, -0.5)  # tried, in that of the search; of equals the widest


@dataclass(frozen=True)
class Densities:
    """Projected rows of the classes, as tiles of neighbours in the units of their kernels.

    U (T, k, 64); w (T, 64), zero on padding; low, high (T, k) the tiles' boxes; start (C + 1,)
    tiles of each class; root (C, k, k) L^-1 of its kernel's covariance L L'; scale (C,) the
    logarithm that is added to that of a sum of kernels; log_prior (C,).
    """

    U: np.ndarray
    w: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    root: np.ndarray
    scale: np.ndarray
    log_prior: np.ndarray

    @property
    def n_classes(self):
        """Number of classes."""
        return len(self.log_prior)


def learn(Z, code, weight, *, gamma=1.0, covariance=EMPIRICAL, equal=False, cells=True):
    """Densities of projected rows.

    Parameters
    ----------
    Z : array (n, k)
    code : int array (n,)
        Classes 0, ..., C - 1.
    weight : array (n,)
        Counts of rows, as in `manifold.find`.
    gamma : float
        Times Silverman's bandwidths.
    covariance : str
        As in `covariance`.
    equal : bool
        Equal priors instead of the classes' shares.
    cells : bool
        Whether classes of many rows are kept as the mean points of small cells.
    """
    return placed(Z, code, weight, gamma, covariance, equal, cells)[0]


def placed(Z, code, weight, gamma, covariance, equal, cells=True):
    """Densities, and for each row its tile and place there (-1 where rows share cells)."""
    C, k = int(code.max()) + 1, Z.shape[1]
    size = np.bincount(code, weight, C)
    h2 = bandwidths(size, k, gamma)
    rest = within(Z, code, weight)[0]
    root = np.linalg.cholesky(empirical(rest, weight))
    white = np.linalg.inv(root).T
    tile, place = np.full((2, len(Z)), -1)
    tiles, roots, scale, start = [], [], [], [0]
    for c in range(C):
        rows = np.flatnonzero((code == c) & (weight > 0))
        cov = root @ estimated(Z[rows], weight[rows], covariance, white) @ root.T
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
            place[rows[order]] = np.arange(len(rows)) % TILE
        tiles.append(tiled(u[order], w[order]))
        roots.append(L)
        scale.append(np.linalg.slogdet(L)[1] - 0.5 * k * LOG_TAU - np.log(size[c]))
        start.append(start[-1] + len(tiles[-1][0]))
    U, w, low, high = (np.concatenate(part) for part in zip(*tiles, strict=True))
    prior = np.full(C, 1.0 / C) if equal else size / size.sum()
    made = Densities(
        U, w, low, high, np.array(start), np.stack(roots), np.array(scale), np.log(prior)
    )
    return made, tile, place


def _cells(u, w):
    """Mean points and weights of the cells that are not empty."""
    at = np.floor(u / CELL).astype(np.int64)
    at -= at.min(axis=0)
    key = np.ravel_multi_index(at.T, at.max(axis=0) + 1)
    _, cell = np.unique(key, return_inverse=True)
    total = np.bincount(cell, w)
    means = [np.bincount(cell, w * x) / total for x in u.T]
    return np.column_stack(means), total


def log_densities(densities, Z, threads=1, tile=None, place=None):
    """log f_c at each row of Z (m, k), (m, C)."""
    d, m = densities, len(Z)
    none = np.full(m, -1)
    tile, place = (none, none) if tile is None else (tile, place)
    P = np.ascontiguousarray(np.clip(Z, -FARTHEST, FARTHEST).T)
    out = np.empty((m, d.n_classes))
    for_blocks(
        log_sums, -(-m // STEP), STEP, P, d.root, d.U, d.w, d.low, d.high,
        d.start, tile, place, out, threads=threads,
    )  # fmt: skip
    return out + d.scale


def left_out(rows, background, width, options, threads):
    """Scores (m, C) of training rows by Bayes' rule, each left out of the densities.

    options : of `learn`; width multiplies their gamma
    """
    o = options | {"gamma": width * options["gamma"]}
    made, tile, place = placed(rows.Z, rows.code, rows.weight, **o, cells=False)
    log_f = log_densities(made, rows.Z, threads, tile, place)
    if options["equal"]:
        # With the shares of classes as priors, that of the row's class is smaller by as much.
        own = np.arange(len(rows.Z)), rows.code
        rest = 1.0 - rows.weight / np.bincount(rows.code, rows.weight)[rows.code]
        log_f[own] -= np.log(np.maximum(rest, 1e-300))
    share = np.log(rows.size / rows.size.sum())
    return (made.log_prior if options["equal"] else share) + background.mixed(log_f, rows.Z)


def even(code, weight, equal):
    """Weights that sum to one, by which rows judge a rule: of equal classes if so asked."""
    weight = weight / np.bincount(code, weight)[code] if equal else weight
    return weight / max(weight.sum(), 1e-300)


def choose(rows, background, options, threads):
    """The width of least log-loss; of those that are equal but for rounding the widest."""
    own, share = np.arange(len(rows.Z)), even(rows.code, rows.share, options["equal"])
    loss = []
    for width in WIDTHS:
        score = left_out(rows, background, width, options, threads)
        loss.append(-(share @ log_softmax(score, axis=1)[own, rows.code]))
    return float(WIDTHS[np.flatnonzero(np.array(loss) <= (1.0 + SAME) * min(loss))[0]])
