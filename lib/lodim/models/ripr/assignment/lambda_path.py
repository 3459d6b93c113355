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

GRID = 10.0 ** np.arange(-1.5, 1.51, 0.125)  # in units of the squared scale of the losses


@dataclass(frozen=True)
class LambdaPath:
    """Assignments along a path of q increasing penalties, and their errors on rows left out.

    views : for each penalty, columns of the loss matrix that are selected
    assignments : for each penalty
    error : (q,) mean error of the rows
    chosen : position on the path
    """

    views: tuple
    assignments: tuple
    error: np.ndarray
    chosen: int


def assignment_path(L, grid, *, weight=None, threads=1):
    """Assignments for increasing penalties, each from the start of the algorithm.

    Starts where the last one ended would take several times fewer rounds, but views that a smaller
    penalty has dropped never return, and the objective may end higher.
    """
    return tuple(assign(L, each, weight=weight, threads=threads) for each in np.sort(grid))


def select_lambda(path, errors_of, control, weight=None):
    """The LambdaPath of some assignments, with the lambda that their errors choose.

    Parameters
    ----------
    path : tuple of Assignment
        See `assignment_path`.
    errors_of : callable
        (assignment, columns selected) -> (n,) error of each row left out, NaN where none.
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
    return LambdaPath(views, path, mean, int(good[-1]))


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

    near holds the neighbours of each row, left out, by column: see `knn.neighbours`.
    """

    def errors_of(assignment, J):
        if not len(J):
            return ((y - y.mean()) / (y.std() or 1.0)) ** 2
        mass = assignment.mass[np.isin(assignment.views, J)]
        B = reassign(L[:, J], assignment, mass, weight).matrix()
        value = number_answers([near[j] for j in J], y, B, weight=weight).value
        return ((value - y) / (y.std() or 1.0)) ** 2

    return errors_of
