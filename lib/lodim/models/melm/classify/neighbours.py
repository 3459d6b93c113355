"""Nearest neighbours in a view, which vote on the class."""

import numpy as np

from lodim import forms
from lodim.models.melm.classify.density import evaluation_weights
from lodim.models.melm.search.whitening import center_by_class

COUNTS = (1, 3, 5, 9, 15, 25, 45)  # tried, of neighbours
TIE = 1e-9  # of votes: a difference below is rounding
DIGITS = 9  # of a share of rows: what is beyond is rounding
STEP = 4096  # rows that ask for neighbours at a time


@forms.record
class Neighbours:
    """Projected rows in units of the spread within classes.

    weight: as how many rows each counts; vote of such a row by its class.
    """

    U: np.ndarray = forms.real("n", "k")
    code: np.ndarray = forms.whole("n", most="C - 1")
    weight: np.ndarray = forms.real("n", least=forms.TINY)
    vote: np.ndarray = forms.real("C", least=forms.TINY)
    into: np.ndarray = forms.real("k", "k")

    def _check_fields(self):
        """Raise a ValueError unless there are rows."""
        if not len(self.U):
            raise ValueError("there are no neighbours")

    @classmethod
    def from_rows(cls, rows, equal=False):
        """From training Rows; `equal` weighs votes by the inverse of class sizes.

        Else a class has the votes of all of its training rows, of which these may be some.
        """
        residual = center_by_class(rows.Z, rows.code, rows.weight)[0]
        cov = (residual.T * rows.weight) @ residual / rows.weight.sum()
        into = np.linalg.inv(np.linalg.cholesky(cov)).T
        vote = (1.0 if equal else rows.size) / np.bincount(rows.code, rows.weight)
        return cls(rows.Z @ into, rows.code, rows.weight.astype(np.float64), vote, into)

    def nearest(self, Z, count, but=0):
        """Positions (m, r) of the rows nearest to Z (m, k): these, less `but`, count as `count`."""
        from scipy.spatial import KDTree

        tree, U, n = KDTree(self.U), Z @ self.into, len(self.U)
        reach = int(min(count + but, n))
        blocks = [U[i : i + STEP] for i in range(0, max(len(U), 1), STEP)]
        while True:
            ranks = np.arange(1, reach + 1)
            near = np.concatenate([tree.query(block, ranks)[1] for block in blocks])
            weight = self.weight[near]
            enough = weight.sum(axis=1) - but * weight.max(axis=1) >= count
            if reach == n or enough.all():
                return near
            reach = min(2 * reach, n)

    def nearest_others(self, Z, count):
        """Positions (m, r) of the rows nearest to each training row Z (m, k) but itself."""
        near = self.nearest(Z, count, but=1)
        itself = near == np.arange(len(Z))[:, None]
        itself[~itself.any(axis=1), -1] = True  # of many equal rows it need not be nearest
        return near[~itself].reshape(len(Z), -1)

    def votes(self, near, count):
        """Votes (m, C) of the neighbours (m, r) that are the nearest `count` rows, and their count.

        A row of weight two is two of them; of the last one some may be beyond.
        """
        m, C = len(near), len(self.vote)
        weight = self.weight[near]
        before = np.cumsum(weight, axis=1) - weight
        weight = np.clip(count - before, 0.0, weight)
        cell = np.arange(m)[:, None] * C + self.code[near]
        total = self.vote * np.bincount(cell.ravel(), weight.ravel(), m * C).reshape(m, C)
        count = weight.sum(axis=1, keepdims=True)
        return total * (count / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)), count


def select_count(rows, equal=False):
    """Number of neighbours with the most rows right when left out; of equals the largest.

    Of classes with as many votes each is right in part.
    """
    share = evaluation_weights(rows.code, rows.share, equal)
    known = Neighbours.from_rows(rows, equal)
    near = known.nearest_others(rows.Z, max(COUNTS))
    position, right = np.arange(len(near)), []
    for count in COUNTS:
        total = known.votes(near, count)[0]
        most = total >= (1.0 - TIE) * total.max(axis=1, keepdims=True)
        right.append(share @ (most[position, rows.code] / most.sum(axis=1)))
    return max(zip(np.round(right, DIGITS), COUNTS, strict=True))[1]


@forms.record
class Nearest:
    """The classifier by votes of the nearest training rows.

    count of rows that vote; prior, which counts as one vote more
    """

    known: Neighbours = forms.part(Neighbours)
    count: int = forms.whole(least=1)
    prior: np.ndarray = forms.real("C", least=0, most=1)

    @classmethod
    def from_rows(cls, rows, count, equal):
        """From training Rows; `equal` gives all classes the same prior probability."""
        size = rows.size
        prior = np.full(len(size), 1.0 / len(size)) if equal else size / size.sum()
        count = int(min(count, max(1.0, rows.weight.sum())))
        return cls(Neighbours.from_rows(rows, equal), count, prior)

    def scores(self, Z):
        """Logarithms of the classes' probabilities (n, C) at coordinates (n, k)."""
        return self._scores(self.known.nearest(Z, self.count))

    def leave_one_out_scores(self, Z):
        """Scores (m, C) of the training rows Z (m, k) themselves, each without its own vote."""
        return self._scores(self.known.nearest_others(Z, self.count))

    def _scores(self, near):
        votes, count = self.known.votes(near, self.count)
        return np.log((votes + self.prior) / (count + 1.0))
