"""Search for a few feature sets (views) and the rows that each predicts.

The losses of Eq. 2.5 of Fiterau (2014) reward confidence. Algorithm 2.1.1 therefore gives all rows
to views that are confidently wrong. Forward selection uses errors of predictions instead."""

from dataclasses import dataclass, replace

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
from lodim.models.ripr.neighbours import nearest
from lodim.models.ripr.views import row_blocks

MARGIN = 0.5  # SEs by which forward selection must be better if it has as many views
FEWER = 4  # divisor of the root of n for k in forward selection
UNIT_LAMBDA = 1.0  # largest penalty of the final assignment to the views found, in units
CLUSTER_LAMBDA = 2.0  # default for clustering, which has no held-out error, in units
MOST_VIEWS = 6  # default number of views
TIE = 1e-8  # tolerance of a loss of 1, a tie
CANDIDATES = 60  # views tried: those with fewest errors on their own


@dataclass(frozen=True)
class Control:
    """Rarely changed settings of the search for views (feature sets).

    alpha : order of the divergence; a loss is a ratio of distances to the power 1 - alpha
    least : share of the rows' weight above which a view is kept
    balanced : whether losses are corrected for unequal numbers of rows in the classes
    tolerance : standard errors by which the chosen penalty's error may exceed the smallest
    most : largest number of views, None for any number"""

    alpha: float = losses.ALPHA
    least: float = 0.05
    balanced: bool = True
    tolerance: float = 0.5
    most: int | None = None


@dataclass(frozen=True, eq=False)
class RecoveryData:
    """Rows, and the views (feature sets) that are compared on them.

    X : (n, p) features on comparable scales, NaN if missing
    y : (n,) classes 0..K-1 (-1 unlabelled), numbers, or None for clustering
    views : (d*, D) positions of the features of each view, padded with -1
    task : "class", "number" or "cluster"
    weight : (n,) positive row weights, or None if all are one
    seed : seed of the uniform sample for clustering"""

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
        """Default number of neighbours: the root of the number of candidates."""
        labelled = self.task == "class"
        return losses.default_k(np.count_nonzero(self.y >= 0) if labelled else len(self.X))

    def losses(self, k=None):
        """Return losses (n, d*) of n rows in d* views (feature sets), by k nearest neighbours."""
        X, views, alpha = self.X, self.views, self.control.alpha
        how = {"threads": self.threads}
        if self.task == "class":
            balanced = self.control.balanced
            return losses.class_losses(X, self.y, views, k, alpha=alpha, balanced=balanced, **how)
        if self.task == "number":
            return losses.regression_losses(X, self.y, views, k, weight=self.weight, **how)
        return losses.cluster_losses(X, views, k, alpha=alpha, seed=self.seed, **how)

    def log_ratios(self, k, columns):
        """Return log ratios of distances to each class and to all other classes, (n, A, K).

        The distance is that to the k-th nearest row. Logs are multiplied by the number of features
        of the view. `columns` are the positions of A views (feature sets)."""
        how = {"balanced": self.control.balanced, "leave_out": True, "threads": self.threads}
        return losses.class_ratios(self.X, self.X, self.y, self.views[columns], k, **how)

    def held_out_errors(self, L, k, columns):
        """Return a function (assignment, views) -> leave-one-out errors (n,).

        L (n, d*) : losses of the rows
        columns : all views (feature sets) that are considered; the function is called with some of
            them"""
        X, y = self.X, self.y
        if self.task == "class":
            return lambda_path.class_errors(self.log_ratios(k, columns), y, columns)
        near = {j: nearest(None, X, self.views[j], k, like=y) for j in columns}
        return lambda_path.number_errors(near, y, L, self.weight)


@dataclass(frozen=True)
class Recovery:
    """Selected views (feature sets), and the rows assigned to each.

    views : (A, D) features of the selected views, padded with -1; largest share of rows first
    assignment : Assignment of the rows to the selected views, with the objective of the search
    k : number of neighbours
    lambda_, unit : the penalty is lambda_ * unit, where unit is the squared scale of the losses
    path : LambdaPath of several penalties, or None
    forward : whether forward selection found the views"""

    views: np.ndarray
    assignment: Assignment
    k: int
    lambda_: float
    unit: float
    path: lambda_path.LambdaPath | None = None
    forward: bool = False


def recover(data, *, k=None, lambda_=None, L=None):
    """Select views (feature sets) and assign rows to them by Algorithm 2.1.1; return the Recovery.

    For classes without lambda_, forward selection is used instead if it has clearly fewer errors.
    k : number of neighbours
    lambda_ : penalty, divided by the squared scale of the losses (`Recovery.unit`). If None, it is
        2 for clustering; otherwise leave-one-out errors choose it
    L : (n, d*) losses in d* views, if they are already computed"""
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
    """Return whether errors `rival` (n,) are clearly smaller in total than errors `best` (n,).

    The decrease must be positive and exceed (n_more + 0.5) standard errors, as in McNemar's test.
    n_more : number of views of the rival minus those of the best; weight (n,) : of rows, or None"""
    known = ~np.isnan(rival) & ~np.isnan(best)
    w = np.where(known, 1.0 if weight is None else weight, 0.0)
    gain = w * np.where(known, best - rival, 0.0)
    margin = max(0.0, MARGIN + n_more)
    return gain.sum() > margin * np.sqrt((gain**2).sum()) + ties.EQUAL


def _by_penalty(data, k, lambda_, L):
    """Return the Recovery (selected feature sets) for a penalty, and leave-one-out errors (n,).

    If lambda_ is None, it is 2 for clustering; otherwise leave-one-out errors choose it. The second
    result is None unless errors chose lambda_. L (n, d*) are losses, or None."""
    L = data.losses(k) if L is None else L
    unit = (
        lambda_path.mean_row_variance(L)
        if data.task == "number"
        else (1.0 - data.control.alpha) ** 2
    )
    able = eligible_views(L, unit)  # other views get no rows; drops them from a large matrix
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
    """Return a LambdaPath with the best penalty chosen, and its leave-one-out errors (n,).

    L (n, d*) : losses in d* views; unit : squared scale of the losses, a factor of penalties"""
    c, how = data.control, {"weight": data.weight, "threads": data.threads}
    grid, assignments = lambda_path.assignment_path(L, unit, c.least, **how)
    columns = np.unique(np.concatenate([a.selected(c.least) for a in assignments]))
    errors_of = data.held_out_errors(L, k, columns)
    path = lambda_path.select_lambda(grid, assignments, errors_of, c, data.weight)
    return path, errors_of(path.assignments[path.chosen], path.views[path.chosen])


def _by_forward_selection(data, k, L):
    """Return the Recovery (selected feature sets) by forward selection, and its errors (n,).

    k : number of neighbours; L (n, d*) : losses, or None"""
    L, unit = data.losses(k) if L is None else L, (1.0 - data.control.alpha) ** 2
    tried = candidates(L, data.weight)
    ratios = data.log_ratios(k, tried)
    most = data.control.most or MOST_VIEWS
    taken = forward_selection(ratios, data.y, most, data.weight)
    columns, every = tried[taken], np.arange(len(taken))
    errors = lambda_path.class_errors(ratios[:, taken], data.y, every)(None, every)
    columns, own = refit(L, columns, UNIT_LAMBDA * unit, data.weight)
    return Recovery(data.views[columns], own, k, UNIT_LAMBDA, unit, forward=True), errors


def keep_largest(L, search, control, weight=None):
    """Return the columns of the largest views in L, and the Assignment of all rows to these.

    L (n, d*) are losses of n rows in d* views (feature sets). A view is large if its share of the
    rows in an earlier Assignment, `search`, exceeds `control.least`. At least one and at most
    `control.most` are returned, largest first."""
    order = largest(search.mass, control)
    columns = search.views[order]
    return columns, reassign(L[:, columns], search, search.mass[order], weight)


def largest(mass, control):
    """Return positions of views with a share `mass` above `control.least`, largest first.

    At least one and at most `control.most` positions are returned."""
    order = ties.descending(mass)
    return order[mass[order] > min(control.least, 0.999 * mass.max())][: control.most]


def refit(L, columns, lambda_, weight=None):
    """Assign the rows to the views `columns` only; return the columns, sorted, and the Assignment.

    Columns are sorted by their share of the rows, the largest first. lambda_ should not exceed the
    penalty of the search, because a large penalty concentrates rows in the largest views. A smaller
    one corrects this, like a refit after a lasso."""
    own = assign(L[:, columns], lambda_, weight=weight)
    mass = np.zeros(len(columns))
    mass[own.views] = own.mass
    order = ties.descending(mass)
    return columns[order], reassign(L[:, columns[order]], own, mass[order], weight)


# Forward selection -------------------------------------------------------------------------------


def single_errors(L, weight=None):
    """Return the weighted share of rows that each view (feature set) alone predicts wrongly, (d*,).

    A row is wrong if its loss in L (n, d*) exceeds 1, because rows of another class are nearer; a
    loss of 1 counts as half an error. For more than two classes this is an upper bound."""
    weight, out = np.ones(len(L)) if weight is None else weight, np.zeros(L.shape[1])
    for rows in row_blocks(L):
        for end in (1.0 - TIE, 1.0 + TIE):
            out += 0.5 * np.einsum("i,ij->j", weight[rows], ~(L[rows] < end))
    return out / weight.sum()


def candidates(L, weight=None, most=CANDIDATES):
    """Return the views, at most `most` columns of the losses L, with the lowest `single_errors`."""
    return np.sort(ties.descending(-single_errors(L, weight))[:most])


def forward_selection(ratios, y, most, weight=None, tolerance=1.0):
    """Select at most `most` views (feature sets) one by one; return their positions in `ratios`.

    ratios (n, A, K) are logs of distance ratios, own class to others, of n rows in A views for K
    classes; y (n,) are the rows' classes. A row is predicted by the view with its smallest ratio.
    Its doubt is one minus the probability of its own class in this view. Each step adds the view
    that most lowers the mean doubt. It must lower the number of errors by more than `tolerance`
    times its square root, to exceed chance."""
    weight = np.where(y >= 0, 1.0 if weight is None else weight, 0.0)
    weight = weight * np.count_nonzero(weight) / weight.sum()
    leasts, doubts, wrongs = _by_view(ratios, y)
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


def _by_view(ratios, y):
    """Return least, doubt and wrong (n, A), for each of A views (feature sets) alone.

    ratios (n, A, K) : log distance ratios of n rows for K classes; y (n,) : class codes
    least : smallest log ratio of the classes
    doubt : one minus the probability of the row's own class; probabilities are softmax(-ratios)
    wrong : share of other classes among those tied for the smallest ratio; without ties 0 or 1"""
    own = np.maximum(y, 0)[:, None, None]
    p, right = softmax(-np.minimum(ratios, losses.ABSENT), axis=2), ties.argmin_shares(ratios)
    doubt, wrong = (1.0 - np.take_along_axis(z, own, axis=2)[:, :, 0] for z in (p, right))
    return ratios.min(axis=2), doubt, wrong
