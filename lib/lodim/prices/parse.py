"""Conversion of the user's prices, dependencies and alternatives to plain tuples."""

import numbers
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from lodim.checks import listed
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
LARGEST = 1e70  # largest price of one purchase, so that sums are finite
ENDS = (("parent", "child"), ("from", "to"))


def costs(value):
    """Return the user's costs as ((name, price), ...), a function of a set of names, or None."""
    if value is None or callable(value):
        return value
    out = {}
    for name, price in _priced(value):
        name = str(name)
        if name in out:
            raise ArgumentError(f"costs must have each name once; {name!r} occurs twice")
        if not is_price(price):
            raise ArgumentError(
                f"the cost of {name!r} must be a number, 0 to {LARGEST:g}, not {price!r}"
            )
        out[name] = float(price)
    return tuple(out.items())


def depends_on(value):
    """Return dependencies as pairs: a child, and the tuple of parents that it needs."""
    out = {}
    for child, parents in _edges(value):
        known = out.setdefault(str(child), {})
        for parent in _names(parents, f"depends_on[{str(child)!r}]"):
            if parent == str(child):
                raise ArgumentError(f"depends_on: {parent!r} cannot depend on itself")
            known[parent] = None
    return tuple((child, tuple(parents)) for child, parents in out.items() if parents)


def alternatives(value):
    """Return the user's sets of interchangeable items as pairs (name of set, tuple of items)."""
    if value is None:
        return ()
    pairs = value.items() if isinstance(value, Mapping) else value
    if not _is_pairs(pairs):
        raise ArgumentError(f"{ALTERNATIVES}, not {value!r}")
    out, series_of = {}, {}
    for series, sources in pairs:
        series = str(series)
        out[series] = _names(sources, f"alternatives[{series!r}]")
        if not out[series]:
            raise ArgumentError(f"alternatives: {series!r} has no source")
        for source in out[series]:
            if source in series_of:
                names = f"{series_of[source]!r} and of {series!r}"
                raise ArgumentError(
                    f"alternatives: {source!r} must be a source of one series only, not of {names}"
                )
            series_of[source] = series
    for series in out:
        if series in series_of:
            names = f"{series!r} is a series, and a source of {series_of[series]!r}"
            raise ArgumentError(f"alternatives: {names}; a source must not be a series")
    return tuple(out.items())


def _priced(value):
    """Return pairs (name, price) from costs given as a mapping, a frame or pairs."""
    if not hasattr(value, "columns"):
        return _pairs(value, COSTS)
    columns = [value[name].to_list() for name in value.columns]
    if len(columns) != 2:
        raise ArgumentError(
            f"a frame of costs must have two columns, names and prices, not {len(columns)}"
        )
    numeric = [all(_is_number(v) for v in column) for column in columns]
    return zip(*(columns[::-1] if numeric[0] and not numeric[1] else columns), strict=True)


def is_price(value):
    """Return whether a value can be a price: a number from 0 to the largest allowed."""
    return _is_number(value) and 0.0 <= float(value) <= LARGEST


def _edges(value):
    """Return pairs (child, parents) from dependencies given as mapping, frame, graph or pairs."""
    if value is None:
        return ()
    if hasattr(value, "columns"):
        names = {str(name).lower(): name for name in value.columns}
        for parent, child in ENDS:
            if {parent, child} <= set(names):
                ends = (value[names[end]].to_list() for end in (child, parent))
                return zip(*ends, strict=True)
        known = ", ".join(map(repr, value.columns))
        raise ArgumentError(
            f"an edge table must have columns parent and child, or from and to, not {known}"
        )
    if hasattr(value, "edges") and hasattr(value, "is_directed"):
        if not value.is_directed():
            raise ArgumentError("depends_on: the graph must have directed edges, parent -> child")
        return [(child, (parent,)) for parent, child in value.edges()]
    return _pairs(value, DEPENDS)


def _pairs(value, allowed):
    """Return the pairs of a mapping, or `value` itself if it is a sequence of pairs.

    allowed : start of the error message, which says what is allowed"""
    if hasattr(value, "items"):
        return value.items()
    if not _is_pairs(value):
        raise ArgumentError(f"{allowed}, not {value!r:.80}")
    return value


def _names(value, where):
    """Return one or several names as a tuple of distinct texts; () if `value` is missing.

    where : name of the argument, for error messages"""
    if is_missing(value):
        return ()
    if isinstance(value, str | numbers.Number):
        value = (value,)
    names = listed(value)
    if names is None:
        raise ArgumentError(f"{where} must be a name or a list of names, not {value!r:.80}")
    for name in names:
        if name is None or isinstance(name, float):
            raise ArgumentError(f"{where} must have names, not {name!r}")
    return tuple(dict.fromkeys(map(str, names)))


def _is_pairs(value):
    pairs = listed(value)
    return pairs is not None and all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs)


def _is_number(value):
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool | np.bool_)
