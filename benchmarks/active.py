"""Active learning on real data: does any score beat random choice?

Each repetition shuffles the rows, keeps a third out, starts from six labelled rows of each class,
and asks for twelve at a time. Prints the mean height of the learning curves, the difference to
random choice, and the p-value of the paired t test.

    python benchmarks/active.py [REPETITIONS]
"""

import sys

import lodim as ld
from lodim.scores import SCORES

SETS = ("breast_cancer", "ionosphere", "seeds")
FIRST, EACH, ROUNDS = 6, 12, 8


def runs(name, repetitions):
    """Runs of every score, by name."""
    data = ld.data(name)
    response = data.columns[0]
    out = {score: [] for score in SCORES}
    for seed in range(repetitions):
        rows = data.sample(frac=1.0, random_state=seed)
        test, rest = rows[: len(rows) // 3], rows[len(rows) // 3 :]
        first = rest.groupby(response, group_keys=False).head(FIRST)
        pool = rest.drop(first.index)
        for score in SCORES:
            learner = ld.active(
                ld.ripr, f"{response} ~ .", first, pool, test=test, score=score, seed=seed
            )
            out[score].append(learner.replay(pool[response], EACH, rounds=ROUNDS))
    return out


if __name__ == "__main__":
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name in SETS:
        print(f"{name}\n{ld.learning_curves(runs(name, repetitions))}\n", flush=True)
