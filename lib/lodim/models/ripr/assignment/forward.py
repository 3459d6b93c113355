"""Views chosen one by one for what they say of rows left out: a rival of the lambda path.

The losses of Eq. 2.5 reward confidence. Where some views are confidently wrong, as those of two
almost equal features are, Algorithm 2.1.1 gives them all the mass; among the views that err least
each by itself, forward selection by what Eq. 2.11 makes of them does not.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers.answers import ABSENT
from lodim.models.ripr.views import row_blocks

MOST = 6  # views, where no number is given
TIE = 1e-8  # losses that are nearer to 1 say nothing
CANDIDATES = 60  # views that are tried, those that err least by themselves


def single_errors(L, weight=None):
    """Weighted share of rows that each view errs on by itself, (d*,): L_ij > 1, or not complete.

    A tie, L_ij = 1, is half an error. Of more than two classes an upper bound: the others together
    may be nearer than any of them.
    """
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - TIE, 1.0 + TIE):
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Columns of the views with the least errors, increasing."""
    return np.sort(ties.falling(-single_errors(L, weight))[:most])


@dataclass(frozen=True)
class Verdicts:
    """What each of A views says by itself of n rows left out, (n, A).

    least : smallest log ratio of the classes: of some views that with the smallest answers
    doubt : one less the probability of the row's own class, proportional to one over the ratio
    wrong : 1.0 where the smallest ratio is that of another class; of classes that share it their
        mean
    """

    least: np.ndarray
    doubt: np.ndarray
    wrong: np.ndarray

    @classmethod
    def of(cls, ratios, y):
        """From log ratios (n, A, K) and classes y (n,)."""
        own = np.maximum(y, 0)[:, None]
        p = softmax(-np.minimum(ratios, ABSENT), axis=2)
        doubt = 1.0 - np.take_along_axis(p, own[:, :, None], axis=2)[:, :, 0]
        right = np.take_along_axis(ties.shares(ratios), own[:, :, None], axis=2)[:, :, 0]
        return cls(ratios.min(axis=2), doubt, 1.0 - right)


def forward(ratios, y, most, weight=None, tolerance=1.0):
    """Views in the order of selection, positions among those of `ratios` (n, A, K).

    Each is the one that leaves the least doubt of the rows' classes, in the view that answers each
    of them. Counts of errors, few and often equal, would choose among the best of many by chance.

    Parameters
    ----------
    ratios : array (n, A, K)
        `knn.class_ratios` with rows left out.
    y : array (n,)
        Classes; -1 does not count.
    most : int
        Views at most.
    weight : array (n,), optional
    tolerance : float
        A view must lower the number of errors by more than this times its root: what chance does
        to the best of many.
    """
    weight = np.where(y >= 0, 1.0 if weight is None else weight, 0.0)
    weight = weight * np.count_nonzero(weight) / weight.sum()
    said, chosen, errors = Verdicts.of(ratios, y), [], np.inf
    least, doubt, wrong = np.full(len(y), np.inf), np.ones(len(y)), np.ones(len(y))
    while len(chosen) < most:
        nearer = said.least < least[:, None] - ties.EQUAL
        doubts = np.where(nearer, said.doubt, doubt[:, None])
        j = int(ties.least(np.einsum("i,ij->j", weight, doubts)))
        wrong = np.where(nearer[:, j], said.wrong[:, j], wrong)
        now = weight @ wrong
        if chosen and now >= errors - tolerance * np.sqrt(errors) - ties.EQUAL:
            break
        chosen, errors = [*chosen, j], now
        least, doubt = np.minimum(least, said.least[:, j]), doubts[:, j]
    return np.array(chosen)
