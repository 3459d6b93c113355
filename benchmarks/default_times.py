"""Times of warm default calls, next to a ten-fold cross-validation of boosted trees.

    python benchmarks/default_times.py [--rows 1000,5000,20000] [--columns 8,50]

Simulated data: standard normal columns; a score of `sin`, a product, a bend and a linear part in
the first five columns; noise with half of its standard deviation. The response is the score, its
sign, or six classes by its sextiles. A row per response and size: seconds, by the clock, of the
second default call of gbmap; of `cross_val_score(HistGradientBoosting*(), cv=10)` on the same
rows; and the limit: ten times the latter, at least 3 s. Then three single calls: melm with a factor
of 100 levels, `compare` with five folds on 400 rows, and ripr on 2,800 x 36 with six classes.
"""

import argparse
import csv
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import lodim as ld

FIELDS = ("call", "response", "n", "p", "seconds", "boosting", "limit")


def frame(response, n, p):
    """Return simulated rows with a response `y`: `numbers`, or a number of classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.maximum(X[:, 3], 0) + 0.5 * X[:, 4]
    y = score + 0.5 * score.std() * rng.normal(size=n)
    if response != "numbers":
        cuts = np.quantile(y, np.arange(1, int(response)) / int(response))
        y = np.array(list("abcdef"))[np.searchsorted(cuts, y)]
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(p)]).assign(y=y)


def seconds(call, repeats=1):
    """Return the least time of some calls, by the clock."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1000,5000,20000")
    parser.add_argument("--columns", default="8,50")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    write = csv.writer(sys.stdout, lineterminator="\n")
    write.writerow(FIELDS)
    for response in "numbers", "2", "6":
        trees = HistGradientBoostingClassifier()
        if response == "numbers":
            trees = HistGradientBoostingRegressor()
        ld.gbmap("y ~ .", frame(response, 500, 8), progress=False)  # compiles
        for n in map(int, args.rows.split(",")):
            for p in map(int, args.columns.split(",")):
                df = frame(response, n, p)
                X, y = df.drop(columns="y"), df["y"]
                own = seconds(lambda df=df: ld.gbmap("y ~ .", df, progress=False))
                peer = seconds(lambda X=X, y=y, trees=trees: cross_val_score(trees, X, y, cv=10))
                limit = max(3.0, 10 * peer)
                times = f"{own:.2f}", f"{peer:.2f}", f"{limit:.2f}"
                write.writerow(("gbmap", response, n, p, *times))
                sys.stdout.flush()
    levels = pd.Series(np.random.default_rng(1).integers(0, 100, 200)).map("level{}".format)
    factor = frame("2", 200, 5).assign(g=levels)
    two, six = frame("2", 400, 8), frame("6", 2800, 36)
    calls = {
        ("melm", "2", 200, 104): (lambda: ld.melm("y ~ .", factor, progress=False), 5),
        ("compare", "2", 400, 8): (lambda: ld.compare("y ~ .", two, folds=5, progress=False), 20),
        ("ripr", "6", 2800, 36): (lambda: ld.ripr("y ~ .", six, progress=False), 8),
    }
    for words, (call, limit) in calls.items():
        call()
        write.writerow((*words, f"{seconds(call):.2f}", "", limit))


if __name__ == "__main__":
    main()
