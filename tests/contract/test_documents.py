"""README.md and the vignettes: the code runs as the page stands and prints what the page shows.

As a program, `python tests/contract/test_documents.py`, this writes into README.md what its code
prints.
"""

import ast
import builtins
import contextlib
import inspect
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.cli import main
from lodim.fitting import storage
from lodim.fitting.registry import MODELS
from lodim.formula import language, parser, terms
from lodim.page import sections
from lodim.text import join_words

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
REPOSITORY = r"https://(?:github.com/lodim/lodim/blob|raw.githubusercontent.com/lodim/lodim)/main/"
BASICS = "".join((ROOT / f"vignettes/{name}.py").read_text() for name in ("basics", "formulas"))
PAGES = README + re.sub("^# ?", "", BASICS, flags=re.M)  # what is said of all models
VIGNETTES = sorted(file.stem for file in (ROOT / "vignettes").glob("*.py"))

# Numbers are the same if they differ by no more than this share and one unit of the last digit
# shown; whole numbers are the same if they are equal.
RTOL = 1e-3
# But what the work of a solver came to hangs on the last bit: here the size is what counts.
WORK = re.compile(r"\d+ (?:passes|iterations|evaluations)|largest (?:projected )?gradient [\d.e-]+")
WORK_COLUMNS = ("Iter.", "Eval.")
WORK_FACTOR = 3.0

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
FORMULAS = {
    "C",
    "I",
    "Q",
    "Treatment",
    "bs",
    "cr",
    "cc",
    "te",
    "center",
    "scale",
    "standardize",
    "days",
    "year",
    "month",
    "weekday",
}  # what only these may call
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)


# What is the same -------------------------------------------------------------------------------


def unit(text):
    """One unit of the last digit of a number as it is shown."""
    digits, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def same_number(a, b, work=False):
    if work:
        return float(a) <= WORK_FACTOR * float(b) and float(b) <= WORK_FACTOR * float(a)
    if a.lstrip("+-").isdigit() and b.lstrip("+-").isdigit():
        return int(a) == int(b)
    most = max(abs(float(a)), abs(float(b)))
    return abs(float(a) - float(b)) <= RTOL * most + 1.001 * min(unit(a), unit(b))


def parts(text):
    """Each line as its words, its numbers, and whether each of these is of a solver's work."""
    flat = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    spans = [found.span() for found in WORK.finditer(re.sub(r"\s", " ", flat))]
    column, start, out = False, 0, []
    for line in flat.splitlines():
        found = list(NUMBER.finditer(line))
        of_work = [any(a <= start + n.start() < b for a, b in spans) for n in found]
        if line.endswith(WORK_COLUMNS):
            column = True
        elif line.startswith("=") or (line.startswith("-") and out and out[-1][1]):
            column = False
        elif column and found:
            of_work[-1] = True
        words = NUMBER.sub("#", line).split()
        out.append((words, [n.group() for n in found], of_work, line))
        start += len(line) + 1
    return out


def differences(shown, printed):
    """Lines that are not the same, of both texts."""
    a, b = parts(shown), parts(printed)
    if len(a) != len(b):
        return [f"{len(a)} lines are shown, and {len(b)} printed:\n{printed}"]
    return [
        f"shown:   {x[3]}\nprinted: {y[3]}"
        for x, y in zip(a, b, strict=True)
        if x[0] != y[0] or not all(map(same_number, x[1], y[1], x[2]))
    ]


SHOWN = """\
Rows: 392, lambda: 0.005025
Dev. ratio:  0.9119
      a   |w|   Iter.
---------------------
1  14.13  7.7      53
2  -0.32  4.4      50
---------------------
x  0.0025  1e-08   60
Optimizer: 741 passes over the data, at
    most 74 iterations in a boost, largest gradient 0.00021."""


@pytest.mark.parametrize(
    "a, b",
    [
        ("53", "71"), ("741", "912"), ("74", "60"), ("0.00021", "0.0004"), ("7.7  ", "7.699"),
        ("0.9119", "0.9120"), ("0.005025", "0.005027"), ("0.0025", "0.002501"), ("1 ", "1    "),
    ],
)  # fmt: skip
def test_what_is_the_same(a, b):
    assert SHOWN.count(a) >= 1 and differences(SHOWN, SHOWN.replace(a, b, 1)) == []


@pytest.mark.parametrize(
    "a, b",
    [
        ("392", "393"), ("0.9119", "0.9149"), ("0.9119", "0.919"), ("14.13", "14.18"), ("53", "5"),
        ("-0.32", "0.32"), ("0.0025", "0.0031"), ("1e-08", "1e-07"), ("60", "61"), ("741", "7410"),
        ("0.00021", "0.021"), ("lambda", "gamma"), ("\nDev. ratio:  0.9119", ""), ("1  ", "2  "),
        ("4.4", "4.4  5"),
    ],
)  # fmt: skip
def test_what_is_not_the_same(a, b):
    assert SHOWN.count(a) >= 1 and differences(SHOWN, SHOWN.replace(a, b, 1)) != []


# What is said -----------------------------------------------------------------------------------

# What the prose says of results, and whether it is so once the code that follows has run.
CLAIMS = {
    "README": {
        "consists of 27 of the 569 tumours; a new case is compared with them on 6 of 30 features":
            "(len(fit.estimates), fit.n, fit.df, len(fit.design.names)) == (27, 569, 6, 30)",
        "The fit below uses 8 of 13 measurements in 5 views":
            "(len(fit.design.names), fit.df, len(fit.estimates)) == (13, 8, 5)",
    },
    "glm": {
        "The curvature in weight is significant": "line.anova(curve)['p_value'][1] < 1e-6",
        "little more than half of its degrees of freedom":
            "0.5 < rings.log['deviance'] / rings.df_resid < 0.65",
    },
    "gbmap": {
        "`m` (10 by default)": "path.fits[0].settings.m == 10",
        "the richer model looks better here": "both['dev_ratio'].is_monotonic_decreasing",
        "`weight` has a negative coefficient": "fit.coef()['weight'] < 0",
    },
    "gbmap_drift": {
        "below the threshold are as wrong as those for cars above it":
            "watch.evaluate(late[~alarm])['deviance'][0]"
            " >= watch.evaluate(late[alarm])['deviance'][0]",
    },
    "proset": {
        "From here on we use the sparser model": "len(tumour.estimates) < len(fit.estimates)",
        "the malignant tumour that": "missed['diagnosis'].tolist() == ['malignant']",
        "This malignant tumour is not unusual": "explanation.quantile > 0.05",
        "so they have no prototypes": "len(more.estimates) == len(fit.estimates)",
    },
    "proset_numbers": {
        "the coverage is right on abalone, concrete and wine_red":
            "observed['squared'].filter(regex='abalone|concrete|wine').sub(observed.index, axis=0)"
            ".abs().max(axis=None) < 0.04",
        "the 90% intervals contain 96% of the new rows":
            "0.94 < observed['squared'].filter(like='autompg').loc[0.9].item() < 0.98",
    },
    "costnet": {
        "303 patients": "len(heart) == 303",
        "For four dollars, three questions and a blood pressure cuff":
            "set(fit.at(4).inputs) == {'age', 'sex', 'chest_pain', 'resting_bp'}",
        "more than half of the deviance that the most expensive model explains":
            "fit.at(4).dev_ratio > fit.prices()['dev_ratio'].max() / 2",
    },
    "costnet_monitoring": {
        "From a budget of 3 on, the lasso alone has a larger error":
            "(curves['all'] < curves['lasso']).loc[3:].all()",
    },
    "melm": {
        "34 numbers describe a radar echo": "echoes.shape[1] == 34 + 1",
        "among 33 features": "len(fit.design.names) - len(fit.design.constant) == 33",
        "Barbera and Barolo, which are far apart, have by far the largest divergence":
            "set(cultivars.pairs().nlargest(1, 'divergence').iloc[0, :2]) == {'Barbera', 'Barolo'}",
    },
    "production": {
        "differ from those of `predict` by less than 1e-9": "max(gap_sql, gap_onnx) < 1e-9",
    },
    "big_data": {
        "the same fit: `save` writes the same bytes": "len(saved) == 1",
        "horsepower has missing values in five of the thirteen years":
            "frame.groupby('model_year')['horsepower'].count().lt("
            "frame.groupby('model_year').size()).sum() == 5",
        "All four saved files are equal":
            "len(saved) == 1 and len(list(folder.glob('*.lodim'))) == 4",
    },
    "uncertainty": {
        "all cars in the heaviest quarter, but of fewer cars in the lightest quarter":
            "intervals.coverage(new, 'weight').query('coverage == 1').index[-1] == 3"
            " and intervals.coverage(new, 'weight')['coverage'][0] < 1",
    },
    "ripr": {
        "Of thirty measurements the model needs less than half":
            "fit.df < len(fit.design.names) / 2",
        "such as these, the default, in which all views vote, has a lower loss":
            "fit.evaluate(test)['deviance'][0] < alone.evaluate(test)['deviance'][0]",
        "There are more views than before": "len(partial.estimates) > len(fit.estimates)",
        "compares views that vote together with one view for each row":
            "strength.evaluate(new)['deviance'][0] < single.evaluate(new)['deviance'][0]",
    },
}  # fmt: skip


def words(prose):
    """Prose in one line, without the marks of a comment."""
    return " ".join(re.sub(r"^# ?", "", prose, flags=re.M).split())


def broken(page, prose, names):
    """Claims of a page that are made in this prose and do not hold."""
    made = {said: so for said, so in CLAIMS.get(page, {}).items() if said in words(prose)}
    return [said for said, so in made.items() if not eval(so, names)]


@pytest.mark.parametrize("page", CLAIMS)
def test_what_is_claimed_is_said(page):
    file = ROOT / ("README.md" if page == "README" else f"vignettes/{page}.py")
    assert all(said in words(file.read_text()) for said in CLAIMS[page])


def test_security_states_the_limits_of_the_code():
    page = (ROOT / "SECURITY.md").read_text()
    assert (storage.MAX_BYTES, storage.MAX_JSON_BYTES) == (2**30, 64 * 2**20)
    limits = {
        "at most 1 GiB": 1, "at most 64 MiB": 1, "at most {:,} parts": storage.MAX_MEMBERS,
        "{:,} characters": parser.MAX_LENGTH, "{:,} names and signs": parser.MAX_TOKENS,
        "{:,} terms": terms.MAX_TERMS, "{:,} columns per spline": language.MAX_BASIS,
        "{:,} columns per tensor product": language.MAX_TENSOR,
        "up to {:,} rows of the data": sections.MOST_POINTS,
    }  # fmt: skip
    assert [words for words, n in limits.items() if words.format(n) not in page] == []


# README.md --------------------------------------------------------------------------------------

HELD_OUT = {
    "gbmap": "gbmap", "proset": "proset", "ripr": "ripr", "costnet": "costnet", "melm": "melm",
    "boosting": "boosted trees", "linear": "ridge or logistic, penalty by CV", "tree": "tree",
}  # fmt: skip
MEASURES = {"classes": {"score": "accuracy", "log_loss": "log-loss"}, "numbers": {"score": "R²"}}


def test_pages_state_how_often_another_seed_changes_gbmap():
    measured = pd.read_csv(ROOT / "benchmarks/results/stability_gbmap.csv", comment="#")
    moved = measured[measured["change"] == "seed"].groupby("data")["rms"].max()
    said = f"changed predictions on {(moved > 0).sum()} of {len(moved)} data sets"
    assert said in words((ROOT / "CHANGELOG.md").read_text())
    settings = words((ROOT / "docs/settings.md").read_text())
    assert f"{said}, on {(moved > 0.05).sum()} of these by more than 5%" in settings


def held_out_table():
    """Return README's table of means over the data sets of benchmarks/results/held_out.csv."""
    measured = pd.read_csv(ROOT / "benchmarks/results/held_out.csv")
    lines = ["| mean of held-out | " + " | ".join(HELD_OUT.values()) + " |"]
    lines += ["|---" * (len(HELD_OUT) + 1) + "|"]
    for task, measures in MEASURES.items():
        rows = measured[measured["task"] == task]
        for column, name in measures.items():
            means = rows.groupby("model")[column].mean().reindex(HELD_OUT)
            values = ["" if np.isnan(mean) else f"{mean:.3f}" for mean in means]
            lines.append(f"| {name}, {rows['set'].nunique()} sets | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def held_out_of_ebm():
    """Return README's sentence about the data sets of held_out.csv on which EBM was run."""
    measured = pd.read_csv(ROOT / "benchmarks/results/held_out.csv")
    rows = measured[measured["set"].isin(measured.loc[measured["model"] == "ebm", "set"])]
    means = rows.groupby(["task", "model"])[["score", "log_loss"]].mean()
    columns = [(task, column, name) for task, m in MEASURES.items() for column, name in m.items()]
    figures = {
        model: [f"{means.loc[(task, model), column]:.3f}" for task, column, _ in columns]
        for model in ("ebm", "gbmap")
    }
    ebm = [f"{name} {figure}" for (*_, name), figure in zip(columns, figures["ebm"], strict=True)]
    classes = rows.loc[rows["task"] == "classes", "set"].nunique()
    sets = f"On {rows['set'].nunique()} of these sets, {classes} of them with classes"
    return f"{sets}, EBM has {join_words(ebm)}; gbmap has {join_words(figures['gbmap'])}."


def test_readme_has_the_held_out_losses():
    assert held_out_table() in README
    assert held_out_of_ebm() in README


def test_evidence_has_the_best_that_other_settings_reach():
    measured = pd.read_csv(ROOT / "benchmarks/results/attainable.csv")
    page = (ROOT / "docs/evidence.md").read_text()
    columns = ["ebm", "default", "best"]
    for name, row in measured.groupby("set")[columns].mean().iterrows():
        assert f"| {name} | " + " | ".join(f"{value:.3f}" for value in row) + " |" in page
    ebm, default, best = (f"{value:.3f}" for value in measured[columns].mean())
    assert f"is {ebm}, and that of a default `gbmap` call is {default}" in page
    assert f"Its mean R² is {best}." in page


def run_readme():
    """Each block of Python, in one namespace: its code, what is shown, what it prints, claims."""
    names = {}
    prose, *blocks = PYTHON.split(README)
    for code, shown, after in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        yield code, shown or "", printed.getvalue(), broken("README", prose, names)
        prose = after


def test_readme_prints_what_it_shows_and_does_what_it_says(tmp_path, monkeypatch, axes):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for code, shown, printed, claims in run_readme():
        said = [*differences(shown, printed), *claims]
        wrong += [f"{code.splitlines()[-1]}\n{line}" for line in said]
    assert not wrong, (
        "python tests/contract/test_documents.py writes what is printed:\n" + "\n".join(wrong)
    )


def write_readme():
    """README.md with what its code prints in the place of what it shows."""
    text = re.sub(r"^\| mean of held-out .*?\n(?=\n)", held_out_table(), README, flags=re.M | re.S)
    text = re.sub(r"On \d+ of these sets,.*?(?= The \d+ sets)", held_out_of_ebm(), text)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code, shown, printed, _ in run_readme():
            if shown:
                block = "```python\n{}```\n\n```text\n{}```\n"
                text = text.replace(block.format(code, shown), block.format(code, printed))
    (ROOT / "README.md").write_text(text)


# Commands and names in README.md ----------------------------------------------------------------


PROGRESS = re.compile(r"^lodim: .*\(\d+ s\)\n", re.MULTILINE)


def commands():
    """The commands of the pages that are lodim's, as lists of words."""
    lines = "".join(code for kind, code in BLOCK.findall(PAGES) if kind == "sh").splitlines()
    words = [shlex.split(part, comments=True) for line in lines for part in line.split("&&")]
    return [w[3:] for w in words if w[0].endswith("python") and w[1:3] == ["-m", "lodim"]]


@pytest.mark.long
@pytest.mark.parametrize("argv", commands(), ids=" ".join)
def test_commands_run(argv, tmp_path, monkeypatch, capsys, axes):
    """On a part of the data, response first: a file comes before the data set of its name."""
    monkeypatch.chdir(tmp_path)
    files = {"cars.csv": "autompg", "new.csv": "autompg"} | {n: n for n in ld.data()["name"]}
    for file in set(argv) & set(files):
        data = ld.data(files[file])
        data.iloc[:: len(data) // 40, :6].to_csv(file, index=False)
    try:
        assert main(argv) == 0
    except SystemExit as stop:  # of --help
        assert stop.code == 0
    out, err = capsys.readouterr()
    assert out and not PROGRESS.sub("", err)
    for option, made in (("--output", "predicted.csv"), ("--plots", "out/cv.png")):
        assert (option in argv) == (tmp_path / made).exists()


def test_the_commands_are_found():
    assert len(commands()) == 10 and {argv[0] for argv in commands()} >= {"gbmap", "ripr", "data"}


def spans():
    """What the pages have in backquotes outside of their blocks."""
    return re.findall(r"`` ?(.+?) ?``|`(.+?)`", BLOCK.sub("", PAGES))


def calls():
    """Every call in backquotes: (the span, its function as text, names of its keywords)."""
    for text in (a or b for a, b in spans()):
        with contextlib.suppress(SyntaxError):
            tree = ast.parse(text.replace("[...]", "[]"))
            for node in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
                yield text, ast.unparse(node.func), [k.arg for k in node.keywords]


def objects():
    """What the variables of README.md are."""
    from importlib import import_module

    from lodim.report.tables import Report
    from lodim.selection.cv import CV
    from lodim.selection.path import Path as LambdaPath

    fits = [getattr(import_module(f"lodim.models.{k}.fit"), f"{k.capitalize()}Fit") for k in MODELS]
    several = [*fits, LambdaPath, CV, Report]
    frames = {"np": [np], "df": [pd.DataFrame]}
    return {"ld": [ld], "fit": fits, "path": [LambdaPath], "cv": [CV], "": several} | frames


def test_every_call_named_in_the_readme_is_there():
    seen, kinds = set(), objects()
    for text, function, keywords in calls():
        of, _, name = function.rpartition(".")
        if name in FORMULAS or hasattr(builtins, name):
            continue
        found = [getattr(kind, name) for kind in kinds[of.partition(".")[0]] if hasattr(kind, name)]
        assert found, f"{text}: there is no {function}()"
        found = [f for f in found if not isinstance(f, np.ufunc)]  # no signature in NumPy 2.0
        parameters = [p for f in found for p in inspect.signature(f).parameters.values()]
        any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
        assert any_name or set(keywords) <= {p.name for p in parameters}, text
        seen.add(function)
    assert {"fit.plot", "ld.active", "prices", "drift_threshold", "votes"} <= seen


# Vignettes --------------------------------------------------------------------------------------

SMALLER = {  # what is done fewer times here, to save time: in the document, here
    "active": {"range(5)": "range(2)", "range(4)": "range(1)", "24, rounds=4": "24, rounds=2",
               "30, rounds=4": "30, rounds=2"},
    "costnet_monitoring": {"range(1, 6)": "range(1, 3)"},
    "proset": {"n_lambda=60": "n_lambda=8", "n_lambda=25": "n_lambda=5"},
    "melm": {"n_lambda=7": "n_lambda=3"},
    "uncertainty": {"folds=5": "folds=2"},
    "ripr": {"0.05, 25)": "0.05, 6)", "0.1, 5), None]": "0.1, 3), None]"},
}  # fmt: skip


def cells(name):
    """The cells of code of a vignette, each with the prose before it; what ends it has no code."""
    text = (ROOT / "vignettes" / f"{name}.py").read_text()
    for old, new in SMALLER.get(name, {}).items():
        assert old in text, f"{name}.py has no {old!r}"
        text = text.replace(old, new)
    prose = ""
    for part in re.split(r"^# %%", text, flags=re.M)[1:]:
        if part.startswith(" [markdown]"):
            prose += part
        else:
            yield prose, part.partition("\n")[2]
            prose = ""
    yield prose, ""


@pytest.fixture
def precision():
    """Vignettes set how many digits pandas prints; other tests get its default again."""
    yield
    pd.reset_option("display.precision")


@pytest.mark.long
@pytest.mark.parametrize("name", VIGNETTES)
def test_vignettes_run_and_do_what_they_say(name, axes, precision):
    """Cell by cell; what ends a cell is shown, as a notebook does."""
    names, wrong = {}, []
    for prose, code in cells(name):
        tree = ast.parse(code)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), name, "eval"), names)
            assert shown is None or getattr(shown, "_repr_html_", shown.__repr__)()
        wrong += broken(name, prose, names)
    assert not wrong


def test_prose_begins_below_its_marker():
    """Text behind the marker would be the title of a cell, which no page shows."""
    pages = [*(ROOT / "docs").glob("**/*.py"), *(ROOT / "vignettes").glob("*.py")]
    lines = [(p.name, line) for p in pages for line in p.read_text().splitlines()]
    markers = [(name, line) for name, line in lines if line.startswith("# %% [markdown]")]
    assert markers and not [m for m in markers if m[1] != "# %% [markdown]"]


def test_what_renders_the_vignettes():
    """The list names every document, and the extra `docs` has all that they import."""
    # Imported here: as a program, this file does not see the folder of tests.
    from contract.test_package import ALWAYS, PACKAGE_OF, required

    listed = re.findall(r"^\| \[(\w+)\.py\]", (ROOT / "vignettes/README.md").read_text(), re.M)
    assert sorted(listed) == VIGNETTES
    packages = ALWAYS | required("docs") | {"lodim", *sys.stdlib_module_names}
    for name in VIGNETTES:
        nodes = [n for _, code in cells(name) for n in ast.walk(ast.parse(code))]
        used = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        used |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
        used = {module.split(".")[0] for module in used}
        assert {PACKAGE_OF.get(name, name) for name in used} <= packages


@pytest.mark.parametrize("page", ["README.md", "vignettes/README.md"])
def test_links_lead_somewhere(page):
    """README.md links by address, so that its links work on a package index too."""
    found = re.findall(r"\]\((.+?)\)", (ROOT / page).read_text())
    own = [m[1] for link in found if (m := re.match(REPOSITORY + "(.+)", link))]
    relative = [link for link in found if "://" not in link]
    assert own if page == "README.md" else relative
    assert all((ROOT / link).exists() for link in own)
    assert all((ROOT / page).parent.joinpath(link).exists() for link in relative)
    assert not (relative and page == "README.md")


if __name__ == "__main__":
    write_readme()
