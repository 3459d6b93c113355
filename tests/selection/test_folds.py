"""fold: who is held out, and that training never sees it."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.batch import split, subset
from lodim.design.design import Design
from lodim.design.rows import RowInputs
from lodim.engine import row_keys, tiles
from lodim.errors import ArgumentError, LodimError
from lodim.selection import folds as fold

N = 97


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.gamma(2, 3, N), "z": rng.normal(50, 9, N), "w": rng.random(N)})
    data["y"] = rng.choice(["a", "b", "c"], N, p=[0.1, 0.3, 0.6])
    data.loc[[4, 40], "z"] = np.nan
    offset = np.arange(3 * N).reshape(N, 3) / N
    return Design.learn("y ~ x + z", data, RowInputs(weights="w", offset=offset))[1]


def matrix(batch):
    return tiles.unpack(batch.X, batch.n)


@pytest.mark.parametrize("k", [2, 3, 10, 95])
@pytest.mark.parametrize("classes", [None, ("a", "b", "c")])
def test_assign_balances(batch, k, classes):
    got = fold.assign(batch, k, classes, 1)
    counts = np.bincount(got, minlength=k)
    assert got.shape == (batch.n,) and len(counts) == k and np.ptp(counts) <= 1
    if classes:
        for c in range(3):
            assert np.ptp(np.bincount(got[batch.y == c], minlength=k)) <= 1
    np.testing.assert_array_equal(got, fold.assign(batch, k, classes, 1))
    if k < 50:
        assert (got != fold.assign(batch, k, classes, 2)).any()


def test_assign_is_random_not_by_position(batch):
    got = fold.assign(batch, 2, None, 0)
    assert 30 < (got == np.arange(batch.n) % 2).sum() < 65


def test_given_folds_speak_of_all_rows(batch):
    names = np.array(["late", "early", "mid"])[np.arange(N) % 3]
    got = fold.assign(batch, names, None, 0)
    expected = np.unique(names[batch.rows], return_inverse=True)[1]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(got, fold.assign(batch, pd.Series(names), None, 0))


@pytest.mark.parametrize(
    "folds, word",
    [
        (1, "from 2"), (0, "from 2"), (2.5, "from 2"), ("five", "from 2"), (None, "from 2"),
        (96, "96"), (np.arange(95) % 2, "it has 95"), (np.zeros(N), "at least two folds"),
        ([None, *[1] * (N - 1)], "missing"), (np.where(np.arange(N) % 2, 1, np.nan), "missing"),
        (pd.array([None, *[1] * (N - 1)], dtype="Int64"), "missing"),
        (np.array([1, *["a"] * (N - 1)], object), "of one type"),
        ([np.nan, *["a", "b"] * (N // 2)][:N], "missing"),
        (np.array(["NaT", *["2020", "2021"] * N][:N], "datetime64[ns]"), "missing"),
    ],
)  # fmt: skip
def test_bad_folds(batch, folds, word):
    with pytest.raises(ArgumentError, match=word):
        fold.assign(batch, fold.as_folds(folds), None, 0)


def test_a_given_fold_without_rows_that_count_is_held_out_from_nothing():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"])
    which = np.arange(60) % 4
    weight = np.where(which == 2, 0.0, 1.0)
    left = which != 2
    whole = ld.cv(ld.glm, "y ~ a + b", df, folds=which, weights=weight).frame
    rest = ld.cv(ld.glm, "y ~ a + b", df[left], folds=which[left]).frame
    np.testing.assert_allclose(whole, rest, rtol=1e-9)


def test_split_cuts_everything(batch):
    held_out = fold.assign(batch, 4, None, 0) == 1
    train, test = split(batch, held_out, True)
    assert train.n + test.n == batch.n and test.n == held_out.sum()
    for part, keep in ((train, ~held_out), (test, held_out)):
        for name in ("y", "weights", "offset", "rows"):
            np.testing.assert_array_equal(getattr(part, name), getattr(batch, name)[keep])
        beyond = tiles.unpack(part.X, 64 * len(part.X))[part.n :]
        assert part.X.dtype == batch.X.dtype and not beyond.any()


@pytest.mark.parametrize("standardize", [True, False])
def test_a_column_that_training_rows_share_is_zero_in_them(standardize):
    """Rounding of its mean would leave a column of noise, which a refit blows up."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"y": rng.normal(size=60), "x": rng.normal(size=60), "rare": 0.1})
    df.loc[:3, "rare"] = 0.7
    weight = rng.uniform(0.5, 1.5, 60)
    _, batch = Design.learn("y ~ x + rare", df, RowInputs(weights=weight), standardize=standardize)
    train, test = split(batch, np.arange(60) < 6, standardize)
    column = matrix(test)[:, 1]
    assert (matrix(train)[:, 1] == 0.0).all() and (column[4:] == 0.0).all() and column[0] > 0.1


def test_training_is_standardized_by_itself(batch):
    held_out = fold.assign(batch, 4, None, 0) == 1
    train, test = split(batch, held_out, True)
    X, w = matrix(train), train.weights / train.weights.sum()
    np.testing.assert_allclose(w @ X, 0.0, atol=1e-12)
    np.testing.assert_allclose(w @ X**2, 1.0)
    raw = matrix(batch)
    mean = np.average(raw[~held_out], axis=0, weights=batch.weights[~held_out])
    sd = np.sqrt(np.average((raw[~held_out] - mean) ** 2, axis=0, weights=train.weights))
    np.testing.assert_allclose(matrix(test), (raw[held_out] - mean) / sd)


def test_held_out_rows_do_not_leak(batch):
    held_out = fold.assign(batch, 4, None, 0) == 1
    X = matrix(batch).copy()
    X[held_out] += 100.0
    moved = replace(batch, X=tiles.pack(X))
    one, other = (split(b, held_out, True)[0] for b in (batch, moved))
    np.testing.assert_array_equal(one.X, other.X)


def test_unstandardized_keeps_the_scale(batch):
    held_out = fold.assign(batch, 4, None, 0) == 1
    train, _ = split(batch, held_out, False)
    np.testing.assert_allclose(
        np.diff(matrix(train), axis=0), np.diff(matrix(batch)[~held_out], axis=0), atol=1e-12
    )
    np.testing.assert_allclose(train.weights @ matrix(train), 0.0, atol=1e-10)


def test_a_column_that_varies_in_held_out_rows_alone(batch):
    X = np.zeros((batch.n, 2))
    X[0, 0] = 1.0
    flat = replace(batch, X=tiles.pack(X))
    held_out = np.arange(batch.n) < 5
    train, test = split(flat, held_out, True)
    assert not train.X.any() and np.isfinite(test.X).all()


def test_training_rows_of_weight_zero(batch):
    """No weight is left to train with: not a crash in words of another library."""
    weights = np.zeros(batch.n)
    weights[:3] = 1.0
    some = replace(batch, weights=weights)
    try:
        train, _ = split(some, np.arange(batch.n) < 10, True)
    except LodimError:
        return
    assert np.isfinite(train.X).all()


def faint(n=60):
    """Rows of visitors, two features, two classes, and weights of which a quarter are zero."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "z"])
    data["y"] = np.where(data["x"] + 0.8 * rng.normal(size=n) > 0.2, "ill", "well")
    data["visitor"] = [f"v{k:02d}" for k in rng.integers(0, 25, n)]
    return data, (np.arange(n) % 4 > 0).astype(float)


@pytest.mark.parametrize("groups", [None, "visitor"])
def test_rows_of_weight_zero_are_in_no_fold_and_move_no_other_row(groups):
    data, weights = faint()
    few = data[weights > 0]
    ways = [(data, weights), (few, weights[weights > 0])]
    full, some = (
        Design.learn("y ~ x + z", d, RowInputs(weights=w, groups=groups))[1] for d, w in ways
    )
    got = fold.assign(full, 5, ("ill", "well"), 3)
    assert (got[weights == 0] == -1).all()
    np.testing.assert_array_equal(got[weights > 0], fold.assign(some, 5, ("ill", "well"), 3))


@pytest.mark.long
@pytest.mark.parametrize("name", ["costnet", "gbmap", "glm", "melm", "proset", "ripr"])
def test_what_folds_choose_by_default_is_that_of_the_rows_that_count(name):
    data, weights = faint()
    model, few = getattr(ld, name), data[weights > 0]
    fit, some = (
        model("y ~ x + z", d, weights=w[d.index]) for d, w in ((data, weights), (few, weights))
    )
    gap = fit.predict(data, "prob") - some.predict(data, "prob")
    assert np.abs(gap.to_numpy()).max() < 1e-6


def test_cv_of_rows_of_weight_zero_is_that_of_the_others():
    data, weights = faint()
    few, call = data[weights > 0], {"m": 1, "n_starts": 1, "grid": {"lambda_": [1.0, 0.1]}}
    one = ld.cv(ld.gbmap, "y ~ x + z", data, weights=weights, **call).tidy()
    other = ld.cv(ld.gbmap, "y ~ x + z", few, weights=weights[weights > 0], **call).tidy()
    pd.testing.assert_frame_equal(one, other, rtol=1e-6)


def test_a_fold_without_rows_that_count_is_none(batch):
    weights = np.where(np.arange(batch.n) < 50, 1.0, 0.0)
    some, names = replace(batch, weights=weights), np.zeros(N)
    names[batch.rows[30:]] = 1.0
    names[batch.rows[60:]] = 2.0
    assert fold.assign(some, names, None, 0).max() == 1
    names[batch.rows[:50]] = 0.0
    with pytest.raises(ArgumentError, match="at least two folds"):
        fold.assign(some, names, None, 0)


def test_subset(batch):
    part = subset(batch, np.array([5, 2, 90]))
    np.testing.assert_array_equal(matrix(part), matrix(batch)[[5, 2, 90]])
    np.testing.assert_array_equal(part.y, batch.y[[5, 2, 90]])
    assert part.index is batch.index and part.n == 3


def factorial():
    """All combinations of some levels, and classes that depend on them: no feature stands out."""
    d = pd.DataFrame(
        list(itertools.product("abcd", "uvw", "xyz", [0, 1], [0, 1])), columns=list("pqrst")
    )
    rng = np.random.default_rng(0)
    d["y"] = (d["p"] == "a") + 1.5 * ((d["q"] == "u") & (d["r"] == "y")) + d["s"] * (0.8 - d["t"])
    d["k"] = np.where(d["y"] + 0.7 * rng.logistic(size=len(d)) > 1.1, "p", "q")
    return d


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.gbmap, ld.melm, ld.proset], ids=lambda m: m.__name__)
def test_rows_of_a_full_factorial_are_told_apart(model):
    """Features tell nothing apart in a balanced design: the response does."""
    cheap = {ld.gbmap: {"control": {"max_stages": 4}}, ld.melm: {"n_starts": 3}}.get(model, {})
    df, rng = factorial(), np.random.default_rng(1)
    p = model("k ~ p + q + r + s + t", df, **cheap).predict(df)
    spread = np.sqrt(np.mean(p * (1.0 - p)))  # of the residuals, as the fit has them
    noisy = df.assign(s=df["s"] * (1 + 1e-12 * rng.normal(size=len(df))))
    for formula, other in (
        ("k ~ p + q + r + s + t", df.iloc[rng.permutation(len(df))]), ("k ~ t + q + s + r + p", df),
        ("k ~ p + q + r + s + t", noisy),
    ):  # fmt: skip
        moved = np.sqrt(np.mean((model(formula, other, **cheap).predict(df) - p) ** 2))
        # Gamma of melm is a mean over rough fits, to a 32nd of a step: here it may end one off.
        assert moved <= (0.05 * spread if model is ld.melm else 2e-3)


def test_keys_hang_on_no_name_of_a_class():
    X = pd.get_dummies(factorial()[["p", "q", "r", "s", "t"]].astype(str)).to_numpy(float)
    code = np.random.default_rng(2).integers(0, 3, len(X)).astype(float)
    key = row_keys.keys(X, np.ones(len(X)), code, 3)
    assert np.diff(np.sort(key)).min() > 1e-6
    renamed = row_keys.keys(
        X[:, ::-1], np.ones(len(X)), np.array([2.0, 0.0, 1.0])[code.astype(int)], 3
    )
    np.testing.assert_allclose(renamed, key, atol=1e-9)


# Groups ------------------------------------------------------------------------------------------


def visits(n_groups=40, seed=0):
    """Rows of patients, of whom some have many; each patient has one diagnosis."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_groups), rng.integers(1, 6, n_groups))
    data = pd.DataFrame({"x": rng.normal(size=len(patient)), "z": rng.normal(size=len(patient))})
    data["patient"] = np.array([f"p{k:02d}" for k in range(n_groups)])[patient]
    data["y"] = np.where(patient % 4 == 0, "ill", "well")
    return data.iloc[rng.permutation(len(data))].reset_index(drop=True)


def grouped(data, groups="patient", **inputs):
    return Design.learn("y ~ x + z", data, RowInputs(groups=groups, **inputs))[1]


@pytest.mark.parametrize("k", [2, 5, 10])
def test_groups_are_held_out_whole_and_balanced_within_classes(k):
    data = visits()
    got = fold.assign(grouped(data), k, ("ill", "well"), 3)
    assert (pd.Series(got).groupby(data["patient"]).nunique() == 1).all()
    assert sorted(set(got)) == list(range(k))
    most = data.groupby("patient").size().max()
    for y in ("ill", "well"):
        assert np.ptp(np.bincount(got[data["y"] == y], minlength=k)) <= most


def test_folds_of_groups_do_not_hang_on_order_or_names():
    data = visits()
    got = fold.assign(grouped(data), 5, ("ill", "well"), 3)
    order = np.random.default_rng(5).permutation(len(data))
    other = data.iloc[order].assign(y=data["y"].map({"ill": "z", "well": "a"}))
    other["patient"] = "q" + other["patient"].str[::-1]
    np.testing.assert_array_equal(fold.assign(grouped(other), 5, ("a", "z"), 3), got[order])


def test_a_group_of_weight_zero_makes_no_fold():
    data = visits(8)
    weights = np.where(data["patient"].isin(["p00", "p01", "p02"]), 0.0, 1.0)
    batch = grouped(data, weights=weights)
    assert fold.count_units(batch) == 5
    got = fold.assign(batch, 5, ("ill", "well"), 0)
    assert set(got[weights > 0]) == set(range(5)) and (got[weights == 0] == -1).all()
    with pytest.raises(ArgumentError, match=r"at most 5, the number of groups"):
        fold.assign(batch, 6, None, 0)


def test_groups_that_cannot_serve_are_refused():
    data = visits()
    with pytest.raises(ArgumentError, match="give one of them"):
        fold.assign(grouped(data), np.arange(len(data)) % 3, None, 0)
    with pytest.raises(ArgumentError, match="of one of the groups"):
        fold.assign(grouped(data, np.ones(len(data))), 2, None, 0)
    data.loc[[7, 9], "patient"] = None
    with pytest.raises(LodimError, match=r"'patient' is missing in 2 of .* rows, the first .* 7"):
        grouped(data)
    with pytest.raises(LodimError, match="groups has shape"):
        grouped(data, np.ones(3))
    with pytest.raises(LodimError, match="row labels of the data"):
        grouped(data, pd.Series(np.ones(len(data)), index=data.index[::-1]))
