"""Symbolic expressions of one row of data, from which a fit is written in other languages."""

import math
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import numpy as np

NUMBER, TRUTH, TEXT = "number", "truth", "text"
LARGEST = 1e90  # largest absolute value of a column; written code refuses larger values
TESTS = ("among", "unlisted", "is_missing", "is_finite", "is_true")
LOGIC = ("lt", "le", "gt", "ge", "eq", "and", "or", "not", *TESTS)


@dataclass(frozen=True, eq=False)
class Node:
    """Base class of the nodes of an expression; `label` is its readable name in code, or empty."""

    label: str = field(default="", kw_only=True)

    @property
    def parts(self):
        """Nodes from which this node is computed, such as the terms of a sum."""
        return getattr(self, "args", ())

    @property
    def kind(self):
        """Type of the value: a number, a truth value or a text."""
        return NUMBER


@dataclass(frozen=True, eq=False)
class Column(Node):
    """A column of the data, which may have missing values."""

    name: str
    kind: str = NUMBER


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """A constant in an expression: a float, bool or text."""

    value: float | bool | str

    @property
    def kind(self):
        return {bool: TRUTH, str: TEXT}.get(type(self.value), NUMBER)


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A named function of other expressions, such as "exp"; each export language can write it."""

    function: str
    args: tuple

    @property
    def kind(self):
        """TRUTH if the function is a comparison, a test, or "and", "or" or "not"; else NUMBER."""
        return TRUTH if self.function in LOGIC else NUMBER


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """A weighted sum of expressions: bias + sum_i weights_i args_i; no argument is constant."""

    bias: float
    weights: tuple
    args: tuple


@dataclass(frozen=True, eq=False)
class Case(Node):
    """Expression with the value of the first true condition, or `default` if none is true."""

    conditions: tuple
    values: tuple
    default: Node

    @property
    def parts(self):
        return (*self.conditions, *self.values, self.default)

    @property
    def kind(self):
        return self.default.kind


@dataclass(frozen=True, eq=False)
class Kernels(Node):
    """Symbolic sum of m Gaussian kernels weights_j exp(-1/2 |z - points_j|^2), or its logarithm.

    args : the k expressions z
    points : (m, k); weights : (m,), positive for the logarithm
    log : whether it is the logarithm"""

    args: tuple
    points: np.ndarray
    weights: np.ndarray
    log: bool = False


ZERO, ONE = Constant(0.0), Constant(1.0)


def constant(value):
    """Return a number, bool or text as an expression (Constant); numbers become floats."""
    return Constant(value if isinstance(value, bool | str) else float(value))


def call(function, *args):
    """Return the expression of a named function of arguments: expressions or plain values."""
    return Call(function, tuple(a if isinstance(a, Node) else constant(a) for a in args))


def labelled(node, label):
    """Return the expression `node` with a readable name, `label`; unchanged if that is empty."""
    return replace(node, label=label) if label else node


def weighted(bias, weights, args, label=""):
    """Return the expression bias + sum_i weights_i args_i, which has the name `label` in code."""
    bias, kept = float(bias), []
    for w, arg in zip(weights, args, strict=True):
        if isinstance(arg, Constant):
            bias += float(w) * arg.value
        elif w != 0.0:
            kept.append((float(w), arg))
    if not kept:
        return Constant(bias, label=label)
    return Sum(bias, *zip(*kept, strict=True), label=label)


def product(nodes):
    """Return the product of the expressions `nodes`, multiplied from left to right."""
    return reduce(partial(call, "mul"), nodes)


def either(conditions):
    """Return the condition that at least one condition is true."""
    return reduce(partial(call, "or"), conditions)


def indicator(condition):
    """Return an expression that is 1 if a condition is true, else 0."""
    return Case((condition,), (ONE,), ZERO)


def lookup(source, levels, values, default):
    """Return the expression with value values[i] if source equals levels[i], else the default."""
    groups = {}
    for level, value in zip(levels, values, strict=True):
        groups.setdefault(float(value), []).append(level)
    groups.pop(float(default), None)
    conditions = tuple(call("among", source, *group) for group in groups.values())
    if not conditions:
        return constant(default)
    return Case(conditions, tuple(map(constant, groups)), constant(default))


def piecewise(x, breaks, coefs):
    """Return q piecewise polynomials of the expression x, as expressions.

    breaks : (m + 1,) ends of the pieces
    coefs : (m, d + 1, q) coefficients, lowest power first, for x scaled to [-1, 1] per piece"""
    low, high = breaks[:-1], breaks[1:]
    u = [scaled(x, 0.5 * (a + b), 0.5 * (b - a)) for a, b in zip(low, high, strict=True)]
    # The first and last polynomials also hold beyond the breaks.
    conditions = tuple(call("lt", x, b) for b in high[:-1])
    out = []
    for of_column in coefs.transpose(2, 0, 1):
        values = []
        for z, powers in zip(u, of_column, strict=True):  # Horner's rule
            powers = np.trim_zeros(powers, "b")
            value = constant(powers[-1] if len(powers) else 0.0)
            for c in powers[-2::-1]:
                value = weighted(c, [1.0], [product([z, value])])
            values.append(value)
        *values, last = values
        out.append(Case(conditions, tuple(values), last) if values else last)
    return out


def scaled(x, mean, scale, label=""):
    """Return the expression (x - mean) / scale, which has the name `label` in written code."""
    centred = weighted(-mean, [1.0], [x])
    return labelled(centred if scale == 1.0 else call("over", centred, scale), label)


def within(x, lower, upper, middle, label=""):
    """Return x if lower <= x <= upper, else the constant `middle`: an expression named `label`."""
    far = call("lt", x, lower), call("gt", x, upper)
    return Case(far, (constant(middle), constant(middle)), x, label=label)


def in_order(roots):
    """Return all nodes from which the expressions `roots` are computed, arguments first."""
    found, order, todo = set(), [], [(node, False) for node in reversed(roots)]
    while todo:
        node, done = todo.pop()
        if done:
            order.append(node)
        elif id(node) not in found:
            found.add(id(node))
            todo.append((node, True))
            todo += [(part, False) for part in reversed(node.parts)]
    return order


def is_exact(value):
    """Return whether exported code can hold a level exactly: as text, a bool or a finite float."""
    return isinstance(value, bool | str) or (math.isfinite(value) and float(value) == value)
