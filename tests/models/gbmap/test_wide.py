"""gbmap on many columns: its settings are chosen by rough fits, and it is fitted exactly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.models.gbmap.settings import Settings


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 70))
    df = pd.DataFrame(X, columns=[f"x{k}" for k in range(70)])
    return df.assign(y=3 * X[:, 0] + 2 * np.abs(X[:, 1]) + 0.5 * rng.normal(size=120))


def test_rough_fits_choose_and_an_exact_one_answers(wide):
    control = {"max_stages": 6, "reference_rows": 0}
    fit = ld.gbmap("y ~ .", wide, lambda_=3.0, control=control, refit="none")
    assert (fit.settings.tol, fit.settings.ftol, fit.settings.n_starts) == (None, None, 2)
    again = ld.gbmap("y ~ .", wide, lambda_=3.0, m=fit.settings.m, control=control)
    np.testing.assert_array_equal(again.predict(wide), fit.predict(wide))
    assert fit.log["grad_norm"].max() < 1e-5


def test_what_is_given_holds_in_rough_fits_too():
    one = Settings(None, None, 10.0, 0.0, "softplus", 2, 0, None)
    for few in one.rough(500, 63), one.rough(40, 5000):
        assert few == replace(one, n_starts=1)
    lines = replace(one, activation="identity")
    assert lines.rough(500, 64) is lines
    rough = one.rough(100, 64)
    assert (rough.tol, rough.ftol, rough.n_starts) == (1e-5, 1e-6, 1)
    given = Settings(None, None, 10.0, 0.0, "softplus", 2, 0, None, tol=1e-3, ftol=1e-9)
    assert (given.rough(100, 64).tol, given.rough(100, 64).ftol) == (1e-3, 1e-9)


def test_a_choice_at_the_edge_goes_further_and_says_so():
    x = np.linspace(-2, 2, 60)
    control = {"max_stages": 4, "reference_rows": 0}
    for y, n_tried in ((np.logaddexp(0.0, 10 * x) / 10, 10), (np.abs(x), 9)):
        df = pd.DataFrame({"x": x, "y": y})
        fit = ld.gbmap("y ~ .", df, control=control, n_starts=1)
        steps = np.diff(np.log(fit.selection["lambda_"]))
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
        # A hinge without noise is best without a penalty; two of them want many boosts.
        assert len(fit.selection) == n_tried
        words = " ".join(str(fit.summary()).split())
        at_end = fit.selection["weight"].idxmax() == n_tried - 1
        assert ("smallest lambda_ that was tried" in words) == at_end
        many = "m is near the 4 boosts that were tried: more may gain by control={'max_stages': 8}"
        assert (many in words) == (n_tried == 9)


def test_more_features_than_rows_gets_a_hint():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 10))).rename(columns=str)
    few = ld.gbmap("Q('0') ~ .", df, m=1, lambda_=1.0)
    assert "l1_ratio=0.5" in " ".join(str(few.summary()).split())
    assert "l1_ratio=" not in str(ld.gbmap("Q('0') ~ Q('1')", df, m=1, lambda_=1.0).summary())
