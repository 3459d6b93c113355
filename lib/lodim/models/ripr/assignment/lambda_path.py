"""Choose the penalty lambda, and so the number of feature sets, by leave-one-out errors."""

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.assignment.solve import assign
from lodim.models.ripr.views import row_blocks


def assignment_path(L, unit, least, *, weight=None, threads=1):
    """Assign rows to views (feature sets) for many penalties; return penalties and Assignments.

    L : (rows, views) losses
    unit : squared scale of the losses, the unit of the returned penalties
    least : share of the rows above which a view counts as selected
    weight : (rows,) weights or None"""

    def at(penalty):
        return assign(L, unit * penalty, weight=weight, threads=threads)

    # Penalties are in units of the squared loss scale, with eight per decade.
    decades, step = int(np.log10(mean_row_variance(L) / unit)), 10.0**0.125
    grid = [penalty * 10.0**decades for penalty in 10.0 ** np.arange(-1.5, 1.51, 0.125)]
    path = [at(penalty) for penalty in grid]
    for _ in range(24):  # three decades further
        if len(path[-1].selected(least)) < 2:
            break
        grid.append(grid[-1] * step)
        path.append(at(grid[-1]))
    for _ in range(24):  # three decades further
        if np.array_equal(*(np.sort(a.selected(least)) for a in path[:2])):
            break
        grid.insert(0, grid[0] / step)
        path.insert(0, at(grid[0]))
    return np.array(grid), tuple(path)


def select_lambda(L, unit, settings, errors_of, weight=None, threads=1):
    """Choose the largest penalty whose leave-one-out error is close to the lowest.

    L : (rows, views) losses; unit : their squared scale, the unit of the penalty
    settings : Settings; its `tolerance` is the allowed excess error, in standard errors
    errors_of : function of a list of pairs (Assignment, columns of L); returns errors (pairs, rows)
    weight : (rows,) weights or None
    Return the penalty, its Assignment of rows to views (feature sets), and its errors (rows,)."""
    grid, path = assignment_path(L, unit, settings.share, weight=weight, threads=threads)
    pairs = [(a, a.selected(settings.share)) for a in path]
    keys = [(tuple(J), a.mass[np.isin(a.views, J)].tobytes()) for a, J in pairs]
    distinct = dict(zip(keys, pairs, strict=True))  # equal assignments have equal errors
    known = dict(zip(distinct, errors_of(list(distinct.values())), strict=True))
    by_row = np.array([known[key] for key in keys])
    w = np.ones(by_row.shape[1]) if weight is None else weight
    w = np.where(np.isnan(by_row).any(axis=0), 0.0, w)
    w, errors = w / (w.sum() or 1.0), np.nan_to_num(by_row)  # without rows all penalties are equal
    mean = np.einsum("i,qi->q", w, errors)
    allowed = np.array([len(J) <= (settings.n_views or np.inf) for _, J in pairs])
    allowed |= not allowed.any()
    best = len(mean) - 1 - int(ties.argmin(np.where(allowed, mean, np.inf)[::-1]))
    difference = errors - errors[best]
    excess = np.einsum("i,qi->q", w, difference)
    centred = difference - excess[:, None]
    se = np.sqrt(np.einsum("i,qi->q", w * w, centred * centred))
    chosen = np.flatnonzero(allowed & (excess <= settings.tolerance * se + ties.EQUAL))[-1]
    return float(grid[chosen]), path[chosen], by_row[chosen]


def class_errors(ratios, y):
    """Return errors (rows,), 0 to 1, of predicting the class with a row's smallest ratio.

    ratios : (rows, views, classes) log distance ratios
    y : class codes, -1 for none; the error is then NaN"""
    if not ratios.size:
        return np.ones(len(y))
    share = ties.argmin_shares(ratios.reshape(len(y), -1)).reshape(ratios.shape).sum(axis=1)
    wrong = 1.0 - share[np.arange(len(y)), y]
    wrong[~np.isfinite(ratios).any(axis=(1, 2)) | (y < 0)] = np.nan
    return wrong


def mean_row_variance(L):
    """Return the mean variance of the finite losses in a row of L (rows, views); 1 if it is 0."""
    total = 0.0
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        known = np.where(finite, L[rows], 0.0)
        size = np.maximum(finite.sum(axis=1), 1)
        centred = np.where(finite, known - (known.sum(axis=1) / size)[:, None], 0.0)
        total += (np.einsum("ij,ij->i", centred, centred) / size).sum()
    return float(total / len(L)) or 1.0
