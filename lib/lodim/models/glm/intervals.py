"""Tests of glm's coefficients, and intervals for coefficients, means and new observations."""

import numpy as np
from scipy import stats
from scipy.special import gammainc, gammaln

from lodim.family.family import LARGEST_LOG

WIDE = 8.0  # standard errors of the score beyond which its distribution is cut
NARROW = 8.0  # ratio of the score's error to the spread of log(y): beyond, ignore the latter
MIN_LOG_SPREAD = 1e-6  # spread of a count's logarithm below which its variation is ignored
HALVINGS = 60
CLOSE = 1e-12  # tolerance of the logarithm of an amount
BLOCK = 2000  # rows at a time
NODES = np.linspace(-WIDE, WIDE, 1 + int(8.0 * WIDE))  # for sums over the score's distribution
WEIGHTS = stats.norm.pdf(NODES) / stats.norm.pdf(NODES).sum()


def critical(level, df):
    share = 0.5 + 0.5 * level
    return stats.norm.ppf(share) if np.isinf(df).all() else stats.t.ppf(share, df)


def satterthwaite(one, df_one, two, df_two):
    """Return Satterthwaite's degrees of freedom of the sum of two variances, at most df_two.

    one : first variance, with df_one degrees of freedom; two : second variance, with df_two"""
    if df_one == df_two:
        return df_two
    with np.errstate(invalid="ignore", divide="ignore"):
        share = one / (one + two)
        df = 1.0 / (share**2 / df_one + (1.0 - share) ** 2 / df_two)
    return np.minimum(np.where(np.isnan(share), df_one, df), df_two)


def inference(coef, error, df, level):
    """Return a dict of arrays: estimates, standard errors, tests and confidence limits.

    coef : estimates; error : standard errors; df : degrees of freedom, inf for z tests"""
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


def of_observation(family, score, error, level, df, dispersion, df_resid):
    """Return limits (n, 2) that contain a new observation with probability `level`.

    score, error : (n,) linear predictors and their standard errors
    df, df_resid : degrees of freedom of the errors and of the dispersion"""
    # The new observation has weight one.
    if family.name == "gaussian":
        df = satterthwaite(error**2, df, dispersion, df_resid)
        reach = critical(level, df) * np.sqrt(error**2 + dispersion)
        return np.column_stack([score - reach, score + reach])
    out = np.full((len(score), 2), np.nan)
    known = np.flatnonzero(np.isfinite(score) & np.isfinite(error))
    for at in np.array_split(known, -(-len(known) // BLOCK) or 1):
        for side, prob in enumerate((0.5 - 0.5 * level, 0.5 + 0.5 * level)):
            out[at, side] = _quantile(family, score[at], error[at], prob, dispersion)
    return out


def _quantile(family, score, error, prob, dispersion):
    """Return the `prob` quantiles (n,) of new responses whose linear predictors are uncertain.

    score : (n,) estimated predictors; error : (n,) SDs of their normal errors
    dispersion : variance / mean^2 of gamma responses"""
    counts, variance = family.counts, dispersion
    if counts:
        mean = np.exp(np.clip(score, -LARGEST_LOG, LARGEST_LOG))
        variance = 1.0 / mean + 1.0 / getattr(family, "theta", np.inf)
    spread = np.sqrt(np.broadcast_to(variance, score.shape))  # about the SD of log(y)
    # If an observation varies little relative to its mean, its logarithm is about normal.
    z = stats.norm.ppf(prob)
    normal = np.exp(np.clip(score + z * np.sqrt(error**2 + spread**2), -LARGEST_LOG, LARGEST_LOG))
    least = MIN_LOG_SPREAD if counts else 0.0
    mixed = np.flatnonzero((error < NARROW * spread) & (spread > least))
    if len(mixed):
        score = np.clip(score[mixed], -LARGEST_LOG, LARGEST_LOG)
        if counts:
            normal[mixed] = _count(family, score, error[mixed], prob)
        else:
            normal[mixed] = np.exp(_log_gamma_quantiles(score, error[mixed], prob, dispersion))
    return np.floor(normal) if counts else normal


def _count(family, score, error, prob):
    """Return `prob` quantiles (n,) of new counts; linear predictors are N(score, error^2)."""
    means = np.exp(np.clip(score[:, None] + error[:, None] * NODES, -LARGEST_LOG, LARGEST_LOG))
    # Quantiles of a mixture lie between those of its parts.
    low, high = family.quantile(prob, means[:, 0]) - 1.0, family.quantile(prob, means[:, -1])
    for _ in range(HALVINGS):
        at = np.flatnonzero(high - low > 1.0)
        if not len(at):
            break
        middle = np.floor(0.5 * (low[at] + high[at]))
        under = family.distribution(middle[:, None], means[at]) @ WEIGHTS < prob
        low[at], high[at] = np.where(under, middle, low[at]), np.where(under, high[at], middle)
    return high


def _log_gamma_quantiles(score, error, prob, dispersion):
    """Return logs of `prob` quantiles (n,) of new gamma responses, given uncertain log means.

    score : (n,) estimated log means; error : (n,) SDs of their normal errors
    dispersion : variance / mean^2 of gamma responses"""
    shape = 1.0 / dispersion
    log_y = score + np.log(stats.gamma.ppf(prob, shape, scale=dispersion))
    low, high = log_y - WIDE * error, log_y + WIDE * error
    for _ in range(HALVINGS):
        log_ratio = log_y[:, None] - score[:, None] - error[:, None] * NODES
        ratio = shape * np.exp(np.minimum(log_ratio, LARGEST_LOG))
        excess = gammainc(shape, ratio) @ WEIGHTS - prob
        low, high = np.where(excess < 0.0, log_y, low), np.where(excess < 0.0, high, log_y)
        with np.errstate(all="ignore"):
            slope = np.exp(shape * np.log(ratio) - ratio - gammaln(shape)) @ WEIGHTS
            tried = log_y - excess / slope
        tried = np.where((tried >= low) & (tried <= high), tried, 0.5 * (low + high))
        moved, log_y = np.abs(tried - log_y).max(), tried
        if moved <= CLOSE:
            break
    return np.clip(log_y, -LARGEST_LOG, LARGEST_LOG)
