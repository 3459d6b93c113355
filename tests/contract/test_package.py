"""The package's metadata: version, contents, licences and extras."""

import configparser
import re
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lodim as ld

ROOT = Path(__file__).resolve().parents[2]
LIB, DATA = ROOT / "lib", ROOT / "data"
PACKAGE_OF = {
    "sklearn": "scikit-learn",
    "distributed": "dask",
    "vl_convert": "vl-convert-python",
}  # where the names differ

CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg")


def lines(section, option):
    """Return the lines of an option in setup.cfg."""
    return [line for line in CONFIG[section].get(option, "").splitlines() if line]


EXTRAS = {name: lines("options.extras_require", name) for name in CONFIG["options.extras_require"]}

ALWAYS = {Requirement(line).name for line in lines("options", "install_requires")}


@cache
def required(extra):
    """Return the names of the packages that an extra installs, extras of lodim followed."""
    found = set()
    for line in EXTRAS[extra]:
        needed = Requirement(line)
        if needed.name == "lodim":
            found = found.union(*map(required, needed.extras))
        else:
            found.add(canonicalize_name(needed.name))
    return frozenset(found)


# Version and metadata ---------------------------------------------------------------------------


def test_the_version_agrees_everywhere():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    assert citation == CONFIG["metadata"]["version"]
    assert ld.__version__ == version("lodim")


def test_the_metadata_agree_with_the_citation():
    citation = (ROOT / "CITATION.cff").read_text()
    urls = dict(re.split(r" = ", line) for line in lines("metadata", "project_urls"))
    assert f"repository-code: {urls['Source']}\n" in citation
    assert f"license: {CONFIG['metadata']['license_expression']}\n" in citation
    assert f"- name: {CONFIG['metadata']['author']}\n" in citation
    assert set(urls) == {"Homepage", "Source", "Documentation", "Issues", "Changelog"}


def test_the_licence_is_an_spdx_expression_and_its_files_exist():
    licence = CONFIG["metadata"]["license_expression"]
    assert canonicalize_license_expression(licence) == licence
    files = lines("metadata", "license_files")
    assert {"LICENSE", "data/README.md"} <= set(files)
    assert all((ROOT / file).is_file() for file in files)
    assert not any(c.startswith("License ::") for c in lines("metadata", "classifiers"))


def test_the_classifiers_begin_with_the_oldest_python():
    oldest = CONFIG["options"]["python_requires"].removeprefix(">=3.")
    named = re.findall(r"Python :: 3\.(\d+)$", CONFIG["metadata"]["classifiers"], re.M)
    minors = [int(minor) for minor in named]
    assert minors == list(range(int(oldest), max(minors) + 1))


# Contents ---------------------------------------------------------------------------------------


def test_the_packages_are_the_folders():
    folders = {".".join(file.parent.relative_to(LIB).parts) for file in LIB.rglob("*.py")}
    assert lines("options", "packages") == sorted(folders | {"lodim.datasets.csv"})
    assert all((LIB / folder.replace(".", "/") / "__init__.py").is_file() for folder in folders)


def test_every_data_file_is_installed():
    """Each file that is not Python is in the package data or among the licence files."""
    folders = {LIB / name.replace(".", "/"): name for name in lines("options", "packages")}
    folders |= {DATA: "lodim.datasets.csv"}
    left_out = {
        str(file.relative_to(ROOT))
        for folder, name in folders.items()
        for file in folder.glob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc")
        if not any(fnmatch(file.name, pattern) for pattern in patterns(name))
    }
    assert left_out <= set(lines("metadata", "license_files"))
    installed = ld.data()["name"].tolist()
    assert installed and all((DATA / f"{name}.csv").is_file() for name in installed)


def patterns(package):
    """Return the patterns of the data files that are installed in a package."""
    return CONFIG["options.package_data"].get(package, "").replace(",", " ").split()


@pytest.mark.parametrize("name", sorted(file.stem for file in DATA.glob("*.csv")))
def test_every_data_file_has_a_source_and_a_licence(name):
    tables = (DATA / "README.md").read_text(encoding="utf-8").split("\n\n")
    heads = [table.splitlines()[0] for table in tables]
    rows = [
        dict(zip(cells(head), cells(row), strict=True))
        for head, table in zip(heads, tables, strict=True)
        if {"source", "licence"} <= set(cells(head))
        for row in table.splitlines()[2:]
    ]
    (row,) = [row for row in rows if row["name"] == f"`{name}`"]
    assert row["source"] == "lodim" or "](https://doi.org/" in row["source"]
    assert re.search("CC BY 4.0|BSD 3-Clause", row["licence"])


def cells(row):
    """Return the cells of a row of a Markdown table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


# Extras -----------------------------------------------------------------------------------------


def test_each_extra_is_known_and_each_bound_is_stated_once():
    needs = [Requirement(line) for extra in EXTRAS for line in EXTRAS[extra]]
    assert {extra for need in needs if need.name == "lodim" for extra in need.extras} <= set(EXTRAS)
    needs += [Requirement(line) for line in lines("options", "install_requires")]
    bounds = Counter(
        (canonicalize_name(need.name), bound.operator) for need in needs for bound in need.specifier
    )
    assert [bound for bound, times in bounds.items() if times > 1] == []
    assert all(need.specifier for need in needs if need.name != "lodim")


def test_the_extras_are_the_unions_that_they_promise():
    users = {"plot", "sklearn", "progress", "polars", "arrow", "dask", "excel", "onnx", "report"}
    assert required("all") == frozenset().union(*map(required, users))
    assert not required("all") & required("cuda")
    tools = {"test", "docs", "dev", "bench", "examples", "peers", "integration"}
    assert set(EXTRAS) == users | tools | {"all", "cuda"}
    assert required("all") < required("test") and required("all") < required("docs")
    assert required("dev") == required("test") | required("docs")
    assert {"pyarrow", "narwhals"} <= required("dask")
    assert {"ruff", "mypy", "pandas-stubs", "pytest"} <= required("test")


def test_the_tests_need_nothing_that_builds_documents():
    builders = required("docs") - required("examples")
    assert "sphinx" in builders and not builders & required("test")


def test_what_the_tests_import_is_in_their_extra():
    files = [file.read_text() for file in (ROOT / "tests").rglob("*.py")]
    named = {name for text in files for name in re.findall(r'importorskip\("(\w+)', text)}
    packages = {PACKAGE_OF.get(name, name) for name in named - {"lodim"}}
    assert packages <= ALWAYS.union(*map(required, ("test", "docs", "integration")))
