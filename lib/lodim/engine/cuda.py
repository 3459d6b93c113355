"""Arrays and compiled loops on a GPU; the only module that imports numba's CUDA target."""

import math
import threading
import warnings
import weakref
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType

import numpy as np
from numba import config

from lodim.engine.scalar_math import softplus
from lodim.errors import DeviceError

if find_spec("numba_cuda_mlir") and not config.ENABLE_CUDASIM:
    from numba_cuda_mlir import cuda
else:
    from numba import cuda

# One GPU with one queue: threads that fit folds in parallel take turns.
_TURN = threading.RLock()
_PLACED: dict[int, "DeviceTiles"] = {}
ROW_BYTES = 64  # bytes per row besides features: response, weight, linear predictors, copies


def usable():
    """Return whether there is a GPU on which kernels can run."""
    return cuda.is_available()


def fits(X):
    """Return whether the GPU has enough free memory for X and a few more values per row."""
    rows = X.shape[0] * X.shape[2]
    return X.nbytes + ROW_BYTES * rows <= free_bytes()


def free_bytes():
    """Return the free memory on the GPU in bytes, less 5%."""
    return 0.95 * cuda.current_context().get_memory_info()[0]


class DeviceTiles:
    """Features (n_tiles, p, 64) in GPU memory; methods run the CUDA versions of CPU kernels."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, tuple(array.shape), array.dtype
        self._scratch = {}

    @classmethod
    def from_tiles(cls, X):
        """Return a copy of the features X on the GPU; the copy is cached while X exists."""
        if id(X) not in _PLACED:
            _PLACED[id(X)] = cls(upload(X))
            weakref.finalize(X, _PLACED.pop, id(X), None)
        return _PLACED[id(X)]

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, part):
        return DeviceTiles(self.array[part])

    def scratch(self, name, shape):
        """Return an uninitialized GPU array; calls with the same name and shape share it."""
        kept = self._scratch.get(name)
        if kept is None or kept[0] != shape:
            self._scratch.pop(name, None)
            if 8 * math.prod(shape) > free_bytes():
                gigabytes = 8e-9 * math.prod(shape)
                raise DeviceError(
                    "the GPU has too little free memory for the results of a pass "
                    f"({gigabytes:.1f} GB): use engine='cpu'"
                )
            self._scratch[name] = kept = shape, cuda.device_array(shape, np.float64)
        return kept[1]

    def over_rows(self, kernel, *args):
        """Run the CUDA version of a CPU kernel that writes values per row to the last of `args`."""
        self.run(kernel, *args)

    def sum_blocks(self, kernel, shape, *args):
        """Run the CUDA version of a CPU kernel; return the sum over rows, of the given shape."""
        return self.run(kernel, *args)

    def run(self, kernel, *args):
        """Run the CUDA version of a compiled CPU kernel on these features."""
        function = kernel.py_func
        twins = import_module(function.__module__.replace(".cpu_kernels", ".cuda_kernels"))
        with _TURN:
            return getattr(twins, function.__name__)(self, *args)


@cache
def device(function):
    """Return the CUDA version of a function of scalars that is compiled for the CPU."""
    python = function.py_func
    twins = {
        "exp_negative": math.exp,
        "log1p_unit": math.log1p,
        "log_positive": math.log,
        "softplus": cuda.jit(device=True)(softplus),
        "exp_bounded": cuda.jit(device=True)(_exp_bounded),
        "like": cuda.jit(device=True)(_like),
    }
    for name in python.__code__.co_names:
        if hasattr(value := python.__globals__.get(name), "py_func"):
            twins[name] = device(value)
    names = python.__globals__ | twins
    return cuda.jit(device=True)(FunctionType(python.__code__, names, python.__name__))


def _exp_bounded(x):
    return math.exp(min(x, 700.0))


def _like(number, x):
    return number  # all sums are in float64


def upload(v):
    return cuda.to_device(np.ascontiguousarray(v))


def zeros(shape):
    return cuda.to_device(np.zeros(shape))


def limit_registers(count):
    """Return compile options for a CUDA kernel with at most `count` registers per thread."""
    return {} if config.ENABLE_CUDASIM else {"max_registers": count}


def launch(kernel, grid, threads, *args):
    """Start kernel(*args) on `grid` blocks of `threads` threads; hide warnings of small grids."""
    with _TURN:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Grid size")
            configured = kernel[grid, threads]
        configured(*args)
