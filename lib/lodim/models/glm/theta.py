"""Theta of the negative binomial: maximum likelihood, alternating with the coefficients."""

from dataclasses import replace

from lodim.family.negative_binomial import NegativeBinomial, fitted_theta
from lodim.models.glm.estimate import fit_stages

CLOSE = 1e-9  # relative change of theta at which the alternation stops


def with_theta(problem):
    """Return the problem with a negative binomial family whose theta fits its rows.

    The variance is mu + mu^2 / theta. Coefficients and theta are estimated in turn, as in R's
    MASS::glm.nb."""
    family = problem.family
    settings = replace(problem.settings, diagnostic_rows=0)
    for _ in range(settings.max_iter):
        estimates, _, _ = next(fit_stages(problem.batch, family, settings))
        before, family = family.theta, NegativeBinomial(_theta(problem, estimates, family)[0])
        if abs(family.theta - before) <= CLOSE * before:
            break
    design = replace(problem.design, parameter=family.theta)
    return replace(problem, design=design, family=family)


def theta_error(problem, estimates):
    """Return the standard error of the negative binomial's theta; NaN for other families."""
    if problem.family.name != "negative_binomial":
        return float("nan")
    return _theta(problem, estimates, problem.family)[1]


def _theta(problem, estimates, family):
    batch = problem.batch
    mean = family.mean(estimates.scores_of(batch, family) + batch.offset_matrix(1))
    return fitted_theta(batch.y, mean, batch.row_weights)
