"""Limits that a user sets to an assignment: by names of features, and for the rows of the data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lodim.errors import ArgumentError
from lodim.models.ripr.convex import Limits

ENTRIES = ("prices", "budget", "groups", "hard", "further")


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, checked.

    names : (p,) of the features
    prices : (p,) of the features, or None; a view costs what its features cost
    budget : a number, or (N,) one for each row of the data, or None
    groups : (N,) codes, or None
    hard : one view for each row
    further : callable, (B, names of the views) -> list of CVXPY constraints, or None
    """

    names: tuple
    prices: np.ndarray | None
    budget: Any
    groups: np.ndarray | None
    hard: bool
    further: Callable[[Any, list], list] | None

    @classmethod
    def of(cls, given, names, n):
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
        if further is not None and not callable(further):
            raise ArgumentError(f"further must be a function of B and the views, not {further!r}")
        return cls(
            tuple(names), _prices(given.get("prices"), names), _budget(given.get("budget"), n),
            _groups(given.get("groups"), n), hard, further,
        )  # fmt: skip

    def at(self, views, rows):
        """The Limits of some views (d*, D) and rows (m,), positions in the data."""
        prices = None
        if self.prices is not None:
            prices = np.where(views >= 0, self.prices[views], 0.0).sum(axis=1)
        further = None
        if self.further is not None:
            named = [tuple(self.names[f] for f in view if f >= 0) for view in views]
            further = lambda B: self.further(B, named)  # noqa: E731
        return Limits(
            cost=prices, budget=self.budget[rows] if np.ndim(self.budget) else self.budget,
            groups=None if self.groups is None else self.groups[rows], hard=self.hard,
            further=further,
        )  # fmt: skip


def _prices(given, names):
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ArgumentError(f"prices must be a dict of features and their prices, not {given!r}")
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ArgumentError(f"prices has {unknown[0]!r}, which is no feature of the model")
    out = np.array([given.get(name, 0.0) for name in names], dtype=object)
    return _numbers(out, "prices")


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
