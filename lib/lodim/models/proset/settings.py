"""The arguments of proset, checked."""

from dataclasses import dataclass, replace
from typing import Any

from lodim.checks import check, check_choice, check_count, check_share, check_size
from lodim.engine.blocks import ENGINES

LOSSES = ("squared", "density")
PRECISIONS = ("float32", "float64")
BETWEEN = "None, or between 0 and 1, neither of them"
ROUGH_TOL, ROUGH_FTOL = 1e-4, 1e-6  # of fits of which the held-out loss alone is looked at
ROUGH_CANDIDATES, ROUGH_ITER = 300, 300  # of these fits: candidates and evaluations
PATIENCE = 5  # steps in a row that gain nothing, after which a batch is done


@dataclass(frozen=True)
class Settings:
    """The arguments of a fit; `proset` says what each means.

    n_batches, lambda_v and lambda_w may be open (None); the latter two and l1_ratio_w are "auto"
    until the family is known.
    """

    n_batches: int | None
    n_candidates: int
    lambda_v: Any
    lambda_w: Any
    l1_ratio_v: float
    l1_ratio_w: Any
    loss: str
    seed: int
    threads: int | None
    engine: str = "cpu"
    lambda_u: float = 1e-3
    max_fraction: float | None = None
    hard_share: float = 0.1
    max_rows: int | None = None
    worth: float = 2.0
    max_iter: int = 5000
    tol: float = 1e-6
    ftol: float = 1e-9
    precision: str = "float64"
    max_stages: int = 10
    path_stages: int = 1

    def __post_init__(self):
        for name in ("n_batches", "threads", "max_rows"):
            if getattr(self, name) is not None:
                check_count(self, name)
        for name in ("n_candidates", "max_iter", "max_stages", "path_stages"):
            check_count(self, name)
        check_count(self, "seed", 0)
        for name in ("lambda_v", "lambda_w"):
            if not (getattr(self, name) is None or self._is_auto(name)):
                check_size(self, name)
        for name in ("lambda_u", "worth", "tol", "ftol"):
            check_size(self, name)
        for name in ("l1_ratio_v", "l1_ratio_w"):
            if name == "l1_ratio_v" or not self._is_auto(name):
                check_share(self, name)
        if self.max_fraction is not None:
            check(self, "max_fraction", float, lambda v: 0 < v < 1, BETWEEN)
        check(self, "hard_share", float, lambda v: 0 < v <= 0.5, "above 0 and at most 0.5")
        check_choice(self, "loss", LOSSES)
        check_choice(self, "precision", PRECISIONS)
        check_choice(self, "engine", ENGINES)

    def _is_auto(self, name):
        value = getattr(self, name)
        return isinstance(value, str) and value == "auto"


def roughly(settings):
    """The settings of a fit that is good enough to say its held-out loss, to .001 or so."""
    rough = {"tol": max(settings.tol, ROUGH_TOL), "ftol": max(settings.ftol, ROUGH_FTOL)}
    rough["n_candidates"] = min(settings.n_candidates, ROUGH_CANDIDATES)
    return replace(settings, max_iter=min(settings.max_iter, ROUGH_ITER), **rough)
