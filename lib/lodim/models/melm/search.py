"""Search for the projection of largest divergence, from many starts."""

from dataclasses import dataclass, replace

import numpy as np

from lodim import progress
from lodim.engine import row_keys
from lodim.engine.blocks import single_blas
from lodim.models.melm.divergence import Divergence, normal_entropy, shares
from lodim.models.melm.view import upright
from lodim.models.melm.whitening import SHRUNK, Basis, Sample, bandwidths
from lodim.solve.lbfgs import lbfgs

COARSE = 2048  # rows of the sample for searches from all starts
REFINED = 3  # results refined to the final tolerance
MIDDLE = 4.0  # gamma of several that is searched from all starts
SAME = 1e-4  # relative difference of divergences of two equal results
FINE = 8192  # rows of the sample on which the best results are refined
PCA, LDA, COVARIANCES, RANDOM = "pca", "lda", "covariances", "random"
NEIGHBOUR = "neighbour"  # starts from the result for the next gamma


@dataclass(frozen=True)
class Plan:
    """Settings of a search for a projection with k dimensions."""

    k: int = 2
    gamma: float = 1.0  # factor of Silverman's bandwidths
    # covariance, shrinkage_factor: as in `whitening`; divergence, entropy: as in `melm`
    covariance: str = SHRUNK
    shrinkage_factor: float = 1.0
    divergence: str = "sum"
    entropy: str = "max"
    refined: int = REFINED  # number of results of the first search that are improved on more rows
    rough: float = 1e-4  # relative gain of two successive steps at which a start is stopped
    # n_starts, seed: number of starting points, and seed of the random ones
    n_starts: int = 17
    seed: int = 0
    max_iter: int = 500
    tol: float = 1e-6
    ftol: float = 1e-9  # relative gain at which the final search stops
    n_threads: int = 1
    engine: str = "cpu"


@dataclass(frozen=True)
class Manifold:
    """Projection that a search found, and the results of the search from each start."""

    V: np.ndarray  # (p, k) orthonormal, for centred features
    potential: np.ndarray  # (C, C) log integrals of products of class densities
    # starts, divergences, n_iter, converged: per start; for one class, the divergence is the
    # entropy
    starts: tuple[str, ...]
    divergences: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    # rank, separates: as in `Basis`
    rank: int
    separates: bool
    rows: int  # number of rows in the sums of the divergence


def search_gammas(X, code, weight, plan, gammas, first_gamma=None, warm_start=None, within=None):
    """Search for the projection of largest divergence per kernel width; return {gamma: Manifold}.

    code : (n,) classes of rows X; plan : Plan, settings of the search; gammas : kernel widths
    first_gamma : kernel width to search first; None to choose one of `gammas`
    warm_start : (p, k) projection to start from; None for many starts
    within : Basis of X (search coordinates); None to compute it"""
    # The search for another gamma starts from the result for its neighbour.
    with single_blas(), progress.bar(len({*gammas, first_gamma} - {None}), "views") as shown:
        basis = within or make_basis(X, code, weight, plan)
        sample = Sample.from_rows(X, code, weight, basis, plan.covariance)
        plan = replace(plan, k=min(plan.k, basis.rank))
        if sample.n_classes == 1:
            return dict.fromkeys(gammas, _extreme_entropy(sample, basis, plan))
        first = first_gamma or min(gammas, key=lambda gamma: abs(np.log(gamma / MIDDLE)))
        if warm_start is None:
            starts = starting_projections(sample, basis, plan)
        else:
            starts = _orthonormal(basis.back @ warm_start)[None], [NEIGHBOUR]
        found = {first: _search(sample, basis, replace(plan, gamma=first), *starts)}
        shown.update(1)
        above = sorted(gamma for gamma in gammas if gamma > first)
        below = sorted((gamma for gamma in gammas if gamma < first), reverse=True)
        for others in above, below:
            neighbour = found[first]
            for gamma in others:
                theta = _orthonormal(basis.back @ neighbour.V)[None]
                neighbour = _search(sample, basis, replace(plan, gamma=gamma), theta, [NEIGHBOUR])
                found[gamma] = neighbour
                shown.update(1)
        return found


def steps(first, last):
    """Return gammas (kernel widths) from `first` to `last`, eight geometric steps per octave."""
    count = int(np.ceil(8 * abs(np.log2(last / first)) - SAME))
    return (*(first * (last / first) ** (j / count) for j in range(count)), last)


def make_basis(X, code, weight, settings):
    """Return the Basis of rows X (n, p), whitened coordinates in which projections are searched.

    code : (n,) class codes; settings : object with fields covariance and shrinkage_factor"""
    shrunk = settings.covariance == SHRUNK and code.any()
    return Basis.from_rows(X, code, weight, settings.shrinkage_factor if shrunk else 0.0)


def _search(sample, basis, plan, theta, names):
    """Search for the projection of largest divergence from several starts; return a Manifold.

    sample : Sample of rows, in coordinates of `basis`; plan : Plan, settings of the search
    theta : (starts, r, k) initial projections; names : their kinds ("pca", "random" etc.)"""
    few = sample.thinned(COARSE, plan.seed)
    objective = make_objective(few, plan)
    once = few is sample and len(theta) == 1
    ftol = plan.ftol if once else plan.rough
    results = _minimize(objective, theta.reshape(len(theta), -1), plan, ftol)
    if few is not sample:
        sample = sample.thinned(FINE, plan.seed + 1)
        objective = make_objective(sample, plan)
        value, _ = objective(results.theta, np.arange(len(results.theta)))
        results = replace(results, value=value)
    if not once:  # refine the best results to the final tolerance
        best = distinct(results.value)[: plan.refined]
        more, new = _minimize(objective, results.theta[best], plan, plan.ftol), {}
        more = replace(more, n_iter=results.n_iter[best] + more.n_iter)
        for name in ("theta", "value", "n_iter", "converged"):
            new[name] = getattr(results, name).copy()
            new[name][best] = getattr(more, name)
        results = replace(results, **new)
    best = results.theta[np.argmin(results.value)].reshape(-1, plan.k)
    V = principal_axes(basis.into @ best, basis, sample)
    log = tuple(names), -results.value, results.n_iter, results.converged
    of_rows = basis.rank, basis.separates, len(sample.weight)
    return Manifold(V, objective.potentials(basis.back @ V), *log, *of_rows)


def distinct(value):
    """Return the positions of distinct values, lowest first; those within 0.01% count as equal."""
    order = np.argsort(value, kind="stable")
    increasing = value[order]
    return order[np.diff(increasing, prepend=-np.inf) > SAME * np.abs(increasing)]


def _minimize(objective, theta, plan, ftol):
    return lbfgs(objective, theta, max_iter=plan.max_iter, tol=plan.tol, ftol=ftol)


def make_objective(sample, plan):
    """Return a Plan's Divergence: minus a Sample's divergence, as a function of the projection."""
    h2 = bandwidths(sample.size, plan.k, plan.gamma)
    share = shares(sample.size, average=plan.divergence == "mean")
    return Divergence(sample, share, h2, plan.k, plan.n_threads, plan.engine)


def principal_axes(V, basis, sample):
    """Return principal axes (p, k) of rows projected by V (p, k), as orthonormal combinations of V.

    The largest loading of each is positive. sample : Sample of rows, in coordinates of `basis`"""
    Q = np.linalg.qr(V)[0]
    theta = basis.back @ Q
    turned = Q @ np.linalg.eigh(theta.T @ np.add(*sample.covariances()) @ theta)[1][:, ::-1]
    coordinates = sample.Z.T @ (basis.back @ turned)
    return turned * upright(turned, coordinates, sample.weight / sample.weight.sum())


def _extreme_entropy(sample, basis, plan):
    """Find the k dimensions in which rows of one class have extreme entropy; return a Manifold.

    plan : Plan, with k and entropy, "max" or "min"; sample : Sample, in coordinates of `basis`"""
    theta = _principal_components(sample, basis, plan.k, smallest=plan.entropy == "min")
    V = principal_axes(basis.into @ theta, basis, sample)
    entropy = normal_entropy(sample.cov[0], basis.back @ V)
    log = (PCA,), np.array([entropy]), np.zeros(1, np.int64), np.ones(1, bool)
    of_rows = basis.rank, basis.separates, len(sample.weight)
    return Manifold(V, np.full((1, 1), -entropy), *log, *of_rows)


# Starts ------------------------------------------------------------------------------------------


def starting_projections(sample, basis, plan):
    """Return orthonormal projections (starts, r, k) to start a search, and a list of their kinds.

    sample : Sample of rows, in coordinates of `basis`; plan : Plan, settings of the search"""
    k, share, (within, between) = plan.k, sample.share, sample.covariances()
    # Directions in which class means or covariances differ, best first.
    of_means = np.linalg.eigh(between)[1][:, ::-1][:, : sample.n_classes - 1]
    difference = sample.moments[1] - within
    squares = np.einsum("c,cij,cjk->ik", share, difference, difference)
    of_covariances = np.linalg.eigh(squares)[1][:, ::-1]
    starts = [
        (PCA, _principal_components(sample, basis, k)),
        (LDA, np.column_stack([of_means, of_covariances])[:, :k]),
        (COVARIANCES, of_covariances[:, :k]),
    ]
    rng = np.random.default_rng(plan.seed)
    Z = sample.Z * (sample.weight / sample.weight.sum())
    while len(starts) < plan.n_starts:
        theta = Z @ row_keys.waves(sample.key, k, rng)
        rounding = np.linalg.norm(theta, axis=0) <= 1e-6 * np.linalg.norm(Z)
        starts.append((RANDOM, np.where(rounding, 0.0, theta)))
    starts = starts[: plan.n_starts]
    theta = np.stack([_orthonormal(theta) for _, theta in starts])
    return theta, [name for name, _ in starts]


def _orthonormal(V):
    """Return an orthonormal basis (r, k) of V's columns; random ones replace dependent columns."""
    Q, R = np.linalg.qr(V)
    dependent = np.abs(np.diag(R)) <= 1e-12 * np.abs(R).max()
    if not dependent.any():
        return Q
    rng = np.random.default_rng(0)
    filled = np.where(dependent, rng.normal(size=V.shape), V)
    return np.linalg.qr(np.column_stack([V[:, ~dependent], filled[:, dependent]]))[0]


def _principal_components(sample, basis, k, smallest=False):
    """Return the k first (or `smallest`) principal components of the features, directions (r, k).

    sample : Sample of rows, in coordinates of `basis`"""
    values, vectors = np.linalg.eigh(np.add(*sample.covariances()))
    root = basis.back.T @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    components = np.linalg.eigh(root.T @ root)[1]
    return basis.back @ root @ (components[:, :k] if smallest else components[:, ::-1][:, :k])
