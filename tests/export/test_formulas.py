"""Each function of a formula, written out, is what the design computes."""

import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from export.targets import TARGETS, expected, gap, in_duckdb
from lodim.export.equation import Equation
from lodim.export.infix import Infix
from lodim.formula.language import UNARY


def frame(n=120, seed=0):
    """Numbers, counts, text, true or false, ordered levels; `u` is between -1 and 1."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {"x": rng.normal(size=n), "z": rng.gamma(2, 1, n), "u": rng.uniform(-1, 1, n)}
    )
    df["k"], df["g"] = rng.integers(1, 5, n), rng.choice(["a", "b", "c"], n)
    df["b"] = (rng.random(n) > 0.5).astype(object)
    levels = ["low", "mid", "high"]
    df["o"] = pd.Categorical(rng.choice(levels, n), levels, ordered=True)
    df["y"] = df["x"] + df["z"] * (df["g"] == "a") + df["k"] + 0.3 * rng.normal(size=n)
    return df


DOMAINS = {  # where a function has values
    **dict.fromkeys(("log", "log1p", "log2", "log10", "sqrt"), "z"),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), "u"),
    "arccosh": "z + 1",
}
RIGHT_SIDES = [
    *[f"np.{name}({DOMAINS.get(name, 'x')})" for name in UNARY],
    "np.power(z, 0.7)", "np.power(x, 3)", "np.minimum(x, u)", "np.maximum(x, 0.2)",
    "np.arctan2(x, u)", "np.hypot(x, u)", "np.round(x)", "np.round(10 * x, -1) + k",
    "np.round(x, decimals=1)", "np.clip(x, -0.5, 0.7)", "np.where(x > u, z, -x)",
    "np.where(z > 1, np.log(z), np.sqrt(1 - z))", "I(x + 2 * u - z / k)", "I(x**2) + I(u**0)",
    "I(-x % 0.7)", "I(k // 2 + k % 3)", "I((x > 0) & ~(g == 'a') | (0 < u < z))", "I(b & (x > 0))",
    "I(1 / (1 + np.exp(-300 * x)))", "I(np.log(z - 1) < 0)", "I(b * x)", "I(g != 'c')",
    "np.where(b, x, z)", "np.where(g <= 'b', x, z)", "I(b == (x > 0))", "I((x > 0) == True)",
    "I((x > 0) == 1)",
    "center(x) + scale(z) + standardize(u, ddof=1)", "scale(np.log(z), center=False)",
    "bs(x, df=6)", "bs(x, knots=[0], degree=2, include_intercept=True)", "bs(x, df=12, degree=10)",
    "bs(np.sqrt(z), df=4, lower_bound=0, upper_bound=9)", "cr(x, df=5)",
    "cr(x, df=4, constraints='center')", "cc(x, df=4)",
    "cc(x, df=4, lower_bound=-1, upper_bound=1)",
    "te(cr(x, df=3), cr(z, df=3))", "te(cr(x, df=3), cc(z, df=3), constraints='center')",
    "center(bs(x, df=4))", "cr(x, df=4):z + bs(u, df=4):g", "g", "o", "C(k)", "b", "g:k + o:b",
    "g * o * x", "C(g, Sum) + C(o, Helmert)", "C(k, Poly) + C(g, Treatment('b'))", "C(o, Diff)",
    "C(I(x > 0))", "I(x > 0):g", "C(x > u, Sum):g", "I(b):o + I(~b)",
    "C(np.round(x))", "C(k, levels=[4, 3, 2, 1, 0])", "C(g):x", "x:z:u", "b:x + k",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("right", RIGHT_SIDES)
def test_formulas(right):
    df = frame()
    holes = df[::4].reset_index(drop=True)
    holes.loc[3, ["x", "g", "b"]], holes.loc[5, ["z", "o", "u"]] = None, None
    for missing in ("drop", "indicator"):
        fit = ld.glm(f"y ~ {right}", data=df, missing=missing)
        wanted = expected(fit, holes)
        for target, (run, tolerance) in TARGETS.items():
            if target == "onnx" and "g <=" in right:
                with pytest.raises(ld.ArgumentError, match="cannot compare two columns of text"):
                    fit.to_onnx()
            else:
                assert gap(run(fit, holes), wanted) <= tolerance, target


@pytest.mark.parametrize("missing", ["drop", "indicator"])
@pytest.mark.parametrize("target", TARGETS)
def test_gaps_that_training_had_too(missing, target):
    run, tolerance = TARGETS[target]
    df = frame()
    df.loc[::7, "x"], df.loc[::9, "g"], df.loc[::11, "b"] = None, None, None
    df.loc[::8, "o"] = None
    right = "x + g + b + o:x + C(o, Sum) + np.where(g == 'a', x, 0) + I(b & (x > 0)) + C(k)"
    fit = ld.glm(f"y ~ {right}", data=df, missing=missing)
    df["k"] = df["k"].astype(float).where(df["z"] < 3)
    wanted = expected(fit, df)
    assert np.isnan(wanted).any() == (missing == "drop")
    assert gap(run(fit, df), wanted) <= tolerance


def test_postgres_text_runs_in_duckdb_too():
    """Both share all but the rounding of halves, the quoting of backslashes and the fences."""
    df = frame()
    fit = ld.glm("y ~ cr(x, df=4) + g * o + np.log(z)", data=df)
    assert "OFFSET 0" in fit.to_sql("postgres")
    assert gap(in_duckdb(fit, df, "postgres"), expected(fit, df)) <= 1e-9


@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_far_from_the_training_rows():
    """Splines extrapolate as in predict(); logits of any size have probabilities."""
    df = frame()
    df["yes"] = df["y"] > 3
    fit = ld.glm("yes ~ cr(x, df=4) + z + bs(u, df=5)", data=df)
    df["x"], df["z"], df["u"] = df["x"] * 100, df["z"] * 1e4, df["u"] * 30
    for run, tolerance in TARGETS.values():
        assert gap(run(fit, df), expected(fit, df)) <= tolerance


def python_calls(work):
    """Return how many Python functions a call of `work` calls."""
    seen = Counter()
    sys.setprofile(lambda frame, event, value: seen.update([event]))
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen["call"]


@pytest.mark.parametrize("term", ["{}", "np.exp({})"])
def test_work_grows_with_the_number_of_columns(term):
    calls = {"to_python": [], "to_sql": []}
    for p in (100, 200):
        rng = np.random.default_rng(0)
        names = [f"measured_at_a_place_with_a_very_long_name_{j}" for j in range(p)]
        df = pd.DataFrame(rng.choice([0.0, 1.0, 3.0], (30, p)), columns=names)
        df["y"] = rng.normal(size=30)
        formula = "y ~ " + " + ".join(map(term.format, names))
        fit = ld.gbmap(formula, df, m=1, lambda_=1.0)
        for name, found in calls.items():
            getattr(fit, name)()
            found.append(python_calls(getattr(fit, name)))
    assert all(many < 2.2 * few for few, many in calls.values()), calls


def test_numbers_of_names_that_begin_alike_are_looked_up_once():
    class Names(set):
        looked_up = 0

        def __contains__(self, name):
            self.looked_up += 1
            return super().__contains__(name)

    writer = Infix(Equation("", (), (), {}))
    writer._used = Names()
    found = [writer.unused("x" * 50) for _ in range(100)]
    assert len(set(found)) == 100
    assert found[-1].endswith("_100")
    assert writer._used.looked_up < 300


@pytest.mark.parametrize("target", TARGETS)
def test_a_column_that_only_functions_read_and_backslashes(target):
    run, tolerance = TARGETS[target]
    df = frame().assign(g=lambda d: d["g"].replace("a", "a\\b"))
    df.loc[::7, "z"] = None
    fit = ld.glm("y ~ np.log(z) + g", data=df, missing="indicator")
    assert gap(run(fit, df), expected(fit, df)) <= tolerance
    assert r"E'a\\b'" in fit.to_sql("postgres")


@pytest.mark.parametrize("target", TARGETS)
def test_a_category_of_one_level(target):
    run, tolerance = TARGETS[target]
    df = frame().assign(one=pd.Categorical(["p"] * len(frame()), ["p", "q"]))
    fit = ld.gbmap("y ~ x + one", data=df, m=1, lambda_=0.1)
    assert gap(run(fit, df), expected(fit, df)) <= tolerance
