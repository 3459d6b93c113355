"""Held-out accuracy or R2 of default calls with a few wild cells in the training rows, and without.

    python benchmarks/wild_values.py [--folder FOLDER] [--sets autompg,...] [--seeds 2]
        [--models gbmap,...] [--rows 500] [--out FILE]

Data: as of held_out.py, at most `--rows` training rows of a random half. One to three cells of
numeric columns are replaced by values that lie 50 to 1e9 ranges outside the column's own, with
either sign. A row for each set, seed and model: the number of cells, the score on clean test rows
after training without and with them, and their difference.
"""

import argparse
import runpy
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

HELD_OUT = runpy.run_path(str(Path(__file__).with_name("held_out.py")))
halves, is_classes = HELD_OUT["halves"], HELD_OUT["is_classes"]
RESULTS = Path(__file__).resolve().parent / "results/wild_values.csv"
SETS = (
    "autompg", "abalone", "concrete", "diabetes", "wine_red",
    "heart", "ionosphere", "pima_diabetes", "wine", "vowel",
)  # fmt: skip


def planted(train, rng):
    """The training rows with one to three wild cells, and their number."""
    train, n = train.reset_index(drop=True), int(rng.integers(1, 4))
    kinds = train.drop(columns="y").select_dtypes("number")
    columns = [name for name in kinds if kinds[name].nunique() > 10]
    for _ in range(n):
        name, row = rng.choice(columns), rng.integers(len(train))
        x = train[name].astype(float)
        size = 10.0 ** rng.uniform(np.log10(50.0), 9.0) * np.ptp(kinds[name])
        train[name] = x.where(train.index != row, x.median() + rng.choice([-1.0, 1.0]) * size)
    return train, n


def score(name, train, test):
    """R2, or the share of classes that are right, of a default call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = getattr(ld, name)("y ~ .", train)
        answer = fit.predict(test, "class" if is_classes(train) else "response")
    if is_classes(train):
        return float((answer == test["y"]).mean())
    return float(1.0 - np.mean((test["y"] - answer) ** 2) / np.var(test["y"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--models", default="gbmap,proset,costnet,melm,ripr,glm")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    frames, rows = HELD_OUT["sets"](args.folder), []
    for at in args.sets.split(","):
        for seed in range(args.seeds):
            train, test = halves(frames[at], seed, args.rows)
            wild, n = planted(train, np.random.default_rng(seed))
            for name in args.models.split(","):
                classes = is_classes(train)
                if (name == "melm" and not classes) or (name == "glm" and at == "vowel"):
                    continue  # no classes to tell apart; separated
                row = {"set": at, "seed": seed, "cells": n, "model": name}
                row |= {"clean": score(name, train, test), "wild": score(name, wild, test)}
                rows.append(row | {"difference": row["wild"] - row["clean"]})
                print("{set:15} {seed} {cells} {model:8} {clean:.4f} {wild:.4f} {difference:+.4f}"
                      .format(**rows[-1]), flush=True)  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.round(5).to_csv(args.out, index=False)
    print(frame.groupby("model")["difference"].agg(["mean", "min", "max"]).round(4))


if __name__ == "__main__":
    main()
