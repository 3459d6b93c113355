"""Forms: rules for the fields of a record: type, shape, range, and storage in a file."""

import ast
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

import numpy as np

LARGEST = 1e105  # largest absolute number: larger than all data, with finite quotients
SQUARE = 1e210  # largest square of a number, as in deviances
TINY = 1e-170  # smallest positive number
MAX_COUNT = 2**53  # largest count
PLAIN = str | bool | int | float

T = TypeVar("T")
Size = int | str


@dataclass(frozen=True)
class Form:
    """Rules to read, check and write one type of value in files."""

    # read(value, name of the field in errors, dict of known lengths such as {"p": 3}) returns the
    # checked value or raises ValueError.
    read: Callable[[Any, str, dict], Any]
    write: Callable[[Any], Any] = lambda value: value


def _checked(check):

    def read(value, where, sizes):
        check(value, where, sizes)
        return value

    return Form(read)


# Numbers -----------------------------------------------------------------------------------------


def real(
    *shape: Size, least: float | str = -LARGEST, most: float | str = LARGEST, nan=False
) -> Any:
    """Declare a field of float64 numbers, checked when it is read from a file.

    shape : lengths, numbers or texts such as "n"; none for one number
    least, most : limits, numbers or texts such as "p - 1" for a length p
    nan : whether NaN is allowed"""
    # The first array with a length "p" sets p for all.
    return _numbers(np.float64, shape, least, most, nan)


def squares(*shape: Size, nan=False) -> Any:
    """Declare a field of float64 numbers up to 1e210 (sums of squares); `nan` allows NaN."""
    return real(*shape, least=-SQUARE, most=SQUARE, nan=nan)


def unlimited(*shape: Size, nan=False) -> Any:
    """Declare a field of any float64 numbers, even infinite; shape : lengths, such as "n" or 3."""
    return real(*shape, least=-np.inf, most=np.inf, nan=nan)


def whole(*shape: Size, least: int | str = 0, most: float | str = MAX_COUNT) -> Any:
    """Declare a field of int64 numbers, checked when it is read from a file.

    shape : lengths, each a number or a text such as "n"; none for one number
    least, most : limits, each a number or a text such as "p - 1" for a length p"""
    return _numbers(np.int64, shape, least, most, False)


def flags(*shape: Size) -> Any:
    """Declare a field of bools with a shape; without a shape one bool."""
    return _numbers(np.bool_, shape, False, True, False)


def size(symbol: str) -> Any:
    """Declare an integer field: the length `symbol`, such as "p", in shapes of other fields."""

    def check(value, where, sizes):
        whole().read(value, where, sizes)
        expected = _required_length(symbol, value, sizes)
        if value != expected:
            raise ValueError(f"{where} is {value}, not {expected}")

    return _checked(check)


def responses(rows: Size, nan=False) -> Any:
    """Declare a field: `rows` responses, numbers or codes of the classes; `nan` allows NaN."""

    def check(value, where, sizes):
        if not sizes["C"]:
            return real(rows, nan=nan).read(value, where, sizes)
        real(rows, least=0, most="C - 1", nan=nan).read(value, where, sizes)
        if not np.isin(value[~np.isnan(value)], np.arange(sizes["C"])).all():
            raise ValueError(f"{where} is no code of {sizes['C']} classes")

    return _checked(check)


def ascending(inner: Any, strictly=False) -> Any:
    """Declare a field of (strictly) ascending numbers, with the form (shape etc.) `inner`."""

    def check(value, where, sizes):
        inner.read(value, where, sizes)
        step = np.diff(value)
        if not (step > 0 if strictly else step >= 0).all():
            raise ValueError(f"{where} does not ascend")

    return _checked(check)


# Plain values ------------------------------------------------------------------------------------


def choice(*allowed: Any) -> Any:
    """Declare a field whose value is one of `allowed` (text, number or bool), of the same type."""

    def check(value, where, sizes):
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise ValueError(f"{where} is {value!r:.40}, not {' or '.join(map(repr, allowed))}")

    return _checked(check)


def text() -> Any:
    return _checked(_check_text)


def _check_text(value, where, sizes):
    if not isinstance(value, str):
        raise ValueError(f"{where} is a {type(value).__name__}, not text")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{where} has halves of letters")


def plain() -> Any:
    """Declare a field of a saved record whose value is a text, a number or a bool."""

    def check(value, where, sizes):
        if not isinstance(value, PLAIN):
            raise ValueError(f"{where} is a {type(value).__name__}, not text or a number")
        if isinstance(value, str):
            _check_text(value, where, sizes)

    return _checked(check)


def plain_label(label: Any) -> bool | int | float | str:
    """Return a level or row label as a bool, number or text, so that a file can hold it."""
    label = label.item() if isinstance(label, np.generic) else label
    return label if isinstance(label, PLAIN) else str(label)


def modest() -> Any:
    """Declare a field with None, text, a bool, a number up to 1e105, or lists or dicts of these."""
    return _checked(_check_modest)


def _check_modest(value, where, sizes):
    if isinstance(value, dict | list | tuple):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            _check_modest(one, f"{where}[{key!r}]", sizes)
    elif isinstance(value, int | float) and abs(value) > LARGEST and np.isfinite(float(value)):
        raise ValueError(f"{where} is {value:g}, which is too large")
    elif not (value is None or isinstance(value, PLAIN)):
        raise ValueError(f"{where} is a {type(value).__name__}, not text or a number")


# Several values ----------------------------------------------------------------------------------


def optional(inner: Any) -> Any:
    """Declare a field with None or a value of the form (type and shape) `inner`."""
    return Form(
        lambda value, where, sizes: None if value is None else inner.read(value, where, sizes),
        lambda value: None if value is None else inner.write(value),
    )


def apart(inner: Any) -> Any:
    """Declare a field by the rule `inner`; symbols first used in it, such as "n", are local."""
    return Form(lambda value, where, sizes: inner.read(value, where, dict(sizes)), inner.write)


def several(count: Size | None, inner: Any = text()) -> Any:  # noqa: B008
    """Declare a field: a tuple of values that each follow the rule `inner`.

    count : number of values, such as 3, or a symbol for it, such as "p"; None allows any number"""
    one = apart(inner)

    def read(value, where, sizes):
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where} is a {type(value).__name__}, not a list")
        expected = len(value) if count is None else _required_length(count, len(value), sizes)
        if len(value) != expected:
            raise ValueError(f"{where} has {len(value)} entries, not {expected}")
        return tuple(one.read(each, f"{where}[{k}]", sizes) for k, each in enumerate(value))

    return Form(read, lambda value: [one.write(each) for each in value])


def entries(inner: Any) -> Any:
    """Declare a field: a dict with any keys, and values of the form (rule) `inner`."""
    one = apart(inner)

    def read(value, where, sizes):
        _check_dict(value, where)
        return {k: one.read(each, f"{where}[{k!r}]", sizes) for k, each in value.items()}

    return Form(read, lambda value: {k: one.write(each) for k, each in value.items()})


def table(rows: Size, forms: dict[str, Any], **optional: Any) -> Any:
    """Declare a field with a table: a dict of columns, each an array.

    rows : length of the columns, such as 3 or "n"
    forms : dict of a rule per required column, such as {"kept": flags("n")}
    optional : rules of columns that may be missing"""
    known, number = forms | optional, real(rows, nan=True)  # number: rule of other columns

    def check(value, where, sizes):
        _check_dict(value, where)
        _check_names(forms.keys() - value.keys(), where)
        for name, column in value.items():
            known.get(name, number).read(column, f"{where}[{name!r}]", sizes)

    return _checked(check)


def part(kind: Any) -> Any:
    """Declare a field that is a record of class `kind`, or a dict if `kind` is a dict of fields."""
    is_dict = isinstance(kind, dict)
    forms = kind if is_dict else kind._forms

    def read(value, where, sizes):
        values = read_all(forms, value, where, sizes)
        if is_dict:
            return values
        made = kind(**values)
        if hasattr(made, "_check_fields"):
            made._check_fields()
        return made

    return Form(read, lambda value: write_all(forms, value if is_dict else vars(value)))


def one_of(*kinds: type) -> Any:
    """Declare a field whose value is a record of one of the classes `kinds`."""
    parts = [part(kind) for kind in kinds]

    def read(value, where, sizes):
        _check_dict(value, where)
        values = {"kind": None} | value
        number = whole(most=len(kinds) - 1).read(values.pop("kind"), f"{where}.kind", sizes)
        return parts[number].read(values, where, sizes)

    def write(value):
        number = kinds.index(type(value))
        return {"kind": number} | parts[number].write(value)

    return Form(read, write)


# Records -----------------------------------------------------------------------------------------


@dataclass_transform(frozen_default=True, eq_default=False)
def record(kind: type[T]) -> type[T]:
    """Turn a class into a frozen dataclass whose fields are checked when read from files.

    A stored field has a rule as default: `names: tuple = several("p")` declares p texts.
    A method `_check_fields`, if any, checks all fields together."""
    # Fields with other defaults are not stored.
    take_forms(kind)
    return dataclass(frozen=True, eq=False)(kind)


def take_forms(kind: Any) -> None:
    """Move rules (Forms) of fields from the attributes of a class to its dict `_forms`."""
    own = {name: form for name, form in vars(kind).items() if isinstance(form, Form)}
    for name in own:
        delattr(kind, name)
    kind._forms = getattr(kind, "_forms", {}) | own


def read(kind: type[T], state: Any) -> T:
    """Return a record of the class `kind` from its stored state; ValueError if it is invalid."""
    return part(kind).read(state, "", {})


def write(record: Any) -> dict[str, Any]:
    """Return the stored state of a record, a dict of plain values and arrays."""
    return part(type(record)).write(record)


def read_all(forms: dict[str, Any], values: Any, where: str, sizes: dict) -> dict[str, Any]:
    """Read and check the stored fields of a record; return them as a dict.

    forms : dict of a rule per field
    where : name of the record in errors
    sizes : dict of known lengths, such as {"p": 3}"""
    _check_dict(values, where)
    _check_names(forms.keys() ^ values.keys(), where)
    lead = f"{where}." if where else ""
    return {name: form.read(values[name], lead + name, sizes) for name, form in forms.items()}


def write_all(forms: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of values as stored in a file, each written by its form (rule for a field)."""
    return {name: form.write(values[name]) for name, form in forms.items()}


def _check_dict(value, where):
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'the state'} is a {type(value).__name__}, not a dict")


def _check_names(wrong, where):
    if wrong:
        names = ", ".join(sorted(wrong))
        raise ValueError(f"{where or 'the state'} has fields missing or unknown: {names}")


def _numbers(dtype, shape, least, most, nan):
    def check(value, where, sizes):
        if not shape:
            kinds = {np.float64: (float, int), np.int64: int, np.bool_: bool}[dtype]
            if not isinstance(value, kinds) or isinstance(value, bool) != (dtype is np.bool_):
                raise ValueError(f"{where} is {value!r:.40}, not {_NAMES[dtype]}")
        elif not isinstance(value, np.ndarray) or value.dtype != dtype:
            kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"{where} is {kind}, not an array of {np.dtype(dtype)}")
        elif value.ndim != len(shape):
            raise ValueError(f"{where} has {value.ndim} dimensions, not {len(shape)}")
        else:
            pairs = zip(shape, value.shape, strict=True)
            expected = tuple(_required_length(*pair, sizes) for pair in pairs)
            if value.shape != expected:
                raise ValueError(f"{where} has shape {value.shape}, not {expected}")
        low, high = _evaluated(least, sizes), _evaluated(most, sizes)
        fits = (value >= low) & (value <= high)
        if nan:
            fits |= np.isnan(value)
        if not np.all(fits):
            odd = value if not shape else value[~fits][0]
            raise ValueError(f"{where} is {odd}, not from {low} to {high}")

    return _checked(check)


_NAMES = {np.float64: "a number", np.int64: "a whole number", np.bool_: "True or False"}


def _required_length(size, actual, sizes):
    if isinstance(size, str) and size.isidentifier():
        return sizes.setdefault(size, actual)
    return _evaluated(size, sizes)


def _evaluated(size, sizes):
    """Return a length as a number; size : number, or expression of symbols in the dict `sizes`."""
    return _value(_parsed(size), sizes) if isinstance(size, str) else size


@functools.cache
def _parsed(expression):
    return ast.parse(expression, mode="eval").body


def _value(node, sizes):
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return sizes[node.id]
        case ast.BinOp():
            return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
        case ast.Call():
            return max(_value(argument, sizes) for argument in node.args)


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
