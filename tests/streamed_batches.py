"""Batches whose features are a view of a file, as streamed data are."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd

import lodim as ld
from lodim.engine import tiles
from lodim.fitting.fit_model import model_of, prepare


def in_file(folder, X, dtype=np.float64):
    """Tiles of X (n, p) in a memory-mapped file."""
    packed = tiles.pack(X, dtype)
    file = np.memmap(folder / "tiles", dtype, "w+", shape=packed.shape)
    file[:] = packed
    return np.asarray(file)


def problem_of(model, X, y, arguments, X_tiles=None, weights=None):
    """The Problem of a model on rows X (n, p), y (n,), streamed where tiles are given.

    Features are as they are: neither centred nor scaled.
    """
    n, p = X.shape
    few = pd.DataFrame(X[:200], columns=[f"x{k}" for k in range(p)]).assign(y=y[:200])
    problem = prepare(model_of(model), "y ~ .", few, arguments)
    batch = replace(
        problem.batch,
        X=tiles.pack(X) if X_tiles is None else X_tiles,
        y=y.astype(float),
        weights=weights,
        index=pd.RangeIndex(n),
        rows=np.arange(n),
        streamed=X_tiles is not None,
    )
    return replace(problem, batch=batch)


def frame(n, p, seed=0):
    """Rows X (n, p) and a bent numeric response (n,)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.abs(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def saved(fit, folder):
    """The bytes of a fit's file."""
    fit.save(folder / "fit.lodim")
    return (folder / "fit.lodim").read_bytes()


def cross_validate(problem, monkeypatch, **arguments):
    """ld.cv of a Problem that is there already."""
    module = import_module("lodim.selection.cv")
    monkeypatch.setattr(module, "prepare", lambda *a, **k: problem)
    return ld.cv(problem.model.function, problem.design.formula, None, **arguments)
