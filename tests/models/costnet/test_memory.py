"""What a fit of costnet keeps of many rows, whose features must not be copied."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.batch import Batch
from lodim.fitting.spec import prepare, spec_of

P, FEW = 10, 1000


def problem_of(n, family, X=None):
    """A Problem of n rows, whose design comes from the first of them."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(n // 64, P, 64))
    X = drawn if X is None else X
    eta = (0.5 * X[:, 0] - 0.3 * X[:, 1]).ravel()
    y = eta + rng.normal(size=n)
    if family == "binomial":
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    frame = pd.DataFrame(rng.normal(size=(FEW, P)), columns=[f"x{j}" for j in range(P)])
    frame["y"] = y[:FEW] if family == "gaussian" else np.where(y[:FEW] > 0.5, "yes", "no")
    costs = {f"x{j}": 1 + j % 3 for j in range(P)}
    given = {"costs": costs, "rules": ("group",), "n_lambda": 20, "seed": 0}
    problem = prepare(ld.costnet, "y ~ .", frame, given)
    batch = Batch(X, y, None, None, pd.RangeIndex(n), np.arange(n), streamed=True)
    return replace(problem, batch=batch)


def peak(problem):
    """Most memory that a fit takes beside its problem, in bytes."""
    tracemalloc.start()
    spec_of(ld.costnet).fit(problem)
    out = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return out


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_memory_grows_by_some_numbers_a_row(family):
    n = 64 * 2048
    peak(problem_of(n, family))  # imports and compiles
    sizes = n, 3 * n
    few, many = (peak(problem_of(size, family)) for size in sizes)
    # Weight; response, weight and scores as tiles, and the scores of a trial; a sort of the rows.
    assert (many - few) / (sizes[1] - sizes[0]) < 60 < 8 * P


def test_where_rows_are_makes_no_difference(tmp_path):
    n = 64 * 1100
    problem = problem_of(n, "binomial")
    X = problem.batch.X
    mapped = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    mapped[:] = X
    there = problem_of(n, "binomial", mapped.view(np.ndarray))
    here, there = (spec_of(ld.costnet).fit(each).estimates.frontier for each in (problem, there))
    for name in ("coef", "cost", "held_out"):
        np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
