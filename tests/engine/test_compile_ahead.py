"""compile_ahead: another process compiles what is named, and nothing hangs on it."""

import io
import os
import subprocess
import sys
import time
from importlib import import_module

import numpy as np
import pytest
from numba import config

import lodim as ld
from lodim.engine import compile_ahead
from lodim.engine.compile_ahead import PROGRESS, compiling_ahead
from lodim.models.costnet import ahead as of_costnet
from lodim.models.gbmap import ahead as of_gbmap
from lodim.models.melm import ahead as of_melm

pytestmark = pytest.mark.long

KERNEL = """
from lodim.engine.compile_ahead import FLOATS, INTS
from lodim.engine.compiled import njit

@njit(cache=True)
def first(x, i):
    return x[i] + 1.0

@njit(cache=True)
def second(x):
    return x.sum()

KERNELS = {
    "all": ((first, (FLOATS[1], INTS[0])), (second, (FLOATS[2],))),
    "first": ((first, (FLOATS[1], INTS[0])),),
    "python": ((first.py_func, (FLOATS[1], INTS[0])),),
}
"""
several = pytest.mark.skipif(compile_ahead.available_threads() == 1, reason="needs two cores")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Two kernels of a module of their own that were never compiled, and the folder of these."""
    name = f"kernels_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    module = import_module(name)
    return module.first, module.second


def module_of(kernels):
    return sys.modules[kernels[0].__module__]


def progress_of(kernel):
    return compile_ahead.Path(kernel.stats.cache_path) / PROGRESS


def until(happens, seconds=60.0):
    end = time.monotonic() + seconds
    while not happens() and time.monotonic() < end:
        time.sleep(0.01)
    assert happens()


def called(kernels):
    """What both kernels return, and how many of them were loaded and compiled here."""
    first, second = kernels
    values = first(np.ones(2), 1), second(np.ones((2, 2)))
    counts = [sum(sum(getattr(k.stats, of).values()) for k in kernels)
              for of in ("cache_hits", "cache_misses")]  # fmt: skip
    return values, counts


@several
def test_another_process_compiles_what_is_named(kernels):
    progress = progress_of(kernels[0])
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        until(lambda: progress.stat().st_size >= 3)  # the second is begun, and waited for
        assert called(kernels) == ((2.0, 4.0), [2, 0])
    assert "load_overload" not in vars(kernels[0]._cache)
    until(lambda: not progress.exists())
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")  # cached: there is nothing to begin
        assert not progress.exists()


@several
def test_a_kernel_that_is_not_begun_is_compiled_here(kernels, tmp_path, monkeypatch):
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 100\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(compile_ahead, "LONGEST", 0.2)  # then it is killed
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        assert progress_of(kernels[0]).exists()
        assert called(kernels) == ((2.0, 4.0), [0, 2])
    until(lambda: not progress_of(kernels[0]).exists())


@several
@pytest.mark.parametrize("text", ["exit 1", 'printf . >> "$(ls */*/compiled_ahead)"; exit 1'])
def test_a_process_that_fails_is_not_waited_for(kernels, tmp_path, monkeypatch, text):
    failing = tmp_path / "python"
    failing.write_text(f"#!/bin/sh\n{text}\n")
    failing.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(failing))
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        assert called(kernels) == ((2.0, 4.0), [0, 2])


@several
def test_a_kernel_is_not_waited_for_for_ever(kernels, tmp_path, monkeypatch):
    stuck = tmp_path / "python"
    stuck.write_text('#!/bin/sh\nprintf . >> "$(ls */*/compiled_ahead)"; exec sleep 100\n')
    stuck.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(stuck))
    monkeypatch.setattr(compile_ahead, "LONGEST", 0.2)
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        until(lambda: progress_of(kernels[0]).stat().st_size == 1)
        assert called(kernels) == ((2.0, 4.0), [0, 2])


@several
def test_the_process_ends_after_the_block_with_what_it_has_begun(kernels, monkeypatch):
    started, start = [], subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **how: started.append(start(*args, **how)) or started[0]
    )
    with pytest.raises(ZeroDivisionError), compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        raise ZeroDivisionError
    until(lambda: started[0].returncode is not None)
    assert started[0].returncode == 0 and not progress_of(kernels[0]).exists()
    assert called(kernels) == ((2.0, 4.0), [2, 0])


def not_twice(kernels, monkeypatch):
    progress_of(kernels[0]).touch()


def no_folder(kernels, monkeypatch):
    def refused(*args, **how):
        raise PermissionError

    monkeypatch.setattr(compile_ahead.Path, "touch", refused)


@pytest.mark.parametrize(
    "prevent",
    [
        lambda kernels, monkeypatch: monkeypatch.setattr(sys, "executable", ""),
        lambda kernels, monkeypatch: monkeypatch.setattr(sys, "executable", "/opt/app/uwsgi"),
        lambda kernels, monkeypatch: monkeypatch.setattr(
            compile_ahead, "available_threads", lambda: 1
        ),
        lambda kernels, monkeypatch: monkeypatch.setattr(kernels[0]._cache, "_cache_file", None),
        not_twice,
        no_folder,
    ],
    ids=["no program", "another", "one core", "another numba", "another process", "read-only"],
)
def test_no_process_where_none_can_be(kernels, monkeypatch, prevent):
    monkeypatch.setattr(subprocess, "Popen", None)
    prevent(kernels, monkeypatch)
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("first")
    monkeypatch.undo()


def test_no_process_with_one_thread_or_for_what_is_not_compiled(kernels, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    with compiling_ahead(module_of(kernels), threads=1) as ahead:
        ahead("all")
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("python")


@several
def test_a_file_that_a_lost_process_left_is_no_hindrance(kernels):
    progress = progress_of(kernels[0])
    progress.touch()
    os.utime(progress, (time.time() - 100.0,) * 2)
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("all")
        until(lambda: progress.stat().st_size == 4)
        assert called(kernels) == ((2.0, 4.0), [2, 0])


@several
def test_the_process_ends_where_the_other_is_killed(kernels):
    name = module_of(kernels).__name__
    code = (
        f"import os, {name}; from lodim.engine.compile_ahead import compiling_ahead;"
        f"compiling_ahead({name}).__enter__()('all'); os.kill(os.getpid(), 9)"
    )
    place = {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": config.CACHE_DIR}
    subprocess.run([sys.executable, "-c", code], env=os.environ | place)
    assert progress_of(kernels[0]).exists()
    until(lambda: not progress_of(kernels[0]).exists())


@pytest.mark.parametrize(
    ("model", "formula", "data", "kernels"),
    [
        (ld.gbmap, "disease ~ .", "heart", of_gbmap.KERNELS["all"]),
        (ld.melm, "disease ~ .", "heart", of_melm.KERNELS["all"]),
        (ld.melm, "species ~ .", "iris", of_melm.KERNELS["all"]),
        (ld.costnet, "disease ~ .", "heart", of_costnet.KERNELS["all"]),
        (ld.costnet, "mpg ~ .", "autompg", of_costnet.KERNELS["gaussian"]),
        (ld.costnet, "disease ~ .", "heart", of_costnet.KERNELS["binomial"]),
        (ld.costnet, "species ~ .", "iris", of_costnet.KERNELS["multinomial"]),
    ],
)
def test_default_calls_use_the_kernels_that_are_named(model, formula, data, kernels):
    model(formula, ld.data(data)).summary()
    assert [kernel.__name__ for kernel, types in kernels if types not in kernel.overloads] == []


@several
@pytest.mark.skipif(os.name == "nt", reason="groups of processes are POSIX's")
def test_ctrl_c_is_not_for_the_other_process(kernels, monkeypatch):
    started, start = [], subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *args, **how: started.append(start(*args, **how)) or started[0]
    )
    with compiling_ahead(module_of(kernels)) as ahead:
        ahead("first")
        assert os.getpgid(started[0].pid) != os.getpgid(0)
    until(lambda: not progress_of(kernels[0]).exists())


def test_the_other_process_removes_its_file_whatever_happens(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("all 9\n"))
    progress = tmp_path / "progress"
    with pytest.raises(IndexError):
        compile_ahead.serve(module_of(kernels).__name__, progress)
    assert not progress.exists()
