"""Coverage of bootstrap intervals of effects, on truths that are known.

    python benchmarks/coverage.py bootstrap [--sets 200] [--replicates 200] [--only NAME ...]

Writes results/coverage_bootstrap.csv: a row has the share of data sets whose interval holds the
truth, and its standard error. Truths are means over the population, and the model can reach each of
them: what is missed is what the bootstrap does not cover. The last two cases show what that is: a
large penalty, and a choice of features.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

OUT = Path(__file__).parent / "results" / "coverage_bootstrap.csv"
LEVEL = 0.90


def linear(rng, n=300):
    """Least squares whose errors are skewed and spread with a feature; truth: coefficients."""
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    df["g"] = rng.choice(["u", "v", "w"], n, p=[0.5, 0.3, 0.2])
    error = (rng.exponential(size=n) - 1.0) * (0.5 + df["a"].abs())
    df["y"] = 1.0 + df["a"] - 0.5 * df["b"] + (df["g"] == "w") + error
    return df, {"a": 1.0, "b": -0.5, "c": 0.0, "g[v]": 0.0, "g[w]": 1.0}


def logistic(rng, n=300):
    """Two classes; truth: coefficients."""
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    p = 1.0 / (1.0 + np.exp(-(0.3 + df["a"] - 0.5 * df["b"])))
    df["y"] = np.where(rng.random(n) < p, "yes", "no")
    return df, {"a": 1.0, "b": -0.5, "c": 0.0}


def bent(rng, n=300):
    """A hinge, a line and a bend; truth: mean slopes over the population."""
    df = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    f = 2.0 * np.maximum(df["a"], 0.0) + df["b"] + np.logaddexp(0.0, 2.0 * df["c"])
    df["y"] = f + 0.5 * rng.normal(size=n)
    return df, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0}


def strong(rng, n=200):
    """Three features that all are chosen; truth: coefficients."""
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    df["y"] = 2.0 + df["a"] - 0.8 * df["b"] + 0.6 * df["c"] + rng.normal(size=n)
    return df, {"a": 1.0, "b": -0.8, "c": 0.6}


def weak(rng, n=200):
    """A weak feature among six that are nothing; truth: coefficients of the first two."""
    df = pd.DataFrame(rng.normal(size=(n, 8)), columns=list("abcdefgh"))
    df["y"] = df["a"] + 0.15 * df["b"] + rng.normal(size=n)
    return df, {"a": 1.0, "b": 0.15}


SMALL = {"lambda_": 1e-3, "m": 4, "beta": 5.0, "threads": 1, "control": {"reference_rows": 0}}
COSTS = {"threads": 1, "n_lambda": 20, "relax": 1.0, "rules": "lasso"}
CASES = {  # truth, model, arguments, and whether the intervals are to hold
    "glm, linear": (linear, ld.glm, {}, True),
    "glm, logistic": (logistic, ld.glm, {}, True),
    "gbmap, mean slopes": (bent, ld.gbmap, SMALL, True),
    "costnet, support known": (
        strong, ld.costnet, COSTS | {"budget": 3.0, "control": {"criterion": "deviance"}}, True,
    ),
    "gbmap, large penalty": (bent, ld.gbmap, SMALL | {"lambda_": 30.0}, False),
    "costnet, features chosen": (
        weak, ld.costnet, COSTS | {"budget": 8.0, "control": {"criterion": "bic"}}, False,
    ),
}  # fmt: skip


def one_set(case, seed, replicates):
    """A row per term: whether the interval contains the truth, its width, the error."""
    make, model, arguments, _ = CASES[case]
    df, truth = make(np.random.default_rng([seed, 7]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)
        fit = model("y ~ .", df, **arguments)
        boot = ld.bootstrap(fit, df, n=replicates, seed=seed, threads=1)
    rows, found = [], boot.tidy(level=LEVEL).set_index("term")
    for term, value in truth.items():
        row = found.loc[term]
        holds = row["conf_low"] <= value <= row["conf_high"]
        width = row["conf_high"] - row["conf_low"]
        rows.append([case, term, holds, width, row["estimate"] - value, row["std_error"]])
    return rows


def table(rows):
    """Coverage of each case and term."""
    columns = ["case", "term", "holds", "width", "error", "std_error"]
    frame = pd.DataFrame(rows, columns=columns)
    groups = frame.groupby(["case", "term"], sort=False)
    out = groups.agg(
        sets=("holds", "size"), coverage=("holds", "mean"), width=("width", "mean"),
        bias=("error", "mean"), sd=("error", "std"), std_error=("std_error", "mean"),
    ).reset_index()  # fmt: skip
    out.insert(3, "level", LEVEL)
    se = np.sqrt(LEVEL * (1.0 - LEVEL) / out["sets"])
    out.insert(5, "coverage_se", se)
    out.insert(1, "to_hold", [CASES[case][3] for case in out["case"]])
    return out.round(4)


def main(arguments=None):
    """Run the cases, print their tables and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    a = parser.parse_args(arguments)
    tables = [] if set(a.only) == set(CASES) else [pd.read_csv(OUT)] if OUT.exists() else []
    tables = [old[~old["case"].isin(a.only)] for old in tables]
    for case in a.only:
        start = time.process_time()
        rows = [row for seed in range(a.sets) for row in one_set(case, seed, a.replicates)]
        tables.append(table(rows).assign(seconds=round(time.process_time() - start, 1)))
        print(tables[-1].to_string(index=False), flush=True)
        whole = pd.concat(tables, ignore_index=True)
        order = {case: k for k, case in enumerate(CASES)}
        whole = whole.sort_values("case", key=lambda s: s.map(order), kind="stable")
        whole.to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
