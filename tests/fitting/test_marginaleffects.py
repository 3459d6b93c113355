"""fit.to_marginaleffects(): the functions of marginaleffects on every model.

They run where marginaleffects is installed; it is too heavy (jax) for the tests' extra.
"""

import sys
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import quick
from lodim.fitting.registry import MODELS

# marginaleffects calls what newer versions of polars deprecate.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HEART = ld.data("heart")[["disease", "age", "chest_pain", "max_heart_rate"]]
FORMULA = "disease ~ age + chest_pain + max_heart_rate"


@pytest.fixture
def effects():
    polars = pytest.importorskip("polars")
    if int(polars.__version__.split(".")[0]) > 1:
        pytest.skip("marginaleffects 0.6 does not work with polars 2")
    return pytest.importorskip("marginaleffects")


@pytest.mark.parametrize("name", MODELS)
def test_averages_are_those_of_predictions(name, effects):
    model = getattr(ld, name)
    fit = model(FORMULA, HEART, **quick(model))
    wrapped = fit.to_marginaleffects(HEART)
    p = fit.predict(HEART)
    average = effects.avg_predictions(wrapped).data["estimate"][0]
    np.testing.assert_allclose(average, p.mean(), rtol=1e-12)
    by = effects.avg_predictions(wrapped, by="chest_pain").data
    of_kind = p.groupby(HEART["chest_pain"]).mean()
    np.testing.assert_allclose(by["estimate"], of_kind[by["chest_pain"].to_list()], rtol=1e-12)
    steps = effects.avg_comparisons(wrapped, variables={"age": 10}).data["estimate"][0]
    older, younger = (fit.predict(HEART.assign(age=HEART["age"] + d)) for d in (5.0, -5.0))
    np.testing.assert_allclose(steps, (older - younger).mean(), rtol=1e-9)
    kinds = effects.avg_comparisons(wrapped, variables="chest_pain").data
    first, *others = sorted(HEART["chest_pain"].unique())
    asked = [fit.predict(HEART.assign(chest_pain=kind)).mean() for kind in others]
    base = fit.predict(HEART.assign(chest_pain=first)).mean()
    np.testing.assert_allclose(kinds["estimate"], np.array(asked) - base, atol=1e-12)
    grid = effects.datagrid(model=wrapped, age=[40, 60])
    rows = effects.predictions(wrapped, newdata=grid).data
    new = pd.DataFrame({c: grid[c].to_list() for c in HEART})
    np.testing.assert_allclose(rows["estimate"], fit.predict(new), rtol=1e-12)
    assert effects.slopes(wrapped, variables="age").data.height == len(HEART)
    used = fit.inputs if name == "costnet" else ["age", "chest_pain", "max_heart_rate"]
    assert set(effects.avg_slopes(wrapped).data["term"]) == set(used)
    assert ("std_error" in rows.columns) == (name == "glm")


def test_glm_has_the_errors_of_statsmodels(effects):
    from statsmodels.formula.api import glm, ols
    from statsmodels.genmod.families import Binomial

    cars = ld.data("autompg").dropna()
    text = "mpg ~ weight + origin + np.log(horsepower)"
    theirs = ols(text, cars.assign(origin=cars["origin"].astype("category"))).fit()
    heart = HEART.assign(disease=(HEART["disease"] == sorted(set(HEART["disease"]))[1]) * 1)
    logit = glm(FORMULA, heart.assign(chest_pain=heart["chest_pain"].astype("category")),
                family=Binomial()).fit()  # fmt: skip
    pairs = [
        (ld.glm(text, cars).to_marginaleffects(cars), theirs),
        (ld.glm(FORMULA, heart).to_marginaleffects(heart), logit),
    ]
    for ours, other in pairs:
        for function in (effects.avg_predictions, effects.avg_comparisons):
            a, b = function(ours).data, function(other).data
            for column, tolerance in (("estimate", 1e-6), ("std_error", 2e-3)):
                np.testing.assert_allclose(a[column], b[column], rtol=tolerance)
    # Slopes of a line are its coefficients. (Those errors of statsmodels' wrapper are 9 % off for
    # weight: its steps are lost in rounding.)
    slopes, tidy = effects.avg_slopes(pairs[0][0]).data, ld.glm(text, cars).tidy()
    found = slopes.filter(slopes["term"].is_in(["weight", "origin"]))
    errors = tidy.set_index("term")["std_error"]
    expected = errors[["origin[Japan]", "origin[USA]", "weight"]]
    np.testing.assert_allclose(found["std_error"], expected, rtol=2e-3)
    # Of classes statsmodels' wrapper takes t, lodim as R the normal distribution.
    low = effects.avg_predictions(pairs[1][0]).data
    np.testing.assert_allclose(
        low["conf_low"], low["estimate"] - 1.959964 * low["std_error"], rtol=1e-6
    )


def test_offsets_are_part_of_predictions(effects):
    abalone = ld.data("abalone").iloc[:300].assign(time=lambda d: np.log(d["height"] + 1.0))
    fit = ld.glm("rings ~ length + sex", abalone, family="poisson", offset="time")
    found = effects.avg_slopes(fit.to_marginaleffects(abalone), variables="length").data
    b = fit.coef()["length"]
    np.testing.assert_allclose(found["estimate"], b * fit.predict(abalone).mean(), rtol=1e-5)
    mean = effects.avg_predictions(fit.to_marginaleffects(abalone)).data
    X = np.column_stack([np.ones(300), abalone["length"], abalone["sex"] == "infant",
                         abalone["sex"] == "male"])  # fmt: skip
    slope = fit.predict(abalone).to_numpy() @ X / 300
    names = ["(Intercept)", "length", "sex[infant]", "sex[male]"]
    cov = fit.covariance().loc[names, names].to_numpy()
    np.testing.assert_allclose(mean["std_error"], np.sqrt(slope @ cov @ slope), rtol=1e-4)


def test_several_classes_are_groups(effects):
    wine = ld.data("wine")
    fit = ld.glm("cultivar ~ alcohol + hue", wine)
    found = effects.avg_predictions(fit.to_marginaleffects(wine)).data
    mean = fit.predict(wine, "prob").mean()
    np.testing.assert_allclose(found["estimate"], mean[found["group"].to_list()], rtol=1e-12)
    assert (found["std_error"] > 0).all()
    link = effects.avg_predictions(fit.to_marginaleffects(wine, type="link")).data
    np.testing.assert_allclose(
        link["estimate"], fit.predict(wine, "link").mean()[link["group"].to_list()], atol=1e-12
    )


def test_levels_that_are_numbers_and_rows_with_gaps(effects):
    cars = ld.data("autompg")
    fit = ld.glm("mpg ~ C(cylinders) + horsepower", cars)
    with pytest.warns(ld.DataWarning, match="6 of 398 rows have missing values"):
        wrapped = fit.to_marginaleffects(cars)
    found = effects.avg_comparisons(wrapped, variables="cylinders").data
    whole = cars.dropna()
    base = fit.predict(whole.assign(cylinders=3))
    other = fit.predict(whole.assign(cylinders=8))
    at = found.filter(found["contrast"] == "8 - 3")
    np.testing.assert_allclose(at["estimate"][0], (other - base).mean(), rtol=1e-9)


def test_what_is_refused(effects):
    cars = ld.data("autompg")
    fit = ld.glm("mpg ~ weight", cars)
    with pytest.raises(ld.ArgumentError, match="covariance='HC3'"):
        effects.avg_predictions(fit.to_marginaleffects(cars), vcov="HC3")
    with pytest.raises(ld.ArgumentError, match="type must be one of response, link"):
        fit.to_marginaleffects(cars, "class")
    with pytest.raises(ld.DataError, match="there is no column 'weight'"):
        fit.to_marginaleffects(cars[["mpg"]])
    offset = ld.glm("mpg ~ weight", cars, offset=np.ones(len(cars)))
    with pytest.raises(ld.ArgumentError, match="the offset must be the name of a column"):
        offset.to_marginaleffects(cars)


@pytest.mark.long
def test_without_a_response():
    with pytest.raises(ld.ArgumentError, match="need a response"):
        ld.ripr("~ age + max_heart_rate", HEART, threads=1).to_marginaleffects(HEART)


def test_without_the_package_the_hint_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "marginaleffects", None)
    monkeypatch.setitem(sys.modules, "marginaleffects.classes", None)
    monkeypatch.delitem(sys.modules, "lodim.fitting.marginaleffects_model", raising=False)
    with pytest.raises(ld.MissingExtraError, match="pip install marginaleffects 'polars<2'"):
        ld.glm("disease ~ age", HEART).to_marginaleffects(HEART)


def test_with_polars_2_the_error_names_the_version_that_works(monkeypatch):
    polars = pytest.importorskip("polars")
    stub = Mock(ModelAbstract=object)
    monkeypatch.setitem(sys.modules, "marginaleffects", stub)
    monkeypatch.setitem(sys.modules, "marginaleffects.classes", stub)
    monkeypatch.delitem(sys.modules, "lodim.fitting.marginaleffects_model", raising=False)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.6.0")
    monkeypatch.setattr(polars, "__version__", "2.1.0")
    with pytest.raises(
        ld.MissingExtraError, match=r"0.6.0 .* polars 2.1.0: pip install 'polars<2'"
    ):
        ld.glm("disease ~ age", HEART).to_marginaleffects(HEART)
    monkeypatch.delitem(sys.modules, "lodim.fitting.marginaleffects_model")
