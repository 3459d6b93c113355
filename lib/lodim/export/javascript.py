"""A fit written as a JavaScript function `predict` of one row, for web pages."""

import json
from pathlib import Path

from lodim.export.expression import NUMBER
from lodim.export.infix import ATOM, COMMON, COMPARED, LOOSE, PRODUCT, SUM, Program, alike

# Reserved words, and names that this file or a web page already uses.
WORDS = """
abstract arguments await boolean break byte case catch char class const continue debugger
default delete do double else enum eval export extends false final finally float for function
goto if implements import in instanceof int interface let long native new null package private
protected public return short static super switch synchronized this throw throws transient true
try typeof undefined var void volatile while with yield row predict number
rint modulo math json nan infinity array object string map
"""
HELPERS = Path(__file__).with_name("helpers.js").read_text("utf-8").rstrip().split("\n\n")


def write(equation):
    """Return the code of a JavaScript function `predict(row)` that computes a fit's predictions.

    equation : Equation of the fit
    `predict` returns a number or pairs [class, probability]; it throws if `Fit.predict` raises."""
    return _JavaScript(equation).function()


class _JavaScript(Program):
    functions = COMMON | {
        "and": ("{} && {}", LOOSE, COMPARED),
        "or": ("{} || {}", LOOSE, COMPARED),
        "not": ("!{}", SUM, ATOM),
        "eq": ("{} === {}", COMPARED, SUM),
        "is_true": ("{} === true", COMPARED, SUM),
        "is_finite": ("Number.isFinite({})", ATOM, LOOSE),
        "div": ("{} / {}", PRODUCT, (PRODUCT, ATOM)),
        "power": ("Math.pow({}, {})", ATOM, LOOSE),
        "floor_divide": ("Math.floor({} / {})", ATOM, (PRODUCT, ATOM)),
        "mod": ("modulo({}, {})", ATOM, LOOSE),
        "rint": ("rint({})", ATOM, LOOSE),
        "minimum": ("Math.min({}, {})", ATOM, LOOSE),
        "maximum": ("Math.max({}, {})", ATOM, LOOSE),
        "hypot": ("Math.hypot({}, {})", ATOM, LOOSE),
        "arctan2": ("Math.atan2({}, {})", ATOM, LOOSE),
        **alike("Math.{}({{}})", "sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh"),
        **alike("Math.{}({{}})", "arccosh arctanh exp expm1 log log1p log2 log10 sqrt cbrt"),
        **alike("Math.{}({{}})", "floor ceil trunc abs sign"),
        "exp_negative": ("Math.exp({})", ATOM, LOOSE),
        "exp_limited": ("Math.exp(Math.min({}, 700.0))", ATOM, LOOSE),
        "log_positive": ("Math.log(Math.max({}, 1e-300))", ATOM, LOOSE),
        "softplus": ("Math.max({0}, 0.0) + Math.log1p(Math.exp(-Math.abs({0})))", SUM, LOOSE),
        "logistic": ("1.0 / (1.0 + Math.exp(Math.min(-{}, 700.0)))", PRODUCT, ATOM),
    }
    maximum_of, nan, end = "Math.max", "NaN", ";"
    taken = frozenset(WORDS.split())

    # Forms -------------------------------------------------------------------------------------

    def literal(self, value):
        return json.dumps(value).replace("<", "\\u003c")

    def column(self, node):
        read = f"row[{self.literal(node.name)}]"
        return f"number({read})" if node.kind == NUMBER else f"{read} ?? null"

    def is_missing(self, column):
        name = self.text(column, SUM)
        if column.kind == NUMBER:
            return f"Number.isNaN({name})", ATOM
        return f"{name} === null", COMPARED

    def among(self, source, levels):
        return f"[{', '.join(levels)}].includes({self.text(source)})", ATOM

    def unlisted(self, column, *levels):
        known = ", ".join(self.literal(level.value) for level in levels)
        missing = "NaN" if column.kind == NUMBER else "null"
        return f"![{missing}, {known}].includes({self.text(column)})", ATOM

    def case(self, node):
        pairs = zip(node.conditions, node.values, strict=True)
        chain = [f"({self.text(c)}) ? {self.text(v, COMPARED)} : " for c, v in pairs]
        return "".join(chain) + self.text(node.default, COMPARED), LOOSE

    # Function ----------------------------------------------------------------------------------

    def function(self):
        """Return the text of the function predict(row) and of the helpers and tables it uses."""
        body = "\n".join(f"  {line}" for line in self.body())
        needed = [text for text in HELPERS if f"{text.split()[1]}(" in body]
        return "\n".join([*needed, *self.point_tables(), f"function predict(row) {{\n{body}\n}}"])

    def when(self, condition, statement):
        return [f"if ({self.text(condition)}) {statement}"]

    def error(self, words, shown):
        return f"throw new Error({self.literal(words + ' ')} + String({self.text(shown)}));"

    def assignment(self, node):
        return [f"const {self.name(node)} = {self.formula(node)[0]};"]

    def of_classes(self, values):
        pairs = zip(map(str, self.answers), values, strict=True)
        return "[" + ", ".join(f"[{self.literal(name)}, {value}]" for name, value in pairs) + "]"

    def point_table(self, name, rows):
        table = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        return f"const {name} = [\n{table}\n];"
