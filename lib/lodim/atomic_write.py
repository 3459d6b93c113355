"""A file written in one step: readers see the old one or the new one, whole."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows neither removes nor renames what is open: no lock is needed
    fcntl = None  # type: ignore[assignment]

DIGITS = 16  # of the names of files that are being written, which no target makes too long


@contextlib.contextmanager
def replacing(path):
    """An open file beside the target, which takes its place when the block ends without an error.

    The target of a symbolic link is replaced, and the link stays. Mode and owner of an existing
    file are kept. What killed writers have left in the folder is removed; those at work hold a
    lock.

    Raises
    ------
    OSError
        The target is no regular file, is write-protected, or its folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    old = _status(target)
    _sweep(target.parent)
    file, temporary = _begun(target.parent, 0o666 if old is None else stat.S_IMODE(old.st_mode))
    try:
        with file:
            yield file
            if old is not None:
                _make_like(temporary, old)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _status(target):
    """What is known of the target; None where there is none yet."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise OSError(0, f"it is {kind}")
    if not os.access(target, os.W_OK):
        raise PermissionError(0, "it is write-protected")
    return found


def _make_like(path, old):
    with contextlib.suppress(OSError, AttributeError):  # only root may give files away
        os.chown(path, old.st_uid, old.st_gid)
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _begun(folder, mode):
    """A new file in a folder, locked where the file system has locks, and its path."""
    while True:
        path = folder / f".lodim-{secrets.token_hex(DIGITS // 2)}.tmp"
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        with contextlib.suppress(OSError):
            _lock(file)
        if os.fstat(file.fileno()).st_nlink:
            return file, path
        file.close()  # another writer took it for a left one, between its making and its lock


def _sweep(folder):
    """Remove what killed writers have left."""
    for path in folder.glob(f".lodim-{'[0-9a-f]' * DIGITS}.tmp"):
        with contextlib.suppress(OSError), open(path, "rb+") as file:
            _lock(file, wait=False)
            path.unlink()


def _lock(file, wait=True):
    """Lock a file as long as it is open; an OSError where another has it, unless to wait."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
