"""Wild values: found where a few rows are far outside, nowhere else, and limited everywhere."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from export.targets import TARGETS, expected, gap
from lodim.design import summaries
from lodim.design.design import Design
from lodim.design.rows import RowInputs

pytestmark = pytest.mark.filterwarnings("ignore:Values far outside:lodim.DataWarning")

CHEAP = {
    "gbmap": {"m": 3, "lambda_": 0.01, "n_starts": 1},
    "proset": {"lambda_v": 1e-2, "lambda_w": 1e-6},
    "costnet": {"lambda_": 0.01},
    "melm": {"gamma": 1.0, "n_starts": 2, "control": {"calibrate": False}},
    "ripr": {"max_dim": 1},
    "glm": {},
}


def frame(seed=0, n=200):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    df["y"] = df["a"] - df["b"] + 0.4 * rng.normal(size=n)
    df["k"] = np.where(df["y"] > 0, "yes", "no")
    return df


def ends(x):
    found = summaries.find_limits(np.asarray(x, float), "x")
    return None if found is None else (found.least, found.greatest, found.n, found.farthest)


def test_values_with_a_gap_of_many_ranges_are_wild():
    x = np.arange(100.0)
    assert ends([*x, 1e12]) == (0.0, 99.0, 1, 1e12)
    assert ends([*x, -2000.0, 1e5]) == (0.0, 99.0, 2, 1e5)
    assert ends([*x, 2e3, 1e5, 1e12]) == (0.0, 99.0, 3, 1e12)
    assert ends([*np.repeat([0.0, 1.0], 50), 99.0]) == (0.0, 1.0, 1, 99.0)  # a code of missing
    assert ends([*np.zeros(970), *range(1, 31), 1e6]) == (0.0, 30.0, 1, 1e6)  # many zeros
    assert ends(np.r_[np.arange(100_000.0), np.full(990, 1e7)]) == (0.0, 99999.0, 990, 1e7)


@pytest.mark.parametrize(
    "x",
    [
        [*range(100), 1000],  # a gap of nine ranges
        [*range(100), *np.full(4, 1e6)],  # too many rows to be a mistake
        [*np.zeros(1000), 1.0], [*np.zeros(1000), 1.0, 1.0, 1e6], [*np.zeros(990), *np.ones(10)],
        [*np.zeros(500), 0.02, 1.2, 1.3, 2.0, 3.0], [*np.zeros(296), 0.1, 0.13, 0.15, 19.7],
        [7.0] * 50, [], [1.0, 2.0, 1e9], [*range(8), 1e9],
    ],
)  # fmt: skip
def test_other_values_are_not(x):
    assert ends(x) is None


@pytest.mark.parametrize("law", ["normal", "exponential", "lognormal", "standard_t"])
def test_heavy_tails_are_not_wild(law):
    rng = np.random.default_rng(0)
    given = {"standard_t": {"df": 3}}.get(law, {})
    for n in (20, 100, 1000, 5000):
        assert [ends(getattr(rng, law)(size=n, **given)) for _ in range(100)] == [None] * 100


def test_what_moments_rule_out_is_not_wild():
    """`suspects` lets every feature through that the rule limits."""
    rng = np.random.default_rng(1)
    for n in (10, 30, 99, 400, 3000):
        for _ in range(50):
            x, k = rng.normal(size=n), rng.integers(1, summaries.most_wild(n) + 1)
            x[:k] = rng.choice([-1, 1], k) * np.ptp(x) * rng.uniform(10, 30, k)
            moments = np.array([[n, x.mean(), n * x.var(), x.min(), x.max()]])
            assert ends(x) is None or summaries.may_be_wild(moments, n).all()


@pytest.mark.parametrize("name", CHEAP)
def test_the_middle_stands_for_them(name):
    clean = frame()
    far = clean.copy()
    far.loc[7, "a"], far.loc[[3, 9], "c"] = 1e12, -1e7
    model, formula = getattr(ld, name), "k ~ a + b + c + d"
    fit = model(formula, clean, **CHEAP[name])
    with pytest.warns(
        ld.DataWarning, match="are replaced by the middle of the other values: c in 2 rows"
    ):
        other = model(formula, far, **CHEAP[name])
    assert fit.design.wild == ()
    assert [(one.feature, one.n) for one in other.design.wild] == [("a", 1), ("c", 2)]
    new = frame(1)
    assert (fit.predict(new, "class") == other.predict(new, "class")).mean() > 0.93
    wild_new = new.assign(a=new["a"].where(new["a"] < 2, 1e9))
    middle = other.design.wild[0].middle
    assert abs(middle) < 0.5
    plain = new.assign(a=new["a"].where(new["a"] < 2, middle))
    pd.testing.assert_series_equal(other.predict(wild_new), other.predict(plain))
    note = other.summary().notes[-1]
    assert note.startswith(
        "Values far outside all others are replaced by the middle of the other values: c in 2 rows "
        "(-1e+07; the"
    )
    finding = next(one for one in other.check(far) if one.code == "wild-values")
    assert (finding.terms, finding.rows, finding.severity) == (("a",), (7,), "note")
    assert "1e+12" in finding.sentence and "wild-values" not in fit.check(clean).codes


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_files_and_exports_have_the_limits(tmp_path):
    df = frame()
    df.loc[7, "a"], df.loc[3, "c"] = 1e12, -1e7
    fit = ld.gbmap("y ~ a*b + c + I(d**2)", df, **CHEAP["gbmap"])
    new = pd.concat([df, frame(2).assign(a=[1e9, 2.0] * 100)], ignore_index=True)
    fit.save(tmp_path / "fit")
    again = ld.load(tmp_path / "fit")
    wild = [[vars(one) for one in each.design.wild] for each in (again, fit)]
    assert wild[0] == wild[1] and len(wild[1]) == 3
    pd.testing.assert_series_equal(again.predict(new), fit.predict(new))
    for target, (run, tolerance) in TARGETS.items():
        assert gap(run(fit, new), expected(fit, new)) <= tolerance, target


def test_glm_is_that_of_the_middle():
    df = frame()
    df.loc[7, "a"] = 1e12
    with pytest.warns(
        ld.DataWarning, match="are replaced by the middle of the other values: a in 1 row"
    ):
        fit = ld.glm("y ~ a", df)
    df.loc[7, "a"] = fit.design.wild[0].middle
    expected = sm.OLS(df["y"], sm.add_constant(df["a"])).fit()
    np.testing.assert_allclose(fit.tidy()["estimate"], expected.params, rtol=1e-10)
    np.testing.assert_allclose(fit.tidy()["std_error"], expected.bse, rtol=1e-10)


def test_a_response_is_not_limited_but_named():
    df = frame()
    df.loc[5, "y"] = 1e6
    with pytest.warns(ld.DataWarning, match="response 'y' has 1 value far .* unchanged"):
        fit = ld.gbmap("y ~ a + b", df, **CHEAP["gbmap"])
    finding = next(one for one in fit.check(df) if one.code == "wild-values")
    assert (finding.terms, finding.rows, finding.severity) == (("y",), (5,), "problem")
    assert fit.design.wild == ()


def test_a_gap_is_filled_by_the_mean_within_limits():
    df = frame()
    df.loc[7, "a"] = 1e12
    df.loc[50:80, "a"] = np.nan
    design, _ = Design.learn("y ~ a + b", df, missing="indicator")
    assert abs(design.fills[0].value) < 1 and design.wild[0].n == 1
    kept, batch = Design.learn("y ~ a + b", df, missing="keep")
    assert vars(kept.wild[0]) == vars(design.wild[0]) and np.isnan(batch.X[:, 0]).sum() == 31


def test_rows_of_weight_zero_have_no_say():
    df = frame().assign(w=1.0)
    df.loc[7, ["a", "w"]] = 1e12, 0.0
    assert Design.learn("y ~ a + b - w", df, RowInputs(weights="w"))[0].wild == ()


def test_splines_and_levels_are_not_limited():
    df = frame().assign(s=["rare"] + ["u", "v"] * 99 + ["u"])
    df.loc[7, "a"] = 1e12
    design, _ = Design.learn("y ~ cr(a, df=3) + s + a:s", df)
    assert {one.feature.split(":")[0] for one in design.wild} <= {"a"}


def test_new_rows_of_which_many_are_wild_warn():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    df["y"] = df["a"] + 0.1 * rng.normal(size=200)
    df.loc[3, "a"] = 1e6
    fit = ld.gbmap("y ~ a + b", df, m=2, lambda_=0.01, threads=1)
    fit.predict(df)  # as many as training had
    new = df.assign(a=df["a"] + 1000.0)
    with pytest.warns(ld.ExtrapolationWarning, match="200 of 200 rows have values of 'a' far out"):
        fit.predict(new)
    assert {f.code: f.severity for f in fit.check(new)}["wild-values"] == "problem"
    with pytest.warns(ld.ExtrapolationWarning, match="1 of 1 row have"):
        fit.predict(new[:1])
