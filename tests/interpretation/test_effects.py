"""Effects, against naive codings of the papers' formulas, known truths and statsmodels."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from contract.cases import some_long
from lodim.design import factors
from lodim.interpretation import accumulated_local_effects as ale
from lodim.interpretation.rows import read_rows


@pytest.fixture(scope="module")
def cars():
    return ld.data("autompg")


@pytest.fixture(scope="module")
def fit(cars):
    return ld.gbmap("mpg ~ weight + model_year + horsepower + origin", cars, m=4, lambda_=0.05)


@pytest.fixture(scope="module")
def heart():
    return ld.data("heart").dropna()


def naive_edges(x, bins):
    """Quantiles that are values of x, type 1, as in R's ALEPlot."""
    x = np.sort(x)
    at = [int(np.ceil(k / bins * len(x) - 1e-9)) - 1 for k in range(1, bins + 1)]
    return np.unique([x[0], *(x[i] for i in at)])


def naive_ale(f, df, name, bins):
    """Eqs. 15 and 16 of Apley and Zhu, row by row; centred as in their ALEPlot."""
    x = df[name].to_numpy(float)
    z = naive_edges(x, bins)
    K = len(z) - 1
    total, count = np.zeros(K), np.zeros(K)
    for i in range(len(df)):
        k = max(k for k in range(K) if k == 0 or x[i] > z[k])
        low, high = df.iloc[[i]].assign(**{name: z[k]}), df.iloc[[i]].assign(**{name: z[k + 1]})
        total[k] += f(high)[0] - f(low)[0]
        count[k] += 1
    g = np.concatenate([[0.0], np.cumsum(total / count)])
    return z, g - ((g[:-1] + g[1:]) / 2 * count).sum() / count.sum()


@pytest.mark.long
def test_ale_is_the_naive_coding_of_the_formula(cars, fit):
    df = cars.dropna().iloc[::4]
    for name in ("weight", "model_year"):
        z, g = naive_ale(lambda d: fit.predict(d).to_numpy(), df, name, ale.BINS)
        frame = ld.effects(fit, df, name).tidy()
        np.testing.assert_allclose(frame["value"].astype(float), z)
        np.testing.assert_allclose(frame["estimate"], g, atol=1e-9)


def additive(n=600, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    df["b"] += 0.8 * df["a"]
    df["g"] = rng.choice(["u", "v", "w"], n, p=[0.5, 0.3, 0.2])
    f = df["a"] ** 2 + np.sin(df["b"]) + df["g"].map({"u": 0.0, "v": 1.0, "w": -2.0})
    return df.assign(y=f)


@pytest.mark.filterwarnings("ignore:The model fits the response exactly")
def test_ale_of_an_additive_model_is_its_truth():
    """Whatever depends on whatever: of each feature its own function, less its mean."""
    df = additive()
    formula = "y ~ a + I(a**2) + np.sin(b) + g"
    fit = ld.glm(formula, df)
    assert fit.dev_ratio > 1 - 1e-9
    frame = ld.effects(fit, df).tidy().set_index("term")
    for name, f in (("a", np.square), ("b", np.sin)):
        one = frame.loc[name]
        gap = one["estimate"] - f(one["value"].astype(float))
        assert np.ptp(gap) < 1e-9
        assert abs(gap.iloc[0] + f(df[name]).mean()) < 0.1
    levels = frame.loc["g"].set_index("value")["estimate"]
    truth = pd.Series({"u": 0.0, "v": 1.0, "w": -2.0})
    apart = levels - truth[levels.index]
    assert np.ptp(apart) < 1e-9
    share = df["g"].value_counts(normalize=True)
    assert abs((levels * share).sum()) < 1e-12


def naive_second_order(f, df, names, bins):
    """Eqs. 17 to 20 as ALEPlot has them, cell by cell, where no cell is empty."""
    x = df[list(names)].to_numpy(float)
    z = [naive_edges(x[:, j], bins) for j in (0, 1)]
    shape = [len(e) - 1 for e in z]
    total, count = np.zeros(shape), np.zeros(shape)
    for i in range(len(df)):
        k, m = (max(k for k in range(shape[j]) if k == 0 or x[i, j] > z[j][k]) for j in (0, 1))
        value = 0.0
        for a, b in itertools.product((0, 1), (0, 1)):
            one = df.iloc[[i]].assign(**{names[0]: z[0][k + a], names[1]: z[1][m + b]})
            value += (1 if a == b else -1) * f(one)[0]
        total[k, m] += value
        count[k, m] += 1
    assert (count > 0).all()
    h = np.zeros((shape[0] + 1, shape[1] + 1))
    for k, m in itertools.product(range(shape[0]), range(shape[1])):
        h[k + 1, m + 1] = (total / count)[: k + 1, : m + 1].sum()
    first, second = np.zeros(shape[0] + 1), np.zeros(shape[1] + 1)
    for k in range(shape[0]):
        d = h[k + 1] - h[k]
        first[k + 1] = first[k] + (count[k] * (d[1:] + d[:-1]) / 2).sum() / count[k].sum()
    for m in range(shape[1]):
        d = h[:, m + 1] - h[:, m]
        second[m + 1] = second[m] + (count[:, m] * (d[1:] + d[:-1]) / 2).sum() / count[:, m].sum()
    h = h - first[:, None] - second[None]
    middle = (h[1:, 1:] + h[:-1, 1:] + h[1:, :-1] + h[:-1, :-1]) / 4
    return z, h - (count * middle).sum() / count.sum()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The model fits the response exactly")
def test_the_effect_of_a_pair_is_the_naive_coding_and_the_product(monkeypatch):
    monkeypatch.setattr(ale, "PAIR_BINS", 4)
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    df["y"] = df["a"] * df["b"] + df["a"] ** 2 + np.exp(df["b"])
    fit = ld.glm("y ~ a:b + I(a**2) + np.exp(b)", df)
    z, h = naive_second_order(lambda d: fit.predict(d).to_numpy(), df, ("a", "b"), 4)
    frame = ld.effects(fit, df, [("a", "b")]).tidy()
    wide = frame.pivot_table(index="value", columns="value_2", values="estimate")
    np.testing.assert_allclose(wide.index, z[0])
    np.testing.assert_allclose(wide.columns, z[1])
    np.testing.assert_allclose(wide, h, atol=1e-8)
    # What no interaction makes is left: a rank-one surface, as of the product.
    s = np.linalg.svd(wide - wide.mean() - wide.mean(axis=1).to_numpy()[:, None])[1]
    assert s[0] > 1 and abs(np.diff(np.diff(wide.to_numpy(), axis=0), axis=1)).max() > 0.1
    alone = ld.effects(ld.glm("y ~ I(a**2) + np.exp(b)", df), df, "a:b").tidy()["estimate"]
    assert alone.abs().max() < 1e-8


def test_the_effect_of_a_pair_is_not_known_where_no_rows_are(cars, fit):
    frame = ld.effects(fit, cars, "weight:model_year").tidy()
    heavy = frame.query("value > 4700 and value_2 > 80")
    assert heavy["estimate"].isna().all() and frame["estimate"].notna().mean() > 0.8
    assert len(cars.query("weight > 4300 and model_year > 79")) == 0


def test_levels_are_in_the_order_of_their_rows():
    rng = np.random.default_rng(0)
    names = np.array(["d", "a", "c", "b"])  # along x
    code = rng.integers(0, 4, 800)
    df = pd.DataFrame({"g": names[code], "x": code + 0.5 * rng.normal(size=800)})
    df["h"] = np.where(rng.random(800) < code / 4, "p", "q")
    df["y"] = df["x"] + (df["g"] == "a") + rng.normal(size=800)
    fit = ld.glm("y ~ g + x + h", df)
    order = ld.effects(fit, df, "g").tidy()["value"].tolist()
    assert order in (list(names), list(names[::-1]))
    declared = df.assign(g=pd.Categorical(df["g"], ["a", "b", "c", "d"], ordered=True))
    fit = ld.glm("y ~ g + x + h", declared)
    assert ld.effects(fit, declared, "g").tidy()["value"].tolist() == ["a", "b", "c", "d"]


def test_partial_dependence_is_the_mean_of_changed_rows(cars, fit):
    df = cars.dropna()
    frame = ld.effects(fit, df, ["weight", "origin"], kind="pd").tidy().set_index("term")
    for term, rows in frame.groupby("term"):
        for value, estimate in zip(rows["value"], rows["estimate"], strict=True):
            mean = fit.predict(df.assign(**{term: value})).mean()
            assert estimate == pytest.approx(mean, rel=1e-9)


def test_slopes_of_a_logistic_model_are_those_of_statsmodels(heart):
    df = heart[["disease", "age", "vessels", "sex"]]
    fit = ld.glm("disease ~ age + vessels + sex", df)
    X = sm.add_constant(df[["age", "vessels"]].assign(male=(df["sex"] == "male").astype(float)))
    reference = sm.Logit((df["disease"] == "present").astype(float), X).fit(disp=0)
    frame = ld.effects(fit, df, kind="slope").tidy().set_index("term")["estimate"]
    margins = reference.get_margeff(dummy=True).margeff
    np.testing.assert_allclose(frame[["age", "vessels"]], margins[:2], rtol=1e-5)
    assert ld.effects(fit, df, "sex", kind="slope").tidy()["value"][0] == "female - male"
    assert frame["sex"] == pytest.approx(-margins[2], rel=1e-5)
    link = ld.effects(fit, df, kind="slope", type="link").tidy().set_index("term")["estimate"]
    np.testing.assert_allclose(link[["age", "vessels"]], fit.coef()[["age", "vessels"]], rtol=1e-6)
    grouped = ld.effects(fit, df, "age", kind="slope", by="sex").tidy()
    parts = [
        ld.effects(fit, df[df["sex"] == s], "age", kind="slope").tidy() for s in grouped["group"]
    ]
    np.testing.assert_allclose(grouped["estimate"], pd.concat(parts)["estimate"], rtol=1e-9)


def test_the_slopes_of_gbmap_are_the_means_of_its_gradients(cars, fit):
    slopes = ld.effects(fit, cars.dropna(), ["weight", "model_year"], kind="slope").tidy()
    local = fit.predict(cars.dropna(), "local").mean()
    np.testing.assert_allclose(slopes["estimate"], local[["weight", "model_year"]], rtol=1e-4)


def test_weights_count_where_they_are_a_column(cars):
    df = cars.dropna().assign(w=lambda d: np.where(d["origin"] == "USA", 3, 1))
    fit = ld.gbmap("mpg ~ weight + model_year", df, m=3, lambda_=0.05, weights="w")
    copies = df.loc[df.index.repeat(df["w"])]
    for kind in ("slope", "ale"):
        weighted = ld.effects(fit, df, kind=kind).tidy()
        repeated = ld.effects(fit, copies.drop(columns="w"), kind=kind).tidy()
        np.testing.assert_allclose(weighted["estimate"], repeated["estimate"], rtol=1e-6)


def test_equal_weights_do_not_change_the_intervals():
    """Also of many rows, where a cumulative sum of weights 0.1 is inexact."""
    x, ones = np.random.default_rng(0).normal(size=100_000), np.ones(100_000)
    expected = ale.edges_of(x, ones, ale.BINS)
    np.testing.assert_array_equal(ale.edges_of(x, 0.1 * ones, ale.BINS), expected)


def test_rows_of_weight_zero_do_not_change_the_effect_of_a_pair(cars):
    df = cars.assign(w=np.where(cars["weight"] < 2000, 0.0, 1.0))
    fit = ld.glm("mpg ~ weight * model_year", df, weights="w")
    found = ld.effects(fit, df, "weight:model_year").tidy()
    expected = ld.effects(fit, df[df["w"] > 0.0], "weight:model_year").tidy()
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("more", [{"by": "g"}, {"kind": "pd"}, {"kind": "importance"}])
def test_rows_of_weight_zero_change_no_effect(more):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(602, 2)), columns=["a", "b"])
    df = df.assign(y=df["a"] + df["b"] ** 2, g=np.where(df["a"] > 0, "u", "v"), w=1.0, o=df["b"])
    df.loc[[5, 300], ["a", "y", "g", "w"]] = [1e9, 1e9, "seen nowhere else", 0.0]
    fit, less = ld.glm("y ~ a + b", df, weights="w", offset=df["o"]), df[df["w"] > 0.0]
    found, expected = (ld.effects(fit, d, offset=d["o"], **more) for d in (df, less))
    pd.testing.assert_frame_equal(found.tidy(), expected.tidy())
    assert repr(found) == repr(expected)
    with pytest.raises(ld.DataError, match="no row of the data has a positive weight"):
        ld.effects(fit, df[df["w"] == 0.0], offset=0.0, **more)


def test_importance_of_less_than_two_rows():
    df = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0) % 7})
    fit = ld.glm("y ~ a", df)
    for some in (df[:1], df.assign(y=np.nan), df.assign(y=df["y"].where(df["a"] == 3))):
        with pytest.raises(ld.DataError, match="importance needs at least two rows"):
            ld.effects(fit, some, kind="importance")
    found = ld.effects(fit, df.assign(g=df["a"] > 0), kind="importance", by="g").tidy()
    alone = found.set_index("group").loc[False, ["estimate", "std_error"]]
    assert alone.isna().all() and found["estimate"].notna().sum() == 1


def test_importance_of_a_linear_model_in_closed_form():
    """Permuted, x_j adds 2 b_j^2 var(x_j) to the mean square."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(3000, 3)), columns=["a", "b", "c"])
    df["y"] = 2 * df["a"] - df["b"] + rng.normal(size=3000)
    fit = ld.glm("y ~ a + b + c", df)
    found = ld.effects(fit, df, kind="importance").tidy().set_index("term")
    truth = 2 * fit.coef()[["a", "b", "c"]] ** 2 * df[["a", "b", "c"]].var()
    gap = (found["estimate"] - truth).abs()
    assert (gap < 3 * found["std_error"]).all() and found.loc["a", "std_error"] < 0.3
    assert found["conf_low"].lt(found["estimate"]).all()
    again = ld.effects(fit, df[::-1], kind="importance").tidy().set_index("term")
    np.testing.assert_allclose(again["estimate"], found["estimate"])


def test_a_column_of_several_features_is_permuted_as_one(cars):
    fit = ld.glm("mpg ~ weight + I(weight**2) + origin", cars)
    found = ld.effects(fit, cars, kind="importance").tidy()
    assert found["term"].tolist() == ["weight", "origin"]
    missing = ld.gbmap("mpg ~ horsepower + weight", cars, m=2, lambda_=0.1)
    found = ld.effects(missing, cars, kind="importance")
    assert found.tidy()["term"].tolist() == ["horsepower", "weight"]
    assert "horsepower" in repr(found)


@pytest.mark.long
def test_bands_are_those_of_the_replicates(cars):
    df = cars.dropna()
    fit = ld.glm("mpg ~ weight + I(weight**2) + origin", df)
    boot = ld.bootstrap(fit, df, n=60)
    frame = ld.effects(fit, df, interval=boot, level=0.9).tidy()
    curves = np.array([ld.effects(one, df).tidy()["estimate"] for one in boot.fits])
    low, high = np.quantile(curves, [0.05, 0.95], axis=0, method="weibull")
    np.testing.assert_allclose(frame["conf_low"], low)
    np.testing.assert_allclose(frame["conf_high"], high)
    np.testing.assert_allclose(frame["std_error"], curves.std(axis=0, ddof=1))
    slopes = ld.effects(fit, df, "origin", kind="slope", interval=boot, level=0.9).tidy()
    coef = boot.replicates
    contrast = -coef["origin[USA]"]
    assert slopes["value"].tolist() == ["Japan - USA", "Europe - USA"]
    np.testing.assert_allclose(slopes["std_error"][1], contrast.std(), rtol=1e-9)
    costnet = ld.costnet("mpg ~ .", df[::3], budget=2, n_lambda=15)
    boot = ld.bootstrap(costnet, df[::3], n=20)
    frame = ld.effects(costnet, df[::3], interval=boot, level=0.8).tidy()
    assert set(frame["term"]) == set(costnet.inputs) and frame["conf_high"].notna().all()


MODELS = {
    "gbmap": {"m": 2, "lambda_": 0.1}, "proset": {"lambda_v": 0.01},
    "melm": {"n_starts": 2, "gamma": 2.0}, "ripr": {"max_dim": 2},
    "costnet": {"budget": 4, "n_lambda": 20}, "glm": {},
}  # fmt: skip


@pytest.mark.parametrize("name", some_long(MODELS, ("costnet", "melm")))
def test_every_model_has_effects(heart, name):
    df = heart[::2].assign(smoker=lambda d: d["age"] > 55)
    df.iloc[3, df.columns.get_loc("vessels")] = np.nan
    formula = "chest_pain ~ age + sex + vessels + smoker + C(st_slope)"
    fit = getattr(ld, name)(formula, df, **MODELS[name])
    for kind in ("ale", "pd", "importance", *(() if name == "ripr" else ("slope",))):
        found = ld.effects(fit, df, kind=kind)
        assert np.isfinite(found.tidy()["estimate"]).all() and repr(found) and str(found.summary())
        if kind in ("ale", "pd"):
            assert found.tidy()["class"].nunique() == 4
    sums = ld.effects(fit, df, kind="pd").tidy().groupby(["term", "value"])["estimate"].sum()
    np.testing.assert_allclose(sums, 1.0)


def test_groups_and_offsets(cars):
    df = cars.dropna().assign(o=lambda d: 0.01 * d["weight"])
    array = ld.glm("mpg ~ model_year + origin", df, offset=df["o"].to_numpy())
    named = ld.glm("mpg ~ model_year + origin - o", df, offset="o")
    one = ld.effects(array, df, kind="pd", offset=df["o"].to_numpy()).tidy()
    pd.testing.assert_frame_equal(one, ld.effects(named, df, kind="pd").tidy())
    with pytest.raises(ld.DataError, match="offset"):
        ld.effects(array, df)
    by = ld.effects(named, df, "model_year", by="origin")
    assert by.tidy()["group"].unique().tolist() == ["Europe", "Japan", "USA"]
    part = ld.effects(named, df[df["origin"] == "USA"], "model_year").tidy()
    usa = by.tidy().query("group == 'USA'").drop(columns="group").reset_index(drop=True)
    pd.testing.assert_frame_equal(usa, part)


def test_frames_are_of_the_kind_of_the_data(cars):
    pl = pytest.importorskip("polars")
    df = pl.DataFrame(cars.dropna().to_dict("list"))
    fit = ld.gbmap("mpg ~ weight + origin", df, m=2, lambda_=0.1)
    boot = ld.bootstrap(fit, df, n=40)
    frame = ld.effects(fit, df, interval=boot, by="origin").tidy()
    assert isinstance(frame, pl.DataFrame) and isinstance(boot.tidy(), pl.DataFrame)
    assert set(frame["group"]) == set(cars["origin"]) and "1613.0" in set(frame["value"])
    band = boot.predict(df.head(3), level=0.9)
    assert isinstance(band, pl.DataFrame) and band.columns == ["fit", "lower", "upper"]


def test_a_feature_that_does_not_vary_has_no_effect():
    df = pd.DataFrame({"a": np.arange(20.0), "b": 1.0, "g": "only", "y": np.arange(20.0)})
    fit = ld.gbmap("y ~ a + b + g", df, m=1, lambda_=0.1)
    frame = ld.effects(fit, df).tidy().set_index("term")
    assert frame.loc[["b", "g"], "estimate"].tolist() == [0.0, 0.0]
    assert "g" not in set(ld.effects(fit, df, kind="slope").tidy()["term"])


@pytest.mark.long
def test_pictures(cars, fit, heart):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    boot = ld.bootstrap(fit, cars, n=40)
    found = ld.effects(fit, cars, interval=boot)
    axes = found.plot()
    assert [ax.get_xlabel() for ax in axes] == found.ranges()["term"].tolist()
    assert len({ax.get_ylim() for ax in axes}) == 1 and axes[0].get_ylabel() == "effect on mpg"
    line = axes[0].lines[0]
    assert line.get_ydata().max() == pytest.approx(found.ranges()["high"][0])
    assert found.plot("weight").get_xlabel() == "weight"
    pair = ld.effects(fit, cars, "weight:model_year").plot()
    assert (pair.get_xlabel(), pair.get_ylabel()) == ("weight", "model_year")
    levels = pair.collections[0].levels  # round ones, and none of both signs
    steps = np.diff(levels)
    assert 0.0 in levels.round(12) and np.allclose(steps, steps[0])
    assert np.isclose(steps[0], float(f"{steps[0]:.1g}")) or np.isclose(steps[0] % 0.25, 0.0)
    first = ld.effects(fit, cars).plot(top=1)
    assert "the 1 largest of 4" in first[0].figure.get_supxlabel()
    pair = ld.effects(fit, cars, ("weight", "model_year"))
    assert "," in str(pair.summary())
    slopes = ld.effects(fit, cars, kind="slope", interval=boot).plot()
    assert "with 95% interval" in slopes.get_xlabel()
    classes = ld.effects(ld.glm("chest_pain ~ age", heart), heart).plot()
    texts = [text.get_text() for text in classes.get_legend().get_texts()]
    assert texts == sorted(heart["chest_pain"].unique())
    grouped = ld.effects(fit, cars, ["weight", "origin"], by="cylinders").plot()
    assert [text.get_text() for text in grouped[1].get_legend().get_texts()] == list("34568")
    pyplot.close("all")


REFUSED = {
    "kind": (lambda f, d: ld.effects(f, d, kind="shap"), ld.ArgumentError, "kind must be"),
    "type": (lambda f, d: ld.effects(f, d, type="class"), ld.ArgumentError, "type must be"),
    "term": (lambda f, d: ld.effects(f, d, "wieght"), ld.DataError, "not 'wieght'"),
    "pair": (
        lambda f, d: ld.effects(f, d, "weight:model_year", kind="pd"), ld.ArgumentError, "pair",
    ),
    "pair of levels": (
        lambda f, d: ld.effects(f, d, [("weight", "origin")]), ld.ArgumentError, "by='origin'",
    ),
    "type of importance": (
        lambda f, d: ld.effects(f, d, kind="importance", type="link"), ld.ArgumentError, "deviance",
    ),
    "fit": (lambda f, d: ld.effects("fit", d), ld.ArgumentError, "must be a fit"),
    "interval": (
        lambda f, d: ld.effects(f, d, interval=0.95), ld.ArgumentError, "bootstrap of this",
    ),
    "no term": (lambda f, d: ld.effects(f, d, []), ld.ArgumentError, "terms must be"),
    "odd terms": (lambda f, d: ld.effects(f, d, 5), ld.ArgumentError, "terms must be"),
    "odd term": (lambda f, d: ld.effects(f, d, [5]), ld.DataError, "not 5"),
    "odd by": (lambda f, d: ld.effects(f, d, by=3), ld.ArgumentError, "name of a column"),
    "offset": (lambda f, d: ld.effects(f, d, offset=[[], 1]), ld.DataError, "offset must be"),
    "by": (lambda f, d: ld.effects(f, d, by="weight"), ld.ArgumentError, "1 to 50 values"),
    "no rows": (
        lambda f, d: ld.effects(f, d.assign(weight=np.nan), "weight"), ld.ArgumentError, "every",
    ),
    "constant pair": (
        lambda f, d: ld.effects(f, d.assign(model_year=70), ("weight", "model_year")),
        ld.ArgumentError, "'model_year' does not vary",
    ),
    "pair of groups": (
        lambda f, d: ld.effects(f, d, ("weight", "model_year"), by="origin").plot(),
        ld.ArgumentError, "needs one group, not 3",
    ),
    "axes": (lambda f, d: ld.effects(f, d).plot(ax=1), ld.ArgumentError, "give term="),
    "plot": (lambda f, d: ld.effects(f, d).plot("x"), ld.ArgumentError, "no term 'x'"),
    "level": (lambda f, d: ld.effects(f, d, level=0.9), ld.ArgumentError, "give interval="),
    "few replicates": (
        lambda f, d: ld.effects(f, d, interval=ld.bootstrap(f, d, n=5)), ld.ArgumentError,
        "level=0.95 needs at least 39 replicates, not 5: use level=0.666",
    ),
    "ranges": (
        lambda f, d: ld.effects(f, d, kind="slope").ranges(), ld.ArgumentError, "no curves",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(cars, fit, name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(fit, cars)


def test_fits_without_a_response_and_steps_are_refused(cars):
    df = cars.dropna()
    with pytest.raises(ld.ArgumentError, match="none"):
        ld.effects(ld.melm("~ weight + horsepower", df, k=1), df)
    with pytest.raises(ld.ArgumentError, match="uses no column"):
        ld.effects(ld.glm("mpg ~ 1", df), df)
    with pytest.raises(ld.ArgumentError, match="piecewise constant"):
        ld.effects(ld.ripr("mpg ~ weight + horsepower", df, max_dim=1), df, kind="slope")


def test_levels_are_ordered_by_the_rows_that_count(cars):
    weight = np.where(np.arange(len(cars)) % 3 == 0, 0.0, 1.0)
    data = cars.assign(w=weight, origin=cars["origin"].where(np.arange(len(cars)) % 7 > 0))
    fit = ld.gbmap("mpg ~ weight + origin", data, m=2, lambda_=0.1, weights="w")
    found = ld.effects(fit, data, "origin").tidy()
    counted = data[(weight > 0) & data["origin"].notna()]
    pd.testing.assert_frame_equal(found, ld.effects(fit, counted, "origin").tidy())


def test_replicates_may_read_columns_that_the_fit_does_not(cars):
    fit = ld.costnet("mpg ~ .", cars, lambda_=3.0)
    boot = ld.bootstrap(fit, cars, n=20)
    read = {name for one in boot.fits for name in one._reader.features}
    assert read > set(fit._reader.features)
    found = ld.effects(fit, cars, interval=boot, level=0.8)
    assert found.tidy()["conf_low"].notna().all()
    assert "Accumulated local effects" in found._repr_html_()


def test_parts_of_terms_are_visited_once_per_fit(monkeypatch):
    """Once per column and part, 10,000 columns took minutes."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(60, 30))).add_prefix("x")
    wide["y"] = wide["x0"] + rng.normal(size=60)
    fit, visits = ld.gbmap("y ~ .", wide, m=1, lambda_=0.1, threads=1), []
    needs = factors.needs
    monkeypatch.setattr(factors, "needs", lambda part: visits.append(part) or needs(part))
    read_rows(fit, wide, None)
    assert 0 < len(visits) <= 5 * 30
