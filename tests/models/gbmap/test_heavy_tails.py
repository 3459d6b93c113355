"""Columns of a dot with heavy tails are compressed by a term that the formula language has."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld

GIVEN = {"m": 3, "lambda_": 0.01}
TERM = "np.arcsinh(standardize(Q('long tail')))"


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 2))
    rare = (np.arange(400) % 150 == 0) * 1.0
    frame = pd.DataFrame({"long tail": np.exp(2 * z[:, 0]), "plain": z[:, 1], "rare": rare})
    return frame.assign(y=z[:, 0] + z[:, 1] + 0.1 * rng.normal(size=400))


def test_only_columns_of_a_dot_and_not_two_numbers(df):
    assert ld.gbmap("y ~ .", df, **GIVEN).design.term_names == (TERM, "plain", "rare")
    kept = "y ~ Q('long tail') + ."
    assert ld.gbmap(kept, df, **GIVEN).design.term_names == ("long tail", "plain", "rare")
    assert ld.glm("y ~ .", df).design.term_names[1] != TERM


def test_it_is_the_fit_of_the_term_written_out(df, tmp_path):
    fit, peer = (ld.gbmap(f, df, **GIVEN) for f in ("y ~ .", f"y ~ {TERM} + plain + rare"))
    np.testing.assert_array_equal(fit.predict(df), peer.predict(df))
    df.to_parquet(tmp_path / "rows.parquet")
    from_file = ld.gbmap("y ~ .", tmp_path / "rows.parquet", **GIVEN)
    np.testing.assert_array_equal(from_file.predict(df), fit.predict(df))
    fit.save(tmp_path / "fit.lodim")
    np.testing.assert_array_equal(ld.load(tmp_path / "fit.lodim").predict(df), fit.predict(df))
    assert "Heavy tails" in " ".join(fit.summary().notes)


def test_wild_values_count_as_the_middle_instead(df):
    wild = df.assign(**{"long tail": np.where(df.index == 7, 1e12, df["long tail"])})
    with pytest.warns(ld.DataWarning, match="far outside"):
        fit = ld.gbmap("y ~ .", wild, **GIVEN)
    assert fit.design.term_names[0] == "long tail"


def test_the_term_keeps_the_order_of_the_column(df):
    fit = ld.gbmap("y ~ .", df, monotone={"long tail": "increasing"}, **GIVEN)
    at = np.sort(np.random.default_rng(1).lognormal(0.0, 4.0, size=500))
    at = at[at < df["long tail"].max()]
    rows = df.iloc[[0] * len(at)].assign(**{"long tail": at})
    assert (np.diff(fit.predict(rows)) >= 0.0).all()


def test_rows_far_beyond_the_training_rows_stay_near(df):
    far = df.assign(**{"long tail": 30.0 * df["long tail"].max()})
    formulas = "y ~ .", "y ~ Q('long tail') + plain + rare"
    with pytest.warns(ld.ExtrapolationWarning):
        near, line = (np.abs(ld.gbmap(f, df, **GIVEN).predict(far)).max() for f in formulas)
    assert near < 0.1 * line
