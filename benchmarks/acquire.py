"""Policies of acquire() next to costnet, a myopic policy, and fixed and random orders.

    python benchmarks/acquire.py FOLDER [--sets NAME ...] [--seeds 0 1 2] [--rivals NAME ...]
        [--out FILE]
    python benchmarks/acquire.py --table FILE ...
    python benchmarks/acquire.py --online | --speed [--out FILE]

FOLDER has CSV files of public sets, of which the last column is the response. Each set is split at
random once per seed: at most 600 rows for training (CUBE-NM: 2,000) and 300 for the test (100 of
sets with 40 features or more). Rivals: "myopic" (the same predictor, one feature ahead), "fixed"
(the same predictor, the same features for all rows), "random" (a random order per row), "all", and
"frontier" (the models of costnet; "default" is the one that costnet chooses).

`gap` is the loss of a rival minus that of the policy at the same mean price, row by row; `gap_se`
is its standard error over the test rows. CHOSEN_ON are the sets on which the methods and settings
of acquire() were chosen; all others only report. `--table` prints the gates of files of results,
and the myopic rival on CUBE-NM at equal prices; `--online` adds 1,000 rows one by one; `--speed`
measures decisions.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld
from lodim.acquisition.curve import by_rule, frontier_by_row, summary
from lodim.engine import tiles

CHOSEN_ON = ("cube", "cube_nm", "heart", "wine", "ionosphere", "autompg", "concrete", "liver",
             "german", "wdbc", "sonar")  # fmt: skip
FILES = {  # file, response: at equal prices
    "pima": ("pima_diabetes", "diabetes"),
    "australian": ("australian", "class_label"),
    "vowel": ("vowel", "vowel"),
    "spambase": ("spambase", None),
    "california": ("california_housing", "MedHouseVal"),
    "liver": ("liver_disorders", None),
    "german": ("german_numer", None),
    "wdbc": ("breast_cancer_wdbc", None),
    "sonar": ("sonar", None),
}
BUNDLED = {
    "wine": "cultivar",
    "ionosphere": "quality",
    "autompg": "mpg",
    "seeds": "variety",
    "concrete": "strength",
}
CLASSES = ("pima", "australian", "vowel", "spambase", "liver", "german", "cube", "cube_nm")
REPORTED = ("heart", "monitoring", "pima", "australian", "seeds", "california", "liver", "vowel",
            "wine", "cube", "cube_nm")  # fmt: skip
TRAIN, TEST = 600, 300
TEST_WIDE, WIDE = 100, 40  # test rows of sets with this many features
SHARES = (8.0, 2.0, 0.5, 0.1, 0.02)  # trade-offs of the curves, as shares of the default
NOTHING = 1e9  # trade-off at which nothing is bought
SHARES_NM = (7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 0.5)  # of cube_nm, whose price jumps at large trade-offs
PRICES_NM = (0.5, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)  # the context of cube_nm costs 0.5
RIVALS = ("myopic", "fixed", "random", "all", "frontier")
STREAM, CHECKED = 1000, (100, 400, 700, 1000)  # rows that arrive, and when the policy is measured


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


def curves(name, folder, seed, rivals):
    """Frame of the curves of a set and seed."""
    response, train, test, prices = case(name, folder, seed)
    test = test[: TEST_WIDE if test.shape[1] > WIDE else TEST]
    if name in CLASSES:
        train, test = (f.assign(**{response: f[response].astype(str)}) for f in (train, test))
    formula = f"{response} ~ ."
    clock = time.process_time()
    policy = ld.acquire(formula, train, **prices)
    learned = time.process_time() - clock
    shares = SHARES_NM if name == "cube_nm" else SHARES
    trade_offs = [policy.trade_off * share for share in shares]
    rows = standardized(policy, test)
    by_same = ["policy", *(kind for kind in rivals if kind != "frontier")]  # the same predictor
    runs = [*by_rule(policy, *rows, by_same, trade_offs)]
    if "frontier" in rivals and not name.startswith("cube"):
        fit = ld.costnet(formula, train, **prices)
        batch = policy.design.apply(test, response=True)
        runs += frontier_by_row(policy, fit, test, np.arange(len(test)), batch.y)
        runs += [("default", *run[1:]) for run in runs if abs(run[2][0] - fit.cost) < 1e-9][-1:]
    out = summary(runs)
    own = [run for run in runs if run[0] == "policy"]
    own += by_rule(policy, *rows, ["policy"], [NOTHING])
    gaps = np.array([run[3] - at_price(own, run[2].mean()) for run in runs])
    out["gap"], out["gap_se"] = gaps.mean(axis=1), gaps.std(axis=1) / np.sqrt(gaps.shape[1])
    return out.assign(data=name, seed=seed, learned=learned)


def standardized(policy, rows):
    """Features and response of rows as the predictor of a policy takes them."""
    batch = policy.design.apply(rows, response=True)
    X = policy.mixture.features(tiles.unpack(batch.X, batch.n))
    return X, (batch.y - policy.centre) / policy.scale


def at_price(runs, price):
    """Loss (n,) of each row on the line through runs, at a mean price; the ends go on flat."""
    runs = sorted(runs, key=lambda run: run[2].mean())
    prices, losses = np.array([run[2].mean() for run in runs]), np.array([run[3] for run in runs])
    at = np.interp(price, prices, np.arange(len(runs)))
    low = int(at)
    return losses[low] + (at - low) * (losses[min(low + 1, len(runs) - 1)] - losses[low])


def at_loss(curve, loss):
    """Least price on the line through a curve at which the loss is at most this; else infinite."""
    curve = curve.sort_values("price")
    price, losses = curve["price"].to_numpy(), curve["loss"].to_numpy()
    below = np.flatnonzero(losses <= loss)
    if not len(below):
        return np.inf
    k = below[0]
    if k == 0:
        return price[0]
    share = (losses[k - 1] - loss) / (losses[k - 1] - losses[k])
    return price[k - 1] + share * (price[k] - price[k - 1])


def gates(results):
    """Frame of the gates of each set: medians of the share of the price, and means over seeds.

    A rival's means are over the seeds in which it took part. A gap is the rival's loss minus the
    policy's at equal mean price. Its standard error is the mean of those of the seeds, as the
    splits share rows.
    """
    rows = []
    for name, part in results.groupby("data", sort=False):
        kinds = dict(list(part.groupby("policy")))
        row = {"data": name, "splits": part["seed"].nunique()}
        row["loss all"] = kinds["all"]["loss"].mean() if "all" in kinds else np.nan
        if "default" in kinds:
            shares = []
            for _, one in kinds["default"].iterrows():
                split = part[part["seed"] == one["seed"]]
                own = split[split["policy"] == "policy"]
                own = pd.concat([own, split[split["policy"] == "fixed"].nsmallest(1, "price")])
                shares.append(at_loss(own, one["loss"]) / one["price"])
            row |= kinds["default"][["price", "loss"]].mean().add_prefix("default ").to_dict()
            row["share of price"] = np.median(shares)
            row["splits to 70%"] = int(np.sum(np.array(shares) <= 0.7))
        for rival in ("default", "frontier", "myopic", "fixed", "random", "all"):
            if rival in kinds:
                gap = kinds[rival].groupby("seed")[["gap", "gap_se"]].mean().mean()
                row[f"gap {rival}"], row[f"se {rival}"] = gap["gap"], gap["gap_se"]
        rows.append(row)
    return pd.DataFrame(rows).set_index("data")


def myopic_by_price(results):
    """Frame of loss and accuracy on CUBE-NM of policy and myopic rival on the lines through them.

    Means over the splits; gaps (myopic minus policy) with standard errors over the splits, whose
    rows are independent."""
    curves = results[results["data"] == "cube_nm"].sort_values("price").groupby(["policy", "seed"])
    seeds = [seed for kind, seed in curves.groups if kind == "myopic"]

    def lines(kind, what):
        parts = [curves.get_group((kind, seed)) for seed in seeds]
        return np.array([np.interp(PRICES_NM, part["price"], part[what]) for part in parts])

    out = {"splits": len(seeds)}
    for what in ("loss", "accuracy"):
        policy, myopic = lines("policy", what), lines("myopic", what)
        gap = myopic - policy
        out |= {what: policy.mean(axis=0), f"{what} myopic": myopic.mean(axis=0)}
        out |= {f"gap {what}": gap.mean(axis=0), f"se {what}": gap.std(axis=0, ddof=1)}
        out[f"se {what}"] /= np.sqrt(len(seeds))
    return pd.DataFrame(out, index=pd.Index(PRICES_NM, name="price"))


def online(seed=0):
    """Return loss, accuracy and price of a policy with rows added one by one, and of a new one.

    Seconds are of processor time, per row: of an update, or of a new policy for each row.
    """
    rows, test = cube(STREAM + 100, seed), cube(TEST, 1000 + seed)
    rows, test = (frame.assign(y=frame["y"].astype(str)) for frame in (rows, test))
    policy = ld.acquire("y ~ .", rows[:100])
    trade_off, updating, lines = policy.trade_off, 0.0, []
    for k in range(1, STREAM + 1):
        clock = time.process_time()
        policy = policy.update(rows[99 + k : 100 + k])
        updating += time.process_time() - clock
        if k in CHECKED:
            clock = time.process_time()
            anew = ld.acquire("y ~ .", rows[: 100 + k], trade_off=trade_off)
            fitted = time.process_time() - clock
            for kind, one, seconds in (("update", policy, updating / k), ("refit", anew, fitted)):
                run = by_rule(one, *standardized(one, test), ["policy"], [trade_off])
                line = summary(run).assign(policy=kind, rows=100 + k, seconds_per_row=seconds)
                lines.append(line.drop(columns="trade_off"))
    return pd.concat(lines)


def speed():
    """Return seconds of decisions, and of 1,000 rows, at 10,000 training rows and 50 features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(11_000, 50))
    y = np.where(X[:, :8].sum(axis=1) + rng.normal(size=len(X)) > 0, "a", "b")
    frame = pd.DataFrame(X).rename(columns=lambda j: f"x{j}").assign(y=y)
    lines = []

    def timed(what, work, times=1):
        clock, wall = time.process_time(), time.perf_counter()
        out = [work(k) for k in range(times)][-1]
        used = time.process_time() - clock, time.perf_counter() - wall
        lines.append([what, *(seconds / times for seconds in used)])
        return out

    policy = timed("learn", lambda k: ld.acquire("y ~ .", frame[:10_000]))
    policy.run(frame[-2:])
    row = frame.drop(columns="y").iloc[10_000]
    policy.next(row[:5].to_dict())
    timed("next", lambda k: policy.next(row[: k % 10].to_dict()), 50)
    run = timed("run, 1,000 rows", lambda k: policy.run(frame[10_000:]))
    out = pd.DataFrame(lines, columns=["what", "processor_seconds", "seconds"])
    return out.assign(mean_price=[np.nan, np.nan, run[".price"].mean()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="folder of the CSV files")
    known = [*BUNDLED, *FILES, "heart", "monitoring", "cube", "cube_nm"]
    parser.add_argument("--sets", nargs="+", choices=known, default=REPORTED)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS)
    parser.add_argument("--out", help="CSV file for the results")
    parser.add_argument("--table", nargs="+", help="print the gates of these files of results")
    parser.add_argument("--online", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.speed or options.online:
        table = speed() if options.speed else online()
        print(table.round(4).to_string(index=False))
        if options.out:
            table.round(6).to_csv(options.out, index=False)
    elif options.table:
        results = pd.concat(map(pd.read_csv, options.table))
        print(gates(results).round(3).to_string())
        if "cube_nm" in set(results["data"]):
            print(myopic_by_price(results).round(3).to_string())
    else:
        parts = []
        for seed in options.seeds:
            for name in options.sets:
                parts.append(curves(name, options.folder, seed, options.rivals))
                print(parts[-1].round(3).to_string(index=False), flush=True)
                if options.out:
                    pd.concat(parts).round(6).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
