"""LazyFrames of polars as a source: what `collect` gives, in chunks."""

import pickle

import numpy as np
import pytest

import lodim as ld
from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, read_source

pl = pytest.importorskip("polars")


def read_all(source):
    """All rows of a source as one DataFrame."""
    return pl.concat([chunk.frame for chunk in source.chunks(source.names)])


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = ROWS_PER_CHUNK + 1_000
    return pl.DataFrame(
        {
            "x": rng.normal(size=n),
            "s": pl.Series(rng.choice(["u", "v"], n)),
            "grade": pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "high"])),
        }
    )


def test_the_rows_are_those_that_collect_gives(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=10_000)
    lazy = pl.scan_parquet(tmp_path / "a.parquet").filter(pl.col("x") > -2)
    source = read_source(lazy)
    assert source.kind == "polars" and source.n is None and source.names == ("x", "s", "grade")
    assert read_all(source).equals(lazy.collect())
    assert read_all(pickle.loads(pickle.dumps(source))).equals(lazy.collect())
    chunks = list(source.chunks(["s"]))
    assert all(
        len(chunk.frame) <= ROWS_PER_CHUNK and chunk.frame.columns == ["s"] for chunk in chunks
    )
    assert [c.first for c in chunks] == [0, *np.cumsum([len(c.frame) for c in chunks])[:-1]]


def test_without_batches_it_is_read_in_slices(frame, monkeypatch):
    monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)
    assert read_all(read_source(frame.lazy())).equals(frame)


@pytest.mark.parametrize("column", ["x", "s"])
def test_rows_that_come_in_another_order_are_noticed(frame, column):
    turn = iter([False, True])

    def order(df):
        return df[::-1] if next(turn) else df

    source = read_source(frame.lazy().map_batches(order, schema=frame.schema))
    list(source.chunks([column]))
    with pytest.raises(DataError, match=rf"order of rows, when .*again \(column '{column}'\)"):
        list(source.chunks([column]))


def test_other_rows_are_noticed_and_the_same_rows_are_not(frame):
    frame = frame.head(100)
    source = read_source(frame.lazy())
    for names in (["x"], ["x", "s"], ["s"], ["grade"]):
        list(source.chunks(names))
    shift = iter([0.0, 1e-12])
    changed = frame.lazy().map_batches(
        lambda df: df.with_columns(x=pl.col("x") + next(shift)), schema=frame.schema
    )
    source = read_source(changed)
    list(source.chunks(["x"]))
    with pytest.raises(DataError, match="gave other rows"):
        list(source.chunks(["x"]))


def test_a_query_that_fails_is_said_in_words(tmp_path):
    with pytest.raises(DataError, match=r"the LazyFrame cannot be computed: .*none\.parquet"):
        read_source(pl.scan_parquet(tmp_path / "none.parquet"))
    with pytest.raises(DataError, match=r"the LazyFrame cannot be computed: .*zzz"):
        read_source(pl.LazyFrame({"x": [1]}).select("zzz"))
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 5_000 + "u\n")
    with pytest.raises(DataError, match="the LazyFrame cannot be computed: "):
        read_all(read_source(pl.scan_csv(tmp_path / "a.csv")))


@pytest.mark.parametrize("sample", [None, 10])
def test_a_query_without_rows_is_refused(frame, sample):
    empty = frame.lazy().filter(pl.col("x") > 100)
    with pytest.raises(DataError, match="the data has no rows"):
        ld.glm("x ~ s", empty, sample=sample)
