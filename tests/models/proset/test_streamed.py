"""proset on features that are a view of a file: the same bytes, and no copy of them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import lodim as ld
from lodim.models.proset.training import BatchState
from streamed_batches import frame, in_file, problem_of, saved

pytestmark = pytest.mark.long

N = 66_000
FEW = {"lambda_v": 0.01, "n_candidates": 20}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    X, y = frame(N, 2)
    return X, (y > 1.0).astype(float), in_file(tmp_path_factory.mktemp("rows"), X)


def fit(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        return problem.model.fit(problem)


@pytest.mark.parametrize("control", [{"max_iter": 6}, {"max_rows": 2000}])
def test_a_file_holds_the_same_as_memory(rows, control, tmp_path):
    X, y, in_place = rows
    arguments = FEW | {"control": control, "threads": 1}
    files = [
        saved(fit(problem_of(ld.proset, X, y, arguments, at)), tmp_path) for at in (None, in_place)
    ]
    assert files[0] == files[1]


def test_all_rows_score_where_they_are(rows):
    X, y, in_place = rows
    problem = problem_of(ld.proset, X, y, FEW, in_place)
    state = BatchState(problem.batch, problem.family, problem.settings)
    split = state.split(1)
    scoring = state.scoring_rows(split)
    assert scoring.X is in_place
    assert scoring.weight.sum() == pytest.approx(1.0)
    own = scoring.own.ravel()
    np.testing.assert_array_equal(own[split.candidates], np.arange(len(split.candidates)))
    assert (own >= 0).sum() == len(split.candidates)


def test_rows_of_weight_zero_are_no_candidates(rows):
    X, y, in_place = rows
    weights = np.where(np.arange(N) % 3, 1.0, 0.0)
    problem = problem_of(ld.proset, X, y, FEW, in_place, weights)
    state = BatchState(problem.batch, problem.family, problem.settings)
    split = state.split(1)
    assert weights[split.candidates].all() and weights[split.scoring].all()
    assert len(split.scoring) == np.count_nonzero(weights)


def test_another_precision_would_need_a_copy(rows):
    X, y, in_place = rows
    problem = problem_of(ld.proset, X, y, FEW | {"control": {"precision": "float32"}}, in_place)
    with pytest.raises(ld.ArgumentError, match="precision': 'float64'"):
        fit(problem)
    assert replace(problem.batch, streamed=False).out_of_core is False
