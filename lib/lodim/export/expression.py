"""Expressions of one row of data: the graph that a fit is written from.

A node is a number, true or false, or a text for each row. Nodes are compared by identity: what is
used twice is one node, which the writers give a name and compute once.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

NUMBER, TRUTH, TEXT = "number", "truth", "text"
LARGEST = 1e90  # in size, of a column's number: whatever is written refuses larger ones
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = (
    *COMPARISONS,
    *("and", "or", "not", "among", "unlisted", "is_missing", "is_finite", "is_true"),
)


@dataclass(frozen=True, eq=False)
class Node:
    """Base class of all nodes; ``label`` is a name for readers, if any."""

    label: str = field(default="", kw_only=True)

    @property
    def parts(self):
        """The nodes that it is made of."""
        return ()

    @property
    def kind(self):
        """NUMBER, TRUTH or TEXT."""
        return NUMBER


@dataclass(frozen=True, eq=False)
class Column(Node):
    """A column of the data, missing values and all."""

    name: str
    of_kind: str = NUMBER

    @property
    def kind(self):
        """Contents of the column."""
        return self.of_kind


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """A float, a bool or a text."""

    value: float | bool | str

    @property
    def kind(self):
        """The kind of the value."""
        return {bool: TRUTH, str: TEXT}.get(type(self.value), NUMBER)


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A function of nodes, by its name: the writers' tables have them all."""

    function: str
    args: tuple

    @property
    def parts(self):
        """The arguments."""
        return self.args

    @property
    def kind(self):
        """TRUTH of comparisons and what joins them."""
        return TRUTH if self.function in LOGIC else NUMBER


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """bias + sum_i weights_i args_i; none of the arguments is constant."""

    bias: float
    weights: tuple
    args: tuple

    @property
    def parts(self):
        """The summands, without their weights."""
        return self.args


@dataclass(frozen=True, eq=False)
class Case(Node):
    """The value of the first condition that is true, else the default."""

    conditions: tuple
    values: tuple
    default: Node

    @property
    def parts(self):
        """Conditions, values and the default."""
        return (*self.conditions, *self.values, self.default)

    @property
    def kind(self):
        """That of the default."""
        return self.default.kind


@dataclass(frozen=True, eq=False)
class Kernels(Node):
    """sum_j weights_j exp(-1/2 |z - points_j|^2) at the point z of args; or its logarithm.

    points (m, k); weights (m,), positive where `log`
    """

    args: tuple
    points: np.ndarray
    weights: np.ndarray
    log: bool = False

    @property
    def parts(self):
        """Coordinates of the point."""
        return self.args


ZERO, ONE = Constant(0.0), Constant(1.0)


def constant(value):
    """Return a plain value as a node; numbers become floats."""
    return Constant(value if isinstance(value, bool | str) else float(value))


def call(function, *args):
    """Return a function of nodes or plain values."""
    return Call(function, tuple(a if isinstance(a, Node) else constant(a) for a in args))


def labelled(node, label):
    """Return the node under a name of its own."""
    return replace(node, label=label) if label else node


def weighted(bias, weights, args, label=""):
    """bias + weights @ args, what is constant in it added up."""
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
    """Product of nodes from the left."""
    first, *rest = nodes
    for node in rest:
        first = call("mul", first, node)
    return first


def either(conditions):
    """Return whether one of some conditions is true; None of none."""
    first, *rest = conditions or [None]
    for condition in rest:
        first = call("or", first, condition)
    return first


def indicator(condition):
    """Return one where a condition is true, else zero."""
    return Case((condition,), (ONE,), ZERO)


def lookup(source, levels, values, default):
    """Return the value that belongs to the level of `source`; the default of any other."""
    groups = {}
    for level, value in zip(levels, values, strict=True):
        groups.setdefault(float(value), []).append(level)
    groups.pop(float(default), None)
    conditions = tuple(call("among", source, *group) for group in groups.values())
    if not conditions:
        return constant(default)
    return Case(conditions, tuple(map(constant, groups)), constant(default))


def piecewise(x, breaks, coefs):
    """Return functions that are polynomials in the pieces between breaks, a list of q nodes.

    breaks (m + 1,); piece i reaches from break i to the next, the outer ones beyond. coefs (m, d +
    1, q), lowest power first, in u that goes from -1 to 1 within the breaks of its piece.
    """
    low, high = breaks[:-1], breaks[1:]
    u = [scaled(x, 0.5 * (a + b), 0.5 * (b - a)) for a, b in zip(low, high, strict=True)]
    conditions = tuple(call("lt", x, b) for b in high[:-1])
    out = []
    for of_column in coefs.transpose(2, 0, 1):
        *values, last = [polynomial(*pair) for pair in zip(u, of_column, strict=True)]
        out.append(Case(conditions, tuple(values), last) if values else last)
    return out


def polynomial(u, coefs):
    """Return a polynomial by Horner's rule, the lowest power first."""
    coefs = np.trim_zeros(coefs, "b")
    value = constant(coefs[-1] if len(coefs) else 0.0)
    for c in coefs[-2::-1]:
        value = weighted(c, [1.0], [product([u, value])])
    return value


def scaled(x, mean, scale, label=""):
    """(x - mean) / scale."""
    centred = weighted(-mean, [1.0], [x])
    return labelled(centred if scale == 1.0 else call("over", centred, scale), label)


def within(x, lower, upper, middle, label=""):
    """x where it lies within limits, else the middle."""
    far = call("lt", x, lower), call("gt", x, upper)
    return Case(far, (constant(middle), constant(middle)), x, label=label)


def in_order(roots):
    """Return all nodes below some, each once, after those that it is made of."""
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


def is_whole(value):
    """Return whether a number can be written as a level: no infinity, and not rounded."""
    return isinstance(value, bool | str) or (math.isfinite(value) and float(value) == value)
