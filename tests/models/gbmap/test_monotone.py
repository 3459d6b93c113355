"""Monotone effects: the guarantee on 10,000 pairs of rows, what they cost and gain, refusals."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import some_long
from lodim.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore::lodim.errors.ExtrapolationWarning")

WAYS = {"a": "increasing", "b": "decreasing", "o": "increasing"}


def rows(n, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    df["o"] = pd.Categorical(rng.integers(1, 5, n), ordered=True)
    f = np.tanh(df["a"]) - np.maximum(df["b"], 0.0) + 0.3 * df["o"].astype(float) + df["c"] ** 2 / 2
    df["y"] = f + noise * rng.normal(size=n)
    df["k"] = np.where(df["y"] > 1.5, "yes", "no")
    df["count"] = rng.poisson(np.exp(0.5 * f))
    return df


CALLS = {
    "number": ("y ~ a + b + c + d + o", {"m": 4, "lambda_": 0.01}),
    "joint": ("y ~ a + b + c + d + o", {"m": 4, "lambda_": 0.01, "refit": "joint"}),
    "line": ("y ~ a + b + c + d + o", {"m": 2, "lambda_": 0.01, "activation": "identity"}),
    "class": ("k ~ a + b + c + d + o", {"m": 3, "lambda_": 0.01}),
    "count": ("count ~ a + b + c + d + o", {"m": 3, "lambda_": 0.01, "family": "poisson"}),
    "chosen": ("y ~ a + b + c + d + o", {"control": {"max_stages": 3}}),
}


@pytest.mark.parametrize("name", some_long(CALLS, ["chosen"]))
def test_no_pair_of_rows_turns(name):
    formula, call = CALLS[name]
    fit = ld.gbmap(formula, rows(250), monotone=WAYS, threads=1, **call)
    low = rows(10_000, seed=1)
    rng, high = np.random.default_rng(2), low.copy()
    for column, way in WAYS.items():
        up = low.copy()
        if column == "o":
            codes = np.minimum(low["o"].cat.codes + rng.integers(0, 4, len(low)), 3)
            up["o"] = pd.Categorical.from_codes(codes, dtype=low["o"].dtype)
        else:
            up[column] = low[column] + 3.0 * rng.random(len(low)) ** 4
        change = fit.predict(up, "link") - fit.predict(low, "link")
        assert ((change if way == "increasing" else -change) >= -1e-12).all()
        assert (change.abs() > 1e-3).any()
    assert high.equals(low)


def test_a_free_fit_turns():
    """The pairs above can fail: without the constraint some effects turn."""
    formula, call = CALLS["number"]
    fit = ld.gbmap(formula, rows(250), threads=1, **call)
    low = rows(10_000, seed=1)
    change = fit.predict(low.assign(a=low["a"] + 0.5)) - fit.predict(low)
    assert (change < -1e-3).any()


def test_costs_little_and_gains_where_noise_breaks_the_truth():
    new, gains = rows(4000, seed=3, noise=0.0), []
    for seed in range(6):
        df = rows(200, seed=10 + seed, noise=2.0)
        call = {"m": 4, "lambda_": 0.01, "threads": 1}
        formula = "y ~ a + b + c + d + o"
        free, bound = (ld.gbmap(formula, df, monotone=w, **call) for w in (None, WAYS))
        loss = [fit.evaluate(new)["dev_ratio"].item() for fit in (free, bound)]
        gains.append(loss[1] - loss[0])
    assert np.mean(gains) > 0.0


@pytest.mark.long
def test_a_joint_fit_loses_little_where_the_truth_is_monotone():
    new, losses = rows(4000, seed=3, noise=0.0), []
    for seed in range(3):
        df = rows(1000, seed=20 + seed, noise=0.5)
        call = {"m": 8, "lambda_": 0.01, "refit": "joint", "threads": 1}
        fits = [ld.gbmap("y ~ a + b + c + d + o", df, monotone=w, **call) for w in (None, WAYS)]
        free, bound = (fit.evaluate(new)["dev_ratio"].item() for fit in fits)
        losses.append(free - bound)
    assert np.mean(losses) < 0.01


def test_files_and_calls(tmp_path):
    df = rows(100)
    fit = ld.gbmap("y ~ a + b", df, monotone={"a": "increasing"}, m=2, lambda_=0.1)
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    assert again.settings == fit.settings and again.settings.monotone == (1, 0)
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    assert "increasing in a" in str(fit)
    assert "increasing in a" in str(again.summary())


@pytest.mark.parametrize(
    "formula, more, message",
    [
        ("y ~ a", {"monotone": {"b": "increasing"}}, "'b' is not in the formula"),
        ("y ~ a + a:b", {"monotone": {"a": "increasing"}}, "needs 'a' as a numeric column"),
        ("y ~ np.abs(a)", {"monotone": {"a": "increasing"}}, "has np.abs"),
        ("y ~ a", {"monotone": {"a": "up"}}, "must be one direction"),
        ("y ~ a", {"monotone": ["a"]}, "must be one direction"),
        ("y ~ a", {"monotone": (1,)}, "must be one direction"),
        ("y ~ a", {"monotone": {"a": "increasing"}, "l1_ratio": 0.5}, "l1_ratio=0"),
        ("o ~ a", {"monotone": {"a": "increasing"}}, "4 classes"),
        ("y ~ k", {"monotone": {"k": "increasing"}}, "'no', 'yes' in no order: make it an ord"),
        ("y ~ C(k)", {"monotone": {"k": "increasing"}}, r"the formula has C\(k\)"),
    ],
)
def test_what_is_refused(formula, more, message):
    with pytest.raises(ArgumentError, match=message):
        ld.gbmap(formula, rows(60), **more)


def test_an_empty_dict_requires_nothing():
    df, call = rows(60), {"m": 2, "lambda_": 0.01}
    fit = ld.gbmap("y ~ a", df, monotone={}, **call)
    assert "At every row" not in str(fit) + str(fit.summary())
    pd.testing.assert_series_equal(fit.coef(), ld.gbmap("y ~ a", df, **call).coef())
    df["three"] = np.array(["x", "y", "z"])[np.arange(60) % 3]
    assert len(ld.gbmap("three ~ a", df, monotone={}, **call).levels) == 3


def test_two_levels_in_order_may_be_monotone():
    df = rows(100)
    df["late"] = pd.Categorical(df["k"], categories=["yes", "no"], ordered=True)
    df["true"] = df["k"] == "no"
    call = {"m": 2, "lambda_": 0.01}
    for name in ("late", "true"):
        up, down = (ld.gbmap(f"y ~ {name}", df, monotone={name: way}, **call).predict(df)
                    for way in ("increasing", "decreasing"))  # fmt: skip
        assert np.ptp(up) == 0.0 and np.ptp(down) > 0.0


def test_a_category_with_missing_values_has_no_order():
    df = rows(60)
    order = pd.Categorical(pd.cut(df["a"], 3, labels=["low", "mid", "high"]), ordered=True)
    for values in (pd.Series(order), pd.Series(df["a"] > 0, dtype=object)):
        gaps = df.assign(k=values.where(df["b"] < df["b"].median()))
        with pytest.raises(ArgumentError, match=r"'k' has some: fill them in, or give missing="):
            ld.gbmap("y ~ k", gaps, m=1, lambda_=0.1, monotone={"k": "increasing"})
        how = {"m": 1, "lambda_": 0.1, "monotone": {"k": "increasing"}, "missing": "drop"}
        assert ld.gbmap("y ~ k", gaps, **how).n < 60
