"""Checked settings of melm, and checks that the data suit them."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim import forms
from lodim.checks import (
    MOST_ROWS,
    check,
    check_choice,
    check_count,
    check_seed,
    check_size,
    check_threads,
)
from lodim.engine.blocks import ENGINES, available_threads
from lodim.errors import ArgumentError, DataError, StoreError
from lodim.models.melm.search.whitening import COVARIANCES, SHRUNK

CHOICES = {
    "covariance": COVARIANCES,
    "divergence": ("sum", "mean"),
    "entropy": ("max", "min"),
    "prior": ("shares", "equal"),
    "engine": ENGINES,
}
GAMMA = 1e-3, 1e3  # range of gamma; other kernels are too narrow or too wide
STRONGEST = 1e6  # largest shrinkage factor
FOR_CLASSES = ("gamma", "covariance", "divergence", "penalty", "n_starts", "classifier")
CONTROL_FOR_CLASSES = ("prior", "calibrate", "shrinkage_factor", "max_iter", "tol")


def _name_of_classifier(classifier):
    """Return the classifier's name if it can be saved; raise a StoreError for an estimator."""
    if not isinstance(classifier, str):
        raise StoreError(
            f"a file cannot hold the classifier {type(classifier).__name__}: "
            "update(data, classifier='kde') makes a fit that can be saved"
        )
    return classifier


CLASSIFIER = forms.Form(forms.choice("kde").read, _name_of_classifier)


@dataclass(frozen=True)
class Settings:
    """Settings of a melm fit, as explained in the help of `melm`.

    gamma may be None or, in cross-validation, a tuple; k may be None until the data are known. A
    covariance of None becomes "shrunk".
    """

    k: int | None
    gamma: Any
    covariance: str | None
    divergence: str
    entropy: str
    penalty: bool
    n_starts: int
    classifier: Any
    seed: int
    threads: int | None
    engine: str = "cpu"
    prior: str = "shares"
    calibrate: bool = True
    max_iter: int = 500
    tol: float = 1e-6
    reference_rows: int = 10_000
    shrinkage_factor: float = 1.0

    def __post_init__(self):
        check_count(self, "n_starts")
        check_count(self, "max_iter", most=MOST_ROWS)
        if self.k is not None:
            check_count(self, "k")
        check_count(self, "reference_rows", 10, MOST_ROWS)
        check_seed(self)
        check_threads(self)
        if self.gamma is not None and not isinstance(self.gamma, tuple):
            least, most = GAMMA
            wanted = f"a positive number, from {least:g} to {most:g}"
            check(self, "gamma", (int, float), lambda v: least <= v <= most, wanted)
        wanted = f"a number from 0 to {STRONGEST:g}"
        check(self, "shrinkage_factor", (int, float), lambda v: 0 <= v <= STRONGEST, wanted)
        check_size(self, "tol")
        for name in ("penalty", "calibrate"):
            check(self, name, bool, lambda v: True, "True or False")
        if self.covariance is None:
            object.__setattr__(self, "covariance", SHRUNK)
        for name, choices in CHOICES.items():
            check_choice(self, name, choices)
        _check_classifier(self.classifier)

    @property
    def has_builtin_classifier(self):
        """Whether kernel densities classify, so that the fit can be saved."""
        return self.classifier == "kde"

    @property
    def n_threads(self):
        """Number of threads; all available threads by default."""
        return self.threads or available_threads()


def _check_classifier(classifier):
    if isinstance(classifier, str) and classifier == "kde":
        return
    if isinstance(classifier, type):
        raise ArgumentError(
            f"classifier is a class: give an instance of it, {classifier.__name__}()"
        )
    if not callable(getattr(classifier, "fit", None)):
        raise ArgumentError(
            "classifier must be 'kde' or an estimator with fit and predict_proba, as of "
            f"scikit-learn, not {classifier!r}"
        )
    if not callable(getattr(classifier, "predict_proba", None)):
        raise ArgumentError(
            f"the classifier {type(classifier).__name__} has no predict_proba, and lodim needs "
            "probabilities: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )


def validate(problem):
    """Return the problem unchanged; raise an error if its data and arguments do not suit melm."""
    if problem.arguments["offset"] is not None:
        raise ArgumentError("melm takes no offset: a view has no score that it could be part of")
    if problem.family.name == "gaussian":
        raise DataError(
            f"the response {problem.design.response.name!r} is a number, and melm needs classes: "
            "give family='multinomial' if its values are classes"
        )
    if problem.family.name == "none":
        _check_without_classes(problem)
    else:
        _check_with_classes(problem.settings)
        _check_class_sizes(problem)
    _check_dimensions(problem)
    return problem


def _check_without_classes(problem):
    parameters = inspect.signature(problem.model.function).parameters
    for name in FOR_CLASSES:
        if problem.arguments[name] != parameters[name].default:
            raise ArgumentError(f"{name} is for classes, and the formula has no response")
    for name in CONTROL_FOR_CLASSES:
        if getattr(problem.settings, name) != getattr(Settings, name):
            raise ArgumentError(f"{name} is for classes, and the formula has no response")


def _check_with_classes(settings):
    if settings.entropy != "max":
        raise ArgumentError("entropy='min' is for a formula without a response: '~ .'")
    if settings.shrinkage_factor != 1.0 and settings.covariance != SHRUNK:
        raise ArgumentError(
            "shrinkage_factor is for covariance='shrunk', and "
            f"covariance={settings.covariance!r} is given"
        )
    if settings.prior != "shares" and not settings.has_builtin_classifier:
        raise ArgumentError("prior='equal' is for classifier='kde'")


def _check_class_sizes(problem):
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
