"""Base class of families, and null models whose intercepts need a numerical search."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lodim.engine.blocks import single_blas, sum_rows

LARGEST_LOG = 700.0  # largest log of a mean; exp() of larger values overflows
LEAST_PROBABILITY = 1e-5  # smallest probability of a held-out row's class in model selection
RAREST = 1e-12  # smallest probability of a class in a null model, since a class may have no rows


class Family:
    """Methods shared by all families (distributions of a response with a link).

    Arguments are the response `y` (n,), `weight` (n,) with sum one, and `offset` (n, K) for K
    scores. Sums are over fixed ranges of rows, so that they do not depend on the threads."""

    n_scores = 1
    several_classes = False  # whether mean() has a probability for each of the classes
    shared_slopes = False  # whether scores have the same coefficients, except for intercepts
    degree = 2  # a response and a score of c times the size have c^degree times the deviance
    dispersed = False  # whether the dispersion is estimated
    counts = False  # whether responses are counts
    canonical = True  # whether expected and observed curvature are equal
    least, most = -np.inf, np.inf  # range of numeric responses
    support = ""  # allowed responses, in words

    @property
    def label(self):
        """Return the family's name, with the parameter that the user gave, if any."""
        return self.name

    @property
    def n_linear(self):
        """Return the number of linear predictors that give the scores."""
        return self.n_scores

    @staticmethod
    def contains(y):
        """Return whether responses y are allowed in the family, (n,)."""
        return np.ones(len(y), bool)

    def score(self, mean):
        """Return the link scores (n, 1) of predicted means (n,); not for classes."""
        return mean[:, None]

    def relative_slope(self, mean):
        """Return the derivative of the mean in the score, divided by the variance.

        It is 1 for a canonical link."""
        return 1.0

    def ranking(self, score):
        """Return values (n, K) per class, of which the largest belongs to the most probable."""
        return with_zero(score)

    def score_names(self, levels):
        """Return a list of names of several linear predictors, given the classes."""
        return list(levels)

    def per(self, scale):
        """Return the family for a numeric response that is divided by a scale."""
        return self

    def kernel_loss(self, y, weight):
        """Return the loss for one score per row, as a tuple that compiled functions take.

        With several classes, it is the loss of one class against all others."""
        raise NotImplementedError

    def saturated(self, y):
        """Return the smallest possible loss at each response, (n,), up to a constant."""
        return np.zeros(len(y))

    def null_score(self, y, weight, offset):
        """Return the scores (n, K) of the intercept-only model."""
        return offset + self.null_intercept(y, weight, offset)

    def absent(self, y, weight):
        """Return which classes have no row of positive weight, (n_scores,) bool."""
        return np.zeros(self.n_scores, bool)

    def most_deviance(self, y):
        """Return the largest deviance that a held-out row counts with in model selection.

        Without this limit a single outlier could decide which settings have the lowest mean."""
        return np.inf

    def null_deviance(self, y, weight, offset):
        """Return the mean deviance of the intercept-only model."""
        with single_blas():
            intercept = self.null_intercept(y, weight, offset)
            return float(mean_deviance(self, y, weight, offset, intercept))


class IdentityLink(Family):
    """Methods of families whose predictions are the scores (n, 1)."""

    link: str = "identity"

    def mean(self, score):
        return score[:, 0]

    def residual(self, y, score):
        return y - score[:, 0]


class LogLink(Family):
    """Methods of families with a log link, whose means are exp(score)."""

    link: str = "log"
    least = 0.0
    support = "counts, 0 or more"

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def score(self, mean):
        return np.log(np.maximum(mean, RAREST))[:, None]

    def residual(self, y, score):
        return y - self.mean(score)

    @staticmethod
    def contains(y):
        return y >= 0.0

    def spread(self, mean):
        """Return a multiple of the responses' standard deviation at given means."""
        return np.sqrt(self.variance(mean))

    def most_deviance(self, y):
        """Return the largest deviance of a held-out row that counts.

        It is that of the smallest response where the largest is predicted."""
        least = y[y > 0.0].min(initial=np.inf) if self.dispersed else y.min()
        most = y.max()
        return float(self.deviance(np.array([min(least, most)]), np.log([[most]]))[0]) or np.inf


def beyond_null(y, offset, null):
    """Return a numeric response minus its offset and the null model's intercept, shaped like y.

    A fit to it keeps its precision however far the response is from zero."""
    rest = y - offset
    rest -= null
    return rest


def with_zero(score):
    """Return scores (n, K) of classes; a single column gets zeros for the first of two classes."""
    return score if score.shape[1] > 1 else np.append(np.zeros_like(score), score, axis=1)


def hits(y, score):
    """Return whether each row's class y has the largest score, (n,); 1/k if k classes share it.

    score : (n, K), or (n, 1) logits of two classes"""
    z = with_zero(score)
    top = z == z.max(axis=1, keepdims=True)
    return top[np.arange(len(y)), y.astype(int)] / top.sum(axis=1)


def beside_offset(family, y, weight, offset, start, intercepts=None):
    """Return the intercepts (K,) that minimize the deviance given the offset (n, K).

    start : (K,) first guess, the exact solution without an offset
    intercepts : function from free parameters, such as `start`, to intercepts"""
    if not offset.any():
        return start
    from scipy.optimize import minimize  # slow to import (0.2 s) and rarely used

    with single_blas():
        value = partial(mean_deviance, family, y, weight, offset)
        if intercepts is None:
            return minimize(value, start, method="BFGS").x
        return intercepts(minimize(lambda x: value(intercepts(x)), start, method="BFGS").x)


def mean_deviance(family, y, weight, offset, intercept):
    """Return the mean deviance at scores offset (n, K) + intercept (K,).

    It is reproducible only if BLAS uses one thread."""

    def part(i):
        return weight[i] @ family.deviance(y[i], offset[i] + intercept)

    return sum_rows(part, len(y))


@dataclass(frozen=True)
class NoResponse:
    """Family of a model without a response, such as a clustering."""

    name: str = "none"
    link: str = "none"
    loss: str = "none"
    n_scores: int = 0
    n_linear: int = 0
