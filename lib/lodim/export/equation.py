"""A fit in a form that can be written as code: columns, predictions, and rows that raise errors."""

from dataclasses import dataclass
from functools import partial

from lodim import __version__
from lodim.errors import ArgumentError
from lodim.export.expression import ZERO, Column, Constant, call, in_order, labelled, weighted
from lodim.export.terms import Inputs


@dataclass(frozen=True, eq=False)
class Equation:
    """A fit's predictions for one row of data, as symbolic expressions."""

    title: str
    columns: tuple[Column, ...]
    stops: tuple  # of (condition, message of the error, expression in it); no message: NaN
    answers: dict  # class -> expression of its probability; for a number None -> of the mean

    @property
    def conditions(self):
        """All conditions under which a row has no prediction, as expressions."""
        return [condition for condition, _, _ in self.stops]

    @property
    def roots(self):
        """Expressions from which an export starts: columns, conditions and predictions."""
        return [*self.columns, *self.conditions, *self.answers.values()]


def build(kind, design, family, new_levels, scores):
    """Translate the predictions of a fit into an Equation: expressions, to write as code.

    kind : name of the model
    design, family : the fit's Design (columns and terms) and Family
    new_levels : "error" or "missing", as for predict()
    scores : function of features and offset; returns linear predictors, and conditions for NaN
    Raise ArgumentError if a part cannot be written."""
    inputs = Inputs(design, new_levels)
    offset = ZERO
    if design.offset_given:
        if design.offset is None:
            cure = "fit it with the name of a column as offset="
            raise ArgumentError(f"a fit with an array as offset cannot be exported: {cure}")
        offset = inputs.columns.setdefault(design.offset, Column(design.offset))
        inputs.unknown.append(call("is_missing", offset))
    # Without a response, linear predictors are pairs (label, expression).
    found, unknown = scores(inputs.features, offset)
    answers = _answers(family, design.levels, found)
    missing, other = ([(one, "", None) for one in group] for group in (inputs.unknown, unknown))
    equation = Equation(
        title=ascii(f"{kind}: {design.formula}")[1:-1],
        columns=tuple(inputs.columns.values()),
        stops=(*missing, *inputs.refusals, *other),
        answers=answers,
    )
    texts = [level for level in answers if isinstance(level, str)]
    for node in in_order(equation.roots):
        if isinstance(node, Column):
            texts.append(node.name)
        elif isinstance(node, Constant) and isinstance(node.value, str):
            texts.append(node.value)
    for text in texts:
        check_text(text)
    return equation


def _answers(family, levels, scores):
    """Return a fit's predictions as expressions: {class: probability}, or {None: mean}.

    levels : the classes, or None for a number
    scores : expressions of linear predictors; pairs (label, expression) without a response"""
    if family.name == "none":
        return dict(scores)
    if levels is None:
        score = scores[0]
        inverse = {"log": "exp_limited", "logit": "logistic"}
        mean = score if family.link == "identity" else call(inverse[family.link], score)
        return {None: labelled(mean, "prediction")}
    if family.name == "ordinal":
        above = [call("logistic", score) for score in scores]  # of a class or a higher one
        between = map(partial(call, "sub"), above, above[1:])
        shares = [weighted(1.0, [-1.0], above[:1]), *between, above[-1]]
    elif len(scores) == 1:
        p = labelled(call("logistic", scores[0]), f"prob_{levels[1]}")
        return {levels[0]: weighted(1.0, [-1.0], [p], f"prob_{levels[0]}"), levels[1]: p}
    else:
        largest = call("largest", *scores)
        parts = [call("exp_negative", call("sub", score, largest)) for score in scores]
        total = weighted(0.0, [1.0] * len(parts), parts, "total")
        shares = [call("over", part, total) for part in parts]
    named = zip(levels, shares, strict=True)
    return {level: labelled(share, f"prob_{level}") for level, share in named}


def check_text(text):
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        forbidden = "a null character, or half of a surrogate pair"
        raise ArgumentError(f"the name or level {text!a:.80} has {forbidden}: rename it")


def check_named(equation, where):
    if not all(column.name for column in equation.columns):
        raise ArgumentError(f"a column without a name cannot stand in {where}: rename it")


def software():
    return f"lodim {__version__}"
