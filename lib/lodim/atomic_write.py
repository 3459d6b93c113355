"""Writing of a file in one step: readers see either the old file or the complete new file."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows cannot remove or rename an open file, so no lock is needed
    fcntl = None  # type: ignore[assignment]

DIGITS = 16  # number of random hex digits in names of temporary files


@contextlib.contextmanager
def replacing(path):
    """Yield a temporary file that replaces `path` if the `with` block ends without an error.

    A symbolic link's target is replaced; mode and owner stay. OSError if `path` is not writable."""
    target = Path(os.path.realpath(path))
    old = _status(target)
    for stray in target.parent.glob(f".lodim-{'[0-9a-f]' * DIGITS}.tmp"):  # of killed processes
        with contextlib.suppress(OSError), open(stray, "rb+") as left:
            _lock(left, wait=False)
            stray.unlink()
    file, temporary = _begun(target.parent, 0o666 if old is None else stat.S_IMODE(old.st_mode))
    try:
        with file:
            yield file
            if old is not None:
                with contextlib.suppress(OSError, AttributeError):  # only root may change the owner
                    os.chown(temporary, old.st_uid, old.st_gid)
                os.chmod(temporary, stat.S_IMODE(old.st_mode))
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()
            os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _status(target):
    """Return os.stat of a file; None if it does not exist; OSError if it is not writable."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise OSError(0, f"it is {kind}")
    if not os.access(target, os.W_OK):
        raise PermissionError(0, "it is write-protected")
    return found


def _begun(folder, mode):
    """Create a temporary file with permissions `mode`, locked if possible; return (file, path)."""
    while True:
        path = folder / f".lodim-{secrets.token_hex(DIGITS // 2)}.tmp"
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        with contextlib.suppress(OSError):
            _lock(file)
        if os.fstat(file.fileno()).st_nlink:
            return file, path
        file.close()  # another process removed it before it was locked


def _lock(file, wait=True):
    """Lock a file until it is closed; with wait=False, raise OSError if it is locked already."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
