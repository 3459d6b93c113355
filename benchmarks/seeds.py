"""How far another seed moves the predictions of default calls, against models of scikit-learn.

    python benchmarks/seeds.py

`rms`: root mean square, over the rows of the data set, of the standard deviation of their
predictions over SEEDS, in standard deviations of the residuals of the linear model. The linear
model is LassoCV or LogisticRegressionCV, whose folds are shuffled by the seed. melm is fitted
to the data with classes only.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lodim as ld

SEEDS = range(10)
DATA = {"autompg": "mpg", "heart": "disease", "diabetes": "progression"}
LINEAR = "linear (CV)"
OURS = ("gbmap", "costnet", "melm")


def linear(seed, has_classes):
    """Return a linear model whose penalty is chosen by shuffled folds."""
    if has_classes:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        how = {"penalty": "l1", "solver": "liblinear", "scoring": "neg_log_loss"}
        return make_pipeline(StandardScaler(), LogisticRegressionCV(cv=folds, **how))
    folds = KFold(5, shuffle=True, random_state=seed)
    return make_pipeline(StandardScaler(), LassoCV(cv=folds))


def forest(seed, has_classes):
    """Return a random forest."""
    return (RandomForestClassifier if has_classes else RandomForestRegressor)(random_state=seed)


def boosting(seed, has_classes):
    """Return boosted trees that stop early."""
    kind = HistGradientBoostingClassifier if has_classes else HistGradientBoostingRegressor
    return kind(random_state=seed, early_stopping=True)


def predictions(data, response):
    """Return the predictions (seeds, rows) of each model, and the response as numbers."""
    y, has_classes = data[response], data[response].dtype.kind not in "fiu"
    X = pd.get_dummies(data.drop(columns=response), dtype=float)
    X = X.fillna(X.mean())
    y = (y == sorted(y.unique())[-1]).astype(float) if has_classes else y.astype(float)
    ours = [name for name in OURS if has_classes or name != "melm"]
    found = {name: [] for name in ours}
    for name in ours:
        for seed in SEEDS:
            fit = getattr(ld, name)(f"{response} ~ .", data, seed=seed)
            answer = np.asarray(fit.predict(data, "prob" if has_classes else "response"), float)
            found[name].append(answer[:, -1] if answer.ndim == 2 else answer)
    for name, make in {LINEAR: linear, "forest": forest, "boosting": boosting}.items():
        fits = [make(seed, has_classes).fit(X, y) for seed in SEEDS]
        found[name] = [m.predict_proba(X)[:, 1] if has_classes else m.predict(X) for m in fits]
    return {name: np.array(each) for name, each in found.items()}, y.to_numpy()


def main():
    """Write benchmarks/results/seeds.csv."""
    rows = []
    for name, response in DATA.items():
        found, y = predictions(ld.data(name), response)
        unit = np.std(y - found[LINEAR].mean(axis=0))
        for model, each in found.items():
            rms = np.sqrt(each.var(axis=0, ddof=1).mean()) / unit
            rows.append({"data": name, "model": model, "rms": round(rms, 4)})
    frame = pd.DataFrame(rows)
    frame.to_csv(Path(__file__).parent / "results" / "seeds.csv", index=False)
    print(frame.pivot(index="model", columns="data", values="rms"))


if __name__ == "__main__":
    main()
