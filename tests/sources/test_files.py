"""Which files a path, a pattern, a folder or a list means, and what is said of bad ones."""

import os
import pickle
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import lodim as ld
from lodim.errors import ArgumentError, DataError, FormulaError, MissingExtraError
from lodim.sources import read_source

pytest.importorskip("pyarrow")


@pytest.fixture
def parts(tmp_path):
    """A folder of part-2, part-10 and part-1 in Parquet, what a program left beside them, a CSV."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in (2, 10, 1):
        pd.DataFrame({"x": [float(k)]}).to_parquet(folder / f"part-{k}.parquet")
    for name in ("_SUCCESS", ".part-1.parquet.crc", "README"):
        (folder / name).write_text("")
    (tmp_path / "a.csv").write_text("x\n7\n")
    return folder


def values(data):
    return [x for chunk in read_source(data).chunks(["x"]) for x in chunk.frame["x"]]


def test_a_pattern_and_a_folder_are_in_the_order_of_the_names(parts):
    assert values(str(parts / "*.parquet")) == values(parts) == values(f"{parts}/") == [1, 10, 2]
    assert values(str(parts.parent / "**" / "*.parquet")) == [1, 10, 2]
    assert values(parts.parent / "parts" / "part-2.parquet") == [2]


def test_a_pattern_may_match_folders_that_programs_call_files(parts):
    parts.rename(parts.parent / "b.parquet")
    pd.DataFrame({"x": [0.0]}).to_parquet(parts.parent / "c.parquet")
    assert values(str(parts.parent / "*.parquet")) == [1, 10, 2, 0]


@pytest.mark.parametrize(
    "log, kind", [("_delta_log/0.json", "Delta"), ("metadata/v1.metadata.json", "Iceberg")]
)
def test_a_table_whose_log_says_which_files_count_is_refused(parts, log, kind):
    (parts / log).parent.mkdir()
    (parts / log).write_text("{}")
    with pytest.raises(DataError, match=rf"parts' is an? {kind} table; give polars\.scan_"):
        read_source(parts)


def test_a_list_is_in_its_own_order(parts):
    assert values([parts / "part-2.parquet", str(parts / "part-1*.parquet")]) == [2, 1, 10]
    with pytest.raises(DataError, match=r"part-1\.parquet is given twice"):
        read_source([parts / "part-1.parquet", parts])


def test_paths_are_relative_to_where_the_source_was_made(parts, monkeypatch):
    monkeypatch.chdir(parts)
    source = read_source("part-2.parquet")
    monkeypatch.chdir("/")
    assert [chunk.place for chunk in source.chunks(["x"])] == ["part-2.parquet, row group 1"]
    source.check_unchanged()


def test_a_file_may_have_the_signs_of_a_pattern_in_its_name(parts):
    (parts / "part-1.parquet").rename(parts / "part[1].parquet")
    assert values(parts / "part[1].parquet") == [1]


def test_home_is_found(parts, monkeypatch):
    monkeypatch.setenv("HOME", str(parts))
    monkeypatch.setenv("USERPROFILE", str(parts))
    assert values("~/part-2.parquet") == [2]


def test_what_is_in_memory_is_no_source():
    frame = pd.DataFrame({"x": [1.0]})
    for data in (frame, {"x": [1.0]}, None, [], [1.0], 3, pytest.importorskip("pyarrow").table({})):
        assert read_source(data) is None


def test_what_is_wrong_without_the_data_is_refused_before_a_file_is_read():
    for call in (ld.glm, partial(ld.estimate, ld.glm)):
        with pytest.raises(FormulaError, match="this bracket is not closed"):
            call("y ~ (a", "none.csv")
    with pytest.raises(ArgumentError, match=r"the grid must only have .*, not 'k'"):
        ld.cv(ld.gbmap, "y ~ a", "none.csv", grid={"k": [1]})


@pytest.mark.parametrize(
    "name, words",
    [
        ("none.parquet", "there is no file '.*none.parquet'$"),
        ("*.arrow", r"no file matches the pattern '.*\*\.arrow'"),
        (
            "README",
            r"README does not have the name of a data file; give a file whose name ends in \.parq",
        ),
        ("empty", "the folder '.*empty' has no data: it must have a file whose name ends in"),
        ("hive", r"columns in the names of its folders \('year=1'\); give pyarrow\.dataset"),
    ],
)
def test_paths_that_mean_nothing(parts, name, words):
    (parts / "empty").mkdir()
    (parts / "hive" / "year=1").mkdir(parents=True)
    with pytest.raises(DataError, match=words):
        read_source(str(parts / name))


@pytest.mark.parametrize("name", ["s3://bucket/part.parquet", "https://x.org/a.csv", "hdfs://a/b"])
def test_what_is_elsewhere_is_refused_with_a_way(name):
    with pytest.raises(DataError, match=r"is not a local file: download it, or give"):
        read_source(name)


def test_a_shipped_data_set_is_no_file():
    with pytest.raises(DataError, match=r"there is no file 'heart'; .* is lodim\.data\('heart'\)"):
        read_source("heart")


def test_files_of_several_kinds(parts):
    (parts / "more.csv").write_text("x\n1\n")
    with pytest.raises(DataError, match=r"more\.csv is a CSV file and .*part-1\.parquet a Parquet"):
        read_source(parts)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
@pytest.mark.parametrize("name", ["parts/part-1.parquet", "a.csv"])
def test_a_file_without_permission(parts, name):
    path = parts.parent / name
    path.chmod(0)
    with pytest.raises(DataError, match=f"{path.name} cannot be read: no permission"):
        read_source(path)


@pytest.mark.parametrize("name", ["parts/part-1.parquet", "a.csv"])
def test_no_permission_in_words(parts, name, monkeypatch):
    """As the skipped test, for whom the system lets read everything."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", refuse)
    monkeypatch.setattr("pandas.read_csv", refuse)
    with pytest.raises(DataError, match=f"{Path(name).name} cannot be read: no permission"):
        read_source(parts.parent / name)


def test_a_folder_that_cannot_be_listed(parts, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match="parts cannot be read: Permission denied"):
        read_source(parts)


def write(path, numbers):
    frame = pd.DataFrame({"x": numbers})
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


@pytest.mark.parametrize("name", ["b.parquet", "b.csv"])
def test_a_file_that_was_rewritten_between_passes(tmp_path, name):
    path = tmp_path / name
    write(path, [1.0, 2.0])
    source = read_source(path)
    list(source.chunks(["x"]))
    source.check_unchanged()
    write(path, [1.0, 2.0, 3.0])
    for use in (source.check_unchanged, lambda: list(source.chunks(["x"]))):
        with pytest.raises(DataError, match=rf"{name} was changed while it was in use"):
            use()
    path.unlink()
    for use in (source.check_unchanged, lambda: list(source.chunks(["x"]))):
        with pytest.raises(DataError, match=rf"{name} was removed while it was in use"):
            use()


@pytest.mark.skipif(os.name == "nt", reason="Windows does not note when a file was changed")
def test_a_file_that_is_rewritten_with_its_size_and_time_kept(tmp_path):
    path = tmp_path / "b.csv"
    write(path, [1.0, 2.0])
    before, source = path.stat(), read_source(path)
    elsewhere = pickle.loads(pickle.dumps(source))
    write(path, [3.0, 4.0])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(DataError, match=r"b\.csv was changed while it was in use"):
        source.check_unchanged()
    elsewhere.check_unchanged()  # another machine may have a copy, noted when it was made


@pytest.mark.parametrize("name", ["b.parquet", "b.csv"])
def test_a_file_that_is_rewritten_while_it_is_read(tmp_path, name):
    path = tmp_path / name
    write(path, [1.0, 2.0])
    chunks = read_source(path).chunks(["x"])
    next(chunks)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match=rf"{name} was changed while it was in use"):
        list(chunks)


def test_without_pyarrow(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ("parts/part-1.parquet", "parts"):
        with pytest.raises(MissingExtraError, match=r"pip install 'lodim\[arrow\]'"):
            read_source(parts.parent / name)
    assert values(parts.parent / "a.csv") == [7]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_pipe_is_refused_at_once(tmp_path, ending):
    os.mkfifo(tmp_path / f"x.{ending}")
    with pytest.raises(DataError, match="it is a pipe or a device, not a regular file"):
        read_source(tmp_path / f"x.{ending}")
