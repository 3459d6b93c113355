"""What gbmap chooses and says holds still: rounding, orders, names, threads and the seed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld

pytestmark = pytest.mark.long

FEW = {"control": {"max_stages": 12, "reference_rows": 0}}


@pytest.fixture(scope="module")
def heart():
    return ld.data("heart").dropna().reset_index(drop=True)


@pytest.fixture(scope="module")
def cars():
    return ld.data("autompg").dropna().reset_index(drop=True)


def noisy(df, seed):
    rng = np.random.default_rng(seed)
    numbers = df.select_dtypes("number").columns
    return df.assign(**{c: df[c] * (1 + 1e-12 * rng.normal(size=len(df))) for c in numbers})


def turned(df, seed):
    rng = np.random.default_rng(seed)
    return df.iloc[rng.permutation(len(df))][list(rng.permutation(list(df)))]


@pytest.mark.parametrize("change", [noisy, turned])
@pytest.mark.parametrize("name, formula", [("heart", "disease ~ ."), ("cars", "mpg ~ .")])
def test_the_choice_holds_still(request, name, formula, change):
    df = request.getfixturevalue(name)
    one = ld.gbmap(formula, df, **FEW)
    residual = df[formula.split()[0]] - one.predict(df) if name == "cars" else np.full(1, 0.45)
    sd = np.sqrt(np.mean(residual**2))
    for seed in range(2):
        two = ld.gbmap(formula, change(df, seed), **FEW)
        assert two.settings.lambda_ == pytest.approx(one.settings.lambda_)
        assert two.settings.m == one.settings.m
        moved = two.predict(df) - one.predict(df)
        assert np.sqrt(np.mean(moved**2)) < 0.01 * sd


def test_a_deep_fit_of_noisy_numbers_is_the_same_fit(cars):
    one = ld.gbmap("mpg ~ .", cars, m=15, lambda_=0.06)
    for change in (noisy, turned):
        two = ld.gbmap("mpg ~ .", change(cars, 3), m=15, lambda_=0.06)
        np.testing.assert_allclose(two.predict(cars), one.predict(cars), atol=1e-3)


def test_rounding_errors_do_not_choose_a_joint_fit():
    """Its loss has several minima, and so have those of the boosts from which it starts."""
    path = Path(__file__).resolve().parents[4] / "shared/data/concrete.csv"
    if not path.is_file():
        pytest.skip(f"lodim does not ship these data, and there is no {path}")
    data = pd.read_csv(path)
    formula = f"Q('{data.columns[-1]}') ~ ."
    one = ld.gbmap(formula, data, threads=1)
    assert one.refit_log is not None
    for change in (noisy, turned):
        for seed in range(2):
            two = ld.gbmap(formula, change(data, seed), threads=1)
            moved = two.predict(data) - one.predict(data)
            assert np.abs(moved).max() < 1e-6 * one.predict(data).std()


def test_names_of_classes_play_no_part(heart):
    other = heart.assign(disease=heart["disease"].map({"absent": "z", "present": "a"}))
    one, two = ld.gbmap("disease ~ .", heart, **FEW), ld.gbmap("disease ~ .", other, **FEW)
    assert one.settings.m == two.settings.m
    assert one.settings.lambda_ == pytest.approx(two.settings.lambda_)
    np.testing.assert_allclose(two.predict(other), 1.0 - one.predict(heart), atol=1e-5)


def test_a_seed_is_of_the_folds_alone(cars):
    one, two = (ld.gbmap("mpg ~ .", cars, m=4, lambda_=0.1, seed=s) for s in (0, 7))
    np.testing.assert_array_equal(one.estimates.theta, two.estimates.theta)
