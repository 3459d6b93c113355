"""What is for sale: the nodes that a search may choose, their columns and what they need."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lodim.models.costnet.graph.network import Network

CENT = 1e-9  # share of a price that rounding may add to it


@dataclass(frozen=True, eq=False)
class Market:
    """A network, and the part of it that a search looks at.

    A purchase is `used`, (m,) bool over the goods: the nodes whose columns a model has.

    network : Network; every column of X belongs to a node
    goods : (m,) nodes of the network that are looked at and have columns
    columns : (q,) columns of X that they own; searches number them 0 to q - 1
    start, at : the columns of good g are at[start[g]:start[g + 1]]
    paid : (m, B) float64, which things (nodes, copies being one) a good needs: 1 or 0
    cost : (B,) of these things
    own : (m,) price of each good alone, with all that it needs
    source : (m, S) of each series the source that a good needs, or -1
    screened : whether some of the goods were left out for their number
    """

    network: Network
    goods: np.ndarray
    columns: np.ndarray
    start: np.ndarray
    at: np.ndarray
    paid: np.ndarray
    cost: np.ndarray
    own: np.ndarray
    source: np.ndarray
    screened: bool

    @classmethod
    def of(cls, network, budget=np.inf, keep=None):
        """The nodes that have columns (of `keep` (V,) bool) and that the budget pays for."""
        needs = network.needs
        owns = np.array([len(columns) > 0 for columns in network.columns])
        if keep is not None:
            owns &= keep
        bases, of_base = np.unique(network.base, return_inverse=True)
        goods = np.flatnonzero(owns)
        paid = np.zeros((len(goods), len(bases)))
        for row, v in enumerate(goods):
            paid[row, of_base[needs[v]]] = 1.0
        source = _sources(network, goods)
        own = _prices(network, paid, bases)
        kept = within(own, budget)
        goods, paid, own, source = goods[kept], paid[kept], own[kept], source[kept]
        lists = [network.columns[v] for v in goods]
        columns = np.unique(np.array([j for own in lists for j in own], np.int64))
        at = np.searchsorted(columns, [j for own in lists for j in own]).astype(np.int64)
        start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        some = paid.any(axis=0)  # the rest cannot be bought
        cost = network.cost[bases[some]]
        return cls(
            network, goods, columns, start, at, paid[:, some], cost, own, source, keep is not None
        )

    def __len__(self):
        return len(self.goods)

    @cached_property
    def requires(self):
        """(m, m) bool: whether a good (row) needs another (column)."""
        found = self.network.needs[np.ix_(self.goods, self.goods)]
        np.fill_diagonal(found, False)
        return found

    def on(self, used):
        """Columns of a purchase, as searches number them, in increasing order."""
        parts = [self.at[self.start[g] : self.start[g + 1]] for g in np.flatnonzero(used)]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def nodes(self, used):
        """(V,) bool, the nodes of a purchase."""
        out = np.zeros(len(self.network), bool)
        out[self.goods[used]] = True
        return out

    def price(self, used):
        """What a purchase costs."""
        if self.network.set_cost is not None:
            return self.network.price(self.nodes(used))
        return float(self.cost @ (used @ self.paid > 0.0))

    def prices_with(self, used):
        """(r, m) price of purchases (r, m) with each good added, by the sum of costs."""
        left = (used @ self.paid == 0.0) * self.cost
        return self.cost.sum() - left.sum(axis=1)[:, None] + left @ self.paid.T

    def sources(self, used):
        """(r, S) the source of each series that purchases (r, m) need, or -1."""
        out = np.full((len(used), self.source.shape[1]), -1)
        for row, chosen in enumerate(used):
            if chosen.any():
                out[row] = self.source[chosen].max(axis=0)
        return out

    def agree(self, used):
        """(r, m) bool: whether a good needs no other source than purchases (r, m) have."""
        if not self.source.shape[1]:
            return np.ones((len(used), len(self)), bool)
        mine, other = self.source[None], self.sources(used)[:, None]
        return ((mine == other) | (mine < 0) | (other < 0)).all(axis=2)


def within(price, budget):
    """Whether a budget pays for a price."""
    return price <= budget * (1.0 + CENT) + 1e-300


def _prices(network, paid, bases):
    if network.set_cost is None:
        return paid @ network.cost[bases]
    names = [frozenset(network.names[v] for v in bases[row > 0.0]) for row in paid]
    return np.array([float(network.set_cost(found)) for found in names])


def _sources(network, goods):
    """(m, S) of each series the source that a good needs, or -1."""
    numbers = np.unique(network.series[network.series >= 0])
    out = np.full((len(goods), len(numbers)), -1)
    for s, number in enumerate(numbers):
        serving = network.series == number
        for row, v in enumerate(goods):
            found = np.unique(network.base[network.needs[v] & serving])
            if len(found):
                out[row, s] = found[0]
    return out


def complete(network, p):
    """The network with a free node for each of p columns of X that no node owns."""
    rest = sorted(set(range(p)) - {j for columns in network.columns for j in columns})
    V = len(network)
    return replace(
        network,
        names=(*network.names, *(f"column {j}" for j in rest)),
        cost=np.append(network.cost, np.zeros(len(rest))),
        parents=(*network.parents, *(() for _ in rest)),
        columns=(*network.columns, *((j,) for j in rest)),
        series=np.append(network.series, np.full(len(rest), -1)),
        base=np.append(network.base, V + np.arange(len(rest))),
    )
