"""The divergence of melm: the paper's formulas in naive NumPy, finite differences, blocks."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from lodim.models.melm import divergence
from lodim.models.melm.divergence import Divergence, bound, normal_entropy, shares
from lodim.models.melm.whitening import Basis, Sample, bandwidths

pytestmark = pytest.mark.long

ONE = np.zeros(1, np.int64)


class Case:
    """Rows of C classes, weights, and a projection V, at random."""

    def __init__(self, n=90, p=5, k=2, C=2, seed=0, covariance="shrunk", apart=1.0):
        rng = np.random.default_rng(seed)
        self.code = rng.permutation(np.concatenate([np.arange(C), rng.integers(0, C, n - C)]))
        self.weight = rng.uniform(0.5, 2.5, n)
        self.X = rng.normal(size=(n, p)) * (1.0 + 0.5 * self.code[:, None])
        self.X[:, 0] += apart * self.code
        self.X = self.X @ rng.normal(size=(p, p))
        self.basis = Basis.from_rows(self.X, self.code, self.weight)
        self.sample = Sample.from_rows(self.X, self.code, self.weight, self.basis, covariance)
        self.k, self.C, self.theta = k, C, rng.normal(size=(p, k))
        self.h2 = bandwidths(self.sample.size, k, 1.3)
        self.share = shares(self.sample.size)

    def objective(self, threads=1):
        return Divergence(self.sample, self.share, self.h2, self.k, threads)

    def __call__(self, **options):
        """Divergence and its gradient by V."""
        value, gradient = self.objective(**options)(self.theta.reshape(1, -1), ONE)
        return -value[0], -gradient[0].reshape(self.theta.shape)


def potential_of(A, B, v, w, V, Sigma):
    """ip_AB and its gradient as the paper has them, Sec. 4: every pair of rows, w w' and all."""
    k = V.shape[1]
    S = np.linalg.inv(V.T @ Sigma @ V)
    phi = 1.0 / ((2 * np.pi) ** (k / 2) * np.sqrt(np.linalg.det(V.T @ Sigma @ V)))
    phi /= v.sum() * w.sum()
    psi, slope = 0.0, 0.0
    for a, va in zip(A, v, strict=True):
        for b, wb in zip(B, w, strict=True):
            d = a - b
            one = va * wb * np.exp(-0.5 * d @ V @ S @ V.T @ d)
            psi += one
            ddVS = np.outer(d, d @ V @ S)
            slope = slope - one * (ddVS - Sigma @ V @ S @ V.T @ ddVS)
    return phi * psi, phi * slope - psi * phi * Sigma @ V @ S


def silverman(n, k, gamma):
    return gamma * (4 / (k + 2)) ** (1 / (k + 4)) * n ** (-1 / (k + 4))


def naive(case, V, gamma=1.3):
    """Sum of the divergences of all pairs of classes and its gradient, for X and V as they are."""
    rows = [case.X[case.code == c] for c in range(case.C)]
    w = [case.weight[case.code == c] for c in range(case.C)]
    cov = [case.basis.back.T @ s @ case.basis.back for s in case.sample.cov]
    cov = [silverman(v.sum(), case.k, gamma) ** 2 * s for v, s in zip(w, cov, strict=True)]

    def log_ip(a, b):
        ip, slope = potential_of(rows[a], rows[b], w[a], w[b], V, cov[a] + cov[b])
        return np.array([np.log(ip), *(slope / ip).ravel()])

    own = [log_ip(c, c) for c in range(case.C)]
    if case.C == 1:
        return -own[0][0], -own[0][1:].reshape(V.shape)
    total = sum(
        own[a] + own[b] - 2 * log_ip(a, b) for a in range(case.C) for b in range(a + 1, case.C)
    )
    return total[0], total[1:].reshape(V.shape)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("C", [1, 2, 3])
def test_the_papers_formulas(k, C):
    case = Case(n=70, k=k, C=C)
    V = case.basis.into @ case.theta
    expected, slope = naive(case, V)
    value, gradient = case()
    if C == 1:
        # Entropy is that of orthonormal theta: H2(V M) = H2(V) + log |det M|.
        inner = case.theta.T @ case.theta
        value += 0.5 * np.log(np.linalg.det(inner))
        gradient += case.theta @ np.linalg.inv(inner)
    np.testing.assert_allclose(value, expected, atol=1e-10)
    np.testing.assert_allclose(gradient, case.basis.into.T @ slope, atol=1e-10)


@pytest.mark.parametrize("C, covariance", [(1, "shrunk"), (2, "ledoit-wolf"), (4, "shrunk")])
def test_finite_differences(C, covariance):
    case = Case(k=2, C=C, covariance=covariance)
    gradient = case()[1]

    def value(theta):
        return -case.objective()(theta[None], ONE)[0][0]

    numeric = approx_fprime(case.theta.ravel(), value, 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=2e-6)


@pytest.mark.parametrize("average", [False, True])
def test_shares_of_pairs(average):
    """More than two classes: the sum over pairs, or their mean by the products of class shares."""
    size = np.array([2.0, 3.0, 5.0])
    potential = np.triu(np.random.default_rng(0).normal(size=(3, 3)))
    own, pairs = np.diag(potential), {}
    for a, b in ((0, 1), (0, 2), (1, 2)):
        pairs[a, b] = own[a] + own[b] - 2 * potential[a, b]
    weight = {(a, b): size[a] * size[b] if average else 1.0 for a, b in pairs}
    expected = sum(weight[p] * pairs[p] for p in pairs) / (sum(weight.values()) if average else 1)
    np.testing.assert_allclose((potential * shares(size, average)).sum(), expected, rtol=1e-12)


@pytest.mark.parametrize("C", [2, 3])
def test_only_the_span_counts(C):
    """V' grad D = 0 and D(V M) = D(V)."""
    case = Case(C=C, k=3)
    value, gradient = case()
    np.testing.assert_allclose(case.theta.T @ gradient, 0.0, atol=1e-12)
    case.theta = case.theta @ np.random.default_rng(1).normal(size=(3, 3))
    np.testing.assert_allclose(case()[0], value, rtol=1e-11)


def test_classes_far_apart():
    """Where every kernel between classes vanishes D is finite, and its gradient right."""
    case = Case(n=60, apart=400.0)
    value, gradient = case()
    assert value > 1500.0

    def at(theta):
        return -case.objective()(theta[None], ONE)[0][0]

    numeric = approx_fprime(case.theta.ravel(), at, 1e-6)
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-4 * abs(numeric).max())


def test_a_class_that_is_constant_in_a_feature_has_a_finite_divergence():
    case = Case(n=80, p=4)
    X = case.X.copy()
    X[case.code == 0, 1] = 3.0
    known = Basis.from_rows(X, case.code, case.weight)
    case.sample = Sample.from_rows(X, case.code, case.weight, known)
    case.theta = known.back @ np.eye(4)[:, :2]
    value, gradient = case()
    assert np.isfinite(value) and np.isfinite(gradient).all()


# Blocks and threads ------------------------------------------------------------------------------


def test_sum_of_stripes_is_the_whole(monkeypatch):
    case = Case(n=600, C=3)
    value, gradient = case()
    monkeypatch.setattr(divergence, "PAIRS", 2000)
    assert case.objective()._stripes > 2
    striped, slope = case()
    np.testing.assert_allclose(striped, value, rtol=1e-13)
    np.testing.assert_allclose(slope, gradient, atol=1e-13)


def test_bits_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(divergence, "PAIRS", 2000)
    monkeypatch.setattr(divergence, "ALONE", 0)
    case = Case(n=400)
    value, gradient = case()
    for threads in (2, 3, 5):
        again, slope = case(threads=threads)
        assert again == value and np.array_equal(slope, gradient)


def test_problems_do_not_touch_each_other():
    """Side by side, in part, and alone: the same bits."""
    case = Case(n=100)
    theta = np.random.default_rng(2).normal(size=(40, case.theta.size))
    whole, slopes = case.objective()(theta, np.arange(40))
    part, some = case.objective()(theta, np.array([3, 17, 39]))
    for q in (3, 17, 39):
        alone, slope = case.objective()(theta[q][None], ONE)
        assert whole[q] == part[q] == alone[0]
        assert np.array_equal(slopes[q], some[q]) and np.array_equal(slopes[q], slope[0])


# The bound ---------------------------------------------------------------------------------------


def test_theorem_3():
    """The overlap of two densities in a box is at most what their cross potential says."""
    from scipy.stats import norm

    x = np.linspace(-12.0, 12.0, 4001)
    for apart in (0.0, 1.0, 3.0, 6.0):
        f, g = norm.pdf(x), norm.pdf(x, apart, 2.0)
        overlap = np.trapezoid(np.minimum(f, g), x)
        most = bound(np.log(norm.pdf(apart, 0.0, np.sqrt(5.0))), np.log(24.0))
        assert overlap <= most and (most < 0.9 or apart < 6.0)


# One class ---------------------------------------------------------------------------------------


def test_entropy_of_a_normal_density():
    """-log int f^2, where the square of a normal density is a multiple of a narrower one."""
    rng = np.random.default_rng(0)
    M = rng.normal(size=(5, 5))
    cov, V = M @ M.T, np.linalg.qr(rng.normal(size=(5, 2)))[0]
    density = multivariate_normal(cov=V.T @ cov @ V)
    at = multivariate_normal(cov=0.5 * V.T @ cov @ V)
    H2 = -np.log(density.pdf(np.zeros(2)) ** 2 / at.pdf(np.zeros(2)))
    np.testing.assert_allclose(normal_entropy(cov, V), H2, rtol=1e-12)
