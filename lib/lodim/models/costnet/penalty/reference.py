"""The problem as CVXPY states it: the reference of the path's own solvers."""

import warnings

import numpy as np

from lodim.engine import tiles
from lodim.engine.blocks import single_blas
from lodim.models.costnet.penalty import passes as rows
from lodim.models.costnet.penalty.block_descent import enough
from lodim.models.costnet.penalty.path import grid, laid_out
from lodim.models.costnet.penalty.problem import Ends, Problem
from lodim.models.costnet.penalty.solvers import Solver

TOL = 1e-9  # Clarabel's own tolerances
ZERO = 1e-6  # of the largest coefficient, or of one


def path(
    batch, family, groups, lambdas=None, *, l1_ratio=1.0, n_lambda=100, lambda_min_ratio=None,
    tol=1e-7, max_iter=200, threads=None,
):  # fmt: skip
    """Fit the models of a path by CVXPY and Clarabel; arguments and result of `penalized.path`.

    One parametrized program serves all penalties: lambda enters as two parameters, so that CVXPY
    reduces it to a cone program once (disciplined parametrized programming). Rows of a gaussian
    response enter by a triangular factor of their moments. `max_iter` bounds the iterations of
    Clarabel; the gap is judged at its end as `penalized.path` judges its own.
    """
    with single_blas():
        problem = Problem.of(batch, family, groups, threads)
        lambdas, thrifty, solver = grid(
            problem, batch, lambdas, l1_ratio, n_lambda, lambda_min_ratio
        )
        order = np.argsort(-lambdas, kind="stable")
        scaled = lambdas[order] * l1_ratio / problem.spread
        ridges = lambdas[order] * (1.0 - l1_ratio)
        program = Program(problem, batch.n)
        ends = program.path(scaled, ridges, tol * solver.null, max_iter, thrifty)
        trace = laid_out(problem, lambdas[order], scaled, ridges, ends, solver.null, tol)
        return trace if thrifty else trace.take(np.argsort(order))


class Program:
    """The program of a problem, its penalties as parameters."""

    def __init__(self, problem, n):
        import cvxpy as cp  # a second and a half to import

        self.problem, K = problem, problem.n_scores
        self._w = cp.Variable((len(problem.column), K))
        self._b = cp.Variable((len(problem.free), K))
        self._lam, self._ridge = cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)
        loss = _loss(problem, n, self._w, self._b)
        penalty = self._lam * _penalty(problem.layout, self._w)
        squares = 0.5 * self._ridge * cp.sum_squares(self._w)
        self._program = cp.Problem(cp.Minimize(loss + penalty + squares))

    def path(self, lams, ridges, target, max_iter, thrifty):
        """Solve for falling penalties; `thrifty` ends where glmnet does."""
        w, b, numbers, share, judge = [], [], [], 0.0, Solver(self.problem)
        for i, (lam, ridge) in enumerate(zip(lams.tolist(), ridges.tolist(), strict=True)):
            n_iter = self._solve(lam, ridge, max_iter)
            w.append(_sparse(self._w.value.T))
            b.append(self._b.value.T.copy())
            loss, gap = judge.judge(w[-1], b[-1], lam, ridge, target)
            numbers.append((loss, gap, n_iter))
            last, share = share, 1.0 - loss / judge.null
            if thrifty and enough(i, share, last):
                break
        loss, gap, n_iter = (np.array(v) for v in zip(*numbers, strict=True))
        return Ends(np.stack(w), np.stack(b), loss, gap, n_iter)

    def _solve(self, lam, ridge, max_iter):
        """Solve at these penalties: the iterations of Clarabel."""
        import cvxpy as cp

        self._lam.value, self._ridge.value = lam, ridge
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOL)
        with warnings.catch_warnings():  # an end that is not accurate shows in the gap
            warnings.simplefilter("ignore", UserWarning)
            self._program.solve(solver=cp.CLARABEL, enforce_dpp=True, max_iter=max_iter, **tight)
        return int(self._program.solver_stats.num_iters)


def _sparse(w):
    """w with exact zeros, which interior points only come near."""
    return np.where(np.abs(w) > ZERO * np.abs(w).max(initial=1.0), w, 0.0)


def _loss(problem, n, w, b):
    """Half the weighted mean deviance of coefficients w (A, K) and b (F, K)."""
    import cvxpy as cp

    if problem.kind == rows.GAUSSIAN:
        R, target, rest = _compressed(problem)
        both = cp.vstack([b, w])
        return 0.5 * (cp.sum_squares(R @ both - target) + rest)
    X = tiles.unpack(problem.X, n).astype(np.float64)
    free = np.column_stack([np.ones(n), X[:, problem.free[1:]]])
    y, weight = problem.y.ravel()[:n], problem.weight.ravel()[:n]
    base = np.column_stack([problem.base[:, k].ravel()[:n] for k in range(problem.n_scores)])
    score = base + free @ b + X[:, problem.column] @ w
    if problem.kind == rows.BINOMIAL:
        return weight @ (cp.logistic(score[:, 0]) - cp.multiply(y, score[:, 0]))
    own = np.eye(problem.n_scores)[y.astype(int)]
    return weight @ (cp.log_sum_exp(score, axis=1) - cp.sum(cp.multiply(own, score), axis=1))


def _compressed(problem):
    """R, t and s of mean squares |R v - t|^2 + s, of coefficients v (free ones first)."""
    loss, r, h = problem.losses(problem.base, 1)
    columns = np.r_[problem.free, problem.column]
    G = rows.moments(problem.X, columns, h, problem.threads)[0, 0]
    slope = rows.slopes(problem.X, r, problem.threads)[0, 1 + columns]
    value, vector = np.linalg.eigh(G)
    good = value > 1e-14 * value.max(initial=0.0)
    R = (vector[:, good] * np.sqrt(value[good])).T
    target = (vector[:, good] / np.sqrt(value[good])).T @ slope
    return R, target[:, None], 2.0 * loss - float(target @ target)


def _penalty(tree, w):
    """sum_g cost_g ||w_g||: groups of one size in one norm, which CVXPY builds much faster."""
    import cvxpy as cp

    total, size = 0.0, np.diff(tree.start)
    for m in np.unique(size):
        which = np.flatnonzero(size == m)
        member = tree.member[tree.start[:-1][which][:, None] + np.arange(m)]
        parts = [w[member[:, i], k][:, None] for i in range(m) for k in range(w.shape[1])]
        total = total + tree.cost[which] @ cp.norm(cp.hstack(parts), 2, axis=1)
    return total
