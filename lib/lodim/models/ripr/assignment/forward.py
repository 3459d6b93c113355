"""Forward selection of views (feature sets) by leave-one-out predictions.

The losses of Eq. 2.5 of Fiterau (2014) reward confidence. Algorithm 2.1.1 therefore gives all rows
to views that are confidently wrong. Forward selection uses errors of predictions instead."""

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import ties
from lodim.models.ripr.answers.knn import ABSENT
from lodim.models.ripr.views import row_blocks

MOST_VIEWS = 6  # default number of views
TIE = 1e-8  # tolerance of a loss of 1, a tie
CANDIDATES = 60  # views tried: those with fewest errors on their own


def single_errors(L, weight=None):
    """Return the weighted share of rows that each view (feature set) predicts wrongly, (d*,).

    A row is wrong if its loss L_ij > 1 (rows of another class are nearer) or infinite; L_ij = 1
    counts as half an error. For more than two classes this is an upper bound."""
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - TIE, 1.0 + TIE):
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Return the columns of L (n, views) with the fewest errors, at most `most`, increasing."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Return the selected views (feature sets) in order, as positions in ratios (n, A, K).

    ratios are log distance ratios (own class to others) of n rows in A views for K classes y (n,).
    Each step adds the view that most lowers the mean doubt: one minus the probability of the own
    class in the view that predicts the row. A view must reduce the number of errors by more than
    `tolerance` times its square root, to exceed chance."""
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
    """Return results (n, A) of each view (feature set) alone: least, doubt and wrong.

    least : smallest log distance ratio over the classes
    doubt : one minus the probability of the own class, with probabilities proportional to 1 / ratio
    wrong : 1.0 if the smallest ratio belongs to another class; a mean over tied classes"""
    own = np.maximum(y, 0)[:, None, None]
    p, right = softmax(-np.minimum(ratios, ABSENT), axis=2), ties.argmin_shares(ratios)
    doubt, wrong = (1.0 - np.take_along_axis(z, own, axis=2)[:, :, 0] for z in (p, right))
    return ratios.min(axis=2), doubt, wrong
