"""numba's njit, which works without a cache where no folder can be written.

numba caches kernels where NUMBA_CACHE_DIR says, beside the code, or in the user's own cache folder,
and raises where it can write to none of them, as in a container with read-only packages.
"""

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

ZERO = np.int64(0)  # has a type: a literal 0 would compile what it is given to once more


class _Compilation(event.Listener):
    """What goes with compilation: a word, once in a process, and no collection of garbage.

    Numba makes and drops a million small objects, and looking through them for cycles takes a sixth
    of the time that kernels take to compile. It compiles one kernel at a time, under a lock; those
    that a kernel calls are compiled within.
    """

    depth = 0
    collects = False

    def on_start(self, event):
        """Say that kernels of lodim are being compiled; none is that is cached."""
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
        """Collect garbage again as before, also after an error."""
        if self.depth:
            self.depth -= 1
            if not self.depth and self.collects:
                gc.enable()


event.register("numba:compile", _Compilation())


@lru_cache(maxsize=1)
def _say_compiling():
    """Say that kernels of lodim are being compiled, once in a process."""
    logging.getLogger("lodim").warning(
        "compiling kernels, which takes up to a minute where they are not cached yet"
    )


def njit(*signatures, **options):
    """numba's njit; where it finds no folder for its cache, with a temporary one, or without.

    Parameters
    ----------
    *signatures, **options
        As numba takes them.
    """

    options |= {"no_cfunc_wrapper": True}  # an entry for C, which nothing calls, costs compilation

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
    """njit for what kernels alone call: inlined by force, without an entry for Python.

    That entry is half of what a small function costs to compile. Python must not call it: numba
    would jump to nowhere.
    """
    return njit(**options, forceinline=True, no_cpython_wrapper=True)


@lru_cache(maxsize=1)
def _folder():
    """A temporary folder for kernels that is the user's alone, or None; says so, once."""
    folder = _private()
    what = "are compiled anew in each process" if folder is None else f"are cached in {folder}"
    logging.getLogger("lodim").warning(
        "kernels %s: neither lodim's folder nor the user's cache can be written "
        "(NUMBA_CACHE_DIR names another place)",
        what,
    )
    return folder


def _private():
    """The folder, made where it is not there; cached kernels are code, so nobody else may write."""
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
    except (OSError, AttributeError):  # nothing can be written; a system without users' numbers
        return None
    return folder


LINE = 64  # bytes that memory is read in


@intrinsic
def ask_for(typingctx, array, offset):
    """Have the line of memory `offset` bytes after an array's first brought near, if there is one.

    It changes nothing and reads nothing: the place may be beyond the array's end.
    """

    def codegen(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        first = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.gep(builder.bitcast(first, byte), [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, near, data = word(0), word(2), word(1)
        builder.call(prefetch, [place, read, near, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
