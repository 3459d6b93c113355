"""The algebra of formula terms: tuples of factors, (column, None) or (None, code of a call)."""

from lodim.formula.parser import Leaf, fail

MAX_TERMS = 100_000  # largest number of terms of products and powers
MAX_WORK = 1_000_000  # largest total number of products of two terms


def expand(text, tree, dot):
    """Return the terms of `tree`, a side of the formula `text`; columns `dot` replace a dot."""
    return tuple(_Algebra(text, dot).terms(tree).values())


class _Algebra:
    """Operators of formulas, such as *, applied to sets of terms.

    A set is a dict: frozenset of a term's factors -> the term, a tuple of these factors in order.
    node : in all methods, the part of the formula to show in an error about too many terms"""

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
                found = self.power(found, int(part.text[:9]), node)
            else:
                found = self.join(operator, found, self.terms(part), node)
        return found

    def join(self, operator, left, right, node):
        """Return the terms of `left` and `right`, joined by *, /, :, + or -; `left` may change."""
        self.spend(len(right), node)
        if operator == "-":
            for factors in right:
                left.pop(factors, None)
            return left
        if operator == "+":
            return _add(left, right)
        if operator == "/":
            whole = tuple(dict.fromkeys(factor for term in left.values() for factor in term))
            return _add(left, self.products({frozenset(whole): whole}, right, node))
        found = self.products(left, right, node)
        return found if operator == ":" else _add(_add(left, right), found)

    def products(self, left, right, node, known=()):
        """Return interactions of a term in `left` and one in `right` (sets), without `known`."""
        found = {}
        for some, first in left.items():
            self.spend(len(right), node)
            for others, second in right.items():
                factors = some | others
                if factors not in found and factors not in known:
                    found[factors] = first + tuple(f for f in second if f not in some)
            if len(found) + len(known) > MAX_TERMS:
                self.fail(f"more than {MAX_TERMS:,} terms", node)
        return found

    def power(self, base, power, node):
        """Return interactions of up to `power` terms of a set: a, b and a:b for (a + b)**2."""
        found, new = dict(base), base
        for _ in range(1, min(power, len(base))):
            new = self.products(base, new, node, found)
            found |= new
        return found

    def spend(self, work, node):
        self.work -= work
        if self.work < 0:
            self.fail(f"more than {MAX_WORK:,} products of terms", node)

    def fail(self, what, node):
        message = f"this would make {what} of {len(self.dot):,} columns"
        fail(self.text, node.place, message)


def _add(left, right):
    for factors, term in right.items():
        left.setdefault(factors, term)
    return left
