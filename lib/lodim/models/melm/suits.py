"""Whether data and arguments suit melm: what does not is refused in words."""

import inspect

import numpy as np

from lodim.errors import ArgumentError, DataError

FOR_CLASSES = ("gamma", "covariance", "divergence", "penalty", "n_starts", "classifier")


def check(problem):
    """The problem as it is; raises where it does not suit melm."""
    if problem.arguments["offset"] is not None:
        raise ArgumentError("melm takes no offset: a view has no score that it could be part of")
    if problem.family.name == "gaussian":
        raise DataError(
            f"melm parts classes, and the response {problem.design.response.name!r} is a number: "
            "give family='multinomial' if its values are classes"
        )
    if problem.family.name == "none":
        _check_without_classes(problem)
    else:
        _check_with_classes(problem.settings)
        _check_rows(problem)
    _check_dimensions(problem)
    return problem


def _check_without_classes(problem):
    parameters = inspect.signature(problem.model).parameters
    for name in FOR_CLASSES:
        if problem.arguments[name] != parameters[name].default:
            raise ArgumentError(f"{name} is for classes, and the formula has no response")


def _check_with_classes(settings):
    if settings.entropy != "max":
        raise ArgumentError("entropy='min' is for a formula without a response: '~ .'")
    if settings.n_neighbours is not None and settings.classifier != "knn":
        raise ArgumentError("n_neighbours is for classifier='knn'")
    if settings.prior != "shares" and not settings.own_classifier:
        raise ArgumentError("prior='equal' is for the classifiers 'kde' and 'knn'")


def _check_rows(problem):
    batch, levels, needed = problem.batch, problem.design.response.levels, problem.settings.k + 1
    counts = np.bincount(batch.y[batch.positive_weight].astype(int), minlength=len(levels))
    least = int(counts.argmin())
    if counts[least] < needed:
        raise DataError(
            f"rows of class {levels[least]!r} that count: {counts[least]}, and for k="
            f"{problem.settings.k} a density needs {needed}: leave the class out, or join it "
            "with another"
        )


def _check_dimensions(problem):
    varying = len(problem.design.names) - len(problem.design.constant)
    k = problem.settings.k
    if varying < k:
        raise DataError(
            f"k={k} dimensions need {k} features that vary, and there are {varying}: "
            f"give k={max(1, varying)}"
            if varying
            else "no feature varies: there is nothing to see"
        )
