"""AUC of gbmap's drift indicator on the paper's split (Patron et al. 2024, Sects. 4.1 and 4.5).

    python benchmarks/drift.py FOLDER [--data NAME ...] [--seeds 5]

m = 20, beta = 5, lambda = 1e-3, at most 200 iterations, k = 5. A row of a2 or b counts as drifted
where its loss exceeds the 95 % quantile of the losses on a2. The loss is the squared difference of
f to y, or with classes to the score of a logistic regression on all rows.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy import SETS, read
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import lodim as ld
from lodim.classification import auc

PAPER = {
    "auto_mpg": 0.94, "concrete": 0.73, "wine_red": 0.85, "abalone": 0.95,
    "air_quality_gbmap": 0.98, "california_housing": 0.74, "breast_cancer_wdbc": 0.51,
    "pima_diabetes": 0.63, "german_credit": 0.65, "higgs": 0.70,
}  # fmt: skip
SETTINGS = {
    "m": 20, "lambda_": 1e-3, "beta": 5.0,
    "control": {"max_iter": 200, "tol": 1e-3, "ftol": 0.0, "penalize_intercept": True},
}  # fmt: skip


def true_score(frame, family):
    """y, or the score of a logistic regression on all rows."""
    if family == "gaussian":
        return frame["y"].astype(float)
    X = frame.drop(columns="y")
    model = LogisticRegression(max_iter=1000).fit(StandardScaler().fit_transform(X), frame["y"])
    score = model.decision_function(StandardScaler().fit_transform(X))
    return pd.Series(score, index=frame.index)


def measure(folder, name, seed):
    """Split feature, AUC of the indicator, share drifted."""
    frame, family = read(folder, name).reset_index(drop=True), SETS[name]
    split = ld.drift_split("y ~ .", frame, family=family, seed=seed, **SETTINGS)
    fit = ld.gbmap("y ~ .", split.train, family=family, seed=seed, **SETTINGS)
    truth = true_score(frame, family)
    test = pd.concat([split.same, split.shifted])
    loss = (fit.predict(test, "link") - truth[test.index]) ** 2
    limit = loss[: len(split.same)].quantile(0.95)
    high = (loss > limit).to_numpy()
    return split.feature, auc(high, fit.drift(test).to_numpy(), np.ones(len(high)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ld.ConvergenceWarning)  # 200 iterations are the setting
    print(f"{'data':20s} {'AUC':>6s} {'se':>6s} {'paper':>6s}  features")
    for name in arguments.data:
        found = [measure(arguments.folder, name, seed) for seed in range(arguments.seeds)]
        values = np.array([v for _, v in found])
        se = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        features = sorted({f for f, _ in found})
        figures = f"{values.mean():6.3f} {se:6.3f} {PAPER[name]:6.2f}"
        print(f"{name:20s} {figures}  {features}", flush=True)


if __name__ == "__main__":
    main()
