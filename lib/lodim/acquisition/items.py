"""Columns of the data that can be bought, and the price of buying several."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lodim.checks import number
from lodim.design import factors
from lodim.errors import ArgumentError
from lodim.prices.network import Network
from lodim.text import suggestion


@dataclass(frozen=True, eq=False)
class Items:
    """Columns of the data that can be bought, and the purchases that each column needs.

    A purchase is a column, or a step that several columns need, such as a visit."""

    network: Network
    names: tuple[str, ...]
    column_item: np.ndarray  # position of the column from which each feature is computed
    use: np.ndarray  # (resources, purchases) use of further resources, such as time

    def __len__(self):
        return len(self.names)

    @cached_property
    def _options(self):
        """Ways to get columns, bool (ways, purchases), and the row where each column's ways begin.

        A way marks the purchase that provides its column, and all purchases that this one needs."""
        net, options, first = self.network, [], []
        for name in self.names:
            first.append(len(options))
            for v in range(len(net)):
                if net.names[v] == name:
                    on = np.zeros(len(net), bool)
                    on[net.base[net.needs[v]]] = True
                    options.append(on)
        return np.array(options), np.array(first)

    @cached_property
    def _single(self):
        options, first = self._options
        count = np.diff(first, append=len(options))
        return count, count == 1, options[first[count == 1]].astype(np.float32)

    @cached_property
    def _priced(self):
        options = self._options[0]
        net = self.network
        priced = (net.cost > 0.0) | self.use.any(axis=0) | (net.set_cost is not None)
        return np.ascontiguousarray((options & priced).T.astype(np.float32))

    def price(self, paid):
        """Return the total price of the purchases marked in `paid`, or for each row of a matrix."""
        net = self.network
        if net.set_cost is None:
            return paid @ net.cost
        if paid.ndim > 1:
            return np.array([self.price(one) for one in paid])
        return float(net.set_cost(frozenset(net.names[v] for v in np.flatnonzero(paid))))

    def spent(self, paid):
        """Return [price, use of each resource] of the purchases marked in `paid`, or per row."""
        return np.append(np.asarray(self.price(paid))[..., None], paid @ self.use.T, axis=-1)

    def pay(self, paid, sets):
        """Return the paid purchases after buying each set of columns, (sets, purchases) bool.

        paid : (purchases,) bool, paid before
        sets : (sets, columns) bool"""
        options, first = self._options
        count, single, needs = self._single
        paid = paid | ((sets[:, single].astype(np.float32) @ needs) > 0.0)
        for g in np.flatnonzero(~single & sets.any(axis=0)) if not single.all() else ():
            rows = np.flatnonzero(sets[:, g])
            ways = paid[rows, None] | options[first[g] : first[g] + count[g]]
            price = self.price(ways.reshape(-1, paid.shape[1])).reshape(len(rows), -1)
            paid[rows] = ways[np.arange(len(rows)), price.argmin(axis=1)]
        return paid

    def after_buying(self, measured, paid, sets):
        """Return known columns and paid purchases after buying each set of columns, a row per set.

        measured : (columns,) bool, known before
        paid : (purchases,) bool, paid before
        sets : (sets, columns) bool"""
        first = self._options[1]
        paid = self.pay(paid, sets)
        free = ((~paid).astype(np.float32) @ self._priced) == 0.0
        if len(first) < free.shape[1]:
            free = np.logical_or.reduceat(free, first, axis=1)
        return measured | sets | free, paid

    def cheaper_after(self, state, item):
        """Return positions of unknown columns that get cheaper once a row has column `item` too."""
        if self.network.set_cost is None and self._options[0].sum() == len(self):
            return np.empty(0, np.int64)  # nothing needs anything else
        paid = self.pay(state.paid, self.one_hot(item))
        rest = np.flatnonzero(~state.measured & (np.arange(len(self)) != item))
        sets = np.eye(len(self), dtype=bool)[rest]
        before = self.price(self.pay(state.paid, sets)) - self.price(state.paid)
        after = self.price(self.pay(paid[0], sets)) - self.price(paid[0])
        return rest[after < before - 1e-9 * np.abs(before)]

    def one_hot(self, *items):
        out = np.zeros((1, len(self)), bool)
        out[0, list(items)] = True
        return out


def resource_use(network, resources):
    """Return the use of each resource by each purchase in a Network, (resources, purchases).

    resources : dict resource -> dict purchase -> use"""
    rows = []
    for name, needs in resources.items():
        if name == "price":
            raise ArgumentError("resources: 'price' is the sum of the costs; use another name")
        unknown = [key for key in needs if key not in network.names]
        if unknown:
            raise ArgumentError(
                f"resources[{name!r}]: {unknown[0]!r} is no purchase; "
                f"{suggestion(unknown[0], list(dict.fromkeys(network.names)))}"
            )
        given = [number(f"resources[{name!r}]", needs.get(v, 0.0), 0.0) for v in network.names]
        rows.append(np.where(network.base == np.arange(len(network)), given, 0.0))
    return np.array(rows).reshape(len(resources), len(network))


def check_single_terms(design):
    if not design.features:
        raise ArgumentError(
            f"acquire needs at least one feature to buy; the formula is {design.formula!r}"
        )
    for name, term in zip(design.term_names, design.terms, strict=True):
        if len({column for part in term for column in factors.needs(part)}) != 1:
            raise ArgumentError(
                f"each term must be made of one column, not {name!r}: leave it out, as the "
                "predictor of acquire sees all columns together"
            )


def column_items(design):
    """Return the data column, as position in `design.features`, of each column of X."""
    names = [factors.needs(term[0])[0] for term in design.terms]
    place = {name: k for k, name in enumerate(design.features)}
    return np.array([place[names[t]] for t in design.term_of], np.int64)
