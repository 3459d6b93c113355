"""The nearest neighbours of a projection vote on the class."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.models.melm.classify.density import even
from lodim.models.melm.search.whitening import within

COUNTS = (1, 3, 5, 9, 15, 25, 45)  # tried, of neighbours
TIE = 1e-9  # of votes: a difference below is rounding
DIGITS = 9  # of a share of rows: what is beyond is rounding
STEP = 4096  # rows that ask for neighbours at a time


@dataclass(frozen=True)
class Neighbours:
    """Projected rows in units of the spread within classes.

    U (n, k); code (n,); weight (n,): as how many rows each counts; vote (C,) of such a row by its
    class; into (k, k).
    """

    U: np.ndarray
    code: np.ndarray
    weight: np.ndarray
    vote: np.ndarray
    into: np.ndarray


def learn(rows, *, equal=False):
    """From training Rows; `equal` weighs votes by the inverse of class sizes.

    Else a class has the votes of all of its training rows, of which these may be some.
    """
    rest = within(rows.Z, rows.code, rows.weight)[0]
    cov = (rest.T * rows.weight) @ rest / rows.weight.sum()
    into = np.linalg.inv(np.linalg.cholesky(cov)).T
    vote = (1.0 if equal else rows.size) / np.bincount(rows.code, rows.weight)
    return Neighbours(rows.Z @ into, rows.code, rows.weight.astype(np.float64), vote, into)


def nearest(known, Z, count, but=0):
    """Positions of the nearest rows, (m, r): so many that, less `but`, they count as `count`."""
    from scipy.spatial import KDTree

    tree, U, n = KDTree(known.U), Z @ known.into, len(known.U)
    reach = int(min(count + but, n))
    while True:
        parts = [tree.query(U[i : i + STEP], np.arange(1, reach + 1))[1]
                 for i in range(0, max(len(U), 1), STEP)]  # fmt: skip
        near = np.concatenate(parts)
        held = known.weight[near]
        if reach == n or (held.sum(axis=1) - but * held.max(axis=1) >= count).all():
            return near
        reach = min(2 * reach, n)


def others(known, Z, count):
    """Positions of the nearest rows of each training row Z (m, k) but itself, (m, r)."""
    near = nearest(known, Z, count, but=1)
    own = near == np.arange(len(Z))[:, None]
    own[~own.any(axis=1), -1] = True  # of many equal rows it need not be among the nearest
    return near[~own].reshape(len(Z), -1)


def votes(known, near, count):
    """Votes (m, C) of the neighbours (m, r) that are the nearest `count` rows, and how many.

    A row of weight two is two of them; of the last one some may be beyond.
    """
    m, C = len(near), len(known.vote)
    weight = known.weight[near]
    before = np.cumsum(weight, axis=1) - weight
    weight = np.clip(count - before, 0.0, weight)
    cell = np.arange(m)[:, None] * C + known.code[near]
    total = known.vote * np.bincount(cell.ravel(), weight.ravel(), m * C).reshape(m, C)
    count = weight.sum(axis=1, keepdims=True)
    return total * (count / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)), count


def choose_count(rows, *, equal=False):
    """Number of neighbours with the most rows right when left out; of equals the largest.

    Of classes with as many votes each is right in part.
    """
    share, known = even(rows.code, rows.share, equal), learn(rows, equal=equal)
    near = others(known, rows.Z, max(COUNTS))
    own, right = np.arange(len(near)), []
    for m in COUNTS:
        total = votes(known, near, m)[0]
        most = total >= (1.0 - TIE) * total.max(axis=1, keepdims=True)
        right.append(share @ (most[own, rows.code] / most.sum(axis=1)))
    return max(zip(np.round(right, DIGITS), COUNTS, strict=True))[1]


@dataclass(frozen=True)
class Nearest:
    """The votes of the nearest training rows.

    known : Neighbours; count of rows that vote; prior (C,), which counts as one vote more
    """

    known: Neighbours
    count: int
    prior: np.ndarray

    @classmethod
    def learn(cls, rows, count, equal):
        """From training Rows; `equal` gives all classes the same prior probability."""
        size = rows.size
        prior = np.full(len(size), 1.0 / len(size)) if equal else size / size.sum()
        count = int(min(count, max(1.0, rows.weight.sum())))
        return cls(learn(rows, equal=equal), count, prior)

    def check(self, k, n_classes):
        """Raise ValueError unless the fields fit each other, k dimensions and the classes."""
        own = {
            "U": forms.real("m", k), "code": forms.whole("m", most=n_classes - 1),
            "weight": forms.real("m", least=forms.TINY),
            "vote": forms.real(n_classes, least=forms.TINY), "into": forms.real(k, k),
        }  # fmt: skip
        if not forms.check(self.known, own, "neighbours")["m"]:
            raise ValueError("there are no neighbours")
        known = {"count": forms.whole(least=1), "prior": forms.real(n_classes, least=0, most=1)}
        forms.check(self, known, "neighbours")

    def scores(self, Z):
        """Logarithms of the classes' probabilities, (n, C)."""
        return self._scores(nearest(self.known, Z, self.count))

    def left_out(self, Z):
        """Scores of the training rows themselves, (m, k), each without its own vote, (m, C)."""
        return self._scores(others(self.known, Z, self.count))

    def _scores(self, near):
        total, count = votes(self.known, near, self.count)
        return np.log((total + self.prior) / (count + 1.0))
