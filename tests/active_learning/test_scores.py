"""Batches: which rows are asked for together, against the definitions."""

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.active_learning import scores as batches

RNG = np.random.default_rng(0)
X, KNOWN = RNG.normal(size=(40, 3)), RNG.normal(size=(7, 3))
SCORE = RNG.choice([0.0, 0.3, 0.7], 40)


def by_hand(a, b):
    """Mean squared difference over the features that two rows have."""
    d = [(u - v) ** 2 for u, v in zip(a, b, strict=True) if not np.isnan(u + v)]
    return np.mean(d) if d else 2.0


def test_the_largest_scores_and_none_for_rows_without_one():
    score = np.array([0.1, np.nan, 0.9, 0.5, np.nan, 0.7])
    assert batches.top(score, 3, np.random.default_rng(0)).tolist() == [2, 5, 3]
    assert set(batches.top(score, 9, np.random.default_rng(0))[-2:]) == {1, 4}


def test_distances_over_what_both_rows_have():
    A, B = X.copy(), np.repeat(KNOWN, 60, axis=0)  # more than a block of known rows
    A[RNG.random(A.shape) < 0.3] = B[RNG.random(B.shape) < 0.3] = np.nan
    expected = np.array([[by_hand(a, b) for b in B] for a in A])
    assert len(B) > 256 and (expected == 2.0).any()
    np.testing.assert_allclose(batches.squared(A, B), expected, atol=1e-12)
    np.testing.assert_allclose(batches.nearest(A, B), expected.min(axis=1), atol=1e-12)


@pytest.mark.long
def test_the_chance_of_a_row():
    """Of the first draw, and of the second after the first, against the definition."""
    pairs = [batches.far_apart(SCORE, X, KNOWN, 2, np.random.default_rng(s)) for s in range(4000)]
    first, second = np.array(pairs).T
    far = np.array([min(by_hand(x, z) for z in KNOWN) for x in X])
    far = np.minimum(far, np.median(far))
    p = (SCORE + 0.02) * far
    p /= p.sum()
    after = np.zeros(40)
    for i in range(40):
        q = (SCORE + 0.02) * np.minimum(far, [by_hand(x, X[i]) for x in X])
        after += p[i] * q / q.sum()
    for draws, chance in ((first, p), (second, after)):
        share = np.bincount(draws, minlength=40) / 4000
        error = np.sqrt(chance * (1 - chance) / 4000)
        assert (np.abs(share - chance) < 4.5 * error + 1e-12).all()


def test_a_heap_is_asked_about_little():
    heap, spread = 0.01 * RNG.normal(size=(100, 4)), RNG.normal(size=(150, 4))
    both, known = np.vstack([heap, spread]), np.zeros((1, 4))
    drawn = batches.far_apart(np.full(250, 0.5), both, known, 40, np.random.default_rng(1))
    assert (drawn < 100).sum() <= 2  # 16 by chance


def test_every_row_once_and_copies_and_rows_without_a_score_last():
    A = np.vstack([X[:10], KNOWN[:3], X[10:15]])
    score = np.full(18, 0.4)
    score[[2, 16]] = np.nan
    for seed in range(5):
        drawn = batches.far_apart(score, A, KNOWN, 18, np.random.default_rng(seed))
        assert sorted(drawn) == list(range(18))
        assert set(drawn[-2:]) == {2, 16} and set(drawn[-5:-2]) == {10, 11, 12}
    lost = batches.far_apart(np.full(4, np.nan), X[:4], KNOWN, 3, np.random.default_rng(0))
    assert len(set(lost)) == 3


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.ripr, ld.proset], ids=lambda m: m.__name__)
def test_features_are_scaled_as_the_fit_does(model):
    rows = pd.DataFrame(RNG.normal([5, 0], [3, 0.1], (60, 2)), columns=["a", "b"])
    rows["y"] = np.where(rows["a"] > 5, "yes", "no")
    fit = model("y ~ .", rows[:40], threads=1)
    pool = rows[40:].drop(columns="y")
    pool.loc[41, "a"] = np.nan
    expected = ((pool - rows[:40][["a", "b"]].mean()) / fit.design.scale).to_numpy()
    if model is not ld.ripr:  # which alone leaves what is missing open
        expected[1, 0] = 0.0
    np.testing.assert_allclose(batches.features(fit, pool), expected, atol=1e-9)
    np.testing.assert_allclose(np.std(batches.features(fit, rows[:40]), axis=0), 1.0, atol=0.02)
