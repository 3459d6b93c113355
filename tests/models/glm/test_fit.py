"""glm compared with statsmodels, R's printed examples, and formulas coded naively."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats

import lodim as ld

FAMILIES = {
    "gaussian": sm.families.Gaussian(),
    "binomial": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "gamma": sm.families.Gamma(sm.families.links.Log()),
    "tweedie": sm.families.Tweedie(sm.families.links.Log(), var_power=1.5),
}
MORE = {"tweedie": {"power": 1.5}}  # arguments of a family
RIGHT = "x1 * g + x2 + h:x2"
N = 400


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(
        {
            "x1": rng.normal(size=N),
            "x2": rng.normal(5.0, 3.0, N),
            "g": rng.choice(list("abc"), N),
            "h": rng.choice(["u", "v"], N),
            "w": rng.integers(1, 4, N).astype(float),
            "o": 0.1 * rng.normal(size=N),
            "clinic": rng.choice([f"c{i}" for i in range(20)], N),
        }
    )
    eta = 0.3 * df["x1"] - 0.1 * df["x2"] + 0.4 * (df["g"] == "b")
    df["gaussian"] = eta + rng.normal(size=N)
    df["binomial"] = (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    df["poisson"] = rng.poisson(np.exp(eta)).astype(float)
    df["gamma"] = rng.gamma(2.0, np.exp(eta) / 2.0)
    df["multinomial"] = rng.choice(list("pqr"), N)
    df["tweedie"] = rng.gamma(rng.poisson(np.exp(eta)) + 1e-9).round(9)
    return df


def by_term(values):
    """A statsmodels result by lodim's names of terms."""
    names = {"Intercept": "(Intercept)"}
    return pd.Series(
        {names.get(k, k).replace("[T.", "["): v for k, v in values.items()}, dtype=float
    )


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("offset", [None, "o"])
@pytest.mark.parametrize("family", FAMILIES)
def test_against_statsmodels(df, family, weights, offset):
    call = {"family": family, "weights": weights, "offset": offset} | MORE.get(family, {})
    fit = ld.glm(f"{family} ~ {RIGHT}", df, **call)
    beside = {"var_weights": None if weights is None else df["w"]}
    beside["offset"] = None if offset is None else df["o"]
    other = smf.glm(f"{family} ~ x1 * g + x2 + h:x2", df, family=FAMILIES[family], **beside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = other.fit(tol=1e-14, tol_criterion="params", maxiter=100)
    tidy = fit.tidy().set_index("term")
    # patsy writes the interaction the other way round, and R's rule of margins drops x2:h[u].
    names = {"x2:h[v]": "h[v]:x2", "h[v]:x2": "h[v]:x2"}
    for column, values in (("estimate", other.params), ("std_error", other.bse)):
        expected = by_term(values).rename(names)
        got = tidy[column].rename(names)
        np.testing.assert_allclose(got[expected.index], expected, rtol=1e-8, atol=1e-8)
    assert len(tidy) == len(other.params)
    np.testing.assert_allclose(fit.predict(df), other.fittedvalues, rtol=1e-8)
    if family == "tweedie":  # R knows none either
        assert np.isnan(fit.log_likelihood) and np.isnan(fit.aic)
        assert "NaN" not in str(fit) + str(fit.summary()) and "AIC" not in str(fit)
    elif family != "gamma":  # of which R and statsmodels define it otherwise
        assert fit.log_likelihood == pytest.approx(other.llf, rel=1e-10)
    assert fit.df_resid == other.df_resid
    assert fit.dispersion == pytest.approx(other.scale, rel=1e-8)
    assert fit.null_deviance == pytest.approx(other.null_deviance, rel=1e-8)


@pytest.mark.parametrize("theta", [0.7, 5.0])
@pytest.mark.parametrize("offset", [None, "o"])
def test_negative_binomial_against_statsmodels(df, theta, offset, tmp_path):
    rng, more = np.random.default_rng(1), {"offset": None if offset is None else df[offset]}
    mean = np.exp(1.0 + 0.3 * df["x1"] - 0.1 * df["x2"])
    df = df.assign(count=rng.negative_binomial(theta, theta / (theta + mean)))
    fit = ld.glm("count ~ x1 + x2 + g", df, family="negative_binomial", offset=offset)
    joint = smf.negativebinomial("count ~ x1 + x2 + g", df, **more)
    joint = joint.fit(disp=False, method="newton", maxiter=200, tol=1e-14)
    alpha = joint.params["alpha"]
    assert fit.theta == pytest.approx(1.0 / alpha, rel=1e-6)
    assert fit.log_likelihood == pytest.approx(joint.llf, rel=1e-10)
    assert fit.aic == pytest.approx(joint.aic, rel=1e-10)
    # The error of theta is that of the information at fixed means, as of MASS's theta.ml.
    error = joint.bse["alpha"] / alpha**2
    assert fit.theta_error == pytest.approx(error, rel=0.05)
    family = sm.families.NegativeBinomial(alpha=1.0 / fit.theta)
    peer = smf.glm("count ~ x1 + x2 + g", df, family=family, **more)
    peer = peer.fit(tol=1e-14, tol_criterion="params", maxiter=100)
    tidy = fit.tidy().set_index("term")
    for column, values in (("estimate", peer.params), ("std_error", peer.bse)):
        expected = by_term(values)
        np.testing.assert_allclose(tidy[column][expected.index], expected, rtol=1e-8)
    assert fit.log["deviance"] == pytest.approx(peer.deviance, rel=1e-10)
    np.testing.assert_allclose(fit.null_deviance, peer.null_deviance, rtol=1e-8)
    assert "Theta (std. error)" in str(fit.summary())
    fit.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit")
    assert back.theta == fit.theta and str(back.summary()) == str(fit.summary())
    inside = fit.predict(df, "interval")
    held = (inside["new_lower"] <= df["count"]) & (df["count"] <= inside["new_upper"])
    assert 0.93 < held.mean() < 0.995
    table = fit.anova(data=df)
    assert table["df"].sum() == 4 and (table["LR"].dropna() >= 0).all()


def test_counts_that_vary_less_are_poisson(df):
    rng = np.random.default_rng(0)
    df = df.assign(count=rng.binomial(20, 0.2 + 0.1 * (df["g"] == "a")))
    fit = ld.glm("count ~ g", df, family="negative_binomial")
    peer = ld.glm("count ~ g", df, family="poisson")
    assert fit.theta > 1e6
    np.testing.assert_allclose(fit.predict(df), peer.predict(df), rtol=1e-6)


def test_tweedie_against_scikit_learn(df):
    from sklearn.linear_model import TweedieRegressor

    fit = ld.glm("tweedie ~ x1 + x2", df, family="tweedie", power=1.5)
    peer = TweedieRegressor(power=1.5, alpha=0.0, link="log", solver="newton-cholesky", tol=1e-12)
    peer.fit(df[["x1", "x2"]], df["tweedie"])
    np.testing.assert_allclose(fit.predict(df), peer.predict(df[["x1", "x2"]]), rtol=1e-8)
    assert fit.evaluate(df)["dev_ratio"].item() == pytest.approx(
        peer.score(df[["x1", "x2"]], df["tweedie"]), rel=1e-10
    )


@pytest.mark.parametrize("weights", [None, "w"])
def test_classes_against_statsmodels_and_repeated_rows(df, weights):
    rows = df if weights is None else df.loc[df.index.repeat(df["w"].astype(int))]
    X = pd.get_dummies(rows[["x1", "x2", "g"]], drop_first=True, dtype=float)
    other = sm.MNLogit(rows["multinomial"], sm.add_constant(X)).fit(disp=False)
    fit = ld.glm("multinomial ~ x1 + x2 + g", df, weights=weights)
    tidy = fit.tidy()
    np.testing.assert_allclose(tidy["estimate"], other.params.to_numpy().T.ravel(), atol=1e-8)
    np.testing.assert_allclose(tidy["std_error"], other.bse.to_numpy().T.ravel(), atol=1e-7)
    np.testing.assert_allclose(fit.predict(df).loc[rows.index], other.predict(), atol=1e-8)
    assert fit.log_likelihood == pytest.approx(other.llf, rel=1e-10)
    assert list(tidy["level"].unique()) == ["q", "r"]


def test_an_offset_of_classes_is_that_of_the_scores(df):
    offset = np.random.default_rng(1).normal(size=(N, 3))
    fit = ld.glm("multinomial ~ x1 + g", df, offset=offset)
    prob = fit.predict(df, offset=offset).to_numpy()
    observed = np.equal.outer(df["multinomial"].to_numpy(), np.array(list("pqr")))
    X = np.column_stack([np.ones(N), df["x1"], df["g"] == "b", df["g"] == "c"])
    assert np.abs(X.T @ (observed - prob)).max() < 1e-6  # the score equations


def test_the_example_of_glm_in_r():
    """Dobson (1990), p. 93, as example(glm) of R prints it."""
    df = pd.DataFrame(
        {
            "counts": [18, 17, 15, 20, 10, 20, 25, 13, 12],
            "outcome": list("123") * 3,
            "treatment": list("111222333"),
        }
    )
    fit = ld.glm("counts ~ outcome + treatment", df, family="poisson")
    tidy = fit.tidy().round(4)
    assert tidy["estimate"].tolist() == [3.0445, -0.4543, -0.293, 0.0, 0.0]
    assert tidy["std_error"].tolist() == [0.1709, 0.2022, 0.1927, 0.2, 0.2]
    assert tidy["statistic"].round(3).tolist()[:3] == [17.815, -2.247, -1.52]
    assert tidy["p_value"].round(4).tolist()[1:3] == [0.0246, 0.1285]
    glance = fit.glance().iloc[0]
    assert round(glance["null_deviance"], 4) == 10.5814
    assert round(glance["deviance"], 4) == 5.1291 and glance["df_resid"] == 4
    assert round(glance["aic"], 2) == 56.76


def test_the_example_of_lm_in_r():
    """Plant weights (Dobson 1990, p. 9), as example(lm) of R prints them."""
    control = [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14]
    treated = [4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69]
    df = pd.DataFrame({"weight": control + treated, "group": ["Ctl"] * 10 + ["Trt"] * 10})
    fit = ld.glm("weight ~ group", df)
    tidy = fit.tidy().round(4)
    assert tidy["estimate"].tolist() == [5.032, -0.371]
    assert tidy["std_error"].tolist() == [0.2202, 0.3114]
    assert tidy["statistic"].round(3).tolist() == [22.85, -1.191]
    assert tidy["p_value"].round(3).tolist() == [0.0, 0.249]
    assert round(np.sqrt(fit.dispersion), 4) == 0.6964 and round(fit.dev_ratio, 5) == 0.07308


# Coding of factors -----------------------------------------------------------------------------

FORMULAS = [
    "g", "x1:g", "x1*g", "g:h", "g*h", "g + g:h", "h + g:h:x1", "x1 + g:h:x1",
    'C(g, Treatment("b"))', 'C(g, Treatment("b")) * x1', 'C(g, Treatment("b")):x1',
    "C(g, Sum) * h", 'C(g, levels=["c", "a", "b"])', "g*h*x1 - g:h",
]  # fmt: skip


@pytest.mark.parametrize("right", FORMULAS)
def test_factors_span_what_r_and_patsy_span(df, right):
    fit = ld.glm(f"gaussian ~ {right}", df)
    other = smf.ols(f"gaussian ~ {right}", df).fit()
    # As in R, where neither margin is there all levels are coded, and the last is aliased.
    assert list(fit.aliased) == {
        "g:h": ["g[c]:h[v]"],
        "x1 + g:h:x1": ["g[c]:h[v]:x1"],
    }.get(right, [])
    assert fit.df == np.linalg.matrix_rank(other.model.exog)
    np.testing.assert_allclose(fit.predict(df), other.fittedvalues, rtol=1e-8, atol=1e-8)
    if ":" not in right and "*" not in right:
        expected = sorted(other.params.to_numpy())
        np.testing.assert_allclose(sorted(fit.coef()), expected, rtol=1e-8)


def test_the_first_level_is_the_reference(df):
    assert list(ld.glm("gaussian ~ g", df).coef().index) == ["(Intercept)", "g[b]", "g[c]"]
    order = df.assign(g=pd.Categorical(df["g"], ["b", "c", "a"]))
    assert list(ld.glm("gaussian ~ g", order).coef().index) == ["(Intercept)", "g[c]", "g[a]"]
    crossed = ld.glm("gaussian ~ g:h", df).design.names
    assert len(crossed) == 6 and "g[a]:h[u]" in crossed
    penalized = ld.gbmap("gaussian ~ g", df, m=1, lambda_=0.1)
    assert penalized.design.names == ("g[a]", "g[b]", "g[c]")


# What cannot be estimated ----------------------------------------------------------------------


def test_aliased_columns_are_left_out_and_named(df):
    data = df.assign(copy=df["x1"], total=df["x1"] + df["x2"], one=3.0, h="u")
    fit = ld.glm("gaussian ~ x1 + x2 + copy + total + one + g + h", data)
    other = smf.ols("gaussian ~ x1 + x2 + g", df).fit()
    assert fit.aliased == {"copy": "x1", "total": "x1, x2", "one": "", "h[u]": ""}
    coef = fit.coef()
    assert coef[["copy", "total", "one", "h[u]"]].isna().all()
    expected = by_term(other.params)
    np.testing.assert_allclose(coef[expected.index], expected, rtol=1e-8)
    assert fit.df == 5 and fit.df_resid == N - 5
    report = " ".join(str(fit.summary()).split())
    assert "copy (made of x1); total (made of x1, x2); one (constant); h[u] (constant)" in report


SATURATED = pytest.mark.filterwarnings("ignore:There are as many coefficients as rows")


@SATURATED
def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(10, 20))).add_prefix("x").assign(y=rng.normal(size=10))
    fit = ld.glm("y ~ .", df)
    assert fit.df == 10 and fit.df_resid == 0 and len(fit.aliased) == 11
    np.testing.assert_allclose(fit.predict(df), df["y"], atol=1e-8)
    assert fit.tidy()["std_error"].isna().all() and "NaN" in str(fit.summary())


EXACT = {"gaussian": {}, "gamma": {}, "tweedie": {"power": 1.5}, "huber": {}}
EXACT["quantile"] = {"quantile": 0.5}


@pytest.mark.parametrize("family", EXACT)
@pytest.mark.parametrize("shift", [1.0, 1e6])
def test_an_exact_fit_has_no_meaningful_errors(family, shift):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 2)), columns=["x", "z"])
    y = shift + 2.0 * df["x"]
    y = np.exp(0.1 * y / shift) if family in ("gamma", "tweedie") else y
    with pytest.warns(ld.DataWarning, match="exactly, up to rounding errors"):
        fit = ld.glm("y ~ x + z", df.assign(y=y), family=family, **EXACT[family])
    text = " ".join(str(fit.summary()).split())
    assert fit.converged and "come from these errors and have no meaning" in text
    assert "Warning: the fit is exact" in str(fit)
    near = y * (1.0 + 1e-10 * rng.normal(size=60))
    fit = ld.glm("y ~ x + z", df.assign(y=near), family=family, **EXACT[family])
    assert "exact" not in str(fit) + str(fit.summary()).replace("exactly, in", "")


def costs(n_zero):
    """Return 200 rows, of which n_zero patients cost nothing."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=200), "cost": 1.0 + rng.gamma(2.0, 500.0, 200)})
    df.loc[rng.permutation(200)[:n_zero], "cost"] = 0.0
    return df


@pytest.mark.parametrize("family", ["huber", "quantile"])
def test_a_fit_that_is_exact_in_most_rows_has_no_meaningful_errors(family):
    with pytest.warns(ld.DataWarning, match="fits more than half of the rows exactly"):
        fit = ld.glm("cost ~ x", costs(170), family=family, **EXACT[family])
    assert fit.converged and "exact in most rows" in str(fit)
    assert "exact in" not in str(ld.glm("cost ~ x", costs(90), family=family, **EXACT[family]))


def test_a_limit_that_still_falls_has_not_converged():
    with pytest.warns(ld.ConvergenceWarning, match="raise control"):
        fit = ld.glm("cost ~ x", costs(145), family="huber")
    assert not fit.converged and "NOT converged" in str(fit.summary())
    assert ld.glm("cost ~ x", costs(125), family="huber").converged


@pytest.mark.parametrize(
    "data, formula, family, infinite",
    [
        ({"x": range(8), "y": [0, 0, 0, 0, 1, 1, 1, 1]}, "y ~ x", None, ["(Intercept)", "x"]),
        ({"x": list("aabbbb"), "y": [1, 1, 0, 1, 0, 1]}, "y ~ x", None, None),
        ({"x": list("aabbb"), "y": [0, 0, 3, 1, 2]}, "y ~ x", "poisson", None),
        (
            {"x": [0, 1, 2, 3, 4, 5, 6, 7.0], "y": list("aabbabcc")},
            "y ~ x",
            None,
            ["(Intercept)", "x"],
        ),
    ],
)
def test_separation_is_said_in_words(data, formula, family, infinite):
    with pytest.warns(ld.ConvergenceWarning, match="separated: no finite estimate exists for"):
        fit = ld.glm(formula, pd.DataFrame(data), family=family)
    assert fit.separated and not fit.converged
    if infinite is not None:
        assert fit.separated == infinite
    assert "SEPARATED" in str(fit.summary()) and "separated" in str(fit)
    tidy = fit.tidy()
    known = tidy["std_error"].notna().any()  # else nothing is said of errors that are not there
    assert ("Standard errors assume the model's variances" in str(fit.summary())) == known
    at = tidy["term"].isin(fit.separated)
    errors = np.sqrt(np.diag(fit.covariance())) if fit.family.n_linear == 1 else tidy["std_error"]
    np.testing.assert_allclose(errors, tidy["std_error"])
    assert tidy.loc[at, "estimate"].notna().all() and tidy["p_value"].isna().any()


@pytest.mark.parametrize("n", [8, 30])
@pytest.mark.parametrize("seed", range(5))
def test_separation_of_all_rows_is_seen_however_small_the_information_is(n, seed):
    """A threshold parts all rows, so that no maximum exists (Albert and Anderson 1984)."""
    x = np.random.default_rng(seed).normal(size=n)
    df = pd.DataFrame({"x": x - (np.sort(x)[n // 2 - 1] + np.sort(x)[n // 2]) / 2})
    for y, family in ((df["x"] > 0, None), (np.where(df["x"] > 0.0, 2, 0), "multinomial")):
        with pytest.warns(ld.ConvergenceWarning, match="separated"):
            fit = ld.glm("y ~ x", df.assign(y=y), family=family)
        assert fit.separated == ["(Intercept)", "x"] and not fit.converged
        assert fit.tidy()["p_value"].isna().all()


@pytest.mark.long
def test_the_first_fit_of_a_process_is_as_silent_as_others():
    """statsmodels sets filters of warnings when it is imported, which is in the first fit."""
    code = (
        "import warnings, lodim as ld\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    ld.glm('y ~ x', {'x': [1, 2, 3, 4, 5, 6], 'y': [0, 0, 0, 1, 1, 1]})\n"
        "print(*[each.category.__name__ for each in seen])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["ConvergenceWarning"]


def test_nearly_separated_data_have_finite_estimates():
    df = pd.DataFrame({"x": range(40), "y": [0] * 19 + [1, 0] + [1] * 19})
    fit = ld.glm("y ~ x", df)
    assert fit.converged and not fit.separated
    other = sm.Logit(df["y"], sm.add_constant(df["x"])).fit(disp=False, maxiter=100)
    np.testing.assert_allclose(fit.coef(), other.params, rtol=1e-6)


# Covariances -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
def test_robust_covariances_of_least_squares(df, kind):
    fit = ld.glm("gaussian ~ x1 + x2 + g", df, covariance=kind)
    other = smf.ols("gaussian ~ x1 + x2 + g", df).fit(cov_type=kind)
    names = list(by_term(other.params).index)
    got = fit.covariance().loc[names, names]
    np.testing.assert_allclose(got, other.cov_params(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_clustered_covariances(df, family):
    fit = ld.glm(f"{family} ~ x1 + x2 + g", df, family=family, clusters="clinic")
    groups = {"groups": df["clinic"].astype("category").cat.codes}
    other = smf.glm(f"{family} ~ x1 + x2 + g", df, family=FAMILIES[family])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = other.fit(
            cov_type="cluster", cov_kwds=groups, tol=1e-14, tol_criterion="params", maxiter=100
        )
    names = list(by_term(other.params).index)
    np.testing.assert_allclose(
        fit.covariance().loc[names, names], other.cov_params(), rtol=1e-6, atol=1e-10
    )
    by_array = ld.glm(
        f"{family} ~ x1 + x2 + g", df, family=family, clusters=df["clinic"].to_numpy()
    )
    np.testing.assert_array_equal(by_array.covariance(), fit.covariance())
    assert "by clusters (20 of them)" in str(fit.summary())


@pytest.mark.parametrize("kind, power", [("HC0", 0), ("HC2", 1), ("HC3", 2)])
def test_robust_covariance_of_a_logistic_model_by_its_formula(df, kind, power):
    """The sandwich of Zeileis (2004), with the leverages of the last weighted least squares."""
    fit = ld.glm("binomial ~ x1 + x2", df, covariance=kind)
    X = np.column_stack([np.ones(N), df["x1"], df["x2"]])
    p = fit.predict(df).to_numpy()
    bread = np.linalg.inv(X.T @ ((p * (1 - p))[:, None] * X))
    root = np.sqrt(p * (1 - p))[:, None] * X
    h = np.diag(root @ bread @ root.T)
    u = (df["binomial"] - p) ** 2 / (1.0 - h) ** power
    expected = bread @ X.T @ (u.to_numpy()[:, None] * X) @ bread
    np.testing.assert_allclose(fit.covariance(), expected, rtol=1e-6)


def test_clustered_covariance_of_a_gamma_model_by_its_formula(df):
    """With the expected information, as R's sandwich has it; statsmodels takes the observed one."""
    fit = ld.glm("gamma ~ x1 + x2", df, family="gamma", clusters="clinic")
    X = np.column_stack([np.ones(N), df["x1"], df["x2"]])
    mean = fit.predict(df)
    slopes = pd.DataFrame(X * ((df["gamma"] - mean) / mean).to_numpy()[:, None])
    summed = slopes.groupby(df["clinic"].to_numpy()).sum().to_numpy()
    bread = np.linalg.inv(X.T @ X)
    expected = 20 / 19 * (N - 1) / (N - 3) * bread @ summed.T @ summed @ bread
    np.testing.assert_allclose(fit.covariance(), expected, rtol=1e-6)


def test_rows_without_a_cluster_are_left_out(df):
    data = df.assign(clinic=df["clinic"].where(df.index > 9))
    fit = ld.glm("gaussian ~ .", data[["gaussian", "x1", "clinic"]], clusters="clinic")
    assert fit.n == N - 10 and list(fit.coef().index) == ["(Intercept)", "x1"]


# Inference -------------------------------------------------------------------------------------


def test_intervals_of_least_squares(df):
    fit = ld.glm("gaussian ~ x1 + g", df)
    other = smf.ols("gaussian ~ x1 + g", df).fit().get_prediction(df).summary_frame(alpha=0.1)
    got = fit.predict(df, "interval", level=0.9)
    expected = other[["mean", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]]
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)
    assert list(got) == ["fit", "lower", "upper", "new_lower", "new_upper"]


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_intervals_of_the_mean_by_the_link(df, family):
    fit = ld.glm(f"{family} ~ x1 + x2", df, family=family)
    got = fit.predict(df, "interval")
    X = np.column_stack([np.ones(N), df["x1"], df["x2"]])
    error = np.sqrt(np.einsum("ij,jk,ik->i", X, fit.covariance().to_numpy(), X))
    df_t = fit.df_resid if family == "gamma" else np.inf
    reach = stats.t.ppf(0.975, df_t) * error
    eta = fit.predict(df, "link")
    inverse = (lambda z: 1.0 / (1.0 + np.exp(-z))) if family == "binomial" else np.exp
    np.testing.assert_allclose(got["lower"], inverse(eta - reach), rtol=1e-8)
    np.testing.assert_allclose(got["upper"], inverse(eta + reach), rtol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma"])
def test_intervals_hold_new_observations(family):
    """Of 60 rows, so that the estimates are uncertain too: drawn anew, 90 % of 20,000 are held."""
    rng = np.random.default_rng(4)
    held = []
    for _ in range(20):
        x, new = rng.normal(size=60), rng.normal(size=1000)
        draw = {
            "gaussian": lambda m: rng.normal(m, 2.0),
            "poisson": lambda m: rng.poisson(np.exp(1.5 + 0.5 * m)),
            "gamma": lambda m: rng.gamma(3.0, np.exp(m) / 3.0),
        }[family]
        fit = ld.glm("y ~ x", {"x": x, "y": draw(x).astype(float)}, family=family)
        limits = fit.predict({"x": new}, "interval", level=0.9)
        y = draw(new)
        held.append(np.mean((y >= limits["new_lower"]) & (y <= limits["new_upper"])))
    # Counts are whole: what holds 90 % of them holds more.
    assert 0.88 < np.mean(held) < (0.96 if family == "poisson" else 0.92)


@pytest.mark.parametrize("family", FAMILIES)
def test_anova(df, family):
    call = {"family": family} | MORE.get(family, {})
    small = ld.glm(f"{family} ~ x1", df, **call)
    large = ld.glm(f"{family} ~ x1 + g + x2", df, **call)
    table = small.anova(large)
    pd.testing.assert_frame_equal(table, large.anova(small))
    fall = small.deviance - large.deviance
    row = table.iloc[1]
    assert row["df"] == 3 and row["df_resid"] == N - 5
    if family in ("gaussian", "gamma", "tweedie"):
        assert row["F"] == pytest.approx(fall / 3 / large.dispersion)
        assert row["p_value"] == pytest.approx(stats.f.sf(row["F"], 3, N - 5))
    else:
        assert row["LR"] == pytest.approx(2 * (large.log_likelihood - small.log_likelihood))
        assert row["p_value"] == pytest.approx(stats.chi2.sf(fall, 3))


def test_anova_of_least_squares_is_that_of_statsmodels(df):
    table = ld.glm("gaussian ~ x1", df).anova(ld.glm("gaussian ~ x1 + g", df))
    models = [smf.ols(f"gaussian ~ {right}", df).fit() for right in ("x1", "x1 + g")]
    other = sm.stats.anova_lm(*models)
    np.testing.assert_allclose(table["F"], other["F"], rtol=1e-8)
    np.testing.assert_allclose(table["p_value"], other["Pr(>F)"], rtol=1e-8)


def test_anova_refuses_what_it_cannot_compare(df):
    fit = ld.glm("gaussian ~ x1", df)
    for other, words in (
        (ld.glm("poisson ~ x1 + g", df, family="poisson"), "same response and family"),
        (ld.glm("gaussian ~ x1 + g", df[:200]), "must have the same rows"),
        (ld.glm("gaussian ~ g", df), "not nested"),
        (
            ld.glm("gaussian ~ x1 + g", df, covariance="HC3"),
            "same covariance, not nonrobust and HC3",
        ),
        (7, "another fit of glm"),
    ):
        with pytest.raises(ld.ArgumentError, match=words):
            fit.anova(other)


def test_limits_and_their_level(df):
    fit = ld.glm("gaussian ~ x1 + g", df)
    other = smf.ols("gaussian ~ x1 + g", df).fit().conf_int(0.2)
    tidy = fit.tidy(level=0.8).set_index("term")
    expected = by_term(other[0]), by_term(other[1])
    for name, limit in zip(("conf_low", "conf_high"), expected, strict=True):
        np.testing.assert_allclose(tidy[name][limit.index], limit, rtol=1e-8)
    for level in (0, 1, "x", True):
        with pytest.raises(ld.ArgumentError, match="level must be between 0 and 1"):
            fit.tidy(level=level)


# The rest --------------------------------------------------------------------------------------


def test_cross_validation_without_a_setting(df):
    cv = ld.cv(ld.glm, "gaussian ~ x1 + g", df, folds=np.arange(N) % 4)
    fold, losses = np.arange(N) % 4, []
    for k in range(4):
        fit = ld.glm("gaussian ~ x1 + g", df[fold != k])
        losses.append(fit.evaluate(df[fold == k])["deviance"][0])
    assert cv.tidy()["mean"][0] == pytest.approx(np.mean(losses), rel=1e-10)
    with pytest.raises(ld.ArgumentError, match="glm has no penalty, and so no path"):
        ld.path(ld.glm, "gaussian ~ x1", df)


def test_residuals_leverages_and_cooks_distances(df):
    fit = ld.glm("gaussian ~ x1 + g", df)
    influence = smf.ols("gaussian ~ x1 + g", df).fit().get_influence()
    rows = fit.diagnostics
    np.testing.assert_allclose(rows.leverage, influence.hat_matrix_diag, rtol=1e-8)
    np.testing.assert_allclose(rows.pearson, influence.resid_studentized_internal, rtol=1e-8)
    np.testing.assert_allclose(rows.deviance, influence.resid_studentized_internal, rtol=1e-8)
    np.testing.assert_allclose(rows.cook, influence.cooks_distance[0], rtol=1e-8)


@pytest.mark.parametrize("kind", ["coefficients", "residuals", "qq", "leverage"])
def test_plots(df, axes, kind):
    fit = ld.glm("gaussian ~ x1 + g", df)
    assert fit.plot(kind, ax=axes) is axes and axes.has_data()
    classes = ld.glm("multinomial ~ x1", df)
    if kind == "coefficients":
        assert len(classes.plot(kind).get_yticklabels()) == 2
    else:
        with pytest.raises(ld.ArgumentError, match="more than two classes"):
            classes.plot(kind)


def test_a_plot_of_rows_without_leverage(axes):
    df = pd.DataFrame({"x": [1e3, -1e3], "y": ["p", "q"]})
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("y ~ x", df)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.plot("leverage", ax=axes)


def test_rows_kept_for_the_plots_are_few(df):
    one = ld.glm("gaussian ~ x1", df, control={"diagnostic_rows": 50}).diagnostics
    assert len(set(one.label)) == 50
    none = ld.glm("gaussian ~ x1", df, control={"diagnostic_rows": 0})
    with pytest.raises(ld.ArgumentError, match="stores no residuals"):
        none.plot("qq")


def test_weights_of_zero_do_not_count(df):
    weights = (df.index % 3 > 0).astype(float)
    fit = ld.glm("gaussian ~ x1 + g", df, weights=weights)
    part = ld.glm("gaussian ~ x1 + g", df[weights > 0])
    pd.testing.assert_frame_equal(fit.tidy(), part.tidy(), rtol=1e-9)
    assert fit.n == part.n and fit.aic == pytest.approx(part.aic)


@pytest.mark.parametrize("family", [*FAMILIES, "multinomial"])
def test_saved_fits_say_the_same(df, family, tmp_path):
    fit = ld.glm(f"{family} ~ x1 + g", df, family=family, **MORE.get(family, {}))
    fit.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit")
    assert str(back.summary()) == str(fit.summary())
    pd.testing.assert_frame_equal(back.tidy(), fit.tidy())
    types = [t for t in fit.types if t not in ("class",)]
    for type_ in types:
        assert back.predict(df, type_).equals(fit.predict(df, type_))


# Odd data ----------------------------------------------------------------------------------------


def test_what_is_not_separated_has_its_own_errors():
    """Level c says yes always: its estimate is infinite, and the rest is as without its rows."""
    df = pd.DataFrame({"g": np.repeat(["a", "b", "c"], [20, 30, 10]), "y": [0, 1] * 25 + [1] * 10})
    with pytest.warns(ld.ConvergenceWarning, match=r"exists for g\[c\];"):
        fit = ld.glm("y ~ g", df)
    part = ld.glm("y ~ g", df[:50])
    assert fit.separated == ["g[c]"]
    np.testing.assert_allclose(fit.tidy()["std_error"][:2], part.tidy()["std_error"], rtol=1e-6)
    expected = part.predict(df[:50], "interval")
    np.testing.assert_allclose(fit.predict(df[:50], "interval"), expected, rtol=1e-6)
    beyond = fit.predict(df[50:], "interval")
    assert (beyond["lower"] == 0).all() and (beyond["upper"] == 1).all()
    cov = fit.covariance().to_numpy()
    np.testing.assert_allclose(cov, cov.T, atol=1e-12)


def test_separation_of_several_classes_leaves_the_others_their_errors():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=90), "k": ["a", "b", "c"] * 30})
    df["only_c"] = (df["k"] == "c") * (df.index % 2)
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("k ~ x + only_c", df)
    tidy = fit.tidy().set_index(["level", "term"])
    assert np.isnan(tidy["std_error"]["c", "only_c"])
    part = ld.glm("k ~ x", df[df["only_c"] == 0]).tidy().set_index(["level", "term"])
    for term in ("(Intercept)", "x"):
        assert tidy["std_error"]["b", term] == pytest.approx(part["std_error"]["b", term], rel=1e-5)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Values far outside all others")
@pytest.mark.parametrize("family", ["gamma", "poisson"])
def test_heavy_tails_and_wide_offsets_reach_the_maximum(family):
    """Where whole steps of reweighted least squares go astray: the score equations hold."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.standard_cauchy((80, 3))
        df = pd.DataFrame(X, columns=["a", "b", "c"])
        df["y"] = rng.gamma(0.2, 5.0, 80) if family == "gamma" else rng.poisson(2.0, 80)
        df["o"] = 3.0 * rng.normal(size=80)
        fit = ld.glm("y ~ a + b + c", df, family=family, offset="o")
        assert fit.converged
        for one in fit.design.wild:
            x = X[:, "abc".index(one.feature)]
            x[one.beyond(x)] = one.middle
        mean = fit.predict(df).to_numpy()
        u = (df["y"] - mean) / (mean if family == "gamma" else 1.0)
        size = np.abs(u) @ np.abs(np.column_stack([np.ones(80), X]))
        assert (np.abs(u @ np.column_stack([np.ones(80), X])) <= 1e-6 * size).all()


def test_columns_that_are_nearly_collinear_converge():
    rng = np.random.default_rng(0)
    year = rng.integers(1950, 2024, 400).astype(float)
    k = np.where(year + rng.normal(0, 30, 400) > 1990, "a", rng.choice(["b", "c"], 400))
    fit = ld.glm("k ~ year + I(year**2) + I(year**3)", {"year": year, "k": k})
    assert fit.converged
    prob, observed = (
        fit.predict({"year": year}).to_numpy(),
        np.equal.outer(k, np.array(list("abc"))),
    )
    z = (year - year.mean()) / year.std()
    X = np.column_stack([np.ones(400), z, z**2, z**3])
    assert np.abs(X.T @ (observed - prob)).max() < 1e-6


def test_intervals_of_counts_and_amounts_by_simulation():
    """With robust errors, that may be wide: quantiles of 400,000 draws."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    for family, y in (("poisson", rng.poisson(np.exp(1 + x))), ("gamma", rng.gamma(2, np.exp(x)))):
        fit = ld.glm("y ~ x", {"x": x, "y": y.astype(float)}, family=family, covariance="HC1")
        new = {"x": np.array([-1.0, 0.0, 2.0, 6.0])}
        with pytest.warns(ld.DataWarning, match=f"the variance of the {family} family"):
            got = fit.predict(new, "interval", level=0.8)
        eta = fit.predict(new, "link").to_numpy()
        X = np.column_stack([np.ones(4), new["x"]])
        error = np.sqrt(np.einsum("ij,jk,ik->i", X, fit.covariance().to_numpy(), X))
        for i in range(4):
            mean = np.exp(eta[i] + error[i] * rng.normal(size=400_000))
            shape = 1.0 / fit.dispersion
            draws = rng.poisson(mean) if family == "poisson" else rng.gamma(shape, mean / shape)
            expected = np.quantile(draws, [0.1, 0.9])
            limits = got[["new_lower", "new_upper"]].iloc[i]
            np.testing.assert_allclose(
                limits, expected, rtol=0.03, atol=1.01 * (family == "poisson")
            )


def test_a_leverage_of_one_leaves_hc3_undefined(df):
    data = df.assign(g=np.where(df.index == 7, "alone", df["g"]))
    fit = ld.glm("gaussian ~ x1 + g", data, covariance="HC3")
    assert fit.tidy()["std_error"].isna().all() and "leverage 1" in str(fit.summary())
    assert ld.glm("gaussian ~ x1 + g", data, covariance="HC1").tidy()["std_error"].notna().all()
    assert np.isnan(ld.glm("gaussian ~ x1 + g", data).diagnostics.cook).sum() == 1


def test_a_row_that_asks_for_an_aliased_coefficient_is_not_answered(df):
    data = df.assign(twice=2.0 * df["x1"])
    fit = ld.glm("gaussian ~ x1 + twice", data)
    new = pd.DataFrame({"x1": [1.0, 1.0], "twice": [2.0, -5.0]})
    assert fit.predict(new).isna().tolist() == [False, True]
    assert fit.predict(new, "interval").isna().all(axis=1).tolist() == [False, True]


def test_clusters_keep_their_names(df):
    ids = 1234567890123456000 + np.arange(N) // 4
    assert ld.glm("gaussian ~ x1", df.assign(id=ids), clusters="id").log["n_clusters"] == 100
    some = df["clinic"].astype(object).where(df.index > 9)
    kinds = (ld.glm("gaussian ~ x1", df, clusters=c) for c in (some, list(some)))
    assert [(fit.n, fit.log["n_clusters"]) for fit in kinds] == [(N - 10, 20)] * 2
    with pytest.raises(ld.DataError, match="row labels of the data"):
        ld.glm("gaussian ~ x1", df, clusters=df["clinic"].sample(frac=1, random_state=0))


def test_few_clusters_have_few_degrees_of_freedom(df):
    fit = ld.glm("gaussian ~ x1", df, clusters="g")
    tidy = fit.tidy()
    expected = 2.0 * stats.t.sf(np.abs(tidy["statistic"]), 2)
    np.testing.assert_allclose(tidy["p_value"], expected, rtol=1e-10)
    assert "too small: use at least 30" in " ".join(str(fit.summary()).split())


def test_folds_are_of_whole_clusters(df):
    """A feature that is constant within clusters and says nothing must not seem to."""
    rng = np.random.default_rng(0)
    c = np.repeat(np.arange(40), 10)
    data = pd.DataFrame({f"x{k}": np.repeat(rng.normal(size=40), 10) for k in range(10)})
    data["c"], data["y"] = c, np.repeat(rng.normal(size=40), 10) + rng.normal(size=400)
    apart = ld.cv(ld.glm, "y ~ .", data, clusters="c").tidy()["mean"][0]
    mixed = ld.cv(ld.glm, "y ~ . - c", data).tidy()["mean"][0]
    assert apart > data["y"].var() > mixed


def test_a_class_of_weight_zero_is_no_parameter():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"x": rng.normal(size=60), "y": list("abc") * 20})
    df["w"] = (df["y"] != "a") * 1.0
    with pytest.warns(ld.ConvergenceWarning):
        fit = ld.glm("y ~ x", df, weights="w")
    part = ld.glm("y ~ x", df[df["y"] != "a"])
    assert fit.df == part.df == 2 and fit.aic == pytest.approx(part.aic, rel=1e-8)


def test_anova_knows_the_weights_and_the_rows(df):
    small, large = "binomial ~ x1", "binomial ~ x1 + x2"
    for changed in (
        ld.glm(small, df, weights=np.full(N, 5.0)),
        ld.glm(small, df.sample(frac=1.0, random_state=0)),
    ):
        with pytest.raises(ld.ArgumentError, match="in the same order"):
            changed.anova(ld.glm(large, df))


@SATURATED
def test_saturated_fits_with_robust_errors_have_none():
    df = pd.DataFrame({"y": [1.0, 2, 4, 3], "a": [1.0, 2, 3, 5], "b": [1.0, 0, 0, 1]})
    df["c"] = [0.0, 1, 5, 2]
    for how in ({"covariance": "HC1"}, {"clusters": [1, 1, 2, 2]}):
        assert ld.glm("y ~ .", df, **how).tidy()["std_error"].isna().all()


def test_two_classes_by_the_multinomial_family(df):
    one = ld.glm("binomial ~ x1 + g", df, family="multinomial")
    two = ld.glm("binomial ~ x1 + g", df)
    np.testing.assert_allclose(one.coef(), two.coef(), atol=1e-8)
    assert "interval" not in one.types and "interval" in two.types


def test_small_units_are_not_shown_as_zero(df):
    fit = ld.glm("gaussian ~ t", df.assign(t=1e17 * df["x1"]))
    line = next(line for line in str(fit).splitlines() if line.startswith("t "))
    assert "e-1" in line


@SATURATED
def test_many_aliased_terms_make_a_short_report():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(40, 300))).add_prefix("x").assign(y=rng.normal(size=40))
    assert len(str(ld.glm("y ~ .", df).summary())) < 6000


def test_two_rows_are_fitted_exactly(tmp_path):
    """No residual is left: one warning, and no number that no file can hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "There are as many coefficients as rows")
        fit = ld.glm("y ~ x", {"x": [0.0, 1.0], "y": [-2.0, 1.0]})
    fit.save(tmp_path / "fit.lodim")
    assert np.isfinite(fit.log["log_likelihood"])
    assert str(ld.load(tmp_path / "fit.lodim")) == str(fit)


def test_rows_that_ask_for_an_aliased_coefficient():
    """As R's predict.lm answers them, where that is asked for."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=20)}).assign(z=lambda d: 2 * d["x"])
    data["y"] = data["x"] + rng.normal(size=20)
    fit, new = ld.glm("y ~ x + z", data), data.head(3).assign(z=5.0)
    assert fit.aliased == {"z": "x"} and fit.predict(new).isna().all()
    with pytest.warns(ld.DataWarning, match="3 of 3 rows need .*'z'"):
        answer = fit.predict(new, rank_deficient="zero")
    np.testing.assert_allclose(answer, ld.glm("y ~ x", data).predict(new), rtol=1e-10)
    assert fit.predict(data, rank_deficient="zero").equals(fit.predict(data))
    with pytest.raises(ld.ArgumentError, match="rank_deficient must be one of missing, zero"):
        fit.predict(new, rank_deficient="none")


def test_a_feature_whose_square_is_beyond_double_precision(df):
    tiny = df.assign(x1=1e-158 * df["x1"])
    fit, other = (ld.glm("gaussian ~ x1 + x2", data) for data in (tiny, df))
    estimates, others = fit.tidy(), other.tidy()
    for column in ("estimate", "std_error"):
        expected = others[column].to_numpy() * [1.0, 1e158, 1.0]
        np.testing.assert_allclose(estimates[column], expected, rtol=1e-10)
    assert np.isposinf(fit.covariance().loc["x1", "x1"])


def test_intervals_of_new_rows_under_few_clusters():
    """The dispersion keeps its n - q degrees of freedom, the mean those of the clusters."""
    rng = np.random.default_rng(1)
    df = pd.DataFrame({"a": rng.normal(size=400), "cl": np.arange(400) % 4})
    df["y"] = df["a"] + rng.normal(size=400)
    fit = ld.glm("y ~ a", df, clusters="cl")
    got = fit.predict(df, "interval")
    width = 2.0 * stats.t.ppf(0.975, 398) * np.sqrt(fit.dispersion)
    assert (got["new_upper"] - got["new_lower"]).between(width, 1.01 * width).all()
    error = (got["upper"] - got["lower"]) / (2.0 * stats.t.ppf(0.975, 3))
    one, two = error**2, fit.dispersion
    of_sum = np.minimum((one + two) ** 2 / (one**2 / 3 + two**2 / 398), 398)  # Satterthwaite
    expected = got["fit"] + stats.t.ppf(0.975, of_sum) * np.sqrt(one + two)
    np.testing.assert_allclose(got["new_upper"], expected, rtol=1e-10)


def test_intervals_of_new_rows_warn_of_the_variance_that_they_assume(df):
    fit = ld.glm("gaussian ~ x1", df, covariance="HC3")
    with pytest.warns(ld.DataWarning, match="assume the variance of the gaussian family"):
        got = fit.predict(df[:2], "interval")
    assert got.notna().all(axis=None)


def test_odds_ratios_and_levels_of_the_summary(df):
    fit = ld.glm("binomial ~ x1 + g", df)
    plain, ratios = fit.tidy(level=0.9), fit.tidy(level=0.9, exponentiate=True)
    for name in ("estimate", "conf_low", "conf_high"):
        np.testing.assert_array_equal(ratios[name], np.exp(plain[name]))
    same = ["term", "std_error", "statistic", "p_value"]
    pd.testing.assert_frame_equal(ratios[same], plain[same])
    assert "90% interval" in str(fit.summary(level=0.9)) and "95%" in str(fit.summary())
    with pytest.raises(ld.ArgumentError, match="needs a log, logit or softmax link"):
        ld.glm("gaussian ~ x1", df).tidy(exponentiate=True)
    with pytest.raises(ld.ArgumentError, match="level"):
        fit.summary(level=2)


def test_as_many_coefficients_as_rows_is_said():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 7)), columns=list("yabcdef"))
    with pytest.warns(ld.DataWarning, match="as many coefficients as rows"):
        fit = ld.glm("y ~ .", df)
    assert "the model fits any responses exactly" in " ".join(str(fit.summary()).split())
    assert "as many coefficients as rows" in str(fit)


def test_a_step_that_is_not_finite_is_no_convergence(monkeypatch):
    monkeypatch.setattr("lodim.models.glm.estimate.cho_solve", lambda factor, b: np.nan * b)
    with pytest.warns(ld.ConvergenceWarning, match="glm did not converge"):
        fit = ld.glm("disease ~ age", ld.data("heart"))
    assert not fit.converged


@pytest.mark.filterwarnings("ignore:The model fits the response exactly")
def test_prints_of_few_and_many_degrees_of_freedom_and_of_huge_statistics():
    df = pd.DataFrame({"x": np.arange(8.0), "c": np.arange(8) % 2, "z": np.arange(8) % 3})
    fit = ld.glm("x ~ z", df, clusters="c")
    assert "t distribution with 1 degree of freedom." in " ".join(str(fit.summary()).split())
    fit = ld.glm("x ~ z", df)
    fit.log["df_resid"] = 1_234_567
    assert "t distribution with 1234567 degrees" in " ".join(str(fit.summary()).split())
    exact = ld.glm("y ~ z", df.assign(y=0.1 + 0.3 * df["z"]))
    assert exact.tidy()["statistic"].abs().max() > 1e12
    assert re.search(r" \d\.\d+e[+]?1\d ", str(exact.summary()))


def test_a_covariance_of_several_classes_has_rows_per_class(df):
    found = ld.glm("multinomial ~ x1", df).covariance()
    assert found.index.names == ["level", "term"] and len(found) == 4
    np.testing.assert_allclose(found, found.T)


def test_a_level_is_for_intervals(df):
    with pytest.raises(ld.ArgumentError, match="level= needs type='interval', not 'link'"):
        ld.glm("gaussian ~ x1", df).predict(df, "link", level=0.9)
    with pytest.raises(ld.ArgumentError, match="only an intercept, so there is no coefficient"):
        ld.glm("gaussian ~ 1", df).plot()


def test_iterations_that_are_cut_short_are_told_everywhere(df):
    with pytest.warns(ld.ConvergenceWarning):
        fit = ld.glm("poisson ~ x1", df, family="poisson", control={"max_iter": 1})
    assert "the iterations did not converge" in repr(fit)
    assert any("NOT converged: raise control=" in note for note in fit.summary().notes)


def test_counts_with_fractions_are_noted_in_the_summary(df):
    with pytest.warns(ld.DataWarning, match="not a whole number"):
        fit = ld.glm("y ~ x1", df.assign(y=df["poisson"] + 0.5), family="poisson")
    assert any("but standard errors assume counts" in note for note in fit.summary().notes)


def test_large_cooks_distances_have_lines_in_the_plot_of_leverages(df):
    far = df.assign(
        y=df["gaussian"].where(df.index > 0, 20.0), x1=df["x1"].where(df.index > 0, 9.0)
    )
    assert "Cook" in ld.glm("y ~ x1", far).plot("leverage").get_xlabel()


def test_memory_of_quantile_regression_is_not_estimated(df):
    found = ld.estimate(ld.glm, "gaussian ~ x1", df, family="quantile", quantile=0.5)
    assert any("glm itself is not included" in note for note in found.notes)
