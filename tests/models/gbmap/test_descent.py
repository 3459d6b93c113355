"""Minima of few rows: the same in other coordinates, and by Newton's method."""

from unittest.mock import Mock

import numpy as np
import pytest

import lodim as ld
from lodim.design.design import Design
from lodim.engine import tiles
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap import boost, small_data, starts
from lodim.models.gbmap import objective as objectives
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form
from lodim.models.gbmap.newton import Problem, newton
from lodim.models.gbmap.objective import BoostObjective
from lodim.solve.lbfgs import Minimum, lbfgs
from lodim.solve.objective import ElasticNet, Preconditioned, Rescaled

pytestmark = pytest.mark.long


def objective(loss, n=300, p=5, l1_ratio=0.0, threads=1):
    """Three learners of signs 1, -1, 1 beside each other, and their starts."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p))
    y = np.abs(X[:, 0]) + 0.3 * rng.normal(size=n)
    y = y if loss == SQUARED else (y > 0.7).astype(float)
    Z = tiles.pack(X)
    rows = (tiles.pad(v, len(Z)) for v in (y, 0.1 * X[:, 1], np.full(n, 1.0 / n)))
    penalty = ElasticNet.over(np.r_[0.0, 0.0, np.full(p, 1.0 / p)], 0.05, l1_ratio)
    signs = np.array([1.0, -1.0, 1.0])
    made = BoostObjective(Z, *rows, signs, Form(3.0, SOFTPLUS, loss), penalty, threads)
    return made, 0.5 * rng.normal(size=(3, 2 + p))


def by_newton(objective, starts, max_iter, tol, ftol=0.0):
    """The Minimum of an objective's learners, followed by Newton's method."""
    theta, (beta, _, loss) = starts.copy(), objective._form
    y, score, weight = objective._columns
    unit = np.ones(theta.shape[1])
    rest = beta, loss, objective._ridge, unit, objective.precision, max_iter, tol
    problem = Problem(objective._X, weight, *rest)
    ends = newton(problem, y, score, theta, objective.sign, ftol, False)
    value, grad_norm, n_iter, passes, converged = ends.T
    return Minimum(theta, value, grad_norm, n_iter, converged == 1.0, passes.max())


STOP = {"max_iter": 200, "tol": 1e-9, "ftol": 1e-13}


@pytest.mark.parametrize("curved", [False, True])
def test_other_coordinates_have_the_same_minimum(curved):
    plain, start = objective(LOGISTIC, l1_ratio=0.0 if curved else 0.5)
    unit = np.r_[1.0, 1.0, 4.0 ** np.arange(-2.0, 3.0)]
    rescaled = Rescaled(plain, unit)
    u = rescaled.to(start)
    np.testing.assert_array_equal(rescaled.back(u), start)
    if curved:
        H = rescaled.hessian(u)
        np.testing.assert_allclose(H, plain.hessian(start) * unit * unit[:, None], rtol=1e-12)
        scaled = Preconditioned(rescaled, H)
        end = lbfgs(scaled, scaled.to(u), **STOP)
        found = rescaled.back(scaled.back(end.theta))
    else:
        end = lbfgs(rescaled, u, **STOP)
        found = rescaled.back(end.theta)
    assert end.converged.all()
    direct = lbfgs(plain, found, **STOP)
    np.testing.assert_allclose(direct.value, end.value, rtol=1e-10)


@pytest.mark.parametrize(("p", "l1_ratio"), [(30, 0.2), (30, 1.0), (80, 0.0)])
def test_columns_of_any_scale_converge(p, l1_ratio):
    rng = np.random.default_rng(17)
    X = rng.normal(size=(400, p))
    y = np.maximum(X[:, 0] + 0.5 * X[:, 1], 0.0) - 0.7 * X[:, 2] + 0.5 * rng.normal(size=400)
    data = {f"x{k}": v for k, v in enumerate((X * 10.0 ** rng.uniform(-2.0, 2.0, p)).T)}
    how = {"m": 2, "lambda_": 0.002, "l1_ratio": l1_ratio, "standardize": False}
    fit = ld.gbmap("y ~ .", data | {"y": y}, **how)
    assert fit.converged and fit.log["n_eval"].max() < 400


def test_rare_levels_of_standardized_columns_keep_their_unit():
    """Rows that starts are drawn from hardly show them: the size of all rows is one."""
    rng = np.random.default_rng(3)
    data = {f"x{k}": rng.normal(size=12_000) for k in range(3)}
    data |= {f"d{k}": (rng.random(12_000) < 8e-4).astype(float) for k in range(14)}
    score = data["x0"] - np.maximum(data["x1"], 0.0) + 2.0 * sum(data[f"d{k}"] for k in range(7))
    data["y"] = (score + rng.logistic(size=12_000) > 0.0).astype(int)
    design, batch = Design.learn("y ~ .", data)
    np.testing.assert_array_equal(batch.size, 1.0)
    raw = Design.learn("y ~ .", data, standardize=False)[1]
    np.testing.assert_allclose(raw.size, design.scale)
    fit = ld.gbmap("y ~ .", data, m=2, lambda_=1e-4, threads=1)
    assert fit.converged and fit.log["n_eval"].max() < 400


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
def test_newton_ends_at_minima_within_rounding(loss):
    made, start = objective(loss)
    end = by_newton(made, start, 200, 1e-9)
    assert end.converged.all() and end.grad_norm.max() <= 1e-9
    assert (end.n_iter < 80).all() and end.n_eval < 160
    value, gradient = made(end.theta, np.arange(3))
    np.testing.assert_allclose(end.value, value, rtol=1e-12)
    assert np.abs(gradient).max() < 1e-8
    # From its end L-BFGS finds nothing better, and along no direction does the value fall.
    other = lbfgs(made, end.theta, **STOP)
    np.testing.assert_allclose(other.value, end.value, rtol=1e-10)
    directions = np.random.default_rng(0).normal(size=(20, *start.shape))
    for way in directions:
        assert (made(end.theta + 1e-3 * way, np.arange(3))[0] > value).all()


@pytest.mark.parametrize("b", [1.0, -1.0])
@pytest.mark.parametrize("beta", [1.0, 10.0])
def test_newton_soon_ends_at_a_line_where_that_is_best(b, beta):
    """Its intercept has no end, and what `a` makes good beside it lies along a curve."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(318, 6))
    X -= X.mean(axis=0)
    y = 0.03 * X @ rng.normal(size=6) + 0.3 * rng.normal(size=318)
    Z = tiles.pack(X)
    rows = (tiles.pad(v, len(Z)) for v in (y, np.zeros(318), np.full(318, 1.0 / 318)))
    penalty = ElasticNet.over(np.r_[0.0, 0.0, np.full(6, 1.0 / 6)], 1.8, 0.0)
    made = BoostObjective(Z, *rows, np.array([b]), Form(beta, SOFTPLUS, SQUARED), penalty, 1)
    start = np.r_[-0.1, 0.0, 0.05 * rng.normal(size=6)][None]
    end = by_newton(made, start, 500, 1e-8, 1e-12)
    A = X.T @ X / 318 + 0.3 * np.eye(6)
    line = np.linalg.solve(A, X.T @ (y - y.mean()) / 318)
    least = np.var(y) - line @ A @ line
    assert end.converged.all() and end.n_eval < 40
    np.testing.assert_allclose(end.value, least, rtol=1e-10)


def test_newton_says_where_it_was_cut_short():
    made, start = objective(LOGISTIC)
    end = by_newton(made, start, 4, 1e-12)
    assert not end.converged.any() and end.n_eval <= 5
    assert (end.value <= made(start, np.arange(3))[0]).all()


@pytest.mark.parametrize("wrong", [np.nan, 1e200])
def test_newton_does_not_converge_if_derivatives_are_not_finite(wrong):
    made, start = objective(SQUARED)
    made._columns[0][0, 0] = wrong  # a response whose square overflows
    end = by_newton(made, start, 200, 1e-9)
    assert not end.converged.any()
    np.testing.assert_array_equal(end.theta, start)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_a_boost_whose_loss_is_nan_gives_a_warning(l1_ratio, monkeypatch):
    """Newton's method does not take an L1 penalty; L-BFGS does."""

    def no_newton(problem, responses, scores, theta, *rest):
        return np.tile([np.inf, np.inf, 0.0, 1.0, 0.0], (len(theta), 1))

    def losses(self, theta, active):
        return np.full(len(theta), np.nan), np.full(theta.shape, np.nan)

    monkeypatch.setattr(small_data, "newton", no_newton)
    monkeypatch.setattr(BoostObjective, "__call__", losses)
    how = {"m": 2, "lambda_": 0.1, "l1_ratio": l1_ratio, "refit": "none", "threads": 1}
    with pytest.warns(ld.ConvergenceWarning, match="gbmap did not converge in 1 of 1 boosts"):
        ld.gbmap("rings ~ length + height", ld.data("abalone")[:100], **how)


def test_iterations_count_from_the_start():
    """Those before starts are compared too: a boost that has come to its end by then says so."""
    log = ld.gbmap("mpg ~ .", ld.data("autompg"), m=3, lambda_=0.1).log
    assert log["converged"].all() and (log["n_iter"] > 1).all()
    assert (log["n_iter"] < log["n_eval"]).all()


def test_a_deep_fit_holds_still_under_rounding():
    """Forty boosts of 1,030 rows: by L-BFGS single predictions moved by a residual sd and more."""
    concrete = ld.data("concrete")
    rng = np.random.default_rng(101)
    noisy = concrete.assign(
        **{c: concrete[c] * (1 + 1e-12 * rng.standard_normal(len(concrete))) for c in concrete}
    )
    few = {"m": 40, "lambda_": 0.00155, "refit": "none", "control": {"reference_rows": 0}}
    one, two = (ld.gbmap("strength ~ .", df, **few) for df in (concrete, noisy))
    residual = concrete["strength"] - one.predict(concrete)
    assert np.abs(two.predict(concrete) - one.predict(concrete)).max() < 0.01 * residual.std()


@pytest.mark.parametrize("extra", [{}, {"l1_ratio": 0.5}, {"activation": "identity"}])
def test_the_summary_names_the_optimizer_that_was_used(monkeypatch, extra):
    newton, descent = Mock(side_effect=boost.fit_learner), Mock(side_effect=starts.lbfgs)
    monkeypatch.setattr(boost, "fit_learner", newton)
    monkeypatch.setattr(starts, "lbfgs", descent)
    cars = ld.data("autompg").dropna()
    fit = ld.gbmap("mpg ~ weight + model_year", cars, m=1, lambda_=0.1, **extra)
    assert (newton.called, descent.called) == (not extra, bool(extra))
    words = str(fit.summary())
    assert ("Newton's method" in words) == (not extra) and ("L-BFGS" in words) == bool(extra)


def test_the_summary_names_the_optimizer_of_all_rows_that_were_there(tmp_path):
    rng = np.random.default_rng(0)
    df = dict(zip("xy", rng.standard_normal((2, 4100)), strict=True))
    weights = (np.arange(4100) < 300).astype(float)  # few rows count, and all are passed over
    fit = ld.gbmap("y ~ x", df, m=1, lambda_=0.1, weights=weights)
    assert fit.n == 300
    fit.save(tmp_path / "few.lodim")
    for one in (fit, ld.load(tmp_path / "few.lodim")):
        assert "Optimizer: L-BFGS," in str(one.summary())


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_share_learners_and_leave_their_bits(monkeypatch, threads):
    """If all rows are in one block, threads share the learners."""
    monkeypatch.setattr(objectives, "SHARED", 2)
    (one, start), (shared, _) = (objective(LOGISTIC, n=400, p=70, threads=t) for t in (1, threads))
    used, own = set(), objectives.for_blocks
    monkeypatch.setattr(
        objectives, "for_blocks", lambda *a, **k: used.add(k["threads"]) or own(*a, **k)
    )
    ends = [lbfgs(f, start, **STOP) for f in (one, shared)]
    assert used == {1, threads}
    H = [f.hessian(start) for f in (one, shared)]
    scaled = [lbfgs(s, s.to(start), **STOP) for s in map(Preconditioned, (one, shared), H)]
    for alone, together in (ends, scaled):
        for name, values in vars(alone).items():
            np.testing.assert_array_equal(values, getattr(together, name))
    np.testing.assert_array_equal(*H)


def test_fit_of_few_rows_is_that_of_the_same_rows_many_times():
    """The loop of few rows and that of many meet in the same learners: weights are what counts."""
    cars = ld.data("autompg").dropna()[["mpg", "weight", "model_year", "horsepower"]]
    few = ld.gbmap("mpg ~ .", cars, m=2, lambda_=0.1)
    many = ld.gbmap("mpg ~ .", cars.loc[cars.index.repeat(11)], m=2, lambda_=0.1)
    assert len(cars) <= 4096 < 11 * len(cars)
    np.testing.assert_allclose(few.predict(cars), many.predict(cars), rtol=1e-4)
