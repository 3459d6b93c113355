"""The path of group-penalized models over lambda."""

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.family.gaussian import SQUARED
from lodim.models.costnet.penalty.problem import PathProblem, PenaltyPath
from lodim.models.costnet.penalty.solvers import MomentSolver, NewtonSolver

MOST_MOMENTS = 1500  # columns up to which a gaussian path has the moments of all
SHARP = 1e-8  # share of the largest eigenvalue of free columns that their moments tell to 1e-8
LEAST = 1e-9  # share of lambda_max that a penalty of 0 is taken for


def penalty_path(
    batch,
    family,
    groups,
    lambdas=None,
    *,
    l1_ratio=1.0,
    n_lambda=100,
    lambda_min_ratio=None,
    tol=1e-7,
    max_iter=200,
    threads=None,
    make_solver=None,
):
    """Fit the models of a path, each from the one before.

    Parameters
    ----------
    batch : Batch
    family : Family
    groups : Groups
    lambdas : array (L,) or None
        None: `n_lambda` from lambda_max down to lambda_min_ratio of it, evenly on the log scale,
        ended early as in glmnet: at 0.999 of the deviance, or if it hardly improves.
    l1_ratio : float
        Share of the norms, above 0 to 1; the rest is a ridge.
    lambda_min_ratio : float or None
        None: 1e-4 with more rows than columns, else 1e-2.
    tol : float
        Duality gap allowed, in units of the null model's objective.
    max_iter : int
        Quadratic models (for a gaussian response: sweeps, times 5) allowed for each penalty.
    threads : int or None
        None: all.
    make_solver : callable(problem, n) -> solver, or None
        None: a quadratic loss of few columns by their moments, else passes over the rows.

    Returns
    -------
    PenaltyPath
    """
    with single_blas():
        problem = PathProblem.from_batch(batch, family, groups, threads)
        start = _own_solver(problem)
        early_stop, null = lambdas is None, start.null
        if early_stop:
            if lambda_min_ratio is None:
                lambda_min_ratio = 1e-4 if len(batch.positive_weight) > batch.X.shape[1] else 1e-2
            largest = start.lambda_max / l1_ratio * problem.spread
            lambdas = largest * lambda_min_ratio ** (np.arange(n_lambda) / max(1, n_lambda - 1))
        lambdas = np.asarray(lambdas, np.float64)
        order = np.argsort(-lambdas, kind="stable")
        lambdas, ridges = lambdas[order], lambdas[order] * (1.0 - l1_ratio)
        scaled = lambdas * l1_ratio / problem.spread
        if make_solver is None:
            solver = start
            # Without any penalty no dual vector bounds the gap: this little changes no digit shown.
            scaled = np.maximum(scaled, LEAST * (start.lambda_max or 1.0))
        else:
            solver = make_solver(problem, batch.n)
        solution = solver.path(scaled, ridges, tol * null, max_iter, early_stop)
        path = PenaltyPath.from_solution(problem, lambdas, scaled, ridges, solution, null, tol)
        return path if early_stop else path.take(np.argsort(order))


def lambda_max(batch, family, groups, l1_ratio=1.0, threads=None):
    """The least lambda at which all coefficients with a price are zero."""
    with single_blas():
        problem = PathProblem.from_batch(batch, family, groups, threads)
        return _own_solver(problem).lambda_max / l1_ratio * problem.spread


def _own_solver(problem):
    """A quadratic loss of few columns is all in their moments; else rows are passed over.

    So they are where free columns nearly determine each other: moments have half of the digits.
    """
    if problem.loss == SQUARED and len(problem.columns) <= MOST_MOMENTS:
        solver = MomentSolver(problem)
        if solver.least > SHARP:
            return solver
    return NewtonSolver(problem)
