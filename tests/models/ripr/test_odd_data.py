"""ripr on odd data: repeated values, ties, lone rows, far values, units; what a search says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.models.ripr import losses, ties, views
from lodim.models.ripr.assignment.lambda_path import class_errors
from lodim.models.ripr.assignment.solve import assign, assign_in_order
from lodim.models.ripr.assignment.view_search import flat_features
from lodim.models.ripr.neighbours import nearest

PAIRS = views.enumerate_views(5, 2, 2)


def blobs(seed=0, n=300):
    """Three clusters in (a, b); c, d, e uniform."""
    rng = np.random.default_rng(seed)
    at = np.array([[0, 0], [4, 0], [0, 4]])[rng.integers(0, 3, n)]
    X = np.c_[at + 0.3 * rng.normal(size=(n, 2)), rng.uniform(size=(n, 3))]
    return pd.DataFrame(X, columns=list("abcde")), rng


def grid(seed, n=200):
    """Features rounded to whole numbers, two classes, a number, and whole numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round()
    df = pd.DataFrame(X, columns=list("abcde"))
    df["y"] = np.where(X[:, 0] * X[:, 1] + 0.7 * rng.normal(size=n) > 0, "u", "v")
    df["z"] = X[:, 0] ** 2 + X[:, 2] + rng.normal(size=n)
    return df.assign(i=df["z"].round())


# Repeated values ----------------------------------------------------------------------------------


NOISE = {
    "factor": lambda rng, n: {"g": rng.choice(list("uvw"), n)},
    "half": lambda rng, n: {"g": rng.random(n) < 0.5},
    "rare": lambda rng, n: {"g": rng.random(n) < 0.1, "h": rng.random(n) < 0.1},
    "whole": lambda rng, n: {"g": rng.integers(0, 5, n), "h": rng.integers(0, 5, n)},
    "cells of k rows": lambda rng, n: {"g": rng.integers(0, 4, n), "h": rng.integers(0, 4, n)},
    "counts": lambda rng, n: {"g": rng.poisson(2, n), "h": rng.poisson(1, n)},
}


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_beside_noise_of_few_values(noise, seed):
    df, rng = blobs(seed)
    fit = ld.ripr("~ .", df.assign(**NOISE[noise](rng, len(df))), threads=1)
    assert fit.view_names == ["a, b"] and len(fit.clusters()) == 3


def test_clusters_of_few_values_are_found():
    """Like is compared with like, and still what is dense is dense."""
    rng = np.random.default_rng(0)
    at = np.array([[1, 1], [5, 5], [1, 5]])[rng.integers(0, 3, 300)]
    X = np.c_[at + rng.integers(-1, 2, (300, 2)), rng.integers(0, 7, (300, 3))]
    fit = ld.ripr("~ .", pd.DataFrame(X, columns=list("abcde")), threads=1)
    assert fit.view_names[0] == "a, b" and fit.tidy()["estimate"][0] > 0.9


def test_rows_are_spread_over_what_their_values_stand_for():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 4, 200), rng.normal(size=200), np.exp(rng.normal(size=200))]
    X[::9, 2] = np.nan
    X[3:6, 1] = X[3, 1]
    both = losses.uniform_references(X, np.arange(200), 0)
    spread, drawn = both[:200], both[200:]
    assert (spread[:, 0].round() == X[:, 0]).all() and len(np.unique(spread[:, 0])) == 200
    alone = np.r_[0:3, 6:200]
    assert (spread[alone, 1] == X[alone, 1]).all() and (spread[3:6, 1] != X[3:6, 1]).all()
    np.testing.assert_array_equal(spread[:, 2], X[:, 2])
    ends = np.sort(np.unique(X[:, 1]))[[0, -1]]
    assert drawn[:, 1].min() >= ends[0] and drawn[:, 1].max() <= ends[1]
    assert -0.5 <= drawn[:, 0].min() < -0.4 and 3.4 < drawn[:, 0].max() <= 3.5
    assert losses.value_cells(np.array([7.0, 7.0]))[1].tolist() == [7.0, 7.0]
    low, high = losses.value_cells(np.array([0.0, 0.0, 1.0, 5.0, 5.0]))
    assert low.tolist() == [-0.5, -0.5, 1.0, 3.0, 3.0]
    assert high.tolist() == [0.5, 0.5, 1.0, 7.0, 7.0]


def test_permutations_permute_what_is_drawn():
    X = grid(0)[list("abcde")].to_numpy()
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(200), rng.permutation(5)
    one = losses.uniform_references(X, np.arange(200), 3)
    two = losses.uniform_references(X[np.ix_(rows, columns)], np.arange(200), 3)
    np.testing.assert_array_equal(two[200:], one[200:, columns])
    for spread in (one, two):
        spread[:200] = spread[:200][np.lexsort(spread[:200, np.argsort(spread[200])].T)]
    np.testing.assert_array_equal(two[:200], one[:200, columns])


def test_views_that_say_a_thing_twice():
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 4, 50), rng.normal(size=50)
    other = rng.integers(0, 2, 50)
    X = np.c_[x, level == 1, level == 2, level == 3, x, other].astype(float)
    found = views.enumerate_views(6, 1, 3)
    twice = views.redundant(X, found), views.of_one_factor(found, np.array([0, 1, 1, 1, 2, 3]))
    copies, levels = ({tuple(views.features(v)) for v in found[on]} for on in twice)
    assert copies == {(0, 4), *(tuple(sorted((0, 4, j))) for j in (1, 2, 3, 5))}
    assert levels == {(1, 2), (1, 3), (2, 3), (1, 2, 3)}


@pytest.mark.long
def test_a_copied_column_makes_no_view_with_its_original():
    df = blobs()[0].assign(a2=lambda d: d["a"], y=lambda d: d["a"] + d["b"] > 1)
    for formula in ("~ . - y", "y ~ ."):
        fit = ld.ripr(formula, df, lambda_=0.05, threads=1)
        assert not any({"a", "a2"} <= set(v) for v in fit.view_features)
    assert ld.ripr("y ~ a + a2", df, threads=1, min_dim=2).view_names == [
        "a, a2"
    ]  # there is no other


# Ties ---------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("target", ["y", "z", "i", None])
@pytest.mark.parametrize("max_dim", [2, 3])
def test_permuted_rows_and_columns_of_whole_numbers(target, max_dim):
    for seed in (0, 1):
        df, rng = grid(seed), np.random.default_rng(seed + 50)
        how = {"max_dim": max_dim, "threads": 1}
        one = ld.ripr(f"{target or ''} ~ a + b + c + d + e", df, **how)
        formula = f"{target or ''} ~ {' + '.join(rng.permutation(list('abcde')))}"
        two = ld.ripr(formula, df.iloc[rng.permutation(len(df))], **how)
        assert set(map(frozenset, one.view_features)) == set(map(frozenset, two.view_features))
        if target:
            np.testing.assert_allclose(one.predict(df), two.predict(df), atol=1e-9)
            continue
        served = [[frozenset(v.split(", ")) for v in f.predict(df, "view")] for f in (one, two)]
        assert served[0] == served[1] and len(one.clusters()) == len(two.clusters())


def test_those_at_the_kth_distance_represent_all_that_are_there():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 2)).astype(float), rng.integers(0, 2, 300).astype(float)
    view, order = np.array([0, 1]), rng.permutation(300)
    for k in (5, 40, 90):
        for leave_out in (False, True):
            Q, other_Q = (None, None) if leave_out else (X, X[order])
            d, at = nearest(Q, X, view, k, like=y)
            two, other = nearest(other_Q, X[order], view, k, like=y[order])
            np.testing.assert_array_equal(d[order], two)
            np.testing.assert_array_equal(y[at[order]].sum(axis=1), y[order][other].sum(axis=1))
            for i in (0, 17, 123):
                far = np.linalg.norm(X - X[i], axis=1)
                far[i] += 9 * leave_out
                nearer, tied = far < d[i, -1] - 1e-9, np.abs(far - d[i, -1]) < 1e-9
                assert len(set(at[i])) == k and set(np.flatnonzero(nearer)) <= set(at[i])
                np.testing.assert_allclose(np.linalg.norm(X[at[i]] - X[i], axis=1), d[i])
                wanted = y[nearer].sum() + y[tied].mean() * (k - nearer.sum())
                assert abs(y[at[i]].sum() - wanted) <= 1


# Lone rows ----------------------------------------------------------------------------------------


def test_the_only_row_of_a_class_is_not_its_own_neighbour():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 5)), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    L = losses.class_losses(X, y, PAIRS, 2)
    assert np.isinf(L[8]).all() and np.isfinite(L[:8]).all()
    X[5:8] = np.nan  # of class 1 one row is left
    ratios = losses.class_ratios(None, X, y, PAIRS, 2)
    assert np.isinf(ratios[4, :, 1]).all() and np.isfinite(ratios[4, :, 0]).all()
    assert np.isinf(losses.cluster_losses(X[4:8], PAIRS)).all()
    assert np.isinf(losses.regression_losses(X[4:8], y[4:8] * 1.0, PAIRS)).all()


def test_a_lone_row_is_wrong_in_the_record():
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=list("ab"))
    df["y"] = list("uuuuvvvvw")
    e = ld.ripr("y ~ .", df, k=2, threads=1).estimates
    assert e.query().value[8, 0] != 2
    with pytest.raises(ld.DataError, match="no view can predict any row"):
        ld.ripr("y ~ .", df.iloc[[0, 4, 8]], threads=1, method="assignment")


# Scales -------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-30, 1e16, 1e19, 1e40])
def test_losses_do_not_depend_on_the_unit(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 5)), rng.integers(0, 2, 90)
    for L, M in (
        [losses.class_losses(Z, y, PAIRS, 7) for Z in (X, X * scale)],
        [losses.regression_losses(Z, y * 1.0, PAIRS, 7) for Z in (X, X * scale)],
        [losses.cluster_losses(Z, PAIRS, 7) for Z in (X, X * scale)],
    ):
        np.testing.assert_allclose(M, L, rtol=1e-4)
    df = pd.DataFrame(X, columns=list("abcde")).assign(y=np.where(X[:, 0] * X[:, 1] > 0, "u", "v"))
    other = df.assign(**{name: df[name] * scale for name in "abcde"})
    one, two = (ld.ripr("y ~ .", d, standardize=False, threads=1) for d in (df, other))
    assert one.view_names == two.view_names
    np.testing.assert_allclose(one.predict(df), two.predict(other), atol=1e-4)


def test_features_of_very_different_size():
    """Where one is 1e18 times another, the small ones still tell rows in their views."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = (X[:, 2] * X[:, 3] > 0).astype(int)
    plain = losses.class_losses(X[:, 2:], y, np.array([[0, 1]]), 9)
    huge = losses.class_losses(X * [1e18, 1e18, 1, 1], y, np.array([[2, 3]]), 9)
    np.testing.assert_allclose(huge, plain, rtol=1e-4)


def test_far_values_leave_the_order_of_the_others():
    """Two features that some rows flatten alike are as good as before; the summary says so."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    df["y"] = np.where(df["a"] * df["b"] > 0, "u", "v")
    before = ld.ripr("y ~ .", df, threads=1)
    df.loc[:3, ["a", "b"]] = 1e6  # too many rows for wild values, which are limited
    after = ld.ripr("y ~ .", df, threads=1)
    assert after.record.overall < before.record.overall + 0.035 and "a, b" in after.view_names
    note = "standard deviation of a and b, so distances hardly depend on the other values"
    assert note in " ".join(str(after.summary()).split())
    assert "hardly see" not in " ".join(str(before.summary()).split())


def test_features_that_are_flat():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=400), rng.random(400) < 0.003, np.exp(3 * rng.normal(size=400))]
    df = pd.DataFrame(X, columns=list("abc"))
    batch = ld.ripr("~ .", df, threads=1).design.apply(df)
    assert flat_features(batch).tolist() == [2]


# Searches -----------------------------------------------------------------------------------------


def test_a_row_of_twice_the_weight_switches_no_more():
    """Only shares of the weight count, in order too; and the solver agrees on the price."""
    rng = np.random.default_rng(0)
    L = np.exp(0.02 * rng.standard_normal((80, 5)))
    weight = rng.random(80) + 0.5
    one, two = (assign_in_order(L, 1e-4, 3e-4, weight=w) for w in (weight, 1000 * weight))
    assert (one.first == two.first).all() and len(np.unique(one.first)) > 1
    np.testing.assert_allclose(1000 * one.objective, two.objective)
    constrained = pytest.importorskip("lodim.models.ripr.assignment.constrained")
    pytest.importorskip("cvxpy")
    constraints = constrained.ViewConstraints(hard=True)
    parts = [constrained.solve(L[:30], np.ones(5), 1e-4, constraints, weight=c * weight[:30])
             for c in (1, 1000)]  # fmt: skip
    np.testing.assert_array_equal(parts[0][0], parts[1][0])
    assert 1000 * parts[0][1] == pytest.approx(parts[1][1], rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("more", [{}, {"constraints": {}}, {"order": np.arange(60)}])
def test_a_search_that_does_not_converge_warns(monkeypatch, more):
    if "constraints" in more:
        pytest.importorskip("cvxpy")
    from lodim.models.ripr.assignment import constrained

    def short(function, n_views):
        """The same, but searches among all views count as cut off after a round."""

        def one(L, *given, **named):
            found = function(L, *given, **named)
            cut = {"converged": False, "objective": found.objective[:1]}
            return replace(found, **cut) if L.shape[1] == n_views else found

        return one

    df = ld.informative_views(2, 30, seed=1, M=4)
    at = "lodim.models.ripr.assignment"
    monkeypatch.setattr(f"{at}.view_search.assign_in_order", short(assign_in_order, 6))
    monkeypatch.setattr(constrained, "assign", short(constrained.assign, 6))
    if not more:
        able = len(np.unique(losses.class_losses(*_parts(df), balanced=True).argmin(axis=1)))
        monkeypatch.setattr(f"{at}.view_search.assign", short(assign, able))
    with pytest.warns(ld.ConvergenceWarning, match="did not converge"):
        fit = ld.ripr("y ~ .", df, lambda_=1.0, threads=1, **more)
    assert not fit.converged and len(fit.log["objective"]) == 1


def _parts(df):
    X, y = df.drop(columns="y"), df["y"].to_numpy()
    return ((X - X.mean()) / X.std(ddof=0)).to_numpy(), y, views.enumerate_views(4, 2, 2)


# Numbers that come back ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["y", "z"])
def test_lambda_is_as_it_was_given(target):
    for lambda_ in (3.0, 0.7, 1e-3):
        fit = ld.ripr(f"{target} ~ a + b + c", grid(0), lambda_=lambda_, threads=1)
        assert fit.settings.lambda_ == lambda_ == fit.estimates.lambda_


def test_neighbours_that_agree_are_repeated_exactly():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    df["z"] = np.where(df["a"] > 0, 7, 2)
    fit = ld.ripr("z ~ .", df, k=5, threads=1, method="assignment")
    said = fit.predict(df[df["a"].abs() > 1.5])
    assert set(said) == {2.0, 7.0}


# Views without rows -------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_views_without_rows_make_no_clusters(seed):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.integers(0, 2, (15, 5)).astype(bool), columns=list("abcde"))
    fit = ld.ripr("~ .", df, min_dim=1, lambda_=0.02, threads=1)
    assert (fit.tidy()["estimate"] > 0).all() and fit.df == len(set(sum(fit.view_features, ())))
    np.testing.assert_allclose(fit.assignment().sum(axis=1), 1.0)
    assert fit.predict(df).notna().all()


def test_a_feature_without_values_has_no_ties():
    X = np.array([[np.nan, 1.0], [np.nan, 1.0 + 1e-12], [np.nan, 2.0]])
    merged = ties.merge_close(X, np.array([True, True, True]))
    assert np.isnan(merged[:, 0]).all() and merged[0, 1] == merged[1, 1] < merged[2, 1]


def test_without_a_view_of_many_rows_every_prediction_is_wrong():
    assert class_errors(np.empty((3, 0, 2)), np.array([0, 1, 0])).tolist() == [1.0, 1.0, 1.0]
