"""Base class of families, and null models whose intercepts need a numerical search."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lodim.engine.blocks import single_blas, sum_rows

LARGEST_LOG = 700.0  # largest log of a mean; exp() of larger values overflows
LEAST_PROBABILITY = 1e-5  # smallest probability of a held-out row's class in model selection
RAREST = 1e-12  # smallest probability of a class in a null model, since a class may have no rows


class Family:
    """Base class of families: the distribution of a response with its link function.

    Arguments of methods are y : (n,) responses, weight : (n,) with sum one,
    score, offset : (n, K) linear predictors and offset."""

    n_scores = 1
    several_classes = False  # whether mean() has a probability for each of the classes
    shared_slopes = False  # whether scores have the same coefficients, except for intercepts
    degree = 2  # multiplying response and score by c multiplies the deviance by c^degree
    dispersed = False  # whether the dispersion is estimated
    counts = False  # whether responses are counts
    canonical = True  # whether expected and observed curvature are equal
    m_estimation = False  # whether the loss is not that of a distribution
    least, most = -np.inf, np.inf  # range of numeric responses
    support = ""  # allowed responses, in words
    learn: Any = None  # function of y and weight that returns the parameter, if it is learned

    @property
    def label(self):
        """Return the family's name, with the parameter that the user gave, if any."""
        return self.name

    @property
    def n_linear(self):
        """Return the number of linear predictors with coefficients; a reference class has none."""
        return self.n_scores

    @property
    def n_functions(self):
        """Return the number of linear predictors, or 1 if they differ only by their intercepts."""
        return 1 if self.shared_slopes else self.n_scores

    @staticmethod
    def contains(y):
        """Return whether responses y are allowed in the family, (n,)."""
        return np.ones(len(y), bool)

    def score(self, mean):
        """Return linear predictors g(mean), (n, 1), of means (n,), for link g; not for classes."""
        return mean[:, None]

    def relative_slope(self, mean):
        """Return the mean's derivative by the linear predictor, divided by the variance."""
        return 1.0

    def residual(self, y, score):
        return y - self.mean(score)

    def bounded(self, residual):
        """Return residuals (n,), bounded if the family is robust (psi of an M-estimator)."""
        return residual

    def ranking(self, score):
        """Return values (n, K) that order the classes of a row as its probabilities do."""
        return with_zero(score)

    def score_names(self, levels):
        """Return the names of the linear predictors of a response with the classes `levels`."""
        return list(levels[-self.n_scores :])

    def learned(self, y, weight):
        """Return the family with its parameter learned from rows; unchanged if it learns none."""
        return self if self.learn is None else type(self)(self.learn(y, weight))

    def per(self, scale):
        """Return the family for a response divided by `scale`; only Huber's limit changes."""
        return self

    def kernel_loss(self, y, weight):
        """Return the loss as numbers for compiled code: (code, least curvature, three parameters).

        y, weight : (n,) all training rows, from which some families compute these numbers"""
        raise NotImplementedError

    def saturated(self, y):
        """Return the smallest possible loss of each response, (n,), at a mean equal to it."""
        return np.zeros(len(y))

    def null_score(self, y, weight, offset):
        """Return the linear predictors (n, K) of the intercept-only model."""
        return offset + self.null_intercept(y, weight, offset)

    def absent(self, y, weight):
        """Return which classes have no row of positive weight, as one bool per class."""
        return np.zeros(self.n_scores, bool)

    def most_deviance(self, y):
        """Return the largest deviance that a held-out row can contribute in model selection."""
        return np.inf

    def null_deviance(self, y, weight, offset):
        with single_blas():
            intercept = self.null_intercept(y, weight, offset)
            return float(mean_deviance(self, y, weight, offset, intercept))


class IdentityLink(Family):
    """Methods of families whose predicted mean is the linear predictor (n, 1)."""

    link: str = "identity"

    def mean(self, score):
        return score[:, 0]

    def variance(self, mean):
        return np.ones_like(mean)


class LogLink(Family):
    """Methods of families with a log link, whose means are exp(score)."""

    link: str = "log"
    least = 0.0
    support = "counts, 0 or more"

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def score(self, mean):
        return np.log(np.maximum(mean, RAREST))[:, None]

    @staticmethod
    def contains(y):
        return y >= 0.0

    def spread(self, mean):
        """Return the responses' standard deviation at given means, up to a constant factor."""
        return np.sqrt(self.variance(mean))

    def most_deviance(self, y):
        # The larger deviance: of min(y) at a mean of max(y), or of max(y) at the mean of y.
        extremes, means = np.array([y.min(), y.max()]), np.array([y.max(), y.mean()])
        return float(self.deviance(extremes, np.log(means)[:, None]).max()) or np.inf


def beyond_null(y, offset, null):
    """Return y - offset - null, the residuals of an intercept-only model with intercept `null`."""
    rest = y - offset
    rest -= null
    return rest


def with_zero(score):
    """Return `score` with a column per class, (n, K): a logit (n, 1) becomes (0, logit)."""
    return score if score.shape[1] > 1 else np.append(np.zeros_like(score), score, axis=1)


def class_shares(y, weight, n_classes):
    """Return the total weight of each class, (n_classes,), from class codes y (n,)."""
    return sum_rows(lambda i: np.bincount(y[i].astype(int), weight[i], n_classes), len(y))


def hits(y, score):
    """Return 1 for each row whose class y has the largest score, else 0, (n,); 1/k for k ties."""
    z = with_zero(score)
    top = z == z.max(axis=1, keepdims=True)
    return top[np.arange(len(y)), y.astype(int)] / top.sum(axis=1)


def beside_offset(family, y, weight, offset, start):
    """Return the intercepts (K,) that minimize the mean deviance for a given offset (n, K).

    weight : (n,) with sum one; start : (K,) intercepts without the offset"""
    if not offset.any():
        return start
    from scipy.optimize import minimize  # slow to import (0.2 s) and rarely used

    with single_blas():
        value = partial(mean_deviance, family, y, weight, offset)
        return minimize(value, start, method="BFGS").x


def mean_deviance(family, y, weight, offset, intercept):
    """Return the mean deviance at linear predictors offset (n, K) + intercept (K,)."""

    def part(i):
        return weight[i] @ family.deviance(y[i], offset[i] + intercept)

    return sum_rows(part, len(y))


@dataclass(frozen=True)
class NoResponse(Family):
    """Family of a model without a response, such as a clustering."""

    name: str = "none"
    link: str = "none"
    loss: str = "none"
    n_scores: int = 0
    n_linear: int = 0
