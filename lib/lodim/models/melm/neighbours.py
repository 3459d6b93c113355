"""The nearest neighbours of a projection vote on the class."""

from dataclasses import dataclass

import numpy as np

from lodim.models.melm.basis import within
from lodim.models.melm.widths import even

COUNTS = (1, 3, 5, 9, 15, 25, 45)  # tried, of neighbours


@dataclass(frozen=True)
class Neighbours:
    """Projected rows in units of the spread within classes.

    U (n, k); code (n,); weight (n,) of a vote; into (k, k).
    """

    U: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    into: np.ndarray


def learn(Z, code, weight, *, equal=False):
    """Rows Z (n, k) of classes code (n,); `equal` weighs votes by the inverse of class sizes."""
    rest = within(Z, code, weight)[0]
    cov = (rest.T * weight) @ rest / weight.sum()
    into = np.linalg.inv(np.linalg.cholesky(cov)).T
    vote = weight / np.bincount(code, weight)[code] if equal else weight
    return Neighbours(Z @ into, code, vote.astype(np.float64), into)


def nearest(known, Z, count):
    """Positions of the nearest rows, (m, count)."""
    from scipy.spatial import KDTree

    return KDTree(known.U).query(Z @ known.into, k=np.arange(1, count + 1))[1]


def others(known, Z, count):
    """Positions of the nearest rows of each training row Z (m, k) but itself, (m, count)."""
    near = nearest(known, Z, min(count + 1, len(Z)))
    own = near == np.arange(len(Z))[:, None]
    own[~own.any(axis=1), -1] = True  # of many equal rows it need not be among the nearest
    return near[~own].reshape(len(Z), -1)


def votes(known, nearest):
    """Share of each class in the votes of neighbours, (m, count) -> (m, C)."""
    m, C = len(nearest), int(known.code.max()) + 1
    cell = np.arange(m)[:, None] * C + known.code[nearest]
    total = np.bincount(cell.ravel(), known.weight[nearest].ravel(), m * C).reshape(m, C)
    return total / total.sum(axis=1, keepdims=True)


def choose_count(Z, code, weight, *, equal=False):
    """Number of neighbours with the most rows right when left out; of equals the largest."""
    share, known = even(code, weight, equal), learn(Z, code, weight, equal=equal)
    near = others(known, Z, max(COUNTS))
    right = [share @ (votes(known, near[:, :m]).argmax(axis=1) == code) for m in COUNTS]
    return max(zip(right, COUNTS, strict=True))[1]
