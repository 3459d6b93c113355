"""Views chosen one by one for what they say of rows left out: a rival of the lambda path.

The losses of Eq. 2.5 reward confidence. Where some views are confidently wrong, as those of two
almost equal features are, Algorithm 2.1.1 gives them all the mass; among the views that err least
each by itself, forward selection by the errors of Eq. 2.11 does not.
"""

import numpy as np
from numba import njit

from lodim.models.ripr.screen import row_blocks

MOST = 6  # views, where no number is given
CANDIDATES = 60  # views that are tried, those that err least by themselves


def single_errors(L, weight=None):
    """Weighted share of rows that each view errs on by itself, (d*,): L_ij > 1, or not complete.

    Of more than two classes an upper bound: the others together may be nearer than any of them.
    """
    weight = np.ones(len(L)) if weight is None else weight
    wrong = [np.einsum("i,ij->j", weight[rows], ~(L[rows] < 1.0)) for rows in row_blocks(L)]
    return np.sum(wrong, axis=0) / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Columns of the views with the least errors, increasing."""
    error = single_errors(L, weight)
    return np.sort(np.argsort(error, kind="stable")[:most])


@njit(cache=True)
def errors_with(ratios, y, weight, least, label, out):
    """Weighted errors of Eq. 2.11 were each view added, (A,).

    ratios (n, A, K); least, label (n,): the smallest ratio so far, and its class.
    """
    n, A, K = ratios.shape
    for j in range(A):
        out[j] = 0.0
    for i in range(n):
        for j in range(A):
            best, said = least[i], label[i]
            for c in range(K):
                if ratios[i, j, c] < best:
                    best, said = ratios[i, j, c], c
            if said != y[i]:
                out[j] += weight[i]


def forward(ratios, y, most, weight=None, tolerance=1.0):
    """Views in the order of selection, positions among those of `ratios` (n, A, K).

    Parameters
    ----------
    ratios : array (n, A, K)
        `query.class_ratios` with rows left out.
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
    least, label = np.full(len(y), np.inf), np.full(len(y), -1)
    chosen, out, error = [], np.empty(ratios.shape[1]), np.inf
    while len(chosen) < most:
        errors_with(ratios, y, weight, least, label, out)
        j = int(out.argmin())
        if chosen and out[j] >= error - tolerance * np.sqrt(error):
            break
        chosen, error = [*chosen, j], out[j]
        here = ratios[:, j].min(axis=1)
        label = np.where(here < least, ratios[:, j].argmin(axis=1), label)
        least = np.minimum(least, here)
    return np.array(chosen)
