"""Held-out losses of several models on the same rows: means, standard errors and differences.

Rows (or groups of rows) are the sampling units. Training rows of folds overlap, so means over folds
are not independent, and the usual variance is too small. It is multiplied by 1 + sum_k W_k / (1 -
W_k), with W_k the share of fold k (Nadeau and Bengio 2003, Sect. 3, Eq. 10: for J splits 1/J +
n_test/n_train instead of 1/J). With ten equal folds standard errors are 1.45 times the usual ones.
"""

from dataclasses import dataclass

import numpy as np

from lodim.classification import pairs_in_order

LEVEL = 0.05  # significance level for all pairs of models together
TIE = 1e-6  # smaller differences, relative to the larger mean loss, are due to the optimizer
N_SIMULATIONS = 20_000  # number of simulated draws of all differences
EQUAL = 1e-9  # smaller errors of differences, relative to the losses, are rounding
ROUNDING = 1e-6  # the same, relative to the standard errors of the two means


@dataclass(frozen=True)
class Rows:
    """Weights, folds and groups of the rows over which losses are averaged.

    weight : (n,) with sum one; fold : (n,) int; units : (n,) codes of groups, None without groups
    """

    weight: np.ndarray
    fold: np.ndarray
    units: np.ndarray | None = None

    @property
    def inflation(self):
        """Return the factor by which the overlap of training rows of folds increases a variance."""
        share = np.bincount(self.fold, self.weight)
        return 1.0 + (share / (1.0 - share)).sum()

    @property
    def degrees(self):
        """Number of sampling units with positive weight, minus one."""
        counted = self.weight > 0
        n = counted.sum() if self.units is None else len(np.unique(self.units[counted]))
        return max(int(n) - 1, 1)

    def covariance(self, parts):
        """Return the covariance (q, q) of q statistics.

        parts : (n, q), contribution of each row to each statistic
        """
        if self.units is not None:
            code = np.unique(self.units, return_inverse=True)[1]
            parts = np.stack([np.bincount(code, part) for part in parts.T], axis=1)
        return self.inflation * (self.degrees + 1) / self.degrees * (parts.T @ parts)


def means(losses, rows):
    """Return the weighted means (q,) of losses (n, q), and the covariance (q, q) of the means."""
    mean = rows.weight @ losses
    return mean, rows.covariance(rows.weight[:, None] * (losses - mean))


def explained(losses, null, rows):
    """Return the explained shares (q,) of the null model's losses, and their standard errors (q,).

    losses : (n, q), of q models; null : (n,), of the null model; rows : weights, folds, groups
    """
    total = rows.weight @ null
    if total <= 0:
        return np.full(losses.shape[1], np.nan), np.full(losses.shape[1], np.nan)
    share = 1.0 - (rows.weight @ losses) / total
    parts = ((1.0 - share) * null[:, None] - losses) * (rows.weight[:, None] / total)
    return share, np.sqrt(np.diag(rows.covariance(parts)))


def auc_of_folds(positive, score, rows):
    """Return the share of pairs (one row per class, same fold) that a score puts in order.

    A pair has the product of its rows' weights; pairs with equal scores count half.

    Parameters
    ----------
    positive : (n,) bool
        Which rows are of the positive class.
    score : (n,)
    rows : Rows

    Returns
    -------
    float, array (n,)
        The share, and each row's contribution to it (Hoeffding's projection, as in DeLong, DeLong
        and Clarke-Pearson 1988); NaN if no fold has rows of both classes.
    """
    in_order, pairs = np.zeros(len(score)), np.zeros(len(score))
    for k in range(rows.fold.max() + 1):
        at = np.flatnonzero(rows.fold == k)
        in_order[at], pairs[at] = pairs_in_order(positive[at], score[at], rows.weight[at])
    all_pairs = pairs[positive].sum()
    if all_pairs <= 0:
        return np.nan, np.full(len(score), np.nan)
    share = in_order[positive].sum() / all_pairs
    return share, (in_order - share * pairs) / all_pairs


def confidence_set(mean, covariance, degrees, seed=0):
    """Return p-values (q,) of the hypotheses that each model is as good as the best.

    They define the model confidence set (Hansen, Lunde and Nason 2011, Sect. 3.1). All pairs of the
    remaining models are compared by t statistics; the largest is compared with its simulated
    distribution for equal models with correlated losses. Then the model that is farthest behind
    another one is removed. A model's p-value is the largest one so far. All models that are as good
    as the best remain together with probability at least 1 - p. The best model has p = 1; ties have
    a statistic of 0.

    Parameters
    ----------
    mean : array (q,)
        Mean losses.
    covariance : array (q, q)
    degrees : int
        Degrees of freedom of the variances.
    seed : int
        Seed of the simulated draws.
    """
    spread = pair_errors(covariance, mean)
    draws = joint_draws(covariance, degrees, seed)
    left, p, last = list(range(len(mean))), np.ones(len(mean)), 0.0
    while len(left) > 1:
        gap = np.array([[_t(mean[i], mean[j], spread[i, j]) for j in left] for i in left])
        behind = gap.max(axis=1)
        worst = int(np.argmax(behind))
        last = max(last, float(np.mean(_largest(draws, spread, left) >= behind[worst])))
        p[left.pop(worst)] = last
    return p


def joint_quantile(mean, covariance, degrees, seed=0):
    """Return the half-width, in standard errors, of simultaneous intervals for all pairs of models.

    All differences of mean losses (q,) are within their intervals with probability 0.95. covariance
    (q, q) and degrees of freedom are those of the means.
    """
    draws, spread = joint_draws(covariance, degrees, seed), pair_errors(covariance, mean)
    return float(np.quantile(_largest(draws, spread, range(len(mean))), 1.0 - LEVEL))


def _largest(draws, spread, left):
    """Return each draw's largest absolute difference, in standard errors, of pairs of models.

    draws : (20000, q) simulated mean losses of q models; spread : (q, q) standard errors; left :
    models to compare
    """
    largest = np.zeros(len(draws))
    for i in left:
        for j in left:
            if j < i and spread[i, j] > 0:
                apart = np.abs(draws[:, i] - draws[:, j]) / spread[i, j]
                largest = np.maximum(largest, apart)
    return largest


def pair_errors(covariance, mean):
    """Return the standard errors (q, q) of differences of mean losses; 0 for rounding errors.

    covariance (q, q) : of the means (q,)
    """
    variance = np.diag(covariance)
    errors = np.sqrt(np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0))
    size = np.abs(mean[:, None]) + np.abs(mean) + 1e-300
    sd = np.sqrt(variance)
    known = (errors > EQUAL * size) & (errors > ROUNDING * (sd[:, None] + sd))
    return np.where(known, errors, 0.0)


def tied(mean, other):
    """Return whether two mean losses differ by at most 1e-6 of the larger loss.

    This is the accuracy of the optimizers.
    """
    return np.abs(mean - other) <= TIE * np.maximum(np.abs(mean), np.abs(other))


def _t(mean, other, error):
    """Return the t statistic of a difference of means: 0 for ties, infinite if `error` is 0."""
    if tied(mean, other):
        return 0.0
    return (mean - other) / error if error > 0 else np.sign(mean - other) * np.inf


def joint_draws(covariance, degrees, seed):
    """Return 20,000 draws (20000, q) from the t distribution with a covariance, centred at 0."""
    # From correlations: with covariances, one model with large errors would cost the others digits.
    sd = np.sqrt(np.diag(covariance))
    scale = np.where(sd > 0.0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T * sd
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((N_SIMULATIONS, len(covariance))) @ root
    return draws / np.sqrt(rng.chisquare(degrees, N_SIMULATIONS) / degrees)[:, None]
