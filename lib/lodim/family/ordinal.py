"""Classes in an order: cumulative logit, with one score per boundary between classes."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit

from lodim.engine.blocks import single_blas, sum_rows
from lodim.engine.compiled import scalar
from lodim.engine.scalar_math import exp_negative, like
from lodim.errors import DataError
from lodim.family.binomial import Binomial
from lodim.family.binomial import curvature as logistic_curvature
from lodim.family.binomial import loss_slope as logistic
from lodim.family.family import RAREST, Family, mean_deviance
from lodim.text import first_few

ORDERED = 5  # the code of the loss, which has no parameters
STEPS, HALVINGS = 50, 30  # limits of Newton's method for the constants


@scalar
def loss_slope(y, f, weight):
    """Return a row's weighted loss -log P(class) and its derivative in f.

    For y and f by `Ordinal.margin`, P is 1 / (1 + exp(f)) if y = 0 (first class), 1 / (1 + exp(-f))
    if y = 1 (last class), and 1 / (1 + exp(-f - h)) - 1 / (1 + exp(h - f)) if y = 1 + h > 1."""
    one, zero = like(1.0, f), like(0.0, f)
    if y <= one:
        return logistic(y, f, weight)
    h = y - one
    low, rise = logistic(one, f + h, weight)
    high, fall = logistic(zero, f - h, weight)
    share = max(one - exp_negative(-(h + h)), like(RAREST, f))
    return low + high - weight * like(math.log(share), f), rise + fall


@scalar
def curvature(y, f, weight):
    """Return the second derivative in f of a row's weighted loss; y and f as in `loss_slope`."""
    h = max(y - like(1.0, f), like(0.0, f))
    share = like(1.0, f) if h > like(0.0, f) else like(0.5, f)  # of an outer class: one log-loss
    return share * (logistic_curvature(y, f + h, weight) + logistic_curvature(y, f - h, weight))


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

    def margin(self, y, score):
        """Return the arguments y and f of `loss_slope`, (n,) each, from scores (n, K - 1).

        f is the score of the class's boundary, or the mean of both; y is 0 for the first class, 1
        for the last, otherwise 1 + half the difference of both."""
        code, rows = y.astype(int), np.arange(len(y))
        above = score[rows, np.maximum(code - 1, 0)]
        below = score[rows, np.minimum(code, self.n_scores - 1)]
        response = np.where(code == 0, 0.0, 1.0 + 0.5 * (above - below))
        return response, 0.5 * (above + below)

    def deviance(self, y, score):
        above, below = self._bounds(y, score)
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.log(-np.expm1(np.minimum(below - above, 0.0)))
            return 2.0 * (np.logaddexp(0.0, -above) + np.logaddexp(0.0, below) - gap)

    def _bounds(self, y, score):
        """Return linear predictors of the lower and upper boundary of rows' classes, (n,).

        They are inf below the first class, and -inf above the last."""
        code, rows = y.astype(int), np.arange(len(y))
        above = np.where(code > 0, score[rows, np.maximum(code - 1, 0)], np.inf)
        below = np.where(
            code < self.n_scores, score[rows, np.minimum(code, self.n_scores - 1)], -np.inf
        )
        return above, below

    def mean(self, score):
        """Return the probabilities (n, K) of the classes from linear predictors (n, K - 1)."""
        inner = expit(score[:, :-1]) * expit(-score[:, 1:]) * -np.expm1(np.diff(score, axis=1))
        return np.column_stack([expit(-score[:, 0]), inner, expit(score[:, -1])])

    def score(self, mean):
        """Return the linear predictors (n, K - 1) of positive probabilities (n, K)."""
        least, most = _tails(mean)
        return np.log(most) - np.log(least)

    def ranking(self, score):
        return self.mean(score)

    def score_names(self, levels):
        return list(levels[1:])

    def residual(self, y, score):
        """Return P(class below y) - P(class above y), (n,), of mean 0 (Li & Shepherd 2012)."""
        above, below = self._bounds(y, score)
        return expit(-above) - expit(below)

    def slopes(self, y, mean):
        """Return derivatives of log-likelihoods and P(class above boundary), (n, K - 1) each."""
        least, most = _tails(mean)
        boundary = np.arange(1, self.n_scores + 1)
        side = np.equal.outer(y, boundary) * 1.0 - np.equal.outer(y, boundary - 1)
        own = np.maximum(mean[np.arange(len(y)), y.astype(int)], 1e-300)
        return side * least * most / own[:, None], most

    def absent(self, y, weight):
        return np.bincount(y[weight > 0.0].astype(int), minlength=self.n_scores + 1) == 0

    def null_intercept(self, y, weight, offset):
        """Return the intercepts (K - 1,) of the intercept-only model; weights sum to one."""

        def shares(i):
            return np.bincount(y[i].astype(int), weight[i], self.n_scores + 1)

        start = self.score(np.maximum(sum_rows(shares, len(y)), RAREST)[None])[0]
        return start + self.moved(y, weight, offset + start) if offset.any() else start

    def tied(self, present):
        """Return a group number per boundary (K - 1,); boundaries of one group must move together.

        No row has a class between them. A boundary without rows on one side joins the nearest with
        rows on both. present (K,) is whether a class has rows."""
        return np.clip(np.cumsum(present)[:-1], 1, present.sum() - 1) - 1

    def moved(self, y, weight, score):
        """Return the shift (K - 1,) of the linear predictors that minimizes the mean deviance."""
        change, present = np.zeros(self.n_scores), ~self.absent(y, weight)
        if present.sum() < 2:
            return change
        T = np.eye(present.sum() - 1)[self.tied(present)]

        def sums(i):
            mean = self.mean(score[i] + change)
            u, above = self.slopes(y[i], mean)
            slope = weight[i][:, None] * u
            bend = np.diag((slope * (1.0 - 2.0 * above)).sum(axis=0))
            return np.vstack([slope.T @ u - bend, slope.sum(axis=0)])

        with single_blas():
            loss = mean_deviance(self, y, weight, score, change)
            for _ in range(STEPS):
                *H, slope = sum_rows(sums, len(y))
                step = T @ np.linalg.lstsq(T.T @ H @ T, slope @ T, rcond=None)[0]
                for _ in range(HALVINGS):
                    tried = mean_deviance(self, y, weight, score, change + step)
                    if tried <= loss:
                        break
                    step = 0.5 * step
                else:
                    break
                gain, loss, change = loss - tried, tried, change + step
                if gain <= 1e-15 * loss:
                    break
        return change


def _tails(mean):
    """Return the probabilities of the classes below and above each boundary, (n, K - 1) each."""
    return np.cumsum(mean[:, :-1], axis=1), np.cumsum(mean[:, :0:-1], axis=1)[:, ::-1]


def threshold_names(levels):
    """Return names of the thresholds between ordered classes, such as "low|high"."""
    return [f"{a}|{b}" for a, b in pairwise(levels)]


def check_order(name, levels, in_order):
    """Raise DataError unless a response has at least three classes (`levels`) in a known order."""
    if not in_order:
        raise DataError(
            f"family 'ordinal' needs a response in order, but {name!r} has the classes "
            f"{first_few(levels, 3)} in no order: make it an ordered category, such as "
            "pd.Categorical(values, categories=[...], ordered=True), or numbers"
        )
    if len(levels or ()) < 3:
        raise DataError(
            f"family 'ordinal' needs at least three classes in order, but the response {name!r} "
            f"has {first_few(levels or ())}; use family 'binomial'"
        )
