"""What comes in goes out: frames of polars and pyarrow, through every model."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import frame, quick
from lodim.design.frame import convert, frame_kind, with_column
from lodim.errors import DataError
from lodim.fitting.registry import MODELS

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

KINDS = {
    "polars": (pl.from_pandas, pl.DataFrame, pl.Series),
    "pyarrow": (lambda df: pa.Table.from_pandas(df, preserve_index=False), pa.Table,
                pa.ChunkedArray),
}  # fmt: skip
HEART = ld.data("heart")[["disease", "age", "chest_pain", "max_heart_rate"]]


def as_pandas(values):
    """A frame or column of any kind as pandas has it, null as NaN or None."""
    return values if isinstance(values, pd.DataFrame | pd.Series) else values.to_pandas()


def same(found, expected):
    found = as_pandas(found).reset_index(drop=True)
    expected = expected.reset_index(drop=True)
    if isinstance(expected, pd.DataFrame):
        assert [*found.columns] == [str(c) for c in expected.columns]
        return all(same(found.iloc[:, j], expected.iloc[:, j]) for j in range(found.shape[1]))
    missing = expected.isna().to_numpy()
    np.testing.assert_array_equal(found.isna(), missing)
    assert found[~missing].tolist() == expected[~missing].tolist()
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_what_comes_in_goes_out(name, kind, tmp_path):
    convert, a_frame, a_column = KINDS[kind]
    model, cheap = getattr(ld, name), quick(getattr(ld, name))
    data, new = HEART[:200], HEART[200:]
    fit, other = (model("disease ~ .", d, **cheap) for d in (data, convert(data)))
    assert isinstance(other.predict(convert(new)), a_column)
    for type in fit.types:
        if type != "interval":
            assert same(other.predict(convert(new), type), fit.predict(new, type))
    assert isinstance(other.predict(convert(new), "prob"), a_frame)
    assert isinstance(other.augment(convert(new)), a_frame)
    assert same(other.augment(convert(new)), fit.augment(new))
    for method in ("tidy", "glance"):
        found = getattr(other, method)()
        assert isinstance(found, a_frame) and same(found, getattr(fit, method)())
    assert isinstance(other.evaluate(convert(new)), a_frame)
    # As is the data that it is asked for, and as was the data that it is made of.
    assert isinstance(fit.predict(convert(new)), a_column)
    assert isinstance(other.predict(new), pd.Series) and isinstance(fit.tidy(), pd.DataFrame)
    assert isinstance(other.predict(dict(new)), pd.Series)
    other.save(tmp_path / "fit.lodim")
    assert isinstance(ld.load(tmp_path / "fit.lodim").tidy(), a_frame)
    assert str(other.summary()) == str(fit.summary()) and repr(other) == repr(fit)


def test_dictionaries_of_numbers_are_categories_as_those_of_pandas_are():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=60), "dose": pd.Categorical(rng.choice([1.5, 3], 60))})
    df["k"] = pd.Categorical((df["x"] > 0).astype(int) + 2 * (df["x"] > 1))
    table = pa.Table.from_pandas(df)
    fits = [ld.gbmap("k ~ x + dose", data, m=1, lambda_=0.1) for data in (df, table)]
    assert all(fit.design.names == ("x", "dose[3.0]") for fit in fits)
    np.testing.assert_array_equal(fits[1].predict(table, "prob"), fits[0].predict(df, "prob"))


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.gbmap, ld.proset, ld.costnet, ld.glm])
def test_a_frame_without_rows_has_no_offsets(model):
    df = ld.data("autompg")[:60].assign(log_time=0.5)
    fit = model("mpg ~ weight + horsepower", df, offset="log_time")
    assert fit.predict(df[:0]).shape == (0,) and len(fit.augment(df[:0])) == 0


def test_dictionaries_of_pyarrow_keep_their_order():
    df = HEART.assign(age=pd.cut(HEART["age"], [0, 50, 60, 99], labels=["young", "mid", "old"]))
    table = pa.concat_tables(
        [pa.Table.from_pandas(df[rows]) for rows in (df.age == "old", ~(df.age == "old"))]
    )
    df = pd.concat([df[df.age == "old"], df[df.age != "old"]])
    fit, other = (ld.glm("disease ~ age", data) for data in (df, table))
    assert fit.design.names == other.design.names == ("age[Linear]", "age[Quadratic]")
    assert same(other.predict(table), fit.predict(df))


def test_categories_have_the_same_levels_in_all_frames_and_files(tmp_path):
    stage = ["lo", "mid", "hi", "never"]
    rows = {"y": [1.0, 2.0, 4.0, 3.0, 5.0, 9.0], "stage": ["mid", "hi", "lo", "mid", "lo", "hi"]}
    df = pd.DataFrame(rows).assign(stage=pd.Categorical(rows["stage"], stage))
    text, table = pl.DataFrame(rows), pa.Table.from_pandas(df)
    df.to_parquet(tmp_path / "df.parquet")
    by_pandas = [df, table, table.to_pandas(types_mapper=pd.ArrowDtype), tmp_path / "df.parquet"]
    for kind, same, names in (
        (None, by_pandas, ("stage[mid]", "stage[hi]")),
        (pl.Enum(stage), [], ("stage[Linear]", "stage[Quadratic]")),
        (pl.Categorical, [], ("stage[lo]", "stage[mid]")),
    ):
        if kind is not None:
            typed = text.with_columns(pl.col("stage").cast(kind))
            typed.write_parquet(tmp_path / "a.parquet")
            typed.write_ipc(tmp_path / "a.arrow")
            files = [tmp_path / "a.parquet", tmp_path / "a.arrow"]
            dataset = pytest.importorskip("pyarrow.dataset").dataset(files[0])
            same = [typed, typed.lazy(), typed.to_arrow(), dataset, *files]
        for data in same:
            assert ld.glm("y ~ stage", data).design.names == names


def test_dictionaries_with_nulls_and_repeated_values_are_categories():
    codes = [pa.array(np.arange(20) % 4, pa.int32()), pa.array(np.arange(20) % 2, pa.int32())]
    levels = [pa.array(["lo", None, "hi", "lo"]), pa.array(["mid", "lo"])]
    parts = [
        pa.DictionaryArray.from_arrays(*part, ordered=True)
        for part in zip(codes, levels, strict=True)
    ]
    table = pa.table({"y": np.sqrt(np.arange(40.0)), "stage": pa.chunked_array(parts)})
    stage = pd.Categorical(table["stage"].to_pylist(), ["lo", "hi", "mid"], ordered=True)
    df = pd.DataFrame({"y": table["y"], "stage": stage})
    assert ld.glm("y ~ stage", table).coef().equals(ld.glm("y ~ stage", df).coef())


def test_categories_of_polars_are_declared_in_memory_as_in_files(tmp_path, recwarn):
    names = pl.Series([f"k{min(k, 24)}" for k in range(45)]).cast(pl.Categorical)
    df = pl.DataFrame({"y": np.sqrt(np.arange(45.0)), "name": names})
    df.write_parquet(tmp_path / "a.parquet")
    for data in (df, df.lazy(), df.to_arrow(), tmp_path / "a.parquet"):
        assert len(ld.glm("y ~ .", data).design.names) == 24
    assert not recwarn.list


def test_decimals_and_dates_are_the_same_numbers_in_all_frames():
    days = pd.date_range("2024-01-01", periods=40).date
    df = pd.DataFrame({"v": [Decimal(k * 7919 % 1013) / 1000 for k in range(40)], "d": days})
    df.loc[3] = None
    df["y"] = np.sqrt(np.arange(40.0))
    expected = ld.glm("y ~ v + days(d)", df).coef()
    table = pa.Table.from_pandas(df)
    assert ld.glm("y ~ v + days(d)", table).coef().equals(expected)
    arrow = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert ld.glm("y ~ v + days(d)", arrow).coef().equals(expected)


@pytest.mark.parametrize("kind", [*KINDS, "dict"])
def test_a_row_of_any_frame_is_drawn(kind):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    convert = KINDS[kind][0] if kind in KINDS else lambda df: {k: [*v] for k, v in df.items()}
    df = HEART.reset_index(drop=True)
    fit = ld.gbmap("disease ~ age + chest_pain", df, m=1, lambda_=0.1)
    drawn = [fit.plot("local", data=data, row=-2).get_title() for data in (df, convert(df))]
    pyplot.close("all")
    assert drawn[0] == drawn[1] and drawn[0].startswith(f"row {len(df) - 2}: predicted")
    with pytest.raises(ld.ArgumentError, match=f"a frame with a row 999; it has {len(df)} rows"):
        fit.plot("local", data=convert(df), row=999)
    assert fit.plot("local", data=convert(df), row=np.int8(1)).get_title().startswith("row 1: pre")
    pyplot.close("all")


def test_tables_that_cannot_be_read_are_refused_in_words():
    table = pa.table([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], names=["y", "x", "x"])
    with pytest.raises(DataError, match="two columns of the data are called 'x'; rename one"):
        ld.glm("y ~ x", table)
    relation = pytest.importorskip("duckdb").sql("SELECT 1.0 AS y, 2.0 AS x")
    with pytest.raises(DataError, match=r"collect it first \(a DuckDB relation with \.df\(\)\)"):
        ld.glm("y ~ x", relation)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_an_answer_are_null(kind):
    convert, *_ = KINDS[kind]
    cars = ld.data("autompg")
    fit = ld.glm("mpg ~ horsepower", convert(cars))
    answer = fit.predict(convert(cars))
    assert answer.null_count() if kind == "polars" else answer.null_count == 6
    classes = ld.glm("origin ~ horsepower", cars).predict(convert(cars), "class")
    assert (classes.null_count() if kind == "polars" else classes.null_count) == 6


@pytest.mark.long
def test_columns_of_several_levels_have_one_name():
    wine = ld.data("wine")
    fit = ld.gbmap("cultivar ~ hue + ash", wine, m=1, lambda_=1.0, threads=1)
    names = fit.predict(pl.from_pandas(wine), "local").columns
    assert names[:3] == ["hue[Barbera]", "ash[Barbera]", "hue[Barolo]"]
    both = ld.ripr("hue + ash ~ alcohol + proline", pl.from_pandas(wine), threads=1)
    assert both.predict(pl.from_pandas(wine)).columns == ["hue", "ash"]
    assert isinstance(both.tidy(), pl.DataFrame) and isinstance(both.glance(), pl.DataFrame)
    assert both.augment(pl.from_pandas(wine)).columns[:14] == [*wine]


def test_paths_and_cross_validation_too():
    data = pl.from_pandas(ld.data("autompg"))
    path = ld.path(ld.gbmap, "mpg ~ weight", data, m=1, n_lambda=3, threads=1)
    assert isinstance(path.tidy(), pl.DataFrame) and isinstance(path.glance(), pl.DataFrame)
    assert isinstance(path.predict(data, lambda_=path.lambdas[1]), pl.Series)
    cv = ld.cv(ld.gbmap, "mpg ~ weight", data, m=1, n_lambda=2, folds=2, threads=1)
    assert isinstance(cv.tidy(), pl.DataFrame)


def test_a_column_more_leaves_the_data_alone():
    data = pd.DataFrame({"x": [1.0, 2.0]})
    more = with_column(data, "y", np.array([3, 4]))
    assert [*data] == ["x"] and more["y"].tolist() == [3, 4]
    assert np.shares_memory(data["x"].to_numpy(), more["x"].to_numpy())
    assert with_column(pl.from_pandas(data), "y", ["a", "b"])["y"].to_list() == ["a", "b"]


def test_kinds_that_are_not_installed_are_pandas(monkeypatch):
    values = pd.DataFrame({"x": [1.0]})
    assert convert(values, "polars").shape == (1, 1) and frame_kind(values) == "pandas"
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    assert convert(values, "polars") is values


def test_odd_names_of_columns():
    data = frame("gaussian")
    fit = ld.glm("answer ~ age", data)
    table = pl.from_pandas(data.rename(columns={"w": ".fitted"}))
    new = fit.augment(table)
    assert new.columns.count(".fitted") == 1
    np.testing.assert_array_equal(new[".fitted"].to_numpy(), fit.predict(data).to_numpy())


def test_a_class_of_the_users_own_may_call_its_base():
    class Doubled(ld.GlmFit):
        def predict(self, data, *arguments, **keywords):
            return 2.0 * super().predict(data, *arguments, **keywords)

        def augment(self, data, **keywords):
            return super().augment(data, **keywords)

    data = pl.from_pandas(ld.data("autompg"))
    fit = ld.glm("mpg ~ weight", data)
    own = Doubled.__new__(Doubled)
    vars(own).update(vars(fit))
    assert own.predict(data).equals(2.0 * fit.predict(data))
    assert own.augment(data).equals(fit.augment(data))


def test_what_needs_rows_in_memory_says_so(tmp_path):
    fit = ld.glm("disease ~ age", HEART)
    dataset = pytest.importorskip("pyarrow.dataset").dataset(pa.Table.from_pandas(HEART))
    frame = pytest.importorskip("dask.dataframe").from_pandas(HEART, npartitions=2)
    for data, what in (
        ("heart.csv", r"a path \('heart.csv'\)"),
        (tmp_path, "a path"),
        (["a.csv", "b.csv"], "a path"),
        (dataset, "pyarrow"),
        (frame, "dask"),
    ):
        with pytest.raises(DataError, match=f"not {what}.*: read its rows into memory first"):
            fit.check(data)


def test_a_level_by_position_is_no_data():
    pl = pytest.importorskip("polars")
    fit = ld.glm("mpg ~ weight", pl.from_pandas(ld.data("autompg")))
    assert isinstance(fit.tidy(0.9), pl.DataFrame)


def test_one_value_as_a_column_is_refused_with_the_list_to_write():
    fit = ld.glm("mpg ~ weight", ld.data("autompg"))
    with pytest.raises(ld.DataError, match=r"such as \[3000\], not one value"):
        fit.predict({"weight": 3000})


@pytest.mark.parametrize(
    "data, words",
    [
        ({"y": [1, 2, 3], "x": [1, 2]}, "same length; they have 'y' 3, 'x' 2"),
        ({"y": pd.Series([1, 2]), "x": pd.Series([1, 2], [1, 0])}, "different row labels; align"),
        ({"y": [1, 2], "x": np.ones((2, 2))}, "'x' has 2 dimensions; it must have one"),
    ],
)
def test_columns_of_a_dict_belong_together(data, words):
    with pytest.raises(DataError, match=words):
        ld.glm("y ~ x", data)


def test_columns_of_polars_without_values_or_of_durations_are_refused_in_words():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"y": [1.0, 2.0, 4.0], "x": [1.0, 3.0, 2.0], "none": [None] * 3})
    table = table.with_columns(span=pl.duration(days=pl.col("x").cast(int)))
    assert ld.glm("y ~ x", table).n == 3
    with pytest.raises(DataError, match="leave 'none' out of the formula"):
        ld.glm("y ~ x + none", table)
    with pytest.raises(DataError, match=r"'span' has Duration.* make it a number"):
        ld.glm("y ~ span", table)
