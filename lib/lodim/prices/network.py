"""Network of columns, terms and other purchases, with the cost of each and what each needs."""

from collections.abc import Callable
from functools import cached_property
from itertools import product

import numpy as np

from lodim import forms
from lodim.errors import ArgumentError


@forms.record
class Network:
    """Items to buy (columns, terms, other purchases) as V nodes of a graph, with costs and needs.

    A series is a quantity that several nodes, its sources, can supply. A node has a copy for each
    choice of the sources that it needs."""

    names: tuple[str, ...] = forms.several("V")  # parents before children
    cost: np.ndarray = forms.real("V", least=0)  # (V,) costs, at least zero
    # for each node, positions of the nodes that it needs directly
    parents: tuple[tuple[int, ...], ...] = forms.several("V", forms.several(None, forms.whole()))
    columns: tuple[tuple[int, ...], ...] = forms.several(  # columns of X that each node owns
        "V", forms.several(None, forms.whole(most="p - 1"))
    )
    series: np.ndarray = forms.whole("V", least=-1)  # series of which the node is a source, or -1
    base: np.ndarray = forms.whole("V", most="V - 1")  # position of a node's first copy
    set_cost: Callable | None = None  # price of a set of names; None: the sum of costs

    def _check_fields(self):
        for v, parents in enumerate(self.parents):
            if any(u >= v for u in parents):
                raise ValueError(f"node {v} of the network has parents {parents}")

    def __len__(self):
        return len(self.names)

    @cached_property
    def needs(self):
        """Matrix (V, V) of bool: whether node v (row) needs node u (column); each needs itself."""
        out = np.eye(len(self), dtype=bool)
        for v, parents in enumerate(self.parents):
            for u in parents:
                out[v] |= out[u]
        return out

    @cached_property
    def children(self):
        """For each node a tuple with the positions of the nodes that need it directly."""
        out: list[list[int]] = [[] for _ in self.names]
        for v, parents in enumerate(self.parents):
            for u in parents:
                out[u].append(v)
        return tuple(tuple(sorted(set(nodes))) for nodes in out)

    def closed(self, on):
        """Return a mask (V,) of the nodes marked in `on` and all their direct or indirect needs."""
        on = np.array(on, dtype=bool)
        for v in range(len(self) - 1, -1, -1):
            if on[v] and self.parents[v]:
                on[list(self.parents[v])] = True
        return on

    def price(self, on):
        """Return the cost of the nodes marked in `on` and all that they need, each paid once."""
        paid = np.unique(self.base[self.closed(on)])
        if self.set_cost is not None:
            return float(self.set_cost(frozenset(self.names[v] for v in paid)))
        return float(self.cost[paid].sum())


def unfold(names, cost, parents, columns, sources=(), uses=None, set_cost=None):
    """Return a Network, in which a node that needs one of several alternatives has a copy for each.

    names, cost, columns : for each node, its name, its cost and its columns of X
    parents : for each node, positions of the nodes that it needs
    sources : groups of alternative nodes, as tuples of positions
    uses : for each node, positions in `sources` of groups of which it needs one node; or None
    set_cost : function from a set of names to its price, or None to add costs"""
    uses = uses or ((),) * len(names)
    series_of = {v: k for k, nodes in enumerate(sources) for v in nodes}
    pairs = zip(parents, uses, strict=True)
    needed = [[*nodes, *(u for k in series for u in sources[k])] for nodes, series in pairs]
    nodes: list[int] = []  # node of each copy
    needs: list[tuple[int, ...]] = []  # positions of the copies that each copy needs
    # Per node, its copies: the position, and a dict from each series to the source that is used.
    copies: list[list[tuple[int, dict[int, int]]]] = [[] for _ in names]
    for v in _topological_order(needed):
        options = [copies[u] for u in parents[v]]
        options += [[copy for s in sources[k] for copy in copies[s]] for k in uses[v]]
        for parts in product(*options):
            used = {series_of[v]: v} if v in series_of else {}
            for _, of_part in parts:
                used = of_part | used
            # A copy uses one source of each series.
            if all(used[k] == s for _, of_part in parts for k, s in of_part.items()):
                copies[v].append((len(nodes), used))
                nodes.append(v)
                needs.append(tuple(dict.fromkeys(at for at, _ in parts)))
        if not copies[v]:
            raise ArgumentError(
                f"{names[v]!r} must not need two sources that are alternatives to each other: "
                "leave it out of the formula, or leave alternatives out"
            )
    return Network(
        names=tuple(names[v] for v in nodes),
        cost=np.array([cost[v] for v in nodes], np.float64),
        parents=tuple(needs),
        columns=tuple(tuple(columns[v]) for v in nodes),
        series=np.array([series_of.get(v, -1) for v in nodes], np.int64),
        base=np.array([copies[v][0][0] for v in nodes], np.int64),
        set_cost=set_cost,
    )


def _topological_order(parents):
    seen: set[int] = set()
    stack = list(reversed(range(len(parents))))
    while stack:
        missing = [u for u in parents[stack[-1]] if u not in seen]
        stack += reversed(missing)
        if not missing:
            v = stack.pop()
            if v not in seen:
                seen.add(v)
                yield v
