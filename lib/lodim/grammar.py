"""What a formula may say: a closed list of functions and operators.

A formula is a closed language: columns, the operators ``+ - * / : **``, and calls from a short
list of functions. Whatever else Python could say (attributes, subscripts, the caller's variables,
other calls) is refused here, on the syntax tree, before anything looks at data. So a formula that
came with a saved fit or from a web form is safe to evaluate.
"""

import ast
import math

UNARY = (
    *("log", "log1p", "log2", "log10", "exp", "expm1", "exp2", "sqrt", "cbrt", "square"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("abs", "sign", "floor", "ceil", "trunc"),
)
# The one setting that each contrast takes.
CONTRASTS = {"Treatment": "reference", "Sum": "omit", "Helmert": "", "Diff": "", "Poly": "scores"}
SPLINES = ("bs", "cr", "cc")

# For each function: fewest and most positional arguments, and the keywords it takes. Positions
# are counted because numpy's next one is `out`, which would write into the user's data.
_KNOTS = ("df", "knots", "lower_bound", "upper_bound")
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
}
RESERVED = frozenset(name for name in FUNCTIONS if "." not in name) | CONTRASTS.keys() | {"np"}
ALLOWED = (
    "a formula is made of columns, + - * / : ** and calls of I, Q, C, bs, cr, cc, te, center, "
    "scale, standardize, and of numpy's elementary functions such as np.log or np.sqrt"
)
MAX_TERMS = 100_000
MAX_BASIS = 1_000

_ALGEBRA = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.Pow)
_OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow),
    *(ast.BitAnd, ast.BitOr),
    *(ast.UAdd, ast.USub, ast.Invert),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
)


class Refused(Exception):
    """Carries the offending node up to where the place in the formula is known."""

    def __init__(self, node, message):
        super().__init__(message)
        self.node = node


def column_name(node):
    """The column that a node is, bare or as Q('name'); None where it is anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call) and function_name(node.func) == "Q":
        return node.args[0].value
    return None


def column_nodes(node):
    """The nodes below this one that are columns, in the order they are written; dots left out."""
    if column_name(node) is not None:
        return () if getattr(node, "is_dot", False) else (node,)
    children = ast.iter_child_nodes(node)
    if isinstance(node, ast.Call):
        only_data = function_name(node.func) == "C"
        children = node.args[:1] if only_data else [*node.args, *(w.value for w in node.keywords)]
    return tuple(found for child in children for found in column_nodes(child))


def size(node, dot):
    """No fewer terms than an expression makes when its dot stands for `dot` columns."""
    if not isinstance(node, ast.BinOp):
        return dot if getattr(node, "is_dot", False) else 1
    left = size(node.left, dot)
    if isinstance(node.op, ast.Pow):
        return _choose_up_to(left, node.right.value)
    right = size(node.right, dot)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return left + right
    return left * right + left + right


def _choose_up_to(n, power):
    total, ways = 0, 1
    for k in range(1, min(n, power) + 1):
        ways = ways * (n - k + 1) // k
        total += ways
        if total > MAX_TERMS:
            break
    return total


def check_algebra(node):
    """What stands outside of any call: operators between columns, dots and calls."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ALGEBRA):
        check_algebra(node.left)
        if isinstance(node.op, ast.Pow):
            _check_power(node)
        else:
            check_algebra(node.right)
    elif isinstance(node, ast.Call):
        check_call(node, outermost=True)
    elif isinstance(node, ast.Constant):
        raise Refused(node, "a number or a text is no term; write I(...) or Q('column name')")
    elif isinstance(node, (ast.Compare, ast.UnaryOp, ast.BinOp, ast.BoolOp)):
        raise Refused(node, "write this arithmetic inside of I(...), such as I(x > 1)")
    elif not isinstance(node, ast.Name):
        raise Refused(node, _unwelcome(node))


def _check_power(node):
    power = node.right.value if isinstance(node.right, ast.Constant) else None
    if type(power) is not int or power < 1:
        raise Refused(node.right, "the power of a sum is a whole number, such as (a + b)**2")
    if isinstance(node.left, ast.Call) or (
        isinstance(node.left, ast.Name) and not getattr(node.left, "is_dot", False)
    ):
        raise Refused(node, "for the power of a column write I(x**2)")


def _unwelcome(node):
    """Why a node cannot stand in a formula; a dot inside of a name is the usual case."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = f"{node.value.id}.{node.attr}"
        return f"a column whose name has a dot is written Q('{name}'); {ALLOWED}"
    return f"this cannot stand in a formula: {ALLOWED}"


def function_name(node):
    """'np.log' or 'bs' where a node names an allowed function, else None."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name = f"{node.value.id}.{node.attr}"
    else:
        name = node.id if isinstance(node, ast.Name) else None
    return name if name in FUNCTIONS else None


def check_call(node, outermost=False):
    """Raise unless a call, with all that is in it, is of the closed list."""
    name = function_name(node.func)
    if name is None:
        if isinstance(node.func, ast.Name) and f"np.{node.func.id}" in FUNCTIONS:
            raise Refused(node, f"write np.{node.func.id}() for this function")
        raise Refused(node, f"this function cannot stand in a formula: {ALLOWED}")
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
    if name == "te" and any(_name_of(arg) not in SPLINES for arg in node.args):
        raise Refused(node, "te() takes splines, such as te(cr(x, df=3), cr(z, df=3))")
    n_data = count_data(node)
    for value in values[:n_data]:
        _check_value(value)
    for value in values[n_data:]:
        _check_setting(value)


def count_data(node):
    """How many arguments of a call are data; those that follow are plain settings."""
    name = function_name(node.func)
    return 1 if name == "np.round" or not (name == "te" or "." in name) else len(node.args)


def _name_of(node):
    return function_name(node.func) if isinstance(node, ast.Call) else None


def _check_setting(node):
    """How many knots, where they are: plain numbers, so that no spline is made too large."""
    for item in node.elts if isinstance(node, (ast.List, ast.Tuple)) else (node,):
        _check_literal(item)
        value = getattr(item, "value", None)
        if type(value) is int and value > MAX_BASIS and item is node:
            raise Refused(node, f"a number of pieces or decimals is at most {MAX_BASIS}")


def _check_value(node):
    """What may stand inside of a call."""
    if isinstance(node, ast.Call):
        check_call(node)
    elif isinstance(node, ast.Name):
        if getattr(node, "is_dot", False):
            raise Refused(node, "'.' cannot stand inside of a function")
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
        raise Refused(node, "write (a) & (b), (a) | (b) in place of 'and', 'or'")
    else:
        raise Refused(node, _unwelcome(node))


def _check_constant(node):
    value = node.value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise Refused(node, "only numbers and texts can stand here")
    if isinstance(value, (int, float)):
        size = abs(value)
        if (isinstance(value, int) and size > 2**63) or not math.isfinite(size):
            raise Refused(node, "this number is too large")


def _check_literal(node):
    """A constant, signed or not."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        node = node.operand
    if not isinstance(node, ast.Constant):
        raise Refused(node, "only numbers and texts can stand here")
    _check_constant(node)


def _check_categorical(node, outermost):
    """C(x), C(x, Sum), C(x, Treatment('a')), C(x, levels=['a', 'b'])."""
    if not outermost:
        raise Refused(node, "C() makes a category and cannot stand inside of a function")
    _check_value(node.args[0])
    given = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "contrast")]
    if len(given) > 1:
        raise Refused(node, "C() takes one contrast")
    for contrast in given:
        _check_contrast(contrast)
    for word in node.keywords:
        if word.arg == "levels":
            if not isinstance(word.value, (ast.List, ast.Tuple)):
                raise Refused(word.value, "levels= takes a list, such as levels=['a', 'b']")
            _check_setting(word.value)


def _check_contrast(node):
    called = isinstance(node, ast.Call)
    target = node.func if called else node
    name = target.id if isinstance(target, ast.Name) else None
    if name not in CONTRASTS:
        raise Refused(node, f"a contrast is one of {', '.join(CONTRASTS)}")
    if called:
        values = [*node.args, *(word.value for word in node.keywords)]
        known = {CONTRASTS[name]} - {""}
        if len(values) > len(known) or any(word.arg not in known for word in node.keywords):
            raise Refused(node, f"{name} takes no more than: {CONTRASTS[name] or 'nothing'}")
        for value in values:
            _check_setting(value)
