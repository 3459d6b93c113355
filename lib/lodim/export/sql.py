"""A fit as one SQL query, for DuckDB and PostgreSQL; NaN is written as NULL."""

import numpy as np

from lodim.errors import ArgumentError
from lodim.export.equation import check_named, check_text, software
from lodim.export.expression import LARGEST, NUMBER, TEXT
from lodim.export.infix import ATOM, COMMON, COMPARED, GROUP, LOOSE, PRODUCT, SUM, Infix, alike

DIALECTS = ("duckdb", "postgres")
ROUNDING = {"duckdb": "round_even({}, 0)", "postgres": "round({})"}  # rounds halves to even numbers
MAX_COLUMNS = 1600  # approximate largest number of columns of a SELECT in PostgreSQL
INFINITY = "CAST('Infinity' AS FLOAT8)"
EXP = f"CASE WHEN {{0}} > 709e0 THEN {INFINITY} WHEN {{0}} < -700e0 THEN 0e0 ELSE exp({{0}}) END"
LOG = "CASE WHEN {0} > POLE THEN ln({0}PLUS) WHEN {0} = POLE THEN -" + INFINITY + " END"
DIVIDED = "(CASE WHEN {1} <> 0e0 THEN {0} / {1} WHEN {0} <> 0e0 THEN sign({0}) * "
DIVIDED += INFINITY + " END)"
POWER = (
    "(CASE WHEN {0} > 0e0 OR ({0} = 0e0 AND {1} >= 0e0) OR ({0} < 0e0 AND {1} = floor({1})) "
    "THEN power({0}, {1}) WHEN {0} = 0e0 THEN " + INFINITY + " END)"
)


def write(equation, dialect, table):
    """Return an SQL query that computes a fit's predictions for a table; equation : its Equation.

    dialect : "duckdb" or "postgres", which will run the query; table : name, or (schema, table)"""
    parts = (table,) if isinstance(table, str) else table
    named = isinstance(parts, tuple) and all(isinstance(part, str) and part for part in parts)
    if not (named and parts):
        raise ArgumentError(f"table must be a name, or a tuple of schema and name, not {table!r}")
    for part in parts:
        check_text(part)
    check_named(equation, "a query")
    return _SQL(equation, dialect).query(".".join(map(quoted, parts)))


def quoted(name):
    """Return a name in double quotes (doubled inside), so that any character is allowed."""
    return '"' + name.replace('"', '""') + '"'


def _log(pole="0e0", plus="", divisor=""):
    template = LOG.replace("POLE", pole).replace("PLUS", plus)
    return (f"({template}){divisor}", PRODUCT, SUM)


def _within(condition, function):
    """Return an entry of `functions`: SQL of `function` if `condition` holds, else NULL."""
    return (f"(CASE WHEN {condition} THEN {function} END)", ATOM, SUM)


class _SQL(Infix):
    functions = COMMON | {
        "and": ("{} AND {}", LOOSE, COMPARED),
        "or": ("{} OR {}", LOOSE, COMPARED),
        "not": ("NOT {}", LOOSE, ATOM),
        "eq": ("{} = {}", COMPARED, SUM),
        "is_true": ("({}) IS TRUE", COMPARED, LOOSE),
        "is_finite": (f"coalesce(abs({{}}) < {INFINITY}, FALSE)", ATOM, LOOSE),
        "div": (DIVIDED, ATOM, PRODUCT + 1),
        "power": (POWER, ATOM, SUM),
        "log": _log(),
        "log1p": _log("-1e0", " + 1e0"),
        "log2": _log(divisor=" / ln(2e0)"),
        "log10": _log(divisor=" / ln(10e0)"),
        "exp": (f"({EXP})", ATOM, SUM),
        "expm1": (f"({EXP}) - 1e0", SUM, SUM),
        "mod": ("({0} - {1} * floor({0} / nullif({1}, 0e0)))", ATOM, ATOM),
        "sqrt": _within("{0} >= 0e0", "sqrt({0})"),
        "arcsin": _within("abs({0}) <= 1e0", "asin({0})"),
        "arccos": _within("abs({0}) <= 1e0", "acos({0})"),
        "arccosh": _within("{0} >= 1e0", "acosh({0})"),
        "arctanh": _within("abs({0}) < 1e0", "atanh({0})"),
        "sinh": _within("abs({0}) < 709e0", "sinh({0})"),
        "cosh": _within("abs({0}) < 709e0", "cosh({0})"),
        "minimum": ("(CASE WHEN {0} <= {1} THEN {0} WHEN {1} < {0} THEN {1} END)", ATOM, SUM),
        "maximum": ("(CASE WHEN {0} >= {1} THEN {0} WHEN {1} > {0} THEN {1} END)", ATOM, SUM),
        "hypot": ("sqrt({0} * {0} + {1} * {1})", ATOM, ATOM),
        "arctan2": ("atan2({}, {})", ATOM, LOOSE),
        **alike("{}({{}})", "sin cos tan tanh arctan arcsinh cbrt abs sign floor ceil trunc"),
        "floor_divide": ("floor({} / nullif({}, 0e0))", ATOM, ATOM),
        "exp_negative": ("exp(greatest({}, -600e0))", ATOM, LOOSE),
        "exp_limited": ("exp(greatest(least({}, 700e0), -600e0))", ATOM, LOOSE),
        "log_positive": ("ln(greatest({}, 1e-300))", ATOM, LOOSE),
        "softplus": ("greatest({0}, 0e0) + ln(1e0 + exp(-least(abs({0}), 600e0)))", SUM, LOOSE),
        "logistic": ("1e0 / (1e0 + exp(least(greatest(-{}, -600e0), 600e0)))", PRODUCT, ATOM),
    }
    taken = frozenset({"too_large", "unanswered"})

    def __init__(self, equation, dialect):
        super().__init__(equation)
        self.dialect, self.step = dialect, {}  # id(expression) -> first step that can compute it
        for node in self.order:
            before = max((self.step[id(part)] for part in node.parts), default=0)
            self.step[id(node)] = before + (id(node) in self.named)
        self.functions = self.functions | {"rint": (ROUNDING[dialect], ATOM, LOOSE)}

    # Forms -------------------------------------------------------------------------------------

    def literal(self, value):
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, str):
            text = "'" + value.replace("'", "''") + "'"
            if self.dialect == "postgres" and "\\" in value:
                return "E" + text.replace("\\", "\\\\")  # independent of the server's settings
            return text
        text = repr(float(value))
        return text if "e" in text else f"{text.removesuffix('.0')}e0"  # a double in DuckDB

    def reference(self, node):
        return f'{self._at}."{self.name(node)}"'

    def column(self, node):
        kinds = {NUMBER: "FLOAT8", TEXT: "TEXT"}
        text = f"CAST(data.{quoted(node.name)} AS {kinds.get(node.kind, 'BOOLEAN')})"
        if node.kind == NUMBER:
            return f"CASE WHEN abs({text}) <= {LARGEST} THEN {text} END"
        return text

    def is_missing(self, column):
        return f"{self.text(column)} IS NULL", COMPARED

    def among(self, source, levels):
        text = self.text(source, SUM)
        if len(levels) == 1:
            return f"coalesce({text} = {levels[0]}, FALSE)", ATOM
        return f"coalesce({text} IN ({', '.join(levels)}), FALSE)", ATOM

    def unlisted(self, column, *levels):
        known = ", ".join(self.literal(level.value) for level in levels)
        return f"coalesce({self.text(column, SUM)} NOT IN ({known}), FALSE)", ATOM

    def largest(self, *args):
        return f"greatest({', '.join(map(self.text, args))})", ATOM

    def case(self, node):
        pairs = zip(node.conditions, node.values, strict=True)
        chain = " ".join(f"WHEN {self.text(c)} THEN {self.text(v)}" for c, v in pairs)
        text = f"CASE {chain} ELSE {self.text(node.default)} END"
        return (f"CAST({text} AS FLOAT8)" if node.kind == NUMBER else f"({text})"), ATOM

    def kernels(self, node):
        names = [f"k{j + 1}" for j in range(len(node.args))]
        gaps = [f"({self.text(a, SUM)} - u.{k})" for a, k in zip(node.args, names, strict=True)]
        square = " + ".join(f"{gap} * {gap}" for gap in gaps) or "0e0"
        pairs = np.column_stack([node.weights, node.points]).tolist()
        rows = [f"({', '.join(map(self.literal, pair))})" for pair in pairs]
        first = [f"CAST({self.literal(v)} AS FLOAT8)" for v in (node.weights[0], *node.points[0])]
        rows[0] = f"({', '.join(first)})"
        table = f"(VALUES\n    {f',{chr(10)}    '.join(rows)}) AS u (w, {', '.join(names)})"
        if not node.log:
            return f"(SELECT sum(u.w * exp(greatest(-5e-1 * ({square}), -600e0))) FROM {table})"
        least = f"(SELECT u.w, {square} AS d FROM {table}) AS q"
        inner = f"(SELECT q.w, q.d, min(q.d) OVER () AS least FROM {least}) AS r"
        total = "ln(sum(r.w * exp(greatest(-5e-1 * (r.d - r.least), -600e0))))"
        return f"(SELECT {total} - 5e-1 * min(r.least) FROM {inner})"

    # Query -------------------------------------------------------------------------------------

    def query(self, table):
        named = [node for node in self.order if id(node) in self.named]
        if self.dialect == "postgres" and len(named) > MAX_COLUMNS:
            most = f"PostgreSQL allows at most {MAX_COLUMNS:,}: fit a model with fewer features"
            raise ArgumentError(f"the query would have {len(named):,} columns, but {most}")
        numbers = [quoted(c.name) for c in self.equation.columns if c.kind == NUMBER]
        numbers = [f"CAST(data.{name} AS FLOAT8)" for name in numbers]
        far = [f"({x} <> CAST('NaN' AS FLOAT8) AND abs({x}) > {LARGEST})" for x in numbers]
        steps, self._at = [], ""
        for k in range(1, 1 + max((self.step[id(node)] for node in named), default=1)):
            nodes = [node for node in named if self.step[id(node)] == k]
            lines = [f'{self.formula(node)[0]} AS "{self.name(node)}"' for node in nodes]
            lines = [f"{self._at}.*", *lines] if k > 1 else [*lines, f"{_any(far)} AS too_large"]
            steps.append(self._select(lines, f"s{k}"))
            self._at = f"s{k}"
        conditions = [self.text(condition, ATOM) for condition in self.equation.conditions]
        unanswered = f"{_any([*conditions, f'{self._at}.too_large'])} AS unanswered"
        steps.append(self._select([f"{self._at}.*", unanswered], "answered"))
        self._at = "answered"
        lines = []
        for level, node in self.answers.items():
            plain = level is None or (isinstance(level, str) and node.label == level)
            name = quoted("prediction" if level is None else level if plain else f"prob_{level}")
            known = f"CAST({self.text(node)} AS FLOAT8)"
            lines.append(f"    CASE WHEN NOT answered.unanswered THEN {known} END AS {name}")
        answers = ",\n".join(lines)
        return (
            f"-- {self.equation.title[:500]}\n"
            f"-- Written by {software()} for {self.dialect}.\n"
            f"SELECT data.*, answers.*\nFROM {table} AS data, LATERAL (\n"
            f"  WITH {', '.join(steps)}\n"
            f"  SELECT\n{answers}\n  FROM answered\n) AS answers\n"
        )

    def _select(self, lines, name):
        source = f"\n  FROM {self._at}" if self._at else ""
        # Otherwise PostgreSQL inlines a step into later steps and computes it once per use.
        end = "\n  OFFSET 0" if self.dialect == "postgres" else ""
        columns = ",\n    ".join(lines)
        return f"{name} AS (\n  SELECT\n    {columns}{source}{end}\n  )"


def _any(conditions):
    """Return the SQL condition that at least one condition is true; NULL counts as false."""
    groups = [" OR ".join(conditions[i : i + GROUP]) for i in range(0, len(conditions), GROUP)]
    return f"coalesce({' OR '.join(f'({group})' for group in groups) or 'FALSE'}, FALSE)"
