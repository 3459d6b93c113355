"""Forward selection of views by predictions of rows left out: a rival of the lambda path.

The losses of Eq. 2.5 reward confidence. Where some views are confidently wrong, as those of two
almost equal features are, Algorithm 2.1.1 gives them all the mass; among the views that err least
each by itself, forward selection by what Eq. 2.11 makes of them does not.
"""

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers.knn import ABSENT
from lodim.models.ripr.views import row_blocks

MOST_VIEWS = 6  # where no number is given
TIE = 1e-8  # losses that are nearer to 1 say nothing
CANDIDATES = 60  # views that are tried, those that err least by themselves


def single_errors(L, weight=None):
    """Weighted share of rows that each view errs on by itself, (d*,): L_ij > 1, or not complete.

    A tie, L_ij = 1, is half an error. For more than two classes an upper bound: the others together
    may be nearer than any of them.
    """
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - TIE, 1.0 + TIE):
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Return columns of the views with the least errors, increasing."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Return views in the order of selection, positions among those of `ratios` (n, A, K).

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
    leasts, doubts, wrongs = _by_view(ratios, y)
    chosen, errors = [], np.inf
    least, doubt, wrong = np.full(len(y), np.inf), np.ones(len(y)), np.ones(len(y))
    while len(chosen) < most:
        nearer = leasts < least[:, None] - ties.EQUAL
        new_doubts = np.where(nearer, doubts, doubt[:, None])
        j = int(ties.argmin(np.einsum("i,ij->j", weight, new_doubts)))
        wrong = np.where(nearer[:, j], wrongs[:, j], wrong)
        new_errors = weight @ wrong
        if chosen and new_errors >= errors - tolerance * np.sqrt(errors) - ties.EQUAL:
            break
        chosen, errors = [*chosen, j], new_errors
        least, doubt = np.minimum(least, leasts[:, j]), new_doubts[:, j]
    return np.array(chosen)


def _by_view(ratios, y):
    """Results of each view by itself, (n, A) each, from log ratios (n, A, K) and classes y (n,).

    Returns
    -------
    least
        Smallest log ratio of the classes: of some views that with the smallest answers.
    doubt
        One less the probability of the row's own class, proportional to one over the ratio.
    wrong
        1.0 where the smallest ratio is that of another class; of classes that share it their mean.
    """
    own = np.maximum(y, 0)[:, None, None]
    p, right = softmax(-np.minimum(ratios, ABSENT), axis=2), ties.argmin_shares(ratios)
    doubt, wrong = (1.0 - np.take_along_axis(z, own, axis=2)[:, :, 0] for z in (p, right))
    return ratios.min(axis=2), doubt, wrong
