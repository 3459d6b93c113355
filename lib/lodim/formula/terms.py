"""Expansion of operators such as * into terms, tuples of (column, None) or (None, call text)."""

from lodim.formula.parser import Leaf, fail

MAX_TERMS = 100_000  # largest number of terms of products and powers
MAX_WORK = 1_000_000  # largest total number of products of two terms


def expand(text, tree, dot):
    """Return the terms of `tree`, a side of the formula `text`; columns `dot` replace a dot."""
    return tuple(_Algebra(text, dot).terms(tree).values())


class _Algebra:
    """Operators of formulas, such as *, applied to sets of terms.

    A set is a dict: frozenset of factors -> term, a tuple of the same factors.
    error_place : in all methods, position of an error in the formula"""

    def __init__(self, text, dot):
        self.text, self.dot = text, dot
        self.work = MAX_WORK + 10 * len(dot)  # remaining work

    def terms(self, node):
        if isinstance(node, Leaf):
            if node.kind == "number":
                return {}
            keys = [(node.text, None) if node.kind == "column" else (None, node.text)]
            if node.kind == "dot":
                keys = [(name, None) for name in self.dot]
            return {frozenset((key,)): (key,) for key in keys}
        found = {}
        for operator, part in zip(node.operators, node.parts, strict=True):
            if operator == "**":
                found = self.power(found, int(part.text[:9]), node.place)
            else:
                found = self.join(operator, found, self.terms(part), node.place)
        return found

    def join(self, operator, left, right, error_place):
        """Return two sets of terms joined by *, /, :, + or -; this may change `left` itself."""
        self.spend(len(right), error_place)
        if operator == "-":
            for factors in right:
                left.pop(factors, None)
            return left
        if operator == "+":
            return _add(left, right)
        if operator == "/":
            whole = tuple(dict.fromkeys(factor for term in left.values() for factor in term))
            return _add(left, self.products({frozenset(whole): whole}, right, error_place))
        found = self.products(left, right, error_place)
        return found if operator == ":" else _add(_add(left, right), found)

    def products(self, left, right, error_place, known=()):
        """Return interactions of each term in `left` with each in `right`, if not in `known`."""
        found = {}
        for some, first in left.items():
            self.spend(len(right), error_place)
            for others, second in right.items():
                factors = some | others
                if factors not in found and factors not in known:
                    found[factors] = first + tuple(f for f in second if f not in some)
            if len(found) + len(known) > MAX_TERMS:
                self.fail(f"more than {MAX_TERMS:,} terms", error_place)
        return found

    def power(self, base, power, error_place):
        """Return the terms of `base`, a set of terms, to a power: a, b and a:b for (a + b)**2."""
        found, new = dict(base), base
        for _ in range(1, min(power, len(base))):
            new = self.products(base, new, error_place, found)
            found |= new
        return found

    def spend(self, work, error_place):
        self.work -= work
        if self.work < 0:
            self.fail(f"more than {MAX_WORK:,} products of terms", error_place)

    def fail(self, what, error_place):
        message = f"this would make {what} of {len(self.dot):,} columns"
        fail(self.text, error_place, message)


def _add(left, right):
    for factors, term in right.items():
        left.setdefault(factors, term)
    return left
