"""Intervals of the mean and of a new observation, from the normal distribution of the score."""

import numpy as np
from scipy import stats

from lodim.family import LARGEST_LOG

WIDE = 8.0  # standard errors of the score beyond which its distribution is cut
NARROW = 8.0  # times that the score's error exceeds the spread of the logarithm of an observation
HALVINGS = 60
BLOCK = 2000  # rows at a time


def critical(level, df):
    """The quantile of t with df degrees of freedom (of the normal if infinite) for a level."""
    share = 0.5 + 0.5 * level
    return stats.norm.ppf(share) if np.isinf(df).all() else stats.t.ppf(share, df)


def satterthwaite(one, df_one, two, df_two):
    """Degrees of freedom (n,) of the sum of two estimated variances, at most `df_two`.

    Of `one` (n,) with `df_one` and `two` with `df_two` (Satterthwaite 1946): near those of the
    larger variance.
    """
    if df_one == df_two:
        return df_two
    with np.errstate(invalid="ignore", divide="ignore"):
        share = one / (one + two)
        df = 1.0 / (share**2 / df_one + (1.0 - share) ** 2 / df_two)
    return np.minimum(np.where(np.isnan(share), df_one, df), df_two)


def inference(coef, error, df, level):
    """Tests and confidence limits of coefficients (q, S): a dict of arrays of their shape."""
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = coef / error
    size, reach = np.abs(statistic), critical(level, df) * error
    return {
        "estimate": coef,
        "std_error": error,
        "statistic": statistic,
        "p_value": 2.0 * (stats.t.sf(size, df) if np.isfinite(df) else stats.norm.sf(size)),
        "conf_low": coef - reach,
        "conf_high": coef + reach,
    }


def of_mean(family, score, error, level, df):
    """Confidence limits (n, 2) of the mean, symmetric on the scale of the score."""
    reach = critical(level, df) * error
    return np.column_stack([family.mean((score - s * reach)[:, None]) for s in (1.0, -1.0)])


def of_observation(family, score, error, level, df, dispersion, df_resid):
    """Limits (n, 2) that hold a new observation, of weight one, with probability `level`.

    For a gaussian family t, with the variances of score and observation added: exact if `df`, of
    the score's error, is `df_resid`, of the dispersion; else see `satterthwaite`. For another
    family the quantiles of its distributions, mixed over the normal distribution of the score.
    """
    if family.name == "gaussian":
        df = satterthwaite(error**2, df, dispersion, df_resid)
        reach = critical(level, df) * np.sqrt(error**2 + dispersion)
        return np.column_stack([score - reach, score + reach])
    out = np.full((len(score), 2), np.nan)
    known = np.flatnonzero(np.isfinite(score) & np.isfinite(error))
    for at in np.array_split(known, -(-len(known) // BLOCK) or 1):
        for side, share in enumerate((0.5 - 0.5 * level, 0.5 + 0.5 * level)):
            out[at, side] = _quantile(family, score[at], error[at], share, dispersion)
    return out


def _quantile(family, score, error, share, dispersion):
    """Quantiles (n,) of the mixture: where its distribution function reaches a share."""
    counts = family.name == "poisson"
    variance = np.exp(-np.clip(score, -LARGEST_LOG, LARGEST_LOG)) if counts else dispersion
    spread = np.sqrt(np.broadcast_to(variance, score.shape))  # of the logarithm, nearly
    # Where an observation varies next to nothing beside its mean, logarithms are normal.
    z = stats.norm.ppf(share)
    normal = np.exp(np.clip(score + z * np.sqrt(error**2 + spread**2), -LARGEST_LOG, LARGEST_LOG))
    mixed = np.flatnonzero(error < NARROW * spread)
    if len(mixed):
        normal[mixed] = _by_bisection(family, score[mixed], error[mixed], share, dispersion)
    return np.floor(normal) if counts else normal


def _by_bisection(family, score, error, share, dispersion):
    """As `_quantile`, by bisection on the logarithm, with a sum over nodes for the mixture."""
    u = np.linspace(-WIDE, WIDE, 1 + int(4.0 * WIDE * 2.0))  # eighths of its spread are resolved
    weight = stats.norm.pdf(u) / stats.norm.pdf(u).sum()
    eta = np.clip(score[:, None] + error[:, None] * u, -LARGEST_LOG, LARGEST_LOG)
    means = np.exp(eta)

    def below(log_y):
        y = np.exp(np.clip(log_y, -LARGEST_LOG, LARGEST_LOG))[:, None]
        if family.name == "poisson":
            return stats.poisson.cdf(np.floor(y * (1.0 + 1e-12)), means) @ weight < share
        return stats.gamma.cdf(y / means, 1.0 / dispersion, scale=dispersion) @ weight < share

    low, high = np.full(len(score), -LARGEST_LOG), np.full(len(score), LARGEST_LOG)
    with np.errstate(all="ignore"):
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            under = below(middle)
            low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.exp(high) * (1.0 + 1e-9)
