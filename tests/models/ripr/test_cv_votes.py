"""Cross-validation of ripr judges the method that its best fit is of."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    return df.assign(y=np.where(df["a"] + df["b"] * df["c"] > 0, "p", "q"))


def test_the_held_out_loss_is_of_votes(df):
    fold = np.arange(80) % 2
    cv = ld.cv(ld.ripr, "y ~ .", df, folds=fold, grid={"k": [5, 10]})
    assert cv.best.estimates.method == "vote"
    for k in (5, 10):
        losses = [
            ld.ripr("y ~ .", df[fold != f], k=k).evaluate(df[fold == f])["deviance"][0]
            for f in (0, 1)
        ]
        np.testing.assert_allclose(cv.frame.set_index("k")["mean"][k], np.mean(losses), rtol=1e-6)


def test_a_grid_of_methods(df):
    cv = ld.cv(ld.ripr, "y ~ .", df, folds=2, grid={"method": ["vote", "assignment"]})
    assert cv.frame["mean"].nunique() == 2
    assert ld.cv(ld.ripr, "y ~ .", df, folds=2, method="vote").best.estimates.method == "vote"
    with pytest.raises(ld.ArgumentError, match="method='vote' cannot be combined with alpha"):
        ld.cv(ld.ripr, "y ~ .", df, folds=2, method="vote", grid={"alpha": [0.2]})
    with pytest.raises(ld.ArgumentError, match="lambda_ needs method='assignment'"):
        ld.cv(ld.ripr, "y ~ .", df, folds=2, method="vote", grid={"lambda_": [0.1]})


@pytest.mark.long
def test_of_features_that_seldom_vary():
    rng = np.random.default_rng(0)
    x, y = np.zeros(4000), rng.integers(0, 2, 4000).astype(str)
    x[0] = 1.0
    p = ld.ripr("y ~ x", {"x": x, "y": y}).predict({"x": [0.0]}, "prob")
    np.testing.assert_allclose(p.iloc[0, 0], np.mean(y == "0"), atol=0.05)


def test_no_view_is_taken_twice():
    rng = np.random.default_rng(1)
    df = pd.DataFrame({"a": rng.normal(size=90), "f": rng.choice(list("uvw"), 90)})
    df["z"] = df["a"] + 2 * (df["f"] == "u") + 0.1 * rng.normal(size=90)
    names = ld.ripr("z ~ a + f", df).view_names
    assert len(set(names)) == len(names)
