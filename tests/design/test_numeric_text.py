"""Numbers that were read as text: refused, warned about, or a category that is meant."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lodim.design.design import Design
from lodim.errors import DataError, DataWarning


def frame(values):
    rng = np.random.default_rng(0)
    text = pd.Series(values, dtype=object)
    return pd.DataFrame({"t": text, "x": rng.normal(size=len(text))})


REAL = [f"{v:.3f}" for v in np.random.default_rng(1).normal(size=60)]
FEW = ["1", "2", "3", "4"] * 15


@pytest.mark.parametrize("formula", ["t ~ x", "x ~ t"])
@pytest.mark.parametrize(
    "values, words",
    [
        ([*REAL[:-1], "n/a"], r"60 levels in 60 rows, all numbers except 'n/a'; .*pd.to_numeric"),
        (REAL, r"60 levels in 60 rows, all numbers; make it numbers"),
        ([v.replace(".", ",") for v in REAL], r"decimal=',' \(--decimal ,"),
    ],
)
def test_what_can_be_no_category_is_refused(formula, values, words):
    with pytest.raises(DataError, match=f"'t' was read as text: it has .*{words}"):
        Design.learn(formula, frame(values))


AMOUNTS = np.random.default_rng(2).uniform(1_000, 9_000, 60)
WRITTEN = {"${:,.2f}": "$,", "{:,.0f}": ",", "{:.1f}%": "%", "-{:.2f} €": " €"}


@pytest.mark.parametrize("formula", ["t ~ x", "x ~ t", "x ~ ."])
@pytest.mark.parametrize("form, marks", WRITTEN.items())
def test_amounts_are_refused_with_what_makes_numbers_of_them(formula, form, marks):
    cure = f"pd.to_numeric(df['t'].str.replace('[{marks}]', '', regex=True), errors='coerce')"
    values = [form.format(x) for x in AMOUNTS]
    with pytest.raises(DataError, match=r"was read as text: .* all numbers") as caught:
        Design.learn(formula, frame(values))
    assert cure in str(caught.value)
    made = eval(cure, {"pd": pd, "df": frame(values)})
    np.testing.assert_allclose(made.abs(), AMOUNTS, atol=0.51)


def test_amounts_with_decimal_commas(recwarn):
    values = [f"{x:.2f} €".replace(".", ",") for x in AMOUNTS]
    with pytest.raises(DataError, match=r"replace\(',', '\.'\), errors"):
        Design.learn("x ~ t", frame(values))
    assert Design.learn("x ~ t", frame(["5%", "10%", "20%", "40%"] * 15))[0].features == ["t"]
    assert not recwarn.list


@pytest.mark.parametrize("formula", ["t ~ x", "x ~ t"])
@pytest.mark.parametrize(
    "values, words",
    [
        ([*FEW[:-1], "?"], "5 levels in 60 rows, all numbers except"),
        ([*map(str, range(30))] * 3, "30 lev"),
        (
            ["yes", "no", "Yes ", "maybe"] * 15,
            "differ only in case or spaces: 'Yes ', 'yes'; write",
        ),
    ],
)
def test_what_may_be_no_category_is_warned_about(formula, values, words):
    with pytest.warns(DataWarning, match=words):
        Design.learn(formula, frame(values))


@pytest.mark.parametrize(
    "formula, values",
    [
        ("t ~ x", FEW), ("x ~ t", FEW), ("x ~ t", [*FEW[:-1], "5+"]), ("x ~ C(t)", REAL),
        ("t ~ x", ["0-9", "10-19", "20"] * 20), ("t ~ x", list("ab?") * 20),
        ("x ~ C(t)", list("aA") * 30), ("t ~ x", pd.Categorical(list("aAb") * 20)),
        ("x ~ t", ["Strasse", "Straße"] * 30),
        ("t ~ x", pd.Categorical(REAL)), ("x ~ t", pd.Categorical(REAL)),
    ],
)  # fmt: skip
def test_categories_that_are_meant_are_taken_in_silence(formula, values):
    df = frame(FEW).assign(t=values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Design.learn(formula, df)
