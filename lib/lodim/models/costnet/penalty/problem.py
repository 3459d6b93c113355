"""The data of a path as the solvers see them, and what they must reach."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import available_threads
from lodim.models.costnet.penalty import passes as rows
from lodim.models.costnet.penalty.groups import Groups, Layout, whole

KINDS = {"gaussian": rows.GAUSSIAN, "binomial": rows.BINOMIAL, "multinomial": rows.MULTINOMIAL}
RANK = 1e-10  # share of the largest eigenvalue below which a direction of free columns is none


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, penalty and threads; a gaussian response has unit spread here.

    X, y, weight : tiles
    base : (n_tiles, K, 64) offset
    kind : code of the loss in `rows`
    groups, layout : the penalty, and the order of its coefficients
    spread : sd of the response that y is divided by
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    base: np.ndarray
    kind: int
    groups: Groups
    layout: Layout
    spread: float
    threads: int

    @classmethod
    def of(cls, batch, family, groups, threads=None):
        """The problem of a batch."""
        K, weight, base = family.n_scores, batch.weight, batch.offset_matrix(family.n_scores)
        y, spread = np.asarray(batch.y, np.float64), 1.0
        if family.name == "gaussian":
            rest = y - base[:, 0]
            spread = float(np.sqrt(weight @ (rest - weight @ rest) ** 2)) or 1.0
            y, base = y / spread, base / spread
        n_tiles = len(batch.X)
        return cls(
            batch.X, tiles.pad(y, n_tiles), tiles.pad(weight, n_tiles),
            np.stack([tiles.pad(base[:, k], n_tiles) for k in range(K)], axis=1),
            KINDS[family.name], groups, whole(groups), spread,
            available_threads() if threads is None else threads,
        )  # fmt: skip

    @property
    def n_scores(self):
        """K, the number of scores."""
        return self.base.shape[1]

    @cached_property
    def free(self):
        """Columns without a price, the intercept (-1) first."""
        return np.r_[-1, np.unique(self.groups.feature[self.groups.free])]

    @cached_property
    def column(self):
        """(A,) the column of each coefficient of the layout."""
        return self.groups.feature[self.layout.at]

    def losses(self, f, n_curves):
        """Loss at scores f, slopes, and curvatures: n_curves^2 numbers a row."""
        h = np.empty((len(f), n_curves**2, tiles.TILE))
        r = np.empty_like(f)
        return rows.losses(f, self.y, self.weight, self.kind, r, h, self.threads), r, h

    def moved(self, f, columns, step):
        """f moved by a step (K, columns)."""
        f = f.copy()
        rows.add_scores(self.X, columns, np.ascontiguousarray(step), f, self.threads)
        return f

    def spread_out(self, w, b):
        """Coefficients w (K, A) of the layout and b (K, free) as (K, 1 + p) of columns."""
        out = np.zeros((self.n_scores, 1 + self.X.shape[1]))
        for k in range(self.n_scores):
            out[k] += np.bincount(1 + self.column, w[k], out.shape[1])
            out[k] += np.bincount(1 + self.free, b[k], out.shape[1])
        return out


@dataclass(frozen=True, eq=False)
class Trace:
    """Models along a path of L penalties, the largest first.

    The objective is half the weighted mean deviance + lambda (l1_ratio sum_g cost_g ||w_g|| +
    (1 - l1_ratio) / 2 sum of squares of the coefficients that are not free).

    lambdas : (L,)
    intercept : (L, K)
    coef : (L, p, K) on the columns of X, the sums of their copies
    latent : (L, q, K) coefficients as Groups numbers them
    deviance : (L,) weighted mean
    objective : (L,)
    gap : (L,) no model has an objective below objective - gap
    n_iter : (L,) int64
    converged : (L,) bool
    null_deviance : float, of the free coefficients alone
    """

    lambdas: np.ndarray
    intercept: np.ndarray
    coef: np.ndarray
    latent: np.ndarray
    deviance: np.ndarray
    objective: np.ndarray
    gap: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    null_deviance: float

    def take(self, rows):
        """The models at some positions of the path."""
        several = [f.name for f in fields(self) if f.name != "null_deviance"]
        return replace(self, **{name: getattr(self, name)[rows] for name in several})


@dataclass(frozen=True, eq=False)
class Ends:
    """Where a path of L penalties has come to: w (L, K, A), b (L, K, F), the rest (L,)."""

    w: np.ndarray
    b: np.ndarray
    loss: np.ndarray
    gap: np.ndarray
    n_iter: np.ndarray


@dataclass(frozen=True, eq=False)
class Reduced:
    """A quadratic model of which the free coefficients are minimized out.

    H : (J, J, A, A) of the others; tie (J F, J A): free ones follow by -tie; inverse (J F, J F)
    """

    H: np.ndarray
    tie: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, G, n_free):
        """Of second moments (J, J, F + A, F + A), the free columns first."""
        J, F, A = G.shape[0], n_free, G.shape[2] - n_free
        flat = G.transpose(0, 2, 1, 3)
        inverse = _pseudo_inverse(flat[:, :F, :, :F].reshape(J * F, J * F))
        cross = flat[:, :F, :, F:].reshape(J * F, J * A)
        tie = inverse @ cross
        H = flat[:, F:, :, F:] - (cross.T @ tie).reshape(J, A, J, A)
        return cls(np.ascontiguousarray(H.transpose(0, 2, 1, 3)), tie, inverse)

    def slope(self, c, free):
        """Minus the reduced gradient (K, A), of the parts c (K, A) and free (K, F)."""
        return c - self._each(free, self.tie.T).reshape(c.shape)

    def follow(self, free, step):
        """The step (K, F) of the free coefficients beside a step (K, A) of the others."""
        return self._each(free, self.inverse) - self._each(step, self.tie)

    def decrement(self, free):
        """What the model promises for the free coefficients alone, twice."""
        return float((free * self._each(free, self.inverse)).sum())

    def _each(self, v, matrix):
        if self.H.shape[0] == 1:  # the same for all scores
            return v @ matrix.T
        return (matrix @ v.ravel()).reshape(len(v), -1)


def _pseudo_inverse(M):
    """Of a positive semidefinite matrix: constant and repeated free columns have no direction."""
    value, vector = np.linalg.eigh(0.5 * (M + M.T))
    good = value > RANK * max(value.max(initial=0.0), 1e-300)
    return (vector[:, good] / value[good]) @ vector[:, good].T
