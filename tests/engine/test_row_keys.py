"""Samples of many rows: spread evenly, and the same wherever rows and columns stand."""

import numpy as np
import pytest

from lodim.engine import row_keys, tiles


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sample_is_spread_along_the_lengths(dtype, threads):
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(dtype)
    weight = np.ones(9000)
    weight[::4] = 0.0
    packed = tiles.pack(X, dtype)
    sample = row_keys.spread_sample(packed, weight, 500, 3, threads)
    assert len(np.unique(sample)) == 500 and (weight[sample] > 0).all()
    length = (X.astype(float) ** 2).sum(axis=1)
    rank = np.argsort(np.argsort(length[weight > 0]))
    place = np.cumsum(weight > 0) - 1
    # 6,750 rows of positive weight: one of each 13.5 that follow each other in length.
    np.testing.assert_array_equal(np.floor(rank[place[sample]] / 13.5), np.arange(500))
    assert not np.array_equal(sample, row_keys.spread_sample(packed, weight, 500, 4))


@pytest.mark.long
def test_a_sample_depends_on_what_rows_hold():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(5000, 4)), rng.integers(0, 3, 5000).astype(float)
    rows, columns = rng.permutation(5000), rng.permutation(4)
    one = row_keys.spread_sample(tiles.pack(X), weight, 300, 0)
    moved = tiles.pack(X[rows][:, columns])
    two = row_keys.spread_sample(moved, weight[rows], 300, 0)
    np.testing.assert_array_equal(one, rows[two])


def test_rows_of_equal_length_are_sampled_as_they_stand():
    sample = row_keys.spread_sample(tiles.pack(np.ones((1000, 2))), np.ones(1000), 100, 0)
    np.testing.assert_array_equal(sample // 10, np.arange(100))


def test_a_draw_depends_on_the_seed_and_on_all_rows_but_not_on_their_order():
    """No rank of a row has the same place in every data set; 12 of 20 sets differ at least."""
    places = set()
    for k in range(20):
        key = np.random.default_rng(k).normal(size=30)
        order = row_keys.shuffled(key, 0)
        assert sorted(order) == list(range(30))
        places.add(tuple(np.argsort(np.argsort(key))[order]))
        turned = np.random.default_rng(k + 100).permutation(30)
        np.testing.assert_array_equal(turned[row_keys.shuffled(key[turned], 0)], order)
        assert not np.array_equal(row_keys.shuffled(key, 1), order)
    assert len(places) >= 12


@pytest.mark.parametrize("n", [50, 1000])
def test_rounding_to_single_precision_changes_few_draws(n):
    same = 0
    for k in range(50):
        rng = np.random.default_rng(k)
        X, y, weight = rng.normal(size=(n, 4)), rng.normal(size=n), np.full(n, 1.0 / n)
        order, rounded = (
            row_keys.shuffled(row_keys.keys(Z, weight, y), 3)
            for Z in (X, X.astype(np.float32).astype(float))
        )
        same += np.mean(order == rounded) > 0.9
    assert same >= 47
