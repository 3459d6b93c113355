"""Passes, seconds and loss of gbmap's joint fits to many rows, next to boosted trees.

    python benchmarks/joint_fits.py [--rows 10000,100000,1000000] [--threads 2]
                                    [--out benchmarks/results/joint_fits.csv]

Data: 25 normal features, of which five matter, by bends, a product and a sine (the explained share
of the variance is at most 0.95). As many rows again, at most 100,000, are held out. The fits have
30 learners, penalty 0.003 and single precision. A row per size, with columns for the boosts alone,
for boosts and joint fit together, and for scikit-learn's boosted trees (histograms, default
settings): held-out R2 and seconds; for gbmap also the mean squared error of the training rows and
the passes over them (evaluations of the loss with its gradient; of the joint fit alone in
joint_passes). `converged`: whether the joint fit converged; `multiple`: seconds of boosts and joint
fit as a multiple of the trees'; `gib`: largest memory of the process so far, in GiB.
"""

import argparse
import csv
import os
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

import lodim as ld

GIVEN = {"m": 30, "lambda_": 0.003, "dtype": "float32", "progress": False}
FIELDS = ("rows", "boosts_r2", "boosts_seconds", "boosts_loss", "boosts_passes", "joint_r2",
          "joint_seconds", "joint_loss", "joint_passes", "converged", "trees_r2", "trees_seconds",
          "multiple", "gib")  # fmt: skip


def draw(n, seed):
    """Return a frame of n rows with the response y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 25))
    signal = np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + np.maximum(X[:, 4], 0)
    noise = rng.normal(size=n) * np.sqrt(0.05 / 0.95) * 1.5
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(25)]).assign(y=signal + noise)


def timed(call):
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def measure(n, threads):
    """Return the row of the table for n training rows."""
    data, new = draw(n, 0), draw(min(n, 100_000), 1)
    out = {"rows": n}
    for kind, name in (("none", "boosts"), ("joint", "joint")):
        fit, seconds = timed(lambda: ld.gbmap("y ~ .", data, refit=kind, threads=threads, **GIVEN))  # noqa: B023
        loss, passes = fit.log["deviance"][-1], int(fit.log["n_eval"].sum())
        if fit.refit_log:
            loss, passes = fit.refit_log["deviance"], fit.refit_log["n_eval"]
            out["converged"] = fit.refit_log["converged"]
        r2 = r2_score(new["y"], fit.predict(new))
        values = {"r2": r2, "seconds": seconds, "loss": loss, "passes": passes}
        out |= {f"{name}_{key}": value for key, value in values.items()}
    trees = HistGradientBoostingRegressor(random_state=0)
    _, seconds = timed(lambda: trees.fit(data.drop(columns="y"), data["y"]))
    found = r2_score(new["y"], trees.predict(new.drop(columns="y")))
    multiple = out["joint_seconds"] / seconds
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return out | dict(trees_r2=found, trees_seconds=seconds, multiple=multiple, gib=gib)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", default=Path(__file__).parent / "results/joint_fits.csv")
    given = parser.parse_args()
    sizes = [int(n) for n in given.rows.split(",")]
    for n in sizes:  # compiles the kernels
        ld.gbmap("y ~ .", draw(min(n, 70_000), 2), refit="joint", **GIVEN | {"m": 2})
    with open(given.out, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for n in sizes:
            row = measure(n, given.threads)
            line = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
