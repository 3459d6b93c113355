"""Fits written out answer as predict() does: every model, the shipped data, three languages."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from export.targets import TARGETS, expected, gap, in_duckdb, in_onnx, in_python

CLASSES = ["gbmap", "melm", "proset", "glm", "costnet"]
NUMBERS = ["gbmap", "proset", "glm", "costnet"]
SETS = {
    **dict.fromkeys(("breast_cancer", "breast_tissue", "german_credit", "heart"), CLASSES),
    **dict.fromkeys(("ionosphere", "iris", "seeds", "sonar", "wine"), CLASSES),
    **dict.fromkeys(("abalone", "autompg", "concrete", "diabetes", "wine_red"), NUMBERS),
}
SHORT = ("autompg", "heart", "iris")  # sets of the short tests
TITLES = ld.data().set_index("name")["response"]
DATA = [(name, TITLES[name], models) for name, models in SETS.items()]
CASES = {
    "gbmap": {"m": 3, "lambda_": 0.01, "n_starts": 1, "threads": 1},
    "melm": {"gamma": 1.0, "n_starts": 2, "control": {"calibrate": False}},
    "proset": {"n_batches": 2, "lambda_v": 1e-3, "lambda_w": 1e-6},
    "glm": {},
    "costnet": {"lambda_": 0.01},
}
ROWS = 100
pytestmark = pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")


def rows_of(name):
    """Some rows of a data set, without columns that most of them lack."""
    df = ld.data(name)
    df = df.dropna(axis="columns", thresh=len(df) // 2)
    return df.sample(min(ROWS, len(df)), random_state=0).reset_index(drop=True)


def with_holes(df, share=0.05):
    """Each cell missing with a small probability, whatever the columns hold."""
    return df.astype(object).where(np.random.default_rng(0).random(df.shape) > share, None)


@pytest.mark.parametrize(
    "model, name",
    [
        pytest.param(m, name, marks=[] if name in SHORT else pytest.mark.long)
        for name, models in SETS.items()
        for m in models
    ],
)
@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_agreement(model, name):
    df = rows_of(name)
    fit = getattr(ld, model)(f"{TITLES[name]} ~ .", data=df, **CASES[model])
    new = with_holes(df.head(40))
    wanted = expected(fit, new)
    for target, (run, tolerance) in TARGETS.items():
        assert gap(run(fit, new), wanted) <= tolerance, target


@pytest.mark.long
@pytest.mark.parametrize("run, tolerance", TARGETS.values(), ids=TARGETS)
def test_other_shapes(run, tolerance):
    """Offsets, log links, lines as learners, views without classes, prices, float32, no columns."""
    df = rows_of("autompg")
    df["origin"] = df["origin"].astype(str)
    df["o"], df["fast"] = 0.1 * df["model_year"], df["acceleration"] > 15
    few = "weight + horsepower + origin"
    fits = [
        ld.glm(f"mpg ~ {few}", data=df, family="gamma", offset="o"),
        ld.glm(f"cylinders ~ {few}", data=df, family="poisson"),
        ld.glm(f"fast ~ {few}", data=df, offset="o"),
        ld.glm("mpg ~ weight + I(2 * weight) + origin", data=df),
        ld.gbmap(f"mpg ~ {few}", data=df, offset="o", activation="identity", **CASES["gbmap"]),
        ld.gbmap("origin ~ weight + mpg", data=df, **CASES["gbmap"]),
        ld.proset(f"mpg ~ {few}", data=df, offset="o", **CASES["proset"]),
        ld.proset(f"fast ~ {few}", data=df, offset="o", **CASES["proset"]),
        ld.proset(f"mpg ~ {few}", data=df, **CASES["proset"] | {"lambda_v": 1e3}),
        ld.melm("~ weight + horsepower + mpg", data=df),
        ld.costnet(
            f"mpg ~ {few}", data=df, costs={"weight": 1.0, "origin": 5.0, "horsepower": 2.0}
        ).at(budget=1.0),
    ]
    df.loc[3, "o"], df.loc[4, "weight"] = None, None
    for fit in fits:
        wanted = expected(fit, df) if fit.levels or fit.family.name != "none" else (
            fit.predict(df).to_numpy()
        )  # fmt: skip
        assert gap(run(fit, df), wanted) <= tolerance, fit.call


@pytest.mark.parametrize("model", CLASSES)
def test_a_saved_fit_is_written_the_same(model, tmp_path):
    fit = getattr(ld, model)("species ~ .", data=rows_of("iris"), **CASES[model])
    fit.save(tmp_path / "fit.lodim")
    loaded = ld.load(tmp_path / "fit.lodim")
    assert loaded.to_python() == fit.to_python() and loaded.to_sql() == fit.to_sql()


def test_the_null_model_reads_no_column():
    df = rows_of("autompg")
    fit = ld.costnet("mpg ~ weight", data=df, lambda_=1e6)
    assert fit.inputs == []
    for run in (in_python, in_duckdb):
        assert gap(run(fit, df), expected(fit, df)) <= 1e-12
    with pytest.raises(ld.ArgumentError, match="without columns"):
        fit.to_onnx()


@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_columns_that_gbmap_compresses():
    rng = np.random.default_rng(0)
    x = np.exp(2.0 * rng.normal(size=200))
    df = pd.DataFrame({"x": x, "y": np.log(x) + rng.normal(size=200)})
    fit = ld.gbmap("y ~ .", df, **CASES["gbmap"])
    assert "arcsinh" in fit.design.names[0]
    new = pd.DataFrame({"x": [*x, 0.0, 1e-20, -5.0, 1e12, 1e60, -1e60]})
    for run in (in_python, in_duckdb, in_onnx):
        np.testing.assert_allclose(run(fit, new), expected(fit, new), rtol=1e-11, atol=1e-11)


@pytest.mark.long
def test_a_fit_in_single_precision():
    df = rows_of("concrete")
    fit = ld.gbmap("strength ~ .", data=df, dtype="float32", **CASES["gbmap"])
    for run, _ in TARGETS.values():
        assert gap(run(fit, df), expected(fit, df)) <= 1e-5


@pytest.mark.long
def test_many_columns_and_wide_sums():
    """Sums that no parser's stack would hold flat; more steps than PostgreSQL has columns."""
    rng, p = np.random.default_rng(0), 1100
    df = pd.DataFrame(rng.normal(size=(40, p)), columns=[f"x{i}" for i in range(p)])
    df["y"] = df["x0"] + rng.normal(size=40)
    fit = ld.gbmap("y ~ .", data=df, m=1, lambda_=0.1, n_starts=1, threads=1)
    for run in (in_python, in_onnx):
        assert gap(run(fit, df.head(3)), expected(fit, df.head(3))) <= 1e-12
    with pytest.raises(ld.ArgumentError, match="PostgreSQL allows at most 1,600"):
        fit.to_sql("postgres")


# New levels, and what predict() refuses ----------------------------------------------------------


@pytest.fixture(scope="module")
def cars():
    df = rows_of("autompg")[["mpg", "weight", "origin", "cylinders"]]
    df["origin"] = df["origin"].astype(str)
    return df


@pytest.mark.parametrize("missing", ["drop", "indicator"])
def test_new_levels(cars, missing):
    fit = ld.glm("mpg ~ weight + origin + C(cylinders):weight", data=cars, missing=missing)
    new = cars.head(6).astype({"cylinders": float, "origin": object})
    new.loc[1, "origin"], new.loc[2, "cylinders"], new.loc[3, "origin"] = "Mars", 7.0, None
    wanted = expected(fit, new, new_levels="missing")
    for run, tolerance in TARGETS.values():
        assert gap(run(fit, new, new_levels="missing"), wanted) <= tolerance
    rest = new.assign(origin=new["origin"].replace("Mars", "USA"), cylinders=8.0)
    rest["cylinders"] = new["cylinders"].replace(7.0, 8.0)
    wanted = expected(fit, rest).copy()
    wanted[[1, 2]] = np.nan
    for run in (in_duckdb, in_onnx):
        assert gap(run(fit, new), wanted) <= 1e-6
    for row, words in ((1, "origin.*'Mars'"), (2, "cylinders.*7.0")):
        with pytest.raises(ValueError, match=words):
            in_python(fit, new.loc[[row]])


def test_new_levels_are_errors_before_aliased_columns(cars):
    fit = ld.glm("mpg ~ origin:heavy", cars.assign(heavy=cars["weight"] > 2800))
    assert "not estimable" in fit.to_python().replace("_", " ")
    new = cars.head(1).assign(heavy=True, origin="Mars")
    for call in (fit.predict, lambda rows: in_python(fit, rows)):
        with pytest.raises(ValueError, match=r"origin.*'Mars'"):
            call(new)


def test_declared_categories_without_rows_are_missing(cars):
    cars["origin"] = pd.Categorical(cars["origin"], [*sorted(set(cars["origin"])), "Mars"])
    for missing in ("drop", "indicator"):
        fit = ld.glm("mpg ~ weight + origin", data=cars, missing=missing)
        new = cars.head(4).copy()
        new.loc[1, "origin"] = "Mars"
        for run, tolerance in TARGETS.values():
            assert gap(run(fit, new), expected(fit, new)) <= tolerance


@pytest.mark.parametrize(
    "right, value",
    [
        ("weight", np.inf), ("weight", 1e200), ("np.log(weight)", 0.0), ("np.log(weight)", -1.0),
        ("bs(weight, df=4, upper_bound=6e3)", 6001.0), ("bs(weight, df=4)", 1e150),
        ("I(1 / (weight - 2000.5))", 2000.5),
        ("np.exp(weight / 5e3)", 1e9), ("C(np.round(weight, -3))", 9e3),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_what_predict_refuses(cars, right, value):
    fit = ld.glm(f"mpg ~ {right}", data=cars, missing="indicator")
    new = cars.head(3).copy()
    good = expected(fit, new).copy()
    new["weight"] = [value, *new["weight"][1:]]
    if value != 1e200:
        with pytest.raises(ld.DataError):
            fit.predict(new)
    with pytest.raises(ValueError):
        in_python(fit, new)
    good[0] = np.nan
    for run in (in_duckdb, in_onnx):
        assert gap(run(fit, new), good) <= 1e-6


FAR = [30.0, 1e3, 1e8, 1e12, 1e16, 1e30, 1e50, 1e89, 1e95]


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        *(f"{model}('{left} ~ x + z', df, **CASES['{model}'])" for model, left in [
            ("gbmap", "y"), ("gbmap", "c"), ("proset", "y"), ("proset", "c"), ("costnet", "y"),
            ("melm", "k"), ("melm", "c"), ("glm", "k"),
        ]),
        "gbmap('y ~ x + z + x:z', df, dtype='float32', **CASES['gbmap'])",
        "glm('y ~ x + cc(z, df=4)', df)", "glm('y ~ cr(z, df=4) + I(x % 0.7)', df)",
        "glm('k ~ x + I(z ** 3) + np.cos(x)', df)", "glm('n ~ x + scale(z)', df, family='poisson')",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_far_from_the_data(call):
    """The answer of predict(), or a refusal: never another number."""
    rng, n = np.random.default_rng(0), 80
    df = pd.DataFrame({"x": rng.normal(size=n), "z": 1e-12 * rng.normal(size=n)})
    df["y"], df["n"] = df["x"] + 1e12 * df["z"] + 0.1 * rng.normal(size=n), rng.poisson(2.0, n)
    df["k"] = np.where(df["y"] + rng.normal(size=n) > 0, "p", "q")
    df["c"] = np.resize(["u", "v", "w"], n)
    fit, module = eval(f"ld.{call}"), {}
    exec(fit.to_python(), module)
    sizes = np.r_[FAR, np.negative(FAR)]
    new = pd.DataFrame({"x": np.r_[sizes, 0 * sizes], "z": 1e-12 * np.r_[0 * sizes, sizes]})
    rows = [new.iloc[[k]] for k in range(len(new))]
    nothing = np.full((1, len(fit.levels or [0])), np.nan)
    wanted = np.vstack([_unless(ld.DataError, expected, fit, row, other=nothing) for row in rows])
    answers = [
        _unless(ValueError, module["predict"], row, other=np.nan) for row in new.to_dict("records")
    ]
    answers = [[*a.values()] if isinstance(a, dict) else [a] * nothing.size for a in answers]
    for found in (np.array(answers), in_duckdb(fit, new), in_onnx(fit, new)):
        some = ~np.isnan(found).any(axis=1)
        precision = 1e-4 if "float32" in call else 1e-6
        np.testing.assert_allclose(found[some], wanted[some], rtol=precision, atol=precision)
        assert some.sum() > 0.3 * len(new)


def _unless(error, function, *args, other):
    """What a function gives, or something else where it raises an error."""
    try:
        return function(*args)
    except error:
        return other


def test_an_empty_level_and_a_missing_text(cars):
    """Both are "" in ONNX, which is refused there."""
    cars = cars.assign(origin=cars["origin"].astype(str).replace("Japan", ""))
    fit, new = ld.glm("mpg ~ weight + origin", cars, missing="indicator"), cars.head(4).copy()
    new["origin"] = pd.Series(["", None, "USA", None], new.index, dtype=object)
    for run in (in_python, in_duckdb):
        assert gap(run(fit, new), expected(fit, new)) <= 1e-9
    with pytest.raises(ld.ArgumentError, match="'origin' has the level '', which means"):
        fit.to_onnx()


def test_python_refuses_other_kinds(cars):
    fit, scope = ld.glm("mpg ~ weight + origin", data=cars), {}
    exec(fit.to_python(), scope)
    for row in ({"weight": "3", "origin": "USA"}, {"weight": 3, "origin": 3.5}):
        with pytest.raises(ValueError, match="which is no"):
            scope["predict"](row)
    with pytest.raises(KeyError):
        scope["predict"]({"weight": 3})
    fit = ld.glm("mpg ~ weight", cars, family="quantile", quantile=0.9)
    assert "the predicted response" in fit.to_python() and "mean" not in fit.to_python()


@pytest.mark.long
@pytest.mark.parametrize("method", ["to_python", "to_sql", "to_onnx"])
def test_what_cannot_be_written(cars, method):
    cars["big"] = cars["weight"] > 2500
    bayes = pytest.importorskip("sklearn.naive_bayes").GaussianNB()
    fits = [
        (ld.ripr("big ~ mpg + cylinders", data=cars), "neighbours among all training rows"),
        (ld.melm("big ~ mpg + cylinders", data=cars, classifier=bayes), "classifier='kde'"),
        (ld.glm("mpg ~ weight", data=cars, offset=np.ones(len(cars))), "name of a column"),
    ]
    for fit, words in fits:
        with pytest.raises(ld.ArgumentError, match=words):
            getattr(fit, method)()
    fit = ld.glm("mpg ~ weight", data=cars)
    with pytest.raises(ld.ArgumentError, match="new_levels must be one of"):
        getattr(fit, method)(new_levels="other")


@pytest.mark.parametrize(
    "levels, words",
    [
        ([1, "a"], "levels of several kinds, such as 1 and 'a': make all of them text"),
        ([2**60 + 1, 2**60 + 3], "a level that cannot be written exactly"),
    ],
)
def test_levels_that_cannot_be_written(cars, levels, words):
    levels = np.resize(np.array(levels, object), len(cars))
    fit = ld.glm("mpg ~ kind + weight", cars.assign(kind=pd.Categorical(levels)))
    with pytest.raises(ld.ArgumentError, match=words):
        fit.to_sql("duckdb")


def test_arguments_of_queries(cars):
    fit = ld.glm("mpg ~ weight", data=cars)
    with pytest.raises(ld.ArgumentError, match="dialect"):
        fit.to_sql("mysql")
    for table in ("", (), 3, ("a", 3), "a\0b", "a\ud800b"):
        with pytest.raises(ld.ArgumentError):
            fit.to_sql("duckdb", table)


# Names that would break out ----------------------------------------------------------------------

HOSTILE = [
    'a"b', "a'b", "a\\b", "a\\'b", '"""', "'''", "a\nb", "a\r\nb", "'; DROP TABLE data; --",
    '"; import os; "', "\\", "\\n", "{x}", "{0}", "%s", "$1", "$$", ":name", "?", "--", "/* */",
    "é", "日本語", "\u202e", "\u2028", "😀", " ", "", "#", "answers", "answered",
    "too_large", "class", "lambda", "math", "row", "data", "s1",
    "select", "v1", "prediction", "_number", "concat_1", "x" * 200, "\x1b[0m", "\t", "0", "None",
    "');#", "\\u0027", "E'", "`", "u", "w", "k1", "unanswered", "TABLE_1", "math.pi",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("model", ["glm", "proset"])
def test_hostile_names_and_levels(model):
    """Columns, levels and classes of any letters: what is written computes, and no more."""
    rng, n = np.random.default_rng(0), 4 * len(HOSTILE)
    df = pd.DataFrame({name: rng.normal(size=n) for name in HOSTILE if name.strip()})
    df[HOSTILE[8] * 2] = rng.permutation(np.resize(np.array(HOSTILE[:12], object), n))
    df['it\'s "y"\n'] = np.resize(np.array([HOSTILE[8], 'no"', '"""\\'], object), n)
    *right, left = df
    right = right if model == "proset" else [*right[:12], HOSTILE[8] * 2]
    quoted = " + ".join(f"Q({c!r})" for c in right)
    fit = getattr(ld, model)(f"Q({left!r}) ~ {quoted}", data=df, **CASES[model])
    for run, tolerance in TARGETS.values():
        assert gap(run(fit, df.head(40)), expected(fit, df.head(40))) <= tolerance


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The model fits the response exactly")
def test_hostile_levels_one_by_one():
    rng, n = np.random.default_rng(0), 6 * len(HOSTILE)
    levels = [level for level in HOSTILE if level]
    df = pd.DataFrame({"g": np.resize(np.array(levels, object), n), "x": rng.normal(size=n)})
    df["y"] = df["x"] + np.resize(np.arange(len(levels)), n)
    text = "'; DROP TABLE data; --"
    right = f"C(g) + x + I(g == {text!r}):x + np.where(g == 'a\\\\b', 1, x)"
    for missing in ("drop", "indicator"):
        fit = ld.glm(f"y ~ {right}", data=df, missing=missing)
        for run, tolerance in TARGETS.values():
            assert gap(run(fit, df.head(80)), expected(fit, df.head(80))) <= tolerance


def test_the_module_needs_math_alone(cars):
    """No name but of math and builtins: with nothing else in its namespace it imports one thing."""
    imported = []

    def watched(name, *args):
        imported.append(name)
        return __import__(name, *args)

    scope = {"__builtins__": {**vars(__import__("builtins")), "__import__": watched}}
    exec(ld.gbmap("mpg ~ .", data=cars, **CASES["gbmap"]).to_python(), scope)
    assert scope["predict"](cars.iloc[0].to_dict()) > 0 and imported == ["math"]


def test_a_column_without_a_name(cars):
    fit = ld.glm("mpg ~ Q('')", cars.rename(columns={"weight": ""}))
    assert gap(in_python(fit, cars.rename(columns={"weight": ""})), expected(fit, cars.rename(
        columns={"weight": ""}))) <= 1e-12  # fmt: skip
    for method, where in ((fit.to_sql, "a query"), (fit.to_onnx, "ONNX")):
        with pytest.raises(ld.ArgumentError, match=f"without a name cannot stand in {where}"):
            method()


def test_what_no_language_can_hold(cars):
    fit = ld.gbmap("mpg ~ .", data=cars.rename(columns={"weight": "a\0b"}), **CASES["gbmap"])
    for method in (fit.to_python, fit.to_sql, fit.to_onnx):
        with pytest.raises(ld.ArgumentError, match="null character"):
            method()


def test_onnx_has_classes_and_says_what_is_missing(cars, monkeypatch):
    model = ld.glm("origin ~ weight", data=cars).to_onnx()
    assert {p.key: p.value for p in model.metadata_props} == {
        "classes": '["Europe", "Japan", "USA"]'
    }
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ld.MissingExtraError, match=r"lodim\[onnx\]"):
        ld.glm("mpg ~ weight", data=cars).to_onnx()
