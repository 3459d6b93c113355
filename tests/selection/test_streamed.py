"""cv() on streamed data: folds are blocks of rows, and X stays where it is."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.batch import SplitsInPlace, subset
from lodim.design.design import Design
from lodim.fitting.fit_model import in_memory
from lodim.selection.folds import as_folds, assign_in_place
from lodim.selection.tuning import fold_splits
from streamed_batches import cross_validate, frame, in_file, problem_of, saved

pytestmark = pytest.mark.long

N = 70_000
EXACT = {"activation": "identity", "m": 1, "lambda_": 0.1, "threads": 2}
EXACT["control"] = {"tol": 1e-12, "ftol": 1e-18}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    X, y = frame(N, 3)
    return X, y, in_file(tmp_path_factory.mktemp("rows"), X)


@pytest.fixture
def problem(rows):
    return problem_of(ld.gbmap, *rows[:2], EXACT, rows[2])


def test_folds_are_whole_blocks(problem):
    fold = assign_in_place(problem.batch, 4, 1)
    of_block = fold[::4096]
    np.testing.assert_array_equal(fold, np.repeat(of_block, 4096)[:N])
    assert sorted(np.bincount(of_block)) == [4, 4, 5, 5]
    assert (assign_in_place(problem.batch, 4, 1) == fold).all()
    assert (assign_in_place(problem.batch, 4, 2) != fold).any()
    given = np.arange(N) % 3
    np.testing.assert_array_equal(assign_in_place(problem.batch, given, 0), given)


def test_rows_of_a_draw_stand_in_their_order(problem):
    """Their positions are searched in, as proset's prototypes are among its rows."""
    for part in fold_splits(problem.batch, None, 0, True)[0]:
        assert (np.diff(part.rows) > 0).all()


def test_what_blocks_cannot_do_is_refused(problem):
    with pytest.raises(ld.ArgumentError, match="at most 18, the number of blocks of 4,096 rows"):
        assign_in_place(problem.batch, 19, 0)
    with pytest.raises(ld.ArgumentError, match="groups cannot be held out as a whole"):
        assign_in_place(replace(problem.batch, groups=np.zeros(N)), 3, 0)
    with pytest.raises(ld.ArgumentError, match="folds must be an integer"):
        as_folds(1)


def test_parts_share_the_features(problem):
    weights = np.where(np.arange(N) % 5, 2.0, 0.0)
    batch = replace(problem.batch, weights=weights)
    splits = SplitsInPlace(batch, assign_in_place(batch, 3, 0))
    total = 0.0
    for train, test in splits:
        assert train.X is batch.X and test.X is batch.X
        np.testing.assert_array_equal(train.weights + test.weights, weights)
        assert not (train.weights * test.weights).any()
        total = total + test.weights
    np.testing.assert_array_equal(total, weights)


def test_cv_is_that_of_the_same_folds(problem, monkeypatch):
    """An ordinary fit of the rows of each fold's complement, judged by the fold's own rows."""
    cv = cross_validate(problem, monkeypatch, folds=3, seed=4, grid={"lambda_": [1.0, 0.01]})
    fold = assign_in_place(problem.batch, 3, 4)
    plain = replace(problem.batch, streamed=False)
    for at, lambda_ in enumerate([1.0, 0.01]):
        settings, losses = replace(problem.settings, lambda_=lambda_), []
        for k in range(3):
            train, test = (subset(plain, np.flatnonzero(side)) for side in (fold != k, fold == k))
            stages = problem.model.fit_stages(train, problem.family, settings, eval_batch=test)
            (stage,) = islice(stages, 1)
            losses.append(np.mean((test.y - stage[2][:, 0]) ** 2))
        mean = np.average(losses, weights=np.bincount(fold))
        assert cv.frame["mean"][at] == pytest.approx(mean, rel=1e-8)
        error = np.sqrt(np.average((np.array(losses) - mean) ** 2, weights=np.bincount(fold)) / 2)
        assert cv.frame["se"][at] == pytest.approx(error, rel=1e-6)
    said = "Folds: blocks of 4,096 rows; features keep the centre and scale of all rows"
    assert said in str(cv)
    assert cv.best.n == N


def test_an_open_number_of_boosts(problem, monkeypatch):
    settings = replace(problem.settings, m=None, max_stages=2, activation="softplus")
    open_ = replace(problem, settings=settings, arguments=problem.arguments | {"m": None})
    cv = cross_validate(open_, monkeypatch, folds=2, grid={"lambda_": [0.1]})
    assert cv.frame["m"].tolist() == [2] and np.isfinite(cv.frame["mean"]).all()


def test_small_streamed_data_are_as_a_frame():
    """Up to 65,536 rows a copy costs little: folds, groups and answers are as of a frame."""
    X, y = frame(300, 3)
    data = pd.DataFrame(X, columns=list("abc")).assign(y=y, g=np.arange(300) // 10)
    problem = problem_of(ld.gbmap, X, y, EXACT)
    assert not replace(problem.batch, streamed=True).out_of_core
    assert ld.cv(ld.gbmap, "y ~ a + b + c", data, groups="g", folds=3, **EXACT).frame.shape[0] == 1


IRIS, CALL = "species ~ .", {"m": 1, "lambda_": 1.0}
WHOLE = {
    "ripr": lambda data, fit: ld.ripr(IRIS, data),
    "melm": lambda data, fit: ld.melm(IRIS, data),
    "conformal": lambda data, fit: ld.conformal(ld.gbmap, IRIS, data, **CALL),
    "stability": lambda data, fit: ld.stability(ld.gbmap, IRIS, data, l1_ratio=0.5, **CALL),
    "bootstrap": lambda data, fit: ld.bootstrap(fit, data),
}


def stream_iris(monkeypatch):
    """Have every design learnt from iris give a batch that says it is streamed, of N rows."""
    learn = Design.learn

    def streamed(*arguments, **named):
        design, batch = learn(*arguments, **named)
        return design, replace(batch, rows=np.arange(N), streamed=True)

    monkeypatch.setattr(Design, "learn", streamed)


@pytest.mark.parametrize("name", WHOLE)
def test_what_needs_all_rows_says_so(name, monkeypatch):
    data = ld.data("iris")
    fit = ld.gbmap(IRIS, data, **CALL)
    stream_iris(monkeypatch)
    monkeypatch.setattr("lodim.design.features.free_memory", lambda: 4e6)
    monkeypatch.setattr("lodim.fitting.fit_model.free_memory", lambda: 4e6)
    words = rf"{name}(\(\))? needs all rows in memory: 70,000 rows with 4 columns need "
    words += "2.24 MB, but only 4 MB are free"
    with pytest.raises(ld.ArgumentError, match=words):
        WHOLE[name](data, fit)


def test_rows_that_fit_into_memory_are_taken_as_a_frame(problem):
    batch = in_memory("ripr", problem.batch)
    assert problem.batch.out_of_core and not batch.out_of_core and batch.X is problem.batch.X


@pytest.mark.parametrize("model", [ld.ripr, ld.melm])
def test_models_that_need_all_rows_take_files(model, tmp_path, monkeypatch):
    data = ld.data("iris")
    data.to_parquet(tmp_path / "iris.parquet")
    expected = saved(model(IRIS, data), tmp_path)
    monkeypatch.setattr("lodim.design.batch.SPAN_ROWS", 100)
    assert saved(model(IRIS, tmp_path / "iris.parquet"), tmp_path) == expected


def test_blocks_held_out_are_not_read(problem):
    """Features of blocks without weight are not looked at, but for the draw of a sample."""
    batch = problem.batch
    train, test = SplitsInPlace(batch, assign_in_place(batch, 3, 0))[0]
    broken, held_out = train.X.copy(), test.weights > 0
    broken[np.add.reduceat(held_out, np.arange(0, N, 64)) > 0] = 1e300
    fits = []
    for X in (train.X, broken):
        parts = replace(train, X=X), replace(test, X=train.X)
        stages = problem.model.fit_stages(parts[0], problem.family, problem.settings, parts[1])
        fits.append(next(stages))
    np.testing.assert_array_equal(fits[0][0].theta, fits[1][0].theta)
    score = fits[0][2][:, 0]
    assert not score[~held_out].any() and score[held_out].all()
