"""Ensemble: the selected views, and the training rows that answer in them."""

from dataclasses import dataclass

import numpy as np

from lodim import forms
from lodim.engine import tiles
from lodim.family import hits
from lodim.models.ripr import ties
from lodim.models.ripr.settings import MOST_DIM
from lodim.models.ripr.views import by_content, places

CLASSES, NUMBERS, CLUSTERS = "class", "number", "cluster"  # tasks, as `recover` names them
MOST_K = 10_000  # neighbours in a file of fewer rows


@dataclass(frozen=True, eq=False)
class Answers:
    """What r views say of m rows.

    view : (m,) the view that serves each row, -1 where none is complete
    value : (m, r) what each view says: a class code, a number, or NaN
    loss : (m, r) how well it can tell, the lower the better; infinite where it is not complete. Of
        numbers: one less the share that it has in the row's neighbours; of views that vote: one
        less the share that it has in what speaks for the answer
    score : (m, K) link scores in the view that serves the row, NaN where none does; of views that
        vote those of all, without any those of the null model
    code : (m,) class that is answered, -1 without; None of other tasks
    """

    view: np.ndarray
    value: np.ndarray
    loss: np.ndarray
    score: np.ndarray
    code: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """A few views, and the training rows that answer in them.

    `vote.voting_views` and `answers.assigned_views` have the two kinds. Each has a `task` (CLASSES,
    NUMBERS or CLUSTERS) and a `method`, and answers by `query`, `nearest` and `information_gains`.

    features : (a,) int64, the axes that some view uses
    views : (r, D) int64, positions among `features`, padded with -1; those with most mass first
    X : (n, a) float64, places of the training rows on the axes, NaN where missing: features as
        the design gives them, or codes of levels
    y : (n,) float64, class codes or numbers, NaN where not known or without a response
    weight : (n,) float64, weights of the rows, zero where they do not count
    assignment : (n, r) float64, shares of the views in a row; zeros where no view is complete
    assigned_view : (n,) int64, the view that a query for the row without itself gets; -1 where none
        is complete
    n_classes : int, zero without classes
    n_scores : int, link scores of a row, as the family has them
    k : neighbours
    axis_of : (p,) int64, the axis of each feature of the design
    """

    features: np.ndarray
    views: np.ndarray
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    assignment: np.ndarray
    assigned_view: np.ndarray
    n_classes: int
    n_scores: int
    k: int
    axis_of: np.ndarray

    local_learners = ()

    def __len__(self):
        return len(self.views)

    @property
    def codes(self):
        """(n,) classes of the rows, -1 where not known."""
        return np.where(np.isfinite(self.y), self.y, -1.0).astype(np.int64)

    def rows(self, batch):
        """Features (m, a) of the rows of a batch.

        Values that differ by rounding alone from one of X, of a row that counts, are that one.
        """
        X = places(tiles.unpack(batch.X, batch.n).astype(np.float64), self.axis_of)
        return ties.match_close(X[:, self.features], self.X[self.weight > 0.0])

    @property
    def preferred(self):
        """Classes in the order in which they win ties, (K,).

        Those of more (weighted) rows first, of as many those of smaller values.
        """
        refs = self.references
        own = self.weight[refs] * (self.codes[refs] == np.arange(self.n_classes)[:, None])
        mass = own.sum(axis=1)
        X = self.X[refs]
        total = np.einsum("ci,if->fc", own, np.nan_to_num(X))[by_content(X)]
        values = np.round(total / np.maximum(mass, 1e-300), ties.DIGITS)
        return np.lexsort((*values[::-1], -np.round(mass / mass.sum(), ties.DIGITS)))

    @property
    def references(self):
        """Positions of the rows that can be neighbours: those that count, and have a response."""
        known = self.weight > 0
        return np.flatnonzero(known if self.task == CLUSTERS else known & np.isfinite(self.y))

    @property
    def n(self):
        """Training rows."""
        return len(self.X)

    @property
    def share(self):
        """(r,) shares of all (weighted) rows that views serve; of the rest none is complete."""
        of = self.assigned_view
        weight = np.bincount(of[of >= 0], self.weight[of >= 0], len(self))
        return weight / max(self.weight.sum(), 1e-300)

    @property
    def mass(self):
        """(r,) shares of the (weighted) rows of the assignment that views have in it."""
        weight = self.weight @ self.assignment
        return weight / max(weight.sum(), 1e-300)

    def columns(self, j):
        """Positions among `features` of view j."""
        return self.views[j][self.views[j] >= 0]

    def complete(self, X):
        """Which rows X (m, a) have all features of each view, (m, r)."""
        missing = [np.isnan(X[:, self.columns(j)]).any(axis=1) for j in range(len(self))]
        return ~np.column_stack(missing)

    def is_factor(self, a):
        """Whether feature a is a factor, with codes of its levels as places."""
        return np.count_nonzero(self.axis_of == self.features[a]) > 1

    def check(self, p, n_classes, n_scores):
        """Raise ValueError unless the fields fit each other, p features and the classes."""
        a, r, n = len(self.features), len(self.views), len(self.X)
        real, whole = forms.real, forms.whole
        known = {
            "features": forms.ascending(whole("a", most=p - 1), strictly=True),
            "views": whole("r", "D", least=-1, most=a - 1),
            "X": real("n", "a", nan=True),
            "y": forms.codes("n", n_classes, nan=True) if n_classes else real("n", nan=True),
            "weight": real("n", least=0),
            "assignment": real("n", "r", least=0, most=1 + 1e-6),
            "assigned_view": whole("n", least=-1, most=r - 1),
            "n_classes": forms.choice(n_classes),
            "n_scores": forms.choice(n_scores),
            "k": whole(least=1, most=max(n, MOST_K)),
            "axis_of": forms.ascending(whole(p, most=p - 1)),
        }
        forms.check(self, known | self._forms())
        own = self.views >= 0
        rises = (own[:, :-1] & (np.diff(self.views, axis=1) > 0)) | ~own[:, 1:]
        if not (len(own) and own.shape[1] <= MOST_DIM and own[:, 0].all() and rises.all()):
            raise ValueError("a view has no features, or not in their order")
        if not len(self.references):
            raise ValueError("no row can be a neighbour")

    def _forms(self):
        """Forms of the fields that a kind of ensemble has of its own."""
        return {}


# Results of the training rows --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Record:
    """Results of the training rows, each judged without itself.

    But not by local learners, which were fitted to it, nor in clusters, whose centres it has moved.

    share : (r,) of all rows, those that a view serves
    mass : (r,) of the rows of the assignment, what the view has in it
    error : (r,) of the rows that it serves: share wrong, mean squared error, or mean squared
        distance to the centre of the cluster; NaN where there are none
    n : rows of weight above zero; unlabelled : those without a response; blind : those without any
        complete view
    deviance, null_deviance : means over labelled rows, those without a view by the null model;
        of clusters, squared distances to their centres, and to the middle of a view's rows
    overall : error over the rows that a view serves
    """

    share: np.ndarray
    mass: np.ndarray
    error: np.ndarray
    n: int
    unlabelled: int
    blind: int
    deviance: float
    null_deviance: float
    overall: float

    def check(self, n, n_views):
        """Raise ValueError unless the fields fit each other, n rows and the views."""
        share = forms.real(n_views, least=0, most=1 + 1e-6)
        count, rows = forms.whole(most=self.n), forms.whole(least=1, most=n)
        known = {"share": share, "mass": share, "error": forms.squares(n_views, nan=True)}
        known |= {"n": rows, "unlabelled": count, "blind": count}
        known |= dict.fromkeys(("deviance", "null_deviance", "overall"), forms.squares(nan=True))
        forms.check(self, known, "record")


def record(e, family):
    """The Record of an ensemble."""
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
    """The error of each row in the view that a query sends it to, (n,), NaN where not known."""
    if e.task == CLUSTERS:
        return e.assign(e.X, answers)[1]
    out, known = np.full(e.n, np.nan), np.flatnonzero((answers.view >= 0) & np.isfinite(e.y))
    if e.task == CLASSES:
        out[known] = 1.0 - hits(e.y[known], answers.score[known])
    else:
        out[known] = (answers.score[known, 0] - e.y[known]) ** 2
    return out


def _deviances(e, family, answers, error):
    """Mean deviances of the model and of the null model."""
    if e.task == CLUSTERS:
        return _mean(error, e.weight, np.isfinite(error)), _scatter(e, answers.view)
    known = np.flatnonzero(np.isfinite(e.y) & (e.weight > 0))
    weight = e.weight[known] / e.weight[known].sum()
    null = family.null_score(e.y[known], weight, np.zeros((len(known), family.n_scores)))
    score = np.where(np.isnan(answers.score[known]), null, answers.score[known])
    return tuple(float(weight @ family.deviance(e.y[known], s)) for s in (score, null))


def _scatter(e, view):
    """Mean squared distance to the middle of the rows that each view serves."""
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
