"""Proximal Newton: quadratic models of a loss on a working set of coefficients."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodim.models.costnet.penalty import block_descent as blocks
from lodim.models.costnet.penalty import passes as rows
from lodim.models.costnet.penalty import prox as kernels
from lodim.models.costnet.penalty.groups import Layout
from lodim.models.costnet.penalty.groups import part as part_of
from lodim.models.costnet.penalty.problem import Ends, Reduced

COUPLED = 2000  # numbers up to which the scores of one quadratic model are coupled
STALE = 0.1  # a step that leaves more of the gap asks for a new curvature
LEVEL = 1e-10  # slopes of free coefficients that count as zero
SWEEPS = 1000
HALVINGS = 30


@dataclass(eq=False)
class State:
    """Where a path is.

    w (K, A), b (K, F) : coefficients; f : scores, as tiles
    loss, c (K, A), slope (K, F) : half the mean deviance at f, and minus its gradient
    xi (K, members) : dual vectors
    """

    w: np.ndarray
    b: np.ndarray
    f: np.ndarray
    xi: np.ndarray
    loss: float = 0.0
    c: np.ndarray | None = None
    slope: np.ndarray | None = None
    h: np.ndarray | None = None


@dataclass(eq=False)
class Model:
    """The quadratic model in use: of the coefficients `keep` (A,), in a layout of their own."""

    keep: np.ndarray
    part: Layout
    member: np.ndarray
    reduced: Reduced
    ridge: float
    steep: np.ndarray


class Solver:
    """Models of one problem along falling penalties, each from the one before."""

    def __init__(self, problem):
        K, A = problem.n_scores, len(problem.column)
        self.problem = problem
        self.state = State(
            np.zeros((K, A)), np.zeros((K, len(problem.free))), problem.base.copy(),
            np.zeros((K, len(problem.layout.member))),
        )  # fmt: skip
        self._model: Model | None = None
        self._fresh = False
        self._free()
        self.null = self.state.loss
        # The least penalty at which nothing with a price is used.
        self.top, self.state.xi = kernels.dual_norm(problem.layout.tree, self.state.c)
        self._last = self.top

    def path(self, lams, ridges, target, max_iter, thrifty):
        """Solve for falling penalties; `thrifty` as in `blocks.gaussian`."""
        w, b, numbers, share = [], [], [], 0.0
        for i, (lam, ridge) in enumerate(zip(lams.tolist(), ridges.tolist(), strict=True)):
            gap, n_iter = self._step(lam, ridge, target, max_iter)
            w.append(self.state.w)
            b.append(self.state.b)
            numbers.append((self.state.loss, gap, n_iter))
            last, share = share, 1.0 - self.state.loss / self.null
            if thrifty and blocks.enough(i, share, last):
                break
        loss, gap, n_iter = (np.array(v) for v in zip(*numbers, strict=True))
        return Ends(np.stack(w), np.stack(b), loss, gap, n_iter)

    def judge(self, w, b, lam, ridge, target):
        """Loss and duality gap of coefficients w (K, A) and b (K, F) from elsewhere."""
        s, p = self.state, self.problem
        s.w, s.b = w, b
        self._look(p.moved(p.base, np.arange(-1, p.X.shape[1]), p.spread_out(w, b)))
        return s.loss, self._gap(lam, ridge, target)[0]

    def _look(self, f=None, curves=1):
        """Evaluate the loss at scores f, or where the state is."""
        s, p = self.state, self.problem
        s.f = s.f if f is None else f
        s.loss, r, s.h = p.losses(s.f, curves)
        g = rows.slopes(p.X, r, p.threads)
        s.c, s.slope = g[:, 1 + p.column], g[:, 1 + p.free]

    def _free(self):
        """Fit the free coefficients alone, by Newton's method."""
        s, p, K = self.state, self.problem, self.problem.n_scores
        self._look(curves=K)
        for _ in range(100):
            if np.abs(s.slope).max() <= LEVEL:
                return
            G = rows.moments(p.X, p.free, s.h, p.threads)
            step = Reduced.of(G, len(p.free)).follow(s.slope, np.zeros((K, 0)))
            if not self._search(np.zeros_like(s.w), step, 0.0, 0.0, curves=K):
                return

    def _search(self, dw, db, lam, ridge, curves=1):
        """Go along a step as far as the objective falls; whether it did."""
        s, p = self.state, self.problem
        move = p.spread_out(dw, db)
        on = np.flatnonzero(move.any(axis=0))
        far = p.moved(s.f, on - 1, move[:, on])
        before, t = self._value(s.w, s.loss, lam, ridge), 1.0
        for _ in range(HALVINGS):
            f = far if t == 1.0 else s.f + t * (far - s.f)
            w = s.w + t * dw
            loss = p.losses(f, 1)[0]
            if self._value(w, loss, lam, ridge) <= before + 1e-14 * abs(before):
                s.w, s.b = w, s.b + t * db
                self._look(f, curves)
                return True
            t *= 0.5
        return False

    def _value(self, w, loss, lam, ridge):
        """The objective of coefficients w (K, A) with a loss."""
        tree = self.problem.layout
        norms = kernels.penalty(w, lam, 0, len(tree.cost), tree.start, tree.member, tree.cost)
        return loss + norms + 0.5 * ridge * float((w * w).sum())

    def _gap(self, lam, ridge, target):
        """Duality gap of the state, and what of its slopes (K, A) no dual vector takes."""
        s, tree = self.state, self.problem.layout.tree
        left = np.empty_like(s.w)
        radius = self._value(s.w, s.loss, lam, ridge) / lam
        c = s.c - ridge * s.w
        slack, over = kernels.certificate(
            s.w, c, s.xi, lam, tree, left, 0.1 * target / max(radius, 1e-300)
        )
        return slack + over * radius, left

    def _step(self, lam, ridge, target, max_iter):
        """Solve for one penalty: the gap, and iterations."""
        s = self.state
        wanted = s.w.any(axis=0)
        if lam < self.top:
            wanted = self._promising(lam, ridge, target)
        last = np.inf
        for iteration in range(1, max_iter + 1):
            gap, left = self._gap(lam, ridge, target)
            if self._model is not None:
                gap += 2.0 * self._model.reduced.decrement(s.slope)
            if gap <= target and np.abs(s.slope).max() <= LEVEL:
                return gap, iteration
            wanted = wanted | (np.abs(left).max(axis=0) > 0.0) | s.w.any(axis=0)
            self._renew(wanted, ridge, stale=gap > STALE * last)
            last = gap
            if not self._advance(lam, ridge, max(0.1 * target, 1e-3 * gap)):
                if self._fresh or self.problem.kind == rows.GAUSSIAN:
                    return gap, iteration
                last = 0.0  # the curvature is old: renew it
        return gap, max_iter

    def _promising(self, lam, ridge, target):
        """Coefficients that the strong rule keeps (Tibshirani et al. 2012), (A,) bool."""
        s, before = self.state, self._last
        self._last = lam
        _, left = self._gap(max(2.0 * lam - before, 0.1 * lam), ridge, target)
        return s.w.any(axis=0) | (np.abs(left).max(axis=0) > 0.0)

    def _renew(self, wanted, ridge, stale):
        """Make the quadratic model anew if it lacks a coefficient, or is far off."""
        p, s, old = self.problem, self.state, self._model
        curved = p.kind != rows.GAUSSIAN
        self._fresh = False
        if old is not None and not (wanted & ~old.keep).any() and not (stale and curved):
            self._ridge(ridge)
            return
        keep = wanted if old is None or stale else wanted | old.keep
        J = p.n_scores if p.n_scores * keep.sum() <= COUPLED else 1
        if curved:
            s.h = p.losses(s.f, J)[2]
        columns = np.r_[p.free, p.column[keep]]
        reduced = Reduced.of(rows.moments(p.X, columns, s.h, p.threads), len(p.free))
        part = part_of(p.layout, keep)
        steep = [
            blocks.steepness(reduced.H, p.n_scores, lo, hi)
            for lo, hi in zip(part.block[:-1], part.block[1:], strict=True)
        ]
        self._model = Model(
            keep, part, keep[p.layout.member], reduced, 0.0, np.array(steep)
        )  # fmt: skip
        self._fresh = True
        self._ridge(ridge)

    def _ridge(self, ridge):
        """Put the ridge on the model's diagonal."""
        model = self._model
        H, more = model.reduced.H, ridge - model.ridge
        at = np.arange(H.shape[2])
        for k in range(H.shape[0]):
            H[k, k, at, at] += more
        model.steep += more
        model.ridge = ridge

    def _advance(self, lam, ridge, target):
        """Minimize the quadratic model and move there; whether the objective fell."""
        s, model = self.state, self._model
        w, xi = s.w[:, model.keep], s.xi[:, model.member]
        start = w.copy()
        c = model.reduced.slope(s.c[:, model.keep], s.slope) - ridge * w
        radius = self._value(s.w, s.loss, lam, ridge) / lam
        blocks.solve(
            model.part.tree, model.reduced.H, c, w, xi, lam, model.steep, target, radius, SWEEPS
        )  # fmt: skip
        s.xi[:, model.member] = xi
        dw = np.zeros_like(s.w)
        dw[:, model.keep] = w - start
        db = model.reduced.follow(s.slope, w - start)
        return self._search(dw, db, lam, ridge)


SWEEPS_PER_MODEL = 5  # for each quadratic model that a path may take


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
            SWEEPS_PER_MODEL * max_iter, thrifty,
        )  # fmt: skip
        b = np.stack([self._reduced.follow(self._free, step) for step in w])
        return Ends(w, b, loss, gap, sweeps)
