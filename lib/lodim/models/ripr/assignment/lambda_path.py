"""Choose the penalty lambda, and so the number of views (feature sets), by leave-one-out errors.

It is the largest penalty whose mean error exceeds the smallest mean error by at most
`Control.tolerance` standard errors of the paired difference."""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.assignment.solve import assign, reassign
from lodim.models.ripr.losses import number_answers
from lodim.models.ripr.views import row_blocks

GRID = 10.0 ** np.arange(-1.5, 1.51, 0.125)  # penalties, in units of the squared loss scale
STEP = 10.0**0.125
MORE = 24  # most steps beyond either end of GRID


@dataclass(frozen=True)
class LambdaPath:
    """Assignments of rows to views (feature sets) for q increasing penalties, and their errors.

    grid : (q,) penalties, divided by the squared scale of the losses
    views : for each penalty, the selected columns of the loss matrix
    assignments : for each penalty, the Assignment
    error : (q,) mean leave-one-out error of the rows
    chosen : position of the chosen penalty"""

    grid: np.ndarray
    views: tuple
    assignments: tuple
    error: np.ndarray
    chosen: int


def assignment_path(L, unit, least, *, weight=None, threads=1):
    """Return increasing penalties (q,), and the Assignment of rows to views for each penalty.

    L (n, d*) are losses of n rows in d* views (feature sets). Penalties are multiples of `unit`,
    the squared scale of the losses: 10^-1.5 to 10^1.5, times a power of ten that suits the losses.
    A view is selected if it has more than the share `least` of the rows. Larger penalties are added
    until one view is selected, smaller ones until the selected views do not change. There are no
    warm starts, since dropped views would never return."""

    def at(penalty):
        return assign(L, unit * penalty, weight=weight, threads=threads)

    decades = int(np.log10(mean_row_variance(L) / unit))
    grid = [penalty * 10.0**decades for penalty in GRID]
    path = [at(penalty) for penalty in grid]
    for _ in range(MORE):
        if len(path[-1].selected(least)) < 2:
            break
        grid.append(grid[-1] * STEP)
        path.append(at(grid[-1]))
    for _ in range(MORE):
        if np.array_equal(*(np.sort(a.selected(least)) for a in path[:2])):
            break
        grid.insert(0, grid[0] / STEP)
        path.insert(0, at(grid[0]))
    return np.array(grid), tuple(path)


def select_lambda(grid, path, errors_of, control, weight=None):
    """Choose one of the penalties `grid` (q,) by leave-one-out errors; return a LambdaPath.

    The choice is the largest penalty with a mean error at most `control.tolerance` standard errors
    above the smallest.
    path : (q,) Assignments, one per penalty
    errors_of : function of an Assignment and the columns (views) to use; returns errors (n,)
    weight : (n,) row weights, or None if all are one"""
    views = tuple(a.selected(control.least) for a in path)
    errors = _errors(path, views, errors_of)
    w = np.ones(errors.shape[1]) if weight is None else weight
    w = np.where(np.isnan(errors).any(axis=0), 0.0, w)
    w, errors = w / (w.sum() or 1.0), np.nan_to_num(errors)  # without rows all penalties are equal
    mean = np.einsum("i,qi->q", w, errors)
    allowed = np.array([control.most is None or len(J) <= control.most for J in views])
    allowed |= not allowed.any()
    best = len(mean) - 1 - int(ties.argmin(np.where(allowed, mean, np.inf)[::-1]))
    difference = errors - errors[best]
    excess = np.einsum("i,qi->q", w, difference)
    centred = difference - excess[:, None]
    se = np.sqrt(np.einsum("i,qi->q", w * w, centred * centred))
    good = np.flatnonzero(allowed & (excess <= control.tolerance * se + ties.EQUAL))
    return LambdaPath(grid, views, path, mean, int(good[-1]))


def _errors(path, views, errors_of):
    """Return leave-one-out errors of n rows for q assignments, (q, n).

    path and errors_of are as in `select_lambda`; `views` has the selected columns for each
    Assignment. Equal assignments are computed once."""
    known, errors = {}, []
    for a, J in zip(path, views, strict=True):
        key = tuple(J), a.mass[np.isin(a.views, J)].tobytes()
        if key not in known:
            known[key] = errors_of(a, J)
        errors.append(known[key])
    return np.array(errors)


def class_errors(ratios, y, columns):
    """Return a function that gives leave-one-out errors (n,) of predicted classes for some views.

    Its arguments are an Assignment, which it ignores, and the views (feature sets) to use. ratios
    (n, A, K) are log distance ratios of n rows for K classes in A views, those in `columns`. A row
    is predicted as the class of its smallest ratio. An error is 0 or 1, or the mean over tied
    classes."""

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
    """Return a function that gives leave-one-out squared errors (n,) of a number for some views.

    Its arguments are an Assignment of rows to views (feature sets), and the views to use. All rows
    are reassigned to these. Errors are divided by the variance of y (n,). L (n, d*) are the losses
    in d* views, near[j] the distances and positions of the rows' neighbours in view j."""

    def errors_of(assignment, J):
        if not len(J):
            return ((y - y.mean()) / (y.std() or 1.0)) ** 2
        mass = assignment.mass[np.isin(assignment.views, J)]
        B = reassign(L[:, J], assignment, mass, weight).matrix()
        value = number_answers([near[j] for j in J], y, B, weight=weight).value
        return ((value - y) / (y.std() or 1.0)) ** 2

    return errors_of


def mean_row_variance(L):
    """Return the variance of each row's finite losses, averaged over the rows; 1 if it is zero."""
    total = 0.0
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        known = np.where(finite, L[rows], 0.0)
        size = np.maximum(finite.sum(axis=1), 1)
        centred = np.where(finite, known - (known.sum(axis=1) / size)[:, None], 0.0)
        total += (np.einsum("ij,ij->i", centred, centred) / size).sum()
    return float(total / len(L)) or 1.0
