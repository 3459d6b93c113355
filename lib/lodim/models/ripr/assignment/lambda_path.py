"""Choose the penalty lambda, and so the number of feature sets, by leave-one-out errors."""

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.assignment.solve import assign, reassign
from lodim.models.ripr.losses import number_answers
from lodim.models.ripr.views import row_blocks


def assignment_path(L, unit, least, *, weight=None, threads=1):
    """Assign rows to views (feature sets) for many penalties; return penalties and Assignments.

    L : (rows, views) losses; unit : factor that multiplies the penalties; weight : row weights
    least : share of the rows from which a view counts as selected when the range is chosen"""

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


def select_lambda(path, errors_of, settings, weight=None):
    """Return the position in `path` of the largest penalty with a low error, and the rows' errors.

    A low mean error exceeds the lowest by at most `settings.tolerance` SE of the difference.
    path : an Assignment for each of the penalties, which increase; weight : row weights or None
    errors_of : function of an Assignment and its selected views; returns the rows' errors"""
    views = [a.selected(settings.share) for a in path]
    by_row = _errors(path, views, errors_of)
    w = np.ones(by_row.shape[1]) if weight is None else weight
    w = np.where(np.isnan(by_row).any(axis=0), 0.0, w)
    w, errors = w / (w.sum() or 1.0), np.nan_to_num(by_row)  # without rows all penalties are equal
    mean = np.einsum("i,qi->q", w, errors)
    allowed = np.array([len(J) <= (settings.n_views or np.inf) for J in views])
    allowed |= not allowed.any()
    best = len(mean) - 1 - int(ties.argmin(np.where(allowed, mean, np.inf)[::-1]))
    difference = errors - errors[best]
    excess = np.einsum("i,qi->q", w, difference)
    centred = difference - excess[:, None]
    se = np.sqrt(np.einsum("i,qi->q", w * w, centred * centred))
    chosen = np.flatnonzero(allowed & (excess <= settings.tolerance * se + ties.EQUAL))[-1]
    return int(chosen), by_row[chosen]


def _errors(path, views, errors_of):
    """Return leave-one-out errors (penalties, rows), computed once for equal assignments.

    path, views : per penalty, an Assignment and the views it selects, as arguments of errors_of"""
    known, errors = {}, []
    for a, J in zip(path, views, strict=True):
        key = tuple(J), a.mass[np.isin(a.views, J)].tobytes()
        if key not in known:
            known[key] = errors_of(a, J)
        errors.append(known[key])
    return np.array(errors)


def class_errors(ratios, y, columns):
    """Return a function errors_of(assignment, J): leave-one-out errors (n,) of classes by views J.

    A row gets the class with the smallest distance ratio in any view of J. Errors are 0 or 1, or
    between if classes tie, and NaN if y or all ratios are missing. The Assignment has no effect.
    ratios : (rows, views, classes) log distance ratios; columns : ascending numbers of the views"""

    def errors_of(_, J):
        own = ratios[:, np.searchsorted(columns, J)]
        if not own.size:
            return np.ones(len(y))
        share = ties.argmin_shares(own.reshape(len(y), -1)).reshape(own.shape).sum(axis=1)
        wrong = 1.0 - share[np.arange(len(y)), y]
        wrong[~np.isfinite(own).any(axis=(1, 2)) | (y < 0)] = np.nan
        return wrong

    return errors_of


def number_errors(near, y, L, weight=None):
    """Return a function errors_of(assignment, J): squared errors (n,) of predictions by views J.

    The function reassigns rows to views J with the assignment's penalties. Each row is predicted in
    the view to which most of its neighbours belong. Errors are of standardized y.
    near : dict view -> (distances, positions) of rows' neighbours; L : (rows, views) losses"""

    def errors_of(assignment, J):
        if not len(J):
            return ((y - y.mean()) / (y.std() or 1.0)) ** 2
        mass = assignment.mass[np.isin(assignment.views, J)]
        B = reassign(L[:, J], assignment, mass, weight).matrix()
        value = number_answers([near[j] for j in J], y, B, weight=weight).value
        return ((value - y) / (y.std() or 1.0)) ** 2

    return errors_of


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
