"""Checked settings of proset."""

from dataclasses import dataclass
from typing import Any

from lodim.checks import (
    MOST_ROWS,
    check,
    check_choice,
    check_count,
    check_seed,
    check_share,
    check_size,
    check_threads,
)
from lodim.engine.blocks import ENGINES

PATIENCE = 5  # successive steps without gain after which a batch stops


@dataclass(frozen=True)
class Settings:
    """Settings of `proset`; n_batches or a penalty is None if cross-validation must choose it."""

    n_batches: int | None
    n_candidates: int
    lambda_v: Any
    lambda_w: Any
    l1_ratio_v: float
    l1_ratio_w: float
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
        for name in ("n_batches", "max_stages", "path_stages"):
            if name != "n_batches" or self.n_batches is not None:
                check_count(self, name)
        for name in ("n_candidates", "max_iter", "max_rows"):
            if name != "max_rows" or self.max_rows is not None:
                check_count(self, name, most=MOST_ROWS)
        check_seed(self)
        check_threads(self)
        for name in ("lambda_v", "lambda_w"):
            value = getattr(self, name)
            if not (value is None or (isinstance(value, str) and value == "auto")):
                check_size(self, name)
        for name in ("lambda_u", "worth", "tol", "ftol"):
            check_size(self, name)
        for name in ("l1_ratio_v", "l1_ratio_w"):
            check_share(self, name)
        if self.max_fraction is not None:
            check(self, "max_fraction", float, lambda v: 0 < v < 1, "None, or above 0 and below 1")
        check(self, "hard_share", float, lambda v: 0 < v <= 0.5, "above 0 and at most 0.5")
        check_choice(self, "loss", ("squared", "density"))
        check_choice(self, "precision", ("float32", "float64"))
        check_choice(self, "engine", ENGINES)
