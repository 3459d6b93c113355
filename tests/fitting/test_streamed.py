"""Predictions of rows that are not in memory, and predictions into files."""

import os
import warnings

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow.dataset import dataset

import lodim as ld
from lodim.fitting import streamed
from lodim.sources import Source


@pytest.fixture(scope="module")
def cars():
    cars = ld.data("autompg")
    rng = np.random.default_rng(0)
    cars["w"] = np.where(np.arange(len(cars)) < 100, 0.0, rng.random(len(cars)) + 0.5)
    cars["base"] = rng.normal(size=len(cars)) / 5
    cars["count"] = rng.poisson(3.0, len(cars)).astype(float)
    cars.loc[100:199, "count"] = 0.0
    cars["heavy"] = cars["weight"] > 2800 + 400 * rng.normal(size=len(cars))
    cars.loc[[7, 250], "horsepower"] = np.nan
    return cars


@pytest.fixture
def files(cars, tmp_path):
    """Four files, of which the first has no weight above zero and the second no count above 0."""
    for k in range(4):
        cars[100 * k : 100 * (k + 1)].to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    return str(tmp_path / "part-*.parquet")


FITS = {
    "numbers": ("mpg ~ acceleration + origin", {}),
    "counts": ("count ~ acceleration", {"family": "poisson"}),
    "gamma": ("mpg ~ acceleration", {"family": "gamma"}),
    "classes": ("origin ~ acceleration + weight", {}),
    "two classes": ("heavy ~ acceleration + horsepower", {}),
}


@pytest.mark.long
@pytest.mark.parametrize("offset", [None, "base"])
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("name", FITS)
def test_evaluation_by_sums_over_files(cars, files, name, weights, offset):
    formula, more = FITS[name]
    given = {"weights": weights, "offset": None if name == "classes" else offset}
    fit = ld.glm(formula, cars, **more, **given)
    pd.testing.assert_frame_equal(fit.evaluate(files), fit.evaluate(cars), check_exact=True)


def test_evaluation_of_a_response_that_does_not_vary(cars, tmp_path):
    fit = ld.glm("mpg ~ acceleration", cars)
    for k in range(2):
        cars[:9].assign(mpg=0.1).to_parquet(tmp_path / f"{k}.parquet")
    row = fit.evaluate(tmp_path).iloc[0]
    assert row["n"] == 18 and np.isnan(row["dev_ratio"])
    cars[:9].assign(mpg=np.nan).to_parquet(tmp_path / "none.parquet")
    with pytest.raises(ld.DataError, match="no complete row"):
        fit.evaluate(tmp_path / "none.parquet")
    weighted = ld.glm("mpg ~ acceleration", cars, weights="w")
    with pytest.raises(ld.DataError, match="weight above zero"):
        weighted.evaluate(tmp_path / "0.parquet")


def test_an_offset_of_an_array_goes_by_the_rows(cars, files):
    base = cars["base"].to_numpy()
    fit = ld.glm("mpg ~ acceleration", cars, offset=base)
    for offset in (base, cars["base"], list(base)):
        pd.testing.assert_series_equal(
            fit.predict(files, offset=offset), fit.predict(cars, offset=base)
        )
    pd.testing.assert_frame_equal(
        fit.evaluate(files, offset=base), fit.evaluate(cars, offset=base), rtol=1e-10
    )
    for wrong in (base[:-1], np.append(base, 0.0)):
        for ask in (fit.predict, fit.evaluate):
            with pytest.raises(ld.DataError, match=f"it has {len(wrong)} values, and the data"):
                ask(files, offset=wrong)
    with pytest.raises(ld.DataError, match="row labels"):
        fit.predict(files, offset=cars["base"][::-1])


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv"])
def test_output_of_a_frame_and_of_files(cars, files, tmp_path, ending):
    """Whole numbers, classes and gaps stay what they are; labels of rows are written too."""
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv}.get(ending, pd.read_feather)
    fit = ld.glm("heavy ~ acceleration + horsepower", cars)
    out = tmp_path / f"out.{ending}"
    assert fit.predict(files, "class", output=out) == str(out)
    answers = read(out)["heavy"]
    assert len(answers) == len(cars) and (answers.isna() == cars["horsepower"].isna()).all()
    assert set(answers.dropna()) == {True, False}
    table = pa.Table.from_pandas(cars)
    for data in (files, cars, table):
        fit.augment(data, output=str(out))
        assert out.read_bytes()
        back = read(out)
        assert list(back) == [*cars, *list(fit.augment(cars[:2]))[len(cars.columns) :]]
        assert back["model_year"].dtype == "int64" and len(back) == len(cars)
        np.testing.assert_allclose(back[".fitted"], fit.predict(cars), rtol=1e-12)
    labelled = cars.rename(index="car{}".format).rename_axis("name")
    fit.predict(labelled, output=out)
    back = read(out, index_col=0) if ending == "csv" else read(out)
    assert list(back.index) == list(labelled.index) and back.index.name == "name"
    assert not list(tmp_path.glob(".lodim-*"))


def test_a_first_chunk_without_any_answer(cars, tmp_path):
    cars = cars.copy()
    cars.loc[:99, "horsepower"] = np.nan
    fit = ld.glm("heavy ~ horsepower", cars)
    for k in range(3):
        part = cars[100 * k : 100 * (k + 1)]
        part.to_parquet(tmp_path / f"{k}.parquet")
    fit.predict(tmp_path, "class", output=tmp_path / "out.arrow")
    column = pa.ipc.open_file(str(tmp_path / "out.arrow")).read_all()["heavy"]
    assert column.type == pa.bool_() and column.null_count == cars[:300]["horsepower"].isna().sum()
    fit.predict(tmp_path / "0.parquet", "class", output=tmp_path / "none.parquet")
    assert pd.read_parquet(tmp_path / "none.parquet")["heavy"].isna().all()


def test_what_is_wrong_is_told_with_its_file_and_row_and_leaves_nothing(cars, files, tmp_path):
    fit = ld.gbmap("mpg ~ weight + origin", cars, m=1, lambda_=0.1, missing="drop")
    bad = cars[200:300].assign(origin=["Mars" if k == 31 else "USA" for k in range(100)])
    bad.to_parquet(tmp_path / "part-2.parquet")
    out = tmp_path / "out.parquet"
    out.write_text("as it was")
    for ask in (lambda: fit.predict(files, output=out), lambda: fit.augment(files),
                lambda: fit.evaluate(files)):  # fmt: skip
        with pytest.raises(ld.DataError, match=r"^part-2.parquet, row group 1, row 31: .*'Mars'"):
            ask()
    missing = fit.predict(files, new_levels="missing")
    assert list(missing.index[missing.isna()]) == [231]
    bad.assign(origin="USA", weight=np.where(np.arange(100) < 50, 1e3, np.inf)).to_parquet(
        tmp_path / "part-2.parquet"
    )
    with pytest.raises(ld.DataError, match=r"part-2.parquet, row group 1: .*infinite in row 50"):
        fit.predict(files)
    bad.drop(columns="weight").to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ld.DataError, match="no column 'weight' in the data; the names are 'mpg'"):
        fit.predict(tmp_path / "other.parquet", output=out)
    assert out.read_text() == "as it was" and not list(tmp_path.glob(".lodim-*"))
    for name in ("out", "out.txt", 3):
        with pytest.raises(ld.ArgumentError, match="output"):
            fit.predict(cars, output=name)
    with pytest.raises(ld.DataError, match="cannot be written"):
        fit.predict(cars, output=tmp_path / "no folder" / "out.csv")


def test_a_summary_says_that_rows_were_drawn(cars, files):
    for data in (cars, files):
        said = ld.glm("mpg ~ weight", data, sample=100).summary().notes[-1]
        assert said.startswith("Fitted to a random sample of at most 100 rows")
    assert "drawn" not in str(ld.glm("mpg ~ weight", cars).summary())


def test_a_file_that_is_read_is_not_written_over(cars, files, tmp_path):
    fit = ld.glm("mpg ~ weight", cars)
    first = tmp_path / "part-0.parquet"
    before = first.read_bytes()
    (tmp_path / "link.parquet").symlink_to(first)
    for out in (first, f"{tmp_path}/../{tmp_path.name}/part-0.parquet", tmp_path / "link.parquet"):
        for ask in (fit.predict, fit.augment):
            with pytest.raises(ld.ArgumentError, match="must not be one of the input files"):
                ask(files, output=out)
    assert first.read_bytes() == before


def test_text_among_numbers_and_paths_where_frames_are_meant_are_named(cars, tmp_path):
    fit = ld.glm("mpg ~ weight", cars)
    file = tmp_path / "new.csv"
    file.write_text("mpg,weight\n20,2000\n21,n.a.?\n22,2200\n")
    with pytest.raises(ld.DataError, match=r"must have numbers, .* here it has 'n\.a\.\?'"):
        fit.predict(file)
    for ask in (lambda: fit.check(file), lambda: ld.effects(fit, str(file))):
        with pytest.raises(
            ld.DataError, match=r"not a path \(.*new.csv.*: read its rows into memory first"
        ):
            ask()


def test_nothing_is_left_after_an_interrupt(cars, files, tmp_path, monkeypatch):
    fit = ld.gbmap("mpg ~ weight + origin", cars, m=1, lambda_=0.1)
    before, predict, calls = sorted(os.listdir(tmp_path)), fit._predict, []

    def interrupted(batch, type):
        calls.append(sorted(os.listdir(tmp_path)))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict(batch, type)

    monkeypatch.setattr(fit, "_predict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit.predict(files, output=tmp_path / "out.parquet")
    assert len(calls[-1]) == len(before) + 1 and sorted(os.listdir(tmp_path)) == before


def test_only_the_columns_that_a_prediction_needs_are_read(cars, files, monkeypatch):
    asked = []
    read = Source.chunks
    monkeypatch.setattr(Source, "chunks", lambda s, names: asked.append(names) or read(s, names))
    prices = {"weight": 1.0, "acceleration": 5.0}
    fit = ld.costnet("mpg ~ weight + acceleration", cars, costs=prices, budget=1.0)
    fit.predict(files)
    assert {tuple(names) for names in asked} == {("weight",)}
    asked.clear()
    dear = ld.costnet("mpg ~ weight + acceleration", cars, costs=prices)
    expected = dear.at(1.0).predict(cars)
    pd.testing.assert_series_equal(dear.at(1.0).predict(files), expected)
    offset = ld.glm("mpg ~ acceleration", cars, offset="base", weights="w")
    asked.clear()
    offset.predict(files)
    assert {tuple(names) for names in asked} == {("acceleration", "base")}


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "lazy"])
def test_a_model_without_features_predicts_each_row(cars, tmp_path, ending):
    data = cars.reset_index(drop=True)
    path = tmp_path / f"cars.{ending}"
    if ending != "lazy":
        getattr(data, f"to_{ending}")(path, **{"index": False} if ending == "csv" else {})
    fit = ld.glm("mpg ~ 1", data)
    found = fit.predict(pl.from_pandas(data).lazy() if ending == "lazy" else path)
    np.testing.assert_array_equal(found, fit.predict(data))


def test_lazy_frames_and_datasets_give_frames_of_their_kind(cars):
    fit = ld.glm("heavy ~ acceleration + horsepower", cars)
    table = pa.Table.from_pandas(cars)
    frame = pl.from_arrow(table)
    for lazy, eager in ((frame.lazy(), frame), (dataset(table), table)):
        for ask in (lambda data: fit.predict(data, "class"), fit.predict, fit.augment):
            found, expected = ask(lazy), ask(eager)
            assert type(found) is type(expected) and found.equals(expected)
        assert type(fit.evaluate(lazy)) is type(eager)
    assert isinstance(fit.evaluate(lazy), pa.Table)


def test_a_dask_frame_is_answered_by_a_lazy_one(cars, tmp_path):
    fit = ld.glm("heavy ~ acceleration + origin", cars)
    lazy = dd.from_pandas(cars.set_axis(range(100, 100 + len(cars))), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        frame = lazy.compute()
        for type_ in ("response", "class", "prob"):
            found = fit.predict(lazy, type_)
            assert isinstance(found, dd.Series | dd.DataFrame)
            computed, expected = found.compute(), fit.predict(frame, type_)
            assert computed.index.equals(expected.index) and (computed == expected).all(axis=None)
        pd.testing.assert_frame_equal(
            fit.augment(lazy).compute(), fit.augment(frame), check_dtype=False
        )
        pd.testing.assert_frame_equal(fit.evaluate(lazy), fit.evaluate(frame), check_exact=True)
        fit.predict(lazy, output=tmp_path / "out.csv")
        assert len(pd.read_csv(tmp_path / "out.csv")) == len(cars)
        new = dd.from_pandas(
            cars.assign(origin=["Mars"] * 10 + ["USA"] * (len(cars) - 10)), npartitions=2
        )
        asked = fit.predict(new)  # nothing is computed yet
        with pytest.raises(ld.DataError, match=r"partition 1: .*'Mars'"):
            asked.compute()
        offset = ld.glm("mpg ~ acceleration", cars, offset=cars["base"])
        with pytest.raises(ld.ArgumentError, match="no known length"):
            offset.predict(lazy, offset=cars["base"].to_numpy())


def test_warnings_of_chunks_are_told_once(cars, files):
    fit = ld.gbmap("mpg ~ weight", cars[cars["weight"] < 2500], m=1, lambda_=1e-3)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        fit.predict(files)
    assert len(raised) == 1 and raised[0].filename == __file__
    assert raised[0].category is ld.ExtrapolationWarning
    assert "part-0.parquet" in str(raised[0].message) and "similar warnings" in str(
        raised[0].message
    )


def test_an_unknown_type_is_refused_before_the_file_is_read(cars, tmp_path):
    fits = [ld.glm("mpg ~ weight", cars), ld.ripr("mpg + weight ~ displacement", cars, k=10)]
    for fit in fits:
        for name in ("prb", "classes"):
            with pytest.raises(ld.ArgumentError, match="type must be one of response"):
                fit.predict(tmp_path / "no_such_file.csv", name)


@pytest.mark.long
def test_several_responses(cars, files, tmp_path):
    cars["thirsty"] = cars["mpg"] < 20
    cars.to_parquet(tmp_path / "all.parquet")
    fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
    for ask in (fits.predict, fits.augment):
        pd.testing.assert_frame_equal(ask(tmp_path / "all.parquet"), ask(cars))
    pd.testing.assert_frame_equal(
        fits.evaluate(tmp_path / "all.parquet"), fits.evaluate(cars), rtol=1e-10
    )
    fits.predict(files, "prob", output=tmp_path / "out.parquet")
    names = list(pd.read_parquet(tmp_path / "out.parquet"))
    assert names == ["False[thirsty]", "True[thirsty]", "False[heavy]", "True[heavy]"]


def test_the_help_says_what_output_is():
    for model in ("gbmap", "costnet", "glm", "melm", "proset", "ripr"):
        fit = getattr(ld, f"{model.capitalize()}Fit")
        assert all(streamed.OUTPUT in getattr(fit, m).__doc__ for m in ("predict", "augment"))


def test_augment_keeps_the_columns_of_a_dict():
    df = ld.data("autompg")[:60]
    fit = ld.glm("mpg ~ weight", df)
    given = {"weight": df["weight"].tolist(), "mpg": df["mpg"], "note": ["a"] * 60}
    expected = fit.augment(df[["weight", "mpg"]].assign(note="a"))
    pd.testing.assert_frame_equal(fit.augment(given), expected)


def test_negative_weights_and_no_rows_are_refused(cars, tmp_path):
    pl = pytest.importorskip("polars")
    fit = ld.glm("mpg ~ weight", cars, weights="cylinders")
    for sign in (1, -1):
        cars[:50].assign(cylinders=sign * 4).to_csv(tmp_path / f"{sign}.csv", index=False)
    assert fit.evaluate(tmp_path / "1.csv")["deviance"][0] > 0
    with pytest.raises(ld.DataError, match="weights must be 0 or more; the smallest is -4"):
        fit.evaluate(tmp_path / "-1.csv")
    with pytest.raises(ld.DataError, match="the data has no rows"):
        fit.predict(pl.LazyFrame({"weight": [1.0]}).filter(pl.col("weight") > 2))


def test_models_without_features_and_weights_of_another_length(cars, tmp_path):
    cars.to_csv(tmp_path / "cars.csv", index=False)
    fit = ld.gbmap("mpg ~ 1", tmp_path / "cars.csv", m=1, control={"scratch": str(tmp_path)})
    assert fit.predict(cars[:1])[0] == pytest.approx(cars["mpg"].mean())
    with pytest.raises(ld.DataError, match="weights must have one value per row; it has 2 values"):
        ld.gbmap("mpg ~ weight", tmp_path / "cars.csv", m=1, weights=[1, 2], sample=50)
