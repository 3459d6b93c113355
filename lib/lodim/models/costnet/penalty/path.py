"""The path of group-penalized models over lambda."""

import numpy as np

from lodim.engine.blocks import single_blas
from lodim.models.costnet.penalty import passes as rows
from lodim.models.costnet.penalty import prox as kernels
from lodim.models.costnet.penalty.problem import Problem, Trace
from lodim.models.costnet.penalty.solvers import Compressed, Solver

WHOLE = 1500  # columns up to which a gaussian path has the moments of all
LEAST = 1e-9  # share of lambda_max that a penalty of 0 is taken for


def path(
    batch, family, groups, lambdas=None, *, l1_ratio=1.0, n_lambda=100, lambda_min_ratio=None,
    tol=1e-7, max_iter=200, threads=None,
):  # fmt: skip
    """Fit the models of a path, each from the one before.

    Parameters
    ----------
    batch : Batch
    family : Gaussian, Binomial or Multinomial
    groups : Groups
    lambdas : array (L,) or None
        None: `n_lambda` from lambda_max down to lambda_min_ratio of it, evenly on the log scale,
        ended early as in glmnet: once .999 of the deviance is explained, or more of it hardly is.
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

    Returns
    -------
    Trace
    """
    with single_blas():
        problem = Problem.of(batch, family, groups, threads)
        lambdas, thrifty, solver = grid(
            problem, batch, lambdas, l1_ratio, n_lambda, lambda_min_ratio
        )
        order = np.argsort(-lambdas, kind="stable")
        # Without any penalty no dual vector bounds the gap: this little changes no digit shown.
        least = LEAST * (solver.top or 1.0)
        scaled = np.maximum(lambdas[order] * l1_ratio / problem.spread, least)
        ridges = lambdas[order] * (1.0 - l1_ratio)
        found = solver.path(scaled, ridges, tol * solver.null, max_iter, thrifty)
        trace = laid_out(problem, lambdas[order], scaled, ridges, found, solver.null, tol)
        return trace if thrifty else trace.take(np.argsort(order))


def lambda_max(batch, family, groups, l1_ratio=1.0, threads=None):
    """The least lambda at which all coefficients with a price are zero."""
    with single_blas():
        problem = Problem.of(batch, family, groups, threads)
        return _solver(problem).top / l1_ratio * problem.spread


def grid(problem, batch, lambdas, l1_ratio, n_lambda, ratio):
    """Penalties of a path, whether it may end early, and the solver that knows where it begins."""
    solver = _solver(problem)
    if lambdas is not None:
        return np.asarray(lambdas, np.float64), False, solver
    if ratio is None:
        ratio = 1e-4 if len(batch.positive_weight) > batch.X.shape[1] else 1e-2
    top = solver.top / l1_ratio * problem.spread
    return top * ratio ** (np.arange(n_lambda) / max(1, n_lambda - 1)), True, solver


def _solver(problem):
    """A quadratic loss of few columns is all in their moments; else rows are passed over."""
    if problem.kind == rows.GAUSSIAN and len(problem.column) <= WHOLE:
        return Compressed(problem)
    return Solver(problem)


def laid_out(problem, lambdas, scaled, ridges, found, null, tol):
    """The Trace of the ends `found`, in the units of the response."""
    L, spread, groups = len(found.loss), problem.spread, problem.groups
    lambdas = lambdas[:L]
    coef = np.stack([problem.spread_out(w, b) for w, b in zip(found.w, found.b, strict=True)])
    latent = np.zeros((L, groups.q, problem.n_scores))
    latent[:, problem.layout.at] = found.w.transpose(0, 2, 1)
    _, place = np.unique(groups.feature[groups.free], return_index=True)
    free = np.flatnonzero(groups.free)[place]
    latent[:, free] = found.b[:, :, 1:].transpose(0, 2, 1)
    tree = problem.layout
    norms = np.array([
        kernels.penalty(w, lam, 0, len(tree.cost), tree.start, tree.member, tree.cost)
        for w, lam in zip(found.w, scaled[:L], strict=True)
    ])  # fmt: skip
    squares = 0.5 * ridges[:L] * (found.w**2).sum(axis=(1, 2))
    return Trace(
        lambdas=lambdas, intercept=coef[:, :, 0] * spread,
        coef=coef[:, :, 1:].transpose(0, 2, 1) * spread, latent=latent * spread,
        deviance=2.0 * found.loss * spread**2,
        objective=(found.loss + norms + squares) * spread**2,
        gap=np.maximum(found.gap, 0.0) * spread**2, n_iter=found.n_iter,
        converged=found.gap <= tol * null, null_deviance=2.0 * null * spread**2,
    )  # fmt: skip
