"""Compilation by numba's njit, which also works if its cache folder cannot be written."""

import contextlib
import gc
import logging
import os
import stat
import tempfile
from functools import lru_cache

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import event
from numba.extending import intrinsic

ZERO = np.int64(0)  # has a type, since a literal 0 would cause another compilation


class _Compilation(event.Listener):
    """Listener for compilations: logs one message per process, and pauses garbage collection."""

    depth = 0
    collects = False

    def on_start(self, event):
        module = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""
        is_own = module.split(".")[0] == "lodim"
        if not self.depth and not is_own:
            return
        if not self.depth:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1
        if is_own:
            _say_compiling()

    def on_end(self, event):
        if self.depth:
            self.depth -= 1
            if not self.depth and self.collects:
                gc.enable()


event.register("numba:compile", _Compilation())


@lru_cache(maxsize=1)
def _say_compiling():
    logging.getLogger("lodim").warning(
        "compiling kernels: up to a minute at the first use; lodim keeps them for later runs"
    )


def njit(*signatures, **options):
    """Compile like numba.njit, also if its cache folder is read-only: then use another folder."""

    options |= {"no_cfunc_wrapper": True}  # without the unused C entry point, compilation is faster

    def compiled(function):
        try:
            return numba.njit(*signatures, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        before, config.CACHE_DIR = config.CACHE_DIR, _folder() or ""
        try:
            cached = options | {"cache": bool(config.CACHE_DIR)}
            return numba.njit(*signatures, **cached)(function)
        finally:
            config.CACHE_DIR = before

    return compiled


def inlined(**options):
    """Compile a function for kernels only; a call of it from Python would crash the process."""
    return njit(**options, forceinline=True, no_cpython_wrapper=True)


def scalar(function):
    """Compile a function of scalars that kernels inline and Python may call too."""
    return njit(cache=True, error_model="numpy", forceinline=True)(function)


@lru_cache(maxsize=1)
def _folder():
    """Warn that the usual cache folders are read-only; return a private one, None if impossible."""
    folder = _private()
    what = "are compiled again in each process" if folder is None else f"are cached in {folder}"
    logging.getLogger("lodim").warning(
        "kernels %s: neither the folder of lodim nor the cache of the user can be written (set "
        "NUMBA_CACHE_DIR to another folder)",
        what,
    )
    return folder


def _private():
    """Return a cache folder to which nobody else can write code; None if that is impossible."""
    try:
        user = os.getuid()
        folder = os.path.join(tempfile.gettempdir(), f"lodim-cache-{user}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == user
        if not is_own or stat.S_IMODE(status.st_mode) & 0o077:
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, AttributeError):  # not writable, or a system without user ids
        return None
    return folder


LINE = 64  # size of a cache line in bytes


@intrinsic
def prefetch(typingctx, array, offset):
    """Prefetch memory `offset` bytes after the start of an array; Numba passes `typingctx`."""

    def codegen(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        first = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.gep(builder.bitcast(first, byte), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, near, data = word(0), word(2), word(1)
        builder.call(instruction, [place, read, near, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
