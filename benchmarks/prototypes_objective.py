"""proset's objective with gradient compared with its author's, on the same candidates.

    python benchmarks/prototypes_objective.py [--data digits checker large] [--repeats 20]
                                              [--merge] [--memory ROWS FEATURES] [--out FILE]

Both are evaluated at the start (all features and candidates have weight); medians in ms.
"large": 30,000 rows, 10,000 candidates, 100 normal features, 10 classes (the author's package takes
7 GB). `--merge` times the merging of 10,000 prototypes instead, `--memory` measures the whole
process of a fit with 10,000 candidates, cut off after three evaluations. Else it needs
`pip install proset`.
"""

import argparse
import resource
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from prototypes import split

import lodim as ld
from lodim.engine import tiles
from lodim.models.proset.cpu_kernels import CLASSES
from lodim.models.proset.objective import BatchObjective, ScoringRows, penalize
from lodim.models.proset.prototypes import merge

SETTINGS = {"lambda_v": 1e-3, "lambda_w": 1e-8}


def rows(name):
    """Features (n, p), classes (n,) and most candidates."""
    if name == "large":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((40_000, 100))
        return X, (4.0 * X[:, :10] + rng.standard_normal((40_000, 10))).argmax(axis=1), 10_000
    train, _ = split(name, 0)
    return train.drop(columns="y").to_numpy(), np.unique(train["y"], return_inverse=True)[1], 1000


def author(X, y, J):
    """The author's objective, its start, and the rows that it has drawn as candidates."""
    np.NaN = np.nan
    from proset.objectives.np_classifier_objective import NpClassifierObjective
    from proset.set_manager import ClassifierSetManager

    made = NpClassifierObjective(
        features=X.astype(np.float32, order="F"), target=y, weights=None, num_candidates=J,
        beta=0.1, max_fraction=0.5, set_manager=ClassifierSetManager(target=y, weights=None),
        alpha_v=0.05, alpha_w=0.05, random_state=np.random.RandomState(0), **SETTINGS,
    )  # fmt: skip
    start, _ = made.get_starting_point_and_bounds()
    return made, start.astype(float), made._sample_data["cand_index"]


def ours(X, y, drawn):
    """lodim's objective of the same candidates and scoring rows."""
    scoring = np.setdiff1d(np.arange(len(y)), drawn)
    share = np.bincount(y) / len(y)
    weight = (share / np.bincount(y[scoring]))[y[scoring]]
    of, one, none = share[y[scoring]], np.ones(len(scoring)), np.full(len(scoring), -1)
    packed = tiles.pack(X[scoring], np.float32)
    parts = ScoringRows.from_tiles(packed, y[scoring], of, one, weight, none)
    shares = SimpleNamespace(l1_ratio_v=0.05, l1_ratio_w=0.05, lambda_u=0.0, **SETTINGS)
    penalty = penalize(X.shape[1], len(drawn), shares)
    return BatchObjective(parts, X[drawn], y[drawn].astype(float), CLASSES, penalty, 2)


def timed(function, theta, repeats):
    """Milliseconds of each of some evaluations, the first aside, and the value and gradient.

    The threads of the author's BLAS spin for a while after they were last of use: not beside ours.
    """
    time.sleep(0.5)
    milliseconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        value, gradient = function(theta)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    return milliseconds[1:], value, gradient


def compared(name, repeats):
    """A row: sizes, medians of both, and how far value and gradient are apart."""
    X, y, J = rows(name)
    theirs, theta, drawn = author(X, y, J)
    mine = ours(X, y, drawn)
    wide = np.append(theta, 0.0)
    a, b = [], []
    for _ in range(2):
        one, value, gradient = timed(mine, wide, repeats)
        other, expected, reference = timed(theirs.evaluate, theta, repeats)
        a, b = a + one, b + other
    ms, author_ms, gradient = np.median(a), np.median(b), gradient[:-1]
    return {
        "data": name, "scoring": len(y) - len(drawn), "candidates": len(drawn),
        "features": X.shape[1], "lodim_ms": ms, "author_ms": author_ms, "ratio": author_ms / ms,
        "value_error": abs(value - expected) / abs(expected),
        "gradient_error": np.abs(gradient - reference).max() / np.abs(reference).max(),
    }  # fmt: skip


def merging():
    """Seconds to merge 10,000 points in 100 dimensions, half of them repeated."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((7500, 100))
    points = np.concatenate([points, points[:2500]])
    start = time.perf_counter()
    first, _, _ = merge(points, np.ones(len(points)))
    return {"points": len(points), "kept": len(first), "seconds": time.perf_counter() - start}


def memory(n, p):
    """Seconds and peak memory, in GiB, of a process that makes data and fits them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((n + 10_000, p)), columns=[f"x{k}" for k in range(p)])
    X["y"] = np.where(X["x0"] * X["x1"] > 0, "a", "b")
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        ld.proset("y ~ .", X, n_candidates=10_000, control={"max_iter": 3})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"scoring": n, "candidates": 10_000, "features": p, "peak_gib": peak,
            "seconds": time.perf_counter() - start}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "checker", "large"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--memory", nargs=2, type=int)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.merge:
        table = pd.DataFrame([merging()])
    elif asked.memory:
        table = pd.DataFrame([memory(*asked.memory)])
    else:
        repeats = {"large": max(1, asked.repeats // 10)}
        table = pd.DataFrame([compared(n, repeats.get(n, asked.repeats)) for n in asked.data])
    print(table.to_string(index=False))
    if asked.out:
        table.to_csv(asked.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
