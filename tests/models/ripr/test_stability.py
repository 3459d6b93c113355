"""ripr's answers hold still: noise, orders, last bits and names of classes do not move them."""

from math import log

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.family.family import hits
from lodim.models.ripr import losses, ties
from lodim.models.ripr.kernels import EQUAL
from lodim.models.ripr.neighbours import Neighbours
from lodim.models.ripr.views import enumerate_views, redundant

pytestmark = pytest.mark.long


def coded(seed=3):
    """Whole numbers of few values, and three classes of as many rows."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.integers(0, 4, (120, 4)).astype(float), columns=list("abcd"))
    order = np.argsort(df["a"] * df["b"] + rng.normal(size=120), kind="stable")
    df["y"] = np.repeat(["low", "mid", "top"], 40)[np.argsort(order)]
    return df


def holed():
    df = ld.data("heart").iloc[::2]
    gone = np.random.default_rng(0).random(df.shape) < 0.1
    return df.mask(gone & (df.columns != "disease"))


CASES = {
    "heart": (ld.data("heart"), "disease"),
    "holes": (holed(), "disease"),
    "codes": (coded(), "y"),
    "iris": (ld.data("iris"), "species"),
    "cars": (ld.data("autompg").iloc[np.arange(398) % 3 > 0], "mpg"),
    "concrete": (ld.data("concrete").iloc[::4], "strength"),
    "clusters": (ld.data("iris").drop(columns="species"), None),
    "counts": (coded().drop(columns="y"), None),
}
cases = pytest.mark.parametrize("name", CASES)
classes = pytest.mark.parametrize("name", ["heart", "holes", "codes", "iris"])
_fits = {}


def fitted(df, response, **how):
    rest = " + ".join(df.columns.drop(response or []))
    return ld.ripr(f"{response or ''} ~ {rest}", df, **{"threads": 1} | how)


def fit_of(name):
    if name not in _fits:
        _fits[name] = fitted(*CASES[name])
    return _fits[name]


def views(fit):
    return set(map(frozenset, fit.view_features))


def moved(one, two, df):
    """How far answers to df are apart: rms of probabilities, of numbers in residual sd; the share
    of rows in other views of clusters.
    """
    task = one.estimates.task
    if task == "cluster":
        served = [f.predict(df, "view").map(lambda v: frozenset(v.split(", "))) for f in (one, two)]
        return (served[0] != served[1]).mean()
    type_ = "prob" if task == "class" else "response"
    p, q = (f.predict(df, type_) for f in (one, two))
    assert (p.isna() == q.isna()).all(axis=None)
    gap = np.sqrt(np.nanmean((p - q).to_numpy() ** 2))
    return gap if task == "class" else gap / np.sqrt(one.record.overall)


def shaken(df, seed):
    rng = np.random.default_rng(seed)
    numbers = df.select_dtypes("number").columns
    return df.assign(**{c: df[c] * (1 + 1e-12 * rng.normal(size=len(df))) for c in numbers})


@cases
def test_noise_in_the_last_digits(name):
    df, response = CASES[name]
    two = fitted(shaken(df, 1), response)
    assert views(fit_of(name)) == views(two)
    assert moved(fit_of(name), two, df) < 1e-6
    assert moved(fit_of(name), two, shaken(df, 2)) < 1e-6


@cases
def test_orders_of_rows_columns_and_terms(name):
    df, response = CASES[name]
    rng = np.random.default_rng(5)
    other = df.iloc[rng.permutation(len(df)), rng.permutation(df.shape[1])]
    two = fitted(other, response, threads=2)
    assert views(fit_of(name)) == views(two)
    assert moved(fit_of(name), two, df) < 1e-6


@cases
def test_last_bits_of_distances(name, monkeypatch):
    """As on another processor: equal values stay equal, and all distances are rounded anew."""
    plain = losses.single_precision

    def otherwise(X, references):
        turn = np.float32(1 + 2.0**-21)
        return tuple(np.where(Z < 1e17, Z * turn, Z).astype(np.float32)
                     for Z in plain(X, references))  # fmt: skip

    df, response = CASES[name]
    monkeypatch.setattr(losses, "single_precision", otherwise)
    two = fitted(df, response)
    assert views(fit_of(name)) == views(two)
    assert moved(fit_of(name), two, df) < 1e-3


@classes
def test_renamed_and_reordered_classes(name):
    df, response = CASES[name]
    one, levels = fit_of(name), sorted(df[response].unique())
    for turned in (levels[::-1], [*levels[1:], levels[0]]):
        code = dict(zip(turned, "pqr", strict=False))
        back = {v: k for k, v in code.items()}
        other = df.assign(**{response: df[response].map(code)})
        two = fitted(other, response)
        assert views(one) == views(two)
        p, q = one.predict(df, "prob"), two.predict(df, "prob").rename(columns=back)
        np.testing.assert_allclose(p, q[p.columns], atol=1e-9)
        said = [back.get(label) for label in two.predict(df, "class")]
        assert one.predict(df, "class").tolist() == said
        assert one.record.overall == pytest.approx(two.record.overall)
        assert one.evaluate(df)["accuracy"][0] == pytest.approx(two.evaluate(other)["accuracy"][0])


# Ties ---------------------------------------------------------------------------------------------


def test_rows_at_one_place_are_counted():
    X = np.zeros((12, 2))
    X[9:] = [[1, 0], [0, 2], [3, 3]]
    y = np.array([0] * 6 + [1] * 3 + [0, 1, 1])
    ratio = losses.class_ratios(np.zeros((1, 2)), X, y, np.array([[0, 1]]), 3)[0, 0]
    np.testing.assert_allclose(ratio, [log(3.5 / 6.5), log(6.5 / 3.5)])
    few = losses.class_ratios(np.zeros((1, 2)), X, y, np.array([[0, 1]]), 5)[0, 0]  # 6 and 3 there
    np.testing.assert_allclose(few, ratio)


@pytest.mark.parametrize("more", ["a", "b"])
def test_a_tied_class_is_that_of_more_rows(more):
    """At one place there are as many rows of both classes, farther away more of one."""
    df = pd.DataFrame({"x": [0.0] * 8 + [5.0, 6.0, 7.0], "z": [1.0] * 8 + [9.0, 8.0, 6.0]})
    df["y"] = ["a", "b"] * 4 + [more] * 3
    fit = ld.ripr("y ~ x + z", df, k=4, threads=1, method="assignment")
    at = df.iloc[[0]]
    assert fit.predict(at)[0] == 0.5 and fit.predict(at, "class")[0] == more
    assert fit.evaluate(df.iloc[:8])["accuracy"][0] == 0.5


def test_neighbours_at_the_kth_distance_share_their_vote():
    rng = np.random.default_rng(0)
    X, values = rng.integers(0, 4, (150, 2)).astype(float), rng.random((150, 3))
    X[7, 0] = np.nan
    for k in (1, 6, 40):
        for leave_out in (False, True):
            near = Neighbours.among(None if leave_out else X, X)
            found = near.sums(np.array([[0, 1]]), k, values, EQUAL)[0]
            for i in (0, 30, 149):
                d = np.linalg.norm(X - X[i], axis=1)
                d[i] += 9 * leave_out
                reach = np.sort(d)[k - 1]
                near, tied = d < reach - 1e-9, np.abs(d - reach) < 1e-9
                wanted = values[near].sum(0) + values[tied].mean(0) * (k - near.sum())
                np.testing.assert_allclose(found[i], wanted)
            assert (found[7] == 0).all()


def test_hits_of_ties_are_shared():
    y = np.array([0.0, 1.0, 1.0])
    assert hits(y, np.array([[0.0], [0.0], [2.0]])).tolist() == [0.5, 0.5, 1.0]
    z = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 3.0], [4.0, 3.0, 3.0]])
    np.testing.assert_allclose(hits(y, z), [1 / 3, 1 / 2, 0])


def test_values_that_differ_by_rounding_are_one():
    rng = np.random.default_rng(0)
    exact = rng.choice([-1.0, 0.0, 2.0, 1e6, np.nan], (200, 3), p=[0.6, 0.1, 0.1, 0.1, 0.1])
    noisy = exact * (1 + 1e-12 * rng.normal(size=exact.shape)) + 1e-13
    every = np.ones(len(exact), bool)
    found = ties.merge_close(noisy, every)
    for f in range(3):
        for value in (-1.0, 0.0, 2.0, 1e6):
            assert len(np.unique(found[exact[:, f] == value, f])) == 1
    assert (np.isnan(found) == np.isnan(exact)).all()
    apart = rng.random((200, 3))
    assert (ties.merge_close(apart, every) == apart).all()
    assert (ties.match_close(apart, found) == apart).all()
    again = exact * (1 + 1e-12 * rng.normal(size=exact.shape))
    np.testing.assert_array_equal(ties.match_close(again, found), found)


@pytest.mark.parametrize(
    "response, arguments",
    [
        ("y", {}),
        ("k", {}),
        ("y", {"method": "assignment", "lambda_": 0.1}),
        ("k", {"method": "assignment"}),
        ("k", {"lambda_": 0.3, "order": "t"}),
        ("k", {"lambda_": 0.3, "constraints": {"hard": True}, "max_dim": 1}),
        ("k + y", {"lambda_": 0.3}),
        ("", {"n_clusters": 3}),
    ],
)
def test_rows_of_weight_zero_say_nothing_wherever_they_lie(response, arguments):
    """Neither what rounding is, nor the unit of distances, the penalty, or which rows follow."""
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(w=1.0)
    df["y"] = df["a"] + np.tanh(2 * df["b"]) + 0.3 * rng.normal(size=60)
    df["k"], df["t"] = np.where(df["y"] > 0, "p", "q"), rng.permutation(60)
    far = df.assign(a=1e6 * (1.0 + df["a"] ** 2), y=1e5, w=0.0, t=df["t"] + 0.5)
    near = df.assign(a=df["a"] - 1e-9, w=0.0, t=60.0)
    one, other = (
        ld.ripr(f"{response} ~ a + b + c", data, weights="w", threads=1, **arguments)
        for data in (df, pd.concat([near, df, far], ignore_index=True))
    )
    assert (other.predict(df) == one.predict(df)).all(axis=None)


def test_a_scaled_copy_makes_no_view_with_its_original():
    X = np.random.default_rng(0).normal(size=(50, 3))
    Z = np.c_[X, X[:, 0] * (1 + 1e-12), X[:, 1] + 1e-3]
    found = enumerate_views(5, 2, 2)
    twice = [tuple(v) for v in found[redundant(Z, found)]]
    assert twice == [(0, 3)]
