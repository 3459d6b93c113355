"""Recovery of a few views, and of the rows that each serves: losses, lambda path, choice."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.models.ripr import losses, ties
from lodim.models.ripr.answers import knn
from lodim.models.ripr.assignment import forward, lambda_path
from lodim.models.ripr.assignment.solve import (
    Assignment,
    assign,
    eligible_views,
    reassign,
    with_log,
)
from lodim.models.ripr.neighbours import nearest

TASKS = ("class", "number", "cluster")
MARGIN = 0.5  # standard errors that as many views of forward selection must be better by
FEWER = 4  # by this the root of n is divided where views are chosen by their errors
UNIT_LAMBDA = 1.0  # by which rows are assigned anew to views that are found, at most, in units
CLUSTER_LAMBDA = 2.0  # default for clustering, which has no held-out error, in units


@dataclass(frozen=True)
class Control:
    """Rare settings of `recover`.

    alpha : order of the divergence; losses are powers 1 - alpha of ratios
    least : share of the mass above which a view is kept
    balanced : take the shares of the classes out of the losses
    tolerance : standard errors that the chosen lambda may be above the best
    most : views at most, None for any number
    """

    alpha: float = losses.ALPHA
    least: float = 0.05
    balanced: bool = True
    tolerance: float = 0.5
    most: int | None = None


@dataclass(frozen=True, eq=False)
class RecoveryData:
    """Rows and the views that are compared.

    X : (n, p) NaN where missing; features on comparable scales
    y : (n,) classes 0..K-1 (-1 unlabelled), numbers, or None for clustering
    views : (d*, D), see `views.enumerate_views`
    task : one of TASKS
    weight : (n,) weights of the rows, all positive, or None: in masses, objective, errors and means
        of neighbours
    seed : of the sample that clustering compares with
    """

    X: np.ndarray
    y: np.ndarray | None
    views: np.ndarray
    task: str
    weight: np.ndarray | None = None
    control: Control = Control()
    seed: int = 0
    threads: int = 1

    @property
    def default_k(self):
        """The root of the number of rows that can be neighbours."""
        labelled = self.task == "class"
        return losses.default_k(np.count_nonzero(self.y >= 0) if labelled else len(self.X))

    def losses(self, k=None):
        """Return loss matrix of the task, (n, d*): see `losses`."""
        X, views, alpha = self.X, self.views, self.control.alpha
        how = {"threads": self.threads}
        if self.task == "class":
            balanced = self.control.balanced
            return losses.class_losses(X, self.y, views, k, alpha=alpha, balanced=balanced, **how)
        if self.task == "number":
            return losses.regression_losses(X, self.y, views, k, weight=self.weight, **how)
        if self.task == "cluster":
            return losses.cluster_losses(X, views, k, alpha=alpha, seed=self.seed, **how)
        raise ArgumentError(f"task must be one of {', '.join(TASKS)}, not {self.task!r}")

    def log_ratios(self, k, columns):
        """Return log ratios of rows left out to all classes in some views, (n, A, K)."""
        how = {"balanced": self.control.balanced, "leave_out": True, "threads": self.threads}
        return knn.class_ratios(self.X, self.X, self.y, self.views[columns], k, **how)

    def held_out_errors(self, L, k, columns):
        """Return a function (assignment, some of `columns`) -> errors (n,) of rows left out."""
        X, y = self.X, self.y
        if self.task == "class":
            return lambda_path.class_errors(self.log_ratios(k, columns), y, columns)
        near = {j: nearest(None, X, self.views[j], k, like=y) for j in columns}
        return lambda_path.number_errors(near, y, L, self.weight)


@dataclass(frozen=True)
class Recovery:
    """Views and the rows that each serves.

    views : (A, D) features of the selected views, those with more mass first; -1 beyond a view's
    assignment : rows assigned to the selected views alone: columns are positions in `views`;
        objective and converged are of the search over all views
    k : neighbours
    lambda_, unit : the penalty in units, and the unit: (1 - alpha)^2, or for numbers the mean
        variance of a row's losses
    path : LambdaPath, its columns among those of `eligible_views`; None where lambda was given, or
        forward selection was better
    forward : whether forward selection found the views, and no penalty did
    """

    views: np.ndarray
    assignment: Assignment
    k: int
    lambda_: float
    unit: float
    path: lambda_path.LambdaPath | None = None
    forward: bool = False


def recover(data, *, k=None, lambda_=None, L=None):
    """The selected views, Algorithm 2.1.1 with lambda chosen by predictions of rows left out.

    Parameters
    ----------
    data : RecoveryData
    k : int, optional
        Neighbours; by default the root of n, a fourth of it for views that forward
        selection takes.
    lambda_ : float, optional
        Penalty in units of (1 - alpha)^2 (numbers: of the mean variance of a row's losses); by
        default chosen, see `lambda_path.select_lambda`; for clustering 2.
    L : array (n, d*), optional
        Loss matrix, if already computed.

    Returns
    -------
    Recovery
    """
    number = k or data.default_k
    best, errors = _by_penalty(data, number, lambda_, L)
    if data.task != "class" or lambda_ is not None:
        return best
    if k is None and L is None:
        number = max(1, round(number / FEWER))
    rival, rival_errors = _by_forward_selection(data, number, L)
    more = len(rival.views) - len(best.views)
    return rival if _better(rival_errors, errors, more, data.weight) else best


def _better(rival, best, n_more, weight):
    """Return whether errors (n,) of a rival with n_more views are surely less.

    By MARGIN standard errors of the difference (McNemar's) where it has as many views, by one more
    for each further view.
    """
    known = ~np.isnan(rival) & ~np.isnan(best)
    w = np.where(known, 1.0 if weight is None else weight, 0.0)
    gain = w * np.where(known, best - rival, 0.0)
    margin = max(0.0, MARGIN + n_more)
    return gain.sum() > margin * np.sqrt((gain**2).sum()) + ties.EQUAL


def _by_penalty(data, k, lambda_, L):
    """The Recovery by the lambda path or one lambda; of a path, errors (n,) of rows left out."""
    L = data.losses(k) if L is None else L
    unit = (
        lambda_path.mean_row_variance(L)
        if data.task == "number"
        else (1.0 - data.control.alpha) ** 2
    )
    able = eligible_views(L, unit)  # the others never serve: the matrix of all may be large
    L, data = np.ascontiguousarray(L[:, able]), replace(data, views=data.views[able])
    weight, control, threads = data.weight, data.control, data.threads
    path, errors = None, None
    if lambda_ is None and data.task != "cluster":
        path, errors = _select_lambda(data, k, L, unit)
        search, lambda_ = path.assignments[path.chosen], float(path.grid[path.chosen])
    else:
        lambda_ = CLUSTER_LAMBDA if lambda_ is None else lambda_
        search = assign(L, unit * lambda_, weight=weight, threads=threads)
    columns, own = keep_largest(L, search, control, weight)
    if data.task == "class":
        columns, own = refit(L, columns, min(search.lambda_, UNIT_LAMBDA * unit), weight)
        own = with_log(own, search)
    return Recovery(data.views[columns], own, k, lambda_, unit, path), errors


def _select_lambda(data, k, L, unit):
    """Return the lambda path, and errors (n,) of rows left out at the lambda that it chooses."""
    c, how = data.control, {"weight": data.weight, "threads": data.threads}
    grid, assignments = lambda_path.assignment_path(L, unit, c.least, **how)
    columns = np.unique(np.concatenate([a.selected(c.least) for a in assignments]))
    errors_of = data.held_out_errors(L, k, columns)
    path = lambda_path.select_lambda(grid, assignments, errors_of, c, data.weight)
    return path, errors_of(path.assignments[path.chosen], path.views[path.chosen])


def _by_forward_selection(data, k, L):
    """The Recovery by forward selection, at a penalty of one unit; errors (n,) of rows left out."""
    L, unit = data.losses(k) if L is None else L, (1.0 - data.control.alpha) ** 2
    tried = forward.candidates(L, data.weight)
    ratios = data.log_ratios(k, tried)
    most = data.control.most or forward.MOST_VIEWS
    taken = forward.forward_selection(ratios, data.y, most, data.weight)
    columns, every = tried[taken], np.arange(len(taken))
    errors = lambda_path.class_errors(ratios[:, taken], data.y, every)(None, every)
    columns, own = refit(L, columns, UNIT_LAMBDA * unit, data.weight)
    return Recovery(data.views[columns], own, k, UNIT_LAMBDA, unit, forward=True), errors


def keep_largest(L, search, control, weight=None):
    """Columns of the views with more than a share of the mass, most first; rows assigned to them.

    Where none has as much, the one with most is kept; of more than `most`, those with most.
    """
    order = largest(search.mass, control)
    columns = search.views[order]
    return columns, reassign(L[:, columns], search, search.mass[order], weight)


def largest(mass, control):
    """Return positions of masses beyond a share, most first; of none beyond it, that with most."""
    order = ties.descending(mass)
    return order[mass[order] > min(control.least, 0.999 * mass.max())][: control.most]


def refit(L, columns, lambda_, weight=None):
    """Return columns with most mass first, and the rows assigned to them alone at a small penalty.

    The penalty that finds the views crowds rows into the largest of them; as after a lasso, what
    is selected is fitted anew with less.
    """
    own = assign(L[:, columns], lambda_, weight=weight)
    mass = np.zeros(len(columns))
    mass[own.views] = own.mass
    order = ties.descending(mass)
    return columns[order], reassign(L[:, columns[order]], own, mass[order], weight)
