"""Arrays and kernels on a GPU. The only importer of numba's CUDA target, itself imported by
`blocks` alone (and by the kernels it launches), and only once a GPU is asked for.

The target is numba_cuda_mlir where that is installed, else numba.cuda, which it succeeds: the same
kernels compile with both. The simulator is numba.cuda's.
"""

import math
import threading
import warnings
import weakref
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numba import config

from lodim.errors import DeviceError

if find_spec("numba_cuda_mlir") and not config.ENABLE_CUDASIM:
    from numba_cuda_mlir import cuda
else:
    from numba import cuda

# One device, one queue: folds that run side by side in threads take turns.
_TURN = threading.RLock()
_PLACED: dict[int, "DeviceTiles"] = {}
ROW_BYTES = 64  # of a row beside its features: response, weight, scores, and their copies


def usable():
    """Whether there is a GPU that kernels can run on."""
    return cuda.is_available()


def fits(X):
    """Whether the GPU has room for X and what belongs to its rows."""
    rows = X.shape[0] * X.shape[2]
    return X.nbytes + ROW_BYTES * rows <= room()


def room():
    """Bytes that the GPU can still hold."""
    return 0.95 * cuda.current_context().get_memory_info()[0]


class DeviceTiles:
    """Tiles of X, (n_tiles, p, 64), in the memory of the GPU; kernels find them by this type.

    The CUDA twin of a kernel in `models/<model>/kernels/cpu.py` is the function of the same name in
    `kernels/cuda.py` beside it: called with these tiles and the kernel's further arguments, it
    returns the sum of the partials, or fills its last argument.
    """

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, tuple(array.shape), array.dtype
        self._scratch = {}

    @classmethod
    def from_tiles(cls, X):
        """The copy of X on the GPU, the same one for as long as X lives: a path moves X once."""
        if id(X) not in _PLACED:
            _PLACED[id(X)] = cls(upload(X))
            weakref.finalize(X, _PLACED.pop, id(X), None)
        return _PLACED[id(X)]

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, part):
        return DeviceTiles(self.array[part])

    def scratch(self, name, shape):
        """An array that is kept from pass to pass: to allocate one stops the GPU."""
        kept = self._scratch.get(name)
        if kept is None or kept[0] != shape:
            self._scratch.pop(name, None)
            if 8 * math.prod(shape) > room():
                gigabytes = 8e-9 * math.prod(shape)
                raise DeviceError(
                    f"the GPU's free memory does not hold what a pass leaves there "
                    f"({gigabytes:.1f} GB): use engine='cpu'"
                )
            self._scratch[name] = kept = shape, cuda.device_array(shape, np.float64)
        return kept[1]

    def over_rows(self, kernel, *args):
        """Let the twin of a kernel fill its last argument."""
        self.run(kernel, *args)

    def sum_blocks(self, kernel, shape, *args):
        """The sum, of some shape, that the twin of a kernel returns."""
        return self.run(kernel, *args)

    def run(self, kernel, *args):
        """What the CUDA twin of a compiled CPU kernel makes of these tiles."""
        function = kernel.py_func
        twins = import_module(function.__module__.replace(".kernels.cpu", ".kernels.cuda"))
        with _TURN:
            return getattr(twins, function.__name__)(self, *args)


def upload(v):
    """A host array as a contiguous array on the GPU."""
    return cuda.to_device(np.ascontiguousarray(v))


def zeros(shape):
    """Zeros on the GPU."""
    return cuda.to_device(np.zeros(shape))


def limit_registers(count):
    """Options of a kernel that may use so many registers; the simulator knows no limit."""
    return {} if config.ENABLE_CUDASIM else {"max_registers": count}


def launch(kernel, grid, threads, *args):
    """Start a CUDA kernel, without numba's warning about small grids."""
    with _TURN:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Grid size")
            configured = kernel[grid, threads]
        configured(*args)
