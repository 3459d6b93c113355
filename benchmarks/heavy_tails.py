"""Default gbmap with and without compressed heavy tails of its columns, on held-out halves.

    python benchmarks/heavy_tails.py FOLDER [--sets wine_red,...] [--seeds 3] [--rows 1500]

FOLDER has CSV files, as for `held_out.py`, which also describes the splits. Compressed: a number x
with more than two values and a kurtosis above 6 becomes arcsinh((x - median) / spread). The spread
is that of the quartiles; if more than half the values are equal, that of the others around them.
A row per set and seed: number of compressed columns; accuracy or R2, and log-loss, of both fits.
"""

import argparse

import numpy as np
from held_out import halves, of_lodim, sets, table
from scipy.stats import kurtosis

HEAVY, NORMAL_QUARTILE = 6.0 - 3.0, 0.6745  # the kurtosis of normal numbers counts as zero
FIELDS = ("set", "n", "seed", "columns", "score", "compressed", "log_loss", "compressed_log_loss")


def center_and_spread(x):
    """Return the median of x, and a spread that equals the SD for normal numbers."""
    median, (low, high) = np.median(x), np.quantile(x, [0.25, 0.75])
    others = np.abs(x - median)[x != median]
    if low < high and 2 * len(others) >= len(x):
        return median, (high - low) / (2 * NORMAL_QUARTILE)
    return median, np.median(others) / NORMAL_QUARTILE


def compress(train, test):
    """Return both frames with compressed columns, and the number of these columns."""
    train, test, count = train.copy(), test.copy(), 0
    for name in train.columns.drop("y"):
        x = train[name].to_numpy()
        if x.dtype.kind in "if" and len(np.unique(x)) > 2 and kurtosis(x) > HEAVY:
            median, spread = center_and_spread(x.astype(float))
            for df in (train, test):
                df[name] = np.arcsinh((df[name] - median) / spread)
            count += 1
    return train, test, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1500)
    args = parser.parse_args()
    write = table(None, FIELDS)
    for name, df in sets(args.folder).items():
        for seed in range(args.seeds) if not args.sets or name in args.sets.split(",") else ():
            train, test = halves(df, seed, args.rows)
            *frames, count = compress(train, test)
            one, two = of_lodim("gbmap", train, test), of_lodim("gbmap", *frames)
            values = name, len(train), seed, count, one[0], two[0], one[1], two[1]
            write(dict(zip(FIELDS, values, strict=True)))


if __name__ == "__main__":
    main()
