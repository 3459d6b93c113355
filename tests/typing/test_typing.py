"""What type checkers and editors see of lodim."""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import lodim as ld
import lodim.sklearn as estimators

HERE = Path(__file__).parent
LIB = Path(ld.__file__).parents[1]


@pytest.mark.long
def test_mypy_accepts_the_good_program_and_refuses_each_line_of_the_bad_one(tmp_path):
    programs = [HERE / "good.py", HERE / "bad.py"]
    expected = {
        f"{program.name}:{number}": message
        for program in programs
        for number, line in enumerate(program.read_text().splitlines(), 1)
        for message in re.findall("  # error: (.*)$", line)
    }
    path = {} if LIB.name == "site-packages" else {"MYPYPATH": str(LIB)}
    out = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=",
         f"--cache-dir={tmp_path}", *programs],
        capture_output=True, text=True, cwd=HERE, env=os.environ | path,
    )  # fmt: skip
    found = defaultdict(list)
    for place, message in re.findall(r"^(\w+\.py:\d+): error: (.*)$", out.stdout, re.M):
        found[place].append(message)
    assert len(expected) > 30 and found.keys() == expected.keys(), out.stdout + out.stderr
    missing = {p: m for p, m in expected.items() if not any(m in text for text in found[p])}
    assert missing == {}


def test_each_line_of_the_stub_is_a_public_name():
    tree = ast.parse((LIB / "lodim" / "__init__.pyi").read_text())
    docstring, *imports, version = tree.body
    assert isinstance(docstring, ast.Expr) and ast.unparse(version) == "__version__: str"
    names = []
    for node in imports:
        ((name, shown),) = [(alias.name, alias.asname) for alias in node.names]
        assert name == shown and getattr(ld, name).__module__ == node.module
        names.append(name)
    assert ["__version__", *names] == ld.__all__ and len(names) == len(set(names)) > 50


def constructors():
    """Return the keywords and defaults of each class in the stub of the estimators."""
    tree, found = ast.parse((LIB / "lodim" / "sklearn.pyi").read_text()), {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            found[node.name] = found.get(base.id) or found.get(node.name)
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                names = [argument.arg for argument in method.args.kwonlyargs]
                values = map(ast.literal_eval, method.args.kw_defaults)
                found[node.name] = dict(zip(names, values, strict=True))
    return found


@pytest.mark.parametrize("name", estimators.__all__)
def test_the_stub_of_the_estimators_has_their_arguments(name):
    known = inspect.signature(getattr(estimators, name)).parameters.values()
    assert constructors()[name] == {p.name: p.default for p in known}


def public_functions():
    """Return the public functions, methods and properties of lodim, by name."""
    found = {}
    for module in (ld, estimators):
        for thing in (getattr(module, name) for name in module.__all__ if name != "__version__"):
            members = {"": thing}
            if inspect.isclass(thing):
                bases = [c for c in thing.__mro__ if c.__module__.startswith("lodim")]
                members = {
                    key: value
                    for base in bases
                    for key, value in vars(base).items()
                    if not key.startswith("_")
                }
            for value in members.values():
                inner = getattr(value, "fget", None) or getattr(value, "func", None)
                function = inspect.unwrap(inner or value)
                if inspect.isfunction(function):
                    found[f"{function.__module__}.{function.__qualname__}"] = function
    return found


def not_annotated(function):
    """Return the parameters of a function that have no type, and "return" if it has none."""
    signature = inspect.signature(function)
    missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    missing += ["return"] if signature.return_annotation is signature.empty else []
    return [name for name in missing if name != "self"]


def test_all_public_functions_are_annotated():
    found = public_functions()
    assert len(found) > 180
    assert {name: m for name, f in found.items() if (m := not_annotated(f))} == {}


if __name__ == "__main__":
    functions = public_functions()
    whole = sum(not not_annotated(function) for function in functions.values())
    print(f"{whole} of {len(functions)} public functions, methods and properties are annotated")
