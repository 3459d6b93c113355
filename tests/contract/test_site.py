"""The documentation site: it builds without a warning, and leaves no public name out."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lodim as ld
from contract.cases import MODELS, contract_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


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
