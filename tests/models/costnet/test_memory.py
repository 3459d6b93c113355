"""What a fit of costnet keeps of many rows, whose features must not be copied."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.design.batch import Batch
from lodim.fitting.fit_model import model_of, prepare
from streamed_batches import frame, in_file, problem_of, saved

pytestmark = pytest.mark.long

P, FEW = 10, 1000


def random_problem(n, family):
    """A Problem of n rows, whose design comes from the first of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n // 64, P, 64))
    eta = (0.5 * X[:, 0] - 0.3 * X[:, 1]).ravel()
    y = eta + rng.normal(size=n)
    if family == "binomial":
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    frame = pd.DataFrame(rng.normal(size=(FEW, P)), columns=[f"x{j}" for j in range(P)])
    frame["y"] = y[:FEW] if family == "gaussian" else np.where(y[:FEW] > 0.5, "yes", "no")
    costs = {f"x{j}": 1 + j % 3 for j in range(P)}
    given = {"costs": costs, "rules": ("group",), "n_lambda": 8, "seed": 0}
    problem = prepare(model_of(ld.costnet), "y ~ .", frame, given)
    batch = Batch(X, y, None, None, pd.RangeIndex(n), np.arange(n), streamed=True)
    return replace(problem, batch=batch)


def peak(problem):
    """Most memory that a fit takes beside its problem, in bytes."""
    tracemalloc.start()
    model_of(ld.costnet).fit(problem)
    out = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return out


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_memory_grows_by_some_numbers_a_row(family):
    n = 64 * 2048
    model_of(ld.costnet).fit(random_problem(n, family))  # imports and compiles
    sizes = n, 2 * n
    few, many = (peak(random_problem(size, family)) for size in sizes)
    # Weight; response, weight and scores as tiles, and the scores of a trial; a sort of the rows.
    assert (many - few) / (sizes[1] - sizes[0]) < 60 < 8 * P


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_file_holds_the_same_as_memory(family, tmp_path):
    X, y = frame(66_000, 4)
    y = y if family == "gaussian" else (y > 1.0).astype(float)
    given = {
        "costs": {"x0": 1, "x1": 2, "x2": 1, "x3": 2},
        "n_lambda": 20,
        "rules": ("group",),
        "seed": 0,
    }
    files = []
    for at in (None, in_file(tmp_path, X)):
        problem = problem_of(ld.costnet, X, y, given, at)
        files.append(saved(model_of(ld.costnet).fit(problem), tmp_path))
    assert files[0] == files[1]
