"""Newton steps of several classes on the coefficients that are not zero, by conjugate gradients.

There the objective is smooth. Its Hessian couples all classes, and is never formed: a product with
it is two passes over the rows. Quadratic models whose one curvature serves all classes, as
`solvers` has them, find the support; by themselves they need hundreds of steps where rows are sure
of most classes, since each class has a curvature of its own.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lodim.engine.blocks import each_tile, row_spans, sum_tiles
from lodim.engine.tiles import TILE, of_rows
from lodim.models.costnet.penalty import passes
from lodim.models.costnet.penalty.problem import hold_absent
from lodim.models.costnet.penalty.prox import subtract_penalty_curvature

MOST_PRODUCTS = 100  # of a step
MANY_PRODUCTS = 25  # steps after which a preconditioner is recomputed
EXACT = 1e-3  # of the gradient's norm may be left, in the preconditioner's metric
BLOCK = 256  # columns that the preconditioner couples
RIDGE = 1e-10  # of it, in units of each block's largest diagonal number


@dataclass(eq=False)
class Preconditioner:
    """Hessian within each class and lot of columns, inverted.

    keep : (A,) bool, coefficients that it was made for
    blocks : list of (K, C, C), of the free columns and of these
    good : whether few products were needed with it
    """

    keep: np.ndarray
    blocks: list
    good: bool = True

    @classmethod
    def from_shares(cls, problem, keep, share, diagonal):
        """Build from class probabilities (n_tiles, K, 64), and the penalty's curvature (C,)."""
        columns, blocks = np.r_[problem.free_columns, problem.columns[keep]], []
        for start in range(0, len(columns), BLOCK):
            at = slice(start, start + BLOCK)
            work = partial(_own_moments, columns=columns[at], threads=problem.threads)
            M = sum_tiles(work, problem.X, problem.weight, share)
            i = np.arange(M.shape[1])
            M[:, i, i] += diagonal[at]
            M[:, i, i] += RIDGE * np.maximum(M[:, i, i].max(axis=1), 1e-300)[:, None]
            blocks.append(np.linalg.inv(M))
        return cls(keep, blocks)

    def solve(self, v, at):
        """Apply to v (K, C), at positions `at` of all coefficients."""
        whole = np.zeros((len(v), sum(M.shape[1] for M in self.blocks)))
        whole[:, at] = v
        start = 0
        for M in self.blocks:
            part = slice(start, start + M.shape[1])
            whole[:, part] = np.matmul(M, whole[:, part, None])[:, :, 0]
            start = part.stop
        return whole[:, at]


class SupportNewton:
    """Newton steps of a PathProblem of several classes; the last preconditioner serves again."""

    def __init__(self, problem):
        self._problem = problem
        self._known: Preconditioner | None = None

    def step(self, state, lam, ridge):
        """Return the step of the coefficients (K, A), zero for zeros, and of free ones (K, F)."""
        p, s = self._problem, state
        keep = s.w.any(axis=0)
        F, w = len(p.free_columns), np.ascontiguousarray(s.w[:, keep])
        layout = p.layout.restrict(keep)
        group = np.repeat(np.arange(len(layout.cost)), np.diff(layout.start))
        square = np.bincount(group, (w[:, layout.member] ** 2).sum(axis=0), len(layout.cost))
        norm = np.sqrt(square)
        pull = lam * layout.cost / norm
        diagonal = ridge + np.bincount(layout.member, pull[group], len(layout.at))
        gradient = np.hstack([s.slope, s.c[:, keep] - diagonal * w])
        share = each_tile(_shares, s.f)
        columns = np.r_[p.free_columns, p.columns[keep]]

        def product(v):
            work = partial(_hessian_times, columns=columns, v=v, threads=p.threads)
            out = sum_tiles(work, p.X, p.weight, share)[:, 1 + columns]
            out[:, F:] += diagonal * v[:, F:]
            groups = layout.start, layout.member, pull, norm
            subtract_penalty_curvature(np.ascontiguousarray(v[:, F:]), w, *groups, out[:, F:])
            out[p.absent] = 0.0
            return out

        precondition = self._preconditioner(keep, share, np.r_[np.zeros(F), diagonal])
        at = np.r_[np.full(F, True), keep[self._known.keep]]
        found, products = conjugate_gradients(product, gradient, lambda v: precondition(v, at))
        self._known.good = products <= MANY_PRODUCTS
        hold_absent(found, p.absent)
        dw = np.zeros_like(s.w)
        dw[:, keep] = found[:, F:]
        return dw, found[:, :F]

    def _preconditioner(self, keep, share, diagonal):
        """The function (v, at) -> (K, C) of a preconditioner that serves `keep`."""
        known = self._known
        if known is None or not known.good or bool((keep & ~known.keep).any()):
            known = Preconditioner.from_shares(self._problem, keep, share, diagonal)
        self._known = known
        return known.solve


def _shares(f):
    """Probabilities of the classes at scores f (n_tiles, K, 64)."""
    out = np.empty_like(f)
    for part in row_spans(len(f) * TILE):
        own = of_rows(part)
        e = np.exp(f[own] - f[own].max(axis=1, keepdims=True))
        out[own] = e / e.sum(axis=1, keepdims=True)
    return out


def _own_moments(X, weight, share, columns, threads):
    """Moments (K, C, C) of columns by each class's own curvature."""
    h = weight[:, None] * share * (1.0 - share)
    each = (h[:, k : k + 1] for k in range(h.shape[1]))
    return np.array([passes.moments(X, columns, own, threads)[0, 0] for own in each])


def _hessian_times(X, weight, share, columns, v, threads):
    """Hessian of the loss times v (K, columns), for all columns (K, 1 + p)."""
    u = np.zeros_like(share)
    passes.add_scores(X, columns, np.ascontiguousarray(v), u, threads)
    return passes.slopes(X, _curved(share, weight, u), threads)


def _curved(share, weight, u):
    """Second derivative of the loss of each row times u, both (n_tiles, K, 64)."""
    return weight[:, None] * share * (u - (share * u).sum(axis=1, keepdims=True))


def conjugate_gradients(product, target, precondition):
    """Solution of product(x) = target to a share EXACT of it, and the number of products."""
    x, rest = np.zeros_like(target), target.copy()
    z = precondition(rest)
    along, size = z, float((rest * z).sum())
    limit = EXACT**2 * size
    for k in range(1, MOST_PRODUCTS + 1):
        bent = product(along)
        curve = float((along * bent).sum())
        if curve <= 0.0:
            return x, k
        x, rest = x + size / curve * along, rest - size / curve * bent
        z = precondition(rest)
        before, size = size, float((rest * z).sum())
        if size <= limit:
            return x, k
        along = z + size / before * along
    return x, MOST_PRODUCTS
