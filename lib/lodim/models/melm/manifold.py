"""The search: from many starts to the projection of the largest divergence."""

from dataclasses import dataclass

import numpy as np

from lodim import solve
from lodim.engine import single_blas
from lodim.models.melm import basis as bases
from lodim.models.melm import starts as begin
from lodim.models.melm.covariance import EMPIRICAL
from lodim.models.melm.entropy import NormalEntropy
from lodim.models.melm.objective import (
    NONE,
    ORTHONORMAL,
    VOLUME,
    Divergence,
    shares,
    terms,
)  # fmt: skip
from lodim.models.melm.sample import Sample, bandwidths


@dataclass(frozen=True)
class Plan:
    """What is searched for.

    k : int
        Dimensions of the projection.
    gamma : float
        Times Silverman's bandwidths.
    covariance : str
        "empirical" or "ledoit-wolf".
    penalty : bool
        The paper's form, Eq. 2: features rotated but not whitened, with a penalty; else whitened
        features without.
    average : bool
        Of more than two classes: whether pairs weigh as the products of their shares.
    density : str
        Of one class: "normal" (Theorems 1 and 2) or "kernel".
    smallest : bool
        Of one class: seek the smallest entropy.
    n_starts, seed, max_iter, tol, ftol, threads : as in `solve.lbfgs`
    """

    k: int = 2
    gamma: float = 1.0
    covariance: str = EMPIRICAL
    penalty: bool = False
    average: bool = False
    density: str = "normal"
    smallest: bool = False
    n_starts: int = 17
    seed: int = 0
    max_iter: int = 500
    tol: float = 1e-6
    ftol: float = 1e-9
    threads: int = 1


@dataclass(frozen=True)
class Manifold:
    """Where the search ended.

    V (p, k) orthonormal, for centred features; divergence (the entropy, of one class) with its
    fitting and regularizing terms, and potential (C, C), log ip_AB for A <= B, all of which belong
    to V. Of each start: names, divergences, n_iter, converged. n_eval passes; separates as in
    `basis.Basis`.
    """

    V: np.ndarray
    divergence: float
    fitting: float
    regularizing: float
    potential: np.ndarray
    starts: tuple[str, ...]
    divergences: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    n_eval: int
    rank: int
    separates: bool


def find(X, code, weight, plan):
    """Search the projection in which the classes overlap least.

    Parameters
    ----------
    X : array (n, p)
    code : int array (n,)
        Classes 0, ..., C - 1; zeros where there is no response.
    weight : array (n,)
        Counts of rows: their sum is the size that bandwidths are made for.
    plan : Plan

    Returns
    -------
    Manifold
    """
    with single_blas():
        one = not code.any()
        basis = bases.learn(X, code, weight, whiten=not (plan.penalty or one))
        sample = Sample.of(X, code, weight, basis, plan.covariance)
        k = min(plan.k, basis.rank)
        theta, names = begin.starts(sample, basis, k, plan.n_starts, plan.seed, plan.smallest)
        objective = _objective(sample, plan, k, one)
        end = solve.lbfgs(
            objective, theta.reshape(len(theta), -1), max_iter=plan.max_iter, tol=plan.tol,
            ftol=plan.ftol,
        )  # fmt: skip
        return _manifold(sample, basis, plan, k, names, end, one)


def _objective(sample, plan, k, one):
    sign = -1.0 if plan.smallest else 1.0
    if one and plan.density == "normal":
        return NormalEntropy(sample.cov[0], k, sign)
    share, h2 = sign * shares(sample.size, plan.average), bandwidths(sample.size, k, plan.gamma)
    constraint = VOLUME if one else ORTHONORMAL if plan.penalty else NONE
    return Divergence(sample, share, h2, k, plan.threads, constraint)


def _manifold(sample, basis, plan, k, names, end, one):
    order = int(np.argmin(end.value))
    V = axes(basis.directions(end.theta[order].reshape(-1, k)), basis, sample)
    theta = basis.of_directions(V)
    share, sign = shares(sample.size, plan.average), -1.0 if plan.smallest else 1.0
    if one and plan.density == "normal":
        entropy = NormalEntropy(sample.cov[0], k)
        potential = entropy(theta.reshape(1, -1), np.zeros(1, np.int64))[0].reshape(1, 1)
    else:
        h2 = bandwidths(sample.size, k, plan.gamma)
        potential = Divergence(sample, share, h2, k, plan.threads).potentials(theta)
    fitting, regularizing = terms(potential, share)
    return Manifold(
        V=V, divergence=fitting + regularizing, fitting=fitting, regularizing=regularizing,
        potential=potential, starts=tuple(names), divergences=-sign * end.value,
        n_iter=end.n_iter, converged=end.converged, n_eval=end.n_eval, rank=basis.rank,
        separates=basis.separates,
    )  # fmt: skip


def axes(V, basis, sample):
    """The orthonormal basis of a span (p, k) along the principal axes of the projected rows.

    A column's largest loading is positive.
    """
    Q = np.linalg.qr(V)[0]
    total = begin.total_covariance(*begin.moments(sample), sample.size)
    theta = basis.of_directions(Q)
    turned = Q @ np.linalg.eigh(theta.T @ total @ theta)[1][:, ::-1]
    largest = np.abs(turned).argmax(axis=0)
    return turned * np.sign(turned[largest, np.arange(turned.shape[1])])
