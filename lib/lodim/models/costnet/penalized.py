"""The path of group-penalized models over lambda."""

from dataclasses import dataclass

import numpy as np


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


def path(
    batch, family, groups, lambdas=None, *, l1_ratio=1.0, n_lambda=100, lambda_min_ratio=None,
    tol=1e-7, max_iter=1000, threads=None, warm=None,
):  # fmt: skip
    raise NotImplementedError


def lambda_max(batch, family, groups, l1_ratio=1.0, threads=None):
    raise NotImplementedError
