"""Classes in an order: cumulative logit, with one score per boundary between classes."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from lodim.engine.blocks import sum_rows
from lodim.errors import DataError
from lodim.family.binomial import Binomial
from lodim.family.family import RAREST, Family, beside_offset
from lodim.text import first_few


@dataclass(frozen=True)
class Ordinal(Family):
    """Family of K ordered classes, coded 0 to K - 1; the deviance is -2 log-likelihood.

    Linear predictor s = 1, ..., K - 1 is the log-odds of class s or a higher one, so these
    decrease. In models they differ by constants only (proportional odds): predictor s is
    x'b minus threshold s.
    """

    n_scores: int
    name: str = "ordinal"
    link: str = "cumulative logit"
    loss: str = "log-loss"
    several_classes = True
    shared_slopes = True

    most_deviance = Binomial.most_deviance

    def deviance(self, y, score):
        above, below = self._bounds(y, score)
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = np.log(-np.expm1(np.minimum(below - above, 0.0)))
            return 2.0 * (np.logaddexp(0.0, -above) + np.logaddexp(0.0, below) - gap)

    def _bounds(self, y, score):
        """Return linear predictors of the lower and upper boundary of the rows' classes, (n,) each.

        The first class has the lower boundary inf, the last class the upper boundary -inf."""
        code, rows = y.astype(int), np.arange(len(y))
        above = np.where(code > 0, score[rows, np.maximum(code - 1, 0)], np.inf)
        below = np.where(
            code < self.n_scores, score[rows, np.minimum(code, self.n_scores - 1)], -np.inf
        )
        return above, below

    def mean(self, score):
        """Return the probabilities of the classes, (n, K)."""
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
        """Return the probability of lower classes than the observed one, minus that of higher ones.

        Its mean is zero for correct probabilities (Li & Shepherd 2012); shape (n,)."""
        above, below = self._bounds(y, score)
        return expit(-above) - expit(below)

    def slopes(self, y, mean):
        """Return derivatives of log-likelihoods in the linear predictors, and tail probabilities.

        Both are (n, K - 1). The latter are probabilities of a class above each boundary."""
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
        if not offset.any():
            return start
        # The first score and the logarithms of the falls to the others keep their order.
        falls = np.log(np.maximum(-np.diff(start), RAREST))
        return beside_offset(self, y, weight, offset, np.append(start[:1], falls), _falling)


def _tails(mean):
    """Return the probabilities of the classes below and above each boundary, (n, K - 1) each."""
    return np.cumsum(mean[:, :-1], axis=1), np.cumsum(mean[:, :0:-1], axis=1)[:, ::-1]


def check_order(name, levels, in_order):
    """Raise DataError unless the response `name` has at least three classes, which are in order."""
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


def _falling(x):
    """Return decreasing linear predictors: x[0] first; the falls are exp() of the next entries."""
    return x[0] - np.append(0.0, np.cumsum(np.exp(np.clip(x[1:], -50.0, 50.0))))
