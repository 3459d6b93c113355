"""Nodes as text with operators between what they join: what Python, JavaScript and SQL share."""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from lodim.export.expression import Call, Case, Column, Constant, Kernels, Sum, in_order

LOOSE, COMPARED, SUM, PRODUCT, ATOM = range(5)  # how tightly a text binds
COMMON = {  # template, how tightly it binds, and how tightly its parts must
    "add": ("{} + {}", SUM, (SUM, PRODUCT)),
    "sub": ("{} - {}", SUM, (SUM, PRODUCT)),
    "mul": ("{} * {}", PRODUCT, (PRODUCT, ATOM)),
    "over": ("{} / {}", PRODUCT, (PRODUCT, ATOM)),
    "neg": ("-{}", SUM, (ATOM,)),
    **{
        name: (f"{{}} {sign} {{}}", COMPARED, (SUM, SUM))
        for name, sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
    },
}
GROUP = 32  # summands in one pair of brackets: parsers stack what they read
LETTERS = 40  # of a name


class Infix:
    """Texts of nodes. Those that several others use, or that have a label, get a name.

    A writer brings `functions`, as `COMMON` has them, and the forms of names and constants.
    """

    functions: Mapping[str, tuple] = MappingProxyType({})
    taken: frozenset = frozenset()  # names that stand for something else

    def __init__(self, roots):
        self.order = in_order(roots)
        self.names, self._used = {}, {*self.taken}
        uses = Counter(id(part) for node in self.order for part in node.parts)
        uses.update(map(id, roots))
        repeated = {id(part) for node in self.order for part in self.repeated(node)}
        self.named = {
            id(node)
            for node in self.order
            if not isinstance(node, Constant)
            and (node.label or uses[id(node)] > 1 or id(node) in repeated)
        }

    def repeated(self, node):
        """Return the parts of a node that its text needs more than once."""
        if isinstance(node, Call):
            template = self.functions.get(node.function, ("",))[0]
            return [a for k, a in enumerate(node.args) if template.count(f"{{{k}}}") > 1]
        return node.args if isinstance(node, Kernels) else ()

    def name(self, node):
        """Return the name of a node, a lower-case identifier that no other has."""
        if id(node) not in self.names:
            hint = node.name if isinstance(node, Column) else node.label
            self.names[id(node)] = self.unused(hint or "v1")
        return self.names[id(node)]

    def unused(self, hint):
        """Return an identifier that is like a hint and new."""
        plain = re.sub(r"[^a-z0-9]+", "_", hint.lower()[: 4 * LETTERS]).strip("_")[:LETTERS]
        plain = plain.strip("_") or "v1"
        plain = plain if plain[0].isalpha() else f"x_{plain}"
        name, number = plain, 2
        stem = plain.rstrip("0123456789") if plain == "v1" else f"{plain}_"
        while name in self._used:
            name, number = f"{stem}{number}", number + 1
        self._used.add(name)
        return name

    def text(self, node, least=LOOSE):
        """Return the text of a node, in brackets where it binds less tightly than needed."""
        if isinstance(node, Constant):
            text = self.literal(node.value)
            return f"({text})" if text[0] == "-" and least > SUM else text
        if id(node) in self.named:
            return self.reference(node)
        text, binds = self.formula(node)
        return f"({text})" if binds < least else text

    def formula(self, node):
        """Return the text that a node is computed by, and how tightly it binds."""
        if isinstance(node, Sum):
            return self.sum(node)
        if isinstance(node, Case):
            return self.case(node)
        if isinstance(node, Kernels):
            return self.kernels(node), ATOM
        if isinstance(node, Column):
            return self.column(node), ATOM
        if node.function == "among":
            return self.among(node.args[0], [self.literal(a.value) for a in node.args[1:]])
        if hasattr(self, node.function):
            return getattr(self, node.function)(*node.args)
        template, binds, least = self.functions[node.function]
        least = least if isinstance(least, tuple) else (least,) * len(node.args)
        parts = [self.text(a, m) for a, m in zip(node.args, least, strict=True)]
        return template.format(*parts), binds

    def sum(self, node):
        """bias + w * x - ..., in groups."""
        pieces = [] if node.bias == 0.0 else [("+", self.literal(node.bias))]
        if node.bias < 0.0 and (len(node.args) > 1 or node.weights[0] < 0.0):
            pieces = [("", self.literal(node.bias))]
        elif node.bias < 0.0:
            pieces = []
        for w, arg in zip(node.weights, node.args, strict=True):
            sign = "-" if w < 0.0 else "+"
            if abs(w) == 1.0:
                pieces.append((sign, self.text(arg, PRODUCT)))
            else:
                pieces.append((sign, f"{self.literal(abs(w))} * {self.text(arg, ATOM)}"))
        if node.bias < 0.0 and len(pieces) == 1:  # x - 2, not -2 + x
            pieces.append(("-", self.literal(-node.bias)))
        groups = [_added(pieces[i : i + GROUP]) for i in range(0, len(pieces), GROUP)]
        while len(groups) > GROUP:
            groups = [
                " + ".join(f"({g})" for g in groups[i : i + GROUP])
                for i in range(0, len(groups), GROUP)
            ]
        if len(groups) == 1:
            product = len(pieces) == 1 and not groups[0].startswith("-")
            return groups[0], PRODUCT if product else SUM
        return " + ".join(f"({group})" for group in groups), SUM


class Program(Infix):
    """A function of one row as lines of assignments: what Python and JavaScript share.

    A language brings `maximum_of`, its name of the largest of several numbers, and `assignment`.
    """

    maximum_of = ""

    def __init__(self, equation):
        self.equation, self.answers = equation, equation.answers
        self.tables, self.written = {}, set()
        super().__init__([*equation.columns, *equation.conditions, *self.answers.values()])
        self.named |= {id(column) for column in equation.columns}

    def assignment(self, node):
        """Lines that give a node its name."""
        raise NotImplementedError

    def reference(self, node):
        return self.name(node)

    def largest(self, *args):
        return f"{self.maximum_of}({', '.join(map(self.text, args))})", ATOM

    def kernels(self, node):
        table = self.tables.setdefault(id(node), f"TABLE_{len(self.tables) + 1}")
        helper = "_log_kernels" if node.log else "_kernels"
        return f"{helper}({', '.join([table, *map(self.text, node.args)])})"

    def assigned(self, roots):
        """Lines that compute the named nodes below some, those that are not there yet."""
        for node in in_order(list(roots)):
            if id(node) in self.named and id(node) not in self.written:
                self.written.add(id(node))
                yield from self.assignment(node)

    def points(self):
        """Names of the tables that kernels read, and their rows (weight, point), as lists."""
        for node in self.order:
            if isinstance(node, Kernels) and id(node) in self.tables:
                rows = zip(node.weights.tolist(), node.points.tolist(), strict=True)
                yield self.tables[id(node)], [[weight, *point] for weight, point in rows]


def _added(pieces):
    """Summands with their signs, as one text."""
    (sign, first), *rest = pieces
    head = f"-{first}" if sign == "-" else first
    return head + "".join(f" {sign} {text}" for sign, text in rest)
