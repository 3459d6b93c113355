"""proset for numbers against k-NN, kernel ridge, random forest and gbmap: R2, features, coverage.

    python benchmarks/prototypes_regression.py FOLDER [--data NAME ...] [--by NAME ...]
                                               [--seeds 3] [--out FILE]

FOLDER holds the data sets as CSV, target in the last column. 70/30 splits, features standardized.
proset with its defaults, with three batches (-3), with loss="density" (-d), and with lambda_v
chosen (-cv); k-NN with k = 10, kernel ridge with an RBF kernel of gamma = 1/p and alpha = 0.1, a
forest of 100 trees, gbmap with its defaults. cover is the share of the test rows in 90 % intervals,
nll the mean negative log-density, of loss="density" alone. Means over the seeds, se that of r2. The
committed table was made beside other work and says no times.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

import lodim as ld

FILES = ["concrete", "auto_mpg", "abalone", "wine_red", "california_housing"]
MOST = 10_000  # rows


def bimodal(seed):
    """Two branches, +-(1 + sin(2 a) / 2), one as likely as the other; b and c do not matter."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-2, 2, (3000, 3)), columns=list("abc"))
    branch = rng.choice([-1, 1], len(X)) * (1 + np.sin(2 * X["a"]) / 2)
    return X.assign(y=branch + 0.1 * rng.standard_normal(len(X)))


def six_of_twelve(seed):
    """Six features in products and squares, six that do not matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (3000, 12))
    y = 2 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 2 * X[:, 2] * X[:, 3] + (X[:, 4] + X[:, 5]) ** 2
    frame = pd.DataFrame(X, columns=[f"x{k + 1}" for k in range(12)])
    return frame.assign(y=y + 0.3 * rng.standard_normal(len(X)))


MADE = {
    "friedman1": lambda seed: ld.friedman1(2800, seed=seed),
    "bimodal": bimodal,
    "6 of 12": six_of_twelve,
}
TRAIN = {"friedman1": 800, "bimodal": 1000}  # training rows where they are not 70 %


def split(folder, name, seed):
    """Training and test rows, categories one-hot, features standardized by the training rows."""
    if name in MADE:
        frame = MADE[name](seed)
    else:
        frame = pd.read_csv(folder / f"{name}.csv").dropna()
        if name == "auto_mpg":
            frame["origin"] = frame["origin"].astype(str)
        y = frame.pop(frame.columns[-1])
        frame = pd.get_dummies(frame, dtype=float).assign(y=y.astype(float))
        frame.columns = [f"x{k}" for k in range(frame.shape[1] - 1)] + ["y"]
        frame = frame.sample(min(len(frame), MOST), random_state=seed)
    size = TRAIN.get(name, 0.7)
    train, test = train_test_split(frame, train_size=size, random_state=seed)
    x = [c for c in frame if c != "y"]
    mean, sd = train[x].mean(), train[x].std(ddof=0).replace(0.0, 1.0)
    return [part.assign(**(part[x] - mean) / sd) for part in (train, test)]


def prototypes(**arguments):
    """A fit by proset: predictions, features, prototypes, coverage, negative log-density."""

    def fit(train, test, seed):
        made = ld.proset("y ~ .", train, seed=seed, **arguments)
        inside = made.predict(test, "interval")
        cover = test["y"].between(inside["lower"], inside["upper"]).mean()
        nll = made.evaluate(test).get("nll", pd.Series([np.nan]))[0]
        return made.predict(test), made.df, len(made.estimates), cover, nll

    return fit


def peer(make):
    """A fit by a model of scikit-learn; it uses all features."""

    def fit(train, test, seed):
        X, Z = (part.drop(columns="y").to_numpy() for part in (train, test))
        made = make(X.shape[1], seed).fit(X, train["y"])
        return made.predict(Z), X.shape[1], np.nan, np.nan, np.nan

    return fit


def boosted(train, test, seed):
    """A fit by gbmap."""
    made = ld.gbmap("y ~ .", train, seed=seed)
    return made.predict(test), train.shape[1] - 1, np.nan, np.nan, np.nan


WAYS = {
    "proset": prototypes(),
    "proset-3": prototypes(n_batches=3),
    "proset-d": prototypes(loss="density"),
    "proset-d-3": prototypes(loss="density", n_batches=3),
    "proset-cv": prototypes(lambda_v=None),
    "knn": peer(lambda p, seed: KNeighborsRegressor(10)),
    "ridge": peer(lambda p, seed: KernelRidge(kernel="rbf", gamma=1 / p, alpha=0.1)),
    "forest": peer(lambda p, seed: RandomForestRegressor(100, random_state=seed)),
    "gbmap": boosted,
}
COLUMNS = ["r2", "rmse", "features", "prototypes", "cover", "nll", "fit_s"]


def measure(folder, name, by, seeds):
    """A row: means over the seeds."""
    rows = []
    for seed in range(seeds):
        train, test = split(folder, name, seed)
        y, start = test["y"].to_numpy(), time.perf_counter()
        p, *rest = WAYS[by](train, test, seed)
        square = np.mean((y - np.asarray(p)) ** 2)
        rows.append([1 - square / y.var(), square**0.5, *rest, time.perf_counter() - start])
    table = pd.DataFrame(rows, columns=COLUMNS)
    mean = table.mean()
    se = table["r2"].std() / seeds**0.5
    return {"data": name, "by": by, "seeds": seeds, "r2": mean["r2"], "se": se} | mean.to_dict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="+", default=[*FILES, *MADE], choices=[*FILES, *MADE])
    parser.add_argument("--by", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    for name in asked.data:
        rows = pd.DataFrame([measure(asked.folder, name, by, asked.seeds) for by in asked.by])
        print(rows.round(3).to_string(index=False), flush=True)
        if asked.out:
            if asked.out.exists():  # rows of the same data and model are replaced
                old = pd.read_csv(asked.out)
                rows = pd.concat([old, rows]).drop_duplicates(["data", "by"], keep="last")
            rows.round(4).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
