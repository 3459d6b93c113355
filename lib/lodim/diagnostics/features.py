"""What may be wrong with features, as functions of arrays."""

import re

import numpy as np
import pandas as pd
from scipy.special import gammaln, stdtr
from scipy.stats import rankdata

from lodim.classification import auc

CHANCE = 1e-3  # probability that what is healthy is found, over all that is looked at
SAME = 0.995  # correlation of two features, or of a feature and the response
FEW = 5  # rows: fewer are missing from one of five folds
SHIFT = 0.25  # standard deviations by which a mean moves
LEAST_NEW = 20  # rows whose mean is compared

IDENTIFIER = re.compile(
    r"(^|[\W_])(id|idx|index|key|no|nr|number|row|rowid|serial)$|^(id|row|unnamed)[\W_]|[a-z]I[Dd]$"
)
UNIQUE = 0.9  # share of the values that are different, of an identifier
REPEATED = 0.01  # share of the rows
CHANCE_TIMES = 10.0  # times as many as chance makes
INFLATED = 10.0  # variance inflation factor


def names_rows(name, x):
    """Whether a column, (n,) numbers under a name, is an identifier: by its name and its values."""
    named = IDENTIFIER.search(name) or IDENTIFIER.search(name.lower())
    whole = len(x) > 0 and (x == np.rint(x)).all()
    return bool(named and whole and len(np.unique(x)) >= UNIQUE * len(x))


def repeats(rows, X):
    """Positions of the rows that repeat an earlier one, where these are more than chance makes.

    By chance rows agree as if the three columns of X (n, p) that agree least often were independent
    and all others followed from these.
    """
    n = len(rows)
    again = np.flatnonzero(pd.DataFrame(rows).duplicated().to_numpy())
    if len(again) < max(2, REPEATED * n):
        return again[:0]
    agree = [(np.unique(x, return_counts=True)[1] ** 2.0).sum() / n**2 for x in X.T]
    expected = 0.5 * n**2 * np.prod(np.sort(agree)[:3])
    return again if len(again) > CHANCE_TIMES * (expected + 0.1) else again[:0]


def inflation(X):
    """Variance inflation factors (p,) of features (n, p); 1 of those that do not vary."""
    spread, factors = X.std(axis=0), np.ones(X.shape[1])
    use = np.flatnonzero(spread > 1e-9)
    if len(use) > 1:
        Z = (X[:, use] - X[:, use].mean(axis=0)) / spread[use]
        values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
        factors[use] = (vectors**2 / np.maximum(values, 1e-12)).sum(axis=1)
    return factors


def near_copies(X, sources):
    """Pairs of columns (n, p) that are correlated by SAME or more, as (i, j, correlation).

    sources : for each column the set of columns of the data that it is made of: columns of common
        origin are not compared (powers, splines, levels); None leaves a column out
    """
    spread = X.std(axis=0)
    use = np.flatnonzero((spread > 1e-9) & np.array([s is not None for s in sources], bool))
    Z = (X[:, use] - X[:, use].mean(axis=0)) / spread[use]
    found = []
    for a in range(len(use)):
        r = Z[:, a] @ Z[:, a + 1 :] / len(Z)
        for b in np.flatnonzero(np.abs(r) >= SAME) + a + 1:
            i, j = int(use[a]), int(use[b])
            if not sources[i] & sources[j]:
                found.append((i, j, float(r[b - a - 1])))
    return found


def tells_number(x, y):
    """The larger of Pearson's and Spearman's correlation of a column and a response, (n,), (n,)."""
    return max(abs(_correlation(x, y)), abs(_correlation(rankdata(x), rankdata(y))))


def tells_classes(x, code, n_classes):
    """The least area under the curve of a column over all pairs of classes: 1 tells all apart.

    0 where a pair has so few rows that chance could tell them apart, of a thousand columns.
    """
    least = 1.0
    for a in range(n_classes):
        for b in range(a):
            either = (code == a) | (code == b)
            of_a = code[either] == a
            n, m = int(of_a.sum()), int((~of_a).sum())
            if gammaln(n + m + 1) - gammaln(n + 1) - gammaln(m + 1) < np.log(2e3 / CHANCE):
                return 0.0
            area = auc(of_a, x[either], np.ones(n + m))
            least = min(least, max(area, 1.0 - area))
    return least


def purity(level, code):
    """Share of the rows whose class is the most frequent of their level, (n,) codes of both."""
    counts = np.zeros((level.max() + 1, code.max() + 1))
    np.add.at(counts, (level, code), 1.0)
    return counts.max(axis=1).sum() / len(level)


def _correlation(x, y):
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x @ x) * (y @ y))
    return x @ y / size if size > 0 else 0.0


def moved(X, n_training):
    """Columns whose mean has moved from zero, in training standard deviations: (shifts, which).

    By SHIFT or more, and by more than chance: both sets of rows vary by the standard deviation of
    the new ones or that of training, whichever is larger. Of a skewed feature few rows show less
    than the true one. The degrees of freedom of t are those of the fewer rows.

    Parameters
    ----------
    X : array (m, p)
        New rows, standardized by the training rows.
    n_training : int

    Returns
    -------
    array (p,), array (p,) of bool
    """
    shift = X.mean(axis=0)
    error = np.sqrt(np.maximum(1.0, X.var(axis=0)) * (1.0 / len(X) + 1.0 / n_training))
    p = 2.0 * stdtr(max(min(len(X), n_training) - 1, 1), -np.abs(shift) / error)
    return shift, (np.abs(shift) >= SHIFT) & (p < CHANCE / X.shape[1])


def beyond(X, n_training):
    """Where new rows, (m, p) standardized, are farther out than any of n training rows can be.

    Of n numbers none is farther from their mean than sqrt(n - 1) standard deviations (Samuelson
    1968).
    """
    return np.abs(X) > np.sqrt(max(n_training - 1, 1)) * (1.0 + 1e-9)
