"""Columns of a dot with heavy tails enter as a function that the formula language has."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design import terms

GIVEN = {"m": 3, "lambda_": 0.01}
START = "np.arcsinh((Q('long tail') - "


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 2))
    rare = (np.arange(400) % 150 == 0) * 1.0
    frame = pd.DataFrame({"long tail": np.exp(2 * z[:, 0]), "plain": z[:, 1], "rare": rare})
    return frame.assign(y=z[:, 0] + z[:, 1] + 0.1 * rng.normal(size=400))


@pytest.fixture(scope="module")
def fit(df):
    return ld.gbmap("y ~ .", df, **GIVEN)


def test_only_long_tails_of_columns_that_the_formula_does_not_name(df, fit):
    long, *others = fit.design.term_names
    assert long.startswith(START)
    assert others == ["plain", "rare"]
    named = ld.gbmap("y ~ Q('long tail') + .", df, **GIVEN)
    assert named.design.term_names == ("long tail", "plain", "rare")
    assert "long tail" in ld.glm("y ~ .", df).design.term_names


def test_the_fit_is_that_of_the_term_written_out(df, fit, tmp_path):
    peer = ld.gbmap(f"y ~ {fit.design.term_names[0]} + plain + rare", df, **GIVEN)
    np.testing.assert_array_equal(fit.predict(df), peer.predict(df))
    df.to_parquet(tmp_path / "rows.parquet")
    from_file = ld.gbmap("y ~ .", tmp_path / "rows.parquet", **GIVEN)
    np.testing.assert_array_equal(from_file.predict(df), fit.predict(df))
    fit.save(tmp_path / "fit.lodim")
    np.testing.assert_array_equal(ld.load(tmp_path / "fit.lodim").predict(df), fit.predict(df))
    (note,) = [note for note in fit.summary().notes if "heavy tails" in note]
    assert "long tail" in note and "plain" not in note


def test_weights_are_repeated_rows(df):
    weight = 1 + np.arange(400) % 3
    once = ld.gbmap("y ~ .", df, weights=weight, **GIVEN).design.term_names
    assert ld.gbmap("y ~ .", df.loc[df.index.repeat(weight)], **GIVEN).design.term_names == once


def test_rounding_errors_do_not_round_a_median_down_or_up():
    """686.5 lies halfway between two numbers of three digits."""
    rng = np.random.default_rng(0)
    x = np.sort(np.rint(686.0 + 320.0 * rng.standard_t(2, size=1001)))
    x[500] = 686.5
    x[501:] = np.maximum(x[501:], 687.0)
    x[:500] = np.minimum(x[:500], 686.0)
    codes = {terms.compressing_text("x", x * (1.0 + e), np.ones(1001)) for e in (0, 1e-12, -1e-12)}
    assert len(codes) == 1 and "(x - 687.0)" in codes.pop()


def test_constants_are_rounded_to_the_spread_and_outliers_alone_are_no_tail():
    rng = np.random.default_rng(1)
    x, ones = 1e9 + rng.standard_t(2, size=1000), np.ones(1000)
    code = terms.compressing_text("x", x, ones)
    center, spread = (
        float(v) for v in code.removeprefix("np.arcsinh((x - ").removesuffix(")").split(") / ")
    )
    assert abs(center - 1e9) < 0.1
    assert 1.0 < spread < 1.5
    normal = rng.normal(size=1000)
    assert terms.compressing_text("x", np.r_[normal, 1e12], np.ones(1001)) is None
    assert terms.compressing_text("x", np.r_[np.exp(2 * normal), 1e12], np.ones(1001)) is not None


@pytest.mark.parametrize("counts", [(90, 8), (90, 8, 6, 4)])
def test_values_that_differ_by_rounding_count_as_equal(counts):
    x = np.repeat((1.0, 28.0, 56.0, 365.0)[: len(counts)], counts)
    noisy = x * (1 + 1e-12 * np.random.default_rng(2).normal(size=len(x)))
    one, two = (terms.compressing_text("x", column, np.ones(len(x))) for column in (x, noisy))
    assert one == two
    assert (one is None) == (len(counts) == 2)


def test_the_effect_of_the_column_can_be_monotone(df):
    fit = ld.gbmap("y ~ .", df, monotone={"long tail": "increasing"}, **GIVEN)
    at = np.geomspace(1e-3, df["long tail"].max(), 200)
    rows = df.iloc[[0] * len(at)].assign(**{"long tail": at})
    assert (np.diff(fit.predict(rows)) >= 0.0).all()
    formula = "y ~ np.arcsinh((plain - 1) / -2) + rare"
    with pytest.raises(ld.ArgumentError, match="monotone"):
        ld.gbmap(formula, df, monotone={"plain": "increasing"}, **GIVEN)
