"""The formula language: a fixed list of safe functions and operators; other code is refused."""

import ast
import datetime
import keyword
import math
import unicodedata
import warnings
from difflib import get_close_matches

UNARY = (
    *("log", "log1p", "log2", "log10", "exp", "expm1", "exp2", "sqrt", "cbrt", "square"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("abs", "sign", "floor", "ceil", "trunc"),
)
# Contrast -> name of its only argument.
CONTRASTS = {"Treatment": "reference", "Sum": "omit", "Helmert": "", "Diff": "", "Poly": "scores"}
SPLINES = ("bs", "cr", "cc")
DATES = ("days", "year", "month", "weekday")

# Function -> smallest and largest number of positional arguments, keywords. Positions
# are counted because numpy's next one is `out`, which would write into the user's data.
BOUNDS = ("lower_bound", "upper_bound")
_KNOTS = ("df", "knots", *BOUNDS)
FUNCTIONS = {
    **{f"np.{name}": (1, 1, ()) for name in UNARY},
    **{f"np.{name}": (2, 2, ()) for name in ("power", "minimum", "maximum", "arctan2", "hypot")},
    "np.round": (1, 2, ("decimals",)),
    "np.clip": (3, 3, ()),
    "np.where": (3, 3, ()),
    "I": (1, 1, ()),
    "Q": (1, 1, ()),
    "C": (1, 2, ("contrast", "levels")),
    "bs": (1, 2, (*_KNOTS, "degree", "include_intercept")),
    "cr": (1, 2, (*_KNOTS, "constraints")),
    "cc": (1, 2, (*_KNOTS, "constraints")),
    "te": (1, 4, ("constraints",)),
    "center": (1, 1, ()),
    "scale": (1, 1, ("center", "rescale", "ddof")),
    "standardize": (1, 1, ("center", "rescale", "ddof")),
    **{name: (1, 1, ()) for name in DATES},
    "days": (1, 2, ("origin",)),
}
# Date functions are not reserved, since their names are common column names.
RESERVED = {name for name in FUNCTIONS if "." not in name} - {*DATES} | {*CONTRASTS, "np"}
ALLOWED = (
    "a formula may have columns, + - * / : ** and calls of I, Q, C, bs, cr, cc, te, center, "
    "scale, standardize, days, year, month, weekday, and of numpy's elementary functions such as "
    "np.log or np.sqrt"
)
MAX_BASIS = 1_000  # largest number of columns of a spline
MAX_TENSOR = 1_600  # largest number of columns of te()
MAX_DEGREE = 10  # largest degree of a spline; FITPACK's work arrays end at 19
MAX_NODES = 2_000  # largest number of names, numbers and signs in one call
MAX_CODE = 20_000  # largest number of characters of one call
MAX_DEPTH = 150  # nesting depth in one call; Python's stack holds about 1,000 frames

_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.BitAnd, ast.BitOr),
    *(ast.UAdd, ast.USub, ast.Invert),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
)


class Refused(Exception):
    """Error: an expression is not allowed in formulas; `node` is its syntax node."""

    def __init__(self, node, message):
        super().__init__(message)
        self.node = node


def read(code):
    """Return the syntax tree of text `code`; names that Python changes (NFKC) become Q('name')."""
    try:
        with warnings.catch_warnings():  # about backslashes in quotes
            warnings.simplefilter("ignore")
            tree = ast.parse(code, mode="eval").body
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error)) from None
    _check_size(tree)
    return tree if code.isascii() and "Q" not in code else _AsWritten(code).visit(tree)


class _AsWritten(ast.NodeTransformer):
    """Syntax-tree transformer that restores names that Python has changed (NFKC), as Q('name')."""

    def __init__(self, code):
        self.code = code.encode()

    def visit_Call(self, node):
        name = getattr(node.args[0], "value", None) if len(node.args) == 1 else None
        if function_name(node.func) == "Q" and isinstance(name, str) and quote(name) == name:
            return self.column(name, node, False)
        node.args = [self.visit(arg) for arg in node.args]
        for word in node.keywords:
            word.value = self.visit(word.value)
        return node

    def visit_Name(self, node):
        written = self.code[node.col_offset : node.end_col_offset].decode()
        return node if written == node.id else self.column(written, node, True)

    def column(self, name, node, bare):
        """Return a new syntax node for the column `name`, at the source position of `node`.

        bare : True if the formula has the plain name, False if it has Q('name')"""
        column = ast.parse(quote(name), mode="eval").body
        column.bare = bare
        return ast.copy_location(column, node)


def _check_size(tree):
    level, count, depth = [tree], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > 2 * MAX_NODES:
            raise Refused(tree, f"a function may have at most {MAX_NODES:,} names and signs")
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} operations, nested too deeply; a long sum can be cut"
            raise Refused(tree, f"{message} in two: (a + b) + (c + d)")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


def place(code, node):
    """Return the position of a syntax node in its text `code`, in characters instead of bytes."""
    return len(code.encode()[: node.col_offset].decode())


def canonical(name):
    """Return a name as Python reads it outside Q('') (NFKC: a micro sign becomes a Greek mu)."""
    return unicodedata.normalize("NFKC", name)


def column_name(node):
    """Return the column's name if a syntax node is a column, as x or Q('x'); else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call) and function_name(node.func) == "Q":
        return node.args[0].value
    return None


def functions(tree):
    return [function_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def is_condition(node):
    """Return whether an expression (syntax node) is true or false in each row, such as x > 1."""
    if isinstance(node, ast.Call):
        return function_name(node.func) == "I" and is_condition(node.args[0])
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        return isinstance(node.op, ast.Invert | ast.BitAnd | ast.BitOr)
    return isinstance(node, ast.Compare)


def is_bare(node):
    """Return whether a syntax node is a column's name written without Q('')."""
    return getattr(node, "bare", isinstance(node, ast.Name))


def quote(name):
    """Return a column's name as it must be written in a formula: bare or as Q('name')."""
    whole = name.isidentifier() and not keyword.iskeyword(name) and name not in RESERVED
    return name if whole and canonical(name) == name else f"Q({name!r})"


def column_nodes(node):
    """Return the syntax nodes of columns within an expression, in the order of the text."""
    if column_name(node) is not None:
        return (node,)
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.Call):
        only_data = function_name(node.func) == "C"
        children = node.args[:1] if only_data else [*node.args, *(w.value for w in node.keywords)]
    return tuple(found for child in children for found in column_nodes(child))


def width(node):
    """Return the number of columns that a syntax node makes, or 1 if this depends on the data."""
    if not isinstance(node, ast.Call):
        return 1
    name = function_name(node.func)
    inner = [width(arg) for arg in node.args]
    if name == "te":
        return math.prod(inner)
    if name not in SPLINES:
        return max(inner, default=1)
    given = dict(zip(("data", "df"), node.args, strict=False))
    given |= {word.arg: word.value for word in node.keywords}
    df, knots = given.get("df"), given.get("knots")
    if isinstance(df, ast.Constant) and type(df.value) is int:
        return max(1, df.value)
    return 1 + len(getattr(knots, "elts", ()))


def function_name(node):
    """Return the name of an allowed function in a syntax node, such as 'np.log', or None."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = f"{node.value.id}.{node.attr}"
    else:
        name = node.id if isinstance(node, ast.Name) else None
    return name if name in FUNCTIONS else None


def check_call(node, outermost=False):
    """Raise Refused unless a call node is allowed; outermost : whether no call contains it."""
    name = function_name(node.func)
    if name is None:
        raise Refused(node, _unknown(node.func))
    fewest, most, keywords = FUNCTIONS[name]
    if not fewest <= len(node.args) <= most:
        count = fewest if fewest == most else f"{fewest} to {most}"
        raise Refused(node, f"{name}() takes {count} arguments before its keywords")
    for word in node.keywords:
        if word.arg not in keywords:
            known = ", ".join(keywords) or "none"
            raise Refused(node, f"{name}() takes no keyword {word.arg!r} (it takes: {known})")
    values = [*node.args, *(word.value for word in node.keywords)]
    if name == "Q":
        if not (isinstance(values[0], ast.Constant) and isinstance(values[0].value, str)):
            raise Refused(node, "Q() takes the name of a column in quotes, such as Q('a b')")
        return
    if name == "C":
        _check_categorical(node, outermost)
        return
    called = [getattr(arg, "func", None) for arg in node.args]
    if name == "te" and any(function_name(function) not in SPLINES for function in called):
        raise Refused(node, "te() takes splines, such as te(cr(x, df=3), cr(z, df=3))")
    sized = len(node.args) > 1 or {"df", "knots"} & {word.arg for word in node.keywords}
    if name in SPLINES and not sized:
        raise Refused(node, f"{name}() needs df= or knots=, such as {name}(x, df=5)")
    if name in DATES:
        _check_dates(node, name, values)
    n_data = count_data(node)
    for value in values[:n_data]:
        _check_value(value)
    bounds = [word.value for word in node.keywords if word.arg in BOUNDS]
    for value in values[n_data:]:
        if value in bounds:
            _check_literal(value)
        else:
            _check_setting(value)
    _check_basis(node, name)


def _check_dates(node, name, values):
    if column_name(values[0]) is None:
        raise Refused(values[0], f"{name}() takes a column of dates, such as {name}(date)")
    if len(values) > 2:
        raise Refused(node, "days() must have only one origin")
    for value in values[1:]:
        try:
            datetime.datetime.strptime(value.value, "%Y-%m-%d")
        except (AttributeError, TypeError, ValueError):
            message = "origin= is a day in quotes, such as days(date, origin='2024-01-31')"
            raise Refused(value, message) from None


def _check_basis(node, name):
    degree = next((word.value for word in node.keywords if word.arg == "degree"), None)
    value = getattr(degree, "value", None)
    if degree is not None and not (type(value) is int and 0 <= value <= MAX_DEGREE):
        raise Refused(degree, f"degree= must be an integer from 0 to {MAX_DEGREE}")
    most = MAX_TENSOR if name == "te" else MAX_BASIS
    if width(node) > most:
        made = f"{name}() would make {width(node):,} columns"
        raise Refused(node, f"{made}; at most {most:,} are allowed")


def _unknown(function):
    name = ast.unparse(function)
    if f"np.{name}" in FUNCTIONS:
        return f"write np.{name}() for this function"
    near = get_close_matches(name[:40], FUNCTIONS, n=1, cutoff=0.75)
    hint = f" (did you mean {near[0]}()?)" if near else ""
    return f"this function cannot be used in a formula{hint}: {ALLOWED}"


def count_data(node):
    """Return how many arguments of a call (syntax node) are data, not settings: 1 in bs(x, 4)."""
    name = function_name(node.func)
    return 1 if name == "np.round" or not (name == "te" or "." in name) else len(node.args)


def _check_setting(node):
    for item in node.elts if isinstance(node, (ast.List, ast.Tuple)) else (node,):
        _check_literal(item)
        value = getattr(item, "value", None)
        if type(value) is int and abs(value) > MAX_BASIS and item is node:
            raise Refused(node, f"a number of pieces or decimals must be at most {MAX_BASIS:,}")


def _check_value(node):
    """Raise Refused unless a syntax node inside a call, such as x + 1, is allowed there."""
    if isinstance(node, ast.Call):
        check_call(node)
    elif isinstance(node, ast.Constant):
        _check_constant(node)
    elif isinstance(node, (ast.BinOp, ast.UnaryOp)) and isinstance(node.op, _OPERATORS):
        parts = (node.operand,) if isinstance(node, ast.UnaryOp) else (node.left, node.right)
        for part in parts:
            _check_value(part)
    elif isinstance(node, ast.Compare) and all(isinstance(op, _OPERATORS) for op in node.ops):
        for part in (node.left, *node.comparators):
            _check_value(part)
    elif isinstance(node, ast.BoolOp):
        raise Refused(node, "write (a) & (b), (a) | (b) instead of 'and', 'or'")
    elif not isinstance(node, ast.Name):
        message = f"this cannot be used in a formula: {ALLOWED}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            message = f"write a column name with a dot as Q('{name}'); {ALLOWED}"
        raise Refused(node, message)


def _check_constant(node):
    value = node.value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise Refused(node, "only numbers and text can be used here")
    if isinstance(value, (int, float)):
        size = abs(value)
        if (isinstance(value, int) and size > 2**63) or not math.isfinite(size):
            raise Refused(node, "this number is too large")


def _check_literal(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        node = node.operand
    if not isinstance(node, ast.Constant):
        raise Refused(node, "only numbers and text can be used here")
    _check_constant(node)


def _check_categorical(node, outermost):
    """Raise Refused unless a node C(x, ...) is allowed; outermost : whether no call contains it."""
    if not outermost:
        raise Refused(node, "C() is a category and cannot be used inside a function")
    _check_value(node.args[0])
    given = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "contrast")]
    if len(given) > 1:
        raise Refused(node, "C() must have only one contrast")
    for contrast in given:
        call = contrast if isinstance(contrast, ast.Call) else ast.Call(contrast, [], [])
        name = call.func.id if isinstance(call.func, ast.Name) else None
        if name not in CONTRASTS:
            raise Refused(contrast, f"a contrast must be one of {', '.join(CONTRASTS)}")
        values = [*call.args, *(word.value for word in call.keywords)]
        known = {CONTRASTS[name]} - {""}
        if len(values) > len(known) or any(word.arg not in known for word in call.keywords):
            allowed = CONTRASTS[name] or "none"
            raise Refused(contrast, f"{name} may only have the arguments: {allowed}")
        for value in values:
            _check_setting(value)
    for word in node.keywords:
        if word.arg == "levels":
            if not isinstance(word.value, (ast.List, ast.Tuple)):
                raise Refused(word.value, "levels= takes a list, such as levels=['a', 'b']")
            _check_setting(word.value)
