"""Paths of a quadratic loss, of the second moments of all columns: the rows are read once."""

from functools import cached_property

import numpy as np

from lodim.models.costnet.penalty import block_descent as blocks
from lodim.models.costnet.penalty import passes as rows
from lodim.models.costnet.penalty import prox as kernels
from lodim.models.costnet.penalty.problem import Ends, Reduced

SWEEPS = 5  # for each quadratic model that a path may take


class Compressed:
    """A gaussian problem as the moments of its columns."""

    def __init__(self, problem):
        self.problem, F = problem, len(problem.free)
        loss, r, h = problem.losses(problem.base, 1)
        g = rows.slopes(problem.X, r, problem.threads)
        columns = np.r_[problem.free, problem.column]
        self._reduced = Reduced.of(rows.moments(problem.X, columns, h, problem.threads), F)
        self._free = g[:, 1 + problem.free]
        self._c = self._reduced.slope(g[:, 1 + problem.column], self._free)
        self.null = loss - 0.5 * self._reduced.decrement(self._free)

    @property
    def top(self):
        """The least penalty at which nothing with a price is used."""
        return self._null_dual[0]

    @cached_property
    def _null_dual(self):
        return kernels.dual_norm(self.problem.layout.tree, self._c)

    def path(self, lams, ridges, target, max_iter, thrifty):
        """Solve for falling penalties; see `blocks.gaussian`."""
        H, start, dual = self._reduced.H.copy(), np.zeros_like(self._c), self._null_dual[1].copy()
        w, loss, gap, sweeps = blocks.gaussian(
            self.problem.layout.tree, H, self._c, start, dual, lams, ridges, self.null, target,
            SWEEPS * max_iter, thrifty,
        )  # fmt: skip
        b = np.stack([self._reduced.follow(self._free, step) for step in w])
        return Ends(w, b, loss, gap, sweeps)
