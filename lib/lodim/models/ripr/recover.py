"""From data to a few views, and the rows that each serves: losses, lambda path, choice."""

from dataclasses import dataclass

import numpy as np

from lodim.errors import ArgumentError, DataError
from lodim.models.ripr import choose, losses, query
from lodim.models.ripr.assign import Assignment, assign, restrict

TASKS = ("class", "number", "cluster")
ALIKE = 1.0  # lambda of clustering, in units of (1 - alpha)^2: nothing is predicted to choose it by


@dataclass(frozen=True)
class Control:
    """Rare settings of `recover`.

    alpha : order of the divergence; losses are powers 1 - alpha of ratios
    least : share of the mass above which a view is kept
    balanced : take the shares of the classes out of the losses
    tolerance : standard errors that the chosen lambda may be above the best
    grid : penalties tried, in units (see `unit`)
    """

    alpha: float = losses.ALPHA
    least: float = 0.05
    balanced: bool = False
    tolerance: float = choose.TOLERANCE
    grid: tuple = tuple(choose.GRID)


@dataclass(frozen=True)
class Recovery:
    """Views and the rows that each serves.

    task : "class", "number" or "cluster"
    views : (A, D) features of the selected views, those with more mass first; -1 beyond a view's
    columns : (A,) their columns of the loss matrix
    assignment : rows assigned to the selected views alone: columns are positions in `views`
    losses : (n, A) of the selected views
    best : (n,) least loss of each row over all views
    k : neighbours
    lambda_, unit : the penalty in units, and the unit: (1 - alpha)^2, or for numbers the mean
        variance of a row's losses
    path : LambdaPath, or None where lambda was given
    """

    task: str
    views: np.ndarray
    columns: np.ndarray
    assignment: Assignment
    losses: np.ndarray
    best: np.ndarray
    k: int
    lambda_: float
    unit: float
    path: choose.LambdaPath | None


def loss_matrix(X, y, views, task, k=None, *, control=None, weight=None, seed=0, threads=1):
    """Losses of a task, (n, d*): see `losses`. y (n,) is ignored by clustering."""
    control, counts = control or Control(), None if weight is None else weight > 0
    if task == "class":
        return losses.class_losses(
            X, y, views, k, alpha=control.alpha, balanced=control.balanced, counts=counts,
            threads=threads,
        )  # fmt: skip
    if task == "number":
        return losses.regression_losses(X, y, views, k, weight=weight, threads=threads)
    if task == "cluster":
        return losses.cluster_losses(
            X, views, k, alpha=control.alpha, seed=seed, counts=counts, threads=threads
        )
    raise ArgumentError(f"task must be one of {', '.join(TASKS)}, not {task!r}")


def recover(
    X, y, views, task, *, k=None, lambda_=None, L=None, weight=None, control=None, seed=0,
    threads=1,
):  # fmt: skip
    """The selected views, Algorithm 2.1.1 with lambda chosen by predictions of rows left out.

    Parameters
    ----------
    X : array (n, p)
        NaN where missing; features on comparable scales.
    y : array (n,)
        Classes 0..K-1 (-1 unlabelled), numbers, or None for clustering.
    views : array (d*, D)
        See `views.enumerate_views`.
    task : {"class", "number", "cluster"}
    k : int, optional
        Neighbours, about the root of n.
    lambda_ : float, optional
        Penalty in units of (1 - alpha)^2 (numbers: of the mean variance of a row's losses); by
        default chosen, see `choose`; for clustering 1.
    L : array (n, d*), optional
        The loss matrix, where it is at hand.
    weight : array (n,), optional
        Weights of the rows: in masses, objective, errors and means of neighbours. Rows of weight
        zero are nobody's neighbours.
    control : Control, optional
    seed : int
        Of the sample that clustering compares with.
    threads : int

    Returns
    -------
    Recovery
    """
    control = control or Control()
    k = k or losses.default_k(_references(y, weight, task, len(X)))
    if L is None:
        L = loss_matrix(
            X, y, views, task, k, control=control, weight=weight, seed=seed, threads=threads
        )
    unit = (1.0 - control.alpha) ** 2 if task != "number" else spread(L)
    path = None
    if lambda_ is None and task != "cluster":
        path = _path(X, y, views, task, k, L, unit, weight, control, threads)
        lambda_ = path.lambda_[path.chosen] / unit
        found = path.assignments[path.chosen]
    else:
        lambda_ = ALIKE if lambda_ is None else lambda_
        found = assign(L, lambda_ * unit, weight=weight, threads=threads)
    columns, own = keep(L, found, control.least, weight)
    return Recovery(
        task, views[columns], columns, own, L[:, columns], L.min(axis=1), k, float(lambda_), unit,
        path,
    )  # fmt: skip


def keep(L, found, least, weight=None):
    """Columns of the views with more than a share of the mass, most first; rows assigned to them.

    Where none has as much, the one with most is kept.
    """
    if not len(found.views):
        raise DataError("no row has all the features of any view: there is nothing to learn from")
    order = np.argsort(-found.mass, kind="stable")
    order = order[found.mass[order] > min(least, 0.999 * found.mass.max())]
    columns = found.views[order]
    return columns, restrict(L[:, columns], found, found.mass[order], weight)


def _references(y, weight, task, n):
    counts = np.ones(n, bool) if weight is None else weight > 0
    return int((counts & (y >= 0)).sum() if task == "class" else counts.sum())


def spread(L):
    """Mean variance of the finite losses of a row."""
    finite = np.isfinite(L)
    size = np.maximum(finite.sum(axis=1), 1)
    mean = np.where(finite, L, 0.0).sum(axis=1) / size
    squares = np.where(finite, L - mean[:, None], 0.0) ** 2
    return float((squares.sum(axis=1) / size).mean()) or 1.0


def _path(X, y, views, task, k, L, unit, weight, control, threads):
    grid = unit * np.array(control.grid)
    found = choose.assignments(L, grid, weight=weight, threads=threads)
    J = np.unique(np.concatenate([a.selected(control.least) for a in found]))
    if task == "class":
        counts = None if weight is None else weight > 0
        ratios = query.class_ratios(
            X, X, y, views[J], k, n_classes=int(y.max() + 1), balanced=control.balanced,
            counts=counts, leave_out=True, threads=threads,
        )  # fmt: skip
        error_of = choose.class_errors(ratios, y, J)
    else:
        near = {j: query.neighbours(X, X, views[j], k, leave_out=True) for j in J}
        error_of = choose.number_errors(near, y, L, weight)
    return choose.choose(
        found, grid, error_of, weight=weight, least=control.least, tolerance=control.tolerance
    )
