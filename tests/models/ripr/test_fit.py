"""ripr as a user sees it: what serves a row, what is missing, several responses."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_softmax, softmax

import lodim as ld
from lodim import forms
from lodim.cli import main
from lodim.models.ripr import clusters
from lodim.models.ripr.assigned_views import ClassViews
from lodim.models.ripr.clusters import kmeans
from lodim.models.ripr.estimate import calibrate
from lodim.models.ripr.losses import ABSENT
from lodim.models.ripr.vote import smoothed_targets
from lodim.models.ripr.voting_views import VotingViews

TWO = ld.informative_views(2, 120, seed=3)
NUMBERS = ld.informative_views_r(400, 2, seed=1, M=6)
_fits = {}


def fit_of(name):
    """Fits that several tests look at."""
    if name not in _fits:
        _fits[name] = {
            "two": lambda: ld.ripr("y ~ .", TWO, threads=1, method="assignment"),
            "numbers": lambda: ld.ripr("y ~ .", NUMBERS, threads=1, method="assignment"),
            "three": lambda: ld.ripr("y ~ .", three(), threads=1, method="assignment"),
            "clusters": lambda: ld.ripr("~ .", blobs(), n_clusters=3, threads=1),
        }[name]()
    return _fits[name]


def three():
    """Three classes, and rows that lack features."""
    df = TWO.copy()
    df["y"] = np.where(df["x1"] > 0.7, "c", np.where(df["y"] == 1, "b", "a"))
    df.loc[5:20, "x3"] = np.nan
    return df


def blobs(n=240, seed=0):
    """Rows in three clusters, half in (a, b), half in (c, d); elsewhere uniform."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 5))
    centres = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])
    truth = rng.integers(0, 3, n)
    for half, columns in ((slice(0, n // 2), [0, 1]), (slice(n // 2, n), [2, 3])):
        X[half, columns] = centres[truth[half]] + 0.03 * rng.normal(size=(n // 2, 2))
    return pd.DataFrame(X, columns=list("abcde"))


@pytest.mark.long
@pytest.mark.parametrize("unit", [1e-6, 1e5])
def test_clusters_do_not_depend_on_units(unit):
    """Of features that are not standardized, and of weights: distances are told apart alike."""
    df = blobs()
    fit = ld.ripr("~ .", df, standardize=False, threads=1)
    weights = np.full(len(df), unit)
    other = ld.ripr("~ .", unit * df, weights=weights, standardize=False, threads=1)
    assert len(fit.clusters()) > len(fit.estimates) and other.view_names == fit.view_names
    clusters = other.predict(unit * df, "cluster")
    pd.testing.assert_series_equal(clusters, fit.predict(df, "cluster"))


def score_in(fit, df, views):
    """Naive answers: for each row the view and class of the least ratio, by the definition."""
    e, d = fit.estimates, fit.design
    X = (df[list(d.names)].to_numpy() - d.mean) / d.scale
    refs = (TWO[list(d.names)].to_numpy() - d.mean) / d.scale
    y, out = TWO["y"].to_numpy(), []
    for x in X:
        best = (np.inf, None, None)
        for j, names in enumerate(views):
            at = [d.names.index(n) for n in names]
            gap = np.linalg.norm(refs[:, at] - x[at], axis=1)
            for c in (0, 1):
                own, other = (np.sort(gap[y == k])[e.k - 1] for k in (c, 1 - c))
                best = min(best, ((own / other) ** len(at), j, c))
        out.append(best[1:])
    return np.array(out)


# Answers -------------------------------------------------------------------------------------


def test_recovers_the_views_and_answers_by_them():
    fit = fit_of("two")
    assert sorted(map(list, fit.view_features)) == sorted(TWO.attrs["views"])
    new = ld.informative_views(2, 120, seed=3).iloc[::7] + 0.01
    by_hand = score_in(fit, new, fit.view_features)
    assert list(fit.predict(new, "view")) == [fit.view_names[j] for j in by_hand[:, 0]]
    assert (fit.predict(new, "class").to_numpy() == by_hand[:, 1]).mean() > 0.97  # votes beside it
    np.testing.assert_allclose(fit.assignment().sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.long
def test_left_out_rows_are_answered_as_if_they_were_new():
    """The record of a row is the answer of an ensemble that has never seen it."""
    for name in ("two", "three", "numbers"):
        e = fit_of(name).estimates
        own = e.query()
        for i in (0, 17, 151):
            rest = np.arange(e.n) != i
            without = replace(
                e, X=e.X[rest], y=e.y[rest], weight=e.weight[rest], assignment=e.assignment[rest]
            )
            one = without.query(e.X[[i]])
            assert one.view[0] == own.view[i], (name, i)
            np.testing.assert_allclose(one.score[0], own.score[i], rtol=1e-4, atol=1e-5)


def test_errors_and_shares_of_the_views():
    fit = fit_of("two")
    own = fit.estimates.query()
    wrong = (own.score[:, 0] > 0) != fit.estimates.y
    tidy = fit.tidy()
    for j in range(len(tidy)):
        of = own.view == j
        assert tidy["estimate"][j] == pytest.approx(of.mean())
        assert tidy["error"][j] == pytest.approx(wrong[of].mean())
    p = expit(own.score[:, 0])
    deviance = -2 * np.log(np.where(fit.estimates.y == 1, p, 1 - p)).mean()
    glance = fit.glance().iloc[0]
    assert glance["deviance"] == pytest.approx(deviance)
    assert glance["error"] == pytest.approx(wrong.mean())
    assert glance["df"] == 4 and glance["n_views"] == 2
    np.testing.assert_allclose(tidy["weight"], fit.assignment().mean().to_numpy())


def test_errors_of_numbers_and_clusters():
    fit = fit_of("numbers")
    own = fit.estimates.query()
    gap = (own.score[:, 0] - fit.estimates.y) ** 2
    of = own.view == 0
    assert fit.tidy()["error"][0] == pytest.approx(gap[of].mean())
    assert fit.glance()["error"][0] == pytest.approx(gap.mean())
    assert fit.dev_ratio == pytest.approx(1 - gap.mean() / NUMBERS["y"].var(ddof=0))


def test_factors_minimize_the_deviance_of_left_out_rows():
    fit = fit_of("three")
    e = fit.estimates
    ratio, vote = e.evidence()
    least = ratio.min(axis=2)
    view, at = least.argmin(axis=1), np.isfinite(least).any(axis=1)
    rows, y = np.flatnonzero(at), e.codes[at]

    def deviance(t):
        z = (t[1] * vote - t[0] * np.minimum(ratio, ABSENT))[rows, view[at]]
        return -2 * (smoothed_targets(y, 3) * log_softmax(z, axis=1)).sum(axis=1).mean()

    best = calibrate((ratio, vote), e.y, e.weight)
    np.testing.assert_allclose(best, e.scale, atol=1e-3)
    for step in ([0.02, 0], [-0.02, 0], [0, 0.02], [0, -0.02]):
        assert deviance(np.maximum(best + step, 0.0)) >= deviance(best) - 1e-7


def test_rows_that_are_all_right_do_not_make_answers_certain():
    df = pd.DataFrame(
        {"a": np.r_[np.arange(9.0), 100 + np.arange(9.0)], "y": ["u"] * 9 + ["v"] * 9}
    )
    fit = ld.ripr("y ~ a", df, threads=1)
    assert fit.record.overall == 0.0
    p = fit.predict(df, "prob")
    assert p.max(axis=1).min() > 0.85 and p.max(axis=1).max() < 1 - 1e-4
    np.testing.assert_allclose(smoothed_targets(np.array([0, 0, 1]), 3).sum(axis=1), 1.0)


def test_probabilities_are_those_of_the_scores():
    fit, df = fit_of("three"), three().iloc[::9]
    p, z = fit.predict(df, "prob"), fit.predict(df, "link")
    np.testing.assert_allclose(p, softmax(z, axis=1))
    assert list(p.columns) == ["a", "b", "c"]
    assert (fit.predict(df, "class") == p.idxmax(axis=1)).all()


# What is missing -----------------------------------------------------------------------------


def has_the_views(fit):
    """Whether the views of TWO are among those of the fit."""
    return {frozenset(v) for v in TWO.attrs["views"]} <= {frozenset(v) for v in fit.view_features}


def test_a_row_is_answered_in_the_views_that_it_has():
    fit = fit_of("two")
    one, two = (list(v) for v in fit.view_features)
    df = TWO.iloc[:6].copy()
    df.loc[[0, 1], one] = np.nan
    df.loc[[2, 3], two] = np.nan
    df.loc[4, one[:1] + two[:1]] = np.nan
    view = fit.predict(df, "view")
    assert (view[:2] == fit.view_names[1]).all() and (view[2:4] == fit.view_names[0]).all()
    assert view.isna().tolist() == [False] * 4 + [True, False]
    for kind in ("response", "link", "class"):
        assert fit.predict(df, kind).isna().tolist() == view.isna().tolist()
    rest = [c for c in df if c not in (*one, *two, "y")]
    assert fit.predict(df.assign(**dict.fromkeys(rest)).astype(float)).equals(fit.predict(df))
    augmented = fit.augment(df)
    assert augmented[".view"].equals(view.rename(".view")) and augmented[".loss"].isna()[4]
    assert fit.evaluate(df)["n"][0] == 5
    votes = fit.votes(df)
    assert votes.isna().sum().tolist() == [3, 3]


def test_rows_that_miss_something_are_still_learnt_from():
    df = TWO.copy()
    rng = np.random.default_rng(0)
    X = df.columns.drop("y")
    df[X] = df[X].mask(rng.random((len(df), len(X))) < 0.15)
    df.loc[:3, X] = np.nan
    fit = ld.ripr("y ~ .", df, threads=1, method="assignment")
    assert has_the_views(fit)
    r = len(fit.estimates)
    blind = df[[n for v in fit.view_features for n in v]].isna().to_numpy().reshape(-1, r, 2)
    without = int(blind.any(axis=2).all(axis=1).sum())
    assert f"Rows with a missing feature in every view: {without}" in str(fit) and without >= 4
    assert fit.glance()["n_without_view"][0] == without
    assert f"In {without} rows, every view has a missing feature" in " ".join(
        str(fit.summary()).split()
    )
    assert fit.evaluate(TWO)["accuracy"][0] > 0.85
    assert (fit.assignment().iloc[:4] == 0).all(axis=None)


@pytest.mark.long
def test_unlabelled_rows_are_used_and_not_compared_with():
    df = TWO.assign(y=TWO["y"].astype(float))
    df.loc[::3, "y"] = np.nan
    fit = ld.ripr("y ~ .", df, threads=1, method="assignment")
    assert has_the_views(fit)
    assert "80 of them unlabelled" in str(fit) and fit.glance()["n_unlabelled"][0] == 80
    hidden = TWO[df["y"].isna()]
    assert fit.evaluate(hidden)["accuracy"][0] > 0.85
    # Of numbers, rows without one say nothing at all.
    holes = NUMBERS.assign(y=NUMBERS["y"].where(NUMBERS.index % 4 > 0))
    one, two = (
        ld.ripr("y ~ .", d, threads=1, method="assignment") for d in (holes, holes.dropna())
    )
    np.testing.assert_allclose(one.estimates.lambda_, two.estimates.lambda_)
    assert one.view_names == two.view_names and one.glance()["n_unlabelled"][0] == 100


@pytest.mark.long
def test_held_out_rows_without_a_view_get_the_null_model():
    df = TWO.copy()
    df.loc[::10, df.columns.drop("y")] = np.nan
    cv = ld.cv(ld.ripr, "y ~ .", df, folds=3, n_lambda=3, threads=1)
    assert np.isfinite(cv.frame["mean"]).all()


# Choices -------------------------------------------------------------------------------------


@pytest.mark.long
def test_lambda_and_its_unit():
    """In units of (1 - alpha)^2, so that another order of the divergence needs no other penalty."""
    one, two = (
        ld.ripr("y ~ .", TWO, lambda_=1.0, alpha=alpha, threads=1) for alpha in (0.99, 0.999)
    )
    assert one.view_names == two.view_names
    np.testing.assert_allclose(one.tidy()["weight"], two.tidy()["weight"], atol=0.01)
    path = ld.path(ld.ripr, "y ~ .", TWO, n_lambda=5, threads=1)
    counts = [len(f.estimates) for f in path.fits]
    assert counts[0] == 1 < counts[-1]
    assert path.glance().columns.tolist() == ["df", "dev_ratio", "lambda_"]


@pytest.mark.long
def test_cv_shares_one_loss_matrix_and_agrees_with_single_fits():
    """Each point of the grid against fits to the folds by hand."""
    grid, fold = [0.1, 1.0, 8.0], np.arange(len(TWO)) % 3
    cv = ld.cv(ld.ripr, "y ~ .", TWO, grid={"lambda_": grid}, folds=fold, threads=1)
    for lambda_, mean in zip(cv.frame["lambda_"], cv.frame["mean"], strict=True):
        losses = [
            ld.ripr("y ~ .", TWO[fold != k], lambda_=lambda_, threads=1)
            .evaluate(TWO[fold == k])["deviance"][0]
            for k in range(3)
        ]  # fmt: skip
        assert mean == pytest.approx(np.mean(losses), rel=1e-6)
    assert cv.best.settings.lambda_ == cv.lambda_min and "by CV" in str(cv.best.summary())


@pytest.mark.long
def test_number_and_dimensions_of_the_views():
    assert len(ld.ripr("y ~ .", TWO, lambda_=0.03, threads=1).estimates) > 2
    assert len(ld.ripr("y ~ .", TWO, lambda_=0.03, n_views=1, threads=1).estimates) == 1
    for dims in ((1, 1), (1, 2), (3, 3)):
        fit = ld.ripr("y ~ .", TWO, min_dim=dims[0], max_dim=dims[1], threads=1)
        assert fit.tidy()["dim"].between(*dims).all()
    alone = ld.ripr("y ~ x1", TWO, threads=1)
    assert alone.view_features == [("x1",)]


def test_weights_stand_for_rows():
    """A row of weight zero is as good as none."""
    weights = (np.arange(len(TWO)) % 4 > 0).astype(float)
    one = ld.ripr("y ~ .", TWO, weights=weights, lambda_=1.0, k=9, threads=1, standardize=False)
    two = ld.ripr("y ~ .", TWO[weights > 0], lambda_=1.0, k=9, threads=1, standardize=False)
    assert one.view_names == two.view_names
    np.testing.assert_allclose(one.tidy()["weight"], two.tidy()["weight"], atol=1e-6)
    np.testing.assert_allclose(one.predict(TWO), two.predict(TWO), atol=2e-3)


@pytest.mark.long
def test_the_scale_of_weights_chooses_no_views():
    flowers = ld.data("iris").iloc[np.random.default_rng(0).permutation(150)[:90]]
    weights = np.random.default_rng(1).integers(1, 4, 90)
    one = ld.ripr("species ~ .", flowers, weights=weights, threads=1, method="assignment")
    two = ld.ripr("species ~ .", flowers, weights=1e-20 * weights, threads=1, method="assignment")
    assert one.view_names == two.view_names and one.estimates.k == two.estimates.k
    np.testing.assert_allclose(two.predict(flowers), one.predict(flowers), atol=1e-6)


def test_numbers_of_rows_without_weight_say_nothing():
    weights = np.where(np.arange(len(NUMBERS)) % 3 == 0, 0.0, 1.0)
    all_rows = ld.ripr("y ~ .", NUMBERS, weights=weights, threads=1, method="assignment")
    some = ld.ripr("y ~ .", NUMBERS[weights > 0], threads=1, method="assignment")
    assert all_rows.view_names == some.view_names
    np.testing.assert_allclose(all_rows.predict(NUMBERS), some.predict(NUMBERS), atol=1e-6)
    assert all_rows.settings.lambda_ == some.settings.lambda_
    assert (all_rows.assignment()[weights == 0] == 0).all(axis=None)


def test_columns_and_rows_in_another_order():
    fit = fit_of("two")
    other = ld.ripr("y ~ .", TWO.iloc[::-1, ::-1], threads=1, method="assignment")
    assert {frozenset(v) for v in other.view_features} == {frozenset(v) for v in fit.view_features}
    np.testing.assert_allclose(other.predict(TWO), fit.predict(TWO), atol=1e-5)


@pytest.mark.long
def test_rows_in_order_of_time_switch_less():
    shuffled = TWO.assign(t=np.arange(len(TWO))).sample(frac=1.0, random_state=0)
    plain = ld.ripr("y ~ . - t", shuffled, lambda_=2.0, threads=1)
    timed = ld.ripr("y ~ .", shuffled, order="t", lambda_=2.0, threads=1, control={"smooth": 20.0})
    free = ld.ripr("y ~ .", shuffled, order="t", lambda_=2.0, threads=1, control={"smooth": 0.0})
    back = np.argsort(shuffled["t"].to_numpy())

    def switches(fit):
        view = fit.assignment().to_numpy()[back].argmax(axis=1)
        return int((np.diff(view) != 0).sum())

    assert switches(timed) == 1 < 20 < min(switches(plain), switches(free))
    assert "t" not in timed.design.names and set(timed.assignment().to_numpy().ravel()) == {0, 1}
    view = timed.assignment().to_numpy()[back].argmax(axis=1)
    assert len(set(view[:118])) == 1 and len(set(view[122:])) == 1  # the views change at row 120
    by_array = ld.ripr("y ~ . - t", shuffled, order=shuffled["t"], lambda_=2.0, threads=1,
                       control={"smooth": 20.0})  # fmt: skip
    assert by_array.assignment().equals(timed.assignment())


# Clusters ------------------------------------------------------------------------------------


@pytest.mark.long
def test_clusters_are_found_in_the_views_that_have_them():
    fit, df = fit_of("clusters"), blobs()
    assert {frozenset(v) for v in fit.view_features} == {frozenset("ab"), frozenset("cd")}
    view = fit.predict(df, "view")
    right = [fit.view_names[[frozenset(v) for v in fit.view_features].index(frozenset(c))]
             for c in ("ab", "cd")]  # fmt: skip
    assert (view.iloc[:120] == right[0]).mean() > 0.9 < (view.iloc[120:] == right[1]).mean()
    cluster = fit.predict(df)
    assert cluster.equals(fit.predict(df, "cluster")) and set(cluster) == {
        "1.1", "1.2", "1.3", "2.1", "2.2", "2.3"
    }  # fmt: skip
    frame = fit.clusters()
    centres = frame.loc[frame["view"] == right[0], ["a", "b"]].sort_values("a").to_numpy()
    np.testing.assert_allclose(centres, [[0.2, 0.2], [0.5, 0.8], [0.8, 0.2]], atol=0.03)
    assert fit.glance()["dev_ratio"][0] > 0.9
    assert list(fit.augment(df).columns[-2:]) == [".cluster", ".view"]
    assert fit.predict(df.assign(a=np.nan)).notna().sum() == len(df)
    with pytest.raises(ld.DataError, match="no response"):
        fit.evaluate(df)
    assert ld.ripr("~ .", df, threads=1, lambda_=1.0).clusters()["cluster"].tolist() == [
        "1.1", "1.2", "1.3", "2.1", "2.2", "2.3"
    ]  # fmt: skip  # three by themselves


def test_kmeans_of_weighted_rows():
    """Against scikit-learn's, and weights as copies."""
    cluster = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(90, 2)), rng.integers(1, 4, 90).astype(float)
    _, within = kmeans(X, weight, 4, np.random.default_rng(1))
    known = cluster.KMeans(4, n_init=50, random_state=0).fit(X, sample_weight=weight)
    assert within <= known.inertia_ * 1.03
    copies, same = kmeans(np.repeat(X, weight.astype(int), axis=0), np.ones(int(weight.sum())), 1,
                          np.random.default_rng(0))  # fmt: skip
    np.testing.assert_allclose(copies[0], weight @ X / weight.sum())
    assert kmeans(X, weight, 1, np.random.default_rng(0))[1] == pytest.approx(same)


def groups(n_groups, seed, n=200):
    """Rows (n, 2) in round groups, their centres at least 8 standard deviations apart."""
    rng = np.random.default_rng(seed)
    at = 8.0 * np.array([(0, 0), (1, 1), (0, 2), (2, 0), (2, 2), (3, 1), (1, 3), (3, 3)])
    return at[np.arange(n) % n_groups] + rng.normal(size=(n, 2))


@pytest.mark.long
@pytest.mark.parametrize("n_groups", [1, 2, 3, 5, 8])
def test_number_of_clusters(n_groups):
    df = pd.DataFrame(groups(n_groups, n_groups), columns=["a", "b"])
    fit = ld.ripr("~ .", df, threads=1)
    assert len(fit.clusters()) == n_groups
    assert f"Clusters in the views: {n_groups} (by prediction strength)" in str(fit)
    weighted = ld.ripr("~ .", df, weights=np.tile([0.5, 2.0], 100), threads=1)
    assert len(weighted.clusters()) == n_groups


def test_prediction_strength_of_pairs():
    """Against a count of the pairs; weights as copies, but for the pair of a row and its copy."""
    rng = np.random.default_rng(0)
    X, Z = groups(4, 1, 60), groups(4, 1, 60) + 0.5 * rng.normal(size=(60, 2))
    one = np.ones(60)
    found = clusters._agreement([(X, one), (Z, one)], 5, np.random.default_rng(2))
    again = np.random.default_rng(2)
    centres = [kmeans(Y, one, 5, again)[0] for Y in (X, Z)]

    def of(Y, C):
        return ((Y[:, None] - C) ** 2).sum(axis=2).argmin(axis=1)

    least = []
    for Y, own, other in ((X, *centres), (Z, *centres[::-1])):
        a, b = of(Y, own), of(Y, other)
        pairs = [(i, j) for i in range(60) for j in range(60) if i != j and a[i] == a[j]]
        least.append(min(np.mean([b[i] == b[j] for i, j in pairs if a[i] == c]) for c in range(5)))
    assert found == pytest.approx(np.mean(least)) and 0.0 < found < 1.0


@pytest.mark.parametrize("n_groups", [3, 4])
def test_two_features_that_repeat_one_measurement_are_no_clusters(n_groups):
    rng, X = np.random.default_rng(1), groups(n_groups, 3)
    df = pd.DataFrame(X, columns=["a", "b"])
    df["again"], df["u"] = df["a"] + 0.1 * rng.normal(size=200), rng.uniform(size=200)
    fit = ld.ripr("~ .", df, threads=1)
    assert fit.view_names[0] in ("a, b", "b, again", "again, b")
    assert fit.tidy()["estimate"][0] > 0.9 and len(fit.clusters()) >= n_groups


def test_clusters_of_iris():
    iris = ld.data("iris")
    fit = ld.ripr("~ . - species", iris, threads=1)
    assert fit.view_names == ["petal_length, petal_width"] and len(fit.clusters()) == 3
    shares = pd.crosstab(fit.predict(iris), iris["species"]).max(axis=1)
    assert shares.sum() >= 0.94 * len(iris)


# Several responses ---------------------------------------------------------------------------


def test_several_responses_of_new_levels(tmp_path):
    df = pd.DataFrame({"g": list("aabbcc") * 8, "x": np.arange(48.0) % 7})
    df = df.assign(y=np.where(df["x"] > 3, "p", "q"), z=df["x"] ** 2)
    fits, new = ld.ripr("y + z ~ g + x", df), df.assign(g="never")
    with pytest.raises(ld.DataError, match="'never'"):
        fits.predict(new)
    pd.testing.assert_frame_equal(
        fits.predict(new, new_levels="missing"), fits.predict(new.assign(g=None))
    )
    some = df["g"].where(df.index > 3, "never")
    for method in (fits.evaluate, fits.augment):
        found = method(df.assign(g=some), new_levels="missing")
        expected = method(df.assign(g=some.replace("never", None)))
        assert not expected.equals(method(df))
        pd.testing.assert_frame_equal(
            found.drop(columns="g", errors="ignore"), expected.drop(columns="g", errors="ignore")
        )
    df.to_csv(tmp_path / "data.csv", index=False)
    call = ["ripr", "y + z ~ g + x", str(tmp_path / "data.csv"), "--predict"]
    main([*call, str(tmp_path / "data.csv"), "--output", str(tmp_path / "out.csv")])
    assert [*pd.read_csv(tmp_path / "out.csv")] != []


@pytest.mark.long
def test_a_row_that_is_not_answered_is_not_explained():
    fit = ld.ripr("y ~ .", TWO, threads=1, missing="drop")
    row = TWO.iloc[[0]].assign(**{fit.design.features[0]: np.nan})
    with pytest.raises(ld.DataError, match="the row has a missing feature"):
        fit.explain(row)


def test_several_responses_share_their_views(tmp_path):
    """Each of two responses lives in a view of its own; a third one is a number."""
    df = ld.informative_views(1, 240, seed=5)
    other = ld.informative_views(1, 240, seed=8)
    taken, free = df.attrs["views"][0], None
    spare = [c for c in df.columns.drop("y") if c not in taken]
    free = spare[:2]
    df[free] = other[other.attrs["views"][0]].to_numpy()
    df["z"] = np.where(other["y"] == 1, "yes", "no")
    df["w"] = df[taken[0]] * 3.0
    df.loc[:10, "z"] = None
    fits = ld.ripr("y + z + w ~ .", df, threads=1)
    assert list(fits.fits) == ["y", "z", "w"]
    views = [f.view_features for f in fits.fits.values()]
    assert views[0] == views[1] == views[2]
    assert {frozenset(taken), frozenset(free)} <= {frozenset(v) for v in views[0]}
    table = fits.evaluate(df).set_index("response")
    assert table.loc[["y", "z"], "accuracy"].min() > 0.9 and table.loc["w", "dev_ratio"] > 0.8
    for name in "yzw":
        assert name not in fits["y"].design.names
    out = fits.predict(df, "class")
    with pytest.raises(ld.ArgumentError, match=r"one of response, .*class.*, not 'porb'"):
        fits.predict(df, "porb")
    assert out.columns.tolist() == ["y", "z", "w"] and out.index.equals(df.index)
    pd.testing.assert_series_equal(out["z"], fits["z"].predict(df, "class"), check_names=False)
    assert fits.glance()["n_unlabelled"].tolist() == [0, 11, 0]
    assert set(fits.tidy()["response"]) == {"y", "z", "w"}
    fits.save(tmp_path / "fits")
    back = ld.load(tmp_path / "fits")
    assert str(back) == str(fits) and str(back.summary()) == str(fits.summary())
    assert back.predict(df).equals(fits.predict(df))
    assert max(map(len, f"{fits}\n{fits.summary()}".splitlines())) <= 100
    with pytest.raises(ld.ArgumentError, match="response must be one of 'y', 'z', 'w'"):
        fits["x1"]
    with pytest.raises(ld.FormulaError, match="only one response"):
        ld.path(ld.ripr, "y + z ~ .", df)


# Explanations --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two", "three", "numbers", "clusters"])
def test_explanation_is_of_the_prediction(name):
    fit = fit_of(name)
    data = {"two": TWO, "three": three(), "numbers": NUMBERS, "clusters": blobs()}[name]
    row = data.iloc[[30]]
    x = fit.explain(row, k=4)
    kind = {"numbers": "response", "clusters": "cluster"}.get(name, "class")
    assert x.prediction == fit.predict(row, kind).iloc[0]
    assert x.view == fit.predict(row, "view").iloc[0]
    serves = x.views.set_index("view")["serves"]
    assert serves.sum() == 1 and serves[x.view]
    own = x.views.loc[x.views["serves"]]
    if name == "numbers":
        assert own["weight"].iloc[0] == x.views["weight"].max()
    else:
        assert own["loss"].iloc[0] == x.views["loss"].min()
    if name != "clusters":
        assert own["says"].iloc[0] == pytest.approx(x.prediction) if name == "numbers" else True
    near, columns = x.neighbours, x.view.split(", ")
    assert list(near["role"]) == ["query"] + ["neighbour"] * 4
    raw = (data[columns] - row[columns].to_numpy()) / fit.design.scale[
        [fit.design.names.index(c) for c in columns]
    ]
    nearest = np.sort(np.linalg.norm(raw.dropna(), axis=1))[:4]
    np.testing.assert_allclose(near["distance"][1:], nearest, atol=1e-9)
    np.testing.assert_allclose(near.loc[0, columns].astype(float), row[columns].iloc[0])
    if name == "two":
        assert near["target"][1:].tolist() == data.loc[near["row"][1:], "y"].tolist()
    for text in (str(x), x._repr_html_()):
        assert str(row.index[0]) in text and columns[0] in text
    assert max(map(len, str(x).splitlines())) <= 100


def test_explanation_without_a_view():
    fit = fit_of("two")
    x = fit.explain(TWO.iloc[[0]].assign(**dict.fromkeys(TWO.columns.drop("y"), np.nan)))
    assert x.view is None and x.prediction is None and x.neighbours.empty
    assert "none: each view has a missing feature" in str(x)
    for row in (TWO, 3):
        with pytest.raises(ld.ArgumentError, match="one row"):
            fit.explain(row)
    with pytest.raises(ld.ArgumentError, match="k must be"):
        fit.explain(TWO.iloc[[0]], k=0)


# Files, and odd data -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two", "three", "numbers", "clusters"])
def test_files(name, tmp_path):
    fit = fit_of(name)
    data = {"two": TWO, "three": three(), "numbers": NUMBERS, "clusters": blobs()}[name]
    fit.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit")
    assert str(back) == str(fit) and str(back.summary()) == str(fit.summary())
    for kind in fit.types:
        assert back.predict(data, kind).equals(fit.predict(data, kind))
    assert str(back.explain(data.iloc[[3]])) == str(fit.explain(data.iloc[[3]]))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"views": np.full((2, 2), 9)}, "views"),
        ({"X": np.zeros((3, 4))}, "has shape"),
        ({"assignment": np.full((240, 2), np.nan)}, "assignment"),
        ({"y": np.full(240, 7.0)}, "y"),
        ({"assigned_view": np.full(240, 5)}, "assigned_view"),
    ],
)
def test_forged_states_are_refused(change, words):
    state = forms.write(fit_of("two").estimates)
    forms.part(ClassViews).read(state, "", {"p": 10, "K": 1, "C": 2})
    with pytest.raises(ValueError, match=words):
        forms.part(ClassViews).read(state | change, "", {"p": 10, "K": 1, "C": 2})


def test_levels_in_a_file_are_codes():
    df = pd.DataFrame({"g": list("aabbcc") * 5, "y": list("ppppqq") * 5})
    state = forms.write(ld.ripr("y ~ g", df).estimates)
    sizes = {"p": len(state["axis_of"]), "K": 1, "C": 2}
    forms.part(VotingViews).read(state, "", dict(sizes))
    for wrong in (0.5, -2.0, 9.0):
        with pytest.raises(ValueError, match="no factor"):
            wild = state | {"X": np.full_like(state["X"], wrong)}
            forms.part(VotingViews).read(wild, "", dict(sizes))


@pytest.mark.long
@given(
    n=st.integers(2, 30), p=st.integers(1, 4), seed=st.integers(0, 10_000),
    kind=st.sampled_from(["none", "classes", "numbers"]), holes=st.sampled_from([0.0, 0.2, 0.7]),
    k=st.sampled_from([None, 1, 3, 100]), grain=st.sampled_from([0, 1]),
    method=st.sampled_from([None, "assignment"]),
)  # fmt: skip
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_data(n, p, seed, kind, holes, k, grain, method):
    """Ties, holes, tiny classes, more neighbours than rows: an answer or an error in words."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(grain)
    X[rng.random((n, p)) < holes] = np.nan
    df = pd.DataFrame(X, columns=[f"x{i}" for i in range(p)])
    df["y"] = rng.choice(["a", "b", "c", None], n) if kind == "classes" else rng.normal(size=n)
    formula = "~ . - y" if kind == "none" else "y ~ ."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        try:
            fit = ld.ripr(formula, df, k=k, threads=1, method=method)
        except ld.LodimError:
            return
        out = fit.predict(df, fit.types[0])
        known = fit.predict(df, "view").notna()
        lost = out.isna() if isinstance(out, pd.Series) else out.isna().any(axis=1)
        voting = method is None and kind != "none"  # rows without a view get the mean of all
        assert not lost.any() if voting else (lost == ~known).all()
        sums = fit.assignment().sum(axis=1).to_numpy()
        assert (np.isclose(sums, 1.0) | (sums == 0)).all()
        assert str(fit) and str(fit.summary()) and len(fit.augment(df)) == n
        if known.any():
            assert str(fit.explain(df[known].iloc[[0]]))


@pytest.mark.parametrize("method", ["vote", "assignment"])
def test_a_call_searches_the_neighbours_once(method, monkeypatch):
    fit = ld.ripr("y ~ .", TWO, max_dim=2, k=10, threads=1, method=method)
    kind, calls = type(fit.estimates), []
    query = kind.query
    monkeypatch.setattr(kind, "query", lambda *a, **k: calls.append(1) or query(*a, **k))
    for name in fit.types:
        fit.predict(TWO, name)
    assert len(calls) == len(fit.types)
    fit.augment(TWO)
    fit.explain(TWO[:1])
    assert len(calls) == len(fit.types) + 2
