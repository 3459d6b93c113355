"""False selections of stability selection on null features, compared with the bounds.

    python benchmarks/coverage.py stability [--samples 50] [--pairs 50] [--out FILE]

Synthetic samples of n rows and p standard normal features, correlated rho^|i - j|, of which `s`
have an effect of one on the response (noise of one; classes: its sign); the others, the null
features, are independent of it. Bounded are stable features of a chance at most q / p; counted are
null features that are stable, and whose share of all halves of all samples is at most q / p.

A row for each design, model and cutoff: mean number of features that a half selects, mean number of
null features that are stable and its standard error, of those whose chance is at most q / p, the
three bounds (means over the samples), and the share of the features with effect that are stable.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld
from lodim.uncertainty.stability_selection import r_concave, unimodal, worst_case

RESULTS = Path(__file__).resolve().parent / "results/coverage_stability.csv"
DESIGNS = {  # n, p, s, rho, classes
    "independent": (100, 50, 4, 0.0, False),
    "correlated": (100, 50, 4, 0.7, False),
    "noise": (100, 50, 0, 0.0, False),
    "classes": (150, 40, 4, 0.5, True),
}
MODELS = {
    "costnet": {"lambda_": 0.25},
    "gbmap": {"m": 1, "lambda_": 6.0, "l1_ratio": 1.0, "n_starts": 1},
    "proset": {"lambda_v": 0.1},
    "ripr": {"max_dim": 1},
}
OF_CLASSES = {"costnet": {"lambda_": 0.1}, "gbmap": {"lambda_": 2.0}, "proset": {"lambda_v": 0.05}}
CUTOFFS = (0.6, 0.75, 0.9)


def sample(n, p, s, rho, classes, seed):
    """A frame with the response y, effects of the first s features."""
    rng = np.random.default_rng(seed)
    near = rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(near + 1e-12 * np.eye(p)).T
    if s:  # null features must not be correlated with those that have an effect
        X[:, :s] = rng.normal(size=(n, s))
    df = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])
    score = X[:, :s].sum(axis=1) + rng.normal(size=n)
    df["y"] = np.where(score > 0, "yes", "no") if classes else score
    return df


def measure(name, design, args):
    """Rows of the table: one design and model, a cutoff each."""
    n, p, s, rho, classes = DESIGNS[design]
    how = MODELS[name] | (OF_CLASSES.get(name, {}) if classes else {}) | {"threads": 1}
    shares, q = [], []
    for seed in range(args.samples):
        df = sample(n, p, s, rho, classes, seed)
        found = ld.stability(getattr(ld, name), "y ~ .", df, n=args.pairs, **how)
        shares.append(found.tidy().set_index("term")["share"].reindex(df.columns[:p]).to_numpy())
        q.append(found.n_selected)
    shares, q = np.array(shares), np.array(q)
    low = shares.mean(axis=0) <= q.mean() / p
    for cutoff in CUTOFFS:
        stable = shares >= cutoff - 1e-9
        null = stable[:, s:].sum(axis=1)
        bounds = {
            "worst_case": [worst_case(each, p, cutoff) for each in q],
            "unimodal": [unimodal(each, p, cutoff, args.pairs) for each in q],
            "r_concave": [r_concave(each, p, cutoff, args.pairs) for each in q],
        }
        yield {
            "design": design, "n": n, "p": p, "effects": s, "rho": rho, "model": name,
            "samples": args.samples, "pairs": args.pairs, "cutoff": cutoff, "q": q.mean(),
            "false": null.mean(), "se": null.std(ddof=1) / np.sqrt(len(null)),
            "false_low": stable[:, s:][:, low[s:]].sum(axis=1).mean(),
            **{key: np.mean(each) for key, each in bounds.items()},
            "found": stable[:, :s].mean() if s else np.nan,
        }  # fmt: skip


def main(arguments):
    """Measure, print as it goes, and write the table."""
    parser = argparse.ArgumentParser(prog="coverage.py stability")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for design in args.designs.split(","):
        for name in args.models.split(","):
            frame = pd.DataFrame(measure(name, design, args)).round(4)
            frame.to_csv(args.out, mode="a", header=not args.out.exists(), index=False)
            print(frame.to_string(header=False, index=False), flush=True)
