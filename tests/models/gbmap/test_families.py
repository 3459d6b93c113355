"""gbmap with counts and amounts: against glm, and all that models share."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import lodim as ld
from lodim.errors import ArgumentError

GLM = ("family", "offset", "power")  # arguments that glm has, too
CALLS = {
    "poisson": ("count ~ a + b + g", {"offset": "log_time"}),
    "gamma": ("amount ~ a + b + g", {}),
    "tweedie": ("claims ~ a + b + g", {"power": 1.4}),
    "quantile": ("amount ~ a + b + g", {"quantile": 0.8}),
    "huber": ("amount ~ a + b + g", {}),
}
LOG_LINKS = ("poisson", "gamma", "tweedie")


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    df["g"] = rng.choice(["u", "v", "w"], n)
    mean = np.exp(0.5 + np.maximum(df["a"], 0.0) - 0.3 * df["b"] + 0.2 * (df["g"] == "u"))
    time = rng.uniform(0.5, 2.0, n)
    df["log_time"], df["count"] = np.log(time), rng.poisson(mean * time)
    df["amount"] = rng.gamma(2.0, mean / 2.0)
    df["claims"] = rng.gamma(rng.poisson(mean) + 1e-9, 1.0).round(6)
    return df


@pytest.fixture(scope="module")
def df():
    return rows()


@pytest.fixture(scope="module", params=CALLS)
def case(request, df):
    formula, more = CALLS[request.param]
    call = {"family": request.param, "m": 3, "lambda_": 0.05, "threads": 1} | more
    return formula, call, ld.gbmap(formula, df, **call)


EXACT = {"activation": "identity", "lambda_": 0.0, "m": 1, "control": {"tol": 0, "ftol": 1e-16}}


@pytest.mark.parametrize("family", LOG_LINKS)
def test_a_line_is_the_glm(family, df):
    formula, call = CALLS[family]
    call = {"family": family, "threads": 1} | call
    line = ld.gbmap(formula, df, **call | EXACT)
    peer = ld.glm(formula, df, **{k: v for k, v in call.items() if k in GLM})
    mean = peer.predict(df)
    np.testing.assert_allclose(line.predict(df), mean, rtol=1e-8)
    assert line.log["deviance"][-1] * len(df) == pytest.approx(peer.log["deviance"], rel=1e-12)


def test_a_line_of_huber_is_the_minimum(df):
    line = ld.gbmap("amount ~ a + b + g", df, family="huber", threads=1, **EXACT)
    X = np.column_stack([np.ones(len(df)), df[["a", "b"]], df["g"] == "u", df["g"] == "v"])
    scale = line.family.limit / 1.345
    peer = sm.RLM(df["amount"], X, sm.robust.norms.HuberT(1.345))
    # Iterated by hand: RLM.fit estimates the scale again at each step.
    beta = np.linalg.lstsq(X, df["amount"], rcond=None)[0]
    for _ in range(500):
        w = peer.M.weights((df["amount"] - X @ beta) / scale)
        beta = sm.WLS(df["amount"], X, w).fit().params.to_numpy()
    np.testing.assert_allclose(line.predict(df), X @ beta, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_line_of_a_quantile(level, df):
    line = ld.gbmap("amount ~ a + b", df, family="quantile", quantile=level, threads=1, **EXACT)
    X, y = df[["a", "b"]], df["amount"]
    peer = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
    mine, theirs = (
        2.0 * mean_pinball_loss(y, f, alpha=level) for f in (line.predict(df), peer.predict(X))
    )
    assert theirs <= mine + 1e-12 and line.evaluate(df)["deviance"].item() == pytest.approx(mine)
    null = line.null_deviance
    assert mine - theirs < 0.004 * null
    assert abs((y < line.predict(df)).mean() - level) < 0.01  # 4 of 400 rows


@pytest.mark.long
@pytest.mark.parametrize("refit", ["none", "joint"])
def test_a_bend_beats_the_line_on_new_rows(refit, df):
    new = rows(2000, seed=1)
    for family in LOG_LINKS:
        formula, more = CALLS[family]
        call = {"family": family, **more}
        bent = ld.gbmap(formula, df, m=4, lambda_=0.02, refit=refit, **call)
        peer = ld.glm(formula, df, **call)
        loss = [fit.evaluate(new)["deviance"].item() for fit in (bent, peer)]
        assert loss[0] < loss[1]


def test_the_score_equation_of_the_constant(case, df):
    formula, call, fit = case
    mean, y = fit.predict(df), df[formula.split()[0]]
    if call["family"] == "quantile":
        assert abs((y < mean).mean() - 0.8) < 0.02
        return
    if call["family"] == "huber":
        slope = np.clip(y - mean, -fit.family.limit, fit.family.limit)
    else:
        slope = (y - mean) * mean ** (1.0 - fit.family.power)
    assert abs(slope.mean()) < 1e-5


def test_what_models_share(case, df, tmp_path):
    formula, call, fit = case
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    link = fit.family.link
    mean = fit.predict(df)
    if link == "log":
        np.testing.assert_allclose(np.log(mean), fit.predict(df, "link"), rtol=1e-12)
    df.to_csv(tmp_path / "rows.csv", index=False)
    streamed = ld.gbmap(formula, str(tmp_path / "rows.csv"), **call)
    np.testing.assert_allclose(streamed.estimates.theta, fit.estimates.theta, rtol=1e-9)
    names = {}
    exec(fit.to_python(), names)
    written = [names["predict"](row) for row in df[:9].to_dict("records")]
    np.testing.assert_allclose(written, fit.predict(df[:9]), rtol=1e-9)
    assert f"{fit.family.label} ({link} link)" in str(fit)
    assert fit.family.label in str(fit.summary())
    held = ld.cv(ld.gbmap, formula, df, folds=3, **call)
    assert 0.0 < held.tidy()["mean"].min() < fit.null_deviance
    intervals = ld.conformal(ld.gbmap, formula, df, folds=3, **call)
    y, known = df[formula.split()[0]], df[call["offset"]] if "offset" in call else 0.0
    if link == "identity":
        assert fit.predict(df, clip=True).max() <= y.max()
        return
    assert intervals.predict(df)["lower"].min() >= 0.0
    far = df.assign(a=50.0 * df["a"])
    with pytest.warns(ld.ExtrapolationWarning, match="far outside the training range of"):
        found = fit.predict(far)
    rates = y / np.exp(known)
    limited = np.exp(known) * (found / np.exp(known)).clip(rates.min(), rates.max())
    np.testing.assert_allclose(fit.predict(far, clip=True), limited, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(fit.predict(far, "link", clip=True)), limited, atol=1e-12)
    near = fit.distance(df[:9], df).to_numpy().argsort(axis=1, kind="stable")[:, :3]
    np.testing.assert_allclose(fit.neighbours(df[:9], 3), rates.to_numpy()[near].mean(axis=1))


@pytest.mark.parametrize("family", CALLS)
def test_a_joint_fit_lowers_the_objective(family, df):
    formula, more = CALLS[family]
    call = {"family": family, "m": 4, "lambda_": 0.02, "threads": 1} | more
    boosts, joint = (ld.gbmap(formula, df, refit=kind, **call) for kind in ("none", "joint"))
    assert joint.refit_log["converged"]
    assert joint.refit_log["deviance"] < boosts.log["deviance"][-1]


@pytest.mark.long
@pytest.mark.parametrize("family, refit", [("quantile", "none"), ("huber", "joint")])
def test_monotone_effects_of_families(family, refit, df):
    formula, more = CALLS[family]
    call = {"family": family, "m": 4, "lambda_": 0.02, "threads": 1, "refit": refit} | more
    fit = ld.gbmap(formula, df, monotone={"a": "increasing", "b": "decreasing"}, **call)
    new = rows(2000, seed=1)
    for column, sign in (("a", 1.0), ("b", -1.0)):
        change = sign * (fit.predict(new.assign(**{column: new[column] + 0.5})) - fit.predict(new))
        assert (change >= -1e-12).all() and (change > 1e-3).any()


def test_offsets_of_any_size(df):
    plain, low = df.assign(o=0.0), df.assign(o=-1000.0)
    call = {"family": "gamma", "offset": "o", "m": 1, "lambda_": 0.02}
    fit, other = (ld.gbmap("amount ~ a", rows, **call) for rows in (plain, low))
    np.testing.assert_allclose(fit.predict(plain), other.predict(low), rtol=1e-6)
    high = df.assign(o=1000.0)
    np.testing.assert_array_equal(fit.predict(high, clip=True), fit.predict(high))


def test_check_finds_overdispersion(df):
    wild = df.assign(count=df["count"] * 5)
    fit = ld.gbmap("count ~ a + b", wild, family="poisson", m=2, lambda_=0.05)
    assert "times that of a Poisson" in " ".join(str(fit.check(wild)).split())


def test_what_is_refused(df):
    for family, words in (("poisson", "counts"), ("gamma", "above 0"), ("tweedie", "0 or more")):
        power = 1.5 if family == "tweedie" else None
        with pytest.raises(ld.DataError, match=words):
            ld.gbmap("b ~ a", df, family=family, power=power)
    for power in (None, 1, 2.0, True, "1.5"):
        with pytest.raises(ArgumentError, match="needs power=, a number between 1"):
            ld.glm("claims ~ a", df, family="tweedie", power=power)
    cure = "give family='tweedie', or leave power= out"
    with pytest.raises(ArgumentError, match=f"is for family='tweedie', not 'gaussian': {cure}"):
        ld.gbmap("b ~ a", df, power=1.5)
    with pytest.raises(ArgumentError, match="family must be"):
        ld.proset("count ~ a", df, family="poisson")
