"""Objective of a batch of prototypes: Eq. 2.8 of Ruf (2022), for classes and numbers."""

from typing import NamedTuple

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import for_blocks, on_host, place
from lodim.models.proset.cpu_kernels import (
    DENSITY,
    Points,
    loss_gradient,
    similarity_matrix,
    square_sums,
)
from lodim.solve.objective import ElasticNet

MOST_BLOCKS = 64  # most blocks of rows, each with its partial sums
SMALL = 2**18  # pairs of rows and candidates up to which threads do not pay


class ScoringRows(NamedTuple):
    """Rows whose loss a batch of prototypes minimizes, in blocks of 64 rows."""

    X: np.ndarray
    y: np.ndarray  # responses
    a: np.ndarray  # numerator of the estimate by earlier prototypes
    b: np.ndarray  # its denominator
    weight: np.ndarray  # row weights, with sum one, zero on padding
    own: np.ndarray  # position of each row among the candidates, -1 if it is none

    @classmethod
    def from_tiles(cls, packed, y, a, b, weight, own):
        """Return ScoringRows of features `packed` (blocks of 64 rows), with other arrays padded.

        y : responses; a / b : estimates by earlier sets; own : candidate that is the row, or -1"""
        dtype = packed.dtype.type
        y, a, weight = (tiles.pad(z, len(packed), dtype) for z in (y, a, weight))
        # Padding has no weight, but the logarithm of its estimate must exist.
        b = tiles.pad(b - 1.0, len(packed), dtype) + dtype(1)
        own = tiles.pad(own + 1, len(packed), np.int64) - 1
        return cls(packed, y, a, b, weight, own)


def penalize(p, J, settings):
    """Return the ElasticNet for parameters of a BatchObjective of p features and J candidates."""
    s = settings
    lambda_ = np.repeat([s.lambda_v, s.lambda_w, s.lambda_u], [p, J, 1])
    l1_ratio = np.repeat([s.l1_ratio_v, s.l1_ratio_w, 0.0], [p, J, 1])
    return ElasticNet(0.5 * lambda_ * (1.0 - l1_ratio), lambda_ * l1_ratio)


class BatchObjective:
    """Penalized loss of a set of prototypes and its gradient, as a function of their parameters.

    Parameters are p feature weights, J candidates' weights, and the inverse SD of normal densities.
    scoring : ScoringRows, the rows whose loss counts
    x, target : (J, p) features and (J,) responses of the candidates
    loss : CLASSES, SQUARED or DENSITY"""

    def __init__(self, scoring, x, target, loss, penalty, threads, engine="cpu"):
        self._scoring, self._loss, self._penalty = scoring, loss, penalty
        self._x, self._target = x.astype(scoring.X.dtype), target.astype(scoring.X.dtype)
        self._by_target = np.argsort(target, kind="stable")
        self._threads = 1 if scoring.y.size * len(x) <= SMALL else threads
        self._X, self._on_device = place(scoring.X, engine), None
        if not on_host(self._X):
            from lodim.models.proset.cuda_kernels import upload_rows  # loads CUDA

            self._on_device = upload_rows(self._X, scoring, self._x, self._target)

    def __call__(self, theta, among=None):
        """Return the penalized loss and its gradient at the parameters theta (p + J + 1,).

        among : (J,) bool, candidates to use, None for all; the others must have weight zero"""
        p, J = self._x.shape[1], len(self._x)
        v, w, u = theta[:p], theta[p : p + J], theta[-1]
        active, order = np.flatnonzero(v), self._by_target
        if among is not None:
            order = order[among[order]]
        positive = w[order].astype(self._x.dtype) > 0
        order = np.concatenate([order[positive], order[~positive]])
        arguments = v[active], w[order], u, active, order, self._loss
        if self._on_device is None:
            sums = self._sums(*arguments)
        else:
            sums = self._X.run(loss_gradient, *self._on_device, *arguments)
        D = active.size
        ridge, l1 = self._penalty.ridge, self._penalty.l1
        value, gradient = ridge @ theta**2 + l1 @ theta, 2.0 * ridge * theta + l1
        gradient[-1] = gradient[-1] + sums[1] if self._loss == DENSITY else 0.0
        gradient[p + order] += sums[2 + D :]
        gradient[active] += sums[2 : 2 + D]
        return value + sums[0], gradient

    def _sums(self, v, w, u, active, order, loss):
        """Return an array: loss without penalty, derivatives by u (a number), v (D,) and w (J,).

        v : (D,) weights of the features at the positions `active`
        w : (J,) weights of the candidates at the positions `order`
        u : inverse SD of normal densities; loss : CLASSES, SQUARED or DENSITY"""
        rows, kind, D = self._scoring, self._X.dtype, len(active)
        small_w, small_v, target = w.astype(kind), v.astype(kind), self._target[order]
        V = similarity_matrix(self._x, small_v, order, active)
        new = (target[1:] != target[:-1]) | ((small_w[1:] > 0) != (small_w[:-1] > 0))
        runs = np.concatenate([[0], np.flatnonzero(new) + 1, [len(w)]])
        step = -(-len(rows.X) // MOST_BLOCKS)
        partials = np.empty((-(-len(rows.X) // step), 2 + D + len(w)))
        # The last entry is for rows that are not candidates (-1).
        position = np.full(len(self._x) + 1, -1)
        position[order] = np.arange(len(w))
        points = Points(active, small_v, V, small_w, target)
        rows, width = rows._replace(own=position[rows.own]), kind.type(u)
        arguments = partials, rows, step, points, runs, width, loss
        for_blocks(loss_gradient, len(partials), *arguments, threads=self._threads)
        sums = partials.sum(axis=0)
        square_sums(V, w * sums[2 + D :], sums[2 : 2 + D])
        sums[2 : 2 + D] /= -v
        return sums
