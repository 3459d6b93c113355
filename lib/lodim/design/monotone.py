"""Monotone effects: checks of the argument monotone=, and the direction of each feature."""

import numpy as np

from lodim.design.factors import Expression, Levels, Missing, Numeric, needs
from lodim.errors import ArgumentError
from lodim.formula.formula import is_compressed

WAYS = {"increasing": 1, "decreasing": -1}


def check_ways(monotone):
    """Raise unless `monotone` is a dict: column name -> "increasing" or "decreasing"."""
    if not (isinstance(monotone, dict) and all(way in WAYS.values() for way in ways(monotone))):
        raise ArgumentError(
            'monotone must be one direction per column, as in {"age": "increasing"}, '
            f"of increasing or decreasing, not {monotone!r:.80}"
        )


def ways(monotone):
    """Return 1 (increasing), -1 (decreasing) or None (invalid) per column of a dict, as a list."""
    return [WAYS.get(way) if isinstance(way, str) else None for way in monotone.values()]


def directions(monotone, design, family):
    """Return 1, -1 or 0 (increasing, decreasing, free) per feature, from a dict of directions.

    Raise ArgumentError unless exactly one term has the column, as a number or ordered category."""
    if family.n_functions > 1:
        raise ArgumentError(
            f"monotone= needs a numeric response or two classes, not {family.n_scores} classes: "
            "leave monotone= out"
        )
    found = np.zeros(len(design.names), int)
    for (name, _), way in zip(monotone.items(), ways(monotone), strict=True):
        own = [k for k, term in enumerate(design.terms) if _names(term, name)]
        if len(own) != 1 or not _keeps_order(design.terms[own[0]], name):
            has = ", ".join(design.term_names[k] for k in own) or "no term"
            raise ArgumentError(
                f"monotone= needs {name!r} as a numeric column or an ordered category that is "
                f"not part of other terms, but the formula has {has}: leave the column out of "
                "monotone=, or out of other terms"
            )
        found[np.asarray(design.term_of) == own[0]] = way
    return tuple(found.tolist())


def _names(term, name):
    """Return whether a term uses a column's values; an indicator of missing values does not."""
    return any(name in needs(factor) for factor in term if not isinstance(factor, Missing))


def _keeps_order(term, name):
    """Return whether a term has an order: a number, two levels, or an ordered category."""
    if len(term) != 1 or isinstance(term[0], Numeric):
        return len(term) == 1
    factor = term[0]
    if isinstance(factor, Expression):
        return is_compressed(factor.name, name)
    if not isinstance(factor, Levels) or factor.called or factor.missing is not None:
        return False
    if factor.matrix is None:
        return len(factor.labels) == 1
    return bool((np.diff(factor.matrix, axis=0) >= 0.0).all())
