"""CUDA: the simulated tests, in a process of their own, and what is said where there is no GPU."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lodim as ld
from lodim.engine import blocks as engine
from lodim.engine import tiles

HERE = Path(__file__).parent
DATA = {"x": [1.0, 2.0, 3.0, 5.0], "y": [1.0, 3.0, 2.0, 4.0], "kind": list("uvuv")}
FITS = [
    partial(ld.gbmap, "y ~ x", DATA, m=1, lambda_=0.1),
    partial(ld.proset, "y ~ x", DATA),
    partial(ld.melm, "kind ~ x", DATA, k=1, gamma=1.0, control={"calibrate": False}),
]
models = pytest.mark.parametrize("fit", FITS, ids=["gbmap", "proset", "melm"])


@pytest.mark.long
def test_in_the_simulator():
    """All of simulated_*.py: the simulator replaces the CUDA target in the whole process."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=5",
         *sorted(HERE.glob("simulated_*.py"))],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, cwd=HERE.parents[1],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.long
@pytest.mark.parametrize("simulated, target", [("0", "numba_cuda_mlir.cuda"), ("1", "numba.cuda")])
def test_the_successor_serves_where_it_is_installed(tmp_path, simulated, target):
    """A stand-in, since the package is large: what matters is which one the kernels are made by."""
    package = tmp_path / "numba_cuda_mlir"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cuda.py").touch()
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", "from lodim.engine import cuda; print(cuda.cuda.__spec__.name)"],
        env=os.environ | {"PYTHONPATH": path, "NUMBA_ENABLE_CUDASIM": simulated},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == target


@pytest.fixture
def no_gpu():
    from lodim.engine import cuda

    if cuda.usable():
        pytest.skip("there is a GPU here")


@models
def test_cuda_without_a_gpu(fit, no_gpu, monkeypatch):
    for installed, error in ((None, ld.MissingExtraError), (True, ld.DeviceError)):
        monkeypatch.setattr(engine, "find_spec", lambda name, found=installed: found)
        with pytest.raises(error, match="engine='cuda' needs an NVIDIA GPU"):
            fit(engine="cuda")


@models
def test_cuda_without_numba_cuda(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "lodim.engine.cuda", None)
    with pytest.raises(ld.MissingExtraError, match=r"lodim\[cuda\]"):
        fit(engine="cuda")


@models
def test_auto_is_silent(fit, no_gpu, monkeypatch):
    """Large data, a CUDA target at hand, no GPU: the CPU's fit, without a word."""
    small = fit(engine="cpu")
    monkeypatch.setattr(engine, "LARGE", 0)
    monkeypatch.setattr("lodim.models.melm.divergence.MIN_GPU_PAIRS", 0)
    monkeypatch.setattr(engine, "find_spec", lambda name: True)
    auto = fit(engine="auto")
    np.testing.assert_array_equal(auto.predict(DATA), small.predict(DATA))


def test_small_data_never_look_for_a_gpu(monkeypatch):
    def looked(*args):
        raise AssertionError("looked for a GPU")

    X = tiles.pack(np.ones((5, 2)))
    monkeypatch.setattr(engine, "_cuda_for", looked)
    assert engine.place(X, "auto") is X and engine.place(X, "cpu") is X


@models
def test_a_name_that_is_no_engine(fit):
    with pytest.raises(ld.ArgumentError, match="engine must be one of auto, cpu, cuda"):
        fit(engine="gpu")


@models
def test_a_saved_fit_predicts_where_there_is_no_gpu(fit, tmp_path):
    fit = fit()
    expected = fit.predict(DATA)
    object.__setattr__(fit.settings, "engine", "cuda")
    fit.save(tmp_path / "fit.lodim")
    np.testing.assert_array_equal(ld.load(tmp_path / "fit.lodim").predict(DATA), expected)
