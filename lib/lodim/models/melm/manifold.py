"""The search: from many starts to the projection of the largest divergence."""

from dataclasses import dataclass

import numpy as np

from lodim import solve
from lodim.engine import single_blas
from lodim.models.melm import basis as bases
from lodim.models.melm import starts as begin
from lodim.models.melm.approximate import Approximation
from lodim.models.melm.covariance import EMPIRICAL
from lodim.models.melm.entropy import NormalEntropy
from lodim.models.melm.objective import (
    Divergence,
    shares,
    terms,
)  # fmt: skip
from lodim.models.melm.sample import Sample, bandwidths

COARSE = 2048  # rows of the sample that all starts are searched on
REFINED = 3  # ends that go on to all rows
SAME = 1e-4  # relative difference of divergences up to which two ends are one
FINE = 2**14  # rows where a projection has more dimensions than a grid


@dataclass(frozen=True)
class Plan:
    """What is searched for.

    k : int
        Dimensions of the projection.
    gamma : float
        Times Silverman's bandwidths.
    covariance : str
        "empirical", "ledoit-wolf" or "pooled", see `covariance`.
    penalty : bool
        The paper's form, Eq. 2: features rotated but not whitened, with a penalty; else whitened
        features without.
    average : bool
        Of more than two classes: whether pairs weigh as the products of their shares.
    density : str
        Of one class: "normal" (Theorems 1 and 2) or "kernel".
    smallest : bool
        Of one class: seek the smallest entropy.
    exact_rows : int
        Up to so many rows sums over pairs are exact. Of more, all starts are searched on a random
        sample, and the best of them on all rows by `approximate.Approximation`; beyond three
        dimensions, on a larger sample.
    n_starts, seed, max_iter, tol, ftol, threads : as in `solve.lbfgs`
    engine : str
        Where exact sums over pairs run: "cpu", "cuda" or "auto".
    """

    k: int = 2
    gamma: float = 1.0
    covariance: str = EMPIRICAL
    penalty: bool = False
    average: bool = False
    density: str = "normal"
    smallest: bool = False
    exact_rows: int = 5000
    n_starts: int = 17
    seed: int = 0
    max_iter: int = 500
    tol: float = 1e-6
    ftol: float = 1e-9
    threads: int = 1
    engine: str = "cpu"


@dataclass(frozen=True)
class Manifold:
    """Where the search ended.

    V (p, k) orthonormal, for centred features; divergence (the entropy, of one class) with its
    fitting and regularizing terms, and potential (C, C), log ip_AB for A <= B, all of which belong
    to V. Of each start: names, divergences, n_iter, converged. n_eval passes; separates as in
    `basis.Basis`. rows is how many the divergence was summed over, error its measured error there
    (zero: exact); divergences of starts are those on the sample where there was one;
    settled, whether the last search converged.
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
    rows: int
    error: float
    settled: bool


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
        k, closed = min(plan.k, basis.rank), one and plan.density == "normal"
        theta, names = begin.starts(sample, basis, k, plan.n_starts, plan.seed, plan.smallest)
        theta, last = theta.reshape(len(theta), -1), sample
        large = not closed and len(sample.weight) > plan.exact_rows
        if not large:
            end = all_ends = _ends(_objective(sample, plan, k, one), theta, plan)
        else:
            coarse = sample.thinned(min(COARSE, plan.exact_rows), plan.seed)
            all_ends = _ends(_objective(coarse, plan, k, one), theta, plan)
            best = _distinct(all_ends.value)[:REFINED]
            last = sample if k <= 3 else sample.thinned(FINE, plan.seed + 1)
            objective = _objective(last, plan, k, one, approximate=k <= 3)
            end = _ends(objective, all_ends.theta[best], plan)
        return _manifold(last, basis, plan, k, names, end, all_ends, one)


def _distinct(value):
    """Positions of the values that differ, the lowest first."""
    order = np.argsort(value, kind="stable")
    sorted_ = value[order]
    return order[np.diff(sorted_, prepend=-np.inf) > SAME * np.abs(sorted_)]


def _ends(objective, theta, plan):
    return solve.lbfgs(
        objective, theta, max_iter=plan.max_iter, tol=plan.tol, ftol=plan.ftol
    )  # fmt: skip


def _objective(sample, plan, k, one, approximate=False):
    sign = -1.0 if plan.smallest else 1.0
    if one and plan.density == "normal":
        return NormalEntropy(sample.cov[0], k, sign)
    share, h2 = sign * shares(sample.size, plan.average), bandwidths(sample.size, k, plan.gamma)
    if approximate:
        return Approximation(sample, share, h2, k, plan.threads, plan.penalty)
    return Divergence(sample, share, h2, k, plan.threads, plan.penalty, plan.engine)


def _manifold(sample, basis, plan, k, names, end, all_ends, one):
    """The record of the lowest of the ends."""
    first = int(np.argmin(end.value))
    V = axes(basis.directions(end.theta[first].reshape(-1, k)), basis, sample)
    potential, error = _potential(sample, plan, k, one, basis.of_directions(V))
    fitting, regularizing = terms(potential, shares(sample.size, plan.average))
    sign = -1.0 if plan.smallest else 1.0
    return Manifold(
        V=V, divergence=fitting + regularizing, fitting=fitting, regularizing=regularizing,
        potential=potential, starts=tuple(names), divergences=-sign * all_ends.value,
        n_iter=all_ends.n_iter, converged=all_ends.converged,
        n_eval=all_ends.n_eval + (0 if end is all_ends else end.n_eval), rank=basis.rank,
        separates=basis.separates, rows=len(sample.weight), error=error,
        settled=bool(end.converged[first]),
    )  # fmt: skip


def _potential(sample, plan, k, one, theta):
    """Logarithms of the potentials at the end, and the error of their sum."""
    if one and plan.density == "normal":
        entropy = NormalEntropy(sample.cov[0], k)
        return entropy(theta.reshape(1, -1), np.zeros(1, np.int64))[0].reshape(1, 1), 0.0
    large = k <= 3 and len(sample.weight) > plan.exact_rows
    share, h2 = shares(sample.size, plan.average), bandwidths(sample.size, k, plan.gamma)
    if not large:
        exact = Divergence(sample, share, h2, k, plan.threads, engine=plan.engine)
        return exact.potentials(theta), 0.0
    near = Approximation(sample, share, h2, k, plan.threads)
    error = float((np.abs(near.error(theta)) * np.abs(share)).sum())
    return near.potentials(theta), error


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
