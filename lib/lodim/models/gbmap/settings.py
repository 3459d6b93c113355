"""The arguments of gbmap, checked."""

from dataclasses import dataclass

from lodim.engine import ENGINES
from lodim.errors import ArgumentError
from lodim.models.gbmap.kernels import IDENTITY, SOFTPLUS

ACTIVATIONS = {"softplus": SOFTPLUS, "identity": IDENTITY}


@dataclass(frozen=True)
class Settings:
    """What a fit of gbmap is asked for; `gbmap` says what each means. m and lambda_ may be open."""

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
    max_iter: int = 500
    tol: float | None = None
    ftol: float | None = None
    max_stages: int = 100
    path_stages: int = 10
    reference_rows: int = 10_000

    def __post_init__(self):
        for name in ("m", "n_starts", "max_iter", "max_stages", "path_stages", "threads"):
            if not (name in ("m", "threads") and getattr(self, name) is None):
                self._check(name, int, lambda v: v >= 1, "a whole number from 1")
        self._check("reference_rows", int, lambda v: v >= 0, "a whole number from 0")
        self._check("seed", int, lambda v: v >= 0, "a whole number from 0")
        if self.lambda_ is not None:
            self._check("lambda_", (int, float), lambda v: 0 <= v < float("inf"), "0 or more")
        self._check("beta", (int, float), lambda v: 0 < v < float("inf"), "a positive number")
        self._check("l1_ratio", (int, float), lambda v: 0 <= v <= 1, "between 0 and 1")
        for name in ("tol", "ftol"):
            if getattr(self, name) is not None:
                self._check(name, (int, float), lambda v: v >= 0, "0 or more")
        self._check("penalize_intercept", bool, lambda v: True, "True or False")
        for name, allowed in (("activation", ACTIVATIONS), ("engine", ENGINES)):
            if getattr(self, name) not in allowed:
                raise ArgumentError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )

    @property
    def tolerances(self):
        """tol and ftol, given or by default: with the identity, estimates are compared by digit."""
        tol, ftol = (1e-8, 1e-13) if self.activation == "identity" else (1e-5, 1e-6)
        return {
            "tol": tol if self.tol is None else self.tol,
            "ftol": ftol if self.ftol is None else self.ftol,
        }

    def _check(self, name, kind, allowed, words):
        value = getattr(self, name)
        if hasattr(value, "item"):
            value = value.item()
            object.__setattr__(self, name, value)
        right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right or not allowed(value):
            raise ArgumentError(f"{name} must be {words}, not {value!r}")
