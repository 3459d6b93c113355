"""The documentation site: it builds without a warning, and leaves no public name out."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import lodim as ld
from contract.cases import FORMULA, MODELS, SLOW, contract_of, frame_of, some_long

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INTERNAL = {"network", "axes"}  # settings that models fill in themselves


def test_the_reference_has_every_public_name():
    listed = re.findall(r"^   (\w+)$", (DOCS / "reference/index.md").read_text(), re.M)
    import lodim.sklearn as estimators

    assert sorted(listed) == sorted({*ld.__all__, *estimators.__all__} - {"__version__"})


def test_every_page_is_in_the_list_for_machines():
    """What llms.txt names is there."""
    pages = re.findall(r"\]\((.+?)\.html\)", (DOCS / "llms.txt").read_text())
    assert len(pages) > 5
    for page in pages:
        assert any((DOCS / f"{page}{kind}").exists() for kind in (".md", ".py"))


def test_the_gallery_has_every_kind_of_plot():
    drawn = (DOCS / "gallery.py").read_text()
    results = ("bootstrap", "effects", "conformal", "stability", "compare", "path", "cv", "active")
    assert all(f"ld.{name}(" in drawn for name in results)
    kinds = {kind for model in MODELS for kind in contract_of(model).plots}
    assert {kind for kind in kinds if f'.plot("{kind}"' not in drawn} == set()


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path):
    """Its notebooks are not executed here; the whole is built by the command in CONTRIBUTING."""
    for package in ("sphinx", "myst_nb", "pydata_sphinx_theme", "numpydoc", "sphinx_design"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-E"]
    places = ["-d", tmp_path / "doctrees", DOCS, tmp_path / "site"]
    done = subprocess.run(
        [*command, "-D", "nb_execution_mode=off", *places], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "lambda_" in (tmp_path / "site/reference/lodim.gbmap.html").read_text()


@pytest.mark.parametrize("model", some_long(MODELS, SLOW))
def test_every_label_of_a_summary_is_explained(model):
    for kind in contract_of(model).kinds:
        fit = model(FORMULA, frame_of(model, kind), **contract_of(model).cheap)
        assert unexplained(labels_of(fit.summary())) == set()


def labels_of(report):
    """The labels of the header and of the tables of a Report."""
    labels = {label for label, _ in report.header}
    labels |= {str(column) for table in report.tables for column in table.frame}
    labels = {re.sub(r"x\d", "x1", label.split(" (leave")[0]) for label in labels}
    return {label.split(",")[0] for label in labels if not re.fullmatch(r"\d+%", label)}


def unexplained(labels):
    """Those labels that the page "How to read the output" does not have."""
    page = (DOCS / "summaries.py").read_text().replace("\\|", "|")
    return {label for label in labels if f"`{label}`" not in page}


RESULTS = {
    "bootstrap": lambda df: ld.bootstrap(ld.glm("hue ~ ash", df), df, n=40),
    "conformal, numbers": lambda df: ld.conformal(ld.glm, "hue ~ ash", df),
    "conformal, classes": lambda df: ld.conformal(ld.glm, "cultivar ~ ash", df),
    "effects": lambda df: ld.effects(ld.glm("hue ~ ash", df), df),
    "compare": lambda df: ld.compare("hue ~ ash", df, ["glm"], folds=3),
    "stability": lambda df: ld.stability(
        ld.gbmap, "hue ~ ash", df, m=1, lambda_=1.0, l1_ratio=0.5, n=2
    ),
}


@pytest.mark.parametrize("name", some_long(RESULTS, ["stability"]))
def test_every_label_of_other_results_is_explained(name):
    assert unexplained(labels_of(RESULTS[name](ld.data("wine")).summary())) == set()


def test_every_label_of_a_policy_is_explained():
    wine = ld.data("wine")
    policy = ld.acquire("cultivar ~ ash + hue", wine[::2])
    curve = policy.curve(wine[1::2], [0.1])
    text = f"{policy.next({})}\n{policy.next({}, budget=0)}"
    printed = set(re.findall(r"^([A-Z][a-z -]+)(?=:)", text, re.M))
    assert {"Next", "Stop", "Prediction", "Expected log-loss"} <= printed
    names = {*curve.columns, *curve["policy"]}
    assert unexplained(labels_of(policy.summary()) | printed | names) == set()


@pytest.mark.parametrize("model", MODELS)
def test_the_table_of_control_has_the_entries_and_their_defaults(model):
    page = (DOCS / f"theory/{model.__name__}.py").read_text()
    told = {}
    for names, defaults in re.findall(r"^# \| (`\w+`(?:, `\w+`)*) \| (.+?) \|", page, re.M):
        found = re.findall(r"`(\w+)`", names)
        split = defaults.strip("`").split(", ") if len(found) > 1 else [defaults.strip("`")]
        told |= dict(zip(found, split, strict=True))
    declared = import_module(f"lodim.models.{model.__name__}.model").MODEL
    settings = {f.name: f.default for f in fields(declared.settings)}
    allowed = set(settings) - set(signature(model).parameters) - INTERNAL
    assert set(told) == allowed
    for name, text in told.items():
        default = settings[name]
        if "chosen" not in text and default is not None:
            assert ast.literal_eval(text.replace(",", "")) == default, name
