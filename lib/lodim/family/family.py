"""What all families share, and the null model of a family whose score equation needs a search."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lodim.engine.blocks import single_blas, sum_rows

LARGEST_LOG = 700.0  # largest log of a mean: exp() of more overflows
LEAST_PROBABILITY = 1e-5  # least probability of a held-out row's class in model selection
RAREST = 1e-12  # least probability of a class in a null model, as the rows may lack a class


class Family:
    """Methods shared by all families, derived from the intercepts of the null model.

    `y` (n,), `weight` (n,) with sum one, `offset` (n, K); sums are over the spans of
    `engine.blocks`.
    """

    n_scores = 1

    def kernel_loss(self, y, weight):
        """Return the loss of one score as kernels take it, see `losses`; of several classes, one
        against the others."""
        raise NotImplementedError

    def saturated(self, y):
        """Return the least loss that a row of each response can have, (n,), a constant apart."""
        return np.zeros(len(y))

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


def beside_offset(family, y, weight, offset, start):
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


@dataclass(frozen=True)
class NoResponse:
    """No response, as for a clustering."""

    name: str = "none"
    link: str = "none"
    loss: str = "none"
    n_scores: int = 0
