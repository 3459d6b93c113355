"""Parquet and Arrow files as a source: what pandas reads of them, in pieces."""

import decimal
import pickle

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.frame import read_column, read_frame
from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, read_source
from whole_sources import read_all

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write_arrow(table, path, batch=100):
    """A table as an Arrow file of record batches of so many rows."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)


def write(tables, folder, ending="parquet"):
    """Tables as part-0, part-1, ... of a kind; the pattern that matches them."""
    for k, table in enumerate(tables):
        path = folder / f"part-{k}.{ending}"
        table = pa.table(table) if isinstance(table, dict) else table
        if ending == "parquet":
            pq.write_table(table, path, row_group_size=100)
        else:
            write_arrow(table, path)
    return str(folder / f"part-*.{ending}")


@pytest.fixture
def frame():
    """Rows of every kind that pandas writes, under an index that is no feature."""
    rng = np.random.default_rng(0)
    n = 500
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "x.1": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "whole": rng.integers(9, size=n),
            "nullable": pd.array([1, None] * (n // 2), "Int64"),
            "flag": rng.random(n) < 0.5,
            "maybe": pd.array([True, None] * (n // 2), "boolean"),
            "text": rng.choice(["u", "v", None], n),
            "amount": [decimal.Decimal(k) / 100 for k in range(n)],
            "level": pd.Categorical(rng.choice(["b", "a"], n), categories=["z", "b", "a"]),
            "grade": pd.Categorical(
                rng.choice(["low", "high"], n), categories=["low", "mid", "high"], ordered=True
            ),
        },
        index=np.arange(n) + 7,
    )


@pytest.mark.parametrize("ending, read", [("parquet", pd.read_parquet), ("arrow", pd.read_feather)])
def test_the_rows_of_all_files_are_those_that_pandas_reads(frame, tmp_path, ending, read):
    parts = [frame[:210], frame[210:]]
    pattern = write([pa.Table.from_pandas(part) for part in parts], tmp_path, ending)
    source = read_source(pattern)
    files = sorted(tmp_path.glob("part-*"))
    whole = pd.concat([read(file).reset_index(drop=True) for file in files], ignore_index=True)
    whole = whole.drop(columns="__index_level_0__", errors="ignore")
    assert source.n == 500 and source.names == tuple(frame.columns) and source.kind == "pandas"
    pd.testing.assert_frame_equal(read_all(source), whole)
    pd.testing.assert_frame_equal(read_all(pickle.loads(pickle.dumps(source))), whole)
    some = pd.concat([chunk.frame for chunk in source.chunks(["level", "x"])], ignore_index=True)
    pd.testing.assert_frame_equal(some, whole[["level", "x"]])


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_pieces_are_batches_put_together_until_they_are_a_part(tmp_path, ending):
    tables = [{"x": np.arange(n, dtype=float)} for n in (ROWS_PER_CHUNK + 150, 30)]
    source = read_source(write(tables, tmp_path, ending))
    assert [piece.n for piece in source.pieces] == [65_600, 86, 30]
    batch = "row group" if ending == "parquet" else "record batch"
    assert source.pieces[0].place.startswith(f"part-0.{ending}, {batch}")
    for piece in source.pieces:
        first = 0
        for chunk in piece.read(["x"]):
            assert chunk.first == first and 0 < len(chunk.frame) <= ROWS_PER_CHUNK
            first += len(chunk.frame)
        assert first == piece.n
    whole = read_all(source)["x"]
    assert whole.tolist() == [*range(ROWS_PER_CHUNK + 150), *range(30)]


def test_types_are_unified_over_files(tmp_path):
    tables = [
        {"a": pa.array([1], pa.int8()), "b": pa.array([None]), "c": pa.array([1])},
        {"a": pa.array([2.5], pa.float32()), "b": pa.array(["u"]), "c": pa.array([None])},
        {"a": pa.array([2**40]), "b": pa.array(["v"], pa.string_view()), "c": pa.array([3])},
        {"a": pa.array([None]), "b": pa.array(["w"]).dictionary_encode(), "c": pa.array([4])},
    ]
    for ending in ("parquet", "arrow"):
        got = read_all(read_source(write(tables, tmp_path, ending)))
        assert got["a"].dtype == np.float64 and got["a"].tolist()[:3] == [1, 2.5, 2**40]
        assert got["b"].isna().tolist() == [True, False, False, False]
        assert got["b"].tolist()[1:] == ["u", "v", "w"]
        assert got["c"].tolist()[::2] == [1, 3] and np.isnan(got["c"][1])


def test_a_nullable_column_that_is_fractional_in_another_file_is_a_number(tmp_path):
    tables = [pa.Table.from_pandas(pd.DataFrame({"x": pd.array([1, None], "Int64")}))]
    tables.append(pa.table({"x": [0.5, 2.0]}))
    got = read_all(read_source(write(tables, tmp_path)))["x"]
    np.testing.assert_array_equal(got, [1, np.nan, 0.5, 2])


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_levels_are_those_of_all_files_in_the_order_of_the_categories(tmp_path, ending):
    frames = [
        pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=["b", "a"])}),
        pd.DataFrame({"c": pd.Categorical(["q", None], categories=["b", "q", "a", "w"])}),
    ]
    tables = [pa.Table.from_pandas(frame) for frame in frames]
    source = read_source(write(tables, tmp_path, ending))
    for chunk in source.chunks(["c"]):
        assert list(chunk.frame["c"].cat.categories) == ["b", "a", "q", "w"]
    assert read_all(source)["c"].tolist()[:3] == ["b", "a", "q"]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_categories_of_numbers_are_categories_in_files_too(tmp_path, ending):
    """In the order of the values in Parquet, which has nothing of the order of the categories."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"whole": pd.Categorical(rng.choice([10, 2, 33, 7], 300))})
    frame["share"] = pd.Categorical(rng.choice([0.5, 0.25], 300))
    frame["flag"] = pd.Categorical(rng.random(300) < 0.4)
    frame["many"] = pd.Categorical(np.arange(300) % 150)
    frame["gaps"] = frame["whole"].where(rng.random(300) < 0.9)
    frame["number"], frame["y"] = rng.choice([10, 2, 33], 300), rng.normal(size=300)
    few = frame[200:].apply(lambda x: x.cat.remove_unused_categories() if x.name == "many" else x)
    tables = [pa.Table.from_pandas(part) for part in (frame[:200][::-1], few)]
    got = read_all(read_source(write(tables, tmp_path, ending)))
    assert got["number"].dtype == np.int64
    for name in ("whole", "share", "flag", "many", "gaps"):
        assert got[name].cat.categories.tolist() == frame[name].cat.categories.tolist()
    formula = "y ~ whole + share + flag + gaps + number"
    fits = [ld.glm(formula, data) for data in (frame, str(tmp_path))]
    assert fits[0].design.names == fits[1].design.names
    np.testing.assert_allclose(*(fit.coef().to_numpy() for fit in fits), rtol=1e-9)
    assert ld.glm("whole ~ y", str(tmp_path)).levels == (2, 7, 10, 33)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_an_order_of_numbers_that_a_file_does_not_keep_is_said(tmp_path, ending):
    stage = pd.Categorical([3, 1, 2, 1], categories=[3, 1, 2], ordered=True)
    write([pa.Table.from_pandas(pd.DataFrame({"stage": stage}))], tmp_path, ending)
    if ending == "parquet":
        with pytest.warns(ld.DataWarning, match="'stage' are numbers, whose order Parquet"):
            got = read_all(read_source(str(tmp_path)))["stage"]
    else:
        got = read_all(read_source(str(tmp_path)))["stage"]
    assert got.cat.ordered
    assert got.cat.categories.tolist() == ([1, 2, 3] if ending == "parquet" else [3, 1, 2])


def test_a_category_in_one_file_and_numbers_in_another_are_numbers(tmp_path):
    tables = [pa.table({"x": [3, 1, 3]}), pa.table({"x": [1, 2]})]
    tables[1] = tables[1].set_column(0, "x", tables[1]["x"].dictionary_encode())
    assert read_all(read_source(write(tables, tmp_path)))["x"].tolist() == [3, 1, 3, 1, 2]


def test_an_index_that_some_files_have_is_no_column(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    named = frame.set_index(pd.Index(["a", "b", "c", "d"], name="label"))
    tables = [pa.Table.from_pandas(one) for one in (frame, frame[frame["x"] != 2], named)]
    assert tables[1].column_names == ["x", "__index_level_0__"]
    for order in (tables, tables[::-1]):
        source = read_source(write(order, tmp_path))
        assert source.names == ("x",) and source.n == 11
        assert sorted(read_all(source)["x"]) == [1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4]


def test_an_ordered_category_stays_ordered(tmp_path):
    grades = pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)
    table = pa.Table.from_pandas(pd.DataFrame({"grade": grades}))
    (chunk,) = read_source(write([table], tmp_path)).chunks(["grade"])
    column = read_column(read_frame(chunk.frame), "grade")
    assert column.ordered and column.levels == ("low", "mid", "high")


def test_dates_are_read_as_those_of_a_frame(tmp_path):
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=2)})
    (chunk,) = read_source(write([pa.Table.from_pandas(frame)], tmp_path)).chunks(["day"])
    of_file, of_frame = (read_column(read_frame(f), "day") for f in (chunk.frame, frame))
    assert of_file.kind == of_frame.kind == "date"
    np.testing.assert_array_equal(of_file.values, of_frame.values)


X = {"x": [1.0, 2.0], "y": [3, 4]}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "other, words",
    [
        ({"x": [1.0]}, r"part-1\.\w+ lacks 'y', which .*part-0\.\w+ has"),
        ({**X, "z": [1, 2]}, r"part-1\.\w+ has 'z', which .*part-0\.\w+ lacks"),
        (
            {**X, "x": ["u", "v"]},
            r"'x' must .* it is string in .*part-1\.\w+ and double in .*part-0\.\w+",
        ),
        (
            {**X, "y": [True, False]},
            r"'y' must .* it is bool in .*part-1\.\w+ and int64 in .*part-0\.\w+",
        ),
    ],
)
def test_a_file_in_the_middle_with_another_schema(tmp_path, ending, other, words):
    with pytest.raises(DataError, match=words):
        read_source(write([X, other, X], tmp_path, ending))


def test_the_type_that_does_not_fit_is_compared_with_the_file_it_came_from(tmp_path):
    tables = [{"x": pa.array([None])}, {"x": [1]}, {"x": ["u"]}]
    with pytest.raises(DataError, match=r"string in .*part-2\.parquet and int64 in .*part-1\.parq"):
        read_source(write(tables, tmp_path))


def test_columns_in_another_order_are_the_same_columns(tmp_path):
    other = {"y": [5, 6], "x": [7.0, 8.0]}
    for ending in ("parquet", "arrow"):
        got = read_all(read_source(write([X, other], tmp_path, ending)))
        assert got["x"].tolist() == [1, 2, 7, 8] and got["y"].tolist() == [3, 4, 5, 6]


def test_two_columns_of_one_name(tmp_path):
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    with pytest.raises(DataError, match=r"part-0\.parquet has two columns called 'x'"):
        read_source(write([table], tmp_path))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("left", [0, 3, -40])
def test_a_truncated_file_is_named(tmp_path, ending, left):
    pattern = write([X, X, X], tmp_path, ending)
    path = tmp_path / f"part-1.{ending}"
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(
        DataError, match=rf"part-1\.{ending} cannot be read as .*damaged or incomplete"
    ):
        read_source(pattern)


def test_damage_within_the_data_of_a_file_is_named(tmp_path):
    pattern = write([{"x": np.random.default_rng(0).normal(size=5_000)}], tmp_path)
    path = tmp_path / "part-0.parquet"
    text = bytearray(path.read_bytes())
    text[4:40_000] = bytes(39_996)
    path.write_bytes(bytes(text))
    source = read_source(pattern)
    with pytest.raises(DataError, match=r"part-0\.parquet cannot be read"):
        read_all(source)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_without_rows(tmp_path, ending):
    empty = pa.table(X).slice(0, 0)
    source = read_source(write([empty, X, empty], tmp_path, ending))
    assert source.n == 2 and len(source.pieces) == 1
    with pytest.raises(DataError, match=r"none of the 3 files has a row \(.*part-0"):
        read_source(write([empty] * 3, tmp_path, ending))
    with pytest.raises(DataError, match=rf"part-0\.{ending} has no rows"):
        read_source(str(tmp_path / f"part-0.{ending}"))


def test_a_big_row_group_is_read_little_by_little(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.normal(size=400_000) for j in range(8)})
    path = tmp_path / "big.parquet"
    pq.write_table(table, path, row_group_size=400_000, use_dictionary=False)
    whole = table.nbytes
    del table
    source = read_source(path)
    before = pa.total_allocated_bytes()
    most = 0
    for chunk in source.chunks(source.names):
        assert len(chunk.frame) <= ROWS_PER_CHUNK
        most = max(most, pa.total_allocated_bytes() - before)
    assert len(source.pieces) == 1 and most < whole * 0.6


def test_parquet_files_without_notes_of_arrow_or_with_bad_ones_are_read(tmp_path):
    table = pa.table({"y": [1.0, 2.0, 4.0], "s": ["a", "b", "b"]})
    pq.write_table(table, tmp_path / "bare.parquet", store_schema=False)
    noted = table.replace_schema_metadata({b"pandas": b"{nonsense"})
    pq.write_table(noted, tmp_path / "noted.parquet")
    for name in ("bare", "noted"):
        assert read_all(read_source(tmp_path / f"{name}.parquet"))["s"].tolist() == ["a", "b", "b"]
