"""Tiles in a file: its size and space, and that nothing is left of it."""

import gc
import os
import shutil
from collections import namedtuple

import numpy as np
import pytest

import lodim as ld
from lodim.design import features
from lodim.errors import ArgumentError, DataError


def open_files(folder):
    """(size, blocks) of the open files that were made in a folder."""
    held = []
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if link.startswith(str(folder)):
            held.append(os.stat(f"/proc/self/fd/{name}").st_size)
    return held


def mapped(folder):
    """Sizes of what is mapped of files that were made in a folder."""
    with open("/proc/self/maps") as lines:
        ranges = [line.split()[0].split("-") for line in lines if str(folder) in line]
    return [int(stop, 16) - int(start, 16) for start, stop in ranges]


@pytest.mark.long
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux's /proc")
def test_the_file_has_the_size_of_the_tiles_and_goes_with_them(tmp_path):
    X = features.tiles_in(tmp_path, 64 * 64, 3, "float64")
    assert X.shape == (64, 3, 64) and X.flags.writeable and X.flags.c_contiguous
    assert type(X) is np.ndarray and not X.any()
    assert mapped(tmp_path) == [X.nbytes] and not os.listdir(tmp_path)
    part = X[:2]
    X[:] = 2.0
    del X
    gc.collect()
    assert mapped(tmp_path) and (part == 2.0).all()
    del part
    gc.collect()
    assert not mapped(tmp_path) and not open_files(tmp_path)


def test_too_little_space_is_said_before_anything_is_written(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10**9, 10**9 - 1000, 1000))
    monkeypatch.setattr(features.tempfile, "TemporaryFile", None)
    with pytest.raises(DataError, match=r"need 52.4 MB of scratch space, but .* has only 1 kB"):
        features.tiles_in(tmp_path, 64 * 1024, 100, "float64")
    assert not os.listdir(tmp_path)


def test_a_folder_that_cannot_be_used_is_refused(tmp_path, monkeypatch):
    cars = ld.data("autompg")
    for wrong in (tmp_path / "none", 3):
        with pytest.raises(ArgumentError, match="must be an existing folder"):
            ld.glm("mpg ~ weight", cars, control={"scratch": wrong})

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(features.tempfile, "TemporaryFile", refuse)
    with pytest.raises(DataError, match=r"no scratch file can be written in .*Permission denied"):
        ld.glm("mpg ~ weight", cars, control={"scratch": str(tmp_path)})


def test_a_full_disk_is_found_out_as_the_space_is_reserved(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(features.os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match="of scratch space, but"):
        features.tiles_in(tmp_path, 64, 3, "float64")
    assert not os.listdir(tmp_path)


def test_the_folder_is_no_part_of_a_fit(tmp_path):
    cars = ld.data("autompg")
    fits = [ld.glm("mpg ~ .", cars, control=c) for c in (None, {"scratch": str(tmp_path)})]
    for k, fit in enumerate(fits):
        fit.save(tmp_path / str(k))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


def test_tiles_go_to_a_file_where_memory_is_short(monkeypatch):
    made = []
    monkeypatch.setattr(features, "tiles_in", lambda folder, *shape: made.append(shape))
    monkeypatch.setattr(features, "free_memory", lambda: 2 * 8 * 64 * 100)
    features.tiles_for(True, 6400, 1, "float64", None)
    assert not made
    features.tiles_for(True, 6401, 1, "float64", None)
    features.tiles_for(False, 6401, 1, "float64", None)
    assert made == [(6401, 1, "float64")]
    assert features.free_memory() > 0
