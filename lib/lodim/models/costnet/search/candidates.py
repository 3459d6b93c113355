"""Candidates of a search: nodes of a dependency graph with columns, prices and requirements."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lodim.prices.network import Network

ROUNDING = 1e-9  # relative rounding error of a price


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Dependency graph, and the candidates: its m nodes among which a search selects.

    A selection is `used` (m,) bool: the candidates whose columns a model has. A purchase is a node
    that is paid once, even if the graph has several copies of it."""

    network: Network  # the graph; every column of X belongs to a node
    candidates: np.ndarray  # (m,) nodes that may be selected and have columns
    columns: np.ndarray  # (q,) their columns of X; searches number them 0 to q - 1
    start: np.ndarray  # candidate g has the columns at[start[g]:start[g + 1]]
    at: np.ndarray
    incidence: np.ndarray  # (m, B) float64, 1 for each of B purchases that a candidate needs
    cost: np.ndarray  # (B,) costs of the purchases
    single_price: np.ndarray  # (m,) price of each candidate alone, with everything it needs
    source: np.ndarray  # (m, S) source needed of each of S sets of alternatives, or -1
    screened: bool  # whether nodes were left out because there are too many

    @classmethod
    def from_network(cls, network, budget=np.inf, keep=None):
        """Return the candidates: nodes with columns, in `keep` (V,), that the budget pays for.

        V is the number of nodes of the graph; without `keep` all may be candidates."""
        eligible = np.array([len(columns) > 0 for columns in network.columns])
        if keep is not None:
            eligible &= keep
        nodes = np.flatnonzero(eligible)
        bases, base_index = np.unique(network.base, return_inverse=True)
        incidence = np.zeros((len(nodes), len(bases)))
        for row, v in enumerate(nodes):
            incidence[row, base_index[network.needs[v]]] = 1.0
        price, source = _single_prices(network, incidence, bases), _sources(network, nodes)
        kept = affordable(price, budget)
        nodes, incidence, price, source = nodes[kept], incidence[kept], price[kept], source[kept]
        lists = [network.columns[v] for v in nodes]
        owned = np.array([j for columns in lists for j in columns], np.int64)
        columns = np.unique(owned)
        at = np.searchsorted(columns, owned).astype(np.int64)
        start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        needed = incidence.any(axis=0)  # others are never bought
        things = incidence[:, needed], network.cost[bases[needed]]
        return cls(network, nodes, columns, start, at, *things, price, source, keep is not None)

    def __len__(self):
        return len(self.candidates)

    @cached_property
    def requires(self):
        """Whether one candidate node (row) needs another candidate (column), (m, m) bool."""
        out = self.network.needs[np.ix_(self.candidates, self.candidates)]
        np.fill_diagonal(out, False)
        return out

    def columns_of(self, used):
        """Return the increasing column numbers of selected nodes, marked by `used` (m,)."""
        parts = [self.at[self.start[g] : self.start[g + 1]] for g in np.flatnonzero(used)]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def nodes(self, used):
        """Return which of the graph's V nodes are selected, (V,) bool.

        `used` (m,) marks them among the m candidates."""
        out = np.zeros(len(self.network), bool)
        out[self.candidates[used]] = True
        return out

    def price(self, used):
        """Return the price of selected nodes, marked by `used` (m,), with everything they need."""
        if self.network.set_cost is not None:
            return self.network.price(self.nodes(used))
        return float(self.cost @ (used @ self.incidence > 0.0))

    def prices_with(self, used):
        """Return the prices (r, m) of r selections of nodes, with each of m nodes added.

        used (r, m) bool marks the nodes of each selection."""
        left = (used @ self.incidence == 0.0) * self.cost
        return self.cost.sum() - left.sum(axis=1)[:, None] + left @ self.incidence.T

    def compatible(self, used):
        """Return whether each of m nodes can be added to r selections of nodes `used` (r, m), bool.

        It cannot if it needs a second source of one series (set of alternative sources)."""
        if not self.source.shape[1]:
            return np.ones((len(used), len(self)), bool)
        mine, other = self.source[None], self._sources_of(used)[:, None]
        return ((mine == other) | (mine < 0) | (other < 0)).all(axis=2)

    def _sources_of(self, used):
        """Return the source of each series that selections `used` (r, m) need, or -1, (r, S).

        A series is a set of alternative sources; a selection is a set of candidate nodes."""
        out = np.full((len(used), self.source.shape[1]), -1)
        for row, chosen in enumerate(used):
            if chosen.any():
                out[row] = self.source[chosen].max(axis=0)
        return out


def affordable(price, budget):
    """Return whether a budget pays for a price, allowing for rounding."""
    return price <= budget * (1.0 + ROUNDING) + 1e-300


def with_free_columns(network, p):
    """Return the network of priced items, with an item of price zero per column without one.

    p : number of columns of X. So the search can treat columns without a price like all others."""
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


def _single_prices(network, incidence, bases):
    """Return the price of each candidate node alone, with everything it needs, (m,).

    incidence (m, B) marks which of B purchases each needs."""
    if network.set_cost is None:
        return incidence @ network.cost[bases]
    names = [frozenset(network.names[v] for v in bases[row > 0.0]) for row in incidence]
    return np.array([float(network.set_cost(needed)) for needed in names])


def _sources(network, nodes):
    """Return the source that each node needs of each of S sets of alternatives, (m, S), or -1."""
    numbers = np.unique(network.series[network.series >= 0])
    out = np.full((len(nodes), len(numbers)), -1)
    for s, number in enumerate(numbers):
        serving = network.series == number
        for row, v in enumerate(nodes):
            bases = np.unique(network.base[network.needs[v] & serving])
            if len(bases):
                out[row, s] = bases[0]
    return out
