"""replace: saving keeps modes and links, and leaves nothing behind, whatever happens."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from lodim.atomic_write import replacing
from lodim.errors import StoreError
from lodim.fitting import storage as store


def save(path):
    store.write(path, "k", {"a": 1.5})


def is_saved(path):
    return store.read(path) == ("k", {"a": 1.5})


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666, 0o755])
def test_mode_is_kept(tmp_path, mode):
    path = tmp_path / "fit"
    path.write_text("old")
    path.chmod(mode)
    save(path)
    assert path.stat().st_mode & 0o7777 == mode and is_saved(path)


def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    (tmp_path / "plain").write_text("")
    save(tmp_path / "fit")
    assert (tmp_path / "fit").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "fit"
    for link, to in (("one", "far/fit"), ("two", "one")):
        (tmp_path / link).symlink_to(to)
    save(tmp_path / "two")  # the target is not there yet
    save(tmp_path / "two")
    assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()
    assert not target.is_symlink() and is_saved(target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["far", "one", "two"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreError, match="cannot be written"):
        save(tmp_path / "loop")
    with pytest.raises(StoreError, match="cannot be read"):
        store.read(tmp_path / "loop")


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127, "n" * 245 + ".lodim"])
def test_long_names(tmp_path, name):
    save(tmp_path / name)
    assert is_saved(tmp_path / name)


@pytest.mark.parametrize("name", ["n" * 256, "a\0b", "\ud800", "", ".", "/", None, 3, 1.5, ["x"]])
def test_what_is_no_name_is_said(tmp_path, name):
    path = os.path.join(tmp_path, name) if isinstance(name, str) and name else name
    for do in (save, store.read):
        with pytest.raises(StoreError) as error:
            do(path)
        str(error.value).encode()  # can be shown


def test_bytes_are_a_name(tmp_path):
    save(os.fsencode(tmp_path / "fit"))
    assert is_saved(tmp_path / "fit")


def test_what_is_no_file_is_neither_written_nor_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path, "folder|regular"),
    ):
        with pytest.raises(StoreError, match=words):
            save(path)
        with pytest.raises(StoreError, match="not a regular file"):
            store.read(path)


def test_protected_files_and_folders(tmp_path, monkeypatch):
    path = tmp_path / "fit"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write all
    with pytest.raises(StoreError, match="write-protected"):
        save(path)
    assert path.read_text() == "old"


def _killed(path):
    with replacing(path) as file:
        file.write(b"half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_save_leaves_is_removed_at_the_next(tmp_path):
    killed = multiprocessing.get_context("fork").Process(target=_killed, args=(tmp_path / "fit",))
    killed.start()
    killed.join()
    assert len(list(tmp_path.iterdir())) == 1
    own = [tmp_path / name for name in (".lodim-notes.tmp", "0.tmp", ".lodim-0123456789abcdef")]
    for path in own:
        path.write_text("mine")
    with replacing(tmp_path / "other") as file:  # this one is at work
        file.write(b"whole")
        save(tmp_path / "fit")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "fit", tmp_path / "other", *own])
    assert (tmp_path / "other").read_bytes() == b"whole"


def test_an_interrupted_save_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "fit") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_many_savers_of_one_file(tmp_path):
    code = (
        "import sys; from lodim.fitting import storage as store\n"
        "for _ in range(20): store.write(sys.argv[1], 'k', {'a': 1.5})"
    )
    path = tmp_path / "fit"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    savers = [
        subprocess.Popen([sys.executable, "-c", code, path], env=environment) for _ in range(4)
    ]
    assert [saver.wait(120) for saver in savers] == [0] * 4
    assert list(tmp_path.iterdir()) == [path] and is_saved(path)
