"""A fit as a module of plain Python with a function `predict` of one row."""

import builtins
import keyword
import textwrap

from lodim.export.equation import software
from lodim.export.expression import NUMBER
from lodim.export.infix import ATOM, COMMON, COMPARED, LOOSE, PRODUCT, SUM, Program, alike

HELPERS = {
    "_number": '''def _number(row, name):
    """A number of a row; NaN where it is missing."""
    value = row[name]
    if value is None or value != value:
        return math.nan
    if isinstance(value, (str, bytes)) or not abs(value := float(value)) <= 1e90:
        raise ValueError(f"{name!r} is {value!r}, which is no number that can be computed with")
    return value''',
    "_text": '''def _text(row, name):
    """A text of a row; None where it is missing."""
    value = row[name]
    if value is None or value != value:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is {value!r}, which is no text")
    return value''',
    "_truth": '''def _truth(row, name):
    """True or False; None where it is missing."""
    value = row[name]
    if value is None or value != value:
        return None
    if value not in (0, 1):
        raise ValueError(f"{name!r} is {value!r}, which is neither true nor false")
    return bool(value)''',
    "_try": '''def _try(function, *args):
    """NaN where a function has no value, infinity where that is too large."""
    try:
        return float(function(*args))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan''',
    "_log": """def _log(function, x, pole=0.0):
    if x > pole:
        return function(x)
    return -math.inf if x == pole else math.nan""",
    "_divide": """def _divide(a, b):
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)""",
    "_power": """def _power(a, b):
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if a == 0.0 else math.nan""",
    "_sign": """def _sign(x):
    return x if x != x else float((x > 0.0) - (x < 0.0))""",
    "_minimum": """def _minimum(a, b):
    return a + b if a != a or b != b else min(a, b)""",
    "_maximum": """def _maximum(a, b):
    return a + b if a != a or b != b else max(a, b)""",
    "_kernels": '''def _kernels(table, *z):
    """sum_j w_j exp(-1/2 |z - u_j|^2) over the rows (w_j, u_j) of a table."""
    total = 0.0
    for weight, *center in table:
        square = sum((a - b) * (a - b) for a, b in zip(z, center))
        total += weight * math.exp(-0.5 * square)
    return total''',
    "_log_kernels": '''def _log_kernels(table, *z):
    """log sum_j w_j exp(-1/2 |z - u_j|^2) over the rows (w_j, u_j) of a table."""
    squares = [sum((a - b) * (a - b) for a, b in zip(z, row[1:])) for row in table]
    least = min(squares)
    total = sum(row[0] * math.exp(-0.5 * (s - least)) for row, s in zip(table, squares))
    return math.log(total) - 0.5 * least''',
}
WIDTH = 96  # largest length of a line


def write(equation):
    """Return the text of a Python module that computes the predictions of an Equation."""
    return _Python(equation).module()


class _Python(Program):
    functions = COMMON | {
        "and": ("{} and {}", LOOSE, COMPARED),
        "or": ("{} or {}", LOOSE, COMPARED),
        "not": ("not {}", LOOSE, COMPARED),
        "eq": ("{} == {}", COMPARED, SUM),
        "is_true": ("{}", LOOSE, LOOSE),
        "is_finite": ("math.isfinite({})", ATOM, LOOSE),
        "div": ("_divide({}, {})", ATOM, LOOSE),
        "power": ("_power({}, {})", ATOM, LOOSE),
        "floor_divide": ("_try(lambda: {} // {})", ATOM, PRODUCT + 1),
        "mod": ("_try(lambda: {} % {})", ATOM, PRODUCT + 1),
        "log": ("_log(math.log, {})", ATOM, LOOSE),
        "log1p": ("_log(math.log1p, {}, -1.0)", ATOM, LOOSE),
        "log2": ("_log(math.log2, {})", ATOM, LOOSE),
        "log10": ("_log(math.log10, {})", ATOM, LOOSE),
        "cbrt": ("math.copysign(abs({0}) ** (1 / 3), {0})", ATOM, LOOSE),
        "abs": ("abs({})", ATOM, LOOSE),
        "rint": ("_try(round, {})", ATOM, LOOSE),
        "sign": ("_sign({})", ATOM, LOOSE),
        "minimum": ("_minimum({}, {})", ATOM, LOOSE),
        "maximum": ("_maximum({}, {})", ATOM, LOOSE),
        "hypot": ("math.hypot({}, {})", ATOM, LOOSE),
        "arctan2": ("math.atan2({}, {})", ATOM, LOOSE),
        **alike("_try(math.{}, {{}})", "sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh"),
        **alike("_try(math.{}, {{}})", "arccosh arctanh exp expm1 sqrt floor ceil trunc"),
        "exp_negative": ("math.exp({})", ATOM, LOOSE),
        "exp_limited": ("math.exp(min({}, 700.0))", ATOM, LOOSE),
        "log_positive": ("math.log(max({}, 1e-300))", ATOM, LOOSE),
        "softplus": ("max({0}, 0.0) + math.log1p(math.exp(-abs({0})))", SUM, LOOSE),
        "logistic": ("1.0 / (1.0 + math.exp(min(-{}, 700.0)))", PRODUCT, ATOM),
    }
    maximum_of, nan = "max", "math.nan"
    taken = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "math", "row"})

    # Forms -------------------------------------------------------------------------------------

    def literal(self, value):
        return ascii(value if isinstance(value, bool | str) else float(value))

    def column(self, node):
        return f"_{node.kind}(row, {node.name!a})"

    def is_missing(self, column):
        name = self.text(column)
        is_number = column.kind == NUMBER
        return (f"math.isnan({name})", ATOM) if is_number else (f"{name} is None", COMPARED)

    def among(self, source, levels):
        text = self.text(source, SUM)
        if len(levels) == 1:
            return f"{text} == {levels[0]}", COMPARED
        return f"{text} in ({', '.join(levels)})", COMPARED

    def unlisted(self, column, *levels):
        name, known = self.text(column), ", ".join(self.literal(level.value) for level in levels)
        if column.kind == NUMBER:
            return f"not math.isnan({name}) and {name} not in ({known},)", LOOSE
        return f"{name} not in (None, {known})", COMPARED

    def case(self, node):
        pairs = zip(node.values, node.conditions, strict=True)
        chain = [f"{self.text(v, COMPARED)} if {self.text(c)} else " for v, c in pairs]
        return "".join(chain) + self.text(node.default, COMPARED), LOOSE

    # Module ------------------------------------------------------------------------------------

    def module(self):
        body = "\n".join(f"    {line}" for line in self.body())
        needed = [text for name, text in HELPERS.items() if f"{name}(" in body]
        head = f"# {self.equation.title[:500]}\n"
        head += f"# Written by {software()}; needs nothing but Python.\n"
        kind = "the predicted response" if None in self.answers else "a dict of probabilities"
        if all(node.label == name for name, node in self.answers.items()):
            kind = "a dict of coordinates"
        words = f"From a dict of values by column: {kind}, NaN where an input is missing."
        function = f'def predict(row):\n    """{words}"""\n{body}'
        parts = [head, "import math", *self.point_tables(), *needed, function]
        return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"

    def point_table(self, name, rows):
        lines = "".join(f"    {tuple(row)!r},\n" for row in rows)
        return f"{name} = (\n{lines})"

    def when(self, condition, statement):
        return [f"if {self.text(condition)}:", f"    {statement}"]

    def error(self, words, shown):
        return f"raise ValueError({words + ' '!a} + repr({self.text(shown)}))"

    def of_classes(self, values):
        pairs = zip(map(ascii, self.answers), values, strict=True)
        return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"

    def assignment(self, node):
        text, name, note = self.formula(node)[0], self.name(node), ""
        if node.label and node.label.replace(" ", "_") != name:
            note = f"  # {ascii(node.label)[1:-1][:60]}"
        line = f"{name} = {text}{note}"
        if len(line) <= WIDTH or "'" in text or '"' in text:
            return [line]
        lines = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
        return [f"{name} = ({note}", *(f"    {line}" for line in lines), ")"]
