"""melm by law: what the paper proves of the search, and what a classifier must never do."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax
from scipy.stats import multivariate_normal

from lodim.models.melm import density, search
from lodim.models.melm.density import DensityOptions
from lodim.models.melm.divergence import Divergence, shares
from lodim.models.melm.rule import Background, Rows
from lodim.models.melm.search import Plan, distinct, search_gammas
from lodim.models.melm.whitening import (
    COVARIANCES,
    FLOOR,
    Basis,
    Sample,
    bandwidths,
    center_by_class,
    empirical,
    ledoit_wolf,
)

QUICK = Plan(n_starts=6, ftol=1e-12, shrinkage_factor=0.0)


def search_manifold(X, code, weight, plan):
    """The result of a search for the kernel width of the plan only."""
    return search_gammas(X, code, weight, plan, (plan.gamma,))[plan.gamma]


def rings(n=160, p=5, C=2, seed=0):
    """Classes that differ in scatter along one direction and in mean along another."""
    rng = np.random.default_rng(seed)
    code = np.sort(rng.integers(0, C, n))
    code[:C] = np.arange(C)
    X = rng.normal(size=(n, p))
    X[:, 0] = (1.0 + 1.5 * code) * np.sign(X[:, 0]) + 0.3 * rng.normal(size=n)
    X[:, 1] += 1.5 * code
    return X @ rng.normal(size=(p, p)), code, np.ones(n)


def same_span(U, V, tolerance=1e-6):
    P, Q = (np.linalg.qr(M)[0] for M in (U, V))
    np.testing.assert_allclose(P @ P.T, Q @ Q.T, atol=tolerance)


# The search --------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [2, 3])
def test_an_affine_map_of_the_data_changes_nothing(C):
    """Observation 1, with covariances that go along."""
    X, code, weight = rings(C=C)
    rng = np.random.default_rng(3)
    M, shift = rng.normal(size=(5, 5)), 10.0 * rng.normal(size=5)
    one, two = (search_manifold(rows, code, weight, QUICK) for rows in (X, X @ M + shift))
    np.testing.assert_allclose(two.divergences.max(), one.divergences.max(), rtol=1e-7)
    same_span(M @ two.V, one.V, 1e-4)


def test_few_starts_find_the_maximum_of_many():
    X, code, weight = rings()
    end = search_manifold(X, code, weight, QUICK)
    best = search_manifold(X, code, weight, replace(QUICK, n_starts=40))
    np.testing.assert_allclose(end.divergences.max(), best.divergences.max(), rtol=1e-6)
    np.testing.assert_allclose(end.V.T @ end.V, np.eye(2), atol=1e-12)
    assert end.converged.all() and end.rows == 160


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_duplicated_rows_are_weights(covariance):
    X, code, _ = rings(n=90)
    times = np.random.default_rng(1).integers(0, 4, 90)
    times[:4] = times[-4:] = 2
    plan = replace(QUICK, covariance=covariance)
    weighted = search_manifold(X, code, times.astype(float), plan)
    repeated = search_manifold(*(np.repeat(v, times, axis=0) for v in (X, code, np.ones(90))), plan)
    np.testing.assert_allclose(weighted.divergences, repeated.divergences, rtol=1e-5)
    np.testing.assert_allclose(weighted.potential, repeated.potential, rtol=1e-5)
    same_span(weighted.V, repeated.V, 1e-4)


@pytest.mark.parametrize("smallest", [False, True])
def test_one_class_is_principal_components(smallest):
    """Theorems 1 and 2: the maximum is the first k, the minimum the last k."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * [5.0, 4.0, 3.0, 2.0, 1.5, 1.0] @ rng.normal(size=(6, 6))
    plan = Plan(n_starts=4, entropy="min" if smallest else "max")
    end = search_manifold(X, np.zeros(200, int), np.ones(200), plan)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    wanted = [1, 0] if smallest else [-1, -2]
    cosines = np.sum(end.V * vectors[:, np.sort(wanted)[::-1]], axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-6)
    same_span(end.V, vectors[:, wanted])
    H2 = np.log(4 * np.pi) + 0.5 * np.log(values[wanted]).sum()
    np.testing.assert_allclose(end.divergences, H2, rtol=1e-9)


def test_entropy_of_a_kernel_density():
    """The smallest finds the direction in which rows lie on two points, which no variance shows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    X[:, 2] = np.sign(X[:, 2]) + 0.02 * X[:, 1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = X, np.zeros(150, int), np.ones(150)
    basis = Basis.from_rows(*rows)
    sample, entropy = Sample.from_rows(*rows, basis), {}
    for sign in (-1.0, 1.0):
        plan = Plan(k=1, n_starts=40)
        h2, share = bandwidths(sample.size, 1), sign * shares(sample.size)
        theta = search.starting_projections(sample, basis, plan)[0].reshape(40, -1)
        ends = search._minimize(Divergence(sample, share, h2, 1), theta, plan, plan.ftol)
        entropy[sign] = -sign * ends.value.min()
        if sign < 0.0:
            V = np.linalg.qr(basis.into @ ends.theta[ends.value.argmin()].reshape(-1, 1))[0]
            assert abs(V[2, 0]) > 0.99
    assert entropy[1.0] > entropy[-1.0] + 0.05


def test_a_view_is_followed_to_another_gamma():
    """Each is a stationary point, and a small step of gamma turns it little."""
    assert search.steps(4.0, 4.0) == (4.0,)
    gammas = search.steps(4.0, 2.0)
    np.testing.assert_allclose(gammas, 4.0 * 2.0 ** (-np.arange(9.0) / 8.0))
    X, code, weight = rings()
    found = search.search_gammas(
        X, code, weight, Plan(n_starts=4, shrinkage_factor=0.0), gammas, 4.0
    )
    assert found[4.0].starts.count("random") == 1 and found[2.0].starts == (search.NEIGHBOUR,)
    basis = Basis.from_rows(X, code, weight)
    sample = Sample.from_rows(X, code, weight, basis)
    for gamma, near in pairwise(gammas):
        Q, other = (np.linalg.qr(basis.back @ found[g].V)[0] for g in (gamma, near))
        assert np.linalg.svd(Q.T @ other, compute_uv=False).min() > 0.99
        h2 = bandwidths(sample.size, 2, near)
        one = np.zeros(1, np.int64)
        slope = Divergence(sample, shares(sample.size), h2, 2)(other.reshape(1, -1), one)[1]
        assert np.abs(slope).max() < 1e-3


def test_the_same_seed_is_the_same_search():
    X, code, weight = rings()
    one, two, other = (
        search_manifold(X, code, weight, replace(QUICK, seed=s, n_threads=t))
        for s, t in ((1, 1), (1, 3), (2, 1))
    )
    assert np.array_equal(one.V, two.V) and np.array_equal(one.divergences, two.divergences)
    assert not np.array_equal(one.divergences, other.divergences)
    assert one.starts == ("pca", "lda", "covariances", "random", "random", "random")


def two(n, apart=1.5, flat=1.0, p=4):
    """Classes apart along the first feature; along the second one of them may be flat."""
    code = np.arange(n) % 2
    X = np.random.default_rng(0).normal(size=(n, p))
    X[:, 0] += apart * code
    X[code == 0, 1] *= flat
    return X, code, np.ones(n)


def test_the_best_results_are_refined_on_a_sample(monkeypatch):
    """Kernels are those of the sample's rows, and its rare class is whole."""
    X, code, weight = two(1000)
    whole = search_manifold(X, code, weight, replace(QUICK, n_starts=2))
    monkeypatch.setattr(search, "COARSE", 400)
    monkeypatch.setattr(search, "FINE", 800)
    end = search_manifold(X, code, weight, replace(QUICK, n_starts=2))
    assert whole.rows == 1000 and end.rows == 800
    np.testing.assert_allclose(end.divergences.max(), whole.divergences.max(), rtol=0.15)
    same_span(end.V[:, :1], whole.V[:, :1], 0.1)
    code[:700], code[700:] = 0, 1
    assert search_manifold(X, code, weight, replace(QUICK, n_starts=2)).rows == 560 + 256


def test_starts_are_searched_on_a_sample(monkeypatch):
    """Of rows that sums are exact for as well; their divergences are those of all rows."""
    monkeypatch.setattr(search, "COARSE", 600)
    rows, call = [], Divergence.__call__

    def counted(self, theta, active):
        rows.append((len(self._sample.weight), len(active)))
        return call(self, theta, active)

    monkeypatch.setattr(Divergence, "__call__", counted)
    X, code, weight = two(1000)
    end = search_manifold(X, code, weight, replace(QUICK, n_starts=9))
    assert rows[0] == (600, 9) and rows[-1][0] == 1000
    assert all(of <= search.REFINED for n, of in rows[-5:])
    assert end.rows == 1000
    monkeypatch.setattr(search, "COARSE", 1000)
    slow = search_manifold(X, code, weight, replace(QUICK, n_starts=9))
    np.testing.assert_allclose(end.divergences.max(), slow.divergences.max(), rtol=1e-4)


def test_ends_that_are_one():
    value = np.array([-3.0, -5.0, -5.0 + 1e-6, -2.0, -3.0 - 1e-5, -5.0])
    np.testing.assert_array_equal(distinct(value), [1, 4, 3])


@pytest.mark.parametrize("n, p", [(60, 8), (20, 50)])
def test_directions_without_variance_are_dropped(n, p):
    rng = np.random.default_rng(0)
    code = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 3] = X[:, 0] - X[:, 1]
    X[:, 5] = 1.0
    plan = Plan(n_starts=3, max_iter=60, shrinkage_factor=0.0)
    end = search_manifold(X, code, np.ones(n), plan)
    assert end.rank == np.linalg.matrix_rank(X - np.stack([X[c::2].mean(0) for c in (0, 1)])[code])
    assert np.isfinite(end.divergences.max()) and end.separates == (n < p)
    X[:, 5] = code
    assert search_manifold(X, code, np.ones(n), replace(plan, n_starts=2, max_iter=5)).separates


def test_units_of_the_features_change_nothing():
    """One feature in units a million times as small, one as large: rank, span and divergence."""
    X, code, weight = two(200, p=3)
    unit = np.array([1e-6, 1e6, 1.0])
    plan = replace(QUICK, n_starts=8)
    known = Basis.from_rows(X * unit, code, weight)
    assert known.rank == 3 and not known.separates
    np.testing.assert_allclose(known.back @ known.into, np.eye(3), atol=1e-9)
    rest = center_by_class(X, code, weight)[0]
    cov = rest.T @ rest / 200.0
    white = known.into * unit[:, None]
    np.testing.assert_allclose(white.T @ cov @ white, np.eye(3), atol=1e-9)
    one, other = (search_manifold(rows, code, weight, plan) for rows in (X, X * unit))
    np.testing.assert_allclose(other.divergences.max(), one.divergences.max(), rtol=1e-8)
    same_span(other.V * unit[:, None], one.V, 1e-4)


@pytest.mark.parametrize("small, rank", [(1e-4, 4), (1e-6, 4), (1e-8, 3), (0.0, 3)])
def test_a_direction_of_little_variance(small, rank):
    """It counts where it is more than rounding; else it is said that classes part there."""
    X, code, weight = two(200, apart=0.0, p=3)
    own = np.random.default_rng(1).normal(size=200)
    for apart in (5.0, 0.0):
        last = X[:, 0] + small * (own + apart * code)
        end = search_manifold(np.column_stack([X, last]), code, weight, replace(QUICK, n_starts=4))
        assert end.rank == rank
        assert end.separates == (rank == 3 and small * apart > 0.0)
        assert (end.divergences.max() > 10.0) == (rank == 4 and apart > 0.0)


def test_dependent_features_in_single_precision():
    """What rounding leaves of a feature that depends on others is no direction."""
    X, code, weight = two(300)
    X = np.column_stack([X, X[:, 0] - X[:, 1]]).astype(np.float32).astype(np.float64)
    known = Basis.from_rows(X, code, weight)
    assert known.rank == 4 and not known.separates


def test_fewer_dimensions_than_asked_for():
    X, code, weight = rings(p=2)
    assert search_manifold(X[:, :1], code, weight, QUICK).V.shape == (1, 1)


def test_shrunk_covariance():
    covariance = pytest.importorskip("sklearn.covariance")
    X = np.random.default_rng(0).normal(size=(30, 12)) * np.arange(1.0, 13.0)
    np.testing.assert_allclose(ledoit_wolf(X, np.ones(30)), covariance.ledoit_wolf(X)[0])
    np.testing.assert_allclose(empirical(X, np.ones(30)), np.cov(X.T, bias=True))


def test_flat_classes_are_raised_to_the_floor():
    X, code, weight = rings(n=100)
    X[code == 1, 0] = X[code == 1, 1]
    weight = 1e6 * weight  # so many rows are hardly shrunk
    known = Basis.from_rows(X, code, weight)
    values = np.linalg.eigvalsh(Sample.from_rows(X, code, weight, known).cov[1])
    np.testing.assert_allclose(values[0], FLOOR, rtol=1e-6)
    others = np.linalg.eigvalsh(np.cov((X[code == 1] @ known.into).T, bias=True))[1:]
    np.testing.assert_allclose(values[1:], others, rtol=1e-6)


# The classifier ----------------------------------------------------------------------------------


def plane(n=150, seed=0, C=3):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, C, n)
    Z = rng.normal(size=(n, 2)) * (1.0 + code[:, None]) + 2.0 * code[:, None]
    return Z, code, rng.integers(1, 4, n).astype(float)


def log_density(Z, code, weight, c, at, gamma=1.0):
    """Scipy's normals about each row."""
    z, w = Z[code == c], weight[code == c]
    S = bandwidths(w.sum(), 2, gamma) * ledoit_wolf(z, w)
    logs = [multivariate_normal(a, S).logpdf(at) for a in z]
    return logsumexp(np.array(logs), axis=0, b=(w / w.sum())[:, None])


def densities_of(Z, code, weight, **options):
    options = DensityOptions(covariance="ledoit-wolf", **options)
    return density.fit_densities(Z, code, weight, options)[0]


def posterior(known, at):
    """Bayes' rule."""
    return softmax(density.log_densities(known, at) + known.log_prior, axis=1)


def test_densities_are_sums_of_normals():
    Z, code, weight = plane(400)
    at = np.concatenate([Z[:40], 8.0 * np.random.default_rng(1).normal(size=(40, 2))])
    known = densities_of(Z, code, weight, gamma=1.4)
    logs = density.log_densities(known, at)
    expected = [log_density(Z, code, weight, c, at, 1.4) for c in range(3)]
    np.testing.assert_allclose(logs, np.transpose(expected), rtol=1e-11, atol=1e-11)
    raw = np.exp(logs) * (np.bincount(code, weight) / weight.sum())
    np.testing.assert_allclose(
        posterior(known, at), raw / raw.sum(axis=1, keepdims=True), atol=1e-12
    )
    assert np.array_equal(logs, density.log_densities(known, at, threads=3))


@pytest.mark.parametrize("equal", [False, True])
def test_priors(equal):
    Z, code, weight = plane()
    prior = np.exp(densities_of(Z, code, weight, equal=equal).log_prior)
    shares = np.bincount(code, weight) / weight.sum()
    np.testing.assert_allclose(prior, np.full(3, 1 / 3) if equal else shares)


@pytest.mark.parametrize("far", [1e2, 1e4, 1e8, 1e150])
def test_a_point_far_from_all(far):
    Z, code, weight = plane()
    p = posterior(densities_of(Z, code, weight), np.array([[far, far], [-far, 0.0]]))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_rows_left_out():
    """Each row's density without it is that of the others."""
    Z, code, weight = plane(60)
    known, place = density.fit_densities(Z, code, weight, DensityOptions(), cells=False)
    logs = density.log_densities(known, Z, 1, place)
    whole = density.log_densities(known, Z)
    for i in range(0, 60, 7):
        c = code[i]
        S = np.linalg.inv(known.root[c].T @ known.root[c])
        own = np.exp(multivariate_normal(Z[i], S).logpdf(Z[i])) * weight[i]
        total = np.exp(whole[i, c]) * weight[code == c].sum()
        np.testing.assert_allclose(
            np.exp(logs[i, c]) * weight[code == c].sum(), total - own, rtol=1e-9
        )
        others = np.arange(3) != c
        np.testing.assert_allclose(logs[i, others], whole[i, others])


def test_a_class_of_one_row_left_out_has_no_density():
    Z, code, weight = plane(40, C=2)
    rows = np.vstack([Z, [[9.0, 9.0]]]), np.append(code, 2), np.append(weight, 1.0)
    known, (tile, position) = density.fit_densities(*rows, DensityOptions(), cells=False)
    place = tile[-1:], position[-1:]
    logs = density.log_densities(known, np.array([[9.0, 9.0]]), 1, place)
    assert logs[0, 2] == -np.inf and np.isfinite(logs[0, :2]).all()


@pytest.mark.long
@pytest.mark.parametrize("equal", [False, True])
def test_width_of_least_loss_of_rows_left_out(equal):
    Z, code, weight = plane(120)
    size = np.bincount(code, weight)
    rows, background = Rows(Z, code, weight, size), Background.from_rows(Z, code, weight)
    judged = weight / size[code] if equal else weight
    loss = [
        judged @ [-one_left_out(Z, code, weight, equal, width, r) for r in range(120)]
        for width in density.WIDTHS[::3]
    ]
    options = DensityOptions(covariance="ledoit-wolf", equal=equal)
    for width, expected in zip(density.WIDTHS[::3], loss, strict=True):
        score = density.leave_one_out_scores(rows, background, width, options, 1)
        found = judged @ -log_softmax(score, axis=1)[np.arange(120), code]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    chosen = density.select_width(rows, background, options, 1)
    of_all = [
        judged
        @ -log_softmax(density.leave_one_out_scores(rows, background, w, options, 1), axis=1)[
            np.arange(120), code
        ]
        for w in (*density.WIDTHS, chosen)
    ]
    assert abs(np.log2(chosen / density.WIDTHS[np.argmin(of_all[:-1])])) <= 0.5
    assert of_all[-1] <= min(of_all[:-1])


def test_least_loss_between_values():
    """The vertex of a parabola in the logarithm; an end, and the first of equal ones, as it is."""
    values = 3.0 * 2.0 ** -np.arange(5.0)
    for least in (0.6, 1.3, 2.0):
        loss = 1.0 + (np.log(values) - np.log(least)) ** 2
        assert density.lowest_between(values, loss) == pytest.approx(least)
    assert density.lowest_between(values, np.arange(5.0)) == values[0]
    assert density.lowest_between(values, np.ones(5)) == values[0]
    # It does not jump where another value becomes the lowest.
    ties = [
        density.lowest_between(values, [2.0, 1.0 + e, 1.0 - e, 1.5, 3.0]) for e in (-1e-5, 1e-5)
    ]
    assert ties[0] == pytest.approx(ties[1], rel=1e-4)


def test_a_class_that_seems_flat_has_a_width():
    """Of three rows on a line the covariance counts as three rows, that within classes as three."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(60, 2)), [[0.0, 0.0], [1.0, 1e-3], [2.0, 0.0]]])
    code = np.repeat([0, 1], [60, 3])
    known, _ = density.fit_densities(Z, code, np.ones(63), DensityOptions(1.0, "shrunk"))
    deviation = np.linalg.svd(np.linalg.inv(known.root[1]), compute_uv=False)
    assert deviation[1] >= 0.1 * deviation[0]


def one_left_out(Z, code, weight, equal, width, r):
    """log p of the class of row r by the other rows, in the kernels and means of all."""
    rest, size, n = np.arange(len(Z)) != r, np.bincount(code, weight), weight.sum()
    within = sum(
        s * np.cov(Z[code == c].T, fweights=weight[code == c].astype(int), bias=True)
        for c, s in enumerate(size / n)
    )
    score = []
    for c in range(3):
        z, w = Z[code == c], weight[code == c]
        S = bandwidths(w.sum(), 2, width) * ledoit_wolf(z, w)
        z, w = Z[(code == c) & rest], weight[(code == c) & rest]
        f = w @ [multivariate_normal(a, S).pdf(Z[r]) for a in z] / (w.sum() if equal else size[c])
        mean = np.average(Z[code == c], 0, weight[code == c])
        g = multivariate_normal(mean, 4.0 * within).pdf(Z[r])
        prior = 1.0 / 3.0 if equal else size[c] / n
        score.append(prior * (n * f + g) / (n + 1.0))
    return np.log(score[code[r]] / np.sum(score))


def test_cells_are_nearly_their_rows(monkeypatch):
    Z, code, weight = plane(6000)
    exact = densities_of(Z, code, weight, gamma=1.0)
    monkeypatch.setattr(density, "MIN_CELL_ROWS", 500)
    cells = densities_of(Z, code, weight, gamma=1.0)
    assert len(cells.U) < 0.6 * len(exact.U)
    p, q = (posterior(d, Z) for d in (exact, cells))
    assert np.abs(p - q).max() < 0.02


def few_rows(n=40, p=60, seed=0):
    """Rows, codes and weights of three classes: fewer rows than features."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 3
    X = rng.normal(size=(n, 10)) @ rng.normal(size=(10, p)) + rng.normal(size=(n, p))
    X[:, 0] += code
    return X, code, np.ones(n)


def shrunk_within(X, code, factor=1.0):
    """The pooled covariance shrunk towards its diagonal by scikit-learn, and the share s.

    factor : times the odds of its rule
    """
    covariance = pytest.importorskip("sklearn.covariance")
    residual = X - np.stack([X[code == c].mean(axis=0) for c in range(code.max() + 1)])[code]
    unit = residual.std(axis=0)
    s = covariance.ledoit_wolf_shrinkage(residual / unit, assume_centered=True)
    s = factor * s / (1.0 - s + factor * s)
    cov = covariance.shrunk_covariance(residual.T @ residual / len(X) / np.outer(unit, unit), s)
    return cov * np.outer(unit, unit), s


@pytest.mark.parametrize("n, p, factor", [(40, 60, 1.0), (90, 8, 0.2), (90, 8, 5.0)])
def test_a_shrunk_basis_whitens_the_shrunk_covariance(n, p, factor):
    """Of fewer rows than features too, where class means leave the span of the residuals."""
    X, code, weight = few_rows(n, p)
    W, s = shrunk_within(X, code, factor)
    basis = Basis.from_rows(X, code, weight, factor)
    assert 0.0 < s < 1.0 and basis.rank == min(p, n - 1) and basis.n_varying == min(p, n - 3)
    np.testing.assert_allclose(basis.kept, 1.0 - s)
    # Within the span of all rows: what is beyond it has no coordinate.
    np.testing.assert_allclose(basis.into.T @ W @ basis.into, np.eye(basis.rank), atol=1e-9)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose((centred @ basis.into) @ basis.back, centred, atol=1e-9)
    assert not basis.separates


def test_shrunk_covariances_of_classes_add_up_to_that_within():
    """Before each is shrunk by itself: (1 - s) cov_c + s diag, weighted by the classes' shares."""
    X, code, weight = few_rows()
    basis = Basis.from_rows(X, code, weight, shrinkage_factor=1.0)
    share = np.bincount(code) / len(code)
    of_classes = [
        basis.kept * empirical(X[code == c] @ basis.into, weight[code == c]) + basis.added
        for c in range(3)
    ]
    within = np.einsum("c,cij->ij", share, of_classes)
    np.testing.assert_allclose(within, np.eye(basis.rank), atol=1e-9)
    sample = Sample.from_rows(X, code, weight, basis, "shrunk")
    for cov, own in zip(sample.cov, of_classes, strict=True):
        # A share of each goes to a multiple of the identity, and its trace stays.
        np.testing.assert_allclose(np.trace(cov), np.trace(own))
        off = ~np.eye(len(cov), dtype=bool)
        part = cov[off] / own[off]
        assert np.ptp(part) < 1e-6 and 0.0 <= part[0] < 1.0


def test_a_shrunk_search_does_not_depend_on_units():
    X, code, weight = few_rows(60, 20)
    unit = 10.0 ** np.random.default_rng(1).uniform(-3.0, 3.0, 20)
    plan = replace(QUICK, shrinkage_factor=1.0)
    one, two = (search_manifold(rows, code, weight, plan) for rows in (X, X * unit))
    np.testing.assert_allclose(two.divergences.max(), one.divergences.max(), rtol=1e-6)
    same_span(unit[:, None] * two.V, one.V, 1e-4)


def test_wide_kernels_see_the_axes_of_shrunk_discriminant_analysis():
    """As gamma grows, D of two classes tends to d'S^-1 d of their means, S shrunk."""
    X, code, weight = few_rows(80, 30)
    code = (code > 0).astype(int)
    W, _ = shrunk_within(X, code)
    plan = replace(QUICK, k=1, gamma=100.0, shrinkage_factor=1.0, ftol=0.0, tol=1e-12)
    V = search_manifold(X, code, weight, plan).V
    gap = X[code == 1].mean(axis=0) - X[code == 0].mean(axis=0)
    axis = np.linalg.solve(W, gap)
    cosine = V[:, 0] @ W @ axis / np.sqrt((V[:, 0] @ W @ V[:, 0]) * (axis @ W @ axis))
    assert abs(cosine) > 0.9
