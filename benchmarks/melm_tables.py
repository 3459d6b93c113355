"""melm's planes compared with the tables of Czarnecki, Jozefowicz and Tabor (2015).

    python benchmarks/melm_tables.py [--data NAME ...] [--repeats 2] [--shared FOLDER] [--out FILE]

Table 2 (`t2`): balanced accuracy of classifiers in a plane of the training rows, on held-out rows
of 5 folds. Gamma and covariance are chosen for each classifier by cross-validation in the training
rows, and reported is the best of the three classifiers, as in the paper; `t2_kde` is the
densities' alone.

Table 3 (`t3`): mean of three classifiers in a plane of all rows, whose scores are those of the
rows that they were trained on. The text says otherwise; but so the paper's column of PCA comes
out, with the classifiers of its authors' code: five neighbours, densities of Silverman's width and
a tuned SVM. `separability` is what the text says: scores of the rows left out. Either is in the
plane where neighbours and densities have the most of it, which flatters melm as tuning did there.

A standard error is that of one run of 5 folds, as the paper's figure is: repeats share their rows,
and `spread` is what they differ by. Of `t3` it is too small, as training rows are shared by folds.
`gain` is melm less PCA, and its error that of the pairs.
"""

import argparse
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from melm import SHARED, data
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from lodim.models.melm.rule import fit_rule
from lodim.models.melm.search import Plan, search_gammas
from lodim.models.melm.settings import Settings

PAPER = {  # Table 2: melm and PCA; Table 3: melm and PCA
    "australian": (0.866, 0.825, 0.888, 0.845),
    "breast_cancer_wisconsin": (0.976, 0.976, 0.985, 0.978),
    "pima_diabetes": (0.744, 0.705, 0.806, 0.734),
    "fourclass": (1.0, 1.0, 0.988, 0.988),
    "ionosphere": (0.892, 0.757, 0.990, 0.798),
    "liver_disorders": (0.710, 0.531, 0.763, 0.688),
    "sonar": (0.766, 0.600, 0.996, 0.717),
}
NAMES = (*PAPER, "wine", "breast_cancer", "synthetic")
FEW = 400  # rows up to which plans are compared in five folds, else in three
TABLES3 = ("t3", "separability")
COLUMNS = ["table", "way", "classifier", "seed", "fold", "score"]


@dataclass(frozen=True)
class Way:
    """A plane: the plan of its search, None for PCA; and whether features are standardized."""

    plan: Plan | None
    standardize: bool = True

    def view(self, X, y):
        """Directions (p, 2) on the features X (n, p)."""
        scale = X.std(axis=0) if self.standardize else np.ones(X.shape[1])
        scale = np.where(scale > 0, scale, 1.0)
        if self.plan is None:
            return PCA(2).fit(X / scale).components_.T / scale[:, None]
        gamma = self.plan.gamma
        found = search_gammas(X / scale, y, np.ones(len(y)), self.plan, (gamma,))
        return found[gamma].V / scale[:, None]

    def with_starts(self, n_starts):
        """The same by a search from so many starts."""
        return replace(self, plan=replace(self.plan, n_starts=n_starts)) if self.plan else self


# The covariance of Ledoit and Wolf depends on the units, that within classes does not.
UNSHRUNK = Plan(shrinkage_factor=0.0)
KINDS = (("shrunk", True), ("ledoit-wolf", True), ("ledoit-wolf", False))


def ways(*gammas, n_starts=17):
    """Planes of melm by kinds of covariance and gammas, and that of PCA."""
    melm = [
        Way(replace(UNSHRUNK, gamma=gamma, covariance=kind, n_starts=n_starts), standardize)
        for (kind, standardize), gamma in product(KINDS, gammas)
    ]
    return {"melm": melm, "pca": [Way(None)]}


# A plane of all rows is judged by the same rows: kernels may be narrower, which takes more starts.
WAYS2, WAYS3 = ways(0.5, 1.0, 2.0, 4.0), ways(0.25, 0.5, 1.0, 2.0, 4.0, n_starts=50)


# Classifiers: (training coordinates, their classes, new coordinates) -> classes -------------------


def by_rule(Z, y, new, **options):
    """lodim's own rule; classes have equal priors."""
    settings = Settings(
        k=2, gamma=1.0, covariance="shrunk", divergence="sum", entropy="max",
        n_starts=1, seed=0, threads=1, prior="equal", **options,
    )  # fmt: skip
    present = np.unique(y)
    rule = fit_rule(settings, Z, y, np.ones(len(y)), present, len(present), len(present))
    return rule.class_scores(new).argmax(axis=1)


def by_knn(Z, y, new, count=None):
    """The vote of nearest rows, in the metric within classes; classes have equal priors."""
    within = Z - np.stack([Z[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]
    into = np.linalg.inv(np.linalg.cholesky(np.cov(within.T))).T
    knn = KNeighborsClassifier(count or 5)
    if count is None:
        grid = {"n_neighbors": [1, 3, 5, 9, 15, 25, 45]}
        knn = GridSearchCV(knn, grid, scoring="balanced_accuracy", cv=3)
    share = knn.fit(Z @ into, y).predict_proba(new @ into)
    return (share / np.bincount(y)).argmax(axis=1)


def by_svm(Z, y, new, tune=True):
    scale, svm = Z.std(axis=0), SVC(C=1.0, gamma=1.0, class_weight="balanced")
    if tune:
        grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0, 10.0]}
        svm = GridSearchCV(svm, grid, scoring="balanced_accuracy", cv=3)
    return svm.fit(Z / scale, y).predict(new / scale)


TUNED = {
    "kde": partial(by_rule, classifier="kde"), "knn": by_knn,
    "svm": by_svm,
}  # fmt: skip
QUICK = {
    "kde": partial(by_rule, classifier="kde", calibrate=False),
    "knn": partial(by_knn, count=15), "svm": partial(by_svm, tune=False),
}  # fmt: skip
OF_PAPER = {  # as in the code that its authors published
    "kde": partial(by_rule, classifier="kde", calibrate=False),
    "knn": partial(by_knn, count=5), "svm": by_svm,
}  # fmt: skip


def balanced(predicted, y):
    return np.mean([(predicted[y == c] == c).mean() for c in np.unique(y)])


# Tables ------------------------------------------------------------------------------------------


def folds(y, seed, n=5):
    return enumerate(StratifiedKFold(n, shuffle=True, random_state=seed).split(y, y))


def best_ways(X, y, tried, seed):
    """Of each classifier, the way of the best mean balanced accuracy in folds of the rows."""
    if len(tried) == 1:
        return dict.fromkeys(QUICK, tried[0])
    scores = np.zeros((len(QUICK), len(tried)))
    for _, (train, test) in folds(y, seed, 5 if len(y) < FEW else 3):
        for j, way in enumerate(tried):
            Z = X @ way.with_starts(9).view(X[train], y[train])
            for i, classify in enumerate(QUICK.values()):
                scores[i, j] += balanced(classify(Z[train], y[train], Z[test]), y[test])
    return {name: tried[int(j)] for name, j in zip(QUICK, scores.argmax(axis=1), strict=True)}


def table2(X, y, seed):
    """Rows (table, way, classifier, seed, fold, score): held-out rows in planes of the others."""
    rows = []
    for (f, (train, test)), (name, tried) in product(list(folds(y, seed)), WAYS2.items()):
        best, views = best_ways(X[train], y[train], tried, seed), {}
        for classifier, way in best.items():
            if way not in views:
                views[way] = way.view(X[train], y[train])
            Z = X @ views[way]
            predicted = TUNED[classifier](Z[train], y[train], Z[test])
            rows.append(("t2", name, classifier, seed, f, balanced(predicted, y[test])))
    return rows


def in_plane(Z, y, classify, seed):
    """Balanced accuracy in the coordinates Z (n, 2): of training rows and of others, (5, 2)."""
    scores = []
    for _, (train, test) in folds(y, seed):
        predicted = classify(Z[train], y[train], Z)
        scores.append([balanced(predicted[rows], y[rows]) for rows in (train, test)])
    return np.array(scores)


def planes3(X, y):
    """Of each way, coordinates in planes of all rows and the tables for which they are the best."""
    out = {}
    for name, tried in WAYS3.items():
        Z = [X @ way.view(X, y) for way in tried]
        quick = [
            sum(in_plane(z, y, OF_PAPER[c], 0).mean(axis=0) for c in ("kde", "knn")) for z in Z
        ]
        best = np.argmax(quick, axis=0)
        out[name] = [(Z[i], [t for t, b in zip(TABLES3, best, strict=True) if b == i])
                     for i in np.unique(best)]  # fmt: skip
    return out


def table3(planes, y, seed):
    """Rows (table, way, classifier, seed, fold, score) in planes of all rows."""
    rows = []
    for name, classifier in product(planes, OF_PAPER):
        for Z, tables in planes[name]:
            scores = dict(zip(TABLES3, in_plane(Z, y, OF_PAPER[classifier], seed).T, strict=True))
            for table, f in product(tables, range(5)):
                rows.append((table, name, classifier, seed, f, scores[table][f]))
    return rows


# Summary -----------------------------------------------------------------------------------------


def one_run(values):
    """Standard error of the mean of one run of folds, (seed, fold) -> score."""
    return np.sqrt(values.groupby("seed").var().mean() / values.groupby("seed").size().mean())


def by_fold(fits, table, way):
    """Scores, a row a seed and fold and a column a classifier."""
    of = fits[(fits["table"] == table) & (fits["way"] == way)]
    return of.pivot_table(index=["seed", "fold"], columns="classifier", values="score")


def summarized(name, fits):
    """One line a data set: means and standard errors beside the paper's figures."""
    line = {"data": name, "repeats": fits["seed"].nunique()}
    paper = PAPER.get(name, (np.nan,) * 4)
    for table, at in (("t2", 0), ("t3", 2), ("separability", None)):
        score = {}
        for j, way in enumerate(WAYS2):
            scores = by_fold(fits, table, way)
            best = scores.mean().idxmax()
            score[way] = scores[best] if table == "t2" else scores.mean(axis=1)
            line[f"{table}_{way}"] = score[way].mean()
            line[f"{table}_{way}_se"] = one_run(score[way])
            line[f"{table}_{way}_spread"] = score[way].groupby("seed").mean().std()
            if at is not None:
                line[f"{table}_{way}_paper"] = paper[at + j]
            if table == "t2":
                line |= {f"t2_{way}_best": best, f"t2_{way}_kde": scores["kde"].mean()}
        gain = score["melm"] - score["pca"]
        line |= {f"{table}_gain": gain.mean(), f"{table}_gain_se": one_run(gain)}
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=NAMES)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    lines = []
    for name in asked.data:
        X, y = data(name, asked.shared, raw=True)
        rows, planes = [], planes3(X, y)
        for seed in range(asked.repeats):
            rows += table2(X, y, seed) + table3(planes, y, seed)
        lines.append(summarized(name, pd.DataFrame(rows, columns=COLUMNS)))
        print(pd.DataFrame(lines[-1:]).round(3).T.to_string(header=False), flush=True)
        if asked.out:
            pd.DataFrame(lines).to_csv(asked.out, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
