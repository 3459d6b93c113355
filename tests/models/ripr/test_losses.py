"""ripr's losses, queries and scores against naive NumPy, and the laws they obey."""

import numpy as np
import pytest

from lodim.errors import ArgumentError
from lodim.models.ripr import losses
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.views import count, dims, enumerate_views, features, screened_views

FLOOR = 1e-4


def data(K=2, n=90, p=5, missing=0.08, seed=0):
    """Features, one of them rounded and some missing; classes, some unknown."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    X[:, p - 1] = np.round(3 * X[:, p - 1])
    X[rng.random(X.shape) < missing] = np.nan
    return X, rng.integers(-1, K, n)


def complete(X, views):
    """Whether a row has all the features of a view, (n, d*) bool."""
    known = np.append(~np.isnan(X), np.ones((len(X), 1), bool), axis=1)
    return known[:, views].all(axis=2)


def kth(Z, x, k, mask):
    """Distance from x to its k-th neighbour among rows of Z, or to the farthest; inf of none."""
    d = np.sort(np.linalg.norm(Z - x, axis=1)[mask & ~np.isnan(Z).any(axis=1)])
    return d[min(k, len(d)) - 1] if len(d) else np.inf


def over(Z, x, k, own, other):
    """Ratio of the volumes of balls around x that hold k rows of own and of other.

    Where either is a point, rows there are counted.
    """
    one, two = kth(Z, x, k, own), kth(Z, x, k, other)
    if np.isinf(one) or np.isinf(two):
        return np.inf
    if min(one, two) == 0.0:
        there = (x == Z).all(axis=1)
        return ((there & other).sum() + 0.5) / ((there & own).sum() + 0.5)
    return min(max(one / two, FLOOR), 1 / FLOOR) ** Z.shape[1]


def naive_ratio(Z, y, i, c, k, balanced):
    others = np.arange(len(y)) != i
    ratio = over(Z, Z[i], k, (y == c) & others, (y >= 0) & (y != c) & others)
    return ratio * (((y == c).sum() - 1) / ((y >= 0) & (y != c)).sum() if balanced else 1.0)


def naive_classes(X, y, views, k, K, balanced=False):
    L = np.full((len(X), len(views)), np.inf)
    for j, view in enumerate(views):
        Z = X[:, features(view)]
        for i in np.flatnonzero(~np.isnan(Z).any(axis=1)):
            labels = [y[i]] if y[i] >= 0 else range(K)
            L[i, j] = min(naive_ratio(Z, y, i, c, k, balanced) for c in labels) ** 0.01
    return L


def same(L, expected, tol=1e-5):
    assert (np.isinf(L) == np.isinf(expected)).all()
    finite = np.isfinite(expected)
    assert finite.any()
    # Distances are in single precision: near ones lose a few digits.
    np.testing.assert_allclose(L[finite], expected[finite], rtol=tol)


@pytest.mark.long
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("k", [1, 6, 40])
@pytest.mark.parametrize("balanced", [False, True])
def test_class_losses(K, k, balanced):
    X, y = data(K)
    views = enumerate_views(5, 1, 4)
    L = losses.class_losses(X, y, views, k, balanced=balanced)
    assert np.isinf(L).any()
    same(L, naive_classes(X, y, views, k, K, balanced))


def test_class_losses_of_ties():
    X = np.random.default_rng(0).integers(0, 3, (80, 3)).astype(float)
    y = np.random.default_rng(1).integers(0, 2, 80)
    views = enumerate_views(3, 1, 3)
    same(losses.class_losses(X, y, views, 5), naive_classes(X, y, views, 5, 2))


def test_losses_have_the_same_bits_on_two_threads():
    X, y = data(3, 300)
    z, views = np.where(y < 0, 0.5, y), enumerate_views(5, 1, 3)
    for function, target in ((losses.class_losses, y), (losses.regression_losses, z)):
        one, two = (function(X, target, views, 9, threads=t) for t in (1, 2))
        assert (one == two).all()


@pytest.mark.long
def test_permuting_rows_and_features():
    X, y = data(3, 200)
    rng, views = np.random.default_rng(5), enumerate_views(5, 2, 2)
    rows, columns = rng.permutation(200), rng.permutation(5)
    L = losses.class_losses(X, y, views, 7)
    same(losses.class_losses(X[rows], y[rows], views, 7), L[rows], 1e-12)
    place = np.argsort(columns)
    moved = np.sort(place[views], axis=1)
    at = [int(np.flatnonzero((views == v).all(axis=1))[0]) for v in moved]
    same(losses.class_losses(X[:, columns], y, views, 7)[:, at], L, 1e-12)


def test_rows_that_do_not_count_are_nobodys_neighbours():
    X, y = data(2, 120, missing=0)
    views, eligible = enumerate_views(5, 2, 2), np.arange(120) % 3 > 0
    far = np.where(eligible[:, None], X, 1e6 * (1.0 + X**2))
    ratios = losses.class_ratios(None, far, y, views, 5, eligible=eligible)
    alone = losses.class_ratios(None, X[eligible], y[eligible], views, 5)
    np.testing.assert_array_equal(ratios[eligible], alone)


def near_rows(Z, i, k, known):
    """Of the k nearest rows how much of each counts, and all distances; ties share what is left."""
    d = np.linalg.norm(Z - Z[i], axis=1)
    rest = known[known != i]
    reach = np.sort(d[rest])[min(k, len(rest)) - 1]
    nearer = rest[d[rest] < reach - 1e-6]
    tied = rest[np.abs(d[rest] - reach) <= 1e-6]
    part = np.zeros(len(Z))
    part[nearer], part[tied] = 1.0, min(1.0, (k - len(nearer)) / len(tied))
    return part, np.maximum(d, FLOOR * reach if reach > 0 else 1.0)


def naive_numbers(X, y, views, k, weight):
    L = np.full((len(X), len(views)), np.inf)
    z = (y - y.mean()) / y.std()
    for j, view in enumerate(views):
        Z = X[:, features(view)]
        known = np.flatnonzero(~np.isnan(Z).any(axis=1))
        error, near = np.zeros(len(X)), {}
        for i in known:
            near[i], d = near_rows(Z, i, k, known)
            w = weight * np.where(near[i] > 0, near[i] / d, 0.0)
            error[i] = (z[i] - (w * z).sum() / w.sum()) ** 2
        for i in known:
            near[i][i] = 1.0
            w = weight * near[i]
            L[i, j] = (w * error).sum() / w.sum()
    return L


@pytest.mark.parametrize("rounded", [False, True])
def test_regression_losses(rounded):
    X, y = data(2)
    rng = np.random.default_rng(3)
    X = np.round(3 * X) if rounded else X
    y, weight = rng.standard_normal(90), rng.random(90) + 0.5
    views = enumerate_views(5, 1, 3)
    L = losses.regression_losses(X, y, views, 6, weight=weight)
    same(L, naive_numbers(X, y, views, 6, weight), 1e-4)


def test_cluster_losses():
    X, _ = data(2)
    X[:, 1] = 2.0 * X[:, 0] + 0.1 * X[:, 1]  # repeats it
    views, k = enumerate_views(5, 2, 2), 6
    both = losses.uniform_references(X, np.arange(90), 4)
    expected = np.full((90, len(views)), np.inf)
    for j, view in enumerate(views):
        Z, S = both[:90, view], both[90:, view]
        for i in np.flatnonzero(~np.isnan(Z).any(axis=1)):
            own = kth(Z, Z[i], k, np.arange(90) != i)
            expected[i, j] = (own / kth(S, Z[i], k, np.ones(90, bool))) ** 0.02
        known = X[~np.isnan(X[:, view]).any(axis=1)][:, view]
        axes = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)[2]
        volume = np.ptp(known @ axes.T, axis=0).prod() / np.ptp(known, axis=0).prod()
        expected[:, j] /= min(volume, 1.0) ** 0.01
    same(losses.cluster_losses(X, views, k, seed=4, n_samples=1), expected)
    each = [losses.cluster_losses(X, views, k, seed=4, n_samples=m) for m in (1, 2)]
    assert (each[0] != each[1]).any()


def test_volumes_of_boxes_along_principal_components():
    """A rectangle of 10 x 1 at an angle of 30 degrees, beside what is related to nothing."""
    grid = np.stack(np.meshgrid(np.linspace(0, 10, 21), np.linspace(0, 1, 9)), -1).reshape(-1, 2)
    cos, sin = np.cos(np.pi / 6), 0.5
    X = grid @ np.array([[cos, sin], [-sin, cos]])
    X = np.c_[X, np.tile(np.arange(9.0), 21), X[:, 0] * (1 + 1e-12), np.ones(len(X))]
    views = np.array([[0, 1], [1, 0], [0, 3], [0, 4], [0, -1]])
    known = 10.0 / ((10 * cos + sin) * (10 * sin + cos))
    expected = [known, known, losses.LEAST_VOLUME, 1.0, 1.0]
    np.testing.assert_allclose(losses.reference_volumes(X, views), expected)
    square = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)
    noise = 1e-12 * np.random.default_rng(0).standard_normal(square.shape)
    assert losses.reference_volumes(square + noise, views[:1])[0] == pytest.approx(1.0)
    X[::3, 1] = np.nan
    assert 0.0 < losses.reference_volumes(X, views[:1])[0] < 1.1 * known


# Views ------------------------------------------------------------------------------------------


def test_views():
    views = enumerate_views(5, 1, 3)
    assert len(views) == count(5, 1, 3) == 25 and len(np.unique(views, axis=0)) == 25
    assert dims(views).tolist() == [1] * 5 + [2] * 10 + [3] * 10
    X, _ = data()
    known = complete(X, views)
    assert (known[:, 7] == ~np.isnan(X[:, features(views[7])]).any(axis=1)).all()


def test_screening_keeps_what_fits_and_the_best():
    rng = np.random.default_rng(0)
    X = rng.random((200, 8))
    y = (X[:, 2] + X[:, 5] + X[:, 6] > 1.5).astype(int)

    def losses_of(views):
        return losses.class_losses(X, y, views, 9)

    every, whole = screened_views(8, 2, 3, losses_of, 1000)
    assert whole and len(every) == count(8, 2, 3)
    kept, whole = screened_views(8, 2, 3, losses_of, 40)
    assert not whole and len(kept) == 40 and (kept == [2, 5, 6]).all(axis=1).any()
    single, whole = screened_views(8, 1, 3, losses_of, 8)
    assert not whole and len(single) == 8 and (single[:, 1:] == -1).all()
    with pytest.raises(ArgumentError, match="max_views"):
        screened_views(8, 2, 3, losses_of, 4)


# Queries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3])
def test_class_ratios_and_answer(K):
    X, y = data(K)
    Q = data(K, seed=9)[0][:20]
    Q[0] = np.nan
    views = enumerate_views(5, 2, 3)
    ratios = losses.class_ratios(Q, X, y, views, 4, n_classes=K)
    for i in range(20):
        for j, view in enumerate(views):
            Z, x = X[:, features(view)], Q[i, features(view)]
            if np.isnan(x).any():
                assert np.isinf(ratios[i, j]).all()
                continue
            expected = [np.log(over(Z, x, 4, y == c, (y >= 0) & (y != c))) for c in range(K)]
            np.testing.assert_allclose(ratios[i, j], expected, atol=2e-5)
    view = losses.nearest_view(ratios)
    assert view[0] == -1
    for i in range(1, 20):
        assert ratios[i, view[i]].min() == ratios[i].min()


def test_ratios_of_rows_left_out_are_the_losses():
    X, y = data(3)
    views = enumerate_views(5, 2, 2)
    ratios = losses.class_ratios(None, X, y, views, 5)
    known = np.flatnonzero(y >= 0)
    own = ratios[known, :, y[known]]
    L = losses.class_losses(X, y, views, 5)[known]
    np.testing.assert_allclose(np.exp(0.01 * own), L, rtol=1e-12)


def test_neighbours_and_numbers():
    rng = np.random.default_rng(2)
    X, _ = data()
    y, B = rng.standard_normal(90), rng.dirichlet([1, 1], 90)
    views = np.array([[0, 1], [2, 3]])
    near = [nearest(None, X, v, 5) for v in views]
    chosen, value, _ = losses.number_answers(near, y, B)
    for i in range(90):
        shares, values = [], []
        for j, view in enumerate(views):
            Z = X[:, view]
            d = np.linalg.norm(Z - Z[i], axis=1)
            d[i] = np.nan
            if np.isnan(Z[i]).any():
                shares.append(-1.0), values.append(np.nan)
                continue
            at = np.argsort(d)[:5]
            w = 1 / d[at]
            shares.append((w * B[at, j]).sum() / w.sum())
            values.append((w * B[at, j] * y[at]).sum() / (w * B[at, j]).sum())
        best = int(np.argmax(shares))
        if max(shares) < 0:
            assert chosen[i] == -1 and np.isnan(value[i])
            continue
        assert chosen[i] == best
        assert value[i] == pytest.approx(values[best])
