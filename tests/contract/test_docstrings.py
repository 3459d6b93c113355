"""What help() says: every public function and method, its sections, and examples that run."""

import doctest
import inspect
import re
from importlib import import_module

import pytest

import lodim as ld
from lodim.fitting.registry import MODELS

PUBLIC = {name: getattr(ld, name) for name in ld.__all__ if name != "__version__"}
CLASSES = {
    name: c for name, c in PUBLIC.items() if inspect.isclass(c) and not issubclass(c, BaseException)
}
FUNCTIONS = {name: f for name, f in PUBLIC.items() if inspect.isfunction(f)}
METHODS = {
    f"{name}.{key}": member
    for name, c in CLASSES.items()
    for key, member in inspect.getmembers(c, inspect.isfunction)
    if not key.startswith("_")
}
MOST_ARGUMENTS = 14
EXAMPLES = sorted({member.__module__ for member in (FUNCTIONS | CLASSES | METHODS).values()})


def arguments(function):
    """Names of the arguments, self and those of the model left out."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD]


def sections(function):
    """Titles of the sections of a docstring, and its first line."""
    text = inspect.getdoc(function) or ""
    return set(re.findall(r"^([A-Z][\w ]+)\n-+$", text, re.M)), text.partition("\n")[0]


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_what_help_says(name):
    function = (FUNCTIONS | METHODS)[name]
    found, first = sections(function)
    assert (first.endswith((".", ":")) and first[0].isupper()) or first.startswith("`"), first
    returns = inspect.signature(function).return_annotation
    if arguments(function):
        assert "Parameters" in found
        said = "return" in first.lower()  # the signature has the type
        assert "Returns" in found or said or returns in (None, "None")
    for argument in arguments(function):
        assert re.search(rf"\b{argument}\b", inspect.getdoc(function)), argument


@pytest.mark.parametrize("name", MODELS)
def test_model_functions_have_examples_and_errors(name):
    found, _ = sections(FUNCTIONS[name])
    assert {"Parameters", "Returns", "Raises", "References", "Examples"} <= found


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_they_show(name, axes):
    module = import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES, *METHODS])
def test_all_have_examples_and_say_what_else_there_is(name):
    member = (FUNCTIONS | CLASSES | METHODS)[name]
    assert {"Examples", "See Also"} <= sections(member)[0]


def test_the_examples_are_found():
    finder = doctest.DocTestFinder(exclude_empty=True)
    tried = {n for n, f in FUNCTIONS.items() if any(t.examples for t in finder.find(f, n))}
    assert {*MODELS, "path", "cv", "active", "learning_curves", "data"} <= tried


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_few_arguments(name):
    """All but the model functions; what they have too many of goes to `control`."""
    if name not in MODELS:
        assert len(arguments((FUNCTIONS | METHODS)[name])) <= MOST_ARGUMENTS


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_public_is_for_users(name):
    """No method of a batch of numbers, of states, or of what the machinery shares."""
    public = [key for key in dir(CLASSES[name]) if not key.startswith("_")]
    inner = {
        "estimate_name",
        "without_offset",
        "score_rows",
        "reader",
        "coordinates",
    }
    assert not inner & set(public)
    for key in public:
        member = inspect.getattr_static(CLASSES[name], key)
        if inspect.isfunction(member):
            assert "batch" not in arguments(member)
