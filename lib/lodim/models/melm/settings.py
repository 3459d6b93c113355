"""Checked settings of melm."""

from dataclasses import dataclass
from typing import Any

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
from lodim.errors import ArgumentError, StoreError
from lodim.models.melm.whitening import COVARIANCES, SHRUNK

STRONGEST = 1e6  # largest shrinkage factor
SEARCH = "divergence", "n_starts", "max_iter", "tol"
FOR_CLASSES = "gamma", "covariance", "classifier", "prior", "calibrate", "shrinkage_factor", *SEARCH


def _name_of_classifier(classifier):
    if not isinstance(classifier, str):
        raise StoreError(
            f"a fit with the classifier {type(classifier).__name__} cannot be saved: "
            "update(data, classifier='kde') returns a fit that can"
        )
    return classifier


CLASSIFIER = forms.Form(forms.choice("kde").read, _name_of_classifier)


@dataclass(frozen=True)
class Settings:
    """Settings of a melm fit; k (dimensions) and gamma (kernel width) may be None until chosen."""

    k: int | None
    gamma: Any
    covariance: str | None
    divergence: str
    entropy: str
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
            wanted = "a positive number, from 0.001 to 1000"
            # Other kernels are too narrow or too wide.
            check(self, "gamma", (int, float), lambda v: 1e-3 <= v <= 1e3, wanted)
        wanted = f"a number from 0 to {STRONGEST:g}"
        check(self, "shrinkage_factor", (int, float), lambda v: 0 <= v <= STRONGEST, wanted)
        check_size(self, "tol")
        check(self, "calibrate", bool, lambda v: True, "True or False")
        if self.covariance is None:
            object.__setattr__(self, "covariance", SHRUNK)
        check_choice(self, "covariance", COVARIANCES)
        check_choice(self, "divergence", ("sum", "mean"))
        check_choice(self, "entropy", ("max", "min"))
        check_choice(self, "prior", ("shares", "equal"))
        check_choice(self, "engine", ENGINES)
        _check_classifier(self.classifier)

    @property
    def has_builtin_classifier(self):
        """Whether kernel densities classify, and not a user's estimator."""
        return self.classifier == "kde"

    @property
    def n_threads(self):
        return self.threads or available_threads()


def _check_classifier(classifier):
    if isinstance(classifier, str) and classifier == "kde":
        return
    if isinstance(classifier, type):
        raise ArgumentError(
            f"classifier must be an instance, not a class: give {classifier.__name__}()"
        )
    if not callable(getattr(classifier, "fit", None)):
        raise ArgumentError(
            "classifier must be 'kde' or an estimator with fit and predict_proba, such as a "
            f"scikit-learn classifier, not {classifier!r}"
        )
    if not callable(getattr(classifier, "predict_proba", None)):
        raise ArgumentError(
            f"the classifier {type(classifier).__name__} must have predict_proba: wrap it in "
            "sklearn.calibration.CalibratedClassifierCV"
        )
