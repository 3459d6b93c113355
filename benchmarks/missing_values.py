"""What to do where values are missing: each model's default call with each way, on made gaps.

    python benchmarks/missing_values.py [FOLDER] [--models gbmap,...] [--sets heart,...] [--seeds 2]
                                        [--rows 200] [--ways drop,indicator] [--out FILE]

Halves of each set, of at most `--rows` training rows, in which values are made missing, alike in
training and test rows: "random", of each number and category one in ten; "value", in every second
column 40 % of those above its median (of a category, of its most frequent level); "response", in
every second column 40 % of those of rows in the last half of the classes (or above the median of
the response) and 5 % of the others. The way "mean" fills as "indicator" does, without columns that
say where. Rows that are not answered get the mean or the class shares of the training rows. A row
for each set, kind of gaps, split, model and way: accuracy or R2, log-loss of classes, seconds.
results/missing_values.csv has what the defaults were chosen by: 150 rows, one split.
"""

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
from held_out import halves, is_classes, measures, sets, table

import lodim as ld

MODELS = ("gbmap", "proset", "costnet", "melm", "ripr", "glm")
FIELDS = ("set", "gaps", "seed", "model", "way", "score", "log_loss", "seconds")
CHOOSING = (
    "heart", "german_credit", "ionosphere", "liver_disorders", "pima_diabetes", "vowel",
    "breast_tissue", "diabetes", "autompg", "concrete",
)  # fmt: skip


def with_gaps(df, kind, seed):
    """The frame with values made missing."""
    rng, df = np.random.default_rng([7, seed]), df.copy()
    if is_classes(df):
        code = pd.factorize(df["y"], sort=True)[0]
        late = code > (code.max() - 1) / 2
    else:
        late = (df["y"] > df["y"].median()).to_numpy()
    for j, name in enumerate(df.columns.drop("y")):
        draw, values = rng.random(len(df)), df[name]
        if kind == "random":
            chance = np.full(len(df), 0.1)
        elif j % 2:
            continue
        elif kind == "response":
            chance = np.where(late, 0.4, 0.05)
        elif values.dtype.kind in "iuf":
            chance = np.where(values > values.median(), 0.4, 0.0)
        else:
            chance = np.where(values == values.mode()[0], 0.4, 0.0)
        df[name] = values.astype(object if values.dtype.kind in "OUSb" else float)
        df.loc[draw < chance, name] = np.nan
    return df


def filled(df, train):
    """The frame with training means, and a level for categories, but no column that says so."""
    gaps = [name for name in df.columns.drop("y") if df[name].isna().any()]
    number = {name: df[name].dtype.kind == "f" for name in gaps}
    return df.fillna({name: train[name].mean() if number[name] else "none" for name in gaps})


def score(name, way, train, test):
    """Accuracy or R2, and log-loss, of a default call."""
    classes = is_classes(train)
    if way == "mean":
        train, test, way = filled(train, train), filled(test, train), "drop"
    try:
        fit = getattr(ld, name)("y ~ .", train, missing=way)
        answer = fit.predict(test, "prob" if classes else "response")
    except ld.LodimError as error:  # too few rows are left, or too few levels
        print(name, way, str(error)[:90], file=sys.stderr)
        answer = None
    share = train["y"].value_counts(normalize=True) if classes else None
    if classes:
        levels = list(share.index)
        prob = pd.DataFrame(np.nan, index=test.index, columns=levels)
        if answer is not None:
            prob.update(
                answer.reindex(columns=levels).fillna(0.0).where(answer.notna().any(axis=1))
            )
        p = prob.to_numpy(float)
        p = np.where(np.isnan(p), share.to_numpy(), p)
        p = 0.999 * p + 0.001 * share.to_numpy()
        return measures(test["y"], p, levels)[:2]
    y, mean = test["y"].to_numpy(float), train["y"].mean()
    f = np.full(len(y), mean) if answer is None else answer.fillna(mean).to_numpy(float)
    return 1.0 - np.mean((y - f) ** 2) / np.var(y), np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sets", default=",".join(CHOOSING))
    parser.add_argument("--gaps", default="random,value,response")
    parser.add_argument("--ways", default="drop,mean,indicator")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--out")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    write = table(args.out, FIELDS)
    for name, df in sets(args.folder).items():
        if name not in args.sets.split(","):
            continue
        for seed, kind in ((s, k) for s in range(args.seeds) for k in args.gaps.split(",")):
            train, test = halves(df, seed, args.rows)
            test = test.iloc[:1000]
            both = with_gaps(pd.concat([train, test]), kind, seed)
            train, test = both.iloc[: len(train)], both.iloc[len(train) :]
            for model in args.models.split(","):
                if model == "melm" and not is_classes(df):
                    continue
                ways = args.ways.split(",") + (["keep"] if model == "ripr" else [])
                for way in ways:
                    start = time.perf_counter()
                    hit, loss = score(model, way, train, test)
                    seconds = time.perf_counter() - start
                    row = (name, kind, seed, model, way, f"{hit:.4f}", f"{loss:.4f}")
                    write(dict(zip(FIELDS, (*row, f"{seconds:.2f}"), strict=True)))


if __name__ == "__main__":
    main()
