"""What is looked for, as functions of arrays: found where it is, and not elsewhere."""

import numpy as np
import pytest
from scipy import stats

from lodim.diagnostics import features, predictions

RNG = np.random.default_rng(2)


def test_near_copies_are_found_among_columns_of_different_origin():
    X = RNG.normal(size=(200, 4))
    X[:, 2] = -X[:, 0] + 0.05 * RNG.normal(size=200)
    sources = [{"a"}, {"b"}, {"c"}, {"d"}]
    pairs = features.near_copies(X, sources)
    assert [(i, j) for i, j, _ in pairs] == [(0, 2)] and pairs[0][2] < -0.995
    assert features.near_copies(X, [{"a"}, {"b"}, {"a", "c"}, {"d"}]) == []
    assert features.near_copies(X, [None, {"b"}, {"c"}, {"d"}]) == []
    X[:, 2] += 0.2 * RNG.normal(size=200)
    assert features.near_copies(X, sources) == []


def test_a_column_tells_a_number_by_values_or_by_ranks():
    y = RNG.normal(size=100)
    assert features.tells_number(np.exp(5 * y), y) == pytest.approx(1.0)
    assert features.tells_number(y + 0.05 * RNG.normal(size=100), y) > 0.995
    r = features.tells_number(y + RNG.normal(size=100), y)
    assert r < 0.9


def test_a_column_tells_classes_if_it_tells_all_of_them():
    code = np.arange(60) % 3
    assert features.tells_classes(code + 0.1 * RNG.normal(size=60), code, 3) == 1.0
    assert features.tells_classes(np.minimum(code, 1) + 0.1 * RNG.normal(size=60), code, 3) < 0.8
    few = np.array([0, 0, 0, 1, 1])
    assert features.tells_classes(few * 1.0, few, 2) == 0.0  # chance could do that


def test_purity():
    level, code = np.repeat([0, 1, 2], 10), np.repeat([1, 0, 1], 10)
    assert features.purity(level, code) == 1.0
    code[:3] = 0
    assert features.purity(level, code) == pytest.approx(27 / 30)


@pytest.mark.parametrize("kind", ["normal", "exponential", "rare"])
def test_means_that_have_not_moved_are_not_found(kind):
    """Of 2,000 pairs of sets of rows, with skewed and rare features among them."""
    rng, found = np.random.default_rng(7), 0
    for _ in range(500):
        X = {
            "normal": lambda: rng.normal(size=(180, 4)),
            "exponential": lambda: rng.exponential(size=(180, 4)),
            "rare": lambda: (rng.random((180, 4)) < 0.03) * 1.0,
        }[kind]()
        old, new = X[:150], X[150:]
        spread = np.maximum(old.std(axis=0), 1e-300)
        found += features.moved((new - old.mean(axis=0)) / spread * (old.std(axis=0) > 0), 150)[
            1
        ].any()
    assert found <= 1


def test_means_that_have_moved_are_found():
    X = RNG.normal(size=(100, 3)) + np.array([0.0, 1.0, 0.1])
    shift, moved = features.moved(X, 500)
    assert moved.tolist() == [False, True, False] and shift[1] == pytest.approx(1.0, abs=0.3)


def test_no_training_row_is_beyond_what_training_rows_can_be():
    x = np.zeros(20)
    x[0] = 1.0  # the farthest that one of twenty can be
    z = (x - x.mean()) / x.std()
    assert not features.beyond(z[:, None], 20).any()
    assert features.beyond(np.array([[1.01 * z[0]]]), 20).all()


def test_recalibration_is_the_score_test_by_the_regression_of_ones():
    """n R2 of ones on what each row adds to the score, as in Davidson and MacKinnon."""
    import statsmodels.api as sm

    f = RNG.normal(size=300)
    p = 1 / (1 + np.exp(-f))
    y = (RNG.random(300) < 1 / (1 + np.exp(-0.5 * f - 0.4))) * 1.0
    statistic, chance = predictions.recalibration(y - p, f, 10**12)
    parts = np.stack([y - p, (y - p) * f], axis=1)
    expected = 300 - sm.OLS(np.ones(300), parts).fit().ssr
    assert statistic == pytest.approx(expected)
    assert chance == pytest.approx(stats.chi2.sf(expected, 2))
    assert predictions.recalibration(y - p, f, 300)[0] == pytest.approx(expected / 2)
    fit = sm.GLM(y, np.stack([np.ones(300), f], axis=1), sm.families.Binomial(), offset=f)
    score = fit.score(np.zeros(2))
    by_model = score @ np.linalg.solve(-fit.hessian(np.zeros(2)), score)
    both = predictions.recalibration(y - p, f, 10**12, p * (1 - p))[0]
    assert both == pytest.approx(min(expected, by_model))


def test_what_is_surely_right_is_no_surprise():
    p = np.full(30, 0.96)
    assert predictions.recalibration(1 - p, p, 10**6)[1] < 1e-3
    assert predictions.recalibration(1 - p, p, 10**6, p * (1 - p))[1] > 0.1


def test_numbers_that_are_calibrated_and_not():
    mean = RNG.normal(size=400)
    residual = RNG.normal(size=400)
    assert predictions.recalibration(residual, mean, 400)[1] > 1e-3
    assert predictions.recalibration(residual - 0.6 * mean, mean, 400)[1] < 1e-6
    assert predictions.recalibration(np.zeros(5), np.ones(5), 5) == (0.0, 1.0)


def test_the_fifth_that_is_farthest_off():
    p = np.linspace(0.01, 0.99, 100)
    residual = np.where(p < 0.2, 0.1, 0.0)
    at, which = predictions.worst_fifth(residual, p, p * (1 - p))
    assert which == "lowest" and (np.sort(at) == np.arange(20)).all()


def test_a_row_that_dominates():
    loss = np.ones(50)
    assert predictions.dominant(loss, np.full(50, 0.02)).size == 0
    loss[7] = 30.0
    assert predictions.dominant(loss, np.full(50, 0.02)).tolist() == [7]
    assert predictions.dominant(np.zeros(5), np.full(5, 0.2)).size == 0


@pytest.mark.parametrize(
    "before, now, error, lost",
    [
        (0.8, 0.7, 0.05, False), (0.8, 0.2, 0.05, True), (0.8, 0.2, 0.3, False),
        (0.03, -0.5, 0.01, False),
    ],
)  # fmt: skip
def test_what_is_lost(before, now, error, lost):
    assert predictions.is_lost(before, now, error) is lost
