"""Checked settings of glm."""

from dataclasses import dataclass

import numpy as np

from lodim.checks import MOST_ROWS, check_choice, check_count
from lodim.engine.blocks import SPAN_ROWS, sum_rows
from lodim.errors import DataWarning, warn
from lodim.family import Proportion
from lodim.fitting.model import Needs

WHOLE = 1e-3  # tolerance of whole numbers of successes, as in R's glm
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


def check_trials(problem):
    """Warn if the weights of proportions are not numbers of trials; return the problem."""
    batch = problem.batch
    if not isinstance(problem.family, Proportion):
        return problem

    def not_whole(i):
        successes = batch.weights[i] * batch.y[i]
        return np.count_nonzero(np.abs(successes - np.round(successes)) > WHOLE)

    count = sum_rows(not_whole, batch.n)
    if count:
        warn(
            f"proportion times weight is not a whole number of successes in {count} of {batch.n} "
            f"rows: are the weights the numbers of trials of {problem.design.response.name!r}?",
            DataWarning,
        )
    return problem


def needs(problem, n):
    """Estimate bytes of memory, and passes over the n rows, of a fit; None for quantiles."""
    if problem.family.name == "quantile":
        return None
    passes = (3, 5) if problem.family.name == "gaussian" else (6, 12)
    return Needs(8, 4 * 8 * SPAN_ROWS * problem.family.n_scores, passes)
