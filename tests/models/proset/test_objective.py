"""The objective of a batch: Eq. 2.8 in naive NumPy, finite differences, blocks and threads."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from lodim.engine import tiles
from lodim.models.proset import distribution, objective
from lodim.models.proset.cpu_kernels import CLASSES, DENSITY, SQUARED
from lodim.models.proset.objective import BatchObjective, ScoringRows, penalize
from lodim.models.proset.prototypes import SAME, Prototypes, merge
from lodim.solve.lbfgs import Steps, bounded

LOSSES = [CLASSES, SQUARED, DENSITY]
losses = pytest.mark.parametrize("loss", LOSSES, ids=["classes", "squared", "density"])


class Case:
    """Scoring rows, candidates, penalties and a point, at random; some rows are candidates."""

    def __init__(self, loss, n=150, p=5, J=37, seed=0, dtype=np.float64):
        rng = np.random.default_rng(seed)
        self.loss, self.X, self.x = loss, rng.normal(size=(n, p)), rng.normal(size=(J, p))
        self.y, self.target = rng.normal(size=n), rng.normal(size=J)
        if loss == CLASSES:
            self.y, self.target = rng.integers(0, 3, n) * 1.0, rng.integers(0, 3, J) * 1.0
        self.a, self.b = rng.uniform(0.1, 0.9, n), rng.uniform(1.0, 3.0, n)
        self.weight, self.own = rng.dirichlet(np.ones(n)), np.full(n, -1)
        both = min(n, J) // 2
        self.own[rng.permutation(n)[:both]] = rng.permutation(J)[:both]
        of = self.own >= 0
        self.x[self.own[of]], self.target[self.own[of]] = self.X[of], self.y[of]
        shares = SimpleNamespace(
            lambda_v=0.02, lambda_w=0.01, lambda_u=0.03, l1_ratio_v=0.3, l1_ratio_w=0.6
        )
        self.penalty = penalize(p, J, shares)
        self.dtype = dtype
        self.theta = np.concatenate([rng.uniform(0.1, 1.5, p), rng.uniform(0, 2, J), [1.7]])
        self.theta[[1, p + 3, p + 4]] = 0.0

    @property
    def scoring(self):
        packed = tiles.pack(self.X, self.dtype)
        return ScoringRows.from_tiles(packed, self.y, self.a, self.b, self.weight, self.own)

    def objective(self, threads=1):
        return BatchObjective(self.scoring, self.x, self.target, self.loss, self.penalty, threads)

    def naive(self, theta):
        """Eq. 2.8 as it is written, for (v, w, u), each row without the candidate that it is."""
        p, J = self.X.shape[1], len(self.x)
        v, w, u = theta[:p], theta[p : p + J], theta[-1]
        G = np.exp(-0.5 * (((self.X[:, None] - self.x) * v) ** 2).sum(axis=2))
        of = self.own >= 0
        G[np.flatnonzero(of), self.own[of]] = 0.0
        normal = np.exp(-0.5 * (u * (self.y[:, None] - self.target)) ** 2) / np.sqrt(2 * np.pi)
        same, target = self.y[:, None] == self.target, self.target[None]
        h = {CLASSES: same, SQUARED: target, DENSITY: u * normal}[self.loss]
        A, B = self.a + (G * h) @ w, self.b + G @ w
        each = (A / B - self.y) ** 2 if self.loss == SQUARED else np.log(B / A)
        net = 0.02 * (0.35 * v @ v + 0.3 * v.sum()) + 0.01 * (0.2 * w @ w + 0.6 * w.sum())
        return self.weight @ each + net + 0.03 * 0.5 * u**2


@losses
@pytest.mark.parametrize(
    "n, p, J",
    [(150, 5, 37), (64, 1, 4), (3, 9, 1), pytest.param(700, 8, 130, marks=pytest.mark.long)],
)
def test_equation_and_gradient(loss, n, p, J):
    case = Case(loss, n, max(p, 2), max(J, 5))
    value, gradient = case.objective()(case.theta)
    np.testing.assert_allclose(value, case.naive(case.theta), rtol=1e-12)
    numeric = approx_fprime(case.theta, case.naive, 1e-7)
    if loss != DENSITY:
        numeric[-1], gradient[-1] = 0.0, 0.0  # u has no part in the loss
    np.testing.assert_allclose(gradient, numeric, atol=2e-6)


@pytest.mark.long
@losses
def test_single_precision(loss):
    one, two = Case(loss), Case(loss, dtype=np.float32)
    (f, g), (f32, g32) = one.objective()(one.theta), two.objective()(two.theta)
    np.testing.assert_allclose(f32, f, rtol=1e-6)
    np.testing.assert_allclose(g32, g, atol=2e-6 * np.abs(g).max())


@losses
def test_bits_do_not_depend_on_threads(loss, monkeypatch):
    monkeypatch.setattr(objective, "SMALL", 0)
    case = Case(loss, n=900)
    f, g = case.objective(1)(case.theta)
    for threads in (2, 3, 7):
        value, gradient = case.objective(threads)(case.theta)
        assert value == f and np.array_equal(gradient, g)


@losses
def test_sum_of_blocks_is_the_whole(loss, monkeypatch):
    case = Case(loss, n=900)
    f, g = case.objective()(case.theta)
    monkeypatch.setattr(objective, "MOST_BLOCKS", 1)
    value, gradient = case.objective()(case.theta)
    np.testing.assert_allclose(value, f, rtol=1e-13)
    np.testing.assert_allclose(gradient, g, atol=1e-13)


@losses
def test_a_far_origin_does_no_harm(loss):
    """Only differences of features matter."""
    case = Case(loss)
    f, g = case.objective()(case.theta)
    case.X, case.x = case.X + 3.0, case.x + 3.0
    value, gradient = case.objective()(case.theta)
    np.testing.assert_allclose(value, f, rtol=1e-11)
    np.testing.assert_allclose(gradient, g, atol=1e-11)


# Quantiles of mixtures of normals ----------------------------------------------------------------


@pytest.mark.parametrize("u", [[3.0, 5e-3], [40.0, 1.0], [2.0, 1e-290]])
def test_quantiles_invert_mixtures_of_unlike_widths(u):
    """A batch of normals that are very wide takes no digits from the others."""
    rng = np.random.default_rng(0)
    M, n, whole = 12, 130, np.arange(12)
    points = rng.normal(size=(M, 2)), rng.normal(size=M), rng.uniform(0.2, 5.0, M)
    v, null = np.array([[1.0, 0.5], [2.0, 0.0]]), (np.zeros(1), 1.0, DENSITY, 0)
    whose = 1 + (whole > 7), whole, whole, whole
    mixture = Prototypes(np.arange(2), *points, *whose, v, np.array(u), *null)
    X, levels = tiles.pack(rng.normal(size=(n, 2))), np.array([0.003, 0.05, 0.5, 0.95, 0.99])
    equal = SimpleNamespace(levels=np.arange(101) / 100)
    q = distribution.quantiles(mixture, equal, X, n, levels, 1)
    for k, level in enumerate(levels):
        F = distribution.cdf(mixture, X, n, q[:, k], 1)
        np.testing.assert_allclose(F, level, atol=1e-6)
    assert (np.diff(q, axis=1) > 0).all()


# The bounded solver ----------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_bounded_quadratic(d, seed):
    """At the end the slope is zero, or upward at a bound."""
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(d + 2, d))
    H, c = M.T @ M + 0.1 * np.eye(d), rng.normal(size=d)
    quadratic = lambda t: (0.5 * t @ H @ t + c @ t, H @ t + c)  # noqa: E731
    end = bounded(quadratic, np.ones(d), np.zeros(d), tol=1e-9, ftol=0.0, precision=1e-16)
    slope = H @ end.theta[0] + c
    assert (end.theta >= 0).all() and end.converged[0]
    np.testing.assert_allclose(slope[end.theta[0] > 0], 0.0, atol=1e-5)
    assert (slope[end.theta[0] == 0] >= -1e-6).all()


def test_bounded_says_when_it_did_not_converge():
    def valley(t):
        return 100 * (t[1] - t[0] ** 2) ** 2 + (1 - t[0]) ** 2, np.array(
            [-400 * t[0] * (t[1] - t[0] ** 2) - 2 * (1 - t[0]), 200 * (t[1] - t[0] ** 2)]
        )

    start, none = np.array([0.0, 2.0]), np.zeros(2)
    assert not bounded(valley, start, none, max_iter=4).converged[0]
    end = bounded(valley, start, none, tol=1e-8, ftol=0.0)
    np.testing.assert_allclose(end.theta[0], 1.0, atol=1e-5)


# Merging ---------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_merged_groups_are_connected_components(J, d, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (J, d)) + SAME * rng.choice([0.0, 0.4, -0.4, 0.9, 5.0], (J, d))
    w = rng.random(J)
    first, weight, of = merge(points, w)
    near = np.abs(points[:, None] - points).max(axis=2) <= SAME
    for _ in range(J):  # reachability
        near = near @ near
    np.testing.assert_array_equal(near, of[:, None] == of)
    np.testing.assert_array_equal(first, [np.flatnonzero(of == g)[0] for g in range(len(first))])
    np.testing.assert_allclose(weight, [w[of == g].sum() for g in range(len(first))])


def test_merging_many():
    """Groups of thousands are joined without a list of their pairs."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2, (10_000, 3)) * 1.0
    first, weight, of = merge(points, np.ones(10_000))
    assert len(first) == 8 and weight.sum() == 10_000 and np.array_equal(points[first][of], points)


def test_descent_follows_the_scales_of_parameters():
    """Curvatures from 1 to 10^4 take few evaluations: each parameter has a unit of its own."""
    rng = np.random.default_rng(5)
    d, counts = 60, []
    curvature = 10.0 ** rng.uniform(0.0, 4.0, d)
    centre = rng.uniform(1.0, 2.0, d)

    def quadratic(theta):
        counts[-1] += 1
        off = theta - centre
        return 0.5 * curvature @ off**2, curvature * off

    counts.append(0)
    end = bounded(quadratic, np.zeros(d), np.zeros(d), tol=1e-6, ftol=0.0, precision=1e-16)
    assert end.converged[0] and counts[-1] == end.n_eval < 100
    np.testing.assert_allclose(end.theta[0], centre, atol=1e-6)


def test_descent_goes_on_with_earlier_steps():
    """Cut in two, with the steps handed on, it takes no more evaluations than at once."""
    rng = np.random.default_rng(6)
    A = rng.normal(size=(80, 40))
    H, centre = A.T @ A, rng.uniform(1.0, 2.0, 40)

    def quadratic(theta):
        off = theta - centre
        return 0.5 * off @ H @ off, H @ off

    lower, stop = np.zeros(40), {"tol": 1e-7, "ftol": 0.0, "precision": 1e-16}
    whole = bounded(quadratic, lower, lower, **stop)
    counted = []
    for hand_on in (True, False):
        steps = Steps(40)
        first = bounded(quadratic, lower, lower, max_iter=20, steps=steps, **stop)
        theta, start = first.theta[0], quadratic(first.theta[0])
        if not hand_on:
            steps = Steps(40)
        second = bounded(quadratic, theta, lower, start=start, steps=steps, **stop)
        assert second.converged[0]
        counted.append(first.n_eval + second.n_eval)
    assert counted[0] <= whole.n_eval + 2 < counted[1]


def test_steps_of_some_parameters():
    """Of others that did not move new steps say nothing."""
    rng, at = np.random.default_rng(7), np.array([0, 2])
    steps = Steps(3)
    steps.S[:2], steps.Y[:2] = rng.normal(size=(2, 2, 3))
    steps.pairs, steps.newest = 2, 1
    old, part = steps.S[:2].copy(), steps.of_some(at)
    part.S[2], part.Y[2] = rng.normal(size=(2, 2))
    part.pairs, part.newest = 3, 2
    steps.update(at, part)
    np.testing.assert_array_equal(steps.S[:2], old)
    assert steps.S[2, 1] == steps.Y[2, 1] == 0.0 and steps.pairs == 3 and steps.newest == 2
