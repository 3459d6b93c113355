"""Mean held-out losses of several models on the same rows, standard errors and differences."""

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
    """Weights, folds and groups of the rows over which losses are averaged."""

    weight: np.ndarray  # (n,) with sum one
    fold: np.ndarray  # (n,) int
    units: np.ndarray | None = None  # (n,) codes of groups

    @property
    def inflation(self):
        """Factor by which a variance increases because the training rows of folds overlap."""
        share = np.bincount(self.fold, self.weight)
        return 1.0 + (share / (1.0 - share)).sum()

    @property
    def degrees(self):
        """Number of sampling units with positive weight, minus one."""
        counted = self.weight > 0
        n = counted.sum() if self.units is None else len(np.unique(self.units[counted]))
        return max(int(n) - 1, 1)

    def covariance(self, parts):
        """Return the covariance matrix (q, q) of q statistics of the rows, such as mean losses.

        parts : (n, q) contribution of each row to each statistic's error; columns sum to zero"""
        if self.units is not None:
            code = np.unique(self.units, return_inverse=True)[1]
            parts = np.stack([np.bincount(code, part) for part in parts.T], axis=1)
        return self.inflation * (self.degrees + 1) / self.degrees * (parts.T @ parts)


def means(losses, rows):
    """Return the weighted means (q,) of losses (n, q) of `rows` (Rows), and their covariance."""
    mean = rows.weight @ losses
    return mean, rows.covariance(rows.weight[:, None] * (losses - mean))


def explained(losses, null, rows):
    """Return the share of loss that each of q models explains, and standard errors, (q,) each.

    losses : (n, q) losses of the models
    null : (n,) losses of the null model; if all are 0, results are NaN
    rows : Rows, with weights, folds and groups"""
    total = rows.weight @ null
    if total <= 0:
        return np.full(losses.shape[1], np.nan), np.full(losses.shape[1], np.nan)
    share = 1.0 - (rows.weight @ losses) / total
    parts = ((1.0 - share) * null[:, None] - losses) * (rows.weight[:, None] / total)
    return share, np.sqrt(np.diag(rows.covariance(parts)))


def auc_of_folds(positive, score, rows):
    """Return the AUC within folds, and each row's influence on it (n,).

    positive : (n,) bool
    rows : Rows, with weights, folds and groups
    The results are NaN if no fold has both classes."""
    # Influences as in DeLong et al. (1988).
    in_order, pairs = np.zeros(len(score)), np.zeros(len(score))
    for k in range(rows.fold.max() + 1):
        at = np.flatnonzero(rows.fold == k)
        in_order[at], pairs[at] = pairs_in_order(positive[at], score[at], rows.weight[at])
    all_pairs = pairs[positive].sum()
    if all_pairs <= 0:
        return np.nan, np.full(len(score), np.nan)
    share = in_order[positive].sum() / all_pairs
    return share, (in_order - share * pairs) / all_pairs


def confidence_set(mean, covariance, degrees):
    """Return p-values (q,) of the model confidence set: that each model is as good as the best.

    mean : (q,) mean losses; covariance : (q, q), theirs; degrees : its degrees of freedom"""
    # Hansen, Lunde and Nason (2011), Sect. 3.1.
    spread = pair_errors(covariance, mean)
    draws = joint_draws(covariance, degrees)
    gap = mean[:, None] - mean
    t = np.divide(gap, spread, out=np.where(gap < 0.0, -np.inf, np.inf), where=spread > 0.0)
    t[tied(mean[:, None], mean)] = 0.0
    left, p, last = list(range(len(mean))), np.ones(len(mean)), 0.0
    while len(left) > 1:
        behind = t[np.ix_(left, left)].max(axis=1)
        worst = int(np.argmax(behind))
        last = max(last, float(np.mean(_largest(draws, spread, left) >= behind[worst])))
        p[left.pop(worst)] = last
    return p


def joint_quantile(mean, covariance, degrees):
    """Return the half-width, in standard errors, of joint 95% intervals for differences of losses.

    mean : (q,) mean losses; covariance : (q, q), theirs; degrees : its degrees of freedom"""
    draws, spread = joint_draws(covariance, degrees), pair_errors(covariance, mean)
    return float(np.quantile(_largest(draws, spread, range(len(mean))), 1.0 - LEVEL))


def _largest(draws, spread, left):
    """Return the largest difference between two models in each simulation, in standard errors.

    draws : (simulations, q) mean losses of q models
    spread : (q, q) standard errors of the differences; left : positions of the models to compare"""
    largest = np.zeros(len(draws))
    for i in left:
        for j in left:
            if j < i and spread[i, j] > 0:
                apart = np.abs(draws[:, i] - draws[:, j]) / spread[i, j]
                largest = np.maximum(largest, apart)
    return largest


def pair_errors(covariance, mean):
    """Return the standard errors (q, q) of all differences between the mean losses of q models.

    covariance : (q, q) covariance matrix of the mean losses
    mean : (q,) mean losses. Standard errors no larger than rounding errors are returned as 0."""
    variance = np.diag(covariance)
    errors = np.sqrt(np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0))
    size = np.abs(mean[:, None]) + np.abs(mean) + 1e-300
    sd = np.sqrt(variance)
    known = (errors > EQUAL * size) & (errors > ROUNDING * (sd[:, None] + sd))
    return np.where(known, errors, 0.0)


def tied(mean, other):
    """Return whether mean losses `mean` and `other` differ by at most 1e-6 of the larger one."""
    return np.abs(mean - other) <= TIE * np.maximum(np.abs(mean), np.abs(other))


def joint_draws(covariance, degrees):
    """Return 20,000 multivariate t draws (rows) for scale matrix (q, q) and degrees of freedom."""
    # From correlations: with covariances, one model with large errors would cost the others digits.
    sd = np.sqrt(np.diag(covariance))
    scale = np.where(sd > 0.0, sd, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T * sd
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((N_SIMULATIONS, len(covariance))) @ root
    return draws / np.sqrt(rng.chisquare(degrees, N_SIMULATIONS) / degrees)[:, None]
