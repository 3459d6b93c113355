"""The arguments of glm, checked."""

from dataclasses import dataclass

from lodim.checks import check_choice, check_count

COVARIANCES = ("nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster")


@dataclass(frozen=True)
class Settings:
    """What a fit of glm is asked for; `glm` says what each means."""

    covariance: str | None
    max_iter: int = 50
    diagnostic_rows: int = 10_000

    def __post_init__(self):
        if self.covariance is not None:
            check_choice(self, "covariance", COVARIANCES)
        check_count(self, "max_iter")
        check_count(self, "diagnostic_rows", 0)
