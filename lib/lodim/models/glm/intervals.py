"""Intervals of the mean and of a new observation, from the normal distribution of the score."""

import numpy as np
from scipy import stats

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
WEIGHTS = WEIGHTS / WEIGHTS.sum()  # of a standard normal variable
HALVINGS = 60


def critical(level, df):
    """The quantile of t with df degrees of freedom (of the normal, where infinite) for a level."""
    return (
        stats.t.ppf(0.5 + 0.5 * level, df) if np.isfinite(df) else stats.norm.ppf(0.5 + level / 2)
    )


def of_mean(family, score, error, level, df):
    """Confidence limits (n, 2) of the mean, symmetric on the scale of the score."""
    reach = critical(level, df) * error
    return np.column_stack([family.mean((score - s * reach)[:, None]) for s in (1.0, -1.0)])


def of_observation(family, score, error, level, df, dispersion):
    """Limits (n, 2) that hold a new observation, of weight one, with probability `level`.

    Of a gaussian family exact: t, with the variances of score and observation added. Else the
    quantiles of the mixture of distributions over the normal distribution of the score.
    """
    if family.name == "gaussian":
        reach = critical(level, df) * np.sqrt(error**2 + dispersion)
        return np.column_stack([score - reach, score + reach])
    means = np.exp(np.minimum(score[:, None] + error[:, None] * NODES, 700.0))  # (n, nodes)
    if family.name == "poisson":
        law, whole = lambda y: stats.poisson.cdf(np.floor(y)[:, None], means), True
    else:
        a = 1.0 / dispersion
        law, whole = lambda y: stats.gamma.cdf(y[:, None], a, scale=means / a), False
    return np.column_stack(
        [_quantile(law, means, share, whole) for share in (0.5 - level / 2, 0.5 + level / 2)]
    )


def _quantile(law, means, share, whole):
    """Where the mixture's distribution function reaches a share, by bisection, (n,)."""
    low, high = np.zeros(len(means)), means.max(axis=1, initial=1.0) + 1.0
    while (law(high) @ WEIGHTS < share).any():
        high = np.where(law(high) @ WEIGHTS < share, 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = law(middle) @ WEIGHTS < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.floor(high + 1e-9) if whole else high
