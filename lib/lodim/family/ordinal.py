"""Classes in an order: cumulative logit, with one score per boundary between classes."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.special import expit

from lodim.engine.blocks import sum_rows
from lodim.engine.compiled import njit, scalar
from lodim.engine.scalar_math import exp_negative, like, log_positive
from lodim.errors import DataError
from lodim.family.binomial import Binomial
from lodim.family.binomial import curvature as logistic_curvature
from lodim.family.binomial import loss_slope as logistic
from lodim.family.family import RAREST, Family
from lodim.text import first_few

ORDERED = 5  # the code of the loss, which has no parameters
STEPS, HALVINGS, SETTLED = 50, 30, 1e-12  # limits of Newton's method; its last relative gain
WIDEST = 69.0  # largest h of `loss_slope`, whose exp(-h) must not underflow in float32


@scalar
def loss_slope(y, f, weight):
    """Return a row's weighted loss -log P(class) and its derivative in f.

    The class is coded by y (see `class_table`): 0 is the first class, with P = 1 / (1 + exp(f)),
    and 1 the last, with P = 1 / (1 + exp(-f)). For a class between two thresholds 2 h apart,
    y = -exp(-h) and P = 1 / (1 + exp(-f - h)) - 1 / (1 + exp(h - f))."""
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
    """Return the second derivative in f of a row's weighted loss -log P(class), coded by y."""
    one, zero = like(1.0, f), like(0.0, f)
    if y >= zero:
        return logistic_curvature(y, f, weight)
    q, e = -y, exp_negative(-abs(f))
    low, high = one + e * q, e + q
    return weight * e * q * (one / (low * low) + one / (high * high))


@njit(cache=True, nogil=True, error_model="numpy")
def _deviance(y, score):
    """Return -2 log-likelihoods (n,) of rows of classes y, from scores (n, K - 1)."""
    out, last = np.empty(y.size), score.shape[1]
    for i in range(y.size):
        code = int(y[i])
        above, below = score[i, max(code - 1, 0)], score[i, min(code, last - 1)]
        response = 0.0 if code == 0 else 1.0
        if 0 < code < last:
            response = -np.exp(max(0.5 * (below - above), -WIDEST))
        out[i] = 2.0 * loss_slope(response, 0.5 * (above + below), 1.0)[0]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _boundary_sums(y, f, weight, boundaries):
    """Return a loss and its first two derivatives per threshold between classes, (K - 1, 3).

    The loss is that of being above or below the threshold, with the logit f + boundary. It is
    summed over the rows of the two classes next to the threshold."""
    out = np.zeros((boundaries.size, 3))
    for i in range(y.size):
        for side in range(2):
            s = int(y[i]) - side
            if 0 <= s < boundaries.size:
                score = f[i] + boundaries[s]
                value, slope = logistic(float(side), score, weight[i])
                out[s, 0] += value
                out[s, 1] += slope
                out[s, 2] += logistic_curvature(float(side), score, weight[i])
    return out


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
        """Return how `loss_slope` codes each of K classes: y (first row) and a shift of f, (2, K).

        y is 0 for the first class, 1 for the last, and -exp(-h) for a class whose two thresholds
        differ by 2 h. f is shifted by the mean of these thresholds, or by the only one."""
        above, below = np.append(boundaries[0], boundaries), np.append(boundaries, boundaries[-1])
        response = -np.exp(np.maximum(0.5 * (below - above), -WIDEST))
        response[[0, -1]] = 0.0, 1.0
        return np.stack([response, 0.5 * (above + below)])

    def margin(self, y, f, boundaries):
        """Return y and f (n,) as `loss_slope` takes them.

        y : class codes; f : linear predictors without thresholds, which are the `boundaries`"""
        response, middle = self.class_table(boundaries)[:, y.astype(int)]
        return response, f + middle

    def deviance(self, y, score):
        return _deviance(np.asarray(y, np.float64), np.ascontiguousarray(score, np.float64))

    def _bounds(self, y, score):
        """Return each row's log-odds of its class or higher, and of a higher class, (n,) each.

        The former is inf for the first class, the latter -inf for the last."""
        code, rows = y.astype(int), np.arange(len(y))
        above = np.where(code > 0, score[rows, np.maximum(code - 1, 0)], np.inf)
        last = np.minimum(code, self.n_scores - 1)
        below = np.where(code < self.n_scores, score[rows, last], -np.inf)
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
        """Return derivatives of rows' log-likelihoods by the linear predictors, (n, K - 1).

        Also return the probabilities of the classes above each threshold, (n, K - 1)."""
        least, most = _tails(mean)
        boundary = np.arange(1, self.n_scores + 1)
        side = np.equal.outer(y, boundary) * 1.0 - np.equal.outer(y, boundary - 1)
        own = np.maximum(mean[np.arange(len(y)), y.astype(int)], 1e-300)
        return side * least * most / own[:, None], most

    def class_weights(self, y, weight):
        """Return the total weight of each class, (K,)."""

        def sums(i):
            return np.bincount(y[i].astype(int), weight[i], self.n_scores + 1)

        return sum_rows(sums, len(y))

    def null_intercept(self, y, weight, offset):
        """Return the intercepts (K - 1,) of the intercept-only model; weights sum to one."""
        weights = self.class_weights(y, weight)
        start = self.score(np.maximum(weights, RAREST)[None])[0]
        if not offset.any():
            return start
        return self.moved(partial(self.boundary_sums, y, offset[:, 0], weight), weights, start)

    def tied(self, present):
        """Return a group number per threshold (K - 1,); thresholds of a group must move together.

        present (K,) tells whether a class has rows. Thresholds without rows between them form a
        group. A threshold without rows on one side joins the nearest with rows on both."""
        return np.clip(np.cumsum(present)[:-1], 1, present.sum() - 1) - 1

    def boundary_sums(self, y, f, weight, boundaries):
        """Return a loss and two derivatives per threshold, (K - 1, 3), summed over all rows."""
        y, f = np.ascontiguousarray(y, np.float64), np.ascontiguousarray(f)
        return sum_rows(lambda i: _boundary_sums(y[i], f[i], weight[i], boundaries), len(y))

    def moved(self, sums, class_weights, boundaries):
        """Return the K - 1 thresholds of lowest mean deviance; the search starts from `boundaries`.

        sums(boundaries) returns the `boundary_sums` of all rows."""
        present = class_weights > 0.0
        if present.sum() < 2:
            return boundaries
        T = np.eye(present.sum() - 1)[self.tied(present)]
        loss, slope, H = _loss_of_boundaries(sums(boundaries), class_weights, boundaries)
        for _ in range(STEPS):
            step = -T @ np.linalg.lstsq(T.T @ H @ T, slope @ T, rcond=None)[0]
            if -slope @ step <= SETTLED * loss:
                return boundaries + step
            for _ in range(HALVINGS):
                at = boundaries + step
                tried = _loss_of_boundaries(sums(at), class_weights, at)
                if tried[0] <= loss:
                    break
                step = 0.5 * step
            else:
                break
            boundaries, (loss, slope, H) = at, tried
        return boundaries


def _loss_of_boundaries(sums, class_weights, boundaries):
    """Return the mean loss of all rows at these thresholds, its gradient and its Hessian.

    The loss adds the losses of the thresholds (`sums`, from `boundary_sums`). For each row of an
    inner class it adds -log(1 - exp(-gap)), where gap is the distance of its two thresholds."""
    (loss, slope, bend), inner = sums.T, class_weights[1:-1]
    inside = np.flatnonzero(inner)
    inner, gap = inner[inside], boundaries[inside] - boundaries[inside + 1]
    if not (gap > 0.0).all():
        return np.inf, slope, np.diag(bend)
    share = -np.expm1(-gap)
    change = np.eye(len(slope))[inside] - np.eye(len(slope))[inside + 1]  # of gaps
    fall = inner * (1.0 / share - 1.0)
    H = np.diag(bend) + (change.T * (fall / share)) @ change
    return loss.sum() - inner @ np.log(share), slope - fall @ change, H


def _tails(mean):
    """Return the probabilities of the classes below and above each threshold, (n, K - 1) each."""
    return np.cumsum(mean[:, :-1], axis=1), np.cumsum(mean[:, :0:-1], axis=1)[:, ::-1]


def threshold_names(levels):
    """Return names of the thresholds between ordered classes, such as "low|high"."""
    return [f"{a}|{b}" for a, b in pairwise(levels)]


def check_order(name, levels, in_order):
    """Raise DataError unless a response has at least three classes (`levels`) in a known order."""
    if not in_order:
        has = f"{name!r} has the classes {first_few(levels, 3)} in no order"
        cure = "pd.Categorical(values, categories=[...], ordered=True), or numbers"
        needs = f"family 'ordinal' needs a response in order, but {has}"
        raise DataError(f"{needs}: make it an ordered category, such as {cure}")
    if len(levels or ()) < 3:
        has = f"the response {name!r} has {first_few(levels or ())}; use family 'binomial'"
        raise DataError(f"family 'ordinal' needs at least three classes in order, but {has}")
