"""Checked settings of gbmap."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.checks import (
    INFINITY,
    MOST_ROWS,
    check,
    check_choice,
    check_count,
    check_seed,
    check_share,
    check_size,
    check_threads,
)
from lodim.engine.blocks import ENGINES, SPAN_ROWS, available_threads
from lodim.engine.tiles import TILE, TILES_PER_BLOCK
from lodim.errors import ArgumentError
from lodim.fitting.model import Needs
from lodim.models.gbmap.cpu_kernels import IDENTITY, SOFTPLUS

REFITS = "none", "joint"
ROUND = 8, 10, 12, 15, 20, 25, 30, 40, 50, 60  # numbers of learners of joint fits by default
ACTIVATIONS = {"softplus": SOFTPLUS, "identity": IDENTITY}


BLOCK = TILE * TILES_PER_BLOCK  # rows up to which a pass is faster than Python between two passes
WIDE = 64  # columns from which a Hessian costs as much as dozens of gradients


def most_learners(n, p, K):
    """Return the largest m in ROUND with m K (2 + p) <= n, or 0; n rows, p features, K classes."""
    return max((m for m in ROUND if p and m <= n / (K * (2 + p))), default=0)


def is_wide(n, p):
    """Return whether cross-validation needs cheaper fits, because n and p are both large."""
    return min(n, p) >= WIDE


@dataclass(frozen=True)
class Settings:
    """Settings of a gbmap fit; m, lambda_ and refit are None until they are chosen."""

    m: int | None
    lambda_: float | None
    beta: float
    l1_ratio: float
    activation: str
    n_starts: int
    seed: int
    threads: int | None
    engine: str = "cpu"
    penalize_intercept: bool = False
    max_iter: int = 1000
    tol: float | None = None
    ftol: float | None = None
    max_stages: int = 100
    path_stages: int = 10
    reference_rows: int = 10_000
    refit: str | None = None
    monotone: dict | tuple | None = None

    def __post_init__(self):
        for name in ("m", "n_starts", "max_stages", "path_stages"):
            if name != "m" or self.m is not None:
                check_count(self, name)
        check_count(self, "max_iter", most=MOST_ROWS)
        check_count(self, "reference_rows", 0, MOST_ROWS)
        check_seed(self)
        check_threads(self)
        if self.lambda_ is not None:
            check_size(self, "lambda_")
        check(self, "beta", (int, float), lambda v: 0 < v < INFINITY, "a positive number")
        check_share(self, "l1_ratio")
        for name in ("tol", "ftol"):
            if getattr(self, name) is not None:
                check_size(self, name)
        check(self, "penalize_intercept", bool, lambda v: True, "True or False")
        check_choice(self, "activation", ACTIVATIONS)
        check_choice(self, "engine", ENGINES)
        if self.refit is not None:
            check_choice(self, "refit", REFITS)
        if self.monotone is not None:
            for name, allowed in (("l1_ratio", (0.0,)), ("engine", ("cpu", "auto"))):
                if (value := getattr(self, name)) not in allowed:
                    raise ArgumentError(
                        f"monotone= needs {name}={allowed[0]!r}, not {value!r}: leave one of the "
                        "two out"
                    )
        if self.joint and not self.refittable:
            raise ArgumentError(
                "refit='joint' needs activation='softplus' and l1_ratio=0, not "
                f"{self.activation!r} and {self.l1_ratio:g}: leave refit out, or give "
                "refit='none'"
            )

    @property
    def n_threads(self):
        return self.threads or available_threads()

    @property
    def softplus(self):
        return self.activation == "softplus"

    @property
    def refittable(self):
        """Whether all learners can be fitted jointly: with the softplus and without L1 penalty."""
        return self.softplus and self.l1_ratio == 0.0

    @property
    def smooth(self):
        """Whether Newton's method applies: the loss is smooth, and parameters have no bounds."""
        return self.refittable and self.monotone is None

    @property
    def joint(self):
        return self.refit == "joint"

    @property
    def low_precision(self):
        """Whether three correct digits of a learner suffice, as in fits for cross-validation."""
        return self.ftol is not None and self.ftol >= 1e-6

    @property
    def bits(self):
        """Bits to which learners are rounded: 12, 20 or 53, more with strict tolerances."""
        if self.low_precision:
            return 12
        return 20 if self.tol is None and self.ftol is None else 53

    @property
    def shape(self):
        """Sharpness and code of the activation, for the compiled kernels."""
        return float(self.beta), ACTIVATIONS[self.activation]

    def for_comparison(self, n, p):
        """Return settings of cheaper fits, for cross-validation with n rows and p columns."""
        if not self.softplus:
            return self
        if self.joint:
            self = replace(self, max_iter=min(self.max_iter, 100))
        if not is_wide(n, p):
            return replace(self, n_starts=1)
        tol, ftol = (v if v is not None else w for v, w in ((self.tol, 1e-5), (self.ftol, 1e-6)))
        return replace(self, tol=tol, ftol=ftol, n_starts=1)


def needs(problem, n):
    """Return the Needs (memory and number of passes over the data) of a fit to n rows."""
    settings, K = problem.settings, problem.family.n_scores
    p, number = len(problem.design.names), np.dtype(problem.design.dtype).itemsize
    row = 8 + 8 * (problem.family.link == "identity") + 8 * K + 3 * number
    fixed = 1_000_000 + 5 * 8 * SPAN_ROWS * K * (K > 1)
    if n <= SPAN_ROWS:
        row += 3 * 8 * p  # keys of all rows instead of a sample
    else:
        row, fixed = row + 9 * number * (p > 128), fixed + 20_000 * number * p
    if settings.m is None or settings.lambda_ is None:
        fixed = max(fixed, 16_000_000 + 500_000 * p)
    least, most = (1, settings.max_stages) if settings.m is None else (settings.m, settings.m)
    return Needs(row, fixed, (4 * least * K, 14 * most * K))
