"""Files of proset: what its own writer would not write is refused by name, before a kernel runs."""

import re

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim import forms
from lodim.fitting import storage


@pytest.fixture(scope="module")
def state():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    df["y"] = np.sin(2 * df["a"]) + df["b"] + 0.1 * rng.normal(size=200)
    return forms.write(ld.proset("y ~ .", df, n_batches=2, threads=1))


def forged(state, part, **changes):
    """The state with some entries of one of its parts changed."""
    return state | {part: {**state[part], **{k: f(state[part][k]) for k, f in changes.items()}}}


def changed(position, value):
    def change(array):
        array = np.array(array)
        array[position] = value
        return array

    return change


FORGERIES = [
    ("estimates", {"member_of": changed(0, 10**6)}, "member_of"),
    ("estimates", {"member_of": changed(0, -1)}, "member_of"),
    ("estimates", {"batch": lambda b: b[::-1]}, "batch"),
    ("estimates", {"u": changed(0, -1.0)}, "u is"),
    ("typical", {"x": lambda x: x[:-1]}, "typical.x"),
    ("typical", {"x": lambda x: x * np.nan}, "typical.x"),
    ("calibration", {"familiarity": lambda z: z[:50]}, "calibration.familiarity"),
    ("calibration", {"levels": lambda z: z[:0]}, "calibration.levels"),
    ("calibration", {"variance": lambda z: z[1:]}, "calibration.variance"),
    ("calibration", {"variance": changed(0, np.inf)}, "calibration.variance"),
    ("calibration", {"null_variance": lambda z: float("nan")}, "calibration.null_variance"),
    ("calibration", {"familiarity": lambda z: [0.0] * 101}, "calibration.familiarity"),
    ("log", {"deviance": lambda z: z[:1]}, "log['deviance']"),
    ("log", {"converged": lambda z: [True, True]}, "log['converged']"),
]


@pytest.mark.long
@pytest.mark.parametrize("part, changes, words", FORGERIES)
def test_forged_files_are_refused(state, tmp_path, part, changes, words):
    storage.write(tmp_path / "fit", "proset", forged(state, part, **changes))
    with pytest.raises(ld.StoreError, match=re.escape(words)):
        ld.load(tmp_path / "fit")


@pytest.mark.long
def test_forged_lists_are_refused(state, tmp_path):
    log = {name: value for name, value in state["log"].items() if name != "n_eval"}
    for change, words in (
        ({"labels": state["labels"][1:]}, "labels"),
        ({"log": log}, "log has"),
    ):
        storage.write(tmp_path / "fit", "proset", state | change)
        with pytest.raises(ld.StoreError, match=words):
            ld.load(tmp_path / "fit")


@pytest.mark.long
@pytest.mark.parametrize("arguments", [{}, {"loss": "density"}, {"lambda_w": 1e4}])
def test_own_files_are_read(arguments, tmp_path):
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    df["y"] = df["a"] + 0.1 * rng.normal(size=150)
    fit = ld.proset("y ~ .", df, n_batches=2, threads=1, **arguments)
    for one in (fit, fit.shrink()):
        one.save(tmp_path / "fit")
        back = ld.load(tmp_path / "fit")
        pd.testing.assert_series_equal(back.predict(df), one.predict(df))
