"""Standard errors of held-out losses, and which differences are significant."""

import numpy as np
import pytest
from scipy import stats

from lodim.comparison.inference import (
    Rows,
    auc_of_folds,
    confidence_set,
    explained,
    joint_quantile,
    means,
    pair_errors,
)

RNG = np.random.default_rng(0)


def rows_of(n, folds=10, **others):
    return Rows(np.full(n, 1.0 / n), np.arange(n) % folds, **others)


def test_variances_are_those_of_rows_times_the_factor_of_nadeau_and_bengio():
    losses, rows = RNG.exponential(size=(50, 3)), rows_of(50)
    mean, covariance = means(losses, rows)
    np.testing.assert_allclose(mean, losses.mean(axis=0))
    assert rows.inflation == pytest.approx(10 * (1 / 10 + (1 / 10) / (9 / 10)))
    np.testing.assert_allclose(covariance, rows.inflation * np.cov(losses.T) / 50)
    gap = losses[:, 0] - losses[:, 2]
    error = np.sqrt(rows.inflation * gap.var(ddof=1) / 50)
    assert pair_errors(covariance, mean)[0, 2] == pytest.approx(error)


def test_variances_of_groups_are_those_of_their_sums():
    groups = np.repeat(np.arange(10.0), 5)
    losses = np.repeat(RNG.exponential(size=10), 5)[:, None]
    whole = Rows(np.full(50, 0.02), np.repeat(np.arange(10), 5), groups)
    _, covariance = means(losses, whole)
    single = rows_of(10)
    _, by_group = means(losses[::5], single)
    np.testing.assert_allclose(covariance, by_group)


def test_a_weight_of_two_is_two_rows():
    losses, fold = RNG.exponential(size=(20, 2)), np.arange(20) % 4
    weight = np.where(np.arange(20) < 8, 2.0, 1.0)
    twice = np.repeat(np.arange(20), weight.astype(int))
    a = means(losses, Rows(weight / weight.sum(), fold))
    b = means(losses[twice], Rows(np.full(28, 1 / 28), fold[twice], twice.astype(float)))
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other)


def test_the_error_of_a_share_explained_is_that_of_the_jackknife():
    n = 200
    null, losses = RNG.exponential(size=n), RNG.exponential(size=(n, 2)) * 0.3
    share, error = explained(losses, null, rows_of(n))
    np.testing.assert_allclose(share, 1.0 - losses.sum(axis=0) / null.sum())
    left = 1.0 - (losses.sum(axis=0) - losses) / (null.sum() - null)[:, None]
    jackknife = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose(error, jackknife * np.sqrt(rows_of(n).inflation), rtol=0.02)
    assert np.isnan(explained(losses, np.zeros(n), rows_of(n))).all()  # nothing to explain


def test_auc_is_the_share_of_pairs_in_order_and_its_error_is_delongs():
    n = 60
    positive, score = RNG.random(n) < 0.4, RNG.normal(size=n).round(1)
    rows = Rows(np.full(n, 1 / n), np.zeros(n, int))
    share, parts = auc_of_folds(positive, score, rows)
    apart = score[positive][:, None] - score[~positive]
    wins = (apart > 0) + 0.5 * (apart == 0)
    assert share == pytest.approx(wins.mean())
    sizes = positive.sum(), (~positive).sum()
    delong = wins.mean(axis=1).var() / sizes[0] + wins.mean(axis=0).var() / sizes[1]
    assert parts @ parts == pytest.approx(delong)
    assert np.isnan(auc_of_folds(np.ones(n, bool), score, rows)[0])


def test_auc_compares_rows_that_were_held_out_together():
    positive = np.array([True, False, True, False])
    score = np.array([2.0, 1.0, -1.0, -2.0])  # between the folds the order is another one
    fold = np.array([0, 0, 1, 1])
    assert auc_of_folds(positive, score, Rows(np.full(4, 0.25), fold))[0] == 1.0
    assert auc_of_folds(positive, score, Rows(np.full(4, 0.25), np.zeros(4, int)))[0] == 0.75


def test_the_level_of_two_models_is_that_of_the_t_test():
    losses = RNG.normal(size=(30, 2)) + np.array([0.0, 0.6])
    mean, covariance = means(losses, rows_of(30))
    t = (mean[1] - mean[0]) / pair_errors(covariance, mean)[0, 1]
    p = confidence_set(mean, covariance, 29)
    assert p[0] == 1.0
    assert p[1] == pytest.approx(2 * stats.t.sf(t, 29), abs=0.01)
    assert joint_quantile(mean, covariance, 29) == pytest.approx(stats.t.ppf(0.975, 29), rel=0.03)


def test_five_equal_models_are_judged_by_the_range():
    mean, covariance = np.arange(5.0) * 0.9, np.eye(5)
    p = confidence_set(mean, covariance, 10**9)
    whole = stats.studentized_range.sf(3.6, 5, 10**9)
    assert p[-1] == pytest.approx(whole, abs=0.01)
    assert (np.diff(p) <= 0).all() and p[0] == 1.0


def test_models_that_are_the_same_do_not_differ_significantly():
    losses = RNG.normal(size=(40, 1)) ** 2
    same = np.hstack([losses, losses, losses + 1.0])
    assert confidence_set(*means(same, rows_of(40)), 39).tolist() == [1.0, 1.0, 0.0]
    nearly = np.hstack([losses, losses * (1.0 + 1e-8), losses + 1.0])
    assert confidence_set(*means(nearly, rows_of(40)), 39).tolist() == [1.0, 1.0, 0.0]
    constant = np.zeros((40, 2))
    assert confidence_set(*means(constant, rows_of(40)), 39).tolist() == [1.0, 1.0]


def neighbours(X, y, new):
    apart = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    return y[np.argpartition(apart, 3, axis=1)[:, :3]].mean(axis=1)


@pytest.mark.long
def test_equal_models_are_separated_in_at_most_one_of_twenty_samples():
    """Five neighbour rules, each on features of its own that are as good as those of the others."""
    rng, n, M = np.random.default_rng(5), 60, 5
    separated, usual = 0, 0
    for _ in range(100):
        X = rng.normal(size=(M, n, 3))
        y, fold = X.sum(axis=(0, 2)) + rng.normal(size=n), rng.permutation(n) % 10
        losses = np.empty((n, M))
        for k in range(10):
            on = fold == k
            for m in range(M):
                losses[on, m] = (y[on] - neighbours(X[m, ~on], y[~on], X[m, on])) ** 2
        rows = Rows(np.full(n, 1 / n), fold)
        mean, covariance = means(losses, rows)
        separated += confidence_set(mean, covariance, n - 1).min() <= 0.05
        usual += confidence_set(mean, covariance / rows.inflation, n - 1).min() <= 0.05
    assert separated <= 5 < usual  # without the factor for overlapping rows there are too many


def test_small_losses_beside_large_ones():
    """The bound of six pairs is that of their scales alone, whatever the largest one is."""
    rng = np.random.default_rng(0)
    near, far = 1e-6 * rng.chisquare(1, 200), rng.chisquare(1, 200)
    bounds = []
    for size in (1e-6, 3e3):
        losses = np.c_[near, near * 1.01, near + 1e-9 * rng.normal(size=200), size * far]
        centred = (losses - losses.mean(axis=0)) / 200
        bounds.append(joint_quantile(losses.mean(axis=0), centred.T @ centred, 199))
    assert all(2.0 < bound < 3.0 for bound in bounds)
