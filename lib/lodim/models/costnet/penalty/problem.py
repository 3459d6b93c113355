"""The data of a penalized path as the solvers see them, and what they return."""

from dataclasses import dataclass, fields, replace
from functools import cached_property, partial

import numpy as np

from lodim import forms
from lodim.engine.blocks import available_threads, on_host, sum_rows, sum_spans, sum_tiles
from lodim.models.costnet.penalty import passes
from lodim.models.costnet.penalty.groups import Groups, Layout
from lodim.models.costnet.penalty.prox import penalty
from lodim.models.costnet.worker_rows import rows_beside

RANK = 1e-13  # share of a column's mean square below which what others leave of it is rounding


@dataclass(frozen=True, eq=False)
class PathProblem:
    """Rows, penalty and threads; a gaussian response has unit spread here.

    X : tiles
    given : response (n,), weight (n,) of sum one, and offset (n, K), in units of the data
    loss : the loss, as `passes` takes it
    groups, layout : the penalty, and the order of its coefficients
    spread : sd of the response that y is divided by
    null : (K,) intercepts of the null model, in units of the data
    absent : (K,) bool, classes without a row: they stay as the null model has them, since of a
        probability that would be zero no coefficient is best
    """

    X: np.ndarray
    given: tuple
    loss: tuple
    groups: Groups
    layout: Layout
    spread: float
    threads: int
    null: np.ndarray
    absent: np.ndarray

    @classmethod
    def from_batch(cls, batch, family, groups, threads=None):
        """The problem of a batch."""
        given = rows_beside(batch, family.n_scores)
        return cls(
            X=batch.X,
            given=given,
            loss=family.kernel_loss(*given[:2]) if family.n_scores == 1 else passes.SOFTMAX,
            groups=groups,
            layout=Layout.from_groups(groups),
            spread=_spread(*given) if family.name == "gaussian" else 1.0,
            threads=available_threads() if threads is None else threads,
            null=family.null_intercept(*given),
            absent=family.absent(*given[:2]),
        )

    @cached_property
    def y(self):
        """(n_tiles, 64) the response, of unit standard deviation if numeric."""
        return self._tiles(self.given[0], self.spread)

    @cached_property
    def weight(self):
        """(n_tiles, 64) the weights."""
        return self._tiles(self.given[1])

    @property
    def offset(self):
        """(n_tiles, K, 64) the offset in units of the response, made anew."""
        return self._tiles(self.given[2], self.spread)

    def _tiles(self, values, spread=1.0):
        """Values (n,) or (n, K) of the rows over `spread`, as tiles where X is."""
        if on_host(self.X):
            return passes.padded(values, len(self.X), spread)
        there = self.X.column(values)
        return there if spread == 1.0 else there.map(np.divide, spread)

    @property
    def n_scores(self):
        """K, the number of scores."""
        return self.given[2].shape[1]

    @cached_property
    def free_columns(self):
        """Columns without a price, the intercept (-1) first."""
        return np.r_[-1, np.unique(self.groups.feature[self.groups.free])]

    @cached_property
    def columns(self):
        """(A,) the column of each coefficient of the layout."""
        return self.groups.feature[self.layout.at]

    def at_offset(self):
        """Squared loss at the offset, its slopes, and moments of the free and other columns."""
        columns = np.r_[self.free_columns, self.columns]
        work = partial(passes.quadratic, spread=self.spread, columns=columns, threads=self.threads)
        found = sum_spans(work, self.X, len(self.given[0]), *self.given)
        ends = 2, 3 + self.X.shape[1]
        G = found[ends[1] :].reshape(1, 1, len(columns), len(columns))
        return float(found[0]), *self._by_kind(found[None, ends[0] : ends[1]]), G

    def at_scores(self, f):
        """The loss at scores f; its slopes (K, A), and (K, F) of free ones; how its dual bends."""
        work = partial(passes.at_scores, loss=self.loss, threads=self.threads)
        found = sum_tiles(work, self.X, self.y, self.weight, f)
        gradient = found[2:].reshape(self.n_scores, -1)
        hold_absent(gradient, self.absent)
        return float(found[0]), *self._by_kind(gradient), float(found[1])

    def moments_at(self, f, columns):
        """Moments of some columns by the curvatures of the loss at scores f, (K, K, C, C)."""
        known = {"loss": self.loss, "columns": columns, "threads": self.threads}
        work = partial(passes.curved_moments, **known)
        G = sum_tiles(work, self.X, self.y, self.weight, f)
        G[self.absent] = G[:, self.absent] = 0.0
        return G

    def _by_kind(self, g):
        """X'r (K, 1 + p) of the penalized (K, A) and of the free coefficients (K, F)."""
        return g.take(self._at[0], axis=1), g.take(self._at[1], axis=1)

    @cached_property
    def _at(self):
        """Places of the penalized and of the free coefficients in (1 + p,), the intercept first."""
        return 1 + self.columns, 1 + self.free_columns

    def scores_after(self, f, columns, step):
        """Scores f after a step (K, columns)."""
        return passes.scores_after(self.X, columns, np.ascontiguousarray(step), f, self.threads)

    def by_column(self, w, b):
        """Coefficients w (K, A) of the layout and b (K, F) of free columns as (K, 1 + p)."""
        out = np.zeros((self.n_scores, 1 + self.X.shape[1]))
        for k in range(self.n_scores):
            for at, own in zip(self._at, (w[k], b[k]), strict=True):
                out[k] += np.bincount(at, own, out.shape[1])
        return out

    def penalty(self, w, lam):
        """lam sum_g cost_g ||w_g|| of coefficients (K, A)."""
        g = self.layout
        return penalty(w, lam, 0, len(g.cost), g.start, g.member, g.cost)


@dataclass(frozen=True, eq=False)
class PathSolution:
    """Solutions of L penalties: w (L, K, A), b (L, K, F), the rest (L,)."""

    w: np.ndarray
    b: np.ndarray
    loss: np.ndarray
    gap: np.ndarray
    n_iter: np.ndarray

    @classmethod
    def from_steps(cls, steps):
        """Build from a list of (w, b, loss, gap, n_iter), one per penalty."""
        w, b, *numbers = zip(*steps, strict=True)
        return cls(np.stack(w), np.stack(b), *map(np.array, numbers))


@forms.record
class PenaltyPath:
    """Models along a path of L penalties, the largest first.

    The objective is half the weighted mean deviance + lambda (l1_ratio sum_g cost_g ||w_g|| +
    (1 - l1_ratio) / 2 sum of squares of the coefficients that are not free).

    coef : on the columns of X, the sums of their copies
    latent : coefficients as Groups numbers them
    deviance : weighted mean
    gap : no model has an objective below objective - gap: by the slopes of the rows, or where
        these are near their end, an estimate: twice what a Newton step promises
    null_deviance : of the free coefficients alone
    """

    lambdas: np.ndarray = forms.real("L", least=0)
    intercept: np.ndarray = forms.real("L", "K")
    coef: np.ndarray = forms.real("L", "p", "K")
    latent: np.ndarray = forms.real("L", "q", "K")
    deviance: np.ndarray = forms.squares("L")
    objective: np.ndarray = forms.squares("L")
    gap: np.ndarray = forms.squares("L")
    n_iter: np.ndarray = forms.whole("L")
    converged: np.ndarray = forms.flags("L")
    null_deviance: float = forms.squares()

    @classmethod
    def from_solution(cls, problem, lambdas, scaled, ridges, solution, null, tol):
        """The path of a PathSolution, in the units of the response.

        Parameters
        ----------
        problem : PathProblem
        lambdas, scaled, ridges : (L,)
            Penalties, what the solver was given of them for the norms, and for the ridge.
        solution : PathSolution
            It covers the penalties reached.
        null : float
            Objective of the free coefficients alone.
        tol : float
            Duality gap allowed, in units of `null`.
        """
        L, spread, groups = len(solution.loss), problem.spread, problem.groups
        w, b = solution.w, solution.b
        coef = np.stack([problem.by_column(*both) for both in zip(w, b, strict=True)])
        latent = np.zeros((L, groups.q, problem.n_scores))
        latent[:, problem.layout.at] = w.transpose(0, 2, 1)
        _, first = np.unique(groups.feature[groups.free], return_index=True)
        free = np.flatnonzero(groups.free)[first]
        latent[:, free] = b[:, :, 1:].transpose(0, 2, 1)
        norms = np.array([problem.penalty(*one) for one in zip(w, scaled[:L], strict=True)])
        squares = 0.5 * ridges[:L] * (w**2).sum(axis=(1, 2))
        return cls(
            lambdas=lambdas[:L],
            intercept=coef[:, :, 0] * spread,
            coef=coef[:, :, 1:].transpose(0, 2, 1) * spread,
            latent=latent * spread,
            deviance=2.0 * solution.loss * spread**2,
            objective=(solution.loss + norms + squares) * spread**2,
            gap=np.maximum(solution.gap, 0.0) * spread**2,
            n_iter=solution.n_iter,
            converged=solution.gap <= tol * null,
            null_deviance=2.0 * null * spread**2,
        )

    def take(self, at):
        """The models at some positions of the path."""
        arrays = [f.name for f in fields(self) if f.name != "null_deviance"]
        return replace(self, **{name: getattr(self, name)[at] for name in arrays})


@dataclass(frozen=True, eq=False)
class ReducedQuadratic:
    """A quadratic model of which the free coefficients are minimized out.

    H : (J, J, A, A) of the others
    elimination : (J F, J A), a step v of the others moves the free ones by -elimination v
    inverse : (J F, J F) pseudo-inverse of the free coefficients' Hessian
    alone : (A,) bool, whether a column is more than a sum of free ones; others have zeros in H
    least : the least share of the largest eigenvalue among the free columns' directions
    """

    H: np.ndarray
    elimination: np.ndarray
    inverse: np.ndarray
    alone: np.ndarray
    least: float

    @classmethod
    def from_moments(cls, G, n_free):
        """Build from second moments (J, J, F + A, F + A), the free columns first."""
        J, F, A = G.shape[0], n_free, G.shape[2] - n_free
        flat = G.transpose(0, 2, 1, 3)
        inverse, least = _pseudo_inverse(flat[:, :F, :, :F].reshape(J * F, J * F), J)
        cross = flat[:, :F, :, F:].reshape(J * F, J * A)
        elimination = inverse @ cross
        H = flat[:, F:, :, F:] - (cross.T @ elimination).reshape(J, A, J, A)
        left, own = (np.einsum("kaka->ka", M) for M in (H, flat[:, F:, :, F:]))
        alone = (left > RANK * own).any(axis=0)
        H = H.transpose(0, 2, 1, 3) * (alone[:, None] & alone)
        return cls(np.ascontiguousarray(H), elimination, inverse, alone, least)

    def slope(self, c, free):
        """Minus the reduced gradient (K, A), of the parts c (K, A) and free (K, F)."""
        return (c - self._multiply(free, self.elimination.T).reshape(c.shape)) * self.alone

    def free_step(self, free, step):
        """Return the step (K, F) of the free coefficients for a step (K, A) of the others."""
        return self._multiply(free, self.inverse) - self._multiply(step, self.elimination)

    def decrement(self, free):
        """Newton decrement: twice what the free coefficients alone can lower the model by."""
        return float((free * self._multiply(free, self.inverse)).sum())

    def _multiply(self, v, matrix):
        return (matrix @ v.ravel()).reshape(len(v), -1)


def hold_absent(slopes, absent):
    """Make slopes or a step (K, ...) hold the classes that are absent (K,), and what others share.

    Otherwise classes without rows would diverge.
    """
    if absent.any():
        slopes[absent] = 0.0
        slopes[~absent] -= slopes[~absent].mean(axis=0)


def _spread(y, weight, offset):
    """Return the standard deviation of a numeric response minus its offset; 1 if it is 0."""
    n = len(y)
    mean = sum_rows(lambda i: weight[i] @ (y[i] - offset[i, 0]), n)
    square = sum_rows(lambda i: weight[i] @ (y[i] - offset[i, 0] - mean) ** 2, n)
    return float(np.sqrt(square)) or 1.0


def _pseudo_inverse(M, J):
    """Factor a positive semidefinite matrix (J F, J F), with a least share of used eigenvalues.

    Constant and repeated free columns have no direction. Each column is in a unit of its own, the
    same in all J scores, so that what these share stays as it is.
    """
    unit = np.tile(np.sqrt(np.diag(M).reshape(J, -1).mean(axis=0)), J)
    unit = 1.0 / np.where(unit > 0.0, unit, np.inf)
    value, vector = np.linalg.eigh(0.5 * (M + M.T) * unit * unit[:, None])
    share = value / max(value.max(initial=0.0), 1e-300)
    good = share > RANK
    vector = vector[:, good] * unit[:, None]
    return (vector / value[good]) @ vector.T, float(share[good].min(initial=1.0))
