"""Active learning: does any score beat random choice?

Real data: each repetition shuffles the rows, keeps a third out, starts from six labelled rows of
each class, and asks for twelve at a time. There "lookahead" takes, of ten random batches, the one
after which most of the pool is classified right: what could be won by knowing all labels and
looking one step ahead. Rows made up ("uniform", "compact"): two views of 300
rows each to learn from, and 200 rows that no view tells, spread out or in one heap; 30 labelled
rows at first, 30 at a time. There "conforming" asks for rows that a view tells, at random: what
could be won by knowing which rows those are. Neither is open to a learner.

Prints the mean height of the learning curves, the difference to random choice, and the p-value of
the paired t test; then the accuracy once all labels are known, which shows how much there is to win
at all. Test sets of real data are small: more repetitions of a few scores show what 20 cannot.
results/active_SET.txt are what this version printed, with 20 repetitions of all scores and, on real
data, 60 of "diverse" and "random".

    python benchmarks/active.py SET [REPETITIONS [SCORE ...]]
"""

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd

import lodim as ld
from lodim.active_learning.scores import SCORES
from lodim.datasets.synthetic import informative_views

REAL = ("breast_cancer", "ionosphere", "seeds")
NOISE = ("uniform", "compact")
FIRST, EACH, ROUNDS = 6, 12, 8
BATCH, BATCHES = 30, 10
TRIED = 10  # batches that "lookahead" chooses from


@dataclass(frozen=True)
class Contest:
    """Rows to start from, to ask for and to test on; `conforms` are the rows that a view tells."""

    response: str
    first: pd.DataFrame
    pool: pd.DataFrame
    test: pd.DataFrame
    each: int
    rounds: int
    seed: int
    conforms: pd.Index | None = None

    @property
    def names(self):
        """What is compared."""
        return *SCORES, "lookahead" if self.conforms is None else "conforming"

    def run(self, name):
        """The run of a score, or of an oracle."""
        learner = ld.active(
            ld.ripr, f"{self.response} ~ .", self.first, self.pool, test=self.test,
            score=name if name in SCORES else "random", seed=self.seed, threads=1,
        )  # fmt: skip
        labels = self.pool[self.response]
        if name in SCORES:
            return learner.replay(labels, self.each, rounds=self.rounds)
        rng = np.random.default_rng([self.seed, 2])
        known = None if self.conforms is None else rng.permutation(self.conforms)
        for step in range(self.rounds):
            if known is None:
                asked = self.best_of_some(learner, rng)
            else:
                asked = known[step * self.each : (step + 1) * self.each]
            learner.teach(labels.loc[asked])
        return learner

    def best_of_some(self, learner, rng):
        """Of random batches, the one after which most of the pool is classified right."""
        tried = [rng.choice(learner.pool.index, self.each, replace=False) for _ in range(TRIED)]
        right = []
        for asked in tried:
            fit = learner._fitted(pd.concat([learner.labelled, self.pool.loc[asked]]))
            right.append(fit.evaluate(self.pool)["accuracy"].iloc[0])
        return tried[int(np.argmax(right))]

    def all_known(self):
        """Accuracy on the test rows with all labels."""
        fit = ld.ripr(f"{self.response} ~ .", pd.concat([self.first, self.pool]), threads=1)
        return fit.evaluate(self.test)["accuracy"].iloc[0]


def contest(name, seed):
    """A repetition of a set."""
    return (real if name in REAL else noisy)(name, seed)


def real(name, seed):
    """Real data, shuffled."""
    data = ld.data(name)
    response = data.columns[0]
    rows = data.sample(frac=1.0, random_state=seed)
    test, rest = rows[: len(rows) // 3], rows[len(rows) // 3 :]
    first = rest.groupby(response, group_keys=False).head(FIRST)
    return Contest(response, first, rest.drop(first.index), test, EACH, ROUNDS, seed)


def noisy(noise, seed):
    """Rows of two views and rows that no view tells."""
    data = informative_views(2, 600, 400, seed)
    conforms = np.arange(len(data)) < 1200
    rng = np.random.default_rng([seed, 1])
    if noise == "compact":
        features = data.columns.drop("y")
        spread = 0.06 * rng.standard_normal((400, len(features)))
        data.loc[~conforms, features] = 0.5 + spread
    data["y"] = data["y"].astype(str)
    order = rng.permutation(len(data))
    data, conforms = data.iloc[order], conforms[order]
    half = len(data) // 2
    pool = data[BATCH:half]
    known = pool.index[conforms[BATCH:half]]
    return Contest("y", data[:BATCH], pool, data[half:], BATCH, BATCHES, seed, known)


def show(name, runs, full):
    """Runs by name, a list of the repetitions each, and accuracies with all labels."""
    curves = ld.learning_curves(runs)
    error = np.std(full, ddof=1) / len(full) ** 0.5 if len(full) > 1 else np.nan
    print(f"{name}, {len(full)} repetitions\n{curves}")
    print(f"\nAccuracy with all labels: {np.mean(full):.4f} ({error:.4f})", flush=True)


def main(name, repetitions, names=()):
    contests = [contest(name, seed) for seed in range(repetitions)]
    runs = {score: [c.run(score) for c in contests] for score in names or contests[0].names}
    with pd.option_context("display.width", 100):
        show(name, runs, [c.all_known() for c in contests])


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in (*REAL, *NOISE):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3:])
