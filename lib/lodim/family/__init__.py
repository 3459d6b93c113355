"""Families: deviance, mean and null model of a response, as functions of the link scores.

Scores are (n, K). K is 1 for gaussian (identity link), binomial (logit of the second level),
poisson and gamma (log link), and the number of classes for multinomial (softmax). Responses are
float (n,): numbers, or class codes. Each file defines one or more families and their loss as scalar
functions for kernels; `losses` selects among these functions.
"""

from lodim.family.binomial import Binomial, Proportion
from lodim.family.family import LARGEST_LOG, RAREST, Family, NoResponse, beyond_null, hits
from lodim.family.gaussian import Gaussian
from lodim.family.multinomial import Multinomial
from lodim.family.power import Gamma, Poisson

__all__ = [
    "LARGEST_LOG", "RAREST", "Binomial", "Family", "Gamma", "Gaussian", "Multinomial",
    "NoResponse", "Poisson", "Proportion", "beyond_null", "family_of", "has_classes", "hits",
    "make",
]  # fmt: skip


def make(name, n_levels):
    """Return the family with this name, for a response with `n_levels` levels."""
    if name == "multinomial":
        return Multinomial(n_levels)
    known = (Gaussian(), Binomial(), Poisson(), Gamma(), NoResponse())
    return {family.name: family for family in known}[name]


def has_classes(family):
    """Return whether responses of a family are classes."""
    return family.name in ("binomial", "multinomial") and not isinstance(family, Proportion)


def family_of(design):
    """Return the family of a design's response."""
    if design.family == "binomial" and design.levels is None:
        return Proportion()
    return make(design.family, len(design.levels or ()))
