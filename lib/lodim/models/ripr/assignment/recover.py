"""Search for a few feature sets (views) and the rows that each predicts."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lodim.models.ripr import losses, ties
from lodim.models.ripr.assignment import lambda_path
from lodim.models.ripr.assignment.solve import (
    Assignment,
    assign,
    eligible_views,
    reassign,
    with_log,
)
from lodim.models.ripr.ensemble import CLASSES, CLUSTERS, NUMBERS
from lodim.models.ripr.views import row_blocks

UNIT_LAMBDA = 1.0  # largest penalty of the final assignment to the views found, in units


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


def recover(search, lambda_, L=None):
    """Select views (feature sets) by Algorithm 2.1.1 of Fiterau (2014); return the Recovery.

    search : ViewSearch; L : losses (rows, views), or None to compute them
    lambda_ : penalty divided by the squared scale of losses. None: 2 for clustering, else chosen by
        leave-one-out errors; for classes, forward selection if its errors are clearly smaller"""
    k = search.k
    best, errors = _by_penalty(search, k, lambda_, L)
    if search.task != CLASSES or lambda_ is not None:
        return best
    if search.settings.k is None and L is None:
        k = max(1, round(k / 4))  # forward selection compares fewer neighbours
    rival, rival_errors = _by_forward_selection(search, k, L)
    more = len(rival.views) - len(best.views)
    return rival if _better(rival_errors, errors, more, search.weights) else best


def _better(rival_errors, best_errors, n_more, weight):
    """Return whether rival views have clearly smaller errors (rows,) than the best views so far.

    The sum of errors must fall by n_more + 0.5 standard errors; n_more : extra number of views"""
    known = ~np.isnan(rival_errors) & ~np.isnan(best_errors)
    w = np.where(known, 1.0 if weight is None else weight, 0.0)
    gain = w * np.where(known, best_errors - rival_errors, 0.0)
    margin = max(0.0, 0.5 + n_more)
    return gain.sum() > margin * np.sqrt((gain**2).sum()) + ties.EQUAL


def _by_penalty(search, k, lambda_, L):
    """Select views by a penalty; return the Recovery, and errors (rows,), or None if not needed.

    lambda_ : penalty. If None, 2 for clustering, else chosen by leave-one-out errors
    search : ViewSearch; k : number of neighbours; L : losses (rows, views), or None"""
    L, settings = search.losses(k) if L is None else L, search.settings
    unit = (1.0 - settings.alpha) ** 2
    unit = lambda_path.mean_row_variance(L) if search.task == NUMBERS else unit
    able = eligible_views(L, unit)  # other views get no rows; drops them from a large matrix
    L, views = np.ascontiguousarray(L[:, able]), search.views[able]
    how, errors = {"weight": search.weights, "threads": search.threads}, None
    if lambda_ is None and search.task != CLUSTERS:
        grid, path = lambda_path.assignment_path(L, unit, settings.share, **how)
        columns = np.unique(np.concatenate([a.selected(settings.share) for a in path]))
        errors_of = search.held_out_errors(L, k, views, columns)
        chosen, errors = lambda_path.select_lambda(path, errors_of, settings, search.weights)
        lambda_, found = float(grid[chosen]), path[chosen]
    else:
        lambda_ = 2.0 if lambda_ is None else lambda_  # clustering has no held-out error
        found = assign(L, unit * lambda_, **how)
    columns, own = keep_largest(L, found, settings, search.weights)
    if search.task == CLASSES:
        columns, own = refit(L, columns, min(found.lambda_, UNIT_LAMBDA * unit), search.weights)
        own = with_log(own, found)
    return Recovery(views[columns], own, k, lambda_, unit), errors


def _by_forward_selection(search, k, L):
    """Select views one by one; return the Recovery, and leave-one-out errors (rows,).

    search : ViewSearch; k : number of neighbours; L : losses (rows, views), or None"""
    L, unit = search.losses(k) if L is None else L, (1.0 - search.settings.alpha) ** 2
    y, weight, tried = search.rows_used[1], search.weights, candidates(L, search.weights)
    ratios = search.log_ratios(k, search.views[tried])
    taken = forward_selection(ratios, y, search.settings.n_views or 6, weight)
    columns, every = tried[taken], np.arange(len(taken))
    errors = lambda_path.class_errors(ratios[:, taken], y, every)(None, every)
    columns, own = refit(L, columns, UNIT_LAMBDA * unit, weight)
    return Recovery(search.views[columns], own, k, UNIT_LAMBDA, unit, forward=True), errors


def keep_largest(L, search, settings, weight=None):
    """Keep the views with most rows and assign all rows to them; return columns and Assignment.

    columns : positions of the kept views in losses L (rows, views), most rows first
    search : Assignment to all views; settings : limits of kept views"""
    order = largest(search.mass, settings)
    columns = search.views[order]
    return columns, reassign(L[:, columns], search, search.mass[order], weight)


def largest(mass, settings):
    """Return the positions of the views to keep, given each view's share of the rows, `mass`.

    The largest above `settings.share` are kept, at most `settings.n_views` and at least one."""
    order = ties.descending(mass)
    return order[mass[order] > min(settings.share, 0.999 * mass.max())][: settings.n_views]


def refit(L, columns, lambda_, weight=None):
    """Assign rows to `columns` (views) of L; return these, most rows first, and the Assignment."""
    own = assign(L[:, columns], lambda_, weight=weight)
    mass = np.zeros(len(columns))
    mass[own.views] = own.mass
    order = ties.descending(mass)
    return columns[order], reassign(L[:, columns[order]], own, mass[order], weight)


# Forward selection -------------------------------------------------------------------------------


def single_errors(L, weight=None):
    """Return, per view, the share of rows that are nearer to another class: losses L above 1."""
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - 1e-8, 1.0 + 1e-8):  # tolerance of a tie
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=60):
    """Return positions of up to `most` views that predict best alone; L : losses (rows, views)."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Select at most `most` views (feature sets) one by one; return their positions.

    Each step adds the view that makes the true classes y most probable.
    tolerance : selection stops unless errors fall by more than tolerance * sqrt(errors)
    ratios : (rows, views, classes) log distance ratios; the class with the smallest is predicted"""
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
