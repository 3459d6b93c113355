"""Families: deviance, mean and null model of a response, as functions of the link scores.

Scores are (n, K): K = 1 for gaussian (identity link), binomial (logit of the second level), poisson
and gamma (log link), one column per class for multinomial (softmax). Responses are float (n,):
numbers, or class codes.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax, xlogy

from lodim.engine.blocks import dot, single_blas, sum_rows
from lodim.engine.compiled import njit
from lodim.engine.scalar_math import exp_negative, log1p_unit

LARGEST_LOG = 700.0  # largest log of a mean: exp() of more overflows
LEAST_PROBABILITY = 1e-5  # least probability of a held-out row's class in model selection
RAREST = 1e-12  # least probability of a class in a null model, as the rows may lack a class


class Family:
    """Methods shared by all families, derived from the intercepts of the null model.

    `y` (n,), `weight` (n,) with sum one, `offset` (n, K); sums are over the spans of
    `engine.blocks`.
    """

    def null_score(self, y, weight, offset):
        """Return the scores (n, K) of the intercept-only model."""
        return offset + self.null_intercept(y, weight, offset)

    def absent(self, y, weight):
        """Return which of several classes have no row of positive weight, (n_scores,) bool."""
        return np.zeros(self.n_scores, bool)

    def most_deviance(self, y):
        """Return the cap on a held-out row's deviance in model selection.

        It depends on the training responses y, and keeps a single wild value from deciding which
        settings have the lowest mean.
        """
        return np.inf

    def null_deviance(self, y, weight, offset):
        """Return the mean deviance of the intercept-only model."""
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
        return (y - score[:, 0]) ** 2

    def mean(self, score):
        return score[:, 0]

    def residual(self, y, score):
        return y - score[:, 0]

    def most_deviance(self, y):
        """Return the deviance of an error as large as the range of y."""
        return np.ptp(y) ** 2 or np.inf

    def null_intercept(self, y, weight, offset):
        """Return the intercept (1,) of the intercept-only model; weights sum to one."""
        return np.array([sum_rows(lambda i: dot(weight[i], y[i] - offset[i, 0]), len(y))])


@dataclass(frozen=True)
class Binomial(Family):
    """Two classes, coded 0 and 1; deviance -2 log-likelihood."""

    name: str = "binomial"
    link: str = "logit"
    loss: str = "log-loss"
    n_scores: int = 1

    def deviance(self, y, score):
        return _log_loss(np.asarray(y, np.float64), np.ascontiguousarray(score[:, 0], np.float64))

    def mean(self, score):
        """Return the probability of the second level, (n,)."""
        return expit(score[:, 0])

    def residual(self, y, score):
        return y - self.mean(score)

    def most_deviance(self, y):
        """Return the deviance of the probability 1e-5, as in glmnet; see `Family.most_deviance`."""
        return -2.0 * np.log(LEAST_PROBABILITY)

    def null_intercept(self, y, weight, offset):
        share = np.clip(dot(weight, y), RAREST, 1.0 - RAREST)
        return _beside_offset(self, y, weight, offset, np.array([logit(share)]))


@dataclass(frozen=True)
class Proportion(Binomial):
    """Proportions of successes; weights are numbers of trials, and the deviance is per trial."""

    loss: str = "binomial deviance per trial"

    def deviance(self, y, score):
        least = 2.0 * (xlogy(y, y) + xlogy(1.0 - y, 1.0 - y))  # of the proportion, negative
        return np.maximum(super().deviance(y, score) + least, 0.0)


@dataclass(frozen=True)
class Multinomial(Family):
    """K classes, coded 0 to K - 1; deviance -2 log-likelihood."""

    n_scores: int
    name: str = "multinomial"
    link: str = "softmax"
    loss: str = "log-loss"

    def deviance(self, y, score):
        # SciPy's log_softmax is several times slower for few rows.
        largest = score.max(axis=1)
        total = np.exp(score - largest[:, None]).sum(axis=1)
        return 2.0 * (np.log(total) + largest - score[np.arange(len(y)), y.astype(int)])

    def mean(self, score):
        """Return the probabilities of the classes, (n, K)."""
        return softmax(score, axis=1)

    most_deviance = Binomial.most_deviance

    def residual(self, y, score):
        """Return one minus the probability of the observed class, (n,)."""
        return 1.0 - self.mean(score)[np.arange(len(y)), y.astype(int)]

    def absent(self, y, weight):
        return np.bincount(y[weight > 0.0].astype(int), minlength=self.n_scores) == 0

    def null_intercept(self, y, weight, offset):
        """Return the intercepts (K,) of the intercept-only model; weights sum to one."""

        def shares(i):
            return np.bincount(y[i].astype(int), weight[i], self.n_scores)

        start = np.log(np.maximum(sum_rows(shares, len(y)), RAREST))
        return _beside_offset(self, y, weight, offset, start - start.mean())


class LogLink(Family):
    """Methods of families with a log link."""

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def residual(self, y, score):
        return y - self.mean(score)


@dataclass(frozen=True)
class Poisson(LogLink):
    """Counts whose variance equals their mean; deviance 2 (y log(y / mu) - (y - mu))."""

    name: str = "poisson"
    link: str = "log"
    loss: str = "Poisson deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))

    def null_intercept(self, y, weight, offset):
        mean = max(dot(weight, y), RAREST)
        return np.array([np.log(mean) - _log_sum(lambda i: offset[i, 0], weight)])


@dataclass(frozen=True)
class Gamma(LogLink):
    """Positive numbers whose variance is proportional to the squared mean; log link.

    Deviance 2 ((y - mu) / mu - log(y / mu)).
    """

    name: str = "gamma"
    link: str = "log"
    loss: str = "gamma deviance"
    n_scores: int = 1

    def deviance(self, y, score):
        log_ratio = np.log(y) - score[:, 0]
        return 2.0 * (np.expm1(np.minimum(log_ratio, LARGEST_LOG)) - log_ratio)

    def null_intercept(self, y, weight, offset):
        return np.array([_log_sum(lambda i: np.log(y[i]) - offset[i, 0], weight)])


def beyond_null(y, offset, null):
    """Return a numeric response minus its offset and the null model's intercept, shaped like y.

    A fit to it keeps its precision however far the response is from zero.
    """
    rest = y - offset
    rest -= null
    return rest


def hits(y, score):
    """Return whether the largest score is that of class y, (n,); 1/k if k classes are tied."""
    z = score if score.shape[1] > 1 else np.append(np.zeros_like(score), score, axis=1)
    top = z == z.max(axis=1, keepdims=True)
    return top[np.arange(len(y)), y.astype(int)] / top.sum(axis=1)


@dataclass(frozen=True)
class NoResponse:
    """No response, as for a clustering."""

    name: str = "none"
    link: str = "none"
    loss: str = "none"
    n_scores: int = 0


@njit(cache=True, error_model="numpy")
def _log_loss(y, f):
    """Return -2 log-likelihood of 0/1 responses at logits f, (n,); faster than logaddexp."""
    out = np.empty(f.size)
    for i in range(f.size):
        out[i] = 2.0 * (max(f[i], 0.0) + log1p_unit(exp_negative(-abs(f[i]))) - y[i] * f[i])
    return out


def _log_sum(log, weight):
    """Return the log of the weighted sum over rows of exp(log(rows)), rows a slice."""
    return sum_rows(lambda i: logsumexp(log(i), b=weight[i]), len(weight), np.logaddexp)


def _beside_offset(family, y, weight, offset, start):
    """Return the intercepts that minimize the deviance; `start` is exact without an offset."""
    if not offset.any():
        return start
    from scipy.optimize import minimize  # slow to import (0.2 s) and rarely used

    with single_blas():
        return minimize(partial(_mean, family, y, weight, offset), start, method="BFGS").x


def _mean(family, y, weight, offset, intercept):
    """Return the mean deviance at the offset and intercepts (K,); requires one BLAS thread."""

    def part(i):
        return weight[i] @ family.deviance(y[i], offset[i] + intercept)

    return sum_rows(part, len(y))


def make(name, n_levels):
    """Return the family of a name, for a response with `n_levels` levels."""
    if name == "multinomial":
        return Multinomial(n_levels)
    known = (Gaussian(), Binomial(), Poisson(), Gamma(), NoResponse())
    return {family.name: family for family in known}[name]


def has_classes(family):
    """Whether responses of a family are classes."""
    return family.name in ("binomial", "multinomial") and not isinstance(family, Proportion)


def family_of(design):
    """Return the family of a design's response."""
    if design.family == "binomial" and design.levels is None:
        return Proportion()
    return make(design.family, len(design.levels or ()))
