"""Steps of the search for a few feature sets (views) and the rows that each predicts."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import losses, ties
from lodim.models.ripr.assignment.solve import Assignment, assign, reassign
from lodim.models.ripr.views import row_blocks


@dataclass(frozen=True)
class Recovery:
    """Selected views (feature sets), and the rows assigned to each."""

    # feature positions of the selected views, padded with -1; largest share of rows first
    views: np.ndarray
    # Assignment of the rows to the selected views, with the objective of the search
    assignment: Assignment
    k: int
    # lambda_, unit: the penalty is lambda_ * unit, where unit is the squared scale of the losses
    lambda_: float
    unit: float
    forward: bool = False  # whether forward selection was used


def clearly_better(rival_errors, best_errors, n_more, weight):
    """Return whether rival views (feature sets) predict clearly better than the best so far.

    rival_errors, best_errors : (rows,) errors of the rival and of the best views
    n_more : number of rival views minus number of best views
    weight : (rows,) weights or None"""
    known = ~np.isnan(rival_errors) & ~np.isnan(best_errors)
    w = np.where(known, 1.0 if weight is None else weight, 0.0)
    gain = w * np.where(known, best_errors - rival_errors, 0.0)
    # In standard errors of the gain.
    margin = max(0.0, 0.5 + n_more)
    return gain.sum() > margin * np.sqrt((gain**2).sum()) + ties.EQUAL


def keep_largest(L, search, settings, weight=None):
    """Keep the views (feature sets) with most rows in `search`, and assign all rows to them.

    L : (rows, views) losses
    Return the columns of L that are kept, most rows first, and the Assignment to them."""
    order = largest(search.mass, settings)
    columns = search.views[order]
    return columns, reassign(L[:, columns], search, search.mass[order], weight)


def largest(mass, settings):
    """Return the positions of the views (feature sets) to keep: those with most rows, at least one.

    mass : (views,) share of the rows in each view
    settings : `share` is the least share of a view, `n_views` the largest number of views"""
    order = ties.descending(mass)
    return order[mass[order] > min(settings.share, 0.999 * mass.max())][: settings.n_views]


def refit(L, columns, lambda_, weight=None):
    """Assign the rows to some of the views (feature sets) only.

    L : (rows, views) losses
    columns : positions in L of the views to use
    Return the columns, most rows first, and the Assignment to them."""
    own = assign(L[:, columns], lambda_, weight=weight)
    mass = np.zeros(len(columns))
    mass[own.views] = own.mass
    order = ties.descending(mass)
    return columns[order], reassign(L[:, columns[order]], own, mass[order], weight)


# Forward selection -------------------------------------------------------------------------------


def single_errors(L, weight=None):
    """Return each view's share of rows nearer to another class, with L (rows, views) above 1."""
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - 1e-8, 1.0 + 1e-8):  # tolerance of a tie
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=60):
    """Return positions of up to `most` views that predict best alone; L : losses (rows, views)."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Select up to `most` views (feature sets) one by one to predict classes y; return positions.

    ratios : (rows, views, classes) log distance ratios, small if the class is near
    tolerance : a further view must reduce the m errors so far by tolerance * sqrt(m)"""
    weight = np.where(y >= 0, 1.0 if weight is None else weight, 0.0)
    weight = weight * np.count_nonzero(weight) / weight.sum()
    own, right = np.maximum(y, 0)[:, None, None], ties.argmin_shares(ratios)
    p = softmax(-np.minimum(ratios, losses.ABSENT), axis=2)
    # Each view alone: one minus the probability of the true class; and 0 or 1, or between for ties
    doubts, wrongs = (1.0 - np.take_along_axis(z, own, axis=2)[:, :, 0] for z in (p, right))
    leasts = ratios.min(axis=2)
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
