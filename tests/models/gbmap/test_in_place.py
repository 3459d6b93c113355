"""Fits that read the columns of a frame are those of a copy, and keep nothing of it."""

import gc
from weakref import ref

import numpy as np
import pandas as pd
import pytest

import lodim as ld
from lodim.engine.blocks import SPAN_ROWS
from lodim.engine.column_tiles import ColumnTiles

pytestmark = pytest.mark.long

N = 2 * SPAN_ROWS + 1_000


def frame(dtype="float32"):
    rng = np.random.default_rng(1)
    X = (2.0 * rng.standard_normal((6, N)) + 3.0).astype(dtype)
    signal = np.abs(X[0] - 3.0) + X[1] + rng.standard_normal(N)
    df = pd.DataFrame(X.T, columns=[f"x{k}" for k in range(6)], copy=False)
    w, o = rng.integers(0, 3, N), 0.1 * rng.standard_normal(N)
    return X, df.assign(
        number=signal, two=(signal > 4).astype(np.int8), w=w, o=o,
        three=np.array(["a", "b", "c"])[np.digitize(signal, [3, 5])],
    )  # fmt: skip


RIGHT = " + ".join(f"x{k}" for k in range(6))
CASES = {
    "two": {"dtype": "float32"},
    "number": {"dtype": "float64", "weights": "w", "offset": "o"},
    "three": {"dtype": "float32", "threads": 1},
    "two, refitted": {"dtype": "float32", "refit": "joint"},
    "two, sparse": {"dtype": "float32", "l1_ratio": 0.5},
    "two, chosen": {"dtype": "float32", "m": None, "lambda_": None},
}


@pytest.mark.parametrize("name", CASES)
def test_the_saved_fit_is_that_of_a_copy(name, monkeypatch, tmp_path):
    _, df = frame("float64" if CASES[name]["dtype"] == "float64" else "float32")
    formula, arguments = f"{name.split(',')[0]} ~ {RIGHT}", {"m": 2, "lambda_": 1e-3} | CASES[name]
    before, saved, laid_out = df.copy(), [], []
    make = ColumnTiles.__init__
    monkeypatch.setattr(
        ColumnTiles, "__init__", lambda self, *args: laid_out.append(1) or make(self, *args)
    )
    for least in (2**60, 0):
        monkeypatch.setattr("lodim.design.features.MIN_BYTES", least)
        assert not laid_out
        ld.gbmap(formula, df, **arguments).save(tmp_path / "fit")
        saved.append((tmp_path / "fit").read_bytes())
    assert laid_out and saved[0] == saved[1] and df.equals(before)


def test_the_fit_keeps_nothing_of_the_frame(monkeypatch):
    monkeypatch.setattr("lodim.design.features.MIN_BYTES", 0)
    X, df = frame()
    fit, alive = ld.gbmap(f"two ~ {RIGHT}", df, m=1, lambda_=1e-3, dtype="float32"), ref(X)
    del X, df
    gc.collect()
    assert alive() is None and fit.n == N
