"""weights="balanced": classes of equal weight, for every model."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import some_long

CALLS = {
    "gbmap": {"m": 2, "lambda_": 0.1},
    "costnet": {"lambda_": 0.1},
    "proset": {"lambda_v": 0.01},
    "melm": {"k": 1, "n_starts": 2, "gamma": 1.0},
    "ripr": {"n_views": 1},
    "glm": {},
}


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(120, 2)), columns=list("ab"))
    return df.assign(k=np.where(df["a"] + 0.5 * rng.normal(size=120) > 0.8, "rare", "usual"))


def weights_of(df):
    return (len(df) / (2 * df["k"].map(df["k"].value_counts()))).to_numpy()


@pytest.mark.parametrize("model", some_long(CALLS, ("melm",)))
def test_classes_have_equal_weight_in_every_model(df, model):
    function, arguments = getattr(ld, model), CALLS[model]
    fit = function("k ~ .", df, weights="balanced", **arguments)
    other = function("k ~ .", df, weights=weights_of(df), **arguments)
    np.testing.assert_array_equal(fit.predict(df, "prob"), other.predict(df, "prob"))
    assert "weights='balanced'" in fit.call
    with pytest.raises(ld.DataError, match="needs a response with classes, but 'a' is numeric"):
        ld.glm("a ~ b", df, weights="balanced")
    assert "K classes" in function.__doc__


def test_balanced_rows_of_a_file_a_sample_and_an_update(df, tmp_path):
    fit = ld.glm("k ~ .", df, weights="balanced")
    df.to_csv(tmp_path / "rows.csv", index=False)
    files = ld.glm("k ~ .", str(tmp_path / "rows.csv"), weights="balanced")
    np.testing.assert_allclose(files.coef(), fit.coef(), rtol=1e-12)
    some = ld.glm("k ~ .", df, weights="balanced", sample=60)
    assert some.n == 60 and some.log["sum_weights"] == pytest.approx(60)
    fit.save(tmp_path / "fit.lodim")
    assert ld.load(tmp_path / "fit.lodim").update(df).coef().equals(fit.coef())


def test_refits_of_a_balanced_call(df):
    fit = ld.gbmap("k ~ .", df, weights="balanced", m=1, lambda_=0.1)
    ld.bootstrap(fit, df, n=2, reselect=True)
    models = {"model": "glm", "call": lambda formula, data: ld.glm(formula, data)}
    table = ld.compare("k ~ .", df, models, weights="balanced", folds=2, baselines=False)
    assert table.tidy()["deviance"].notna().all()
    assert ld.estimate(ld.gbmap, "k ~ .", df, weights="balanced").rows == 120


def test_a_column_of_that_name_comes_first(df):
    named = df.assign(balanced=weights_of(df) ** 2)
    fit = ld.glm("k ~ .", named, weights="balanced")
    other = ld.glm("k ~ .", df, weights=weights_of(df) ** 2)
    assert fit.design.weights == "balanced" and fit.coef().equals(other.coef())


def test_classes_of_equal_size_need_no_weights():
    df = pd.DataFrame({"x": [1.0, 2, 3, 4, 5, 2], "y": list("ababab")})
    fit = ld.glm("y ~ x", df, weights="balanced")
    assert fit.coef().equals(ld.glm("y ~ x", df).coef())
