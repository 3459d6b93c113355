"""Conformal intervals and sets, compared with their definitions written out."""

import warnings

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.fitting import storage
from lodim.uncertainty.conformity import HeldOut, adaptive, held_out_weights

N = 60
CHEAP = {
    ld.gbmap: {"m": 2, "lambda_": 0.1},
    ld.proset: {"lambda_v": 1e-3},
    ld.costnet: {"lambda_": 0.05},
    ld.ripr: {"max_dim": 2},
    ld.melm: {"gamma": 1.0, "n_starts": 2},
    ld.glm: {},
}
models = pytest.mark.parametrize("model", CHEAP, ids=lambda m: m.__name__)


def frame(n=N, seed=0):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    df["g"] = rng.choice(["r", "s", "t"], n)
    df["y"] = df["a"] + 0.5 * df["b"] ** 2 + (0.3 + 0.3 * np.abs(df["a"])) * rng.normal(size=n)
    df["k"] = np.where(df["a"] + 0.7 * rng.normal(size=n) > 0, "yes", "no")
    df["k3"] = pd.cut(df["y"], [-9, -0.3, 0.7, 99], labels=["low", "mid", "top"]).astype(str)
    df["n"] = rng.poisson(np.exp(0.5 * df["a"] + 1))
    df["w"] = rng.integers(1, 5, n) / 2
    df["u"] = np.arange(n) // 3
    return df


def cheap(model):
    return CHEAP[model] | ({} if model is ld.glm else {"threads": 1})


def by_definition(low, high, step, score, level):
    """Limits of one row: order statistics of Barber et al. (2021), Sect. 3."""
    n, alpha = len(score), 1.0 - level
    upper = np.sort(high + step * score)[int(np.ceil(round((1 - alpha) * (n + 1), 9))) - 1]
    lower = np.sort(low - step * score)[int(np.floor(round(alpha * (n + 1), 9))) - 1]
    return lower, upper


# Beside the definitions ---------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_cv_plus_is_its_definition(level):
    df, new, fold = frame(), frame(8, seed=1), np.arange(N) % 5
    found = ld.conformal(ld.glm, "y ~ a + b + g", df, folds=fold, level=level)
    fits = [ld.glm("y ~ a + b + g", df[fold != k]) for k in range(5)]
    score = np.array([abs(df["y"][i] - fits[fold[i]].predict(df[i : i + 1]))[i] for i in range(N)])
    mean = np.array([fit.predict(new) for fit in fits])
    one = np.ones(N)
    expected = [by_definition(m[fold], m[fold], one, score, level) for m in mean.T]
    shown = found.predict(new)
    np.testing.assert_allclose(shown[["lower", "upper"]], expected, rtol=1e-9)
    np.testing.assert_allclose(shown["fit"], ld.glm("y ~ a + b + g", df).predict(new), rtol=1e-9)


def test_jackknife_plus_leaves_out_one_row_each():
    df, new = frame(20), frame(4, seed=1)
    found = ld.conformal(ld.glm, "y ~ a", df, method="jackknife+")
    fits = [ld.glm("y ~ a", df.drop(index=i)) for i in range(20)]
    score = np.array([abs(df["y"][i] - fits[i].predict(df[i : i + 1])[i]) for i in range(20)])
    mean = np.array([fit.predict(new) for fit in fits])
    expected = [by_definition(m, m, np.ones(20), score, 0.9) for m in mean.T]
    np.testing.assert_allclose(found.predict(new)[["lower", "upper"]], expected, rtol=1e-9)


def test_split_measures_by_the_rows_held_out():
    df, new = frame(), frame(4, seed=1)
    found = ld.conformal(ld.glm, "y ~ a", df, method="split", folds=3)
    score = found.held_out.score
    assert len(score) == N / 3 and found.fit.n == 2 * N / 3
    reach = np.sort(score)[int(np.ceil(0.9 * (len(score) + 1))) - 1]
    shown = found.predict(new)
    np.testing.assert_allclose(shown["upper"] - shown["fit"], reach)
    np.testing.assert_allclose(shown["fit"] - shown["lower"], reach)


@pytest.mark.parametrize("score", ["normalized", "quantile"])
def test_bands_of_the_model(score):
    df, new, fold = frame(), frame(5, seed=1), np.arange(N) % 3
    found = ld.conformal(ld.proset, "y ~ a + b", df, folds=fold, score=score, lambda_v=1e-3)

    def band(fit, rows):
        if score == "quantile":
            return *fit.predict(rows, "quantile", quantiles=[0.05, 0.95]).to_numpy().T, 1.0
        mean = fit.predict(rows).to_numpy()
        return mean, mean, np.sqrt(fit.predict(rows, "variance").to_numpy())

    # As the folds of lodim do it: centred and scaled by the training rows, settings those of all.
    of_rows = [band(fit, df) for fit in found.fits]
    own = [
        np.broadcast_to(np.array(each, dtype=object)[j], N) for each in of_rows for j in range(3)
    ]
    own = np.array(own, dtype=float).reshape(3, 3, N)[fold, :, np.arange(N)]
    scores = np.maximum(own[:, 0] - df["y"], df["y"] - own[:, 1]) / own[:, 2]
    order = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    np.testing.assert_allclose(found.held_out.score[order], scores, rtol=1e-6, atol=1e-9)
    shown = found.predict(new)
    bands = [np.broadcast_arrays(*band(fit, new)) for fit in found.fits]
    for i in range(5):
        low, high, step = (np.array([b[j][i] for b in bands])[fold] for j in range(3))
        expected = by_definition(low, high, step, scores, 0.9)
        np.testing.assert_allclose(shown[["lower", "upper"]].to_numpy()[i], expected, rtol=1e-6)


@pytest.mark.parametrize("response", ["k", "k3"])
def test_sets_are_their_definition(response):
    df, new, fold = frame(), frame(9, seed=1), np.arange(N) % 4
    formula, held = f"{response} ~ a + b", {"m": 2, "lambda_": 0.3, "n_starts": 1, "threads": 1}
    found = ld.conformal(ld.gbmap, formula, df, folds=fold, level=0.8, **held)
    p = [fit.predict(df, "prob").to_numpy() for fit in found.fits]
    code = pd.Categorical(df[response]).codes
    score = np.array([1.0 - p[fold[i]][i, code[i]] for i in range(N)])
    new_p = np.array([fit.predict(new, "prob").to_numpy() for fit in found.fits])
    expected = [
        [(score < 1.0 - new_p[fold, i, c]).sum() < 0.8 * (N + 1) for c in range(p[0].shape[1])]
        for i in range(9)
    ]
    shown = found.predict(new)
    levels = list(found.fit.levels)
    assert shown[levels].to_numpy(bool).tolist() == expected
    words = ["{" + ", ".join(np.array(levels)[row]) + "}" for row in np.array(expected)]
    assert shown[".set"].tolist() == words


@pytest.mark.parametrize("method", ["cv+", "split"])
def test_sets_by_class_compare_with_held_out_rows_of_the_class(method, tmp_path):
    df, new = frame(), frame(9, seed=1)
    found = ld.conformal(ld.glm, "k3 ~ a + b", df, method=method, level=0.7, by="class")
    held, levels = found.held_out, list(found.fit.levels)
    new_p = np.array([fit.predict(new, "prob").to_numpy() for fit in found.fits])
    expected = np.empty((9, 3), bool)
    for c in range(3):
        fold, score = held.fold[held.of_class == c], held.score[held.of_class == c]
        below = score[:, None] < 1.0 - new_p[fold, :, c]
        expected[:, c] = below.sum(axis=0) < 0.7 * (len(score) + 1)
    shown = found.predict(new)
    np.testing.assert_array_equal(shown[levels].to_numpy(bool), expected)
    assert "over new rows of each class" in " ".join(str(found).split())
    assert found.tidy()["class"].tolist() == levels * 4
    found.save(tmp_path / "file")
    again = ld.load(tmp_path / "file")
    pd.testing.assert_frame_equal(again.predict(new), shown)
    assert str(again) == str(found)


def test_sets_by_class_cover_each_class():
    """Of a rare class that the model seldom predicts; without by="class" it is covered too seldom.

    900 new rows: about 90 of the rare class, whose coverage has a standard error of about 0.04.
    """
    rng = np.random.default_rng(2)

    def sample(n):
        k = np.where(rng.random(n) < 0.1, "rare", "usual")
        return pd.DataFrame({"a": rng.normal(size=n) + (k == "rare"), "k": k})

    df, new = sample(600), sample(900)
    rare = {}
    for by in (None, "class"):
        found = ld.conformal(ld.glm, "k ~ a", df, level=0.8, by=by)
        rare[by] = found.coverage(new, by="k").set_index("k")["coverage"]["rare"]
    assert rare["class"] > 0.68 and rare[None] < 0.3


def test_a_class_with_too_few_rows_is_in_every_set():
    df = frame().assign(k3=lambda d: d["k3"].where(np.arange(N) > 4, "few"))
    found = ld.conformal(ld.glm, "k3 ~ a", df, by="class", level=0.9)
    words = "at most 0.8.* for 5 held-out rows of class 'few', not 0.9: every set has this class"
    with pytest.warns(ld.DataWarning, match=words):
        assert found.predict(frame(5, seed=1))["few"].all()


def test_empty_sets_are_counted():
    df, new = frame(200), frame(50, seed=1)
    found = ld.conformal(ld.glm, "k ~ a", df, level=0.5)
    shown = found.predict(new)
    empty = (shown[".set"] == "{}").mean()
    assert empty > 0.0 and found.coverage(new)["empty"][0] == pytest.approx(empty)
    assert "Empty sets" in str(found) and "%" in str(found)
    assert found.tidy()["empty"].iloc[0] > found.tidy()["empty"].iloc[-1]


@pytest.mark.parametrize(
    "model, formula, how",
    [
        (ld.glm, "y ~ a + g", {}),
        (ld.glm, "k3 ~ a + b", {}),
        (ld.glm, "k3 ~ a + b", {"by": "class"}),
        (ld.gbmap, "y ~ a + g", {"method": "split"}),
    ],
)
def test_coverage_on_the_rows_that_were_held_out_warns(model, formula, how, tmp_path):
    df, new = frame(200), frame(200, seed=1)
    found = ld.conformal(model, formula, df, **cheap(model) | how)
    found.save(tmp_path / "file")
    for one in (found, ld.load(tmp_path / "file")):
        share = "(50|51)%" if "method" in how else "100%"
        with pytest.warns(ld.DataWarning, match=f"{share} of the rows were also used to calibrate"):
            one.coverage(df)
        with pytest.warns(ld.DataWarning, match="of the rows were also used to calibrate"):
            one.coverage(pd.concat([df, new[:100]]))
        one.coverage(new)


def test_rows_that_repeat_are_not_taken_for_training_rows():
    rng = np.random.default_rng(0)
    df, new = (pd.DataFrame(rng.integers(0, 3, (200, 2)), columns=["a", "y"]) for _ in range(2))
    assert ld.conformal(ld.glm, "y ~ a", df).coverage(new)["n"][0] == 200


def test_adaptive_scores_by_hand():
    p = np.array([[0.5, 0.2, 0.3], [0.4, 0.4, 0.2]])
    expected = [[0.25, 0.9, 0.65], [0.4, 0.4, 1.0]]
    np.testing.assert_allclose(adaptive(p, np.array([0.5, 1.0])), expected)


def test_randomized_sets_cover_as_they_say_and_hold_still():
    """What is random depends on a row's features alone: so do sets, in any company and order."""
    df, new = frame(300), frame(400, seed=1)
    found = ld.conformal(ld.glm, "k3 ~ a + b", df, score="aps", level=0.8)
    shown = found.predict(new)
    for i in (0, 7):
        pd.testing.assert_frame_equal(found.predict(new[i : i + 1]), shown[i : i + 1])
    mixed = new.sample(frac=1.0, random_state=0)
    pd.testing.assert_frame_equal(found.predict(mixed), shown.loc[mixed.index])
    share = found.coverage(new).iloc[0]
    assert abs(share["coverage"] - 0.8) < 3.0 * np.hypot(
        share["std_error"], (0.8 * 0.2 / 300) ** 0.5
    )
    u = found.says.uniforms(found.fit, found.fit._reader.apply(new))
    assert np.abs(np.sort(u) - (np.arange(400) + 0.5) / 400).max() < 1.63 / 400**0.5
    other = ld.conformal(ld.glm, "k3 ~ a + b", df, score="aps", level=0.8, seed=1)
    assert (other.says.uniforms(other.fit, other.fit._reader.apply(new)) != u).all()


def test_weighted_quantiles():
    rng = np.random.default_rng(0)
    weight, score = rng.integers(1, 4, 30).astype(float), rng.normal(size=30)
    held = HeldOut(np.zeros(30, int), score, weight, None)
    for level in (0.05, 0.5, 0.9, 0.95):
        order = np.argsort(score)
        reached = np.cumsum(weight[order]) >= level * (weight.sum() + 1.0)
        assert held.quantile(level) == score[order][reached][0]
    assert held.quantile(0.999) == np.inf and held.most == weight.sum() / (weight.sum() + 1)


@pytest.mark.parametrize("level", np.arange(1, 20) / 20)
def test_levels_that_are_reached_exactly(level):
    held = HeldOut(np.zeros(19, int), np.arange(19.0), np.ones(19), None)
    assert held.quantile(level) == round(20 * level) - 1
    scores = np.arange(19.0)[None, :, None] + 0.5
    assert held.sets(scores, level).sum() == round(20 * level) - 1


def test_weights_of_rows_and_of_groups():
    given, units = np.array([1.0, 3.0, 2.0, 2.0]), np.array([7.0, 7.0, 1.0, 2.0])
    assert held_out_weights(given, None).tolist() == [0.5, 1.5, 1.0, 1.0]
    assert held_out_weights(given, units).tolist() == [0.25, 0.75, 1.0, 1.0]


# What follows -------------------------------------------------------------------------------------


@models
def test_every_model_and_its_file(model, tmp_path):
    df, new = frame(), frame(30, seed=1)
    new.loc[3, "a"] = np.nan
    formula = "k3 ~ a + b + c + g" if model is ld.melm else "y ~ a + b + c + g"
    found = ld.conformal(model, formula, df, folds=3, level=0.75, **cheap(model))
    shown = found.predict(new)
    assert len(shown) == 30 and f"conformal of {model.__name__}" in str(found)
    if model is ld.melm:
        assert (shown["low"] | shown["mid"] | shown["top"]).mean() > 0.8
    else:
        known = shown.dropna()
        assert (known["lower"] < known["upper"]).all() and len(known) >= 29
    covered = found.coverage(new)
    assert covered["coverage"][0] > 0.5 and found.summary().as_text() and len(found.tidy()) == 4
    found.save(tmp_path / "file")
    again = ld.load(tmp_path / "file")
    pd.testing.assert_frame_equal(again.predict(new), shown)
    pd.testing.assert_frame_equal(again.coverage(new), covered)
    assert str(again) == str(found)


@pytest.mark.parametrize(
    "keys, value",
    [
        (("model",), "lm"),
        (("fits",), lambda v: v[:1]),
        (("fits", 0, "design", "scale"), lambda v: -v),
        (("held_out", "fold"), lambda v: v + 5),
        (("held_out", "weight"), lambda v: -v),
        (("held_out", "weight"), lambda v: v * 0.0),
        (("held_out", "score"), lambda v: v[:-1]),
        (("held_out", "score"), lambda v: v * np.nan),
        (("says", "score"), "lac"),
        (("says", "level"), 1.0),
        (("says", "seed"), "x"),
        (("guarantee", "method"), "cv"),
        (("guarantee", "n_fits"), 0),
        (("guarantee", "unit"), 3),
        (("guarantee", "chosen"), [3]),
        (("table", "width"), lambda v: v[1:]),
        (("table",), {}),
    ],
)
def test_forged_files_are_refused(keys, value, tmp_path):
    ld.conformal(ld.glm, "y ~ a", frame(), folds=3).save(tmp_path / "file")
    kind, state = storage.read(tmp_path / "file")
    inner = state
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value(inner[keys[-1]]) if callable(value) else value
    storage.write(tmp_path / "file", kind, state)
    with pytest.raises(ld.StoreError, match="does not contain a valid conformal"):
        ld.load(tmp_path / "file")


def test_a_split_in_a_file_has_its_fit_once(tmp_path):
    found = ld.conformal(ld.glm, "y ~ a", frame(), method="split")
    found.save(tmp_path / "file")
    again = ld.load(tmp_path / "file")
    assert again.fit is again.fits[0]
    pd.testing.assert_frame_equal(again.predict(frame()), found.predict(frame()))


def test_columns_in_another_order():
    df, new = frame(), frame(5, seed=1)
    found = ld.conformal(ld.glm, "y ~ a + b", df).predict(new)
    other = ld.conformal(ld.glm, "y ~ b + a", df[df.columns[::-1]]).predict(new)
    np.testing.assert_allclose(other, found, rtol=1e-9)


@pytest.mark.parametrize("groups", [None, "u"])
@pytest.mark.parametrize("method", ["cv+", "split"])
@pytest.mark.parametrize("response", ["y", "k3"])
def test_rows_are_held_out_by_position_whatever_they_hold(response, method, groups):
    """Exchangeable with new rows are held-out rows only if their content did not choose them."""

    def held_out(df):
        few = {"method": method, "groups": groups, "seed": 4}
        return ld.conformal(ld.glm, f"{response} ~ a", df, **few).held_out.fold

    one, other = frame(), frame(seed=7)
    np.testing.assert_array_equal(held_out(one), held_out(other))
    assert np.all(np.bincount(held_out(one)) > 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", [4, 6, 11])
@pytest.mark.parametrize("n", [18, 20, 50])
def test_split_covers_what_theory_gives(n, seed):
    """The share of new rows covered over 300 samples is ceil(level (m + 1)) / (m + 1)."""
    rng, covered = np.random.default_rng(seed), []

    def sample(n):
        df = pd.DataFrame(rng.standard_t(3, size=(n, 2)), columns=["a", "b"])
        return df.assign(y=0.5 * df["a"] + rng.standard_t(3, size=n))

    for _ in range(300):
        df, new = sample(n), sample(200)
        found = ld.conformal(ld.glm, "y ~ .", df, method="split", level=0.8, seed=seed)
        limits = found.predict(new)
        covered.append(new["y"].between(limits["lower"], limits["upper"]).mean())
    m = len(found.held_out.score)
    theory = np.ceil(0.8 * (m + 1)) / (m + 1)
    error = np.std(covered) / np.sqrt(len(covered))
    assert abs(np.mean(covered) - theory) < 3.0 * error


def test_weight_zero_is_a_row_left_out_and_two_are_as_one():
    df, new, fold = frame(), frame(5, seed=1), np.arange(N) % 4
    zero = df.assign(w=np.where(np.arange(N) < 20, 0.0, 2.0))
    found = ld.conformal(ld.glm, "y ~ a", zero, weights="w", folds=fold)
    alone = ld.conformal(ld.glm, "y ~ a", df[20:], folds=fold[20:])
    np.testing.assert_allclose(found.predict(new), alone.predict(new), rtol=1e-9)
    assert "weigh" in str(found) and "weigh" not in str(alone)


def test_groups_are_held_out_together_and_count_as_one():
    df = frame()
    found = ld.conformal(ld.glm, "y ~ a", df, groups="u", level=0.8)
    assert found.guarantee.n_units == N / 3 and "rows of new groups" in str(found)
    np.testing.assert_allclose(found.held_out.weight, 1 / 3)
    codes = found.held_out.fold[np.argsort(np.argsort(found.held_out.fold, kind="stable"))]
    assert np.bincount(codes).tolist() == [6] * 10
    with pytest.raises(ld.DataError, match="only one group"):
        ld.conformal(ld.glm, "y ~ a", df.assign(u=1), groups="u")


def test_too_few_rows_rule_nothing_out():
    df, new = frame(8), frame(3, seed=1)
    with pytest.warns(ld.DataWarning, match=r"at most 0.888 for 8 held-out rows, not 0.9"):
        shown = ld.conformal(ld.glm, "y ~ a", df).predict(new)
    assert np.isneginf(shown["lower"]).all() and np.isposinf(shown["upper"]).all()
    found = ld.conformal(ld.gbmap, "k ~ a", frame(8, seed=5), m=1, lambda_=1.0, threads=1)
    with pytest.warns(ld.DataWarning, match="sets have all classes"):
        assert found.predict(new)[["no", "yes"]].all(axis=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(ld.conformal(ld.glm, "y ~ a", df, level=0.8).predict(new)).all(axis=None)


@pytest.mark.long
def test_settings_are_chosen_by_the_rows_that_may():
    df = frame(80)
    few = {"threads": 1, "control": {"max_stages": 2, "max_iter": 30}}
    split = ld.conformal(ld.gbmap, "y ~ a", df, method="split", **few)
    assert len(split.held_out.score) == 40 and split.fit.n == 40
    assert split.fit.selection is not None and "Chosen" not in str(split)
    held = ld.conformal(ld.gbmap, "y ~ a", df, folds=2, **few)
    assert len({(fit.settings.m, fit.settings.lambda_) for fit in (held.fit, *held.fits)}) == 1
    assert "Chosen once, on all rows, and fixed in the folds" in str(held)
    own = ld.conformal(ld.gbmap, "y ~ a", df, folds=2, reselect=True, **few)
    assert "Chosen by each fit" in str(own)
    assert all(fit.selection is not None for fit in own.fits)


def test_only_what_the_fits_read_is_needed():
    df, new = frame(200), frame(5, seed=1)
    found = ld.conformal(ld.costnet, "y ~ a + b + c", df, lambda_=0.6, threads=1)
    used = {name for fit in (found.fit, *found.fits) for name in fit.inputs}
    assert used == {"a"}
    np.testing.assert_array_equal(found.predict(new[["a"]]), found.predict(new))
    parts = [fit.predict(df) for fit in found.fits]
    at = np.concatenate([np.flatnonzero(fold_of(found, df) == k) for k in range(10)])
    own = np.concatenate([parts[k][fold_of(found, df) == k] for k in range(10)])
    np.testing.assert_allclose(found.held_out.score, np.abs(df["y"].to_numpy()[at] - own))


def fold_of(found, df):
    """Fold of each row, as lodim draws them."""
    from lodim.fitting.fit_model import model_of, prepare
    from lodim.selection.folds import assign_by_position

    problem = prepare(model_of(ld.costnet), "y ~ a + b + c", df, {"lambda_": 0.6})
    return assign_by_position(problem.batch, len(found.fits), 0)


def test_counts_have_no_negative_limits_and_wider_ones_where_they_are_large():
    df, new = frame(200), frame(40, seed=1)
    found = ld.conformal(ld.glm, "n ~ a", df, family="poisson")
    shown = found.predict(new).sort_values("fit")
    assert found.says.score == "normalized" and (shown["lower"] >= 0).all()
    width = shown["upper"] - shown["lower"]
    assert width.iloc[-1] > 1.5 * width.iloc[0]


def test_a_fit_without_an_answer_is_infinitely_far_off():
    """Level t is in one fold alone, so that the fit without it has no coefficient for it."""
    df = frame().assign(g=np.where(np.arange(N) < 3, "t", "s"))
    found = ld.conformal(
        ld.glm, "y ~ a + g", df, folds=np.where(np.arange(N) < 3, 0, 1 + np.arange(N) % 4)
    )
    assert np.isinf(found.held_out.score).sum() == 3
    told = [" ".join(repr(c).split()) for c in (found, ld.conformal(ld.glm, "y ~ a", df))]
    assert ["Mean widths are infinite: a fit cannot predict" in text for text in told] == [
        True,
        False,
    ]
    new = frame(4, seed=1).assign(g=["s", "s", "t", "t"])
    assert np.isfinite(found.predict(new)).all(axis=None)
    assert np.isinf(found.predict(new, 0.97)[["lower", "upper"]]).all(axis=None)


def test_missing_inputs_new_levels_and_frames_of_other_kinds():
    polars = pytest.importorskip("polars")
    df, new = frame(), frame(6, seed=1)
    new.loc[2, "a"] = np.nan
    found = ld.conformal(ld.glm, "y ~ a + g", df)
    shown = found.predict(new)
    assert shown.isna().all(axis=1).tolist() == [False, False, True, False, False, False]
    of_polars = found.predict(polars.from_pandas(new))
    assert isinstance(of_polars, polars.DataFrame)
    np.testing.assert_array_equal(of_polars.to_pandas(), shown)
    np.testing.assert_array_equal(found.predict(new.to_dict("list")), shown)
    odd = new.assign(g="zzz")
    with pytest.raises(ld.DataError, match="zzz"):
        found.predict(odd)
    with pytest.raises(ld.DataError, match="zzz"):
        found.coverage(odd)
    some = new.assign(g=["zzz", *new["g"][1:]])
    assert found.coverage(some, new_levels="missing")["n"][0] == 4
    assert found.predict(odd, new_levels="missing").isna().all(axis=None)
    groups = found.coverage(new, by=["x", None, "x", "y", "y", "y"])
    assert groups[["by", "n"]].to_numpy().tolist() == [["x", 1], ["y", 3], ["missing", 1]]
    many = found.coverage(pd.concat([frame(40), new]), by=[*range(40), *[np.nan] * 6])
    assert many["n"].tolist() == [10, 10, 10, 10, 5] and many["by"].iloc[-1] == "missing"
    sets = ld.conformal(ld.glm, "k ~ a", df)
    shown = sets.predict(new)
    assert shown.isna().all(axis=1).tolist() == [False, False, True, False, False, False]
    of_polars = sets.predict(polars.from_pandas(new))
    assert of_polars[".set"].to_list() == [v if isinstance(v, str) else None for v in shown[".set"]]
    assert len(found.predict(new[:0])) == 0 and len(sets.predict(new[:0])) == 0


@pytest.mark.filterwarnings("ignore:.*The model fits the response exactly")
@pytest.mark.parametrize("model", [ld.gbmap, ld.glm], ids=lambda m: m.__name__)
def test_a_response_that_varies_in_one_fold_alone(model):
    df = frame().assign(y=np.where(np.arange(N) == 7, 4.0, 3.0))
    found = ld.conformal(model, "y ~ a", df, folds=np.arange(N) // 10, level=0.95, **cheap(model))
    shown = found.predict(frame(3, seed=1))
    assert (shown["lower"] <= 3.01).all() and (shown["upper"] >= 2.99).all()


def test_what_fits_to_parts_warn_of_is_said_once():
    df = frame()
    with pytest.warns(ld.ConvergenceWarning) as said:
        ld.conformal(ld.gbmap, "y ~ a + b", df, m=2, lambda_=0.01, control={"max_iter": 1}, folds=4)
    texts = [str(each.message) for each in said]
    assert len(texts) == 2 and texts[1].startswith(
        "4 of 4 fits to parts of the rows say: gbmap did"
    )
    assert {each.filename for each in said} == {__file__}


# Coverage -----------------------------------------------------------------------------------------


def test_coverage_is_counted():
    df, new = frame(), frame(50, seed=1)
    found = ld.conformal(ld.glm, "y ~ a", df)
    shown = found.predict(new)
    inside = (shown["lower"] <= new["y"]) & (new["y"] <= shown["upper"])
    row = found.coverage(new).iloc[0]
    share = inside.mean()
    assert row["n"] == 50 and row["coverage"] == pytest.approx(share)
    assert row["std_error"] == pytest.approx(np.sqrt(share * (1 - share) / 50))
    assert row["width"] == pytest.approx((shown["upper"] - shown["lower"]).mean())
    from statsmodels.stats.proportion import proportion_confint

    wilson = proportion_confint(inside.sum(), 50, method="wilson")
    assert (row["conf_low"], row["conf_high"]) == pytest.approx(wilson)
    by = found.coverage(new, "g")
    pd.testing.assert_series_equal(
        by.set_index("g")["coverage"], inside.groupby(new["g"]).mean(), check_names=False
    )
    np.testing.assert_array_equal(
        by["coverage"], found.coverage(new, new["g"].to_numpy())["coverage"]
    )
    assert len(found.coverage(new, "c")) == 4 and found.coverage(new, "c")["n"].sum() == 50
    assert len(found.coverage(new, "w")) == new["w"].nunique()
    assert found.coverage(new, level=0.5)["coverage"][0] < row["coverage"]


def test_coverage_of_weighted_rows():
    df, new = frame(), frame(50, seed=1)
    found = ld.conformal(ld.glm, "y ~ a", df, weights="w")
    shown = found.predict(new)
    inside = (shown["lower"] <= new["y"]) & (new["y"] <= shown["upper"])
    row = found.coverage(new).iloc[0]
    assert row["coverage"] == pytest.approx(np.average(inside, weights=new["w"]))


def test_rows_without_a_response_are_not_measured():
    new = frame(20, seed=1)
    new.loc[[1, 2], "y"], new.loc[5, "a"] = np.nan, np.nan
    found = ld.conformal(ld.glm, "y ~ a", frame())
    assert found.coverage(new)["n"][0] == 17 and len(found.predict(new)) == 20
    with pytest.raises(ld.DataError, match="a row without missing values"):
        found.coverage(new[1:3])


def test_intervals_of_a_quantile_fit_name_their_centre():
    call = {"family": "quantile", "quantile": 0.9, "method": "split"}
    cars = ld.data("autompg")
    found = ld.conformal(ld.glm, "mpg ~ weight", cars, **call)
    note = "not for its quantile; their centre is the predicted quantile 0.9"
    shown = [" ".join(text.split()) for text in (str(found), str(found.summary()))]
    assert note in shown[0] and note in shown[1]
    np.testing.assert_allclose(found.predict(cars).eval("lower + upper - 2 * fit"), 0.0, atol=1e-9)
    assert "centre" not in str(ld.conformal(ld.glm, "mpg ~ weight", cars, method="split"))


def test_what_the_guarantee_says():
    df = frame()
    cv, jack, split = (
        ld.conformal(ld.glm, "y ~ a", df, method=m).guarantee
        for m in ("cv+", "jackknife+", "split")
    )
    slack = min(2 * (1 - 1 / 10) / (N / 10 + 1), (1 - 10 / N) / 11)
    assert cv.least(0.9) == pytest.approx(0.8 - slack)
    assert jack.least(0.9) == pytest.approx(0.8) and split.least(0.9) == 0.9


def test_plots(axes):
    df, new = frame(), frame(40, seed=1)
    for response in ("y", "k3"):
        found = ld.conformal(ld.glm, f"{response} ~ a + b", df)
        assert "level 0.9" in found.plot(data=new).get_title()
        ax = found.plot("coverage", data=new, by="g")
        assert [t.get_text()[0] for t in ax.get_yticklabels()] == ["r", "s", "t"]
    with pytest.raises(ld.ArgumentError, match="needs new rows"):
        found.plot()
    numbers = ld.conformal(ld.glm, "y ~ a + b", df)
    with pytest.raises(ld.ArgumentError, match="must have a row without missing values"):
        numbers.plot(data=new.assign(a=np.nan))
    with pytest.raises(ld.ArgumentError, match="needs by"):
        found.plot("coverage", data=new)
    with pytest.raises(ld.ArgumentError, match="kind must be one of intervals, coverage"):
        found.plot("path", data=new)


@pytest.mark.parametrize(
    "how, words",
    [
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"method": "cv"}, "method must be one of"),
        ({"score": "lac"}, "score must be one of absolute, normalized, quantile"),
        ({"score": "normalized"}, "glm has no score 'normalized' for this response"),
        ({"folds": 1}, "folds must be an integer from 2"),
        ({"folds": 100}, "at most 60, the number"),
        ({"method": "jackknife+", "folds": 3}, "leaves out one"),
        ({"method": "split", "folds": np.zeros(N)}, "must be a number"),
        ({"reselect": 1}, "reselect must be True or False"),
        ({"by": "class"}, "by='class' needs a response with classes"),
        ({"by": "g"}, "by must be"),
        ({"seed": -1}, "seed must be"),
        ({"lambda_": 1}, "glm.. has no argument 'lambda_'|conformal.. has no argument 'lambda_'"),
    ],
    ids=str,
)
def test_what_is_refused(how, words):
    with pytest.raises(ld.LodimError, match=words):
        ld.conformal(ld.glm, "y ~ a", frame(), **how)


def test_what_else_is_refused():
    df = frame()
    with pytest.raises(ld.ArgumentError, match="a response on the left"):
        ld.conformal(ld.ripr, "~ a + b", df)
    with pytest.raises(ld.ArgumentError, match="score must be one of lac, aps"):
        ld.conformal(ld.glm, "k ~ a", df, score="absolute")
    with pytest.raises(ld.ArgumentError, match="cannot be combined"):
        ld.conformal(ld.glm, "k ~ a", df, by="class", groups="u")
    with pytest.raises(ld.ArgumentError, match="must be a model function"):
        ld.conformal("glm", "y ~ a", df)
    found = ld.conformal(ld.glm, "y ~ a", df)
    with pytest.raises(ld.ArgumentError, match="level must be"):
        found.predict(df, 90)
    with pytest.raises(ld.DataError, match="no column 'sex'"):
        found.coverage(df, "sex")
    with pytest.raises(ld.ArgumentError, match="by has 3 entries"):
        found.coverage(df, [1, 2, 3])


# Rows that are not exchangeable -------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_random_splits_warn_of_no_drift_and_shifted_rows_do(method):
    """Warnings are errors: none of the random splits warns."""
    rng = np.random.default_rng(0)
    df = frame(200).assign(skewed=lambda d: np.exp(2.0 * d["b"]))
    formula = "y ~ a + c + g + skewed"
    for _ in range(10):
        rows = df.sample(frac=1.0, random_state=rng.integers(1000))
        found = ld.conformal(ld.glm, formula, rows[:120], method=method)
        found.predict(rows[120:])
        found.predict(rows[120:140])
    found.predict(rows[120:139].assign(a=9.0))  # too few rows for a test
    for shifted in (rows[120:].assign(a=rows["a"] + 1.5), rows[120:].assign(g="r")):
        with pytest.warns(
            ld.DataWarning, match="differ from the calibration rows.* means changed.*(a|g.*) by"
        ):
            found.predict(shifted)


def test_sets_warn_of_drift_and_groups_do_not():
    df, new = frame(120), frame(60, seed=1)
    new["a"] += 2.0
    with pytest.warns(ld.DataWarning, match="deviations: a by 1.8;"):
        ld.conformal(ld.glm, "k ~ a + b", df).predict(new)
    ld.conformal(ld.glm, "y ~ a + b", df, groups="u").predict(new)


def test_weights_are_no_drift():
    """Means of a weighted fit are those of other rows than come by chance."""
    df = frame(300).assign(k=lambda d: np.where(d["a"] > 1.0, "rare", "often"))
    fit = ld.conformal(ld.glm, "k ~ b + c", df, weights=np.exp(df["b"]))
    fit.predict(df[:200])


@pytest.mark.long
def test_false_alarms_of_drift_are_as_rare_as_is_said():
    from lodim.diagnostics.features import moved

    rng, found = np.random.default_rng(0), 0
    for draw in (rng.standard_normal, lambda size: rng.lognormal(size=size)):
        for _ in range(1000):  # few training rows of a skewed feature are the hardest
            train, new = draw((40, 4)), draw((300, 4))
            found += moved((new - train.mean(axis=0)) / train.std(axis=0), 40)[1].any()
    assert found <= 7  # of 2000, at 0.001 each: more has a probability of 0.001


@pytest.mark.filterwarnings("ignore::lodim.ConvergenceWarning")
def test_a_class_without_held_out_rows_has_no_row_in_the_table():
    df = frame()
    df["k"] = np.where(np.arange(len(df)) == 0, "rare", df["k"])
    found = ld.conformal(ld.glm, "k ~ a", df, by="class", method="split")
    assert set(found.table["class"]) <= set(df["k"]) and len(found.table) % 3 == 0
