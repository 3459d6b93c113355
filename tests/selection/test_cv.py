"""cv() against an explicit loop over folds, its rules, and the choice of models themselves."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from contract.cases import some_long
from lodim import family as families
from lodim.design.batch import split
from lodim.fitting.fit_model import model_of, prepare
from lodim.selection import folds as folding
from lodim.selection import racing, tuning

GRID = [0.3, 0.03, 0.003]
SHARED = {"m": 2, "beta": 3.0, "n_starts": 1}


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    n = 90
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x1", "x2", "x3"])
    f = np.abs(df["x1"]) + df["x2"]
    df["y"] = 3 * f + rng.normal(size=n)
    df["c"] = np.where(f + rng.normal(size=n) > 0.8, "b", "a")
    df["k"] = np.array(list("uvw"))[(f > 0).astype(int) + (f > 1.5)]
    df["w"] = rng.integers(1, 4, n)
    df["o"] = 0.5 * rng.normal(size=n)
    return df


def by_hand(df, response, fold, loss, weights=None, offset=None, **settings):
    """Mean and standard error of the held-out loss by fitting and predicting each fold."""
    means, sizes = [], []
    for k in np.unique(fold):
        train, test = df[fold != k], df[fold == k]
        one = ld.gbmap(f"{response} ~ x1 + x2 + x3", train, weights=weights, offset=offset,
                       threads=1, **SHARED | settings)  # fmt: skip
        w = test[weights].to_numpy(float) if weights else np.ones(len(test))
        if loss == "class":
            each = (one.predict(test, "class") != test[response]).to_numpy(float)
        else:
            out = one.augment(test)
            each = (out[".loss"] if loss == "deviance" else out[".resid"].abs()).to_numpy()
        means.append(w @ each / w.sum())
        sizes.append(w.sum())
    mean = np.average(means, weights=sizes)
    variance = np.average((np.array(means) - mean) ** 2, weights=sizes)
    return mean, np.sqrt(variance / (len(means) - 1))


CASES = [
    ("y", "deviance", {}), ("y", "mae", {}), ("c", "deviance", {}), ("c", "class", {}),
    ("k", "deviance", {}), ("k", "class", {}), ("y", "deviance", {"weights": "w"}),
    ("c", "deviance", {"weights": "w", "offset": "o"}), ("y", "mae", {"offset": "o"}),
]  # fmt: skip


@pytest.mark.parametrize("response, loss, extra", CASES)
def test_against_an_explicit_loop(df, response, loss, extra):
    fold = np.random.default_rng(5).integers(0, 4, len(df))
    got = ld.cv(ld.gbmap, f"{response} ~ x1 + x2 + x3", df, folds=fold, loss=loss,
                grid={"lambda_": GRID}, **SHARED, **extra)  # fmt: skip
    assert list(got.frame["lambda_"]) == GRID and got.loss == loss
    for i, lambda_ in enumerate(GRID):
        mean, se = by_hand(df, response, fold, loss, lambda_=lambda_, **extra)
        # The folds' features are scaled twice here, once there: starts agree to rounding.
        assert got.frame["mean"][i] == pytest.approx(mean, rel=1e-6)
        assert got.frame["se"][i] == pytest.approx(se, rel=1e-5, abs=1e-12)


def test_drawn_folds_are_those_of_fold_assign(df):
    problem = prepare(model_of(ld.gbmap), "c ~ x1 + x2 + x3", df, {"lambda_": 0.1})
    fold = folding.assign(problem.batch, 5, ("a", "b"), 3)
    one, two = (
        ld.cv(ld.gbmap, "c ~ x1 + x2 + x3", df, folds=f, seed=3, grid={"lambda_": GRID}, **SHARED)
        for f in (5, fold)
    )
    pd.testing.assert_frame_equal(one.frame, two.frame)


def test_rows_of_a_group_are_held_out_together(df):
    names = pd.Series(np.array(["n", "s", "w"])[np.arange(len(df)) % 3])
    one = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, folds=names, grid={"lambda_": GRID}, **SHARED)
    mean, _ = by_hand(df, "y", names.to_numpy(), "deviance", lambda_=GRID[1])
    assert one.frame["mean"][1] == pytest.approx(mean, rel=1e-6)


def test_stages_in_the_grid_share_a_run_and_are_as_separate_ones(df):
    arguments = {"folds": 4, "beta": 3.0, "n_starts": 1, "lambda_": 0.03}
    grid = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid={"m": [1, 2, 5]}, **arguments)
    assert list(grid.frame["m"]) == [1, 2, 5]
    for i, m in enumerate([1, 2, 5]):
        one = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid={"m": [m]}, **arguments)
        pd.testing.assert_series_equal(grid.frame.loc[i], one.frame.loc[0], check_names=False)


def test_open_stages_are_the_best_of_their_curve(df):
    arguments = {"folds": 3, "beta": 3.0, "n_starts": 1, "control": {"max_stages": 6}}
    got = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid={"lambda_": [0.1]}, **arguments)
    every = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid={"m": range(1, 7)}, lambda_=0.1,
                  **arguments)  # fmt: skip
    assert got.frame["mean"][0] == every.frame["mean"].min()
    assert got.frame["m"][0] == every.frame["m"][every.index_min] == got.best.settings.m


def test_rules(df):
    both = {
        rule: ld.cv(
            ld.gbmap, "y ~ x1 + x2 + x3", df, rule=rule, n_lambda=8, folds=5, seed=1, **SHARED
        )
        for rule in ("min", "1se")
    }
    frame = both["min"].frame
    assert (np.diff(frame["lambda_"]) < 0).all() and len(frame) == 8
    pd.testing.assert_frame_equal(frame, both["1se"].frame)
    best = frame.loc[frame["mean"].idxmin()]
    within = frame[frame["mean"] <= best["mean"] + best["se"]]
    for one in both.values():
        assert one.lambda_min == best["lambda_"]
        assert one.lambda_1se == within["lambda_"].max() > one.lambda_min
    assert both["min"].best.settings.lambda_ == both["min"].lambda_min
    assert both["1se"].best.settings.lambda_ == both["1se"].lambda_1se
    assert both["1se"].best.n == len(df)


def test_1se_takes_the_more_penalized_in_any_order(df):
    """`lambda_1se` is the largest penalty within one standard error, also of an ascending grid."""
    values = [0.0003, 0.003, 0.01, 0.03, 0.1, 1.0]
    up, down = (
        ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, rule="1se", folds=5, grid={"lambda_": v}, **SHARED)
        for v in (values, values[::-1])
    )
    assert up.lambda_min == down.lambda_min
    assert up.lambda_1se == down.lambda_1se


def test_best_is_the_fit_of_its_settings(df):
    got = ld.cv(ld.gbmap, "c ~ x1 + x2 + x3", df, grid={"lambda_": GRID, "m": [1, 2]}, folds=3,
                beta=3.0)  # fmt: skip
    assert len(got.frame) == 6
    row = got.frame.loc[got.index_min]
    own = ld.gbmap("c ~ x1 + x2 + x3", df, m=int(row["m"]), lambda_=row["lambda_"], beta=3.0)
    np.testing.assert_array_equal(got.best.estimates.theta, own.estimates.theta)
    assert got.best.selection is not None and np.isfinite(got.best.drift(df)).all()


@pytest.mark.parametrize("open_m", [False, True])
def test_n_jobs_changes_nothing(df, open_m):
    arguments = SHARED | ({"m": None, "control": {"max_stages": 12}} if open_m else {})
    runs = [
        ld.cv(ld.gbmap, "c ~ x1 + x2 + x3", df, grid={"lambda_": GRID}, folds=4, n_jobs=j,
              **arguments)
        for j in (1, 2, 5)
    ]  # fmt: skip
    for other in runs[1:]:
        pd.testing.assert_frame_equal(runs[0].frame, other.frame, check_exact=True)
    again = ld.cv(ld.gbmap, "c ~ x1 + x2 + x3", df, grid={"lambda_": GRID}, folds=4, seed=1,
                  **arguments)  # fmt: skip
    assert not again.frame["mean"].equals(runs[0].frame["mean"])


def test_print_tidy_and_plot(df, axes):
    got = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, n_lambda=5, folds=3, **SHARED)
    text = str(got)
    for word in ("cv of gbmap(", "deviance", "5 settings", "min", "1se", "rule 'min'"):
        assert word in text
    tidy = got.tidy()
    tidy["mean"] = 0.0
    assert (got.frame["mean"] > 0).all()
    assert got.plot(ax=axes) is axes
    assert axes.get_xlabel() == "log(lambda)" and "deviance" in axes.get_ylabel()
    axes.figure.canvas.draw()
    two = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid={"m": [1, 2], "beta": [1, 5]}, lambda_=0.1,
                folds=3)  # fmt: skip
    axes.clear()
    assert two.plot(ax=axes).get_xlabel() == "m" and axes.get_legend() is not None


def test_progress(df, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("lodim.progress.AFTER", 1e6)  # seconds: the machine may be slow
    ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, n_lambda=2, folds=2, progress=True, **SHARED)
    assert "cross-validation" in capsys.readouterr().err
    ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, n_lambda=2, folds=2, **SHARED)
    assert capsys.readouterr() == ("", "")


PROSET = ["proset: cross-validation", "proset: n_batches"]


@pytest.mark.long
@pytest.mark.parametrize(
    "call, words",
    [
        (lambda df, **p: ld.gbmap("y ~ x1", df, m=2, lambda_=0.1, **p), ["gbmap: m"]),
        (lambda df, **p: ld.proset("c ~ x1 + x2", df, lambda_v=None, **p), PROSET),
        (lambda df, **p: ld.glm("y ~ x1", df, **p), ["glm: fit"]),
        (lambda df, **p: ld.ripr("c ~ x1 + x2", df, **p), ["ripr: fit"]),
        (
            lambda df, **p: ld.path(ld.gbmap, "y ~ x1", df, n_lambda=2, m=2, **p),
            ["path: penalties"],
        ),
    ],
    ids=["stages", "choice", "glm", "ripr", "path"],
)
def test_progress_of_each_call_is_its_outermost_bar(df, capsys, monkeypatch, call, words):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("lodim.progress.AFTER", 1e6)
    fit = call(df, progress=True)
    told = capsys.readouterr().err
    whole = [line.split(": 100%")[0].strip() for line in told.split("\r") if ": 100%" in line]
    assert {*words} <= {*whole} and "\x1b" not in told
    assert "progress" not in fit.call
    call(df)
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ld.ArgumentError, match="progress"):
        call(df, progress="yes")


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"loss": "auc"}, "deviance, class, mae"),
        ({"loss": "class"}, "classes"),
        ({"rule": "max"}, "min, 1se"),
        ({"grid": {"lambda_": [0.1]}, "lambda_": 0.1}, "in the grid"),
        ({"grid": {"lambda_": []}}, "no value"),
        ({"grid": {"lambda_": [-1.0]}}, "lambda_"),
        ({"grid": {"colour": [1, 2]}, "lambda_": 0.1}, "colour"),
        ({"grid": {"standardize": [True, False]}, "lambda_": 0.1}, "standardize"),
        ({"folds": 1}, "from 2"),
        ({"folds": 1000}, "1000"),
        ({"folds": np.zeros(90)}, "at least two folds"),
        ({"folds": np.zeros((90, 2))}, "folds"),
        ({"n_lambda": 1}, "n_lambda"),
        ({"gamma": 1}, "gamma"),
        ({"n_jobs": 0.5}, "n_jobs"),
    ],
)
def test_refusals(df, arguments, word):
    with pytest.raises(ld.ArgumentError, match=word):
        ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, **arguments)


def test_refuses_what_is_no_model(df):
    with pytest.raises(ld.ArgumentError, match="model function"):
        ld.cv("gbmap", "y ~ x1", df)


@pytest.mark.parametrize("frame", [False, True])
def test_an_open_penalty_joins_the_grid(df, frame):
    """Largest first, each value with all points of the grid, as if it had been given."""
    grid = {"m": [1, 2], "beta": [1.0, 10.0]}
    if frame:
        grid = pd.DataFrame({"m": [1, 1, 2, 2], "beta": [1.0, 10.0] * 2})
    shared = {"folds": np.arange(len(df)) % 3, "n_starts": 1}
    got = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid=grid, n_lambda=3, **shared)
    lambdas = ld.path(ld.gbmap, "y ~ x1 + x2 + x3", df, n_lambda=3, m=1, n_starts=1).lambdas
    assert got.frame["lambda_"].tolist() == np.repeat(lambdas, 4).tolist()
    assert got.frame["m"].tolist() == [1, 1, 2, 2] * 3 and got.lambda_1se >= got.lambda_min
    given = {"lambda_": lambdas, "m": [1, 2], "beta": [1.0, 10.0]}
    again = ld.cv(ld.gbmap, "y ~ x1 + x2 + x3", df, grid=given, **shared)
    assert again.frame.equals(got.frame) and again.index_1se == got.index_1se
    assert set(got.best.chosen) == {"lambda_", "m", "beta"}
    assert f"lambda_={got.lambda_min:.6g}" in got.best.call


@pytest.mark.long
def test_every_open_penalty_joins_the_grid(df):
    melm = ld.cv(ld.melm, "c ~ x1 + x2", df, grid={"k": [1, 2]}, n_lambda=2, folds=2, n_starts=2)
    assert melm.frame["gamma"].nunique() == 2 and melm.frame["k"].tolist() == [1, 2, 1, 2]
    both = ld.cv(ld.proset, "y ~ x1", df, lambda_v=None, lambda_w=None, n_lambda=2, folds=2)
    assert len(both.frame.groupby(["lambda_v", "lambda_w"])) == 4


def test_lambda_min_of_a_grid_without_lambda(df):
    got = ld.cv(ld.gbmap, "y ~ x1", df, grid={"m": [1, 2]}, lambda_=0.1, folds=3)
    try:
        assert got.lambda_min == got.lambda_1se == 0.1
    except ld.ArgumentError as error:
        assert "lambda_" in str(error)


# choose: what a model does where m or lambda_ is not given ---------------------------------------


@pytest.mark.long
def test_choose_is_deterministic(df):
    runs = [
        ld.gbmap("y ~ x1 + x2 + x3", df, threads=t, control={"max_stages": 8}) for t in (1, 2, None)
    ]
    for other in runs[1:]:
        pd.testing.assert_frame_equal(runs[0].selection, other.selection, check_exact=True)
        np.testing.assert_array_equal(runs[0].estimates.theta, other.estimates.theta)
        np.testing.assert_equal(other.calibration, runs[0].calibration)


def test_choose_takes_the_centre_of_what_cannot_be_told_apart(df):
    one = ld.gbmap("y ~ x1 + x2 + x3", df, control={"max_stages": 8})
    tried = one.selection
    assert tried["weight"].sum() == pytest.approx(1) and tried["weight"].idxmax() < len(tried)
    half = int(2 * (tried["weight"] @ np.arange(len(tried))) + 0.5)
    low, high = tried["lambda_"][half // 2], tried["lambda_"][(half + 1) // 2]
    assert one.settings.lambda_ == pytest.approx(np.sqrt(low * high))
    assert one.settings.m == tried["m"][(half + 1) // 2]
    names = ("m", "lambda_", "refit")
    chosen = {name: getattr(one.settings, name) for name in names}
    again = ld.gbmap("y ~ x1 + x2 + x3", df, **chosen)
    np.testing.assert_array_equal(one.estimates.theta, again.estimates.theta)


@pytest.mark.parametrize("formula", ["y ~ x1 + x2 + x3", "k ~ x1 + x2 + x3"])
def test_rows_looked_at_are_drawn_by_what_they_hold(df, formula, monkeypatch):
    monkeypatch.setattr(tuning, "MOST_ROWS", 50)

    def drawn(frame, formula=formula):
        arguments = {**SHARED, "lambda_": None, "m": None}
        problem = prepare(model_of(ld.gbmap), formula, frame, arguments)
        return [
            [set(part.index[part.rows]) for part in pair] for pair in tuning.quick_splits(problem)
        ]

    other = df.iloc[np.random.default_rng(3).permutation(len(df))][df.columns[::-1]]
    first = drawn(df)
    assert first == drawn(other) and len(set.union(*first[0])) == 50
    assert first == drawn(df, formula.replace("x1 + x2 + x3", "x3 + x1 + x2"))
    assert first == drawn(df.assign(x1=df["x1"] * (1.0 + 1e-13)))


@pytest.mark.long
def test_the_summary_says_what_each_draw_of_the_folds_would_choose(df, monkeypatch):
    """How far another seed would go: the first draw alone is what one draw gives."""
    formula, arguments = "c ~ x1 + x2 + x3", {"m": 3, "n_starts": 1, "threads": 1}
    both = ld.gbmap(formula, df, **arguments)
    monkeypatch.setattr(tuning, "MOST_DRAWS", 1)
    alone = ld.gbmap(formula, df, **arguments)
    assert alone.chosen == {"lambda_": ()} and both.chosen["lambda_"][0] == alone.settings.lambda_
    text = " ".join(str(both.summary()).split())
    a, b = both.chosen["lambda_"]
    said = f"{a:.4g}" if a == b else f"from {min(a, b):.4g} to {max(a, b):.4g}"
    assert f"Each of 2 sets of random folds alone would choose lambda_ {said}." in text
    assert "Each of" not in " ".join(str(alone.summary()).split())
    monkeypatch.undo()
    stages = ld.gbmap(formula, df, lambda_=0.1, n_starts=1, threads=1, control={"max_stages": 6})
    a, b = stages.chosen["m"]
    said = f"{a}" if a == b else f"from {min(a, b)} to {max(a, b)}"
    assert f"would choose m {said}." in " ".join(str(stages.summary()).split())
    five = ld.gbmap(formula, df[:5], n_starts=1, control={"max_stages": 3})
    assert set(five.chosen.values()) == {()}  # each row by itself: both draws would be the same


def test_weights_are_of_the_standard_error():
    """Two points, of four folds each: the second is one standard error behind."""
    first = [[(mean, 1.0, 0.0) for mean in (1.0, 2.0, 3.0, 4.0)]]
    error = np.std([1, 2, 3, 4]) / np.sqrt(3)
    second = [[(mean + error, 1.0, 0.0) for mean in (1.0, 2.0, 3.0, 4.0)]]
    a, b = tuning.weights([first, second], 1, True)
    assert b[0] / a[0] == pytest.approx(np.exp(-2)) and a[0] + b[0] == pytest.approx(1)
    # Two draws of two folds have the standard error of two folds.
    a, b = tuning.weights([first, second], 2, True)
    assert b[0] / a[0] == pytest.approx(np.exp(-2 / np.sqrt(3)))


def test_none_in_a_grid_is_what_a_call_without_it_has(df):
    shared = {"gamma": 2.0, "folds": 3, "threads": 1, "control": {"calibrate": False}}
    cv = ld.cv(ld.melm, "c ~ x1 + x2", df, grid={"k": [None, 2, 1]}, **shared)
    assert cv.frame["mean"][0] == cv.frame["mean"][1] != cv.frame["mean"][2]
    with pytest.raises(ld.ArgumentError, match="n_starts"):
        ld.cv(ld.melm, "c ~ x1 + x2", df, grid={"n_starts": [None, 2]}, **shared)


def test_the_error_of_a_held_out_fold_counts_groups_once(df):
    """Rows that stand three times, as visits of one patient, tell no more than once."""
    three = pd.concat([df] * 3, ignore_index=True).assign(visit=np.tile(np.arange(len(df)), 3))
    single = prepare(model_of(ld.gbmap), "y ~ x1", df, {"weights": "w"}).batch
    grouped = prepare(
        model_of(ld.gbmap), "y ~ x1", three, {"weights": "w", "groups": "visit"}
    ).batch
    each = np.abs(df["y"].to_numpy())
    mean, total, error = racing.fold_row(single, each)
    assert racing.fold_row(grouped, np.tile(each, 3)) == pytest.approx((mean, 3 * total, error))
    apart = replace(grouped, groups=None)
    assert racing.fold_row(apart, np.tile(each, 3))[2] == pytest.approx(error / np.sqrt(3))


@pytest.mark.parametrize(
    "weight, nearest, value",
    [([1, 0, 0], 0, {}), ([0.5, 0.5, 0], 1, {"lambda_": 2.0}),
     ([0.1, 0.1, 0.8], 2, {"lambda_": 0.5}), ([0.05, 0.05, 0.9], 2, {}), ([0.4, 0.2, 0.4], 1, {})],
)  # fmt: skip
def test_centre_of_a_grid(weight, nearest, value):
    assert tuning.centre({"lambda_": [4.0, 1.0, 0.25]}, np.array(weight), ("lambda_",)) == (
        nearest, value,
    )  # fmt: skip
    assert tuning.centre({"k": [1, 2, 3]}, np.array(weight), ()) == (nearest, {})


def test_centre_in_finer_parts():
    """A weighted mean of position .6 is 5/8, in log; a whole position is the value itself."""
    grid, names = {"lambda_": [4.0, 1.0]}, ("lambda_",)
    at, between = tuning.centre(grid, np.array([0.4, 0.6]), names, 8)
    assert at == 1 and between["lambda_"] == pytest.approx(4.0 ** (3.0 / 8.0))
    assert tuning.centre(grid, np.array([0.03, 0.97]), names, 8) == (1, {})


def test_choose_leaves_what_is_given(df):
    one = ld.gbmap("y ~ x1 + x2 + x3", df, m=2)
    assert one.settings.m == 2 and (one.selection["m"] == 2).all() and len(one.selection) > 3
    other = ld.gbmap("y ~ x1 + x2 + x3", df, lambda_=0.05, control={"max_stages": 5})
    assert other.settings.lambda_ == 0.05 and len(other.selection) == 1


@pytest.mark.long
@pytest.mark.parametrize("rare", [1, 2, 3])
def test_choose_with_a_rare_class(df, rare):
    """A fold may then train on one class alone."""
    rng = np.random.default_rng(0)
    c = np.full(len(df), "no", dtype=object)
    c[rng.choice(len(df), rare, replace=False)] = "yes"
    one = ld.gbmap("c ~ x1 + x2", df.assign(c=c), control={"max_stages": 4})
    assert np.isfinite(one.selection["mean"]).all() and np.isfinite(one.predict(df)).all()


@pytest.mark.long
@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("response", ["y", "c", "k"])
def test_choose_on_very_few_rows(df, n, response):
    turn = np.arange(n)
    few = df[:n].assign(c=np.where(turn % 2, "a", "b"), k=np.array(list("uvw"))[turn % 3])
    one = ld.gbmap(f"{response} ~ x1 + x2", few, control={"max_stages": 3})
    assert np.isfinite(one.predict(few, "link")).to_numpy().all()


def test_choose_without_features(df):
    one = ld.gbmap("y ~ 1", df, control={"max_stages": 2})
    np.testing.assert_allclose(one.predict(df), df["y"].mean(), atol=1e-4)


def test_quick_splits_hold_out_every_row_once(df):
    problem = prepare(model_of(ld.gbmap), "y ~ x1 + x2", df, {})
    splits = tuning.quick_splits(problem)
    held = np.concatenate([test.rows for _, test in splits])
    assert len(splits) == 5 and sorted(held) == list(range(len(df)))
    for train, test in splits:
        assert not set(train.rows) & set(test.rows)


def test_quick_splits_of_many_rows():
    rng = np.random.default_rng(0)
    big = pd.DataFrame({"x": rng.normal(size=25_000), "y": rng.normal(size=25_000)})
    ((train, test),) = tuning.quick_splits(prepare(model_of(ld.gbmap), "y ~ x", big, {}))
    assert train.n == 16_000 and test.n == 4_000


def test_a_given_penalty_is_the_one_that_is_cross_validated(df):
    fold = np.arange(len(df)) % 3
    arguments = {"folds": fold, **SHARED}
    got = ld.cv(ld.gbmap, "y ~ x1 + x2", df, lambda_=0.03, **arguments)
    in_grid = ld.cv(ld.gbmap, "y ~ x1 + x2", df, grid={"lambda_": [0.03]}, **arguments)
    assert got.frame.equals(in_grid.frame) and got.best.settings.lambda_ == 0.03


def test_grids_hold_none_where_the_model_has_its_own_choice(df):
    for grid in ({"lambda_": [None, 0.1]}, pd.DataFrame({"lambda_": [np.nan, 0.1]})):
        with pytest.raises(ld.ArgumentError, match="lambda_ must be numbers in the grid, not None"):
            ld.cv(ld.gbmap, "y ~ x1", df, folds=2, grid=grid, m=1)
    made = ld.cv(ld.ripr, "c ~ x1 + x2", df, folds=2, grid={"lambda_": [None, 1.0]}, threads=1)
    again = ld.cv(ld.ripr, "c ~ x1 + x2", df, folds=2, grid=made.frame[["lambda_"]], threads=1)
    assert made.frame["mean"].equals(again.frame["mean"])


TWO = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
TWO = TWO.assign(u=TWO["a"] + TWO["b"], k=np.where(TWO["a"] > 0, "p", "q"))


@pytest.mark.parametrize(
    "model, formula, grid, word",
    [
        (ld.ripr, "k ~ a + b", {"k": [5, 500]}, "k must be at most 59"),
        (ld.ripr, "u ~ a + b", {"balanced": [True]}, "needs a response with classes"),
        (ld.ripr, "u ~ a + b", {"n_clusters": [2]}, "without a response"),
        (ld.melm, "k ~ a + b", {"k": [1, 9]}, "not 9"),
        (ld.glm, "u ~ a + b", {"covariance": ["cluster"]}, "needs clusters"),
    ],
)
def test_what_a_call_refuses_is_refused_in_a_grid(model, formula, grid, word):
    given = {"gamma": 1.0} if model is ld.melm else {}
    with pytest.raises(ld.LodimError, match=word):
        ld.cv(model, formula, TWO, grid=grid, folds=2, **given)


@pytest.mark.long
def test_a_number_of_penalties_is_that_of_the_model_or_refused():
    fit = ld.cv(ld.costnet, "u ~ a + b + c", TWO, folds=2, n_lambda=7).best
    same = ld.costnet("u ~ a + b + c", TWO, budget=fit.settings.budget, n_lambda=7)
    assert fit.settings.n_lambda == 7
    np.testing.assert_array_equal(fit.estimates.path.lambdas, same.estimates.path.lambdas)
    for model, given in (
        (ld.gbmap, {"lambda_": 0.1, "m": 1}),
        (ld.gbmap, {"grid": {"lambda_": [0.1, 1.0]}, "m": 1}),
        (ld.glm, {}),
    ):
        with pytest.raises(ld.ArgumentError, match="n_lambda has no effect"):
            ld.cv(model, "u ~ a + b", TWO, folds=2, n_lambda=7, **given)
    joined = ld.cv(ld.gbmap, "u ~ a + b", TWO, grid={"m": [1]}, folds=2, n_lambda=3, lambda_=None)
    assert len(joined.tidy()) == 3


@pytest.mark.long
def test_prices_in_a_grid_are_those_of_the_fit():
    few, many = {"a": 1, "b": 1, "c": 1}, {"a": 5, "b": 7, "c": 1}
    grid = {"costs": [few, many], "budget": [2, 12]}
    cv = ld.cv(ld.costnet, "u ~ a + b + c", TWO, grid=grid, folds=2)
    loss = cv.frame["mean"]
    assert loss[0] < 0.1 < loss[2] and loss[3] < 0.1  # both are bought for 2, and for 12
    best = ld.cv(ld.costnet, "u ~ a + b + c", TWO, grid={"costs": [many]}, folds=2).best
    np.testing.assert_array_equal(best.settings.network.cost, [5.0, 7.0, 1.0])
    assert best.arguments["costs"] == many and best.update(TWO).arguments["costs"] == many


@pytest.mark.long
@pytest.mark.parametrize(
    "model, formula, grid, given",
    [
        (ld.gbmap, "u ~ a + b", {"activation": ["softplus", "identity"]}, {"m": 1, "lambda_": 0.1}),
        (ld.costnet, "u ~ a + b", {"costs": [{"a": 1, "b": 1}, {"a": 2, "b": 1}]}, {}),
        (ld.ripr, "k ~ a + b", {"balanced": [True, False]}, {"lambda_": 0.1}),
    ],
)
def test_what_is_no_number_is_chosen_and_told(model, formula, grid, given, tmp_path):
    best = ld.cv(model, formula, TWO, grid=grid, folds=2, **given).best
    best.save(tmp_path / "fit")
    assert str(ld.load(tmp_path / "fit").summary()) == str(best.summary())


@pytest.mark.long
def test_constraints_in_a_grid():
    prices = {"a": 1, "b": 1, "c": 1}
    grid = {"constraints": [{"prices": prices, "budget": 3}, {"hard": True}]}
    cv = ld.cv(ld.ripr, "k ~ a + b + c", TWO, grid=grid, lambda_=0.5, folds=2)
    assert np.isfinite(cv.frame["mean"]).all() and "constraints" in repr(cv)
    with pytest.raises(ld.ArgumentError, match="does not store"):
        cv.best.update(TWO)


def test_an_estimator_with_a_length_is_one_value_of_a_grid(df):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"classifier": [pipe, LogisticRegression()]}
    fixed = {"k": 1, "gamma": 1.0, "n_starts": 1, "threads": 1}
    made = ld.cv(ld.melm, "c ~ x1 + x2", df, folds=2, grid=grid, **fixed)
    assert len(made.frame) == 2


# Groups ------------------------------------------------------------------------------------------

OPEN = {  # calls in which a model draws folds by itself
    "gbmap": {"m": 1, "n_starts": 1},
    "proset": {"n_candidates": 20},
    "costnet": {"n_lambda": 5},
    "melm": {"k": 1, "n_starts": 1, "gamma": 2.0},
}


def visits(n=90, n_groups=6):
    rng = np.random.default_rng(3)
    data = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    data["patient"] = rng.integers(0, n_groups, n)
    data["y"] = np.where(data["a"] + rng.normal(size=n) > 0.0, "ill", "well")
    return data


@pytest.mark.long
@pytest.mark.parametrize("name", some_long(sorted(OPEN), ("proset",)))
def test_models_hold_out_whole_groups_where_they_draw_folds(name, monkeypatch):
    data, seen = visits(), []

    def spy(batch, held_out, standardize):
        seen.append((batch.groups, held_out))
        return split(batch, held_out, standardize)

    monkeypatch.setattr(tuning, "split", spy)
    model = getattr(ld, name)
    fit = model("y ~ .", data, groups="patient", threads=1, **OPEN[name])
    assert len(seen) >= 5
    for groups, held_out in seen:
        assert not set(groups[held_out]) & set(groups[~held_out])
    assert "patient" not in fit.design.names and "folds of whole groups" in str(fit)
    assert "groups='patient'" in fit.call
    again = model("y ~ a + b", data, groups=data["patient"], threads=1, **OPEN[name])
    assert again.predict(data, "prob").equals(fit.predict(data, "prob"))
    with pytest.raises(ld.DataError, match="only one group"):
        model("y ~ .", data, groups=np.zeros(len(data)), threads=1, **OPEN[name])


@pytest.mark.long
@pytest.mark.parametrize("model", [ld.glm, ld.ripr])
def test_cv_holds_out_whole_groups_of_a_model_that_draws_no_folds(model):
    data = visits()
    grid = {"k": [5], "lambda_": [0.1]} if model is ld.ripr else None
    cv = ld.cv(model, "y ~ a + b", data, groups="patient", folds=6, grid=grid)
    by_hand = ld.cv(model, "y ~ a + b", data, folds=data["patient"], grid=grid)
    np.testing.assert_allclose(cv.frame["mean"], by_hand.frame["mean"], rtol=1e-9)
    assert "Folds: whole groups (patient)" in str(cv) and "whole" not in str(by_hand)
    with pytest.raises(ld.ArgumentError, match="at most 6, the number of groups"):
        ld.cv(model, "y ~ a + b", data, groups="patient", grid=grid)
    best = ld.cv(model, "y ~ .", data, groups="patient", folds=6, grid=grid).best
    again = best.update(data)
    assert "patient" not in {*best.design.features, *again.design.features}
    assert "y ~ . - patient" in best.call and again.call == best.call


# The ends of a grid ------------------------------------------------------------------------------


def noise(n=80):
    """A response that hangs on x alone, and not through its mean."""
    rng = np.random.default_rng(5)
    data = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "a", "b"])
    return data.assign(y=3.0 * data["x"] + 0.1 * rng.normal(size=n))


def test_a_least_loss_at_an_end_of_the_grid_is_said():
    data, call = noise(), {"m": 1, "n_starts": 1, "folds": 3, "threads": 1}
    high = ld.cv(ld.gbmap, "y ~ .", data, grid={"lambda_": [1.0, 0.3, 0.1]}, **call)
    assert high.grid_ends == ("lambda_ = 0.1 is the smallest that was tried: give the grid "
                              "smaller ones",)  # fmt: skip
    assert "Lowest loss at an end of the grid: lambda_ = 0.1" in str(high)
    low = ld.cv(ld.gbmap, "y ~ .", data, grid={"lambda_": [1e-7, 1e-3, 3.0]}, **call)
    assert low.index_min == 1 and low.grid_ends == () and "end of the grid" not in str(low)


def test_nothing_is_said_where_nothing_is_beyond():
    data, call = noise(), {"n_starts": 1, "folds": 3, "threads": 1, "lambda_": 0.001}
    data["y"] = np.random.default_rng(6).normal(size=len(data))  # so that the null model is best
    largest = ld.path(ld.gbmap, "y ~ .", data, m=1, n_lambda=2).lambda_max
    grid = {"lambda_": [largest, 1e-3 * largest, 1e-6 * largest]}
    cv = ld.cv(ld.gbmap, "y ~ .", data, grid=grid, m=1, n_starts=1, folds=3, threads=1)
    assert cv.index_min == 0 and cv.grid_ends == ()
    ratio = ld.cv(ld.gbmap, "y ~ .", data, grid={"m": [1, 2, 3]}, **call)
    assert ratio.frame["m"][ratio.index_min] == 1 and ratio.grid_ends == ()
    frame = pd.DataFrame({"k": [1, 2, 3], "classifier": ["kde", "other", "kde"]})
    problem = prepare(
        model_of(ld.melm), "z ~ a + b + x", data.assign(z=data["y"] > 0), {"gamma": 1.0}
    )
    assert tuning.grid_ends(problem, frame, ["k", "classifier"], 2) == ()  # of three features
    assert tuning.grid_ends(problem, frame[:2], ["k"], 1) == (
        "k = 2 is the largest that was tried: give the grid larger ones",
    )


def test_a_default_whose_least_loss_is_at_the_end_says_so(df):
    fit = ld.gbmap("y ~ x1 + x2 + x3", df, m=3, n_starts=1, threads=1)
    tried = fit.selection
    assert "smallest lambda_ tried" not in str(fit.summary())
    tried.loc[tried.index[-1], "mean"] = 0.5 * tried["mean"].min()
    text = " ".join(str(fit.summary()).split())
    smallest = f"at the smallest lambda_ tried, {tried['lambda_'].iloc[-1]:.4g}"[:36]
    assert text.count("smallest lambda_ tried") == 1 and smallest in text
    assert f"lowest held-out loss {tried['mean'].min():.4g}"[:26] in text.split(smallest)[0][-40:]


def test_one_row_cannot_decide_what_costnet_buys():
    """Its value lies far out, on the wrong side, and not far enough to be limited as wild."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=150)
    chance = 1.0 / (1.0 + np.exp(-4.0 * x))
    df = pd.DataFrame({"x": x, "k": np.where(rng.uniform(size=150) < chance, "b", "a")})
    df.loc[7] = [x.max() + 8.0 * np.ptp(x), "a"]
    fit = ld.costnet("k ~ x", df)
    assert not fit.design.wild and fit.df == 1


def test_a_held_out_probability_counts_as_at_least_1e_5():
    """As in glmnet: classes that a line separates but for one row, under next to no penalty."""
    x = np.r_[np.linspace(-3, -1, 40), np.linspace(1, 3, 40), 50.0]
    df = pd.DataFrame({"x": x, "k": ["a"] * 40 + ["b"] * 40 + ["a"]})
    fold = np.r_[np.arange(80) % 2, 2]
    cv = ld.cv(ld.gbmap, "k ~ x", df, folds=fold, grid={"lambda_": [1e-9]}, **SHARED)
    assert cv.frame["mean"][0] <= -2.0 * np.log(1e-5) / 81 + 0.2


@pytest.mark.parametrize("y", ["far", "rare"])
def test_the_held_out_share_of_a_model_of_nothing_is_about_zero(y):
    """A far-out response counts in full, in the folds as in the null model that they measure."""
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    df["far"], df["rare"] = df["a"] + rng.normal(size=200), 0.0
    df.loc[7, ["far", "rare"]] = 1e4, 100.0
    call = {"family": "gaussian", "folds": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.DataWarning)  # of the far response
        cv = ld.cv(ld.glm, f"{y} ~ a + b", df, **call)
    null = ((df[y] - df[y].mean()) ** 2).mean()
    assert 0.9 * null < cv.frame["mean"][0] < 1.2 * null
    assert -0.2 < float(str(cv.best.summary()).split("Dev. ratio (held out):")[1].split()[0]) < 0.1


@pytest.mark.parametrize("family", [families.make("poisson", 0), families.make("tweedie", 0, 1.5)])
def test_a_large_amount_among_zeros_counts_in_full(family):
    """The penalty leaves only the constant, and all folds have the same mean."""
    df = pd.DataFrame({"x": np.sin(np.arange(200.0)), "y": np.tile([50.0, 1.0] + [0.0] * 38, 5)})
    how = {"family": family.name} | ({"power": 1.5} if family.name == "tweedie" else {})
    folds, grid = np.arange(200) // 40, {"lambda_": [1e9]}
    cv = ld.cv(ld.gbmap, "y ~ x", df, folds=folds, grid=grid, **how, **SHARED)
    y = df["y"].to_numpy()
    null = family.deviance(y, np.full((200, 1), np.log(y.mean()))).mean()
    assert cv.frame["mean"][0] == pytest.approx(null, rel=1e-3)


def test_a_model_without_settings_has_a_loss_and_no_curve(df):
    cv = ld.cv(ld.glm, "y ~ x1", df, folds=2)
    with pytest.raises(ld.ArgumentError, match="only one point, so there is no curve"):
        cv.plot()
    with pytest.raises(ld.ArgumentError, match="the model has none to choose"):
        cv.lambda_min  # noqa: B018
