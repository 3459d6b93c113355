"""The terms of a formula as expressions: columns, imputed values, features."""

import ast
import itertools
import math

import numpy as np

from lodim.design import factors, features
from lodim.design import terms as design_terms
from lodim.design.expressions import tree
from lodim.errors import ArgumentError
from lodim.export import expression as ex
from lodim.formula import patsy_terms
from lodim.formula.language import DATES, UNARY, column_name, count_data, function_name

ARITHMETIC: dict[type, str] = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod"},
    **{ast.FloorDiv: "floor_divide", ast.Pow: "power", ast.USub: "neg"},
    **{ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq"},
    **{ast.BitAnd: "and", ast.BitOr: "or"},
}
BINARY = ("power", "minimum", "maximum", "arctan2", "hypot")
FUNCTIONS = {f"np.{name}": name for name in (*UNARY, *BINARY)}
CUBIC = 3
SMALL = {  # functions whose values are never very large
    *(f"np.{name}" for name in UNARY if name.startswith(("log", "arc", "sin", "cos", "tanh"))),
    *("np.sqrt", "np.cbrt", "np.sign", "bs", "cc"),
} - {"np.sinh", "np.cosh"}
PERIODS = 1e8  # largest number of periods from 0; beyond it, languages round remainders differently


class Inputs:
    """Columns that a fit reads, and its features, as symbolic expressions.

    complete : dict column -> expression with imputed values
    refusals : list of (condition, message, expression to show) for errors of predict()
    unknown : list of conditions under which a prediction is missing"""

    def __init__(self, design, new_levels):
        self.design = design
        self.parts = list({id(p): p for p in itertools.chain(*design.terms)}.values())
        self.users = {}  # column -> parts of terms that read it
        for part in self.parts:
            for name in factors.needs(part):
                self.users.setdefault(name, []).append(part)
        self.fills = {fill.name: fill.value for fill in design.fills}
        self.known = {}  # column -> (known levels, further levels that count as missing; None: all)
        for part in self.parts:
            name = factors.column_with_levels(part)
            if name is None:
                continue
            if not all(map(ex.is_exact, part.levels)):
                raise ArgumentError(f"column {name!r} has a level that cannot be written exactly")
            levels = self.known.get(name, (part.levels, ()))[0]
            self.known[name] = tuple(v for v in levels if v in part.levels), ()
        self.known |= design.known_levels(new_levels)
        self.columns = {name: ex.Column(name, self._kind(name)) for name in design.features}
        self.refusals, self.unknown, self._made = [], [], {}
        self.complete = {}
        for name in self.columns:
            self._read(name)
        self.features = self._features()

    # Columns -----------------------------------------------------------------------------------

    def _kind(self, name):
        """Return the type (number, truth value or text) of a column of the data."""
        if any(isinstance(part, factors.Numeric) for part in self.users[name]):
            return ex.NUMBER
        values = self.known[name][0] if name in self.known else ()
        values = values or ((self.fills[name],) if name in self.fills else ())
        kinds = {ex.constant(value).kind for value in values}
        if len(kinds) > 1:
            has = f"levels of several kinds, such as {values[0]!r} and {values[-1]!r}"
            cure = "make all of them text to export the fit"
            raise ArgumentError(f"column {name!r} has {has}: {cure}")
        if kinds:
            return kinds.pop()
        for part in self.users[name]:
            if isinstance(part, factors.Missing):
                continue
            for node in ast.walk(tree(part.name)):
                if isinstance(node, ast.Compare):
                    sides = [node.left, *node.comparators]
                    values = [side.value for side in sides if isinstance(side, ast.Constant)]
                    compared = any(column_name(side) == name for side in sides)
                    if compared and any(isinstance(value, str) for value in values):
                        return ex.TEXT
                if any(column_name(child) == name for child in _truths(node)):
                    return ex.TRUTH
        return ex.NUMBER

    def _missing(self, name):
        """Return the condition that a column is missing, or has a level that counts as missing."""
        column, (levels, forgiven) = self.columns[name], self.known.get(name, ((), ()))
        if forgiven is None:
            return ex.call("not", ex.call("among", column, *levels))
        missing = ex.call("is_missing", column)
        return ex.either([missing, ex.call("among", column, *forgiven)]) if forgiven else missing

    def _read(self, name):
        """Let the exported code read column `name`: impute it, and test for errors and NaN."""
        column = self.complete[name] = self.columns[name]
        if name in self.fills:
            fill = (ex.constant(self.fills[name]),)
            filled = ex.Case((self._missing(name),), fill, column, label=f"{name} filled")
            self.complete[name] = filled
        if name in self.known and self.known[name][1] is not None:
            levels, forgiven = self.known[name]
            new = ex.call("unlisted", column, *levels, *forgiven)
            self.refuse(new, f"column {name!r} has a level that the model does not know:", column)
        if self.design.missing != "indicator":
            self.unknown.append(self._missing(name))

    # Features ----------------------------------------------------------------------------------

    def _features(self):
        design, out = self.design, []
        constant_names, limits = set(design.constant), design.limits
        for term in design.terms:
            sources = [self._columns_of(part) for part in term]
            for choice in design_terms.column_choices(term):
                k = len(out)
                if design.names[k] in constant_names:
                    out.append(ex.ZERO)
                    continue
                raw = ex.product([s[j] for s, j in zip(sources, choice, strict=True)])
                if k in limits:
                    raw = ex.within(raw, *limits[k], f"{design.names[k]} without wild values")
                label = f"{design.names[k]} scaled"
                out.append(ex.scaled(raw, design.mean[k], design.scale[k], label))
                largest, far = math.prod(map(_largest, term)), features.FAR[design.dtype]
                if largest + abs(design.mean[k]) > far * design.scale[k]:
                    is_far = ex.call("gt", ex.call("abs", out[k]), far)
                    self.refuse(is_far, f"too far to be computed with is {design.names[k]}:", raw)
        return out

    def _columns_of(self, part):
        """Return expressions of the columns that `part`, a factor such as log(x), makes."""
        if id(part) in self._made:
            return self._made[id(part)]
        if isinstance(part, factors.Numeric):
            nodes = [self.complete[part.name]]
        elif isinstance(part, factors.Missing):
            nodes = [ex.indicator(self._missing(part.name))]
        elif isinstance(part, factors.Levels):
            nodes = self._levels(part)
        else:
            call = tree(part.name)
            nodes = _Translation(self, part.states).columns(call)
            nodes = [ex.labelled(*pair) for pair in zip(nodes, factors.labels(part), strict=True)]
            if not _always_finite(call):
                for node in nodes:
                    infinite = ex.call("not", ex.call("is_finite", node))
                    self.refuse(infinite, f"{part.name} is", node)
        self._made[id(part)] = nodes
        return nodes

    def refuse(self, condition, message, shown):
        """Record that predict() raises an error for rows with a true `condition`.

        message : text of the error; shown : expression whose value follows the text"""
        self.refusals.append((condition, message, shown))

    def _levels(self, part):
        """Return expressions of the features (0/1 or contrasts) of factor or condition `part`."""
        if factors.is_computed_condition(part):
            true = _Translation(self).value(tree(part.name).args[0])
            coded, out = np.eye(len(part.levels)) if part.matrix is None else part.matrix, []
            for j in range(len(part.labels)):
                at = factors.level_of(part, j) if part.matrix is None else j
                yes, no = (ex.constant(coded[part.levels.index(v), at]) for v in (True, False))
                out.append(ex.Case((true,), (yes,), no))
            return out
        source = self._source(part)
        known = self.known.get(factors.column_with_levels(part), (part.levels,))[0]
        on = [i for i, level in enumerate(part.levels) if level in known]
        levels, one_hot, out = [part.levels[i] for i in on], np.eye(len(part.levels)), []
        for j in range(len(part.labels)):
            coded = one_hot[:, factors.level_of(part, j)]
            coded = coded if part.matrix is None else part.matrix[:, j]
            out.append(ex.lookup(source, levels, coded[on], factors.of_missing(part, j)))
        if part.missing is not None:
            out.append(ex.lookup(source, levels, np.zeros(len(on)), 1.0))
        return out

    def _source(self, part):
        """Return the symbolic expression of a categorical factor's level, not yet coded as numbers.

        part : Levels, such as C(a) or C(np.round(a)). For computed levels, as in the second case,
        also store that predict() raises an error if a level is unknown."""
        name = factors.column_with_levels(part)
        if name is not None:
            return self.columns[name]
        if not all(map(ex.is_exact, part.levels)):
            raise ArgumentError(f"{part.name} has a level that cannot be written exactly")
        (node,) = _Translation(self).columns(tree(part.name).args[0])
        new = ex.call("not", ex.call("among", node, *part.levels))
        self.refuse(new, f"{part.name} has a level that the model does not know:", node)
        return node


def _largest(part):
    """Return an upper bound of the absolute values of `part`, one factor of a term."""
    if isinstance(part, factors.Numeric):
        return ex.LARGEST
    if isinstance(part, factors.Expression):
        return ex.LARGEST**0.5 if function_name(tree(part.name).func) in SMALL else math.inf
    return 1.0 if getattr(part, "matrix", None) is None else np.abs(part.matrix).max(initial=1.0)


def _always_finite(node):
    """Return whether a call (syntax node) is finite for all finite numbers, as center(x) is."""
    name = function_name(node.func)
    return name in patsy_terms.TRANSFORMS.keys() - {"bs"} and all(
        column_name(arg) is not None or (isinstance(arg, ast.Call) and _always_finite(arg))
        for arg in node.args[: count_data(node)]
    )


def _truths(node):
    """Return the operands of a Python syntax node that must be logical, such as both sides of &."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return (node.left, node.right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return (node.operand,)
    if isinstance(node, ast.Call) and function_name(node.func) == "np.where":
        return (node.args[0],)
    return ()


class _Translation:
    """Translation of one Python call in a formula, such as log(x), to expressions."""

    def __init__(self, inputs, states=()):
        self.inputs, self.states = inputs, list(states)

    def columns(self, node):
        """Return the numeric columns that a Python syntax node makes, as a list of export Nodes."""
        value = self.value(node)
        return [_number(v) for v in (value if isinstance(value, list) else [value])]

    def value(self, node):
        """Return the expression of a formula's syntax node; for bs() etc., a list of columns."""
        name = column_name(node)
        if name is not None:
            return self.inputs.complete[name]
        if isinstance(node, ast.Constant):
            return ex.constant(node.value)
        if isinstance(node, ast.Call):
            return self.called(node)
        if isinstance(node, ast.Compare):
            return self.compared(node)
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Invert):
                return ex.call("not", self.value(node.operand))
            value = self.single(node.operand)
            return value if isinstance(node.op, ast.UAdd) else ex.call("neg", value)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            return ex.call(ARITHMETIC[type(node.op)], self.value(node.left), self.value(node.right))
        left, right = self.single(node.left), self.single(node.right)
        if isinstance(node.op, ast.Mod):
            self._refuse_many_periods(left, right)
        function, known = ARITHMETIC[type(node.op)], isinstance(right, ex.Constant)
        if function == "power" and known and right.value in (1.0, 2.0, 3.0, 4.0):
            return ex.product([left] * int(right.value))
        if function == "div" and known and right.value != 0.0:
            function = "over"
        return ex.call(function, left, right)

    def _refuse_many_periods(self, x, period):
        many = ex.call("gt", ex.call("abs", ex.call("div", x, period)), PERIODS)
        self.inputs.refuse(many, f"more than {PERIODS:g} periods from 0 is", x)

    def single(self, node):
        """Translate a Python syntax node to an expression, which must be a single column."""
        (value,) = self.columns(node)
        return value

    def compared(self, node):
        """Return the condition of a node such as a < b < c; for NaN, only a != b is true."""
        sides = [self.value(side) for side in (node.left, *node.comparators)]
        found = None
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if ex.TRUTH in (left.kind, right.kind):
                left, right = _number(left), _number(right)
            if isinstance(op, ast.NotEq):
                true = ex.call("not", ex.call("is_true", ex.call("eq", left, right)))
            else:
                true = ex.call("is_true", ex.call(ARITHMETIC[type(op)], left, right))
            found = true if found is None else ex.call("and", found, true)
        return found

    def called(self, node):
        """Return the expression of a call, a syntax node; a list of columns for bs(x) etc."""
        name = function_name(node.func)
        if name == "I":
            return self.value(node.args[0])
        words = {w.arg: ast.literal_eval(w.value) for w in node.keywords}
        settings = [ast.literal_eval(arg) for arg in node.args[count_data(node) :]]
        if name in DATES:
            cure = "make it a column of the data first"
            raise ArgumentError(f"{ast.unparse(node)} cannot be exported: {cure}")
        if name in patsy_terms.TRANSFORMS:
            data = [self.columns(arg) for arg in node.args[: count_data(node)]]
            state = self.states.pop(0)[1]
            if name in patsy_terms.MOMENTS:
                given = patsy_terms.SCALE | words if name == "scale" else words
                moments = _moments(name, state, **given)
                return [ex.scaled(x, m, s) for x, m, s in zip(data[0], *moments, strict=True)]
            if name == "te":
                products = [ex.product(choice) for choice in itertools.product(*data)]
                into = patsy_terms.apply(name, state, [np.eye(len(products))], settings, words)
                return [ex.weighted(0.0, column, products) for column in into.T]
            return self.spline(name, state, data[0][0], settings, words)
        if name == "np.where":
            yes, no = (self.single(arg) for arg in node.args[1:])
            return ex.Case((self.value(node.args[0]),), (yes,), no)
        values = [self.single(arg) for arg in node.args[: count_data(node)]]
        if name == "np.clip":
            return ex.call("minimum", ex.call("maximum", *values[:2]), values[2])
        if name == "np.round":
            power = 10.0 ** abs(decimals := (settings or [words.get("decimals", 0)])[0])
            first, then = ("mul", "over") if decimals >= 0 else ("over", "mul")
            return ex.call(then, ex.call("rint", ex.call(first, values[0], power)), power)
        if name == "np.exp2":
            return ex.call("exp", ex.weighted(0.0, [np.log(2.0)], values))
        return ex.call(FUNCTIONS[name], *values)

    def spline(self, name, state, x, settings, words):
        """Translate a spline of x into symbolic expressions, one per basis function.

        name : "bs", "cr" or "cc"; state : dict with the fitted knots
        settings, words : further arguments of the call, by position and by name"""
        knots = np.unique(state["_all_knots"])
        degree = state["_degree"] if name == "bs" else CUBIC

        def values(at):
            found = patsy_terms.apply(name, state, [at], settings, words)
            return found.reshape(len(at), -1)

        coefs = _between(knots, degree, values)
        low, high = float(knots[0]), float(knots[-1])
        if name == "bs":  # end polynomials continue beyond the knots unless bounds are set
            ends = {"lower_bound": ex.call("lt", x, low), "upper_bound": ex.call("gt", x, high)}
            given = [end for bound, end in ends.items() if words.get(bound) is not None]
            if given:
                self.inputs.refuse(ex.either(given), "outside of the bounds of bs() is", x)
        elif name == "cc":
            self._refuse_many_periods(x, ex.constant(high - low))
            span = high - low  # by whole periods into [low, high]
            above = ex.call("mod", ex.weighted(-high, [1.0], [x]), span)
            below = ex.call("mod", ex.weighted(low, [-1.0], [x]), span)
            beyond = ex.call("gt", x, high), ex.call("lt", x, low)
            moved = ex.weighted(low, [1.0], [above]), ex.weighted(high, [-1.0], [below])
            x = ex.Case(beyond, moved, x)
        else:  # cr() continues as a straight line
            h = (high - low) * 0.5
            ends = [np.array([low - h, low]), np.array([high, high + h])]
            lines = [_between(end, 1, values) for end in ends]
            wide = [np.pad(line, ((0, 0), (0, degree - 1), (0, 0))) for line in lines]
            coefs = np.vstack([wide[0], coefs, wide[1]])
            knots = np.hstack([low - h, knots, high + h])
        return ex.piecewise(x, knots, coefs)


def _between(breaks, degree, values):
    """Return the coefficients of q piecewise polynomials, (m, degree + 1, q), lowest power first.

    breaks : (m + 1,) ends of the pieces, each scaled to [-1, 1]
    values : function of x (n,); returns values of the polynomials (n, q)"""
    u = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    into = np.linalg.inv(np.vander(u, increasing=True))
    pieces = itertools.pairwise(breaks)
    return np.stack([into @ values(0.5 * ((a + b) + (b - a) * u)) for a, b in pieces])


def _moments(name, state, center=True, rescale=True, ddof=0):
    """Return the means and SDs by which scale() or a similar function standardizes.

    name : name of the function; state : dict of sums that it learned from the training rows
    center, rescale, ddof : arguments of the function"""
    if name == "center":
        mean = np.atleast_1d(state["_sum"] / state["_count"])
        return mean, np.ones(len(mean))
    mean = np.atleast_1d(state["current_mean"])
    spread = np.sqrt(np.atleast_1d(state["current_M2"]) / (state["current_n"] - ddof))
    return (mean if center else np.zeros(len(mean)), spread if rescale else np.ones(len(mean)))


def _number(value):
    """Return a value as a numeric expression; truth values become 1 or 0."""
    if isinstance(value, ex.Node) and value.kind == ex.TRUTH:
        if isinstance(value, ex.Constant):
            return ex.ONE if value.value else ex.ZERO
        return ex.indicator(value)
    return value
