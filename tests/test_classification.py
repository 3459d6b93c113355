"""AUC, intervals and calibration compared with scikit-learn, statsmodels and counts."""

import numpy as np
import pytest

from lodim.classification import auc, macro_auc, reliability, wilson

RNG = np.random.default_rng(0)
N = 300
SCORE, WEIGHT = RNG.normal(size=N).round(1), RNG.integers(0, 4, N) / 2  # with ties, and zeros
POSITIVE = SCORE + RNG.normal(size=N) > 0.3


def test_auc_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    expected = metrics.roc_auc_score(POSITIVE, SCORE, sample_weight=WEIGHT)
    assert auc(POSITIVE, SCORE, WEIGHT) == pytest.approx(expected, rel=1e-12)
    assert auc(POSITIVE, POSITIVE.astype(float), WEIGHT) == 1.0
    assert auc(POSITIVE, np.zeros(N), WEIGHT) == 0.5
    assert np.isnan(auc(np.ones(N, bool), SCORE, WEIGHT))
    assert np.isnan(auc(POSITIVE, SCORE, POSITIVE.astype(float)))  # no negative row counts


def test_macro_auc_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    code = RNG.integers(0, 3, N)
    probability = RNG.dirichlet(np.ones(3), N).round(1) + 0.2 * np.eye(3)[code]
    probability /= probability.sum(axis=1, keepdims=True)
    how = {"multi_class": "ovr", "average": "macro"}
    one = np.ones(N)
    expected = metrics.roc_auc_score(code, probability, **how)
    assert macro_auc(code, probability, one) == pytest.approx(expected, rel=1e-12)
    of_two = [metrics.roc_auc_score(code[code < 2] == k, probability[code < 2, k]) for k in (0, 1)]
    two = code < 2
    found = macro_auc(code[two], probability[two], one[two])  # the third class has no row
    assert found == pytest.approx(np.mean(of_two), rel=1e-12)
    assert np.isnan(macro_auc(np.zeros(N), probability, one))


def test_wilson_is_that_of_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for hits in (0, 3, 20):
        expected = proportion.proportion_confint(hits, 20, method="wilson")
        assert wilson(hits / 20, 20) == pytest.approx(expected, abs=1e-12)


def test_groups_of_probabilities_are_counted_by_hand():
    p = np.array([0.1, 0.1, 0.1, 0.2, 0.6, 0.9])
    hit, weight = np.array([0, 0, 1, 0, 1, 1], bool), np.array([1.0, 1, 1, 1, 3, 1])
    found = reliability(p, hit, weight, 2)
    assert found["rows"].tolist() == [4, 2]  # half of the weight
    np.testing.assert_allclose(found["predicted"], [0.125, (3 * 0.6 + 0.9) / 4])
    np.testing.assert_allclose(found["observed"], [0.25, 1.0])
    np.testing.assert_allclose(found["low"][1], wilson(1.0, 16 / 10)[0])
    assert reliability(np.full(9, 0.5), np.arange(9) < 3, np.ones(9), 4)["rows"].tolist() == [9]


def test_probabilities_that_are_right_lie_within_their_intervals():
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    found = reliability(p, rng.random(4000) < p, np.ones(4000), 20)
    inside = (found["low"] <= found["predicted"]) & (found["predicted"] <= found["high"])
    assert inside.sum() >= 17 and len(inside) == 20
