"""Proportions with numbers of trials, compared with R's printed examples and statsmodels."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from lodim.models.glm import estimate

BUDWORM = pd.DataFrame(  # Collett (1991), p. 75; Venables & Ripley (2002), Sect. 7.2
    {
        "sex": list("MMMMMMFFFFFF"),
        "ldose": [*range(6), *range(6)],
        "dead": [1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16],
        "total": 20,
    }
).assign(share=lambda d: d["dead"] / d["total"])
CALL = {"weights": "total", "family": "binomial"}


def trials(df):
    """A row for each trial."""
    rows = df.loc[df.index.repeat(df["total"])]
    place = rows.groupby(level=0).cumcount()
    return rows.assign(died=(place < rows["dead"]).astype(int))


def test_the_budworms_of_venables_and_ripley():
    """As R prints summary(budworm.lg)."""
    fit = ld.glm("share ~ sex * ldose", BUDWORM, **CALL)
    tidy = fit.tidy().round(4)
    assert tidy["estimate"].tolist() == [-2.9935, 0.175, 0.906, 0.3529]
    assert tidy["std_error"].tolist() == [0.5527, 0.7783, 0.1671, 0.27]
    glance = fit.glance().iloc[0]
    assert round(glance["deviance"], 4) == 4.9937 and glance["df_resid"] == 8
    assert round(glance["null_deviance"], 4) == 124.8756 and glance["n"] == 12
    assert round(glance["aic"], 3) == 43.104
    assert "Rows: 12 of 240 trials" in str(fit) and "Trials:" in str(fit.summary())


def test_star98_beside_statsmodels():
    data = sm.datasets.star98.load_pandas().data
    total = data["NABOVE"] + data["NBELOW"]
    df = data.drop(columns=["NABOVE", "NBELOW"]).assign(share=data["NABOVE"] / total, total=total)
    fit = ld.glm("share ~ .", df, **CALL)
    X = sm.add_constant(df.drop(columns=["share", "total"]))
    other = sm.GLM(data[["NABOVE", "NBELOW"]], X, family=sm.families.Binomial()).fit()
    np.testing.assert_allclose(fit.coef(), other.params, rtol=1e-6)
    np.testing.assert_allclose(fit.tidy()["std_error"], other.bse, rtol=1e-6)
    assert fit.log["deviance"] == pytest.approx(other.deviance, rel=1e-9)
    assert fit.null_deviance == pytest.approx(other.null_deviance, rel=1e-9)
    assert fit.df_resid == other.df_resid == 282
    assert fit.aic == pytest.approx(other.aic, rel=1e-9)
    assert round(fit.log["deviance"], 1) == 4078.8  # as its page prints it
    assert fit.evaluate(df)["deviance"][0] == pytest.approx(fit._deviance, rel=1e-12)


def test_compare_has_the_losses_of_cv():
    folds, models = np.arange(12) % 3, {"all": ld.glm}
    models["dose"] = lambda formula, data: ld.glm("share ~ ldose", data, **CALL)
    table = ld.compare("share ~ . - dead", BUDWORM, models, folds=folds, baselines=False, **CALL)
    found = table.tidy().set_index("model")["deviance"]
    for name, formula in (("all", "share ~ . - dead"), ("dose", "share ~ ldose")):
        cv = ld.cv(ld.glm, formula, BUDWORM, folds=folds, **CALL)
        assert found[name] == pytest.approx(cv.tidy()["mean"][0], rel=1e-9)


def test_groups_of_trials_are_the_trials():
    """Estimates, errors and differences of deviances are those of a row for each trial."""
    grouped = ld.glm("share ~ sex + ldose", BUDWORM, **CALL)
    single = ld.glm("died ~ sex + ldose", trials(BUDWORM))
    np.testing.assert_allclose(grouped.covariance(), single.covariance(), rtol=1e-6)
    np.testing.assert_allclose(grouped.coef(), single.coef(), rtol=1e-8)
    small = ld.glm("share ~ sex", BUDWORM, **CALL), ld.glm("died ~ sex", trials(BUDWORM))
    tests = [one.anova(two)["LR"][1] for one, two in zip(small, (grouped, single), strict=True)]
    assert tests[0] == pytest.approx(tests[1], rel=1e-9)


def test_what_a_fit_of_proportions_answers(tmp_path):
    fit = ld.glm("share ~ sex + ldose", BUDWORM, **CALL)
    assert fit.types == ("response", "link", "interval") and fit.levels is None
    assert list(fit.predict(BUDWORM, "interval")) == ["fit", "lower", "upper"]
    assert fit.predict(BUDWORM).between(0, 1).all()
    told = fit.augment(BUDWORM)
    np.testing.assert_allclose(told[".resid"], BUDWORM["share"] - told[".fitted"])
    assert 20 * told[".loss"].sum() == pytest.approx(fit.log["deviance"], rel=1e-9)
    fit.save(tmp_path / "fit.lodim")
    back = ld.load(tmp_path / "fit.lodim")
    assert str(back.summary()) == str(fit.summary())
    pd.testing.assert_series_equal(back.predict(BUDWORM), fit.predict(BUDWORM))
    loss = ld.cv(ld.glm, "share ~ sex + ldose", BUDWORM, **CALL).tidy()["mean"][0]
    assert fit._deviance < loss < fit._null_deviance
    sets = ld.conformal(ld.glm, "share ~ sex + ldose", BUDWORM, **CALL).predict(BUDWORM)
    assert sets.min().min() >= 0.0 and sets.max().max() <= 1.0


def test_files_have_the_evaluation_of_the_frame(tmp_path):
    BUDWORM.to_csv(tmp_path / "rows.csv", index=False)
    fit = ld.glm("share ~ sex + ldose", BUDWORM, **CALL)
    files = ld.glm("share ~ sex + ldose", str(tmp_path / "rows.csv"), **CALL)
    np.testing.assert_array_equal(files.coef(), fit.coef())
    got, expected = (fit.evaluate(d) for d in (str(tmp_path / "rows.csv"), BUDWORM))
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("covariance", [None, "HC3"])
def test_many_rows_are_fitted_alike(monkeypatch, covariance):
    few = ld.glm("share ~ sex + ldose", BUDWORM, covariance=covariance, **CALL)
    monkeypatch.setattr(estimate, "MAX_MEMORY_ROWS", 0)
    many = ld.glm("share ~ sex + ldose", BUDWORM, covariance=covariance, **CALL)
    np.testing.assert_allclose(many.covariance(), few.covariance(), rtol=1e-7)
    np.testing.assert_allclose(many.coef(), few.coef(), rtol=1e-9)
    for name in ("deviance", "log_likelihood"):
        assert many.log[name] == pytest.approx(few.log[name], rel=1e-10)


def test_separated_and_mixed_proportions():
    df = pd.DataFrame({"x": [0.0, 1, 2, 3], "y": [0.0, 0.2, 1, 1], "n": [5, 5, 5, 5]})
    with pytest.warns(ld.ConvergenceWarning, match="separated"):  # all successes above x = 1
        ld.glm("y ~ x", df, weights="n", family="binomial")
    mixed = ld.glm("y ~ x", df.assign(y=[0, 0.2, 0.8, 1]), weights="n", family="binomial")
    assert mixed.converged and np.isfinite(mixed.coef()).all()


def test_what_is_refused_or_doubted():
    with pytest.warns(ld.DataWarning, match="not a whole number of successes in 10 of 12 rows"):
        ld.glm("share ~ ldose", BUDWORM.assign(total=7), **CALL)
    with pytest.raises(ld.DataError, match="needs the numbers of trials as weights="):
        ld.glm("share ~ ldose", BUDWORM, family="binomial")
    with pytest.raises(ld.DataError, match="proportions, which gbmap does not fit: use glm"):
        ld.gbmap("share ~ ldose", BUDWORM, **CALL)
    fit = ld.glm("share ~ ldose", BUDWORM, **CALL)
    with pytest.raises(ld.DataError, match="proportions from 0 to 1, as in training"):
        fit.evaluate(BUDWORM.assign(share=2.0))
    with pytest.raises(ld.ArgumentError, match="type must be one of response, link, interval"):
        fit.predict(BUDWORM, "class")
    with pytest.raises(ld.ArgumentError, match="loss='class' needs a response with classes"):
        ld.cv(ld.glm, "share ~ ldose", BUDWORM, loss="class", **CALL)
