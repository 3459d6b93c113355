"""Classes in an order: cumulative logit, with one score per boundary between classes."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from lodim.engine.compiled import njit, scalar
from lodim.engine.scalar_math import exp_negative, like, log_positive
from lodim.family.binomial import Binomial
from lodim.family.binomial import curvature as logistic_curvature
from lodim.family.binomial import loss_slope as logistic
from lodim.family.family import RAREST, Family, class_shares
from lodim.family.thresholds import best_thresholds, tails, threshold_sums

ORDERED = 5  # the code of the loss, which has no parameters
WIDEST = 69.0  # largest h of `loss_slope`, whose exp(-h) must not underflow in float32


@scalar
def loss_slope(y, f, weight):
    """Return the weighted loss of a row of an ordered class, and its derivative by f.

    y : 0 for the first class, 1 for the last, -exp(-h) for a class with thresholds 2 h apart
    f : linear predictor plus the mean of the class's thresholds"""
    # P is 1 / (1 + exp(f)) for the first class, 1 / (1 + exp(-f)) for the last, and for others
    # 1 / (1 + exp(-f - h)) - 1 / (1 + exp(h - f)).
    one, zero = like(1.0, f), like(0.0, f)
    if y >= zero:
        return logistic(y, f, weight)
    q, e = -y, exp_negative(-abs(f))
    share = max((one - q) * (one + q), like(RAREST, f))
    odds = (one + e * q) * (e + q)
    slope = q * (one - e) * (one + e) / odds
    loss = abs(f) + log_positive(odds / share)
    return weight * loss, weight * (slope if f > zero else -slope)


@scalar
def curvature(y, f, weight):
    """Return the second derivative, by f, of the loss that `loss_slope` returns for (y, f)."""
    one, zero = like(1.0, f), like(0.0, f)
    if y >= zero:
        return logistic_curvature(y, f, weight)
    q, e = -y, exp_negative(-abs(f))
    low, high = one + e * q, e + q
    return weight * e * q * (one / (low * low) + one / (high * high))


@njit(cache=True, nogil=True, error_model="numpy")
def _deviance(y, score):
    """Return -2 log-likelihoods (n,) of rows of classes y, from scores (n, K - 1)."""
    out, last = np.zeros(y.size), score.shape[1]
    for i, code in enumerate(y.astype(np.int64)):
        if code > 0:
            out[i] += logistic(1.0, score[i, code - 1], 1.0)[0]
        if code < last:
            out[i] += logistic(0.0, score[i, code], 1.0)[0]
        if 0 < code < last:
            out[i] -= np.log(max(-np.expm1(score[i, code] - score[i, code - 1]), RAREST))
    return 2.0 * out


@dataclass(frozen=True)
class Ordinal(Family):
    """Family of K ordered classes, coded 0 to K - 1; the deviance is -2 log-likelihood.

    Linear predictor s = 1, ..., K - 1 is the log-odds of class s or a higher class."""

    n_scores: int
    name: str = "ordinal"
    link: str = "cumulative logit"
    loss: str = "log-loss"
    several_classes = True
    shared_slopes = True

    most_deviance = Binomial.most_deviance

    def kernel_loss(self, y, weight):
        return ORDERED, 0.05, 0.0, 0.0, 0.0

    def class_table(self, boundaries):
        """Return a table (2, K): each class's code as response y of the loss, and mean threshold.

        boundaries : (K - 1,) thresholds; the first and last class have one, the others two"""
        above, below = np.append(boundaries[0], boundaries), np.append(boundaries, boundaries[-1])
        response = -np.exp(np.maximum(0.5 * (below - above), -WIDEST))
        response[[0, -1]] = 0.0, 1.0
        return np.stack([response, 0.5 * (above + below)])

    def deviance(self, y, score):
        return _deviance(np.asarray(y, np.float64), np.ascontiguousarray(score, np.float64))

    def mean(self, score):
        """Return the probabilities (n, K) of the classes from linear predictors (n, K - 1)."""
        inner = expit(score[:, :-1]) * expit(-score[:, 1:]) * -np.expm1(np.diff(score, axis=1))
        return np.column_stack([expit(-score[:, 0]), inner, expit(score[:, -1])])

    def score(self, mean):
        """Return the linear predictors (n, K - 1) of positive probabilities (n, K)."""
        below, above = tails(mean)
        return np.log(above) - np.log(below)

    def ranking(self, score):
        return self.mean(score)

    def residual(self, y, score):
        """Return P(class below y) - P(class above y), (n,), of mean 0 (Li & Shepherd 2012)."""
        bound = np.pad(score, ((0, 0), (1, 1)), constant_values=(np.inf, -np.inf))
        rows, code = np.arange(len(y)), y.astype(int)
        return expit(-bound[rows, code]) - expit(bound[rows, code + 1])

    def null_intercept(self, y, weight, offset):
        """Return the intercepts (K - 1,) of the intercept-only model; weights sum to one."""
        shares = class_shares(y, weight, self.n_scores + 1)
        start = self.score(np.maximum(shares, RAREST)[None])[0]
        if not offset.any():
            return start
        return best_thresholds(partial(threshold_sums, y, offset[:, 0], weight), shares, start)
