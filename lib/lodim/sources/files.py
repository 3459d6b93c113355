"""Files that a path, a pattern or a folder stands for, and checks that they do not change."""

import errno
import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lodim.errors import DataError

PARQUET, CSV, ARROW = "Parquet", "CSV", "Arrow"
ENDINGS = dict.fromkeys((".parquet", ".parq", ".pq"), PARQUET)
ENDINGS |= dict.fromkeys((".arrow", ".feather", ".ipc"), ARROW)
ENDINGS |= dict.fromkeys((".csv", ".tsv"), CSV)
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")  # suffixes of compressed CSV files
READABLE = f"a file whose name ends in {', '.join(ENDINGS)}"
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True)
class FileState:
    """State of a file when the data were opened, to detect later changes."""

    name: str
    path: str
    size: int
    modified: int  # time of the last change in nanoseconds, which programs can set back
    # pyarrow's file system of a file that is not on local disks; else None
    filesystem: Any = field(default=None, compare=False)
    # time of the last change that programs cannot set back (ctime); None after pickling
    noted: int | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"noted": None}

    @classmethod
    def of_name(cls, name: str, filesystem: Any = None) -> "FileState":
        """Return the current state of a file on local disks, or on a `filesystem` of pyarrow."""
        path = name if filesystem else os.path.abspath(name)
        try:
            size, modified, noted = _size_and_times(path, filesystem)
            return cls(name, path, size, modified, filesystem, noted)
        except OSError as error:
            raise DataError(f"{name} cannot be read: {error.strerror or error}") from error

    def check_unchanged(self) -> None:
        try:
            size, modified, noted = _size_and_times(self.path, self.filesystem)
        except FileNotFoundError:
            raise DataError(f"{self.name} was removed while it was in use") from None
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}") from error
        same = (size, modified) == (self.size, self.modified)
        if not same or (self.noted is not None and noted != self.noted):
            cure = "fit again when it no longer changes"
            raise DataError(f"{self.name} was changed while it was in use: {cure}")


def _size_and_times(path: str, filesystem: Any) -> tuple[int, int, int | None]:
    """Return a file's size, modification time, and ctime in ns (None on a pyarrow `filesystem`)."""
    if filesystem is None:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):  # reading a pipe would block and ignore Ctrl-C
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file")
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns
    info = filesystem.get_file_info(path)
    if info.size is None:
        raise FileNotFoundError(2, "there is no such file", path)
    return info.size, info.mtime_ns or 0, None


@contextmanager
def reading(file: FileState, kind: str) -> Iterator[None]:
    """Raise DataError if a `with` block cannot read a file, or if the file has changed.

    kind : word for the file's format in messages, such as "a CSV file"."""
    file.check_unchanged()
    try:
        yield
    except (DataError, MemoryError):
        raise
    except PermissionError as error:
        raise DataError(f"{file.name} cannot be read: no permission") from error
    except Exception as error:  # any error of the readers, which all raise different ones
        file.check_unchanged()
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = f"{file.name} cannot be read as {kind}"
        if isinstance(error, UnicodeError):
            raise DataError(f"{what}: it is not UTF-8 ({said}); save it as UTF-8") from error
        raise DataError(f"{what}; is it damaged or incomplete? ({said})") from error
    file.check_unchanged()


def is_path(data: object) -> bool:
    if isinstance(data, (list, tuple)):
        return len(data) > 0 and all(isinstance(one, (str, os.PathLike)) for one in data)
    return isinstance(data, (str, os.PathLike))


def find_files(data: Any) -> list[FileState]:
    """Return the files of a path, pattern or folder (sorted by name), or of a list (in order)."""
    given = data if isinstance(data, (list, tuple)) else [data]
    names = [name for one in given for name in _expand(os.fspath(one))]
    files = [FileState.of_name(name) for name in names]
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise DataError(f"{file.name} is given twice")
        seen.add(file.path)
    return files


def _expand(name: str) -> list[str]:
    """Return the names of the files that one path stands for."""
    if URL.match(name):
        what = f"{name!r} is not a local file: download it, or give an object that reads it"
        raise DataError(f"{what}, such as pyarrow.dataset.dataset({name!r})")
    name = os.path.expanduser(name)
    if os.path.isdir(name):
        return _folder_files(name)
    if os.path.exists(name):
        return [name]
    if not glob.has_magic(name):
        from lodim.datasets import data

        shipped = name in data()["name"].tolist()
        hint = f"; the data set of that name is lodim.data({name!r})" if shipped else ""
        raise DataError(f"there is no file {name!r}{hint}")
    found = []
    for one in sorted(glob.glob(name, recursive=True)):
        if os.path.isfile(one):
            found.append(one)
        elif kind_by_name(one):  # Spark and Dask write folders named like files
            found += _folder_files(one)
    if not found:
        raise DataError(f"no file matches the pattern {name!r}")
    return found


def _folder_files(folder: str) -> list[str]:
    """Return the data files in a folder and its subfolders, without names that begin with _ or ."""
    found = []
    for where, folders, names in os.walk(folder, onerror=_refuse):
        if "_delta_log" in folders:
            raise DataError(f"{where!r} is a Delta table; give polars.scan_delta({where!r})")
        if glob.glob(os.path.join(glob.escape(where), "metadata", "*.metadata.json")):
            cure = "give polars.scan_iceberg of its metadata"
            raise DataError(f"{where!r} is an Iceberg table; {cure}")
        folders[:] = [one for one in folders if not one.startswith(("_", "."))]
        if any("=" in one for one in folders):
            what = f"{folder!r} has columns in the names of its folders ({folders[0]!r})"
            cure = f"give pyarrow.dataset.dataset({folder!r}, partitioning='hive')"
            raise DataError(f"{what}; {cure}")
        found += [os.path.join(where, one) for one in names if not one.startswith(("_", "."))]
    found = sorted(one for one in found if kind_by_name(one))
    if not found:
        raise DataError(f"the folder {folder!r} has no data: it must have {READABLE}")
    return found


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename} cannot be read: {error.strerror or error}") from error


def kind_by_name(name: str) -> str | None:
    """Return the kind of a file, such as "parquet", by its suffix; None if it is unknown."""
    stem, ending = os.path.splitext(name.lower())
    if ending in PACKED:
        ending = os.path.splitext(stem)[1]
        return CSV if ENDINGS.get(ending) == CSV else None
    return ENDINGS.get(ending)


def kind_of_files(files: Sequence[FileState]) -> str:
    """Return the common kind of files; raise DataError if kinds differ or are unknown."""
    names: dict[str, str] = {}  # from each kind to the first file of it
    for file in files:
        kind = kind_by_name(file.name)
        if kind is None:
            what = f"{file.name} does not have the name of a data file; give {READABLE}"
            raise DataError(f"{what}, or read it by pandas and give the frame")
        names.setdefault(kind, file.name)
    (kind, name), *others = names.items()
    for other, second in others:
        both = f"{name} is a {kind} file and {second} a {other} file"
        raise DataError(f"{both}; give files of one kind")
    return kind


def short_name(name: str) -> str:
    return Path(name).name


def no_rows(files: Sequence[FileState]) -> str:
    if len(files) == 1:
        return f"{files[0].name} has no rows"
    return f"none of the {len(files)} files has a row ({files[0].name} is the first)"
