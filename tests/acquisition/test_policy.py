"""Policies that buy features row by row: what they pay, what they see, and what they choose."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import lodim as ld
from lodim.acquisition import mixture
from lodim.acquisition.items import Items
from lodim.prices.network import unfold


@pytest.fixture(scope="module")
def heart():
    data, prices = ld.data("heart"), ld.data("heart_costs").set_index("name")
    costs = {"costs": prices["cost"], "depends_on": prices["needs"]}
    return ld.acquire("disease ~ .", data[::2], **costs, trade_off=0.0005), data[1::2][:25], costs


def bought(run):
    return [text.split(" > ") if text else [] for text in run[".bought"]]


@pytest.mark.parametrize("hidden", ["missing", "other rows"])
def test_no_value_is_seen_before_it_is_bought(heart, hidden):
    policy, rows, _ = heart
    run = policy.run(rows, budget=120)
    known = np.zeros(rows.shape, bool)
    prices = policy.tidy().set_index("feature")["price"]
    for i, names in enumerate(bought(run)):
        for name in names:
            known[i, rows.columns.get_loc(name)] = True
    assert 0.05 < known.mean() < 0.95 and (prices > 0).all()
    other = rows.iloc[::-1].set_axis(rows.index)
    # Whatever comes with a purchase at no further price is measured too: none here does.
    blind = rows.where(known) if hidden == "missing" else rows.where(known, other)
    again = policy.run(blind, budget=120)
    pd.testing.assert_frame_equal(again, run)


def test_price_is_that_of_costnet_and_within_the_budget(heart):
    policy, rows, costs = heart
    run = policy.run(rows, budget=150)
    assert (run[".price"] <= 150).all() and run[".price"].nunique() > 1
    for names, price in zip(bought(run), run[".price"], strict=True):
        formula = "disease ~ " + " + ".join(names)
        fit = ld.costnet(formula, ld.data("heart"), **costs, lambda_=1e-4)
        assert fit.inputs == [name for name in fit.design.features if name in names]
        assert fit.cost == pytest.approx(price)


@pytest.mark.long
def test_features_that_matter_together_are_bought_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    data = pd.DataFrame(X, columns=list("abcd")).assign(
        y=np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    )
    policy = ld.acquire("y ~ .", data[:500], trade_off=0.1)
    curve = policy.curve(data[500:], [0.1]).set_index("policy")
    assert curve.loc["policy", "accuracy"] > 0.85 > 0.75 > curve.loc["myopic", "accuracy"]
    assert policy.next({}).options["together"].sum() == 2
    assert set(policy.next({}).options["feature"][:2]) == {"a", "b"}


@pytest.mark.long
def test_overconfident_predictions_after_purchases_are_shrunken():
    radar = ld.data("ionosphere")
    policy, test = ld.acquire("quality ~ .", radar[::2]), radar[1::2][:80]
    code = (test["quality"] == policy.levels[1]).astype(int)
    shares = np.exp(policy.mixture.log_share) @ (policy.mixture.label[:, None] == [0, 1])

    def loss(contamination):
        mixture = replace(policy.mixture, contamination=contamination)
        P = replace(policy, mixture=mixture).run(test)[list(policy.levels)].to_numpy()
        assert (contamination * shares - 1e-12 <= P).all()
        return -np.log(np.maximum(P, 1e-4))[np.arange(80), code].mean()

    assert policy.mixture.contamination > 0.0
    assert loss(policy.mixture.contamination) < loss(0.0)
    assert ld.acquire("mpg ~ .", ld.data("autompg")[::2]).mixture.contamination == 0.0


def test_marginals_are_those_of_scipy():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300).astype(float)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    fit = mixture.learn(X, y, np.ones(300), 2, 0, per_class=2, pooling=5.0, independence=0.1)
    at = np.array([0, 2])
    density = [
        np.exp(s) * multivariate_normal(m[at], C[np.ix_(at, at)]).pdf(X[:, at])
        for s, m, C in zip(fit.log_share, fit.mean, fit.cov, strict=True)
    ]
    by_class = np.array([np.sum([d for d, k in zip(density, fit.label, strict=True) if k == c], 0)
                         for c in (0, 1)])  # fmt: skip
    expected = by_class / by_class.sum(axis=0)
    found = fit.predict(np.ascontiguousarray(X[:, at].T), at, 2)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    mixed = replace(fit, contamination=0.1).predict(np.ascontiguousarray(X[:, at].T), at, 2)
    shares = np.bincount(y.astype(int))[:, None] / len(y)
    np.testing.assert_allclose(mixed, 0.9 * expected + 0.1 * shares, atol=1e-10)


def test_one_component_of_a_number_is_least_squares():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=200)
    fit = mixture.learn(X, y, np.ones(200), 0, 0, per_class=1, pooling=0.0, independence=0.0)
    at = np.array([0, 1])
    A = np.column_stack([np.ones(200), X[:, at]])
    expected = A @ np.linalg.lstsq(A, y, rcond=None)[0]
    mean, sd = fit.predict(np.ascontiguousarray(X[:, at].T), at, 0)
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(sd, np.std(y - expected), rtol=1e-9)


def test_alternatives_are_paid_as_the_network_says():
    #        0 cuff  1 line  2 pressure (needs one of them)  3 trend (needs pressure, and line)
    net = unfold(
        ("cuff", "line", "pressure", "trend"), [2.0, 5.0, 1.0, 0.5],
        ((), (), (), (2, 1)), ((), (), (0,), (1,)), sources=((0, 1),), uses=((), (), (0,), ()),
    )  # fmt: skip
    items = Items(net, ("pressure", "trend"), np.array([0, 1]), np.zeros((0, len(net))))
    nothing = np.zeros(len(net), bool)
    paid = items.pay(nothing, np.array([[1, 0], [0, 1], [1, 1]], bool))
    assert items.price(paid)[0] == 3.0  # the cheap source
    assert items.price(paid)[1] == 6.5 == net.price(np.array(net.names) == "trend")
    after, _ = items.after_buying(np.zeros(2, bool), nothing, items.one_hot(1))
    assert after.all()  # the trend has paid for the pressure


@pytest.mark.long
def test_free_columns_are_known_from_the_start():
    cars = ld.data("autompg")
    costs = {name: float(name != "weight") for name in cars.columns.drop("mpg")}
    policy = ld.acquire("mpg ~ .", cars[::2], costs=costs, trade_off=1e6)
    run = policy.run(cars[1::2])
    assert (run[".bought"] == "").all() and (run[".price"] == 0).all()
    assert np.corrcoef(run["fit"], cars["weight"][1::2])[0, 1] < -0.9


def test_free_columns_that_use_a_resource_are_bought():
    iris = ld.data("iris")[::2]
    use = {"minutes": {"petal_width": 5, "petal_length": 1}}
    costs = {"petal_width": 0, "petal_length": 0}
    policy = ld.acquire("species ~ petal_width + petal_length", iris, costs=costs, resources=use)
    run = policy.run(iris[::10], budget={"minutes": 2})
    assert set(run[".bought"]) == {"petal_length"} and (run[".minutes"] == 1).all()
    assert (policy.run(iris[::10], budget={"minutes": 0})[".bought"] == "").all()


def test_next_names_free_columns_that_are_unknown():
    iris, costs = ld.data("iris")[::2], {"petal_width": 0, "sepal_width": 1}
    policy = ld.acquire("species ~ petal_width + sepal_width", iris, costs=costs, trade_off=9)
    step = policy.next({})
    assert step.free == ("petal_width",) and "\nFree, measure first: petal_width\n" in str(step)
    assert str(step).startswith("Buy nothing: no purchase is worth its price\n")
    known = policy.next({"petal_width": 1.2})
    assert not known.free and str(known).startswith("Stop: no purchase is worth its price\n")


@pytest.mark.long
def test_missing_values_weights_and_files(tmp_path):
    wine = ld.data("wine")
    holes = wine.mask(np.random.default_rng(0).random(wine.shape) < 0.1)
    holes["cultivar"] = wine["cultivar"]
    policy = ld.acquire("cultivar ~ .", holes.assign(w=2.0), weights="w")
    run, some = policy.run(holes[::30]), wine[::6]
    found = policy.run(some)[list(policy.levels)].idxmax(axis=1)
    assert (found == some["cultivar"]).mean() > 0.9
    policy.save(tmp_path / "wine.lodim")
    pd.testing.assert_frame_equal(ld.load(tmp_path / "wine.lodim").run(holes[::30]), run)
    assert "Saving alone" in repr(policy)


def test_the_print_shows_the_arguments_that_were_given():
    heart = ld.data("heart")[:60]
    prices = pd.Series({"age": 1.0, "sex": 2.0})
    policy = ld.acquire("disease ~ age + sex", heart, costs=prices, groups="sex", trade_off=0.1)
    call = "acquire(\"disease ~ age + sex\", data=df, costs=..., trade_off=0.1, groups='sex')"
    assert policy.call == call  # two groups, which are fewer than the usual five folds
    assert call in " ".join(repr(policy).split())


def test_errors_say_what_to_do():
    wine = ld.data("wine")
    with pytest.raises(ld.ArgumentError, match="costs lack"):
        ld.acquire("cultivar ~ .", wine, costs={"alcohol": 1})
    with pytest.raises(ld.ArgumentError, match="one column, not 'alcohol:hue'"):
        ld.acquire("cultivar ~ alcohol + alcohol:hue", wine)
    with pytest.raises(ld.ArgumentError, match="needs a response"):
        ld.acquire("~ alcohol", wine)
    with pytest.raises(ld.ArgumentError, match="at least one feature"):
        ld.acquire("cultivar ~ 1", wine)
    policy = ld.acquire("cultivar ~ alcohol + hue", wine, costs=lambda names: float(len(names)))
    with pytest.raises(ld.StoreError, match="price list"):
        policy.save("nowhere.lodim")
    with pytest.raises(ld.DataError, match="one row, not 178"):
        policy.next(wine)
    with pytest.raises(ld.DataError, match="one row, not 2"):
        policy.next({"hue": [1.0, 2.0]})
    for row in ({"hues": 1.0}, pd.Series({"alcohol": 13.0, "hues": 1.0})):
        for method in (policy.next, policy.predict):
            with pytest.raises(ld.DataError, match=r"no column 'hues'.*did you mean 'hue'\?"):
                method(row)
    whole = policy.predict(wine[["hue", "alcohol", "cultivar"]].iloc[0])
    pd.testing.assert_series_equal(whole, policy.predict(wine[:1]))
    with pytest.raises(ld.ArgumentError, match=r"'alcohl' is neither.*did you mean 'alcohol'"):
        ld.acquire("cultivar ~ alcohol", wine, costs={"alcohl": 2})
    with pytest.raises(ld.ArgumentError, match="'alcohl' is no purchase; did you mean 'alcohol'"):
        ld.acquire("cultivar ~ alcohol", wine, resources={"minutes": {"alcohl": 2}})
    with pytest.raises(ld.ArgumentError, match="resources must be a dict of dicts"):
        ld.acquire("cultivar ~ alcohol", wine, resources={"minutes": 2})
    with pytest.raises(ld.ArgumentError, match="'price' is the sum of the costs"):
        ld.acquire("cultivar ~ alcohol", wine, resources={"price": {"alcohol": 2}})
    shares = pd.DataFrame({"y": np.resize([0.0, 0.5, 1.0], 30), "x": np.arange(30.0), "n": 2})
    with pytest.raises(ld.ArgumentError, match="classes or numbers for acquire"):
        ld.acquire("y ~ x", shares, weights="n", family="binomial")
    with pytest.raises(ld.DataError, match="at least 10 rows with a response, not 9"):
        ld.acquire("alcohol ~ hue", wine[:9])
    with pytest.raises(ld.DataError, match="no row has a known response"):
        policy.curve(wine.assign(cultivar=None), [0.1])
    with pytest.raises(ld.ArgumentError, match="budget"):
        policy.run(wine, budget=-1)
