"""The objective of a boost: Eq. 3 in naive NumPy, finite differences, blocks and threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit

from lodim.engine import tiles
from lodim.engine.blocks import sum_blocks
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap.cpu_kernels import IDENTITY, SOFTPLUS, Form, loss_gradient
from lodim.models.gbmap.embedding import path_distances
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.objective import BoostObjective
from lodim.solve.lbfgs import lbfgs
from lodim.solve.objective import ElasticNet, Preconditioned

KINDS = list(itertools.product([SOFTPLUS, IDENTITY], [SQUARED, LOGISTIC]))


def g(z, beta, activation):
    return z if activation == IDENTITY else np.logaddexp(0.0, beta * z) / beta


def naive(theta, sign, X, y, score, weight, beta, activation, loss, ridge):
    """Eq. 3 as it is written, for one learner."""
    f = score + theta[0] + sign * g(theta[1] + X @ theta[2:], beta, activation)
    each = (y - f) ** 2 if loss == SQUARED else np.logaddexp(0.0, f) - y * f
    return weight @ each + ridge @ theta**2


def naive_gradient(theta, sign, X, y, score, weight, beta, activation, loss, ridge):
    z = theta[1] + X @ theta[2:]
    f = score + theta[0] + sign * g(z, beta, activation)
    r = weight * (2 * (f - y) if loss == SQUARED else expit(f) - y)
    s = r * sign * (1.0 if activation == IDENTITY else expit(beta * z))
    return np.r_[r.sum(), s.sum(), X.T @ s] + 2 * ridge * theta


class Case:
    def __init__(self, n, p, loss, seed=0, dtype=np.float64, q=3, size=1.0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, p)).astype(dtype)
        self.X, self.tiles = X.astype(float), tiles.pack(X, dtype)
        self.y = rng.normal(size=n) if loss == SQUARED else (rng.random(n) < 0.4) * 1.0
        self.score, self.weight = rng.normal(size=n), rng.random(n) + 0.01
        self.weight /= self.weight.sum()
        self.theta, self.sign = size * rng.normal(size=(q, 2 + p)), np.resize([1.0, -1.0], q)
        self.loss = loss

    def stage(self, beta, activation, penalty, threads=1):
        pad = [
            tiles.pad(v, len(self.tiles), self.tiles.dtype)
            for v in (self.y, self.score, self.weight)
        ]
        form = Form(beta, activation, self.loss)
        return BoostObjective(self.tiles, *pad, self.sign, form, penalty, threads)

    def expected(self, function, c, beta, activation, ridge):
        return function(
            self.theta[c], self.sign[c], self.X, self.y, self.score, self.weight, beta,
            activation, self.loss, ridge,
        )  # fmt: skip


def penalty_of(p, lambda_=0.3, l1_ratio=0.25):
    share = np.r_[0.0, 0.0, np.full(p, 1.0 / max(1, p))]
    return ElasticNet.over(share, lambda_, l1_ratio)


@pytest.mark.parametrize("activation, loss", KINDS)
@pytest.mark.parametrize("p", [0, 1, 5, 33])
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.long)])
def test_against_naive_numpy(activation, loss, p, dtype):
    case = Case(150, p, loss, seed=p, dtype=dtype)
    penalty = penalty_of(p)
    value, gradient = case.stage(2.5, activation, penalty)(case.theta, np.arange(3))
    # Within a tile numbers have the precision of X.
    near = {"rtol": 1e-11, "atol": 1e-13} if dtype is np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    for c in range(3):
        args = c, 2.5, activation, penalty.ridge
        np.testing.assert_allclose(value[c], case.expected(naive, *args), **near)
        np.testing.assert_allclose(gradient[c], case.expected(naive_gradient, *args), **near)


@pytest.mark.parametrize("activation, loss", KINDS)
@pytest.mark.parametrize("beta", [0.7, 10.0])
def test_gradient_against_finite_differences(activation, loss, beta):
    case = Case(70, 4, loss, seed=7, size=0.5)
    penalty = penalty_of(4)
    stage = case.stage(beta, activation, penalty)
    _, gradient = stage(case.theta, np.arange(3))
    for c in range(3):

        def value(t, c=c):
            theta = case.theta.copy()
            theta[c] = t
            return stage(theta, np.array([c]))[0][c]

        sides = [approx_fprime(case.theta[c], value, h) for h in (1e-6, -1e-6)]
        numeric = np.mean(sides, axis=0)
        np.testing.assert_allclose(gradient[c], numeric, atol=1e-6)


@given(
    n=st.integers(1, 200), p=st.integers(0, 6), beta=st.floats(0.05, 200.0),
    kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), size=st.sampled_from([0.1, 1.0, 30.0]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_shape(n, p, beta, kind, seed, size):
    activation, loss = kind
    case = Case(n, p, loss, seed=seed, size=size)
    penalty = penalty_of(p)
    value, gradient = case.stage(beta, activation, penalty)(case.theta, np.arange(3))
    for c in range(3):
        args = c, beta, activation, penalty.ridge
        np.testing.assert_allclose(value[c], case.expected(naive, *args), rtol=1e-10)
        np.testing.assert_allclose(
            gradient[c], case.expected(naive_gradient, *args), rtol=1e-8, atol=1e-10 * size
        )


def test_rows_not_active_are_left_alone():
    case = Case(100, 3, SQUARED)
    whole = case.stage(1.0, SOFTPLUS, penalty_of(3))(case.theta, np.arange(3))
    value, gradient = case.stage(1.0, SOFTPLUS, penalty_of(3))(case.theta, np.array([2]))
    assert value[2] == whole[0][2]
    np.testing.assert_array_equal(gradient[2], whole[1][2])


@pytest.fixture(scope="module")
def large():
    return Case(3 * 4096 + 1234, 5, SQUARED)


def test_sum_of_blocks_is_the_whole(large):
    penalty = penalty_of(5)
    value, gradient = large.stage(2.0, SOFTPLUS, penalty)(large.theta, np.arange(3))
    for c in range(3):
        args = c, 2.0, SOFTPLUS, penalty.ridge
        np.testing.assert_allclose(value[c], large.expected(naive, *args), rtol=1e-12)
        np.testing.assert_allclose(
            gradient[c], large.expected(naive_gradient, *args), rtol=1e-9, atol=1e-13
        )


def test_partials_are_those_of_each_block(large):
    """A block's partial is what the kernel gives for the rows of the block alone."""
    pad = [tiles.pad(v, len(large.tiles)) for v in (large.y, large.score, large.weight)]
    shape = large.theta, np.arange(3), large.sign, Form(2.0, SOFTPLUS, SQUARED)
    whole = sum_blocks(loss_gradient, large.tiles, (3, 8), *pad, *shape)
    total = np.zeros((3, 8))
    for b in range(4):
        cut = slice(64 * b, 64 * (b + 1))
        part = [np.ascontiguousarray(v[cut]) for v in pad]
        X = np.ascontiguousarray(large.tiles[cut])
        total += sum_blocks(loss_gradient, X, (3, 8), *part, *shape)
    np.testing.assert_allclose(whole, total, rtol=1e-13, atol=1e-15)


def test_same_bits_on_any_number_of_threads(large):
    one, *others = (
        large.stage(2.0, SOFTPLUS, penalty_of(5), threads)(large.theta, np.arange(3))
        for threads in (1, 2, 4)
    )
    for other in others:
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_extreme_arguments_do_not_overflow():
    case = Case(64, 2, LOGISTIC)
    case.theta *= 1e4
    value, gradient = case.stage(50.0, SOFTPLUS, penalty_of(2))(case.theta, np.arange(3))
    assert np.isfinite(value).all() and np.isfinite(gradient).all()


# The forward kernels, by the same formulas ------------------------------------------------------


def learners(p, activation, beta, K=2, M=6, seed=0):
    rng = np.random.default_rng(seed)
    return WeakLearners(
        rng.normal(size=(M, 2 + p)), np.resize([1.0, -1.0, -1.0], M), np.arange(M) % K,
        1 + np.arange(M) // K, beta, activation, 2.5, K, np.zeros((M, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("activation", [SOFTPLUS, IDENTITY])
@pytest.mark.parametrize("n", [1, 64, 4096 * 2 + 5])
def test_forward(activation, n):
    p, beta = 3, 4.0
    X, t = np.random.default_rng(n).normal(size=(n, p)), learners(p, activation, beta)
    Z = t.theta[:, 1] + X @ t.theta[:, 2:].T
    expected = t.scale * (t.theta[:, 0] + t.sign * g(Z, beta, activation))
    slope = t.scale * t.sign * (expit(beta * Z) if activation == SOFTPLUS else np.ones_like(Z))
    packed = tiles.pack(X)
    for threads in (1, 2):
        E = t.embedding(packed, n, threads)
        np.testing.assert_allclose(E, expected, atol=1e-12)
        score = t.score(packed, n, threads)
        for k in (0, 1):
            np.testing.assert_allclose(score[:, k], expected[:, t.target == k].sum(axis=1))
        slopes = t.slopes(packed, n, threads)
        np.testing.assert_allclose(slopes, slope, atol=1e-12)
        local = np.stack(t.gradients(slopes), axis=1)
        assert local.shape == (n, 2, p)
        for k in (0, 1):
            of = t.target == k
            np.testing.assert_allclose(local[:, k], slope[:, of] @ t.theta[of, 2:], atol=1e-11)
        on = t.active(slopes)
        np.testing.assert_array_equal(on, Z > 0 if activation == SOFTPLUS else np.ones_like(on))
    np.testing.assert_allclose(t.projections(packed, n), Z, atol=1e-11)


@pytest.mark.long
@given(seed=st.integers(0, 10**6), beta=st.floats(0.3, 60), M=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_path_distance_is_total_variation(seed, beta, M):
    """Eq. 6 on a fine grid, whose sum of |differences| is below and within its mesh error."""
    t = learners(2, SOFTPLUS, beta, K=1, M=M, seed=seed)
    rng = np.random.default_rng(seed)
    Z, W = 2 * rng.normal(size=(2, 3, M))
    tolerance = 1e-6
    got = path_distances(Z, W, t, tolerance)
    s = np.linspace(0.0, 1.0, 4001)[:, None]
    for i, j in itertools.product(range(3), range(3)):
        f = (t.scale * t.sign * g((1 - s) * Z[i] + s * W[j], beta, SOFTPLUS)).sum(axis=1)
        grid = np.abs(np.diff(f)).sum()
        # Turning points between grid points are all that the grid misses.
        curvature = t.scale * 0.25 * beta * ((W[j] - Z[i]) ** 2).sum()
        assert grid - tolerance - 1e-9 <= got[i, j] <= grid + tolerance + M * curvature / 4000**2


@pytest.mark.long
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
@pytest.mark.parametrize("p", [1, 6])
def test_hessian_of_the_identity_is_that_of_the_objective(loss, p):
    """Without an activation's curvature Gauss-Newton is exact."""
    case = Case(150, p, loss, seed=3)
    stage = case.stage(1.0, IDENTITY, penalty_of(p, l1_ratio=0.0))
    hessian, step = stage.hessian(case.theta), 1e-5
    near = {"rtol": 1e-5, "atol": 1e-5 * np.abs(hessian).max()}
    for k in range(2 + p):
        shift = step * np.eye(2 + p)[k]
        ends = [stage(case.theta + s * shift, np.arange(3))[1] for s in (1, -1)]
        np.testing.assert_allclose(hessian[:, k], (ends[0] - ends[1]) / (2 * step), **near)


@pytest.mark.long
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
def test_hessian_of_the_softplus_is_positive_and_no_less_than_gauss_newton(loss):
    case = Case(300, 4, loss, seed=4)
    hessian = case.stage(3.0, SOFTPLUS, penalty_of(4, l1_ratio=0.0)).hessian(case.theta)
    assert np.linalg.eigvalsh(hessian).min() > 0
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1))
    z = case.theta[:, 1] + case.X @ case.theta[:, 2:].T
    slope = case.sign / (1 + np.exp(-3.0 * z))
    score = case.score[:, None] + case.theta[:, 0] + case.sign * np.logaddexp(0, 3.0 * z) / 3.0
    share = 1 / (1 + np.exp(-score))
    second = 2.0 if loss == SQUARED else share * (1 - share)
    for c in range(3):
        J = np.column_stack([np.ones(300), slope[:, c], slope[:, [c]] * case.X])
        w = case.weight * (second if loss == SQUARED else second[:, c])
        assert np.linalg.eigvalsh(hessian[c] - J.T @ (w[:, None] * J)).min() > -1e-9


@pytest.mark.long
def test_a_preconditioner_changes_the_road_not_the_end():
    case = Case(400, 5, LOGISTIC, seed=5)
    stage = case.stage(1.0, IDENTITY, penalty_of(5, l1_ratio=0.0))
    tight = {"tol": 1e-11, "ftol": 0.0, "max_iter": 2000}
    plain = lbfgs(stage, case.theta, **tight)
    curved = Preconditioned(stage, stage.hessian(plain.theta))
    np.testing.assert_allclose(curved.back(curved.to(case.theta)), case.theta)
    end = lbfgs(curved, curved.to(case.theta), **tight)
    np.testing.assert_allclose(end.value, plain.value, rtol=1e-10)
    assert end.n_eval < plain.n_eval
