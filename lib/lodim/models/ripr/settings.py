"""Checked settings of ripr."""

from dataclasses import dataclass
from typing import Any

from lodim.checks import check, check_count, check_seed, check_size, check_threads, one_of
from lodim.errors import ArgumentError

MOST_DIM = 3  # most features of a view, so that it can be drawn
ASSIGNMENT, VOTE = "assignment", "vote"  # methods: one view per row, or all views by votes


@dataclass(frozen=True)
class Settings:
    """Checked settings of a ripr fit (see `ripr`); in cross-validation, lambda_ may be a tuple."""

    max_dim: int | None
    min_dim: int | None
    k: int | None
    lambda_: Any
    alpha: float
    balanced: bool
    n_clusters: int | None
    n_views: int | None
    max_views: int | None
    seed: int
    threads: int | None
    constraints: Any = None
    method: str | None = None
    axes: Any = None
    smooth: float = 1.0
    share: float = 0.05
    tolerance: float = 0.5

    def __post_init__(self):
        for name in ("min_dim", "k", "n_clusters", "n_views", "max_views"):
            if getattr(self, name) is not None:
                check_count(self, name)
        check_seed(self)
        check_threads(self)
        whole = f"an integer from 1 to {MOST_DIM}"
        if self.max_dim is not None:
            check(self, "max_dim", int, lambda v: 1 <= v <= MOST_DIM, whole)
        most = self.max_dim or MOST_DIM
        if self.min_dim is not None and self.min_dim > most:
            raise ArgumentError(f"min_dim must be at most max_dim={most}, not {self.min_dim}")
        if self.method is not None:
            one_of("method", self.method, (VOTE, ASSIGNMENT))
        if self.lambda_ is not None and not isinstance(self.lambda_, tuple):
            check_size(self, "lambda_")
        for name in ("smooth", "tolerance"):
            check_size(self, name)
        check(self, "alpha", (int, float), lambda v: 0 <= v < 1, "at least 0 and below 1")
        check(self, "balanced", bool, lambda v: True, "True or False")
        check(self, "share", (int, float), lambda v: 0 <= v < 1, "at least 0 and below 1")
