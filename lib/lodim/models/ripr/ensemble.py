"""The feature sets (views) of a fit, and the training rows that predict in them."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.family import hits
from lodim.models.ripr import ties
from lodim.models.ripr.neighbours import distances
from lodim.models.ripr.settings import MOST_DIM
from lodim.models.ripr.views import by_content, places

CLASSES, NUMBERS, CLUSTERS = "class", "number", "cluster"  # tasks, as `recover` names them
MOST_SHARE = 1 + 1e-6  # largest share, allowing for rounding
MOST_K = 10_000  # largest k in a file with fewer rows

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
    """Predictions for m rows by r views (feature sets).

    view : (m,) view that predicts each row, -1 if each view has a missing feature
    value : (m, r) prediction of each view: a class code, a number, or NaN
    loss : (m, r) loss of each view, infinite if a feature is missing. For a numeric response, or if
        views vote together, it is one minus the view's weight
    score : (m, K) linear predictors, such as log-odds. Rows without a view have NaN or, if views
        vote together, the null model's linear predictors
    code : (m,) predicted class, -1 if none; None without classes"""

    view: np.ndarray
    value: np.ndarray
    loss: np.ndarray
    score: np.ndarray
    code: np.ndarray | None = None


@forms.record
class Ensemble:
    """Views (feature sets) of a fit, and the n training rows whose votes predict in them.

    A view is a set of axes. An axis is a numeric feature, or a factor with all its levels.

    features : positions of the `a` axes that some view uses
    views : (r, D) axes of each of r views, as positions among `features`, padded with -1; the view
        with the largest share of rows first
    X : (n, a) standardized features or codes of levels, NaN if missing
    y : (n,) class codes or numbers, NaN if unknown or without a response
    weight : row weights; rows of weight zero do not count
    assignment : (n, r) shares of the views in the prediction of each row
    assigned_view : view that predicts each row when the row itself is left out; -1 if none
    n_classes : number of classes; 0 without classes
    n_scores : number of linear predictors of the family; 1 for two classes
    k : number of neighbours that vote
    axis_of : axis of each of p columns of the design matrix"""

    features: np.ndarray = forms.ascending(forms.whole("a", most="p - 1"), strictly=True)
    views: np.ndarray = forms.whole("r", "D", least=-1, most="a - 1")
    X: np.ndarray = forms.real("n", "a", nan=True)
    y: np.ndarray = forms.responses("n", nan=True)
    weight: np.ndarray = forms.real("n", least=0)
    assignment: np.ndarray = forms.real("n", "r", least=0, most=MOST_SHARE)
    assigned_view: np.ndarray = forms.whole("n", least=-1, most="r - 1")
    n_classes: int = forms.size("C")
    n_scores: int = forms.size("K")
    k: int = forms.whole(least=1, most=f"max(n, {MOST_K})")
    axis_of: np.ndarray = forms.ascending(forms.whole("p", most="p - 1"))

    def __len__(self):
        return len(self.views)

    @property
    def codes(self):
        """Class codes of the training rows, (n,), -1 if unknown."""
        return np.where(np.isfinite(self.y), self.y, -1.0).astype(np.int64)

    def rows(self, batch):
        """Return the features (m, a) that the feature sets use, for the rows of coded data (batch).

        Values equal to a training value up to rounding are replaced by it, so that ties stay ties.
        """
        X = places(tiles.unpack(batch.X, batch.n).astype(np.float64), self.axis_of)
        return ties.match_close(X[:, self.features], self.X[self.weight > 0.0])

    @property
    def preferred(self):
        """Class codes in the order in which they win ties: largest weight first."""
        refs = self.references
        own = self.weight[refs] * (self.codes[refs] == np.arange(self.n_classes)[:, None])
        mass = own.sum(axis=1)
        X = self.X[refs]
        total = np.einsum("ci,if->fc", own, np.nan_to_num(X))[by_content(X)]
        values = np.round(total / np.maximum(mass, 1e-300), ties.DIGITS)
        return np.lexsort((*values[::-1], -np.round(mass / mass.sum(), ties.DIGITS)))

    @property
    def references(self):
        """Positions of training rows that can be neighbours: positive weight, known response."""
        known = self.weight > 0
        return np.flatnonzero(known if self.task == CLUSTERS else known & np.isfinite(self.y))

    @property
    def n(self):
        return len(self.X)

    @property
    def share(self):
        """Share of the weighted training rows that each view (feature set) predicts, (r,)."""
        of = self.assigned_view
        weight = np.bincount(of[of >= 0], self.weight[of >= 0], len(self))
        return weight / max(self.weight.sum(), 1e-300)

    @property
    def mass(self):
        """Mean over the training rows of each feature set's share in `assignment`, (r,)."""
        weight = self.weight @ self.assignment
        return weight / max(weight.sum(), 1e-300)

    def columns(self, j):
        """Return which features view (feature set) j has, as positions among `features`."""
        return self.views[j][self.views[j] >= 0]

    def complete(self, X):
        """Return which rows X (m, a) have all features of each view (feature set), (m, r)."""
        missing = [np.isnan(X[:, self.columns(j)]).any(axis=1) for j in range(len(self))]
        return ~np.column_stack(missing)

    def information_gains(self, X):
        """Return how much labelling each row is expected to reduce the entropy of all rows, (m,).

        The entropy of the class probabilities is summed over the rows X (m, a). Feature sets
        and neighbourhoods stay fixed. NaN for rows that no feature set predicts."""
        votes, entropies = self._votes_and_entropies(X)  # votes (r, m, K)
        reach = np.array([self._reach(j, X) for j in range(len(self))])
        entropy, p = entropies(votes)
        out = np.full(len(X), np.nan)
        for i in np.flatnonzero(self.complete(X).any(axis=1)):
            distance = np.array([self._distances(j, X[i], X) for j in range(len(self))])
            near = (distance <= reach) & (reach >= 0.0)
            weight = np.where(near, self._vote_weights(distance, reach), 0.0)
            weight[:, i] = 0.0
            after = 0.0
            for c in range(self.n_classes):
                more = votes.copy()
                more[:, :, c] += weight
                changed, _ = entropies(more)
                after += p[i, c] * (changed.sum() - changed[i])
            out[i] = entropy.sum() - after
        return out

    def _vote_weights(self, distance, reach):
        """Return the weight (r, m) of an additional neighbour in the votes of m rows: one for all.

        Subclasses use its `distance` (r, m) from the rows in r feature sets, and each row's `reach`
        (r, m), the distance of its k-th neighbour."""
        return np.ones(distance.shape)

    def _reach(self, j, X):
        """Return each row's distance (m,) to its k-th neighbour in feature set j; -inf if none."""
        distance, _ = self.nearest(j, X, self.k)
        return np.where(np.isfinite(distance), distance, -np.inf).max(axis=1, initial=-np.inf)

    def _distances(self, j, x, X):
        """Return distances (m,) in feature set j from the row x to rows X; infinite if missing."""
        to = distances(x[None], X, np.arange(len(X))[None], self.views[j], self.category_distance)
        return np.where(np.isnan(to[0]), np.inf, to[0])

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
    """Leave-one-out results of the training rows, for r views (feature sets).

    Cluster centres are fitted to all rows; their results are training errors.

    share : share of all rows that each view predicts
    mass : mean over the rows of each view's share in `assignment` of the Ensemble
    error : error over the rows of a view: share wrong, mean squared error, or mean squared distance
        to the cluster centre; NaN without clusters
    n : number of rows with positive weight
    unlabelled, blind : how many of them have no response, or miss a feature in every view
    deviance, null_deviance : mean deviance of labelled rows, by the fit and by the null model; for
        clusters, mean squared distance to the cluster centres, and to the centre of a view's rows
    overall : error over all rows that have a view"""

    share: np.ndarray = forms.real("r", least=0, most=MOST_SHARE)
    mass: np.ndarray = forms.real("r", least=0, most=MOST_SHARE)
    error: np.ndarray = forms.squares("r", nan=True)
    n: int = forms.whole(least=1, most="n")
    unlabelled: int = forms.whole()
    blind: int = forms.whole()
    deviance: float = forms.squares(nan=True)
    null_deviance: float = forms.squares(nan=True)
    overall: float = forms.squares(nan=True)

    def _check_fields(self):
        if max(self.unlabelled, self.blind) > self.n:
            raise ValueError(f"the record is of {self.n} rows, and more are without an answer")


def record(e, family):
    """Return the Record of a fitted ensemble e, its leave-one-out results."""
    answers = e.query()
    error = _errors(e, answers)
    counted = e.weight > 0
    judged = counted & np.isfinite(error)
    deviance, null_deviance = _deviances(e, family, answers, error)
    by_view = [_mean(error, e.weight, judged & (answers.view == j)) for j in range(len(e))]
    return Record(
        share=e.share,
        mass=e.mass,
        error=np.array(by_view),
        n=int(counted.sum()),
        unlabelled=int(np.isnan(e.y[counted]).sum()) if e.task != CLUSTERS else 0,
        blind=int((answers.view[counted] < 0).sum()),
        deviance=deviance,
        null_deviance=null_deviance,
        overall=_mean(error, e.weight, judged),
    )


def _errors(e, answers):
    """Return the leave-one-out error of each training row, (n,); NaN without view or response.

    It is 0 or 1 for classes, a squared error, or the squared distance to the cluster centre.
    e : ensemble; answers : its leave-one-out predictions"""
    if e.task == CLUSTERS:
        return e.assign(e.X, answers)[1]
    out, known = np.full(e.n, np.nan), np.flatnonzero((answers.view >= 0) & np.isfinite(e.y))
    if e.task == CLASSES:
        out[known] = 1.0 - hits(e.y[known], answers.score[known])
    else:
        out[known] = (answers.score[known, 0] - e.y[known]) ** 2
    return out


def _deviances(e, family, answers, error):
    """Return the mean deviances of the model and of the null model.

    answers are leave-one-out predictions, error (n,) their errors. For clusters they are mean
    squared distances to the cluster centre, and to the centre of all rows of the view."""
    if e.task == CLUSTERS:
        return _mean(error, e.weight, np.isfinite(error)), _scatter(e, answers.view)
    known = np.flatnonzero(np.isfinite(e.y) & (e.weight > 0))
    weight = e.weight[known] / e.weight[known].sum()
    null = family.null_score(e.y[known], weight, np.zeros((len(known), family.n_scores)))
    score = np.where(np.isnan(answers.score[known]), null, answers.score[known])
    return tuple(float(weight @ family.deviance(e.y[known], s)) for s in (score, null))


def _scatter(e, view):
    """Return the mean squared distance of rows to the mean of all rows with the same view.

    e : ensemble; view : (n,) view (feature set) of each of its rows, -1 if none"""
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
