"""Prices, dependencies and alternatives as a user gives them, turned into plain tuples."""

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal

import numpy as np

from lodim.errors import ArgumentError
from lodim.report.numbers import is_missing

COSTS = (
    "costs must be a dict, a Series or a frame of two columns that gives each name a price, "
    "a function of a set of names, or None"
)
DEPENDS = (
    "depends_on must be a dict or Series of child to parents, a table with columns parent and "
    "child (or from and to), or a directed graph of networkx"
)
ALTERNATIVES = "alternatives must be a dict of a series to its sources"
LARGEST = 1e70  # price of one thing: sums of them are prices
ENDS = (("parent", "child"), ("from", "to"))


def costs(given):
    """The prices: ((name, price), ...), a function of a set of names, or None."""
    if given is None or callable(given):
        return given
    found = {}
    for name, price in _priced(given):
        name = str(name)
        if name in found:
            raise ArgumentError(f"costs name {name!r} twice")
        found[name] = _price(name, price)
    return tuple(found.items())


def depends_on(given):
    """What depends on what: ((child, (parent, ...)), ...)."""
    found = {}
    for child, parents in _edges(given):
        known = found.setdefault(str(child), {})
        for parent in _names(parents, f"depends_on[{str(child)!r}]"):
            if parent == str(child):
                raise ArgumentError(f"depends_on: {parent!r} cannot depend on itself")
            known[parent] = None
    return tuple((child, tuple(parents)) for child, parents in found.items() if parents)


def alternatives(given):
    """The series and their sources: ((series, (source, ...)), ...)."""
    if given is None:
        return ()
    pairs = given.items() if isinstance(given, Mapping) else given
    if not _is_pairs(pairs):
        raise ArgumentError(f"{ALTERNATIVES}, not {given!r}")
    found, series_of = {}, {}
    for series, sources in pairs:
        series = str(series)
        found[series] = _names(sources, f"alternatives[{series!r}]")
        if not found[series]:
            raise ArgumentError(f"alternatives: {series!r} has no source")
        for source in found[series]:
            if source in series_of:
                names = f"{series_of[source]!r} and of {series!r}"
                raise ArgumentError(f"alternatives: {source!r} is a source of {names}; of one only")
            series_of[source] = series
    for series in found:
        if series in series_of:
            names = f"{series!r} is a series, and a source of {series_of[series]!r}"
            raise ArgumentError(f"alternatives: {names}; a source is a thing of its own")
    return tuple(found.items())


def _priced(given):
    """Pairs of name and price."""
    if hasattr(given, "columns"):
        return _table_of_prices(given)
    if hasattr(given, "items"):
        return given.items()
    if not _is_pairs(given):
        raise ArgumentError(f"{COSTS}, not {given!r}")
    return given


def _table_of_prices(table):
    """The rows of a table with a column of names and one of prices."""
    columns = [_column(table, name) for name in table.columns]
    if len(columns) != 2:
        raise ArgumentError(
            f"a frame of costs has two columns, names and prices, not {len(columns)}"
        )
    numeric = [all(_is_number(v) for v in column) for column in columns]
    names, prices = columns[::-1] if numeric[0] and not numeric[1] else columns
    return list(zip(names, prices, strict=True))


def _price(name, price):
    """A price as float; an ArgumentError for what is none."""
    if not is_price(price):
        raise ArgumentError(
            f"the cost of {name!r} must be a number, 0 to {LARGEST:g}, not {price!r}"
        )
    return float(price)


def is_price(value):
    """Whether a value is a number, 0 or more, of which sums are prices too."""
    return _is_number(value) and 0.0 <= float(value) <= LARGEST


def _edges(given):
    """Pairs of child and parents."""
    if given is None:
        return ()
    if hasattr(given, "columns"):
        return _table_of_edges(given)
    if hasattr(given, "items"):
        return given.items()
    if hasattr(given, "edges") and hasattr(given, "is_directed"):
        if not given.is_directed():
            raise ArgumentError("depends_on: the graph has no directions; edges go parent -> child")
        return [(child, (parent,)) for parent, child in given.edges()]
    if not _is_pairs(given):
        raise ArgumentError(f"{DEPENDS}, not {given!r}")
    return given


def _table_of_edges(table):
    """Pairs of child and parent from a table of two columns."""
    names = {str(name).lower(): name for name in table.columns}
    for parent, child in ENDS:
        if {parent, child} <= set(names):
            ends = (_column(table, names[end]) for end in (child, parent))
            return list(zip(*ends, strict=True))
    names = ", ".join(map(repr, table.columns))
    raise ArgumentError(f"an edge table has columns parent and child, or from and to, not {names}")


def _column(table, name):
    """A column of a pandas or polars frame as a list."""
    return table[name].to_list()


def _names(given, where):
    """One name or several, as a tuple of text without repetition; none of a missing value."""
    if is_missing(given):
        return ()
    if isinstance(given, str | numbers.Number):
        given = (given,)
    if not isinstance(given, Iterable):
        raise ArgumentError(f"{where} must be a name or a list of names, not {given!r}")
    given = list(given)
    for name in given:
        if name is None or isinstance(name, float):
            raise ArgumentError(f"{where} holds {name!r}, which is no name")
    return tuple(dict.fromkeys(map(str, given)))


def _is_pairs(given):
    """Whether a value is a collection of pairs."""
    pairs = not isinstance(given, str | bytes) and isinstance(given, Iterable)
    return pairs and all(isinstance(p, tuple | list) and len(p) == 2 for p in given)


def _is_number(value):
    """Whether a value is a real number, no bool."""
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool | np.bool_)
