"""The lambda path: the number of views, judged by predictions of rows from the others.

For each lambda the selected views answer every row, left out, by the rule for queries. The largest
lambda is taken whose mean error is above the least of the path by at most `Control.tolerance`
standard errors of their paired difference: as soon as a view is lost that rows need, errors rise
sharply, and views that only fit noise raise them too.
"""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.answers.knn import number_answers
from lodim.models.ripr.assignment.solve import assign, reassign
from lodim.models.ripr.views import row_blocks

GRID = 10.0 ** np.arange(-1.5, 1.51, 0.125)  # in units of the squared scale of the losses
STEP = 10.0**0.125
MORE = 24  # steps beyond either end of GRID, at most


@dataclass(frozen=True)
class LambdaPath:
    """Assignments along a path of q increasing penalties, and their errors on rows left out.

    grid : (q,) penalties, in units
    views : for each penalty, columns of the loss matrix that are selected
    assignments : for each penalty
    error : (q,) mean error of the rows
    chosen : position on the path
    """

    grid: np.ndarray
    views: tuple
    assignments: tuple
    error: np.ndarray
    chosen: int


def assignment_path(L, unit, least, *, weight=None, threads=1):
    """Penalties in units, GRID and beyond, and the assignments at each, from the algorithm's start.

    GRID is moved by whole decades where the variance of a row's losses is ten units and more, or a
    tenth and less. Larger penalties follow until one view is left, and smaller ones until one more
    step selects the same views.

    Starts where the last one ended would take several times fewer rounds, but views that a smaller
    penalty has dropped never return, and the objective may end higher.

    Parameters
    ----------
    L : array (n, d*)
    unit : float
    least : float
        Share of the mass above which a view is selected.
    """

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
    """Return the LambdaPath of some assignments, with the lambda that their errors choose.

    Parameters
    ----------
    grid, path : array (q,), tuple of Assignment
        See `assignment_path`.
    errors_of : callable
        (assignment, columns selected) -> (n,) leave-one-out error per row, NaN if unknown.
    control : recover.Control
        Penalties that select more than `most` views are passed over, where any selects fewer.
    weight : array (n,), optional

    Returns
    -------
    LambdaPath
    """
    views = tuple(a.selected(control.least) for a in path)
    errors = _errors(path, views, errors_of)
    w = np.ones(errors.shape[1]) if weight is None else weight
    w = np.where(np.isnan(errors).any(axis=0), 0.0, w)
    w, errors = w / (w.sum() or 1.0), np.nan_to_num(errors)  # no row: all penalties are alike
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
    """Errors of the rows by assignment, (q, n); equal assignments are judged once."""
    known, errors = {}, []
    for a, J in zip(path, views, strict=True):
        key = tuple(J), a.mass[np.isin(a.views, J)].tobytes()
        if key not in known:
            known[key] = errors_of(a, J)
        errors.append(known[key])
    return np.array(errors)


def class_errors(ratios, y, columns):
    """A function (_, columns) -> errors (n,) of classes: 0 or 1 by Eq. 2.11, of ties their mean.

    ratios (n, A, K) are `knn.class_ratios` with rows left out, of the views `columns`.
    """

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
    """A function (assignment, columns) -> squared errors (n,), in units of the variance of y.

    near holds the neighbours of each row, left out, by column: see `neighbours.nearest`.
    """

    def errors_of(assignment, J):
        if not len(J):
            return ((y - y.mean()) / (y.std() or 1.0)) ** 2
        mass = assignment.mass[np.isin(assignment.views, J)]
        B = reassign(L[:, J], assignment, mass, weight).matrix()
        value = number_answers([near[j] for j in J], y, B, weight=weight).value
        return ((value - y) / (y.std() or 1.0)) ** 2

    return errors_of


def mean_row_variance(L):
    """Return the mean variance of the finite losses of a row; 1 if it is zero."""
    total = 0.0
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        known = np.where(finite, L[rows], 0.0)
        size = np.maximum(finite.sum(axis=1), 1)
        centred = np.where(finite, known - (known.sum(axis=1) / size)[:, None], 0.0)
        total += (np.einsum("ij,ij->i", centred, centred) / size).sum()
    return float(total / len(L)) or 1.0
