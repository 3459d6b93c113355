"""The search: from many starts to the projection of the largest divergence."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.engine import row_keys as keys
from lodim.engine.blocks import single_blas
from lodim.models.melm.search import whitening as bases
from lodim.models.melm.search.divergence import Divergence, NormalEntropy, shares, terms
from lodim.models.melm.search.fourier import Approximation, Rough
from lodim.models.melm.search.sample import Sample, bandwidths
from lodim.models.melm.search.whitening import EMPIRICAL
from lodim.models.melm.view import upright
from lodim.solve import lbfgs as solve

COARSE = 2048  # rows of the sample that all starts are searched on
REFINED = 3  # ends that go on to all rows
SAME = 1e-4  # relative difference of divergences up to which two ends are one
FINE = 2**14  # rows at most that sums are exact over
PAIRS, ROWS = 120, 6.0  # squared rows, and nodes a row, of a node of the grid: see `_nodes`
TOLERANCE = 1e-3  # error of a divergence: what is farther off is summed exactly
PCA, LDA, COVARIANCES, RANDOM = "pca", "lda", "covariances", "random"
LOST = 1e-6  # of the rows: a sum of them that is rounding


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
        Up to so many rows sums over pairs are exact. Of more they are `approximate.Approximation`s
        where k is three at most, these cost less than exact sums and their measured error is small;
        else exact over all rows, or over a random sample where that takes too long.
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
    (zero: exact); divergences of starts are those of the ends on these rows; settled, whether the
    last search converged.
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

    All starts are searched on a sample of 2,048 rows, and the best ends of these on more.

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
        plan = replace(plan, k=min(plan.k, basis.rank))
        theta, names = starts(sample, basis, plan.k, plan.n_starts, plan.seed, plan.smallest)
        if one and plan.density == "normal":
            few = sample
        else:
            few = sample.thinned(min(COARSE, plan.exact_rows), plan.seed)
        objective = _objective(few, plan, one)
        ends = _ends(objective, theta.reshape(len(theta), -1), plan)
        made = _manifold(few, objective, ends, names, basis, plan)
        return made if few is sample else _refined(sample, ends, names, basis, plan, one)


def _refined(sample, ends, names, basis, plan, one):
    """The best of the ends on more rows, by sums that cost less and are near enough."""
    most = max(FINE, plan.exact_rows)
    if plan.k <= 3 and len(sample.weight) > plan.exact_rows:
        try:
            objective = _near(sample, plan, _nodes(len(sample.weight), most))
            near = _manifold(sample, objective, _on(objective, ends, plan), names, basis, plan)
            if near.error <= TOLERANCE:
                return near
        except Rough:
            pass
    sample = sample.thinned(most, plan.seed + 1)
    objective = _objective(sample, plan, one)
    return _manifold(sample, objective, _on(objective, ends, plan), names, basis, plan)


def _on(objective, ends, plan):
    """The ends with their values by another objective, of which the best are searched further."""
    value = objective(ends.theta, np.arange(len(ends.theta)))[0]
    best = _distinct(value)[:REFINED]
    more = _ends(objective, ends.theta[best], plan)
    theta, n_iter, converged = ends.theta.copy(), ends.n_iter.copy(), ends.converged.copy()
    value[best], theta[best], converged[best] = more.value, more.theta, more.converged
    n_iter[best] += more.n_iter
    return replace(
        ends, theta=theta, value=value, n_iter=n_iter, converged=converged,
        n_eval=ends.n_eval + len(value) + more.n_eval,
    )  # fmt: skip


def _distinct(value):
    """Positions of the values that differ, the lowest first."""
    order = np.argsort(value, kind="stable")
    sorted_ = value[order]
    return order[np.diff(sorted_, prepend=-np.inf) > SAME * np.abs(sorted_)]


def _ends(objective, theta, plan):
    return solve.lbfgs(
        objective, theta, max_iter=plan.max_iter, tol=plan.tol, ftol=plan.ftol
    )  # fmt: skip


def _objective(sample, plan, one):
    """The objective by sums over all pairs, or by no sums at all."""
    if one and plan.density == "normal":
        return NormalEntropy(sample.cov[0], plan.k, -1.0 if plan.smallest else 1.0)
    return Divergence(sample, *_terms(sample, plan), plan.penalty, plan.engine)


def _nodes(n, most):
    """Nodes of a grid for n rows: half the cost of exact sums, or the cost of the rows."""
    return max(min(n, most) ** 2 / PAIRS, ROWS * n)


def _near(sample, plan, nodes):
    return Approximation(sample, *_terms(sample, plan), plan.penalty, nodes)


def _terms(sample, plan):
    share = (-1.0 if plan.smallest else 1.0) * shares(sample.size, plan.average)
    return share, bandwidths(sample.size, plan.k, plan.gamma), plan.k, plan.threads


def _manifold(sample, objective, ends, names, basis, plan):
    """The record of the lowest of the ends."""
    first = int(np.argmin(ends.value))
    V = axes(basis.directions(ends.theta[first].reshape(-1, plan.k)), basis, sample)
    theta = basis.of_directions(V)
    potential = objective.potentials(theta)
    fitting, regularizing = terms(potential, shares(sample.size, plan.average))
    return Manifold(
        V=V, divergence=fitting + regularizing, fitting=fitting, regularizing=regularizing,
        potential=potential, starts=tuple(names),
        divergences=(1.0 if plan.smallest else -1.0) * ends.value, n_iter=ends.n_iter,
        converged=ends.converged, n_eval=ends.n_eval, rank=basis.rank, separates=basis.separates,
        rows=len(sample.weight), error=objective.error(theta),
        settled=bool(ends.converged[first]),
    )  # fmt: skip


def axes(V, basis, sample):
    """The orthonormal basis of a span (p, k) along the principal axes of the projected rows.

    Signs are those of `view.upright`.
    """
    Q = np.linalg.qr(V)[0]
    total = total_covariance(*moments(sample), sample.size)
    theta = basis.of_directions(Q)
    turned = Q @ np.linalg.eigh(theta.T @ total @ theta)[1][:, ::-1]
    coordinates = sample.Z.T @ basis.of_directions(turned)
    return turned * upright(turned, coordinates, sample.weight / sample.weight.sum())


def starts(sample, basis, k, n_starts, seed, smallest=False):
    """n_starts projections theta (q, r, k), orthonormal in the coordinates searched, and names.

    The first are made of principal components, of the directions in which class means differ, and
    of those in which class covariances do; the others are random sums of rows, so that no basis in
    which the rows are given makes a difference. `smallest` takes the last principal components
    instead of the first.
    """
    mean, cov = moments(sample)
    named = [(PCA, _principal(mean, cov, sample, basis, k, smallest))]
    if sample.n_classes > 1:
        between = _between(mean, cov, sample, basis)
        apart = _apart(cov, sample, basis)
        of_means = between[:, : sample.n_classes - 1]
        named.append((LDA, np.column_stack([of_means, apart])[:, :k]))
        named.append((COVARIANCES, apart[:, :k]))
    rng = np.random.default_rng(seed)
    while len(named) < n_starts:
        named.append((RANDOM, _random(sample, basis, k, rng)))
    named = named[:n_starts]
    theta = np.stack([orthonormal(theta) for _, theta in named])
    return theta, [name for name, _ in named]


def _random(sample, basis, k, rng):
    """Random sums of the rows, isotropic in the coordinates searched; zero where rows cancel."""
    Z = sample.Z * (sample.weight / sample.weight.sum())
    theta = Z @ keys.waves(sample.key, k, rng)
    lost = np.linalg.norm(theta, axis=0) <= LOST * np.linalg.norm(Z)
    return np.where(lost, 0.0, theta) / basis.scale[:, None]


def moments(sample):
    """Means (C, r) and covariances (C, r, r) of the classes, as they are."""
    mean, cov = [], []
    for c in range(sample.n_classes):
        rows = slice(sample.start[c], sample.start[c + 1])
        z, w = sample.Z[:, rows], sample.weight[rows] / sample.size[c]
        mean.append(z @ w)
        apart = z - mean[-1][:, None]
        cov.append((apart * w) @ apart.T)
    return np.stack(mean), np.stack(cov)


def total_covariance(mean, cov, size):
    """Covariance of all rows, from means and covariances of the classes."""
    share = size / size.sum()
    apart = mean - share @ mean
    return np.einsum("c,cij->ij", share, cov) + (apart.T * share) @ apart


def orthonormal(V):
    """An orthonormal basis of the columns of V, (r, k); a column that depends on others is new."""
    Q, R = np.linalg.qr(V)
    lost = np.abs(np.diag(R)) <= 1e-12 * np.abs(R).max()
    if not lost.any():
        return Q
    rng = np.random.default_rng(0)
    filled = np.where(lost, rng.normal(size=V.shape), V)
    return np.linalg.qr(np.column_stack([V[:, ~lost], filled[:, lost]]))[0]


def _white(M, scale):
    return M / np.outer(scale, scale)


def _principal(mean, cov, sample, basis, k, smallest):
    """theta of the principal components of the features, in the directions that are kept."""
    total = total_covariance(mean, cov, sample.size)
    values, vectors = np.linalg.eigh(total)
    root = basis.back.T @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    own = np.linalg.eigh(root.T @ root)[1]
    return basis.back @ root @ (own[:, :k] if smallest else own[:, ::-1][:, :k])


def _between(mean, cov, sample, basis):
    """Directions in which class means differ, in units of the spread within: the most first."""
    share = sample.size / sample.size.sum()
    apart = (mean - share @ mean) / basis.scale
    return np.linalg.eigh((apart.T * share) @ apart)[1][:, ::-1] / basis.scale[:, None]


def _apart(cov, sample, basis):
    """Directions in which whitened class covariances differ from the pooled: the most first.

    For two classes they are the eigenvectors of the difference of the covariances.
    """
    share = sample.size / sample.size.sum()
    white = np.stack([_white(c, basis.scale) for c in cov])
    off = white - np.einsum("c,cij->ij", share, white)
    vectors = np.linalg.eigh(np.einsum("c,cij,cjk->ik", share, off, off))[1]
    return vectors[:, ::-1] / basis.scale[:, None]
