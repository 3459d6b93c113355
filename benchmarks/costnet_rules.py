"""costnet's rules at each price: held-out deviance of the model that each would sell.

    python benchmarks/costnet_rules.py [--seeds 20] [--response numeric alert]
                                       [--graph stars chains pairs mixed] [--quality] [--out FILE]
                                       [--criteria aic hq bic ebic]

Data: `ld.monitoring`, 812 alerts to learn from and 4,000 to judge by, 150 features of which 25 to
30 are base signals, at a unit each and a unit for every further operation (thesis, Sect. 5.3), as
trees ("stars"), chains, two parents ("pairs") and some of each ("mixed"). `lasso` is the weighted
lasso refitted, the best model by training deviance along its path that the budget pays for;
`lasso (criterion)` chooses among the same models as the frontier does. `all` is the frontier of all
rules by "hq", the criterion of searches; `all (NAME)` by each of `--criteria`. `less` is the mean
over the seeds of the lasso's deviance less the rule's, `se` its standard error. Rows of other
responses, graphs and rules stay in the file. `--quality` prints instead the ratio of R2 to the best
of all subsets of 14 features, over 20 seeds and two budgets, by the deviance and by "hq".
"""

import argparse
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

import lodim as ld
from lodim import family as families
from lodim.design.design import Design
from lodim.models.costnet.penalty.groups import Groups
from lodim.models.costnet.penalty.solvers import penalty_path
from lodim.models.costnet.search import rules
from lodim.models.costnet.search.candidates import affordable
from lodim.models.costnet.search.frontier import select_frontier
from lodim.models.costnet.search.moves import Search
from lodim.models.costnet.search.rows import SearchData
from lodim.models.costnet.search.rules import forward_selection
from lodim.prices.network import unfold

SEARCH = "hq"  # the criterion by which costnet finds models that cross-validation compares
GRAPHS = {"stars": 25, "chains": 30, "pairs": 30, "mixed": 25}  # and their base signals
COSTS = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60]
N_TRAIN, N_TEST = 812, 4000


def monitored(seed, graph, response, n=N_TRAIN + N_TEST, p=150, signals=None):
    """Training batch, held-out batch, family and network."""
    signals = signals or GRAPHS[graph]
    frame = ld.monitoring(n, p, seed, graph=graph, response=response, signals=signals)
    design, train = Design.learn("y ~ .", frame.iloc[:N_TRAIN])
    test = design.apply(frame.iloc[N_TRAIN:], response=True)
    levels = design.response.levels
    family = families.make(design.family, 0 if levels is None else len(levels))
    names = list(design.names)
    costs, needs = frame.attrs["costs"], frame.attrs["depends_on"]
    parents = [tuple(map(names.index, needs.get(name, ()))) for name in names]
    network = unfold(
        names, [costs[name] for name in names], parents, [(j,) for j in range(len(names))]
    )
    return train, test, family, network


def solver(traces):
    """A penalized path that solves each penalty once and remembers it in a dict."""

    def path(batch, family, priced):
        key = priced.cost.tobytes(), priced.member.tobytes()
        if key not in traces:
            traces[key] = penalty_path(batch, family, priced)
        return traces[key]

    return path


def candidates(search, train, family, network, path):
    """What each rule finds."""
    p = train.X.shape[1]
    priced, penalty = Groups.from_network(network, "all", p), rules.lasso_groups(network, p)
    group = rules.path_supports(search, path(train, family, priced), "group")
    return {
        "group": group,
        "lasso": rules.path_supports(search, path(train, family, penalty), "lasso"),
        "greedy": forward_selection(search),
    }


def curves(seed, graph, response, criteria):
    """Held-out deviance of each rule at each cost: rows (graph, rule, cost, seed, deviance)."""
    train, test, family, network = monitored(seed, graph, response)
    sold, path = {}, solver({})
    search = Search(train, family, network, np.inf, "deviance")
    penalty = rules.lasso_groups(network, train.X.shape[1])
    lasso = rules.path_supports(search, path(train, family, penalty), "lasso")
    sold["lasso"] = search, select_frontier(search, lasso)
    for name in dict.fromkeys([SEARCH, *criteria]):
        search = Search(train, family, network, np.inf, name)
        found = candidates(search, train, family, network, path)
        everything = [c for some in found.values() for c in some]
        sold[f"all ({name})"] = search, select_frontier(search, everything)
        if name == SEARCH:
            sold["all"] = sold[f"all ({name})"]
            sold |= {
                "lasso (criterion)" if rule == "lasso" else rule: (
                    search, select_frontier(search, found[rule])
                )
                for rule in found
            }  # fmt: skip
    for rule, (search, chosen) in sold.items():
        deviance = [held_out(search, c, test) for c in chosen]
        paid = [c.state.price for c in chosen]
        for cost in COSTS:
            at = np.searchsorted(paid, cost + 1e-9) - 1
            yield graph, rule, cost, seed, deviance[at]


def held_out(search, candidate, test):
    """Mean deviance of a candidate's refit in the rows of a batch."""
    on = search.space.columns_of(candidate.state.used)
    fit, training = search.final(on), search.final.data
    eval_batch = SearchData.from_batch(test, training.family, training.columns)
    return eval_batch.deviance(fit.intercept, on, fit.coef)


def summary(rows):
    """Mean held-out deviance, and how much less it is than the lasso's, with standard error."""
    frame = pd.DataFrame(rows, columns=["graph", "rule", "cost", "seed", "deviance"])
    index = ["graph", "cost", "seed"]
    lasso = frame[frame["rule"] == "lasso"].set_index(index)["deviance"].rename("lasso")
    frame = frame.join(lasso, on=index)
    frame["less"] = frame["lasso"] - frame["deviance"]
    by = frame.groupby(["graph", "rule", "cost"])
    out = by.agg(deviance=("deviance", "mean"), less=("less", "mean"), se=("less", "sem"))
    out["seeds"] = by["seed"].nunique()
    return out.reset_index()


def quality(seeds, name):
    """Ratio of R2 to the exhaustive optimum over 14 features, at two budgets each."""
    graphs, ratios, within = list(GRAPHS), [], []
    for seed in range(seeds):
        graph = graphs[seed % len(graphs)]
        train, _, family, network = monitored(seed, graph, "numeric", p=14, signals=5)
        cost = np.random.default_rng(seed).uniform(0.3, 3.0, 14)
        network = replace(network, cost=np.ones(14) if seed % 2 else cost)
        for share in (0.25, 0.5):
            budget = share * network.cost.sum()
            search = Search(train, family, network, budget, name)
            null = search.refits.null.deviance
            found = candidates(search, train, family, network, solver({}))
            best = exhaustive(search, budget)
            sold = select_frontier(search, [c for some in found.values() for c in some])[-1].state
            ratios.append((null - sold.deviance) / (null - best.deviance))
            within.append(sold.price <= budget)
    return SimpleNamespace(ratios=np.array(ratios), within=all(within))


def exhaustive(search, budget):
    """The affordable model of least deviance: of 14 features all that no other one extends."""
    every = np.array(list(product((False, True), repeat=len(search.space))))
    every = every[affordable(np.array([search.space.price(used) for used in every]), budget)]
    known = {used.tobytes() for used in every}
    alone = np.eye(len(search.space), dtype=bool)
    extended = [any((used | one).tobytes() in known for one in alone[~used]) for used in every]
    return min(map(search.state, every[~np.array(extended)]), key=lambda state: state.deviance)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--response", nargs="+", default=["numeric", "alert"])
    parser.add_argument("--graph", nargs="+", default=list(GRAPHS))
    parser.add_argument("--criteria", nargs="+", default=["aic", "hq", "bic", "ebic"])
    parser.add_argument("--quality", action="store_true")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "costnet_rules.csv"
    )
    arguments = parser.parse_args()
    if arguments.quality:
        for name in ("deviance", SEARCH):
            found = quality(arguments.seeds, name)
            print(f"R2 to the best of all subsets ({name}): mean {found.ratios.mean():.4f}, "
                  f"worst {found.ratios.min():.4f}, all within budget: {found.within}")  # fmt: skip
        return
    for response in arguments.response:
        for graph in arguments.graph:
            rows: list = []
            for seed in range(arguments.seeds):
                rows += curves(seed, graph, response, arguments.criteria)
            table = summary(rows)
            table.insert(0, "response", response)
            save(table, arguments.out)
            show(table)


def save(table, file):
    """The rows of a table in a CSV file, in place of those of the same response, graph and rule."""
    if file.exists():
        old = pd.read_csv(file)
        key = ["response", "graph", "rule"]
        same = old.set_index(key).index.isin(table.set_index(key).index)
        table = pd.concat([old[~same], table])
    table = table.sort_values(["response", "graph", "rule", "cost"], ascending=[False, *[True] * 3])
    table.to_csv(file, index=False, float_format="%.5f")


def show(table):
    """Print the deviances of a graph, and how far each criterion is below the lasso."""
    response, graph = table[["response", "graph"]].iloc[0]
    wide = table.pivot(index="rule", columns="cost", values="deviance")
    print(f"\n{response}, {graph}: held-out deviance\n{wide.round(4).to_string()}")
    for rule, part in table[table["rule"].str.startswith("all")].groupby("rule"):
        print(f"{rule}, less than the lasso by:", *(
            f"{cost}: {less:.4f} ({se:.4f})" for cost, less, se in
            zip(part["cost"], part["less"], part["se"], strict=True)
        ))  # fmt: skip


if __name__ == "__main__":
    main()
