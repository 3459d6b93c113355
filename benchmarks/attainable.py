"""Could other settings of gbmap reach the held-out R2 of EBM? An upper bound, by the test rows.

    python benchmarks/attainable.py FOLDER --out benchmarks/results/attainable.csv

The sets and splits are those of `held_out.py` for which held_out.csv has a default EBM (`ebm`),
with a numeric response. `default` is R2 of a default call on the test rows. `best` is the highest
R2 on the same test rows among 81 fits: the default and each combination of `m`, `refit` and
`lambda_` (multiples of the default's penalty). Nobody can choose settings by test rows, so `best`
is an upper bound for each rule that chooses these settings by training rows.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from held_out import halves, sets, table

import lodim as ld

RESULTS = Path(__file__).parent / "results" / "held_out.csv"
M = 5, 10, 20, 40, 60
FACTORS = 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0  # of the default's lambda_
FIELDS = "set", "n", "p", "seed", "ebm", "default", "best", "refit", "m", "lambda_"


def r_squared(fit, train, test):
    """Return R2 of a fit on test rows; the mean of the training rows predicts incomplete rows."""
    y, predicted = test["y"].to_numpy(float), fit.predict(test).to_numpy(float)
    predicted = np.where(np.isnan(predicted), train["y"].mean(), predicted)
    return 1.0 - np.mean((y - predicted) ** 2) / np.var(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    frames, write = sets(args.folder), table(args.out, FIELDS)
    with RESULTS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "ebm"]
    for row in rows:
        if row["task"] != "numbers":
            continue
        train, test = halves(frames[row["set"]], int(row["seed"]), 1000)
        default = ld.gbmap("y ~ .", train)
        at = default.settings
        lambdas = [at.lambda_ * factor for factor in FACTORS]
        tried = [(refit, m, lam) for refit in ("none", "joint") for m in M for lam in lambdas]
        fits = (ld.gbmap("y ~ .", train, refit=r, m=m, lambda_=lam) for r, m, lam in tried)
        score = r_squared(default, train, test)
        found = [(score, (at.refit, at.m, at.lambda_))]
        found += [(r_squared(fit, train, test), how) for fit, how in zip(fits, tried, strict=True)]
        best, (refit, m, lambda_) = max(found)
        of_set = {name: row[name] for name in ("set", "n", "p", "seed")}
        scores = {"ebm": float(row["score"]), "default": score, "best": best}
        of_best = {"refit": refit, "m": m, "lambda_": f"{lambda_:.3g}"}
        write(of_set | {name: f"{value:.4f}" for name, value in scores.items()} | of_best)


if __name__ == "__main__":
    main()
