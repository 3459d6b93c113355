"""Monotone effects of costnet: the path and refits against CVXPY with signs, and the guarantee."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import some_long
from lodim import family as families
from lodim.design.batch import Batch
from lodim.engine import tiles
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.reference import ConicSolver
from lodim.models.costnet.penalty.solvers import lambda_max, penalty_path
from lodim.models.costnet.search.moves import Moves, Search
from lodim.models.costnet.search.refit import Refits
from lodim.models.costnet.search.rows import SearchData
from lodim.prices.network import unfold
from models.costnet.exhaustive import exhaustive
from models.costnet.members import members_of

# Clarabel is asked for more digits than it can always give; what it gives is compared.
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
FAMILIES = ("gaussian", "binomial", "poisson", "gamma")
SHAPES = {
    "lasso": [()] * 6,
    "tree": [(), (0,), (0,), (), (3,), (4,)],
    "two parents": [(), (), (0, 1), (0, 1), (0,), ()],
}
SIGNS = (1, -1, 0, 1, -1, 1)
TIGHT = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-13) | {"max_iter": 500}
WAYS = {"a": "increasing", "b": "decreasing", "o": "increasing"}


def problem(name, n=120, seed=0):
    """Rows whose free fit has wrong signs in columns 1, 3 and 4 of SIGNS."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) @ (np.eye(6) + 0.3 * rng.standard_normal((6, 6)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    f = 0.5 * X @ [1.0, 0.6, -0.5, -0.6, 0.4, 0.5]
    y = {
        "gaussian": lambda: f + 0.5 * rng.standard_normal(n),
        "binomial": lambda: (f + 0.5 * rng.logistic(size=n) > 0).astype(float),
        "poisson": lambda: rng.poisson(np.exp(1.0 + f)).astype(float),
        "gamma": lambda: rng.gamma(2.0, np.exp(f)),
    }[name]()
    batch = Batch(tiles.pack(X), y, rng.random(n), None, pd.RangeIndex(n), np.arange(n))
    return X, batch, families.make(name, 2)


def network_of(parents, cost=None):
    m = len(parents)
    cost = np.ones(m) if cost is None else cost
    return unfold([f"v{i}" for i in range(m)], cost, parents, [(i,) for i in range(m)])


def loss_of(name, y, f):
    """Half the deviance of rows, constants apart."""
    return {
        "gaussian": lambda: 0.5 * cp.square(y - f),
        "binomial": lambda: cp.logistic(f) - cp.multiply(y, f),
        "poisson": lambda: cp.exp(f) - cp.multiply(y, f),
        "gamma": lambda: f + cp.multiply(y, cp.exp(-f)),
    }[name]()


def peer(X, batch, name, groups=None, lam=0.0):
    """Coefficients by CVXPY, of the given signs and with a penalty of norms."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    objective = batch.weight @ loss_of(name, batch.y, X @ w + b)
    if groups is not None:
        pairs = zip(groups.cost, members_of(groups), strict=True)
        objective += lam * sum(cost * cp.norm(w[members]) for cost, members in pairs)
    signs = cp.multiply(SIGNS[: X.shape[1]], w) >= 0.0
    cp.Problem(cp.Minimize(objective), [signs]).solve(solver=cp.CLARABEL, **TIGHT)
    return w.value


def slopes(X, batch, family, intercept, coef):
    """Minus the slopes of half the mean deviance in the coefficients."""
    mean = family.mean(intercept + X @ coef)
    rest = (batch.y - mean) / (mean if family.name == "gamma" else 1.0)
    return X.T @ (batch.weight * rest)


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_path_is_that_of_cvxpy_with_signs(name, shape):
    X, batch, family = problem(name)
    groups = Groups.from_network(network_of(SHAPES[shape]), p=6, monotone=SIGNS)
    lambdas = lambda_max(batch, family, groups) * np.array([1.0, 0.5, 0.1, 0.01])
    path = penalty_path(batch, family, groups, lambdas, tol=1e-13)
    assert path.converged.all() and not path.coef[0].any()
    assert (np.array(SIGNS) * path.coef[:, :, 0] >= 0.0).all()
    for lam, coef in zip(lambdas[1:], path.coef[1:, :, 0], strict=True):
        np.testing.assert_allclose(coef, peer(X, batch, name, groups, lam), atol=1e-5)
    free = penalty_path(batch, family, Groups.from_network(network_of(SHAPES[shape]), p=6), lambdas)
    assert (np.array(SIGNS) * free.coef[-1, :, 0] < -1e-3).any()  # signs do something here


@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_meet_the_conditions_of_karush_kuhn_and_tucker(name):
    X, batch, family = problem(name)
    sign, cost = np.array(SIGNS), np.arange(1.0, 7.0)
    lasso = Groups.weighted_lasso(cost, monotone=SIGNS)
    lam = 0.05 * lambda_max(batch, family, lasso)
    path = penalty_path(batch, family, lasso, [lam], tol=1e-14)
    w = path.coef[0, :, 0]
    slope, on = slopes(X, batch, family, path.intercept[0], path.coef[0]), w != 0.0
    np.testing.assert_allclose(slope[on], lam * cost[on] * np.sign(w[on]), atol=1e-7)
    pull = np.where(sign == 0, np.abs(slope), sign * slope)
    assert (pull[~on] <= lam * cost[~on] + 1e-9).all()
    assert 0 < on.sum() < 6 and (sign * slope < -lam * cost).any()


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_solver_cvxpy_has_the_signs(name):
    _, batch, family = problem(name)
    groups = Groups.from_network(network_of(SHAPES["tree"]), p=6, monotone=SIGNS)
    lambdas = lambda_max(batch, family, groups) * np.array([0.5, 0.05])
    one = penalty_path(batch, family, groups, lambdas, tol=1e-10)
    two = penalty_path(batch, family, groups, lambdas, make_solver=ConicSolver)
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-4)
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-7)


def test_free_columns_with_a_sign_are_penalized_as_the_cheapest():
    X, batch, family = problem("gaussian")
    cost = np.array([0.0, 2.0, 0.0, 5.0, 2.0, 3.0])
    groups = Groups.from_network(network_of(SHAPES["lasso"], cost), p=6, monotone=SIGNS)
    assert sorted(groups.cost) == [2.0, 2.0, 2.0, 3.0, 5.0]
    assert groups.free.tolist() == [False, False, True, False, False, False]
    lam = 0.1 * lambda_max(batch, family, groups)
    path = penalty_path(batch, family, groups, [lam], tol=1e-13)
    np.testing.assert_allclose(
        path.coef[0, :, 0], peer(X, batch, "gaussian", groups, lam), atol=1e-5
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_refits_are_those_of_cvxpy_with_signs(name):
    for seed in range(3):
        X, batch, family = problem(name, seed=seed)
        refits = Refits(SearchData.from_batch(batch, family, monotone=SIGNS))
        fit = refits(np.arange(6))
        np.testing.assert_allclose(fit.coef[:, 0], peer(X, batch, name), atol=1e-5)
        assert (np.array(SIGNS) * fit.coef[:, 0] >= 0.0).all()
        slope, on = slopes(X, batch, family, fit.intercept, fit.coef), fit.coef[:, 0] != 0.0
        np.testing.assert_allclose(slope[on], 0.0, atol=1e-6)
        assert (np.array(SIGNS) * slope <= 1e-6).all()
        f = fit.intercept + X @ fit.coef
        assert fit.deviance == pytest.approx(batch.weight @ family.deviance(batch.y, f), rel=1e-9)
        held = ~fit.coef.any(axis=1)
        assert held.any() and set(refits.open(np.arange(6))) == set(np.flatnonzero(~held))


def test_gains_of_moves_know_the_signs():
    """What a move to one more column promises is what its refit has, of the right sign or not."""
    _, batch, family = problem("gaussian")
    network = network_of(SHAPES["lasso"])
    search = Search(batch, family, network, np.inf, "deviance", monotone=SIGNS)
    used = np.array([True, False, False, False, False, False])
    state = search.state(used)
    moves = Moves(search, state, np.inf, drop=False)
    found = [search.state(moves.after(0, b)).value for b in range(moves.add.shape[0])]
    exact_or_not_better = np.isclose(moves.value[0], found, rtol=1e-9)
    assert exact_or_not_better.sum() >= 4
    assert np.isclose(moves.value[0], state.value).sum() > 1  # of a wrong sign nothing is gained


def test_the_best_subset_of_all():
    _, batch, family = problem("gaussian")
    network = network_of(SHAPES["lasso"])
    search = Search(batch, family, network, 2.0, "deviance", monotone=SIGNS)
    best = exhaustive(search, 2.0)
    pairs = [(i, j) for i in range(6) for j in range(i)]
    least = min(search.refits(np.array(sorted(pair))).deviance for pair in pairs)
    assert best.deviance == pytest.approx(least, rel=1e-12)


# Fits ---------------------------------------------------------------------------------------------


def rows(n, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    df["o"] = pd.Categorical(rng.integers(1, 5, n), ordered=True)
    # What o adds falls from 3 to 4, and what b adds rises.
    f = (
        df["a"]
        + 0.3 * df["b"]
        + df["c"]
        + df["o"].map({1: 0.0, 2: 0.5, 3: 1.5, 4: 0.9}).astype(float)
    )
    df["y"] = f + noise * rng.normal(size=n)
    df["k"] = np.where(df["y"] > 1.5, "yes", "no")
    df["count"] = rng.poisson(np.exp(0.5 * f))
    return df


CALLS = {
    "number": ("y ~ a + b + c + d + o", {}),
    "priced": ("y ~ a + b + c + d + o", {"costs": {"a": 0, "b": 1, "c": 2, "d": 3, "o": 1}}),
    "class": ("k ~ a + b + c + d + o", {}),
    "count": ("count ~ a + b + c + d + o", {"family": "poisson"}),
    "penalized": ("y ~ a + b + c + d + o", {"lambda_": 0.01}),
}


@pytest.mark.parametrize("name", some_long(CALLS, ["class"]))
def test_no_pair_of_rows_turns(name):
    formula, call = CALLS[name]
    fit = ld.costnet(formula, rows(250), monotone=WAYS, threads=1, **call)
    models = [fit]
    if fit.estimates.frontier is not None:
        models = [fit.at(budget=cost) for cost in fit.prices()["cost"]]
    low, rng = rows(10_000, seed=1), np.random.default_rng(2)
    for column, way in WAYS.items():
        up = low.copy()
        if column == "o":
            codes = np.minimum(low["o"].cat.codes + rng.integers(0, 4, len(low)), 3)
            up["o"] = pd.Categorical.from_codes(codes, dtype=low["o"].dtype)
        else:
            up[column] = low[column] + 3.0 * rng.random(len(low)) ** 4
        for model in models:
            change = model.predict(up, "link") - model.predict(low, "link")
            assert ((change if way == "increasing" else -change) >= -1e-12).all()
    free = ld.costnet(formula, rows(250), threads=1, **call | {"budget": None})
    if name == "number":  # without the constraint pairs turn
        assert ((free.predict(low.assign(b=low["b"] + 1.0)) - free.predict(low)) > 1e-3).any()


def test_gains_where_noise_breaks_the_truth():
    new, gains = rows(4000, seed=3, noise=0.0), []
    ways = {"a": "increasing", "b": "increasing", "c": "increasing"}
    for seed in range(6):
        df = rows(40, seed=10 + seed, noise=4.0)
        call = {"budget": np.inf, "relax": 1.0, "control": {"criterion": "deviance"}, "threads": 1}
        free, bound = (ld.costnet("y ~ a + b + c", df, monotone=w, **call) for w in (None, ways))
        loss = [fit.evaluate(new)["dev_ratio"].item() for fit in (free, bound)]
        gains.append(loss[1] - loss[0])
    assert np.mean(gains) > 0.0


def test_files_reports_and_estimators(tmp_path):
    df = rows(100)
    fit = ld.costnet("y ~ a + b", df, monotone={"a": "increasing"}, budget=2)
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    assert again.settings.monotone == fit.settings.monotone == (1, 0)
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    assert "increasing in a" in str(fit)
    assert "increasing in a: their coefficients have one sign" in " ".join(
        str(fit.summary()).split()
    )
    held = ld.cv(ld.costnet, "y ~ a + b", df, monotone={"a": "decreasing"}, folds=2)
    assert held.best.coef()["a"] == 0.0


def test_twins_of_other_signs_stay():
    """A column and its negative: what one may not do, the other does."""
    df = rows(150).assign(z=lambda df: -df["a"])
    fit = ld.costnet("y ~ a + z + c", df, monotone={"a": "decreasing"}, budget=np.inf)
    coef = fit.coef()
    assert coef["a"] <= 0.0 and coef["z"] - coef["a"] < -0.5


@pytest.mark.parametrize(
    "formula, more, message",
    [
        ("y ~ a", {"monotone": {"b": "increasing"}}, "'b' is not in the formula"),
        ("y ~ a + a:b", {"monotone": {"a": "increasing"}}, "needs 'a' as a numeric column"),
        ("y ~ bs(a, df=4)", {"monotone": {"a": "increasing"}}, "has bs"),
        ("y ~ a", {"monotone": {"a": "up"}}, "must be one direction"),
        ("y ~ a", {"monotone": ("a",)}, "must be one direction"),
        ("o ~ a", {"monotone": {"a": "increasing"}}, "4 classes"),
        ("y ~ k", {"monotone": {"k": "increasing"}}, "'no', 'yes' in no order: make it an ord"),
    ],
)
def test_what_is_refused(formula, more, message):
    with pytest.raises(ld.ArgumentError, match=message):
        ld.costnet(formula, rows(60), **more)


def test_an_empty_dict_requires_nothing():
    df = rows(60)
    fit = ld.costnet("y ~ a", df, monotone={})
    assert "At every row" not in str(fit) + str(fit.summary())
    pd.testing.assert_series_equal(fit.coef(), ld.costnet("y ~ a", df).coef())
