"""Fit.check(): every code is found where it should be, and nothing on healthy data."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import some_long
from lodim.diagnostics.checks import CHECKS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "summaries.py"
CHEAP = {
    "gbmap": {"m": 2, "lambda_": 1.0},
    "proset": {"lambda_v": 0.1, "lambda_w": 1e-3},
    "costnet": {},
    "melm": {"gamma": 1.0, "n_starts": 2},
    "ripr": {"max_dim": 1},
    "glm": {},
}


def healthy(seed, n=160):
    """Features of several kinds, a number and classes that hang on them, and rows from later."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    df["d"] = rng.gamma(4.0, size=n) / 4.0
    df["f"] = rng.choice(["u", "v", "w"], n)
    score = df["a"] + 0.7 * df["d"] - 0.7 + 0.8 * (df["f"] == "u")
    df["y"] = score + rng.normal(size=n)
    df["k"] = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    return df[: n // 2 + 20], df[n // 2 + 20 :]


@pytest.mark.long
@pytest.mark.parametrize("response", ["y", "k"])
def test_nothing_is_found_in_a_hundred_healthy_data_sets_of_each_kind(response):
    found = []
    for seed in range(100):
        old, new = healthy(seed)
        fit = ld.glm(f"{response} ~ a + b + c + d + f", old)
        found += [(seed, c.code) for data in (None, old, new) for c in fit.check(data)]
    assert found == []


@pytest.mark.parametrize("name", some_long(CHEAP, ("costnet", "melm")))
def test_all_models_are_checked_before_and_after_saving(name, tmp_path):
    model, (old, new) = getattr(ld, name), healthy(1)
    fit = model("k ~ a + b + c + d + f", old, **CHEAP[name])
    strange = new.assign(a=new["a"] + 100.0)
    fit.save(tmp_path / "fit")
    again = ld.load(tmp_path / "fit")
    for data in (None, old, new, strange, new.drop(columns="k")):
        checks = fit.check(data)
        assert repr(checks) == repr(again.check(data))
        assert set(checks.codes) <= (set(checks.looked_at) if data is strange else set())
        assert {*checks.looked_at, *checks.not_looked_at} == set(CHECKS)
    if "a" in fit._reader.features:
        assert {"extrapolation", "drift"} <= set(fit.check(strange).codes)


def codes(fit, data=None, **arguments):
    return fit.check(data, **arguments).codes


def test_what_glm_knows_itself():
    old, _ = healthy(2)
    old = old.assign(s=(old["k"] == "yes") * 2.0 + old["a"] * 1e-3, one=1.0)
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("k ~ b + s + one", old)
    assert codes(fit) == ("separation", "constant")
    (found, _) = fit.check().findings
    assert "s" in found.terms and "probabilities near 0 or 1" in found.hint
    zero = old.assign(
        g=np.where(old.index < 20, "u", "v"), n=np.where(old.index < 20, 0, 1 + old.index % 3)
    )
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("n ~ g", zero, family="poisson")
    assert "separation" in codes(fit) and "means near 0" in fit.check().findings[0].hint
    gaps = old.assign(b=old["b"].where(np.arange(len(old)) % 5 > 0))
    checks = ld.glm("y ~ a + b", gaps).check()
    assert checks.codes == ("dropped-rows",) and "(20%)" in repr(checks)
    assert 'missing="indicator" would keep' in checks.findings[0].hint


@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
def test_an_optimizer_that_stopped():
    fit = ld.gbmap("y ~ a + b", healthy(2)[0], m=1, lambda_=1e-3, control={"max_iter": 1})
    assert codes(fit) == ("convergence",)


def test_the_smallest_penalty_of_a_grid():
    fit = ld.cv(ld.gbmap, "y ~ a", healthy(3)[0], grid={"lambda_": [1e3, 1e2]}, m=1, folds=3).best
    finding = next(iter(fit.check()))
    assert finding.code == "grid-end" and finding.terms == ("lambda_",)
    fit = ld.cv(ld.gbmap, "y ~ a", healthy(3)[0], grid={"lambda_": [1e3, 1e-1]}, m=1, folds=3).best
    assert set(codes(fit)) <= {"grid-end"}


def test_a_fit_that_explains_training_rows_alone():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(300, 40)), columns=[f"x{j}" for j in range(40)])
    df = X.assign(y=X["x0"] + 2 * rng.normal(size=300))
    fit = ld.glm("y ~ .", df[:60])
    assert "overfit" in codes(fit, df[60:]) and "overfit" not in codes(fit, df[:60])
    chosen = pd.DataFrame({"lambda_": [1.0], "mean": [fit.null_deviance], "se": [0.01]})
    fit.selection = chosen
    assert codes(fit) == ("overfit",)
    fit.selection = chosen.assign(mean=0.6 * fit.deviance + 0.4 * fit.null_deviance)
    assert codes(fit) == ()


@pytest.mark.long
def test_a_feature_that_is_the_response():
    old, _ = healthy(5, n=240)
    df = old.assign(x=old["y"] ** 3 + old["y"], z=(old["k"] == "yes") + 0.1 * old["b"])
    assert fit_codes("y ~ a + x", df)["leak"] == ("x",)
    assert fit_codes("k ~ a + z", df, model=ld.costnet) == {"leak": ("z",)}
    three = df.assign(c3=np.array(["p", "q", "r"])[np.arange(len(df)) % 3])
    three["same"] = three["c3"].str.upper()
    assert fit_codes("c3 ~ a + b + same", three, model=ld.costnet) == {"leak": ("same",)}


def fit_codes(formula, df, model=ld.glm):
    return {finding.code: finding.terms for finding in model(formula, df).check(df)}


@pytest.mark.parametrize(("code", "others"), [(-999, 5.0), (99, 1.0), (-9, 0.1), (9999999, 1.0)])
def test_numbers_for_missing_values(code, others):
    old, _ = healthy(2)
    coded = old.assign(a=np.where(np.arange(len(old)) % 20 == 0, code, 5.0 + others * old["a"]))
    finding = next(iter(ld.glm("y ~ a + b", coded).check(coded)))
    assert (finding.code, finding.severity, finding.terms) == ("missing-code", "problem", ("a",))
    assert f"a is {code} in 5 rows, far from its other values" in finding.sentence
    once = old.assign(a=np.where(np.arange(len(old)) == 0, code, old["a"]))
    zero = old.assign(a=np.where(np.arange(len(old)) % 20 == 0, 0, 900.0 + old["a"]))
    fit = ld.glm("y ~ a + b", old)
    for data in (old, once, zero):
        assert "missing-code" not in codes(fit, data)


def test_copies_and_rare_levels_and_ways_to_ignore_them():
    old, _ = healthy(6)
    rare = np.where(np.arange(len(old)) < 3, "rare", old["f"])
    df = old.assign(e=old["a"] * 2 + 1 + 0.01 * old["b"], f=rare)
    fit = ld.glm("y ~ a + e + f", df)
    checks = fit.check(df)
    assert checks.codes == ("copies", "collinearity", "rare-level")
    assert checks.findings[0].terms == ("a", "e") and checks.findings[2].terms == ("f = rare",)
    assert codes(fit, df, ignore="copies") == ("collinearity", "rare-level")
    checks = fit.check(df, ignore=("rare-level", "copies", "collinearity"))
    assert len(checks) == 0 and "Ignored: copies, collinearity, rare-level." in repr(checks)
    for bad in ("copy", ("copies", 3), 7, None):
        with pytest.raises(ld.ArgumentError, match="ignore must be"):
            fit.check(df, ignore=bad)
    few = old.assign(k=np.where(np.arange(len(old)) < 4, "third", old["k"]))
    assert fit_codes("k ~ a", few, model=ld.costnet)["rare-level"] == ("k = third",)


def test_identifiers():
    old, _ = healthy(8)
    ids = np.random.default_rng(0).permutation(len(old)) + 1000
    for name in ("id", "patient_id", "customerID", "row_number", "Unnamed: 0"):
        df = old.rename(columns={"d": name}).assign(**{name: ids})
        assert fit_codes(f"y ~ a + Q({name!r})", df) == {"identifier": (name,)}
    for name, values in (("idea", ids), ("id", ids // 3), ("id", ids + 0.5), ("width", ids)):
        df = old.drop(columns="d").assign(**{name: values})
        assert fit_codes(f"y ~ a + {name}", df) == {}


def test_duplicated_rows():
    old, _ = healthy(9)
    twice = pd.concat([old, old.head(5)], ignore_index=True)
    fit = ld.glm("y ~ a + b + f", twice)
    finding = next(iter(fit.check(twice)))
    assert finding.code == "duplicates" and finding.rows == tuple(range(len(old), len(twice)))
    other = twice.assign(y=twice["y"] + np.arange(len(twice)))
    assert fit_codes("y ~ a + b + f", other) == {}
    assert fit_codes("k ~ f", old, model=ld.costnet) == {}  # three levels repeat by chance


def test_collinear_numbers():
    old, _ = healthy(10)
    df = old.assign(e=old["a"] + old["b"] + 0.1 * old["c"])
    for model in (ld.glm, ld.costnet):
        assert set(fit_codes("y ~ a + b + e", df, model)["collinearity"]) == {"a", "b", "e"}
    assert fit_codes("y ~ a + I(a**2) + I(a**3)", df) == {}
    fit = ld.gbmap("y ~ a + b + e", df, **CHEAP["gbmap"])
    assert "which have coefficients" in fit.check(df).not_looked_at["collinearity"]


def test_cells_of_crossed_factors():
    old, _ = healthy(11)
    df = old.assign(g=np.where(np.arange(len(old)) % 2, "p", "q"))
    assert fit_codes("y ~ f*g", df) == {}
    df.loc[(df["f"] == "u") & (df["g"] == "q"), "g"] = "p"
    fit = ld.glm("y ~ f*g", df)
    assert {f.code: f.terms for f in fit.check(df)}["empty-cells"] == ("f = u and g = q (0)",)
    assert fit_codes("y ~ f + g", df) == {}


def test_counts_that_vary_too_much_or_too_little():
    rng, n = np.random.default_rng(12), 400
    a = rng.normal(size=n)
    mean = np.exp(0.5 + 0.5 * a)
    laws = {
        "poisson": (rng.poisson(mean), set()),
        "over": (rng.poisson(mean * rng.gamma(1.0, 1.0, n)), {"dispersion"}),
        "under": (np.rint(4 * mean + rng.random(n)), {"dispersion"}),
        "zeros": (np.where(rng.random(n) < 0.4, 0, rng.poisson(4 * mean)), {"dispersion", "zeros"}),
    }
    for law, (y, expected) in laws.items():
        df = pd.DataFrame({"a": a, "y": y})
        found = set(codes(ld.glm("y ~ a", df, family="poisson"), df))
        assert expected <= found <= {"influence", "zeros", *expected}, law
        assert bool(found) == bool(expected)
    assert codes(ld.glm("y ~ a", df), df) == ()


def test_advice_on_counts_names_the_family_for_them_and_errors_only_if_they_are_wrong():
    rng = np.random.default_rng(12)
    df = pd.DataFrame({"a": rng.normal(size=400)})
    df["y"] = rng.poisson(np.exp(0.5 + 0.5 * df["a"]) * rng.gamma(1.0, 1.0, 400))
    plain, robust = (
        {f.code: f for f in ld.glm("y ~ a", df, family="poisson", covariance=c).check(df)}
        for c in (None, "HC0")
    )
    for found in (plain, robust):
        assert "negative_binomial" in found["dispersion"].hint
        assert "negative_binomial" in found["zeros"].hint
    assert "too small" in plain["dispersion"].sentence and "HC0" in plain["dispersion"].hint
    assert "errors" not in robust["dispersion"].sentence + robust["dispersion"].hint
    even = df.assign(y=np.rint(4 * np.exp(df["a"] / 2)))
    (finding,) = ld.glm("y ~ a", even, family="poisson").check(even)
    assert "too large" in finding.sentence and "negative_binomial" not in finding.hint


@pytest.mark.parametrize("name", ["glm", "gbmap"])
def test_a_row_that_decides_the_fit(name):
    old, _ = healthy(7)
    df = old.copy()
    df.loc[5, ["a", "y"]] = 12.0, -40.0
    finding = next(iter(getattr(ld, name)("y ~ a + b", df, **CHEAP[name]).check(df)))
    assert finding.code == "influence" and finding.rows == (5,)


def test_rows_unlike_those_of_training():
    old, new = healthy(8)
    fit = ld.glm("y ~ a + b + f", old)
    checks = fit.check(new.assign(b=np.where(np.arange(len(new)) == 3, 40.0, new["b"])))
    assert checks.codes == ("extrapolation",) and checks.findings[0].rows == (new.index[3],)
    checks = fit.check(new.assign(f=np.where(np.arange(len(new)) < 2, "new", new["f"])))
    assert checks.codes == ("extrapolation",) and checks.findings[0].terms == ("f",)
    assert "2 rows with levels of f that no training row has: 'new'" in repr(checks).replace(
        "\n ", ""
    )
    with pytest.raises(ld.DataError, match=r"2 rows with levels .* row has: 'new'"):
        fit.check(new[:2].assign(f="new"))
    assert codes(fit, new.assign(a=new["a"] + 1.5, y=new["y"] + 1.5 * fit.coef()["a"])) == (
        "drift",
    )
    assert codes(fit, new[["a", "b", "f"]].assign(a=new["a"] - 1.5)) == ("drift",)


@pytest.mark.parametrize("response", ["y", "k"])
def test_answers_that_are_off(response):
    old, new = healthy(9, n=800)
    fit = ld.glm(f"{response} ~ a + b + d", old)
    wrong = new.assign(y=0.3 * new["y"] + 1.0, k=np.where(np.arange(len(new)) % 2, "yes", new["k"]))
    assert "calibration" in codes(fit, wrong) and codes(fit, new) == ()


def test_what_is_printed_and_returned():
    old, new = healthy(10)
    fit = ld.glm("y ~ a + b", old)
    checks = fit.check(old)
    assert "No findings." in repr(checks) and "Not checked: grid-end" in repr(checks)
    assert list(checks.tidy()) == ["code", "severity", "sentence", "hint", "terms", "n_rows"]
    checks = fit.check(new[["a", "b"]].assign(a=new["a"] + 50.0))
    assert [f.severity for f in checks] == ["problem", "problem"] and len(checks.tidy()) == 2
    for text in (str(checks.summary()), checks._repr_html_()):
        assert "drift" in text
    assert "calibration (needs new rows with the response)" in repr(checks)
    with pytest.raises(ld.DataError, match="no column 'a'"):
        fit.check(new.drop(columns="a"))
    with pytest.raises(ld.DataError, match="a row without missing values"):
        fit.check(new[:0])


def test_the_help_and_the_table_of_checks_have_every_code():
    listed = re.split(r"[\s,:;]+", ld.GlmFit.check.__doc__)
    page = PAGE.read_text().partition("## Checks of")[2]
    assert set(re.findall(r"^# \| `([a-z-]+)`", page.partition("# ## ")[0], re.M)) == set(CHECKS)
    assert set(CHECKS) <= set(listed)


def test_weights_offsets_and_frames_of_other_kinds():
    polars = pytest.importorskip("polars")
    old, new = healthy(11)
    old = old.assign(w=np.arange(len(old)) % 3 * 1.0, o=1.0)
    fit = ld.glm("y ~ a + b + f", old, weights="w", offset="o")
    assert "rare-level" in fit.check(old).looked_at
    assert fit.check(polars.from_pandas(old)).looked_at == fit.check(old).looked_at
    assert "rare-level" not in fit.check(new.assign(o=1.0)).looked_at
    array = ld.glm("y ~ a", old, weights=old["w"], offset=old["o"].to_numpy())
    assert "rare-level" in array.check(old[old["w"] > 0], offset=1.0).looked_at


def test_views_and_clusters_without_a_response_are_checked():
    old, new = healthy(12)
    for fit in (ld.melm("~ a + b + c", old), ld.ripr("~ a + b", old, n_clusters=2, max_dim=1)):
        assert fit.check(old).codes == () and "leak" in fit.check(old).not_looked_at
        assert "drift" in fit.check(new.assign(a=new["a"] + 9.0)).codes


def test_training_rows_of_weight_zero_are_training_rows():
    old, _ = healthy(2)
    old = old.assign(w=np.where(np.arange(len(old)) % 3 == 0, 0.0, 1.0))
    for model, settings in ((ld.glm, {}), (ld.costnet, {"lambda_": 0.1})):
        checks = model("y ~ a + b", old, weights="w", **settings).check(old)
        assert "influence" in checks.looked_at and "drift" not in checks.looked_at


@pytest.mark.long
def test_the_fewest_boosts_are_no_end_of_a_grid():
    rows = ld.data("seeds").sample(frac=1.0, random_state=3).iloc[::2]
    fit = ld.gbmap("variety ~ .", rows)
    best = fit.selection.loc[fit.selection["mean"].idxmin()]
    assert best["m"] == fit.selection["m"].min() < fit.selection["m"].max()
    assert codes(fit) == () and "that was tried, 1" not in str(fit.summary())


def test_checks_that_need_more_rows_or_fewer_columns_say_so(monkeypatch):
    old, new = healthy(12)
    few = ld.glm("y ~ a", old[:8]).check(old[:8]).not_looked_at
    for code in ("copies", "identifier", "duplicates"):
        assert few[code].startswith("fewer than")
    raw = ld.gbmap("y ~ a + b", old, standardize=False, **CHEAP["gbmap"])
    assert "stores no standard deviations" in raw.check(new).not_looked_at["drift"]
    gaps = old.assign(f=old["f"].where(old["a"] < 1.5), g=np.resize(["p", "q"], len(old)))
    checks = ld.glm("y ~ f:g", gaps, missing="indicator").check(gaps)
    assert "empty-cells" not in [finding.code for finding in checks]
    monkeypatch.setattr("lodim.diagnostics.features.MOST_COLUMNS", 2)
    wide = ld.glm("y ~ a + b + c", old).check(old).not_looked_at
    assert wide["copies"] == wide["collinearity"] == "more than 2 features"
