"""lodim.sklearn: scikit-learn's own checks, and the tools that its users put estimators into."""

import doctest
import inspect
import pickle
import re
import sys
from importlib import import_module, reload
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import lodim as ld

pytest.importorskip("sklearn")
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lodim import sklearn as ls

# The solvers of the oldest scikit-learn call what newer versions of SciPy deprecate.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
EXACT = {"tol": 1e-12, "ftol": 0.0}  # answers to 1e-7, as the check of weights compares them
CHEAP = {  # settings that choose nothing by cross-validation
    "GbmapRegressor": {"m": 2, "lambda_": 1.0, "n_starts": 1, "threads": 1, "control": EXACT},
    "GbmapClassifier": {"m": 2, "lambda_": 0.3, "n_starts": 1, "threads": 1, "control": EXACT},
    "ProsetRegressor": {"lambda_v": 0.1, "n_candidates": 60, "threads": 1},
    "ProsetClassifier": {"lambda_v": 0.03, "threads": 1},
    "CostnetRegressor": {
        "budget": 10, "relax": 1.0, "n_lambda": 10, "threads": 1, "control": {"criterion": "hq"},
    },
    "CostnetClassifier": {
        "lambda_": 0.1, "threads": 1, "control": {"tol": 1e-14, "max_iter": 2000},
    },
    "MelmClassifier": {
        "gamma": 1.0, "n_starts": 4, "threads": 1, "control": {"calibrate": False},
    },
    "RiprRegressor": {"max_dim": 2, "max_views": 20, "threads": 1},
    "RiprClassifier": {"max_dim": 2, "max_views": 20, "threads": 1},
    "RiprClusterer": {"lambda_": 0.1, "n_clusters": 2, "threads": 1},
    "GlmRegressor": {},
    "GlmClassifier": {},
}  # fmt: skip
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
NEIGHBOURS = "a row of weight 2 is one neighbour, but two equal rows are two neighbours"
CANDIDATES = (
    "a row of weight 2 is one candidate, but two equal rows are two candidates, which vote for "
    "each other"
)
EXPECTED = {  # checks that fail, and why; vignettes/scikit_learn.py shows them
    "ProsetRegressor": {WEIGHTS: CANDIDATES},
    "ProsetClassifier": {WEIGHTS: CANDIDATES},
    "RiprRegressor": {WEIGHTS: NEIGHBOURS},
    "RiprClassifier": {WEIGHTS: NEIGHBOURS},
    "RiprClusterer": {WEIGHTS: NEIGHBOURS},
}
CLASSIFIERS = [name for name in ls.__all__ if name.endswith("Classifier")]
REGRESSORS = [name for name in ls.__all__ if name.endswith("Regressor")]
MOST_EXPECTED = 3


def estimator(name, **arguments):
    return getattr(ls, name)(**CHEAP[name] | arguments)


def family_of(name):
    return re.match("[A-Z][a-z]+", name)[0].lower()


@pytest.fixture
def cars():
    return ld.data("autompg")


@pytest.fixture
def wine():
    data = ld.data("wine")
    return data.drop(columns="cultivar"), data["cultivar"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@parametrize_with_checks(
    [estimator(name) for name in ls.__all__],
    expected_failed_checks=lambda one: EXPECTED.get(type(one).__name__, {}),
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_few_checks_fail_and_the_vignette_tells_them():
    assert {family_of(name) for name in EXPECTED} <= {"proset", "ripr"}
    for model in ("proset", "ripr"):
        found = {check for name in EXPECTED if family_of(name) == model for check in EXPECTED[name]}
        assert len(found) <= MOST_EXPECTED
    page = (Path(__file__).parents[1] / "vignettes/scikit_learn.py").read_text()
    rows = re.findall(r"^# \| (.+?) \| `(check_\w+)` \| (.+?) \|$", page, re.M)
    shown = {n.strip("`"): {check: why} for names, check, why in rows for n in names.split(", ")}
    assert shown == EXPECTED


# What they are ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ls.__all__)
def test_parameters_are_those_of_the_model_and_are_documented(name):
    cls = getattr(ls, name)
    own = {p for p in inspect.signature(cls).parameters}
    model = inspect.signature(getattr(ld, family_of(name))).parameters
    defaults = {k: p.default for k, p in model.items()}
    assert own - {"formula", "cv", "new_levels"} <= set(model)
    assert {"missing", "control"} <= own and not own & {"weights", "groups", "data", "progress"}
    for key, value in cls().get_params().items():
        assert value == defaults.get(key) or key in ("formula", "cv", "family", "new_levels")
        assert re.search(rf"\b{key}\b", cls.__doc__), key
    with pytest.raises(TypeError, match="unexpected keyword"):
        cls(nonsense=1)


@pytest.mark.parametrize("name", [*REGRESSORS, *CLASSIFIERS])
def test_answers_are_those_of_the_model(name, cars, wine):
    if name in REGRESSORS:
        X, y, family = cars.drop(columns=["mpg", "horsepower"]), cars["mpg"], "gaussian"
    else:
        X, y, family = wine[0].iloc[:, :2], wine[1], "multinomial"
    one = estimator(name).fit(X, y)
    arguments = CHEAP[name] | {"family": family}
    fit = getattr(ld, family_of(name))("y ~ .", X.assign(y=y), **arguments)
    assert one.fit_.call == fit.call
    if name in REGRESSORS:
        np.testing.assert_array_equal(one.predict(X), fit.predict(X))
        return
    np.testing.assert_array_equal(one.predict(X), fit.predict(X, "class"))
    np.testing.assert_array_equal(one.predict_proba(X), fit.predict(X, "prob"))
    np.testing.assert_array_equal(one.decision_function(X), fit.predict(X, "link"))
    assert one.classes_.tolist() == sorted(set(y)) and one.score(X, y) > 0.6


@pytest.mark.parametrize("labels", [["b", "a"], [2, 1], [True, False], [1.0, -1.0], [1, 0]])
def test_classes_come_back_as_they_were(labels, wine):
    y = np.array(labels)[np.arange(60) % 2]
    X = np.column_stack([2 * (np.arange(60) % 2) + np.sin(np.arange(60)), np.cos(np.arange(60))])
    for given in (y, y.tolist(), pd.Series(y, index=range(5, 65)), pd.Categorical(y)):
        answer = estimator("GbmapClassifier").fit(X, given).predict(X)
        assert set(answer.tolist()) == set(labels) and (answer == y).mean() > 0.8


def test_clusters(wine):
    X = wine[0].iloc[:, :4]
    one = estimator("RiprClusterer")
    labels = one.fit_predict(X)
    assert labels.tolist() == one.labels_.tolist() == one.predict(X).tolist()
    names = one.fit_.clusters()["cluster"].to_numpy()
    np.testing.assert_array_equal(names[labels], one.fit_.predict(X, "cluster"))


# How X is read ------------------------------------------------------------------------------------


def test_formula_categories_and_missing_values(cars):
    X, y = cars.drop(columns="mpg"), cars["mpg"]
    assert X["horsepower"].isna().any() and X["origin"].dtype.kind not in "if"
    one = estimator("GbmapRegressor", formula="bs(weight, df=4) + origin + horsepower").fit(X, y)
    fit = ld.gbmap(
        "mpg ~ bs(weight, df=4) + origin + horsepower", cars, family="gaussian",
        **CHEAP["GbmapRegressor"],
    )  # fmt: skip
    np.testing.assert_array_equal(one.predict(X), fit.predict(cars))
    assert not np.isnan(one.predict(X)).any()
    named = estimator("GbmapRegressor").fit(X.rename(columns={"weight": "y"}), y)
    assert named.fit_.design.response.name == "y_" and "y" in named.fit_.design.features


# scikit-learn 1.6 asks polars 1.40 and newer in a way that polars warns about.
@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_frames_of_others(package, cars):
    frames = pytest.importorskip(package)
    if package == "polars" and sklearn.__version__ < "1.7" and frames.__version__ >= "2":
        pytest.skip("scikit-learn 1.6 does not see the names of columns of polars 2")
    cars = cars.drop(columns="horsepower")
    X, y = cars.drop(columns="mpg"), cars["mpg"]
    convert = frames.from_pandas if package == "polars" else frames.Table.from_pandas
    one = estimator("GlmRegressor").fit(convert(X), y)
    np.testing.assert_array_equal(
        one.predict(convert(X)), estimator("GlmRegressor").fit(X, y).predict(X)
    )
    assert type(one.fit_.tidy()) is type(convert(X)) and one.fit_.design.features == [*X]
    wine = ld.data("wine")
    X, y = wine[["alcohol", "hue"]], wine["cultivar"]
    classes = estimator("GlmClassifier", formula="alcohol + hue").fit(convert(X), y)
    assert classes.predict(convert(X))[0] == "Barolo"


def test_arrays_have_names_x0_x1(wine):
    X, y = wine[0].to_numpy(), wine[1]
    one = estimator("GbmapClassifier").fit(X, y)
    assert one.fit_.design.features[:2] == ["x0", "x1"] and one.n_features_in_ == 13
    integers = np.round(X).astype(np.int32)
    np.testing.assert_array_equal(
        one.fit(integers, y).predict(integers), one.fit(np.round(X), y).predict(integers)
    )


def test_levels_that_training_had_not(cars):
    X, y = cars.drop(columns="mpg"), cars["mpg"]
    some = X["origin"] != "Japan"
    with pytest.raises(ValueError, match=r"level 'Japan'.*new_levels='missing'"):
        estimator("GbmapRegressor").fit(X[some], y[some]).predict(X)
    one = estimator("GbmapRegressor", new_levels="missing").fit(X[some], y[some])
    missing = one.predict(X.assign(origin=X["origin"].where(some)))
    np.testing.assert_array_equal(one.predict(X), missing)


# Weights and groups -------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", ls.__all__)
def test_rows_of_weight_zero_do_not_count(name, wine):
    X, y = wine[0].to_numpy()[:, :4], wine[1].to_numpy()
    y = np.arange(len(y)) % 7 + X[:, 0] if name in REGRESSORS else y
    weight = np.ones(len(y))
    weight[::5] = 0.0
    all_rows = estimator(name).fit(X, y, sample_weight=weight)
    some = estimator(name).fit(X[weight > 0], y[weight > 0])
    method = "predict_proba" if name in CLASSIFIERS else "predict"
    np.testing.assert_allclose(
        getattr(all_rows, method)(X), getattr(some, method)(X), rtol=1e-6, atol=1e-7
    )


@pytest.mark.long
def test_cv_chooses_by_the_folds_that_it_is_given(cars):
    cars = cars.dropna()
    X, y, groups = cars.drop(columns="mpg"), cars["mpg"], cars["model_year"].to_numpy()
    settings = {"m": 1, "n_starts": 1, "threads": 1}
    one = ls.GbmapRegressor(cv=GroupKFold(3), **settings).fit(X, y, groups=groups)
    fold = np.zeros(len(X), int)
    for k, (_, test) in enumerate(GroupKFold(3).split(X, y, groups)):
        fold[test] = k
    cv = ld.cv(ld.gbmap, "mpg ~ .", cars, folds=fold, family="gaussian", **settings)
    assert one.fit_.settings == cv.best.settings and one.cv_.lambda_min == cv.lambda_min
    np.testing.assert_array_equal(one.predict(X), cv.best.predict(X))
    three = ls.GbmapRegressor(cv=3, **settings).fit(X, y, groups=groups).cv_
    assert "whole groups" in repr(three)
    with pytest.raises(ValueError, match="hold out each row once"):
        ls.GbmapRegressor(cv=ShuffleSplit(3), **settings).fit(X, y)
    with pytest.raises(ld.ArgumentError, match="cv does not split these 392 rows"):
        ls.GbmapRegressor(cv=GroupKFold(400), **settings).fit(X, y, groups=groups)
    plain = ls.GbmapRegressor(**settings).fit(X, y, groups=groups).fit_
    assert "folds of whole groups" in repr(plain)
    prosets = [ls.ProsetRegressor(cv=2, loss=one, threads=1) for one in ("squared", "density")]
    chosen = [one.fit(X[["weight"]][::20], y[::20]).fit_.settings for one in prosets]
    assert [s.loss for s in chosen] == ["squared", "density"]
    assert all(
        s.lambda_v in c.cv_.frame["lambda_v"].to_list()
        for s, c in zip(chosen, prosets, strict=True)
    )


def test_groups_without_folds_are_refused(wine):
    with pytest.raises(ld.ArgumentError, match="groups= needs cv= for ripr"):
        estimator("RiprClassifier").fit(*wine, groups=np.arange(178))
    with pytest.raises(ld.ArgumentError, match="groups must have one value for each of 178 rows"):
        estimator("MelmClassifier").fit(*wine, groups=[1, 2])


# Tools of scikit-learn ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*REGRESSORS, *CLASSIFIERS])
def test_pickles_and_clones_predict_alike(name, wine):
    X, y = wine[0].iloc[:, :4], wine[1]
    y = X["alcohol"] ** 2 + X["ash"] if name in REGRESSORS else y
    one = estimator(name).fit(X, y)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(X), one.predict(X))
    assert clone(one).get_params() == one.get_params() and not hasattr(clone(one), "fit_")


def test_pipelines_and_searches(cars):
    X, y = cars.drop(columns="mpg"), cars["mpg"]
    columns = ColumnTransformer(
        [("kinds", OneHotEncoder(), ["origin"]), ("numbers", StandardScaler(), ["weight"])]
    )
    pipe = make_pipeline(columns, estimator("GbmapRegressor"))
    search = GridSearchCV(pipe, {"gbmapregressor__lambda_": [0.1, 100.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"gbmapregressor__lambda_": 0.1}
    assert search.best_estimator_[-1].fit_.settings.lambda_ == 0.1
    linear = make_pipeline(estimator("GbmapRegressor"), LinearRegression()).fit(X, y)
    alone = estimator("GbmapRegressor").fit(X, y)
    assert linear[-1].n_features_in_ == 2 and linear.score(X, y) > alone.score(X, y) - 1e-9


def test_cross_validation_by_groups_and_in_parallel(cars):
    X, y = cars.drop(columns="mpg"), cars["mpg"]
    how = {"cv": GroupKFold(3), "groups": cars["model_year"]}
    one = estimator("GbmapRegressor")
    scores = cross_val_score(one, X, y, **how)
    assert scores.min() > 0.5
    with joblib.parallel_backend("threading", n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(one, X, y, **how), scores)


@pytest.mark.long
def test_fits_cross_into_other_processes(wine):
    one = estimator("GlmClassifier", formula="alcohol + hue").fit(*wine)
    parts = joblib.Parallel(n_jobs=2)(
        joblib.delayed(one.predict)(wine[0][i : i + 89]) for i in (0, 89)
    )
    np.testing.assert_array_equal(np.concatenate(parts), one.predict(wine[0]))


@pytest.mark.long
def test_calibration_and_permutation_importance(wine):
    X, y = wine
    calibrated = CalibratedClassifierCV(estimator("RiprClassifier"), cv=2).fit(X, y)
    p = calibrated.predict_proba(X)
    assert p.shape == (178, 3) and calibrated.score(X, y) > 0.9
    one = estimator("CostnetClassifier").fit(X, y)
    importance = permutation_importance(one, X, y, n_repeats=2, random_state=0).importances_mean
    unused = ~one.get_support()
    assert unused.any() and (importance[unused] == 0).all() and importance.max() > 0.05


def test_meta_estimators_take_their_folds(wine):
    y = cross_val_predict(
        estimator("MelmClassifier"), *wine, cv=KFold(3, shuffle=True, random_state=0)
    )
    assert (y == wine[1]).mean() > 0.9


# transform ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, type", [("GbmapClassifier", "embedding"), ("MelmClassifier", "projection")]
)
def test_coordinates(name, type, wine):
    one = estimator(name).fit(*wine)
    coordinates = one.fit_.predict(wine[0], type)
    np.testing.assert_array_equal(one.transform(wine[0]), coordinates)
    assert one.get_feature_names_out().tolist() == list(coordinates.columns)
    frame = one.set_output(transform="pandas").transform(wine[0])
    pd.testing.assert_frame_equal(frame, coordinates)
    assert make_pipeline(estimator(name), LogisticRegression()).fit(*wine).score(*wine) > 0.9


def test_chosen_columns(wine):
    one = estimator("CostnetClassifier", costs=dict.fromkeys(wine[0], 1.0)).fit(*wine)
    assert one.get_feature_names_out().tolist() == [c for c in wine[0] if c in one.fit_.inputs]
    assert 0 < len(one.fit_.inputs) < 13
    np.testing.assert_array_equal(one.transform(wine[0]), wine[0].loc[:, one.get_support()])
    arrays = estimator("CostnetClassifier", costs={f"x{j}": 1.0 for j in range(13)})
    support = arrays.fit(wine[0].to_numpy(), wine[1]).get_support()
    np.testing.assert_array_equal(support, one.get_support())
    kept = one.set_output(transform="pandas").transform(wine[0])
    pd.testing.assert_frame_equal(kept, wine[0].loc[:, one.get_support()])


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ls.__all__)
def test_what_is_refused(name, wine):
    X, y = wine[0], wine[0]["hue"] if name in REGRESSORS else wine[1]
    with pytest.raises(NotFittedError, match=r"not fitted yet: call fit\(X, y\) first"):
        estimator(name).predict(X)
    one = estimator(name).fit(X.iloc[:, :3], y)
    with pytest.raises(ValueError, match="feature names should match"):
        one.predict(X.iloc[:, [0, 1, 3]])
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3 features"):
        estimator(name).fit(X.to_numpy()[:, :3], y).predict(X.to_numpy()[:, :2])
    with pytest.raises(ld.ArgumentError, match="formula= needs an X with column names"):
        estimator(name, formula="x0").fit(X.to_numpy(), y)
    with pytest.raises(ld.ArgumentError, match="formula must be the right side only"):
        estimator(name, formula="y ~ alcohol").fit(X, y)
    with pytest.raises(ValueError, match=r"there is no column 'alkohol'.*'alcohol'"):
        estimator(name, formula="alkohol").fit(X, y)
    with pytest.raises(ld.ArgumentError, match="sample_weight must have one value for each of 178"):
        estimator(name).fit(X, y, sample_weight=[1.0])
    with pytest.raises(ld.DataError, match="two columns called 'hue'"):
        estimator(name).fit(pd.concat([X, X[["hue"]]], axis=1), y)
    infinite = X.assign(ash=np.inf)
    with pytest.raises(ValueError, match="'ash' must be finite"):
        estimator(name).fit(infinite, y)


def test_only_ordered_categories_give_the_order_of_classes(cars):
    X, grade = cars[["weight"]], pd.cut(cars["mpg"], 3, labels=["low", "middle", "high"])
    ordinal = ls.GlmClassifier(family="ordinal")
    assert ordinal.fit(X, grade.array).classes_.tolist() == ["low", "middle", "high"]
    with pytest.raises(ld.DataError, match="'high', 'low', 'middle' in no order"):
        ordinal.fit(X, grade.astype(str).astype("category"))


def test_bad_responses(wine):
    X = wine[0]
    for bad, message in (
        (np.full(178, np.nan), "y contains NaN"),
        (np.full(178, 1j), "Complex data not supported"),
        (np.arange(177), "inconsistent numbers of samples"),
        (np.ones(178), "is 1 in every row"),
        (pd.date_range("2024-01-01", periods=178), "neither numbers nor categories"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator("GbmapRegressor").fit(X, bad)
    for gap in (None, np.nan, pd.NA):
        y = pd.Series([*wine[1][:-1], gap], dtype=object)
        with pytest.raises(ld.DataError, match=r"y contains NaN in 1 of 178 rows, .* row 177"):
            estimator("GbmapClassifier").fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator("GbmapClassifier").fit(X, X["hue"])
    with pytest.raises(ValueError, match="one class"):
        estimator("GbmapClassifier").fit(X, np.ones(178, int))
    with pytest.warns(DataConversionWarning):
        estimator("GlmRegressor").fit(X, np.sqrt(X[["hue"]]))


def test_no_rows_have_no_answers(wine):
    X, y = wine
    one = ls.GlmClassifier(formula="hue").fit(X, y == "Barolo")
    assert one.predict(X[:0]).shape == (0,) and one.predict_proba(X[:0]).shape == (0, 2)
    assert ls.GlmRegressor(formula="hue").fit(X, X["ash"]).predict(X[:0]).shape == (0,)


def test_missing_values_where_rows_are_dropped(cars):
    X, y = cars[["weight", "horsepower"]], cars["mpg"]
    for one in (ls.GlmRegressor(), estimator("GbmapRegressor", missing="drop")):
        with pytest.raises(ld.DataError, match=r"missing in 6 rows.*missing='indicator'"):
            one.fit(X, y)
        with pytest.raises(ValueError, match="NaN"):
            one.fit(X.to_numpy(), y)
        one.fit(X.dropna(), y[X["horsepower"].notna()])
        with pytest.raises(ld.DataError, match="rows, the first of them row 32"):
            one.predict(X)
    assert np.isfinite(ls.GlmRegressor(missing="indicator").fit(X, y).predict(X)).all()


@pytest.mark.filterwarnings("ignore:There are as many coefficients as rows")
def test_glm_answers_rows_that_ask_for_what_is_aliased():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 12)), rng.normal(size=8)
    new = rng.normal(size=(5, 12))
    one = ls.GlmRegressor().fit(X, y)
    with pytest.warns(ld.DataWarning, match="5 of 5 rows need a coefficient"):
        answer = one.predict(new)
    kept = [j for j in range(12) if f"x{j}" not in one.fit_.aliased]
    expected = LinearRegression().fit(X[:, kept], y).predict(new[:, kept])
    np.testing.assert_allclose(answer, expected, rtol=1e-6)
    frame = pd.DataFrame(new, columns=one.fit_.design.features)
    assert one.fit_.predict(frame).isna().all()


def test_without_scikit_learn_the_hint_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ld.MissingExtraError, match=r"pip install 'lodim\[sklearn\]'"):
        reload(import_module("lodim.sklearn"))


def test_examples():
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    found = [test for test in finder.find(ls, "lodim.sklearn") if test.examples]
    for test in found:
        runner.run(test)
    assert found and runner.summarize(verbose=False).failed == 0
