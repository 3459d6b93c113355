"""Data of a penalized path, in the form that solvers use, and the solvers' results."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lodim import forms
from lodim.engine.blocks import available_threads, on_host, sum_rows
from lodim.family.family import beyond_null
from lodim.models.costnet.penalty.groups import Groups, Layout
from lodim.models.costnet.penalty.prox import penalty
from lodim.models.costnet.training_rows import TrainingRows, response_weights_offset

RANK = 1e-13  # relative size of a column's unexplained part that is rounding


@dataclass(frozen=True, eq=False)
class PathProblem(TrainingRows):
    """Data for a path of group-penalized models; the response is divided by `spread`, SD or 1."""

    groups: Groups
    layout: Layout

    @classmethod
    def from_batch(cls, batch, family, groups, threads=None):
        given = response_weights_offset(batch, family.n_scores)
        spread = 1.0
        if family.link == "identity":  # the standard deviation of the response
            y, weight, offset = given
            mean = sum_rows(lambda i: weight[i] @ (y[i] - offset[i, 0]), len(y))
            square = sum_rows(lambda i: weight[i] @ (y[i] - offset[i, 0] - mean) ** 2, len(y))
            spread = float(np.sqrt(square)) or 1.0
        threads = available_threads() if threads is None else threads
        return cls(batch.X, given, family, threads, spread, groups, Layout.from_groups(groups))

    @property
    def lambda_unit(self):
        """Ratio of the user's lambda to the solvers', whose response is divided by `spread`."""
        return self.spread ** (self.family.degree - 1)

    @cached_property
    def free_columns(self):
        """Columns whose coefficients are not penalized, the intercept (-1) first."""
        return np.r_[-1, np.unique(self.groups.feature[self.groups.free])]

    @cached_property
    def columns(self):
        """Column of X of each penalized coefficient; repeated if several groups share it."""
        return self.groups.feature[self.layout.at]

    def at_offset(self):
        """Return (loss, slope, free_slope, G), the loss and its derivatives at zero coefficients.

        slope : (K, A) negative gradient in the penalized coefficients
        free_slope : (K, F) negative gradient in the unpenalized coefficients
        G : (1, 1, F + A, F + A) moments (sums of products of two columns), unpenalized first"""
        columns, F = np.r_[self.free_columns, self.columns], len(self.free_columns)
        loss, gradient, G, _ = self.derivatives(self.offset, columns, 1)
        return loss, gradient[:, F:], gradient[:, :F], G

    def at_scores(self, f):
        """Return (loss, slope, free_slope, bend), the loss and its derivatives at the scores f.

        slope : (K, A) negative gradient in the penalized coefficients
        free_slope : (K, F) negative gradient in the unpenalized coefficients
        bend : sum over rows of squared slope / curvature, which bounds duality gaps"""
        loss, gradient, _, bend = self.derivatives(f, np.arange(-1, self.X.shape[1]))
        return loss, *(gradient.take(at, axis=1) for at in self._at), bend

    def moments_at(self, f, columns, least=None):
        """Return sums of curvature times products of two of C columns, (K, K, C, C), at scores f.

        least : smallest curvature of a row of weight one; None for the loss's own"""
        return self.derivatives(f, columns, self.n_scores**2, least=least)[2]

    @cached_property
    def _at(self):
        return 1 + self.columns, 1 + self.free_columns

    def by_column(self, w, b):
        """Return the coefficients of the intercept and X's p columns, (..., K, 1 + p).

        w, b : penalized (..., K, A) and unpenalized (..., K, F) coefficients"""
        # A column's coefficient is the sum over its copies.
        out = np.zeros((*w.shape[:-1], 1 + self.X.shape[1]))
        for at, own in zip(self._at, (w, b), strict=True):
            np.add.at(out, (..., at), own)
        return out

    def penalty(self, w, lam):
        return penalty(w, lam, self.layout, 0, len(self.layout.cost))


@forms.record
class PenaltyPath:
    """Models along a path of L penalties, for p columns and K scores (linear predictors).

    A model minimizes half the mean deviance plus lambda times a mix of group norms and ridge."""

    # lambda (l1_ratio sum_g cost_g ||w_g|| + (1 - l1_ratio) / 2 |w|^2)

    lambdas: np.ndarray = forms.real("L", least=0)  # decreasing
    intercept: np.ndarray = forms.real("L", "K")
    coef: np.ndarray = forms.real("L", "p", "K")  # sum over the copies of each column
    latent: np.ndarray = forms.real("L", "q", "K")  # w, for all q copies of columns
    deviance: np.ndarray = forms.squares("L")
    objective: np.ndarray = forms.squares("L")
    gap: np.ndarray = forms.squares("L")  # the minimum is at least objective - gap
    n_iter: np.ndarray = forms.whole("L")
    converged: np.ndarray = forms.flags("L")
    null_deviance: float = forms.squares()  # with only the unpenalized coefficients

    @classmethod
    def from_steps(cls, problem, lambdas, scaled, ridges, steps, null, tol):
        """Make a PenaltyPath, in units of the response, from a solver's results.

        lambdas : penalties in the user's units
        scaled : factor of the group norms per penalty, in the solver's units
        ridges : factor of |w|^2 / 2 per penalty, likewise
        steps : per penalty, (penalized coefficients, unpenalized ones, loss, duality gap, n_iter)
        null : loss without penalized coefficients
        tol : allowed duality gap, relative to `null`"""
        w, b, loss, gap, n_iter = map(np.array, zip(*steps, strict=True))
        L, spread, groups = len(loss), problem.spread, problem.groups
        unit = spread**problem.family.degree  # of the deviance
        coef = problem.by_column(w, b)
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
            deviance=2.0 * loss * unit,
            objective=(loss + norms + squares) * unit,
            gap=np.maximum(gap, 0.0) * unit,
            n_iter=n_iter,
            converged=gap <= tol * null,
            null_deviance=2.0 * null * unit,
        )


class ReducedQuadratic:
    """Quadratic loss in A penalized coefficients, minimized over F unpenalized ones.

    H : (J, J, A, A) Hessian, for J scores (linear predictors)
    alone : (A,) bool, False for combinations of unpenalized columns; H is 0 there
    elimination : (J F, J A) decrease of the unpenalized coefficients per unit of the others
    inverse : (J F, J F) pseudo-inverse of the unpenalized coefficients' Hessian
    least : smallest positive eigenvalue of that Hessian, relative to the largest"""

    def __init__(self, G, n_free):
        """Make the loss from a Hessian G (J, J, C, C); its first n_free columns are unpenalized."""
        J, F, A = G.shape[0], n_free, G.shape[2] - n_free
        flat = G.transpose(0, 2, 1, 3)
        free = flat[:, :F, :, :F].reshape(J * F, J * F)
        self.inverse, self.least = _pseudo_inverse(free, J)
        cross = flat[:, :F, :, F:].reshape(J * F, J * A)
        self.elimination = self.inverse @ cross
        H = flat[:, F:, :, F:] - (cross.T @ self.elimination).reshape(J, A, J, A)
        left, own = (np.einsum("kaka->ka", M) for M in (H, flat[:, F:, :, F:]))
        self.alone = (left > RANK * own).any(axis=0)
        H = H.transpose(0, 2, 1, 3) * (self.alone[:, None] & self.alone)
        self.H = np.ascontiguousarray(H)

    def slope(self, slope, free_slope):
        """Return the negative gradient (J, A) of the reduced loss.

        slope, free_slope : full negative gradient in penalized and unpenalized coefficients"""
        return (slope - self._multiply(free_slope, self.elimination.T)) * self.alone

    def free_step(self, free_slope, step):
        """Return the best step (J, F) of the unpenalized coefficients if the others make `step`.

        free_slope : (J, F) negative gradient in the unpenalized coefficients"""
        return self._multiply(free_slope, self.inverse) - self._multiply(step, self.elimination)

    def decrement(self, free_slope):
        """Return twice the decrease of the loss by the unpenalized coefficients' best step.

        free_slope : (J, F) negative gradient in the unpenalized coefficients"""
        return float((free_slope * self._multiply(free_slope, self.inverse)).sum())

    def _multiply(self, v, matrix):
        return (matrix @ v.ravel()).reshape(len(v), -1)


def _pseudo_inverse(M, J):
    """Return the pseudo-inverse of M, and its smallest positive eigenvalue over its largest.

    M : semidefinite matrix of J x J blocks"""
    # Eigenvalues are those of scaled columns; those near zero are ignored.
    unit = np.tile(np.sqrt(np.diag(M).reshape(J, -1).mean(axis=0)), J)
    unit = 1.0 / np.where(unit > 0.0, unit, np.inf)
    value, vector = np.linalg.eigh(0.5 * (M + M.T) * unit * unit[:, None])
    share = value / max(value.max(initial=0.0), 1e-300)
    good = share > RANK
    vector = vector[:, good] * unit[:, None]
    return (vector / value[good]) @ vector.T, float(share[good].min(initial=1.0))


def batch_beyond_null(batch, family):
    """Subtract offset and mean from a gaussian response; return the new batch and the mean (1,).

    Other families: return the batch unchanged, and zeros (K,), one per score."""
    if family.name != "gaussian":
        return batch, np.zeros(family.n_scores)
    offset = batch.offsets(1)
    level = family.null_intercept(batch.y, batch.weight, offset)
    y = beyond_null(batch.y, offset[:, 0], level)
    if not on_host(batch.X):
        X = batch.X
        X.know(y, X.column(batch.y).map(beyond_null, X.column(batch.offset), level))
    return replace(batch, y=y, offset=None), level
