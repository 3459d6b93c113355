"""What cite() gives for the package and for each model."""

import re
from pathlib import Path

import pytest

import lodim as ld
from lodim.fitting.registry import MODELS

ROOT = Path(__file__).resolve().parents[2]
MODELS_DOC = {name: getattr(ld, name).__doc__ for name in MODELS}


def entries(text):
    """Of each entry of BibTeX its kind, and its fields by name."""
    found = re.findall(r"^@(\w+)\{(\w+),\n(.*?)^\}", text + "\n", re.M | re.S)
    field = re.compile(r"(\w+)\s*= \{(.*?)\},?$", re.M | re.S)
    return [(kind, dict(field.findall(body))) for kind, _, body in found]


@pytest.mark.parametrize("name", MODELS)
def test_each_model_has_a_source(name):
    text = ld.cite(name)
    (kind, package), (_, source) = entries(text)
    assert kind == "software" and "lodim" in package["title"]
    assert text.count("{") == text.count("}")
    # The first author and the year are those of the references in help().
    assert source["author"].split(",")[0] in MODELS_DOC[name].partition("References")[2]
    assert source["year"] in MODELS_DOC[name]
    assert ld.cite(getattr(ld, name)) == text


def test_a_fit_is_cited_as_its_model():
    fit = ld.glm("mpg ~ weight", data=ld.data("autompg"))
    assert ld.cite(fit) == ld.cite("glm") and len(entries(ld.cite())) == 1


@pytest.mark.parametrize("wrong", ["lm", 3, ld.cv, [1]])
def test_what_is_no_model_is_refused(wrong):
    with pytest.raises(ld.ArgumentError, match="gbmap, proset"):
        ld.cite(wrong)


def test_the_file_of_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    config = (ROOT / "setup.cfg").read_text()
    versions = [re.search(r"^version\W+([\d.]+)", t, re.M)[1] for t in (text, config)]
    assert versions[0] == versions[1]
