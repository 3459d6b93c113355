"""Network of columns, terms and other purchases, with the cost of each and what each needs."""

from collections.abc import Callable
from functools import cached_property
from itertools import product

import numpy as np

from lodim import forms
from lodim.errors import ArgumentError


@forms.record
class Network:
    """Graph of V nodes with costs; a node needs its parents, and everything that they need.

    A node is a column, a term or another purchase. A series is a set of alternative nodes. A node
    that needs one of a series is stored as one copy per alternative, with the same name."""

    names: tuple[str, ...] = forms.several("V")  # parents before children
    cost: np.ndarray = forms.real("V", least=0)  # (V,) costs, at least zero
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
    """Return a Network in which each node that needs alternatives has one copy per alternative.

    names, cost, parents, columns : an entry per node, before copying, as in Network
    sources : positions of the nodes in each series (a set of nodes of which one is enough)
    uses : for each node, the numbers of the series that it needs
    set_cost : function from a set of names to its price, or None to add costs"""
    uses = uses or ((),) * len(names)
    source_of = {v: k for k, nodes in enumerate(sources) for v in nodes}
    copies, first = _copies(names, parents, sources, uses, source_of)
    return Network(
        names=tuple(names[v] for v, _ in copies),
        cost=np.array([cost[v] for v, _ in copies], np.float64),
        parents=tuple(needed for _, needed in copies),
        columns=tuple(tuple(columns[v]) for v, _ in copies),
        series=np.array([source_of.get(v, -1) for v, _ in copies], np.int64),
        base=np.array([first[v] for v, _ in copies], np.int64),
        set_cost=set_cost,
    )


def _copies(names, parents, sources, uses, source_of):
    """Copy each node once per combination of the alternatives that it needs.

    Return a list of copies and a dict from each node to the position of its first copy. A copy is a
    pair (node, positions of the copies that it needs), and comes after these copies.
    parents, uses : per node, the nodes and the series (sets of alternatives) that it needs
    sources : per series, its nodes; source_of : dict from a node to its series"""
    used = [[u for k in series for u in sources[k]] for series in uses]
    needed = [(*some, *more) for some, more in zip(parents, used, strict=True)]
    copies: dict[int, list] = {}
    out: list[tuple[int, tuple[int, ...]]] = []
    first: dict[int, int] = {}
    serving: list[dict[int, int]] = []  # per copy a dict series -> source that it needs
    for v in _topological_order(needed):
        first[v], copies[v] = len(out), []
        for choice, at in _choices(v, parents, uses, sources, copies):
            serves = _combined_sources(v, at, source_of, serving)
            if serves is not None:
                copies[v].append((choice, len(out)))
                out.append((v, at))
                serving.append(serves)
        if not copies[v]:
            raise ArgumentError(
                f"{names[v]!r} must not need two sources that are alternatives to each other: "
                "leave it out of the formula, or leave alternatives out"
            )
    return out, first


def _combined_sources(v, parents, source_of, serving):
    """Return a dict from each series (set of alternatives) to its node that a copy of node v uses.

    Return None if the copy would use two nodes of one series.
    parents : positions of the copies that the new copy needs; serving : each earlier copy's dict
    source_of : dict from a node to its series"""
    combined = {source_of[v]: v} if v in source_of else {}
    for u in parents:
        for series, source in serving[u].items():
            if combined.setdefault(series, source) != source:
                return None
    return combined


def _choices(v, parents, uses, sources, copies):
    """Yield the consistent sets of copies, one of each node that node v needs, as pairs.

    A pair has a dict from each series (set of alternatives) to the alternative used, and the
    positions of the copies. copies : per earlier node, a list of pairs (such a dict, position)
    parents, uses : per node, the nodes and the series it needs; sources : per series, its nodes"""
    options = [copies[u] for u in parents[v]]
    for k in uses[v]:
        options.append([({k: s} | c, at) for s in sources[k] for c, at in copies[s]])
    for parts in product(*options):
        choice: dict[int, int] = {}
        for part, _ in parts:
            choice |= part
        # Two parents of one copy must need the same source.
        if all(choice[k] == s for part, _ in parts for k, s in part.items()):
            yield choice, tuple(dict.fromkeys(at for _, at in parts))


def _topological_order(parents):
    seen: set[int] = set()
    for root in range(len(parents)):
        stack = [(root, iter(parents[root]))] if root not in seen else []
        while stack:
            v, rest = stack[-1]
            u = next((u for u in rest if u not in seen), None)
            if u is None:
                stack.pop()
                if v not in seen:
                    seen.add(v)
                    yield v
            else:
                stack.append((u, iter(parents[u])))
