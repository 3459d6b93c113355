"""Active learning: does any score beat random choice?

Real data: each repetition shuffles the rows, keeps a third out, starts from six labelled rows of
each class, and asks for twelve at a time. Rows made up ("uniform", "compact"): two views of 300
rows each to learn from, and 200 rows that no view tells, spread out or in one heap; 30 labelled
rows at first, 30 at a time. There "conforming" asks for rows that a view tells, at random: what
could be won by knowing which rows those are.

Prints the mean height of the learning curves, the difference to random choice, and the p-value of
the paired t test. results/active_SET.txt are what this version printed.

    python benchmarks/active.py SET [REPETITIONS]
"""

import sys

import numpy as np
import pandas as pd

import lodim as ld
from lodim.scores import SCORES
from lodim.synthetic import informative_views

REAL = ("breast_cancer", "ionosphere", "seeds")
NOISE = ("uniform", "compact")
FIRST, EACH, ROUNDS = 6, 12, 8
BATCH, BATCHES = 30, 10


def real_runs(name, seed):
    """A run of every score on real data, by name."""
    data = ld.data(name)
    response = data.columns[0]
    rows = data.sample(frac=1.0, random_state=seed)
    test, rest = rows[: len(rows) // 3], rows[len(rows) // 3 :]
    first = rest.groupby(response, group_keys=False).head(FIRST)
    pool = rest.drop(first.index)
    out = {}
    for score in SCORES:
        learner = ld.active(
            ld.ripr, f"{response} ~ .", first, pool, test=test, score=score, seed=seed, threads=1
        )
        out[score] = learner.replay(pool[response], EACH, rounds=ROUNDS)
    return out


def noisy(noise, seed):
    """Rows of two views and rows that no view tells; the last column says which."""
    data = informative_views(2, 600, 400, seed)
    data["conforms"] = np.arange(len(data)) < 1200
    rng = np.random.default_rng([seed, 1])
    if noise == "compact":
        features = data.columns.drop(["y", "conforms"])
        spread = 0.06 * rng.standard_normal((400, len(features)))
        data.loc[~data["conforms"], features] = 0.5 + spread
    data["y"] = data["y"].astype(str)
    return data.iloc[rng.permutation(len(data))]


def noisy_runs(noise, seed):
    """A run of every score, and of one that knows which rows conform, by name."""
    data = noisy(noise, seed)
    rest, test = data[: len(data) // 2], data[len(data) // 2 :].drop(columns="conforms")
    first, pool = (part.drop(columns="conforms") for part in (rest[:BATCH], rest[BATCH:]))

    def learner(score):
        return ld.active(
            ld.ripr, "y ~ .", first, pool, test=test, score=score, seed=seed, threads=1
        )

    out = {s: learner(s).replay(pool["y"], BATCH, rounds=BATCHES) for s in SCORES}
    out["conforming"], rng = learner("random"), np.random.default_rng([seed, 2])
    known = rng.permutation(rest.index[BATCH:][rest["conforms"][BATCH:]])
    for b in range(BATCHES):
        out["conforming"].teach(pool["y"].loc[known[b * BATCH : (b + 1) * BATCH]])
    return out


def main(name, repetitions):
    one = real_runs if name in REAL else noisy_runs
    runs = [one(name, seed) for seed in range(repetitions)]
    together = {score: [run[score] for run in runs] for score in runs[0]}
    with pd.option_context("display.width", 100):
        print(f"{name}, {repetitions} repetitions\n{ld.learning_curves(together)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in (*REAL, *NOISE):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
