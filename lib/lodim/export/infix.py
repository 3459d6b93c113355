"""Symbolic expressions written as text, such as a + b, for Python, JavaScript and SQL."""

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from lodim.export.expression import Call, Case, Column, Constant, Kernels, Sum, in_order

LOOSE, COMPARED, SUM, PRODUCT, ATOM = range(5)  # operator precedence of a text, from loose to tight
COMMON = {  # template, its precedence, and the precedence that its parts need
    "add": ("{} + {}", SUM, (SUM, PRODUCT)),
    "sub": ("{} - {}", SUM, (SUM, PRODUCT)),
    "mul": ("{} * {}", PRODUCT, (PRODUCT, ATOM)),
    "square": ("{0} * {0}", PRODUCT, ATOM),
    "over": ("{} / {}", PRODUCT, (PRODUCT, ATOM)),
    "neg": ("-{}", SUM, (ATOM,)),
    **{
        name: (f"{{}} {sign} {{}}", COMPARED, (SUM, SUM))
        for name, sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
    },
}
GROUP = 32  # largest number of terms in one pair of brackets, since parsers use a stack
LETTERS = 40  # largest number of characters of a name


def alike(template, names):
    """Return `Infix.functions` entries for functions whose code differs only in the name.

    template : code with {} for a short name, as asin for "arcsin"; names : separated by spaces"""
    known = {name: name.replace("arc", "a") for name in names.split()}
    return {name: (template.format(short), ATOM, LOOSE) for name, short in known.items()}


class Infix:
    """Base class of writers that turn an Equation (a fit's predictions) into code.

    functions : dict name -> (template such as "{} + {}", its precedence, that of its arguments)"""

    # Arguments below the last precedence get brackets; a tuple has one number per argument.
    functions: Mapping[str, tuple] = MappingProxyType({})
    taken: frozenset = frozenset()  # names that must not be used for nodes

    def __init__(self, equation):
        self.equation, self.answers = equation, equation.answers
        self.order, columns = in_order(equation.roots), {id(node) for node in equation.columns}
        self.names, self._used, self._numbers = {}, {*self.taken}, {}
        uses = Counter(id(part) for node in self.order for part in node.parts)
        uses.update(map(id, equation.roots))
        repeated = {id(part) for node in self.order for part in self.repeated(node)}
        # Expressions with a label or several uses get names.
        named = [n for n in self.order if n.label or uses[id(n)] > 1 or id(n) in repeated]
        self.named = {id(node) for node in named if not isinstance(node, Constant)} | columns

    def repeated(self, node):
        """Return arguments that the code of `node` would repeat; each becomes a variable."""
        if isinstance(node, Call):
            template = self.functions.get(node.function, ("",))[0]
            return [a for k, a in enumerate(node.args) if template.count(f"{{{k}}}") > 1]
        return node.args if isinstance(node, Kernels) else ()

    def name(self, node):
        """Return the name of expression `node` in the written code, a unique identifier."""
        if id(node) not in self.names:
            hint = node.name if isinstance(node, Column) else node.label
            self.names[id(node)] = self.unused(hint or "v1")
        return self.names[id(node)]

    def unused(self, hint):
        """Return an identifier that is not used yet, made from a hint such as a label."""
        plain = re.sub(r"[^a-z0-9]+", "_", hint.lower()[: 4 * LETTERS]).strip("_")[:LETTERS]
        plain = plain.strip("_") or "v1"
        plain = plain if plain[0].isalpha() else f"x_{plain}"
        name, number = plain, self._numbers.get(plain, 2)
        stem = plain.rstrip("0123456789") if plain == "v1" else f"{plain}_"
        while name in self._used:
            name, number = f"{stem}{number}", number + 1
        self._numbers[plain] = number
        self._used.add(name)
        return name

    def text(self, node, least=LOOSE):
        """Return the text of expression `node`, in brackets if its precedence is below `least`."""
        if isinstance(node, Constant):
            text = self.literal(node.value)
            return f"({text})" if text[0] == "-" and least > SUM else text
        if id(node) in self.named:
            return self.reference(node)
        text, binds = self.formula(node)
        return f"({text})" if binds < least else text

    def formula(self, node):
        """Return the text that computes expression `node`, and the precedence of its operator."""
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
        """Return text and operator precedence of a weighted Sum; many terms get inner brackets."""
        # x - 2, not -2 + x
        bias_last = node.bias < 0.0 and len(node.args) == 1 and node.weights[0] > 0.0
        pieces = [("+", self.literal(node.bias))] * (node.bias != 0.0 and not bias_last)
        for w, arg in zip(node.weights, node.args, strict=True):
            sign = "-" if w < 0.0 else "+"
            if abs(w) == 1.0:
                pieces.append((sign, self.text(arg, PRODUCT)))
            else:
                pieces.append((sign, f"{self.literal(abs(w))} * {self.text(arg, ATOM)}"))
        if bias_last:
            pieces.append(("-", self.literal(-node.bias)))
        groups = []
        for i in range(0, len(pieces), GROUP):
            text = "".join(f" {sign} {term}" for sign, term in pieces[i : i + GROUP])
            groups.append(text[3:] if text[1] == "+" else f"-{text[3:]}")
        while len(groups) > GROUP:
            parts = [groups[i : i + GROUP] for i in range(0, len(groups), GROUP)]
            groups = [" + ".join(f"({group})" for group in part) for part in parts]
        if len(groups) == 1:
            product = len(pieces) == 1 and not groups[0].startswith("-")
            return groups[0], PRODUCT if product else SUM
        return " + ".join(f"({group})" for group in groups), SUM


class Program(Infix):
    """Writer of an Equation as a function of one row; subclasses define a language's words."""

    maximum_of: str
    nan: str
    end = ""  # of statements

    def __init__(self, equation):
        super().__init__(equation)
        self.tables, self.written = {}, set()

    def reference(self, node):
        return self.name(node)

    def largest(self, *args):
        return f"{self.maximum_of}({', '.join(map(self.text, args))})", ATOM

    def kernels(self, node):
        table = self.tables.setdefault(id(node), f"TABLE_{len(self.tables) + 1}")
        helper = "_log_kernels" if node.log else "_kernels"
        return f"{helper}({', '.join([table, *map(self.text, node.args)])})"

    def assigned(self, roots):
        """Yield the lines, not yielded before, that compute what the expressions `roots` need."""
        for node in in_order(list(roots)):
            if id(node) in self.named and id(node) not in self.written:
                self.written.add(id(node))
                yield from self.assignment(node)

    def body(self):
        """Return the lines of a function that predicts one row, returns NaN or raises an error."""
        lines = [*self.assigned(self.equation.columns)]
        missing = self.result([self.nan] * len(self.answers))
        for condition, words, shown in self.equation.stops:
            lines += self.assigned([condition, shown] if words else [condition])
            stop = self.error(words, shown) if words else f"return {missing}{self.end}"
            lines += self.when(condition, stop)
        lines += self.assigned(self.answers.values())
        values = self.result([self.text(node) for node in self.answers.values()])
        return [*lines, f"return {values}{self.end}"]

    def result(self, values):
        """Return code of a prediction; values : [code of the mean] or code of all probabilities."""
        return values[0] if None in self.answers else self.of_classes(values)

    def point_tables(self):
        """Return a list of code that defines weights and points of each sum of Gaussian kernels."""
        found = []
        for node in self.order:
            if isinstance(node, Kernels) and id(node) in self.tables:
                rows = zip(node.weights.tolist(), node.points.tolist(), strict=True)
                found.append(self.point_table(self.tables[id(node)], [[w, *u] for w, u in rows]))
        return found
