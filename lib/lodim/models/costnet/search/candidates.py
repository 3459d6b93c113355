"""Candidates of a search (nodes with columns, prices and requirements), and criteria for models."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from lodim.family import has_classes

CRITERIA = ("cv", "deviance", "aic", "hq", "bic", "ebic")
DEFAULT = "cv"


class SearchSpace:
    """Columns and terms that a model may use: the m candidates of a search.

    Methods take `used`, (m,) bool: the candidates (columns or terms) of a model."""

    # Candidates that are copies of one node are paid once.

    def __init__(self, network, budget=np.inf, keep=None):
        """Find the candidates: nodes that have columns of X and cost at most `budget`.

        network : Network of V nodes; keep : (V,) bool, nodes to consider, or None for all"""
        eligible = np.array([len(columns) > 0 for columns in network.columns])
        if keep is not None:
            eligible &= keep
        nodes = np.flatnonzero(eligible)
        bases, base_index = np.unique(network.base, return_inverse=True)
        incidence = np.zeros((len(nodes), len(bases)))
        for row, v in enumerate(nodes):
            incidence[row, base_index[network.needs[v]]] = 1.0
        price = incidence @ network.cost[bases]
        if network.set_cost is not None:
            names = [frozenset(network.names[v] for v in bases[row > 0.0]) for row in incidence]
            price = np.array([float(network.set_cost(needed)) for needed in names])
        kept = affordable(price, budget)
        self.network = network
        self.candidates = nodes[kept]  # (m,) nodes that may be selected and have columns
        self.single_price = price[kept]  # (m,) of a model with one candidate and all that it needs
        # (m, S) source (node) that a candidate needs of each series (quantity), or -1
        self.source = _sources(network, nodes)[kept]
        incidence = incidence[kept]
        needed = incidence.any(axis=0)  # others are never bought
        self.incidence = incidence[:, needed]  # (m, B) 1 for each of B purchases that are needed
        self.cost = network.cost[bases[needed]]  # (B,) of the purchases
        lists = [network.columns[v] for v in self.candidates]
        owned = np.array([j for columns in lists for j in columns], np.int64)
        self.columns = np.unique(owned)  # (q,) of X; searches number them 0 to q - 1
        # Candidate g has the columns at[start[g]:start[g + 1]].
        self.at = np.searchsorted(self.columns, owned).astype(np.int64)
        self.start = np.cumsum([0, *map(len, lists)], dtype=np.int64)

    def __len__(self):
        return len(self.candidates)

    @cached_property
    def requires(self):
        """Matrix (m, m) of bool: whether candidate i (row) needs candidate j (column)."""
        out = self.network.needs[np.ix_(self.candidates, self.candidates)]
        np.fill_diagonal(out, False)
        return out

    def columns_of(self, used):
        parts = [self.at[self.start[g] : self.start[g + 1]] for g in np.flatnonzero(used)]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def nodes(self, used):
        """Return which of V nodes of the graph are the candidates marked in `used`, (V,) bool."""
        out = np.zeros(len(self.network), bool)
        out[self.candidates[used]] = True
        return out

    def price(self, used):
        """Return the price of the candidates marked in `used`, with everything they need."""
        if self.network.set_cost is not None:
            return self.network.price(self.nodes(used))
        return float(self.cost @ (used @ self.incidence > 0.0))

    def prices_with(self, used):
        """Return the prices (r, m) of r models with each candidate added; used : (r, m) bool."""
        left = (used @ self.incidence == 0.0) * self.cost
        return self.cost.sum() - left.sum(axis=1)[:, None] + left @ self.incidence.T

    def compatible(self, used):
        """Return which candidates can be added to each of r models, (r, m) bool.

        used : (r, m) bool, candidates of each model"""
        if not self.source.shape[1]:
            return np.ones((len(used), len(self)), bool)
        # A model takes each quantity from one source only.
        mine = self.source[None]
        other = np.array([self.source[on].max(axis=0, initial=-1) for on in used])[:, None]
        return ((mine == other) | (mine < 0) | (other < 0)).all(axis=2)


def affordable(price, budget):
    """Return whether a budget pays for a price, allowing for rounding."""
    return price <= budget * (1.0 + 1e-9) + 1e-300


def with_free_columns(network, p):
    """Return a Network with free nodes added, so that each of the p columns of X has a node."""
    rest = sorted(set(range(p)) - {j for columns in network.columns for j in columns})
    V, R = len(network), len(rest)
    return replace(
        network,
        names=(*network.names, *(f"column {j}" for j in rest)),
        cost=np.append(network.cost, np.zeros(R)),
        parents=network.parents + ((),) * R,
        columns=(*network.columns, *((j,) for j in rest)),
        series=np.append(network.series, np.full(R, -1)),
        base=np.append(network.base, V + np.arange(R)),
    )


def _sources(network, nodes):
    """Return, for each of `nodes`, the node that supplies each of S quantities, (n, S), or -1."""
    numbers = np.unique(network.series[network.series >= 0])
    out = np.full((len(nodes), len(numbers)), -1)
    for s, number in enumerate(numbers):
        serving = network.series == number
        for row, v in enumerate(nodes):
            bases = np.unique(network.base[network.needs[v] & serving])
            if len(bases):
                out[row, s] = bases[0]
    return out


class Criterion:
    """Criterion for comparing models, such as "bic"; lower is better.

    charge : what a model pays per coefficient
    max_df : number of coefficients above which the criterion is infinite"""

    # "hq": Hannan and Quinn 1979; "ebic": Chen and Chen 2008

    def __init__(self, name, data, null_deviance, p):
        """Make the criterion called `name`, such as "bic", for rows `data` and p columns.

        null_deviance : mean deviance of the null model"""
        self.n = n = data.total_weight
        hq, bic = 2.0 * np.log(np.log(max(n, 3))), np.log(n)
        # 2 gamma log p = 2 log p - log n, so that "ebic" is the larger of log n and 2 log p.
        ebic = max(bic, 2.0 * np.log(max(p, 1)))
        # "cv" compares models by held-out loss, but finds them with "hq".
        charges = {"cv": hq, "deviance": 0.0, "aic": 2.0, "hq": hq, "bic": bic, "ebic": ebic}
        self.charge = float(charges[name])
        self.max_df = min(data.n_positive // 2, data.n_positive - 2)
        if name == "cv" and data.df_per_column > 1:
            self.max_df = min(self.max_df, 100)  # refits of several classes are slow
        self.logarithmic = not has_classes(data.family)
        self.floor = max(1e-12 * null_deviance, 1e-300)  # of a response that is fitted exactly

    def __call__(self, deviance, df):
        """Return the criterion of models, given the deviance and rank (`df`) of each."""
        if self.logarithmic:
            deviance = np.log(np.maximum(deviance, self.floor))
        value = self.n * deviance + self.charge * df
        return np.where((df > self.max_df) & (df > 0), np.inf, value)
