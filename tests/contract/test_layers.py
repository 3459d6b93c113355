"""Who may import what, found by scanning the imports."""

import ast
import inspect
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lodim as ld
from lodim.fitting.registry import MODELS

ROOT = Path(ld.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = [str(f.relative_to(ROOT)) for f in FILES]
SOLVERS = {"lodim.solve.lbfgs", "cvxpy", "scipy.optimize"}
NUMERIC = {"numpy", "numba", "llvmlite", "math", "scipy", "lodim", "dataclasses", "typing", "os",
           "functools", "concurrent", "itertools", "collections", "threading"}  # fmt: skip


@cache
def text_of(name):
    """The text of a file of the package."""
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def nodes_of(name):
    """All nodes of the syntax tree of a file."""
    return tuple(ast.walk(ast.parse(text_of(name))))


@cache
def imports(name):
    """Dotted names of all that a file imports, anywhere in it."""
    found = set()
    package = ["lodim", *Path(name).parts[:-1]]
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def uses(name, *packages):
    """The imports of a file that are one of these packages or in one."""
    return {i for i in imports(name) for p in packages if i == p or i.startswith(p + ".")}


def files(*patterns):
    return [n for n in NAMES if any(Path(n).match(p) for p in patterns)]


def only(package, *allowed):
    """Who imports a package that only `allowed` may."""
    return {n for n in NAMES if uses(n, package)} - set(allowed)


BASE = {"errors", "checks", "forms", "text", "progress", "typing", "atomic_write"}
MAY = {  # what each block may import beside itself, from the bottom up
    "errors": set(), "text": set(), "typing": set(), "atomic_write": set(),
    "progress": {"errors"}, "checks": BASE,
    "forms": BASE, "formula": BASE, "engine": BASE, "classification": set(),
    "family": BASE | {"engine"},
    "design": BASE | {"formula", "engine", "sources", "family"},
    "solve": BASE | {"engine"}, "report": BASE | {"formula"}, "datasets": BASE,
    "sources": BASE | {"datasets"},
}  # fmt: skip
MAY["plot"] = BASE | {"report", "classification"}
MAY["prices"] = BASE | {"design", "report"}
MAY["export"] = BASE | {"formula", "design"}
MAY["page"] = BASE | {"design", "report", "export", "classification"}
MAY["diagnostics"] = BASE | {"formula", "engine", "design", "report", "classification"}
MAY["fitting"] = BASE | {
    "formula", "engine", "sources", "design", "family", "report", "plot", "export", "page",
    "diagnostics", "classification",
}  # fmt: skip
MAY["selection"] = MAY["fitting"] | {"fitting"}
MAY["active_learning"] = MAY["selection"]
MAY["acquisition"] = MAY["selection"] | {"selection", "prices"}
MAY["uncertainty"] = MAY["selection"] | {"selection"}
MAY["interpretation"] = MAY["uncertainty"] | {"uncertainty"}
MAY["comparison"] = MAY["selection"] | {"selection"}
MAY["models"] = MAY["selection"] | {"selection", "solve", "prices"}
SOLVED = ("estimate", "boost", "lbfgs", "solvers")  # modules that fit, and what they call


def module_of(name):
    """Dotted name of a file."""
    return ".".join(["lodim", *Path(name).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_of(name): name for name in NAMES}


@cache
def parents(module):
    """The modules of lodim that a module imports, anywhere in it."""
    found = imports(MODULES[module]) & MODULES.keys()
    return {i for i in found if not any(j.startswith(i + ".") for j in found)}


def test_nothing_is_imported_upwards():
    upwards = {}
    for name in NAMES:
        block = Path(name).parts[0].removesuffix(".py")
        if block not in ("__init__", "__main__", "cli", "sklearn"):
            used = {i.split(".")[1] for i in parents(module_of(name)) if "." in i}
            upwards[name] = used - {block} - MAY[block]
    assert {name: wrong for name, wrong in upwards.items() if wrong} == {}


def solves(module):
    """Whether a module solves, or has a solver; not null models and estimates of memory."""
    if module in ("lodim.family.family", "lodim.fitting.estimate"):
        return False
    return module.split(".")[-1] in SOLVED or bool(uses(MODULES[module], "cvxpy", "scipy.optimize"))


def chain_to_solver(name):
    """The chain of imports by which a file reaches a solver, as text; None if there is none."""
    chain, todo = {module_of(name): ()}, [module_of(name)]
    while todo:
        module = todo.pop(0)
        if solves(module):
            return " > ".join((*chain[module], module))
        for other in parents(module) - chain.keys():
            chain[other] = (*chain[module], module)
            todo.append(other)
    return None


def test_no_chain_of_imports_leads_from_a_fit_to_a_solver():
    known = ("fit", "report", "plots", "multi_fit", "explanation")
    fits = [
        n
        for n in NAMES
        if Path(n).stem in known
        or "explain" in Path(n).parts
        or n.startswith(("report/", "plot/", "fitting/"))
    ]
    assert len(fits) >= 60
    assert [chain for name in fits if (chain := chain_to_solver(name))] == []


def test_no_module_imports_itself_by_any_chain():
    at_once = {}
    for module, name in MODULES.items():
        tree = nodes_of(name)[0]
        top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        named = {
            f"{n.module}.{a.name}" for n in top if isinstance(n, ast.ImportFrom) for a in n.names
        }
        named |= {n.module for n in top if isinstance(n, ast.ImportFrom)}
        at_once[module] = {i for i in named if i in MODULES and i != "lodim"}
    assert len(list(TopologicalSorter(at_once).static_order())) >= len(MODULES)


def test_the_scan_sees():
    """A scan that finds nothing would hold any wall."""
    assert len(FILES) > 25 and "numba" in imports("engine/scalar_math.py")
    assert uses("models/gbmap/boost.py", "lodim.solve")
    assert uses("plot/axes.py", "matplotlib") and uses("formula/patsy_terms.py", "patsy")
    assert "lodim.models.gbmap.plots" in imports("models/gbmap/fit.py")  # within a function
    assert "lodim.models.gbmap.refit" in parents("lodim.models.gbmap.assemble")
    assert solves("lodim.models.gbmap.boost") and solves("lodim.models.costnet.penalty.reference")


@pytest.mark.parametrize(
    "package, allowed",
    [
        ("numba.cuda", ["engine/cuda.py"]),
        ("numba_cuda_mlir", ["engine/cuda.py"]),
        ("numba.njit", []),  # `compiled` has it: numba's own raises where nothing can be written
        ("matplotlib", ["plot/axes.py", "plot/lettering.py"]),
        ("patsy", ["formula/patsy_terms.py"]),
        (
            "cvxpy",
            [
                "models/costnet/penalty/reference.py",
                "models/ripr/assignment/constrained.py",
            ],
        ),
        ("narwhals", ["design/frame.py"]),
        ("distributed", ["engine/dask_cluster.py", "sources/dask_frames.py"]),
        ("cloudpickle", ["engine/dask_cluster.py"]),  # of calls that Dask would take apart
        ("polars", ["fitting/marginaleffects_model.py"]),  # whose frames that package takes
        ("marginaleffects", ["fitting/marginaleffects_model.py"]),
        ("maketables", []),
        ("altair", ["page/charts.py"]),
        ("jinja2", ["page/charts.py"]),
        ("vl_convert", ["page/charts.py"]),
        ("openpyxl", ["report/excel.py"]),
        ("onnx", ["export/onnx.py"]),
        ("duckdb", []),
        ("onnxruntime", []),
        ("pickle", []),
        ("sklearn", ["sklearn.py", "comparison/candidates.py"]),
        ("statsmodels", ["models/glm/estimate.py"]),
    ],
)
def test_single_importers(package, allowed):
    assert only(package, *allowed) == set()


def users(names, *packages):
    """Those of some files that import one of these packages, and what they import of it."""
    return {name: found for name in names if (found := uses(name, *packages))}


def test_kernels_know_numbers_alone():
    kernels = files("scalar_math.py", "kernels.py", "cpu_kernels.py", "cuda_kernels.py", "prox.py",
                    "column_kernels.py", "tiles.py")  # fmt: skip
    assert len(kernels) > 8
    assert {n: {i.split(".")[0] for i in imports(n)} - NUMERIC for n in kernels} == {
        n: set() for n in kernels
    }
    tables = ("pandas", "lodim.design.design", "lodim.solve.lbfgs", "lodim.report.tables")
    assert users(kernels, *tables) == {}
    assert [n for n in kernels if any(getattr(a, "arg", "") == "self" for a in nodes_of(n))] == []


def test_objectives_know_no_frames_and_no_solvers():
    assert files("objective.py")
    assert users(files("objective.py"), "pandas", "lodim.design.design", *SOLVERS) == {}


def test_shared_numerics_know_no_frames():
    shared = [n for n in NAMES if n.startswith(("solve/", "engine/", "family/"))]
    shared.append("selection/folds.py")
    tables = ("pandas", "lodim.models", "lodim.report.tables", "lodim.plot.axes")
    assert users(shared, *tables) == {}


def test_the_solver_sees_objectives_alone():
    assert {i for i in imports("solve/lbfgs.py") if i.startswith("lodim")} <= {
        "lodim.solve.objective", "lodim.solve.objective.pseudo_slope",
        "lodim.engine.compiled", "lodim.engine.compiled.njit", "lodim.engine.compiled.ZERO",
    }  # fmt: skip
    assert not uses("selection/path.py", "lodim.models", "lodim.solve.lbfgs", "numba")


def test_fits_and_reports_know_no_solvers():
    shown = files("fit.py", "report.py", "plots.py", "plot/*.py", "report/*.py")
    assert len(shown) > 30 and users(shown, *SOLVERS) == {}


def test_models_do_not_know_each_other():
    of_models = [n for n in NAMES if n.startswith("models/") and len(Path(n).parts) > 2]
    others = {
        name: {i for i in uses(name, "lodim.models") if i.split(".")[2:3] != [Path(name).parts[1]]}
        for name in of_models
    }
    assert {name: found for name, found in others.items() if found} == {}
    formulas = ("patsy", "lodim.formula.patsy_terms", "lodim.design.expressions",
                "lodim.design.columns")  # fmt: skip
    assert users(of_models, *formulas) == {}


def test_specs_do_no_numerics():
    specs = files("models/*/model.py")
    assert len(specs) == len(MODELS) and users(specs, "numba", "scipy", *SOLVERS) == {}


def test_shared_files_name_no_model():
    shared = [
        n
        for n in NAMES
        if not n.startswith("models") and n not in ("__init__.py", "fitting/fit.py")
    ]
    assert [n for n in shared if uses(n, "lodim.models")] == []


def test_lodim_itself_reads_tables_in_pandas():
    """A fit to polars gives polars: calls within the package are of `in_pandas`."""
    called = [(n, c.func) for n in NAMES for c in nodes_of(n) if isinstance(c, ast.Call)]
    called = [(n, f) for n, f in called if getattr(f, "attr", "") in ("tidy", "glance")]
    called = {(n, ast.unparse(f.value)) for n, f in called}
    assert {pair for pair in called if pair[1] not in ("axes", "frontier_models")} == {
        ("cli/commands.py", "cv"),  # of files, whose frames are pandas'
        ("active_learning/learning_curves.py", "self"),
    }
    ways = ("predict", "augment", "evaluate")
    calls = [c.func for n in NAMES for c in nodes_of(n) if isinstance(c, ast.Call)]
    own = [ast.unparse(f) for f in calls if getattr(f, "attr", "") in ways]
    assert [call for call in own if call.startswith("super()")] == []


def n_lines(name):
    return len(text_of(name).splitlines())


def n_documented(name):
    """Number of lines of docstrings."""
    kinds = ast.FunctionDef | ast.ClassDef | ast.Module
    nodes = [n for n in nodes_of(name) if isinstance(n, kinds) and ast.get_docstring(n)]
    return sum(n.body[0].end_lineno - n.body[0].lineno + 1 for n in nodes)


def test_no_file_is_long():
    """At most 650 lines, and 520 without docstrings, whose examples are as long as they must be."""
    assert {n: n_lines(n) for n in NAMES if n_lines(n) > 650} == {}
    assert [n for n in NAMES if n_lines(n) - n_documented(n) > 520] == []
    families = [n for n in files("family/*.py") if n != "family/family.py"]
    assert {n: n_lines(n) for n in families if n_lines(n) > 120} == {}


def test_nothing_prints_or_runs_text():
    wrong = {}
    for name in set(NAMES) - {"cli/__init__.py", "cli/commands.py"}:
        calls = [n.func for n in nodes_of(name) if isinstance(n, ast.Call)]
        called = {f.id for f in calls if isinstance(f, ast.Name)}
        called = called & {"print", "eval", "exec", "input"}
        called |= {f.attr for f in calls if isinstance(f, ast.Attribute)} & {"show"}
        wrong |= {name: called} if called else {}
    assert wrong == {}


# Import cost -----------------------------------------------------------------------------------


def modules_after(code):
    """Top-level names of what a fresh process has imported after some code."""
    script = code + "\nimport sys; print(*{m.split('.')[0] for m in sys.modules})"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT.parent), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    return set(out.stdout.splitlines()[-1].split())


HEAVY = {
    "cvxpy",
    "openpyxl",
    "matplotlib",
    "statsmodels",
    "sklearn",
    "polars",
    "narwhals",
    "dask",
    "distributed",
    "tqdm",
    "onnx",
    "onnxruntime",
    "duckdb",
}


def test_import_is_light():
    loaded = modules_after("import lodim")
    assert "lodim" in loaded
    assert not loaded & (HEAVY | {"pandas", "numba", "scipy", "patsy", "joblib"})


@pytest.mark.long
def test_a_fit_loads_nothing_heavy():
    loaded = modules_after(
        "import lodim as ld; f = ld.gbmap('y ~ x', {'x': [1., 2, 3, 5], 'y': [1., 3, 2, 4]}, m=1,"
        " lambda_=.1); repr(f); str(f.summary())"
    )
    assert "numba" in loaded and not loaded & HEAVY


# Public names ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ld.__all__ if n != "__version__"])
def test_public_names(name):
    thing = getattr(ld, name)
    assert name in dir(ld) and inspect.getdoc(thing)
    if inspect.isfunction(thing):
        doc = inspect.getdoc(thing)
        assert "Parameters\n" in doc and "Returns\n" in doc
        for parameter in inspect.signature(thing).parameters:
            assert parameter in doc, parameter


def test_models_are_those_of_the_registry():
    folders = {f.name for f in (ROOT / "models").iterdir() if (f / "model.py").exists()}
    assert folders == set(MODELS) and set(MODELS) <= set(ld.__all__)
    assert dir(ld) == sorted(ld.__all__)


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="nonsense"):
        ld.nonsense  # noqa: B018


@pytest.mark.parametrize("name", [n for n in ld.__all__ if n.endswith("Error")])
def test_one_root_error(name):
    assert issubclass(getattr(ld, name), ld.LodimError)


@pytest.mark.parametrize("cls", ["GbmapFit", "MelmFit", "Path", "CV"])
def test_public_methods_have_words(cls):
    from lodim.models.gbmap.fit import GbmapFit
    from lodim.models.melm.fit import MelmFit
    from lodim.selection.cv import CV
    from lodim.selection.path import Path as LambdaPath

    chosen = {"GbmapFit": GbmapFit, "MelmFit": MelmFit, "Path": LambdaPath, "CV": CV}[cls]
    public = [n for n in dir(chosen) if not n.startswith("_")]
    without = [n for n in public if not inspect.getdoc(getattr(chosen, n))]
    assert len(public) > 3 and without == []
