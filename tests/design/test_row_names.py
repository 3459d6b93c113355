"""Columns that name the rows: left out of a dot with a warning, refused where they are written."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.design import Design
from lodim.errors import DataError, DataWarning

N = 200


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=N), "g": rng.choice(list("uvw"), N)})
    df["id"] = [f"r{i}" for i in range(N)]
    return df.assign(y=df.a + rng.normal(size=N))


def test_a_dot_leaves_out_names_of_rows(df):
    with pytest.warns(DataWarning, match="'id' seems to be row names: 200 of 200 rows .* '. - id'"):
        fit = ld.glm("y ~ .", df)
    assert fit.design.left_out == ("id",)
    assert "(1 column left out of '.')" in str(fit)
    assert "Left out of '.', because they seem to be row names: id." in str(fit.summary())
    assert fit.coef().equals(ld.glm("y ~ . - id", df).coef())
    assert fit.predict(df.drop(columns="id")).notna().all()


def test_names_of_rows_that_differ_only_in_case_give_one_warning(df, recwarn):
    ld.glm("y ~ .", df.assign(id=["rR"[i % 2] + str(i // 2) for i in range(N)]))
    assert ["seems to be row names" in str(one.message) for one in recwarn.list] == [True]


def test_a_row_that_misses_its_name_alone_stays(df):
    data = df.assign(id=df.id.where(df.index > 4))
    with pytest.warns(DataWarning, match="195 of 195 rows"):
        assert ld.glm("y ~ .", data).n == N


@pytest.mark.parametrize("formula", ["y ~ id", "y ~ . + id", "y ~ a:id", "y ~ . - a + Q('id')"])
def test_names_of_rows_are_refused_where_they_are_written(df, formula):
    with pytest.raises(
        DataError, match=r"seems to be row names: .*'- id', or write C.id. to use its"
    ):
        ld.glm(formula, df)


def test_levels_that_are_meant_are_taken(df):
    for formula, data in (("y ~ C(id) + a", df), ("y ~ id + a", df.astype({"id": "category"}))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(Design.learn(formula, data)[0].names) == N + 1
    with pytest.warns(DataWarning, match="seems to be row names"):
        design, _ = Design.learn("y ~ . + C(id)", df)
    assert len(design.names) == 4 + N


@pytest.mark.parametrize(
    "levels",
    [
        np.arange(20),  # few
        np.repeat(np.arange(100), 2)[:-1],  # pairs, one of which is incomplete
        np.r_[np.arange(99), np.repeat(999, 101)],  # most rows share a level
        np.repeat(np.arange(40), 5),
    ],
)
def test_ordinary_levels_are_taken_in_silence(levels):
    levels = np.array([f"r{k}" for k in levels])
    df = pd.DataFrame({"g": levels, "y": np.random.default_rng(0).normal(size=len(levels))})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Design.learn("y ~ .", df)[0].left_out == ()


def test_numbers_and_columns_without_a_dot_are_no_names_of_rows(df):
    with pytest.raises(DataError, match="was read as text"):
        Design.learn("y ~ .", df.assign(id=df.a.astype(str)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Design.learn("y ~ . - id", df)
        Design.learn("y ~ a + np.where(id == 'r3', 1, 0)", df)


NUMBERS = np.random.default_rng(1).permutation(N) + 1


@pytest.mark.parametrize("name", ["id", "PatientID", "Unnamed: 0", "sample_code_number", "patient"])
@pytest.mark.parametrize(
    "numbers",
    [NUMBERS, np.sort(NUMBERS) - 1.0, 977 * NUMBERS, np.where(NUMBERS < 9, np.nan, NUMBERS)],
)
def test_numbers_of_rows_are_named(df, name, numbers):
    data = df[["y", "a"]].assign(**{name: numbers})
    quoted = name if name.isidentifier() else f"Q('{name}')"
    words = f"'{name}' seems to number the rows: .* '. - {re.escape(quoted)}' leaves it out"
    with pytest.warns(DataWarning, match=words):
        assert Design.learn("y ~ .", data)[0].names == ("a", name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Design.learn(f"y ~ . + {quoted}", data)
        Design.learn(f"y ~ . - {quoted}", data)
        Design.learn("y ~ .", data[:20])


def test_numbers_of_rows_as_text_are_left_out(df):
    with pytest.warns(DataWarning, match="'id' seems to be row names: 200 of 200 rows"):
        assert Design.learn("y ~ . - g", df.assign(id=NUMBERS.astype(str)))[0].names == ("a",)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("steps", NUMBERS), ("year", 1800 + NUMBERS), ("id", NUMBERS // 3), ("id", NUMBERS + 0.5)],
)
def test_measurements_are_taken_in_silence(df, name, numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Design.learn("y ~ .", df[["y", "a"]].assign(**{name: numbers}))


def test_numbers_of_rows_in_a_file_are_named_once(df, tmp_path):
    df.assign(id=NUMBERS).to_csv(tmp_path / "d.csv", index=False)
    for call in (ld.glm, partial(ld.cv, ld.gbmap, grid={"lambda_": [0.1, 1.0]}, m=1, folds=2)):
        for data in (str(tmp_path / "d.csv"), pd.read_csv(tmp_path / "d.csv")):
            with pytest.warns(DataWarning, match="'id' seems to number the rows") as caught:
                call(formula="y ~ .", data=data)
            assert len({str(one.message) for one in caught}) == 1


def test_streamed_data_and_other_calls(df, tmp_path):
    df.to_csv(tmp_path / "d.csv", index=False)
    with pytest.warns(DataWarning, match="'id' seems to be row names"):
        fit = ld.glm("y ~ .", str(tmp_path / "d.csv"))
    expected = ld.glm("y ~ a + g", df)
    np.testing.assert_allclose(fit.coef(), expected.coef(), rtol=1e-9)
    calls = {"one": (ld.gbmap, {"m": 1, "lambda_": 0.1}), "linear": "glm"}
    with pytest.warns(DataWarning, match="'id' seems to be row names") as caught:
        table = ld.compare("y ~ .", df, calls, folds=2, baselines=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lodim.comparison.candidates.TREES", 2)
            ld.compare("y ~ .", df, ["glm"], folds=2)
    assert len(caught) == 2
    expected = ld.compare("y ~ . - id", df, calls, folds=2, baselines=False)
    assert table.tidy()["deviance"].equals(expected.tidy()["deviance"])
    with pytest.warns(DataWarning, match="'id' seems to be row names"):
        ld.cv(ld.gbmap, "y ~ .", df, grid={"lambda_": [0.1]}, m=1, folds=2)
    fit.save(tmp_path / "fit.lodim")
    assert ld.load(tmp_path / "fit.lodim").design.left_out == ("id",)
