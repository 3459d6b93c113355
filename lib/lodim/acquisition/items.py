"""What can be bought: the columns of the data, and the price of a set of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodim.design import factors
from lodim.errors import ArgumentError
from lodim.prices.network import Network


@dataclass(frozen=True, eq=False)
class Items:
    """G columns of the data that can be bought, with what each needs.

    What is paid is (V,) bool over the nodes of the network, without copies (`Network.base`).

    names : of the columns
    column_item : (p,) item of each feature of the design
    """

    network: Network
    names: tuple[str, ...]
    column_item: np.ndarray

    def __len__(self):
        return len(self.names)

    @cached_property
    def _options(self):
        """Nodes (Q, V) bool that an item needs, per choice of alternatives; first of each item."""
        net, options, first = self.network, [], []
        for name in self.names:
            first.append(len(options))
            for v in range(len(net)):
                if net.names[v] == name:
                    on = np.zeros(len(net), bool)
                    on[net.base[net.needs[v]]] = True
                    options.append(on)
        return np.array(options), np.array(first)

    def price(self, paid):
        """Price of nodes: of (V,) bool a number, of (C, V) bool (C,)."""
        net = self.network
        if net.set_cost is None:
            return paid @ net.cost
        if paid.ndim > 1:
            return np.array([self.price(one) for one in paid])
        return float(net.set_cost(frozenset(net.names[v] for v in np.flatnonzero(paid))))

    def pay(self, paid, sets):
        """Nodes (C, V) paid once sets of items (C, G) are bought, each by its cheapest way."""
        options, first = self._options
        count = np.diff(first, append=len(options))
        single = count == 1
        paid = paid | (sets[:, single] @ options[first[single]])
        for g in np.flatnonzero(~single & sets.any(axis=0)):
            rows = np.flatnonzero(sets[:, g])
            ways = paid[rows, None] | options[first[g] : first[g] + count[g]]
            price = self.price(ways.reshape(-1, paid.shape[1])).reshape(len(rows), -1)
            paid[rows] = ways[np.arange(len(rows)), price.argmin(axis=1)]
        return paid

    def closed(self, measured, paid, sets):
        """Items measured (C, G) and nodes paid (C, V) once sets of items (C, G) are bought.

        Items that need nothing more with a price come with them.
        """
        options, first = self._options
        paid = self.pay(paid, sets)
        lacking = ~paid if self.network.set_cost else ~paid & (self.network.cost > 0.0)
        free = (lacking.astype(float) @ options.T) == 0.0
        return measured | sets | np.logical_or.reduceat(free, first, axis=1), paid

    def one_hot(self, sets):
        """Sets of items, tuples of positions, as (C, G) bool."""
        out = np.zeros((len(sets), len(self)), bool)
        for row, one in zip(out, sets, strict=True):
            row[list(one)] = True
        return out


def check_single_terms(design):
    """Raise an ArgumentError unless each term of a design is made of one column."""
    for name, term in zip(design.term_names, design.terms, strict=True):
        if len({column for part in term for column in factors.needs(part)}) != 1:
            raise ArgumentError(
                f"each term must be made of one column, not {name!r}: leave it out, as the "
                "predictor of acquire sees all columns together"
            )


def column_items(design):
    """Position (p,) of the column of the data that each feature of a design is made of."""
    names = [factors.needs(term[0])[0] for term in design.terms]
    return np.array([design.features.index(names[t]) for t in design.term_of], np.int64)
