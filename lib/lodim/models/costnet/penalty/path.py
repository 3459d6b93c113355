"""Path of group-penalized models over lambda."""

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.family.gaussian import SQUARED
from lodim.models.costnet.penalty.problem import PathProblem, PenaltyPath
from lodim.models.costnet.penalty.solvers import MomentSolver, NewtonSolver

MOST_MOMENTS = 1500  # most columns for which a gaussian path uses moments
SHARP = 1e-8  # relative eigenvalue of free columns' moments that is accurate to 1e-8
LEAST = 1e-9  # share of lambda_max that replaces a penalty of 0


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
    """Fit the models of a path of penalties, each starting from the previous one.

    By default the path has `n_lambda` penalties from lambda_max (all priced coefficients are zero)
    down to lambda_min_ratio lambda_max, evenly on the log scale. It then stops early if the
    explained deviance hardly increases, as in glmnet.

    l1_ratio : share of the group norms in the penalty, in (0, 1]; the rest is ridge
    lambda_min_ratio : by default 1e-4 with more rows than columns, otherwise 1e-2
    tol : allowed duality gap, relative to the null model's objective
    max_iter : most quadratic models (gaussian response: a fifth of the sweeps) per penalty
    make_solver : callable(problem, n) -> solver; None: moments for a quadratic loss of few columns,
        otherwise passes over the rows"""
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
    """Return the smallest lambda for which all coefficients with a price are zero."""
    with single_blas():
        problem = PathProblem.from_batch(batch, family, groups, threads)
        return _own_solver(problem).lambda_max / l1_ratio * problem.spread


def _own_solver(problem):
    """Return a MomentSolver for a quadratic loss of few columns, otherwise a NewtonSolver.

    Moments are not accurate enough if unpenalized columns are nearly collinear."""
    if problem.loss == SQUARED and len(problem.columns) <= MOST_MOMENTS:
        solver = MomentSolver(problem)
        if solver.least > SHARP:
            return solver
    return NewtonSolver(problem)
