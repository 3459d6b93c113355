"""compare(): the folds, the losses compared with loops by hand, what fails, and what is printed."""

import os
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.ensemble
from threadpoolctl import threadpool_info, threadpool_limits

import lodim as ld
from lodim.comparison.candidates import candidates, peer_scores
from lodim.comparison.report import conclusions
from lodim.design.frame import take_rows
from lodim.family import make

RNG = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"]).assign(
    y=lambda d: d["a"] + RNG.normal(size=N),
    k=lambda d: np.where(d["a"] + RNG.normal(size=N) > 0, "yes", "no"),
    w=RNG.integers(1, 4, N).astype(float),
    g=np.repeat(np.arange(15), 4),
)
FOLD = np.arange(N) % 4
GLMS = {
    "all": lambda formula, data: ld.glm(formula, data),
    "one": lambda formula, data: ld.glm("y ~ a", data),
}


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    monkeypatch.setattr("lodim.comparison.candidates.TREES", 10)


def compared(formula="y ~ a + b + c", data=FRAME, models=("glm",), **arguments):
    return ld.compare(formula, data, models, **{"folds": FOLD, "threads": 1} | arguments)


def test_only_squared_error_has_an_r2():
    shown = [str(compared(**more)) for more in ({}, {"family": "huber"})]
    assert " R2 " in shown[0] and " D2 " not in shown[0]
    assert " D2 " in shown[1] and " R2 " not in shown[1]


@pytest.mark.long
def test_losses_are_those_of_a_loop_over_the_folds():
    table = compared(weights="w")
    expected, null = np.empty(N), np.empty(N)
    for k in range(4):
        train, test = FRAME[k != FOLD], FRAME[k == FOLD]
        fit = ld.glm("y ~ a + b + c", train, weights="w")
        expected[k == FOLD] = (test["y"] - fit.predict(test)) ** 2
        null[k == FOLD] = (test["y"] - np.average(train["y"], weights=train["w"])) ** 2
    np.testing.assert_allclose(table.losses["glm"], expected)
    np.testing.assert_allclose(table.losses["null"], null)
    frame = table.tidy().set_index("model")
    mean = np.average(expected, weights=FRAME["w"])
    assert frame["deviance"]["glm"] == pytest.approx(mean)
    r2 = 1 - mean / np.average(null, weights=FRAME["w"])
    assert frame["dev_ratio"]["glm"] == pytest.approx(r2)
    gap = expected - null
    parts = FRAME["w"] / FRAME["w"].sum() * (gap - np.average(gap, weights=FRAME["w"]))
    factor = 1 + sum(s / (1 - s) for s in FRAME["w"].groupby(FOLD).sum() / FRAME["w"].sum())
    error = np.sqrt(factor * 60 / 59 * (parts**2).sum())
    assert frame["difference_se"]["null"] == pytest.approx(error)


@pytest.mark.parametrize("named", [True, False])
def test_an_offset_is_used_by_models_and_the_null_model(named):
    frame = FRAME.assign(o=np.linspace(-1.0, 2.0, N))
    frame["y"] = RNG.poisson(np.exp(frame["o"] + 0.5 * frame["a"]))
    frame.loc[3, "o"] = np.nan
    offset, data = ("o", frame) if named else (frame["o"].to_numpy(), frame.drop(columns="o"))
    models = {"glm": "glm", "ripr": "ripr"}
    if named:
        models["own"] = lambda formula, data: ld.glm(formula, data, family="poisson", offset="o")
    table = compared("y ~ . - k - w - g", data, models, family="poisson", offset=offset)
    known, fold = frame.drop(index=3), np.delete(FOLD, 3)
    expected, null = known.assign(m=0.0)["m"], known.assign(m=0.0)["m"]
    for k in range(4):
        train, test = known[k != fold], known[k == fold]
        for found, formula in ((expected, "y ~ a + b + c"), (null, "y ~ 1")):
            fit = ld.glm(formula, train, family="poisson", offset="o")
            mean, y = fit.predict(test), test["y"]
            log = np.where(y > 0, y * np.log(y.clip(lower=1) / mean), 0.0)
            found[test.index] = 2 * (log - y + mean)
    for label in models.keys() - {"ripr"}:
        np.testing.assert_allclose(table.losses[label], expected, rtol=1e-7)
    np.testing.assert_allclose(table.losses["null"], null, rtol=1e-7)
    assert table.failed["boosting"] == "models of scikit-learn cannot use an offset"
    assert "ripr" in table.failed and table.best.design.offset_given


@pytest.mark.long
def test_classes_have_accuracy_and_auc():
    from sklearn.metrics import roc_auc_score

    table = compared("k ~ a + b")
    prob, hit = np.empty(N), np.empty(N)
    for k in range(4):
        fit, test = ld.glm("k ~ a + b", FRAME[k != FOLD]), FRAME[k == FOLD]
        prob[k == FOLD] = fit.predict(test)
        hit[k == FOLD] = fit.predict(test, "class") == test["k"]
    frame, yes = table.tidy().set_index("model"), FRAME["k"] == "yes"
    assert frame["accuracy"]["glm"] == pytest.approx(hit.mean())
    np.testing.assert_allclose(table.losses["glm"], -2 * np.log(np.where(yes, prob, 1 - prob)))
    pairs = [yes[k == FOLD].sum() * (~yes)[k == FOLD].sum() for k in range(4)]
    areas = [roc_auc_score(yes[k == FOLD], prob[k == FOLD]) for k in range(4)]
    assert frame["auc"]["glm"] == pytest.approx(np.average(areas, weights=pairs))


@pytest.mark.long
def test_peers_are_those_of_scikit_learn_on_the_columns_of_the_design():
    from sklearn.ensemble import HistGradientBoostingRegressor

    data = FRAME.assign(f=np.where(FRAME["b"] > 0.2, "u", "v"))
    table = compared("y ~ a + f", data)
    columns = pd.get_dummies(data[["a", "f"]], dtype=float)
    for k in range(4):
        model = HistGradientBoostingRegressor(random_state=0)
        model.fit(columns[k != FOLD], data["y"][k != FOLD])
        expected = (data["y"] - model.predict(columns))[k == FOLD] ** 2
        np.testing.assert_allclose(table.losses["boosting"][k == FOLD], expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_forest_gives_no_class_a_probability_of_zero(n_classes):
    y = np.arange(N) % n_classes * 1.0
    X = y[:, None] + np.zeros((N, 2))
    family = make("multinomial", n_classes)
    score = peer_scores("forest", X, y, None, X, n_classes, family, 0, 1)
    assert score.shape == (N, 1 if n_classes == 2 else 3) and np.abs(score).max() < 9.0


@pytest.mark.long
def test_processes_give_the_same_results(monkeypatch):
    models = {"glm": "glm", "two": ("gbmap", {"m": 2, "lambda_": 0.1})}
    here = compared(models=models, baselines=False)
    monkeypatch.setattr("lodim.comparison.held_out.START", 0.0)
    monkeypatch.setattr("lodim.comparison.held_out._fit_fold", None)  # of this process alone
    with pytest.raises(TypeError, match="not callable"):
        compared(models=models, baselines=False)
    there = compared(models=models, baselines=False, threads=2)
    pd.testing.assert_frame_equal(there.losses, here.losses, check_exact=True)


def test_functions_of_the_user_run_in_this_process(monkeypatch):
    processes = []

    def own(formula, data):
        processes.append(os.getpid())
        return ld.glm(formula, data)

    monkeypatch.setattr("lodim.comparison.held_out.START", 0.0)
    compared(models={"glm": "glm", "own": own}, baselines=False, threads=2)
    assert processes == 4 * [os.getpid()]


def test_peers_of_few_rows_use_one_thread(monkeypatch):
    """Threads that wait for each other take a several times as long on a busy computer."""
    counts = []

    class Spy(sklearn.ensemble.HistGradientBoostingRegressor):
        def fit(self, X, y, sample_weight=None):
            counts.extend(pool["num_threads"] for pool in threadpool_info())
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(sklearn.ensemble, "HistGradientBoostingRegressor", Spy)
    X = np.arange(N * 1.0)[:, None]
    with threadpool_limits(2):
        peer_scores("boosting", X, X[:, 0], None, X, 0, make("gaussian"), 0, 2)
    assert set(counts) == {1}


@pytest.mark.long
def test_the_order_of_rows_and_the_kind_of_the_frame_change_nothing():
    polars = pytest.importorskip("polars")
    models = ["glm", "costnet"]
    frame = ld.compare("y ~ a + b", FRAME, models, folds=3, threads=1).tidy()
    mixed = FRAME.sample(frac=1, random_state=1)
    for data in (mixed, FRAME.to_dict("list"), polars.from_pandas(FRAME)):
        table = ld.compare("y ~ a + b", data, models, folds=3, threads=1)
        other = table.tidy()
        assert isinstance(other, pd.DataFrame) != (type(data) is polars.DataFrame)
        got = {name: np.array(other[name].to_list(), float) for name in ("deviance", "p_value")}
        np.testing.assert_allclose(got["deviance"], frame["deviance"], rtol=1e-7)
        np.testing.assert_allclose(got["p_value"], frame["p_value"], atol=0.01)
    losses = ld.compare("y ~ a + b", mixed, ["glm"], folds=3, threads=1).losses
    assert losses.index.tolist() == mixed.index.tolist()


@pytest.mark.long
def test_groups_are_held_out_together_and_are_no_feature():
    seen = []

    def spy(formula, data):
        seen.append((formula, set(data["g"])))
        return ld.glm(formula, data)

    table = ld.compare("y ~ . - k - w", FRAME, {"spy": spy, "glm": "glm"}, folds=5, groups="g",
                       baselines=False)  # fmt: skip
    assert all(len(groups) == 12 and "- g" in formula for formula, groups in seen)
    assert table.fit("glm").design.features == ["a", "b", "c"]
    by_array = ld.compare("y ~ a + b + c", FRAME, ["glm", "costnet"], folds=5, groups=FRAME["g"])
    np.testing.assert_allclose(by_array.losses["glm"], table.losses["glm"])


def test_a_model_that_fails_is_listed_with_its_reason():
    def breaks(formula, data):
        if data["a"].iloc[0] != FRAME["a"].iloc[0]:  # the first fold holds out row 0
            return ld.glm(formula, data)
        raise ld.DataError("no more of this")

    models = {"glm": "glm", "melm": "melm", "breaks": breaks, "text": lambda f, d: "fit"}
    table = ld.compare("y ~ a", FRAME, models, folds=FOLD, baselines=False)
    assert list(table.failed) == ["melm", "breaks", "text"]
    assert "no more of this (fold 2 of 4)" in table.failed["breaks"]
    assert "must return a fit of lodim" in table.failed["text"]
    assert table.tidy()["model"].tolist() == ["glm", "melm", "breaks", "text"]
    text, whole = repr(table), str(table.summary())
    for words in ("breaks was not fitted: no more of this", "Only glm could be fitted"):
        assert words in text and words in " ".join(whole.split())
    with pytest.raises(ld.DataError, match="no model could be fitted; melm: "):
        ld.compare("y ~ a", FRAME, {"melm": "melm", "x": breaks}, folds=FOLD[::-1],
                   baselines=False)  # fmt: skip


def test_a_level_that_training_lacks_is_answered_by_the_null_model_and_counted():
    data = FRAME.assign(f=np.where(np.arange(N) == 7, "rare", np.where(FRAME["b"] > 0, "u", "v")))
    table = compared("y ~ f", data)
    text = " ".join(repr(table).split())
    words = (
        "glm predicts 1 row as NaN; these rows have the loss of the null model: "
        "column 'f' has the level 'rare',"
    )
    assert f"{words} which is not a level of the training rows: 'u', 'v' (fold 4)" in text
    assert words in " ".join(str(table.summary()).split())
    assert table.losses["glm"][7] == table.losses["null"][7]


@pytest.mark.long
def test_splines_are_learned_within_the_folds():
    """The fold that holds out the extreme row extrapolates, for all models."""
    right = "np.log(b + 4) + bs(a, df=4):b"
    table = compared(f"y ~ {right}")
    assert not table.failed
    expected = np.empty(N)
    for k in range(4):
        train, test = FRAME[k != FOLD], FRAME[k == FOLD]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.ExtrapolationWarning)
            predicted = ld.glm(f"y ~ {right}", train).predict(test)
        expected[k == FOLD] = (test["y"] - predicted) ** 2
    np.testing.assert_allclose(table.losses["glm"], expected)


@pytest.mark.long
def test_rows_that_miss_a_feature_are_compared_too():
    data = FRAME.assign(a=FRAME["a"].where(np.arange(N) % 9 > 0))
    data.loc[3, "y"] = np.nan
    table = compared("y ~ a + b", data)
    assert len(table.losses) == N - 1 and 3 not in table.losses.index
    assert "(1 dropped)" in repr(table) and table.tidy()["deviance"].notna().all()


@pytest.mark.long
def test_the_best_is_a_model_of_lodim_and_fitted_when_asked_for():
    made = []

    def call(formula, data):
        made.append(len(data))
        return ld.glm(formula, data)

    noise = FRAME.assign(y=RNG.normal(size=N))
    table = ld.compare("y ~ a + b + c", noise, {"call": call}, folds=FOLD)
    assert table.tidy()["model"][0] == "null" and made == [45] * 4
    assert table.best is table.best and table.best.n == N and made == [45] * 4 + [N]
    assert table.fit("glm").n == N
    for label in ("null", "forest", "other", None):
        with pytest.raises(ld.ArgumentError, match="model must be one of call, glm"):
            table.fit(label)


def test_values_that_look_like_mistakes_are_told_once():
    counts = FRAME.assign(y=np.arange(N) % 5 + 0.5)
    with pytest.warns(ld.DataWarning, match="'y' is not a whole number in 60 of 60 rows") as told:
        compared(data=counts, family="poisson")
    assert len(told) == 1
    counts["w"] = np.where(FRAME.index < 5, 0.0, 1.0)
    with pytest.warns(ld.DataWarning, match="in 55 of 55 rows") as told:
        compared(data=counts, family="poisson", weights="w").fit("glm")
    assert len(told) == 1
    wild = FRAME.assign(a=FRAME["a"].where(FRAME.index != 7, 1e9))
    with pytest.warns(ld.DataWarning, match="Values far outside all others.* a in 1 row") as told:
        table = compared(data=wild)
        table.fit("glm")
    assert len(told) == 1 and "fit (such as `best` of a comparison)" in str(told[0].message)
    note = "glm: 1 row (7) with 25% or more of the held-out loss; check the values"
    assert note in " ".join(repr(table).split()) and note in table.summary().notes
    assert "25%" not in repr(compared()) + repr(compared("k ~ a"))


def test_a_warning_of_a_fit_to_all_rows_is_shown():
    separated = FRAME.assign(y=np.where(FRAME["a"] > 0, "u", "v"))
    table = compared(data=separated)
    with pytest.warns(ld.ConvergenceWarning, match="the response is separated"):
        table.fit("glm")


def test_what_is_compared_by_default():
    assert [c.label for c in candidates(None, True, "gaussian")] == [
        "gbmap", "proset", "costnet", "ripr", "null", "glm", "boosting", "forest"
    ]  # fmt: skip
    assert "melm" in [c.label for c in candidates(None, False, "multinomial")]


def test_arguments_of_a_model_are_used():
    models = {
        "small": (ld.gbmap, {"m": 1, "lambda_": 1.0}),
        "large": ("gbmap", {"m": 4, "lambda_": 0.01}),
    }
    comparison = ld.compare("y ~ a + b", FRAME, models, folds=3, baselines=False)
    frame = comparison.tidy().set_index("model")
    assert "1 learner\n" in str(comparison) and "4 learners\n" in str(comparison)
    assert frame["parts"].to_dict() == {"small": 1.0, "large": 4.0}
    assert set(frame["part"]) == {"learners"} and set(frame["features"]) == {2.0}


@pytest.mark.parametrize(
    "models, words",
    [
        ([], "models must not be empty"), ("glm", "models must be a list"),
        (["glim"], "models must be one"),
        ([3], "must be a list .*, not 3"), (["glm", ld.glm], "two models are called 'glm'"),
        ({"a": ("glm",)}, "models must be"), ({"a": ("glm", {"mm": 1})}, "no argument 'mm'"),
        ({"a": ("glm", {"weights": np.ones(N)})}, "weights must be the name"),
        ({1: "glm"}, "must be text"),
        ({"a": (GLMS["all"], {"m": 1})}, "must have a model function"),
        ([GLMS["all"]], "needs a label"),
    ],
    ids=lambda value: value if isinstance(value, str) else "models",
)  # fmt: skip
def test_models_that_are_refused(models, words):
    with pytest.raises(ld.ArgumentError, match=words):
        ld.compare("y ~ a", FRAME, models, folds=3)


def test_calls_that_are_refused():
    fit = ld.glm("y ~ a", FRAME)
    with pytest.raises(ld.ArgumentError, match="was fitted to all rows"):
        ld.compare("y ~ a", FRAME, [fit])
    with pytest.raises(ld.ArgumentError, match="at least two models"):
        ld.compare("y ~ a", FRAME, ["glm"], baselines=False)
    with pytest.raises(ld.ArgumentError, match="needs a response"):
        ld.compare("~ a", FRAME)
    with pytest.raises(ld.DataError, match="all rows of the class 'rare' of 'k' are held out"):
        ld.compare("k ~ a", FRAME.assign(k=["rare", *FRAME["k"][1:]]), ["glm"], folds=3)
    for name, value in {
        "folds": 1,
        "baselines": 1,
        "seed": -1,
        "threads": 0,
        "progress": "x",
    }.items():
        with pytest.raises(ld.LodimError, match=name):
            ld.compare("y ~ a", FRAME, ["glm"], **{name: value})


def test_what_is_printed():
    table = ld.compare("y ~ a + b + c", FRAME, GLMS, folds=FOLD, baselines=False)
    text = " ".join(repr(table).split())
    assert (
        "all has the lowest held-out loss. Differences from this model, with 95% intervals" in text
    )
    row = table.tidy().iloc[1]
    interval = f"({row['conf_low']:.3f} to {row['conf_high']:.3f})"
    assert f"one: +{row['difference']:.3f} {interval}: no significant difference." in text
    assert "compare(\"y ~ a + b + c\", data=df, models={'all': ..., 'one': ...}, folds=...," in text
    clear = FRAME.assign(y=FRAME["a"] * 5 + FRAME["b"])
    table = ld.compare("y ~ a + b", clear, GLMS, folds=FOLD, baselines=False)
    text = " ".join(repr(table).split())
    assert "): significantly worse." in text and "no significant" not in text
    assert table.not_significantly_worse == ["all"]
    assert str(table.summary()) and table.summary().as_latex() and table._repr_html_()


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_very_small_and_large_losses_have_exponents(scale):
    text = repr(compared(data=FRAME.assign(y=scale * FRAME["y"])))
    assert f"e{'-1' if scale < 1.0 else '+1'}" in text and max(map(len, text.split())) < 30


def test_an_interval_that_contains_0_is_explained_if_the_model_is_worse():
    frame = pd.DataFrame({"model": ["a", "b"], "deviance": [1.0, 2.0], "difference": [0.0, 1.0],
                          "conf_low": [0.0, -0.1], "conf_high": [0.0, 2.1]})  # fmt: skip
    for p_value, told in ((0.04, True), (0.06, False)):
        case = SimpleNamespace(_frame=frame.assign(p_value=[1.0, p_value]))
        assert ("may have 0 in its interval" in conclusions(case)[-1]) == told


def test_a_difference_that_rounding_leaves_is_a_tie():
    """Of two fits to features in other units neither is better, whatever the units of y are."""
    data = FRAME.assign(y=1e6 * FRAME["y"])
    formulas = ["y ~ a + b", *(f"y ~ I(a + {k / 10} * b) + b" for k in range(1, 9))]
    models = {f: lambda _, df, f=f: ld.glm(f, df) for f in formulas}
    table = ld.compare("y ~ a + b", data, models, folds=FOLD, baselines=False)
    frame = table.tidy()
    assert frame["difference"].max() > 0.0 and frame["p_value"].eq(1.0).all()
    assert "equal (difference below 1e-06 of the loss)." in repr(table)


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setattr("lodim.comparison.candidates.find_spec", lambda name: None)
    table = compared()
    assert table.tidy()["model"].tolist() == ["glm", "null"]
    assert "without boosting and forest: scikit-learn is not installed" in repr(table)


def test_plots(monkeypatch):
    monkeypatch.setattr("lodim.comparison.candidates.find_spec", lambda name: None)  # no peers
    clear = FRAME.assign(y=1e-3 * FRAME["y"] + 50.0 * FRAME["a"] + FRAME["b"])
    models = {"all": GLMS["all"], "two": lambda _, data: ld.glm("y ~ a + b", data),
              "one": GLMS["one"]}  # fmt: skip
    table = ld.compare("y ~ a + b + c", clear, models, folds=FOLD)
    ax = table.plot()
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == table.tidy()["model"].tolist() and names[-1] == "null"
    written = [float(t.get_text()) for t in ax.texts]  # the far ones: "+168", "+3086"
    expected = table.tidy()["difference"].to_numpy()[-len(written) :]
    np.testing.assert_allclose(written, expected, rtol=0.01)
    assert ax.get_xlim()[1] < min(expected)


def test_rows_of_any_frame():
    rows = np.array([4, 1])
    lists = {"a": [1, 2, 3, 4, 5], "b": pd.Categorical(list("xyxyx"))}
    taken = take_rows(lists, rows)
    assert list(taken["a"]) == [5, 2] and list(taken["b"]) == ["x", "y"]
    assert take_rows(FRAME, rows).index.tolist() == [4, 1]


@pytest.mark.long
def test_rows_of_weight_zero_make_no_difference():
    cars = ld.data("autompg").assign(w=lambda d: np.where(np.arange(len(d)) % 4 == 0, 0.0, 1.0))
    asked = {"models": ["glm", "costnet"], "folds": 3, "weights": "w", "baselines": False}
    some = ld.compare("mpg ~ weight + model_year", cars, **asked)
    same = ld.compare("mpg ~ weight + model_year", cars[cars["w"] > 0], **asked)
    columns = ["model", "deviance", "deviance_se", "difference_se", "p_value"]
    pd.testing.assert_frame_equal(some.tidy()[columns], same.tidy()[columns], rtol=1e-9)
    assert some.losses.index.equals(same.losses.index)


def test_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("not a table")
    with pytest.raises(ld.DataError, match=r"not a path \('.*a.csv'\): read its rows into memory"):
        ld.compare("y ~ .", tmp_path / "a.csv")
    with pytest.raises(ld.DataError, match=r"not polars.*LazyFrame; collect it first"):
        ld.compare("y ~ a", pl.LazyFrame({"y": [1.0], "a": [2.0]}))


@pytest.mark.parametrize("family, more", [("poisson", {}), ("quantile", {"quantile": 0.8})])
@pytest.mark.filterwarnings("ignore::lodim.ExtrapolationWarning")
def test_families_are_compared_by_their_deviance(family, more):
    df = FRAME.assign(y=np.random.default_rng(0).poisson(np.exp(0.5 * FRAME["a"])))
    calls = {"gbmap": (ld.gbmap, {"m": 1, "lambda_": 0.1}), "line": GLMS["all"]}
    call = {"family": family, **more, "folds": FOLD, "threads": 1}
    table = ld.compare("y ~ a + b + c", df, calls, **call)
    expected, of = np.empty((2, N)), make(family, 0, *more.values())
    for k in range(4):
        train, test = df[k != FOLD], df[k == FOLD]
        fit = ld.gbmap("y ~ a + b + c", train, family=family, **more, m=1, lambda_=0.1, threads=1)
        line = ld.glm("y ~ a + b + c", train)
        for i, mean in enumerate((fit.predict(test), line.predict(test))):
            score = of.score(mean.to_numpy())
            expected[i, k == FOLD] = of.deviance(test["y"].to_numpy(float), score)
    np.testing.assert_allclose(table.losses["gbmap"], expected[0], rtol=1e-9)
    np.testing.assert_allclose(table.losses["line"], expected[1], rtol=1e-9)
    assert {"glm", "boosting"} <= set(table.losses)
    asked = ", ".join(
        f"{name}={value!r}" for name, value in call.items() if name in ["family", *more]
    )
    assert asked in table.call and of.loss in str(table)
    assert table.best.family.name in (family, "gaussian")


def test_calls_with_other_classes_and_without_a_fit_of_lodim():
    def fail(formula, data):
        raise ValueError("no")

    other = {"other": lambda _, data: ld.glm("s ~ a", data), "bad": fail}
    data = FRAME.assign(s=np.where(FRAME["b"] > 0, "high", "low"))
    table = ld.compare("k ~ a", data, other, folds=FOLD)
    assert "its classes are ('high', 'low'), not" in table.failed["other"]
    assert table.level == 0.05
    same = {"one": GLMS["all"], "two": GLMS["all"]}
    table = ld.compare("y ~ a + b + c", FRAME, same, folds=FOLD, baselines=False)
    assert "two: equal (difference below" in repr(table)


def test_prices_of_costnet_are_a_column():
    models = {"bought": ("costnet", {"costs": {"a": 1.0, "b": 2.0}, "threads": 1}), "glm": "glm"}
    table = ld.compare("y ~ a + b", FRAME, models, folds=FOLD, baselines=False)
    assert "Price" in repr(table)


@pytest.mark.parametrize("model", ["melm", "ripr"])
def test_models_of_views_are_compared(model):
    models = [model, "glm"]
    table = ld.compare("k ~ a + b", FRAME, models, folds=FOLD, baselines=False).tidy()
    assert table["parts"].notna().any() and not table["deviance"].isna().any()


def test_ordered_classes_have_peers():
    pytest.importorskip("sklearn")
    data = FRAME.assign(s=pd.cut(FRAME["y"], 3, labels=["low", "mid", "high"]))
    table = ld.compare("s ~ a + b", data, ["glm"], folds=FOLD).tidy().set_index("model")
    assert np.isfinite(table.loc[["forest", "boosting"], "deviance"]).all()


def test_rows_that_a_call_leaves_without_prediction_are_explained():
    data = FRAME.assign(a=FRAME["a"].where(np.arange(N) % 9 > 0))
    calls = {"drop": lambda _, rows: ld.glm("y ~ a", rows, missing="drop")}
    assert "features are missing, or have levels" in repr(ld.compare("y ~ a + b", data, calls))
