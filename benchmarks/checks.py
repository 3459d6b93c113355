"""How often `fit.check()` finds what is not there, and what is, by simulation.

    python benchmarks/checks.py [--repeats 200] [--models glm] [--out FILE]

Each sample has three normal features, a skewed one and a factor, a number or two classes that hang
on them, 100 training rows and 60 new ones. `healthy` samples are checked with their training rows
and with the new ones; each other case has one fault in one of the two. A row for each case and
code: the share of samples in which it was found. Models are called by default.
"""

import argparse
import csv
import sys
import warnings
from collections import Counter

import numpy as np
import pandas as pd

import lodim as ld

FORMULA = "a + b + c + d + f"
FIELDS = ("model", "response", "case", "samples", "code", "found")


def sample(rng, n=160, skewed=4.0):
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    df["d"] = rng.gamma(skewed, size=n) / skewed
    df["f"] = rng.choice(["u", "v", "w"], n)
    score = df["a"] + 0.7 * df["d"] - 0.7 + 0.8 * (df["f"] == "u")
    df["y"] = score + rng.normal(size=n)
    df["k"] = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-score)), "yes", "no")
    return df[:100], df[100:]


def nearly(values, rng):
    """Numbers that nearly are the response."""
    code = values if values.dtype.kind == "f" else (values == "yes").astype(float)
    return code + 0.02 * rng.normal(size=len(code))


CASES = {  # training rows, new rows and the response's name -> those with a fault
    "healthy": lambda old, new, y, rng: (old, new),
    "copies": lambda old, new, y, rng: (old.assign(b=old["a"] + 0.05 * old["b"]), None),
    "leak": lambda old, new, y, rng: (old.assign(b=nearly(old[y], rng)), None),
    "rare-level": lambda old, new, y, rng: (old.assign(f=["rare"] * 3 + [*old["f"][3:]]), None),
    "extrapolation": lambda old, new, y, rng: (old, new.assign(b=[30.0, *new["b"][1:]])),
    "drift": lambda old, new, y, rng: (old, new.assign(b=new["b"] + 1.0)),
    "calibration": lambda old, new, y, rng: (old, new.assign(
        y=new["y"] + 1.5, k=np.where(rng.random(len(new)) < 0.6, "yes", new["k"]))),
}  # fmt: skip


def checked(model, y, case, seed):
    """Codes that are found in a sample."""
    rng = np.random.default_rng(seed)
    old, new = CASES[case](*sample(rng), y, rng)
    fit = model(f"{y} ~ {FORMULA}", old)
    return {c.code for data in (old, new) if data is not None for c in fit.check(data)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--models", default="glm")
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    out = open(args.out, "w", newline="") if args.out else sys.stdout  # noqa: SIM115
    writer = csv.DictWriter(out, FIELDS)
    writer.writeheader()
    for name in args.models.split(","):
        for y in ("y", "k"):
            for case in CASES if name != "melm" or y == "k" else ():
                samples = args.repeats if case == "healthy" else max(1, args.repeats // 4)
                found = Counter()
                for seed in range(samples):
                    found.update(checked(getattr(ld, name), y, case, seed))
                for code in found or {"none": 0}:
                    share = f"{found[code] / samples:.3f}"
                    row = (name, y, case, samples, code, share)
                    writer.writerow(dict(zip(FIELDS, row, strict=True)))
                out.flush()


if __name__ == "__main__":
    main()
