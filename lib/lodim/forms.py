"""Forms: the shape, kind and range of what a record holds, checked where a file is read.

Compiled code indexes by these numbers unchecked, and a file may say anything. A form is a callable
(value, where, sizes) that raises a ValueError; sizes that are given by name are bound where they
are first met, and must agree afterwards.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

LARGEST = 1e105  # of a number: beyond all that is read from data, and quotients of two are numbers
SQUARE = 1e210  # of a square of such numbers, as deviances are
TINY = 1e-170  # of a number above zero
MOST = 2**53  # of a count
PLAIN = str | bool | int | float

Form = Callable[[Any, str, dict], None]


def check(record: Any, forms: dict[str, Form], where: str = "", **sizes: int) -> dict[str, int]:
    """Raise a ValueError unless the parts of a record, or the entries of a dict, have their forms.

    Returns
    -------
    dict
        The sizes, those given and those found.
    """
    values = record if isinstance(record, dict) else vars(record)
    for name, form in forms.items():
        form(values[name], f"{where}.{name}" if where else name, sizes)
    return sizes


def make(kind: type, values: Any, where: str, **others: Any) -> Any:
    """Make a record of a dataclass from values that a file holds.

    Parameters
    ----------
    kind : type
        The dataclass.
    values : dict
        One value per field. A field that is missing or unknown is an error, even if the dataclass
        has a default for it.
    where : str
        Name of the values in error messages.
    **others
        Fields that no file holds.

    Raises
    ------
    ValueError
        A field is missing, or there is no such field.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{where} is a {type(values).__name__}, not a dict")
    wrong = {field.name for field in fields(kind)} ^ {*values, *others}
    if wrong:
        raise ValueError(f"{where} has fields missing or unknown: {', '.join(sorted(wrong))}")
    return kind(**values, **others)


def real(*shape: int | str, least=-LARGEST, most=LARGEST, nan=False) -> Form:
    """float64 numbers of a shape, NaN among them where `nan`; without a shape one number."""
    return _numbers(np.float64, shape, least, most, nan)


def squares(*shape: int | str, nan=False) -> Form:
    """float64 numbers as large as squares are, as deviances may be."""
    return real(*shape, least=-SQUARE, most=SQUARE, nan=nan)


def whole(*shape: int | str, least=0, most=MOST) -> Form:
    """int64 numbers of a shape; without a shape one number."""
    return _numbers(np.int64, shape, least, most, False)


def flags(*shape: int | str) -> Form:
    """True or False, in a shape; without a shape one of them."""
    return _numbers(np.bool_, shape, False, True, False)


def codes(size: int | str, n: int, nan=False) -> Form:
    """float64 codes 0, ..., n - 1 of classes, NaN among them where `nan`."""

    def form(value, where, sizes):
        real(size, least=0, most=n - 1, nan=nan)(value, where, sizes)
        if not np.isin(value[~np.isnan(value)], np.arange(n)).all():
            raise ValueError(f"{where} is no code of {n} classes")

    return form


def ascending(inner: Form, strictly=False) -> Form:
    """A row of numbers that do not fall; strictly: that rise."""

    def form(value, where, sizes):
        inner(value, where, sizes)
        step = np.diff(value)
        if not (step > 0 if strictly else step >= 0).all():
            raise ValueError(f"{where} does not ascend")

    return form


def choice(*allowed: Any) -> Form:
    """One of some plain values, of the same type."""

    def form(value, where, sizes):
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise ValueError(f"{where} is {value!r:.40}, not {' or '.join(map(repr, allowed))}")

    return form


def optional(inner: Form) -> Form:
    """None, or what has a form."""

    def form(value, where, sizes):
        if value is not None:
            inner(value, where, sizes)

    return form


def part(forms: dict[str, Form]) -> Form:
    """A dict of named parts, each of its form, and no others."""

    def form(value, where, sizes):
        if not isinstance(value, dict) or set(value) != set(forms):
            has = sorted(value) if isinstance(value, dict) else f"a {type(value).__name__}"
            raise ValueError(f"{where} has {has}, not {sorted(forms)}")
        for name, inner in forms.items():
            inner(value[name], f"{where}.{name}", sizes)

    return form


def table(size: int | str, **forms: Form) -> Form:
    """A dict of arrays with a value each a row, those of `forms` and others of any numbers."""

    def form(value, where, sizes):
        if not isinstance(value, dict) or not set(value) >= set(forms):
            has = sorted(value) if isinstance(value, dict) else f"a {type(value).__name__}"
            raise ValueError(f"{where} has {has}, not {sorted(forms)}")
        for name, column in value.items():
            inner = forms.get(name, real(size, nan=True))
            inner(column, f"{where}[{name!r}]", sizes)

    return form


def text(value: Any, where: str, sizes: dict) -> None:
    """Text."""
    if not isinstance(value, str):
        raise ValueError(f"{where} is a {type(value).__name__}, not text")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{where} has halves of letters")


def plain(value: Any, where: str, sizes: dict) -> None:
    """Text, a number, True or False."""
    if not isinstance(value, PLAIN):
        raise ValueError(f"{where} is a {type(value).__name__}, not text or a number")
    if isinstance(value, str):
        text(value, where, sizes)


def several(size: int | str | None, inner: Form = text) -> Form:
    """A list of so many values of a form; of any number where size is None."""

    def form(value, where, sizes):
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where} is a {type(value).__name__}, not a list")
        expected = _bound(size, len(value), sizes)
        if size is not None and len(value) != expected:
            raise ValueError(f"{where} has {len(value)} entries, not {expected}")
        for k, one in enumerate(value):
            inner(one, f"{where}[{k}]", sizes)

    return form


def modest(value: Any, where: str, sizes: dict | None = None) -> None:
    """Plain values, and lists and dicts of them, with numbers of at most LARGEST in size."""
    if isinstance(value, dict | list | tuple):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            modest(one, f"{where}[{key!r}]")
    elif isinstance(value, int | float) and abs(value) > LARGEST and np.isfinite(float(value)):
        raise ValueError(f"{where} is {value:g}, which is too large")
    elif not (value is None or isinstance(value, PLAIN)):
        raise ValueError(f"{where} is a {type(value).__name__}, not text or a number")


def _numbers(dtype, shape, least, most, nan):
    def form(value, where, sizes):
        if not shape:
            kinds = {np.float64: (float, int), np.int64: int, np.bool_: bool}[dtype]
            if not isinstance(value, kinds) or isinstance(value, bool) != (dtype is np.bool_):
                raise ValueError(f"{where} is {value!r:.40}, not {_NAMES[dtype]}")
        else:
            _check_array(value, where, dtype, shape, sizes)
        fits = (value >= least) & (value <= most)
        if nan:
            fits |= np.isnan(value)
        if not np.all(fits):
            odd = value if not shape else value[~fits][0]
            raise ValueError(f"{where} is {odd}, not from {least} to {most}")

    return form


_NAMES = {np.float64: "a number", np.int64: "a whole number", np.bool_: "True or False"}


def _check_array(value, where, dtype, shape, sizes):
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"{where} is {kind}, not an array of {np.dtype(dtype)}")
    if value.ndim != len(shape):
        raise ValueError(f"{where} has {value.ndim} dimensions, not {len(shape)}")
    expected = tuple(_bound(*pair, sizes) for pair in zip(shape, value.shape, strict=True))
    if value.shape != expected:
        raise ValueError(f"{where} has shape {value.shape}, not {expected}")


def _bound(size, found, sizes):
    """What a size must be: a number, or what a name was bound to, now where it was not yet."""
    return size if isinstance(size, int) else sizes.setdefault(size, found)
