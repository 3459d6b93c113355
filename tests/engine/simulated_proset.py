"""proset's CUDA kernels and a fit in Numba's simulator; test_cuda.py runs this file beside
simulated_gbmap.py, in a process of their own.
"""

import numpy as np
import pytest
from numba import config

import lodim as ld
from lodim.engine import blocks, tiles
from lodim.models.proset import cuda_kernels, prototypes
from lodim.models.proset.cpu_kernels import CLASSES, DENSITY, SQUARED
from lodim.models.proset.objective import BatchObjective
from lodim.models.proset.prototypes import Prototypes
from models.proset.test_objective import Case, losses

assert config.ENABLE_CUDASIM
kinds = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def on_gpu(case):
    return BatchObjective(
        case.scoring, case.x, case.target, case.loss, case.penalty, 1, engine="cuda"
    )


def assert_same(case, tolerance=1e-13):
    (f, g), (value, gradient) = case.objective()(case.theta), on_gpu(case)(case.theta)
    np.testing.assert_allclose(value, f, rtol=tolerance)
    np.testing.assert_allclose(gradient, g, rtol=0, atol=10 * tolerance * np.abs(g).max())


@losses
@kinds
def test_loss_and_gradient(loss, dtype):
    assert_same(Case(loss, n=40, p=3, J=20, dtype=dtype), 1e-13 if dtype == np.float64 else 1e-6)


def test_several_tiles_chunks_and_blocks(monkeypatch):
    """Tiles of rows and of points, and chunks, of which the last is not full; a single block."""
    monkeypatch.setattr(cuda_kernels, "PROCESSORS", 1)
    monkeypatch.setattr(cuda_kernels, "RESIDENT", 1)
    assert cuda_kernels.count_blocks(2) == 1
    case = Case(DENSITY, n=64 + 3, p=10, J=70)
    case.theta[10:78] = 0.0  # one tile of points has none with weight
    assert_same(case)


@pytest.mark.parametrize("part", [slice(0, 3), slice(3, 23)], ids=["v", "w"])
def test_nothing_but_zeros(part):
    case = Case(CLASSES, n=5, p=3, J=20)
    case.theta[part] = 0.0
    assert_same(case)


def test_the_same_bits_twice_and_rows_that_move_once(monkeypatch):
    case = Case(SQUARED, n=5, p=3, J=5)
    objective = on_gpu(case)
    moved = []
    real = cuda_kernels.upload
    monkeypatch.setattr(cuda_kernels, "upload", lambda v: moved.append(v.size) or real(v))
    (f, g), (value, gradient) = objective(case.theta), objective(case.theta)
    assert value == f and np.array_equal(gradient, g)
    # v and w with four constants, and where they belong; one feature has no weight.
    assert moved == 2 * [2 + 5 + 4, 2 + 5]


def prototype_set(M, p=3):
    rng = np.random.default_rng(4)
    none = np.zeros(0, np.int64)
    v = rng.uniform(0.2, 1.0, (2, p)) * [[1] * p, [0] + [1] * (p - 1)]
    points = rng.normal(size=(M, p)), rng.integers(0, 3, M) * 1.0, rng.random(M)
    whose = 1 + (np.arange(M) >= M - 3), np.arange(M), none, none
    return Prototypes(np.arange(p), *points, *whose, v, np.zeros(2), np.zeros(3), 1.0, CLASSES, 3)


def test_the_grid_follows_the_shape():
    for n_tiles in (1, 264, 265, 1563, 15_625):
        blocks = cuda_kernels.count_blocks(n_tiles)
        each = -(-n_tiles // blocks)
        assert blocks <= 264 and (blocks - 1) * each < n_tiles  # no block without a tile


@pytest.mark.parametrize("dtype, n, M", [(np.float64, 5, 70), (np.float32, 70, 8)])
def test_sums_in_parts(dtype, n, M, monkeypatch):
    """Two batches, rows that go to the GPU a tile at a time."""
    monkeypatch.setattr(prototypes, "TILES_ON_GPU", 1)
    t = prototype_set(M)
    X = tiles.pack(np.random.default_rng(5).normal(size=(n, 3)), dtype)
    values = np.column_stack([prototypes.response_values(t), np.ones((len(t), 2))])
    here, there = (prototypes.weighted_sums(t, values, X, n, engine=e) for e in ("cpu", "cuda"))
    np.testing.assert_allclose(there, here, rtol=1e-13 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("response, loss", [("y", "density"), ("kind", "squared")])
def test_a_fit(response, loss):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 24))
    data = {"a": a, "b": b, "y": np.sin(a) + 0.1 * b, "kind": np.where(a > 0, "u", "v")}
    fits, few = (
        [],
        {"n_candidates": 8, "lambda_v": 0.02, "control": {"max_iter": 2, "precision": "float64"}},
    )
    for name in blocks.ENGINES[1:]:
        with pytest.warns(ld.ConvergenceWarning):
            fits.append(ld.proset(f"{response} ~ a + b", data, loss=loss, engine=name, **few))
    here, there = fits
    assert "engine='cuda'" in there.call and len(there.estimates)
    np.testing.assert_allclose(there.log["objective"], here.log["objective"], rtol=1e-10)
    np.testing.assert_allclose(there.familiarity(data), here.familiarity(data), rtol=1e-8)
    np.testing.assert_allclose(there.predict(data, "link"), here.predict(data, "link"), rtol=1e-8)
