"""The arguments of melm, checked."""

from dataclasses import dataclass
from typing import Any

from lodim.checks import check, check_choice, check_count, check_size
from lodim.engine.blocks import ENGINES
from lodim.errors import ArgumentError
from lodim.models.melm.search.covariance import COVARIANCES

DIVERGENCES = ("sum", "mean")
ENTROPIES = ("max", "min")
CLASSIFIERS = ("kde", "knn")
PRIORS = ("shares", "equal")
GAMMA = 1e-3, 1e3  # beyond, kernels see each row alone, or no row at all


@dataclass(frozen=True)
class Settings:
    """What a fit of melm is asked for; `melm` says what each means. gamma may be open."""

    k: int
    gamma: float | None
    covariance: str
    divergence: str
    entropy: str
    penalty: bool
    n_starts: int
    classifier: Any
    seed: int
    threads: int | None
    engine: str = "cpu"
    prior: str = "shares"
    n_neighbours: int | None = None
    calibrate: bool = True
    max_iter: int = 500
    tol: float = 1e-6
    reference_rows: int = 10_000

    def __post_init__(self):
        for name in ("k", "n_starts", "max_iter"):
            check_count(self, name)
        for name in ("threads", "n_neighbours"):
            if getattr(self, name) is not None:
                check_count(self, name)
        check_count(self, "reference_rows", 10)
        check_count(self, "seed", 0)
        if self.gamma is not None:
            least, most = GAMMA
            check(self, "gamma", (int, float), lambda v: least <= v <= most,
                  f"a positive number, from {least:g} to {most:g}")  # fmt: skip
        check_size(self, "tol")
        check(self, "penalty", bool, lambda v: True, "True or False")
        check(self, "calibrate", bool, lambda v: True, "True or False")
        check_choice(self, "covariance", COVARIANCES)
        check_choice(self, "divergence", DIVERGENCES)
        check_choice(self, "entropy", ENTROPIES)
        check_choice(self, "prior", PRIORS)
        check_choice(self, "engine", ENGINES)
        _check_classifier(self.classifier)

    @property
    def own_classifier(self):
        """Whether the classifier is one of lodim's, which a file can hold."""
        return isinstance(self.classifier, str)


def _check_classifier(classifier):
    if isinstance(classifier, str):
        if classifier not in CLASSIFIERS:
            known = ", ".join(CLASSIFIERS)
            raise ArgumentError(
                f"classifier must be one of {known}, or an estimator with fit and predict_proba "
                f"as scikit-learn's, not {classifier!r}"
            )
        return
    if isinstance(classifier, type):
        raise ArgumentError(
            f"classifier is a class: give an instance of it, {classifier.__name__}()"
        )
    if not callable(getattr(classifier, "fit", None)):
        raise ArgumentError(
            "classifier must be 'kde', 'knn' or an estimator with fit and predict_proba as "
            f"scikit-learn's, not {classifier!r}"
        )
    if not callable(getattr(classifier, "predict_proba", None)):
        raise ArgumentError(
            f"the classifier {type(classifier).__name__} has no predict_proba, and lodim needs "
            "probabilities: wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
