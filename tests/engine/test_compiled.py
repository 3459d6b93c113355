"""compiled: kernels run where nothing can be written, and no one else's code is loaded."""

import ast
import gc
import os
import shutil
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import numba
import pytest
from numba.core.registry import CPUDispatcher

import lodim as ld
from lodim.engine import compiled

FIT = (
    "import lodim as ld; df = {'a': range(30), 'y': [i % 7 for i in range(30)]};"
    "print(ld.gbmap('y ~ a', df, m=1, lambda_=.1, progress=False).dev_ratio)"
)
KERNEL = (
    "import numpy as np; from lodim.family import Binomial;"
    "print(Binomial().deviance(np.ones(1), np.zeros((1, 1)))[0])"
)


@pytest.fixture
def run(tmp_path):
    """Run code with a package that cannot be written, no home, and a temporary folder."""
    if os.getuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root can write everywhere, and there is no setpriv to take that away")
    package = tmp_path / "packages" / "lodim"
    shutil.copytree(Path(ld.__file__).parent, package, ignore=lambda *_: ["__pycache__"])
    subprocess.run(["chmod", "-R", "a-w", package], check=True)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]

    def run(code):
        clean = ["env", "-i", "PATH=/usr/bin", "HOME=/dev/null", f"TMPDIR={temporary}",
                 f"PYTHONPATH={package.parent}"]  # fmt: skip
        return subprocess.run(
            [*(bound if os.getuid() == 0 else []), *clean, sys.executable, "-c", code],
            capture_output=True, text=True, cwd="/", timeout=300,
        )  # fmt: skip

    yield run, temporary / f"lodim-cache-{os.getuid()}"
    subprocess.run(["chmod", "-R", "u+w", package], check=True)


@pytest.mark.long
def test_a_fit_where_nothing_but_a_temporary_folder_can_be_written(run):
    run, folder = run
    first = run(FIT)
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb*")}
    second = run(FIT)
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout != ""
    told = f"cached in {folder}", "compiling kernels"  # the latter where none is cached
    said = [run.stderr.splitlines() for run in (first, second)]
    assert [len(lines) for lines in said] == [2, 1]
    assert told[0] in said[0][0] and told[0] in said[1][0] and told[1] in said[0][1]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kept  # what the first process compiled, the second has loaded
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb*")} == kept


@pytest.mark.long
def test_no_cache_where_others_may_write_too(run):
    run, folder = run
    folder.mkdir()
    folder.chmod(0o777)
    done = run(KERNEL)
    assert done.returncode == 0 and float(done.stdout) == pytest.approx(1.3862943611198906)
    assert len(done.stderr.splitlines()) == 2 and "compiled again" in done.stderr
    assert not list(folder.iterdir())


def test_a_temporary_folder_is_private_or_none(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled.tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"lodim-cache-{os.getuid()}"
    assert compiled._private() == str(folder) and folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert compiled._private() is None
    folder.unlink()
    folder.write_text("")
    assert compiled._private() is None
    monkeypatch.setattr(compiled.tempfile, "tempdir", str(tmp_path / "missing"))
    assert compiled._private() is None


def test_other_errors_of_the_compiler_are_raised():
    def fail(function):
        raise RuntimeError("something else")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled.numba, "njit", lambda **_: fail)
        with pytest.raises(RuntimeError, match="something else"):
            compiled.njit(cache=True)(lambda: 0)


def test_functions_of_no_module_are_compiled_beside():
    """Other packages make such functions and compile them while lodim is imported."""
    function = types.FunctionType((lambda x: x + 1).__code__, {})
    function.__module__ = None
    assert numba.njit(function)(1) == 2


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_not_collected_while_a_kernel_is_compiled(collects):
    """And afterwards as before, where the kernel cannot be compiled too."""
    during = []

    class Listener(numba.core.event.Listener):
        def on_start(self, event):
            during.append(gc.isenabled())

        def on_end(self, event):
            during.append(gc.isenabled())

    @numba.njit
    def called(x):
        return x + 1.0

    def kernel(x):
        return called(x)

    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        for module, expected in (("lodim.some", False), ("other", collects)):
            kernel.__module__ = module
            with numba.core.event.install_listener("numba:run_pass", Listener()):
                compiled.njit()(kernel)(1.0)
            assert set(during) == {expected} and gc.isenabled() == collects
            with pytest.raises(numba.core.errors.TypingError):
                compiled.njit()(kernel)("text")
            assert gc.isenabled() == collects
            during.clear()
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(
    "module",
    ["gbmap.cpu_kernels", "glm.kernels", "costnet.penalty.passes"],
)
def test_functions_that_kernels_call_are_inlined_by_force(module):
    """Else a process that compiles a kernel may round otherwise than one that loads it."""
    kernels = vars(import_module(f"lodim.models.{module}"))
    compiled = {k: v for k, v in kernels.items() if isinstance(v, CPUDispatcher)}
    called = {
        name
        for kernel in compiled.values()
        for name in kernel.py_func.__code__.co_names
        if name in compiled
    }
    assert called
    options = {name: compiled[name].targetoptions for name in called}
    assert not [
        name
        for name, how in options.items()
        if not (how.get("forceinline") or how.get("inline") == "always")
    ]


@pytest.mark.long
def test_python_calls_no_function_that_has_no_entry_for_it():
    """Numba would jump to nowhere: such functions are named in kernels alone."""

    def decorated(node):
        decorators = getattr(node, "decorator_list", ())
        return {part.id for d in decorators for part in ast.walk(d) if isinstance(part, ast.Name)}

    def outside(node):
        """What is named outside of kernels."""
        for child in ast.iter_child_nodes(node):
            if not {"njit", "inlined", "overload"} & decorated(child):
                yield child
                yield from outside(child)

    root = Path(ld.__file__).parent
    trees = {path: ast.parse(path.read_text()) for path in root.rglob("*.py")}
    inner = {
        (".".join(path.relative_to(root.parent).with_suffix("").parts), node.name)
        for path, tree in trees.items()
        for node in tree.body
        if "inlined" in decorated(node)
    }
    assert inner
    for path, tree in trees.items():
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if (node.module, alias.name) in inner
        }
        own = imported | {name for where, name in inner if where == module}
        assert not own & {node.id for node in outside(tree) if isinstance(node, ast.Name)}, path
