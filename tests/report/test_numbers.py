"""digits: a number keeps its leading digits and loses its noise."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lodim.report.numbers import aligned, is_missing, is_number, significant


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (2.0, "2"),
        (-1.5, "-1.5"),
        (1e-17, "0"),
        (-0.0, "0"),
        (0.00012345, "0.0001234"),
        (1.2e-5, "1.2e-05"),
        (123456.7, "123457"),
        (9999.96, "10000"),
        (12345678.9, "1.235e+07"),
        (1234567890, "1234567890"),
        (np.int64(7), "7"),
        (np.float32(0.1), "0.1"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (True, "True"),
        (np.False_, "False"),
        ("text", "text"),
        (Decimal("1.50"), "1.50"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_significant(x, text):
    assert significant(x) == text


@pytest.mark.parametrize("x", [None, math.nan, np.nan, pd.NA, pd.NaT, np.float32("nan")])
def test_missing(x):
    assert significant(x) == "NaN" and is_missing(x) and not is_number(x)


def test_digits_and_noise():
    assert significant(math.pi, 3) == "3.14"
    assert significant(math.pi, 1) == "3"
    assert significant(1e-17, noise=0) == "1e-17"


@given(st.floats(-1e300, 1e300), st.integers(1, 8))
def test_significant_is_near(x, digits):
    shown = float(significant(x, digits, noise=0))
    assert shown == pytest.approx(x, rel=0.51 * 10 ** (1 - digits), abs=0)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([1.0, 2.0, 30.0], ["1", "2", "30"]),
        ([1.5, 2.0, 0.25], ["1.50", "2.00", "0.25"]),
        ([23.5123, -0.0067, 0.0, 1e-17], ["23.5123", "-0.0067", "0", "0"]),
        ([1e-7, 1.25], ["1e-07", "1.25"]),
        ([25000.123, 0.5123], ["25000.12", "0.51"]),
        ([5e8, 1.5], ["5e+08", "1.5"]),
        ([0.05, 0.00012], ["0.05000", "0.00012"]),
        ([1e-20, 2e-20], ["1e-20", "2e-20"]),
        ([-0.00004, 1.2345], ["-4e-05", "1.234"]),
        ([math.nan, math.inf, 1.5], ["NaN", "inf", "1.5"]),
        ([0.0, 0.0], ["0", "0"]),
        ([3, None, "a", 2.25], ["3", "NaN", "a", "2.25"]),
        ([], []),
    ],
)
def test_aligned(column, texts):
    assert aligned(column) == texts


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=6))
def test_aligned_never_shows_a_number_as_zero_nor_minus_zero(column):
    largest = max(map(abs, column), default=0)
    for x, text in zip(column, aligned(column), strict=True):
        assert (float(text) == 0) == (abs(x) <= 1e-13 * largest)
        assert not text.startswith("-0") or float(text) < 0
