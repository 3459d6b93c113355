"""drift_split: the split of Patron et al. (2024), Sect. 4.1."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

FEW = {"m": 2, "lambda_": 0.01}


@pytest.fixture
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "id"])
    df["a"] = np.exp(df["b"] + 0.3 * rng.normal(size=200))  # b hides behind a
    df["y"] = df["a"] ** 2 + 0.1 * rng.normal(size=200)
    df["w"] = rng.integers(1, 4, 200)
    return df


def test_parts(df):
    split = ld.drift_split("y ~ . - id - w", df, **FEW)
    assert split.feature in ("a", "b") and split.loss_shifted > split.loss_same
    assert [len(p) for p in (split.train, split.same, split.shifted)] == [50, 50, 100]
    rows = [set(p.index) for p in (split.train, split.same, split.shifted)]
    assert not (rows[0] & rows[1] or rows[0] & rows[2] or rows[1] & rows[2])
    low, high = (df.loc[list(r), split.feature] for r in (rows[0] | rows[1], rows[2]))
    assert low.max() <= high.min() and split.feature not in split.train


@pytest.mark.parametrize("formula", ["y ~ . - id - w", "np.log1p(np.abs(y)) ~ . - id - w"])
def test_only_features_are_tried(df, formula):
    """Not the response inside an expression, nor a column that the formula leaves out."""
    assert ld.drift_split(formula, df, **FEW).feature in ("a", "b")


def test_weights_by_name_and_dicts(df):
    split = ld.drift_split("y ~ .", df.drop(columns="id").to_dict("list"), weights="w", **FEW)
    assert split.feature in ("a", "b") and "w" in split.train
    with pytest.raises(ld.ArgumentError, match="name of a column"):
        ld.drift_split("y ~ .", df, weights=np.ones(200), **FEW)


def test_nothing_to_split_by(df):
    with pytest.raises(ld.DataError, match="numeric"):
        ld.drift_split("y ~ t", df.assign(t=np.where(df["a"] > 1, "u", "v")), **FEW)


def test_data_are_a_frame_or_a_dict():
    with pytest.raises(ld.DataError, match=r"data must be a pandas DataFrame .* not \[1, 2\]"):
        ld.drift_split("y ~ x", [1, 2])
