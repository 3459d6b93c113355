"""Coverage and width of conformal intervals (size of sets) on real data, compared with MAPIE.

    python benchmarks/coverage.py conformal [--folder FOLDER] [--sets autompg,...] [--splits 20]
        [--models glm,gbmap] [--methods cv+,split] [--rows 500] [--level 0.9] [--settings held]
        [--out FILE]

Data: as of held_out.py (those of FOLDER too), at most `--rows` training rows of a random half; the
other half, 2,000 rows at most, is covered or not. Settings of the models are given, so that MAPIE
(lodim.sklearn's estimators in it, absolute residuals or LAC, ten folds) fits the same; with
`--settings chosen` or `reselect` none is given, and they are chosen once or within each fold.

A row for each set, model, method and score: mean coverage over the splits and its standard error,
least coverage of a split, mean width (over the standard deviation of the response) or size of sets,
the same of MAPIE (where it is installed), the ratio of widths, seconds of processor time for each.
"""

import argparse
import runpy
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld
import lodim.sklearn as estimators

HELD_OUT = runpy.run_path(str(Path(__file__).with_name("held_out.py")))
halves, is_classes = HELD_OUT["halves"], HELD_OUT["is_classes"]
RESULTS = Path(__file__).resolve().parent / "results/coverage_conformal.csv"
GIVEN = {
    "glm": {},
    "gbmap": {"m": 3, "lambda_": 0.1, "threads": 1},
    "proset": {"lambda_v": 1e-3, "threads": 1},
    "costnet": {"lambda_": 0.01, "threads": 1},
}
NUMBERS = (
    "autompg", "concrete", "diabetes", "abalone", "california_housing", "superconductor_sample",
    "wine_red", "star98", "fair", "air_quality_gbmap",
)  # fmt: skip
CLASSES = (
    "heart", "german_credit", "ionosphere", "pima_diabetes", "vowel", "breast_tissue", "wine",
    "sonar", "digits", "australian",
)  # fmt: skip


def measured(found, test, level):
    """Coverage and mean width or size of a Conformal."""
    row = found.coverage(test, level=level).iloc[0]
    return row["coverage"], row.get("width", row.get("size"))


def ours(name, train, test, how, args):
    """Coverage, width and processor time of lodim.conformal."""
    start = time.process_time()
    settings = {"threads": 1} if args.settings != "given" and name != "glm" else {}
    settings = GIVEN[name] if args.settings == "given" else settings
    found = ld.conformal(
        getattr(ld, name), "y ~ .", train, level=args.level,
        reselect=args.settings == "reselect", **how, **settings,
    )  # fmt: skip
    return *measured(found, test, args.level), time.process_time() - start


def mapies(name, train, test, classes, args):
    """Coverage, width and processor time of MAPIE's cross conformal regressor or classifier."""
    try:
        from mapie.classification import CrossConformalClassifier
        from mapie.regression import CrossConformalRegressor
    except ImportError:
        return np.nan, np.nan, np.nan
    X, y, new = train.drop(columns="y"), train["y"], test.drop(columns="y")
    start = time.process_time()
    kind = f"{name.title()}{'Classifier' if classes else 'Regressor'}"
    model = getattr(estimators, kind)(**GIVEN[name])
    if classes:
        peer = CrossConformalClassifier(
            model, confidence_level=args.level, conformity_score="lac", cv=10, random_state=0
        )
        _, sets = peer.fit_conformalize(X, y).predict_set(new)
        inside = sets[:, :, 0]
        code = pd.Categorical(test["y"], categories=sorted(y.unique())).codes
        hit, size = inside[np.arange(len(code)), code], inside.sum(axis=1)
    else:
        peer = CrossConformalRegressor(model, confidence_level=args.level, cv=10)
        _, limits = peer.fit_conformalize(X, y.to_numpy()).predict_interval(new)
        low, high = limits[:, :, 0].T
        hit, size = (low <= test["y"]) & (test["y"] <= high), high - low
    return hit.mean(), size.mean(), time.process_time() - start


def compare(name, df, model, how, args):
    """A row of the table: one set, model, method and score, over the splits."""
    classes, rows = is_classes(df), []
    for seed in range(args.splits):
        train, test = halves(df, seed, args.rows)
        test = test[:2000]
        beside = args.settings == "given" and how["method"] == "cv+" and how["score"] in FIRST
        unit = 1.0 if classes else df["y"].std()
        own = ours(model, train, test, how, args)
        try:
            peer = mapies(model, train, test, classes, args) if beside else (np.nan,) * 3
        except ld.LodimError:  # a level that a fold of MAPIE's has not
            peer = (np.nan,) * 3
        rows.append([own[0], own[1] / unit, own[2], peer[0], peer[1] / unit, peer[2]])
    rows = np.array(rows)
    cover, width, seconds, other, other_width, other_seconds = np.nanmean(rows, axis=0)
    return {
        "set": name, "task": "classes" if classes else "numbers", "n": len(train), "model": model,
        "settings": args.settings, "method": how["method"], "score": how["score"],
        "splits": args.splits, "coverage": cover,
        "se": rows[:, 0].std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan,
        "least": rows[:, 0].min(), "size": width, "mapie_coverage": other,
        "mapie_size": other_width, "ratio": width / other_width, "seconds": seconds,
        "mapie_seconds": other_seconds,
    }  # fmt: skip


FIRST = ("absolute", "lac")


def scores_of(model, classes):
    """Scores that are measured."""
    if classes:
        return ("lac", "aps")
    return ("absolute", "normalized", "quantile") if model == "proset" else ("absolute",)


def main(arguments):
    """Measure, print as it goes, and write the table."""
    parser = argparse.ArgumentParser(prog="coverage.py conformal")
    parser.add_argument("--folder")
    parser.add_argument("--sets", default=",".join(NUMBERS))
    parser.add_argument("--models", default="glm,gbmap")
    parser.add_argument("--methods", default="cv+")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--settings", choices=("given", "chosen", "reselect"), default="given")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found, out = HELD_OUT["sets"](args.folder), args.out
    for name in args.sets.split(","):
        df = found[name]
        for model in args.models.split(","):
            for method in args.methods.split(","):
                for score in scores_of(model, is_classes(df)):
                    row = compare(name, df, model, {"method": method, "score": score}, args)
                    frame = pd.DataFrame([row]).round(4)
                    frame.to_csv(out, mode="a", header=not out.exists(), index=False)
                    print(frame.to_string(header=False, index=False), flush=True)
