"""melm's CUDA kernels and a fit in Numba's simulator; test_cuda.py runs this file beside
simulated_gbmap.py, in a process of their own.
"""

import numpy as np
import pytest
from numba import config

import lodim as ld
from lodim.engine import blocks as engine
from lodim.engine import cuda as device
from lodim.models.melm import cuda_kernels as cuda_kernels
from lodim.models.melm import divergence
from lodim.models.melm.divergence import Divergence
from lodim.models.melm.whitening import Sample
from models.melm.test_divergence import ONE, Case

assert config.ENABLE_CUDASIM


class Counts(Case):
    """A case whose classes have so many rows."""

    def __init__(self, counts, p=4, k=2, **options):
        super().__init__(n=sum(counts), p=p, k=k, C=len(counts), **options)
        self.code = np.repeat(np.arange(len(counts)), counts)
        cov = self.sample.cov
        self.sample = Sample.from_rows(self.X, self.code, self.weight, self.basis)
        # A class of one row has no covariance of its own.
        self.sample.cov[:] = np.where(np.isfinite(cov), cov, 0.0)

    def on_gpu(self, **options):
        return Divergence(self.sample, self.share, self.h2, self.k, engine="cuda", **options)


def both(case, theta=None, active=ONE, **options):
    """Values and gradients on the CPU and in the simulator."""
    theta = case.theta.reshape(1, -1) if theta is None else theta
    return case.objective(**options)(theta, active), case.on_gpu(**options)(theta, active)


def assert_same(case, *args, **options):
    (f, g), (value, gradient) = both(case, *args, **options)
    np.testing.assert_allclose(value, f, rtol=1e-12)
    np.testing.assert_allclose(gradient, g, rtol=0, atol=1e-12 * np.abs(g).max())


@pytest.mark.parametrize("counts, k", [((63, 65), 1), ((1, 65), 2), ((64, 2), 3)])
def test_value_and_gradient_at_the_borders_of_tiles(counts, k):
    assert_same(Counts(counts, k=k))


def test_several_classes_of_which_one_has_a_single_row():
    assert_same(Counts((5, 1, 2)))


def test_one_class():
    assert_same(Counts((70,)))


def test_more_dimensions_and_features_than_are_staged_together():
    assert cuda_kernels.CHUNK < 10 and cuda_kernels.WARPS < 12
    assert_same(Counts((14, 13), p=12, k=10))


def test_problems_side_by_side(monkeypatch):
    """Some of several, one by one and together: the same bits."""
    case, active = Counts((4, 5)), np.array([3, 0])
    theta, ends = np.random.default_rng(3).normal(size=(4, case.theta.size)), []
    for together in (1, 32):
        monkeypatch.setattr(cuda_kernels, "PROBLEMS", together)
        here, there = both(case, theta, active)
        ends.append(there)
        np.testing.assert_allclose(there[1], here[1], atol=1e-12)
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    assert ends[0][1][active].all() and not ends[0][1][[1, 2]].any()


def test_classes_far_apart():
    """All kernels between classes vanish; rows that fill tiles up are closer than any pair."""
    case = Counts((6, 14), k=1)
    case.theta[:] = 1.0
    case.sample.Z[:, :6] -= 100.0
    case.sample.Z[:, 6:] += 90.0
    (f, g), (value, gradient) = both(case)
    assert f[0] < -1000.0
    np.testing.assert_allclose(value, f, rtol=1e-12)
    np.testing.assert_allclose(gradient, g, rtol=0, atol=1e-10 * np.abs(g).max())


def test_rows_move_once(monkeypatch):
    """All objectives of a sample share its tiles; a pass sends parameters alone."""
    classes, parameters = [(2, 64), (2,), (3,)], [(1, 2, 2, 4, 2), (1, 2, 2)]
    moved = []
    for place in (device, cuda_kernels):
        monkeypatch.setattr(
            place, "upload", lambda v, real=place.upload: moved.append(v.shape) or real(v)
        )
    case = Counts((5, 6))
    for _ in range(2):
        case.on_gpu()(case.theta.reshape(1, -1), ONE)
    assert moved == [(2, 4, 64)] + 2 * (classes + parameters)


def test_problems_that_run_together_have_room():
    for n_tiles, C, k in ((2, 2, 2), (79, 3, 3), (256, 10, 10), (15_625, 2, 3)):
        most = cuda_kernels.projections_at_once(n_tiles, C, k)
        size = 2 * 8 * most * C * k * n_tiles * 64
        assert 1 <= most <= cuda_kernels.PROBLEMS and (most == 1 or size <= cuda_kernels.MAX_BYTES)


def test_no_room_for_a_pass(monkeypatch):
    there, case = Counts((5, 6)).on_gpu(), Counts((5, 6))
    monkeypatch.setattr(device, "free_bytes", lambda: 1000.0)
    with pytest.raises(ld.DeviceError, match="too little free memory for the results of a pass"):
        there(case.theta.reshape(1, -1), ONE)
    with pytest.raises(ld.DeviceError, match="too little free memory for the features"):
        case.on_gpu()


def test_auto_takes_a_gpu_for_many_pairs(monkeypatch):
    case = Counts((5, 6))
    monkeypatch.setattr(engine, "find_spec", lambda name: True)
    for many, there in ((divergence.MIN_GPU_PAIRS, False), (60, True)):
        monkeypatch.setattr(divergence, "MIN_GPU_PAIRS", many)
        auto = Divergence(case.sample, case.share, case.h2, 2, engine="auto")
        assert (auto._tiles is not None) == there


def test_a_fit():
    rng = np.random.default_rng(1)
    code = np.arange(10) % 2
    x = rng.normal(size=(10, 3)) + 1.5 * code[:, None]
    data = {name: x[:, j] for j, name in enumerate("abc")}
    data |= {"kind": np.where(code, "u", "v"), "weight": rng.uniform(0.5, 2.0, 10)}
    control, fits = {"max_iter": 1, "calibrate": False}, []
    call = {"k": 1, "gamma": 1.0, "n_starts": 1, "weights": "weight", "control": control}
    for name in ("cpu", "cuda"):
        with pytest.warns(ld.ConvergenceWarning):
            fits.append(ld.melm("kind ~ a + b + c", data, engine=name, **call))
    here, there = fits
    assert "engine='cuda'" in there.call
    np.testing.assert_allclose(there.log["divergence"], here.log["divergence"], rtol=1e-10)
    for type in ("link", "projection"):
        np.testing.assert_allclose(
            there.predict(data, type), here.predict(data, type), rtol=1e-8, atol=1e-10
        )
