"""Several classes: the log-loss as a function of the linear predictors."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lodim.engine.compiled import njit, scalar
from lodim.family.binomial import Binomial
from lodim.family.family import RAREST, Family, beside_offset, class_shares


@scalar
def loss_shares(y, f, p):
    """Return the log-loss of a row of class y at scores f (K,); fill p (K,) with probabilities."""
    largest, total = f[0], 0.0
    for k in range(1, f.size):
        largest = max(largest, f[k])
    for k in range(f.size):
        p[k] = np.exp(f[k] - largest)
        total += p[k]
    for k in range(f.size):
        p[k] /= total
    return largest + np.log(total) - f[int(y)]


@njit(cache=True, nogil=True, error_model="numpy")
def shares_of_rows(y, score):
    """Return log-losses (n,) and class probabilities (n, K) at linear predictors `score`."""
    loss, p = np.empty(y.size), np.empty(score.shape)
    for i in range(y.size):
        loss[i] = loss_shares(y[i], score[i], p[i])
    return loss, p


@dataclass(frozen=True)
class Multinomial(Family):
    """Family of K classes, coded 0 to K - 1; the deviance is -2 log-likelihood."""

    n_scores: int
    name: str = "multinomial"
    link: str = "softmax"
    loss: str = "log-loss"
    several_classes = True

    @property
    def n_linear(self):
        return self.n_scores - 1  # the first class has score 0

    kernel_loss = Binomial.kernel_loss  # loss of one class against the others

    def deviance(self, y, score):
        y, score = np.asarray(y, float), np.ascontiguousarray(score, np.float64)
        return 2.0 * shares_of_rows(y, score)[0]

    def mean(self, score):
        """Return the probabilities of the classes, (n, K), from linear predictors `score`."""
        return softmax(score, axis=1)

    most_deviance = Binomial.most_deviance

    def residual(self, y, score):
        """Return 1 - P(observed class y), (n,), from linear predictors `score` (n, K)."""
        return 1.0 - self.mean(score)[np.arange(len(y)), y.astype(int)]

    def absent(self, y, weight):
        return np.bincount(y[weight > 0.0].astype(int), minlength=self.n_scores) == 0

    def null_intercept(self, y, weight, offset):
        """Return the intercepts (K,) of the intercept-only model; weights sum to one."""
        start = np.log(np.maximum(class_shares(y, weight, self.n_scores), RAREST))
        return beside_offset(self, y, weight, offset, start - start.mean())
