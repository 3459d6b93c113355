"""gbmap on features that are a view of a file: the same bytes, and no copy of them."""

import tracemalloc
import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import lodim as ld
from lodim.engine import tiles
from lodim.engine.blocks import row_spans
from lodim.models.gbmap.learners import Effects, effect_sums
from streamed_batches import frame, in_file, problem_of, saved

pytestmark = pytest.mark.long

N = 70_000
CALLS = {
    "given": {"m": 2, "lambda_": 0.01},
    "chosen": {"control": {"max_stages": 2}},
    "joint": {"m": 1, "lambda_": 0.01, "refit": "joint"},
    "lasso": {"m": 1, "lambda_": 0.1, "l1_ratio": 0.5},
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    X, y = frame(N, 3)
    return X, y, in_file(tmp_path_factory.mktemp("rows"), X)


def fit(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        return problem.model.fit(problem)


@pytest.mark.parametrize("call", CALLS)
def test_a_file_holds_the_same_as_memory(rows, call, tmp_path):
    X, y, in_place = rows
    kind = {"given": np.where(y > 1.0, 1.0, 0.0)}.get(call, y)
    kept = {"control": {"reference_rows": 100} | CALLS[call].get("control", {}), "threads": 2}
    calls = (problem_of(ld.gbmap, X, kind, CALLS[call] | kept, at) for at in (None, in_place))
    one, other = (saved(fit(problem), tmp_path) for problem in calls)
    assert one == other


def test_weights_of_zero_copy_nothing(rows):
    """Rows of weight zero stay where they are, and say nothing."""
    X, y, in_place = rows
    count = np.arange(N) % 7 != 0
    arguments = {"m": 1, "lambda_": 0.1, "activation": "identity"}
    arguments["control"] = {"tol": 1e-12, "ftol": 1e-18}
    whole = fit(problem_of(ld.gbmap, X, y, arguments, in_place, count.astype(float)))
    rest = fit(problem_of(ld.gbmap, X[count], y[count], arguments))
    np.testing.assert_allclose(whole.estimates.w, rest.estimates.w, atol=1e-8)
    assert whole.null_deviance == pytest.approx(rest.null_deviance, rel=1e-10)
    np.testing.assert_allclose(whole.response_range, rest.response_range)


@pytest.mark.parametrize("open_", [False, True])
def test_peak_of_memory(tmp_path, open_):
    """Beside 36 bytes a row a fit takes an eighth of what the features do.

    Where settings are chosen the fits to 20,000 rows need some memory, whatever n is.
    """
    n, p = 400_000, 60
    rng = np.random.default_rng(0)
    packed = np.memmap(tmp_path / "x", np.float32, "w+", shape=(tiles.count(n), p, 64))
    packed[:] = rng.random(packed.shape, np.float32) - 0.5
    X = np.asarray(packed)
    y = X[:, :2].sum(axis=1).reshape(-1) + 0.1 * rng.normal(size=n)
    few = tiles.unpack(X[:4], 256).astype(float)
    arguments = {"dtype": "float32", "m": 1, "lambda_": 0.1, "threads": 1}
    if open_:
        arguments |= {"lambda_": None, "refit": "none"}
    problem = problem_of(ld.gbmap, few, y[:256], arguments)
    batch = replace(problem.batch, X=X, y=y, rows=np.arange(n), streamed=True)
    problem = replace(problem, batch=batch)
    fit(problem)  # compiled before memory is counted
    tracemalloc.start()
    try:
        fit(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    of_folds = 3 * 20_000 * p * 8 if open_ else 0
    assert peak <= 36 * n + X.nbytes / 8 + of_folds


def test_sums_are_those_of_the_spans(rows):
    """What workers would send of their own rows adds up to the same bits."""
    X, y, in_place = rows
    problem = problem_of(ld.gbmap, X, y, CALLS["joint"], in_place)
    made = fit(problem)
    batch, learners = problem.batch, made.estimates
    spans = row_spans(N)
    assert len(spans) == 2
    sent = [
        effect_sums(learners, in_place[tiles.of_rows(i)].copy(), batch.weight[i].copy())
        for i in spans
    ]
    effects = Effects.from_batch(learners, batch, 2)
    np.testing.assert_array_equal(effects.mean_abs, sent[0][2] + sent[1][2])


def test_a_path_stays_in_place(rows, monkeypatch):
    module = import_module("lodim.selection.path")
    X, y, in_place = rows
    paths = []
    for at in (None, in_place):
        problem = problem_of(ld.gbmap, X, y, {"m": 1}, at)
        monkeypatch.setattr(module, "prepare", lambda *a, p=problem: p)
        paths.append(ld.path(ld.gbmap, "y ~ .", None, m=1, lambdas=[1.0, 0.1]))
    one, other = (path.tidy() for path in paths)
    assert one.equals(other)
