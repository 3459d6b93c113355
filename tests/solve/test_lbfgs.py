"""solve: L-BFGS and its orthant-wise form against scipy and scikit-learn."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der
from sklearn.linear_model import ElasticNet as CoordinateDescent
from sklearn.linear_model import Lasso

from lodim.solve.lbfgs import SPACING, bounded, lbfgs
from lodim.solve.objective import ElasticNet, Preconditioned, add_ridge, pseudo_slope

TIGHT = {"max_iter": 5000, "tol": 1e-10, "ftol": 1e-16}


class Functions:
    """q functions given as (value, gradient) of one theta; counts their evaluations."""

    precision = 4 * np.finfo(float).eps
    scaled = False

    def __init__(self, functions, d, l1=None):
        self.functions, self.l1 = functions, np.zeros(d) if l1 is None else l1
        self.calls = np.zeros(len(functions), int)

    def __call__(self, theta, active):
        value, gradient = np.full(len(theta), np.nan), np.full(theta.shape, np.nan)
        for c in active:
            self.calls[c] += 1
            value[c], gradient[c] = self.functions[c](theta[c].copy())
        return value, gradient


def quadratic(rng, d, condition=1e3):
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    A, b = Q * np.geomspace(1, condition, d) @ Q.T, rng.normal(size=d)
    return (lambda x: (0.5 * x @ A @ x - b @ x, A @ x - b)), np.linalg.solve(A, b)


def logistic(rng, n, d, ridge=0.01):
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(float)

    def f(w):
        z = X @ w
        p = 1.0 / (1.0 + np.exp(-z))
        loss = np.mean(np.logaddexp(0, z) - y * z)
        return loss + ridge * w @ w, X.T @ (p - y) / n + 2 * ridge * w

    return f, X, y


def alone(f, start, l1=None, **options):
    return lbfgs(Functions([f], len(start), l1), start[None], **options)


@given(st.integers(1, 12), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_quadratics(d, seed):
    rng = np.random.default_rng(seed)
    f, solution = quadratic(rng, d)
    end = alone(f, rng.normal(size=d), max_iter=2000, tol=1e-9, ftol=0.0)
    assert end.grad_norm[0] == np.abs(f(end.theta[0])[1]).max()
    assert end.value[0] == f(end.theta[0])[0]
    np.testing.assert_allclose(end.theta[0], solution, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_logistic_against_scipy(seed):
    rng = np.random.default_rng(seed)
    f, _, _ = logistic(rng, 80, 5)
    end = alone(f, rng.normal(size=5), **TIGHT)
    peer = minimize(f, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert end.converged.all() and end.value[0] == pytest.approx(peer.fun, abs=1e-12)
    np.testing.assert_allclose(end.theta[0], peer.x, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("d", [2, 5, 10])
def test_rosenbrock(d):
    f = lambda x: (rosen(x), rosen_der(x))  # noqa: E731
    end = alone(f, np.full(d, -0.9), **TIGHT)
    peer = minimize(rosen, np.full(d, -0.9), jac=rosen_der, method="L-BFGS-B")
    assert end.converged.all()
    assert np.abs(rosen_der(end.theta[0])).max() < 1e-6
    if d == 2:  # with more variables there is a second minimum
        np.testing.assert_allclose(end.theta[0], 1.0, atol=1e-6)
        assert end.n_eval <= 2 * peer.nfev + 20


def test_problems_side_by_side_are_as_alone():
    rng = np.random.default_rng(3)
    d = 6
    functions = [quadratic(rng, d)[0], logistic(rng, 50, d)[0], quadratic(rng, d, 1e6)[0]]
    functions.append(lambda x: (rosen(x), rosen_der(x)))
    starts, l1 = rng.normal(size=(4, d)), np.array([0, 0.01, 0.0, 0.02, 0.0, 0.3])
    for weights in (np.zeros(d), l1):
        options = {"max_iter": 150, "tol": 1e-8, "ftol": 1e-12}
        objective = Functions(functions, d, weights)
        together = lbfgs(objective, starts, **options)
        assert together.n_eval == objective.calls.max() < 151
        for c, f in enumerate(functions):
            one = alone(f, starts[c], weights, **options)
            for name in ("theta", "value", "grad_norm", "n_iter", "converged"):
                np.testing.assert_array_equal(getattr(one, name)[0], getattr(together, name)[c])
            assert one.n_eval == objective.calls[c]  # a problem that is done costs no more


def test_start_is_left_alone_and_integers_are_taken():
    start = np.array([[3, -4]])
    end = alone(lambda x: (x @ x, 2 * x), start[0], tol=1e-12)
    assert (start == [[3, -4]]).all() and np.abs(end.theta).max() < 1e-12


def test_at_the_minimum_nothing_moves():
    end = alone(lambda x: (x @ x, 2 * x), np.zeros(3))
    assert end.converged.all() and end.n_iter[0] == 0 and end.n_eval == 1


def test_stops_at_max_iter_with_the_best_so_far():
    f = lambda x: (rosen(x), rosen_der(x))  # noqa: E731
    values = [alone(f, np.array([-1.2, 1.0]), max_iter=k).value[0] for k in range(1, 30)]
    assert values[0] == pytest.approx(rosen([-1.2, 1.0]))
    assert (np.diff(values) <= 1e-12).all() and values[-1] < 0.1 * values[0]
    end = alone(f, np.array([-1.2, 1.0]), max_iter=5)
    assert not end.converged[0] and end.n_eval == 5


def test_ftol_stops_early():
    f = quadratic(np.random.default_rng(0), 30, 1e6)[0]
    loose, tight = (alone(f, np.ones(30), ftol=t, tol=0.0, max_iter=3000) for t in (1e-3, 1e-13))
    assert loose.converged[0] and loose.n_eval < tight.n_eval


def ended(f, start, options):
    """An end, and which of its criteria hold there: its gradient, its last two steps."""
    values = []

    def told(x):
        value, gradient = f(x)
        values.append(value)
        return value, gradient

    end = alone(told, start, **options)
    low = np.unique(np.minimum.accumulate(values))  # of accepted steps; the least first
    small = np.abs(f(end.theta[0])[1]).max() <= options["tol"]
    flat = len(low) > 2 and (np.diff(low[:3]) <= options["ftol"] * np.abs(low[:2])).all()
    return end, small, flat


def test_converged_means_that_a_criterion_holds():
    seen = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        for f, d in ((quadratic(rng, 8, 1e2)[0], 8), (logistic(rng, 80, 5, 1e-3)[0], 5)):
            for tol, ftol, most in ((1e-5, 0.0, 2000), (0.0, 1e-6, 2000), (1e-9, 1e-12, 12)):
                options = {"tol": tol, "ftol": ftol, "max_iter": most}
                end, small, flat = ended(f, rng.normal(size=d), options)
                assert end.converged[0] == (small or flat)
                assert end.converged[0] or end.n_eval == most
                seen.add((bool(end.converged[0]), bool(small), bool(flat)))
    assert {(True, True, False), (True, False, True), (False, False, False)} <= seen


def test_a_wall_of_infinities_is_backed_away_from():
    def f(x):
        if x[0] >= 1:
            return np.inf, np.full(1, np.nan)
        return -np.log(1 - x[0]) - 20 * x[0], np.array([1 / (1 - x[0]) - 20])

    end = alone(f, np.array([-30.0]), **TIGHT)
    assert end.theta[0, 0] == pytest.approx(0.95, abs=1e-8)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.005])
@pytest.mark.parametrize("seed", range(2))
def test_lasso(alpha, seed):
    rng = np.random.default_rng(seed)
    n, d = 60, 10
    X = rng.normal(size=(n, d))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=n)

    def f(w):
        r = X @ w - y
        return 0.5 * r @ r / n, X.T @ r / n

    end = alone(f, rng.normal(size=d), np.full(d, alpha), **TIGHT)
    peer = Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(end.theta[0], peer.coef_, atol=1e-6)
    assert ((end.theta[0] == 0) == (peer.coef_ == 0)).all()
    assert end.value[0] == pytest.approx(f(peer.coef_)[0] + alpha * np.abs(peer.coef_).sum())


def test_curvature_whose_square_vanishes_says_nothing():
    """A loss that perfect separation has all but ended: 1e-170 squared is zero."""
    end = alone(lambda x: (1e-170 * x @ x, 2e-170 * x), np.ones(1), l1=np.full(1, 0.1))
    assert end.converged[0] and end.theta[0, 0] == 0.0


@pytest.mark.parametrize("common", [0.0, 0.9])
def test_an_elastic_net_of_more_columns_than_rows(common):
    """Within the 500 evaluations that a fit has, and with the zeros of the optimum."""
    rng, n, p, l1, ridge = np.random.default_rng(2), 60, 100, 0.01, 0.01
    X = rng.normal(size=(n, p)) + common * rng.normal(size=(n, 1))
    y = X[:, :5] @ rng.normal(size=5) + 0.5 * rng.normal(size=n)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()

    def f(w):
        r = X @ w - y
        return r @ r / n + ridge * w @ w, 2 * X.T @ r / n + 2 * ridge * w

    one = alone(f, np.zeros(p), l1=np.full(p, l1), max_iter=500, tol=1e-8, ftol=1e-13)
    alpha = 0.5 * l1 + ridge
    how = {"fit_intercept": False, "tol": 1e-14, "max_iter": 100_000}
    reference = CoordinateDescent(alpha=alpha, l1_ratio=0.5 * l1 / alpha, **how).fit(X, y).coef_
    assert one.converged.all()
    np.testing.assert_allclose(one.theta[0], reference, atol=1e-5)
    assert ((one.theta[0] == 0.0) == (reference == 0.0)).all()


def test_l1_logistic_with_a_free_intercept():
    rng = np.random.default_rng(5)
    n, d, strength = 120, 8, 0.02
    X = rng.normal(size=(n, d))
    y = (X[:, 0] - 0.5 * X[:, 1] + 0.7 + rng.normal(size=n) > 0).astype(float)
    A = np.column_stack([np.ones(n), X])

    def f(w):
        z = A @ w
        return np.mean(np.logaddexp(0, z) - y * z), A.T @ (1 / (1 + np.exp(-z)) - y) / n

    l1 = np.r_[0.0, np.full(d, strength)]
    end = alone(f, np.zeros(d + 1), l1, **TIGHT)
    options = {"trim_mode": "off", "acc": 1e-14, "maxiter": 10_000, "disp": False}
    peer = sm.Logit(y, A).fit_regularized(alpha=n * l1, **options)
    np.testing.assert_allclose(end.theta[0], peer.params, atol=1e-6)


def test_l1_zero_is_reached_and_left():
    f = lambda x: ((x[0] - 1) ** 2, 2 * (x - 1))  # noqa: E731
    above, below = (alone(f, np.zeros(1), np.array([v])) for v in (2.0 + 1e-9, 1.0))
    assert above.theta[0, 0] == 0.0 and above.converged[0]
    assert below.theta[0, 0] == pytest.approx(0.5, abs=1e-6)
    across = alone(f, np.array([-5.0]), np.array([1.0]), **TIGHT)
    assert across.theta[0, 0] == pytest.approx(0.5, abs=1e-8)


def test_pseudo_slope():
    assert pseudo_slope(0.0, 0.5, 1.0) == 0.0 and pseudo_slope(0.0, -0.5, 1.0) == 0.0
    assert pseudo_slope(0.0, 2.0, 1.0) == 1.0 and pseudo_slope(0.0, -2.0, 1.0) == -1.0
    assert pseudo_slope(3.0, 0.5, 1.0) == 1.5 and pseudo_slope(-3.0, 0.5, 1.0) == -0.5


def test_elastic_net():
    share = np.array([0.0, 0.2, 0.0, 0.3, 0.5])
    net = ElasticNet.over(share, 0.6, 0.25)
    np.testing.assert_allclose(net.ridge, share * 0.6 * 0.75)
    np.testing.assert_allclose(net.l1, share * 0.6 * 0.25)


def test_add_ridge_touches_the_active_rows_alone():
    theta, ridge = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 2.0])
    value, gradient = np.zeros(2), np.zeros((2, 2))
    add_ridge(np.array([1]), theta, ridge, value, gradient)
    np.testing.assert_allclose(value, [0.0, 0.5 * 9 + 2 * 16])
    np.testing.assert_allclose(gradient, [[0, 0], [3.0, 16.0]])


class Scaled(Functions):
    scaled = True


def test_a_scaled_objective_stops_by_what_its_gradient_promises():
    """Half the squared gradient is what a quadratic with Hessian I has left to gain."""
    rng = np.random.default_rng(5)
    A = np.eye(8) + 0.05 * np.diag(rng.normal(size=8))
    f = lambda x: (1.0 + 0.5 * x @ A @ x, A @ x)  # noqa: E731
    start, ftol = rng.normal(size=8), 1e-4
    end = lbfgs(Scaled([f], 8), start[None], tol=0.0, ftol=ftol, max_iter=100)
    plain = alone(f, start, tol=0.0, ftol=ftol, max_iter=100)
    assert end.converged[0] and end.value[0] - 1.0 <= 2 * ftol
    assert end.n_eval < plain.n_eval


def test_in_a_race_the_hopeless_leave_and_the_winner_is_the_same():
    rng = np.random.default_rng(6)
    d = 6
    low, solution = quadratic(rng, d, 30.0)
    high = lambda x: (low(x)[0] + 100.0, low(x)[1])  # noqa: E731
    starts = rng.normal(size=(2, d))
    options = {"tol": 1e-9, "ftol": 0.0, "max_iter": 500}
    alone_, raced = Scaled([low, high], d), Scaled([low, high], d)
    both, race = lbfgs(alone_, starts, **options), lbfgs(raced, starts, **options, best_only=True)
    assert both.converged.all() and race.converged.tolist() == [True, False]
    assert raced.calls[1] < alone_.calls[1]
    np.testing.assert_array_equal(race.theta[0], both.theta[0])
    np.testing.assert_allclose(race.theta[0], solution, atol=1e-6)


def test_without_scaling_nobody_leaves_a_race():
    rng = np.random.default_rng(7)
    functions = [quadratic(rng, 6, 1e6)[0], quadratic(rng, 6, 10.0)[0]]
    starts, options = rng.normal(size=(2, 6)), {"tol": 1e-8, "ftol": 0.0, "max_iter": 3000}
    ends = [
        lbfgs(Functions(functions, 6), starts, **options, best_only=race) for race in (False, True)
    ]
    np.testing.assert_array_equal(ends[0].theta, ends[1].theta)


def test_in_a_race_one_that_may_still_win_goes_on():
    """It begins far above the other's minimum, and ends below it."""
    f = lambda x: (0.5 * x @ x, x)  # noqa: E731
    g = lambda x: (0.5 * (x - 50.0) @ (x - 50.0) - 1.0, x - 50.0)  # noqa: E731
    end = lbfgs(Scaled([f, g], 3), np.zeros((2, 3)) + 1e-3, tol=1e-9, best_only=True)
    assert end.converged[1] and end.value[1] == pytest.approx(-1.0)


def test_ten_further_steps_promise_no_more_than_the_resolution():
    """The promise is kept on functions whose features are correlated more, and less."""
    for seed, condition in ((1, 1e4), (2, 1e2), (3, 3.0)):
        f = quadratic(np.random.default_rng(seed), 60, condition)[0]
        start = np.random.default_rng(seed + 9).normal(size=60)
        tight = {"tol": 0.0, "ftol": 0.0}
        for resolution in (1e-2, 1e-4):
            end = alone(f, start, **tight, resolution=resolution, max_iter=3000)
            later = alone(f, start, **tight, max_iter=end.n_eval + 10)
            assert end.converged[0] and end.n_eval >= 7
            assert 0.0 <= end.value[0] - later.value[0] <= 2.0 * resolution


def test_near_the_end_of_a_scaled_objective_no_series_of_steps_is_awaited():
    """The quadratic model promises ten times less than the resolution, and is right."""
    tight = {"tol": 0.0, "ftol": 0.0}
    for seed in range(5):
        f, solution = quadratic(np.random.default_rng(seed), 60, 2.0)
        start = np.random.default_rng(seed + 9).normal(size=60)
        plain = alone(f, start, **tight, resolution=1e-2)
        end = lbfgs(Scaled([f], 60), start[None], **tight, resolution=1e-2)
        assert end.converged[0] and 3 <= end.n_eval < plain.n_eval
        assert 0.0 <= end.value[0] - f(solution)[0] <= 1e-2


@pytest.mark.parametrize("damping", [0.01, 0.1])
def test_coordinates_in_which_a_damped_hessian_is_the_identity(damping):
    H, theta = np.diag([4.0, 1.0, 0.0]) + 0.5, np.array([[1.0, -2.0, 3.0]])
    u = Preconditioned(Functions([], 3), H[None], damping).to(theta)
    damped = H + damping * 4.5 * np.eye(3)
    assert u[0] @ u[0] == pytest.approx(theta[0] @ damped @ theta[0])


def test_rounded_points_forget_rounding_errors():
    """After many steps of a function that is not convex; without spacing the ends differ."""
    rng = np.random.default_rng(4)
    W = rng.normal(size=(40, 12))

    def waves(x):
        z = W @ x
        return 0.05 * x @ x + np.sin(3 * z).sum() / 40, 0.1 * x + 3 * W.T @ np.cos(3 * z) / 40

    start = rng.normal(size=(1, 12))
    noisy = lambda x: tuple(v * (1 + 1e-14 * rng.normal()) for v in waves(x))  # noqa: E731
    ends = [
        lbfgs(Functions([f], 12), start, max_iter=300, ftol=0.0, tol=1e-9, spacing=SPACING).theta
        for f in (waves, noisy, noisy)
    ]
    np.testing.assert_array_equal(ends[1], ends[0])
    np.testing.assert_array_equal(ends[2], ends[0])


@pytest.mark.parametrize("slope", [1.0, 1e9])
def test_a_search_on_rounded_points_ends_where_no_point_is_lower(slope):
    """The slope promises a gain that rounded points do not show."""
    f = lambda x: (1.0 + x @ x, np.full(3, -slope))  # noqa: E731
    end = lbfgs(Functions([f], 3), np.zeros((1, 3)), spacing=SPACING)
    assert end.converged[0] and end.n_eval < 60
    np.testing.assert_array_equal(end.theta, 0.0)


@pytest.mark.parametrize("place", [0.55, 0.7, 0.91])
def test_the_nearest_rounded_point_is_tried_too(place):
    least = place * SPACING
    f = lambda x: (50.0 * ((x - least) @ (x - least)), 100.0 * (x - least))  # noqa: E731
    end = lbfgs(Functions([f], 1), np.zeros((1, 1)), ftol=0.0, tol=0.0, spacing=SPACING)
    assert end.converged[0] and end.theta[0, 0] == SPACING


def test_points_within_bounds_are_rounded():
    asked = []

    def function(x):
        asked.append(x)
        return rosen(x), rosen_der(x)

    end = bounded(function, np.array([-1.3, 0.7]), np.array([-2.0, -2.0]), spacing=SPACING)
    np.testing.assert_allclose(end.theta[0], 1.0, atol=1e-3)
    points = np.array(asked)[:, 0] / SPACING
    np.testing.assert_array_equal(points, np.rint(points))


@pytest.mark.parametrize("value", [np.nan, 1.0])
@pytest.mark.parametrize("past", [0.0, -1.0])
def test_a_search_that_meets_nan_does_not_converge(value, past):
    """NaN everywhere, or beyond a wall in front of the minimum at x = 2."""

    def f(x):
        if x[0] >= past:
            return value, np.full(1, np.nan)
        return (x[0] - 2.0) ** 2, np.array([2.0 * (x[0] - 2.0)])

    start = np.array([-0.5])
    for l1 in (None, np.array([0.1])):
        end = alone(f, start, l1, **TIGHT)
        assert not end.converged[0] and end.theta[0, 0] < 0.0
    end = bounded(f, start, np.array([-1.0]), tol=1e-8, ftol=0.0)
    assert not end.converged[0] and end.theta[0, 0] < 0.0
    if past < -0.5:
        assert end.value[0] == np.inf and end.theta[0, 0] == -0.5


def test_in_a_race_a_start_that_is_nan_loses():
    def nan(x):
        return np.nan, np.full(3, np.nan)

    f = quadratic(np.random.default_rng(0), 3)[0]
    functions = Functions([nan, f], 3)
    end = lbfgs(functions, np.ones((2, 3)), resolution=1e-12, best_only=True)
    assert end.converged.tolist() == [False, True] and end.value.argmin() == 1
