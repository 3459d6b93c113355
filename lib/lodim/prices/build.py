"""Construction of a graph of purchases from a formula's terms, prices and dependencies."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

import numpy as np

from lodim.design import factors
from lodim.design.design import columns_read
from lodim.design.features import places
from lodim.errors import ArgumentError, FormulaError
from lodim.prices.network import unfold
from lodim.prices.parse import LARGEST, is_price
from lodim.text import first_few, near_matches, suggestion


@dataclass
class Graph:
    """Graph of items to buy (columns, terms and other purchases) and the items that each needs.

    A series is a quantity that any one of several items can supply."""

    columns: dict = field(default_factory=dict)  # from node to its columns of X
    needs: dict = field(default_factory=dict)  # from node to the nodes and series that it needs
    bought: dict = field(default_factory=dict)  # nodes with a price; values are None
    sources: dict = field(default_factory=dict)  # from series to its interchangeable nodes

    def add(self, name, *, columns=(), needs=(), priced=False):
        """Add an item, or give it more columns of X and needs; `priced` if it has a price."""
        self.columns[name] = (*self.columns.get(name, ()), *columns)
        self.needs[name] = tuple(dict.fromkeys((*self.needs.get(name, ()), *needs)))
        if priced:
            self.bought[name] = None


def make_network(design, settings, columns):
    """Return the Network of all items that a model's terms need, with prices.

    Items are columns, terms and other purchases; the Network has what each item needs.
    settings : Settings with costs, depends_on, alternatives; columns : names of data columns"""
    graph = Graph()
    _add_terms(graph, design, _squeezed({*_priced(settings), *_mentioned(settings)}))
    formula = tuple(graph.columns)
    _check_priced(settings, {*formula, *columns}, columns)
    names = _NameFinder(graph, settings)
    for series, sources in settings.alternatives:
        graph.sources[series] = tuple(names.find(s, "alternatives") for s in sources)
    for child, parents in settings.depends_on:
        if child in graph.sources:
            raise ArgumentError(
                f"depends_on: {child!r} is a series of alternatives; give the needs of each "
                "source instead"
            )
        child = names.find(child, "depends_on")
        graph.add(child, needs=[names.find(p, "depends_on", child) for p in parents])
    needed = {name for needs in graph.needs.values() for name in needs}
    for series in graph.sources:
        if series not in needed:
            raise ArgumentError(
                f"alternatives: no item depends on {series!r}: name it in depends_on of the "
                "items that need one of its sources"
            )
    order = _in_order(graph)
    graph = _used_part(graph, formula)
    _check_copies(graph, [n for n in order if n in graph.columns or n in graph.sources])
    cost, set_cost = _prices(graph, names, settings.costs)
    at = {name: v for v, name in enumerate(graph.columns)}
    number = {series: k for k, series in enumerate(graph.sources)}
    parents = [tuple(at[n] for n in needs if n in at) for needs in graph.needs.values()]
    uses = [tuple(number[n] for n in needs if n in number) for needs in graph.needs.values()]
    sources = [tuple(at[s] for s in nodes) for nodes in graph.sources.values()]
    return unfold(tuple(at), cost, parents, [*graph.columns.values()], sources, uses, set_cost)


def unused_prices(network, settings):
    used = _squeezed(network.names)
    return [name for name in _priced(settings) if _squeeze(name) not in used]


def derived_names(design):
    """Return names of terms and factors computed from columns, such as a:log(b) and log(b)."""
    parts = {part.name for term in design.terms for part in term if not _plain((part,))}
    return parts | {design.term_names[t] for t, term in enumerate(design.terms) if not _plain(term)}


# The formula -------------------------------------------------------------------------------------


def _add_terms(graph, design, named):
    """Add the columns of the data and the terms of a Design to a Graph of items to buy.

    named : set of the names in the user's settings, such as `costs`"""
    for name in design.features:
        graph.add(name, priced=True)
    derived = {design.term_names[t] for t, term in enumerate(design.terms) if not _plain(term)}
    for name, (first, end, term) in zip(design.term_names, places(design.terms), strict=True):
        columns = list(range(first, end))
        if _plain(term):
            graph.add(term[0].name, columns=columns)
            continue
        needs = []
        for part in term:
            # A factor of a product is an item if it is also a term, or if the user names it.
            node = len(term) > 1 and (part.name in derived or _squeeze(part.name) in named)
            if node and not _plain((part,)):
                graph.add(part.name, needs=factors.needs(part))
            needs += [part.name] if node else factors.needs(part)
        graph.add(name, columns=columns, needs=needs)


def _plain(term):
    part = term[0]
    derived = isinstance(part, factors.Expression) or getattr(part, "called", False)
    return len(term) == 1 and not derived


# What the user says ------------------------------------------------------------------------------


class _NameFinder:
    """Lookup of the node (column, term or purchase) that a name in the user's arguments means."""

    def __init__(self, graph, settings):
        self.graph, self.series = graph, [series for series, _ in settings.alternatives]
        self.priced = _priced(settings)
        self.any = callable(settings.costs)
        self.squeezed = {_squeeze(name): name for name in graph.columns}
        for series in self.series:
            if series in graph.columns:
                raise ArgumentError(
                    f"alternatives: {series!r} is also a column or term of the formula; give the "
                    "series another name"
                )
            if series in self.priced:
                raise ArgumentError(
                    f"costs: {series!r} is a series of alternatives; give prices to its sources "
                    "instead"
                )

    def find(self, name, where, child=None):
        """Return the item that a user's name means; add it to the graph if it is new and priced.

        where : name of the user's argument, for error messages
        child : name of the item that needs this one, for error messages, or None"""
        if name in self.graph.columns or name in self.series:
            return name
        if _squeeze(name) in self.squeezed:
            return self.squeezed[_squeeze(name)]
        if self.any or name in self.priced:
            self.graph.add(name, priced=True)
            return name
        for_what = f", which {child!r} depends on," if child else ""
        known = list(dict.fromkeys([*self.graph.columns, *self.series, *self.priced]))
        raise ArgumentError(
            f"{where}: {name!r}{for_what} is neither in the formula nor in costs; "
            f"{suggestion(name, known)} (an item that is not a column needs a price in costs)"
        )


def _mentioned(settings):
    pairs = (*settings.depends_on, *settings.alternatives)
    return {*(name for name, _ in pairs), *(n for _, several in pairs for n in several)}


def _priced(settings):
    return {} if callable(settings.costs) else dict(settings.costs or ())


def _squeeze(name):
    """Return a name without blanks, so that I(x**2) and I(x ** 2) are one term."""
    return "".join(name.split()) if "(" in name or ":" in name else name


def _squeezed(names):
    return {_squeeze(name) for name in names}


# Checks ------------------------------------------------------------------------------------------


def _check_priced(settings, known, columns):
    """Raise ArgumentError if a name in `costs` seems to be misspelt.

    known : names in the formula and data; columns : names of the data's columns"""
    known, priced = {*known, *_mentioned(settings)}, _squeezed(_priced(settings))
    squeezed = _squeezed(known)
    unpriced = sorted(name for name in known if _squeeze(name) not in priced)
    for name in _priced(settings):
        unknown = _squeeze(name) not in squeezed and not _is_term(name, columns)
        if unknown and near_matches(name, unpriced):
            raise ArgumentError(
                f"costs: {name!r} is neither a column or term of the data nor named in depends_on "
                f"or alternatives; {suggestion(name, unpriced)}"
            )


def _is_term(name, columns):
    try:
        columns_read(f"~ {name}", columns)
    except FormulaError:
        return False
    return True


def _needed(graph, name):
    return graph.sources[name] if name in graph.sources else graph.needs[name]


def _in_order(graph):
    needs = {name: _needed(graph, name) for name in (*graph.needs, *graph.sources)}
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ArgumentError(f"depends_on must not have a circle: {circle}") from None


def _used_part(graph, formula):
    """Return the part of a Graph that the nodes named in `formula` need, also indirectly."""
    used, rest = set(), list(formula)
    while rest:
        name = rest.pop()
        if name not in used:
            used.add(name)
            rest += _needed(graph, name)
    kept = (
        {name: value for name, value in part.items() if name in used}
        for part in (graph.columns, graph.needs, graph.bought)
    )
    sources = {name: names if name in used else () for name, names in graph.sources.items()}
    return Graph(*kept, sources)


def _check_copies(graph, order):
    """Raise ArgumentError if the items of a Graph have more than 20,000 copies.

    An item has a copy for each combination of the alternatives that it needs.
    order : names of items and series, each after those that it needs"""
    series, copies = {}, 0
    for name in order:
        direct = {n for n in _needed(graph, name) if n in graph.sources}
        series[name] = direct.union(*(series[n] for n in _needed(graph, name)))
        if name not in graph.sources:
            copies += math.prod(len(graph.sources[k]) for k in series[name])
    if copies > 20_000:
        raise ArgumentError(
            f"the alternatives would need {copies:,} copies of items, but fewer than 20,000 are "
            "allowed"
        )


# Prices ------------------------------------------------------------------------------------------


def _prices(graph, names, costs):
    """Return a list of the items' prices, and the user's price function or None.

    graph : Graph of items to buy; names : _NameFinder of the items
    costs : pairs (name, price), a function from a set of names to its price, or None"""
    if callable(costs):
        set_cost = _checked(costs, frozenset(graph.bought))
        single = {name: set_cost(frozenset([name])) for name in graph.bought}
        _check_monotone(set_cost, list(graph.bought))
        return [single.get(name, 0.0) for name in graph.columns], set_cost
    if costs is None:  # each priced item costs 1
        return [float(name in graph.bought) for name in graph.columns], None
    price = {names.squeezed.get(_squeeze(name), name): value for name, value in costs}
    missing = [name for name in graph.bought if name not in price]
    if missing:
        raise ArgumentError(
            f"costs lack {first_few(missing)}: if costs are given, every column that the formula "
            "uses needs a price, 0 if it is free"
        )
    return [price.get(name, 0.0) for name in graph.columns], None


def _checked(costs, bought):
    """Return the user's cost function `costs` with checks; names not in `bought` are ignored."""

    @lru_cache(maxsize=200_000)
    def price(names):
        try:
            value = costs(names)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ArgumentError(f"costs({_set(names)}) raised {reason}") from error
        if not is_price(value):
            raise ArgumentError(
                f"costs({_set(names)}) must be a number, 0 to {LARGEST:g}, not {value!r}"
            )
        return float(value)

    def set_cost(names):
        return price(names & bought)

    if set_cost(frozenset()) != 0.0:
        raise ArgumentError(f"costs(frozenset()) must be 0, not {set_cost(frozenset())!r}")
    return set_cost


def _check_monotone(set_cost, names):
    rng = np.random.default_rng(0)
    chains = [names, *([names[k] for k in rng.permutation(len(names))] for _ in range(5))]
    for chain in chains:
        before = 0.0
        for k, name in enumerate(chain[:50]):
            now = set_cost(frozenset(chain[: k + 1]))
            if now < before - 1e-9 * max(1.0, before):
                raise ArgumentError(
                    f"costs must not fall if items are added; they fall from {before!r} to "
                    f"{now!r} as {name!r} is added to {_set(chain[:k])}"
                )
            before = now


def _set(names):
    shown = ", ".join(map(repr, sorted(names)[:8]))
    return "{" + shown + (", ..." if len(names) > 8 else "") + "}"
