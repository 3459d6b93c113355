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
        norms, layout = 0.0, problem.layout
        size = np.diff(layout.start)
        for m in np.unique(size):
            which = np.flatnonzero(size == m)
            member = layout.member[layout.start[:-1][which][:, None] + np.arange(m)]
            parts = [self._w[member[:, i], k][:, None] for i in range(m) for k in range(K)]
            norms = norms + layout.cost[which] @ cp.norm(cp.hstack(parts), 2, axis=1)
        squares = 0.5 * self._ridge * cp.sum_squares(self._w)
        signs, sign = [], layout.sign
        if sign.any():
            signs = [cp.multiply(sign[:, None], self._w) >= 0.0]
        self._program = cp.Problem(cp.Minimize(loss + self._lam * norms + squares), signs)

    def solve(self, lam, ridge, target, max_iter):
        """Return the fit for one penalty, by CVXPY: (w, b, loss, duality gap, iterations).

        w, b : penalized (K, A) and unpenalized (K, F) coefficients
        lam, ridge : factors of the group norms and of |w|^2 / 2
        target : desired duality gap, which may be exceeded"""
        import cvxpy as cp

        self._lam.value, self._ridge.value = lam, ridge
        # With 1e-9, the gaps of classes and log links would exceed the path's tolerance.
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
        with warnings.catch_warnings():  # inaccurate solutions show in the gap
            warnings.simplefilter("ignore", UserWarning)
            self._program.solve(solver=cp.CLARABEL, enforce_dpp=True, max_iter=max_iter, **tight)
        w, b = self._w.value.T, self._b.value.T.copy()
        # Interior-point methods only approach zeros.
        w = np.where(np.abs(w) > 1e-6 * np.abs(w).max(initial=1.0), w, 0.0)
        keep_signs(w, self.problem.layout.sign, 0, w.shape[1])
        gap = self.evaluate(w, b, lam, ridge, target)
        return self.w, self.b, self.loss, gap, int(self._program.solver_stats.num_iters)


def _loss(problem, n, w, b):
    """Return half the mean deviance of n rows for CVXPY; w, b : penalized and free coefficients."""
    import cvxpy as cp

    if problem.loss == SQUARED:
        # With v = (b, w), the mean squared error is |R v - t|^2 + a constant.
        loss, slope, free_slope, G = problem.at_offset()
        value, vector = np.linalg.eigh(G[0, 0])
        good = value > 1e-14 * value.max(initial=0.0)
        R = (vector[:, good] * np.sqrt(value[good])).T
        t = (vector[:, good] / np.sqrt(value[good])).T @ np.r_[free_slope[0], slope[0]]
        rest = 2.0 * loss - float(t @ t)
        return 0.5 * (cp.sum_squares(R @ cp.vstack([b, w]) - t[:, None]) + rest)
    X = tiles.unpack(problem.X, n).astype(np.float64)
    free = np.column_stack([np.ones(n), X[:, problem.free_columns[1:]]])
    y, weight = problem.y.ravel()[:n], problem.weight.ravel()[:n]
    offset = np.column_stack([problem.offset[:, k].ravel()[:n] for k in range(problem.n_scores)])
    score = offset + free @ b + X[:, problem.columns] @ w
    if problem.loss[0] == LOGISTIC[0]:
        return weight @ (cp.logistic(score[:, 0]) - cp.multiply(y, score[:, 0]))
    if problem.loss[0] == POWER:
        (power, constant), log_mean = problem.loss[2:4], score[:, 0]
        mean = cp.exp((2.0 - power) * log_mean) / (2.0 - power) if power < 2.0 else log_mean
        rest = cp.exp((1.0 - power) * log_mean) / (power - 1.0) if power > 1.0 else -log_mean
        return weight @ (mean + cp.multiply(y, rest) - constant)
    if problem.loss[0] == HUBER:
        return 0.5 * weight @ cp.huber(y - score[:, 0], problem.loss[2])
    if problem.loss[0] == CHECK:
        quantile, h, constant = problem.loss[2:]
        rest = y - score[:, 0]
        return weight @ (quantile * rest + h * cp.logistic(-rest / h) - constant)
    observed = np.eye(problem.n_scores)[y.astype(int)]
    return weight @ (cp.log_sum_exp(score, axis=1) - cp.sum(cp.multiply(observed, score), axis=1))
