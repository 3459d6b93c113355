"""The feature sets (views) of a fit, and the training rows that predict in them."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.family.family import hits
from lodim.models.ripr import ties
from lodim.models.ripr.settings import MOST_DIM
from lodim.models.ripr.views import axis_values, by_content

CLASSES, NUMBERS, CLUSTERS = "class", "number", "cluster"  # tasks, as `recover` names them

TASKS = {"gaussian": NUMBERS, "none": CLUSTERS}  # task by family; other families have classes
LOG = {  # fields of the log of a search
    "objective": forms.real("rounds"),
    "converged": forms.flags(),
    "compared": forms.whole(),
    "possible": forms.whole(most=forms.LARGEST),
    "flat": forms.whole("flat", most="p - 1"),
    "sampled": forms.whole(),
}


def task_of(family):
    """Return the kind of response of a family: CLASSES, NUMBERS or CLUSTERS (no response)."""
    return TASKS.get(family.name, CLASSES)


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions for m rows of data, by each of r views (feature sets) and by the Ensemble."""

    view: np.ndarray  # view that predicts each row, -1 if each view has a missing feature
    value: np.ndarray  # (m, r) prediction of each view: a class code, a number, or NaN
    # (m, r) loss of each view, infinite if a feature is missing. For numbers, or if views vote
    # together, it is one minus the view's weight
    loss: np.ndarray
    # (m, K) linear predictors, such as log-odds; without a view NaN or the null model's
    score: np.ndarray
    code: np.ndarray | None = None  # predicted class, -1 if none; None without classes


@forms.record
class Ensemble:
    """Views (feature sets) of a fit, and the n training rows that predict new rows in them.

    A view is a small set of axes. An axis is a number, or a factor with all its levels."""

    # axes in some view
    features: np.ndarray = forms.ascending(forms.whole("a", most="p - 1"), strictly=True)
    # axes of each view, as positions among `features`, padded with -1; largest share first
    views: np.ndarray = forms.whole("r", "D", least=-1, most="a - 1")
    # X, y: standardized features or codes of levels, and class codes or numbers; NaN if missing
    X: np.ndarray = forms.real("n", "a", nan=True)
    y: np.ndarray = forms.responses("n", nan=True)
    weight: np.ndarray = forms.real("n", least=0)
    # (n, views) shares of the views in the prediction of each row
    assignment: np.ndarray = forms.real("n", "r", least=0, most=1 + 1e-6)  # allows rounding
    # view that predicts each row when the row itself is left out; -1 if none
    assigned_view: np.ndarray = forms.whole("n", least=-1, most="r - 1")
    n_classes: int = forms.size("C")
    n_scores: int = forms.size("K")  # number of linear predictors of the family; 1 for two classes
    k: int = forms.whole(least=1, most="max(n, 10000)")  # a file may have fewer rows than k
    # axis of each design matrix column
    axis_of: np.ndarray = forms.ascending(forms.whole("p", most="p - 1"))

    def __len__(self):
        return len(self.views)

    @property
    def codes(self):
        return np.where(np.isfinite(self.y), self.y, -1.0).astype(np.int64)

    def rows(self, batch):
        """Convert a Batch to (rows, axes) values of the views: numbers, or codes of factor levels.

        A value equal to a training row's up to rounding is set to that value."""
        X = axis_values(tiles.unpack(batch.X, batch.n).astype(np.float64), self.axis_of)
        return ties.match_close(X[:, self.features], self.X[self.weight > 0.0])

    def best_class(self, scores):
        """Return the code of the class with the largest of `scores` (..., classes), for each row.

        In ties the class with the largest total weight of training rows wins."""
        refs = self.references
        own = self.weight[refs] * (self.codes[refs] == np.arange(self.n_classes)[:, None])
        mass = own.sum(axis=1)
        X = self.X[refs]
        total = np.einsum("ci,if->fc", own, np.nan_to_num(X))[by_content(X)]
        values = np.round(total / np.maximum(mass, 1e-300), ties.DIGITS)
        order = np.lexsort((*values[::-1], -np.round(mass / mass.sum(), ties.DIGITS)))
        return order[ties.argmin(-scores[..., order])]

    @property
    def references(self):
        """Positions of training rows that can be neighbours: positive weight, known response."""
        known = self.weight > 0
        return np.flatnonzero(known if self.task == CLUSTERS else known & np.isfinite(self.y))

    def queried(self, X):
        """Return the rows to predict, and their positions in `references` (possible neighbours).

        X : new rows, or None for the training rows. Position -1: not in `references`"""
        if X is not None:
            return X, np.full(len(X), -1)
        refs, own = self.references, np.full(self.n, -1)
        own[refs] = np.arange(len(refs))
        return self.X, own

    @property
    def n(self):
        return len(self.X)

    @property
    def share(self):
        """Share of the rows' weight that each view (feature set) predicts, (views,)."""
        of = self.assigned_view
        weight = np.bincount(of[of >= 0], self.weight[of >= 0], len(self))
        return weight / max(self.weight.sum(), 1e-300)

    @property
    def mass(self):
        """Mean share of each view in the predictions of the training rows, (views,)."""
        weight = self.weight @ self.assignment
        return weight / max(weight.sum(), 1e-300)

    def columns(self, j):
        """Return the features of view j, as positions among the columns of X."""
        return self.views[j][self.views[j] >= 0]

    def complete(self, X):
        """Return whether rows X have all features of each view, (rows, views) bool."""
        missing = [np.isnan(X[:, self.columns(j)]).any(axis=1) for j in range(len(self))]
        return ~np.column_stack(missing)

    def is_factor(self, a):
        """Return whether axis a is a factor (its values are codes of levels), not a number."""
        return np.count_nonzero(self.axis_of == self.features[a]) > 1

    def _check_fields(self):
        own = self.views >= 0
        rises = (own[:, :-1] & (np.diff(self.views, axis=1) > 0)) | ~own[:, 1:]
        if not (len(own) and own.shape[1] <= MOST_DIM and own[:, 0].all() and rises.all()):
            raise ValueError("a view has no features, or not in their order")
        if not len(self.references):
            raise ValueError("no row can be a neighbour")


# Results of the training rows --------------------------------------------------------------------


@forms.record
class Record:
    """Leave-one-out errors (for clusters: distances to centres) of training rows, also by view."""

    # share wrong, mean squared error, or mean squared distance to the cluster centre
    error: np.ndarray = forms.squares("r", nan=True)
    n: int = forms.whole(least=1, most="n")
    # unlabelled, blind: number of rows without a response, or with a missing feature in every view
    unlabelled: int = forms.whole()
    blind: int = forms.whole()
    deviance: float = forms.squares(nan=True)
    # deviance of the null model; for clusters, distance to a view's overall centre
    null_deviance: float = forms.squares(nan=True)
    overall: float = forms.squares(nan=True)

    def _check_fields(self):
        if max(self.unlabelled, self.blind) > self.n:
            raise ValueError(f"the record is of {self.n} rows, and more are without an answer")


def record(e, family):
    """Compute the leave-one-out errors and deviances of a fitted Ensemble e; return the Record."""
    answers, counted = e.query(), e.weight > 0
    if e.task == CLUSTERS:
        error, unlabelled = e.assign(e.X, answers.view)[1], 0
        deviance = _mean(error, e.weight, np.isfinite(error))
        null_deviance = _scatter(e, answers.view)
    else:
        error, unlabelled = np.full(e.n, np.nan), int(np.isnan(e.y[counted]).sum())
        known = np.flatnonzero((answers.view >= 0) & np.isfinite(e.y))
        y, score = e.y[known], answers.score[known]
        error[known] = 1.0 - hits(y, score) if e.task == CLASSES else (score[:, 0] - y) ** 2
        labelled = np.flatnonzero(np.isfinite(e.y) & counted)
        weight = e.weight[labelled] / e.weight[labelled].sum()
        null = np.tile(null_score(e, family), (len(labelled), 1))
        score = answers.score[labelled]
        score, y = np.where(np.isnan(score), null, score), e.y[labelled]
        deviance, null_deviance = (float(weight @ family.deviance(y, s)) for s in (score, null))
    judged = counted & np.isfinite(error)
    by_view = [_mean(error, e.weight, judged & (answers.view == j)) for j in range(len(e))]
    return Record(
        error=np.array(by_view),
        n=int(counted.sum()),
        unlabelled=unlabelled,
        blind=int((answers.view[counted] < 0).sum()),
        deviance=deviance,
        null_deviance=null_deviance,
        overall=_mean(error, e.weight, judged),
    )


def null_score(e, family):
    """Return the linear predictors (1, K) of the null model of an Ensemble e."""
    known = np.flatnonzero(np.isfinite(e.y) & (e.weight > 0))
    weight = e.weight[known] / e.weight[known].sum()
    return family.null_score(e.y[known], weight, np.zeros((len(known), family.n_scores)))[:1]


def _scatter(e, view):
    """Return the mean squared distance of training rows to the mean of all rows of their view.

    e : Ensemble; view : (rows,) view of each training row, -1 for none"""
    total, mass = 0.0, 0.0
    for j in range(len(e)):
        of = (view == j) & (e.weight > 0)
        if of.any():
            X, w = e.X[of][:, e.columns(j)], e.weight[of]
            total += w @ ((X - w @ X / w.sum()) ** 2).sum(axis=1)
            mass += w.sum()
    return float(total / max(mass, 1e-300))


def _mean(x, weight, of):
    return float(weight[of] @ x[of] / weight[of].sum()) if of.any() else float("nan")
