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
results/active_SET.txt are what this version printed, with 20 repetitions of all scores but
"infogain", whose refits are slow, and, on real data, 60 of "diverse" and "random";
active_models.txt those of other models, with the settings of SETTINGS.

    python benchmarks/active.py SET [REPETITIONS [SCORE ...]] [--model NAME]
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

import lodim as ld
from lodim.active_learning.scores import SCORES
from lodim.datasets.synthetic import informative_views

REAL = ("breast_cancer", "ionosphere", "seeds", "heart", "german_credit")
NOISE = ("uniform", "compact")
FIRST, EACH, ROUNDS = 6, 12, 8
BATCH, BATCHES = 30, 10
TRIED = 10  # batches that "lookahead" chooses from
MOST = 600  # rows of a real set
SETTINGS = {  # fixed, so that bootstraps of few rows are quick, and choose nothing
    "ripr": {"threads": 1},
    "gbmap": {"threads": 1, "m": 5, "lambda_": 0.03},
    "proset": {"threads": 1, "lambda_v": 0.05},
    "costnet": {"threads": 1},
    "melm": {"threads": 1},
}


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
    model: str = "ripr"

    @property
    def names(self):
        """What is compared."""
        return *SCORES, "lookahead" if self.conforms is None else "conforming"

    def run(self, name):
        """The run of a score, or of an oracle."""
        learner = ld.active(
            getattr(ld, self.model), f"{self.response} ~ .", self.first, self.pool, test=self.test,
            score=name if name in SCORES else "random", seed=self.seed,
            **SETTINGS[self.model],
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
        model, rows = getattr(ld, self.model), pd.concat([self.first, self.pool])
        fit = model(f"{self.response} ~ .", rows, **SETTINGS[self.model])
        return fit.evaluate(self.test)["accuracy"].iloc[0]


def contest(name, seed, model="ripr"):
    """A repetition of a set."""
    return replace((real if name in REAL else noisy)(name, seed), model=model)


def real(name, seed):
    """Real data, shuffled."""
    data, response = ld.data(name).dropna(), ld.data().set_index("name")["response"][name]
    # Numbers for levels: the first rows do not have all of them.
    data = pd.get_dummies(data.drop(columns=response), dtype=float).assign(
        **{response: data[response]}
    )
    rows = data.sample(frac=1.0, random_state=seed)[:MOST]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=(*REAL, *NOISE))
    parser.add_argument("repetitions", nargs="?", type=int, default=20)
    parser.add_argument("scores", nargs="*")
    parser.add_argument("--model", choices=SETTINGS, default="ripr")
    args = parser.parse_args()
    contests = [contest(args.set, seed, args.model) for seed in range(args.repetitions)]
    runs = {score: [c.run(score) for c in contests] for score in args.scores or contests[0].names}
    with pd.option_context("display.width", 100):
        show(f"{args.set}, {args.model}", runs, [c.all_known() for c in contests])


if __name__ == "__main__":
    main()
