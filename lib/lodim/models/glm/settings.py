"""Checked settings of glm."""

from dataclasses import dataclass

from lodim.checks import MOST_ROWS, check_choice, check_count
from lodim.engine.blocks import SPAN_ROWS
from lodim.fitting.model import Needs

COVARIANCES = ("nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster")


@dataclass(frozen=True)
class Settings:
    """Settings of a glm fit, as explained in the help of `glm`."""

    covariance: str | None
    max_iter: int = 50
    diagnostic_rows: int = 10_000

    def __post_init__(self):
        if self.covariance is not None:
            check_choice(self, "covariance", COVARIANCES)
        check_count(self, "max_iter", most=MOST_ROWS)
        check_count(self, "diagnostic_rows", 0, MOST_ROWS)


def needs(problem, n):
    """Estimate the Needs of a fit to n rows: memory, passes; None for quantile regression."""
    if problem.family.name == "quantile":
        return None
    passes = (3, 5) if problem.family.name == "gaussian" else (6, 12)
    return Needs(8, 4 * 8 * SPAN_ROWS * problem.family.n_scores, passes)
