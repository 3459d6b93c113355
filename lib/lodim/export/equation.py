"""A fit as one record that writers print: its columns, what rows it refuses, and its answers."""

from dataclasses import dataclass

from lodim import __version__
from lodim.errors import ArgumentError
from lodim.export.expression import (
    ZERO,
    Column,
    Constant,
    call,
    in_order,
    labelled,
    weighted,
)
from lodim.export.terms import Inputs

FORBIDDEN = "a null character, or half of a surrogate pair"


@dataclass(frozen=True, eq=False)
class Equation:
    """Computation of a fit for a row.

    title : what made it, one line of ASCII
    columns : Column of the data, in order
    refusals : (condition, words, node that they are about) of rows that are refused
    unknown : conditions of rows without an answer, for missing values
    answers : node by class of the response; the one of a number by None
    """

    title: str
    columns: tuple[Column, ...]
    refusals: tuple
    unknown: tuple
    answers: dict

    @property
    def conditions(self):
        """Conditions of the rows that have no answer."""
        return [*self.unknown, *(refusal[0] for refusal in self.refusals)]


def build(kind, design, family, new_levels, scores):
    """Return the Equation of a fit.

    Parameters
    ----------
    kind : str
        Name of the model.
    design : Design
        That new data are read with.
    family : Family
    new_levels : {'error', 'missing'}
    scores : callable(features, offset) -> list of nodes, list of conditions
        The model: link scores, or where it has no response (label, node) pairs, and the rows that
        it does not answer.

    Returns
    -------
    Equation

    Raises
    ------
    ArgumentError
        Something in it cannot be written out.
    """
    inputs = Inputs(design, new_levels)
    offset = _offset(inputs)
    found, unknown = scores(inputs.features, offset)
    answers = _answers(family, design.levels, found)
    equation = Equation(
        title=ascii(f"{kind}: {design.formula}")[1:-1],
        columns=tuple(inputs.columns.values()),
        refusals=tuple(inputs.refusals),
        unknown=(*inputs.unknown, *unknown),
        answers=answers,
    )
    for text in _texts(equation):
        check_text(text)
    return equation


def _offset(inputs):
    """Return the offset, a column like the others; zero without one."""
    design = inputs.design
    if not design.offset_given:
        return ZERO
    if design.offset is None:
        raise ArgumentError(
            "the model was fitted with an array as its offset, which has no name: fit it with the "
            "name of a column to write it out"
        )
    column = inputs.columns.setdefault(design.offset, Column(design.offset))
    inputs.unknown.append(call("is_missing", column))
    return column


def _answers(family, levels, scores):
    """Means of the response by class, or the one of a number by None."""
    if family.name == "none":
        return dict(scores)
    if levels is None:
        score = scores[0]
        inverse = {"log": "exp_limited", "logit": "logistic"}
        mean = score if family.link == "identity" else call(inverse[family.link], score)
        return {None: labelled(mean, "prediction")}
    if len(scores) == 1:
        p = labelled(call("logistic", scores[0]), f"prob_{levels[1]}")
        return {levels[0]: weighted(1.0, [-1.0], [p], f"prob_{levels[0]}"), levels[1]: p}
    largest = call("largest", *scores)
    parts = [call("exp_negative", call("sub", score, largest)) for score in scores]
    total = weighted(0.0, [1.0] * len(parts), parts, "total")
    shares = (call("over", part, total) for part in parts)
    return {
        level: labelled(share, f"prob_{level}") for level, share in zip(levels, shares, strict=True)
    }


def _texts(equation):
    """All texts of the user that will stand in what is written."""
    for node in in_order([*equation.columns, *equation.conditions, *equation.answers.values()]):
        if isinstance(node, Column):
            yield node.name
        elif isinstance(node, Constant) and isinstance(node.value, str):
            yield node.value
    yield from (level for level in equation.answers if isinstance(level, str))


def check_text(text):
    """Raise unless a name or level can stand in any language."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ArgumentError(f"the name or level {text!a:.80} has {FORBIDDEN}: rename it")


def check_named(equation, where):
    """Raise unless all columns have a name, which they need in a query and in a graph."""
    if not all(column.name for column in equation.columns):
        raise ArgumentError(f"a column without a name cannot stand in {where}: rename it")


def made_by():
    """Return the name and version of the writing program."""
    return f"lodim {__version__}"
