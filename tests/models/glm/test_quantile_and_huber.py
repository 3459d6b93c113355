"""Quantile and Huber regression, compared with statsmodels' QuantReg and RLM and with CVXPY."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import minimize

import lodim as ld
from lodim.family import make

N = 250
FORMULA = "y ~ a + b + g"
FINE = 1e9  # QuantReg's tolerances are absolute: they are small for a response of this size
FAMILIES = [{"family": "quantile", "quantile": 0.71}, {"family": "huber"}]


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(7)
    df = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    df["g"] = rng.choice(["u", "v", "w"], N)
    df["y"] = 50.0 + 3.0 * df["a"] - df["b"] + (df["g"] == "u") + 2.0 * rng.standard_t(3, N)
    df["w"] = rng.integers(0, 4, N)
    df["o"] = rng.normal(size=N)
    return df


def matrix(df):
    return np.column_stack([np.ones(len(df)), df["a"], df["b"], df["g"] == "v", df["g"] == "w"])


@pytest.mark.parametrize("quantile", [0.13, 0.47, 0.77])
def test_quantile_against_statsmodels(df, quantile):
    fit = ld.glm(FORMULA, df, family="quantile", quantile=quantile, offset="o")
    model = sm.QuantReg(FINE * (df["y"] - df["o"]).to_numpy(), matrix(df))
    peer = model.fit(quantile, vcov="iid", max_iter=5000, p_tol=1e-2)
    tidy = fit.tidy(level=0.9)
    np.testing.assert_allclose(tidy["estimate"], peer.params / FINE, rtol=1e-8)
    np.testing.assert_allclose(tidy["std_error"], peer.bse / FINE, rtol=1e-8)
    np.testing.assert_allclose(tidy["p_value"], peer.pvalues, rtol=1e-6)
    np.testing.assert_allclose(tidy[["conf_low", "conf_high"]], peer.conf_int(0.1) / FINE)
    assert fit.dispersion == pytest.approx(quantile * (1 - quantile) * (peer.sparsity / FINE) ** 2)
    wald = peer.f_test(np.eye(5)[3:])
    last = fit.drop1().iloc[-1]
    assert [last["wald_F"], last["p_value"]] == pytest.approx([wald.fvalue, wald.pvalue])


@pytest.mark.parametrize("seed", range(5))
def test_quantile_is_exact(seed):
    """QuantReg stops before the minimum where many rows are close to it, unlike CVXPY."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    df["y"], weights = np.round(df.sum(axis=1) + rng.standard_t(2, 200)), rng.exponential(size=200)
    fit = ld.glm("y ~ .", df, family="quantile", quantile=0.9, weights=weights)
    X, y, b = np.column_stack([np.ones(200), df[list("abcd")]]), df["y"].to_numpy(), cp.Variable(5)
    rest = y - X @ b
    problem = cp.Problem(cp.Minimize(weights @ cp.maximum(0.9 * rest, -0.1 * rest)))
    problem.solve("CLARABEL")
    rest = y - X @ fit.coef()
    least = weights @ np.maximum(0.9 * rest, -0.1 * rest)
    assert least <= problem.value * (1.0 + 1e-9) and fit.converged
    assert 0.5 * fit.log["deviance"] == pytest.approx(least, rel=1e-12)
    assert (np.abs(rest) < 1e-12).sum() >= 5


@pytest.mark.parametrize(("n", "known"), [(41, False), (42, True)])
def test_the_summary_says_when_rows_are_too_few_for_standard_errors(df, n, known):
    fit = ld.glm("y ~ a", df[:n], family="quantile", quantile=0.9)
    assert fit.tidy()["std_error"].notna().all() == known
    assert ("Standard errors are unknown" in str(fit.summary())) != known


def test_weighted_quantiles_are_those_of_weighted_columns(df):
    """As in R's quantreg, with its standard errors."""
    some = df[df["w"] > 0]
    fit = ld.glm(FORMULA, df, family="quantile", quantile=0.6, weights="w")
    w, X = some["w"].to_numpy(), matrix(some)
    peer = sm.QuantReg(FINE * w * some["y"].to_numpy(), w[:, None] * X)
    peer = peer.fit(0.6, vcov="iid", max_iter=5000, p_tol=1e-2)
    tidy = fit.tidy()
    np.testing.assert_allclose(tidy["estimate"], peer.params / FINE, rtol=1e-8)
    np.testing.assert_allclose(tidy["std_error"], peer.bse / FINE, rtol=1e-8)
    assert fit.n == len(some)


def test_huber_against_statsmodels(df):
    fit = ld.glm(FORMULA, df, family="huber", offset="o")
    peer = sm.RLM((df["y"] - df["o"]).to_numpy(), matrix(df), sm.robust.norms.HuberT())
    peer = peer.fit(conv="coefs", tol=1e-13, maxiter=1000)
    tidy = fit.tidy()
    np.testing.assert_allclose(tidy["estimate"], peer.params, rtol=1e-8)
    np.testing.assert_allclose(tidy["std_error"], peer.bse, rtol=1e-8)
    assert fit.family.limit == pytest.approx(1.345 * peer.scale, rel=1e-8)
    reach = stats.t.ppf(0.975, N - 5) * peer.bse
    np.testing.assert_allclose(tidy["conf_high"], peer.params + reach, rtol=1e-8)
    wald = peer.f_test(np.eye(5)[3:])
    assert fit.drop1().iloc[-1]["wald_F"] == pytest.approx(wald.fvalue)


def test_huber_with_weights(df):
    """Weights count as repeated rows; the limit is that of the repeated rows."""
    fit = ld.glm(FORMULA, df, family="huber", weights="w")
    again = ld.glm(FORMULA, df.loc[df.index.repeat(df["w"])], family="huber")
    np.testing.assert_allclose(fit.coef(), again.coef(), rtol=1e-8)
    assert fit.family.limit == pytest.approx(again.family.limit, rel=1e-8)
    weights = np.random.default_rng(0).exponential(size=N)
    fit, X = ld.glm(FORMULA, df, family="huber", weights=weights), matrix(df)
    of, y = make("huber", 0, fit.family.limit), df["y"].to_numpy()
    loss = lambda b: weights @ of.deviance(y, (X @ b)[:, None])  # noqa: E731
    found = fit.coef().to_numpy()
    slope = lambda b: -2.0 * X.T @ (weights * of.bounded(y - X @ b))  # noqa: E731
    assert np.abs(slope(found)).max() < 1e-8 * N
    assert loss(found) <= minimize(loss, found, jac=slope, method="BFGS").fun * (1.0 + 1e-12)


def test_huber_beyond_memory_is_that_in_memory(df, monkeypatch):
    fit = ld.glm(FORMULA, df, family="huber")
    monkeypatch.setattr("lodim.models.glm.estimate.MAX_MEMORY_ROWS", 10)
    again = ld.glm(FORMULA, df, family="huber")
    np.testing.assert_allclose(again.tidy()["estimate"], fit.tidy()["estimate"], rtol=1e-9)
    np.testing.assert_allclose(again.tidy()["std_error"], fit.tidy()["std_error"], rtol=1e-7)


@pytest.mark.parametrize(
    "y, rest",
    [(lambda d: 1.0 + 2.0 * d["a"], 0.0), (lambda d: d["z"], 0.3), (lambda d: 5.0 + d["z"], 0.4)],
)
@pytest.mark.filterwarnings("ignore:The model fits more than half of the rows exactly")
def test_rows_that_fit_exactly(df, y, rest):
    """All rows, or the most, lie on a plane: both families find it."""
    rng = np.random.default_rng(0)
    zero = np.where(rng.random(N) < rest, rng.normal(size=N), 0.0)
    part = df.assign(z=df["a"] + zero)
    part["y"] = y(part)
    for arguments in ({"family": "quantile", "quantile": 0.5}, {"family": "huber"}):
        fit = ld.glm("y ~ a + b", part, **arguments)
        np.testing.assert_allclose(fit.coef()["b"], 0.0, atol=1e-10)
        assert fit.converged and fit.log["exact"] and fit.tidy()["std_error"].max() < 1e-8


@pytest.mark.parametrize("arguments", FAMILIES, ids=["quantile", "huber"])
def test_responses_of_weight_zero_make_no_fit_exact(df, arguments):
    wild = df.assign(y=df["y"].where(df.index >= 3, 1e30), w=np.where(df.index >= 3, 1.0, 0.0))
    assert not ld.glm(FORMULA, wild, weights="w", **arguments).log["exact"]


def test_outliers_move_least_squares_only(df):
    wild = df.assign(y=df["y"].where(df.index >= 10, 1e4 * df["y"]))
    for arguments in FAMILIES:
        moved, fit = (ld.glm(FORMULA, rows, **arguments) for rows in (wild, df))
        apart = np.abs(moved.coef() - fit.coef()) / fit.tidy().set_index("term")["std_error"]
        assert apart.max() < 2.5


@pytest.mark.parametrize("arguments", FAMILIES, ids=["quantile", "huber"])
def test_tests_are_walds(df, arguments):
    fit, small = ld.glm(FORMULA, df, **arguments), ld.glm("y ~ a", df, **arguments)
    table = fit.anova(data=df)
    assert table["term"].tolist() == ["a", "b", "g"]
    pd.testing.assert_series_equal(table.iloc[-1], fit.drop1().iloc[-1])
    t = small.tidy()["statistic"][1]
    assert table["wald_F"][0] == pytest.approx(t**2, rel=1e-8 if "quantile" in arguments else 0.2)
    other = fit.anova(ld.glm("y ~ a + b", df, **arguments))
    assert list(other) == ["formula", "df_resid", "df", "wald_F", "p_value"]
    assert other.iloc[1, 2:].tolist() == table.iloc[-1, 1:].tolist()
    assert np.isnan([fit.log_likelihood, fit.aic, fit.bic]).all() and fit.diagnostics is None


@pytest.mark.parametrize("arguments", FAMILIES, ids=["quantile", "huber"])
def test_what_is_refused(df, arguments):
    for more in ({"covariance": "HC0"}, {"clusters": "g"}):
        with pytest.raises(ld.ArgumentError, match=r"must be 'nonrobust' for .*lodim\.bootstrap"):
            ld.glm("y ~ a + b", df, **arguments, **more)
    fit = ld.glm(FORMULA, df, **arguments)
    assert fit.predict(df, "interval").columns.tolist() == ["fit", "lower", "upper"]
    with pytest.raises(ld.ArgumentError, match="stores no residuals"):
        fit.plot("residuals")
    if "quantile" in arguments:
        other = ld.glm("y ~ a", df, family="quantile", quantile=0.5)
        with pytest.raises(ld.ArgumentError, match=r"same response and family.*quantile 0\.71"):
            fit.anova(other)
    with pytest.raises(ld.ArgumentError, match="identity link"):
        fit.tidy(exponentiate=True)


def test_quantile_needs_a_number():
    with pytest.raises(ld.ArgumentError, match="needs quantile=, a number between 0 and 1"):
        ld.glm("mpg ~ weight", ld.data("autompg"), family="quantile")


def test_quantiles_need_memory(df, monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    df.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("lodim.design.batch.SPAN_ROWS", 10)
    monkeypatch.setattr("lodim.fitting.fit_model.fits_memory", lambda *shape: False)
    with pytest.raises(ld.ArgumentError, match="family='quantile' of glm needs all rows in memory"):
        ld.glm("y ~ a", str(tmp_path / "a.parquet"), family="quantile", quantile=0.5)
    ld.glm("y ~ a", str(tmp_path / "a.parquet"), family="huber")
