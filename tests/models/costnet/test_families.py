"""costnet with counts and amounts: refits against glm, and all that models share."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import lodim as ld
from contract.cases import some_long
from lodim.models.costnet.search.refit import SEPARATED
from lodim.sklearn import CostnetRegressor

CALLS = {
    "poisson": ("count ~ a + b + c + g", {"offset": "log_time"}),
    "gamma": ("amount ~ a + b + c + g", {}),
    "tweedie": ("claim ~ a + b + c + g", {"power": 1.4}),
}
COSTS = {"a": 1, "b": 2, "c": 4, "g": 8}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    df["g"] = rng.choice(["u", "v", "w"], n)
    mean = np.exp(0.5 + 0.6 * df["a"] - 0.4 * df["b"] + 0.5 * (df["g"] == "u"))
    time = rng.uniform(0.5, 2.0, n)
    df["log_time"], df["count"] = np.log(time), rng.poisson(mean * time)
    df["amount"] = rng.gamma(2.0, mean / 2.0)
    df["claim"] = df["amount"] * rng.binomial(1, 0.7, n)
    return df


@pytest.fixture(scope="module")
def df():
    return rows()


@pytest.fixture(scope="module", params=some_long(CALLS, ["gamma", "tweedie"]))
def case(request, df):
    formula, more = CALLS[request.param]
    call = {"family": request.param, "costs": COSTS, "threads": 1} | more
    return formula, call, ld.costnet(formula, df, **call)


def test_a_model_without_features_predicts_by_its_offset(df):
    def note(**more):
        fit = ld.costnet("count ~ a", df, family="poisson", budget=0, **more)
        assert fit.predict(df).nunique() == (len(df) if more else 1)
        return " ".join(str(fit.summary()).split())

    assert "predicts the same for every row." in note()
    assert "predicts the same for every row, apart from the offset." in note(offset="log_time")


@pytest.mark.long
def test_a_refitted_model_is_the_glm_of_its_terms(case, df):
    formula, call, fit = case
    assert fit.converged and fit.prices()["cost"].max() >= 11.0
    for cost, deviance in zip(fit.prices()["cost"], fit.prices()["deviance"], strict=True):
        model = fit.at(budget=cost)
        terms = [name for name in COSTS if name in model.bought().index]
        shares = fit.estimates.frontier.relax
        if not terms or shares[model.position[1]] < 1.0:
            continue
        peer = ld.glm(
            f"{formula.split()[0]} ~ {' + '.join(terms)}",
            df,
            **{k: call[k] for k in ("family", "offset", "power") if k in call},
        )
        assert deviance * len(df) == pytest.approx(peer.log["deviance"], rel=1e-9)
        np.testing.assert_allclose(model.predict(df), peer.predict(df), rtol=30 * SEPARATED)


def test_the_frontier_finds_what_matters_and_holds_on_new_rows(case):
    fit = case[2]
    new = rows(3000, seed=1)
    found = fit.at(budget=3).bought().index
    assert set(found) == {"a", "b"} and "c" not in fit.bought().index
    dear = fit.at(budget=15).evaluate(new)["dev_ratio"].item()
    cheap = fit.at(budget=1).evaluate(new)["dev_ratio"].item()
    assert dear > cheap + 0.02 > 0.12


@pytest.mark.long
def test_residuals_are_orthogonal_to_the_features(case, df):
    formula, call, _ = case
    fit = ld.costnet(formula, df, relax=1.0, budget=np.inf, **call).at(budget=3)
    mean, y = fit.predict(df), df[formula.split()[0]]
    residual = (y - mean) / mean ** (fit.family.power - 1.0)
    assert abs(residual.mean()) < 1e-6 and abs((residual * df["a"]).mean()) < 1e-6


def test_what_models_share(case, df, tmp_path):
    fit = case[2]
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    np.testing.assert_allclose(np.log(fit.predict(df)), fit.predict(df, "link"), rtol=1e-12)
    assert fit.predict(df[:2], "cost").tolist() == [fit.cost] * 2
    assert sorted(fit.staged(df[:2])) == fit.prices()["cost"].tolist()
    names = {}
    exec(fit.to_python(), names)
    written = [names["predict"](row) for row in df[:9].to_dict("records")]
    np.testing.assert_allclose(written, fit.predict(df[:9]), rtol=1e-9)
    assert "log link" in str(fit) and "In units of the log of the mean of" in str(fit.summary())
    assert "share of the deviance" in " ".join(str(fit.summary()).split())
    fit.report(tmp_path / "a.html", df)
    assert "A log-linear model" in (tmp_path / "a.html").read_text()


@pytest.mark.long
def test_files_have_the_same_fit(case, df, tmp_path):
    formula, call, fit = case
    df.to_csv(tmp_path / "rows.csv", index=False)
    streamed = ld.costnet(formula, str(tmp_path / "rows.csv"), **call)
    np.testing.assert_allclose(streamed.estimates.path.coef, fit.estimates.path.coef, atol=1e-9)
    assert streamed.prices()["cost"].tolist() == fit.prices()["cost"].tolist()


@pytest.mark.long
def test_choices_by_held_out_deviance(case, df):
    formula, call, fit = case
    held = ld.cv(ld.costnet, formula, df, folds=2, rules="lasso", **call)
    assert 0.0 < held.tidy()["mean"].min() < 0.8 * fit.null_deviance
    path = ld.path(ld.costnet, formula, df, n_lambda=4, **call)
    assert path.tidy()["lambda_"].nunique() == 4
    intervals = ld.conformal(ld.costnet, formula, df, folds=3, lambda_=0.02, **call)
    assert intervals.predict(df)["lower"].min() >= 0.0
    effect = ld.effects(fit, df, ["a"])
    assert len(effect.tidy()) > 0


def test_check_finds_overdispersion(df):
    wild = df.assign(count=df["count"] * 5)
    fit = ld.costnet("count ~ a + b", wild, family="poisson")
    assert "times that of a Poisson" in " ".join(str(fit.check(wild)).split())


@pytest.mark.long
def test_the_estimator(df):
    X, y = df[["a", "b", "c"]], df["count"].to_numpy()
    fit = CostnetRegressor(family="poisson").fit(X, y)
    np.testing.assert_array_equal(
        fit.predict(X), ld.costnet("count ~ a + b + c", df, family="poisson").predict(df)
    )


def test_large_counts_and_a_wild_feature_converge():
    """Curvatures over many powers of ten: the path and refits end, without a library's warning."""
    rng = np.random.default_rng(2)
    df = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    df["c"] = np.exp(2.0 * df["c"])
    df["y"] = rng.poisson(np.exp(7.0 + 1.5 * df["a"] - 0.5 * df["b"]))
    fit = ld.costnet("y ~ a + b + c", df, family="poisson", threads=1)
    peer = ld.glm("y ~ a + b + c", df, family="poisson")
    assert fit.converged and fit.step.df >= 2
    assert fit.prices()["deviance"].iloc[-1] * 300 < 1.05 * peer.log["deviance"]


def test_a_path_of_an_extreme_quantile_converges():
    """Few of heavy-tailed rows are near the quantile: steps are damped until full ones succeed."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    df["y"] = np.tanh(df["a"]) + 0.5 * df["b"] + 0.5 * rng.standard_t(1.5, size=300)
    how = {"quantile": 0.99, "budget": 6, "control": {"criterion": "bic"}, "threads": 1}
    fit = ld.costnet("y ~ .", df, family="quantile", **how)
    path = fit.estimates.path
    assert path.converged.all() and path.n_iter.max() < 50


@pytest.mark.parametrize("model", [ld.proset, ld.ripr])
def test_models_without_counts_list_what_they_fit(model, df):
    message = "family must be one of gaussian, binomial, multinomial.*not 'poisson'"
    with pytest.raises(ld.ArgumentError, match=message):
        model("count ~ a", df, family="poisson")


def test_melm_is_for_classes(df):
    with pytest.raises(ld.ArgumentError, match="family must be one of binomial, multinomial"):
        ld.melm("count ~ a", df, family="poisson")


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("family", ["quantile", "huber"])
def test_all_features_of_a_quantile_and_of_huber(family, scale, df):
    """A fit with almost no penalty against other programs, in any unit of the response."""
    X, y = df[["a", "b", "c"]], scale * df["amount"]
    rows, more = df.assign(amount=y), {"quantile": 0.8} if family == "quantile" else {}
    fit = ld.costnet("amount ~ a + b + c", rows, family=family, lambda_=1e-9, threads=1, **more)
    if family == "quantile":
        peer = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
        mine, theirs = (mean_pinball_loss(y, f.predict(X), alpha=0.8) for f in (fit, peer))
        assert theirs <= mine + 1e-12 and 2.0 * (mine - theirs) < 0.004 * fit.null_deviance
        assert fit.step.deviance == pytest.approx(2.0 * mine, rel=0.01)
    else:
        peer = sm.RLM(y, sm.add_constant(X), sm.robust.norms.HuberT(fit.family.limit))
        beta = np.linalg.lstsq(peer.exog, y, rcond=None)[0]
        for _ in range(500):  # RLM.fit would estimate the scale again at each step
            weight = peer.M.weights(y - peer.exog @ beta)
            beta = sm.WLS(y, peer.exog, weight).fit().params.to_numpy()
        np.testing.assert_allclose(fit.coef(), beta, rtol=1e-4)
        assert fit.step.deviance == pytest.approx(fit.evaluate(rows)["deviance"].item(), rel=1e-9)
