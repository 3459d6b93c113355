"""Dask DataFrames as a source: what `compute` gives, partition by partition."""

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.errors import DataError
from lodim.sources import dask_frames, read_source
from whole_sources import read_all

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 1_000
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "s": rng.choice(["u", "v"], n),
            "level": pd.Categorical(rng.choice(["b", "a"], n), categories=["z", "b", "a"]),
        }
    )


def test_partitions_are_pieces_that_carry_their_own_rows_alone(frame):
    lazy = dd.from_pandas(frame, npartitions=4)
    source = read_source(lazy)
    assert source.kind == "dask" and source.names == ("x", "s", "level") and source.n is None
    assert [piece.place for piece in source.pieces] == [f"partition {k}" for k in (1, 2, 3, 4)]
    pd.testing.assert_frame_equal(read_all(source), lazy.compute())
    sent = [pickle.dumps(piece) for piece in source.pieces]
    assert len(sent[0]) < 0.6 * len(pickle.dumps(frame))
    again = [chunk.frame for one in sent for chunk in pickle.loads(one).read(["s"])]
    assert pd.concat(again)["s"].tolist() == frame["s"].tolist()


def test_a_partition_is_cut_into_chunks(frame, monkeypatch):
    monkeypatch.setattr(dask_frames, "ROWS_PER_CHUNK", 300)
    source = read_source(dd.from_pandas(frame, npartitions=2))
    chunks = list(source.chunks(["x"]))
    assert [chunk.first for chunk in chunks] == [0, 300, 0, 300]
    assert np.concatenate([c.frame["x"] for c in chunks]).tolist() == frame["x"].tolist()


@pytest.mark.parametrize("name", ["level", "self"])
def test_levels_that_dask_does_not_know_are_those_of_all_partitions(frame, tmp_path, name):
    frame = frame.rename(columns={"level": name})
    with warnings.catch_warnings(action="ignore"):  # of pandas, in dask itself
        dd.from_pandas(frame, npartitions=2).to_parquet(tmp_path)
        lazy = dd.read_parquet(tmp_path)
        assert not lazy[name].cat.known
        source = read_source(lazy)
        assert read_all(source)[name].tolist() == frame[name].tolist()
    for chunk in source.chunks([name]):
        assert list(chunk.frame[name].cat.categories) == ["z", "b", "a"]


def test_a_source_of_some_columns_computes_no_others(frame):
    seen = []

    def note(part):
        seen.append(list(part.columns))
        return part

    lazy = dd.from_pandas(frame, npartitions=2)[["x", "s"]]
    some = read_source(lazy.map_partitions(note, meta=lazy._meta)).select(["x"])
    assert some.names == ("x",)
    assert [list(chunk.frame) for chunk in some.chunks(["x"])] == [["x"], ["x"]]
    of_all = read_source(lazy).select(["x"]).pieces[0]
    assert len(pickle.dumps(of_all)) < len(pickle.dumps(read_source(lazy).pieces[0]))


def test_rows_that_come_in_another_order_are_noticed(frame):
    turn = iter([False, False, True, False])
    lazy = dd.from_pandas(frame, npartitions=2)
    shaken = lazy.map_partitions(lambda df: df[::-1] if next(turn) else df, meta=lazy._meta)
    source = read_source(shaken)
    list(source.chunks(["x"]))
    with pytest.raises(DataError, match=r"partition \d gave other rows, or another order"):
        list(source.chunks(["x"]))


def change(part, partition_info=None):
    """A partition whose second has text for a number, no column, or an error."""
    if partition_info is None or partition_info["number"] != 1:
        return part
    return part.assign(x=part["s"])


def lose(part, partition_info=None):
    return part if partition_info["number"] != 1 else part[["s"]]


def fail(part, partition_info=None):
    raise ZeroDivisionError("no such luck")


@pytest.mark.parametrize(
    "spoil, words",
    [
        (
            change,
            r"column 'x' must be float64, as in the Dask DataFrame; it is str\w* in partition 2",
        ),
        (lose, "partition 2 must have the column 'x'"),
        (fail, "partition 1 cannot be computed: no such luck"),
    ],
)
def test_a_bad_partition_is_named(frame, spoil, words):
    lazy = dd.from_pandas(frame, npartitions=3)[["x", "s"]]
    spoilt = lazy.map_partitions(spoil, meta=lazy._meta, enforce_metadata=False)
    with pytest.raises(DataError, match=words):
        read_all(read_source(spoilt))


def test_names_that_are_no_texts(frame):
    lazy = dd.from_pandas(frame[["x"]].set_axis([0], axis=1), npartitions=2)
    with pytest.raises(DataError, match="distinct names that are strings"):
        read_source(lazy)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask itself
def test_small_files_that_dask_joins_where_few_columns_are_read(tmp_path):
    rows = pd.DataFrame({name: np.arange(40.0) for name in "abcdefgh"})
    for k in range(4):
        rows[10 * k : 10 * k + 10].to_parquet(tmp_path / f"{k}.parquet", index=False)
    source = read_source(dd.read_parquet(tmp_path))
    some = source.select(["h", "a"])
    assert len(some.pieces) < len(source.pieces) == 4  # else this tests nothing
    read = read_all(some)
    assert list(read) == ["h", "a"] and read.a.tolist() == rows.a.tolist()


def test_chunks_of_other_kinds_are_named(frame):
    def part(k):
        ordered = pd.Categorical(frame["s"], sorted(set(frame["s"]), reverse=k == 1), ordered=True)
        spans = pd.Series([datetime.timedelta(k)] * len(frame), frame.index, dtype=object)
        lists = pd.Series([[k]] * len(frame), frame.index)
        return frame.assign(ordered=ordered, spans=spans, lists=lists)

    with dask.config.set({"dataframe.convert-string": False}):
        data = dd.from_map(part, [0, 1], meta=part(0))
        with pytest.raises(DataError, match=r"ordered categories of column 'ordered'.* same categ"):
            ld.glm("x ~ ordered", data)
        with pytest.raises(DataError, match="partition 1: column 'spans' has dates or times"):
            ld.glm("x ~ spans", data)
        with pytest.raises(DataError, match="partition 1: column 'lists' has values of type list"):
            ld.glm("x ~ lists", data)
