"""What the guarantee of monotone= costs and gains where the truth is monotone.

    python benchmarks/monotone.py [--draws 20] [--rows 200,2000] [--noise 1,3] [--out FILE]

Truths of six features uniform on (0, 1), of which three matter and each is increasing:

sum      3 (x1 + x2 + x3)
steps    a logistic step in each of three features, at 0.3, 0.5 and 0.7
product  8 x1 x2 + 2 x3

Gaussian noise has the truth's standard deviation times `--noise`. Each draw fits the default call
of a model without and with monotone={"x1": "increasing", ...} for the three features that matter.
R2 is measured on 10,000 rows without noise. A row for each truth, number of rows, noise and model:
means over draws, and the mean paired difference with its standard error.

    python benchmarks/monotone.py --limit

The largest R2 that any sum of increasing hinges can reach for `product`, with all rows and without
noise: non-negative least squares over hinges in 31 directions of (x1, x2), each with 41 knots.
"""

import argparse
import warnings
from itertools import product

import numpy as np
import pandas as pd
from held_out import table
from scipy.optimize import nnls

import lodim as ld

SIGNS = {name: "increasing" for name in ("x1", "x2", "x3")}
TRUTHS = {
    "sum": lambda x: 3.0 * x[:, :3].sum(axis=1),
    "steps": lambda x: (1.0 / (1.0 + np.exp(-20.0 * (x[:, :3] - [0.3, 0.5, 0.7])))).sum(axis=1),
    "product": lambda x: 8.0 * x[:, 0] * x[:, 1] + 2.0 * x[:, 2],
}
FIELDS = ("truth", "n", "noise", "model", "draws", "free", "monotone", "difference", "se")


def draw(truth, n, rng):
    """A frame of n rows with the truth as y."""
    x = rng.uniform(size=(n, 6))
    return pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(6)]).assign(y=TRUTHS[truth](x))


def r2(fit, new):
    return 1.0 - np.mean((fit.predict(new) - new["y"]) ** 2) / new["y"].var(ddof=0)


def limit():
    grid = (np.arange(30) + 0.5) / 30
    x1, x2 = (v.ravel() for v in np.meshgrid(grid, grid))
    hinges = []
    for angle in np.linspace(0.0, np.pi / 2, 31):
        cos, sin = np.cos(angle), np.sin(angle)
        z = cos * x1 + sin * x2
        for knot in np.linspace(0.0, cos + sin, 41):
            hinges += [np.maximum(0.0, z - knot), -np.maximum(0.0, knot - z)]
    hinges, y = np.transpose(hinges), 8.0 * x1 * x2
    _, rest = nnls(hinges - hinges.mean(axis=0), y - y.mean(), maxiter=20_000)
    return 1.0 - rest**2 / y.size / (y.var() + 4.0 / 12.0)  # a hinge of x3 fits 2 x3 exactly


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", default="200,2000")
    parser.add_argument("--noise", default="1,3")
    parser.add_argument("--models", default="gbmap,costnet")
    parser.add_argument("--out")
    parser.add_argument("--limit", action="store_true")
    args = parser.parse_args()
    if args.limit:
        print(f"{limit():.4f}")
        return
    warnings.simplefilter("ignore")
    write = table(args.out, FIELDS)
    sizes, factors = (text.split(",") for text in (args.rows, args.noise))
    for truth, n, noise in product(TRUTHS, map(int, sizes), map(float, factors)):
        pairs = {name: [] for name in args.models.split(",")}
        for seed in range(args.draws):
            rng = np.random.default_rng([seed, n])
            df, new = draw(truth, n, rng), draw(truth, 10_000, rng)
            df["y"] += rng.normal(scale=noise * new["y"].std(), size=n)
            for name, found in pairs.items():
                model = getattr(ld, name)
                found.append([r2(model("y ~ .", df, monotone=signs), new)
                              for signs in (None, SIGNS)])  # fmt: skip
        for name, found in pairs.items():
            free, signed = np.transpose(found)
            gap = signed - free
            values = free.mean(), signed.mean(), gap.mean(), gap.std(ddof=1) / len(gap) ** 0.5
            row = (truth, n, noise, name, args.draws, *(f"{value:.4f}" for value in values))
            write(dict(zip(FIELDS, row, strict=True)))


if __name__ == "__main__":
    main()
