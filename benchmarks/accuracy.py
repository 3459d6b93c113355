"""Accuracy of gbmap on ten public data sets, compared with the authors' code and a linear model.

    python benchmarks/accuracy.py FOLDER [--data NAME ...] [--seeds 5] [--out benchmarks/results]

FOLDER holds the data sets as CSV, target in the last column. Splits: the halves of
`numpy.random.default_rng(seed).permutation(n)`, the first to train. Modes:

a  settings of the authors' code: m = 20, beta = 5, lambda = 1e-3, at most 200 iterations, gradient
   tolerance 1e-3, intercept weights penalized
b  no settings: gbmap("y ~ .", data)
c  ld.cv over lambda (and the number of boosts)

The OLS or logistic regression (scikit-learn, C = 1) is refitted in the same run.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

import lodim as ld

SETS = {
    "auto_mpg": "gaussian",
    "concrete": "gaussian",
    "wine_red": "gaussian",
    "abalone": "gaussian",
    "air_quality_gbmap": "gaussian",
    "california_housing": "gaussian",
    "breast_cancer_wdbc": "binomial",
    "pima_diabetes": "binomial",
    "german_credit": "binomial",
    "higgs": "binomial",
}
# Test R2 or accuracy (standard error) and log-loss of the authors' code in mode a; MODELS' tuned
# figures of the paper (Table 4, 5-fold on all rows).
AUTHORS = {
    "auto_mpg": (0.806, 0.028), "concrete": (0.857, 0.004), "wine_red": (0.148, 0.033),
    "abalone": (0.373, 0.173), "air_quality_gbmap": (0.917, 0.002),
    "california_housing": (0.728, 0.003), "breast_cancer_wdbc": (0.954, 0.005, 0.495),
    "pima_diabetes": (0.728, 0.004, 0.733), "german_credit": (0.684, 0.013, 2.539),
    "higgs": (0.660, 0.002, 0.657),
}  # fmt: skip
PAPER = {
    "auto_mpg": 0.863, "concrete": 0.907, "wine_red": 0.396, "abalone": 0.577,
    "air_quality_gbmap": 0.922, "california_housing": 0.755, "breast_cancer_wdbc": 0.965,
    "pima_diabetes": 0.766, "german_credit": 0.730, "higgs": 0.681,
}  # fmt: skip


def read(folder, name):
    """The complete rows, target renamed y, categories one-hot: a half may lack a rare level."""
    frame = pd.read_csv(folder / f"{name}.csv").dropna()
    if name == "auto_mpg":
        frame["origin"] = frame["origin"].astype(str)
    y = frame.pop(frame.columns[-1])
    return pd.get_dummies(frame, dtype=float).assign(y=y)


def halves(frame, seed):
    """Training and test half."""
    order = np.random.default_rng(seed).permutation(len(frame))
    half = len(frame) // 2
    return frame.iloc[order[:half]], frame.iloc[order[half:]]


def score(fit, test):
    """R2 or accuracy against the test half, and its loss."""
    row = fit.evaluate(test).iloc[0]
    return (row["accuracy"], row["log_loss"]) if "accuracy" in row else (row["dev_ratio"], np.nan)


def fit_a(train, family, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.ConvergenceWarning)  # 200 iterations are the setting
        return ld.gbmap(
            "y ~ .", train, family=family, m=20, lambda_=1e-3, beta=5, seed=seed,
            control={"max_iter": 200, "tol": 1e-3, "ftol": 0.0, "penalize_intercept": True},
        )  # fmt: skip


def fit_b(train, family, seed):
    return ld.gbmap("y ~ .", data=train, family=family)


def fit_c(train, family, seed):
    return ld.cv(ld.gbmap, "y ~ .", data=train, family=family, seed=seed).best


FITS = {"a": fit_a, "b": fit_b, "c": fit_c}


def linear(train, test, family):
    """Test scores of OLS or logistic regression on standardized, one-hot features."""
    scaler = StandardScaler().fit(train.drop(columns="y"))
    A, B = (scaler.transform(part.drop(columns="y")) for part in (train, test))
    if family == "gaussian":
        return LinearRegression().fit(A, train["y"]).score(B, test["y"]), np.nan
    model = LogisticRegression(max_iter=1000).fit(A, train["y"])
    hit = np.searchsorted(model.classes_, test["y"])
    p = model.predict_proba(B)[np.arange(len(test)), hit]
    return model.score(B, test["y"]), -np.log(p).mean()


def measure(folder, name, modes, seeds):
    """Rows of results: one a mode."""
    frame, family, results = read(folder, name), SETS[name], {}
    for seed in range(seeds):
        train, test = halves(frame, seed)
        results.setdefault("linear", []).append((*linear(train, test, family), 0.0))
        for mode in modes:
            start = time.perf_counter()
            fit = FITS[mode](train, family, seed)
            seconds = time.perf_counter() - start
            results.setdefault(mode, []).append((*score(fit, test), seconds))
    return [summary(name, mode, np.array(rows, float)) for mode, rows in results.items()]


def summary(name, mode, rows):
    """Means over the seeds, and standard errors of score and log-loss."""
    mean = rows.mean(axis=0)
    se = rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan * mean
    return {
        "data": name, "mode": mode, "score": mean[0], "se": se[0], "log_loss": mean[1],
        "log_loss_se": se[1], "seconds": mean[2], "authors": AUTHORS[name][0],
        "authors_se": AUTHORS[name][1], "paper": PAPER[name],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--modes", nargs="+", default=list(FITS), choices=list(FITS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    for name in arguments.data:
        shown = pd.DataFrame(measure(arguments.folder, name, arguments.modes, arguments.seeds))
        print(shown.round(4).to_string(index=False), flush=True)
        if arguments.out:
            save(shown, arguments.out / "accuracy.csv")


def save(rows, path):
    """Put rows in the place of those of the same data set."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        old = pd.read_csv(path)
        rows = pd.concat([old[~old["data"].isin(rows["data"])], rows])
    rows.round(4).to_csv(path, index=False)


if __name__ == "__main__":
    main()
