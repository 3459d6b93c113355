"""What a reader quotes of costnet: rounding, order and names do not move it."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

pytestmark = pytest.mark.long

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(150, 5)), columns=list("bcdef"))
# Twins: what one of them says, the other says as well.
X = X.assign(a=3.0 + 2.0 * X["b"], g=-X["d"])
SIGNAL = X["b"] + 0.7 * X["d"] + 0.3 * X["e"]
NOISY = SIGNAL + 0.5 * RNG.normal(size=150)
RESPONSES = {
    "number": NOISY,
    "two": np.where(NOISY > 0.0, "yes", "no"),
    "three": np.array(["low", "mid", "high"])[np.digitize(NOISY, [-0.6, 0.6])],
}
PRICES = {"costs": dict.fromkeys("abcdefg", 1.0) | {"draw": 2.0},
          "depends_on": {"a": ["draw"], "b": ["draw"]}}  # fmt: skip
BOTH = pytest.mark.parametrize("prices", [{}, PRICES], ids=["free", "priced"])
ALL = pytest.mark.parametrize("response", RESPONSES)


def models(fit):
    """Price and things of each model of the list, and the price of the one that predicts."""
    frontier, names = fit.estimates.frontier, np.array(fit.settings.network.names, object)
    rows = zip(frontier.cost, frontier.bought, strict=True)
    return [(round(cost, 9), sorted(set(names[on]))) for cost, on in rows], fit.step.cost


def shaken(df, seed):
    """The frame with noise of 1e-12, its columns in another order."""
    rng = np.random.default_rng(seed)
    numbers = df.select_dtypes("number").columns
    noise = 1.0 + 1e-12 * rng.normal(size=(len(df), len(numbers)))
    return df.assign(**(df[numbers] * noise))[list(rng.permutation(df.columns))]


@ALL
@BOTH
def test_noise_and_order_move_no_model(response, prices):
    df = X.assign(y=RESPONSES[response])
    wanted = models(ld.costnet("y ~ .", df, budget=20.0, **prices))
    assert len(wanted[0]) > 3
    for seed in range(3):
        other = shaken(df, seed).sample(frac=1.0, random_state=seed)
        assert models(ld.costnet("y ~ .", other, budget=20.0, **prices)) == wanted


@pytest.mark.parametrize("names", [{}, {"a": "b", "b": "a", "d": "g", "g": "d"}])
def test_of_equal_things_the_first_by_name_is_bought(names):
    df = X.rename(columns=names).assign(y=NOISY)
    bought = models(ld.costnet("y ~ .", df, budget=20.0))[0]
    names = {name for _, things in bought for name in things}
    assert {"a", "d", "e"} <= names <= {*"acdef"}  # b and g are copies of a and d


def test_cross_validation_chooses_the_same_price_under_noise_and_order():
    df = X.assign(y=NOISY)
    fits = [ld.costnet("y ~ .", each, **PRICES) for each in (df, shaken(df, 1), shaken(df, 2))]
    assert models(fits[0]) == models(fits[1]) == models(fits[2])
    sd = np.std(NOISY - fits[0].predict(df))
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.predict(df), fits[0].predict(df), atol=1e-6 * sd)


@pytest.mark.parametrize("response", ["two", "three"])
def test_names_of_classes_move_no_model(response):
    df = X.assign(y=RESPONSES[response])
    fit = ld.costnet("y ~ .", df, budget=20.0)
    new = {name: f"c{k}" for k, name in enumerate(sorted(set(df["y"]), reverse=True))}
    other = ld.costnet("y ~ .", shaken(df.assign(y=df["y"].map(new)), 3), budget=20.0)
    assert models(other) == models(fit)
    np.testing.assert_allclose(
        other.predict(df, "prob").rename(columns={v: k for k, v in new.items()})[list(fit.levels)],
        fit.predict(df, "prob"),
        atol=1e-6,
    )


def test_a_free_copy_is_not_bought_beside_what_it_copies():
    """By the deviance alone a second copy costs nothing and gains nothing but rounding."""
    free = {"costs": dict.fromkeys("abcdefg", 0.0) | {"c": 1.0}}
    control = {"criterion": "deviance"}
    for seed in range(3):
        df = shaken(X.assign(y=NOISY), seed)
        things = models(ld.costnet("y ~ .", df, budget=20.0, control=control, **free))[0][0][1]
        assert things == ["a", "d", "e", "f"]
