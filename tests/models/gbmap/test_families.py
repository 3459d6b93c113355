"""gbmap with counts and amounts: against glm, and all that models share."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.errors import ArgumentError

CALLS = {
    "poisson": ("count ~ a + b + g", {"offset": "log_time"}),
    "gamma": ("amount ~ a + b + g", {}),
}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    df["g"] = rng.choice(["u", "v", "w"], n)
    mean = np.exp(0.5 + np.maximum(df["a"], 0.0) - 0.3 * df["b"] + 0.2 * (df["g"] == "u"))
    time = rng.uniform(0.5, 2.0, n)
    df["log_time"], df["count"] = np.log(time), rng.poisson(mean * time)
    df["amount"] = rng.gamma(2.0, mean / 2.0)
    return df


@pytest.fixture(scope="module")
def df():
    return rows()


@pytest.fixture(scope="module", params=CALLS)
def case(request, df):
    formula, more = CALLS[request.param]
    call = {"family": request.param, "m": 3, "lambda_": 0.05, "threads": 1} | more
    return formula, call, ld.gbmap(formula, df, **call)


def test_a_line_is_the_glm(case, df):
    formula, call, _ = case
    exact = {"activation": "identity", "lambda_": 0.0, "m": 1, "control": {"tol": 0, "ftol": 1e-16}}
    line = ld.gbmap(formula, df, **call | exact)
    peer = ld.glm(formula, df, family=call["family"], offset=call.get("offset"))
    mean = peer.predict(df)
    np.testing.assert_allclose(line.predict(df), mean, rtol=1e-8)
    assert line.log["deviance"][-1] * len(df) == pytest.approx(peer.log["deviance"], rel=1e-12)


@pytest.mark.parametrize("refit", ["none", "joint"])
def test_a_bend_beats_the_line_on_new_rows(refit, df):
    new = rows(2000, seed=1)
    for family, (formula, more) in CALLS.items():
        call = {"family": family, **more}
        bent = ld.gbmap(formula, df, m=4, lambda_=0.02, refit=refit, **call)
        peer = ld.glm(formula, df, **call)
        loss = [fit.evaluate(new)["deviance"].item() for fit in (bent, peer)]
        assert loss[0] < loss[1]


def test_the_means_are_right_on_average(case, df):
    """The score equation of the constant: the weighted residuals sum to zero."""
    formula, call, fit = case
    mean, y = fit.predict(df), df[formula.split()[0]]
    residual = (y - mean) / (mean if call["family"] == "gamma" else 1.0)
    assert abs(residual.mean()) < 1e-6


def test_what_models_share(case, df, tmp_path):
    formula, call, fit = case
    fit.save(tmp_path / "a.lodim")
    again = ld.load(tmp_path / "a.lodim")
    np.testing.assert_array_equal(again.predict(df), fit.predict(df))
    np.testing.assert_allclose(np.log(fit.predict(df)), fit.predict(df, "link"), rtol=1e-12)
    df.to_csv(tmp_path / "rows.csv", index=False)
    streamed = ld.gbmap(formula, str(tmp_path / "rows.csv"), **call)
    np.testing.assert_allclose(streamed.estimates.theta, fit.estimates.theta, rtol=1e-9)
    names = {}
    exec(fit.to_python(), names)
    written = [names["predict"](row) for row in df[:9].to_dict("records")]
    np.testing.assert_allclose(written, fit.predict(df[:9]), rtol=1e-9)
    assert "log link" in str(fit) and "log link" in str(fit.summary())
    held = ld.cv(ld.gbmap, formula, df, folds=3, **call)
    assert 0.0 < held.tidy()["mean"].min() < fit.null_deviance
    intervals = ld.conformal(ld.gbmap, formula, df, folds=3, **call)
    assert intervals.predict(df)["lower"].min() >= 0.0
    with pytest.raises(ArgumentError, match="numeric response"):
        fit.predict(df, clip=True)


def test_check_finds_overdispersion(df):
    wild = df.assign(count=df["count"] * 5)
    fit = ld.gbmap("count ~ a + b", wild, family="poisson", m=2, lambda_=0.05)
    assert "as much as those of a Poisson" in str(fit.check(wild))


def test_what_is_refused(df):
    with pytest.raises(ld.DataError, match="counts, 0 or more"):
        ld.gbmap("b ~ a", df, family="poisson")
    with pytest.raises(ArgumentError, match="family must be"):
        ld.proset("count ~ a", df, family="poisson")
