"""The command line."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.cli import main
from lodim.cli.commands import save_plots
from lodim.fitting.fit_model import model_of

QUICK = ["--m", "2", "--lambda", "0.1"]


@pytest.fixture(scope="module")
def cars(tmp_path_factory):
    """A CSV file with gaps written as empty cells and as NA, and a name that needs quoting."""
    file = tmp_path_factory.mktemp("cars") / "cars.csv"
    frame = ld.data("autompg").rename(columns={"model_year": "model year"})
    frame.loc[[0, 1], "weight"] = np.nan
    text = frame.to_csv(index=False).replace("USA", '"USA, north"')
    file.write_text(text.replace(",,", ",NA,", 3), encoding="utf-8-sig")
    return file


def run(*argv):
    """A process of its own: (status, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-m", "lodim", *map(str, argv)], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_prints_the_summary_of_a_shipped_data_set():
    status, out, err = run("gbmap", "mpg ~ .", "autompg", *QUICK)
    fit = ld.gbmap("mpg ~ .", data=ld.data("autompg"), m=2, lambda_=0.1)
    assert (status, out) == (0, f"{fit.summary()}\n")
    # A slow machine says what it does, and nothing else.
    assert all(
        line.startswith(("lodim: gbmap", "compiling kernels: ")) for line in err.splitlines()
    )


@pytest.mark.long
def test_error_is_one_line_and_exit_status_two():
    status, out, err = run("gbmap", "mpg ~ .", "no_such.csv")
    assert status == 2 and out == ""
    unknown = "lodim: error: there is no file and no data set 'no_such.csv': python -m lodim data"
    assert err.startswith(unknown) and err.count("\n") == 1


@pytest.mark.long
def test_matplotlib_is_not_imported_unless_plots_are_asked_for(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; from lodim.cli import main; "
        f"sys.exit(main(['gbmap', 'mpg ~ .', 'autompg', *{QUICK}] + sys.argv[1:]))"
    )
    for more, status in (([], 0), (["--plots", str(tmp_path / "a")], 2)):
        done = subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True)
        assert done.returncode == status
    assert "pip install 'lodim[plot]'" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "a").exists()


def test_csv_with_gaps_categories_and_a_name_in_quotes(cars, capsys):
    drop = ["--missing", "drop"]
    assert main(["gbmap", "mpg ~ .", str(cars), *QUICK, *drop]) == 0
    out = capsys.readouterr().out
    assert "origin[USA, north]" in out and "model year" in out
    assert out.split("\n")[5].split()[:4] == ["Rows", "dropped", "(NA):", "8"]
    words = ["mpg ~ weight + Q('model year')", str(cars)]
    assert main(["gbmap", *words, *QUICK, *drop]) == 0
    assert "No. observations:                  396" in capsys.readouterr().out


def test_separator_weights_offset_and_row_labels(tmp_path, capsys):
    file, out = tmp_path / "x.tsv", tmp_path / "p.csv"
    frame = ld.data("autompg").assign(w=2.0, base=10.0).rename(index="car{}".format)
    frame.to_csv(file, sep="\t")
    words = ["--sep", "tab", "--weights", "w", "--offset", "base"]
    more = ["--predict", str(file), "--output", str(out)]
    assert main(["gbmap", "mpg ~ .", str(file), *QUICK, *words, *more]) == 0
    shown = capsys.readouterr().out
    assert "base" not in shown and "Unnamed" not in shown
    fit = ld.gbmap("mpg ~ .", data=frame, m=2, lambda_=0.1, weights="w", offset="base")
    written = pd.read_csv(out, index_col=0)
    assert list(written.index) == list(frame.index)
    np.testing.assert_allclose(written["mpg"], fit.predict(frame), rtol=1e-12)
    assert main(["glm", "mpg ~ weight", str(file)]) == 0


@pytest.mark.parametrize("type", ["response", "class", "prob", "embedding", "local"])
def test_predictions_have_a_row_a_new_row(tmp_path, type):
    new, out = tmp_path / "new.csv", tmp_path / "out.csv"
    frame = ld.data("iris").drop(columns="species").iloc[::30]
    frame.iloc[1, 0] = np.nan
    frame.reset_index(drop=True).to_csv(new, index=False)
    words = ["--predict", str(new), "--output", str(out), "--type", type]
    for way in ("drop", "indicator"):
        words = [*words, "--missing", way]
        assert main(["gbmap", "species ~ .", "iris", *QUICK, *words]) == 0
        written = pd.read_csv(out)
        assert len(written) == len(frame)
        assert written.pop("row").tolist() == [1, 2, 3, 4, 5]
        assert written.isna().all(axis=1).tolist() == [False, way == "drop", False, False, False]
    assert not any(c.startswith(("(", "Unnamed")) for c in written)


def test_rows_of_predictions_have_numbers_or_labels(tmp_path):
    cars, out = ld.data("autompg")[:5], tmp_path / "out.csv"
    argv = ["glm", "mpg ~ weight", "autompg", "--output", str(out), "--predict"]
    for name, part in (("new-1.csv", cars[:2]), ("new-2.csv", cars[2:])):
        part.to_csv(tmp_path / name, index=False)
    assert main([*argv, str(tmp_path / "new-*.csv")]) == 0
    written = pd.read_csv(out)
    assert list(written) == ["row", "mpg"] and written["row"].tolist() == [1, 2, 3, 4, 5]
    cars.rename(index="car{}".format).to_csv(tmp_path / "named.csv")
    assert main([*argv, str(tmp_path / "named.csv")]) == 0
    assert pd.read_csv(out)["row"].tolist() == [f"car{k}" for k in range(5)]
    cars.assign(row=cars["mpg"]).to_csv(tmp_path / "d.csv", index=False)
    assert main(["glm", "row ~ weight", str(tmp_path / "d.csv"), *argv[3:], "autompg"]) == 0
    assert list(pd.read_csv(out)) == ["row_", "row"]


def test_decimal_commas_and_levels_that_are_new(tmp_path, capsys):
    file, new, out = tmp_path / "x.csv", tmp_path / "new.csv", tmp_path / "out.csv"
    frame = ld.data("iris")
    frame.to_csv(file, sep=";", decimal=",", index=False)
    words = ["gbmap", "sepal_length ~ .", str(file), *QUICK, "--sep", ";"]
    assert main(words) == 2
    assert "--decimal , on the command line" in capsys.readouterr().err
    frame[::50].assign(species="lily").to_csv(new, sep=";", decimal=",", index=False)
    words += ["--decimal", ",", "--predict", str(new), "--output", str(out)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "'lily'" in said and "give --new-levels missing (to" in said and "new_levels" not in said
    assert main([*words, "--new-levels", "missing"]) == 0
    fit = ld.gbmap("sepal_length ~ .", frame, m=2, lambda_=0.1)
    expected = fit.predict(frame[::50].assign(species=None))
    np.testing.assert_allclose(pd.read_csv(out)["sepal_length"], expected, rtol=1e-12)
    assert main(["gbmap", "a ~ .", str(file), "--decimal", ","]) == 2
    assert "needs another --sep" in capsys.readouterr().err


def test_saved_fit_loads(tmp_path, capsys):
    file = tmp_path / "fit.lodim"
    assert main(["gbmap", "mpg ~ .", "autompg", *QUICK, "--save", str(file)]) == 0
    assert str(ld.load(file).summary()) == capsys.readouterr().out.rstrip("\n")


def test_cv_and_plots(tmp_path, capsys):
    folder = tmp_path / "a" / "b"
    words = ["--m", "1", "--beta", "5", "--seed", "3", "--cv", "--plots", str(folder)]
    assert main(["gbmap", "species ~ .", "iris", *words]) == 0
    out = capsys.readouterr().out
    assert "Cross-Validation of gbmap" in out and " min" in out and " 1se" in out
    kinds = (*model_of(ld.gbmap).plots, "path", "cv")
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{k}.png" for k in kinds)
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in folder.iterdir())


@pytest.mark.long
def test_costnet_reads_prices_and_dependencies_from_files(tmp_path, capsys):
    prices = {"cylinders": 1, "displacement": 2, "weight": 5, "horsepower": 3}
    pd.Series(prices).rename_axis("name").to_csv(tmp_path / "prices.csv", header=["price"])
    (tmp_path / "needs.csv").write_text("parent,child\ncylinders,displacement\n")
    formula = "mpg ~ cylinders + displacement + weight + horsepower"
    argv = ["costnet", formula, "autompg", "--costs", str(tmp_path / "prices.csv"), "--depends",
            str(tmp_path / "needs.csv"), "--budget", "6"]  # fmt: skip
    assert main([*argv, "--plots", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    fit = ld.costnet(formula, ld.data("autompg"), costs=prices, budget=6,
                     depends_on={"displacement": "cylinders"})  # fmt: skip
    assert out.startswith(str(fit.summary()))
    for name in ("cost", "graph", "path", "cv"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    assert main([*argv[:3], "--costs", str(tmp_path / "none.csv")]) == 2
    assert "no file" in capsys.readouterr().err


def test_data_lists_and_prints(capsys):
    assert main(["data"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ld.data()["name"])
    assert main(["data", "iris"]) == 0
    assert capsys.readouterr().out == ld.data("iris").to_csv(index=False)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["gbmap", "mpg ~ weigth", "autompg"], "did you mean 'weight'?"),
        (["gbmap", "mpg ~ .", "autompg", "--m", "0"], "m must be an integer from 1"),
        (["gbmap", "mpg ~ .", "autompg", "--predict", "x.csv"], "must be given together"),
        (["gbmap", "mpg ~ .", "autompg", "--predict", "x.csv", "--output", "y"], "'x.csv'"),
        (["data", "nothing"], "no data set is called"),
    ],
)
def test_errors_in_words(argv, says, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith("lodim: error: ") and says in err


@pytest.mark.filterwarnings("default")
def test_messages_name_the_options_of_the_command_line(monkeypatch, capsys):
    formula = "\n    y ~ n_views\n        ^"
    told = "give missing='keep', weights= or control={'scratch': folder}; a lambda_: a seed, not "
    told += f"'seed=3', dtype='f', n_views must be 'n_views'{formula}"

    def refuse(*_):
        warnings.warn(told, ld.DataWarning, stacklevel=1)
        raise ld.DataError(told)

    monkeypatch.setattr("lodim.cli.commands.read_data", refuse)
    assert main(["ripr", "y ~ x", "data.csv"]) == 2
    flags = "give --missing keep, --weights or --scratch folder; a --lambda: a seed, not "
    flags += f"'seed=3', dtype='f', --views must be 'n_views'{formula}\n"
    assert capsys.readouterr().err == f"lodim: DataWarning: {flags}lodim: error: {flags}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"a,b\n1,2,3\n4\n5,6,7,8,9\n",
        b"a,b\n1,2,3\n4,5,6\n",  # one more cell than heads: the first would be a row label
        b"a,b\n\xff\xfe,1\n",
        "a,b\n1,2\n".encode("utf-16"),
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0",
        bytes(range(256)),
    ],
)
@pytest.mark.parametrize(
    "name", ["bad.csv", "bad.csv.gz", "bad.zip", "bad.xz", "bad.bz2", "bad.tar"]
)
def test_unreadable_csv(tmp_path, content, name, capsys):
    file = tmp_path / name
    file.write_bytes(content)
    assert main(["gbmap", "a ~ b", str(file)]) == 2
    assert ("cannot be read as CSV" if content else "is empty: it has") in capsys.readouterr().err


DAMAGED = {
    "a.gz": b"\x1f\x8b\x08\x00garbage", "b.gz": gzip.compress(b"a,b\n1,2\n" * 99)[:-9],
    "c.xz": lzma.compress(b"a,b\n1,2\n" * 99)[:-9], "d.bz2": bz2.compress(b"a,b\n1,2\n" * 99)[:-9],
    "e.zip": b"PK\3\4garbage", "f.zst": b"\x28\xb5\x2f\xfdgarbage",
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_archives(tmp_path, name, capsys):
    (tmp_path / name).write_bytes(DAMAGED[name])
    good = ["gbmap", "mpg ~ weight", "autompg", *QUICK]
    for argv in (
        ["gbmap", "a ~ b", str(tmp_path / name)],
        [*good, "--predict", str(tmp_path / name), "--output", str(tmp_path / "out.csv")],
        ["costnet", "mpg ~ weight", "autompg", "--costs", str(tmp_path / name)],
    ):
        assert main(argv) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.startswith("lodim: error: ") and name in said.err


@pytest.mark.parametrize(
    "content, says",
    [
        ("a,b,a\n1,2,3\n", "two columns called 'a'"),
        ("a;y\n1,5;2\n2;3\n", "(--sep ';' on the command line)"),
    ],
)
def test_heads_in_words(tmp_path, content, says, capsys):
    (tmp_path / "x.csv").write_text(content)
    assert main(["gbmap", "y ~ .", str(tmp_path / "x.csv")]) == 2
    assert says in capsys.readouterr().err


def test_a_folder_without_data(tmp_path, capsys):
    assert main(["gbmap", "y ~ .", str(tmp_path)]) == 2
    assert "has no data" in capsys.readouterr().err


def test_new_rows_of_several_files_are_predicted_into_one(tmp_path, capsys):
    cars, out = ld.data("autompg"), tmp_path / "out"
    for name, part in (("new-1", cars[:250]), ("new-2", cars[250:])):
        part.reset_index(drop=True).to_parquet(tmp_path / f"{name}.parquet")
    words = ["gbmap", "mpg ~ .", "autompg", *QUICK, "--predict", str(tmp_path / "new-*.parquet")]
    expected = ld.gbmap("mpg ~ .", cars, m=2, lambda_=0.1).predict(cars)
    for ending, read in ((".parquet", pd.read_parquet), (".csv", pd.read_csv)):
        file = out.with_suffix(ending)
        assert main([*words, "--output", str(file)]) == 0
        pd.testing.assert_series_equal(read(file)["mpg"], expected)
    capsys.readouterr()
    assert main([*words, "--output", str(out), "--sep", ";"]) == 2
    assert "--sep and --decimal are only for a single CSV file" in capsys.readouterr().err
    assert main([*words[:-1], str(tmp_path / "no-*.parquet"), "--output", str(out)]) == 2
    said = capsys.readouterr()
    assert "no file matches" in said.err and said.out == ""


def test_no_file_that_is_read_is_written_over(tmp_path, capsys):
    ld.data("autompg").to_csv(tmp_path / "d.csv", index=False)
    ld.data("autompg").to_parquet(tmp_path / "d.parquet")
    for data, new, out in (
        ("autompg", "d.csv", "d.csv"), ("d.parquet", "d.csv", "d.parquet"),
        ("autompg", "*.parquet", "d.parquet"),
    ):  # fmt: skip
        before = (tmp_path / out).read_bytes()
        words = [data if data == "autompg" else str(tmp_path / data), *QUICK]
        words += ["--predict", str(tmp_path / new), "--output", str(tmp_path / out)]
        assert main(["gbmap", "mpg ~ .", *words]) == 2
        assert "must not be one of the input files" in capsys.readouterr().err
        assert (tmp_path / out).read_bytes() == before


@pytest.mark.parametrize("escaped", [False, True])
def test_texts_that_a_spreadsheet_would_run(tmp_path, escaped):
    """Heads, row labels and classes; numbers below zero stay numbers."""
    frame = ld.data("autompg").rename(index="={}".format).rename(columns={"mpg": "y"})
    frame["y"] = np.where(frame["y"] > 23, "+high", "=low")
    frame.to_csv(tmp_path / "d.csv")
    more = ["--predict", str(tmp_path / "d.csv"), "--output", str(tmp_path / "p.csv")]
    more += ["--escape-formulas"] * escaped
    for type in ("class", "prob", "link"):
        argv = ["gbmap", "y ~ weight", str(tmp_path / "d.csv"), *QUICK, "--type", type, *more]
        assert main(argv) == 0
        out = pd.read_csv(tmp_path / "p.csv", index_col=0)
        mark = "'" * escaped
        assert out.index[0] == mark + "=0"
        if type == "class":
            assert set(out["y"]) == {mark + "+high", mark + "=low"}
        if type == "prob":
            assert list(out) == [mark + "+high", mark + "=low"]
        if type == "link":
            assert out["y"].min() < 0


@pytest.mark.long
def test_a_terminal_of_few_letters(cars, tmp_path):
    frame = pd.read_csv(cars).rename(columns={"weight": "价格"})
    frame.to_csv(tmp_path / "c.csv", index=False)
    argv = [sys.executable, "-m", "lodim", "gbmap", "mpg ~ .", str(tmp_path / "c.csv"), *QUICK]
    for words, status in (([], 0), (["--weights", "价"], 2)):
        done = subprocess.run(
            [*argv, *words], capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
        )
        assert done.returncode == status and b"Traceback" not in done.stderr
        assert rb"\u4ef7" in done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("argv", [["data", "autompg"], ["--help"], ["gbmap", "--help"]])
def test_a_reader_that_has_seen_enough(argv):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "lodim", *argv], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line(monkeypatch, capsys):
    def warned(name, sep, decimal):
        warnings.warn("slow", ld.ConvergenceWarning, stacklevel=1)
        return ld.data(name)

    monkeypatch.setattr("lodim.cli.commands.read_data", warned)
    assert main(["gbmap", "mpg ~ .", "autompg", *QUICK]) == 0
    assert capsys.readouterr().err == "lodim: ConvergenceWarning: slow\n"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nonsense"],
        ["gbmap"],
        ["gbmap", "y ~ .", "d", "--m", "x"],
        ["gbmap", "y ~ .", "d", "--sep", "ab"],
    ],
)
def test_wrong_usage(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2 and "usage:" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out.startswith("lodim ")


@pytest.mark.long
def test_warm(tmp_path, capsys):
    """What it compiles is what default calls need, also those without a response: no more is."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    python = partial(subprocess.run, env=env, capture_output=True, text=True, check=True)
    said = python([sys.executable, "-m", "lodim", "warm", "ripr", "proset"])
    assert said.stdout.startswith("ripr: ") and "compiling kernels" in said.stderr
    call = (
        "import lodim as ld; cars, seeds = ld.data('autompg'), ld.data('seeds');"
        "ld.ripr('strength ~ .', ld.data('concrete')).summary();"
        "ld.ripr('~ . - variety', seeds).clusters();"
        "fit = ld.proset('mpg ~ .', cars); fit.explain(cars[:1]); fit.shapley(cars[:1])"
    )
    assert "compiling" not in python([sys.executable, "-c", call]).stderr
    assert main(["warm", "rpr"]) == 2 and "no model is called 'rpr'" in capsys.readouterr().err


@pytest.mark.long
def test_ripr_from_the_command_line(tmp_path, capsys):
    code = main(["ripr", "variety ~ .", "seeds", "--lambda", "1", "--max-dim", "2",
                 "--save", str(tmp_path / "fit")])  # fmt: skip
    assert code == 0 and "Informative Projection Results" in capsys.readouterr().out
    assert ld.load(tmp_path / "fit").settings.lambda_ == 1.0
    with pytest.raises(SystemExit):
        main(["ripr", "variety ~ .", "seeds", "--offset", "area"])
    assert "--offset" in capsys.readouterr().err
    assert main(["ripr", "~ . - variety", "seeds", "--lambda", "1", "--cv"]) == 2
    assert "cv needs a response" in capsys.readouterr().err


@pytest.mark.long
def test_plots_of_several_panels(tmp_path):
    fit = ld.ripr("variety ~ .", ld.data("seeds"), lambda_=0.3, threads=1)
    assert len(fit.estimates) > 1
    save_plots(tmp_path, fit, ("view", "shares"))
    assert {p.name for p in tmp_path.iterdir()} == {"view.png", "shares.png"}


def test_a_model_without_penalties_has_its_plots_and_one_loss(tmp_path, capsys):
    argv = ["glm", "mpg ~ weight", "autompg", "--cv", "--plots", str(tmp_path)]
    assert main(argv) == 0
    assert "min, 1se" in capsys.readouterr().out
    assert {p.stem for p in tmp_path.iterdir()} == {*model_of(ld.glm).plots}


def test_features_in_a_scratch_file(tmp_path, capsys):
    argv = ["gbmap", "mpg ~ weight", "autompg", *QUICK]
    assert main([*argv, "--scratch", str(tmp_path)]) == 0
    assert not list(tmp_path.iterdir())


def test_a_page_needs_rows_in_memory(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    ld.data("iris").to_parquet(tmp_path / "iris.parquet")
    argv = ["glm", "sepal_length ~ .", str(tmp_path / "iris.parquet")]
    assert main([*argv, "--report", str(tmp_path / "page.html")]) == 2
    assert "--report needs a CSV file or an included data set" in capsys.readouterr().err
