"""What held-out rows choose: the models of the frontier, their shrinkage, and the budget."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.engine import tiles
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.costnet import estimate
from lodim.models.costnet.search import held_out
from lodim.selection.tuning import count_draws, fold_splits


def sparse(n=90, p=6, seed=0, noise=1.0):
    """Two features that matter, and others."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{k}" for k in range(p)])
    return df.assign(y=df["x0"] - 0.7 * df["x1"] + noise * rng.normal(size=n))


def test_losses_are_those_of_an_independent_lasso():
    """At the price of everything no fold's model is held to less: scikit-learn's has its loss."""
    linear = pytest.importorskip("sklearn.linear_model")
    df = sparse(p=4).assign(y=lambda d: d["y"] + d["x2"] - d["x3"])
    fit = ld.costnet("y ~ .", df, rules="lasso", relax=0.0, seed=3)
    frontier, problem = (
        fit.estimates.frontier,
        prepare(model_of(ld.costnet), "y ~ .", df, {"seed": 3}),
    )
    assert frontier.cost[-1] == 4.0 and frontier.relax[-1] == 0.0
    draws = count_draws(problem.batch)
    assert frontier.held_out.shape[1] == draws == 2
    splits = fold_splits(problem.batch, (), 3, False, draws)
    means = []
    for train, test in splits:
        peer = linear.Lasso(frontier.lambda_[-1], tol=1e-12, max_iter=100_000)
        peer.fit(tiles.unpack(train.X, train.n), train.y)
        means.append(((test.y - peer.predict(tiles.unpack(test.X, test.n))) ** 2).sum())
    by_draw = np.reshape(means, (draws, -1)).sum(axis=1) / len(df)
    np.testing.assert_allclose(frontier.held_out[-1], by_draw, rtol=1e-3)


def test_the_standard_error_is_that_of_a_mean_of_rows():
    rows = np.array([[1.0, 2.0, 4.0], [1.0, 1.0, 1.0]])
    weight = np.array([0.5, 0.25, 0.25])
    judged = held_out.HeldOut(rows, weight, np.zeros((2, 1)), np.arange(rows.shape[1]))
    np.testing.assert_allclose(judged.mean, [2.0, 1.0])
    assert judged.error(0) == pytest.approx(np.sqrt(0.25 * 1.0 + 0.0625 * 0.0 + 0.0625 * 4.0))
    assert judged.error(1) == 0.0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["number", "classes"])
def test_the_budget_is_the_cheapest_within_an_error_only_where_there_are_prices(kind):
    df = sparse(160, noise=2.0)
    if kind == "classes":
        df["y"] = np.where(df["y"] > 0, "yes", "no")
    plain = ld.costnet("y ~ .", df)
    priced = ld.costnet("y ~ .", df, costs=dict.fromkeys(df.columns.drop("y"), 1.0))
    frontier = priced.estimates.frontier
    np.testing.assert_array_equal(frontier.cost, plain.estimates.frontier.cost)
    mean = frontier.held_out.mean(axis=1)
    assert (np.diff(mean) < 0).all()
    assert plain.cost == frontier.cost[-1] and "lowest held-out loss" in " ".join(
        str(plain).split()
    )
    within = np.flatnonzero(mean <= mean[-1] + frontier.error[-1])[0]
    assert priced.cost == frontier.cost[within] < plain.cost
    assert "cheapest model within one SE" in " ".join(str(priced).split())
    assert "cheapest model within one SE" in " ".join(str(priced.summary()).split())


@pytest.mark.long
def test_few_rows_keep_the_shrinkage():
    """Of noise and many features the refitted list by the deviance is worse in new rows."""
    train, new = sparse(50, 20, seed=1, noise=1.5), sparse(4000, 20, seed=2, noise=1.5)
    fit = ld.costnet("y ~ .", train)
    refitted = ld.costnet("y ~ .", train, control={"criterion": "deviance"}, budget=np.inf)
    assert (refitted.prices()["relax"] == 1.0).all()
    assert np.isnan(refitted.prices()["dev_ratio_held_out"]).all()
    dearest = fit.at(np.inf)
    assert dearest.cost == fit.prices()["cost"].iloc[-1]
    assert 1.1 * dearest.evaluate(new)["deviance"][0] < refitted.evaluate(new)["deviance"][0]


@pytest.mark.long
@pytest.mark.parametrize("relax", [0.0, 0.5])
def test_relax_has_its_effect_beside_greedy(relax):
    df = sparse(60, 12, seed=3)
    fit = ld.costnet("y ~ .", df, relax=relax)
    assert set(fit.prices()["relax"]) <= {relax, 1.0}  # greedy has no penalty's coefficients
    alone = ld.costnet("y ~ .", df, relax=relax, rules=("group", "lasso"))
    assert set(alone.prices()["relax"][1:]) == {relax}
    assert f"r={relax:g}" in str(alone) and "relax" in str(alone.summary())


@pytest.mark.long
@pytest.mark.parametrize(
    "grid",
    [
        {"relax": [0.0, 1.0]},
        {"criterion": ["hq", "cv"]},
        {"l1_ratio": [0.5, 1.0]},
        {"seed": [0, 1]},
    ],
)
def test_cv_over_a_setting_leaves_the_budget_to_each_fit(grid):
    df = sparse(60, 4)
    few = {"n_lambda": 12, "rules": ("group", "greedy")}
    cv = ld.cv(ld.costnet, "y ~ .", df, grid=grid, folds=3, **few)
    (name,) = grid
    assert sorted(cv.tidy()[name]) == sorted(grid[name]) and np.isfinite(cv.tidy()["mean"]).all()
    assert cv.best.cost == cv.best.at(np.inf).cost  # nothing has a price: the least loss
    assert cv.best.selection is not None and "Budget" in str(cv.best.summary())


def test_folds_hold_models_to_the_price():
    """A null model is judged as one: no fold's model of the same penalty comes in for it."""
    df = sparse(80)
    frontier = ld.costnet("y ~ .", df).estimates.frontier
    problem = prepare(model_of(ld.costnet), "y ~ .", df, {})
    null = [
        ((test.y - train.y.mean()) ** 2).sum() / len(df)
        for train, test in fold_splits(problem.batch, (), 0, False, 2)
    ]
    np.testing.assert_allclose(frontier.held_out[0], np.reshape(null, (2, 5)).sum(axis=1))


@pytest.mark.long
def test_large_problems_of_classes_are_judged_once(monkeypatch):
    df = sparse(120).assign(g=lambda d: np.where(d["x2"] > 0, "u", "v"))
    df["y"] = np.array(["a", "b", "c"])[np.digitize(df["y"], [-0.5, 0.5])]
    whole = ld.costnet("y ~ .", df, n_lambda=20)
    assert whole.estimates.frontier.held_out.shape[1] == 2
    monkeypatch.setattr(estimate, "LARGE", 0)
    large = ld.costnet("y ~ .", df, n_lambda=20)
    assert large.estimates.frontier.held_out.shape[1] == 1
    assert "lasso" not in set(large.prices()["rule"])
    alone = ld.costnet("y ~ .", df, n_lambda=20, rules="lasso")
    assert set(alone.prices()["rule"]) == {"null", "lasso"}


def test_an_infinite_budget_is_no_limit():
    df = sparse(60, 3)
    fit = ld.costnet("y ~ .", df, budget=np.inf)
    assert fit.limit == np.inf and "Budget: none" in str(fit) and fit.chosen == {}
    assert fit.cost == fit.prices()["cost"].iloc[-1]


def few(n=60, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return df.assign(y=np.where(df["a"] + df["b"] + rng.normal(size=n) > 0, "p", "q"))


@pytest.mark.long
def test_rows_of_weight_zero_do_not_count():
    df, costs = few(), {"a": 1, "b": 2, "c": 3}
    weights = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    fit = ld.costnet("y ~ a + b + c", df, weights=weights, costs=costs, standardize=False)
    assert np.isfinite(fit.estimates.frontier.held_out).all()
    assert np.isfinite(fit.estimates.frontier.error).all()


@pytest.mark.long
def test_free_features_are_no_worse_than_none():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(40, 8)), columns=list("abcdefgh"))
    df["y"] = np.where(df["a"] + 0.5 * rng.normal(size=40) > 0, "p", "q")
    frontier = ld.costnet("y ~ .", df, costs=dict.fromkeys("abcdefgh", 0)).estimates.frontier
    null = -2 * np.mean(df["y"] == "p") * np.log(np.mean(df["y"] == "p"))
    null -= 2 * np.mean(df["y"] == "q") * np.log(np.mean(df["y"] == "q"))
    assert frontier.held_out.mean() < 1.1 * null


@pytest.mark.long
def test_features_that_are_all_free_are_selected_as_without_prices():
    df = sparse(p=30)
    free = ld.costnet("y ~ .", df, costs=dict.fromkeys(df.columns.drop("y"), 0.0))
    path, unit = free.path(), ld.costnet("y ~ .", df).path()
    pd.testing.assert_frame_equal(path.drop(columns="cost"), unit.drop(columns="cost"))
    assert free.cost == 0.0 and not path["cost"].any()
    assert 0 < len(free.inputs) < 30


@pytest.mark.long
def test_a_few_of_many_free_features_are_selected_beside_priced_ones():
    rng = np.random.default_rng(2)
    names = [f"x{j}" for j in range(60)]
    true = np.zeros(60)
    true[[0, 1, 2, 3, 40, 41, 42]] = 0.5

    def draw(n):
        X = rng.normal(size=(n, 60))
        return pd.DataFrame(X, columns=names).assign(y=X @ true + 1.5 * rng.normal(size=n))

    train, test = draw(100), draw(2000)
    costs = {name: 0.0 if j < 40 else 1.0 + j % 3 for j, name in enumerate(names)}
    fit = ld.costnet("y ~ .", train, costs=costs, seed=1)
    assert 0 < sum(costs[name] == 0.0 for name in fit.inputs) < 20
    # The null model, which was the answer beside the full one of all free features, has no more.
    assert np.mean((test["y"] - fit.predict(test)) ** 2) < 0.9 * test["y"].var()


@pytest.mark.long
def test_errors_are_of_whole_groups():
    df, costs = few(), {"a": 1, "b": 2, "c": 3}
    rows = df.loc[df.index.repeat(5)].reset_index(drop=True)
    one = ld.costnet("y ~ a + b + c", df, costs=costs).estimates.frontier.error[0]
    groups = np.repeat(np.arange(60), 5)
    same = ld.costnet("y ~ a + b + c", rows, costs=costs, groups=groups).estimates.frontier.error
    np.testing.assert_allclose(same[0], one, rtol=0.1)


def test_a_dear_column_is_listed_that_cheap_ones_beat_in_the_training_rows_alone():
    """Four cheap columns fit a little better than one dear, and worse in rows held out."""
    columns = np.column_stack([np.ones(120), np.random.default_rng(1).normal(size=(120, 6))])
    X = np.linalg.qr(columns)[0][:, 1:] * np.sqrt(120.0)
    df = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(dear=X[:, 4])
    df["y"] = X @ [0.452, 0.452, 0.452, 0.452, 0.9, 1.5]  # the last is noise: no column shows it
    costs = dict.fromkeys("abcd", 1.0) | {"dear": 10.0}
    prices = ld.costnet("y ~ .", df, costs=costs, relax=1.0).prices()
    cheap, dear = (prices[prices["cost"] == cost].iloc[0] for cost in (4.0, 10.0))
    assert dear["new"] == "dear" and dear["dropped"] == "a, b, c, d"
    assert cheap["dev_ratio"] > dear["dev_ratio"]
    assert cheap["dev_ratio_held_out"] < dear["dev_ratio_held_out"]
