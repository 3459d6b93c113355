"""Checks of arguments, used by the settings of all models."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from lodim.errors import ArgumentError

INFINITY = float("inf")
LARGEST = 2**53  # largest seed: float64 represents all integers up to it
MAX_SIZE = 1e100  # largest penalty or tolerance
MOST_COUNT = 100_000  # largest number of stages, starts, penalties, folds, refits or features
MOST_ROWS = 2**31 - 1  # largest number of rows, and of iterations of an optimizer
MOST_THREADS = 1024


def check(record: Any, name: str, kind: Any, allowed: Any, words: str) -> None:
    """Raise ArgumentError unless a field of a dataclass has a valid value.

    name : name of the field of `record`
    kind : type of valid values (a bool is no int)
    allowed : function that tests a value
    words : description of valid values"""
    value = getattr(record, name)
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    _require(right and allowed(value), name, words, value)


def _require(is_valid: Any, name: str, words: str, value: Any) -> None:
    """Raise ArgumentError "<name> must be <words>, not <value>", unless `is_valid`."""
    if not is_valid:
        raise ArgumentError(f"{name} must be {words}, not {value!r:.80}")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_count(record: Any, name: str, least: int = 1, most: int = MOST_COUNT) -> None:
    """Raise ArgumentError unless a record's field `name` is an integer from `least` to `most`."""
    object.__setattr__(record, name, whole(name, getattr(record, name), least, most))


def check_seed(record: Any) -> None:
    """Raise ArgumentError unless a record's field `seed` is from 0 to 2^53; convert it to int."""
    object.__setattr__(record, "seed", as_seed(record.seed))


def check_threads(record: Any) -> None:
    """Raise ArgumentError unless a record's field `threads` is None or from 1 to 1024."""
    if record.threads is not None:
        object.__setattr__(record, "threads", as_threads(record.threads))


def check_size(record: Any, name: str) -> None:
    """Raise ArgumentError unless the named field of a record is a number from 0 to 1e100."""
    words = f"0 or more (up to {MAX_SIZE:g})"
    check(record, name, (int, float), lambda v: 0 <= v <= MAX_SIZE, words)
    if getattr(record, name) > LARGEST:  # NumPy stores larger integers as objects
        object.__setattr__(record, name, float(getattr(record, name)))


def check_share(record: Any, name: str) -> None:
    """Raise ArgumentError unless the named field of a record is a number from 0 to 1."""
    check(record, name, (int, float), lambda v: 0 <= v <= 1, "between 0 and 1")


def check_choice(record: Any, name: str, allowed: Any) -> None:
    """Raise ArgumentError unless a record's field `name` is one of the allowed strings."""
    one_of(name, getattr(record, name), allowed)


def one_of(name: str, value: Any, allowed: Any) -> None:
    """Raise ArgumentError unless an argument is one of the allowed strings."""
    right = isinstance(value, str) and value in allowed
    _require(right, name, f"one of {', '.join(allowed)}", value)


def among(name: str, value: Any, allowed: Sequence[Any]) -> int:
    """Return the position of an argument in a list of allowed values; else raise ArgumentError."""
    right = isinstance(value, str | int | float | np.number | np.bool_) and value in allowed
    _require(right, name, f"one of {', '.join(map(repr, allowed))}", value)
    return list(allowed).index(value)


def whole(name: str, value: Any, least: int = 1, most: int = MOST_COUNT) -> int:
    """Return an argument as int; raise unless it is an integer from `least` to `most`."""
    right = isinstance(value, int | np.integer) and not isinstance(value, bool)
    words = f"an integer from {least} to {most:,}"
    _require(right and least <= value <= most, name, words, value)
    return int(value)


def as_seed(value: Any) -> int:
    """Return the argument `seed`; raise unless it is an integer from 0 to 2^53."""
    return whole("seed", value, 0, LARGEST)


def as_threads(value: Any, name: str = "threads") -> int:
    """Return an argument as a number of threads; raise unless it is an integer from 1 to 1024."""
    return whole(name, value, 1, MOST_THREADS)


def number(name: str, value: Any, least: float = -MAX_SIZE, most: float = MAX_SIZE) -> float:
    """Return an argument as float; raise unless it is a number from `least` to `most`."""
    words = f"a number from {least:g} to {most:g}"
    _require(_is_real(value) and least <= value <= most, name, words, value)
    return float(value)


def numbers(name: str, values: Any) -> np.ndarray:
    """Return one or several finite numbers as an array of floats (n,); raise if not valid."""
    return _as_floats(name, values, np.isfinite, "finite numbers, at least one")


def _as_floats(name, values, allowed, words):
    """Return the numbers `values` as floats (n,); raise ArgumentError unless all are allowed.

    allowed : allowed(floats) returns bools (n,), whether each is allowed
    words : description of allowed numbers, after "must be" in the error"""
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be numbers, not {values!r:.80}") from None
    _require(array.ndim == 1 and array.size and allowed(array).all(), name, words, values)
    return array


def sizes(name: str, values: Any) -> np.ndarray:
    """Return numbers from 0 to 1e100 as an array of floats (n,); else raise ArgumentError."""
    words = f"at least one number, each 0 or more (up to {MAX_SIZE:g})"
    array = np.atleast_1d(np.asarray(values, dtype=object))
    _require(array.ndim == 1 and array.size, name, words, values)
    for value in array:
        _require(_is_real(value) and 0 <= value <= MAX_SIZE, name, words, value)
    return array.astype(float)


def shares(name: str, values: Any) -> np.ndarray:
    """Return numbers between 0 and 1 (exclusive) as floats (n,); else raise ArgumentError."""
    return _as_floats(name, values, lambda v: (v > 0) & (v < 1), "between 0 and 1")


def listed(value: Any) -> list | None:
    """Return the entries of a collection as a list, or None for text and single values."""
    is_one = isinstance(value, str | bytes) or getattr(value, "ndim", 1) == 0
    return None if is_one or not isinstance(value, Iterable) else list(value)


def check_rectangular(name: str, value: Any) -> None:
    """Raise ArgumentError if an argument is a list of lists of different lengths."""
    try:
        np.shape(value)
    except ValueError:
        words = "one value per row, not lists of different lengths"
        raise ArgumentError(f"{name} must have {words}") from None


def flag(name: str, value: Any) -> bool:
    """Return an argument as bool; raise unless it is True or False."""
    _require(isinstance(value, bool | np.bool_), name, "True or False", value)
    return bool(value)


def positive(name: str, value: Any) -> float:
    """Return an argument as float; raise ArgumentError unless it is finite and above 0."""
    return _below(INFINITY, name, value, "a positive number")


def share(name: str, value: Any) -> float:
    """Return an argument as float; raise ArgumentError unless it is between 0 and 1 (exclusive)."""
    return _below(1, name, value, "between 0 and 1")


def _below(limit, name, value, words):
    _require(_is_real(value) and 0 < value < limit, name, words, value)
    return float(value)
