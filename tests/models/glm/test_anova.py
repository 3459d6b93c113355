"""Tables of terms, in order or each by itself, against statsmodels and R's printed examples."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats

import lodim as ld
from lodim.models.glm import estimate

N = 200


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(N, 2)), columns=["x", "z"])
    df["g"], df["w"] = rng.choice(list("abc"), N), rng.integers(1, 4, N).astype(float)
    df["clinic"] = np.arange(N) % 25
    eta = 0.5 * df["x"] + 0.4 * (df["g"] == "b") - 0.3 * df["z"] * df["x"]
    df["y"] = eta + rng.normal(size=N)
    df["count"] = rng.poisson(np.exp(eta)).astype(float)
    df["amount"] = rng.gamma(2.0, np.exp(eta))
    df["k"] = rng.choice(list("pqr"), N)
    return df


def test_negative_binomial_fits_are_compared_by_likelihood(df):
    rng = np.random.default_rng(1)
    df = df.assign(count=rng.negative_binomial(2, 1 / (1 + np.exp(0.5 * df["x"]))))
    formulas, call = ("count ~ g", "count ~ g + x"), {"family": "negative_binomial"}
    small, large = (ld.glm(formula, df, **call) for formula in formulas)
    others = [smf.negativebinomial(formula, df).fit(disp=0, maxiter=200) for formula in formulas]
    expected = 2.0 * (others[1].llf - others[0].llf)
    table = small.anova(large)
    assert "deviance" not in table and table["LR"][1] == pytest.approx(expected, rel=1e-6)
    assert table["log_likelihood"].tolist() == [small.log_likelihood, large.log_likelihood]
    assert table["p_value"][1] == pytest.approx(stats.chi2.sf(expected, 1), rel=1e-5)
    terms = large.anova(data=df)  # theta of the large fit in both models
    null = sm.GLM.from_formula(
        formulas[0], df, family=sm.families.NegativeBinomial(alpha=1 / large.theta)
    ).fit(tol=1e-12)
    assert terms["LR"][2] == pytest.approx(null.deviance - large.deviance, rel=1e-6)


def test_counts_that_vary_less_than_poisson_counts_are_named(df):
    even = df.assign(count=3 + np.arange(N) % 2)
    fit = ld.glm("count ~ x", even, family="negative_binomial")
    poisson = ld.glm("count ~ x", even, family="poisson")
    np.testing.assert_allclose(fit.tidy()["std_error"], poisson.tidy()["std_error"], rtol=1e-6)
    assert "Theta has its largest value" in " ".join(str(fit.summary()).split())


def test_terms_in_order_beside_anova_lm(df):
    fit = ld.glm("y ~ g + x * z", df)
    other = smf.ols("y ~ g + x * z", df).fit()  # patsy puts factors first
    expected = sm.stats.anova_lm(other, typ=1).loc[["g", "x", "z", "x:z"]]
    for data in (None, df):  # from the estimates, and by fits
        got = fit.anova(data=data).set_index("term")
        assert list(got.index) == ["(Intercept)", "g", "x", "z", "x:z"]
        assert got.loc["(Intercept)", "deviance"] == pytest.approx(other.centered_tss, rel=1e-10)
        for name, its in (("df", "df"), ("explained", "sum_sq"), ("F", "F"), ("p_value", "PR(>F)")):
            np.testing.assert_allclose(got[name][1:], expected.loc[got.index[1:], its], rtol=1e-8)


def test_terms_in_order_of_weighted_rows(df):
    """As of repeated rows; statsmodels' anova_lm leaves out the weights of WLS."""
    weighted = ld.glm("y ~ x * z + g", df, weights="w").anova()
    repeated = ld.glm("y ~ x * z + g", df.loc[df.index.repeat(df["w"].astype(int))]).anova()
    for name in ("explained", "deviance"):
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-9)


def test_each_term_dropped_beside_anova_lm(df):
    fit = ld.glm("y ~ x + z + g", df)
    expected = sm.stats.anova_lm(smf.ols("y ~ x + z + g", df).fit(), typ=2)
    for data in (None, df):
        got = fit.drop1(data=data).set_index("term")
        np.testing.assert_allclose(got["F"][1:], expected.loc[["x", "z", "g"], "F"], rtol=1e-8)
        for term in ("x", "z", "g"):
            part = ld.glm(f"y ~ x + z + g - {term}", df)
            assert got.loc[term, "aic"] == pytest.approx(part.aic, rel=1e-9)
            assert got.loc[term, "deviance"] == pytest.approx(part.log["deviance"], rel=1e-9)
        assert got.loc["(none)", "aic"] == fit.aic


def test_a_term_within_another_is_not_dropped(df):
    assert list(ld.glm("y ~ x * z + g", df).drop1()["term"]) == ["(none)", "g", "x:z"]


def test_the_table_of_glm_in_r():
    """Dobson (1990), p. 93, as anova(glm.D93) prints it."""
    counts = [18, 17, 15, 20, 10, 20, 25, 13, 12]
    df = pd.DataFrame({"counts": counts, "outcome": list("123") * 3, "t": list("111222333")})
    fit = ld.glm("counts ~ outcome + t", df, family="poisson")
    table = fit.anova(data=df)
    assert table["deviance"].round(4).tolist() == [10.5814, 5.1291, 5.1291]
    assert table["explained"].round(4).tolist()[1:] == [5.4523, 0.0]
    assert table["df_resid"].tolist() == [8, 6, 4]


def test_the_tables_of_the_budworms_in_r():
    """Venables & Ripley (2002), Sect. 7.2."""
    df = pd.DataFrame({"sex": list("MMMMMMFFFFFF"), "ldose": [*range(6), *range(6)], "n": 20})
    df["share"] = np.array([1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16]) / 20
    fit = ld.glm("share ~ sex * ldose", df, weights="n", family="binomial")
    table = fit.anova(data=df)
    assert table["explained"].round(3).tolist()[1:] == [6.077, 112.042, 1.763]
    assert table["deviance"].round(3).tolist() == [124.876, 118.799, 6.757, 4.994]
    assert table["p_value"].round(4).tolist()[1:] == [0.0137, 0.0, 0.1842]
    dropped = fit.drop1(data=df)
    assert dropped["aic"].round(3).tolist() == [43.104, 42.867]


@pytest.mark.long
@pytest.mark.parametrize(
    "formula, family", [("count", "poisson"), ("amount", "gamma"), ("k", "multinomial")]
)
@pytest.mark.parametrize("many", [False, True])
def test_tables_are_those_of_pairs_of_fits(df, formula, family, many, monkeypatch):
    if many:
        monkeypatch.setattr(estimate, "MAX_MEMORY_ROWS", 0)
    fits = [ld.glm(f"{formula} ~ {x}", df, family=family) for x in ("x", "x + z", "x + z + g")]
    table, dropped = fits[2].anova(data=df), fits[2].drop1(data=df).set_index("term")
    statistic = "F" if family == "gamma" else "LR"
    pair = fits[1].anova(fits[2]).iloc[1]
    for row in (table.iloc[3], dropped.loc["g"]):
        np.testing.assert_allclose(
            row[["df", statistic, "p_value"]].astype(float),
            pair[["df", statistic, "p_value"]].astype(float),
            rtol=1e-5,
        )
    np.testing.assert_allclose(table["deviance"][2], fits[1].log["deviance"], rtol=1e-8)
    assert dropped.loc["g", "aic"] == pytest.approx(fits[1].aic, rel=1e-8)


@pytest.mark.parametrize("how", [{"covariance": "HC3"}, {"clusters": "clinic"}])
def test_robust_errors_have_tests_of_wald(df, how):
    fit = ld.glm("y ~ x + z + g", df, **how)
    given = {"groups": df["clinic"]} if "clusters" in how else None
    kind = how.get("covariance", "cluster")
    other = smf.ols("y ~ x + z + g", df).fit(cov_type=kind, cov_kwds=given, use_t=True)
    got, expected = fit.drop1().set_index("term"), other.wald_test_terms(scalar=True).table
    assert list(got) == ["df", "wald_F", "p_value"]
    for term in ("x", "z", "g"):
        assert got.loc[term, "wald_F"] == pytest.approx(float(expected.loc[term, "statistic"]))
        assert got.loc[term, "p_value"] == pytest.approx(float(expected.loc[term, "pvalue"]))
    table = fit.anova(data=df).set_index("term")
    part = ld.glm("y ~ x + z", df, **how).drop1().set_index("term")
    assert table.loc["z", "wald_F"] == pytest.approx(part.loc["z", "wald_F"], rel=1e-8)
    np.testing.assert_allclose(table.loc["g"], got.loc["g"])
    counts = ld.glm("count ~ x + g", df, family="poisson", **how).drop1()
    assert list(counts) == ["term", "df", "wald_chi2", "p_value"]
    np.testing.assert_allclose(counts["p_value"], stats.chi2.sf(counts["wald_chi2"], counts["df"]))


def test_arrays_are_given_again(df):
    w = df["w"].to_numpy()
    fit = ld.glm("count ~ x + z", df, family="poisson", weights=w)
    expected = ld.glm("count ~ x + z", df, family="poisson", weights="w").anova(data=df)
    pd.testing.assert_frame_equal(fit.anova(data=df, weights=w), expected)


def test_aliased_terms_have_no_test(df):
    table = ld.glm("y ~ x + twice + g", df.assign(twice=2.0 * df["x"])).anova().set_index("term")
    assert table.loc["twice", "df"] == 0 and np.isnan(table.loc["twice", "F"])
    assert table.loc["g", "df"] == 2


@pytest.mark.parametrize("covariance", [None, "HC1"])
@pytest.mark.parametrize("response", ["y", "k"])
def test_aliased_columns_replace_dropped_ones(df, response, covariance):
    """As in R, which fits the other terms: dropping x leaves twice, and dropping g leaves is_b."""
    df = df.assign(twice=2.0 * df["x"] + 1.0, is_b=1.0 * (df["g"] == "b"))
    fit = ld.glm(f"{response} ~ x + g + z + twice + is_b", df, covariance=covariance)
    table = fit.drop1(data=df).set_index("term")
    scores = 1 if response == "y" else 2
    assert table.loc["x":, "df"].tolist() == [0, scores, scores, 0, 0]
    small = ld.glm(f"{response} ~ x + z + is_b", df, covariance=covariance)
    large = ld.glm(f"{response} ~ x + z + is_b + g", df, covariance=covariance)
    test = small.anova(large).iloc[1][["df", *table.columns[-2:]]]
    np.testing.assert_allclose(table.loc["g", test.index].astype(float), test.astype(float))
    if response == "y" or covariance:
        pd.testing.assert_frame_equal(fit.drop1().set_index("term"), table)


@pytest.mark.parametrize("family, y", [("gaussian", "y"), ("poisson", "count")])
def test_robust_errors_compare_two_fits_by_wald_tests(df, family, y):
    """The test of the added terms uses the robust covariance of the larger fit."""
    call = {"family": family, "clusters": "clinic"}
    large, small = ld.glm(f"{y} ~ x + g + z", df, **call), ld.glm(f"{y} ~ x", df, **call)
    got, terms = small.anova(large).iloc[1], ["g[b]", "g[c]", "z"]
    b, V = large.coef()[terms].to_numpy(), large.covariance().loc[terms, terms]
    value = b @ np.linalg.solve(V, b)
    assert got["df"] == 3
    if family == "gaussian":
        assert got["wald_F"] == pytest.approx(value / 3, rel=1e-9)
        assert got["p_value"] == pytest.approx(stats.f.sf(value / 3, 3, 24), rel=1e-9)
    else:
        assert got["wald_chi2"] == pytest.approx(value, rel=1e-9)
        assert got["p_value"] == pytest.approx(stats.chi2.sf(value, 3), rel=1e-9)
    pd.testing.assert_frame_equal(large.drop1(data=df), large.drop1())


def test_what_tables_of_terms_refuse(df):
    fit = ld.glm("count ~ x + z", df, family="poisson")
    with pytest.raises(ld.ArgumentError, match=r"anova\(\) refits the model .* anova\(data=df"):
        fit.anova()
    with pytest.raises(ld.ArgumentError, match="must be the rows that the model was fitted to"):
        fit.drop1(data=df[::-1])
    with pytest.raises(ld.ArgumentError, match="must be the rows that the model was fitted to"):
        fit.drop1(data=df.assign(x=2.0 * df["x"]))
    with pytest.raises(ld.ArgumentError, match="cannot be given together with another fit"):
        fit.anova(ld.glm("count ~ x", df, family="poisson"), data=df)
    robust = ld.glm("count ~ x + z", df, family="poisson", covariance="HC0")
    with pytest.raises(ld.ArgumentError, match="must be the rows that the model was fitted to"):
        robust.drop1(data=df[::-1])
    with pytest.warns(ld.DataWarning, match="as many coefficients as rows"):
        full = ld.glm("y ~ x", {"x": [0.0, 1.0], "y": [1.0, 3.0]})
    with pytest.raises(ld.ArgumentError, match="needs residual degrees"):
        full.anova()


@pytest.mark.parametrize("offset", [0.0, -0.0])
def test_an_offset_of_zero_is_no_offset(offset):
    cars = ld.data("autompg")
    zeros = np.full(len(cars), offset)
    table = ld.glm("mpg ~ weight", cars, offset=zeros).anova(
        ld.glm("mpg ~ weight + cylinders", cars)
    )
    assert table["p_value"].iloc[-1] < 1.0


def test_fewer_clusters_than_added_coefficients_have_no_test(df):
    clusters = np.arange(len(df)) % 3
    small, large = (ld.glm(f"y ~ {right}", df, clusters=clusters) for right in ("x", "x + z + g"))
    assert np.isnan(small.anova(large)["p_value"].iloc[1])


def test_a_larger_fit_that_is_worse_has_not_converged(df):
    small = ld.glm("count ~ g", df, family="poisson")
    with pytest.warns(ld.ConvergenceWarning):
        large = ld.glm("count ~ g + x", df, family="poisson", control={"max_iter": 1})
    large.log["deviance"] = small.deviance + 1.0
    with pytest.raises(ld.ArgumentError, match=r"has not converged: fit it with control="):
        small.anova(large)
