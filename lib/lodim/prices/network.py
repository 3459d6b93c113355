"""The graph of purchases: nodes (columns and purchases) with a cost, and what each needs."""

from collections.abc import Callable
from functools import cached_property
from itertools import product

import numpy as np

from lodim import forms
from lodim.errors import ArgumentError


@forms.record
class Network:
    """Graph of V nodes with costs; a node needs its parents, and everything that they need.

    A node is a column, a term or another purchase; a series is a set of interchangeable sources.

    names : names of the nodes, parents before children; copies of a node have the same name
    cost : (V,) costs, at least zero
    parents : per node a tuple of the parents' positions
    columns : per node a tuple of its columns of X; empty for a pure purchase
    series : number of the series of which the node is a source, or -1
    base : position of a node's first copy, or its own position without copies. A node that needs a
        series has one copy per source of the series
    set_cost : callable(frozenset of names) -> float, a submodular cost instead of the sum; or
        None
    """

    names: tuple[str, ...] = forms.several("V")
    cost: np.ndarray = forms.real("V", least=0)
    parents: tuple[tuple[int, ...], ...] = forms.several("V", forms.several(None, forms.whole()))
    columns: tuple[tuple[int, ...], ...] = forms.several(
        "V", forms.several(None, forms.whole(most="p - 1"))
    )
    series: np.ndarray = forms.whole("V", least=-1)
    base: np.ndarray = forms.whole("V", most="V - 1")
    set_cost: Callable | None = None

    def _check_fields(self):
        """Raise ValueError unless parents come before their children."""
        for v, parents in enumerate(self.parents):
            if any(u >= v for u in parents):
                raise ValueError(f"node {v} of the network has parents {parents}")

    def __len__(self):
        return len(self.names)

    @cached_property
    def needs(self):
        """(V, V) bool: whether node v (row) needs node u (column); each node needs itself.

        A node is a column or purchase."""
        out = np.eye(len(self), dtype=bool)
        for v, parents in enumerate(self.parents):
            for u in parents:
                out[v] |= out[u]
        return out

    @cached_property
    def children(self):
        """Per node (column or purchase) the positions of nodes that need it directly, a tuple."""
        out: list[list[int]] = [[] for _ in self.names]
        for v, parents in enumerate(self.parents):
            for u in parents:
                out[u].append(v)
        return tuple(tuple(sorted(set(nodes))) for nodes in out)

    def closed(self, on):
        """Return which nodes are in `on` (V,) bool or needed by these, (V,) bool.

        A node is a column or purchase."""
        on = np.array(on, dtype=bool)
        for v in range(len(self) - 1, -1, -1):
            if on[v] and self.parents[v]:
                on[list(self.parents[v])] = True
        return on

    def price(self, on):
        """Return the cost of the nodes `on` (V,) bool and of all they need, each paid once.

        A node is a column or purchase."""
        paid = np.unique(self.base[self.closed(on)])
        if self.set_cost is not None:
            return float(self.set_cost(frozenset(self.names[v] for v in paid)))
        return float(self.cost[paid].sum())


def unfold(names, cost, parents, columns, sources=(), uses=None, set_cost=None):
    """Return the Network of nodes in any order, with copies of nodes that need a series.

    A series is a set of interchangeable sources. A node gets one copy per source of the series,
    with its own coefficients, as in the latent form of Jacob, Obozinski and Vert (2009). Copies of
    a source share its cost.

    Parameters
    ----------
    names, cost, parents, columns
        Per node its name, cost, positions of the nodes it needs, and columns of X; in any order.
    sources : tuple of tuples
        Positions of the nodes that are sources of each series.
    uses : (V,) tuples or None
        Numbers of the series that each node needs in addition to its parents.
    set_cost : callable or None
        Cost of a frozenset of names, instead of the sum of costs.

    Returns
    -------
    Network

    Raises
    ------
    ArgumentError
        If a node needs two sources of the same series.
    """
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
    """Return a list of (node, parents) of each copy, parents first, and each node's first copy.

    A node has one copy per combination of sources of the series (sets of alternatives) it needs.
    uses : series of each node; source_of : series of which a node is a source, or -1"""
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
    """Return a dict series -> source that a copy of node v with these parents needs.

    A node is a column or purchase, a series a set of alternative sources. None if the copy would
    need two sources of one series.
    """
    combined = {source_of[v]: v} if v in source_of else {}
    for u in parents:
        for series, source in serving[u].items():
            if combined.setdefault(series, source) != source:
                return None
    return combined


def _choices(v, parents, uses, sources, copies):
    """Yield (dict series -> source, parents of the copy) for each consistent choice of sources.

    v is the node that is copied, uses the series (sets of alternatives) of each node, and copies
    the copies of its parents."""
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
    """Yield positions of nodes so that parents come first, otherwise in the given order."""
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
