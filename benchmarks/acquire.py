"""Policies of acquire() next to costnet's price list, a myopic policy, and fixed and random orders.

    python benchmarks/acquire.py FOLDER [--sets NAME ...] [--seeds 3] [--out FILE]

FOLDER has CSV files of public sets, of which the last column is the response. Each set is split at
random, at most 600 rows for training (CUBE-NM: 2,000) and at most 100 for the test, once per seed.
Rivals: "myopic" (the same predictor, one feature at a time), "fixed" (the same predictor, the same
features for all rows), "random" (a random order per row), "all", and "frontier" (the models of
costnet; "default" is the one that costnet chooses).

CHOSEN_ON are the sets on which the settings of acquire() were chosen; all others only report.
Results: one row per set, seed, policy and trade-off. `--table` prints the gates of a file of
results, with standard errors over test rows and splits; `--speed` measures decisions.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld

CHOSEN_ON = ("cube", "cube_nm", "heart", "wine", "ionosphere", "autompg", "concrete")
FILES = {  # file, response: at equal prices
    "pima": ("pima_diabetes", "diabetes"),
    "australian": ("australian", "class_label"),
    "vowel": ("vowel", "vowel"),
    "spambase": ("spambase", None),
    "california": ("california_housing", "MedHouseVal"),
    "liver": ("liver_disorders", None),
}
BUNDLED = {
    "wine": "cultivar",
    "ionosphere": "quality",
    "autompg": "mpg",
    "seeds": "variety",
    "concrete": "strength",
}
CLASSES = ("pima", "australian", "vowel", "spambase", "liver", "cube", "cube_nm")
TRAIN, TEST = 600, 100
SHARES = (8.0, 2.0, 0.7, 0.2)  # trade-offs of the curves, as shares of the default


def cube_rows(n, blocks, seed):
    """Labels, and blocks of features of which one is informative; Normal(0.5, 0.3) otherwise."""
    rng = np.random.default_rng(seed)
    y, block = rng.integers(0, 8, n), rng.integers(0, len(blocks), n)
    X = rng.normal(0.5, 0.3, (n, sum(blocks)))
    for bit in range(3):
        at = np.r_[0, np.cumsum(blocks)][block] + y + bit
        X[np.arange(n), at] = rng.normal((y >> bit) & 1, 0.1)
    return X, y, block, rng


def cube(n, seed):
    """CUBE: of 20 features, three tell the class."""
    X, y, _, _ = cube_rows(n, (20,), seed)
    return pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(y=y)


def cube_nm(n, seed):
    """CUBE-NM: five columns of a context tell which of five blocks is informative."""
    X, y, block, rng = cube_rows(n, (10,) * 5, seed)
    context = rng.normal(0.0, 0.1, (n, 5)) + (block[:, None] == np.arange(5))
    frame = pd.DataFrame(context).rename(columns=lambda j: f"c{j}")
    names = [f"b{k}_{j}" for k in range(5) for j in range(10)]
    return frame.join(pd.DataFrame(X, columns=names)).assign(y=y)


def case(name, folder, seed):
    """Return response, training rows, test rows and prices of a set."""
    if name == "cube":
        return "y", cube(600, seed), cube(TEST, 1000 + seed), {}
    if name == "cube_nm":
        contexts = [f"c{j}" for j in range(5)]
        train = cube_nm(2000, seed)
        costs = {c: float(c not in contexts) for c in train.columns[:-1]} | {"context": 0.5}
        prices = {"costs": costs, "depends_on": dict.fromkeys(contexts, "context")}
        return "y", train, cube_nm(TEST, 1000 + seed), prices
    prices = {}
    if name == "heart":
        frame, response = ld.data("heart"), "disease"
        table = ld.data("heart_costs").set_index("name")
        prices = {"costs": table["cost"], "depends_on": table["needs"]}
    elif name == "monitoring":
        frame, response = ld.monitoring(p=40, signals=8, response="alert", seed=seed), "y"
        prices = {key: frame.attrs[key] for key in ("costs", "depends_on")}
    elif name in BUNDLED:
        frame, response = ld.data(name), BUNDLED[name]
    else:
        file, response = FILES[name]
        frame = pd.read_csv(Path(folder) / f"{file}.csv")
        response = response or frame.columns[-1]
    frame = frame.dropna(subset=[response]).sample(frac=1.0, random_state=seed)
    n = min(TRAIN, len(frame) // 2)
    return response, frame[:n], frame[n : n + TEST], prices


def curves(name, folder, seed):
    """Frame of the curves of a set and seed."""
    response, train, test, prices = case(name, folder, seed)
    if name in CLASSES:
        train, test = (f.assign(**{response: f[response].astype(str)}) for f in (train, test))
    formula = f"{response} ~ ."
    clock = time.process_time()
    policy = ld.acquire(formula, train, **prices)
    learned = time.process_time() - clock
    frontier = None
    if not name.startswith("cube"):
        frontier = ld.costnet(formula, train, **prices, budget=np.inf)
    out = policy.curve(test, [policy.trade_off * s for s in SHARES], frontier=frontier)
    if frontier is not None:
        default = ld.costnet(formula, train, **prices).cost
        own = out[(out["policy"] == "frontier") & (out["price"] <= default + 1e-9)].tail(1)
        out = pd.concat([out, own.assign(policy="default")], ignore_index=True)
    return out.assign(data=name, seed=seed, learned=learned)


def at_price(curve, price):
    """Loss and its standard error on the line through a curve, at a price; its ends go on flat."""
    curve = curve.sort_values("price")
    return [np.interp(price, curve["price"], curve[column]) for column in ("loss", "se")]


def at_loss(curve, loss):
    """Least price on the line through a curve at which the loss is at most this; else NaN."""
    curve = curve.sort_values("price")
    price, losses = curve["price"].to_numpy(), curve["loss"].to_numpy()
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return np.nan
    k = below[0]
    if k == 0:
        return price[0]
    share = (losses[k - 1] - loss) / (losses[k - 1] - losses[k])
    return price[k - 1] + share * (price[k] - price[k - 1])


def gates(results):
    """Frame of the gates of each set: means over seeds."""
    rows = []
    for (name, _), part in results.groupby(["data", "seed"], sort=False):
        by = {kind: group for kind, group in part.groupby("policy")}
        policy, row = by["policy"], {"data": name}
        row["loss all"] = by["all"]["loss"].iloc[0]
        # Where nothing is bought, all policies predict alike.
        start = by["fixed"].sort_values("price").iloc[:1]
        own = pd.concat([start, policy])
        for rival in ("myopic", "fixed", "random", "frontier"):
            if rival in by:
                gaps = []
                for _, one in policy.iterrows():
                    loss, se = at_price(pd.concat([start, by[rival]]), one["price"])
                    gaps.append((loss - one["loss"]) / max(np.hypot(se, one["se"]), 1e-12))
                row[f"worst z {rival}"] = min(gaps)
                row[f"mean z {rival}"] = np.mean(gaps)
        if "default" in by:
            default = by["default"].iloc[0]
            row["default price"], row["default loss"] = default["price"], default["loss"]
            row["share of price"] = at_loss(own, default["loss"]) / default["price"]
        rows.append(row)
    return pd.DataFrame(rows).groupby("data", sort=False).mean()


def speed():
    """Print the time of decisions, and of 1,000 rows, at 10,000 training rows and 50 features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11_000, 50))
    y = np.where(X[:, :8].sum(axis=1) + rng.normal(size=len(X)) > 0, "a", "b")
    frame = pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(y=y)
    clock, wall = time.process_time(), time.perf_counter()
    policy = ld.acquire("y ~ .", frame[:10_000])
    print(f"learned in {time.process_time() - clock:.1f} s of processor time")
    policy.run(frame[-2:])
    step = frame[10_000:10_001].drop(columns="y")
    clock = time.process_time()
    for k in range(50):
        policy.next({f"x{j}": step.iloc[0, j] for j in range(k % 10)})
    print(f"next: {1000 * (time.process_time() - clock) / 50:.1f} ms of processor time")
    clock, wall = time.process_time(), time.perf_counter()
    run = policy.run(frame[10_000:])
    used, passed = time.process_time() - clock, time.perf_counter() - wall
    print(f"run, {len(run)} rows: {used:.1f} s of processor time, {passed:.1f} s", end="")
    print(f"; mean price {run['.price'].mean():.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="folder of the CSV files")
    known = [*CHOSEN_ON, "monitoring", "seeds", *FILES]
    parser.add_argument("--sets", nargs="+", choices=known, default=known)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", help="CSV file for the results; finished sets are kept")
    parser.add_argument("--table", help="print the gates of this file of results")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.speed:
        speed()
        return
    if options.table:
        print(gates(pd.read_csv(options.table)).round(2).to_string())
        return
    parts = []
    for seed in range(options.seeds):
        for name in options.sets:
            parts.append(curves(name, options.folder, seed))
            print(parts[-1].round(3).to_string(index=False), flush=True)
            if options.out:
                pd.concat(parts).round(6).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
