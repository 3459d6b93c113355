"""Datasets of pyarrow as a source: what `to_table` gives, in pieces."""

import pickle

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.errors import DataError
from lodim.sources import ROWS_PER_CHUNK, read_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")


def read_all(source):
    """All rows of a source as one Table."""
    return pa.concat_tables([chunk.frame for chunk in source.chunks(source.names)])


@pytest.fixture
def folder(tmp_path):
    """Three files in folders that are a column."""
    rng = np.random.default_rng(0)
    for k in range(3):
        below = tmp_path / f"year={2000 + k}"
        below.mkdir()
        table = pa.table({"x": rng.normal(size=700), "s": rng.choice(["u", "v"], 700)})
        pq.write_table(table, below / f"part-{k}.parquet", row_group_size=300)
    return tmp_path


def test_fragments_come_in_order_with_their_partition_columns(folder):
    dataset = ds.dataset(folder, partitioning="hive")
    source = read_source(dataset)
    assert source.kind == "pyarrow" and source.n == 2_100 and source.names == ("x", "s", "year")
    assert [piece.place for piece in source.pieces] == [
        f"part-{k}.parquet, row groups 1 to 3" for k in range(3)
    ]
    assert read_all(source).equals(dataset.to_table())
    assert read_all(pickle.loads(pickle.dumps(source))).equals(dataset.to_table())


def test_a_filter_is_respected_and_the_dataset_keeps_it(folder):
    x, year = ds.field("x"), ds.field("year")
    dataset = ds.dataset(folder, partitioning="hive").filter((x > 0) & (year > 2000))
    source = read_source(dataset)
    assert source.n is None
    table = dataset.to_table()
    assert 0 < table.num_rows < 2_100 and read_all(source).equals(table)
    (chunk, *_) = read_source(dataset).chunks(["s"])
    assert chunk.frame.column_names == ["s"]


def test_a_big_fragment_is_read_in_chunks(tmp_path):
    table = pa.table({"x": np.arange(ROWS_PER_CHUNK * 2 + 5.0)})
    pq.write_table(table, tmp_path / "a.parquet")
    source = read_source(ds.dataset(tmp_path / "a.parquet"))
    chunks = list(source.chunks(["x"]))
    assert [chunk.first for chunk in chunks] == [0, ROWS_PER_CHUNK, 2 * ROWS_PER_CHUNK]
    assert pa.concat_tables([chunk.frame for chunk in chunks]).equals(table)


def test_other_files_unions_and_tables(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,u\n2,v\n")
    of_csv = ds.dataset(tmp_path / "a.csv", format="csv")
    in_memory = ds.dataset(of_csv.to_table())
    for dataset in (of_csv, ds.dataset([of_csv, of_csv]), in_memory):
        assert read_all(read_source(dataset)).equals(dataset.to_table())


def test_a_file_whose_column_is_of_another_type(folder):
    dataset = ds.dataset(folder, partitioning="hive")
    path = folder / "year=2001" / "part-1.parquet"
    pq.write_table(pa.table({"x": ["a", "b"], "s": ["u", "v"]}), path)
    with pytest.raises(DataError, match=r"part-1\.parquet cannot be read as a file of the dataset"):
        read_all(read_source(dataset))


def test_changed_truncated_and_missing_files(folder):
    dataset = ds.dataset(folder, partitioning="hive")
    source, path = read_source(dataset), folder / "year=2001" / "part-1.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    for use in (source.check_unchanged, lambda: read_all(source)):
        with pytest.raises(DataError, match=r"part-1\.parquet was changed"):
            use()
    fresh = ds.dataset(folder, partitioning="hive")
    with pytest.raises(DataError, match=r"part-1\.parquet cannot be read as"):
        read_all(read_source(fresh))
    path.unlink()
    with pytest.raises(DataError, match=r"part-1\.parquet cannot be read: No such file"):
        read_source(dataset)
    with pytest.raises(DataError, match=r"part-1\.parquet was removed"):
        source.check_unchanged()


def test_a_dataset_on_another_filesystem_is_checked_too(folder):
    from pyarrow import fs

    elsewhere = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    source = read_source(ds.dataset("year=2000", filesystem=elsewhere))
    assert read_all(source).num_rows == 700
    (folder / "year=2000" / "part-0.parquet").unlink()
    with pytest.raises(DataError, match=r"part-0\.parquet was removed"):
        source.check_unchanged()


def test_no_rows_and_two_columns_of_one_name(tmp_path):
    pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="the Dataset has no rows"):
        read_source(ds.dataset(tmp_path / "a.parquet"))
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    with pytest.raises(DataError, match="the Dataset has two columns called 'x'"):
        read_source(ds.dataset(twice))


def test_categories_of_numbers_are_those_of_the_files_given_by_path(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"whole": pd.Categorical(rng.choice([10, 2, 33, 7], 400))})
    frame["flag"] = pd.Categorical(rng.random(400) < 0.4)
    frame["some"] = pd.Categorical(rng.choice([3, 1], 400))
    frame["gaps"] = frame["whole"].where(rng.random(400) < 0.9)
    frame["number"], frame["y"] = rng.choice([10, 2, 33], 400), rng.normal(size=400)
    frame[:200].to_parquet(tmp_path / "a.parquet", row_group_size=70)
    rest = frame[200:].assign(some=frame["some"].astype(int))
    rest[rest["whole"] != 2].to_parquet(tmp_path / "b.parquet")
    dataset = ds.dataset(tmp_path)
    formula = "y ~ whole + flag + some + gaps + number"
    fits = [ld.glm(formula, data) for data in (str(tmp_path), dataset)]
    assert "whole[7]" in fits[0].design.names and "some" in fits[0].design.names
    assert fits[0].design.names == fits[1].design.names
    assert fits[0].coef().equals(fits[1].coef())
    assert ld.glm("whole ~ y", dataset).levels == (2, 7, 10, 33)
    some = dataset.filter(ds.field("whole") > 5)
    assert ld.glm("whole ~ y", some).levels == (7, 10, 33)
    read = fits[1].augment(dataset)
    assert read["whole"].to_pylist() == dataset.to_table()["whole"].to_pylist()
    assert fits[1].predict(dataset).equals(fits[1].predict(pickle.loads(pickle.dumps(dataset))))


def test_an_order_of_numbers_in_a_dataset_is_said(tmp_path):
    stage = pd.Categorical([3, 1, 2, 1], categories=[3, 1, 2], ordered=True)
    pd.DataFrame({"stage": stage, "y": [1.0, 2.0, 3.0, 5.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.warns(ld.DataWarning, match="'stage' are numbers, whose order Parquet"):
        names = ld.glm("y ~ stage", ds.dataset(tmp_path)).design.names
    with pytest.warns(ld.DataWarning, match="'stage' are numbers, whose order Parquet"):
        assert names == ld.glm("y ~ stage", str(tmp_path)).design.names
