"""A fit written as an ONNX model: one input of shape (n, 1) per column, and one output."""

import json
from collections import Counter
from functools import partial, reduce

import numpy as np

from lodim.errors import ArgumentError, MissingExtraError
from lodim.export.equation import check_named, software
from lodim.export.expression import LARGEST, TEXT, Call, Case, Column, Constant, Sum, in_order

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
MISSING, NEW = -1, -2  # codes of missing texts and of unknown texts
NAMED_ALIKE = ["add", "sub", "mul", "div", "neg", "and", "or", "not", "abs", "sign", "exp", "log"]
NAMED_ALIKE += ["sqrt", "floor", "ceil", "tanh", "sin"]
DIRECT = {  # operators that ONNX Runtime supports for doubles
    **{name: name.title() for name in NAMED_ALIKE},
    **{"over": "Div", "exp_negative": "Exp", "power": "Pow", "rint": "Round", "largest": "Max"},
    **{"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal"},
    **{"logistic": "Sigmoid", "minimum": "Min", "maximum": "Max"},
}
# Operators that ONNX Runtime supports in single precision only
SINGLE = {f"arc{name}": f"A{name}" for name in ("sin", "cos", "tan", "cosh", "tanh")}
SINGLE |= {"sinh": "Sinh", "cosh": "Cosh"}
STEPS = {  # operators applied one after the other, some with a constant
    "cos": (("Add", 0.5 * np.pi), ("Sin",)),
    "log1p": (("Add", 1.0), ("Log",)),
    "expm1": (("Exp",), ("Sub", 1.0)),
    "log2": (("Log",), ("Div", np.log(2.0))),
    "log10": (("Log",), ("Div", np.log(10.0))),
    "exp_limited": (("Min", 700.0), ("Exp",)),
    "log_positive": (("Max", 1e-300), ("Log",)),
    "is_finite": (("Abs",), ("Less", np.inf)),
}


def write(equation):
    """Return the onnx.ModelProto that computes the predictions of an Equation."""
    try:
        import onnx
    except ImportError:
        cure = "pip install 'lodim[onnx]'"
        raise MissingExtraError(f"to_onnx() needs the package onnx: {cure}") from None
    if not equation.columns:
        raise ArgumentError("a model without columns cannot be exported: ONNX needs inputs")
    check_named(equation, "ONNX")
    return _Graph(onnx, equation).model()


class _Graph:
    """Builder of an ONNX graph; methods return names of tensors, (n, 1) or (1, 1) if constant."""

    def __init__(self, onnx, equation):
        self.onnx, self.helper, self.equation = onnx, onnx.helper, equation
        self.nodes, self.constants, self.values, self.known = [], {}, {}, {}
        self.taken, self.count = {column.name for column in equation.columns}, Counter()
        self.order = in_order(equation.roots)
        self.varying = set()  # nodes that are tensors (n, 1), not (1, 1)
        for node in self.order:
            if isinstance(node, Column) or any(id(part) in self.varying for part in node.parts):
                self.varying.add(id(node))
        texts = [n.value for n in self.order if isinstance(n, Constant) and n.kind == TEXT]
        self.codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}

    # Building ----------------------------------------------------------------------------------

    def unused(self, stem):
        while True:
            self.count[stem] += 1
            name = f"{stem}_{self.count[stem]}"
            if name not in self.taken:
                return name

    def add(self, operator, *inputs, domain="", **attributes):
        """Add an ONNX operator with its inputs, domain and attributes; return its output's name."""
        out = self.unused(operator.lower())
        node = self.helper.make_node(operator, list(inputs), [out], domain=domain, **attributes)
        self.nodes.append(node)
        return out

    def array(self, values, dtype=np.float64):
        """Return the name of a constant tensor of `values`; equal tensors are stored only once."""
        values = np.asarray(values, dtype)
        key = values.dtype.str, values.shape, values.tobytes()
        if key not in self.constants:
            name = self.unused("constant")
            self.constants[key] = self.onnx.numpy_helper.from_array(values, name)
        return self.constants[key].name

    def single(self, operator, value):
        """Apply an operator to tensor `value` in single precision; return the output as doubles."""
        kinds = self.onnx.TensorProto
        low = self.add(operator, self.add("Cast", value, to=kinds.FLOAT))
        return self.add("Cast", low, to=kinds.DOUBLE)

    # Expressions -------------------------------------------------------------------------------

    def value(self, node):
        return self.values[id(node)]

    def compute(self, node):
        """Add the operators of an expression (no Column) to the graph; return its tensor's name."""
        if isinstance(node, Constant):
            if node.kind == TEXT:
                return self.array([[self.codes[node.value]]], np.int64)
            return self.array([[float(node.value)]])
        if isinstance(node, Sum):
            weights = self.array(np.array(node.weights)[:, None])
            total = self.add("MatMul", self.beside(node.args), weights)
            return self.add("Add", total, self.array([[node.bias]]))
        if isinstance(node, Case):
            result = self.value(node.default)
            for condition, value in zip(node.conditions[::-1], node.values[::-1], strict=True):
                result = self.add("Where", self.truth(condition), self.value(value), result)
            return result
        return self.call(node) if isinstance(node, Call) else self.kernels(node)

    def column(self, node):
        """Return the tensor of a Column: doubles, NaN if missing, or integer codes of texts."""
        if node.kind != TEXT:
            return node.name
        if "" in self.codes:
            what = f"column {node.name!r} has the level '', which means a missing text in ONNX"
            raise ArgumentError(f"{what}: rename the level, fit again and export that fit")
        keys, codes = [*self.codes, ""], [*self.codes.values(), MISSING]
        codes = {"keys_strings": keys, "values_int64s": codes, "default_int64": NEW}
        return self.add("LabelEncoder", node.name, domain="ai.onnx.ml", **codes)

    def truth(self, node):
        """Return a tensor of bools: the condition `node`, or whether the number `node` is 1."""
        if isinstance(node, Call):
            return self.value(node)
        return self.add("Equal", self.value(node), self.array([[1.0]]))

    def beside(self, nodes):
        """Return one tensor (n, k) that has the k expressions `nodes` as columns."""
        key = tuple(map(id, nodes))
        if key not in self.known:
            zero = self.array([[0.0]])
            columns = [self.value(node) for node in nodes]
            for k, node in enumerate(nodes):
                if id(node) not in self.varying:
                    columns[k] = self.add("Add", self.zeros, columns[k])
            self.known[key] = self.add("Concat", *columns, axis=1) if columns else zero
        return self.known[key]

    def call(self, node):
        name, args = node.function, node.args
        if name == "among":
            return self.among(*args)
        if name == "unlisted":
            missing = self.is_missing(self.value(args[0]))
            return self.add("Not", self.add("Or", missing, self.among(*args)))
        if name == "is_true":
            return self.truth(args[0])
        if name in ("and", "or", "not"):
            return self.add(DIRECT[name], *map(self.truth, args))
        values = [self.value(a) for a in args]
        by_code = name == "is_missing" or (
            name == "eq" and any(isinstance(a, Constant) for a in args)
        )
        if args[0].kind == TEXT and not by_code:
            what = "ONNX cannot compare two columns of text by < or >"
            raise ArgumentError(f"{what}: make the comparison a column of the data first")
        if name in DIRECT:
            return self.add(DIRECT[name], *values)
        if name in SINGLE:
            return self.single(SINGLE[name], *values)
        if name in STEPS:
            return self.stepwise(name, *values)
        return getattr(self, name)(*values)

    def stepwise(self, name, value):
        """Apply function `name`, such as "log2", to tensor `value`; return the output's name."""
        for operator, *constants in STEPS[name]:
            value = self.add(operator, value, *(self.array([[c]]) for c in constants))
        return value

    def among(self, source, *levels):
        same = (self.add("Equal", self.value(source), self.value(level)) for level in levels)
        return reduce(partial(self.add, "Or"), same)

    def is_missing(self, value):
        if value in self.texts:
            return self.add("Equal", value, self.array([[MISSING]], np.int64))
        return self.add("IsNaN", value)

    def tan(self, value):
        return self.add("Div", self.add("Sin", value), self.stepwise("cos", value))

    def square(self, value):
        return self.add("Mul", value, value)

    def cbrt(self, value):
        root = self.add("Pow", self.add("Abs", value), self.array([[1.0 / 3.0]]))
        return self.add("Mul", self.add("Sign", value), root)

    def arcsinh(self, value):
        size = self.add("Abs", value)
        angle = self.add("Log", self.add("Add", size, self.hypot(size, self.array([[1.0]]))))
        return self.add("Mul", self.add("Sign", value), angle)

    def trunc(self, value):
        whole = self.add("Floor", self.add("Abs", value))
        return self.add("Mul", self.add("Sign", value), whole)

    def hypot(self, a, b):
        return self.add("Sqrt", self.add("Add", self.square(a), self.square(b)))

    def floor_divide(self, a, b):
        return self.add("Floor", self.add("Div", a, b))

    def mod(self, a, b):
        return self.add("Sub", a, self.add("Mul", b, self.floor_divide(a, b)))

    def arctan2(self, y, x):
        """Return the angle of the point (x, y), from the arctangent of y / x and the signs."""
        zero, pi = self.array([[0.0]]), self.array([[np.pi]])
        angle = self.single("Atan", self.add("Div", y, x))
        turned = self.add("Where", self.add("Less", y, zero), self.add("Neg", pi), pi)
        left = self.add("Less", x, zero)
        return self.add("Where", left, self.add("Add", angle, turned), angle)

    def softplus(self, value):
        small = self.add("Exp", self.add("Neg", self.add("Abs", value)))
        largest = self.add("Max", value, self.array([[0.0]]))
        return self.add("Add", largest, self.stepwise("log1p", small))

    def kernels(self, node):
        """Return the tensor (n, 1) of a sum of Gaussian kernels, or of its log if node.log."""
        point = self.add("Unsqueeze", self.beside(node.args), self.array([1], np.int64))
        gaps = self.add("Sub", point, self.array(node.points[None]))
        squares = self.add("ReduceSumSquare", gaps, axes=[2], keepdims=0)
        half, weights = self.array([[-0.5]]), self.array(node.weights[:, None])
        exponent = self.add("Mul", squares, half)
        if not node.log:
            return self.add("MatMul", self.add("Exp", exponent), weights)
        most = self.add("ReduceMax", exponent, axes=[1], keepdims=1)
        total = self.add("MatMul", self.add("Exp", self.add("Sub", exponent, most)), weights)
        return self.add("Add", self.add("Log", total), most)

    # Model -------------------------------------------------------------------------------------

    def model(self):
        kinds = self.onnx.TensorProto
        columns, answers = self.equation.columns, self.equation.answers
        for column in columns:
            self.values[id(column)] = self.column(column)
        self.texts = {self.value(c) for c in columns if c.kind == TEXT}
        unanswered = reduce(partial(self.add, "Or"), map(self._is_too_large, columns))
        never = self.add("And", unanswered, self.array([[False]], bool))
        self.zeros = self.add("Cast", never, to=kinds.DOUBLE)
        for node in self.order:
            if not isinstance(node, Column):
                self.values[id(node)] = self.compute(node)
        for condition in self.equation.conditions:
            unanswered = self.add("Or", unanswered, self.truth(condition))
        name = "prediction" if None in answers else "probabilities"
        out = self.add("Where", unanswered, self.array([[np.nan]]), self.beside(answers.values()))
        last = self.unused(name)
        name = last if name in self.taken else name
        self.nodes.append(self.helper.make_node("Identity", [out], [name]))
        info = self.helper.make_tensor_value_info
        types = [kinds.STRING if c.kind == TEXT else kinds.DOUBLE for c in columns]
        inputs = [info(c.name, kind, ["n", 1]) for c, kind in zip(columns, types, strict=True)]
        output = info(name, kinds.DOUBLE, ["n", len(answers)])
        read = {name for node in self.nodes for name in node.input}
        constants = [array for array in self.constants.values() if array.name in read]
        graph = self.helper.make_graph(self.nodes, "lodim", inputs, [output], constants)
        name, _, version = software().partition(" ")
        how = {"producer_name": name, "producer_version": version, "ir_version": IR_VERSION}
        sets = [("", OPSET), ("ai.onnx.ml", ML_OPSET)]
        how["opset_imports"] = [self.helper.make_opsetid(*s) for s in sets]
        model = self.helper.make_model(graph, doc_string=self.equation.title, **how)
        if None not in answers:
            self.helper.set_model_props(model, {"classes": json.dumps(list(answers))})
        self.onnx.checker.check_model(model)
        return model

    def _is_too_large(self, column):
        value = self.value(column)
        if column.kind == TEXT:
            return self.add("Equal", value, self.array([[NEW - 1]], np.int64))
        return self.add("Greater", self.add("Abs", value), self.array([[LARGEST]]))
