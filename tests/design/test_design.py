"""From a frame to numbers: kinds of columns, missing values, terms, and what is refused."""

import datetime
import decimal
import re
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import patsy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim import forms
from lodim.design import expressions
from lodim.design.design import Design
from lodim.design.frame import read_frame
from lodim.design.rows import RowInputs
from lodim.design.terms import check_size
from lodim.engine import tiles
from lodim.errors import (
    ArgumentError,
    DataError,
    ExtrapolationWarning,
    FormulaError,
    LodimError,
    MissingExtraError,
)
from lodim.formula.formula import quote
from lodim.models.glm.model import glm

N = 60


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    data = {
        "y": rng.normal(5, 1, N),
        "x": rng.uniform(1, 2, N),
        "g": rng.choice(list("cab"), N),
        "h": rng.choice(["u", "v"], N),
        "b": rng.random(N) > 0.5,
        "i": rng.integers(1, 4, N),
        "a b": rng.normal(size=N),
        "k": np.full(N, 0.1),
        "cls": rng.choice(["no", "yes"], N),
        "w": rng.random(N),
    }
    frame = pd.DataFrame(data, index=[f"r{i}" for i in range(N)])
    frame.loc["r3", "x"] = np.nan
    frame.loc["r5", "g"] = None
    return frame


def matrix(batch):
    return tiles.unpack(batch.X, batch.n) if batch.X.shape[1] else np.empty((batch.n, 0))


def raw(design, batch):
    return matrix(batch) * design.scale + design.mean


def assert_same(one, other, names=("X", "y", "weights", "offset", "rows")):
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None and b is None) or np.array_equal(a, b), name


def assert_reproduced(design, batch, data, **keywords):
    response = design.response is not None
    names = ("X", "y", "offset", "rows") + ("weights",) * response
    again = forms.read(Design, plain(forms.write(design)))
    for one in (design, again):
        assert_same(batch, one.apply(data, response=response, **keywords), names)


def plain(value):
    """The state, seen to hold nothing but what a store can write."""
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        assert value.dtype in (np.float64, np.int64, bool) and value.ndim
        return value.copy()
    assert value is None or type(value) in (str, int, float, bool)
    return value


FORMULAS = {
    "y ~ .": ["x", "g[a]", "g[b]", "g[c]", "h[v]", "b[True]", "i", "a b", "k", "cls[yes]", "w"],
    "y ~ . - x - Q('a b') - k - w": ["g[a]", "g[b]", "g[c]", "h[v]", "b[True]", "i", "cls[yes]"],
    "y ~ (x + h + i)**2": ["x", "h[v]", "i", "x:h[v]", "x:i", "h[v]:i"],
    "y ~ x*g": ["x", "g[a]", "g[b]", "g[c]", "x:g[a]", "x:g[b]", "x:g[c]"],
    "np.log(y) ~ x + I(x**2)": ["x", "I(x ** 2)"],
    "I(b) ~ x": ["x"],
    "~ x": ["x"],
    "y ~ 1": [],
    "cls ~ bs(x, df=4)": ["bs(x, df=4)[0]", ..., 4],
    "y ~ cr(i, df=3)": ["cr(i, df=3)[0]", ..., 3],
    "y ~ cc(x, df=2, constraints='center')": ["cc(x, df=2, constraints='center')[0]", ..., 2],
    "y ~ te(cr(x, df=3), cr(w, df=3))": ["te(cr(x, df=3), cr(w, df=3))[0]", ..., 9],
    "y ~ center(x) + scale(i):h": ["center(x)", "scale(i):h[v]"],
    "y ~ bs(center(np.log(x)), 3)": ["bs(center(np.log(x)), 3)[0]", ..., 3],
    "y ~ C(i)": ["C(i)[1]", "C(i)[2]", "C(i)[3]"],
    "y ~ C(g, Sum)": ["C(g, Sum)[S.a]", "C(g, Sum)[S.b]"],
    "y ~ C(g, Treatment('b'))": ["C(g, Treatment('b'))[T.a]", "C(g, Treatment('b'))[T.c]"],
    "y ~ C(i, Poly)": ["C(i, Poly)[Linear]", "C(i, Poly)[Quadratic]"],
    "y ~ C(h, levels=['v', 'u'])": ["C(h, levels=['v', 'u'])[u]"],
    "y ~ C(np.round(x))": ["C(np.round(x))[2.0]"],
    "y ~ I((x > 1.5) & (h == 'u') | ~b)": ["I((x > 1.5) & (h == 'u') | ~b)[True]"],
    "y ~ np.where(1.2 < x <= 1.5, x, 0)": ["np.where(1.2 < x <= 1.5, x, 0)"],
    "y ~ np.round(x, 1) + np.clip(x, 1.2, 1.8)": ["np.round(x, 1)", "np.clip(x, 1.2, 1.8)"],
    "y ~ I(b + -i // 2 % 3)": ["I(b + -i // 2 % 3)"],
    "g ~ x": ["x"],
    "b ~ x": ["x"],
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_terms_and_their_names(formula, frame):
    design, batch = Design.learn(formula, frame)
    expected = FORMULAS[formula]
    if ... in expected:
        expected = [expected[0].replace("[0]", f"[{j}]") for j in range(expected[2])]
    assert list(design.names) == expected
    assert_reproduced(design, batch, frame)
    X = matrix(batch)
    varies = ~np.isin(design.names, design.constant)
    assert np.allclose(X.mean(axis=0), 0)
    assert np.allclose(X[:, varies].std(axis=0), 1)
    assert not X[:, ~varies].any()


def test_values_are_those_of_the_frame(frame):
    design, batch = Design.learn("y ~ x + g + x:b + I(x**2) + C(g, Sum)", frame)
    rows = frame.iloc[batch.rows]
    assert list(rows.index) == [r for r in frame.index if r not in ("r3", "r5")]
    assert design.n_dropped == 2
    x, g, b = (rows[name].to_numpy() for name in ("x", "g", "b"))
    sums = [(g == level) * 1.0 - (g == "c") for level in "ab"]
    expected = np.column_stack([x, g == "a", g == "b", g == "c", x * b, x**2, *sums])
    assert np.allclose(raw(design, batch), expected)
    assert np.array_equal(batch.y, rows["y"])
    assert list(design.term_of) == [0, 1, 1, 1, 2, 3, 4, 4]
    assert design.term_names == ("x", "g", "x:b", "I(x ** 2)", "C(g, Sum)")


def test_moments_are_weighted_and_stable(frame):
    data = frame.assign(x=np.arange(N) + 1e9, w=np.r_[np.zeros(5), np.arange(1.0, N - 4)])
    design, batch = Design.learn("y ~ x", data, RowInputs(weights="w"))
    mean = np.average(np.arange(N), weights=data["w"])
    sd = np.sqrt(np.average((np.arange(N) - mean) ** 2, weights=data["w"]))
    assert design.mean[0] - 1e9 == pytest.approx(mean, rel=1e-6)
    assert design.scale[0] == pytest.approx(sd, rel=1e-12)
    assert batch.n == N and np.array_equal(batch.weights, data["w"])
    other = data.assign(x=np.where(data["w"] > 0, data["x"], -7.0))
    assert Design.learn("y ~ x", other, RowInputs(weights="w"))[0].mean[0] == design.mean[0]
    assert_reproduced(design, batch, data)
    assert Design.learn("y ~ x", data, RowInputs(weights=np.ones(N)))[1].weights is None
    assert Design.learn("y ~ x", data, standardize=False)[0].scale[0] == 1


def test_rows_without_weight_teach_no_transform(frame):
    data = frame.drop(index="r3")
    w = np.r_[0.0, np.ones(len(data) - 1)]
    one = Design.learn("y ~ center(x)", data, RowInputs(weights=w))[0]
    far = data.assign(x=np.r_[99.0, data["x"].to_numpy()[1:]])
    other = Design.learn("y ~ center(x)", far, RowInputs(weights=w))[0]
    assert one.terms[0][0].states[0][1]["_sum"] == other.terms[0][0].states[0][1]["_sum"]


def test_constant_features_are_zero_also_in_new_data(frame):
    design = Design.learn("y ~ k + x", frame)[0]
    assert design.constant == ("k",) and design.scale[0] == 1 and design.mean[0] == 0.1
    new = design.apply({"k": [7.0], "x": [1.5]})
    assert new.X[0, 0, 0] == 0 and new.X[0, 1, 0] != 0
    one = Design.learn("y ~ x + one", frame.assign(one="a"))[0]
    assert one.names == ("x", "one[a]") and one.constant == ("one[a]",)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 130])
def test_tiles_are_padded_with_zeros(n, dtype):
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    design, batch = Design.learn("~ .", data, dtype=dtype)
    assert batch.X.dtype == dtype and design.dtype == dtype
    assert batch.X.shape == (tiles.count(n), 3, 64)
    expected = (data.to_numpy() - design.mean) / design.scale
    assert np.array_equal(batch.X, tiles.pack(expected, dtype))


def test_threads_and_layouts_do_not_change_a_bit(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 6))
    data = pd.DataFrame(values, columns=list("abcdef"))
    data["g"] = rng.choice(list("uvw"), 1000)
    one = Design.learn("~ . + a:b + np.exp(c)", data)[1]
    monkeypatch.setattr("lodim.engine.blocks.THREADED", 0)
    assert_same(one, Design.learn("~ . + a:b + np.exp(c)", data)[1])
    strided = {name: values[:, j] for j, name in enumerate("abcdef")} | {"g": data["g"]}
    assert_same(one, Design.learn("~ . + a:b + np.exp(c)", strided)[1])
    longer = pd.concat([data, data.iloc[[0]].assign(a=np.nan)])
    gap = Design.learn("~ . + a:b + np.exp(c)", longer)[1]
    assert np.allclose(gap.X, one.X, atol=1e-12)


def test_the_advice_on_too_many_classes_can_be_copied():
    data = pd.DataFrame({"y 1": [0, 1, 2, 1], "x": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(DataError, match=r"a condition such as I\(Q\('y 1'\) > 1\)"):
        Design.learn("Q('y 1') ~ x", data, family="binomial")


@pytest.mark.parametrize(
    ("y", "family", "expected", "levels"),
    [
        ([0, 1, 1, 0], None, "binomial", (0, 1)),
        ([-1.0, 1.0, 1.0, -1.0], None, "binomial", (-1.0, 1.0)),
        ([1, 2, 2, 1], None, "gaussian", None),
        ([1, 2, 2, 1], "binomial", "binomial", (1, 2)),
        ([0, 1, 2, 1], None, "gaussian", None),
        ([0, 1, 2, 1], "multinomial", "multinomial", (0, 1, 2)),
        ([0, 1, 1, 0], "gaussian", "gaussian", None),
        (["n", "y", "y", "n"], None, "binomial", ("n", "y")),
        (["n", "y", "y", "n"], "multinomial", "multinomial", ("n", "y")),
        (["n", "y", "z", "n"], None, "multinomial", ("n", "y", "z")),
        ([True, False, True, False], None, "binomial", (False, True)),
        (pd.Categorical(["b", "a", "b", "b"], ["b", "z", "a"]), None, "binomial", ("b", "a")),
        (pd.array([1, 0, 1, None], "Int64"), None, "binomial", (0, 1)),
        (["n", "y", "y", "n"], "gaussian", DataError, "needs numbers"),
        ([True, False, True, False], "gaussian", DataError, "needs numbers"),
        ([0, 1, 2, 1], "binomial", DataError, "has 3"),
        (["n", "n", "n", None], None, DataError, "one class only"),
        ([1, 1, 1, 1], None, DataError, "in every row"),
        ([None] * 4, None, DataError, "no rows are left: 4 of 4 rows are dropped"),
        ([None, 1, None, None], None, DataError, "only one row is left, .*: 3 of 4 rows are drop"),
        ([0, 1, 2, 1], "cauchy", ArgumentError, "family must be one of"),
    ],
)
def test_families(y, family, expected, levels):
    data = pd.DataFrame({"y": y, "x": [1.0, 2.0, 3.0, 5.0]})
    if isinstance(expected, type):
        with pytest.raises(expected, match=levels):
            Design.learn("y ~ x", data, family=family)
        return
    design, batch = Design.learn("y ~ x", data, family=family)
    assert (design.family, design.response.levels) == (expected, levels)
    assert levels is None or [type(v) for v in design.response.levels] == [type(v) for v in levels]
    if levels is not None:
        seen = [levels[int(code)] for code in batch.y]
        assert seen == [v for v in data["y"].dropna()]
    assert_reproduced(design, batch, data)


DATES = pd.to_datetime(["2020-01-01", "2021-01-01", None])
COLUMNS = [
    (pd.array([1, 2, None], "Int64"), [1, 2]),
    (pd.array([1.5, 2, None], "Float64"), [1.5, 2]),
    ([decimal.Decimal("1.5"), 2, None], [1.5, 2]),
    (np.array([1, 2, np.nan], np.float32), [1, 2]),
    (np.array([1, 2, 4], np.uint8), [1, 2, 4]),
    (pd.arrays.SparseArray([0.0, 2.0, 4.0]), [0, 2, 4]),
    (pd.array(["u", "v", None], "string"), [0, 1]),
    (np.array(["u", "v", None], object), [0, 1]),
    (pd.Categorical(["u", "v", None], ["v", "q", "u"]), [1, 0]),
    (pd.array([True, False, None], "boolean"), [1, 0]),
    ([True, False, None], [1, 0]),
    (pd.cut(np.array([1.0, 2.0, np.nan]), [0, 1.5, 3]), [0, 1]),
    (DATES, "has dates: write days"),
    (DATES - DATES[0], "make it a number"),
    ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None], "has dates: write days"),
    ([datetime.time(1), datetime.time(2), None], "has dates or times"),
    (pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3]), "of type Interval"),
    (pd.Categorical(["1", decimal.Decimal(1), None]), "two categories of column 'x'"),
    (np.array([1j, 2, 3]), "real and imaginary"),
    (np.array(["u", 1, None], object), "mixes numbers such as 1 with 'u'"),
    (np.array([True, 1, None], object), "mixes numbers"),
    (np.array([[1], [2], None], object), "list"),
    (np.array([10**400, 1, None], object), "too large"),
    (np.array([1.0, np.inf, 2.0]), "infinite in row 1"),
    (np.array([1e300, -1e300, 2.0]), "too large"),
]


@pytest.mark.parametrize(("values", "expected"), COLUMNS, ids=range(len(COLUMNS)))
@pytest.mark.parametrize("kind", ["frame", "dict"])
def test_kinds_of_columns(values, expected, kind):
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = pd.Series(values, dtype=object)
    data = {"x": values, "z": [1.0, 2.0, 3.0]}
    data = pd.DataFrame(data) if kind == "frame" else data
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected) as error:
            Design.learn("~ .", data)
        assert "'x'" in str(error.value)
        return
    design, batch = Design.learn("~ x", data)
    assert np.allclose(raw(design, batch)[:, 0], expected)
    assert_reproduced(design, batch, data)


def test_arrow_and_polars_agree_with_pandas(frame):
    pl = pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    pa = pytest.importorskip("pyarrow")
    plain_frame = frame.reset_index(drop=True)
    design, batch = Design.learn("y ~ .", plain_frame)
    columns = {n: c.to_numpy() if c.dtype != object else c.tolist() for n, c in plain_frame.items()}
    columns["g"] = [None if pd.isna(v) else v for v in plain_frame["g"]]
    columns["h"], columns["cls"] = list(plain_frame["h"]), list(plain_frame["cls"])
    columns["x"] = [None if np.isnan(v) else v for v in plain_frame["x"]]
    polars = pl.DataFrame(columns)
    for other in (
        polars,
        polars.with_columns(pl.col("g").cast(pl.Categorical), pl.col("h").cast(pl.Enum("vu"))),
        pa.table(columns),
        pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    ):
        assert_same(batch, design.apply(other, response=True))
    with pytest.raises(DataError, match="collect it"):
        design.apply(polars.lazy())
    with pytest.raises(DataError, match="has dates: write days"):
        Design.learn("~ d", polars.with_columns(d=pl.date(2020, 1, 1)))


def test_without_narwhals_the_hint_says_how_to_get_it(monkeypatch):
    pl = pytest.importorskip("polars")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lodim\[polars\]'"):
        Design.learn("~ x", pl.DataFrame({"x": [1.0]}))


@pytest.mark.parametrize("data", [None, "x", [1], np.eye(2), pd.Series([1.0]), {"x": 1}])
def test_what_is_no_frame(data):
    with pytest.raises(DataError):
        Design.learn("~ .", data)


REFUSED = [
    ("y ~ np.log(x - 1.5)", {}, r"np.log\(x - 1.5\) is nan in row 'r\d+', where x = 1\.\d+"),
    ("y ~ np.log(g)", {}, "column 'g' holds text"),
    ("y ~ I(g**2)", {}, "column 'g' holds text"),
    ("y ~ I(g < 1)", {}, "numbers cannot be compared with g"),
    ("y ~ I(x & b)", {}, "need comparisons"),
    ("y ~ I(3)", {}, "one value for each row"),
    ("y ~ I(bs(x, df=4) * x)", {}, "several columns"),
    ("y ~ bs(x, df=1)", {}, "too small"),
    ("y ~ C(g, Treatment('q'))", {}, "not found"),
    ("y ~ C(g, levels=['a', 'b'])", {}, "has the level 'c'"),
    ("y ~ C(center(x))", {}, "cannot be used here"),
    ("y ~ np.round(x, 1.5)", {}, "'float' object cannot be interpreted"),
    ("y ~ scale(2)", {}, "2 must have one value for each row"),
    ("y ~ bs(np.log(x - x), df=4)", {}, r"bs\(np.log\(x - x\), df=4\) is -inf in row 'r0'"),
    ("y ~ np.log(g == 'a')", {}, r"np.log\(g == 'a'\) is -inf in row 'r\d+', where g = '[bc]'"),
    ("y ~ standardize(k)", {}, r"standardize\(k\) is .* where k = 0.1"),
    ("cls ~ x", {"family": "gaussian"}, "needs numbers"),
    ("~ x", {"family": "gaussian"}, "needs a response"),
    ("y ~ x", {"family": "none"}, "needs a formula without a response"),
    ("y ~ x", {"dtype": "int8"}, "dtype must be"),
    (
        "y ~ x",
        {"inputs": RowInputs(weights=np.ones(3))},
        "has 3 values, but must have one per row, 60",
    ),
    ("y ~ x", {"inputs": RowInputs(weights="ww")}, "weights: there is no column 'ww'"),
    ("y ~ x", {"inputs": RowInputs(offset="np.log(x)")}, r"no column 'np.log\(x\)'.*column first"),
    (
        "y ~ x",
        {"inputs": RowInputs(weights="1/x")},
        r"no column '1/x'.* a column first: data\['new'\]",
    ),
    ("y ~ x", {"inputs": RowInputs(weights="g")}, "must have numbers, not"),
    ("y ~ x", {"inputs": RowInputs(weights=["a"] * N)}, "array of numbers"),
    ("y ~ x", {"inputs": RowInputs(weights=-np.ones(N))}, "must be 0 or more"),
    ("y ~ x", {"inputs": RowInputs(weights=np.zeros(N))}, "at least one positive value"),
    ("y ~ x", {"inputs": RowInputs(weights=np.full(N, np.inf))}, "infinite in row 'r0'"),
    ("y ~ x", {"inputs": RowInputs(weights=pd.Series(np.ones(N)))}, "row labels of the data"),
    ("y ~ x", {"inputs": RowInputs(weights=np.ones((N, 2)))}, "one value per row, not shape"),
    ("y ~ x", {"inputs": RowInputs(offset=np.ones((N, 3)))}, "must have one for family"),
    ("g ~ x", {"inputs": RowInputs(offset=np.ones((N, 2)))}, "for each of the 3 classes"),
    ("y ~ x", {"inputs": RowInputs(offset=np.full(N, np.nan))}, "'offset' in 60"),
]


@pytest.mark.parametrize(("formula", "keywords", "said"), REFUSED, ids=range(len(REFUSED)))
def test_refused_in_words(formula, keywords, said, frame):
    with pytest.raises(LodimError, match=said):
        Design.learn(formula, frame, **keywords)


def test_names_that_are_not_text_or_not_unique():
    data = pd.DataFrame([[1.0, 2.0], [2.0, 5.0]], columns=[0, 1])
    assert Design.learn("~ .", data)[0].names == ("0", "1")
    data.columns = [1, "1"]
    with pytest.raises(DataError, match="two columns of the data are called '1'"):
        Design.learn("~ .", data)
    data.columns = ["a", "a[u]"]
    data["a"] = ["u", "v"]
    data = pd.concat([data, pd.DataFrame({"a": ["w"], "a[u]": [1.0]})])
    with pytest.raises(DataError, match="two features would be called"):
        Design.learn("~ .", data)


def test_new_data(frame):
    spline = "bs(w, df=4, lower_bound=-9, upper_bound=8)"
    design = Design.learn(f"y ~ x + g + {spline} + I(~b)", frame)[0]
    good = {"x": [1.5], "g": ["a"], "w": [0.5], "b": [True]}
    assert design.apply(good).n == 1
    for change, said in [
        ({"g": ["q"]}, "column 'g' has the level 'q'.*'a', 'b', 'c'"),
        ({"x": ["q"]}, "column 'x' must have numbers.*'q'"),
        ({"x": [np.inf]}, "column 'x' must be finite; it is infinite in row 0"),
        ({"w": [8.1]}, "outside lower_bound= and upper_bound= of bs"),
        ({"b": [0.5]}, "is not a comparison"),
    ]:
        with pytest.raises(LodimError, match=said):
            design.apply(good | change)
    with pytest.raises(DataError, match="no column 'x'"):
        design.apply({k: v for k, v in good.items() if k != "x"})
    for name in good:
        batch = design.apply(good | {name: [None]})
        assert batch.n == 0 and batch.X.shape == (0, 9, 64) and list(batch.index) == [0]
    part = design.apply(frame)
    assert part.y is None and list(part.index[~np.isin(range(N), part.rows)]) == ["r3", "r5"]
    assert design.apply(frame.iloc[:0]).n == 0


@pytest.mark.parametrize("formula, given, said", [
    ("y ~ x", {}, "it is infinite in row 7:"),
    ("y ~ z + np.log(z)", {}, "is -inf in row 8, where z"),
    ("y ~ z", {"weights": [1.0, np.inf, 1.0, 1.0]}, "weights is infinite in row 7$"),
    ("y ~ z", {"groups": ["a", None, "b", "b"]}, "the first of them 7: give"),
])  # fmt: skip
def test_errors_name_rows_of_a_selection_by_plain_numbers(formula, given, said):
    frame = pd.DataFrame({"x": [0, np.inf, 2, 3], "z": [1.0, 2, 0, 3], "y": [1.0, 4, 2, 8]})
    with pytest.raises(DataError, match=said):
        Design.learn(formula, frame.set_axis([4, 7, 8, 9]), RowInputs(**given))


def test_missing_responses_matter_only_where_asked(frame):
    design = Design.learn("cls ~ x", frame)[0]
    new = frame.assign(cls=[None, *frame["cls"][1:]])
    assert 0 in design.apply(new).rows and 0 not in design.apply(new, response=True).rows
    with pytest.raises(DataError, match="has the level 'maybe'"):
        design.apply(new.assign(cls="maybe"), response=True)
    with pytest.raises(DataError, match="has no response"):
        Design.learn("~ x", frame)[0].apply(frame, response=True)


def test_offsets(frame):
    by_name, batch = Design.learn("y ~ .", frame, RowInputs(offset="w"))
    assert "w" not in by_name.names and by_name.offset == "w"
    assert np.array_equal(batch.offset, frame["w"].to_numpy()[batch.rows])
    assert_reproduced(by_name, batch, frame)
    assert by_name.apply(frame, offset=np.zeros(N)).offset.max() == 0
    with pytest.raises(DataError, match="no column 'w'"):
        by_name.apply(frame.drop(columns="w"))
    by_array, batch = Design.learn("g ~ x", frame, RowInputs(offset=np.ones((N, 3))))
    assert batch.offset.shape == (batch.n, 3) and by_array.offset_given
    with pytest.raises(DataError, match="give offset="):
        by_array.apply(frame)
    with pytest.raises(DataError, match="without an offset"):
        Design.learn("y ~ x", frame)[0].apply(frame, offset="w")
    times = pd.date_range("2024-01-01", periods=N)
    utc = times.tz_localize("UTC")
    for offset in (times, utc, utc.to_series(index=frame.index), times - times[0]):
        with pytest.raises(DataError, match="offset must be the name"):
            by_name.apply(frame, offset=offset)


def test_the_frame_is_left_as_it_is(frame):
    before = frame.copy(deep=True)
    Design.learn("np.log(y) ~ . + bs(x, df=4) + scale(w) + I(-i) + np.clip(w, 0, 1)", frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_saved_state_names_a_kind_of_frame_that_is_read(frame):
    state = forms.write(Design.learn("y ~ x", frame)[0])
    for kind in ("<array>", "dask", "", None):
        with pytest.raises(ValueError, match="frame_kind"):
            forms.read(Design, state | {"frame_kind": kind})


def test_sums_of_the_largest_numbers_are_read_back():
    data = {"x": [0.0] * 4 + [9e104] * 2, "y": range(6)}
    design = Design.learn("y ~ center(x) + scale(x)", data)[0]
    assert forms.read(Design, forms.write(design)).names == design.names


def test_a_saved_state_cannot_bring_other_code(frame):
    state = forms.write(Design.learn("y ~ np.log(x)", frame)[0])
    state["terms"][0][0]["name"] = "__import__('os').getcwd()"
    with pytest.raises(FormulaError):
        forms.read(Design, state)


def test_wide_frames():
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2000)))
    design, batch = Design.learn("~ . - Q('7')", data)
    assert len(design.names) == 1999 and batch.X.shape == (1, 1999, 64)


# What a formula may make of few columns ---------------------------------------------------------


@pytest.fixture(scope="module")
def few():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(30, 4)), columns=list("yabc"))


MADE = {
    "y ~ bs(a, df=900)*bs(b, df=900)": "have 811,800 features from 2 columns, 24,354,000 numbers; "
    "with more than 100 features per column, at most 100,000 features and 100,000,000 numbers",
    "y ~ te(cr(a, df=40), cr(b, df=40)):C(c)*C(a)": "1,000,000 features in all are allowed",
    "y ~ C(a):C(b):C(c):(bs(a, df=9) + b)": "have 270,000 features from 3 columns",
    "y ~ I(" + "a+" * 100 + "a):bs(a, df=300):bs(b, df=300)": "letters, but at most 25,000,000 are",
}


@pytest.mark.parametrize("formula", MADE, ids=range(len(MADE)))
def test_what_would_be_too_large_is_refused_before_it_is_made(formula, few):
    Design.learn("y ~ bs(a, df=4):b + te(cr(a, df=3), cr(b, df=3))", few)  # loads what it needs
    tracemalloc.start()
    with pytest.raises(DataError, match=MADE[formula]):
        Design.learn(formula, few)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


def test_splines_are_counted_before_they_are_learnt(few, monkeypatch):
    monkeypatch.setattr("lodim.design.factors.learn", None)
    with pytest.raises(DataError, match="811,800 features"):
        Design.learn("y ~ bs(a, df=900)*bs(b, df=900)", few)


@pytest.mark.parametrize("term", ["one", "C(one)", "C(one, Sum)", "C(one, Treatment('same'))"])
@pytest.mark.parametrize("reference_levels", [False, True])
def test_a_factor_of_one_level_keeps_a_constant_feature(term, reference_levels, few):
    few = few.assign(one=["same"] * len(few), two=["a", "b"] * (len(few) // 2))
    for formula in (f"y ~ two + {term}", f"y ~ {term} + a"):
        design = Design.learn(formula, few, reference_levels=reference_levels)[0]
        assert design.constant == (f"{term}[same]",) and len(design.names) == 2


def test_wide_and_long_data_meet_no_limit():
    keys = [((f"x{k}", None),) for k in range(10_000)]
    check_size([1] * 10_000, keys, 100_000)
    check_size([1] * 25, keys[:25], 10_000_000)
    check_size([25], keys[:1], 10_000_000)
    check_size([1] * 5_050, keys[:100], 100_000)
    check_size([1] * 90_000, keys[:400], 1_000)
    with pytest.raises(DataError, match="101,000,000 numbers"):
        check_size([101], keys[:1], 1_000_000)
    with pytest.raises(DataError, match="1,000,000 features in all are allowed"):
        check_size([101] * 10_000, keys, 30)


def test_a_result_beyond_the_memory_is_refused(few, monkeypatch):
    def full(*_):
        raise MemoryError

    design = Design.learn("y ~ .", few)[0]
    monkeypatch.setattr("lodim.engine.tiles.empty", full)
    for call in (lambda: Design.learn("y ~ .", few), lambda: design.apply(few)):
        with pytest.raises(DataError, match=r"30 rows x 3 features, 720 bytes, do not fit"):
            call()


def test_what_several_terms_need_is_evaluated_once(few, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "lodim.design.expressions.evaluate",
        lambda *a, f=expressions.evaluate: calls.append(a[0]) or f(*a),
    )
    design, batch = Design.learn("y ~ bs(a, df=4):(b + c + b:c)", few)
    assert calls == ["bs(a, df=4)"]
    monkeypatch.setattr("lodim.design.features.KEPT", 0)
    assert_same(batch, Design.learn("y ~ bs(a, df=4):(b + c + b:c)", few)[1])
    assert len(calls) == 7 and design.names[4] == "bs(a, df=4)[0]:c"


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("code", [
    "bs(x, df=4)", "bs(x, 9, degree=8)", "bs(x, df=7, include_intercept=True, upper_bound=9)",
    "bs(x, knots=[0, 0.5], degree=0)", "cr(x, df=4, constraints='center')", "cc(x, df=3)",
    "te(cr(x, df=3), bs(z, df=4), constraints='center')", "center(x)", "scale(x, ddof=1)",
    "standardize(x)",
])  # fmt: skip
def test_transforms_are_those_of_patsy(code, ties):
    """Also where the rows are more than are transformed at a time, and where knots coincide."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["x", "z"])
    data = data.round() if ties else data
    design, batch = Design.learn(f"~ {code}", data)
    expected = np.asarray(patsy.dmatrix(f"0 + {code}", data))
    np.testing.assert_allclose(raw(design, batch), expected, atol=1e-12)
    part = design.apply(data.iloc[1000:1100])
    np.testing.assert_allclose(matrix(part), matrix(batch)[1000:1100], atol=1e-12)


def test_scale_divides_by_n_less_one_as_in_r():
    data = {"x": [1.0, 2.0, 3.0, 6.0], "w": [1.0, 2.0, 5.0, 0.0]}  # rows of weight 0 do not count
    for code, root in (("scale(x)", 1.0), ("standardize(x)", np.sqrt(2.0 / 3.0))):
        design, batch = Design.learn(f"~ {code}", data, RowInputs(weights="w"))
        expected = np.array([-1.0, 0.0, 1.0, 4.0]) / root
        np.testing.assert_allclose(raw(design, batch)[:, 0], expected, atol=1e-12)
        again = matrix(forms.read(Design, forms.write(design)).apply(data))
        np.testing.assert_array_equal(again, matrix(batch))


def test_contrasts_of_many_levels_are_refused():
    data = pd.DataFrame({"i": np.arange(1500), "j": np.arange(1500) % 400})
    with pytest.raises(FormulaError, match=r"at most 1,000 levels, and there are 1,500"):
        Design.learn("~ C(i, Sum)", data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FormulaError, match=r"C\(j, Poly\)"):
            Design.learn("~ C(j, Poly)", data)
    with pytest.raises(DataError, match="must not have a level twice"):
        Design.learn("~ C(j, levels=[0, 1, 1])", data)


NAMES = st.sampled_from(
    ["x", "a b", "1x", "class", "Q", "np", "I", "é", "ﬁ", "日本", ".", "a:b", "", "'", "_", "C(x)"]
) | st.text(max_size=5)


@st.composite
def frames(draw):
    n = draw(st.integers(0, 8))
    values = [
        st.floats(allow_nan=True, allow_infinity=False),
        st.integers(-5, 5),
        st.sampled_from(["u", "v", "w"]),
        st.sampled_from(["u", None, ""]),
        st.booleans(),
        st.sampled_from([1.5, None, float("nan")]),
        st.just(3),
        st.sampled_from([1, "u", None, True, float("inf")]),
    ]
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    columns = {}
    for name in names:
        column = draw(st.lists(draw(st.sampled_from(values)), min_size=n, max_size=n))
        dtype = draw(st.sampled_from([None, object, "category"]))
        columns[name] = pd.Series(column, dtype=dtype if n else object)
    return pd.DataFrame(columns)


RIGHT = [
    *(".", ".**2", ". - {}", "C({}) + {}:.", ". + I(1 + 0)", "np.sqrt({})", "I({} > 0)"),
    *("center({}) + scale({})", "bs({}, df=4)", "cr({}, df=3)", "C({}, Sum):.", "C({}, Poly)"),
]


@pytest.mark.long
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(frames(), st.data())
def test_any_frame_is_designed_or_refused_in_words(data, draw):
    left = draw.draw(st.sampled_from([*data.columns, None]))
    right = draw.draw(st.sampled_from(RIGHT))
    one = quote(draw.draw(st.sampled_from([*data.columns, "zz"])))
    formula = f"{'' if left is None else quote(left)} ~ {right.replace('{}', one)}"
    weights = None if left is None else draw.draw(st.sampled_from([None, *data.columns]))
    before = data.copy(deep=True)
    try:
        design, batch = Design.learn(formula, data, RowInputs(weights=weights))
        assert np.isfinite(batch.X).all()
        assert_reproduced(design, batch, data)
        assert design.apply(data.iloc[batch.rows[:1]]).n == 1
    except LodimError as error:
        assert str(error)
    pd.testing.assert_frame_equal(data, before)


# Rows with missing values that stay --------------------------------------------------------------


def partial_frame():
    rng = np.random.default_rng(3)
    df = pd.DataFrame(
        {"y": rng.normal(size=70), "a": rng.normal(5, 2, 70), "b": list("xyzyzxy") * 10,
         "c": rng.normal(size=70), "w": rng.integers(0, 3, 70).astype(float)}
    )  # fmt: skip
    df.loc[[2, 66], "a"], df.loc[3, "b"], df.loc[5, "y"] = np.nan, None, np.nan
    return df


TERMS = ["a", "b", "a:c", "I(c**2)", "bs(a, df=3)", "b:c"]


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("term", TERMS)
def test_partial_rows_hold_what_is_known(term, weights):
    """Each term is as if learnt from the rows that have it, and NaN in the others."""
    df = partial_frame()
    formula = f"y ~ {' + '.join(TERMS)}"
    design, batch = Design.learn(formula, df, RowInputs(weights=weights), missing="keep")
    alone, complete = Design.learn(f"~ {term}", df, RowInputs(weights=weights))
    at = [k for k, t in enumerate(design.term_of) if design.term_names[t] == alone.term_names[0]]
    X, part = tiles.unpack(batch.X, batch.n)[:, at], tiles.unpack(complete.X, complete.n)
    known = complete.rows
    np.testing.assert_allclose(X[known], part, rtol=1e-12, atol=1e-12)
    assert np.isnan(np.delete(X, known, axis=0)).all() and batch.n == len(df)
    np.testing.assert_allclose(design.mean[at], alone.mean, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(batch.y), df["y"].isna())
    again = design.apply(df, response=True)
    np.testing.assert_array_equal(again.X, batch.X)
    np.testing.assert_array_equal(again.y, batch.y)
    one = design.apply(df.iloc[[2]])
    np.testing.assert_array_equal(tiles.unpack(one.X, 1)[0, at], X[2])


def test_partial_is_the_same_without_missing_values():
    df = partial_frame().dropna()
    for missing in ("drop", "keep", "indicator"):
        _design, batch = Design.learn("y ~ a + b", df, missing=missing)
        if missing == "drop":
            expected = batch
    np.testing.assert_array_equal(batch.X, expected.X)
    np.testing.assert_array_equal(batch.y, expected.y)


def test_a_column_that_is_never_known_is_named():
    df = partial_frame().assign(a=np.nan)
    with pytest.raises(DataError, match="'a' is missing in every row"):
        Design.learn("y ~ a + c", df, missing="keep")
    df = partial_frame().assign(w=lambda d: d["a"].isna().astype(float))
    with pytest.raises(DataError, match="no row with a positive weight has known values of 'a'"):
        Design.learn("y ~ a + c", df, RowInputs(weights="w"), missing="keep")


def test_levels_that_are_computed_of_partial_rows_count_by_weight():
    df = partial_frame().assign(w=lambda d: np.arange(1.0, len(d) + 1.0))
    names = [
        Design.learn("y ~ C(np.round(a)) + c", df, inputs, missing="keep")[0].names
        for inputs in (RowInputs(weights="w"), RowInputs())
    ]
    assert names[0] == names[1] and len(names[0]) > 2


def test_folds_of_partial_rows():
    from lodim.design.batch import split
    from lodim.selection import folds as fold

    df = partial_frame()
    _, batch = Design.learn("y ~ a + c", df, missing="keep")
    at = fold.assign(batch, 5, None, 0)
    assert at[5] == -1 and set(np.delete(at, 5)) == set(range(5))
    train, test = split(batch, at == 0, True)
    X = tiles.unpack(train.X, train.n)
    assert abs(np.nanmean(X, axis=0)).max() < 1e-12
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1.0)
    assert train.n + test.n == len(df) and np.isnan(train.y).sum() == 1


def test_text_that_is_no_unicode_is_refused_in_words():
    """Half of a surrogate pair, which pandas' own text columns cannot hold, nor a print show."""
    half = "a\ud800"
    df = pd.DataFrame({0: [1.0, 2.0, 4.0, 3.0], 1: [1.0, 0.0, 2.0, 2.5]})
    df.columns = pd.Index(["y", half], dtype=object)
    with pytest.raises(DataError, match=r"the column name .* half of a surrogate pair") as caught:
        glm("y ~ .", df)
    assert half not in str(caught.value)
    df.columns = ["y", "x"]
    df["x"] = pd.Series([half, "é", "é", half], dtype=object)
    with pytest.raises(DataError, match="of column 'x' has half of a surrogate pair"):
        glm("y ~ .", df)


def test_rows_of_weight_zero_may_lie_outside_of_what_splines_have_learnt():
    """They are kept, do not count, and stand at the end of the range; as new data they are none."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=90), "y": rng.normal(size=90), "w": 1.0})
    data.loc[[3, 70], "x"], data.loc[[3, 70], "w"] = [9.0, -9.0], 0.0
    design, batch = Design.learn("y ~ bs(x, df=5)", data, RowInputs(weights="w"))
    counted = data[data["w"] > 0]
    _, expected = Design.learn("y ~ bs(x, df=5)", counted, RowInputs(weights="w"))
    X = tiles.unpack(batch.X, batch.n)
    np.testing.assert_array_equal(X[data["w"] > 0], tiles.unpack(expected.X, expected.n))
    np.testing.assert_array_equal(X[3], X[counted["x"].idxmax()])
    np.testing.assert_array_equal(X[70], X[counted["x"].idxmin()])
    frame = read_frame(data)
    inputs = RowInputs(weights="w").read(frame)
    part = design.batch_of(frame, inputs, True, design.known_levels("error"), part=True)
    np.testing.assert_array_equal(part.X, batch.X)
    with pytest.warns(ExtrapolationWarning, match=r"bs\(x, df=5\)"):
        design.apply(data, response=True)


@pytest.mark.parametrize(
    "spline, said",
    [
        ("bs(x, df=4)", r"outside -1 to 2, the range of the .*; bs\(\) extrapolates by its end"),
        ("bs(x, df=4, lower_bound=-9)", "outside -9 to 2"),
        ("cr(x, df=4)", r"outside -1 to 2, the range of the .*; cr\(\) extrapolates linearly"),
        ("te(cr(x, df=3), cr(z, df=3))", r"te\(.*outside -1 to 2"),
        ("cc(x, df=4)", "repeats this range as its cycle"),
        ("cc(x, df=4, lower_bound=-2)", "outside -2 to 2"),
        ("cr(x, df=4, lower_bound=-1, upper_bound=2)", None),
        ("cc(x, df=4, lower_bound=-1, upper_bound=2)", None),
    ],
)
def test_splines_warn_of_values_outside_the_training_range_unless_bounds_are_given(spline, said):
    data = {"x": np.linspace(-1, 2, 40), "z": np.arange(40) % 7, "y": np.arange(40.0)}
    data["x"][[4, 9]] = data["x"][[9, 4]]
    design = Design.learn(f"y ~ {spline}", data)[0]
    design.apply({"x": [-1.0, 2.0], "z": [0, 6]})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        design.apply({"x": [0.0, 2.5], "z": [0, 6]})
    assert [w.category for w in seen] == [ExtrapolationWarning] * (said is not None)
    assert said is None or re.search(said, str(seen[0].message))


@pytest.mark.parametrize("degree", [0, 1, 3, 5])
def test_b_splines_go_on_outside_by_their_end_polynomials(degree):
    """As R's bs(): the values are those of the polynomials through points of the end pieces."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.normal(size=200), "y": rng.normal(size=200)})
    low, high = data["x"].min(), data["x"].max()
    design = Design.learn(f"y ~ bs(x, df=6, degree={degree})", data, standardize=False)[0]

    def values(x):
        batch = design.apply({"x": x})
        return tiles.unpack(batch.X, batch.n)

    with pytest.warns(ExtrapolationWarning, match=f"outside {low:.6g} to {high:.6g}"):
        outside = values([low - 2.0, high + 3.0])
    for end, step, at, found in ((low, 0.01, -2.0, outside[0]), (high, -0.01, 3.0, outside[1])):
        points = end + step * np.arange(degree + 1)
        coefs = np.polyfit(points - end, values(points), degree)
        expected = (coefs * at ** np.arange(degree, -1, -1.0)[:, None]).sum(axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_b_splines_of_values_tied_at_an_end_are_continuous_there(end):
    """Quantile knots then lie at the end itself."""
    x = np.append(np.linspace(0, 1, 11), np.full(10, end))
    design = Design.learn("y ~ bs(x, df=6)", {"x": x, "y": x}, standardize=False)[0]
    inward = 1e-9 if end == 0.0 else -1e-9
    batch = design.apply({"x": [end, end + inward]})
    at, near = tiles.unpack(batch.X, batch.n)
    np.testing.assert_allclose(at, near, atol=1e-7)


@pytest.mark.parametrize("dtype", [float, np.float64])
def test_a_type_of_numbers_is_a_dtype(dtype):
    df = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0]})
    fit = ld.gbmap("y ~ x", df, m=1, lambda_=0.1, n_starts=1, dtype=dtype)
    assert fit.design.dtype == np.dtype(dtype).name


def test_levels_without_a_common_order_are_not_compared():
    data = pd.DataFrame({"x": pd.Categorical(["a", 1, "a", 1]), "y": [1.0, 2.0, 3.0, 5.0]})
    assert Design.learn("y ~ I(x == 'a')", data)[0].names
    with pytest.raises(DataError, match="values without an order cannot be compared by < or >"):
        Design.learn("y ~ I(x < 'a')", data)


def test_saved_expressions_have_a_limited_size():
    with pytest.raises(FormulaError, match="at most 2,000 names and signs"):
        expressions.tree("I(a" + " > b" * 2_500 + ")")
