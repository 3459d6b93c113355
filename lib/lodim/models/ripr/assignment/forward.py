"""Forward selection of views by leave-one-out predictions: an alternative to the lambda path.

A view is a set of features. The losses of Eq. 2.5 of Fiterau (2014) reward confidence. If some
views are confidently wrong, as views of two almost equal features can be, Algorithm 2.1.1 gives
them all rows. Forward selection does not: it starts from the views with the fewest errors and uses
the predictions that Eq. 2.11 makes from them.
"""

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers.knn import ABSENT
from lodim.models.ripr.views import row_blocks

MOST_VIEWS = 6  # default number of views
TIE = 1e-8  # tolerance of a loss of 1, a tie
CANDIDATES = 60  # views tried: those with fewest errors on their own


def single_errors(L, weight=None):
    """Return the weighted share of rows that each view (set of features) predicts wrongly, (d*,).

    L (n, d*) are losses of the rows in the views. A row is wrong if L_ij > 1 (rows of another class
    are nearer) or it misses a feature of the view; a tie, L_ij = 1, counts as half an error. For
    more than two classes this is an upper bound, since the other classes together may be nearer
    than any one of them.
    """
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - TIE, 1.0 + TIE):
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Return the columns of L (n, views) of the `most` views with the fewest errors, increasing.

    L are losses of rows in views (sets of features)."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Return the selected views in order, as positions among those of `ratios` (n, A, K).

    A view is a set of features. Each step adds the view that minimizes the doubt about the rows'
    classes: one minus the probability of the own class in the view that predicts the row. Counts of
    errors, which are small and often tied, would choose among the best of many views by chance.

    Parameters
    ----------
    ratios : array (n, A, K)
        Log ratios of distances for n rows, A views and K classes: own class to other classes. No
        row is its own neighbour.
    y : array (n,)
        Classes; rows with -1 do not count.
    most : int
        Largest number of views.
    weight : array (n,), optional
    tolerance : float
        A view must reduce the number of errors by more than `tolerance` times its square root,
        which exceeds the effect of chance on the best of many views.
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
    """Return results of each view (set of features) alone for n rows, three arrays (n, A).

    ratios (n, A, K) are log ratios of distances for A views and K classes, y (n,) the classes.

    Returns
    -------
    least
        Smallest log ratio over the classes; the view with the smallest one predicts the row.
    doubt
        One minus the probability of the row's own class; probabilities are proportional to one over
        the ratio.
    wrong
        1.0 if the smallest ratio belongs to another class; a mean over tied classes.
    """
    own = np.maximum(y, 0)[:, None, None]
    p, right = softmax(-np.minimum(ratios, ABSENT), axis=2), ties.argmin_shares(ratios)
    doubt, wrong = (1.0 - np.take_along_axis(z, own, axis=2)[:, :, 0] for z in (p, right))
    return ratios.min(axis=2), doubt, wrong
