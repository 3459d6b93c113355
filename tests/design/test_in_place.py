"""Which columns of a frame a fit reads where they lie, and that features are the same."""

import numpy as np
import pandas as pd
import pytest

from lodim.design.design import Design
from lodim.design.reading import Reading
from lodim.design.rows import RowInputs
from lodim.engine.blocks import SPAN_ROWS
from lodim.engine.column_tiles import ColumnTiles
from lodim.errors import DataError

pytestmark = pytest.mark.long

N = SPAN_ROWS + 100


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """No frame of these is large."""
    monkeypatch.setattr("lodim.design.features.MIN_BYTES", 0)


def frame(dtype="float32", n=N, p=3, order="C"):
    X = np.random.default_rng(0).standard_normal((p, n)).astype(dtype)
    X = X.T if order == "C" else np.ascontiguousarray(X.T)
    df = pd.DataFrame(X, columns=[f"x{k}" for k in range(p)], copy=False)
    df["y"] = np.arange(n) % 5  # assign() of pandas 2 would copy the features
    return df


def learn(df, formula="y ~ .", dtype="float32", **more):
    more = {"reading": Reading(in_place=True)} | more
    return Design.learn(formula, df, dtype=dtype, **more)


@pytest.mark.parametrize(
    "of_columns, dtype", [("float32", "float32"), ("float64", "float64"), ("float32", "float64")]
)
@pytest.mark.parametrize("standardize", [True, False])
def test_features_have_the_bits_of_a_copy(of_columns, dtype, standardize):
    df = 2.0 + 3.0 * frame(of_columns)
    df["x1"] = np.array(4.0, of_columns)  # a block of its own, and constant
    before = df.copy()
    how = {"dtype": dtype, "standardize": standardize}
    design, batch = learn(df, **how)
    other, copied = Design.learn("y ~ .", df, **how)
    assert isinstance(batch.X, ColumnTiles) and isinstance(copied.X, np.ndarray)
    assert (np.asarray(batch.X) == copied.X).all() and design.constant == ("x1",)
    assert (design.mean == other.mean).all() and (design.scale == other.scale).all()
    assert df.equals(before)


def with_gap(df):
    df.loc[5, "x1"] = np.nan
    return df


@pytest.mark.parametrize(
    "df, formula, dtype, more",
    [
        (frame("float64"), "y ~ .", "float32", {}),
        (frame(), "y ~ x0 + x1:x2", "float32", {}),
        (frame(), "y ~ x0 + np.exp(x1)", "float32", {}),
        (frame().assign(x1=1 + np.arange(N) % 9), "y ~ .", "float32", {}),
        (frame().assign(x1=np.linspace(0, 1, N)), "y ~ .", "float64", {}),
        (frame().assign(x1=np.where(np.arange(N) % 2, "u", "v")), "y ~ .", "float32", {}),
        (with_gap(frame()), "y ~ .", "float32", {}),
        (with_gap(frame()), "y ~ .", "float32", {"missing": "indicator"}),
        (frame(n=SPAN_ROWS), "y ~ .", "float32", {}),
        (frame(order="F"), "y ~ .", "float32", {}),
        (frame(p=129), "y ~ .", "float32", {}),
        (frame(), "y ~ 1", "float32", {}),
    ],
    ids=["wider", "product", "function", "whole", "mixed", "levels", "gap", "indicator", "few",
         "apart", "wide", "none"],
)  # fmt: skip
def test_others_are_copied(df, formula, dtype, more):
    assert isinstance(learn(df, formula, dtype, **more)[1].X, np.ndarray)


def test_few_bytes_and_a_scratch_folder_ask_for_a_copy(tmp_path, monkeypatch):
    df = frame()
    assert isinstance(
        learn(df, reading=Reading(scratch=str(tmp_path), in_place=True))[1].X, np.ndarray
    )
    monkeypatch.setattr("lodim.design.features.MIN_BYTES", 3 * (N + 64) * 4)
    assert isinstance(learn(df)[1].X, np.ndarray)


@pytest.mark.parametrize("weights", [None, np.arange(N) != 7], ids=["counted", "of weight zero"])
def test_a_number_too_far_from_the_others_is_refused(weights):
    df = frame()
    df.loc[slice(7, 7 if weights is not None else N // 2), "x1"] = 1e30  # too many to be wild
    for how in ({"reading": Reading(in_place=True)}, {"reading": Reading(in_place=False)}):
        with pytest.raises(DataError, match="'x1' has a number that is "):
            Design.learn(
                "y ~ .",
                df,
                RowInputs(weights=weights),
                dtype="float32",
                standardize=False,
                **how,
            )
