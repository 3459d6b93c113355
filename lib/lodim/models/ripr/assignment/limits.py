"""Limits that a user sets to an assignment: by names of features, and for the rows of the data."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lodim.design import factors as factor
from lodim.errors import ArgumentError
from lodim.models.ripr.assignment.constrained import Limits

MOST_NAMES = 12  # that a message lists
ENTRIES = ("prices", "budget", "groups", "hard", "further")


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, checked.

    names : (p,) of the features
    prices : (q,) of what is paid for, or None
    parts : (q, p) bool, the features that each of these has: a view with any of them pays
    budget : a number, or (N,) one for each row of the data, or None
    groups : (N,) codes, or None
    hard : one view for each row
    further : callable, (B, names of the views) -> list of CVXPY constraints, or None
    """

    names: tuple
    prices: np.ndarray | None
    parts: np.ndarray | None
    budget: Any
    groups: np.ndarray | None
    hard: bool
    further: Callable[[Any, list], list] | None

    @classmethod
    def of(cls, given, design, n):
        """From the dict that a user gives, for n rows of data."""
        if not isinstance(given, dict):
            raise ArgumentError(f"limits must be a dict, not {given!r}")
        unknown = [name for name in given if name not in ENTRIES]
        if unknown:
            raise ArgumentError(
                f"limits has no entry {unknown[0]!r}; it may have: {', '.join(ENTRIES)}"
            )
        if (given.get("prices") is None) != (given.get("budget") is None):
            raise ArgumentError("prices and budget go together: give both to limits, or none")
        hard, further = given.get("hard", False), given.get("further")
        if not isinstance(hard, bool):
            raise ArgumentError(f"hard must be True or False, not {hard!r}")
        _check_further(further)
        return cls(
            design.names, *_prices(given.get("prices"), design), _budget(given.get("budget"), n),
            _groups(given.get("groups"), n), hard, further,
        )  # fmt: skip

    def at(self, views, rows):
        """The Limits of some views (d*, D) and rows (m,), positions in the data."""
        cost = None
        if self.prices is not None:
            has = np.append(self.parts, np.zeros((len(self.parts), 1), bool), axis=1)
            cost = self.prices @ has[:, views].any(axis=2)  # the last column is that of padding
        further = None
        if self.further is not None:
            named = [tuple(self.names[f] for f in view if f >= 0) for view in views]
            further = lambda B: _rules(self.further(B, named))  # noqa: E731
        return Limits(
            cost=cost, budget=self.budget[rows] if np.ndim(self.budget) else self.budget,
            groups=None if self.groups is None else self.groups[rows], hard=self.hard,
            further=further,
        )  # fmt: skip


def _check_further(further):
    if further is None:
        return
    words = f"further must be a function of two arguments, B and the views, not {further!r}"
    if not callable(further):
        raise ArgumentError(words)
    try:
        inspect.signature(further).bind(None, None)
    except TypeError:
        raise ArgumentError(words) from None
    except ValueError:  # of some functions in C nothing is known
        return


def _rules(given):
    """The constraints that a user's function has returned."""
    if not isinstance(given, list | tuple):
        raise ArgumentError(f"further must return a list of CVXPY constraints, not {given!r}")
    for rule in given:
        if not hasattr(rule, "dual_variables"):
            raise ArgumentError(f"further must return CVXPY constraints, and {rule!r} is none")
    return list(given)


def _prices(given, design):
    """Prices of columns of the data, or of single features, and the features that each has."""
    if given is None:
        return None, None
    if not isinstance(given, Mapping):
        raise ArgumentError(f"prices must be a dict of columns and their prices, not {given!r}")
    parts = _parts(design)
    unknown = [name for name in given if name not in parts]
    if unknown:
        known = ", ".join([*list(parts)[:MOST_NAMES], *["..."] * (len(parts) > MOST_NAMES)])
        raise ArgumentError(
            f"prices has {unknown[0]!r}, which is no feature and no column of the model; it may "
            f"have: {known}"
        )
    found = np.array([parts[name] for name in given]).reshape(len(given), len(design.names))
    return _numbers(list(given.values()), "prices"), found


def _parts(design):
    """Which features are made of a column (p,), by its name; and each feature by its own."""
    needs = [{name for part in term for name in factor.needs(part)} for term in design.terms]
    made = {name: np.array([name in needs[t] for t in design.term_of]) for name in design.features}
    single = {name: np.array(design.names) == name for name in design.names}
    return single | made


def _budget(given, n):
    if given is None or np.ndim(given) == 0:
        return None if given is None else float(_numbers([given], "budget")[0])
    return _numbers(_of_rows(given, "budget", n), "budget")


def _groups(given, n):
    """Codes of groups; a row without a group is one by itself."""
    if given is None:
        return None
    codes = pd.factorize(pd.Series(list(_of_rows(given, "groups", n)), dtype=object))[0]
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(len(alone))
    return codes


def _of_rows(given, name, n):
    """An argument with an entry for each row of the data."""
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != n:
        raise ArgumentError(f"{name} must have an entry for each of the {n} rows of the data")
    return np.asarray(given)


def _numbers(given, name):
    try:
        out = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numbers") from None
    if not (np.isfinite(out) & (out >= 0)).all():
        raise ArgumentError(f"{name} must be numbers, 0 or more")
    return out
