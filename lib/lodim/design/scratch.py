"""Where tiles are kept that memory may not hold: a file without a name, mapped into memory.

The file is unlinked as it is made (on Windows the system removes it when the process ends), so that
nothing is left behind, whatever becomes of the process. Its space is reserved before it is written.
"""

import errno
import mmap
import os
import shutil
import tempfile

import numpy as np

from lodim.engine import tiles
from lodim.engine.tiles import TILE, count
from lodim.errors import ArgumentError, DataError
from lodim.text import size_in_bytes

SHARE = 0.5  # of the free memory that tiles may take


def tiles_for(is_source, n, p, dtype, folder):
    """Room for tiles (n_tiles, p, 64): in memory, or in a scratch file.

    Parameters
    ----------
    is_source : bool
        Whether the data are not in memory: tiles that take over half of it go to a scratch file.
    folder : str or None
        Where a scratch file is made in any case.
    """
    if folder is not None:
        return tiles_in(folder, n, p, dtype)
    if is_source and not fits_memory(n, p, dtype):
        return tiles_in(tempfile.gettempdir(), n, p, dtype)
    try:
        return tiles.empty(n, p, dtype)
    except MemoryError:
        size = size_in_bytes(n * p * np.dtype(dtype).itemsize)
        what = f"{n:,} rows x {p:,} features, {size}, do not fit into the memory"
        raise DataError(what) from None


def tiles_in(folder, n, p, dtype):
    """Zeroed tiles (n_tiles, p, 64) in a file of a folder; its space is free once they are gone.

    Raises
    ------
    ArgumentError
        There is no such folder.
    DataError
        There is too little space in it, or it cannot be written.
    """
    shape, dtype = (count(n), p, TILE), np.dtype(dtype)
    size = shape[0] * shape[1] * shape[2] * dtype.itemsize
    if not size:
        return np.zeros(shape, dtype)
    if not isinstance(folder, str | os.PathLike) or not os.path.isdir(folder):
        raise ArgumentError(f"control: scratch must be a folder that exists, not {folder!r:.200}")
    free = shutil.disk_usage(folder).free
    if free < size:
        raise _too_small(folder, size, free)
    try:
        with tempfile.TemporaryFile(prefix="lodim-", dir=folder) as file:
            _reserve(file.fileno(), size)
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _too_small(folder, size, shutil.disk_usage(folder).free) from None
        raise DataError(
            f"no scratch file can be written in {os.fspath(folder)!r} ({error.strerror}); name "
            "another folder by control={'scratch': folder}"
        ) from None
    return np.frombuffer(mapped, dtype).reshape(shape)


def _reserve(file, size):
    """Give a file its size, and the space where the system can: a full disk is found out now."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)


def _too_small(folder, size, free):
    return DataError(
        f"the features take {size_in_bytes(size)} of scratch space, and {os.fspath(folder)!r} has "
        f"{size_in_bytes(free)}; name another folder by control={{'scratch': folder}}, or take "
        "dtype='float32', which halves them"
    )


def fits_memory(n, p, dtype):
    """Whether tiles take no more than half of the memory that is free."""
    return count(n) * p * TILE * np.dtype(dtype).itemsize <= SHARE * free_memory()


def free_memory():
    """Bytes of memory that this process may still take, as far as the system says."""
    found = [_available(), _of_group()]
    return min((size for size in found if size is not None), default=float("inf"))


def _available():
    """Memory that the system calls available."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: line.split()[1] for line in lines}
        return 1024 * int(sizes["MemAvailable"])
    except (OSError, KeyError, IndexError, ValueError):
        return None


def _of_group():
    """What is left of the limit of this process's group (cgroup), where it has one."""
    try:
        with (
            open("/sys/fs/cgroup/memory.max") as limit,
            open("/sys/fs/cgroup/memory.current") as used,
        ):
            return max(0, int(limit.read()) - int(used.read()))
    except (OSError, ValueError):
        return None
