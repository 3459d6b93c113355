"""Odd arguments and data, as the campaign of random frames has found them: refused in words."""

import inspect
import pickle
import re
import warnings
from functools import partial
from typing import Literal, get_args, get_origin

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import MODELS, contract_of, quick
from lodim.fitting.argument_names import SYNONYMS
from lodim.fitting.fit import Fit

pyplot = pytest.importorskip("matplotlib.pyplot")

models = pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
ODD = [
    pd.NA, pd.NaT, object(), {}, [], np.zeros(2), np.array([]), pd.Series([1.0, 2.0]),
    pd.DataFrame({"a": [1, 2]}), 1j, b"x", "x", -1, np.nan, {1, 2}, int,
]  # fmt: skip
odd = pytest.mark.parametrize("value", ODD, ids=lambda v: type(v).__name__ + str(v)[:5])


def frame(n=60, scale=1.0):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(scale * rng.normal(size=(n, 3)), columns=list("abc"))
    df["k"] = np.where(df["a"] + df["b"] + scale * rng.normal(size=n) > 0, "p", "q")
    df["y"], df["w"] = df["a"] * df["b"], 1.0 + np.arange(n) % 2
    return df


_fits = {}


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def fit_of(model, left="k", **arguments):
    key = (model, left, str(arguments))
    if key not in _fits:
        _fits[key] = model(f"{left} ~ a + b + c", frame(), **contract_of(model).cheap, **arguments)
    return _fits[key]


@pytest.mark.long
@models
def test_two_classes_as_multinomial(model):
    """A column a class, as of more classes, and the same answers as those of a binomial fit."""
    df, fit, plain = frame(), fit_of(model, family="multinomial"), fit_of(model)
    for type in ("response", "link", "prob"):
        out = fit.predict(df, type)
        assert list(out) == ["p", "q"] and np.isfinite(out.to_numpy()).all()
    np.testing.assert_allclose(fit.predict(df).sum(axis=1), 1.0)
    measured = fit.evaluate(df).iloc[0]
    assert measured["n"] == len(df) and 0 < measured["dev_ratio"] <= 1
    assert {".fitted[p]", ".fitted[q]", ".class"} <= set(fit.augment(df))
    assert str(fit) and str(fit.summary()) and "multinomial" in str(fit)
    if model in (ld.ripr, ld.melm):  # whose views do not depend on how scores are written
        np.testing.assert_allclose(fit.predict(df)["q"], plain.predict(df), rtol=1e-6)


def test_two_classes_as_multinomial_in_a_file(tmp_path):
    df, fit = frame(), fit_of(ld.ripr, family="multinomial")
    fit.save(tmp_path / "fit")
    pd.testing.assert_frame_equal(ld.load(tmp_path / "fit").predict(df), fit.predict(df))
    cv = ld.cv(ld.ripr, "k ~ a + b + c", df, family="multinomial", grid={"lambda_": [0.1]}, folds=2)
    assert np.isfinite(cv.tidy()["mean"]).all()


@pytest.mark.long
@models
def test_the_class_of_a_row_that_misses_an_input_is_none(model):
    """Or that of most rows, where a model answers it as the null model does."""
    drop = {} if contract_of(model).keeps_missing else {"missing": "drop"}
    df, fit = frame(), fit_of(model, **drop)
    df.loc[3, ["a", "b", "c"]] = np.nan
    most = df["k"].mode()[0] if contract_of(model).answers_all(fit) else None
    said = fit.predict(df, "class")
    assert said[3] == most and said.drop(index=3).isin(["p", "q"]).all()
    assert fit.augment(df)[".class"][3] == most
    assert fit.predict(df.drop(index=3), "class").dtype == df["k"].dtype


def test_votes_of_a_row_that_misses_an_input_are_none():
    df = frame()
    df.loc[3, ["a", "b", "c"]] = np.nan
    assert fit_of(ld.ripr).votes(df).loc[3].tolist() == [None] * len(fit_of(ld.ripr).estimates)


@pytest.mark.long
@models
@pytest.mark.parametrize("value", [1e160, -1e160, 1e300, 1e308])
def test_a_number_that_is_too_far_to_be_computed_with(model, value):
    fit = model("k ~ a + b + c", frame(scale=0.01), **contract_of(model).cheap)
    new = frame(5, scale=0.01).assign(**dict.fromkeys("abc", value))
    for call in (fit.predict, fit.augment, fit.evaluate):
        with pytest.raises(ld.DataError, match="too far for the computations"):
            call(new)
    far = fit.predict(new.assign(**dict.fromkeys("abc", 1e60)))
    assert np.isfinite(far).all()


@pytest.mark.parametrize("model", [m for m in MODELS if m is not ld.melm], ids=lambda m: m.__name__)
def test_a_response_that_is_too_large_to_be_computed_with(model):
    fit, new = fit_of(model, "y"), frame().assign(y=1e80)
    for call in (
        fit.augment,
        fit.evaluate,
        lambda new: model("y ~ a", new.assign(y=new["y"] * new["a"])),
    ):
        with pytest.raises(ld.DataError, match=r"the response 'y' must be at most .* divide it by"):
            call(new)
    assert np.isfinite(fit.evaluate(new.assign(y=frame()["y"] * 1e69))["deviance"]).all()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
@pytest.mark.parametrize("left", ["k", "y"])
@pytest.mark.parametrize("model", [ld.gbmap, ld.proset, ld.costnet], ids=lambda m: m.__name__)
def test_weights_and_offsets_of_all_sizes(model, left):
    df = frame()
    for size in (800.0, -1e69):
        offset = np.where(np.arange(len(df)) < 3, size, 0.0)
        fit = model(f"{left} ~ a + b + c", df, offset=offset, **contract_of(model).cheap)
        assert not np.isnan(fit.evaluate(df, offset=offset)["deviance"]).any()
    model(
        f"{left} ~ a + b + c",
        df,
        weights=np.where(np.arange(len(df)) < 30, 1e69, 1.0),
        **contract_of(model).cheap,
    )
    for what in ("weights", "offset"):
        with pytest.raises(ld.DataError, match=rf"{what} must be at most 1e\+70 .* 1e\+80"):
            model(
                f"{left} ~ a + b + c",
                df,
                **{what: np.full(len(df), 1e80)},
                **contract_of(model).cheap,
            )


@pytest.mark.long
def test_a_number_that_is_too_far_for_single_precision():
    fit = ld.gbmap("y ~ a + b", frame(), dtype="float32", m=1, lambda_=0.1)
    with pytest.raises(ld.DataError, match="'a' has a number"):
        fit.predict(frame().assign(a=1e30))


def test_evaluate_where_no_weight_is_known():
    fit = ld.ripr("k ~ a + b + c", frame(), weights="w", lambda_=0.1)
    with pytest.raises(ld.DataError, match="no complete row to evaluate"):
        fit.evaluate(frame().assign(w=np.nan))


@models
@odd
def test_types_and_kinds(model, value):
    fit = fit_of(model)
    with pytest.raises(ld.ArgumentError, match="type must be one of"):
        fit.predict(frame(), value)
    with pytest.raises(ld.ArgumentError, match="kind must be one of"):
        fit.plot(value)
    for name in {"family", "dtype", "standardize"} - {*contract_of(model).lacks}:
        with pytest.raises(ld.LodimError, match=name):
            model("k ~ a + b", frame(), **contract_of(model).cheap, **{name: value})


@odd
def test_paths_and_cross_validation(value):
    df = frame(30)
    for name in ("penalty", "n_lambda", "lambda_min_ratio"):
        with pytest.raises(ld.ArgumentError, match=name):
            ld.path(ld.gbmap, "y ~ a + b", df, m=1, **{name: value})
    for name in ("loss", "rule", "n_jobs", "grid"):
        if name == "grid" and isinstance(value, dict | pd.DataFrame):
            continue
        with pytest.raises(ld.ArgumentError, match=name):
            ld.cv(ld.gbmap, "y ~ a + b", df, m=1, lambda_=0.1, **{name: value})
    path = ld.path(ld.gbmap, "y ~ a + b", df, m=1, lambdas=[1.0, 0.1])
    for call in (path.at, path.coef, lambda v: path.predict(df, v), lambda v: path.plot(top=v)):
        with pytest.raises(ld.ArgumentError):
            call(value)


def test_a_huge_number_is_a_number():
    path = ld.path(ld.gbmap, "y ~ a + b", frame(30), m=1, lambdas=[1.0, 0.1])
    assert path.at(10**30) is path.fits[0]
    assert fit_of(ld.costnet, "y").at(lambda_=10**30).df == 0


@odd
def test_what_gbmap_is_asked(value):
    fit, df = fit_of(ld.gbmap), frame()
    refused = [
        lambda: fit.first(value), lambda: fit.staged(df, value), lambda: fit.drift(df, value),
        lambda: fit.drift_threshold(df, quantile=value), lambda: fit.neighbours(df, value),
        lambda: fit.distance(df, kind=value),
        lambda: fit.distance(df, kind="path", tolerance=value),
        lambda: fit.plot("effects", top=value), lambda: fit.plot("drift", data=df, limit=value),
        lambda: fit.plot("drift", data=df, threshold=value),
    ]  # fmt: skip
    for call in refused:
        with pytest.raises(ld.ArgumentError):
            call()
    if not (isinstance(value, int) and value == -1):
        with pytest.raises(ld.ArgumentError, match="a row"):
            fit.plot("local", data=df, row=value)


@odd
def test_what_the_others_are_asked(value):
    proset, df = fit_of(ld.proset), frame()
    numeric, both = fit_of(ld.proset, "y", loss="density"), fit_of(ld.ripr, "k + y")
    for call in (
        lambda: proset.familiarity(df, quantile=value),
        lambda: numeric.predict(df, value, level=0.5),
        lambda: numeric.predict(df, "interval", level=value),
        lambda: proset.plot("weights", top=value), lambda: proset.plot("map", batch=value),
        lambda: fit_of(ld.costnet).plot("cost", log=value),
        lambda: fit_of(ld.costnet).plot("graph", most=value),
        lambda: fit_of(ld.melm).plot("view", top=value),
        lambda: fit_of(ld.melm).plot("view", contours=value),
        lambda: fit_of(ld.melm).plot("view", arrows=value),
        lambda: fit_of(ld.melm).plot("loadings", of=value),
        lambda: proset.plot("surface", level=value),
        lambda: proset.plot("shapley", data=df, level=value),
        lambda: both[value], lambda: both.predict(df, value),
        lambda: fit_of(ld.ripr).plot("view", top=value),
    ):  # fmt: skip
        with pytest.raises(ld.ArgumentError):
            call()
    with pytest.raises(ld.LodimError):
        fit_of(ld.melm).plot("view", data=value)
    if np.size(value):  # an empty list is a way to say 0
        with pytest.raises(ld.ArgumentError, match=r"features|active"):
            proset.plot("scatter", features=value)
    with pytest.raises(ld.ArgumentError, match="of must be"):
        fit_of(ld.melm).plot("loadings", of=None)


def test_a_tolerance_beyond_sense():
    with pytest.raises(ld.ArgumentError, match="ftol must be 0 or more"):
        ld.gbmap("y ~ a", frame(), m=1, lambda_=0.1, control={"ftol": 1e308})
    with pytest.raises(ld.DataError, match="proset needs at least inf"):
        ld.proset("y ~ a", frame(), control={"max_fraction": 1e-320})


def test_numbers_of_numpy_in_control_are_numbers():
    control = {"ftol": np.float32(0.25), "max_iter": np.int64(9), "reference_rows": np.uint8(5)}
    fit = ld.gbmap("y ~ a", frame(), m=1, lambda_=0.1, control=control)
    assert fit.arguments["control"] == {"ftol": 0.25, "max_iter": 9, "reference_rows": 5}
    assert "np." not in fit.call
    with pytest.raises(ld.ArgumentError, match="calibrate must be True or False, not 1"):
        ld.melm("k ~ a", frame(), control={"calibrate": np.int64(1)})
    ld.melm("k ~ a", frame(), gamma=1.0, n_starts=1, control={"calibrate": np.False_})


@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
def test_a_whole_number_beyond_arrays_is_a_number():
    fit = ld.proset("y ~ a", frame(), lambda_v=10**30)
    assert fit.settings.lambda_v == 1e30 and np.isfinite(fit.predict(frame())).all()


@pytest.mark.parametrize(
    "model, grid",
    [
        (ld.costnet, {"budget": [(1.0, 2.0)]}), (ld.costnet, {"budget": [None, 1.0]}),
        (ld.gbmap, {"lambda_": ["x", 0.1]}), (ld.gbmap, {"m": ["x", 1]}),
        (ld.gbmap, {"lambda_": np.ones((2, 2))}), (ld.ripr, {"lambda_": [True]}),
        (ld.gbmap, pd.DataFrame({"lambda_": [(0.1,)], "m": [1]})),
    ],
    ids="abcdefg",
)  # fmt: skip
def test_settings_that_are_put_in_order_are_numbers(model, grid):
    with pytest.raises(ld.ArgumentError, match=r"(budget|lambda_|m) must be numbers in the grid"):
        ld.cv(model, "k ~ a + b", frame(), grid=grid, folds=2)


def test_large_units_have_penalties_too():
    df = frame().assign(a=frame()["a"] * 1e36)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        fit = ld.gbmap("y ~ a + b", df, m=1, standardize=False)
    assert np.isfinite(fit.predict(df)).all()
    with pytest.raises(ld.ArgumentError, match=r"cost of 'a' must be a number, 0 to 1e\+70"):
        ld.costnet("y ~ a + b", df, costs={"a": 1e71, "b": 1})


def test_rows_that_no_position_names():
    with pytest.raises(ld.ArgumentError, match="with a row True"):
        fit_of(ld.gbmap).plot("local", data=frame(), row=True)
    with pytest.raises(ld.ArgumentError, match="dimensions must be"):
        fit_of(ld.melm).plot("view", dimensions=["a", ["b"]])
    with pytest.raises(ld.ArgumentError, match="level must be one of"):
        fit_of(ld.proset).plot("surface", level=np.void(b"ab"))


def test_rules_are_names():
    for rules in (np.zeros((2, 2)), [["greedy"]], [pd.NA], [1]):
        with pytest.raises(ld.ArgumentError, match="rules must be"):
            ld.costnet("y ~ a", frame(), rules=rules)


def test_a_column_called_as_the_intercept():
    df = frame().rename(columns={"a": "(Intercept)"})
    path, fit = ld.path(ld.costnet, "y ~ .", df, n_lambda=2), ld.glm("y ~ .", df)
    boosted = ld.gbmap("y ~ .", df, m=1, lambda_=0.1)
    tables = fit.covariance().index, fit.coef().index, fit.anova()["term"], fit.tidy()["term"]
    for names in (*tables, path.coef().columns, boosted.projections().columns):
        assert [name for name in names if "Inter" in name] == [
            "(Intercept)", "(Intercept) (feature)"
        ]  # fmt: skip
    assert len(fit._pictures(df)[0].frame) == len(fit.design.names)
    assert "collinearity" in str(fit.check(df.assign(d=df["b"])).summary())


def test_levels_of_any_size(tmp_path):
    df = frame().assign(a=np.where(np.arange(60) % 2, -1.5e150, 3.0))
    fit = ld.gbmap("y ~ C(a) + b", df, m=1, lambda_=0.1)
    fit.save(tmp_path / "fit")
    np.testing.assert_array_equal(ld.load(tmp_path / "fit").predict(df), fit.predict(df))


def test_an_export_with_other_data():
    fit, df = fit_of(ld.proset), frame()
    twice = pd.concat([df, df[["a", "b", "c"]]], axis=1)
    for other in (df.assign(a="some text", b="some text"), twice, df.assign(a=0.0, b=0.0)):
        with pytest.raises(ld.DataError, match="must be the training data"):
            fit.export(other)


@pytest.mark.parametrize(
    "model", [m for m in MODELS if contract_of(m).penalty], ids=lambda m: m.__name__
)
@pytest.mark.parametrize("value", [1e101, 1e308, np.inf, -1.0, (), (0.1,)], ids=str)
def test_penalties_that_none_can_have(model, value):
    name = "budget" if model is ld.costnet else contract_of(model).penalty
    if name == "budget" and value == np.inf:
        return  # no limit
    with pytest.raises(ld.ArgumentError, match=name):
        model("k ~ a + b + c", frame(), **contract_of(model).cheap | {name: value})


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.gbmap, ld.costnet], ids=lambda m: m.__name__)
def test_an_intercept_alone_is_the_mean(model):
    """What a column without spread explains is rounding: no coefficient is made of it."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        df = frame().assign(y=rng.normal(size=60), w=rng.integers(0, 3, 60), o=rng.normal(size=60))
        fit = model("y ~ 1", df, weights="w", offset="o", **contract_of(model).cheap)
        level = np.average(df["y"] - df["o"], weights=df["w"])
        np.testing.assert_allclose(fit.predict(df, offset="o"), level + df["o"], rtol=1e-9)
        if model is ld.gbmap:
            assert np.abs(fit.estimates.theta).max() < 10.0


def test_a_product_beyond_all_numbers():
    fit, df = ld.gbmap("y ~ a:b:c", frame(), m=1, lambda_=0.1), frame(5)
    for far in (df.assign(a=1e200, b=1e200), df.assign(a=1e200, b=1e200, c=0.0)):
        with pytest.raises(ld.DataError, match="'a:b:c' has a number that is inf"):
            fit.predict(far)


def test_more_neighbours_than_rows():
    fit, df = fit_of(ld.ripr), frame()
    text = str(fit.explain(df.iloc[:1], k=2**31 - 1))
    assert text == str(fit.explain(df.iloc[:1], k=len(df)))


def test_few_rows_are_enough_to_score_and_to_be_candidates():
    fit = ld.proset("y ~ a", frame(3), loss="density", control={"max_rows": 2})
    assert np.isfinite(fit.predict(frame(3))).all()


@pytest.mark.parametrize("at", ["", [], None, {}, "x", [np.nan], np.zeros((2, 2))], ids=repr)
def test_where_no_density_is(at):
    with pytest.raises(ld.ArgumentError, match="at must be"):
        fit_of(ld.proset, "y", loss="density").density(frame(), at)


@odd
def test_active_learning(value):
    df = frame()
    formula, parts = "k ~ a + b + c", (df[:20], df[20:])
    for name in ("score", "committee", "agreement", "rounds", "seed", "test"):
        with pytest.raises(ld.LodimError, match=name):
            ld.active(ld.gbmap, formula, *parts, m=1, lambda_=0.1, **{name: value})
    for pool in (value, None):
        words = "no column" if isinstance(pool, pd.DataFrame) else "pool must be"
        with pytest.raises(ld.LodimError, match=words):
            ld.active(ld.gbmap, formula, df[:20], pool, m=1, lambda_=0.1)
    learner = ld.active(ld.gbmap, formula, *parts, m=1, lambda_=0.1)
    for call in (
        lambda: learner.query(value), lambda: learner.query(2, value), lambda: learner.teach(value),
        lambda: learner.replay(value), lambda: learner.replay(df["k"], rounds=value),
        lambda: learner.plot(value), lambda: ld.learning_curves(value),
        lambda: ld.learning_curves({"a": value}),
    ):  # fmt: skip
        with pytest.raises(ld.LodimError):
            call()
    if not isinstance(value, dict):
        with pytest.raises(ld.ArgumentError, match="against"):
            learner.plot(against=value)


@odd
def test_comparisons_and_checks(value):
    df = frame()
    for name in ("folds", "groups", "seed", "threads", "progress", "baselines"):
        with pytest.raises(ld.LodimError):
            ld.compare("k ~ a + b", df, ["glm"], **{name: value})
    for models in (value, [value], {"x": value}, {"x": ("glm", value)}):
        if not callable(value) and not (isinstance(value, dict) and models is not value):
            with pytest.raises(ld.LodimError):
                ld.compare("k ~ a + b", df, models)
    for call in (lambda: fit_of(ld.glm).check(value), lambda: fit_of(ld.glm).check(ignore=value)):
        if np.size(value) and not isinstance(value, dict):
            with pytest.raises(ld.LodimError):
                call()


def test_a_replay_needs_a_label_for_every_row():
    df = frame()
    learner = ld.active(ld.gbmap, "k ~ a + b + c", df[:20], df[20:], m=1, lambda_=0.1)
    with pytest.raises(ld.DataError, match=r"row \d+ has no label"):
        learner.replay(df["k"][:30])


@models
def test_frames_of_any_kind(model):
    """Frames that lack columns, have them twice or in levels, are empty, or of another library."""
    polars, fit, df = pytest.importorskip("polars"), fit_of(model), frame()
    expected = fit.predict(df)
    np.testing.assert_array_equal(fit.predict(polars.from_pandas(df)), expected)
    np.testing.assert_array_equal(fit.predict(df.to_dict("list")), expected)
    deep = df.set_axis(pd.MultiIndex.from_product([["x"], df.columns]), axis=1)
    used = fit._reader.features
    twice = pd.concat([df, df[used]], axis=1)
    for bad in (deep, twice, df.iloc[:, :0], df.drop(columns=used[0]), df.to_numpy(), None, "df"):
        for call in (fit.predict, fit.augment, fit.evaluate):
            with pytest.raises(ld.LodimError):
                call(bad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fit.predict(df[:0])) == len(fit.augment(df[:0])) == 0
    with pytest.raises(ld.DataError, match="no complete row"):
        fit.evaluate(df[:0])


def test_methods_that_stand_in_other_files_have_the_names_of_their_class():
    """In errors, and where a bound method is pickled."""
    cars = ld.data("autompg")
    fit = ld.costnet("mpg ~ weight + model_year", cars)
    for name in ("at", "staged", "predict"):
        with pytest.raises(TypeError, match=rf"^CostnetFit\.{name}\(\) got an unexpected"):
            getattr(fit, name)(cars, "response", nonsense=1)
        assert pickle.loads(pickle.dumps(getattr(type(fit), name))) is getattr(type(fit), name)
    assert pickle.loads(pickle.dumps(fit.at))(2.0).cost == fit.at(2.0).cost
    for own in Fit.__subclasses__():
        methods = {name: v for name, v in vars(own).items() if inspect.isfunction(v)}
        assert all(v.__qualname__.endswith(f".{name}") for name, v in methods.items())


ITSELF: list = []
ITSELF.append(ITSELF)
NO_NUMBERS = [ITSELF, ([1, 2], 3), "x", np.zeros(2), np.array("a"), pd.NA, object(), 1j, {}]
NO_COUNTS = [*NO_NUMBERS, -1, 1.5, np.nan, np.inf, True, 2**53 + 1, np.uint64(2**63), 10**30]
GENERATED = [
    "synth_cos_r", "synth_cos_c", "three_clusters", "checkerboard", "xor", "friedman1",
    "informative_views", "informative_views_r", "monitoring",
]  # fmt: skip


def _calls():
    """A cheap call of each public function that takes numbers, by name."""
    df, g = frame(), {"m": 1, "lambda_": 0.1}
    calls = {
        model.__name__: lambda model=model, **a: model(
            "k ~ a + b", df, **contract_of(model).cheap | a
        )
        for model in MODELS
    }
    calls |= {name: getattr(ld, name) for name in GENERATED}
    return calls | {
        "cv": lambda **a: ld.cv(ld.glm, "y ~ a", df, **a),
        "path": lambda **a: ld.path(ld.gbmap, "y ~ a", df, m=1, **a),
        "compare": lambda **a: ld.compare("y ~ a", df, ["glm"], **a),
        "acquire": lambda **a: ld.acquire("k ~ a", df[:30], **a),
        "active": lambda **a: ld.active(ld.gbmap, "k ~ a", df[:30], df[30:], **g | a),
        "drift_split": lambda **a: ld.drift_split("y ~ a + b", df, **g | a),
        "effects": lambda **a: ld.effects(fit_of(ld.gbmap), df, **a),
        "bootstrap": lambda **a: ld.bootstrap(fit_of(ld.glm), df, **a),
        "conformal": lambda **a: ld.conformal(ld.glm, "y ~ a", df, **a),
        "stability": lambda **a: ld.stability(ld.gbmap, "y ~ a", df, l1_ratio=1.0, **g | a),
    }


CALLS = _calls()


def number_kinds(annotation):
    """Return int, float or both if an annotation allows a number, but no array; else nothing."""
    kinds = [k for k in get_args(annotation) or [annotation] if get_origin(k) is not Literal]
    return kinds if all(kind in (int, float, type(None)) for kind in kinds) else []


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_all_public_functions(name):
    """Seeds, counts and other numbers: what is none, or is absurd, is refused in words, at once."""
    tried = 0
    for p in inspect.signature(getattr(ld, name)).parameters.values():
        kinds = number_kinds(p.annotation)
        values = NO_COUNTS if int in kinds else NO_NUMBERS if float in kinds else []
        values = [*NO_COUNTS[:-3], np.uint64(2**63)] if p.name == "folds" else values
        for value in values:
            with pytest.raises(ld.LodimError, match=p.name.rstrip("_")):
                CALLS[name](**{p.name: value})
                pytest.fail(f"{name}({p.name}={value!r}) is accepted")
        tried += len(values)
    assert tried


def test_no_public_function_with_numbers_is_left_out():
    numeric = {
        name
        for name in ld.__all__
        if inspect.isfunction(function := getattr(ld, name))
        and any(
            int in number_kinds(p.annotation)
            for p in inspect.signature(function).parameters.values()
        )
    }
    assert numeric <= CALLS.keys()


def choices_in(annotation):
    """Return the texts that an annotation allows."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {choice for part in get_args(annotation) for choice in choices_in(part)}


def choices_of(call, argument):
    """Return the choices that the error of a call lists for an argument."""
    with pytest.raises(ld.ArgumentError) as error:
        call(**{argument: "no such choice"})
    told = str(error.value)
    listed = re.search("(?:is|be|of) (?!one |some )(.*), not 'no such choice'", told)[1]
    return {text.strip("'") for text in re.split(", | or ", listed)}


@pytest.mark.parametrize("name", CALLS)
def test_annotated_choices_are_those_that_are_allowed(name):
    """What an error lists is what type checkers and editors are told, and nothing else."""
    for p in inspect.signature(getattr(ld, name)).parameters.values():
        choices = choices_in(p.annotation)
        of_classes = {"lac", "aps"} if (name, p.name) == ("conformal", "score") else set()
        if len(choices) > 1:
            assert choices == choices_of(CALLS[name], p.name) | of_classes, p.name


@models
def test_annotated_choices_of_fits_are_those_that_are_allowed(model):
    left = ["k", *([] if contract_of(model).classes_only else ["y"]), *[""] * (model is ld.ripr)]
    fits = [model(f"{name} ~ a + b + c", frame(), **quick(model)) for name in left]
    for name, argument in (("predict", "type"), ("plot", "kind")):
        annotation = inspect.signature(getattr(fits[0], name)).parameters[argument].annotation
        data = {"data": frame()} if name == "predict" else {}
        allowed = [choices_of(partial(getattr(fit, name), **data), argument) for fit in fits]
        assert choices_in(annotation) == set().union(*allowed)


@pytest.mark.parametrize(
    "name, argument, meant",
    [
        ("gbmap", "n_estimators", "m"), ("gbmap", "alpha", "lambda_ or l1_ratio"),
        ("glm", "exposure", r"offset \(its logarithm\)"),
        ("glm", "link", r"family \(each has one link\)"),
        ("gbmap", "tau", "quantile"),
        ("costnet", "var_power", "power"),
        ("proset", "C", "lambda_v"), ("ripr", "n_neighbors", "k"), ("glm", "max_iter", "control"),
        ("costnet", "random_state", "seed"), ("melm", "n_init", "n_starts"),
        ("gbmap", "lamda", "lambda_"),
        ("cv", "n_folds", "folds"), ("compare", "cv", "folds"), ("bootstrap", "B", "n"),
        ("conformal", "alpha", "level"), ("path", "nlambda", "n_lambda"),
    ],
)  # fmt: skip
def test_arguments_as_other_packages_call_them(name, argument, meant):
    words = rf"{name}\(\) has no argument '{argument}'; did you mean {meant}\? It has: "
    with pytest.raises(ld.ArgumentError, match=words):
        CALLS[name](**{argument: 5})
    with pytest.raises(ld.ArgumentError, match="has no argument 'zzzz'; it has: "):
        CALLS[name](zzzz=5)


@pytest.mark.parametrize("name", ["cv", "path", "conformal", "stability", "active", "estimate"])
def test_settings_of_functions_of_a_model_are_given_by_name(name):
    """For type checkers they stand before `*args`, which takes the model's arguments."""
    function = getattr(ld, name)
    kinds = {p.kind for p in inspect.signature(function).parameters.values() if p.default is None}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}
    n = 4 if name == "active" else 3
    words = rf"{name}\(\) takes {n} positional arguments but {n + 1} were given; it takes \w+"
    with pytest.raises(TypeError, match=words):
        function(ld.glm, "y ~ a", frame(), *[None] * (n - 2))


def test_synonyms_mean_arguments_that_there_are():
    known = {p for name in CALLS for p in inspect.signature(getattr(ld, name)).parameters}
    assert {own.split()[0] for ours in SYNONYMS.values() for own in ours} <= known
    names = [name for names in SYNONYMS for name in names]
    assert len(names) == len(set(names))


CARS = ld.data("autompg")
SWAPPED = [
    (ld.bootstrap, (CARS, "fit"), "must be a fit of one response, .*, not DataFrame"),
    (ld.bootstrap, ("fit",), r"bootstrap\(\) needs fit and data, in this order, not GlmFit"),
    (ld.effects, (ld.glm, CARS), r"must be a fit .*, not glm: give glm\(formula, data\)$"),
    (
        ld.cv,
        ("fit", CARS),
        r"cv\(\) needs model, formula and data, .*, not GlmFit and DataFrame: give lodim.glm$",
    ),
    (
        ld.cv,
        ("fit", "mpg ~ weight", CARS),
        "must be a model function .*, not GlmFit: give lodim.glm$",
    ),
    (ld.conformal, ("glm", "mpg ~ weight", CARS), "must be a model function .*: give lodim.glm$"),
    (ld.conformal, ("gl", "mpg ~ weight", CARS), "must be a model function .*, not 'gl'$"),
    (ld.cv, (ld.glm, CARS, "mpg ~ weight"), "formula must be text .*, not DataFrame"),
    (ld.compare, (CARS, "fit"), "formula must be text .*, not DataFrame"),
    (ld.compare, ("fit", "fit"), "formula must be text .*, not GlmFit"),
    (ld.compare, ("mpg ~ weight", CARS, "fit"), "models must be a list .*, not GlmFit"),
    *((m, (CARS, "mpg ~ weight"), "formula must be text .*") for m in MODELS),
]


@pytest.mark.parametrize("function, arguments, message", SWAPPED)
def test_arguments_in_another_order_are_named(function, arguments, message):
    fit = ld.glm("mpg ~ weight", CARS)
    given = [fit if isinstance(a, str) and a == "fit" else a for a in arguments]
    with pytest.raises(ld.LodimError, match=message):
        function(*given)


@pytest.mark.parametrize("model", MODELS)
def test_one_row_is_too_few(model):
    response = "origin" if model is ld.melm else "mpg"
    with pytest.raises(ld.DataError, match="only one row; a model needs at least two"):
        model(f"{response} ~ weight", CARS[:1])
