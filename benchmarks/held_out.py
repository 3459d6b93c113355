"""Default calls of every model on unseen halves of many data sets, compared with simple peers.

    python benchmarks/held_out.py [FOLDER] [--models ripr,proset] [--sets wine,...] [--seeds 3]
                                  [--rows 2000] [--out FILE]

Data: those that come with lodim, the CSV files of FOLDER (target in the last column), and sets that
scikit-learn (digits) and statsmodels (anes96, fair, randhie, star98) carry. Splits: halves of
`numpy.random.default_rng(seed).permutation(n)`, the first to train, of at most `--rows` training
rows. No setting is given to a model of lodim. Peers, of scikit-learn: linear (ridge or logistic
regression, its penalty by cross-validation), 10 nearest neighbours, a tree of depth 4, boosted
trees (histograms), mlp (one hidden layer of 100 units, early stopping) and of classes lda (shrunk,
two components, 5 nearest neighbours in them); and ebm, the explainable boosting machine of
interpret-core. Features of the peers are one-hot, standardized; ebm takes the frame as it is. The
shares of classes among neighbours and in leaves are mixed with one row of the classes' shares in
all, as their logarithm would else be judged where it is infinite.

A row for each set, split and model: accuracy or R2; log-loss of classes; expected calibration
error (ten bins of the largest probability); seconds; features used; parts (prototypes, views).
"""

import argparse
import csv
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from statsmodels import datasets

import lodim as ld

MODELS = ("gbmap", "proset", "costnet", "melm", "ripr", "glm")
CLASSES_OF_NUMBERS = {  # files whose classes are numbers
    "australian", "fourclass", "german_numer", "higgs", "liver_disorders", "pima_diabetes",
    "seeds", "spambase", "vowel", "libras",
}  # fmt: skip
SAME = {  # files that come with lodim under these names
    "auto_mpg", "breast_cancer_wdbc", "breast_tissue", "german_credit", "ionosphere", "seeds",
    "sonar", "wine_red", "abalone", "concrete",
}  # fmt: skip
FIELDS = ("set", "task", "n", "p", "seed", "model", "score", "log_loss", "ece", "seconds",
          "features", "parts")  # fmt: skip
NETWORK = {"hidden_layer_sizes": (100,), "early_stopping": True, "max_iter": 500, "random_state": 0}
RIDGES = np.logspace(-3, 4, 15)


def sets(folder):
    """Name -> frame with the response y, complete rows only."""
    found = {}
    for row in ld.data().itertuples():
        df = ld.data(row.name).rename(columns={row.response: "y"})
        found[row.name] = df
    for file in sorted(Path(folder).glob("*.csv")) if folder else ():
        if file.stem in SAME:
            continue
        df = pd.read_csv(file)
        df = df.rename(columns={df.columns[-1]: "y"})
        if file.stem in CLASSES_OF_NUMBERS:
            df["y"] = "c" + df["y"].astype(str)
        found[file.stem] = df
    found |= carried()
    return {name: df.dropna().reset_index(drop=True) for name, df in found.items()}


def carried():
    """Sets that scikit-learn and statsmodels bring, with the response y."""
    digits = load_digits(as_frame=True).frame
    frames = {name: getattr(datasets, name).load_pandas().data for name in ("anes96", "star98")}
    party, star = frames["anes96"], frames["star98"]
    above, below = star.pop("NABOVE"), star.pop("NBELOW")
    return {
        "digits": digits.drop(columns="target").assign(y="c" + digits["target"].astype(str)),
        "anes96": party.drop(columns="PID").assign(y="c" + party["PID"].astype(str)),
        "star98": star.assign(y=above / (above + below)),
        "fair": datasets.fair.load_pandas().data.rename(columns={"affairs": "y"}),
        "randhie": datasets.randhie.load_pandas().data.rename(columns={"mdvis": "y"}),
    }


def halves(df, seed, rows):
    """Training and test rows, levels of categories in both."""
    order = np.random.default_rng(seed).permutation(len(df))
    train, test = df.iloc[order[: len(df) // 2][:rows]], df.iloc[order[len(df) // 2 :][: 5 * rows]]
    for name in df.columns.drop("y"):
        if df[name].dtype.kind not in "biuf":
            test = test[test[name].isin(train[name].unique())]
    return train, test[test["y"].isin(train["y"].unique())] if is_classes(df) else test


def is_classes(df):
    return df["y"].dtype.kind not in "iuf"


def measures(y, prob, levels):
    """Accuracy, log-loss and expected calibration error of class probabilities."""
    code = pd.Categorical(y, categories=levels).codes
    p = np.clip(prob[np.arange(len(y)), code], 1e-15, 1.0)
    top, hit = prob.max(axis=1), prob.argmax(axis=1) == code
    bins = np.minimum((10 * top).astype(int), 9)
    gaps = [abs(hit[bins == b].mean() - top[bins == b].mean()) * (bins == b).mean()
            for b in np.unique(bins)]  # fmt: skip
    return hit.mean(), -np.log(p).mean(), sum(gaps)


def of_lodim(name, train, test, formula="y ~ ."):
    """What a default call of a model reaches."""
    fit = getattr(ld, name)(formula, train)
    if fit.levels is None:
        y, f = test["y"].to_numpy(float), fit.predict(test).to_numpy(float)
        f = np.where(np.isnan(f), train["y"].mean(), f)
        result = 1.0 - np.mean((y - f) ** 2) / np.var(y), np.nan, np.nan
    else:
        prob = fit.predict(test, "prob").to_numpy(float)
        share = train["y"].value_counts(normalize=True).reindex(fit.levels).to_numpy()
        prob = np.where(np.isnan(prob), share, prob)
        result = measures(test["y"], prob, list(fit.levels))
    parts = {"proset": lambda: len(fit.estimates), "ripr": lambda: len(fit.estimates),
             "gbmap": lambda: fit.settings.m}.get(name, lambda: np.nan)()  # fmt: skip
    return *result, fit.df, parts


def of_peer(name, train, test):
    both = pd.concat([train, test]).drop(columns="y")
    if name != "ebm":
        both = pd.get_dummies(both, dtype=float).to_numpy()
    X, new = both[: len(train)], both[len(train) :]
    y, classes = train["y"].to_numpy(), is_classes(train)
    model = {
        ("linear", True): lambda: LogisticRegressionCV(Cs=8, cv=5, max_iter=2000),
        ("linear", False): lambda: RidgeCV(RIDGES),
        ("knn", True): lambda: KNeighborsClassifier(10),
        ("knn", False): lambda: KNeighborsRegressor(10),
        ("tree", True): lambda: DecisionTreeClassifier(max_depth=4, random_state=0),
        ("tree", False): lambda: DecisionTreeRegressor(max_depth=4, random_state=0),
        ("lda", True): lambda: make_pipeline(
            LinearDiscriminantAnalysis(
                solver="eigen", shrinkage="auto", n_components=min(2, train["y"].nunique() - 1)
            ),
            KNeighborsClassifier(5),
        ),
        ("boosting", True): lambda: HistGradientBoostingClassifier(random_state=0),
        ("boosting", False): lambda: HistGradientBoostingRegressor(random_state=0),
        ("mlp", True): lambda: MLPClassifier(**NETWORK),
        ("mlp", False): lambda: TransformedTargetRegressor(
            MLPRegressor(**NETWORK), transformer=StandardScaler()
        ),
        ("ebm", True): lambda: ebm("ExplainableBoostingClassifier"),
        ("ebm", False): lambda: ebm("ExplainableBoostingRegressor"),
    }[name, classes]()
    fit = (model if name == "ebm" else make_pipeline(StandardScaler(), model)).fit(X, y)
    if not classes:
        f, z = fit.predict(new), test["y"].to_numpy(float)
        return 1.0 - np.mean((z - f) ** 2) / np.var(z), np.nan, np.nan, np.nan, np.nan
    prob, levels = fit.predict_proba(new), list(fit.classes_)
    if name in ("knn", "tree", "lda"):
        share = train["y"].value_counts(normalize=True).reindex(levels).to_numpy()
        inside = {"knn": 10, "lda": 5}.get(name) or _leaf_sizes(fit, new)
        prob = (inside * prob + share) / (inside + 1)
    return *measures(test["y"], prob, levels), np.nan, np.nan


def ebm(name):
    """Explainable boosting machine of interpret-core, which no extra of lodim installs."""
    return getattr(import_module("interpret.glassbox"), name)(random_state=0, n_jobs=1)


def _leaf_sizes(fit, X):
    """Training rows in the leaf of each row, (n, 1)."""
    tree = fit[-1].tree_
    return tree.n_node_samples[fit[-1].apply(fit[:-1].transform(X))][:, None]


def table(path, fields):
    """A function that writes a row, a dict, to a CSV file or to the screen, at once."""
    out = open(path, "w", newline="") if path else sys.stdout  # noqa: SIM115
    writer = csv.DictWriter(out, fields)
    writer.writeheader()

    def write(row):
        writer.writerow(row)
        out.flush()

    return write


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--models", default=",".join((*MODELS, *PEERS)))
    parser.add_argument("--sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    write = table(args.out, FIELDS)
    for name, df in sets(args.folder).items():
        if args.sets and name not in args.sets.split(","):
            continue
        for seed in range(args.seeds):
            train, test = halves(df, seed, args.rows)
            for model in args.models.split(","):
                if model in ("melm", "lda") and not is_classes(df):
                    continue
                start = time.perf_counter()
                try:
                    found = (of_lodim if model in MODELS else of_peer)(model, train, test)
                except ld.LodimError as error:
                    print(name, model, error, file=sys.stderr)
                    found = (np.nan,) * 5
                seconds = time.perf_counter() - start
                score, loss, ece, features, parts = found
                row = dict(set=name, task="classes" if is_classes(df) else "numbers", n=len(train),
                           p=df.shape[1] - 1, seed=seed, model=model, score=f"{score:.4f}",
                           log_loss=f"{loss:.4f}", ece=f"{ece:.4f}", seconds=f"{seconds:.2f}",
                           features=features, parts=parts)  # fmt: skip
                write(row)


PEERS = ("linear", "knn", "tree", "boosting", "lda", "mlp")

if __name__ == "__main__":
    main()
