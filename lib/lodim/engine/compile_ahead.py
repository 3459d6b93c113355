"""Kernels that a second process compiles while this one compiles those that are needed first.

numba compiles one kernel at a time in a process, so that threads do not help; its cache on disk
hands over what another process compiled. In the first call on a new machine a model names its
largest kernels and the types that a default call gives them, in a module:

    KERNELS = {"all": ((newton, (FLOATS[2], INTS[0])),)}

    with compiling_ahead(module, threads) as ahead:
        ahead("all")

A kernel that the other process has begun is waited for where it is called; any other is compiled
here, as without it. What goes wrong there costs time here and no more. After the block it ends with
the kernel that it is at: what numba's cache names, but does not hold yet, must be written.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.types import Array, float64, int64

from lodim.checks import as_threads
from lodim.engine.blocks import available_threads
from lodim.engine.compiled import say_compiling

# Types of a number and of arrays of 1 to 5 axes in the order of C.
FLOATS = (float64, *(Array(float64, axes, "C") for axes in range(1, 6)))
INTS = (int64, *(Array(int64, axes, "C") for axes in range(1, 6)))

PROGRESS = "compiled_ahead"  # file beside the kernels: one other process for each such folder
LONGEST = 60.0  # seconds that a kernel is waited for, or that the file of a lost process stands
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)
NO_WINDOW |= getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
OFTEN = 0.005  # seconds between looks at the file

_named: set[tuple] = set()  # kernels and types, each looked for once in a process


@contextlib.contextmanager
def compiling_ahead(module, threads=None):
    """A function of a name among KERNELS that has these compiled by another process.

    Parameters
    ----------
    module : module, optional
        Its KERNELS are a dict of (kernel, types) by name, which the other process reads there:
        "all" of every fit, others of a family each.
    threads : int, optional
        With 1, as with one usable core, there is no such process and the function does nothing.
    """
    helper = _Helper(module)
    several = threads is None or as_threads(threads) > 1
    usable = several and available_threads() > 1 and _is_python(sys.executable)
    try:
        yield helper.add if module and usable else lambda name: None
    finally:
        helper.close()


class _Helper:
    """The other process and what it was told to compile; started by the first cold kernel.

    It writes a byte where it begins a kernel and one where the kernel is in the cache.
    """

    def __init__(self, module):
        self.module, self.process, self.progress, self.hooked = module, None, None, []

    def add(self, name):
        """Have those kernels of a name compiled that are not in the cache.

        Each is looked for once in a process, also where calls do without it.
        """
        for index, (kernel, types) in enumerate(self.module.KERNELS.get(name, ())):
            is_new = isinstance(kernel, Dispatcher) and (kernel, types) not in _named
            _named.add((kernel, types))
            if is_new and not _is_cached(kernel, types):
                self._send(name, index, kernel, types)

    def _send(self, name, index, kernel, types):
        if not self.hooked:
            self._start(kernel.stats.cache_path)
        if self.process is None:
            return
        with contextlib.suppress(OSError):  # it has ended: what is told to it is compiled here
            self.process.stdin.write(f"{name} {index}\n".encode())
        cache, place = kernel._cache, len(self.hooked)
        load = cache.load_overload

        def wait_and_load(signature, context):
            if tuple(signature) == types:
                self._wait(place)
            return load(signature, context)

        cache.load_overload = wait_and_load
        self.hooked.append(cache)

    def _start(self, folder):
        """Start the process, unless one is at work for that folder or none can be."""
        progress = Path(folder) / PROGRESS
        code = "from lodim.engine.compile_ahead import serve; serve(*sys.argv[1:])"
        packages = os.pathsep.join(map(str, sys.path))
        here = {"PYTHONPATH": packages, "NUMBA_CACHE_DIR": config.CACHE_DIR}
        try:
            if progress.exists() and time.time() - progress.stat().st_mtime > LONGEST:
                progress.unlink()
            progress.touch(exist_ok=False)
            self.progress = progress
            say_compiling()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"import sys; {code}", self.module.__name__, progress],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | here,
                creationflags=NO_WINDOW,
                process_group=None if os.name == "nt" else 0,  # Ctrl-C is not for it
            )
        except OSError:  # a folder that cannot be written, another process, no more processes
            return

    def _wait(self, place):
        """Wait while the process compiles the kernel at that place of the list."""
        end = time.monotonic() + LONGEST
        with contextlib.suppress(OSError):
            while (
                self.process.poll() is None
                and self.progress.stat().st_size == 2 * place + 1
                and time.monotonic() < end
            ):
                time.sleep(OFTEN)

    def close(self):
        """Let the process end, without waiting; kernels are loaded and compiled as before."""
        for cache in self.hooked:
            vars(cache).pop("load_overload", None)
        if self.process is not None:
            self.process.stdin.close()
            threading.Thread(target=self._reap, daemon=True).start()
        elif self.progress is not None:
            self._remove()

    def _reap(self):
        try:
            self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if self.process.wait():  # else it has removed the file itself
            self._remove()

    def _remove(self):
        with contextlib.suppress(OSError):
            self.progress.unlink()


def _is_python(executable):
    """Whether a program takes Python's options: it may be another that has Python within."""
    return bool(executable) and Path(executable).name.lower().startswith("python")


def _is_cached(kernel, types):
    """Whether a kernel need not be compiled for some types of arguments, as numba's index says.

    True too for a kernel without a cache, and in a release of numba that has other names for it:
    then nothing is compiled ahead.
    """
    if types in kernel.overloads:
        return True
    try:
        cache = kernel._cache
        key = cache._index_key(types, kernel.targetctx.codegen())
        return key in cache._cache_file._load_index()
    except (AttributeError, OSError):
        return True


def serve(module, progress):
    """Compile those KERNELS of a module whose names and indices come on stdin, line by line."""
    parent = os.getppid()
    try:
        cpu_target.target_context.refresh()  # any compilation needs it first
        kernels = import_module(module).KERNELS
        with open(progress, "ab", buffering=0) as file:
            for line in sys.stdin:
                if os.getppid() != parent:  # it was ended, by Ctrl-C perhaps
                    break
                name, index = line.split()
                kernel, types = kernels[name][int(index)]
                file.write(b".")
                kernel.compile(types)
                file.write(b".")
    finally:
        Path(progress).unlink(missing_ok=True)  # the process that waits has ended
