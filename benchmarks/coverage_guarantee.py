"""Coverage of split conformal intervals for fixed seeds, compared with the value that theory gives.

    python benchmarks/coverage.py guarantee [--sizes 18,20,38,50,198] [--seeds 20] [--samples 400]
        [--level 0.8] [--out FILE]

Each sample has n rows with two features and noise from Student's t with three degrees of freedom,
and 400 new rows. With c calibration rows the coverage of exchangeable rows without ties is
ceil((c + 1) level) / (c + 1), for every seed of the split.

A row for each n and seed: mean coverage over the samples, its standard error, the theoretical
coverage, and the distance between both in standard errors.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

RESULTS = Path(__file__).resolve().parent / "results/coverage_guarantee.csv"
N_NEW = 400


def drawn(rng, n):
    """A frame of n rows with heavy tails in features and noise."""
    frame = pd.DataFrame(rng.standard_t(3, size=(n, 2)), columns=["a", "b"])
    return frame.assign(y=0.5 * frame["a"] + rng.standard_t(3, size=n))


def row_of(n, seed, samples, level):
    """Mean coverage with one size and one seed of the split."""
    rng, covered = np.random.default_rng(n), []
    for _ in range(samples):
        data, new = drawn(rng, n), drawn(rng, N_NEW)
        found = ld.conformal(ld.glm, "y ~ .", data, method="split", level=level, seed=seed)
        interval = found.predict(new)
        covered.append(((interval.lower <= new.y) & (new.y <= interval.upper)).mean())
    c = n // 2
    theory = math.ceil((c + 1) * level) / (c + 1)
    mean, error = np.mean(covered), np.std(covered, ddof=1) / math.sqrt(samples)
    row = {"n": n, "seed": seed, "coverage": mean, "se": error, "theory": theory}
    return row | {"distance": (mean - theory) / error}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="18,20,38,50,198")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--level", type=float, default=0.8)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    rows = []
    for n in map(int, args.sizes.split(",")):
        for seed in range(args.seeds):
            rows.append(row_of(n, seed, args.samples, args.level))
            print("{n:4d} {seed:3d} {coverage:.4f} ({se:.4f}) theory {theory:.4f} {distance:+.2f}"
                  .format(**rows[-1]), flush=True)  # fmt: skip
    pd.DataFrame(rows).round(5).to_csv(args.out, index=False)
