"""Missing values that are filled in, levels that training had not, categories in order."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import lodim as ld
from lodim import forms
from lodim.design.design import Design
from lodim.design.rows import RowInputs
from lodim.engine import tiles
from lodim.errors import DataError
from lodim.prices.build import make_network


@pytest.fixture
def df():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"x": rng.normal(3, 2, 120), "z": rng.normal(size=120), "g": rng.choice(list("abc"), 120),
         "h": rng.choice(list("uv"), 120), "w": rng.integers(0, 3, 120).astype(float)}
    )  # fmt: skip
    frame["y"] = frame["x"] + (frame["g"] == "b") - frame["z"] + rng.normal(size=120)
    frame.loc[rng.random(120) < 0.2, "x"] = np.nan
    frame.loc[rng.random(120) < 0.1, "g"] = None
    return frame


def numbers(design, df, **how):
    batch = design.apply(df, **how)
    return tiles.unpack(batch.X, batch.n)


TERMS = "x + z + g + h + I(x**2) + x:z + g:z + bs(x, df=4)"


@pytest.mark.parametrize("weights", [None, "w"])
def test_the_same_as_of_a_frame_filled_by_hand(df, weights):
    """A number is its weighted mean before functions see it; a category has a level of its own."""
    design, batch = Design.learn(
        f"y ~ {TERMS}", df, RowInputs(weights=weights), missing="indicator"
    )
    known = df["x"].notna()
    weight = df["w"] if weights else pd.Series(1.0, df.index)
    mean = np.average(df["x"][known], weights=weight[known])
    by_hand = df.fillna({"x": mean, "g": "missing"}).assign(gap=~known * 1.0)
    expected = Design.learn(f"y ~ {TERMS} + gap", by_hand, RowInputs(weights=weights))
    names = [n.replace("gap", "x[missing]") for n in expected[0].names]
    # In a sorted list of levels "missing" is the last one here, as it is among the columns.
    assert list(design.names) == names
    X, Z = (tiles.unpack(b.X, b.n) for b in (batch, expected[1]))
    np.testing.assert_allclose(X, Z, atol=1e-9)
    np.testing.assert_allclose(numbers(design, df), Z, atol=1e-9)
    fills = {fill.name: fill for fill in design.fills}
    assert fills["x"].value == pytest.approx(mean) and fills["z"].n_missing == 0
    assert fills["x"].n_missing == (~known & (weight > 0)).sum()


def test_coefficients_are_those_of_least_squares(df):
    fit = ld.glm("y ~ x + g", df, missing="indicator")
    X = pd.DataFrame({"x": df["x"].fillna(df["x"].mean()), "gap": df["x"].isna() * 1.0})
    for level in ("b", "c"):
        X[level] = (df["g"] == level) * 1.0
    X["none"] = df["g"].isna() * 1.0
    expected = sm.OLS(df["y"], sm.add_constant(X)).fit()
    order = ["(Intercept)", "x", "x[missing]", "g[b]", "g[c]", "g[missing]"]
    np.testing.assert_allclose(fit.coef()[order], expected.params, rtol=1e-9)
    np.testing.assert_allclose(fit.predict(df), expected.fittedvalues, rtol=1e-9)


def test_what_training_never_missed_is_its_mean_later(df):
    """Of a category the mean of its columns: in a linear model the mean of the levels' answers."""
    fit = ld.glm("y ~ z*h + C(h, Sum):x", df, missing="indicator")
    assert not any("missing" in name and "h" in name for name in fit.design.names)
    one = df.iloc[[4]]
    share = (df["h"] == "u").mean()
    each = [fit.predict(one.assign(h=level)).iloc[0] for level in "uv"]
    answer = fit.predict(one.assign(h=None)).iloc[0]
    assert answer == pytest.approx(share * each[0] + (1 - share) * each[1])
    assert fit.predict(one.assign(z=np.nan)).equals(fit.predict(one.assign(z=df["z"].mean())))


def test_categories_within_functions_are_the_most_frequent(df):
    df["b"] = pd.array(np.where(df["z"] > -1, True, False), dtype="boolean")
    df.loc[:9, "b"] = pd.NA
    formula = "y ~ I(g == 'a') + I(b)"
    design, _ = Design.learn(formula, df, missing="indicator", standardize=False)
    names = ("I(g == 'a')[True]", "I(b)[True]", "I(b)[missing]", "g[missing]")
    assert design.names == names
    X = numbers(design, df) + design.mean
    common = df["g"].mode()[0]
    np.testing.assert_allclose(X[:, 0], df["g"].fillna(common) == "a")
    np.testing.assert_allclose(X[:, 1], df["b"].fillna(False).astype(float), atol=1e-12)
    np.testing.assert_allclose(X[:, 2], df["b"].isna(), atol=1e-12)
    np.testing.assert_allclose(X[:, 3], df["g"].isna())
    alone = numbers(design, df.assign(g=None)) + design.mean
    assert (alone[:, 3] == 1).all() and (alone[:, 0] == (common == "a")).all()


def test_contrasts_are_zero_beside_a_level_of_its_own(df):
    design, _ = Design.learn("~ C(g, Sum)", df, missing="indicator", standardize=False)
    X = numbers(design, df) + design.mean
    gone = df["g"].isna()
    assert design.names[-1] == "C(g, Sum)[missing]"
    np.testing.assert_allclose(X[gone], np.tile([0.0, 0.0, 1.0], (gone.sum(), 1)), atol=1e-12)
    assert (abs(X[~gone, 2]) < 1e-12).all()


def test_a_level_that_is_called_missing(df):
    df["g"] = df["g"].replace("a", "missing")
    design, _ = Design.learn("y ~ g", df, missing="indicator")
    assert design.names == ("g[b]", "g[c]", "g[missing]", "g[missing_]")


def test_rows_without_response_are_left_out(df):
    df.loc[:4, "y"] = np.nan
    design, batch = Design.learn("y ~ x + g", df, missing="indicator")
    assert batch.n == 115 and design.n_dropped == 5
    assert design.n_incomplete == df.loc[5:, ["x", "g"]].isna().any(axis=1).sum()
    design, batch = Design.learn("y ~ x + g", df)
    assert design.n_incomplete == design.n_dropped - 5 == 115 - batch.n
    with pytest.raises(
        DataError,
        match="'x' is missing in every row with a positive weight; leave it out with '- x'",
    ):
        Design.learn("y ~ x + g", df.assign(x=np.nan), missing="indicator")
    with pytest.raises(DataError, match="missing='indicator' keeps rows with missing features"):
        Design.learn(
            "y ~ x + g", df.assign(x=df["x"].where(df.index < 3), g=df["g"].where(df.index > 2))
        )
    with pytest.raises(DataError, match="'y' in 5\\); leave 'x' out of the formula"):
        Design.learn("y ~ x + g", df.assign(x=np.nan))


def test_a_feature_and_what_says_that_it_is_missing_are_bought_together(df):
    fit = ld.costnet("y ~ x + g", df, costs={"x": 3.0, "g": 2.0}, budget=3.0)
    network = make_network(fit.design, fit.settings, ())
    columns = dict(zip(network.names, network.columns, strict=True))
    of = {name: [fit.design.names[j] for j in at] for name, at in columns.items()}
    assert of["x"] == ["x", "x[missing]"] and of["g"][-1] == "g[missing]"
    assert fit.cost == 3.0 and fit.inputs == ["x"]
    assert fit.predict(df[["x"]]).notna().all()


# Levels that training had not --------------------------------------------------------------------


def declared(df, ordered=False):
    kinds = pd.CategoricalDtype(["a", "b", "c", "never"], ordered=ordered)
    return df.assign(g=df["g"].astype(kinds))


@pytest.mark.parametrize("way", ["drop", "indicator"])
def test_a_declared_category_without_rows_is_missing(df, way):
    fit = ld.glm("y ~ x + g", declared(df), missing=way)
    assert not any("never" in name for name in fit.design.names)
    new = df[df["x"].notna()].iloc[:2]
    none, never = (fit.predict(new.assign(g=value)) for value in (None, "never"))
    pd.testing.assert_series_equal(none, never)
    assert never.isna().all() == (way == "drop")
    with pytest.raises(DataError, match=r"'z'.*rows: 'a', 'b', 'c'.*new_levels='missing'"):
        fit.predict(new.assign(g="z"))
    pd.testing.assert_series_equal(fit.predict(new.assign(g="z"), new_levels="missing"), none)
    for value in ("ignore", None, pd.NA, np.zeros(3), new):
        with pytest.raises(ld.ArgumentError, match="new_levels must be one of error, missing"):
            fit.predict(new, new_levels=value)


@pytest.mark.long
@pytest.mark.parametrize("formula", ["y ~ g", "y ~ C(g)", "y ~ C(k)"])
def test_new_levels_may_be_missing(df, formula):
    df["k"] = df["w"].astype(int)
    design, _ = Design.learn(formula, df.dropna())
    new = df.assign(g="new", k=7)
    with pytest.raises(DataError, match="not a level of the training rows"):
        design.apply(new)
    assert design.apply(new, new_levels="missing").n == 0
    assert design.apply(df.dropna(), new_levels="missing").n == len(df.dropna())


# Categories in order -----------------------------------------------------------------------------


def test_ordered_categories_are_polynomials_in_glm(df):
    """R's contr.poly: columns of the QR decomposition of 1, t, t^2."""
    df = declared(df.dropna(), ordered=True)
    fit, plain = ld.glm("y ~ g + x", df), ld.glm("y ~ C(g) + x", df)
    assert fit.design.names[:2] == ("g[Linear]", "g[Quadratic]")
    np.testing.assert_allclose(fit.predict(df), plain.predict(df))
    contrast = np.array([[-1, 0, 1], [1, -2, 1]]) / np.sqrt([[2.0], [6.0]])
    at = df["g"].cat.codes.to_numpy()
    X = np.column_stack([np.ones(len(df)), contrast[0][at], contrast[1][at], df["x"]])
    coef = np.linalg.lstsq(X, df["y"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose(fit.coef(), coef, rtol=1e-9)


def test_ordered_categories_are_thresholds_elsewhere(df):
    df = declared(df, ordered=True)
    design, _ = Design.learn("y ~ g", df, missing="indicator", standardize=False)
    assert design.names == ("g[>=b]", "g[>=c]", "g[missing]")
    X = numbers(design, df) + design.mean
    code = df["g"].cat.codes
    np.testing.assert_allclose(X, np.column_stack([code >= 1, code >= 2, code < 0]), atol=1e-12)
    again = forms.read(Design, forms.write(design))
    np.testing.assert_array_equal(numbers(again, df), numbers(design, df))


def test_new_levels_of_what_is_computed_are_refused_with_the_cure():
    df = pd.DataFrame({"k": [0.0, 1, 2, 3] * 5, "y": np.arange(20.0)})
    fit = ld.glm("y ~ C(np.floor(k / 2))", df)
    with pytest.raises(DataError, match=r"level 4.0.*computed value.*make it a column of the data"):
        fit.predict(df[:1].assign(k=9.0), new_levels="missing")


def test_new_levels_of_a_column_in_two_terms():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"g": rng.choice(list("abc"), 60), "y": rng.normal(size=60)})
    df["k"] = rng.integers(0, 3, 60) * 1.0
    fit = ld.glm("y ~ g + C(g, levels=['a', 'b', 'c', 'd'])", df)
    out = fit.predict(df[:2].assign(g=["e", "a"]), new_levels="missing")
    assert list(out.isna()) == [True, False]
    fit = ld.glm("y ~ k + C(k)", df, missing="indicator")
    with pytest.raises(ld.ArgumentError, match="'k', because the formula also uses it as a number"):
        fit.predict(df[:1].assign(k=7.0), new_levels="missing")


def test_text_for_a_number_that_may_be_missing_is_refused(df):
    fit = ld.glm("y ~ x + g", df.assign(x=df["x"].where(df["z"] > 0)), missing="indicator")
    with pytest.raises(DataError, match="column 'x' must have numbers, as in training"):
        fit.predict(df.assign(x=np.where(df["z"] > 0, "many", None)))


def test_an_ordered_category_of_one_level_is_constant(df):
    one = df.assign(one=pd.Categorical(["a"] * len(df), ordered=True))
    assert ld.glm("y ~ x + one", one).design.constant == ("one[a]",)
