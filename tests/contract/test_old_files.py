"""Files that an earlier version has written, before models had missing=, groups= and refit=."""

from pathlib import Path

import pytest

import lodim as ld

FILES = Path(__file__).parent / "old_files"
DATA = {
    "gbmap": "diabetes", "proset": "wine", "melm": "iris", "ripr": "heart", "costnet": "heart",
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_files_of_an_earlier_version(name):
    fit, df = ld.load(FILES / f"{name}.lodim"), ld.data(DATA[name])
    assert fit.name == name and fit.call in str(fit)
    if name == "gbmap":  # its response stood beside the data
        assert fit.arguments["refit"] == "none" and fit.predict(df).notna().all()
        return
    assert fit.arguments["missing"] == ("keep" if name == "ripr" else "drop")
    assert fit.evaluate(df)["dev_ratio"][0] > 0.4
