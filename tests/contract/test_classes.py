"""AUC, thresholds and calibration plots of every model with classes; one row as a Series."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import FORMULA, MODELS, contract_of, frame_of, quick

pyplot = pytest.importorskip("matplotlib.pyplot")
models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
_fits = {}


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def fit_of(model, kind):
    if (model, kind) not in _fits:
        data = frame_of(model, kind)
        _fits[model, kind] = model(FORMULA, data, weights="w", **quick(model)), data
    return _fits[model, kind]


@models
def test_auc_of_evaluate(model):
    metrics = pytest.importorskip("sklearn.metrics")
    for kind in ("text", "multinomial"):
        fit, df = fit_of(model, kind)
        p = fit.predict(df, "prob")
        at = p.notna().all(axis=1)
        y, w = df["answer"][at], df["w"][at]
        areas = [metrics.roc_auc_score(y == k, p[k][at], sample_weight=w) for k in fit.levels]
        row = fit.evaluate(df).iloc[0]
        assert row["auc"] == pytest.approx(np.mean(areas), rel=1e-9)
        assert list(row.index).index("auc") == list(row.index).index("log_loss") + 1


def test_auc_from_files_and_of_one_class(tmp_path):
    fit, df = fit_of(ld.glm, "multinomial")
    for k, part in enumerate((df[:30], df[30:])):
        part.to_csv(tmp_path / f"{k}.csv", index=False)
    files = str(tmp_path / "*.csv")
    assert fit.evaluate(files)["auc"][0] == pytest.approx(fit.evaluate(df)["auc"][0], rel=1e-12)
    assert np.isnan(fit.evaluate(df[df["answer"] == "low"])["auc"][0])


@models
@pytest.mark.parametrize("threshold", [0.2, 0.9])
def test_threshold(model, threshold):
    fit, df = fit_of(model, "text")
    found = fit.predict(df, "class", threshold=threshold)
    p = fit.predict(df)
    assert found.isna().equals(p.isna())
    assert ((found == "sick") == (p >= threshold))[p.notna()].all()
    assert found.name == "answer" and 0 < (found == "sick").sum() < len(df)


@models
def test_thresholds_that_mean_nothing(model):
    fit, df = fit_of(model, "text")
    for value in (0.0, 1, 1.5, -0.1, True, "cost", [0.5]):
        with pytest.raises(ld.ArgumentError, match="threshold must be between 0 and 1"):
            fit.predict(df, "class", threshold=value)
    for type in {*fit.types} - {"class"}:
        with pytest.raises(ld.ArgumentError, match="threshold= needs type='class', not"):
            fit.predict(df, type, threshold=0.5)
    several, df = fit_of(model, "multinomial")
    with pytest.raises(ld.ArgumentError, match="with two classes; this response has 3 classes"):
        several.predict(df, "class", threshold=0.5)
    if "gaussian" in contract_of(model).kinds:
        number, df = fit_of(model, "gaussian")
        with pytest.raises(ld.ArgumentError, match="with two classes; this response is numeric"):
            number.predict(df, threshold=0.5)


@models
def test_threshold_of_two_classes_of_multinomial(model):
    df = frame_of(model, "text")
    fit = model(FORMULA, df, family="multinomial", **quick(model))
    p = fit.predict(df, "prob")
    found = fit.predict(df, "class", threshold=0.2)
    assert ((found == fit.levels[1]) == (p.iloc[:, 1] >= 0.2))[p.notna().all(axis=1)].all()


def test_rows_without_an_estimate_have_no_class():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=60)}).assign(b=lambda d: 2 * d["a"])
    df["y"] = np.where(df["a"] + rng.normal(size=60) > 0, "yes", "no")
    fit = ld.glm("y ~ a + b", df)
    new = pd.DataFrame({"a": [0.5, 0.5], "b": [1.0, 3.0]})  # the second row needs b's own slope
    for how in ({}, {"threshold": 0.01}):
        assert fit.predict(new, "class", **how).tolist() == ["yes", None]


@pytest.mark.long
@models
def test_calibration_plot(model):
    fit, df = fit_of(model, "text")
    ax = fit.plot("calibration", data=df, bins=4)
    assert "answer = sick" in ax.get_xlabel()
    p = fit.predict(df).dropna().sort_values()
    y, w = (df["answer"] == "sick")[p.index], df["w"][p.index]
    quarters = p.iloc[np.searchsorted(w.cumsum() / w.sum(), [0.25, 0.5, 0.75])]
    group = np.searchsorted(quarters, p)
    means = [[np.average(v[group == g], weights=w[group == g]) for v in (p, y)] for g in set(group)]
    np.testing.assert_allclose(np.transpose(ax.lines[-1].get_data()), sorted(means))
    several, df = fit_of(model, "multinomial")
    ax = several.plot("calibration", data=df)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(several.levels)
    ax = several.plot("calibration", data=df, level="mid")
    assert ax.get_legend() is None and "answer = mid" in ax.get_xlabel()
    with pytest.raises(ld.ArgumentError, match="level must be one of 'high', 'low', 'mid'"):
        several.plot("calibration", data=df, level="none")
    with pytest.raises(ld.DataError, match="a row with a known class"):
        several.plot("calibration", data=df.assign(answer=None))
    if "gaussian" in contract_of(model).kinds:
        number, df = fit_of(model, "gaussian")
        with pytest.raises(ld.ArgumentError, match=r"needs a response with classes; .* 'answer'"):
            number.plot("calibration", data=df)


def test_calibration_needs_a_response():
    fit = ld.melm("~ age + Q('dose mg')", frame_of(ld.melm, "text").dropna())
    with pytest.raises(ld.ArgumentError, match="needs a response with classes; the fit has none"):
        fit.plot("calibration", data=frame_of(ld.melm, "text"))


@models
def test_data_choose_the_kind_of_a_plot(model):
    fit, df = fit_of(model, "text")
    drawn = np.ravel(fit.plot(data=df))
    assert any(ax.has_data() for ax in drawn)


@models
def test_a_series_is_one_row(model):
    fit, df = fit_of(model, "text")
    one, row = df.iloc[[5]].rename_axis(None), df.iloc[5]  # a Series has no name for its label
    assert row.dtype == object
    for type in ("response", "class"):
        pd.testing.assert_series_equal(fit.predict(row, type), fit.predict(one, type))
    pd.testing.assert_frame_equal(fit.augment(row), fit.augment(one))
    pd.testing.assert_frame_equal(fit.evaluate(row), fit.evaluate(one))
    assert repr(fit.check(row)) == repr(fit.check(one))
    if hasattr(fit, "explain"):
        assert str(fit.explain(row)) == str(fit.explain(one))
    for kind in {"local", "shapley"} & {*contract_of(model).plots}:
        fit.plot(kind, data=row)
    with pytest.raises(ld.DataError, match="a pandas Series must be one row, with the names"):
        fit.predict(df["age"])


def test_numbers_that_a_series_makes_floats_are_the_same_levels():
    cars = ld.data("autompg")[["mpg", "cylinders", "model_year"]]
    fit = ld.glm("mpg ~ C(cylinders) + model_year", cars)
    assert cars.iloc[7].dtype == float and cars["cylinders"].dtype.kind == "i"
    assert fit.predict(cars.iloc[7]).equals(fit.predict(cars.iloc[[7]]))
