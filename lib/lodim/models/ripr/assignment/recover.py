"""From data to a few views, and the rows that each serves: losses, lambda path, choice."""

from dataclasses import dataclass, replace

import numpy as np

from lodim.errors import ArgumentError
from lodim.models.ripr import losses, ties
from lodim.models.ripr.answers import knn
from lodim.models.ripr.assignment import forward, lambda_path
from lodim.models.ripr.assignment.solve import Assignment, assign, candidates, ended, restrict
from lodim.models.ripr.views import row_blocks

TASKS = ("class", "number", "cluster")
SURE = 0.5  # standard errors that as many views of forward selection must be better by
FEWER = 4  # by this the root of n is divided where views are chosen by their errors
ALIKE = 1.0  # lambda of clustering, in units of (1 - alpha)^2: nothing is predicted to choose it by


@dataclass(frozen=True)
class Control:
    """Rare settings of `recover`.

    alpha : order of the divergence; losses are powers 1 - alpha of ratios
    least : share of the mass above which a view is kept
    balanced : take the shares of the classes out of the losses
    tolerance : standard errors that the chosen lambda may be above the best
    most : views at most, None for any number
    grid : penalties tried, in units of `Recovery`
    """

    alpha: float = losses.ALPHA
    least: float = 0.05
    balanced: bool = True
    tolerance: float = lambda_path.TOLERANCE
    most: int | None = None
    grid: tuple = tuple(lambda_path.GRID)


@dataclass(frozen=True)
class Recovery:
    """Views and the rows that each serves.

    task : "class", "number" or "cluster"
    views : (A, D) features of the selected views, those with more mass first; -1 beyond a view's
    columns : (A,) their columns of the loss matrix
    assignment : rows assigned to the selected views alone: columns are positions in `views`;
        objective and converged are of the search over all views
    losses : (n, A) of the selected views
    best : (n,) least loss of each row over all views
    k : neighbours
    lambda_, unit : the penalty in units, and the unit: (1 - alpha)^2, or for numbers the mean
        variance of a row's losses
    path : LambdaPath, its columns among those of views that can serve (`assign.candidates`); None
        where lambda was given, or forward selection was better
    forward : whether forward selection found the views, and no penalty did
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
    path: lambda_path.LambdaPath | None
    forward: bool = False


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
        Neighbours; by default the root of n, a fourth of it for views that forward
        selection takes.
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
    given = (X, y, views, task, weight, control, seed, threads)
    number = k or losses.default_k(_references(y, weight, task, len(X)))
    first = _by_penalty(given, number, lambda_, L)
    if task != "class" or lambda_ is not None:
        return first.recovery
    if k is None and L is None:
        number = max(1, round(number / FEWER))
    rival = _forward(given, number, L)
    return rival.recovery if _better(rival, first, weight) else first.recovery


@dataclass(frozen=True)
class Proposal:
    """A recovery, and the errors (n,) of rows left out; none where nothing was compared."""

    recovery: Recovery
    errors: np.ndarray | None


def _better(rival, best, weight):
    """Whether the rival errs less: by SURE standard errors of the difference (McNemar's) where it
    has as many views, by one more for each further view.
    """
    known = ~np.isnan(rival.errors) & ~np.isnan(best.errors)
    w = np.where(known, 1.0 if weight is None else weight, 0.0)
    gain = w * np.where(known, best.errors - rival.errors, 0.0)
    sure = max(0.0, SURE + len(rival.recovery.views) - len(best.recovery.views))
    return gain.sum() > sure * np.sqrt((gain**2).sum()) + ties.EQUAL


def _losses(given, k):
    X, y, views, task, weight, control, seed, threads = given
    return loss_matrix(
        X, y, views, task, k, control=control, weight=weight, seed=seed, threads=threads
    )


def _by_penalty(given, k, lambda_, L):
    """Views by the lambda path, or by a given lambda."""
    _, _, _, task, weight, control, _, threads = given
    L = _losses(given, k) if L is None else L
    unit = spread(L) if task == "number" else (1.0 - control.alpha) ** 2
    able = candidates(L, unit)  # the others never serve: the matrix of all may be large
    L = np.ascontiguousarray(L[:, able])
    given = (*given[:2], given[2][able], *given[3:])
    path, errors = None, None
    if lambda_ is not None or task == "cluster":
        lambda_ = ALIKE if lambda_ is None else lambda_
        found = assign(L, unit * lambda_, weight=weight, threads=threads)
    else:
        path, errors = _path(given, k, L, unit)
        found, lambda_ = path.assignments[path.chosen], control.grid[path.chosen]
    found = replace(_recovery(given, k, unit, L, found, path), lambda_=lambda_)
    return Proposal(replace(found, columns=able[found.columns]), errors)


def _recovery(given, k, unit, L, found, path):
    _, _, views, task, weight, control, _, _ = given
    columns, own = keep(L, found, control.least, weight, control.most)
    if task == "class":
        columns, own = settle(L, columns, min(found.lambda_, ALIKE * unit), weight)
        own = ended(own, found)
    return Recovery(
        task, views[columns], columns, own, L[:, columns], L.min(axis=1), k, found.lambda_ / unit,
        unit, path,
    )  # fmt: skip


def _forward(given, k, L):
    """Views by forward selection, the rows assigned to them at a penalty of one unit."""
    _, y, views, task, weight, control, _, _ = given
    L, unit = _losses(given, k) if L is None else L, (1.0 - control.alpha) ** 2
    tried = forward.candidates(L, weight)
    ratios = _left_out(given, k, tried)
    taken = forward.forward(ratios, y, control.most or forward.MOST, weight)
    J, ratios = tried[taken], ratios[:, taken]
    errors = lambda_path.class_errors(ratios, y, np.arange(len(J)))(None, np.arange(len(J)))
    J, own = settle(L, J, ALIKE * unit, weight)
    found = Recovery(task, views[J], J, own, L[:, J], L.min(axis=1), k, ALIKE, unit, None, True)
    return Proposal(found, errors)


def _left_out(given, k, J):
    """Log ratios of rows to all classes in some views, rows left out, (n, A, K)."""
    X, y, views, _, weight, control, _, threads = given
    return knn.class_ratios(
        X, X, y, views[J], k, n_classes=int(y.max() + 1), balanced=control.balanced,
        counts=None if weight is None else weight > 0, leave_out=True, threads=threads,
    )  # fmt: skip


def keep(L, found, least, weight=None, most=None):
    """Columns of the views with more than a share of the mass, most first; rows assigned to them.

    Where none has as much, the one with most is kept; of more than `most`, those with most.
    """
    order = largest(found.mass, least, most)
    columns = found.views[order]
    return columns, restrict(L[:, columns], found, found.mass[order], weight)


def largest(mass, least, most=None):
    """Positions of masses beyond a share, most first; of none beyond it, that with most."""
    order = ties.falling(mass)
    return order[mass[order] > min(least, 0.999 * mass.max())][:most]


def settle(L, columns, lambda_, weight=None):
    """Columns with most mass first, and the rows assigned to them alone at a small penalty.

    The penalty that finds the views crowds rows into the largest of them; as after a lasso, what
    is selected is fitted anew with less.
    """
    own = assign(L[:, columns], lambda_, weight=weight)
    mass = np.zeros(len(columns))
    mass[own.views] = own.mass
    order = ties.falling(mass)
    again = restrict(L[:, columns[order]], own, mass[order], weight)
    return columns[order], again


def _references(y, weight, task, n):
    counts = np.ones(n, bool) if weight is None else weight > 0
    return int((counts & (y >= 0)).sum() if task == "class" else counts.sum())


def spread(L):
    """Mean variance of the finite losses of a row."""
    total = 0.0
    for rows in row_blocks(L):
        finite = np.isfinite(L[rows])
        losses = np.where(finite, L[rows], 0.0)
        size = np.maximum(finite.sum(axis=1), 1)
        centred = np.where(finite, losses - (losses.sum(axis=1) / size)[:, None], 0.0)
        total += (np.einsum("ij,ij->i", centred, centred) / size).sum()
    return float(total / len(L)) or 1.0


def _path(given, k, L, unit):
    """The lambda path, and the errors of what it chooses."""
    X, y, views, task, weight, control, _, threads = given
    grid = unit * np.array(control.grid)
    found = lambda_path.assignments(L, grid, weight=weight, threads=threads)
    J = np.unique(np.concatenate([a.selected(control.least) for a in found]))
    if task == "class":
        error_of = lambda_path.class_errors(_left_out(given, k, J), y, J)
    else:
        near = {j: knn.neighbours(X, X, views[j], k, like=y, leave_out=True) for j in J}
        error_of = lambda_path.number_errors(near, y, L, weight)
    path = lambda_path.choose(
        found, grid, error_of, weight=weight, least=control.least, tolerance=control.tolerance,
        most=control.most,
    )  # fmt: skip
    return path, error_of(found[path.chosen], path.views[path.chosen])
