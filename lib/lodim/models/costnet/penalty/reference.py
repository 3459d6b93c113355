"""The penalized path solved by CVXPY, as a reference for the path's own solvers."""

import warnings

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import on_host
from lodim.errors import ArgumentError
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.family.huber import HUBER
from lodim.family.power import POWER
from lodim.family.quantile import CHECK
from lodim.models.costnet.penalty.prox import keep_signs
from lodim.models.costnet.penalty.solvers import NewtonSolver


class ConicSolver(NewtonSolver):
    """Solver of a penalized path by a cone program in CVXPY, compiled once for all penalties."""

    def __init__(self, problem, n):
        if not on_host(problem.X) and problem.loss != SQUARED:
            raise ArgumentError(
                "solver='cvxpy' needs all rows in this process, but they are on the workers of a "
                "Dask cluster: use solver='auto', or give sample="
            )
        import cvxpy as cp  # a second and a half to import

        super().__init__(problem)
        K = problem.n_scores
        self._w = cp.Variable((len(problem.columns), K))
        self._b = cp.Variable((len(problem.free_columns), K))
        self._lam, self._ridge = cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)
        loss = _loss(problem, n, self._w, self._b)
        penalty = self._lam * _penalty(problem.layout, self._w)
        squares = 0.5 * self._ridge * cp.sum_squares(self._w)
        signs, sign = [], problem.layout.sign
        if sign.any():
            signs = [cp.multiply(sign[:, None], self._w) >= 0.0]
        self._program = cp.Problem(cp.Minimize(loss + penalty + squares), signs)

    def _solve(self, lam, ridge, target, max_iter):
        """Solve for the penalty lam sum_g cost_g ||w_g|| + ridge |w|^2 / 2.

        Return the duality gap, at most `target` if possible, and the number of iterations."""
        import cvxpy as cp

        self._lam.value, self._ridge.value = lam, ridge
        # With 1e-9, the gaps of a log link would exceed the path's tolerance.
        tol = 1e-11 if self.problem.loss[0] == POWER else 1e-9
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
        with warnings.catch_warnings():  # inaccurate solutions show in the gap
            warnings.simplefilter("ignore", UserWarning)
            self._program.solve(solver=cp.CLARABEL, enforce_dpp=True, max_iter=max_iter, **tight)
        w, b = self._w.value.T, self._b.value.T.copy()
        # Interior-point methods only approach zeros.
        w = np.where(np.abs(w) > 1e-6 * np.abs(w).max(initial=1.0), w, 0.0)
        keep_signs(w, self.problem.layout.sign, 0, w.shape[1])
        gap = self.evaluate(w, b, lam, ridge, target)
        return gap, int(self._program.solver_stats.num_iters)


def _loss(problem, n, w, b):
    """Return half the mean deviance of n rows for CVXPY; w, b : penalized and free coefficients."""
    import cvxpy as cp

    if problem.loss == SQUARED:
        R, target, rest = _compressed(problem)
        both = cp.vstack([b, w])
        return 0.5 * (cp.sum_squares(R @ both - target) + rest)
    X = tiles.unpack(problem.X, n).astype(np.float64)
    free = np.column_stack([np.ones(n), X[:, problem.free_columns[1:]]])
    y, weight = problem.y.ravel()[:n], problem.weight.ravel()[:n]
    offset = np.column_stack([problem.offset[:, k].ravel()[:n] for k in range(problem.n_scores)])
    score = offset + free @ b + X[:, problem.columns] @ w
    if problem.loss[0] == LOGISTIC[0]:
        return weight @ (cp.logistic(score[:, 0]) - cp.multiply(y, score[:, 0]))
    if problem.loss[0] == POWER:
        return weight @ _power_loss(*problem.loss[2:4], y, score[:, 0])
    if problem.loss[0] == HUBER:
        return 0.5 * weight @ cp.huber(y - score[:, 0], problem.loss[2])
    if problem.loss[0] == CHECK:
        quantile, h, constant = problem.loss[2:]
        rest = y - score[:, 0]
        return weight @ (quantile * rest + h * cp.logistic(-rest / h) - constant)
    observed = np.eye(problem.n_scores)[y.astype(int)]
    return weight @ (cp.log_sum_exp(score, axis=1) - cp.sum(cp.multiply(observed, score), axis=1))


def _power_loss(power, constant, y, score):
    """Return a CVXPY expression of the losses of rows, given the logs of their means, `score`.

    power : the variance is proportional to mean^power (Poisson, gamma, Tweedie)
    constant : subtracted, so that a perfect fit has mean loss zero"""
    import cvxpy as cp

    mean = cp.exp((2.0 - power) * score) / (2.0 - power) if power < 2.0 else score
    rest = cp.exp((1.0 - power) * score) / (power - 1.0) if power > 1.0 else -score
    return mean + cp.multiply(y, rest) - constant


def _compressed(problem):
    """Return R, t, s: |R v - t|^2 + s is the mean squared error of coefficients v, free first."""
    loss, slope, free, G = problem.at_offset()
    G = G[0, 0]
    value, vector = np.linalg.eigh(G)
    good = value > 1e-14 * value.max(initial=0.0)
    R = (vector[:, good] * np.sqrt(value[good])).T
    target = (vector[:, good] / np.sqrt(value[good])).T @ np.r_[free[0], slope[0]]
    return R, target[:, None], 2.0 * loss - float(target @ target)


def _penalty(layout, w):
    """Return the penalty sum_g cost_g ||w_g|| as a CVXPY expression; layout : Layout of w."""
    import cvxpy as cp

    total, size = 0.0, np.diff(layout.start)
    for m in np.unique(size):
        which = np.flatnonzero(size == m)
        member = layout.member[layout.start[:-1][which][:, None] + np.arange(m)]
        parts = [w[member[:, i], k][:, None] for i in range(m) for k in range(w.shape[1])]
        total = total + layout.cost[which] @ cp.norm(cp.hstack(parts), 2, axis=1)
    return total
