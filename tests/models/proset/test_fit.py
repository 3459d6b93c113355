"""proset as a whole: laws of its estimates, batches, candidates, regressor, selection."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lodim as ld
from lodim import forms
from lodim.engine import tiles
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.proset import candidates, distribution, model
from lodim.models.proset.cpu_kernels import CLASSES
from lodim.models.proset.estimate import fit_stages
from lodim.models.proset.objective import BatchObjective, ScoringRows, penalize
from lodim.models.proset.prototypes import join
from lodim.models.proset.training import BatchState


def two_moons(n=240, seed=0):
    rng = np.random.default_rng(seed)
    t, c = rng.uniform(0, np.pi, n), rng.integers(0, 2, n)
    x = np.column_stack([np.cos(t) + c, np.where(c, -1, 1) * np.sin(t) + 0.4 * c])
    frame = pd.DataFrame(x + 0.15 * rng.normal(size=(n, 2)), columns=["a", "b"])
    return frame.assign(noise=rng.normal(size=n), kind=np.where(c, "right", "left"))


def waves(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, (n, 3)), columns=["a", "b", "c"])
    return frame.assign(y=10 + 5 * np.sin(2 * frame["a"]) + 0.5 * rng.normal(size=n))


@pytest.fixture(scope="module")
def moons():
    return ld.proset("kind ~ .", two_moons(), n_batches=2, threads=1)


@pytest.fixture(scope="module", params=["squared", "density"])
def regressor(request):
    return ld.proset("y ~ .", waves(800), loss=request.param, lambda_v=1e-2, threads=1)


# Equation 2.4 ----------------------------------------------------------------------------------


@pytest.mark.long
def test_estimates_are_equation_2_4(moons):
    """From the table of prototypes alone, in original units."""
    new, frame = two_moons(50, seed=1), moons.export()
    v, scale = moons.feature_weights(), moons.design.scale
    q = np.tile([0.5, 0.5], (50, 1)) * 0 + [1 - two_moons()["kind"].eq("right").mean()] * 2
    q[:, 1] = 1 - q[:, 1]
    names = [n for n in moons.design.names if n in frame]
    at = [moons.design.names.index(n) for n in names]
    for _, one in frame.iterrows():
        d = (new[names].to_numpy() - one[names].to_numpy(float)) * v[one["batch"] - 1, at]
        G = np.exp(-0.5 * ((d / scale[at]) ** 2).sum(axis=1))
        q[:, int(one["target"] == "right")] += one["prototype_weight"] * G
    p = q[:, 1] / q.sum(axis=1)
    np.testing.assert_allclose(moons.predict(new), p, atol=1e-10)
    np.testing.assert_allclose(moons.predict(new, "familiarity"), q.sum(axis=1) - 1, rtol=1e-9)
    np.testing.assert_allclose(moons.predict(new, "prob").sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.long
def test_impacts_add_up_to_familiarity(moons):
    batch = moons.design.apply(two_moons(70, seed=1))
    np.testing.assert_allclose(
        moons._impacts(batch).sum(axis=1), moons._familiarity(batch), rtol=1e-12
    )


@pytest.mark.long
def test_far_from_all_prototypes_is_the_null_model(moons):
    far = pd.DataFrame({"a": [1e3], "b": [-1e3], "noise": [0.0]})
    assert moons.predict(far, "familiarity")[0] < 1e-200
    assert moons.predict(far)[0] == pytest.approx(two_moons()["kind"].eq("right").mean())
    assert moons.familiarity(far, quantile=True)[0] <= 0.01


def test_noise_is_left_out(moons):
    weight = moons.coef()
    assert weight["noise"] == 0.0 and weight["a"] > 0 and weight["b"] > 0
    changed = two_moons().assign(noise=1e6)
    np.testing.assert_array_equal(moons.predict(changed), moons.predict(two_moons()))
    assert moons.evaluate(two_moons(400, seed=2))["accuracy"][0] > 0.93


@pytest.mark.long
def test_merging_keeps_predictions():
    """Rows that differ in a feature without weight alone become one prototype."""
    df = pd.concat([two_moons(80)] * 3, ignore_index=True)
    fit = ld.proset("kind ~ a + b", df)
    t = fit.estimates
    assert len(t) < len(t.member)
    share = t.w / np.bincount(t.member_of)
    apart = df.loc[t.member, ["a", "b"]].to_numpy()
    new = df[["a", "b"]].to_numpy()
    d = (new[:, None] - apart) * fit.coef()[["a", "b"]].to_numpy()
    G = np.exp(-0.5 * (d**2).sum(axis=2)) @ share[t.member_of]
    np.testing.assert_allclose(fit.predict(df, "familiarity"), G, rtol=1e-6)


# Candidates ------------------------------------------------------------------------------------


SIZES = st.lists(st.integers(0, 500), min_size=1, max_size=12)


@pytest.mark.long
@given(SIZES, st.integers(1, 1500), st.floats(0.05, 0.95))
@settings(max_examples=200, deadline=None)
def test_algorithm_2_1(sizes, n_candidates, eta):
    """No group gives more than its share, and none less than a smaller one or half a row off."""
    sizes = np.array(sizes)
    drawn = candidates.allocate(sizes, n_candidates, eta)
    most = np.minimum(np.rint(eta * sizes), np.maximum(sizes - 1, 0))
    assert (drawn <= most).all() and (drawn >= 0).all()
    assert drawn.sum() == min(n_candidates, most.sum())
    order = np.argsort(sizes, kind="stable")
    assert (np.diff(drawn[order]) >= 0).all()
    open_ = drawn < most
    assert not open_.any() or np.ptp(drawn[open_]) <= 1


@given(st.integers(0, 1000), st.sampled_from([None, 60]))
@settings(max_examples=30, deadline=None)
def test_split_keeps_the_weight_of_groups(seed, max_rows):
    rng = np.random.default_rng(seed)
    groups, weight = rng.integers(0, 4, 200), rng.dirichlet(np.ones(200))
    eta = (None, 0.5, 0.99)[seed % 3]
    asked = SimpleNamespace(max_rows=max_rows, n_candidates=50 * seed, max_fraction=eta)
    content = rng.integers(0, 150, 200).astype(np.uint64)
    split = candidates.draw_split(groups, weight, content, asked, [seed, 1])
    both = np.isin(split.scoring, split.candidates)
    np.testing.assert_array_equal(split.own >= 0, both)
    np.testing.assert_array_equal(split.candidates[split.own[both]], split.scoring[both])
    if eta is None:
        assert both.sum() == len(split.candidates)
    else:
        assert not both.any()
    rows = np.union1d(split.candidates, split.scoring)
    assert len(rows) <= (max_rows or 200) + 2
    for g in range(4):
        of = weight[groups == g].sum()
        assert split.scoring_weight[groups[split.scoring] == g].sum() == pytest.approx(of)


@pytest.mark.long
def test_weights_are_repeated_rows():
    """Class shares and null model; the objective, for the same candidates."""
    df, times = two_moons(60), np.resize([1, 2, 3], 60)
    long = df.loc[np.repeat(df.index, times)]
    one = ld.proset("kind ~ .", df, weights=times, n_batches=1)
    two = ld.proset("kind ~ .", long)
    assert one.null_deviance == pytest.approx(two.null_deviance)
    np.testing.assert_allclose(one.estimates.level, two.estimates.level, rtol=1e-12)
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(60, 3)), rng.dirichlet(np.ones(60))
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2.0
    i = np.repeat(np.arange(20), np.resize([1, 2, 3], 20))
    shares = penalize(3, 60, one.settings)
    theta = np.concatenate([np.ones(3), weight, [0.0]])
    values = []
    for at, w in ((np.arange(20), np.resize([1.0, 2.0, 3.0], 20)), (i, np.ones(len(i)))):
        half, one = np.full(len(at), 0.5), np.ones(len(at))
        none = np.full(len(at), -1)
        packed = tiles.pack(X[at], np.float64)
        scoring = ScoringRows.from_tiles(packed, y[at], half, one, w / 40, none)
        objective = BatchObjective(scoring, x, np.arange(60) % 2.0, CLASSES, shares, 1)
        values.append(objective(theta))
    np.testing.assert_allclose(values[0][0], values[1][0], rtol=1e-12)
    np.testing.assert_allclose(values[0][1], values[1][1], rtol=1e-9, atol=1e-14)


def test_rows_of_weight_zero_do_not_count():
    df = two_moons(120)
    junk = two_moons(40, seed=5).assign(kind="left", a=9.0)
    both = pd.concat([df, junk], ignore_index=True)
    weights = np.r_[np.ones(120), np.zeros(40)]
    one = ld.proset("kind ~ .", df, lambda_v=1e-3)
    two = ld.proset("kind ~ .", both, weights=weights, lambda_v=1e-3)
    np.testing.assert_allclose(one.predict(df), two.predict(df), rtol=1e-5)
    assert two.estimates.row.max() < 120


def test_all_rows_are_candidates_and_score_without_themselves():
    """The objective of a fit, by Eq. 2.4 of each row from the others."""
    df = two_moons(90)
    fit = ld.proset("kind ~ .", df, lambda_v=0.01)
    t, share = fit.estimates, df["kind"].eq("right").mean()
    assert fit.log["n_candidates"] == fit.log["n_scoring"] == 90
    y, W = df["kind"].eq("right").to_numpy(), fit._impacts(fit.design.apply(df))
    assert len(t.member) == len(t)  # none was merged
    W[t.row, np.arange(len(t))] = 0.0
    same = y[:, None] == t.y[None].astype(bool)
    p = (np.where(y, share, 1 - share) + (W * same).sum(axis=1)) / (1 + W.sum(axis=1))
    s = fit.settings
    penalty, theta = penalize(t.v.shape[1], len(t), s), np.r_[t.v[0], t.w, 0.0]
    net = penalty.ridge @ theta**2 + penalty.l1 @ theta
    assert fit.log["objective"][0] == pytest.approx(-np.log(p).mean() + net, rel=1e-9)
    assert fit.log["deviance"][0] == pytest.approx(-2 * np.log(p).mean(), rel=1e-9)
    other = ld.proset("kind ~ .", df, lambda_v=0.01, seed=9)
    np.testing.assert_array_equal(other.predict(df), fit.predict(df))  # nothing is drawn


def test_the_authors_candidates_do_not_score():
    df = two_moons(100)
    control = {"max_fraction": 0.5}
    one, two = (ld.proset("kind ~ .", df, lambda_v=0.01, seed=s, control=control) for s in (0, 1))
    for fit in (one, two):
        assert fit.log["n_candidates"] + fit.log["n_scoring"] == 100
        assert abs(fit.log["n_candidates"][0] - 50) <= 1
    assert set(one.labels) != set(two.labels)


def test_without_a_feature_there_is_no_prototype():
    """Weights alone would move the class shares, all rows being alike."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    df["y"] = np.where(rng.random(60) < 0.3, "p", "q")
    fit = ld.proset("y ~ .", df, lambda_v=2.0, lambda_w=0.0)
    assert fit.df == 0 and len(fit.estimates) == 0
    share = (df["y"] == "q").mean()
    np.testing.assert_allclose(fit.predict(df), share, rtol=1e-12)
    assert "the estimates are those of the null model" in " ".join(str(fit.summary()).split())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_of_noise_nothing_is_learnt(seed):
    """Whatever penalty looks best held out: no gain is beyond its standard error."""
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(60, 8)), columns=list("abcdefgh"))
    df["y"] = rng.choice(["p", "q", "r"], 60, p=[0.2, 0.3, 0.5])
    fit = ld.proset("y ~ .", df)
    shares = df["y"].value_counts(normalize=True)[list(fit.levels)]
    np.testing.assert_allclose(fit.predict(df), np.tile(shares, (60, 1)), rtol=1e-12)
    assert fit.chosen and fit.dev_ratio == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("spread, beats", [(0.02, True), (0.08, False)])
def test_the_null_model_is_compared_fold_by_fold(spread, beats):
    """The folds' losses differ by far more than the gain of 0.05, but alike for all values."""
    hard = 1.0 + np.array([-0.4, -0.2, 0.0, 0.2, 0.4])
    gain = 0.05 + spread * np.array([1.0, -1.0, 0.0, -1.0, 1.0])
    mean = np.stack([hard, hard - gain, hard + 0.1])
    losses = np.stack([mean, np.full((3, 5), 20.0), np.full((3, 5), 0.1)], axis=2)
    assert model._beats_null(losses) == beats


# Batches ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_update_keeps_the_batches(moons):
    df = two_moons()
    one = ld.proset("kind ~ .", df, threads=1)
    more = one.update(df, n_batches=2)
    assert np.array_equal(more.estimates.single_batch(1).w, one.estimates.w)
    assert np.array_equal(
        more.estimates.single_batch(1).v, one.estimates.v[:, : more.estimates.v.shape[1]]
    )
    assert more.predict(df, "link").equals(moons.predict(df, "link"))
    assert str(more.summary()) == str(moons.summary())
    with pytest.raises(ld.DataError, match="with the training rows of the fit"):
        one.update(two_moons(seed=3), n_batches=3)
    assert one.update(two_moons(seed=3)).settings == one.settings


@pytest.mark.long
def test_update_keeps_penalties_that_were_chosen():
    df = two_moons(120)
    one = ld.proset("kind ~ .", df, lambda_v=None)
    more = one.update(df, n_batches=2)
    assert more.settings.lambda_v == one.settings.lambda_v
    assert list(more.chosen) == list(one.chosen) == ["lambda_v"]
    assert np.array_equal(more.estimates.single_batch(1).w, one.estimates.w)


@pytest.mark.long
def test_batches_are_added_with_the_same_response_alone():
    df = waves(150)
    one = ld.proset("y ~ .", df)
    for y in (-df["y"], df["y"].to_numpy()[::-1], 2 * df["y"]):
        with pytest.raises(ld.DataError, match="the response of the fit"):
            one.update(df.assign(y=y), n_batches=2)


def test_watched_scores_are_those_of_the_fit(moons):
    new = two_moons(90, seed=4)
    problem = prepare(model_of(ld.proset), "kind ~ .", two_moons(), {"threads": 1})
    stages = fit_stages(
        problem.batch, problem.family, moons.settings, eval_batch=moons.design.apply(new)
    )
    scores = [next(stages)[2] for _ in range(2)]
    np.testing.assert_allclose(scores[-1][:, 0], moons.predict(new, "link"), rtol=1e-9)


@pytest.mark.long
def test_xor_finds_its_features_and_more_batches_do_no_harm():
    df, new = ld.xor(2500, 3, 3, seed=1), ld.xor(2500, 3, 3, seed=2)
    losses = []
    for b in (1, 3):
        fit = ld.proset("y ~ .", df, n_batches=b, n_candidates=400)
        assert [df.columns[k] for k in fit.estimates.features] == ["x1", "x2", "x3"]
        losses.append(fit.evaluate(new)["log_loss"][0])
    assert losses[0] < 0.35 and losses[1] < losses[0] + 0.005


def test_an_empty_batch_ends_the_growth():
    fit = ld.proset("kind ~ .", two_moons(), lambda_w=1e4, n_batches=5)
    assert len(fit.estimates) == 0 and fit.estimates.n_batches == 1 and fit.df == 0
    share = two_moons()["kind"].eq("right").mean()
    np.testing.assert_allclose(fit.predict(two_moons()), share)
    assert "batch 1 is empty" in str(fit.summary())


@pytest.mark.long
def test_own_prototypes_are_left_out():
    """The training estimate of a row is that of the model without the row's prototype."""
    fit = ld.proset("kind ~ .", two_moons(100), control={"precision": "float64"})
    problem = prepare(model_of(ld.proset), "kind ~ .", two_moons(100), {})
    training = BatchState(problem.batch, problem.family, problem.settings)
    training.add(fit.estimates.single_batch(1).with_all_features(_all_features(fit, problem)))
    t, j = fit.estimates, 3
    member = t.member[np.flatnonzero(t.member_of == j)[0]]
    G = fit._impacts(problem.batch)[member]
    G[j] *= 1 - 1 / np.sum(t.member_of == j)
    assert training.b[member] == pytest.approx(1 + G.sum())


def _all_features(fit, problem):
    return tiles.rows(problem.batch.X, fit.estimates.row)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::lodim.errors.ConvergenceWarning")  # weights without penalty
def test_heavy_prototypes_in_float32_leave_estimates_above_zero():
    """G of a row with itself is not one in float32: its own prototype would not go away."""
    rng = np.random.default_rng(3)
    df = pd.DataFrame({"a": rng.lognormal(0, 2, 600), "b": rng.normal(size=600)})
    df["y"] = np.where(np.log(df["a"]) + 0.3 * rng.normal(size=600) > 0, "p", "q")
    fit = ld.proset("y ~ .", df, dtype="float32", lambda_v=1e-6, lambda_w=0.0)
    assert fit.estimates.w.max() > 1e4 and np.isfinite(fit.log["deviance"]).all()


# Numbers ---------------------------------------------------------------------------------------


@pytest.mark.long
def test_density_integrates_to_one_and_has_the_moments():
    fit = ld.proset("y ~ .", waves(), loss="density", n_batches=2)
    new, at = waves(20, seed=1), np.linspace(-30, 50, 4001)
    p = fit.density(new, at).to_numpy()
    mean = np.trapezoid(p * at, at)
    np.testing.assert_allclose(np.trapezoid(p, at), 1.0, atol=1e-6)
    np.testing.assert_allclose(mean, fit.predict(new), atol=1e-5)
    variance = np.trapezoid(p * at**2, at) - mean**2
    np.testing.assert_allclose(variance, fit.predict(new, "variance"), rtol=1e-4)


@pytest.mark.long
def test_evaluate_says_the_likelihood_of_a_density():
    df = waves()
    fit = ld.proset("y ~ .", df, loss="density")
    each = [fit.density(df.iloc[[i]], y).iloc[0, 0] for i, y in enumerate(df["y"])]
    row = fit.evaluate(df)
    assert "nll" not in ld.proset("y ~ .", df).evaluate(df)
    np.testing.assert_allclose(row["nll"][0], -np.mean(np.log(each)), rtol=1e-6)


def test_density_inverts_its_distribution():
    fit = ld.proset("y ~ .", waves(), loss="density")
    batch = fit.design.apply(waves(30, seed=1))
    t, c = fit.estimates, fit.calibration
    levels = np.array([0.1, 0.5, 0.9])
    q = distribution.quantiles(t, c, batch.X, 30, levels, 1)
    for k, level in enumerate(np.interp(levels, np.arange(101) / 100, c.levels)):
        F = distribution.cdf(t, batch.X, 30, q[:, k], 1)
        np.testing.assert_allclose(F, level, atol=5e-3)


@pytest.mark.long
def test_intervals_cover(regressor):
    new = waves(1500, seed=7)
    for level in (0.5, 0.8, 0.9):
        out = regressor.predict(new, "interval", level=level)
        cover = new["y"].between(out["lower"], out["upper"]).mean()
        assert abs(cover - level) < 0.06, level
    q = regressor.predict(new, "quantile", quantiles=[0.1, 0.5, 0.9])
    assert list(q) == ["q0.1", "q0.5", "q0.9"] and (q.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    assert regressor.evaluate(new)["dev_ratio"][0] > 0.6


@pytest.mark.long
@pytest.mark.parametrize("loss", ["squared", "density"])
def test_intervals_of_several_batches_cover(loss):
    """Later batches are fitted to rows that the first has left out: their errors are too small."""
    fits = [
        ld.proset("y ~ .", waves(800, seed=s), loss=loss, n_batches=4, lambda_v=1e-2, threads=1)
        for s in range(4)
    ]
    new = waves(1500, seed=7)
    for level in (0.5, 0.9):
        out = [fit.predict(new, "interval", level=level) for fit in fits]
        cover = np.mean([new["y"].between(one["lower"], one["upper"]).mean() for one in out])
        assert -0.05 < cover - level < 0.08, level  # too wide is the lesser fault


@pytest.mark.long
def test_a_density_of_whole_numbers_is_refused():
    """Its likelihood grows without bound as normals on the repeated values narrow."""
    rng = np.random.default_rng(0)
    df = waves(200).assign(y=lambda d: rng.poisson(np.exp(d["a"])))
    with pytest.raises(ld.DataError, match=r"'y' has repeated whole numbers in \d+ of 200 rows"):
        ld.proset("y ~ .", df, loss="density")
    assert ld.proset("y ~ .", df, lambda_v=0.1).estimates.loss != 2
    prices = waves(60).assign(y=lambda d: (1e6 * d["y"]).round())  # whole, but no two alike
    assert len(ld.proset("y ~ .", prices, loss="density", lambda_v=0.1).estimates)


@pytest.mark.long
def test_the_unit_of_the_response_does_not_matter(regressor):
    df = waves(800)
    loss = regressor.settings.loss
    other = ld.proset("y ~ .", df.assign(y=1000 * df["y"]), loss=loss, lambda_v=1e-2)
    np.testing.assert_allclose(other.predict(df), 1000 * regressor.predict(df), rtol=1e-4)


def test_losses_that_play_no_part_are_refused():
    with pytest.raises(ld.ArgumentError, match="loss needs a numeric response: leave out loss='d"):
        ld.proset("kind ~ .", two_moons(), loss="density")
    with pytest.raises(ld.ArgumentError, match=r"needs loss='density': leave out lambda_u=0\.1"):
        ld.proset("y ~ .", waves(), control={"lambda_u": 0.1})


@pytest.mark.long
def test_refused_predictions(regressor, moons):
    df = waves()
    for arguments, words in (
        ({"type": "interval", "level": 1.0}, "level must be between 0 and 1"),
        ({"type": "quantile", "quantiles": ["a"]}, "quantiles must be numbers"),
        ({"type": "response", "level": 0.5}, "level= needs type='interval'"),
    ):
        with pytest.raises(ld.ArgumentError, match=words):
            regressor.predict(df, **arguments)
    with pytest.raises(ld.ArgumentError, match="type must be one of"):
        moons.predict(two_moons(), "interval")
    with pytest.raises(ld.ArgumentError, match="density"):
        moons.density(two_moons(), [0.0])


# Selection -------------------------------------------------------------------------------------


@pytest.mark.long
def test_cv_over_penalties_and_batches():
    df = two_moons()
    grid = {"lambda_v": [1e-3, 1e-1], "lambda_w": [1e-8, 1e-4], "n_batches": [1, 2]}
    cv = ld.cv(ld.proset, "kind ~ .", df, grid=grid, folds=4)
    frame = cv.tidy()
    assert len(frame) == 8 and cv.lambda_1se >= cv.lambda_min
    assert list(frame["lambda_v"][:4]) == [0.1] * 4  # sparse models first
    assert cv.best.settings.lambda_v == cv.lambda_min
    again = ld.proset("kind ~ .", df, **{k: cv.best.arguments[k] for k in grid})
    assert again.predict(df).equals(cv.best.predict(df))


@pytest.mark.long
def test_cv_over_pairs_of_penalties():
    """Stage 1 of Algorithm 2.2: the first row within one standard error."""
    rng = np.random.default_rng(1)
    pairs = pd.DataFrame({"lambda_v": 10 ** rng.uniform(-4, -1, 5), "lambda_w": 1e-6})
    pairs = pairs.sort_values("lambda_v", ascending=False)
    cv = ld.cv(ld.proset, "kind ~ .", two_moons(), grid=pairs, folds=4, rule="1se")
    frame = cv.tidy()
    np.testing.assert_array_equal(frame["lambda_v"], pairs["lambda_v"])
    limit = frame["mean"].min() + frame["se"][frame["mean"].idxmin()]
    assert cv.index_1se == (frame["mean"] <= limit).idxmax()
    assert cv.best.settings.lambda_v == frame["lambda_v"][cv.index_1se]
    with pytest.raises(ld.ArgumentError, match="at least one row"):
        ld.cv(ld.proset, "kind ~ .", two_moons(), grid=pairs.iloc[:0])


@pytest.mark.long
def test_automatic_penalties_are_chosen_or_those_of_the_family():
    numeric, classes = ld.proset("y ~ .", waves(1250)), ld.proset("kind ~ .", two_moons(1250))
    assert (numeric.settings.lambda_v, numeric.settings.lambda_w) == (8e-3, 8e-7)
    assert (classes.settings.lambda_v, classes.settings.lambda_w) == (8e-3, 1e-8)
    assert not numeric.chosen and not classes.chosen
    few = ld.proset("kind ~ .", two_moons(100), n_batches=2)
    assert list(few.chosen) == ["lambda_v"] and len(few.selection) == 6
    assert few.settings.lambda_v == ld.proset("kind ~ .", two_moons(100)).settings.lambda_v
    assert "lambda_v: cross-validation over 6 settings" in " ".join(str(few.summary()).split())
    assert numeric.update(waves(), lambda_v=1e-3).settings.lambda_w == 1e-6
    with pytest.raises(ld.ArgumentError, match="lambda_v"):
        ld.proset("y ~ .", waves(), lambda_v="large")


def test_cv_keeps_groups_of_rows_together():
    """The held-out loss of whole groups, by fitting the others and looking at each."""
    df, group = two_moons(90), np.repeat(list("abc"), 30)
    cv = ld.cv(ld.proset, "kind ~ .", df, folds=group, lambda_v=0.01, seed=0)
    by_hand = []
    for name in "abc":
        one = ld.proset("kind ~ .", df[group != name], lambda_v=0.01, seed=0)
        by_hand.append(one.augment(df[group == name])[".loss"].mean())
    assert cv.tidy()["mean"][0] == pytest.approx(np.mean(by_hand), rel=1e-4)


@pytest.mark.parametrize("value", [np.array([1e-3, 1e-2]), [1e-3]])
def test_a_penalty_is_one_number(value):
    with pytest.raises(ld.ArgumentError, match="lambda_v must be"):
        ld.proset("kind ~ .", two_moons(), lambda_v=value)


@pytest.mark.long
def test_open_settings_are_chosen():
    df = two_moons()
    fit = ld.proset("kind ~ .", df, lambda_v=None, n_batches=None, control={"max_stages": 2})
    assert set(fit.chosen) == {"n_batches", "lambda_v"}
    tried = fit.selection["lambda_v"]
    assert tried.min() <= fit.settings.lambda_v <= tried.max()
    with pytest.raises(ld.ArgumentError, match="a path over lambda_v needs a fixed lambda_w"):
        ld.path(ld.proset, "kind ~ .", df, lambda_w=None)


@pytest.mark.long
@pytest.mark.parametrize("penalty", ["lambda_v", "lambda_w"])
def test_path_begins_at_nothing(penalty, axes):
    path = ld.path(ld.proset, "kind ~ .", two_moons(), n_lambda=6, penalty=penalty)
    frame = path.glance()
    assert frame[penalty].is_monotonic_decreasing and frame["dev_ratio"].iloc[-1] > 0.5
    sizes = [len(fit.estimates) for fit in path.fits] if penalty == "lambda_w" else frame["df"]
    assert np.array(sizes)[0] == 0 < np.array(sizes)[-1]
    value = path.lambdas[2]
    both = {name: getattr(path.at(value).settings, name) for name in ("lambda_v", "lambda_w")}
    assert both[penalty] == value and path.at(value).arguments | both == path.at(value).arguments
    alone = ld.proset("kind ~ .", two_moons(), **both)
    assert alone.predict(two_moons()).equals(path.at(value).predict(two_moons()))
    assert path.plot(ax=axes) is axes
    with pytest.raises(ld.ArgumentError, match="lambda_v, lambda_w"):
        ld.path(ld.proset, "kind ~ .", two_moons(), penalty="lambda_")


# Tables and files ------------------------------------------------------------------------------


def test_table_of_prototypes(moons):
    df, frame = two_moons(), moons.export()
    assert len(frame) == len(moons.estimates) == moons.glance()["n_prototypes"][0]
    for _, one in frame.head(20).iterrows():
        assert df.loc[one["row"], "kind"] == one["target"]
        assert df.loc[one["row"], "a"] == pytest.approx(one["a"])


def test_files_with_other_numbers_are_refused(moons, tmp_path):
    t = moons.estimates
    sizes = {"p": len(moons.design.names), "K": moons.family.n_scores, "C": len(moons.levels)}
    changes = [{"features": t.features + 5}, {"w": -t.w}, {"batch": t.batch + 2}, {"y": t.y + 0.5}]
    changes += [{"v": t.v[:, :1]}, {"level": np.zeros(2)}, {"loss": 1}, {"w": t.w * np.nan}]
    for change in changes:
        with pytest.raises(ValueError):
            forms.part(type(t)).read(forms.write(t) | change, "", dict(sizes))
    moons.save(tmp_path / "fit")
    back = ld.load(tmp_path / "fit").estimates
    for name, value in vars(t).items():
        assert np.array_equal(getattr(back, name), value), name
    assert join([t.single_batch(1), t.single_batch(2)]).n_batches == 2


def test_without_prototypes_no_feature_is_in_use(tmp_path):
    one = ld.proset("kind ~ .", two_moons(), lambda_w=1e4)
    one.save(tmp_path / "empty.lodim")
    again = ld.load(tmp_path / "empty.lodim").predict(two_moons())
    np.testing.assert_array_equal(again, one.predict(two_moons()))
    assert len(one.estimates) == 0 and one.df == 0
    assert (one.tidy()["estimate"] == 0.0).all()


@pytest.mark.long
def test_noise_is_not_followed():
    """Where classes hardly differ, the default says little more than their shares."""
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        df = pd.DataFrame(rng.normal(size=(500, 6)), columns=list("abcdef"))
        df["k"] = np.where(0.4 * df["a"] + rng.logistic(size=500) > 1.0, "yes", "no")
        fit = ld.proset("k ~ .", df[:200])
        share = df["k"][:200].value_counts(normalize=True)
        null = -np.log(share[df["k"][200:]].to_numpy()).mean()
        losses.append(fit.evaluate(df[200:])["log_loss"][0] - null)
    assert np.mean(losses) < 0.01  # with the author's lambda_v, 1e-3, it is .3


@pytest.mark.long
def test_lambda_w_by_cross_validation():
    iris = ld.data("iris")
    fit = ld.proset("species ~ petal_length + petal_width", iris, lambda_w=None)
    assert fit.settings.lambda_w > 0 and "lambda_w" in fit.chosen


@pytest.mark.parametrize("size", [300.0, 1500.0])
def test_an_offset_that_is_as_good_as_certain_and_wrong(size):
    flowers = ld.data("iris").query("species != 'setosa'")
    flowers = flowers.assign(species=flowers["species"].astype(str))
    offset = np.where(flowers["species"] == "virginica", -size, size)
    given = {"n_batches": 1, "lambda_v": 0.1, "lambda_w": 0.1, "threads": 1}
    fit = ld.proset("species ~ .", flowers, offset=offset, **given)
    assert fit.evaluate(flowers, offset=offset)["accuracy"].item() > 0.85


def test_fits_of_a_path_have_no_intervals_and_one_group_no_folds():
    df = pd.DataFrame({"x": np.linspace(-1, 1, 60)}).assign(y=lambda d: d["x"] ** 2)
    path = ld.path(ld.proset, "y ~ x", df, n_lambda=3, threads=1)
    with pytest.raises(ld.ArgumentError, match="this fit stores no calibration"):
        path.fits[0].predict(df, "interval")
    one = ld.proset("y ~ x", df, lambda_v=0.1, groups=np.zeros(60, int), threads=1)
    assert one.n == 60
