"""The number of views: a lambda path, judged by predictions of rows from the others.

For each lambda the selected views answer every row, left out, by the rule for queries. The largest
lambda is taken whose mean error is above the least of the path by at most `TOLERANCE` standard
errors of their paired difference: as soon as a view is lost that rows need, errors rise sharply,
and views that only fit noise raise them too.
"""

from dataclasses import dataclass

import numpy as np

from lodim.models.ripr import ties
from lodim.models.ripr.answers.knn import number_answer
from lodim.models.ripr.assignment.solve import SHARE, assign, restrict

TOLERANCE = 0.5  # standard errors
GRID = 10.0 ** np.arange(-1.5, 1.51, 0.125)  # in units of the squared scale of the losses


@dataclass(frozen=True)
class LambdaPath:
    """Assignments along a path of penalties, and their errors on rows left out.

    lambda_ : (q,) increasing, in units of the squared loss
    views : for each lambda, columns of the loss matrix that are selected
    assignments : for each lambda
    error : (q,) mean error of the rows
    excess, excess_se : (q,) mean difference to the least error, and its standard error
    best, chosen : positions on the path
    """

    lambda_: np.ndarray
    views: tuple
    assignments: tuple
    error: np.ndarray
    excess: np.ndarray
    excess_se: np.ndarray
    best: int
    chosen: int


def assignments(L, grid, *, weight=None, warm=False, threads=1):
    """Assignments for increasing penalties, each from the start of the algorithm.

    With `warm`, each starts where the last one ended: several times fewer rounds, but views that
    a smaller penalty has dropped never return, and the ends may be higher.
    """
    out, mass = [], None
    for lambda_ in np.sort(grid):
        out.append(assign(L, lambda_, weight=weight, mass=mass, threads=threads))
        if warm:
            mass = np.zeros(L.shape[1])
            mass[out[-1].views] = out[-1].mass
    return tuple(out)


def choose(path, grid, error_of, *, weight=None, least=SHARE, tolerance=TOLERANCE, most=None):
    """The path with its errors, and the lambda that they lambda_path.

    Parameters
    ----------
    path : tuple of Assignment
        See `assignments`.
    grid : array (q,)
        Their penalties, increasing.
    error_of : callable
        (assignment, columns selected) -> (n,) error of each row left out, NaN where none.
    weight : array (n,), optional
    least : float
        Share of the mass above which a view is selected.
    tolerance : float
        Standard errors.
    most : int, optional
        Views at most: penalties that select more are passed over, where any selects fewer.

    Returns
    -------
    LambdaPath
    """
    views = tuple(a.selected(least) for a in path)
    known, errors = {}, []
    for a, J in zip(path, views, strict=True):
        key = tuple(J), a.mass[np.isin(a.views, J)].tobytes()
        if key not in known:
            known[key] = error_of(a, J)
        errors.append(known[key])
    errors = np.array(errors)
    w = np.ones(errors.shape[1]) if weight is None else weight
    w = np.where(np.isnan(errors).any(axis=0), 0.0, w)
    w, errors = w / (w.sum() or 1.0), np.nan_to_num(errors)  # no row: all penalties are alike
    mean = np.einsum("i,qi->q", w, errors)
    allowed = np.array([most is None or len(J) <= most for J in views])
    allowed |= not allowed.any()
    best = len(mean) - 1 - int(ties.least(np.where(allowed, mean, np.inf)[::-1]))
    difference = errors - errors[best]
    excess = np.einsum("i,qi->q", w, difference)
    centred = difference - excess[:, None]
    se = np.sqrt(np.einsum("i,qi->q", w * w, centred * centred))
    good = np.flatnonzero(allowed & (excess <= tolerance * se + ties.EQUAL))
    return LambdaPath(np.array(grid), views, path, mean, excess, se, best, int(good[-1]))


def class_errors(ratios, y, columns):
    """error_of for classes: 0 or 1 by Eq. 2.11, of views and classes that are tied their mean.

    ratios (n, A, K) are `knn.class_ratios` with rows left out, of the views `columns`.
    """

    def error_of(_, J):
        own = ratios[:, np.searchsorted(columns, J)]
        if not own.size:
            return np.ones(len(y))
        share = ties.shares(own.reshape(len(y), -1)).reshape(own.shape).sum(axis=1)
        wrong = 1.0 - share[np.arange(len(y)), y]
        wrong[~np.isfinite(own).any(axis=(1, 2)) | (y < 0)] = np.nan
        return wrong

    return error_of


def number_errors(near, y, L, weight=None):
    """error_of for numbers: squared errors, in units of the variance of y.

    near holds the neighbours of each row, left out, by column: see `knn.neighbours`.
    """

    def error_of(assignment, J):
        if not len(J):
            return ((y - y.mean()) / (y.std() or 1.0)) ** 2
        mass = assignment.mass[np.isin(assignment.views, J)]
        B = restrict(L[:, J], assignment, mass, weight).matrix()
        found = number_answer([near[j] for j in J], y, B, weight=weight)
        return ((found.value - y) / (y.std() or 1.0)) ** 2

    return error_of
