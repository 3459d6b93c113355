"""Families: deviance, mean and null model of a response, as functions of linear predictors."""

from numbers import Real
from typing import Any

import numpy as np

from lodim.errors import ArgumentError
from lodim.family.amounts import Gamma, Tweedie
from lodim.family.binomial import Binomial, Proportion
from lodim.family.family import NoResponse
from lodim.family.gaussian import Gaussian
from lodim.family.huber import Huber
from lodim.family.multinomial import Multinomial
from lodim.family.negative_binomial import NegativeBinomial
from lodim.family.ordinal import Ordinal
from lodim.family.power import Poisson
from lodim.family.quantile import Quantile

NUMERIC: dict[str, Any] = {
    "gaussian": Gaussian,
    "poisson": Poisson,
    "gamma": Gamma,
    "tweedie": Tweedie,
    "quantile": Quantile,
    "huber": Huber,
    "negative_binomial": NegativeBinomial,
}
CLASSES = {"binomial": Binomial, "multinomial": Multinomial, "ordinal": Ordinal}
FAMILIES = (*NUMERIC, *CLASSES, "none")
# Families with a given parameter: the argument that gives it, its limits, and these in words.
PARAMETERS = {
    "tweedie": ("power", 1.0, 2.0, "between 1 (Poisson) and 2 (gamma)"),
    "quantile": ("quantile", 0.0, 1.0, "between 0 and 1, such as 0.9"),
}
LEARNED = {name: family.learn for name, family in NUMERIC.items() if family.learn}


def make(name, n_levels=0, parameter=None):
    """Return the family with this name, for `n_levels` classes or a parameter such as a power."""
    if name == "multinomial":
        return Multinomial(n_levels)
    if name == "ordinal":
        return Ordinal(max(n_levels - 1, 1))
    known = {**NUMERIC, "binomial": Binomial, "none": NoResponse}[name]
    return known() if parameter is None else known(parameter)


def is_parameter(family, value):
    """Return whether a number, or None, can be the parameter of a family (such as a power)."""
    if family not in PARAMETERS and family not in LEARNED:
        return value is None
    _, least, most, _ = PARAMETERS.get(family, ("", 0.0, np.inf, ""))
    return isinstance(value, Real) and not isinstance(value, bool) and least < value < most


def parameter_of(family, y, weight, given):
    """Return a family's parameter from the dict `given`, or learned from y; None if it has none."""
    own, *_, words = PARAMETERS.get(family, (None, ""))
    for name, value in given.items():
        if value is not None and name != own:
            of = next(known for known, (other, *_) in PARAMETERS.items() if other == name)
            cure = f"give family={of!r}, or leave {name}= out"
            raise ArgumentError(f"{name}= is for family={of!r}, not {family!r}: {cure}")
    if family in LEARNED:
        weight = np.ones(len(y)) if weight is None else weight
        return float(LEARNED[family](y, weight / weight.sum()))
    value = given.get(own)
    if not is_parameter(family, value):
        raise ArgumentError(f"family={family!r} needs {own}=, a number {words}, not {value!r:.40}")
    return None if value is None else float(value)


def has_classes(family):
    return family.name in CLASSES and not isinstance(family, Proportion)


def family_of(design):
    if design.family == "binomial" and design.levels is None:
        return Proportion()
    return make(design.family, len(design.levels or ()), design.parameter)
