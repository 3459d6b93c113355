"""Families: deviance, mean and null model of a response, as functions of the link scores.

Scores are (n, K): K = 1 for gaussian (identity link), binomial (logit of the second level), poisson
and gamma (log link), one column a class for multinomial (softmax). Responses are float (n,):
numbers, or class codes.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax, xlogy

from lodim.engine.blocks import dot, single_blas, sum_rows
from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative, log1p_unit

LARGEST_LOG = 700.0  # of a mean: exp() of more is no number
LEAST_PROBABILITY = 1e-5  # of a held-out row's class, where settings are chosen
RAREST = 1e-12  # least share of a class that a null model gives: rows at hand may lack one


class Family:
    """What follows from the intercepts of the null model, whatever the family.

    `y`, `weight` (n,) sums to one, `offset` (n, K); sums are over the spans of `engine.blocks`.
    """

    def null_score(self, y, weight, offset):
        """Score (n, K) of the model with intercepts alone."""
        return offset + self.null_intercept(y, weight, offset)

    def absent(self, y, weight):
        """Classes without a row of weight above zero among several, (n_scores,) bool."""
        return np.zeros(self.n_scores, bool)

    def most_deviance(self, y):
        """Largest deviance of a held-out row that counts in a choice, for training responses y.

        One row with a wild value then cannot decide which settings have the lowest mean.
        """
        return np.inf

    def null_deviance(self, y, weight, offset):
        """Mean deviance of the model with intercepts alone."""
        with single_blas():
            intercept = self.null_intercept(y, weight, offset)
            return float(_mean(self, y, weight, offset, intercept))


@dataclass(frozen=True)
class Gaussian(Family):
    """Numbers with constant variance; deviance (y - f)^2."""

    name: str = "gaussian"
    link: str = "identity"
    loss: str = "squared error"
    n_scores: int = 1

    def deviance(self, y, score):
        """Deviance of each row, (n,)."""
        return (y - score[:, 0]) ** 2

    def mean(self, score):
        """Mean of the response, (n,)."""
        return score[:, 0]

    def residual(self, y, score):
        """Response residual, (n,)."""
        return y - score[:, 0]

    def most_deviance(self, y):
        """That of an error as large as the range of y; see `Family.most_deviance`."""
        return np.ptp(y) ** 2 or np.inf

    def null_intercept(self, y, weight, offset):
        """Intercept (1,) of the model with nothing else; weights sum to one."""
        return np.array([sum_rows(lambda i: dot(weight[i], y[i] - offset[i, 0]), len(y))])


@dataclass(frozen=True)
class Binomial(Family):
    """Two classes, coded 0 and 1; deviance -2 log-likelihood."""

    name: str = "binomial"
    link: str = "logit"
    loss: str = "log-loss"
    n_scores: int = 1

    def deviance(self, y, score):
        """Deviance of each row, (n,)."""
        return _log_loss(np.asarray(y, np.float64), np.ascontiguousarray(score[:, 0], np.float64))

    def mean(self, score):
        """Probability of the second level, (n,)."""
        return expit(score[:, 0])

    def residual(self, y, score):
        """Response residual, (n,)."""
        return y - self.mean(score)

    def most_deviance(self, y):
        """That of the probability 1e-5, as in glmnet; see `Family.most_deviance`."""
        return -2.0 * np.log(LEAST_PROBABILITY)

    def null_intercept(self, y, weight, offset):
        """Intercept (1,) of the model with nothing else; weights sum to one."""
        share = np.clip(dot(weight, y), RAREST, 1.0 - RAREST)
        return _beside_offset(self, y, weight, offset, np.array([logit(share)]))


@dataclass(frozen=True)
class Proportion(Binomial):
    """Shares of successes; the weights are numbers of trials, and the deviance is per trial."""

    loss: str = "binomial deviance per trial"

    def deviance(self, y, score):
        """Deviance of each row per trial, (n,)."""
        least = 2.0 * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))  # that of the share itself, negative
        return np.maximum(super().deviance(y, score) + least, 0.0)


@dataclass(frozen=True)
class Multinomial(Family):
    """K classes, coded 0 to K - 1; deviance -2 log-likelihood."""

    n_scores: int
    name: str = "multinomial"
    link: str = "softmax"
    loss: str = "log-loss"

    def deviance(self, y, score):
        """Deviance of each row, (n,)."""
        # SciPy's log_softmax takes several times as long where rows are few.
        largest = score.max(axis=1)
        total = np.exp(score - largest[:, None]).sum(axis=1)
        return 2.0 * (np.log(total) + largest - score[np.arange(len(y)), y.astype(int)])

    def mean(self, score):
        """Probabilities of the classes, (n, K)."""
        return softmax(score, axis=1)

    most_deviance = Binomial.most_deviance

    def residual(self, y, score):
        """One minus the probability of the observed class, (n,)."""
        return 1.0 - self.mean(score)[np.arange(len(y)), y.astype(int)]

    def absent(self, y, weight):
        """Classes without a row of weight above zero, (K,) bool."""
        return np.bincount(y[weight > 0.0].astype(int), minlength=self.n_scores) == 0

    def null_intercept(self, y, weight, offset):
        """Intercepts (K,) of the model with nothing else; weights sum to one."""

        def shares(i):
            return np.bincount(y[i].astype(int), weight[i], self.n_scores)

        start = np.log(np.maximum(sum_rows(shares, len(y)), RAREST))
        return _beside_offset(self, y, weight, offset, start - start.mean())


class LogLink(Family):
    """What families with the logarithm as their link have in common."""

    def mean(self, score):
        """Mean of the response, (n,)."""
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def residual(self, y, score):
        """Response residual, (n,)."""
        return y - self.mean(score)


@dataclass(frozen=True)
class Poisson(LogLink):
    """Counts whose variance is their mean; deviance 2 (y log(y / mu) - (y - mu))."""

    name: str = "poisson"
    link: str = "log"
    loss: str = "Poisson deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        """Deviance of each row, (n,)."""
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))

    def null_intercept(self, y, weight, offset):
        """Intercept (1,) of the model with nothing else; weights sum to one."""
        mean = max(dot(weight, y), RAREST)
        return np.array([np.log(mean) - _log_sum(lambda i: offset[i, 0], weight)])


@dataclass(frozen=True)
class Gamma(LogLink):
    """Numbers above 0 whose variance is as the square of the mean; log link.

    Deviance 2 ((y - mu) / mu - log(y / mu)).
    """

    name: str = "gamma"
    link: str = "log"
    loss: str = "gamma deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        """Deviance of each row, (n,)."""
        log_ratio = np.log(y) - score[:, 0]
        return 2.0 * (np.expm1(np.minimum(log_ratio, LARGEST_LOG)) - log_ratio)

    def null_intercept(self, y, weight, offset):
        """Intercept (1,) of the model with nothing else; weights sum to one."""
        return np.array([_log_sum(lambda i: np.log(y[i]) - offset[i, 0], weight)])


def beyond_null(y, offset, null):
    """What a numeric response is beyond its offset and the null model's intercept, like y.

    A fit to it loses no digits to how far the response is from zero.
    """
    rest = y - offset
    rest -= null
    return rest


def hits(y, score):
    """Whether the class of the largest score is that of y, (n,); 1/k where k classes are tied."""
    z = score if score.shape[1] > 1 else np.append(np.zeros_like(score), score, axis=1)
    top = z == z.max(axis=1, keepdims=True)
    return top[np.arange(len(y)), y.astype(int)] / top.sum(axis=1)


@dataclass(frozen=True)
class NoResponse:
    """No response to explain, as of a view or a clustering of the features."""

    name: str = "none"
    link: str = "none"
    loss: str = "none"
    n_scores: int = 0


@njit(cache=True, error_model="numpy")
def _log_loss(y, f):
    """-2 log-likelihood of 0/1 responses at logits f, (n,); several times faster than logaddexp."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = 2.0 * (max(f[i], 0.0) + log1p_unit(exp_negative(-abs(f[i]))) - y[i] * f[i])
    return out


def _log_sum(log, weight):
    """Logarithm of the weighted sum over rows of exp(log(rows)), rows a slice."""
    return sum_rows(lambda i: logsumexp(log(i), b=weight[i]), len(weight), np.logaddexp)


def _beside_offset(family, y, weight, offset, start):
    """Intercepts that minimize the deviance beside an offset; `start` is exact without one."""
    if not offset.any():
        return start
    from scipy.optimize import minimize  # a fifth of a second to import, and rarely used

    with single_blas():
        return minimize(partial(_mean, family, y, weight, offset), start, method="BFGS").x


def _mean(family, y, weight, offset, intercept):
    """Mean deviance at the offset and intercepts (K,); BLAS is to be on one thread."""

    def part(i):
        return weight[i] @ family.deviance(y[i], offset[i] + intercept)

    return sum_rows(part, len(y))


def make(name, n_levels):
    """Family by name, for a response with that many levels."""
    if name == "multinomial":
        return Multinomial(n_levels)
    known = (Gaussian(), Binomial(), Poisson(), Gamma(), NoResponse())
    return {family.name: family for family in known}[name]


def has_classes(family):
    """Whether responses of a family are classes."""
    return family.name in ("binomial", "multinomial") and not isinstance(family, Proportion)


def family_of(design):
    """Family of a design's response."""
    if design.family == "binomial" and design.levels is None:
        return Proportion()
    return make(design.family, len(design.levels or ()))
