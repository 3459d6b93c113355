"""Fingerprints (benchmarks/fingerprints.py) see every changed number, and no renamed field."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fingerprints.py"
STATE = {"w": np.arange(6.0).reshape(2, 3), "log": [{"n": 3, "loss": 0.5}], "name": "gbmap"}


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def hashed(script, value):
    return script["fingerprint"](map(script["as_bytes"], script["leaves"](value)))


def test_names_and_memory_orders_do_not_matter(script):
    other = {"weights": np.asfortranarray(STATE["w"]), "steps": ({"rows": 3.0, "value": 0.5},)}
    assert hashed(script, STATE) == hashed(script, other | {"model": "gbmap"})
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert hashed(script, frame) == hashed(script, frame.rename(columns={"a": "c"}))


@pytest.mark.parametrize(
    "change",
    [
        {"w": np.nextafter(STATE["w"], 9.0)},
        {"w": STATE["w"][:, ::-1]},
        {"w": STATE["w"].T},
        {"w": np.where(STATE["w"] == 0.0, -0.0, STATE["w"])},
        {"log": [{"n": 4, "loss": 0.5}]},
        {"name": "glm"},
    ],
)
def test_a_changed_number_or_word_does(script, change):
    assert hashed(script, STATE) != hashed(script, STATE | change)


def test_a_file_is_read_as_it_was_written(script, tmp_path):
    line = dict(zip(script["COLUMNS"], ["glm, two", "a", "b", "c", "deviance", "2.0"], strict=True))
    script["write_file"](tmp_path / "file.csv", {"cpu": "z: 5"}, [line])
    assert script["read_file"](tmp_path / "file.csv") == ({"cpu": "z: 5"}, {"glm, two": line})


def test_a_difference_says_what_and_how_much(script):
    old = {"stored": "a", "answers": "b", "printed": "c", "measure": "deviance", "value": "2.0"}
    assert script["difference"](old, dict(old)) is None
    new = old | {"answers": "d", "value": "2.5"}
    assert script["difference"](old, new) == "answers; deviance 2 -> 2.5, +0.25 of it"
