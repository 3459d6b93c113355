"""CSV files as a source: what the command line reads of them, in chunks."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.cli import commands
from lodim.errors import DataError
from lodim.sources import csv_files, read_source
from whole_sources import read_all


def write(folder, *texts):
    """Texts as part-0.csv, part-1.csv, ...; the pattern that matches them."""
    for k, text in enumerate(texts):
        (folder / f"part-{k}.csv").write_text(text, encoding="utf-8")
    return str(folder / "part-*.csv")


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of two rows."""
    monkeypatch.setattr(csv_files, "ROWS_PER_CHUNK", 2)


@pytest.mark.parametrize("name", ["heart", "autompg", "german_credit"])
def test_a_file_is_what_the_command_line_reads(tmp_path, name, monkeypatch):
    monkeypatch.setattr(csv_files, "ROWS_PER_CHUNK", 37)
    ld.data(name).to_csv(tmp_path / "a.csv", index=False)
    source = read_source(tmp_path / "a.csv")
    whole = commands.read_csv(str(tmp_path / "a.csv"), ",", ".")
    assert source.n == len(whole) and source.names == tuple(whole)
    pd.testing.assert_frame_equal(read_all(source), whole)
    pd.testing.assert_frame_equal(read_all(pickle.loads(pickle.dumps(source))), whole)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("n", [6, 7])
def test_a_file_is_cut_into_pieces_at_ends_of_lines(tmp_path, monkeypatch, end, last, n):
    monkeypatch.setattr(csv_files, "ROWS_PER_CHUNK", 3)
    monkeypatch.setattr(csv_files, "BLOCK", 5)
    rows = [",x,é"] + [f"r{k},{k}.5,{'u' * (k + 1)}é" for k in range(n)]
    text = "\ufeff" + end.join(rows) + end * last
    (tmp_path / "a.csv").write_bytes(text.encode())
    source = read_source(tmp_path / "a.csv")
    assert [piece.n for piece in source.pieces] == [3, 3, 1][: 2 + (n == 7)]
    assert source.pieces[1].place == "a.csv, rows 4 to 6" and source.names == ("x", "é")
    whole = commands.read_csv(str(tmp_path / "a.csv"), ",", ".").reset_index(drop=True)
    pd.testing.assert_frame_equal(read_all(pickle.loads(pickle.dumps(source))), whole)
    alone = [chunk.frame for chunk in source.pieces[1].read(["é"])]
    assert pd.concat(alone)["é"].tolist() == whole["é"].tolist()[3:6]


@pytest.mark.parametrize(
    "text",
    [
        'x,y\n1,"a\nb"\n2,c\n3,d\n',
        "x,y\n1,a\n\n2,b\n3,c\n",
        "\nx,y\n1,a\n2,b\n3,c\n",
        "x,y\r1,a\r2,b\r3,c\r",
    ],
)
def test_a_file_whose_lines_are_not_its_rows_is_one_piece(tmp_path, small_chunks, text):
    (tmp_path / "a.csv").write_bytes(text.encode())
    source = read_source(tmp_path / "a.csv")
    assert [(piece.place, piece.n) for piece in source.pieces] == [("a.csv", 3)]
    pd.testing.assert_frame_equal(
        read_all(source), commands.read_csv(str(tmp_path / "a.csv"), ",", ".")
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "3", "4"],
        ["1", "2", "3.5", "4"],
        ["1", "NA", "3", "4"],
        ["", "NA", "NaN", "nan"],
        ["1", "2", "3", "x"],
        ["1.50", "2", "", "x"],
        ["True", "False", "true", "FALSE"],
        ["True", "False", "0", "1"],
        ["u", "", "v", "None"],
        ["2020-01-01", "2020-01-02", "", "2020-01-03"],
        ["18446744073709551615", "1", "2", "9223372036854775808"],
        ["9007199254740993", "1", "NA", "2"],
        ["0.1", "1e5", "inf", "-7."],
        ["'1'", '"2"', "3", "4"],
    ],
)
def test_the_kind_of_a_column_is_that_of_all_its_rows(tmp_path, small_chunks, cells):
    text = "y,x\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells))
    (tmp_path / "a.csv").write_text(text)
    whole = commands.read_csv(str(tmp_path / "a.csv"), ",", ".")
    got = read_all(read_source(tmp_path / "a.csv"))
    pd.testing.assert_frame_equal(got, whole)


def test_true_and_false_with_gaps_are_a_level(tmp_path, small_chunks):
    pattern = write(tmp_path, "x,y\nTrue,1\nFalse,2\n", "x,y\n,1\nNA,2\nTrue,4\n")
    for chunk in read_source(pattern).chunks(["x"]):
        assert chunk.frame["x"].dtype == "boolean"
    assert read_all(read_source(pattern))["x"].tolist() == [True, False, pd.NA, pd.NA, True]


def test_kinds_are_those_of_all_files(tmp_path):
    pattern = write(tmp_path, "a,b,c\n1,,1\n2,,2\n", "c,a,b\nu,2.5,7\n", "a,b,c\n")
    got = read_all(read_source(pattern))
    assert got["a"].tolist() == [1, 2, 2.5] and got["c"].tolist() == ["1", "2", "u"]
    np.testing.assert_array_equal(got["b"], [np.nan, np.nan, 7])


def test_row_labels_are_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [3, 4]}, index=["a", "b"])
    frame.to_csv(tmp_path / "a.csv")
    source = read_source(tmp_path / "a.csv")
    assert source.names == ("x", "y")
    pd.testing.assert_frame_equal(read_all(source), frame.reset_index(drop=True))


def test_packed_files_and_tabs(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as out:
        out.write("x,y\n1,2\n")
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n")
    assert read_all(read_source(tmp_path / "a.csv.gz"))["y"].tolist() == [2]
    assert read_all(read_source(tmp_path / "a.tsv"))["y"].tolist() == [2]


def test_a_source_opens_a_file_for_its_header_and_for_its_rows(tmp_path, monkeypatch):
    opened, get_handle = [], csv_files.get_handle
    monkeypatch.setattr(
        csv_files, "get_handle", lambda *a, **k: opened.append(a) or get_handle(*a, **k)
    )
    assert read_source(write(tmp_path, GOOD)).names == ("x", "y", "z")
    assert len(opened) == 2


def test_a_mark_of_utf8_and_quoted_lines(tmp_path):
    (tmp_path / "a.csv").write_bytes('\ufeffx,é\n"a\nb","c,""d"""\n\n  \ne,f\n'.encode())
    got = read_all(read_source(tmp_path / "a.csv"))
    assert got["x"].tolist() == ["a\nb", "e"] and got["é"].tolist() == ['c,"d"', "f"]


GOOD = "x,y,z\n1,2,3\n4,5,6\n"


@pytest.mark.parametrize(
    "bad, words",
    [
        ("x,y\n1,2\n", r"part-1\.csv lacks 'z', which .*part-0\.csv has"),
        ("x,y,z,w\n1,2,3,4\n", r"part-1\.csv has 'w', which .*part-0\.csv lacks"),
        ("x,x,z\n1,2,3\n", r"part-1\.csv has two columns called 'x'"),
        ("", r"part-1\.csv is empty: it has 0 bytes"),
        ("x;y;z\n1,5;2;3\n", r"part-1\.csv has ';' between its columns, .*--sep ';'"),
        ("x\ty\n1\t2\n", r"part-1\.csv has '\\t' between its .*read_csv\(file, sep='\\t'\)"),
        ("\n\n", r"part-1\.csv cannot be read as CSV"),
        ('""\n1\n', r"part-1\.csv has no column with a name"),
        ("x,y,z\n1,2,3\n4,5", r"part-1\.csv, line 3: 2 cells, but the header has 3; .*incomplete"),
        ("x,y,z\n1,2,3\n4\n5,6,7\n", r"part-1\.csv, line 3: 1 cells?, but the header has 3"),
        ("x,y,z\n1,2,3\n4,5,6,7\n", r"part-1\.csv cannot be read as CSV; .*line 3, saw 4"),
        ("x,y,z\n1,2,3,4\n", r"part-1\.csv cannot be read as CSV; .*line 2, saw 4"),
        ('x,y,z\n1,2,"3\n4,5,6\n', r"part-1\.csv cannot be read as CSV; .*inside string"),
    ],
)
def test_bad_files_are_named(tmp_path, bad, words):
    with pytest.raises(DataError, match=words):
        read_source(write(tmp_path, GOOD, bad, GOOD))


def test_what_is_not_utf8_or_is_cut_off_packed(tmp_path):
    (tmp_path / "a.csv").write_bytes("x,y\né,1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.csv cannot be read as CSV: it is not UTF-8"):
        read_source(tmp_path / "a.csv")
    rows = "".join(f"{k},{k * 7919 % 1013}\n" for k in range(500))
    packed = gzip.compress(b"x,y\n" + rows.encode())
    (tmp_path / "b.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"b\.csv\.gz cannot be read as CSV"):
        read_source(tmp_path / "b.csv.gz")
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(DataError, match=r"c\.csv\.gz cannot be read as CSV; .*No columns"):
        read_source(tmp_path / "c.csv.gz")


def test_missing_values_in_the_last_column_are_no_short_rows(tmp_path):
    assert read_source(write(tmp_path, "x,y\n1,\n2,NA\n3,4\n")).n == 3


def test_files_without_rows(tmp_path):
    assert read_source(write(tmp_path, "x,y,z\n", GOOD)).n == 2
    with pytest.raises(DataError, match="none of the 2 files has a row"):
        read_source(write(tmp_path, "x,y,z\n", "x,y,z\n"))


def test_unknown_columns_of_a_formula_are_refused_before_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "_frames", lambda *a, **k: pytest.fail("rows were read"))
    for formula in ("y ~ x + w", "w ~ x"):
        with pytest.raises(ld.FormulaError, match="no column 'w'"):
            ld.glm(formula, write(tmp_path, "x,y\n1,2\n", "x,y\n3,4\n"))


@pytest.mark.long
@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_ctrl_c_is_no_damaged_file(tmp_path, monkeypatch, calls):
    """pandas' reader forgets what its calls of read() have raised."""
    path = tmp_path / "a.csv"
    pd.DataFrame({"y": np.arange(2e5), "a": np.arange(2e5) % 7}).to_csv(path, index=False)
    made, n = csv_files._Text.__init__, [0]

    class Handle:
        def __init__(self, inner):
            self.inner = inner

        def read(self, size):
            n[0] += 1
            if n[0] == calls:
                raise KeyboardInterrupt
            return self.inner.read(size)

    monkeypatch.setattr(csv_files._Text, "__init__", lambda self, h: made(self, Handle(h)))
    with pytest.raises(KeyboardInterrupt):
        read_source(path)
