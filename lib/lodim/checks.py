"""Checks of arguments, shared by the settings of all models."""

from typing import Any

import numpy as np

from lodim.errors import ArgumentError

INFINITY = float("inf")


def check(record: Any, name: str, kind: Any, allowed: Any, words: str) -> None:
    """Raise unless a field of a frozen record is of a kind and allowed; NumPy scalars become plain.

    `kind` is a type or several; True and False are numbers for `bool` alone. `words` says what is
    allowed.
    """
    value = getattr(record, name)
    if isinstance(value, np.generic):
        value = value.item()
        object.__setattr__(record, name, value)
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not right or not allowed(value):
        raise ArgumentError(f"{name} must be {words}, not {value!r}")


def check_count(record: Any, name: str, least: int = 1) -> None:
    """Raise unless a field is a whole number from `least`."""
    check(record, name, int, lambda v: v >= least, f"a whole number from {least}")


def check_size(record: Any, name: str) -> None:
    """Raise unless a field is a finite number, 0 or more."""
    check(record, name, (int, float), lambda v: 0 <= v < INFINITY, "0 or more")


def check_share(record: Any, name: str) -> None:
    """Raise unless a field is between 0 and 1."""
    check(record, name, (int, float), lambda v: 0 <= v <= 1, "between 0 and 1")


def check_choice(record: Any, name: str, allowed: Any) -> None:
    """Raise unless a field is one of some texts."""
    value = getattr(record, name)
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
