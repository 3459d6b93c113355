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
        ([*REAL[:-1], "n/a"], r"60 levels in 60 rows, all numbers but 'n/a'; .*pd.to_numeric"),
        (REAL, r"60 levels in 60 rows, all numbers; make it numbers"),
        ([v.replace(".", ",") for v in REAL], r"decimal=',' \(--decimal ,"),
    ],
)
def test_what_can_be_no_category_is_refused(formula, values, words):
    with pytest.raises(DataError, match=f"'t' was read as text: it has .*{words}"):
        Design.learn(formula, frame(values))


@pytest.mark.parametrize("formula", ["t ~ x", "x ~ t"])
@pytest.mark.parametrize(
    "values, words",
    [
        ([*FEW[:-1], "?"], "5 levels in 60 rows, all numbers but"),
        ([*map(str, range(30))] * 3, "30 lev"),
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
        ("t ~ x", pd.Categorical(REAL)), ("x ~ t", pd.Categorical(REAL)),
    ],
)  # fmt: skip
def test_categories_that_are_meant_are_taken_in_silence(formula, values):
    df = frame(FEW).assign(t=values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Design.learn(formula, df)
