"""proset compared with its author's package on the cases of the report (Ruf 2022, ch. 2).

    python benchmarks/prototypes.py [--data NAME ...] [--seeds 10] [--batches 1 5]
                                [--by lodim author] [--search] [--fits FILE] [--out FILE]

70/30 stratified splits, features standardized, the author's default penalties. The author's package
is `pip install proset`; it is patched for numpy 2 (np.NaN). `--search` cross-validates lambda_v and
the number of batches instead. Means over the seeds; fit_s is the median, se the standard error of
the log-loss. `--fits` holds a row a fit: those that it has are not run again. In the committed
table fit_s stands only where a fit had the machine, two cores, to itself (few seeds each).
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

import lodim as ld


def bundled(name, features=None):
    """A data set of scikit-learn as a frame with the classes in y."""
    data = getattr(datasets, f"load_{name}")()
    X = data.data[:, :features]
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=data.target)


CASES = {
    "iris2f": lambda seed: bundled("iris", 2),
    "wine": lambda seed: bundled("wine"),
    "cancer": lambda seed: bundled("breast_cancer"),
    "digits": lambda seed: bundled("digits"),
    "checker": lambda seed: ld.checkerboard(6400, seed=seed),
    "checker45": lambda seed: ld.checkerboard(6400, seed=seed, angle=45.0),
    "xor6": lambda seed: ld.xor(6400, 6, seed=seed),
    "xor6+6": lambda seed: ld.xor(6400, 6, 6, seed=seed),
    "xor5": lambda seed: ld.xor(6400, 5, seed=seed),
    "xor4": lambda seed: ld.xor(6400, 4, seed=seed),
    "xor3": lambda seed: ld.xor(6400, 3, seed=seed),
}


def split(name, seed):
    """Training and test rows, features standardized by the training rows, classes as text."""
    frame = CASES[name](seed)
    frame["y"] = "class " + frame["y"].astype(str)
    train, test = train_test_split(frame, test_size=0.3, stratify=frame["y"], random_state=seed)
    x = [c for c in frame if c != "y"]
    mean, sd = train[x].mean(), train[x].std(ddof=0).replace(0.0, 1.0)
    return [part.assign(**(part[x] - mean) / sd) for part in (train, test)]


def scores(p, levels, y):
    """Log-loss and balanced accuracy of probabilities (n, K)."""
    code = np.searchsorted(levels, y)
    hit = p.argmax(axis=1) == code
    right = [hit[code == k].mean() for k in np.unique(code)]
    return -np.log(p[np.arange(len(y)), code] + 1e-10).mean(), np.mean(right)


def with_lodim(train, test, n_batches, seed, search):
    start = time.perf_counter()
    if search:
        asked = {"folds": 5, "n_lambda": 11, "n_batches": None, "seed": seed}
        fit = ld.cv(ld.proset, "y ~ .", train, **asked).best
    else:
        penalties = {"lambda_v": 1e-3, "lambda_w": 1e-8}
        fit = ld.proset("y ~ .", train, n_batches=n_batches, seed=seed, **penalties)
    seconds = time.perf_counter() - start
    loss, accuracy = scores(fit.predict(test, "prob").to_numpy(), fit.levels, test["y"])
    objective, n_eval = fit.log["objective"][0], fit.log["n_eval"].sum()
    return seconds, n_eval, objective, loss, accuracy, fit.df, len(fit.estimates)


def with_author(train, test, n_batches, seed, search):
    np.NaN = np.nan
    from proset import ClassifierModel
    from proset import model as theirs

    ended, solve = [], theirs.fmin_l_bfgs_b

    def watched(*args, **kwargs):
        ended.append(solve(*args, **kwargs))
        return ended[-1]

    theirs.fmin_l_bfgs_b = watched
    X, Z = (part.drop(columns="y").to_numpy() for part in (train, test))
    model = ClassifierModel(n_iter=n_batches, random_state=np.random.RandomState(seed))
    start = time.perf_counter()
    model.fit(X, train["y"].to_numpy())
    seconds = time.perf_counter() - start
    theirs.fmin_l_bfgs_b = solve
    loss, accuracy = scores(model.predict_proba(Z), model.classes_, test["y"])
    batches = [b for b in model.set_manager_._batches if b is not None]
    features = len(np.unique(np.concatenate([b["active_features"] for b in batches])))
    n_eval = sum(end[2]["funcalls"] for end in ended)
    prototypes = sum(len(b["target"]) for b in batches)
    return seconds, n_eval, ended[0][1], loss, accuracy, features, prototypes


KEYS = ["data", "batches", "by"]
COLUMNS = ["fit_s", "evaluations", "objective", "log_loss", "balanced", "features", "prototypes"]
WAYS = {"lodim": with_lodim, "author": with_author}


def summarized(fits):
    """A row for each case, number of batches and package: means over the seeds."""
    groups = fits.groupby(KEYS, sort=False)
    table = groups[COLUMNS].mean()
    table["fit_s"] = groups["fit_s"].median()
    table.insert(4, "se", groups["log_loss"].std() / groups.size() ** 0.5)
    table.insert(0, "seeds", groups.size())
    return table.round(4).reset_index()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--by", nargs="+", default=["lodim"], choices=list(WAYS))
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--fits", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    fits = pd.DataFrame(columns=[*KEYS, "seed", *COLUMNS])
    if asked.fits and asked.fits.exists():
        fits = pd.read_csv(asked.fits, dtype={"batches": str})
    known = set(zip(*(fits[k] for k in [*KEYS, "seed"]), strict=True))
    if "lodim" in asked.by:
        with_lodim(*split("iris2f", 0), 1, 0, False)  # compile
    batches = ["cv"] if asked.search else asked.batches
    for name, b, by in itertools.product(asked.data, batches, asked.by):
        for seed in range(asked.seeds):
            if (name, str(b), by, seed) in known:
                continue
            one = WAYS[by](*split(name, seed), b, seed, asked.search)
            row = [name, str(b), by, seed, *one]
            fits.loc[len(fits)] = row
            if asked.fits:
                fits.to_csv(asked.fits, index=False)
        of = (fits[KEYS] == [name, str(b), by]).all(axis=1)
        print(summarized(fits[of]).round(3).to_string(index=False), flush=True)
    if asked.out:
        summarized(fits).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
