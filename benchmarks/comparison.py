"""How often `compare` separates models that are equal, by simulation.

    python benchmarks/comparison.py [--repeats 1000] [--out benchmarks/results/comparison.csv]

Each case has `models` equal models: learners whose expected loss is the same by symmetry, on
samples of `n` rows, in ten folds. Copies: a model of three features, to which each copy adds three
columns of noise of its own. Halves: each model sees other features, as good as those of the others.
Seeds: forests that differ by their seed. `separated` is the share of samples in which any model is
told apart from the best at 5 %, by what `compare` does (`lodim.comparison.inference`); `usual` is
that share without the factor for overlapping training rows. The cases "glm copies" call
`lodim.compare` itself. In the cases "better" the first model sees a feature more than the others,
and `separated` is the power.
"""

import argparse
import csv
import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

import lodim as ld
from lodim.comparison import inference

FOLDS, LEVEL = 10, 0.05
FIELDS = ("case", "n", "models", "samples", "separated", "usual")
SLOW = {"forest seeds": 25, "glm copies": 10}  # by which samples are fewer


def least_squares(X, y, new):
    one = np.ones((len(X), 1)), np.ones((len(new), 1))
    return np.hstack([one[1], new]) @ np.linalg.lstsq(np.hstack([one[0], X]), y, rcond=None)[0]


def logistic(X, y, new):
    A, b = np.hstack([np.ones((len(X), 1)), X]), np.zeros(X.shape[1] + 1)
    for _ in range(8):  # with next to no penalty, so that separated samples have an answer
        p = 1.0 / (1.0 + np.exp(-A @ b))
        hessian = A.T @ (A * (p * (1.0 - p))[:, None]) + 1e-3 * np.eye(len(b))
        b += np.linalg.solve(hessian, A.T @ (y - p))
    return 1.0 / (1.0 + np.exp(-b[0] - new @ b[1:]))


def tree(X, y, new):
    return DecisionTreeRegressor(min_samples_leaf=5, random_state=0).fit(X, y).predict(new)


def neighbours(X, y, new):
    apart = ((new[:, None] - X[None]) ** 2).sum(axis=2)
    return y[np.argpartition(apart, 3, axis=1)[:, :3]].mean(axis=1)


def forest(seed):
    def learn(X, y, new):
        made = RandomForestClassifier(20, min_samples_leaf=3, random_state=seed)
        return made.fit(X, y).predict_proba(new)[:, 1]

    return learn


def squared(y, f):
    return (y - f) ** 2


def deviance(y, p):
    p = np.clip(p, 1e-3, 1.0 - 1e-3)
    return -2.0 * np.where(y > 0, np.log(p), np.log(1.0 - p))


LEARNERS = {"least squares": least_squares, "logistic": logistic, "tree": tree,
            "neighbours": neighbours}  # fmt: skip


def sample(case, n, M, rng):
    """Responses (n,), learner and features of each model, and the loss."""
    what, how = case.rsplit(" ", 1)
    X = rng.normal(size=(n, 3))
    if how == "seeds":
        X = rng.normal(size=(n, 5))
        y = classes(2.0 * X[:, 0] + X[:, 1] * X[:, 2], rng)
        return y, [(forest(int(seed)), X) for seed in rng.integers(10**9, size=M)], deviance
    if how == "halves":
        parts = [rng.normal(size=(n, 3)) for _ in range(M)]
        f = np.sum([part.sum(axis=1) for part in parts], axis=0)
    else:
        parts = [np.hstack([X, rng.normal(size=(n, 3))]) for _ in range(M)]
        f = X.sum(axis=1)
        if how == "better":
            parts = [X, *(np.hstack([X[:, :2], rng.normal(size=(n, 1))]) for _ in range(M - 1))]
    learner = LEARNERS[what.removesuffix(", heavy tails")]
    if what == "logistic":
        return classes(f, rng), [(learner, part) for part in parts], deviance
    noise = rng.standard_t(3, size=n) if "heavy" in what else rng.normal(size=n)
    return f + 2.0 * noise, [(learner, part) for part in parts], squared


def classes(f, rng):
    return (rng.uniform(size=len(f)) < 1.0 / (1.0 + np.exp(-f))).astype(float)


def least_p(case, n, M, rng):
    """The least p-value of the models of a sample, as `compare` has it, and by usual variances."""
    if case == "glm copies":
        return by_compare(n, M, rng), np.nan
    y, models, loss = sample(case, n, M, rng)
    fold, losses = rng.permutation(n) % FOLDS, np.empty((n, M))
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        for m, (learn, X) in enumerate(models):
            losses[test, m] = loss(y[test], learn(X[train], y[train], X[test]))
    rows = inference.Rows(np.full(n, 1.0 / n), fold)
    mean, covariance = inference.means(losses, rows)
    usual = covariance / rows.inflation
    return tuple(
        inference.confidence_set(mean, each, rows.degrees).min() for each in (covariance, usual)
    )


def by_compare(n, M, rng):
    X = rng.normal(size=(n, 3))
    frame = pd.DataFrame(rng.normal(size=(n, 3 * M)), columns=[f"z{j}" for j in range(3 * M)])
    frame = frame.assign(a=X[:, 0], b=X[:, 1], c=X[:, 2])
    frame["y"] = X.sum(axis=1) + 2.0 * rng.normal(size=n)
    models = {f"copy {m}": copy_of(m) for m in range(M)}
    return ld.compare("y ~ .", frame, models, baselines=False).tidy()["p_value"].min()


def copy_of(m):
    formula = f"y ~ a + b + c + z{3 * m} + z{3 * m + 1} + z{3 * m + 2}"
    return lambda _, data: ld.glm(formula, data)


CASES = ("least squares copies", "least squares, heavy tails copies", "logistic copies",
         "least squares halves", "logistic halves", "tree halves", "neighbours halves",
         "forest seeds", "glm copies", "least squares better", "logistic better")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--cases", default="; ".join(CASES))
    parser.add_argument("--out")
    args = parser.parse_args()
    out = open(args.out, "w", newline="") if args.out else sys.stdout  # noqa: SIM115
    writer = csv.DictWriter(out, FIELDS)
    writer.writeheader()
    inference.N_SIMULATIONS = 4000
    for case in args.cases.split("; "):
        for n in (50, 200):
            for M in (2, 5):
                rng = np.random.default_rng(1)
                samples = args.repeats // SLOW.get(case, 1)
                p = np.array([least_p(case, n, M, rng) for _ in range(samples)])
                share = [f"{np.mean(each <= LEVEL):.3f}" for each in p.T]
                if np.isnan(p[:, 1]).any():
                    share[1] = ""
                row = (case, n, M, samples, *share)
                writer.writerow(dict(zip(FIELDS, row, strict=True)))
                out.flush()


if __name__ == "__main__":
    main()
