"""The CUDA kernels and a whole fit in Numba's simulator; test_cuda.py runs this file in a process
of its own, since the simulator is chosen when numba.cuda is first imported.
"""

import gc
import time
from threading import Thread
from unittest.mock import Mock

import numpy as np
import pytest
from numba import config
from numba.cuda.simulator.kernelapi import FakeCUDAShared
from scipy.special import logsumexp

import lodim as ld
from lodim.engine import blocks, tiles
from lodim.engine.cuda import _PLACED, DeviceTiles, upload, zeros
from lodim.family import Ordinal
from lodim.family.binomial import LOGISTIC
from lodim.family.gaussian import SQUARED
from lodim.models.gbmap import cuda_kernels
from lodim.models.gbmap.cpu_kernels import IDENTITY, SOFTPLUS, Form, joint_gradient, loss_gradient
from lodim.models.gbmap.learners import WeakLearners
from lodim.models.gbmap.worker_rows import margin

assert config.ENABLE_CUDASIM


def sums(n, p, activation=SOFTPLUS, loss=SQUARED, dtype=np.float64, q=3, active=(0, 2), runs=1):
    """Sums of loss and gradient on the CPU and in the simulator, for the learners `active`."""
    rng = np.random.default_rng(n + p)
    X = tiles.pack(rng.normal(size=(n, p)).astype(dtype), dtype)
    y = rng.normal(size=n) if loss == SQUARED else (rng.random(n) < 0.4) * 1.0
    columns = [tiles.pad(v, len(X), dtype) for v in (y, rng.normal(size=n), rng.random(n) / n)]
    theta, sign = rng.normal(size=(q, 2 + p)), np.resize([1.0, -1.0], q)
    rest = theta, np.array(active), sign, Form(2.5, activation, loss)
    cpu = blocks.sum_blocks(loss_gradient, X, (q, 3 + p), *columns, *rest)
    there = blocks.place(X, "cuda")
    columns = [upload(v.astype(np.float64)) for v in columns]
    got = [
        blocks.sum_blocks(loss_gradient, there, (q, 3 + p), *columns, *rest) for _ in range(runs)
    ]
    return cpu, *got


def rounding(dtype, double):
    """Tolerance: within a tile the CPU works in float32 where X is; the GPU never does."""
    return 1e-5 if dtype == np.float32 else double


def assert_same(n, p, dtype=np.float64, **kind):
    cpu, got = sums(n, p, dtype=dtype, **kind)
    # Relative to the largest sum of a learner: a sum near zero keeps the others' rounding.
    largest = np.maximum(np.abs(cpu).max(axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(got / largest, cpu / largest, rtol=0, atol=rounding(dtype, 1e-12))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("activation", [SOFTPLUS, IDENTITY])
@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
def test_loss_and_gradient(activation, loss, dtype):
    assert_same(70, 3, activation=activation, loss=loss, dtype=dtype)


def test_the_same_bits_twice():
    _, first, second = sums(130, 3, runs=2)
    np.testing.assert_array_equal(first, second)


def test_threads_share_an_array(monkeypatch):
    def slow(shape, dtype, empty=np.empty):
        time.sleep(0.01)  # long enough for the other threads to ask
        return empty(shape, dtype)

    def ask():
        arrays.append(shared.array(3, np.float64))

    monkeypatch.setattr(np, "empty", slow)
    shared, arrays = FakeCUDAShared(0), []
    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(arrays) == 8 and all(a is arrays[0] for a in arrays)


@pytest.mark.parametrize("p", [0, 1, 32, 33, 65, 130])
def test_narrow_and_wide(p):
    assert_same(64, p)


@pytest.mark.parametrize("active", [[1], [0, 1, 2], [4, 0, 3, 1]])
def test_any_learners(active):
    assert_same(40, 2, q=5, active=active)


@pytest.mark.parametrize("p", [2, 66])
def test_several_tiles_a_block(p, monkeypatch):
    monkeypatch.setattr(cuda_kernels, "PROCESSORS", 1)
    monkeypatch.setattr(cuda_kernels, "RESIDENT", 2)
    assert cuda_kernels.count_blocks((3, p, 64), 8) == 2
    assert_same(64 * 2 + 3, p)


def test_the_grid_follows_the_shape():
    for itemsize in (4, 8):
        for p in (0, 1, 25, 400, 5000):
            for n_tiles in (1, 100, 1563, 156_250):
                n_blocks = cuda_kernels.count_blocks((n_tiles, p, 64), itemsize)
                each = -(-n_tiles // n_blocks)
                assert 1 <= n_blocks <= min(n_tiles, 132 * cuda_kernels.RESIDENT)
                assert (n_blocks - 1) * each < n_tiles or each == 1  # no block without a tile


def learners(p, activation, K, M=3):
    rng = np.random.default_rng(p)
    return WeakLearners(
        rng.normal(size=(M, 2 + p)), np.resize([1.0, -1.0, -1.0], M), np.arange(M) % K,
        1 + np.arange(M) // K, 4.0, activation, 2.5, K, np.zeros((M, 0)),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K, loss", [(1, SQUARED), (1, LOGISTIC), (3, LOGISTIC)])
def test_joint_gradient(K, loss, dtype):
    n, p, M, rng = 200, 3, 4, np.random.default_rng(K)
    X = tiles.pack(rng.normal(size=(n, p)).astype(dtype), dtype)
    y = rng.normal(size=n) if loss == SQUARED else rng.integers(0, max(K, 2), n) * 1.0
    y, weight = (tiles.pad(v, len(X), dtype) for v in (y, rng.random(n) / n))
    offset = tiles.pack(rng.normal(size=(n, K)).astype(dtype), dtype)
    sign, target = np.resize([1.0, -1.0], M), np.arange(M) % K
    rest = rng.normal(size=(M, 2 + p)), sign, target, 2.5, loss
    cpu = blocks.sum_blocks(joint_gradient, X, (M, 4 + p), y, offset, weight, *rest)
    columns = [upload(v.astype(np.float64)) for v in (y, offset, weight)]
    there = blocks.place(X, "cuda")
    got = blocks.sum_blocks(joint_gradient, there, (M, 4 + p), *columns, *rest)
    scale = np.abs(cpu).max()
    np.testing.assert_allclose(got / scale, cpu / scale, rtol=0, atol=rounding(dtype, 1e-12))


@pytest.mark.parametrize("activation", [SOFTPLUS, IDENTITY])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forward(activation, dtype):
    n, t = 130, learners(3, activation, K=2)
    X = tiles.pack(np.random.default_rng(0).normal(size=(n, 3)), dtype)
    pairs = [
        [function(t, X, n, engine=e) for e in ("cpu", "cuda")]
        for function in (WeakLearners.score, WeakLearners.embedding)
    ]
    pairs.append([t.slopes(blocks.place(X, e), n) for e in ("cpu", "cuda")])
    for here, there in pairs:
        largest = np.abs(here).max(axis=0)
        np.testing.assert_allclose(
            there / largest, here / largest, rtol=0, atol=rounding(dtype, 1e-13)
        )


def test_margin_of_a_class():
    rng = np.random.default_rng(3)
    score, code = 30 * rng.normal(size=(100, 4)), rng.integers(0, 4, 100).astype(float)
    there, codes = upload(tiles.pack(score)), upload(tiles.pad(code, 2))
    y, base = zeros((2, 64)), zeros((2, 64))
    cuda_kernels.margin(codes, there, 2, np.empty((2, 0)), y, base)
    others = logsumexp(np.delete(score, 2, axis=1), axis=1)
    np.testing.assert_array_equal(y.copy_to_host().ravel()[:100], code == 2)
    np.testing.assert_allclose(base.copy_to_host().ravel()[:100], score[:, 2] - others, rtol=1e-13)
    family, boundaries = Ordinal(3), np.array([1.0, 0.5, -2.0])
    f = upload(tiles.pack(score[:, :1]))
    cuda_kernels.margin(codes, f, 0, family.class_table(boundaries), y, base)
    expected = margin(family, code, score[:, :1], 0, boundaries)
    for got, wanted in zip((y, base), expected, strict=True):
        np.testing.assert_array_equal(got.copy_to_host().ravel()[:100], wanted)


def test_one_copy_for_as_long_as_the_features_live():
    X = tiles.pack(np.ones((3, 2)))
    first = blocks.place(X, "cuda")
    assert blocks.place(X, "cuda") is first and len(first) == 1 and first.shape == (1, 2, 64)
    assert blocks.place(X, "auto") is X and blocks.place(X, "cpu") is X  # small
    before = len(_PLACED)
    del X
    gc.collect()
    assert len(_PLACED) == before - 1


def test_features_that_do_not_fit(monkeypatch):
    monkeypatch.setattr("lodim.engine.cuda.fits", lambda X: False)
    monkeypatch.setattr(blocks, "LARGE", 0)
    monkeypatch.setattr(blocks, "find_spec", lambda name: True)
    X = tiles.pack(np.ones((3, 2)))
    assert blocks.place(X, "auto") is X
    with pytest.raises(ld.DeviceError, match="too little free memory for the features"):
        blocks.place(X, "cuda")


def test_auto_takes_a_gpu_for_large_data(monkeypatch):
    X = tiles.pack(np.ones((3, 2)))
    monkeypatch.setattr(blocks, "find_spec", lambda name: True)
    monkeypatch.setattr(blocks, "LARGE", X.nbytes)
    assert isinstance(blocks.place(X, "auto"), DeviceTiles)
    with monkeypatch.context() as broken:  # an error of the copy is no missing GPU
        broken.setattr(DeviceTiles, "from_tiles", Mock(side_effect=ld.DeviceError("copy")))
        with pytest.raises(ld.DeviceError, match="copy"):
            blocks.place(X, "auto")
    monkeypatch.setattr(blocks, "find_spec", lambda name: None)
    assert blocks.place(X, "auto") is X


SMALL = {"lambda_": 0.1, "beta": 2.0, "n_starts": 1, "threads": 1}


def frame(n=60):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, n))
    y = np.cos(a) + b + 0.1 * rng.normal(size=n)
    return {"a": a, "b": b, "y": y, "two": np.where(y > 0.5, "yes", "no"),
            "three": np.array(["u", "v", "w"])[np.digitize(y, [0.0, 1.0])],
            "ordered": np.digitize(y, [0.0, 1.0]),
            "weight": rng.random(n)}  # fmt: skip


@pytest.fixture
def one_solver(monkeypatch):
    """L-BFGS on the CPU too, not Newton's method: steps can then be compared before the end."""
    monkeypatch.setattr("lodim.models.gbmap.training.BoostState.small_data", False)


def both(formula, data, most, **arguments):
    """Fits on the CPU and in the simulator, stopped early."""
    with pytest.warns(ld.ConvergenceWarning):
        return [
            ld.gbmap(formula, data, engine=e, control={"max_iter": most}, **SMALL | arguments)
            for e in ("cpu", "cuda")
        ]


def test_newton_and_lbfgs_end_in_the_same_minimum():
    data = frame()
    here, there = [ld.gbmap("two ~ a + b", data, engine=e, m=1, **SMALL) for e in ("cpu", "cuda")]
    assert here.log["newton"].all() and not there.log["newton"].any()
    assert here.converged and there.converged
    np.testing.assert_allclose(there.log["objective"], here.log["objective"], rtol=1e-8)
    np.testing.assert_allclose(there.predict(data, "link"), here.predict(data, "link"), atol=1e-4)


@pytest.mark.usefixtures("one_solver")
@pytest.mark.parametrize("refit", ["none", "joint"])
def test_ordered_classes(refit):
    data = frame()
    given = {"family": "ordinal", "refit": refit, "weights": "weight", "m": 2}
    here, there = both("ordered ~ a + b", data, 3, **given)
    np.testing.assert_allclose(there.log["deviance"], here.log["deviance"], rtol=1e-10)
    np.testing.assert_allclose(
        there.predict(data, "link"), here.predict(data, "link"), rtol=1e-8, atol=1e-10
    )


@pytest.mark.usefixtures("one_solver")
@pytest.mark.parametrize("response, m, most", [("y", 2, 3), ("two", 1, 4), ("three", 1, 2)])
def test_a_fit(response, m, most):
    data = frame()
    here, there = both(f"{response} ~ a + b", data, most, m=m, weights="weight")
    assert "engine='cuda'" in there.call
    np.testing.assert_allclose(there.log["deviance"], here.log["deviance"], rtol=1e-10)
    for type in ("link", "embedding"):
        np.testing.assert_allclose(
            there.predict(data, type), here.predict(data, type), rtol=1e-8, atol=1e-10
        )


def test_starts_on_a_sample(monkeypatch, one_solver):
    """More rows than the sample, for which the GPU hands back the scores of the sample alone."""
    monkeypatch.setattr("lodim.models.gbmap.training.SAMPLE", 14)
    data = frame()
    here, there = both("y ~ a + b", data, 2, m=2)
    np.testing.assert_allclose(there.predict(data), here.predict(data), rtol=1e-8)


def test_wide_data_are_rotated(one_solver):
    rng = np.random.default_rng(2)
    data = {f"x{k}": rng.normal(size=6) for k in range(8)} | {"y": rng.normal(size=6)}
    here, there = both("y ~ .", data, 2, m=2)
    np.testing.assert_allclose(there.predict(data), here.predict(data), rtol=1e-8)


def test_a_path_moves_the_features_once(monkeypatch, one_solver):
    moved = []
    monkeypatch.setattr("lodim.engine.cuda.upload", lambda v: moved.append(v) or upload(v))
    data, arguments = frame(), {k: v for k, v in SMALL.items() if k != "lambda_"}
    paths = []
    for e in ("cpu", "cuda"):
        with pytest.warns(ld.ConvergenceWarning):
            paths.append(
                ld.path(ld.gbmap, "y ~ a + b", data, lambdas=[1.0, 0.1], engine=e, m=1,
                        control={"max_iter": 3}, **arguments)
            )  # fmt: skip
    assert sum(v.ndim == 3 and v.shape[1] == 2 for v in moved) == 1
    np.testing.assert_allclose(paths[1].predict(data, 0.1), paths[0].predict(data, 0.1), rtol=1e-8)


@pytest.mark.parametrize("response", ["y", "three"])
def test_many_rows_and_columns(monkeypatch, response):
    """Directions found on the GPU in all rows, and starts in their span."""
    monkeypatch.setattr("lodim.models.gbmap.training.SAMPLE", 14)
    monkeypatch.setattr("lodim.models.gbmap.training.WIDE", 2)
    here, there = both(f"{response} ~ a + b", frame(), 1, m=2, weights="weight")
    assert (here.log["n_eval"] > 4).all()  # passes for directions among them
    for type in ("link", "embedding"):
        np.testing.assert_allclose(
            there.predict(frame(), type), here.predict(frame(), type), rtol=1e-7, atol=1e-10
        )
