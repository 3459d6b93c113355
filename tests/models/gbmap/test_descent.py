"""The compiled loops of few rows minimize as `solve.lbfgs` does, and Newton's holds still."""

import numpy as np
import pytest

import lodim as ld
from lodim.design.design import Design
from lodim.engine import tiles
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap import boost, small_data
from lodim.models.gbmap import objective as objectives
from lodim.models.gbmap.cpu_kernels import SOFTPLUS, Form
from lodim.models.gbmap.newton import Problem
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


def by_python(objective):
    """The same objective without its compiled loop."""
    objective.compiled_loop = None
    return objective


def by_newton(objective, starts, max_iter, tol, ftol=0.0):
    """The Minimum of an objective's learners, followed by Newton's method."""
    theta, (beta, _, loss) = starts.copy(), objective._form
    y, score, weight = objective._columns
    rest = beta, loss, objective._ridge, objective.precision, max_iter, tol
    follow = small_data.follower(objective._X, weight, Problem(*rest))
    ends = np.array(follow(y, score, theta, objective.sign, ftol, False))
    value, grad_norm, n_iter, passes, converged = ends.T
    return Minimum(theta, value, grad_norm, n_iter, converged == 1.0, passes.max())


STOP = {"max_iter": 200, "tol": 1e-9, "ftol": 1e-13}


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_compiled_loop_ends_where_lbfgs_does(loss, l1_ratio):
    compiled, start = objective(loss, l1_ratio=l1_ratio)
    assert compiled.compiled_loop is not None
    end = lbfgs(compiled, start, **STOP)
    other = lbfgs(by_python(objective(loss, l1_ratio=l1_ratio)[0]), start, **STOP)
    assert end.converged.all() and other.converged.all()
    np.testing.assert_allclose(end.value, other.value, rtol=1e-10)
    np.testing.assert_allclose(end.theta, other.theta, atol=2e-5)
    gradient = by_python(objective(loss)[0])(end.theta, np.arange(3))[1]
    if l1_ratio == 0.0:
        assert np.abs(gradient).max() < 1e-6


def test_compiled_loop_in_scaled_coordinates_ends_where_lbfgs_does():
    compiled, start = objective(LOGISTIC)
    H = compiled.hessian(start)
    scaled = Preconditioned(compiled, H)
    plain = Preconditioned(by_python(objective(LOGISTIC)[0]), H)
    assert scaled.compiled_loop is not None and plain.compiled_loop is None
    end, other = (lbfgs(o, o.to(start), **STOP) for o in (scaled, plain))
    np.testing.assert_allclose(end.value, other.value, rtol=1e-10)
    np.testing.assert_allclose(scaled.back(end.theta), plain.back(other.theta), atol=2e-5)


@pytest.mark.parametrize("curved", [False, True])
def test_compiled_loop_in_units_ends_where_lbfgs_does(curved):
    compiled, start = objective(LOGISTIC, l1_ratio=0.0 if curved else 0.5)
    plain, unit = by_python(objective(LOGISTIC, l1_ratio=0.0 if curved else 0.5)[0]), np.ones(7)
    unit[2:] = 4.0 ** np.arange(-2.0, 3.0)
    pair = [Rescaled(o, unit) for o in (compiled, plain)]
    assert pair[0].compiled_loop is not None and pair[1].compiled_loop is None
    u = pair[0].to(start)
    np.testing.assert_array_equal(pair[0].back(u), start)
    if curved:
        H = pair[0].hessian(u)
        np.testing.assert_allclose(H, compiled.hessian(start) * unit * unit[:, None], rtol=1e-12)
        both = [Preconditioned(o, H) for o in pair]
        ends = [lbfgs(o, o.to(u), **STOP) for o in both]
        found = [o.back(s.back(e.theta)) for o, s, e in zip(pair, both, ends, strict=True)]
    else:
        ends = [lbfgs(o, u, **STOP) for o in pair]
        found = [o.back(e.theta) for o, e in zip(pair, ends, strict=True)]
    np.testing.assert_allclose(ends[0].value, ends[1].value, rtol=1e-10)
    np.testing.assert_allclose(*found, atol=2e-5)
    raw = lbfgs(compiled, found[0], **STOP)  # the same problem in other coordinates
    np.testing.assert_allclose(raw.value, ends[0].value, rtol=1e-10)


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
    compiled, start = objective(loss)
    end = by_newton(compiled, start, 200, 1e-9)
    assert end.converged.all() and end.grad_norm.max() <= 1e-9
    assert (end.n_iter < 80).all() and end.n_eval < 160
    value, gradient = by_python(objective(loss)[0])(end.theta, np.arange(3))
    np.testing.assert_allclose(end.value, value, rtol=1e-12)
    assert np.abs(gradient).max() < 1e-8
    # From its end L-BFGS finds nothing better, and along no direction does the value fall.
    other = lbfgs(by_python(objective(loss)[0]), end.theta, **STOP)
    np.testing.assert_allclose(other.value, end.value, rtol=1e-10)
    directions = np.random.default_rng(0).normal(size=(20, *start.shape))
    for way in directions:
        assert (compiled(end.theta + 1e-3 * way, np.arange(3))[0] > value).all()


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
    compiled, start = objective(LOGISTIC)
    end = by_newton(compiled, start, 4, 1e-12)
    assert not end.converged.any() and end.n_eval <= 5
    assert (end.value <= compiled(start, np.arange(3))[0]).all()


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
    used = []
    for module, name in ((boost, "fit_learner"), (objectives, "descend")):
        own = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, n=name, f=own: used.append(n) or f(*a))
    cars = ld.data("autompg").dropna()
    fit = ld.gbmap("mpg ~ weight + model_year", cars, m=1, lambda_=0.1, **extra)
    assert set(used) == ({"descend"} if extra else {"fit_learner"})
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


def test_many_rows_keep_the_loop_that_shares_passes_among_threads():
    many = objective(SQUARED, n=5000)[0]
    assert many.compiled_loop is None


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_share_learners_and_leave_their_bits(monkeypatch, threads):
    """Each learner of one block is followed by itself, in slices that several threads take."""
    monkeypatch.setattr(objectives, "SHARED", 2)
    (one, start), (shared, _) = (objective(LOGISTIC, n=400, p=70, threads=t) for t in (1, threads))
    followed, own = [], objectives.descend
    monkeypatch.setattr(objectives, "descend", lambda *a: followed.append(len(a[4])) or own(*a))
    ends = [lbfgs(f, start, **STOP) for f in (one, shared)]
    assert followed[0] == 3 and len(followed) == 1 + min(threads, 3)
    H = [f.hessian(start) for f in (one, shared)]
    scaled = [lbfgs(s, s.to(start), **STOP) for s in map(Preconditioned, (one, shared), H)]
    for alone, together in (ends, scaled):
        for name, values in vars(alone).items():
            np.testing.assert_array_equal(values, getattr(together, name))
    np.testing.assert_array_equal(*H)


def test_passes_and_steps_are_counted_as_by_lbfgs():
    compiled, start = objective(SQUARED)
    stop = STOP | {"max_iter": 7}
    end = lbfgs(compiled, start, **stop)
    other = lbfgs(by_python(objective(SQUARED)[0]), start, **stop)
    assert end.n_eval == other.n_eval == 7
    np.testing.assert_array_equal(end.n_iter, other.n_iter)
    assert not end.converged.any()
    np.testing.assert_allclose(end.value, other.value, rtol=1e-9)


def test_fit_of_few_rows_is_that_of_the_same_rows_many_times():
    """The loop of few rows and that of many meet in the same learners: weights are what counts."""
    cars = ld.data("autompg").dropna()[["mpg", "weight", "model_year", "horsepower"]]
    few = ld.gbmap("mpg ~ .", cars, m=2, lambda_=0.1)
    many = ld.gbmap("mpg ~ .", cars.loc[cars.index.repeat(11)], m=2, lambda_=0.1)
    assert len(cars) <= 4096 < 11 * len(cars)
    np.testing.assert_allclose(few.predict(cars), many.predict(cars), rtol=1e-4)
