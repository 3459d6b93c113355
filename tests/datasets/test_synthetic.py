"""synthetic: sizes, laws and truth; with the truth an oracle recovers the signal."""

import inspect
import json

import numpy as np
import pytest

from lodim.datasets import synthetic as s
from lodim.errors import ArgumentError

GENERATORS = [
    s.synth_cos_r,
    s.synth_cos_c,
    s.three_clusters,
    s.checkerboard,
    s.xor,
    s.friedman1,
    s.informative_views,
    s.informative_views_r,
]


def features(df):
    return df.drop(columns="y").to_numpy()


@pytest.mark.parametrize("make", GENERATORS)
def test_law_of_all(make):
    df = make(seed=3)
    assert list(df) == [f"x{j + 1}" for j in range(df.shape[1] - 1)] + ["y"]
    assert not df.isna().any().any()
    assert json.loads(json.dumps(df.attrs)) == df.attrs  # plain: survives copies and comparisons
    assert df.equals(make(seed=3)) and df.attrs == make(seed=3).attrs
    assert not df.equals(make(seed=4))
    assert make.__doc__.count("References") == 1
    for bad in (-1, 1.5, None, True):
        with pytest.raises(ArgumentError, match="seed must be an integer"):
            make(seed=bad)


@pytest.mark.parametrize("make", GENERATORS)
def test_refuses_empty_sizes(make):
    for name in {"n", "p", "P", "N", "M", "squares", "informative"} & set(
        inspect.signature(make).parameters
    ):
        with pytest.raises(ArgumentError, match=f"{name} must be an integer"):
            make(**{name: 0})


@pytest.mark.parametrize("rotate", [False, True])
def test_synth_cos_r(rotate):
    df = s.synth_cos_r(500, 7, seed=1, rotate=rotate)
    u, X = np.array(df.attrs["direction"]), features(df)
    assert df.shape == (500, 8) and np.linalg.norm(u) == pytest.approx(1)
    assert df["y"].mean() == pytest.approx(0, abs=1e-12)
    if rotate:
        X = X @ s.random_rotation(7, seed=1).T
    oracle = df.attrs["scale"] * np.cos(X) @ u - df.attrs["centre"]
    np.testing.assert_allclose(df["y"], oracle, atol=1e-12)


def test_synth_cos_r_is_normal_and_rotation_keeps_y():
    plain, turned = s.synth_cos_r(20_000, 3, 0), s.synth_cos_r(20_000, 3, 0, rotate=True)
    np.testing.assert_array_equal(plain["y"], turned["y"])
    for df in (plain, turned):
        np.testing.assert_allclose(np.cov(features(df).T), np.eye(3), atol=0.05)
    # var cos Z = (1 - e^-1)^2 / 2, so var y = 25 times that, whatever u is
    assert plain["y"].var() == pytest.approx(25 * (1 - np.exp(-1)) ** 2 / 2, rel=0.05)


def test_random_rotation():
    Q = s.random_rotation(30, 5)
    np.testing.assert_allclose(Q @ Q.T, np.eye(30), atol=1e-12)
    firsts = [s.random_rotation(2, k)[0, 0] for k in range(400)]
    assert abs(np.mean(firsts)) < 0.1  # uniform: no sign is preferred


def test_synth_cos_c_draws_labels_from_the_logistic():
    df, latent = s.synth_cos_c(20_000, 5, 2), s.synth_cos_r(20_000, 5, 2)["y"].to_numpy()
    y = df["y"].to_numpy()
    assert set(y) == {0, 1} and df["y"].dtype == np.int64
    probability = 1 / (1 + np.exp(-latent))
    for low, high in zip(np.linspace(0, 0.9, 10), np.linspace(0.1, 1, 10), strict=True):
        inside = (low <= probability) & (probability < high)
        if inside.sum() > 500:
            assert y[inside].mean() == pytest.approx(probability[inside].mean(), abs=0.06)


def test_three_clusters():
    df = s.three_clusters(3000, 1)
    X, u, clusters = features(df), np.array(df.attrs["direction"]), df.attrs["clusters"]
    assert clusters == {"a": [0, 1000], "b1": [1000, 2000], "b2": [2000, 3000]}
    assert np.linalg.norm(u) == pytest.approx(1) and not u[4:].any()
    np.testing.assert_allclose(df["y"], np.cos(X) @ u, atol=1e-12)
    means = np.array([X[a:b].mean(axis=0) for a, b in clusters.values()])
    truth = [[4] * 4 + [0] * 4, [0] * 4 + [4] * 4, [0] * 8]
    np.testing.assert_allclose(means, truth, atol=0.15)
    sizes = [b - a for a, b in s.three_clusters(100, 0).attrs["clusters"].values()]
    assert sum(sizes) == 100 and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("angle", [0.0, 45.0])
def test_checkerboard(angle):
    df = s.checkerboard(6400, 8, 1, noise=3, angle=angle)
    assert df.shape == (6400, 6)
    turn = np.deg2rad(-angle)
    R = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    board = (df[["x1", "x2"]].to_numpy() - 0.5) @ R + 0.5
    assert board.min() > -1e-9 and board.max() < 1 + 1e-9
    np.testing.assert_array_equal(df["y"], np.floor(board * 8).sum(axis=1) % 2)
    assert df["y"].mean() == pytest.approx(0.5, abs=0.03)
    assert df.corr()["y"].drop("y").abs().max() < 0.05


def test_xor():
    df = s.xor(6400, 3, 2, seed=1)
    X = features(df)
    assert df.shape == (6400, 6) and df.attrs["informative"] == ["x1", "x2", "x3"]
    np.testing.assert_array_equal(df["y"], X[:, :3].prod(axis=1) >= 0)
    assert df["y"].mean() == pytest.approx(0.5, abs=0.03)
    assert -1 <= X.min() < -0.99 and 0.99 < X.max() <= 1
    pairs = np.sign(X[:, 0] * X[:, 1])
    assert abs(np.corrcoef(pairs, df["y"])[0, 1]) < 0.05  # a proper subset tells nothing


def test_friedman1():
    def oracle(X):
        smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        return smooth + 10 * X[:, 3] + 5 * X[:, 4]

    exact = s.friedman1(200, 6, 1, noise=0)
    np.testing.assert_allclose(exact["y"], oracle(features(exact)), atol=1e-12)
    df = s.friedman1(5000, 10, 1)
    noise = df["y"] - oracle(features(df))
    assert noise.std() == pytest.approx(1, abs=0.05) and noise.mean() == pytest.approx(0, abs=0.05)
    with pytest.raises(ArgumentError, match="p must be an integer from 5"):
        s.friedman1(p=4)


def oracle_views(df):
    """Labels by the nearest centre in the row's own view, for the rows that have one."""
    guess = np.full(len(df), -1)
    truth = zip(*(df.attrs[k] for k in ("views", "centres", "rows")), strict=True)
    for view, centres, (a, b) in truth:
        X = df[view].to_numpy()[a:b]
        guess[a:b] = ((X[:, None] - np.array(centres)) ** 2).sum(axis=2).argmin(axis=1) // 2
    return guess


def test_informative_views():
    df = s.informative_views(2, 1000, 300, seed=1)
    assert df.shape == (2300, 11) and df.attrs["rows"] == [[0, 1000], [1000, 2000]]
    assert len({name for view in df.attrs["views"] for name in view}) == 4
    guess, y = oracle_views(df), df["y"].to_numpy()
    assert (guess == y)[:2000].mean() > 0.95
    assert y.mean() == pytest.approx(0.5, abs=0.04)
    # in the other view a row is uniform, so the oracle of that view knows nothing
    other = df.copy()
    other.attrs["views"] = df.attrs["views"][::-1]
    other.attrs["centres"] = df.attrs["centres"][::-1]
    assert (oracle_views(other) == y)[:2000].mean() == pytest.approx(0.5, abs=0.06)
    rest = df.drop(columns=[n for v in df.attrs["views"] for n in v]).to_numpy()[:, :-1]
    assert rest.min() >= 0 and rest.max() <= 1 and rest.mean() == pytest.approx(0.5, abs=0.02)


def test_informative_views_label_noise_and_spread():
    clean, noisy = (s.informative_views(3, 500, seed=2, label_noise=q) for q in (0.0, 0.1))
    assert (clean["y"] != noisy["y"]).sum() == 150
    assert clean.drop(columns="y").equals(noisy.drop(columns="y"))
    tight = s.informative_views(1, 500, seed=2, spread=1e-6, separation=0.4)
    assert (oracle_views(tight) == tight["y"]).all()
    centres = np.array(tight.attrs["centres"][0])
    assert np.linalg.norm(centres[0] - centres[1:], axis=1).min() >= 0.4


def test_informative_views_overlap_only_where_they_must():
    views = s.informative_views(7, 10, seed=0).attrs["views"]
    assert len({tuple(v) for v in views}) == 7
    with pytest.raises(ArgumentError, match="3 features make 3 views, not P = 4"):
        s.informative_views(4, 10, M=3)
    with pytest.raises(ArgumentError, match="leave room for four blobs"):
        s.informative_views(1, 10, separation=2)
    with pytest.raises(ArgumentError, match="label_noise must be a number from 0 to 1"):
        s.informative_views(label_noise=2)
    with pytest.raises(ArgumentError, match="R must be an integer from 0"):
        s.informative_views(R=-1)


def test_informative_views_r():
    df = s.informative_views_r(2000, 3, seed=1, noise=0.2)
    assert df.shape == (2000, 21)
    x1, y, oracle = df["x1"].to_numpy(), df["y"].to_numpy(), np.zeros(2000)
    assert x1.min() >= 1 and x1.max() < 4
    for j, (view, (a, b)) in enumerate(
        zip(df.attrs["views"], df.attrs["coefficients"], strict=True), start=1
    ):
        assert "x1" not in view
        u, v = df[view].to_numpy().T
        here = (j <= x1) & (x1 < j + 1)
        oracle[here] = (np.sin(np.pi * (u + a)) + 2 * (v - b) ** 2)[here]
    assert (y - oracle).std() == pytest.approx(0.2, abs=0.02)
    assert 1 - np.var(y - oracle) / np.var(y) > 0.7
