"""Bootstrap by random weights, against sandwich errors, closed forms and scipy."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from lodim.uncertainty import replicates
from lodim.uncertainty.refits import RandomWeights, held_problem, reweighted

FORMS = {
    "a number": (lambda fit: fit.dev_ratio, ["statistic"]),
    "an array": (lambda fit: fit.coef().to_numpy()[:2], ["[0]", "[1]"]),
    "a dict": (lambda fit: {"r2": fit.dev_ratio}, ["r2"]),
    "a Series": (lambda fit: fit.coef(), ["(Intercept)", "weight", "model_year"]),
}


@pytest.fixture(scope="module")
def cars():
    return ld.data("autompg").dropna()


@pytest.fixture(scope="module")
def heart():
    return ld.data("heart").dropna()


@pytest.fixture(scope="module")
def line(cars):
    return ld.glm("mpg ~ weight + model_year", cars)


@pytest.mark.long
@pytest.mark.parametrize("data, formula", [
    ("cars", "mpg ~ weight + horsepower + origin"), ("heart", "disease ~ age + sex + vessels"),
])  # fmt: skip
def test_standard_errors_are_those_of_the_sandwich(data, formula, request):
    df = request.getfixturevalue(data)
    boot = ld.bootstrap(ld.glm(formula, df), df, n=300)
    robust = ld.glm(formula, df, covariance="HC0").tidy()
    np.testing.assert_allclose(boot.tidy()["std_error"], robust["std_error"], rtol=0.1)


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_a_mean_in_closed_form(cars, weighted):
    df = cars.assign(w=np.where(cars["origin"] == "USA", 2.0, 0.5) if weighted else 1.0)
    fit = ld.glm("mpg ~ 1", df, weights="w")
    boot = ld.bootstrap(fit, df, n=400)
    share = df["w"] / df["w"].sum()
    apart = df["mpg"] - share @ df["mpg"]
    error = np.sqrt((share**2) @ apart**2)
    assert boot.tidy()["std_error"][0] == pytest.approx(error, rel=0.06)
    low, high = boot.tidy(level=0.9)[["conf_low", "conf_high"]].iloc[0]
    assert high - low == pytest.approx(2 * 1.645 * error, rel=0.12)


@pytest.mark.long
def test_rows_of_a_group_share_a_weight(cars):
    df = cars.assign(g=cars["model_year"].astype(str) + cars["origin"])
    fit = ld.glm("mpg ~ weight + horsepower", df)
    boot = ld.bootstrap(fit, df, n=1000, groups="g")
    assert f"{df['g'].nunique()} groups" in repr(boot)
    ols = sm.OLS(df["mpg"], sm.add_constant(df[["weight", "horsepower"]]))
    options = {"groups": pd.factorize(df["g"])[0], "use_correction": False}
    robust = ols.fit(cov_type="cluster", cov_kwds=options)
    np.testing.assert_allclose(boot.tidy()["std_error"], robust.bse, rtol=0.12)
    same = ld.bootstrap(ld.glm("mpg ~ weight + horsepower", df, clusters="g"), df, n=5)
    np.testing.assert_allclose(same.values, boot.values[:5])


def test_draws_do_not_depend_on_weight_zero_or_on_where_rows_stand(cars, line):
    boot = ld.bootstrap(line, cars, n=6, threads=2)
    shuffled = cars.sample(frac=1, random_state=1)
    again = ld.bootstrap(ld.glm("mpg ~ weight + model_year", shuffled), shuffled, n=6, threads=1)
    np.testing.assert_allclose(again.values, boot.values, rtol=1e-9)
    np.testing.assert_array_equal(ld.bootstrap(line, cars, n=6, threads=1).values, boot.values)
    assert not np.allclose(ld.bootstrap(line, cars, n=6, seed=1).values, boot.values)
    padded = pd.concat([cars, cars[:50].assign(mpg=1e15, weight=1e15)], ignore_index=True)
    padded["w"] = np.r_[np.ones(len(cars)), np.zeros(50)]
    held = ld.bootstrap(ld.glm("mpg ~ weight + model_year", padded, weights="w"), padded, n=6)
    np.testing.assert_allclose(held.values, boot.values, rtol=1e-6)
    batch = held_problem(held.fit, padded, None, {}).batch
    draws = RandomWeights.from_batch(batch, 0, 2, 0)
    assert draws.n_units == len(cars) and (draws.of_rows(1)[len(cars) :] == 0).all()
    assert draws.of_rows(1)[: len(cars)].mean() == pytest.approx(1.0)


def test_percentiles_and_errors_of_what_some_replicates_lack():
    values = np.column_stack([np.arange(1.0, 40), np.full(39, np.nan)])
    values[::2, 0] = np.nan
    low, high = replicates.percentile(values, 0.9)
    assert low[0] == 2 and high[0] == 38 and np.isnan([low[1], high[1]]).all()
    errors = replicates.standard_errors(values)
    assert errors[0] == pytest.approx(np.nanstd(values[:, 0], ddof=1)) and np.isnan(errors[1])


TO_THE_END = {"tol": 1e-12, "ftol": 1e-15}  # else a joint fit stops at 3% of a standard error
MODELS = {
    "gbmap": {"m": 3, "lambda_": 0.1},
    "gbmap, joint": {"m": 3, "lambda_": 0.1, "refit": "joint", "control": TO_THE_END},
    "proset": {"lambda_v": 0.01}, "melm": {"n_starts": 3}, "ripr": {"max_dim": 2},
    "costnet": {"budget": 3, "n_lambda": 20}, "glm": {},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_equal_weights_give_the_fit_itself_and_others_do_not(heart, name):
    model = getattr(ld, name.partition(",")[0])
    fit = model("disease ~ age + sex + chest_pain + vessels", heart, **MODELS[name])
    problem = held_problem(fit, heart, None, {})
    same = reweighted(problem, fit, np.ones(problem.batch.n))
    np.testing.assert_allclose(same.predict(heart), fit.predict(heart), atol=1e-6)
    boot = ld.bootstrap(fit, heart, n=3)
    estimates = same._comparable(fit)["estimate"]
    np.testing.assert_allclose(estimates, boot.estimate[: len(estimates)], rtol=1e-5, atol=1e-8)
    assert boot.values.std(axis=0).max() > 0
    settings = dataclasses.asdict(fit.settings) | {"threads": 1}
    for one in boot.fits:
        held = {k: v for k, v in dataclasses.asdict(one.settings).items() if k in ("lambda_", "m")}
        assert held == {k: settings[k] for k in held}


@pytest.mark.long
def test_a_view_is_turned_to_that_of_the_fit(heart):
    view = ld.melm("disease ~ .", heart, gamma=2.0, n_starts=2).estimates
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    covariance = view.correlation * view.deviation[:, None]
    covariance = covariance * (view.V * covariance).sum(axis=0) @ turn
    V = view.V @ turn
    spread = np.sqrt((V * covariance).sum(axis=0))
    correlation = covariance / spread / np.maximum(view.deviation[:, None], 1e-300)
    turned = dataclasses.replace(view, V=V, correlation=correlation)
    np.testing.assert_allclose(turned.turned_to(view), view.V, atol=1e-6)


def test_no_level_vanishes(cars):
    df = cars[:60].reset_index(drop=True)
    df["kind"] = ["rare"] + ["usual", "other"] * 29 + ["usual"]
    boot = ld.bootstrap(ld.glm("mpg ~ kind", df), df, n=50)
    assert np.isfinite(boot.values).all()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:new_lower and new_upper assume the variance")
def test_a_band_of_the_mean_is_that_of_robust_errors(cars, line):
    boot = ld.bootstrap(line, cars, n=200)
    band = boot.predict(cars, level=0.9)
    exact = line.update(cars, covariance="HC0").predict(cars, "interval", level=0.9)
    np.testing.assert_allclose(band["fit"], exact["fit"])
    ratio = (band["upper"] - band["lower"]) / (exact["upper"] - exact["lower"])
    assert ratio.between(0.75, 1.25).all() and abs(ratio.mean() - 1) < 0.1
    new = cars[:3].assign(weight=[np.nan, 2000, 3000])
    assert boot.predict(new)["lower"].isna().tolist() == [True, False, False]


@pytest.mark.long
def test_bands_of_classes(heart):
    two = ld.glm("disease ~ age + vessels", heart)
    boot = ld.bootstrap(two, heart, n=60)
    mean, link = boot.predict(heart, level=0.9), boot.predict(heart, of="link", level=0.9)
    np.testing.assert_allclose(1 / (1 + np.exp(-link["upper"])), mean["upper"], rtol=1e-2)
    assert mean.to_numpy().min() >= 0 and (mean["lower"] < mean["upper"]).all()
    iris = ld.data("iris")
    boot = ld.bootstrap(ld.gbmap("species ~ .", iris, m=2, lambda_=0.1), iris, n=40)
    band = boot.predict(iris, level=0.9)
    assert list(band.columns[:4]) == [
        ("setosa", "fit"), ("setosa", "lower"), ("setosa", "upper"), ("versicolor", "fit"),
    ]  # fmt: skip
    assert list(boot.tidy(level=0.9))[:2] == ["level", "term"]


@pytest.mark.parametrize("form", FORMS)
def test_any_statistic(cars, line, form):
    statistic, names = FORMS[form]
    boot = ld.bootstrap(line, cars, n=40, statistic=statistic)
    assert boot.tidy()["term"].tolist() == names
    np.testing.assert_allclose(boot.estimate, np.atleast_1d(list(np.ravel(
        list(statistic(line).values()) if isinstance(statistic(line), dict) else statistic(line)
    ))))  # fmt: skip


@pytest.mark.long
def test_a_replicate_may_lack_a_term(cars):
    cars = cars[::7]
    fit = ld.costnet("mpg ~ .", cars, budget=3, n_lambda=15)
    boot = ld.bootstrap(fit, cars, n=24)
    names = [name for name in fit.design.names if name not in fit.inputs]
    assert (boot.replicates[names] != 0).any(axis=None) and np.isfinite(boot.values).all()
    assert "not selected in every replicate" in str(boot.summary(level=0.7))
    named = ld.bootstrap(fit, cars, n=8, statistic=lambda one: dict.fromkeys(one.inputs, 1.0))
    missing = named.replicates.isna().any()
    if missing.any():
        assert "NaN in some replicates" in str(named.summary(level=0.7))


@pytest.mark.long
def test_settings_are_chosen_anew_on_request(cars):
    settings = {"threads": 1, "control": {"max_stages": 6}}
    fit = ld.gbmap("mpg ~ weight + model_year + w", cars.assign(w=1.0), weights="w", **settings)
    df = cars.assign(w=1.0)
    anew = ld.bootstrap(fit, df, n=5, reselect=True)
    chosen = {(one.settings.m, one.settings.lambda_) for one in anew.fits}
    held = {(one.settings.m, one.settings.lambda_) for one in ld.bootstrap(fit, df, n=5).fits}
    assert held == {(fit.settings.m, fit.settings.lambda_)} and len(chosen) > 1
    assert anew.terms.tolist() == list(fit.design.names)
    assert "reselect" not in str(anew.summary(level=0.5))
    assert "fixed at the choice" in str(ld.bootstrap(fit, df, n=5).summary(level=0.5))


def test_the_dot_stands_for_the_same_columns_when_chosen_anew(cars):
    df = cars.assign(w=1.0)[["mpg", "weight", "model_year", "w"]]
    fit = ld.glm("mpg ~ .", df, weights="w")
    anew = ld.bootstrap(fit, df, n=3, reselect=True)
    np.testing.assert_allclose(anew.values, ld.bootstrap(fit, df, n=3).values, rtol=1e-6)


def test_what_it_says(cars):
    fit = ld.gbmap("mpg ~ weight + model_year", cars, m=2, lambda_=0.1)
    boot = ld.bootstrap(fit, cars, n=40)
    assert "biased by the penalty lambda_" in repr(boot) and "40 replicates" in repr(boot)
    assert "392 rows" in str(boot.summary())
    pytest.importorskip("matplotlib").use("Agg")
    ax = boot.plot(top=1, level=0.9)
    (label,) = [text.get_text() for text in ax.get_yticklabels()]
    assert label == "weight" and "per SD, with 90% interval" in ax.get_xlabel()
    scale = dict(zip(fit.design.names, fit.design.scale, strict=True))["weight"]
    drawn = ax.lines[0].get_xdata()[0]
    assert drawn == pytest.approx(boot.estimate[0] * scale)


def test_replicates_that_do_not_converge_are_counted(cars):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        fit = ld.gbmap("mpg ~ .", cars, m=2, lambda_=1e-4, control={"max_iter": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boot = ld.bootstrap(fit, cars, n=40)
    assert boot.n_failed > 0 and "did not converge" in repr(boot)


@pytest.mark.parametrize(("n", "percent"), [(2, "33.3"), (20, "90.4"), (38, "94.8"), (39, "95")])
def test_few_replicates_are_summarised_with_the_highest_level_they_allow(cars, line, n, percent):
    boot = ld.bootstrap(line, cars, n=n)
    assert f"percentile, {percent}%" in str(boot.summary())
    assert f"{percent}% percentile" in repr(boot)
    pytest.importorskip("matplotlib").use("Agg")
    assert f"{percent}% interval" in boot.plot().get_xlabel()
    level = float(percent) / 100.0
    assert boot.tidy(level=level)["conf_low"].notna().all()
    with pytest.raises(ld.ArgumentError, match="needs at least"):
        boot.summary(level=level + 0.01)


REFUSED = {
    "other rows": (lambda f, d: ld.bootstrap(f, d[:-1]), ld.DataError, "another mean or"),
    "another response": (
        lambda f, d: ld.bootstrap(f, d.assign(mpg=d["mpg"] ** 2)), ld.DataError, "the response",
    ),
    "rows that miss a value": (
        lambda f, d: ld.bootstrap(f, d.assign(weight=d["weight"].mask(d["weight"] > 4000))),
        ld.DataError, "missing values are in",
    ),
    "another level": (
        lambda f, d: ld.bootstrap(
            ld.glm("mpg ~ origin", d), d.assign(origin=d["origin"].astype(str) + "!")
        ),
        ld.DataError, "other features for these rows",
    ),
    "another class": (
        lambda f, d: ld.bootstrap(
            ld.glm("origin ~ weight", d), d.assign(origin=d["origin"].astype(str) + "!")
        ),
        ld.DataError, r"classes are \('Europe!'",
    ),
    "no fit": (lambda f, d: ld.bootstrap(ld.glm, d), ld.ArgumentError, "must be a fit"),
    "n": (lambda f, d: ld.bootstrap(f, d, n=1), ld.ArgumentError, "n must be"),
    "statistic": (
        lambda f, d: ld.bootstrap(f, d, n=2, statistic="mean"), ld.ArgumentError, "a function",
    ),
    "text": (
        lambda f, d: ld.bootstrap(f, d, n=2, statistic=lambda one: "x"), ld.ArgumentError,
        "must return a number",
    ),
    "level": (
        lambda f, d: ld.bootstrap(f, d, n=20).tidy(), ld.ArgumentError,
        r"level=0.95 needs at least 39 replicates, not 20: use level=0.904, or .*n=39",
    ),
    "of": (lambda f, d: ld.bootstrap(f, d, n=40).predict(d, of="new"), ld.ArgumentError, "of"),
    "no estimate": (
        lambda f, d: ld.bootstrap(f, d, n=40, statistic=lambda one: np.nan).plot(),
        ld.ArgumentError, "there is no estimate to draw",
    ),
    "argument": (lambda f, d: ld.bootstrap(f, d, k=2), ld.ArgumentError, "no argument 'k'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(cars, line, name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(line, cars)


def test_an_array_of_the_call_is_asked_for(cars):
    w = np.linspace(0.5, 2, len(cars))
    fit = ld.glm("mpg ~ weight", cars, weights=w)
    with pytest.raises(ld.ArgumentError, match="weights was an array"):
        ld.bootstrap(fit, cars, n=2)
    boot = ld.bootstrap(fit, cars, n=2, weights=w)
    named = ld.bootstrap(
        ld.glm("mpg ~ weight", cars.assign(w=w), weights="w"), cars.assign(w=w), n=2
    )
    np.testing.assert_allclose(boot.values, named.values)


def test_fits_of_several_responses_are_refused():
    iris = ld.data("iris")
    fits = ld.ripr("species + petal_width ~ sepal_length + sepal_width", iris, max_dim=1)
    for fit in (fits, fits.fits["species"]):
        with pytest.raises(ld.ArgumentError, match=r"of (several|one) response"):
            ld.bootstrap(fit, iris, n=2)


@pytest.mark.long
def test_views_and_clusters_without_a_response():
    iris = ld.data("iris").drop(columns="species")
    for fit in (ld.melm("~ .", iris), ld.ripr("~ .", iris, max_dim=2)):
        boot = ld.bootstrap(fit, iris, n=40)
        assert boot.values.std(axis=0).max() > 0 and str(boot.summary()) and repr(boot)
        with pytest.raises(ld.ArgumentError, match="no response"):
            boot.predict(iris)


def test_replicates_of_principal_components_are_those_of_weighted_ones():
    iris = ld.data("iris").drop(columns="species")
    fit = ld.melm("~ .", iris, k=1)
    boot = ld.bootstrap(fit, iris, n=5)
    batch = held_problem(fit, iris, None, {}).batch
    draws, Z = RandomWeights.from_batch(batch, 0, 5, 0), (iris - iris.mean()) / iris.std(ddof=0)
    for k, found in enumerate(boot.values * fit.design.scale):
        first = np.linalg.eigh(np.cov(Z.T, aweights=draws.of_rows(k)))[1][:, -1]
        assert abs(first @ found / np.linalg.norm(found)) == pytest.approx(1, abs=1e-9)
        assert found @ (boot.estimate * fit.design.scale) > 0


def test_large_fits_are_not_kept(cars, line, monkeypatch):
    monkeypatch.setattr("lodim.uncertainty.bootstrap.MOST_BYTES", 100)
    boot = ld.bootstrap(line, cars, n=40)
    assert boot.fits == () and len(boot.tidy()) == 3
    with pytest.raises(ld.ArgumentError, match="not stored"):
        boot.predict(cars)


@pytest.mark.long
def test_infinite_estimates_have_no_limits():
    iris = ld.data("iris")
    with pytest.warns(ld.ConvergenceWarning, match="separated"):
        fit = ld.glm("species ~ sepal_length + petal_length", iris)
    boot = ld.bootstrap(fit, iris, n=40)
    assert boot.tidy()[["estimate", "std_error", "conf_low", "conf_high"]].isna().all(axis=None)
    assert "6 terms of 6 without a finite estimate, as the response is separated" in repr(boot)
    aliased = ld.data("autompg").assign(twice=lambda d: 2.0 * d["weight"])
    told = repr(ld.bootstrap(ld.glm("mpg ~ weight + twice", aliased), aliased, n=40))
    assert "1 term of 3 without a finite estimate." in told and "separated" not in told
    assert "NaN in some" not in told and "few" not in told


@pytest.mark.long
def test_few_rows_and_terms_that_are_never_chosen_are_told(cars):
    few = cars[:12]
    boot = ld.bootstrap(ld.glm("mpg ~ weight", few), few, n=40)
    told = " ".join(repr(boot).split())
    assert boot.n_units == 12 and "With only 12 rows, intervals are too short" in told
    assert "Bootstrap of glm" in boot._repr_html_() and "With only 12 rows" in boot._repr_html_()
    one = cars.assign(one=1.0)
    fit = ld.costnet("mpg ~ weight + model_year + horsepower + one", one, budget=2)
    told = " ".join(repr(ld.bootstrap(fit, one, n=10)).split())
    assert "1 term of 5 never selected, which limits from 0 to 0" in told
    assert "few" not in told and "every replicate" not in told


def test_loadings_are_drawn_with_their_dimension():
    pytest.importorskip("matplotlib")
    wine = ld.data("wine")
    fit = ld.melm("cultivar ~ alcohol + hue + ash", wine, gamma=1.0, k=2, n_starts=1, threads=1)
    ax = ld.bootstrap(fit, wine, n=3).plot()
    assert {t.get_text().split(": ")[0] for t in ax.get_yticklabels()} == {"x1", "x2"}
