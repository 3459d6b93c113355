"""costnet's frontier at every budget on unseen halves, compared with two lassos with refit.

    python benchmarks/costnet_prices.py [FOLDER] [--sets heart,...] [--seeds 12] [--out FILE]
                                        [--worst FILE]

Sets: `heart` with its price list; `pima_diabetes` and `liver_disorders` of FOLDER with the prices
of Turney (1995, J. Artificial Intelligence Research 2), where tests share a blood draw; alerts of
`ld.monitoring` (stars, and pairs with a numeric response); and sets that come with lodim at a price
of one a column. Half of the rows (at most 400) to train. Peers: the lasso, and the lasso whose
penalties are prices with all that is needed, each refitted: of the supports along the path that the
budget pays for the one of least training deviance. A row for each set, budget (share of the price
of everything) and split: held-out deviance of the three, and the standard error, by rows, of how
much costnet's is above each peer's. At the end of a set: the splits' mean difference from each, in
units of the root mean square of the standard errors, budget by budget.

The worst budget of a set is a maximum, above zero where both methods are equal. What it is then is
told by the splits: their differences less the mean of all, each split's with a random sign, the
same at all its budgets. `--worst` has a row for each set and peer: the worst budget, its mean
difference in standard errors (`worst`), median and 95 % point of that maximum of equal methods, and
how often these reach `worst` (`p`; splits share rows, so that it is rather too small).
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import lodim as ld
from lodim.fitting.fit_model import model_of, prepare
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.solvers import penalty_path
from lodim.models.costnet.search import rules
from lodim.models.costnet.search.candidates import with_free_columns
from lodim.models.costnet.search.frontier import CostFrontier, select_frontier
from lodim.models.costnet.search.moves import Search

SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
FIELDS = ("set", "seed", "share", "costnet", "lasso", "priced", "se_lasso", "se_priced")
WORST = ("set", "peer", "splits", "share", "worst", "equal_median", "equal_95", "p")
FLIPS = 10_000
MOST = 400
TURNEY = {
    "pima_diabetes": (2.1, {"x2": 15.51, "x5": 20.68}),
    "liver_disorders": (2.1, {"x1": 5.17, "x2": 5.17, "x3": 5.17, "x4": 5.17, "x5": 7.76}),
}
UNIT = ("german_credit", "ionosphere", "diabetes", "concrete", "autompg", "wine_red", "seeds",
        "wine", "breast_cancer", "sonar", "iris")  # fmt: skip


def problems(folder):
    """Name -> (frame with the response y, arguments of costnet)."""
    heart = ld.data("heart").rename(columns={"disease": "y"})
    prices = ld.data("heart_costs").set_index("name")
    out = {"heart": (heart, {"costs": prices["cost"], "depends_on": prices["needs"]})}
    for name, (blood, tests) in TURNEY.items() if folder else ():
        df = pd.read_csv(Path(folder) / f"{name}.csv")
        df.columns = [*(f"x{k}" for k in range(1, df.shape[1])), "y"]
        df["y"] = "c" + df["y"].astype(str)
        costs = {c: tests.get(c, 1.0) for c in df.columns.drop("y")} | {"blood": blood}
        out[name] = df, {"costs": costs, "depends_on": {c: ["blood"] for c in tests}}
    for graph, response in (("stars", "alert"), ("pairs", "numeric"), ("mixed", "alert")):
        df = ld.monitoring(n=4400, p=60, seed=5, graph=graph, response=response, signals=15)
        truth = df.attrs
        asked = {"costs": truth["costs"], "depends_on": truth["depends_on"]}
        out[f"monitoring_{graph}"] = df, asked
    known = ld.data().set_index("name")
    for name in UNIT:
        out[name] = ld.data(name).rename(columns={known.response[name]: "y"}), {}
    return {name: (df.dropna().reset_index(drop=True), asked) for name, (df, asked) in out.items()}


def halves(df, seed):
    order = np.random.default_rng(seed).permutation(len(df))
    half = min(len(df) // 2, MOST)
    train, test = df.iloc[order[:half]], df.iloc[order[half:][:4000]]
    for name in df.columns:
        if df[name].dtype.kind not in "biuf":
            test = test[test[name].isin(train[name].unique())]
    return train, test


def peer(problem, groups):
    """The frontier of the refitted supports of a penalty, by training deviance."""
    batch, family, network = problem.batch, problem.family, problem.settings.network
    free = with_free_columns(network, batch.X.shape[1])
    search = Search(batch, family, free, np.inf, "deviance")
    supports = rules.path_supports(search, penalty_path(batch, family, groups), "lasso")
    return CostFrontier.from_candidates(search, network, select_frontier(search, supports))


def losses(frontier, budget, batch, family):
    """Deviance of each row of a batch by the model of a budget."""
    k = frontier.index_within(budget)
    X = np.moveaxis(batch.X, 1, 2).reshape(-1, batch.X.shape[1])[: batch.n]
    return family.deviance(batch.y, frontier.intercept[k] + X @ frontier.coef[k])


def rows(name, df, asked, seed):
    """A row a budget."""
    train, test = halves(df, seed)
    problem = prepare(model_of(ld.costnet), "y ~ .", train, asked)
    fit = ld.costnet("y ~ .", train, **asked)
    unseen = problem.design.apply(test, response=True)
    p, network = problem.batch.X.shape[1], problem.settings.network
    lists = {
        "costnet": fit.estimates.frontier,
        "lasso": peer(problem, Groups.weighted_lasso(np.ones(p))),
        "priced": peer(problem, rules.lasso_groups(network, p)),
    }
    for share in SHARES:
        each = {n: losses(f, share * fit.total, unseen, problem.family) for n, f in lists.items()}
        row = {n: round(float(v.mean()), 5) for n, v in each.items()}
        for n in ("lasso", "priced"):
            row[f"se_{n}"] = round(
                float((each["costnet"] - each[n]).std() / len(unseen.y) ** 0.5), 5
            )
        yield {"set": name, "seed": seed, "share": share} | row


def worst_budget(name, frame, peer):
    """The row of WORST of a set and a peer."""
    seeds = frame["seed"].nunique()
    above = (frame["costnet"] - frame[peer]).to_numpy().reshape(seeds, -1)
    error = frame[f"se_{peer}"].to_numpy().reshape(seeds, -1)
    error = np.sqrt((error**2).mean(axis=0)).clip(1e-12)
    ratio = above.mean(axis=0) / error
    centred = (above - above.mean(axis=0)) * (seeds / max(1, seeds - 1)) ** 0.5
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (FLIPS, seeds))
    equal = (signs @ centred / seeds / error).max(axis=1)
    worst = (
        round(float(ratio.max()), 2),
        *(round(float(np.quantile(equal, q)), 2) for q in (0.5, 0.95)),
    )
    often = round(float((equal >= ratio.max() - 1e-9).mean()), 4)
    return dict(zip(WORST, (name, peer, seeds, SHARES[ratio.argmax()], *worst, often), strict=True))


def table(name, where):
    """A csv.DictWriter of a file of that name, or of the screen, with its head written."""
    file = open(name, "w", newline="") if name else sys.stdout  # noqa: SIM115
    writer = csv.DictWriter(file, where)
    writer.writeheader()
    return file, writer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--sets")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--out")
    parser.add_argument("--worst")
    args = parser.parse_args()
    (out, writer), (end, worst) = table(args.out, FIELDS), table(args.worst, WORST)
    for name, (df, asked) in problems(args.folder).items():
        if args.sets and name not in args.sets.split(","):
            continue
        found = [row for seed in range(args.seeds) for row in rows(name, df, asked, seed)]
        writer.writerows(found)
        out.flush()
        frame = pd.DataFrame(found)
        worst.writerows(worst_budget(name, frame, peer) for peer in ("lasso", "priced"))
        end.flush()
        by = frame.groupby("share").mean(numeric_only=True)
        for n in ("lasso", "priced"):
            error = (frame[f"se_{n}"] ** 2).groupby(frame["share"]).mean() ** 0.5
            above = (by["costnet"] - by[n]) / error.clip(lower=1e-12)
            print(f"{name}, above {n}, in standard errors:", *(f"{v:.2f}" for v in above))


if __name__ == "__main__":
    main()
